"""The execution of `castsim cast` from text to numbers and back, as ONNX has it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from castsim.commands.execution.cast_values import read_value
from castsim.commands.outcome import Outcome
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format
from castsim.isa.spellings import format_spelled
from castsim.numerics import code_dtype, codes_from_strings, strings_from_codes, value_of
from castsim.reports.numbers import bits_text, json_value

STRING = "string"
"""Stands for text among formats."""

_NOT_OF_TEXT = ("target", "rounding", "overflow", "saturation", "spec", "scratch", "options")


def cast_strings(options: Namespace) -> Outcome:
    """Read numbers from text, or write them as text.

    Raises:
        ReadError: a text that the operator leaves undefined, an option that casts of text do not have.
    """
    for option in _NOT_OF_TEXT:
        if getattr(options, option):
            raise ReadError(f"--{'option' if option == 'options' else option} is not for casts from or to text")
    src, dst = (None if name.lower() == STRING else format_spelled(name) for name in (options.src, options.dst))
    rows = [_row(text, src, dst) for text in options.values]
    document = {"source_format": options.src.lower(), "destination_format": options.dst.lower(), "results": rows}

    def text(_: int) -> Any:
        from castsim.reports.cast_text import string_table  # noqa: PLC0415 - rich, only if printed

        return string_table(options.src.lower(), options.dst.lower(), rows)

    return Outcome(document, text)


def _row(text: str, src: Format | None, dst: Format | None) -> dict[str, Any]:
    """Return what one value becomes; bits and number are null where the result is text."""
    if src is None:
        if dst is None:
            return {"given": text, "text": text, "output_bits": None, "value": None}
        code = int(codes_from_strings([text], dst)[0])
        number = json_value(value_of(code, dst), dst)
        return {"given": text, "text": None, "output_bits": bits_text(code, dst), "value": number}
    given = read_value(text.strip(), src)
    written = strings_from_codes(np.array([given.code], code_dtype(src)), src)[0]
    if dst is not None:
        raise ReadError("neither format is text", legal=(STRING,))
    return {"given": text, "text": str(written), "output_bits": None, "value": None}

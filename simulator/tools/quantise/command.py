"""The command `quantise`: quantise numbers to blocks that share a scale: codes, scales, error."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from castsim.commands.cast import read_value
from castsim.commands.outcome import CommandOutcome
from castsim.execution.input_data import read_array, write_array
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes, Format
from castsim.isa.value_expressions import format_spelled
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes
from castsim.reports.cast_text import SHOWN
from castsim.tools.quantise.quantisation import quantise
from castsim.tools.quantise.report import quantised_document, quantised_rows, quantised_text


def execute(options: Namespace) -> CommandOutcome:
    """Quantise the values or the file.

    Raises:
        ReadError: a format, rule or span is unknown, a value is not a number, or a file is not an array.
        IllegalError: a format cannot be that of elements, scales or numbers.
    """
    src = format_spelled(options.src)
    array = _given(options.values, options.input, src)
    quantised = quantise(
        array,
        src.name,
        options.dst,
        block=_block(options.block),
        per=options.per,
        axis=_integer("--axis", options.axis),
        scale=options.scale,
        scale_format=options.scale_format,
        rounding=options.rounding,
        zero_scale=options.zero_scale,
    )
    files: dict[str, Path] = {}
    if options.out is not None:
        for name, written in (
            ("elements", quantised.elements),
            ("scales", quantised.scales),
            ("values", quantised.dequantise()),
        ):
            files[name] = Path(options.out) / f"{name}.npy"
            write_array(files[name], written)
    rows = quantised_rows(array, src, quantised) if np.size(array) <= SHOWN else ()
    document = quantised_document(src, quantised, rows, files)

    return CommandOutcome(document, lambda _: quantised_text(src, quantised, rows, files))


def _given(values: Sequence[str], file: str | None, src: Format) -> Codes:
    """Return the array to quantise.

    Raises:
        ReadError: neither values nor a file were given, or both were.
    """
    if bool(values) == (file is not None):
        both = "both VALUEs and --in" if values else "nothing to quantise"
        raise ReadError(both, legal=("VALUE ...", "--in FILE.npy"))
    if file is not None:
        return read_array(Path(file), "x")
    codes = [read_value(text.strip(), src).code for text in values]
    return array_from_codes(np.array(codes, code_dtype(src)), src)


def _block(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", text, re.ASCII):
        raise ReadError(f"--block '{text[:40]}' is not a block size", legal=("--block 32", "--block 128x128"))
    sizes = tuple(map(int, text.split("x")))
    return sizes if len(sizes) > 1 else sizes[0]


def _integer(option: str, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,4}", text, re.ASCII):
        raise ReadError(f"{option} '{text[:40]}' is not an integer", legal=(f"{option} -1",))
    return int(text)

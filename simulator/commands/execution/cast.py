"""The execution of `castsim cast`."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

from castsim.commands.execution.cast_strings import STRING, cast_strings
from castsim.commands.execution.cast_values import ABSTRACT, ALL, cast_values, parse_request
from castsim.commands.option_parsers import assignments, take_words
from castsim.commands.outcome import Outcome
from castsim.isa.modes import Overflow, Rounding
from castsim.reports.cast import cast_document
from castsim.targets import specification_names, target_names

CHIP_WORDS = ("none", "rhne", "rz", "ru", "rd", "sr", "csr", "rhaz", "sr_rne")
"""Rounding modes in the words of instruction sets, beside those of the abstract cast."""


def execute(options: Namespace) -> Outcome:
    """Cast the values.

    Raises:
        ReadError: what was typed: unknown format, mode or target, no number, no code.
        IllegalError: a pair or mode that the target or the format does not have.
    """
    if STRING in (options.src.lower(), options.dst.lower()):
        return cast_strings(options)
    values = [text.strip() for text in options.values]
    roundings = take_words(values, options.rounding, [mode.value for mode in Rounding] + list(CHIP_WORDS))
    overflows = take_words(values, options.overflow, [policy.value for policy in Overflow])
    request = parse_request(
        src=options.src,
        dst=options.dst,
        values=values,
        targets=take_words(values, options.target, [*target_names(), ALL, ABSTRACT]),
        roundings=roundings,
        overflows=overflows,
        saturation=options.saturation,
        scratch=options.scratch,
        options=assignments("--option", options.options),
        specifications=take_words(
            values,
            options.spec,
            [text.lower() for text in values if re.split("[@:]", text.lower())[0] in specification_names()],
        ),
    )
    table = cast_values(request)

    def text(_: int) -> Any:
        from castsim.reports.cast_text import cast_text  # noqa: PLC0415 - rich, only if printed

        return cast_text(table)

    return Outcome(cast_document(table), text)

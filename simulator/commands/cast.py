"""A VALUE is a decimal (1.5, -3e-8), a ratio (1/3), nan, inf, -inf, or 0x and the bits of SRC. A decimal is first
rounded to SRC, to nearest. Without --target the abstract cast: one exact rounding, then --overflow. With a target the
chip's own behaviour, its defaults and fallbacks included. Options may be repeated or take lists: --rounding rint odd.
--target all shows the abstract cast and every target that has the pair side by side, results that differ from the
abstract one highlighted; ulps are the steps from the abstract result to theirs. --spec adds what a specification
accepts, NAME@VERSION:ATTRIBUTE=VALUE:..., and says which results conform to it.

examples:
  castsim cast f32 f16 65520 -1.5 nan
  castsim cast f32 e4m3fn 448.5 0x43e80000 --rounding rint trunc --overflow saturate
  castsim cast f32 i16 40000 -inf --target a2a3 --saturation off --scratch
  castsim cast f32 f16 65520 1e-8 nan --target all --rounding rint odd
  castsim cast f32 e4m3fn 480 nan --target a5 --spec tosa onnx@24:saturate=0
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simulator.commands.outcome import Outcome

CHIP_WORDS = ("none", "rhne", "rz", "ru", "rd", "sr", "csr", "rhaz", "sr_rne")
"""Rounding modes in the words of instruction sets, beside those of the abstract cast."""

SUMMARY = "what values become in another format: bits and numbers per target and mode"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `cast`."""
    add = parser.add_argument
    add("src", metavar="SRC", help="format of the values")
    add("dst", metavar="DST", help="format to cast to")
    add("values", metavar="VALUE", nargs="+", help="number, nan, inf, -inf, or 0x bits")
    add(
        "--target",
        metavar="T",
        action="append",
        default=[],
        help="name or path of a target, all, or abstract (default)",
    )
    add("--rounding", metavar="M", action="append", default=[], help="rounding mode; default: the cast's own")
    add("--overflow", metavar="O", action="append", default=[], help="saturate, wrap or special; without a target")
    add("--saturation", metavar="on|off", help="saturation switch of the target")
    add(
        "--spec",
        metavar="S",
        action="append",
        default=[],
        help="specification to judge by: tosa, onnx, exact, or a path",
    )
    add("--scratch", action="store_true", help="give the target's cast a tmp tile")


def execute(options: Namespace) -> Outcome:
    """Cast the values.

    Raises:
        ReadError: what was typed: unknown format, mode or target, no number, no code.
        IllegalError: a pair or mode that the target or the format does not have.
    """
    from isa.modes import Overflow, Rounding  # noqa: PLC0415
    from simulator.commands.cast_values import ABSTRACT, ALL, cast_values, parse_request  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.cast import cast_document  # noqa: PLC0415
    from targets import specification_names, target_names  # noqa: PLC0415

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
        specifications=take_words(
            values,
            options.spec,
            [text.lower() for text in values if re.split("[@:]", text.lower())[0] in specification_names()],
        ),
    )
    table = cast_values(request)

    def text(_: int) -> Any:
        from simulator.reports.cast_text import cast_text  # noqa: PLC0415 - rich, only if printed

        return cast_text(table)

    return Outcome(cast_document(table), text)


def take_words(values: list[str], given: list[str], vocabulary: Iterable[str]) -> list[str]:
    """Return the words of a repeatable option, with those that followed it after a blank and were read as values.

    No number is spelt like a mode or a target, so `--rounding rint trunc` can only mean both.
    """
    words = listed(given)
    if words:
        legal = set(vocabulary)
        words += [text for text in values if text.lower() in legal]
        values[:] = [text for text in values if text.lower() not in legal]
    return list(dict.fromkeys(words))


def listed(texts: list[str]) -> list[str]:
    """Split the values of a repeatable option at commas; each word counts once, in the order given."""
    return list(dict.fromkeys(word.strip() for text in texts for word in text.split(",")))

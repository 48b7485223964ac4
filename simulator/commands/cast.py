"""The command `cast`: show what values become in another format: bits and numbers per target and mode."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from castsim.commands.option_parsers import assignments, given_of, refuse_given, take_words
from castsim.commands.outcome import CommandOutcome
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format, IntFormat, Overflow, Rounding, Saturation
from castsim.isa.value_expressions import format_spelled, hexadecimal_float, mode_named
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import codes_from_strings, encode_value, strings_from_codes, value_of
from castsim.reports.numbers import bits_text, json_value
from castsim.reports.value_casts import CastText, SourceValue, TextResult, ValueCastRequest, cast_values
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target, specification_names, target_names

if TYPE_CHECKING:
    from castsim.running.acceptance import SpecifiedCast


# Casting single values: from the words of the command line to the rows of the table.

ALL = "all"
"""The word for the abstract cast and every shipped target that has the pair."""


ABSTRACT = "abstract"
"""The word for the abstract cast in a list of targets."""


CHIP_WORDS = ("none", "rhne", "rz", "ru", "rd", "sr", "csr", "rhaz", "sr_rne")
"""Rounding modes as instruction sets name them, in addition to those of the abstract cast."""


def _request_of(options: Namespace) -> ValueCastRequest:
    """Return the request that the options describe.

    Raises:
        ReadError: a word is unknown, a value is neither a number nor a code, or options contradict each other.
        IllegalError: a specification does not have the cast.
        TargetDataError: a bad target description.
    """
    values = [text.strip() for text in options.values]
    roundings = take_words(values, options.rounding, [mode.value for mode in Rounding] + list(CHIP_WORDS))
    overflows = take_words(values, options.overflow, [policy.value for policy in Overflow])
    targets = take_words(values, options.target, [*target_names(), ALL, ABSTRACT])
    set_options = assignments("--option", options.options)
    named = [text.lower() for text in values if re.split("[@:]", text.lower())[0] in specification_names()]
    specifications = take_words(values, options.spec, named)
    source, destination = format_spelled(options.src), format_spelled(options.dst)
    chips = [name for name in targets if name.lower() not in (ALL, ABSTRACT)]
    everything = ALL in map(str.lower, targets)
    if everything:
        chips = list(dict.fromkeys([*target_names(), *chips]))
    if chips and overflows:
        raise ReadError("the target determines overflow behaviour; --overflow works only without a target")
    if not chips and (options.saturation is not None or options.scratch or set_options):
        given = [f"--option {name}={value}" for name, value in set_options.items()]
        given += ["--scratch"] * options.scratch + ["--saturation"] * (options.saturation is not None)
        raise ReadError(f"{', '.join(given)}: options of a target; choose one with --target", legal=target_names())
    return ValueCastRequest(
        src=source,
        dst=destination,
        sources=tuple(read_value(text, source) for text in values),
        targets=_with_options([load_target(name) for name in chips], set_options),
        abstract=everything or not chips or ABSTRACT in map(str.lower, targets),
        lenient=everything,
        roundings=tuple(roundings) if chips else tuple(mode_named(Rounding, word, "rounding") for word in roundings),
        overflows=tuple(mode_named(Overflow, word, "overflow") for word in overflows),
        saturation=None if options.saturation is None else mode_named(Saturation, options.saturation, "saturation"),
        scratch=options.scratch,
        specified=tuple(_specified(specifications, source, destination)),
    )


def _specified(specifications: Sequence[str], source: Format, destination: Format) -> Iterator[SpecifiedCast]:
    """Yield the cast as each specification has it."""
    if not specifications:
        return
    from castsim.running.acceptance import parse_specification, specified_cast  # noqa: PLC0415 - as said

    for spec, version, attributes in map(parse_specification, specifications):
        yield specified_cast(spec, source, destination, version=version, attributes=attributes)


def _with_options(targets: Sequence[Target], values: Mapping[str, str]) -> tuple[Target, ...]:
    """Return the targets with their options set; targets without an option ignore it.

    Raises:
        ReadError: no target has the option, or its value is not legal.
    """
    for name in values:
        if all(name not in target.options for target in targets):
            legal = dict.fromkeys(option for target in targets for option in target.options)
            who = ", ".join(target.name for target in targets)
            raise ReadError(f"{who} {'has' if len(targets) == 1 else 'have'} no option '{name}'", legal=legal)
    return tuple(
        with_options(target, {name: value for name, value in values.items() if name in target.options})
        for target in targets
    )


def read_value(text: str, fmt: Format) -> SourceValue:
    """Read a number, a hexadecimal float (0x1.8p+3) or `0x` bits of the format.

    Raises:
        ReadError: the text is neither, or its bits are not a code of the format.
    """
    number = hexadecimal_float(text)
    if number is not None or not text.lower().startswith("0x"):
        encoded = encode_value(text if number is None else number, fmt)
        return SourceValue(text, encoded.code, fmt, not encoded.inexact)
    try:
        code = int(text, 16)
    except ValueError:
        raise ReadError(f"'{text}' is not a hexadecimal number") from None
    if code >> fmt.bits:
        raise ReadError(f"{text} is not a code of {fmt.name}", legal=(f"0x0 to {bits_text((1 << fmt.bits) - 1, fmt)}",))
    if isinstance(fmt, IntFormat) and fmt.signed and fmt.bits > 8 and code > fmt.maximum:
        code |= (1 << fmt.storage_bits) - (1 << fmt.bits)  # codes that do not fill their storage are sign-extended
    return SourceValue(text, code, fmt, exact=True)


# The execution of `castsim cast` from text to numbers and back, as ONNX has it.

STRING = "string"
"""The name for text in place of a format."""


def cast_strings(src_name: str, dst_name: str, texts: Sequence[str]) -> CommandOutcome:
    """Read numbers from text, or write them as text.

    Raises:
        ReadError: the operator leaves the text undefined, or an option does not apply to text.
    """
    src, dst = (None if name.lower() == STRING else format_spelled(name) for name in (src_name, dst_name))
    results = tuple(_text_result(text, src, dst) for text in texts)
    casts = CastText(src_name.lower(), dst_name.lower(), results)

    def text(_: int) -> Any:
        from castsim.reports.cast_text import string_table  # noqa: PLC0415 - rich, only if printed

        return string_table(casts)

    return CommandOutcome(casts.as_json(), text)


def _text_result(text: str, src: Format | None, dst: Format | None) -> TextResult:
    """Return the result of one value; bits and number are None where the result is text."""
    if src is None:
        if dst is None:
            return TextResult(text, text)
        code = int(codes_from_strings([text], dst)[0])
        return TextResult(text, None, bits_text(code, dst), json_value(value_of(code, dst), dst))
    given = read_value(text.strip(), src)
    written = strings_from_codes(np.array([given.code], code_dtype(src)), src)[0]
    if dst is not None:
        raise ReadError("neither format is text", legal=(STRING,))
    return TextResult(text, str(written))


def execute(options: Namespace) -> CommandOutcome:
    """Cast the values.

    Raises:
        ReadError: a format, mode or target is unknown, or a value is neither a number nor a code.
        IllegalError: the target or the format lacks the pair or mode.
    """
    if STRING in (options.src.lower(), options.dst.lower()):
        names = ("target", "rounding", "overflow", "saturation", "spec", "scratch", "option")
        refuse_given(given_of(options, *names), "does not apply to casts from or to text")
        return cast_strings(options.src, options.dst, options.values)
    table = cast_values(_request_of(options))

    def text(_: int) -> Any:
        from castsim.reports.cast_text import cast_text  # noqa: PLC0415 - rich, only if printed

        return cast_text(table)

    return CommandOutcome(table.as_json(), text)

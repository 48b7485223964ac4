"""The command `cast`: show what values become in another format: bits and numbers per target and mode."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from castsim.commands.option_parsers import assignments, given_of, refuse_given, take_words
from castsim.commands.outcome import CommandOutcome
from castsim.execution.outcomes import Judge
from castsim.isa.dataclass import replace
from castsim.isa.errors import IllegalError, ReadError, WarningText
from castsim.isa.formats import DETERMINISTIC, Format, IntFormat, Overflow, Rounding, Saturation
from castsim.isa.value_expressions import format_spelled, hexadecimal_float, mode_named
from castsim.machines.mechanisms import CastForm, bare_mode, machine_of
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import codes_from_strings, encode_value, strings_from_codes, value_of
from castsim.numerics.policy import Policy, abstract_policy, legal_overflows, legal_roundings
from castsim.reports.cast import (
    Accepted,
    CastResultRow,
    CastResults,
    Skipped,
    SourceValue,
    ValueCastRequest,
    accepted,
    cast_document,
    ulp_distance,
)
from castsim.reports.numbers import bits_text, json_value
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
        return SourceValue(text, encoded.code, value_of(encoded.code, fmt), not encoded.inexact)
    try:
        code = int(text, 16)
    except ValueError:
        raise ReadError(f"'{text}' is not a hexadecimal number") from None
    if code >> fmt.bits:
        raise ReadError(f"{text} is not a code of {fmt.name}", legal=(f"0x0 to {bits_text((1 << fmt.bits) - 1, fmt)}",))
    if isinstance(fmt, IntFormat) and fmt.signed and fmt.bits > 8 and code > fmt.maximum:
        code |= (1 << fmt.storage_bits) - (1 << fmt.bits)  # codes that do not fill their storage are sign-extended
    return SourceValue(text, code, value_of(code, fmt), exact=True)


def cast_values(request: ValueCastRequest) -> CastResults:
    """Cast every value under every mode, without a chip or on every target.

    Raises:
        IllegalError: the target or the format lacks the pair or mode; with all targets requested,
            every target lacks it.
    """
    messages: _Told = {}
    skipped: dict[Skipped, None] = {}
    columns = list(_on_targets(request, messages, skipped) if request.targets else _abstract(request))
    rows, verdict = _judged(request, columns)
    by_value = [row for number in range(len(request.sources)) for row in _joined(column[number] for column in rows)]
    return CastResults(request, tuple(by_value), tuple(messages), tuple(skipped), tuple(verdict))


def _joined(rows: Iterable[CastResultRow]) -> list[CastResultRow]:
    """Return the rows of a value; forms of a target that give the same result share a row."""
    joined: list[CastResultRow] = []
    for row in rows:
        before = joined[-1] if joined else None
        if before is not None and row.form_of(before) and row.code == before.code:
            joined[-1] = replace(before, forms=before.forms + row.forms)
        else:
            joined.append(row)
    return joined


def _judged(
    request: ValueCastRequest, columns: list[list[CastResultRow]]
) -> tuple[list[list[CastResultRow]], list[Accepted]]:
    """Return the columns with each specification's verdict, and the results it accepts, value by value."""
    verdicts: list[list[Accepted]] = []
    for cast in request.specified:
        from castsim.running.acceptance import acceptance  # noqa: PLC0415 - few casts are judged

        sets = acceptance(cast, request.src, request.dst, _codes(request))
        verdicts.append([accepted(cast, sets, number) for number in range(len(request.sources))])
        for column in columns:
            codes = np.array([row.code for row in column], code_dtype(request.dst))
            judged = zip(column, sets.contains(codes).tolist(), strict=True)
            column[:] = [replace(row, accepted_by={**row.accepted_by, cast.label: good}) for row, good in judged]
    return columns, [row for rows in zip(*verdicts, strict=True) for row in rows]


def _abstract(request: ValueCastRequest) -> Iterator[list[CastResultRow]]:
    for rounding in request.roundings or (None,):
        for overflow in request.overflows or (None,):
            mode = None if rounding is None else Rounding(rounding)
            policy = abstract_policy(request.src, request.dst, mode, overflow)
            yield _abstract_column(request, policy, rounding)


def _abstract_column(request: ValueCastRequest, policy: Policy, asked: str | None) -> list[CastResultRow]:
    if policy.rounding is Rounding.STOCHASTIC:
        legal = [mode for mode in legal_roundings(request.src, request.dst) if mode in DETERMINISTIC]
        raise IllegalError("rounding 'stochastic' needs random words; use it on arrays from Python", legal=legal)
    codes = cast_codes(_codes(request), request.src, request.dst, policy)
    return _column(request, codes, (None, asked), (policy.rounding, policy.overflow, None), policy.rounding)


def _on_targets(
    request: ValueCastRequest, messages: _Told, skipped: dict[Skipped, None]
) -> Iterator[list[CastResultRow]]:
    """Yield one column per rounding and target, after the abstract cast of that rounding if requested."""
    done, refusal = 0, None
    for rounding in request.roundings or (None,):
        if request.abstract:
            yield _abstract_column(request, _comparable(request, rounding, None), rounding)
        for target in request.targets:
            try:
                forms: tuple[CastForm | None, ...] = machine_of(target).cast_forms or (None,)
                yield from [_on_target(request, target, rounding, form, messages) for form in forms]
                done += 1
            except IllegalError as error:
                if not request.lenient:
                    raise
                refusal = error
                skipped[Skipped(target.name, error.message)] = None
    if not done and refusal is not None:
        tried = ", ".join(target.name for target in request.targets)
        raise IllegalError(
            f"no target casts {request.src.name} -> {request.dst.name} with these options; tried: {tried}"
        )


def _on_target(
    request: ValueCastRequest, target: Target, rounding: str | None, form: CastForm | None, messages: _Told
) -> list[CastResultRow]:
    from castsim.machines.casting import cast_on_target  # noqa: PLC0415 - an abstract cast needs no machine

    result = cast_on_target(
        _codes(request),
        request.src,
        request.dst,
        target,
        rounding=rounding,
        saturation=request.saturation,
        scratch=request.scratch,
        form=form,
    )
    messages.update(dict.fromkeys(warning.at(target.name) for warning in result.warnings))
    modes = (result.rounding, result.overflow, result.saturation)
    column = _column(request, result.codes, (target.name, rounding), modes, _meaning(target, result.rounding))
    exact = _abstract_column(request, _comparable(request, rounding, result.rounding), rounding)
    return [
        replace(row, ulps=ulp_distance(ideal.code, row.code, request.dst), forms=() if form is None else (form,))
        for row, ideal in zip(column, exact, strict=True)
    ]


def _comparable(request: ValueCastRequest, asked: str | None, in_force: str | None) -> Policy:
    """Return the abstract cast that targets are compared with.

    It uses the requested rounding; for a mode that only the target has, the target's meaning of it. Saturation on means
    saturate, off means the other overflow.
    """
    src, dst = request.src, request.dst
    overflow = None
    if request.saturation is not None:
        overflow = legal_overflows(dst)[0 if request.saturation is Saturation.ON else 1]
    legal = {str(mode): mode for mode in legal_roundings(src, dst) if mode is not Rounding.STOCHASTIC}
    names = [bare_mode(name).lower() for name in (asked, in_force) if name is not None]
    mode = next((legal[name] for name in names if name in legal), None)
    return abstract_policy(src, dst, mode, overflow)


def _codes(request: ValueCastRequest) -> Any:
    return np.array([source.code for source in request.sources], code_dtype(request.src))


def _column(
    request: ValueCastRequest,
    codes: Any,
    asked: tuple[str | None, str | None],
    modes: tuple[str, str, str | None],
    meaning: Rounding,
) -> list[CastResultRow]:
    """Return one row per value.

    `asked` names target and rounding, `modes` are rounding, overflow and saturation; `meaning` explains the rounding.
    """
    target, wanted = asked
    wanted = None if wanted is None else str(wanted).lower()
    rounding, overflow, saturation = modes
    judge = Judge(request.src, request.dst, meaning, wraps=Overflow(overflow) is Overflow.WRAP)
    return [
        CastResultRow(
            source,
            target,
            wanted,
            str(rounding),
            str(overflow),
            saturation,
            code,
            value_of(code, request.dst),
            outcome=judge.outcome(source.code, code),
        )
        for source, code in zip(request.sources, map(int, codes), strict=True)
    ]


def _meaning(target: Target, word: str) -> Rounding:
    """Return the rounding that a chip's word for it means."""
    from castsim.machines.vliw import assembly_target  # noqa: PLC0415 - as above

    chip = assembly_target(target)
    if chip is not None and word in chip.convert_rounding.modes:
        return chip.convert_rounding.modes[word].rounding or Rounding.RINT
    return mode_named(Rounding, bare_mode(word), "rounding mode")


_Told = dict[WarningText, None]
"""Distinct warnings, in the order of their first occurrence."""


# The execution of `castsim cast` from text to numbers and back, as ONNX has it.

STRING = "string"
"""The name for text in place of a format."""


def cast_strings(src_name: str, dst_name: str, texts: Sequence[str]) -> CommandOutcome:
    """Read numbers from text, or write them as text.

    Raises:
        ReadError: the operator leaves the text undefined, or an option does not apply to text.
    """
    src, dst = (None if name.lower() == STRING else format_spelled(name) for name in (src_name, dst_name))
    rows = [_row(text, src, dst) for text in texts]
    document = {"source_format": src_name.lower(), "destination_format": dst_name.lower(), "results": rows}

    def text(_: int) -> Any:
        from castsim.reports.cast_text import string_table  # noqa: PLC0415 - rich, only if printed

        return string_table(src_name.lower(), dst_name.lower(), rows)

    return CommandOutcome(document, text)


def _row(text: str, src: Format | None, dst: Format | None) -> dict[str, Any]:
    """Return the result of one value; bits and number are null where the result is text."""
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

    return CommandOutcome(cast_document(table), text)

"""Casts of single values, without a chip or on targets, the results that specifications accept, and their JSON."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from castsim.execution.outcomes import Judge, Outcome
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, WarningText
from castsim.isa.formats import DETERMINISTIC, Format, IntFormat, Overflow, Rounding, Saturation, TaperedFormat
from castsim.isa.value_expressions import mode_named
from castsim.machines.mechanisms import CastForm, bare_mode, machine_of
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import value_of
from castsim.numerics.policy import Policy, abstract_policy, legal_overflows, legal_roundings
from castsim.reports.documents import CommandDocument, Keys, apart, derived, identifier, record, says
from castsim.reports.numbers import CodedNumber, Number, bits_text
from castsim.reports.schemas.keys import Bits, Name, Ulps, Value
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from castsim.running.acceptance import AcceptanceSets, SpecifiedCast


# A value to cast, and the results that a specification accepts for it.


@dataclass(frozen=True, slots=True)
class SourceValue:
    """One value to cast: its text, and the code of the source format for it.

    `exact` is False if the text names a number that the source format does not have.
    """

    text: str
    code: int
    format: Format
    exact: bool

    @property
    def bits(self) -> str:
        """The code in hexadecimal."""
        return bits_text(self.code, self.format)

    @property
    def value(self) -> Number:
        """The number of the code."""
        return value_of(self.code, self.format)


def _form_of_set(results: AcceptedResults) -> str:
    if results.anything:
        return "any"
    if results.lowest is None:
        return "class"
    single = results.lowest == results.highest and results.further is None and not results.nan
    return "exact" if single else "interval"


@record
class AcceptedResults(Keys):
    """The results that a specification accepts for one value."""

    source: SourceValue = apart()
    specification: str = says("Name and version, `tosa@1.1`.")
    input_bits: Bits = derived("The code that was cast.", "source.bits")
    accepts: str = derived("Form of the set: `exact`, `interval`, `class` (NaN only) or `any`.", _form_of_set)
    lowest: CodedNumber | None = says("The lowest number; null if there is none.")
    highest: CodedNumber | None = says("The highest number; null if there is none.")
    further: CodedNumber | None = says("A number outside that range; null if there is none.")
    anything: bool = apart()
    nan: bool = says("Whether every NaN is accepted.")
    rule: str = says("Name of the rule.")
    meaning: str = says("The rule in words.")
    requires: Sequence[str] = says("Profiles and extensions that the cast needs.")
    status: str = says("Evidence for the rule.")
    source_of_rule: str = says("Source of the rule.", key="source")


def accepted(cast: SpecifiedCast, sets: AcceptanceSets, number: int, source: SourceValue) -> AcceptedResults:
    """Return the accepted results for one value, the `number`-th element of the sets."""
    anything = bool(sets.anything[number])
    ends: tuple[CodedNumber | None, CodedNumber | None, CodedNumber | None] = (None, None, None)
    if sets.numbers[number] and not anything:
        codes = (int(codes[number]) for codes in (sets.lowest, sets.highest, sets.further))
        low, high, further = (CodedNumber(code, value_of(code, sets.dst), sets.dst) for code in codes)
        ends = low, high, None if further in (low, high) else further
    rule = cast.rule
    return AcceptedResults(
        source, cast.label, *ends, anything, anything or bool(sets.nan[number]), cast.rule_name, rule.meaning,
        cast.requires, rule.status, rule.source,
    )  # fmt: skip


# The distance between two results, in steps from one number of the format to the next.


def ulp_distance(first: int, second: int, fmt: Format) -> int | None:
    """Return the number of steps from one code's number up to another's, negative for steps down.

    Both zeros are one number, infinity is one step beyond the largest. Between two NaNs it is 0, between NaN and a
    number it is None.
    """
    left, other = ordinal(first, fmt), ordinal(second, fmt)
    if left is None or other is None:
        return 0 if left is other else None
    return other - left


def ordinal(code: int, fmt: Format) -> int | None:
    """Return the position of a number among the numbers of its format; zero (or code 0) is at 0; None for NaN."""
    value = value_of(code, fmt)
    if isinstance(fmt, IntFormat):
        return int(value)
    if math.isnan(value):
        return None
    magnitude = code & ~fmt.sign_bit if fmt.signed else code
    position = _tapered_place(magnitude, fmt) if isinstance(fmt, TaperedFormat) else magnitude
    return -position if fmt.signed and code & fmt.sign_bit else position


def _tapered_place(magnitude: int, fmt: TaperedFormat) -> int:
    if magnitude == 0:
        return 0
    codes, places = _tapered_places(fmt)
    index = bisect_right(codes, magnitude) - 1
    return places[index] + magnitude - codes[index]


@lru_cache(maxsize=8)
def _tapered_places(fmt: TaperedFormat) -> tuple[list[int], list[int]]:
    """Return the first code of every binade, rising, and that code's rank among the positive numbers."""
    position, positions = 1, {}
    for binade in sorted(fmt.binades, key=lambda binade: binade.exponent):
        positions[binade.first_code] = position
        position += 1 << binade.fraction_bits
    codes = sorted(positions)
    return codes, [positions[code] for code in codes]


# A request, and its results as JSON.


@dataclass(frozen=True, slots=True)
class ValueCastRequest:
    """The values to cast and the modes; empty modes mean the default.

    `abstract` requests the cast without a chip, in addition to those of `targets`. If `lenient`, targets without
    the cast are skipped. `specified` are the specifications that judge the results.
    """

    src: Format
    dst: Format
    sources: tuple[SourceValue, ...]
    targets: tuple[Target, ...]
    roundings: tuple[str, ...]
    overflows: tuple[Overflow, ...]
    saturation: Saturation | None
    scratch: bool
    abstract: bool
    lenient: bool
    specified: tuple[SpecifiedCast, ...] = ()


@record
class CastResult(Keys):
    """The result of one value on one target under one mode."""

    source: SourceValue = apart()
    target: str | None = says("Name of the target; null for the abstract cast.")
    asked: str | None = apart()
    """The requested rounding; None: the default."""
    forms: tuple[CastForm, ...] = says()
    """The forms of the target's tile cast that give this result: `1d` (contiguous tiles), `2d` (others); empty if it
    has no forms."""
    rounding: str = says("The effective rounding.")
    overflow: str = says("The effective overflow policy: `saturate`, `special` or `wrap`.")
    saturation: str | None = says()
    """The saturation mode in force, `on` or `off`, if the target has a choice; otherwise the effect beyond the range:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed`; null for the abstract cast."""
    input_bits: Bits = derived("The code that was cast.", "source.bits")
    result: CodedNumber = apart()
    output_bits: Bits = derived("The code of the result.", "result.bits")
    value: Value = derived("The number that the result represents, or `nan`, `inf`, `-inf`.", "result.value")
    inexact: bool = derived("Whether it differs from the original value.", lambda own: own.outcome is not Outcome.EXACT)
    outcome: Outcome = says(
        "Effect on the value: `exact`, `rounded`, `clamped`, `wrapped`, `overflow` or `nan` (NaN became a number)."
    )
    ulps: Ulps | None = says(
        "Distance from the abstract cast with the requested rounding; null between NaN and a number.",
        key="ulps_from_abstract",
        default=0,
    )
    accepted_by: Mapping[Name, bool] = says(
        "Whether each specification accepts it, by name and version.", default_factory=dict
    )

    @property
    def name(self) -> str:
        """The target, and the form if other forms give another result; `abstract` without a target."""
        if self.target is None:
            return "abstract"
        return f"{self.target} {self.forms[0]}" if len(self.forms) == 1 else self.target

    def form_of(self, other: CastResult) -> bool:
        """Return whether this row is another form of the same cast, on the same target with the same rounding."""
        same = (self.target, self.asked) == (other.target, other.asked)
        return same and bool(self.forms) and not set(self.forms) & set(other.forms)


@record
class SkippedTarget(Keys, title="Skipped"):
    """A target that was skipped."""

    target: str = says("Its name.")
    reason: str = says("The reason.")


@record
class CastDifference(Keys):
    """A value and a rounding whose results differ between targets."""

    rows: tuple[CastResult, ...] = apart()
    input_bits: Bits = derived("The code that was cast.", lambda own: own.rows[0].input_bits)
    asked: str | None = derived(
        "The requested rounding; null for the default.", lambda own: own.rows[0].asked, key="rounding_asked"
    )
    output_bits: Mapping[Name, Bits] = derived(
        "The result on each target (and its form, `a5_2d`, if they differ), and of the abstract cast as `abstract`.",
        lambda own: {identifier(row.name): row.output_bits for row in own.rows},
    )
    max_ulps_apart: Ulps | None = derived(
        "The largest distance among the results; null if some are NaN and some are not.", lambda own: spread(own.rows)
    )


@record
class CastResults(CommandDocument, name="cast", version=3, title="Cast"):
    """Values cast, value by value."""

    request: ValueCastRequest = apart()
    rows: tuple[CastResult, ...] = says("One entry for each value, target and mode.", key="results")
    differences: tuple[CastDifference, ...] = derived(
        "The differences between targets.", lambda own: tuple(differences(own))
    )
    skipped: tuple[SkippedTarget, ...] = says("Targets without the cast.")
    warnings: tuple[str, ...] = says("Deviations of targets from the request.")
    accepted: tuple[AcceptedResults, ...] = says(
        "The accepted results of the requested specifications.", key="specifications"
    )


def differences(results: CastResults) -> Iterator[CastDifference]:
    """Yield the groups of rows with one value and one requested rounding whose results differ."""
    groups: dict[tuple[int, str | None], list[CastResult]] = {}
    for row in results.rows if results.request.targets else ():
        groups.setdefault((id(row.source), row.asked), []).append(row)
    for group in groups.values():
        if len({row.result.code for row in group}) > 1:
            yield CastDifference(tuple(group))


def spread(rows: Sequence[CastResult]) -> int | None:
    """Return the largest distance in ulps within a group of results, None if only some are NaN."""
    positions = [ordinal(row.result.code, row.result.format) for row in rows]
    ordinals = [position for position in positions if position is not None]
    if len(ordinals) == len(positions):
        return max(ordinals) - min(ordinals)
    return None if ordinals else 0


@record
class TextResult(Keys):
    """The result of one value, from text or to text."""

    given: str = says("The value as typed.")
    text: str | None = says("The result, if it is text.", default=None)
    output_bits: Bits | None = says("The code of the result, if it is a number.", default=None)
    value: Value | None = says("That number, or `nan`, `inf`, `-inf`.", default=None)


@record
class CastText(CommandDocument, name="cast-text"):
    """Values cast from text or to text."""

    source_format: str = says("Name of the source format, or `string`.")
    destination_format: str = says("Name of the destination format, or `string`.")
    results: tuple[TextResult, ...] = says("One entry for each value.")


_Messages = dict[WarningText, None]
"""Distinct warnings, in the order of their first occurrence."""


def cast_values(request: ValueCastRequest) -> CastResults:
    """Cast every value under every mode, without a chip or on every target.

    Raises:
        IllegalError: the target or the format lacks the pair or mode; with all targets requested,
            every target lacks it.
    """
    messages: _Messages = {}
    skipped: dict[SkippedTarget, None] = {}
    columns = list(_on_targets(request, messages, skipped) if request.targets else _abstract(request))
    rows, verdict = _judged(request, columns)
    by_value = [row for number in range(len(request.sources)) for row in _joined(column[number] for column in rows)]
    return CastResults(request, tuple(by_value), tuple(skipped), tuple(messages), tuple(verdict))


def _joined(rows: Iterable[CastResult]) -> list[CastResult]:
    """Return the rows of a value; forms of a target that give the same result share a row."""
    joined: list[CastResult] = []
    for row in rows:
        before = joined[-1] if joined else None
        if before is not None and row.form_of(before) and row.result.code == before.result.code:
            joined[-1] = replace(before, forms=before.forms + row.forms)
        else:
            joined.append(row)
    return joined


def _judged(
    request: ValueCastRequest, columns: list[list[CastResult]]
) -> tuple[list[list[CastResult]], list[AcceptedResults]]:
    """Return the columns with each specification's verdict, and the results it accepts, value by value."""
    verdicts: list[list[AcceptedResults]] = []
    for cast in request.specified:
        from castsim.running.acceptance import acceptance  # noqa: PLC0415 - few casts are judged

        sets = acceptance(cast, request.src, request.dst, _codes(request))
        verdicts.append([accepted(cast, sets, number, source) for number, source in enumerate(request.sources)])
        for column in columns:
            codes = np.array([row.result.code for row in column], code_dtype(request.dst))
            judged = zip(column, sets.contains(codes).tolist(), strict=True)
            column[:] = [replace(row, accepted_by={**row.accepted_by, cast.label: good}) for row, good in judged]
    return columns, [row for rows in zip(*verdicts, strict=True) for row in rows]


def _abstract(request: ValueCastRequest) -> Iterator[list[CastResult]]:
    for rounding in request.roundings or (None,):
        for overflow in request.overflows or (None,):
            mode = None if rounding is None else Rounding(rounding)
            policy = abstract_policy(request.src, request.dst, mode, overflow)
            yield _abstract_column(request, policy, rounding)


def _abstract_column(request: ValueCastRequest, policy: Policy, asked: str | None) -> list[CastResult]:
    if policy.rounding is Rounding.STOCHASTIC:
        legal = [mode for mode in legal_roundings(request.src, request.dst) if mode in DETERMINISTIC]
        raise IllegalError("rounding 'stochastic' needs random words; use it on arrays from Python", legal=legal)
    codes = cast_codes(_codes(request), request.src, request.dst, policy)
    return _column(request, codes, (None, asked), (policy.rounding, policy.overflow, None), policy.rounding)


def _on_targets(
    request: ValueCastRequest, messages: _Messages, skipped: dict[SkippedTarget, None]
) -> Iterator[list[CastResult]]:
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
                skipped[SkippedTarget(target.name, error.message)] = None
    if not done and refusal is not None:
        tried = ", ".join(target.name for target in request.targets)
        raise IllegalError(
            f"no target casts {request.src.name} -> {request.dst.name} with these options; tried: {tried}"
        )


def _on_target(
    request: ValueCastRequest, target: Target, rounding: str | None, form: CastForm | None, messages: _Messages
) -> list[CastResult]:
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
        replace(
            row,
            ulps=ulp_distance(ideal.result.code, row.result.code, request.dst),
            forms=() if form is None else (form,),
        )
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
) -> list[CastResult]:
    """Return one row per value.

    `asked` names target and rounding, `modes` are rounding, overflow and saturation; `meaning` explains the rounding.
    """
    target, wanted = asked
    wanted = None if wanted is None else str(wanted).lower()
    rounding, overflow, saturation = modes
    judge = Judge(request.src, request.dst, meaning, wraps=Overflow(overflow) is Overflow.WRAP)
    return [
        CastResult(
            source,
            target,
            wanted,
            (),
            str(rounding),
            str(overflow),
            saturation,
            CodedNumber(code, value_of(code, request.dst), request.dst),
            judge.outcome(source.code, code),
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

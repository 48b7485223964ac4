"""Casts of single values, without a chip or on targets, and the results that specifications accept."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from castsim.execution.outcomes import Judge, Outcome
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, Warnings, WarningText
from castsim.isa.formats import DETERMINISTIC, Format, IntFormat, Overflow, Rounding, Saturation, TaperedFormat
from castsim.isa.value_expressions import mode_named
from castsim.machines.mechanisms import CastForm, bare_mode, machine_of
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import value_of
from castsim.numerics.policy import Policy, abstract_policy, legal_overflows, legal_roundings
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from castsim.running.acceptance import AcceptanceSets, SpecifiedCast

Number = Fraction | float
"""A number of a format, infinities and NaN included."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Results that a specification accepts for one value, the `number`-th of the request.

    Every code if `anything`; otherwise the numbers from `lowest` to `highest` and `further`, codes with their values
    (None: no such number), and every NaN if `nan`.
    """

    number: int
    cast: SpecifiedCast
    lowest: tuple[int, Number] | None
    highest: tuple[int, Number] | None
    further: tuple[int, Number] | None
    nan: bool
    anything: bool

    @property
    def kind(self) -> str:
        """The form of the set: exact, interval, class (NaN only) or any."""
        if self.anything:
            return "any"
        if self.lowest is None:
            return "class"
        return "exact" if self.lowest == self.highest and self.further is None and not self.nan else "interval"


def accepted(cast: SpecifiedCast, sets: AcceptanceSets, number: int) -> Accepted:
    """Return the accepted results for one element of the sets."""
    anything, nan = bool(sets.anything[number]), bool(sets.nan[number])
    if anything or not sets.numbers[number]:
        return Accepted(number, cast, None, None, None, nan, anything)
    low, high, further = (
        (int(codes[number]), value_of(int(codes[number]), sets.dst))
        for codes in (sets.lowest, sets.highest, sets.further)
    )
    return Accepted(number, cast, low, high, None if further in (low, high) else further, nan, anything)


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


# A request, and its rows.


@dataclass(frozen=True, slots=True)
class SourceValue:
    """One value to cast: its text, and the code of the source format for it.

    `exact` is False if the text names a number that the source format does not have.
    """

    text: str
    code: int
    value: Number
    exact: bool


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


@dataclass(frozen=True, slots=True)
class CastResultRow:
    """One value under one target and mode; `target` None is the abstract cast.

    `asked` is the requested rounding (None: the default); the other modes are those in force. `ulps` is the
    distance from the abstract cast with the requested rounding; None between NaN and a number. `accepted_by` maps
    each specification to whether it accepts the result; `outcome` is the effect on the value. `forms` are those of the
    target's tile casts that give this result; empty if there is only one form.
    """

    source: SourceValue
    target: str | None
    asked: str | None
    rounding: str
    overflow: str
    saturation: str | None
    code: int
    value: Number
    ulps: int | None = 0
    accepted_by: Mapping[str, bool] = field(default_factory=dict)
    outcome: Outcome = Outcome.EXACT
    forms: tuple[CastForm, ...] = ()

    @property
    def name(self) -> str:
        """The target, and the form if other forms give another result; `abstract` without a target."""
        if self.target is None:
            return "abstract"
        return f"{self.target} {self.forms[0]}" if len(self.forms) == 1 else self.target

    def form_of(self, other: CastResultRow) -> bool:
        """Return whether this row is another form of the same cast, on the same target with the same rounding."""
        same = (self.target, self.asked) == (other.target, other.asked)
        return same and bool(self.forms) and not set(self.forms) & set(other.forms)

    @property
    def inexact(self) -> bool:
        """Whether the result differs from the value that was cast."""
        return self.outcome is not Outcome.EXACT


class SkippedTarget(NamedTuple):
    """A target without the cast, and the reason."""

    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class CastResults:
    """All rows, value by value, deviations of targets from the request, skipped targets, and the accepted results."""

    request: ValueCastRequest
    rows: tuple[CastResultRow, ...]
    warnings: Warnings
    skipped: tuple[SkippedTarget, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    def differences(self) -> list[tuple[CastResultRow, ...]]:
        """Return the groups of rows with one value and one requested rounding whose results differ."""
        groups: dict[tuple[int, str | None], list[CastResultRow]] = {}
        for row in self.rows:
            groups.setdefault((id(row.source), row.asked), []).append(row)
        differing = [tuple(group) for group in groups.values() if len({row.code for row in group}) > 1]
        return differing if self.request.targets else []


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
    request: ValueCastRequest, messages: _Messages, skipped: dict[SkippedTarget, None]
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
                skipped[SkippedTarget(target.name, error.message)] = None
    if not done and refusal is not None:
        tried = ", ".join(target.name for target in request.targets)
        raise IllegalError(
            f"no target casts {request.src.name} -> {request.dst.name} with these options; tried: {tried}"
        )


def _on_target(
    request: ValueCastRequest, target: Target, rounding: str | None, form: CastForm | None, messages: _Messages
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

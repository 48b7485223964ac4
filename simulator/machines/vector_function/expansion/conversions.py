"""The attributes of `vcvt` that make of it what a tile cast's conversion does, and the options that it takes for that.

Nothing here knows a pair: what an instruction does is asked of the unit's own rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from castsim.isa.errors import IllegalError
from castsim.isa.formats import IntFormat, format_named
from castsim.isa.modes import Overflow, Rounding
from castsim.isa.pto.micro.conversions import ROUNDINGS, Conversion, conversion
from castsim.machines.vector_function.lanes.conversion import policy_of
from castsim.machines.vector_function.operations import Convert
from castsim.numerics import InfinityWrap, Policy
from castsim.targets.options import with_options
from castsim.targets.vector_function import VectorFunctionTarget

_ADJUSTABLE = ("micro_integer_to_float", "micro_infinity_to_integer")
"""Options that stand for what instructions leave open and tile casts settle."""


class UnsettledError(Exception):
    """An option is needed under which an instruction that is written already differs: all is to be written again."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__()
        self.options = options


@dataclass(frozen=True, slots=True)
class Found:
    """The attributes of a `vcvt`; `without_infinity`: of lanes that are not infinite, as those are to become 0."""

    words: Mapping[str, str]
    without_infinity: bool = False


@dataclass(slots=True)
class Attributes:
    """Finds attributes of conversions; collects the options that they need."""

    target: VectorFunctionTarget
    needed: dict[str, str] = field(default_factory=dict)
    _seen: list[_Sought] = field(default_factory=list)

    def of(self, operation: Convert, ctrl: int, *, finite: bool) -> Found:
        """Return the attributes of a conversion while CTRL holds `ctrl`; `finite`: of nothing but finite numbers.

        Raises:
            IllegalError: no `vcvt` does the same, or only under an option that another conversion forbids.
            UnsettledError: one does under an option that an earlier one was written without.
        """
        pair = conversion(operation.src.name, operation.dst.name)
        wanted = _effective(operation.policy, pair, finite=finite)
        for chosen in _choices(self.target, self.needed):
            target = with_options(self.target, {**self.needed, **chosen})
            for words in _words(pair, operation):
                sought = _Sought(pair, words, wanted, ctrl, finite)
                if sought.is_met(target):
                    self._need(chosen)
                    self._seen.append(sought)
                    return Found(words)
        if wanted.overflow is Overflow.WRAP and wanted.infinity_wrap is InfinityWrap.ZERO:
            target = with_options(self.target, self.needed)
            for words in _words(pair, operation):
                sought = _Sought(pair, words, replace(wanted, infinity_wrap=InfinityWrap.EXTREME), ctrl, finite)
                if sought.is_met(target):
                    return Found(words, without_infinity=True)
        raise IllegalError(f"no vcvt {pair.src} -> {pair.dst} does what the tile cast does: {_shown(operation.policy)}")

    def _need(self, chosen: Mapping[str, str]) -> None:
        self.needed.update(chosen)
        target = with_options(self.target, self.needed)
        if chosen and not all(sought.is_met(target) for sought in self._seen):
            raise UnsettledError(chosen)


@dataclass(frozen=True, slots=True)
class _Sought:
    """An instruction, and the policy that it is to have."""

    pair: Conversion
    words: Mapping[str, str]
    policy: Policy
    ctrl: int
    finite: bool

    def is_met(self, target: VectorFunctionTarget) -> bool:
        """Whether the instruction does so on a target."""
        found = policy_of(target, self.pair, self.words.get("rnd"), self.words.get("sat"), self.ctrl)
        return _effective(found, self.pair, finite=self.finite) == self.policy


def _effective(policy: Policy, pair: Conversion, *, finite: bool) -> Policy:
    """Return a policy without what can make no difference to a pair: rounding where nothing is rounded, and so on."""
    src, dst = format_named(pair.src), format_named(pair.dst)
    if not pair.roundings:
        policy = replace(policy, rounding=Rounding.RINT)
    bounded = isinstance(src, IntFormat) or not (src.has_nan or src.has_infinity)
    if isinstance(dst, IntFormat):
        if finite or isinstance(src, IntFormat):
            return Policy(policy.rounding, policy.overflow)
        return policy
    # No integer that has a conversion to floats, and no 4-bit float, is beyond the range of its results.
    return Policy(policy.rounding, Overflow.SPECIAL) if bounded else policy


def _choices(target: VectorFunctionTarget, settled: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield settings of the adjustable options, those with the fewest changes first."""
    free = [name for name in _ADJUSTABLE if name not in settled]
    found = [
        {name: str(value) for name, value in zip(free, values, strict=True) if value != target.option(name)}
        for values in product(*(target.options[name].legal for name in free))
    ]
    yield from sorted(found, key=len)


def _words(pair: Conversion, operation: Convert) -> Iterator[dict[str, str]]:
    """Yield the attributes that the pair may have with the rounding and part of an operation."""
    letters = [letter for letter, mode in ROUNDINGS.items() if mode is operation.policy.rounding]
    for rounding in [each for each in letters if each in pair.roundings] if pair.roundings else [""]:
        for saturation in reversed(pair.saturations) if pair.saturations else [""]:
            part = (operation.part or "").removeprefix("PART_")
            words = {"rnd": rounding, "sat": saturation, "part": part}
            yield {key: word for key, word in words.items() if word}


def _shown(policy: Policy) -> str:
    return f"rounding {policy.rounding.upper()}, overflow {policy.overflow}"

"""The catalogue of a target: every legal instruction that takes elements from one format to another, as steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial

from castsim.isa.formats import FloatFormat, Format, IntFormat, format_named
from castsim.planning.constants import Constants
from castsim.planning.demand import Demand
from castsim.planning.primitives import Reread
from castsim.planning.sharing import Kept, Shared
from castsim.planning.steps import LoweringStep, RereadForm
from castsim.targets import Target


@dataclass(frozen=True)
class Catalogue:
    """Steps by source format. `rereads` cost nothing; `rereads_inside` tells whether they may stand within a chain.

    `pairs` names the destinations that steps from a format have; the steps themselves may be made on first use.

    Registers of a vector unit hold bits, so that any instruction may read another format of the width; the bytes of a
    tile get another element type by `bitcast`.
    """

    steps: Mapping[str, tuple[LoweringStep, ...]]
    rereads: Mapping[str, tuple[LoweringStep, ...]]
    rereads_inside: bool
    pairs: Mapping[str, frozenset[str]]
    _known_reach: dict[tuple[str, int], frozenset[str]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    @classmethod
    def of(cls, steps: Iterable[LoweringStep], formats: Iterable[Format], *, rereads_inside: bool) -> Catalogue:
        """Gather steps, and the rereads among `formats` and the formats of the steps."""
        listed = tuple(dict.fromkeys(steps))
        ends = [(step.src, step.dst) for step in listed]
        return cls.made_later(by_source(listed), ends, formats, rereads_inside=rereads_inside)

    @classmethod
    def made_later(
        cls,
        steps: Mapping[str, tuple[LoweringStep, ...]],
        ends: Iterable[tuple[Format, Format]],
        formats: Iterable[Format],
        *,
        rereads_inside: bool,
    ) -> Catalogue:
        """Return the catalogue of steps that need not be there yet; `ends` are their sources and destinations."""
        pairs: dict[str, set[str]] = {}
        known: dict[str, Format] = {}
        for src, dst in ends:
            pairs.setdefault(src.name, set()).add(dst.name)
            known |= {src.name: src, dst.name: dst}
        known |= {fmt.name: fmt for fmt in formats}
        rereads = _rereads_among(tuple(known.values()))
        return cls(steps, rereads, rereads_inside, {name: frozenset(reached) for name, reached in pairs.items()})

    def count(self, src: Format, steps: int) -> int:
        """Return how many steps chains of up to so many instructions from a format can be made of."""
        reached = self._reached(src, steps - 1) if steps else frozenset()
        return sum(len(self.steps.get(name, ())) for name in reached)

    def from_format(self, fmt: Format) -> tuple[LoweringStep, ...]:
        """Return the steps from a format."""
        return self.steps.get(fmt.name, ())

    def rereads_of(self, fmt: Format) -> tuple[LoweringStep, ...]:
        """Return the other formats as which codes of a format may be read."""
        return self.rereads.get(fmt.name, ())

    def leads(self, src: Format, dst: Format, steps: int) -> bool:
        """Whether any chain of up to so many instructions leads from one format to another."""
        return self.holds(src) and dst.name in self._reached(src, steps)

    def _reached(self, src: Format, steps: int) -> frozenset[str]:
        """Return the formats that chains of up to so many instructions end in."""
        place = src.name, steps
        if place not in self._known_reach:
            if steps < 1:
                reached = self._read(frozenset((src.name,)))
            else:
                before = self._reached(src, steps - 1)
                reached = self._read(before.union(*(self.pairs.get(source, ()) for source in before)))
            self._known_reach[place] = reached
        return self._known_reach[place]

    def _read(self, names: frozenset[str]) -> frozenset[str]:
        """Return formats with those as which they may be read."""
        return names | {step.dst.name for name in names for step in self.rereads.get(name, ())}

    @property
    def widths(self) -> frozenset[int]:
        """The widths of elements that instructions take or give, in bits."""
        known = set(self.pairs).union(*self.pairs.values())
        return frozenset(format_named(name).storage_bits for name in known)

    def reached(self, src: Format, steps: int) -> frozenset[str]:
        """Return the formats that chains of up to so many instructions from a format end in."""
        return self._reached(src, steps) if self.holds(src) else frozenset()

    def holds(self, fmt: Format) -> bool:
        """Whether some instruction takes or gives a format, or one as which its codes may be read."""
        known = set(self.pairs).union(*self.pairs.values())
        return fmt.name in known or any(step.dst.name in known for step in self.rereads_of(fmt))


def nearest_format(catalogue: Catalogue, demand: Demand, steps: int) -> str | None:
    """Return the format that chains lead to and that comes closest to the destination: of its kind, and as wide.

    None: chains lead nowhere else.
    """
    dst = demand.dst
    reached = [format_named(name) for name in catalogue.reached(demand.src, steps)]
    others = [fmt for fmt in reached if fmt.name not in (demand.src.name, dst.name)]

    def distance(fmt: Format) -> tuple[bool, bool, int, str]:
        return type(fmt) is not type(dst), fmt.bits < dst.bits, abs(fmt.bits - dst.bits), fmt.name

    return min(others, key=distance).name if others else None


class LazySteps(Mapping[str, tuple[LoweringStep, ...]]):
    """Steps by source format, made when they are asked for."""

    def __init__(self, sources: Iterable[str], make: Callable[[str], Iterable[LoweringStep]]) -> None:
        self._sources = tuple(dict.fromkeys(sources))
        self._make = make
        self._made: dict[str, tuple[LoweringStep, ...]] = {}

    def __getitem__(self, source: str) -> tuple[LoweringStep, ...]:
        if source not in self._made:
            if source not in self._sources:
                raise KeyError(source)
            self._made[source] = tuple(dict.fromkeys(self._make(source)))
        return self._made[source]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


Steps = Mapping[str, tuple[LoweringStep, ...]]

Arithmetic = Callable[[Constants], Iterable[LoweringStep]]
"""Makes the operations of a target with constants."""

_CASTS: Kept[Steps] = Kept(128)
_ARITHMETIC: Shared[Steps] = Shared(512)
_PARTS: Shared[tuple[LoweringStep, ...]] = Shared(1024)


def casts_of(target: Target, make: Callable[[], Steps]) -> Steps:
    """Return the casts of a target by source, which do not depend on a request; made on first use."""
    return _CASTS.of(id(target), make, target)


def arithmetic_of(target: Target, constants: Constants, *makers: Arithmetic) -> Steps:
    """Return the arithmetic of a target with constants, by source; `makers` make it one after the other.

    Each operation is made once for all requests with the same constants: bounds follow from the destination alone,
    the others from the widths of integers, see `Constants`.
    """
    src, dst = constants.src, constants.dst
    widths = _width(src), _width(dst), isinstance(dst, IntFormat) and dst.boolean

    def parts() -> Iterator[LoweringStep]:
        for maker, make in enumerate(makers):
            for key, kept in ((dst, _Bounds(src, dst)), (widths, _BesideBounds(src, dst))):
                yield from _PARTS.of((id(target), maker, key), partial(_listed, make, kept), target)

    return _ARITHMETIC.of((id(target), dst, widths), lambda: by_source(parts()), target)


def _listed(make: Arithmetic, constants: Constants) -> tuple[LoweringStep, ...]:
    return tuple(make(constants))


def _width(fmt: Format) -> tuple[int, bool]:
    return fmt.bits, isinstance(fmt, IntFormat)


class _Bounds(Constants):
    """The ends of the destination's range, and nothing else."""

    __slots__ = ()

    def once(self) -> tuple[None, ...]:
        """Return none."""
        return ()

    def offsets(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return none."""
        return ()

    def offsets_of_floats(self, fmt: FloatFormat) -> tuple[int, ...]:
        """Return none."""
        return ()

    def masks(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return none."""
        return ()

    def signs(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return none."""
        return ()

    def shifts(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return none."""
        return ()


class _BesideBounds(Constants):
    """All but the ends of the destination's range."""

    __slots__ = ()

    def bounds(self, fmt: Format) -> tuple[int, ...]:
        """Return none."""
        return ()


def by_source(steps: Iterable[LoweringStep]) -> dict[str, tuple[LoweringStep, ...]]:
    """Return different steps by source format."""
    found: dict[str, list[LoweringStep]] = {}
    for step in dict.fromkeys(steps):
        found.setdefault(step.src.name, []).append(step)
    return {name: tuple(listed) for name, listed in found.items()}


@cache
def _reread(src: Format, dst: Format) -> LoweringStep:
    return LoweringStep(src, dst, (Reread(src, dst),), (RereadForm(),), f"read {src.name} as {dst.name}")


def _rereads_among(formats: tuple[Format, ...]) -> Steps:
    """Return the rereads of each of some formats as others of them."""
    return _REREADS.of(
        formats, lambda: by_source(_reread(src, dst) for src in formats for dst in formats if _same_bits(src, dst))
    )


_REREADS: Shared[Steps] = Shared(256)


def _same_bits(src: Format, dst: Format) -> bool:
    """Whether codes of one format may pass for codes of another: integers of one width, floats with equal numbers.

    A boolean lies in a byte and is 0 or 1.
    """
    if src.name == dst.name:
        return False
    if isinstance(src, IntFormat) and isinstance(dst, IntFormat):
        widths = {8 if fmt.boolean else fmt.bits for fmt in (src, dst)}
        return len(widths) == 1
    if not isinstance(src, FloatFormat) or not isinstance(dst, FloatFormat):
        return False
    return all(
        getattr(src, part) == getattr(dst, part)
        for part in ("exponent_bits", "fraction_bits", "bias", "specials", "signed", "has_zero")
    )

"""The catalogue of a target: legal instructions as steps, the search for chains, and programs of chains."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain as all_of
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, field
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, format_named
from castsim.machines.registry import MachinePart
from castsim.running.acceptance import order_keys
from castsim.running.program_loading import load_text
from castsim.running.program_runs import run_loaded
from castsim.running.synchronisation.race_findings import IGNORE
from castsim.targets.loader import Target
from castsim.tools.lowering.demand import Demand, grading_of
from castsim.tools.lowering.samples import common_codes
from castsim.tools.lowering.sharing import Kept, Numbers, Shared, program_key, recorded_cycles
from castsim.tools.lowering.steps import (
    Chain,
    Constants,
    FormatCast,
    Integral,
    LoweringStep,
    Reread,
    RereadForm,
    VectorForm,
)


@dataclass(frozen=True, slots=True)
class Assembly:
    """A program with input `src` and output `dst`.

    `suffix` is its file suffix. `elements` is the size of both arguments, `source` and `destination` their declared
    formats; elements keep their order. `scratch_bytes` are those of tmp tiles, `buffer_bytes`
    those of all tiles, `registers` the number of vector registers.
    """

    target: Target
    text: str
    suffix: str
    elements: int
    source: Format
    destination: Format
    scratch_bytes: int
    buffer_bytes: int
    registers: int


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """The cost of a program: its total cycles, with loads and stores, for `elements` elements."""

    cycles: int
    elements: int
    scratch_bytes: int
    buffer_bytes: int
    registers: int

    @property
    def cycles_per_element(self) -> float:
        """Cycles per element."""
        return self.cycles / self.elements

    @property
    def rank(self) -> tuple[float, int, int, int]:
        """The ranking key of chains: cycles per element, scratch, registers, buffer."""
        return self.cycles_per_element, self.scratch_bytes, self.registers, self.buffer_bytes


def machine_formats(chain: Chain, src: Format, dst: Format, target: Target) -> tuple[Format, Format]:
    """Return the formats of the first and the last instruction, which are the declared formats of the arguments.

    Rereads at the ends become those declarations; a chain without instructions copies in any format of that width that
    the target supports.
    """
    working = [step for step in chain if step.is_instruction]
    if working:
        return working[0].src, working[-1].dst
    names = {name for row in target.casts for name in (row.src, row.dst)}
    # A boolean lies in a byte.
    width = FORMATS["u8"].bits if isinstance(src, IntFormat) and src.boolean else src.bits
    likely = (src, dst, *FORMATS.values())
    copied = next((fmt for fmt in likely if fmt.name in names and fmt.bits == width), src)
    return copied, copied


@dataclass(frozen=True)
class Catalogue:
    """Steps by source format. `rereads` are free; `rereads_inside` tells whether a chain may contain them.

    `pairs` maps each format to the destinations of its steps; the steps themselves may be built on first use.

    Registers of a vector unit contain bits, so any instruction may read another format of that width; the bytes of a
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
        """Return the catalogue of steps, with the rereads among `formats` and the formats of the steps."""
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
        """Return the catalogue of steps that are built on first use; `ends` are their sources and destinations."""
        pairs: dict[str, set[str]] = {}
        formats_known: dict[str, Format] = {}
        for src, dst in ends:
            pairs.setdefault(src.name, set()).add(dst.name)
            formats_known |= {src.name: src, dst.name: dst}
        formats_known |= {fmt.name: fmt for fmt in formats}
        rereads = _rereads_among(tuple(formats_known.values()))
        return cls(steps, rereads, rereads_inside, {name: frozenset(reached) for name, reached in pairs.items()})

    def count(self, src: Format, steps: int) -> int:
        """Return the number of steps available to chains from a format with up to a number of instructions."""
        reached = self._reached(src, steps - 1) if steps else frozenset()
        return sum(len(self.steps.get(name, ())) for name in reached)

    def from_format(self, fmt: Format) -> tuple[LoweringStep, ...]:
        """Return the steps from a format."""
        return self.steps.get(fmt.name, ())

    def rereads_of(self, fmt: Format) -> tuple[LoweringStep, ...]:
        """Return the other formats in which codes of a format can be read."""
        return self.rereads.get(fmt.name, ())

    def leads(self, src: Format, dst: Format, steps: int) -> bool:
        """Return whether any chain of up to a number of instructions leads from one format to another."""
        return self.holds(src) and self.reaches(src, dst, steps)

    def reaches(self, src: Format, dst: Format, steps: int) -> bool:
        """Return `leads` for formats that instructions have."""
        return dst.name in self._reached(src, steps)

    def _reached(self, src: Format, steps: int) -> frozenset[str]:
        """Return the formats that chains of up to so many instructions end in."""
        key = src.name, steps
        if key not in self._known_reach:
            if steps < 1:
                reached = self._read(frozenset((src.name,)))
            else:
                before = self._reached(src, steps - 1)
                reached = self._read(before.union(*(self.pairs.get(source, ()) for source in before)))
            self._known_reach[key] = reached
        return self._known_reach[key]

    def _read(self, names: frozenset[str]) -> frozenset[str]:
        """Return formats together with those in which they can be read."""
        return names | {step.dst.name for name in names for step in self.rereads.get(name, ())}

    @property
    def widths(self) -> frozenset[int]:
        """The element widths of all instructions, in bits."""
        names = set(self.pairs).union(*self.pairs.values())
        return frozenset(format_named(name).storage_bits for name in names)

    def reached(self, src: Format, steps: int) -> frozenset[str]:
        """Return the destinations of chains from a format with up to a number of instructions."""
        return self._reached(src, steps) if self.holds(src) else frozenset()

    def holds(self, fmt: Format) -> bool:
        """Return whether any instruction reads or writes a format, or one in which its codes can be read."""
        names = set(self.pairs).union(*self.pairs.values())
        return fmt.name in names or any(step.dst.name in names for step in self.rereads_of(fmt))


def nearest_format(catalogue: Catalogue, demand: Demand, steps: int) -> str | None:
    """Return the reachable format closest to the destination: of its kind, and as wide.

    None if no other format is reachable.
    """
    dst = demand.dst
    reached = [format_named(name) for name in catalogue.reached(demand.src, steps)]
    others = [fmt for fmt in reached if fmt.name not in (demand.src.name, dst.name)]

    def distance(fmt: Format) -> tuple[bool, bool, int, str]:
        return type(fmt) is not type(dst), fmt.bits < dst.bits, abs(fmt.bits - dst.bits), fmt.name

    return min(others, key=distance).name if others else None


class LazySteps(Mapping[str, tuple[LoweringStep, ...]]):
    """Steps by source format, built on first use."""

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
"""Function that builds the operations of a target with constants."""

_CASTS: Kept[Steps] = Kept(128)
_ARITHMETIC: Shared[Steps] = Shared(512)
_PARTS: Shared[tuple[LoweringStep, ...]] = Shared(1024)


def casts_of(target: Target, make: Callable[[], Steps]) -> Steps:
    """Return the casts of a target by source, built on first use; they do not depend on a request."""
    return _CASTS.of(id(target), make, target)


def arithmetic_of(target: Target, constants: Constants, *makers: Arithmetic) -> Steps:
    """Return the arithmetic of a target with constants, by source; `makers` build it one after the other.

    Each operation is built once for all requests with the same constants: bounds depend on the destination alone,
    the others on the widths of integers, see `Constants`.
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
    """The ends of the destination's range."""

    __slots__ = ()

    def _none(self, fmt: Format | None = None) -> tuple[()]:
        return ()

    once = offsets = offsets_of_floats = masks = signs = shifts = _none


class _BesideBounds(Constants):
    """All but the ends of the destination's range."""

    __slots__ = ()

    def bounds(self, fmt: Format) -> tuple[int, ...]:
        """Return none."""
        return ()


def by_source(steps: Iterable[LoweringStep]) -> dict[str, tuple[LoweringStep, ...]]:
    """Return distinct steps by source format."""
    by_name: dict[str, list[LoweringStep]] = {}
    for step in dict.fromkeys(steps):
        by_name.setdefault(step.src.name, []).append(step)
    return {name: tuple(listed) for name, listed in by_name.items()}


@cache
def _reread(src: Format, dst: Format) -> LoweringStep:
    return LoweringStep(src, dst, (Reread(src, dst),), (RereadForm(),), f"read {src.name} as {dst.name}")


def _rereads_among(formats: tuple[Format, ...]) -> Steps:
    """Return the rereads among some formats."""
    return _REREADS.of(
        formats, lambda: by_source(_reread(src, dst) for src in formats for dst in formats if _same_bits(src, dst))
    )


_REREADS: Shared[Steps] = Shared(256)


def _same_bits(src: Format, dst: Format) -> bool:
    """Return whether codes of one format are valid codes of another: integers of one width, floats with equal numbers.

    A boolean occupies a byte and is 0 or 1.
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


class Planning(Protocol):
    """The steps of chains on the targets of a mechanism, and their text; `target` has that mechanism."""

    def casts(self, target: Target) -> Catalogue:
        """Return all casts, and the rereads among all formats."""
        ...

    def behaviours(self, target: Target) -> Mapping[tuple[str, str], Hashable]:
        """Return the effects of each pair's casts on elements: equal if options change nothing."""
        ...

    def catalogue(self, target: Target, constants: Constants) -> Catalogue:
        """Return the casts, and the arithmetic with these constants."""
        ...

    def arithmetic(self, target: Target, constants: Constants) -> Steps:
        """Return the arithmetic with these constants, the same object for all equivalent requests."""
        ...

    def assembly(self, chain: Chain, src: Format, dst: Format, target: Target, rows: int, cols: int) -> Assembly:
        """See `castsim.tools.lowering.catalogue.assembly_of`."""
        ...


PLANNING: MachinePart[Planning] = MachinePart(
    "casts to plan with",
    {
        "strided-repeat": "castsim.tools.lowering.tile_casts:STRIDED",
        "vector-function": "castsim.tools.lowering.tile_casts:FUNCTIONS",
        "vliw": "castsim.tools.lowering.vector_steps",
    },
)


def catalogue_of(target: Target, src: Format, dst: Format) -> Catalogue:
    """Return the steps of a target between `src` and `dst`, which decide the constants of its arithmetic."""
    return _CATALOGUES.of(
        (id(target), id(src), id(dst)),
        lambda: PLANNING.of(target).catalogue(target, Constants(src, dst)),
        (target, src, dst),
    )


def arithmetic_between(target: Target, src: Format, dst: Format) -> Steps:
    """Return the steps of the catalogue that are operations with constants."""
    return PLANNING.of(target).arithmetic(target, Constants(src, dst))


_CATALOGUES: Shared[Catalogue] = Shared(64)


# Writing a chain as a program of the target, and what that costs.


def assembly_of(chain: Chain, src: Format, dst: Format, target: Target, rows: int, cols: int) -> Assembly:
    """Return the program that applies a chain to `rows` x `cols` elements.

    On a vector unit the tensors are padded to whole registers.

    Raises:
        IllegalError, TileError: no program of the target fits, for example because a tile exceeds the buffer.
    """
    written = tuple((id(step.src), id(step.dst), step.name, step.forms[0]) for step in chain)
    return _ASSEMBLIES.of(
        (id(target), written, id(src), id(dst), rows, cols),
        lambda: PLANNING.of(target).assembly(chain, src, dst, target, rows, cols),
        (target, chain, src, dst),
    )


_ASSEMBLIES: Shared[Assembly] = Shared(512)


def cost_of(assembly: Assembly) -> ProgramCost:
    """Return the cost of a program: its cycles as recorded, else as simulated.

    Raises:
        IllegalError, TileError: the target refuses it.
    """
    target, timed = assembly.target, timed_text(assembly.text)

    def cycles_of() -> int:
        cycles = recorded_cycles(target).get(program_key(target, timed))
        return simulated_cycles(assembly) if cycles is None else cycles

    cycles = _CYCLES.of((id(target), assembly.suffix, timed), cycles_of, target)
    return ProgramCost(cycles, assembly.elements, assembly.scratch_bytes, assembly.buffer_bytes, assembly.registers)


def simulated_cycles(assembly: Assembly) -> int:
    """Return the simulated cycles of a program.

    Raises:
        IllegalError, TileError: the target refuses it.
    """
    loaded = load_text(assembly.text, f"lowered{assembly.suffix}", assembly.target)
    return run_loaded(loaded, {}, timing_only=True, races=IGNORE).cycles


_CYCLES: Shared[int] = Shared(4096)
_COMMENT = re.compile(r"^//.*\n")
_ELEMENT = re.compile(r"(?<== arith\.constant )\S+(?= : (?!index))")


def timed_text(text: str) -> str:
    """Return the parts of a program that decide its time: without comments and the values of elementwise constants."""
    return _ELEMENT.sub("?", _COMMENT.sub("", text))


# Finding chains: all of up to four steps, shortest first, on codes that tell wrong ones from right ones.
#
# A prefix is dropped when two codes whose satisfying results differ have become one and the same: nothing behind it can
# tell them apart again. Of prefixes that give the same codes in the same format only one is followed. Both are sound on
# the codes tried, so a chain that is right on them is found whenever one exists.

_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a chain and its results for the codes tried; `length` counts instructions."""

    chain: Chain
    codes: Codes
    fmt: Format
    length: int
    rerun: bool = False


def search(
    catalogue: Catalogue, demand: Demand, codes: Codes, steps: int, progress: ProgressCallback = lambda *_: None
) -> list[Chain]:
    """Return the shortest chains of up to `steps` instructions that satisfy the demand on all of `codes`.

    All chains of that length are returned, one for every behaviour on the codes and every sequence of formats.
    """
    key = id(catalogue), id(demand), codes.dtype.char, codes.tobytes(), steps
    return _SEARCHES.of(key, lambda: _searched(catalogue, demand, codes, steps, progress), (catalogue, demand))


_SEARCHES: Shared[list[Chain]] = Shared(64)
"""Searches of one request's settings of options, of which the best are planned again to be proven."""


def _searched(
    catalogue: Catalogue, demand: Demand, codes: Codes, steps: int, progress: ProgressCallback
) -> list[Chain]:
    judge = _JUDGES.of((id(demand), codes.dtype.char, codes.tobytes()), lambda: _Judge(demand, codes), demand)
    seen: set[tuple[str, bytes]] = set()
    frontier = _with_rereads(catalogue, [Prefix((), codes, demand.src, 0)], demand, inside=True)
    chains = [chain for prefix in frontier for chain in _ends(catalogue, prefix, demand, judge)]
    for length in range(1, steps + 1):
        if chains:
            break
        progress(f"{length} steps", 0, 0)
        # What may be the end comes first: only where nothing is found is the rest worth running.
        arriving = _grown(catalogue, frontier, demand, leading=True, judge=judge)
        chains = [chain for prefix in arriving for chain in _ends(catalogue, prefix, demand, judge)]
        if not chains and length < steps:
            others = _grown(catalogue, frontier, demand, leading=False, more=steps - length, judge=judge)
            kept = [prefix for prefix in all_of(arriving, others) if _goes_on(prefix, judge, seen)]
            frontier = _with_rereads(catalogue, kept, demand, inside=catalogue.rereads_inside)
    return list(dict.fromkeys(chains))


def nearest(
    catalogue: Catalogue, demand: Demand, codes: Codes, steps: int = 2, weights: NDArray[np.int64] | None = None
) -> list[tuple[Chain, int]]:
    """Return the chains of up to `steps` instructions, those with the fewest failing codes first, with that number.

    `weights` count codes more than once. The result is empty if no chain of that length reaches the destination.
    """
    arrived: list[tuple[Chain, int]] = []
    grading = grading_of(demand, codes)
    frontier = [Prefix((), codes, demand.src, 0)]
    for length in range(steps + 1):
        frontier = _with_rereads(catalogue, frontier, demand, inside=length == 0 or catalogue.rereads_inside)
        for prefix in frontier:
            for chain, results in _arrivals(catalogue, prefix, demand):
                failing = ~grading.satisfied(results)
                if chain:
                    arrived.append((chain, int(failing.sum() if weights is None else weights[failing].sum())))
        if length < steps:
            last = length + 1 == steps
            frontier = _first_of_each(_grown(catalogue, frontier, demand, leading=True if last else None))
    return sorted(arrived, key=lambda route: route[1])


def _first_of_each(prefixes: Iterable[Prefix]) -> list[Prefix]:
    """Return the first prefix for each format and codes: continuations of the others fail in the same way."""
    kept: dict[tuple[str, bytes], Prefix] = {}
    for prefix in prefixes:
        kept.setdefault((prefix.fmt.name, prefix.codes.tobytes()), prefix)
    return list(kept.values())


def through(
    catalogue: Catalogue, demand: Demand, codes: Codes, legs: Sequence[RequestedStep]
) -> tuple[Chain, int] | None:
    """Return the chain through `legs` with the fewest failing codes, and that number; None if there is no such chain.

    The last leg leads to the destination.
    """
    frontier = [Prefix((), codes, demand.src, 0)]
    for leg in legs:
        grown = [
            (prefix, step)
            for prefix in frontier
            for step in (*catalogue.from_format(prefix.fmt), *catalogue.rereads_of(prefix.fmt))
            if step.dst.name == leg.format and (leg.rounding is None or _rounds_by(step, leg.rounding))
        ]
        frontier = _first_of_each(_after(grown))
    judged = [(prefix.chain, int((~demand.satisfied(codes, prefix.codes)).sum())) for prefix in frontier]
    return min(judged, key=lambda judged_chain: judged_chain[1], default=None)


@dataclass(frozen=True, slots=True)
class RequestedStep:
    """One requested instruction of a chain: its destination format and, if it matters, its rounding mode."""

    format: str
    rounding: str | None = None


def _rounds_by(step: LoweringStep, mode: str) -> bool:
    """Return whether an instruction rounds by a mode, in the words of the abstract cast or of the chip."""
    form = step.forms[0]
    if isinstance(form, VectorForm) and form.rounding == mode:
        return True
    return any(
        primitive.policy.rounding == mode
        for primitive in step.primitives
        if isinstance(primitive, FormatCast | Integral)
    )


def _with_rereads(catalogue: Catalogue, frontier: list[Prefix], demand: Demand, *, inside: bool) -> list[Prefix]:
    """Add prefixes whose last codes are read in another format, if a chain may continue from there."""
    if not inside:
        return frontier
    more = [
        Prefix((*prefix.chain, step), prefix.codes, step.dst, prefix.length, rerun=True)
        for prefix in frontier
        if not prefix.rerun
        for step in catalogue.rereads_of(prefix.fmt)
        if step.dst != demand.dst
    ]
    return [*frontier, *more]


def _arrivals(catalogue: Catalogue, prefix: Prefix, demand: Demand) -> Iterator[tuple[Chain, Codes]]:
    """Yield the chains that end with a prefix: in the destination, or in a format that may be read as it."""
    if prefix.fmt == demand.dst:
        yield prefix.chain, prefix.codes
    elif not prefix.rerun:
        for step in catalogue.rereads_of(prefix.fmt):
            if step.dst == demand.dst:
                yield (*prefix.chain, step), prefix.codes


def _ends(catalogue: Catalogue, prefix: Prefix, demand: Demand, judge: _Judge) -> Iterator[Chain]:
    for chain, results in _arrivals(catalogue, prefix, demand):
        if judge.accepts(results):
            yield chain


def _leads_to(catalogue: Catalogue, step: LoweringStep, demand: Demand) -> bool:
    return step.dst == demand.dst or any(other.dst == demand.dst for other in catalogue.rereads_of(step.dst))


def _grown(
    catalogue: Catalogue,
    frontier: list[Prefix],
    demand: Demand,
    *,
    leading: bool | None,
    more: int | None = None,
    judge: _Judge | None = None,
) -> list[Prefix]:
    """Return the prefixes that are one instruction longer, by those that lead to the destination or by the others.

    `leading` None: by all. Prefixes from which no `more` instructions lead there are left out, and so are those of
    which `judge` sees on a few codes that nothing behind them can tell codes apart again.
    """
    steps = {
        fmt: [
            step
            for step in catalogue.from_format(fmt)
            if (leading is None or _leads_to(catalogue, step, demand) == leading)
            and (more is None or catalogue.reaches(step.dst, demand.dst, more))
        ]
        for fmt in dict.fromkeys(prefix.fmt for prefix in frontier)
    }
    grown = [(prefix, step) for prefix in frontier for step in steps[prefix.fmt]]
    if judge is not None:
        few = _results(grown, judge.few)
        grown = [pair for pair, codes in zip(grown, few, strict=True) if judge.few_still_tell(codes)]
    return _after(grown)


RANDOM_CODES = 48
"""Number of random codes per kind on which chains are tried first."""
_SPREAD = 4
"""Every so many of the source's own codes decide first whether an instruction loses what is asked for.

Most instructions do, and casts of one source have these codes in common, so that they share what instructions give.
"""


def _after(grown: Sequence[tuple[Prefix, LoweringStep]]) -> list[Prefix]:
    """Return prefixes with one instruction more each."""
    return [
        Prefix((*prefix.chain, step), codes, step.dst, prefix.length + 1)
        for (prefix, step), codes in zip(grown, _results(grown), strict=True)
    ]


def _results(
    grown: Sequence[tuple[Prefix, LoweringStep]], places: NDArray[np.intp] | slice = slice(None)
) -> list[Codes]:
    """Return the results of instructions on the codes at some places of prefixes; equal ones run once on all codes."""
    given = {id(prefix): prefix.codes[places] for prefix, _ in grown}
    raw = {prefix: codes.tobytes() for prefix, codes in given.items()}
    keys = [(_NUMBERS.of(step.primitives), prefix.codes.dtype.char, raw[id(prefix)]) for prefix, step in grown]

    def run(places: list[int]) -> list[Codes]:
        outputs: dict[int, Codes] = {}
        for together in _by_step(places, keys):
            codes = [given[id(grown[index][0])] for index in together]
            results = grown[together[0]][1].run(np.concatenate(codes))
            ends = np.cumsum([code_array.size for code_array in codes])
            outputs.update(zip(together, (part.copy() for part in np.split(results, ends[:-1])), strict=True))
        return [outputs[index] for index in places]

    return _RUNS.of_all(keys, run)


_TOGETHER = 1 << 8
"""Prefixes whose codes go through an instruction together, at most."""


def _by_step(places: Iterable[int], keys: Sequence[tuple[int, str, bytes]]) -> Iterator[list[int]]:
    """Yield places of one instruction and dtype together."""
    alike: dict[tuple[int, str], list[int]] = {}
    for index in places:
        alike.setdefault(keys[index][:2], []).append(index)
    for together in alike.values():
        yield from (together[start : start + _TOGETHER] for start in range(0, len(together), _TOGETHER))


_NUMBERS = Numbers(1 << 14)
_RUNS: Shared[Codes] = Shared(1 << 13)
"""Cached results of instructions on codes; some kilobytes each."""


def _goes_on(prefix: Prefix, judge: _Judge, seen: set[tuple[str, bytes]]) -> bool:
    """Return whether a prefix may still lead somewhere, and is the first with its codes."""
    key = (prefix.fmt.name, prefix.codes.tobytes())
    if key in seen:
        return False
    seen.add(key)
    return judge.can_still_tell(prefix.codes)


class _Judge:
    """The satisfying results on the codes tried, ready for comparison."""

    def __init__(self, demand: Demand, codes: Codes) -> None:
        self._sets = demand.sets(codes)
        sets = self._sets
        lowest, highest = order_keys(sets.lowest, demand.dst), order_keys(sets.highest, demand.dst)
        further = order_keys(sets.further, demand.dst)
        lowest, highest = np.minimum(lowest, further), np.maximum(highest, further)
        only_nan = sets.nan & ~sets.numbers
        lowest, highest = np.where(only_nan, _HIGHEST, lowest), np.where(only_nan, _HIGHEST, highest)
        free = sets.anything | (sets.nan & sets.numbers)
        self._low, self._high = np.where(free, _LOWEST, lowest), np.where(free, _HIGHEST, highest)
        self._few_known: dict[bytes, bool] = {}
        self.few = _places_of(common_codes(demand.src, RANDOM_CODES)[::_SPREAD], codes)

    def accepts(self, results: Codes) -> bool:
        """Return whether every result satisfies."""
        return bool(self._sets.contains(results).all())

    def can_still_tell(self, codes: Codes, places: NDArray[np.intp] | slice = slice(None)) -> bool:
        """Return whether codes that have become equal still have a satisfying result in common.

        `codes` belong to the codes tried at `places`.
        """
        order = np.argsort(codes, kind="stable")
        ranked = codes[order]
        starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
        low = np.maximum.reduceat(self._low[places][order], starts)
        high = np.minimum.reduceat(self._high[places][order], starts)
        return bool((low <= high).all())

    def few_still_tell(self, codes: Codes) -> bool:
        """Return `can_still_tell` for the codes that decide first."""
        raw = codes.tobytes() + codes.dtype.char.encode()
        if raw not in self._few_known:
            self._few_known[raw] = self.can_still_tell(codes, self.few)
        return self._few_known[raw]


def _places_of(some: Codes, codes: Codes) -> NDArray[np.intp] | slice:
    """Return where some of rising codes are; all places if none is there."""
    places = np.minimum(np.searchsorted(codes, some), codes.size - 1)
    there: NDArray[np.intp] = places[codes[places] == some]
    return there if there.size else slice(None)


_JUDGES: Shared[_Judge] = Shared(32)

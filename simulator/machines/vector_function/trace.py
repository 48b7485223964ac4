"""Where every stored bit comes from: trips run on provenance instead of values.

A register holds, for each of its nibbles, the element it belongs to and the steps it has been through. Registers that
depend on no load (index vectors, masks, zeros) are computed as they are. A trip is traced once per state of its
counters; all other trips are copies of a traced one, moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import Format
from castsim.machines.vector_function.byte_maps import convert_map, interleave_maps, lane_starts, load_maps, store_map
from castsim.machines.vector_function.machine import RegisterState
from castsim.machines.vector_function.operations import (
    Bitwise,
    Convert,
    CountDown,
    Gather,
    Interleave,
    Load,
    Nest,
    Store,
    TripSelect,
    VectorFunction,
)
from castsim.numerics import Policy

Nibbles = NDArray[np.int64]

RAW, ZERO, UNKNOWN = 0, -1, -2
"""Chain numbers of nibbles as loaded, of known zeros, and of anything the proof cannot use."""


@dataclass(frozen=True, slots=True)
class ConvertStep:
    """A cast between formats."""

    src: Format
    dst: Format
    policy: Policy


@dataclass(frozen=True, slots=True)
class IntegralStep:
    """Rounding to an integral value of the same format."""

    format: Format
    policy: Policy


@dataclass(frozen=True, slots=True)
class MaskStep:
    """Bitwise AND with a constant."""

    mask: int


Step = ConvertStep | IntegralStep | MaskStep
Chain = tuple[Step, ...]


def trace_nest(function: VectorFunction, nest: Nest) -> Chain | None:
    """Return the chain that leads from every source element of a row to the destination element of its own number.

    None unless that holds for each of the `count` elements of a row, and nothing else is stored.
    """
    tracer = _Tracer(function)
    chains: list[Chain] = [()]
    taken = {operation.counter: 0 for operation in nest.trip if isinstance(operation, CountDown) and operation.counter}
    for operation in nest.trip:
        if isinstance(operation, CountDown) and operation.counter:
            taken[operation.counter] += operation.take
    steps = (nest.source_trip * 8, nest.destination_trip * 8)
    if steps != tuple(nest.elements * _bits(fmt) for fmt in (function.source_format, function.destination_format)):
        return None
    counters = dict(nest.counters)
    tracer.state.scalars.update(counters)
    for operation in nest.row:
        tracer.state.step(operation)
    counters.update(tracer.state.scalars)
    selects = any(isinstance(operation, TripSelect) for operation in nest.trip)
    proven: dict[tuple[object, ...], int] = {}
    chain: Chain | None = None
    for trip in range(nest.trips):
        last = trip == nest.trips - 1
        key = (last and selects, *(min(counters[name], reach) for name, reach in taken.items() if name in counters))
        if key not in proven:
            tracer.state.scalars.update(counters)
            found = tracer.trip(nest, last=last, chains=chains)
            if found is None or (chain is not None and found[0] != chain):
                return None
            chain, proven[key] = found
        # A trip covers its own elements, the last one what is left: together all, and each once.
        if proven[key] != (nest.count - trip * nest.elements if last else nest.elements):
            return None
        for name, reach in taken.items():
            if name in counters:
                counters[name] = max(counters[name] - reach, 0)
    return chain


@dataclass(frozen=True, slots=True)
class _Symbol:
    """Provenance of a register, three numbers per nibble: an array of shape (3, bytes, 2), low nibble first.

    `origin` is the number of the source nibble (RAW) or of the source nibble in which the element begins; `part`
    counts the nibbles inside the element's code; `chain` numbers the steps it has been through.
    """

    fields: Nibbles

    @property
    def chain(self) -> Nibbles:
        """The third of the numbers."""
        chain: Nibbles = self.fields[2]
        return chain

    def take(self, places: NDArray[np.int64]) -> _Symbol:
        """Return the bytes at `places`; -1 gives what the proof cannot use."""
        taken = self.fields[:, places]
        taken[:, places < 0] = _NOTHING
        return _Symbol(taken)

    def with_chain(self, chain: Nibbles) -> _Symbol:
        """Return the same nibbles after other steps."""
        fields = self.fields.copy()
        fields[2] = chain
        return _Symbol(fields)


_NOTHING = np.array((0, 0, UNKNOWN))[:, None, None]


def _constant(values: NDArray[np.uint8]) -> _Symbol:
    fields = np.zeros((3, values.size, 2), np.int64)
    zero = np.stack((values & 15, values >> 4), axis=1) == 0
    fields[2] = np.where(zero, ZERO, UNKNOWN)
    return _Symbol(fields)


class _Tracer:
    """Runs trips of one function; everything that depends on no load is held by `state` as values."""

    def __init__(self, function: VectorFunction) -> None:
        self.function = function
        self.size = function.register_bytes
        self.state = RegisterState(self.size)
        for operation in function.setup:
            self.state.step(operation)

    def trip(self, nest: Nest, *, last: bool, chains: list[Chain]) -> tuple[Chain, int] | None:
        """Return the chain of all stored elements, and how many there are from the trip's first one on."""
        symbols: dict[str, _Symbol] = {}
        stored: list[tuple[NDArray[np.int64], _Symbol]] = []
        for operation in nest.trip:
            match operation:
                case Load(results, distribution):
                    symbols.update(zip(results, _loaded(distribution, self.size), strict=True))
                case Store():
                    stored.append(self._store(operation, symbols))
                case Convert():
                    symbols[operation.result] = self._convert(operation, self._of(operation.source, symbols), chains)
                case Bitwise() if operation.mnemonic == "vor":
                    symbols[operation.result] = self._merge(operation, symbols)
                case Bitwise():
                    symbols[operation.result] = self._mask(operation, symbols, chains)
                case Interleave() | Gather():
                    self._permute(operation, symbols)
                case _:
                    self.state.step(operation, last=last)
        return self._elements(stored, chains)

    def _permute(self, operation: Interleave | Gather, symbols: dict[str, _Symbol]) -> None:
        """Move bytes; the index of a gather is a constant, for no kernel computes it from what it loads."""
        match operation:
            case Interleave(results, (one, other), width):
                both = _joined(self._of(one, symbols), self._of(other, symbols))
                for name, places in zip(results, interleave_maps(width, self.size), strict=True):
                    symbols[name] = both.take(places)
            case Gather(result, source, index):
                nothing = np.full(self.size, -1, np.int64)
                places = nothing if index in symbols else self.state.registers[index].astype(np.int64)
                symbols[result] = self._of(source, symbols).take(places)

    def _of(self, name: str, symbols: dict[str, _Symbol]) -> _Symbol:
        return symbols[name] if name in symbols else _constant(self.state.registers[name])

    def _store(self, operation: Store, symbols: dict[str, _Symbol]) -> tuple[NDArray[np.int64], _Symbol]:
        places = store_map(operation.distribution, self.size)
        written = np.flatnonzero(self.state.predicates[operation.predicate][places.governor])
        return written + operation.offset, self._of(operation.source, symbols).take(places.source[written])

    def _convert(self, operation: Convert, source: _Symbol, chains: list[Chain]) -> _Symbol:
        places = convert_map(operation.src, operation.dst, operation.part, self.size)
        wide, narrow = (_bits(fmt) // 4 for fmt in (operation.src, operation.dst))
        inside = np.arange(wide)
        read = places.source[:, None] * wide + inside
        origin, part, chain = source.fields.reshape(3, -1)[:, read]
        begun, before_all = origin[:, 0], chain[:, 0]
        whole = (chain == before_all[:, None]).all(axis=1)
        step = (
            IntegralStep(operation.dst, operation.policy)
            if operation.integral
            else ConvertStep(operation.src, operation.dst, operation.policy)
        )
        number = np.full(begun.size, UNKNOWN)
        for before in set(before_all.tolist()):
            if before < 0 or _format_after(chains[before], self.function.source_format) != operation.src:
                continue
            # Loaded elements are runs of source nibbles; converted ones carry where they began.
            ahead, counted = (0, inside) if chains[before] else (inside, 0)
            comes = ((origin == begun[:, None] + ahead) & (part == counted)).all(axis=1)
            number[(before_all == before) & whole & comes] = _intern(chains, (*chains[before], step))
        active = self.state.predicates[operation.predicate][places.governor]
        result = np.zeros((3, self.size * 2), np.int64)
        result[2] = ZERO
        write = places.destination[:, None] * narrow + np.arange(narrow)
        result[0, write] = begun[:, None]
        result[1, write] = np.arange(narrow)
        result[2, write] = np.where(active, number, ZERO)[:, None]
        return _Symbol(result.reshape(3, -1, 2))

    def _merge(self, operation: Bitwise, symbols: dict[str, _Symbol]) -> _Symbol:
        one, other = (self._of(name, symbols) for name in operation.sources)
        first, second = one.chain == ZERO, other.chain == ZERO
        chain = np.where(first, other.chain, np.where(second, one.chain, UNKNOWN))
        active = self.state.predicates[operation.predicate][lane_starts(operation.width, self.size)][:, None]
        return _Symbol(np.where(first, other.fields, one.fields)).with_chain(np.where(active, chain, ZERO))

    def _mask(self, operation: Bitwise, symbols: dict[str, _Symbol], chains: list[Chain]) -> _Symbol:
        """AND with a constant register whose lanes are all equal."""
        name, constant = operation.sources
        source = self._of(name, symbols)
        lanes = self.state.registers[constant].view(f"<u{operation.width // 8}")
        number = np.full(source.chain.shape, UNKNOWN)
        if (lanes == lanes[0]).all():
            for before in set(source.chain.reshape(-1).tolist()):
                if (
                    before > RAW
                    and _bits(_format_after(chains[before], self.function.source_format)) == operation.width
                ):
                    number[source.chain == before] = _intern(chains, (*chains[before], MaskStep(int(lanes[0]))))
        active = self.state.predicates[operation.predicate][lane_starts(operation.width, self.size)][:, None]
        return source.with_chain(np.where(active, number, ZERO))

    def _elements(
        self, stored: list[tuple[NDArray[np.int64], _Symbol]], chains: list[Chain]
    ) -> tuple[Chain, int] | None:
        """Check that the stored nibbles are whole elements 0, 1, 2, ... each from its own source element."""
        places = np.concatenate([(bytes_of[:, None] * 2 + (0, 1)).reshape(-1) for bytes_of, _ in stored])
        order = np.argsort(places, kind="stable")
        places = places[order]
        origin, part, chain = np.concatenate([symbol.fields.reshape(3, -1) for _, symbol in stored], axis=1)[:, order]
        if not places.size or chain[0] <= RAW or (chain != chain[0]).any():
            return None
        wide, narrow = (_bits(fmt) // 4 for fmt in (self.function.source_format, self.function.destination_format))
        element, inside = np.divmod(places, narrow)
        straight = np.array_equal(places, np.arange(places.size)) and places.size % narrow == 0
        if not straight or not (np.array_equal(origin, element * wide) and np.array_equal(part, inside)):
            return None
        found = chains[int(chain[0])]
        ends = _format_after(found, self.function.source_format) == self.function.destination_format
        return (found, places.size // narrow) if ends else None


@lru_cache(maxsize=64)
def _loaded(distribution: str, register_bytes: int) -> tuple[_Symbol, ...]:
    """Return the registers that a load fills."""
    maps = load_maps(distribution, register_bytes)
    everything = np.arange(2 * (1 + max(int(places.max()) for places in maps))).reshape(-1, 2)
    memory = _Symbol(np.stack((everything, np.zeros_like(everything), np.full_like(everything, RAW))))
    return tuple(memory.take(places) for places in maps)


def _joined(one: _Symbol, other: _Symbol) -> _Symbol:
    return _Symbol(np.concatenate((one.fields, other.fields), axis=1))


def _format_after(chain: Chain, source: Format) -> Format:
    for step in chain:
        if isinstance(step, ConvertStep):
            source = step.dst
    return source


def _intern(chains: list[Chain], chain: Chain) -> int:
    if chain not in chains:
        chains.append(chain)
    return chains.index(chain)


def _bits(fmt: Format) -> int:
    return fmt.bits if fmt.bits == 4 else fmt.storage_bits

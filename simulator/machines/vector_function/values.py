"""Values of vector functions: register by register, or a whole tile at once where this is proven equal.

Nothing here knows time. Operations run in program order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.buffer_values import Bytes, TileValues, pack_nibbles, unpack_nibbles
from castsim.execution.tree import Tile
from castsim.isa.errors import TileError
from castsim.isa.formats import Codes, Format
from castsim.machines.vector_function.function_operations import (
    Compute,
    ConvertLanes,
    CountDown,
    Load,
    Nest,
    RegisterOperation,
    SetAll,
    StoreLanes,
    TripSelect,
    VectorFunction,
    convert_map,
    interleave_maps,
    lane_starts,
)
from castsim.machines.vector_function.lane_operations import run_instruction
from castsim.machines.vector_function.loads_stores import load_distribution, store_distribution
from castsim.machines.vector_function.vector_registers import (
    REGISTER_BYTES,
    PredicateRegister,
    VectorRegister,
    converted,
    every_lane,
    mask_of,
)
from castsim.numerics.cast import round_to_integral_codes
from castsim.numerics.policy import Policy
from castsim.numerics.tiers import convert_codes

Nibbles = NDArray[np.int64]

# The vector unit on values: registers, predicates and scalars, one register operation after the other.
#
# Trips run in program order; what an instruction computes is what that of a micro program does.


def execute_function(function: VectorFunction, buffer: Bytes) -> None:
    """Run one vector function on the unified buffer.

    Raises:
        TileError: a store reaches beyond the buffer.
    """
    state = RegisterState()
    for operation in function.setup:
        state.step(operation)
    for nest in function.nests:
        run_nest(function, nest, state, buffer)


def run_nest(function: VectorFunction, nest: Nest, state: RegisterState, buffer: Bytes) -> None:
    """Run one loop nest, trip by trip, on registers with their earlier contents."""
    for row in range(nest.rows):
        state.scalars.update(nest.counters)
        for operation in nest.row:
            state.step(operation)
        for trip in range(nest.trips):
            source = function.source + row * nest.source_row + trip * nest.source_trip
            destination = function.destination + row * nest.destination_row + trip * nest.destination_trip
            for operation in nest.trip:
                if isinstance(operation, Load):
                    _load(operation, state, buffer, source)
                elif isinstance(operation, StoreLanes):
                    _store(operation, state, buffer, destination)
                else:
                    state.step(operation, last=trip == nest.trips - 1)


def _load(operation: Load, state: RegisterState, buffer: Bytes, address: int) -> None:
    """Load without predicate; bytes beyond the buffer read as zero and are never stored."""
    mode = load_distribution(operation.distribution, len(operation.results))
    memory = np.zeros(mode.size + 1, np.uint8)  # the last byte stays zero: index -1 means "not part of an element"
    window = buffer[address : address + mode.size]
    memory[: window.size] = window
    for name, places in zip(operation.results, mode.places, strict=True):
        state.registers[name] = VectorRegister(memory[places])


def _store(operation: StoreLanes, state: RegisterState, buffer: Bytes, address: int) -> None:
    source, written = stored_bytes(operation, state.predicates[operation.predicate])
    if not written.size:
        return
    start = address + operation.offset
    if start < 0 or start + int(written[-1]) >= buffer.size:
        raise TileError(f"a store writes bytes {start} .. {start + int(written[-1])} of a buffer of {buffer.size}")
    buffer[start + written] = state.registers[operation.source].data[source]


def stored_bytes(operation: StoreLanes, predicate: PredicateRegister) -> tuple[Nibbles, Nibbles]:
    """Return the bytes of the register that a store writes, and where, counted from its address."""
    mode = store_distribution(operation.distribution)
    assert mode.governor is not None  # kernels have no others
    written = np.flatnonzero(predicate.bits[mode.governor])
    return mode.source[written], written


class RegisterState:
    """Registers, predicates and scalars of one running vector function."""

    def __init__(self) -> None:
        self.registers: dict[str, VectorRegister] = {}
        self.predicates: dict[str, PredicateRegister] = {}
        self.scalars: dict[str, int] = {}

    def step(self, operation: RegisterOperation, *, last: bool = False) -> None:
        """Execute one operation without memory access; `last` marks the last trip of its row."""
        match operation:
            case SetAll(result, width):
                self.predicates[result] = every_lane(width)
            case CountDown(result, width, take, counter):
                count = take if counter is None else self.scalars[counter]
                self.predicates[result] = mask_of(np.arange(REGISTER_BYTES * 8 // width) < min(count, take), width)
                if counter is not None:
                    self.scalars[counter] = max(count - take, 0)
            case TripSelect(result, full, tail):
                self.scalars[result] = self.scalars[tail] if last else full
            case ConvertLanes():
                self._convert(operation)
            case Compute():
                self._compute(operation)

    def _compute(self, operation: Compute) -> None:
        found = run_instruction(
            operation.mnemonic,
            operation.width or 8,
            [self.registers[name] for name in operation.sources if name in self.registers],
            [self.predicates[name] for name in operation.sources if name in self.predicates],
            operation.number,
        )
        for name, value in zip(operation.results, found, strict=True):
            if isinstance(value, PredicateRegister):
                self.predicates[name] = value
            elif isinstance(value, VectorRegister):
                self.registers[name] = value

    def _convert(self, operation: ConvertLanes) -> None:
        src, dst, policy = operation.src, operation.dst, operation.policy
        places = convert_map(src, dst, operation.part, REGISTER_BYTES)

        def change(codes: Codes) -> Codes:
            if operation.integral:
                return round_to_integral_codes(codes, dst, policy)
            return convert_codes(codes, src, dst, policy)

        source, mask = self.registers[operation.source], self.predicates[operation.predicate]
        self.registers[operation.result] = converted(source, (src, dst), places, places.governor, mask, change)


# Where every stored bit comes from: trips run on provenance instead of values.
#
# A register holds, for each of its nibbles, the element it belongs to and the steps it has been through. Registers
# that depend on no load (index vectors, masks, zeros) are computed as they are. A trip is traced once per state of its
# counters; all other trips are copies of a traced one, moved.

RAW, ZERO, UNKNOWN = 0, -1, -2
"""Chain numbers of nibbles: as loaded, known zeros, and unusable for the proof."""


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
    """Return the chain from every source element of a row to the destination element of the same number.

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
        """Return the bytes at `places`; -1 gives the number of values unusable for the proof."""
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
        self.state = RegisterState()
        for operation in function.setup:
            self.state.step(operation)

    def trip(self, nest: Nest, *, last: bool, chains: list[Chain]) -> tuple[Chain, int] | None:
        """Return the chain of all stored elements, and how many there are from the trip's first one on."""
        symbols: dict[str, _Symbol] = {}
        stored: list[tuple[NDArray[np.int64], _Symbol]] = []
        for operation in nest.trip:
            match operation:
                case Load(results, distribution):
                    symbols.update(zip(results, _loaded(distribution, len(results)), strict=True))
                case StoreLanes():
                    stored.append(self._store(operation, symbols))
                case ConvertLanes():
                    symbols[operation.result] = self._convert(operation, self._of(operation.source, symbols), chains)
                case Compute("vor", (result,)):
                    symbols[result] = self._merge(operation, symbols)
                case Compute("vand", (result,)):
                    symbols[result] = self._mask(operation, symbols, chains)
                case Compute("vintlv", results, (one, other), width):
                    both = _joined(self._of(one, symbols), self._of(other, symbols))
                    for name, places in zip(results, interleave_maps(width, REGISTER_BYTES), strict=True):
                        symbols[name] = both.take(places)
                case Compute("vselr", (result,), (source, index)):  # no kernel computes an index from what it loads
                    nothing = np.full(REGISTER_BYTES, -1, np.int64)
                    chosen = nothing if index in symbols else self.state.registers[index].data.astype(np.int64)
                    symbols[result] = self._of(source, symbols).take(chosen)
                case _:
                    self.state.step(operation, last=last)
        return self._elements(stored, chains)

    def _of(self, name: str, symbols: dict[str, _Symbol]) -> _Symbol:
        return symbols[name] if name in symbols else _constant(self.state.registers[name].data)

    def _store(self, operation: StoreLanes, symbols: dict[str, _Symbol]) -> tuple[NDArray[np.int64], _Symbol]:
        source, written = stored_bytes(operation, self.state.predicates[operation.predicate])
        return written + operation.offset, self._of(operation.source, symbols).take(source)

    def _convert(self, operation: ConvertLanes, source: _Symbol, chains: list[Chain]) -> _Symbol:
        places = convert_map(operation.src, operation.dst, operation.part, REGISTER_BYTES)
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
        active = self.state.predicates[operation.predicate].bits[places.governor]
        result = np.zeros((3, REGISTER_BYTES * 2), np.int64)
        result[2] = ZERO
        write = places.destination[:, None] * narrow + np.arange(narrow)
        result[0, write] = begun[:, None]
        result[1, write] = np.arange(narrow)
        result[2, write] = np.where(active, number, ZERO)[:, None]
        return _Symbol(result.reshape(3, -1, 2))

    def _merge(self, operation: Compute, symbols: dict[str, _Symbol]) -> _Symbol:
        one, other = (self._of(name, symbols) for name in operation.sources[:2])
        first, second = one.chain == ZERO, other.chain == ZERO
        chain = np.where(first, other.chain, np.where(second, one.chain, UNKNOWN))
        active = self._active(operation)
        return _Symbol(np.where(first, other.fields, one.fields)).with_chain(np.where(active, chain, ZERO))

    def _mask(self, operation: Compute, symbols: dict[str, _Symbol], chains: list[Chain]) -> _Symbol:
        """Return the AND with a constant register whose lanes are all equal."""
        name, constant, _ = operation.sources
        source = self._of(name, symbols)
        lanes = self.state.registers[constant].lanes(operation.width)
        number = np.full(source.chain.shape, UNKNOWN)
        if (lanes == lanes[0]).all():
            for before in set(source.chain.reshape(-1).tolist()):
                if (
                    before > RAW
                    and _bits(_format_after(chains[before], self.function.source_format)) == operation.width
                ):
                    number[source.chain == before] = _intern(chains, (*chains[before], MaskStep(int(lanes[0]))))
        active = self._active(operation)
        return source.with_chain(np.where(active, number, ZERO))

    def _active(self, operation: Compute) -> NDArray[np.bool_]:
        """Return for every byte whether the last source of an instruction, its predicate, enables the byte's lane."""
        predicate = self.state.predicates[operation.sources[-1]]
        return predicate.bits[lane_starts(operation.width, REGISTER_BYTES)][:, None]

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
def _loaded(distribution: str, registers: int) -> tuple[_Symbol, ...]:
    """Return the registers that a load fills."""
    maps = load_distribution(distribution, registers).places
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


# A tile cast in one call: what is done to every element, once `trace` has proven that the operations do the same.


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of packed elements in the buffer; `pitch` in bytes."""

    address: int
    pitch: int
    format: Format


@dataclass(frozen=True, slots=True)
class WholeTile:
    """Element (i, j) of the destination is `chain` of element (i, j) of the source, after `filled` bytes of zeros."""

    source: Side
    destination: Side
    rows: int
    cols: int
    chain: Chain
    filled: int


def whole_tile(function: VectorFunction, src: Tile, dst: Tile) -> WholeTile | None:
    """Return the tile cast as one call if the function's operations add up to exactly that, else None.

    Required: every element of the valid region is written exactly once, by one and the same chain of steps from its
    own source element; nothing else is written but a zero fill beforehand; no source byte is overwritten before it is
    read (equal tiles in place are fine: every element is read before it is written).
    """
    *before, main = function.nests
    filled = sum(nest.count for nest in before)
    in_place = src.address == dst.address and src.row_pitch == dst.row_pitch and not filled
    if src.address < max(dst.end, dst.address + filled) and dst.address < src.end and not in_place:
        return None
    if before and not _fills_zeros(function, filled):
        return None
    rows, cols = dst.valid_rows, dst.valid_cols
    if not main.runs:
        return None
    if main.row_loop:
        covers = main.rows == rows and main.count == cols
        covers &= main.source_row == src.row_pitch and main.destination_row == dst.row_pitch
    else:
        covers = main.count == rows * cols and (rows == 1 or (cols == src.cols and cols == dst.cols))
    if not covers or (function.source, function.destination) != (src.address, dst.address):
        return None
    chain = trace_nest(function, main)
    if chain is None:
        return None
    return WholeTile(
        Side(src.address, src.row_pitch, src.format),
        Side(dst.address, dst.row_pitch, dst.format),
        rows,
        cols,
        chain,
        filled,
    )


def convert_whole(whole: WholeTile, buffer: Bytes) -> None:
    """Convert a whole tile on the unified buffer."""
    codes = _read(buffer, whole.source, whole.rows, whole.cols)
    buffer[whole.destination.address : whole.destination.address + whole.filled] = 0
    _write(buffer, whole.destination, apply_chain(whole.chain, codes))


def apply_chain(chain: Chain, codes: Codes) -> Codes:
    """Return codes of any shape after every step."""
    for step in chain:
        match step:
            case ConvertStep(src, dst, policy):
                codes = convert_codes(codes, src, dst, policy)
            case IntegralStep(fmt, policy):
                codes = round_to_integral_codes(codes, fmt, policy)
            case MaskStep(mask):
                codes = codes & codes.dtype.type(mask)
    return codes


def _fills_zeros(function: VectorFunction, filled: int) -> bool:
    """Whether the nests before the last write zeros to the first `filled` bytes of the destination and nothing else."""
    state = RegisterState()
    memory = np.full(filled + REGISTER_BYTES, 255, np.uint8)
    for operation in function.setup:
        state.step(operation)
    for nest in function.nests[:-1]:
        run_nest(replace(function, source=0, destination=0), nest, state, memory)
    return not memory[:filled].any() and bool((memory[filled:] == 255).all())


def _read(buffer: Bytes, side: Side, rows: int, cols: int) -> Codes:
    codes = _rows(buffer, side, rows, cols)
    return unpack_nibbles(codes)[:, :cols] if side.format.bits == 4 else codes


def _write(buffer: Bytes, side: Side, codes: Codes) -> None:
    target = _rows(buffer, side, *codes.shape)
    target[...] = pack_nibbles(codes) if side.format.bits == 4 else codes


def _rows(buffer: Bytes, side: Side, rows: int, cols: int) -> Codes:
    """Return a writable view of the rows; 4-bit formats come as the packed bytes that hold their columns."""
    size = side.format.storage_bits // 8
    length = -(-cols * side.format.bits // 8) if side.format.bits == 4 else cols
    base = buffer[side.address : side.address + size].view(f"<u{size}")
    return as_strided(base, (rows, length), (side.pitch, size), writeable=True)


compute = TileValues(WholeTile, convert_whole, VectorFunction, execute_function)
"""Computes the values of a lowered program."""

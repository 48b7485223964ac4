"""The vector unit on values: registers, predicates and scalars, one register operation after the other.

Every operation works on all its lanes at once; trips run in program order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.execution.dataflow.values import Bytes, pack_nibbles, unpack_nibbles
from castsim.isa.codes import Codes
from castsim.isa.errors import TileError
from castsim.isa.formats import Format
from castsim.machines.vector_function.byte_maps import convert_map, interleave_maps, lane_starts, load_maps, store_map
from castsim.machines.vector_function.operations import (
    Ascend,
    Bitwise,
    Convert,
    CountDown,
    Duplicate,
    Gather,
    Interleave,
    Load,
    Multiply,
    Nest,
    RegisterOperation,
    SetAll,
    Spread,
    Store,
    TripSelect,
    VectorFunction,
)
from castsim.numerics import convert_codes, round_to_integral_codes

Predicate = NDArray[np.bool_]


def execute_function(function: VectorFunction, buffer: Bytes) -> None:
    """Run one vector function on the unified buffer.

    Raises:
        TileError: a store reaches beyond the buffer.
    """
    state = RegisterState(function.register_bytes)
    for operation in function.setup:
        state.step(operation)
    for nest in function.nests:
        run_nest(function, nest, state, buffer)


def run_nest(function: VectorFunction, nest: Nest, state: RegisterState, buffer: Bytes) -> None:
    """Run one loop nest, trip by trip, on registers that hold what came before it."""
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
                elif isinstance(operation, Store):
                    _store(operation, state, buffer, destination)
                else:
                    state.step(operation, last=trip == nest.trips - 1)


def _load(operation: Load, state: RegisterState, buffer: Bytes, address: int) -> None:
    """Loads are not predicated; what lies beyond the buffer reads as zero and is never stored."""
    maps = load_maps(operation.distribution, state.size)
    reach = int(max(places.max() for places in maps)) + 1
    memory = np.zeros(reach + 1, np.uint8)  # the last byte stays zero: index -1 means "not part of an element"
    window = buffer[address : address + reach]
    memory[: window.size] = window
    for name, places in zip(operation.results, maps, strict=True):
        state.registers[name] = memory[places]


def _store(operation: Store, state: RegisterState, buffer: Bytes, address: int) -> None:
    places = store_map(operation.distribution, state.size)
    written = np.flatnonzero(state.predicates[operation.predicate][places.governor])
    if not written.size:
        return
    start = address + operation.offset
    if start < 0 or start + int(written[-1]) >= buffer.size:
        raise TileError(
            f"a vector store reaches bytes {start} .. {start + int(written[-1])} of a buffer of {buffer.size}"
        )
    buffer[start + written] = state.registers[operation.source][places.source[written]]


class RegisterState:
    """Registers, predicates and scalars of one running vector function."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.registers: dict[str, Bytes] = {}
        self.predicates: dict[str, Predicate] = {}
        self.scalars: dict[str, int] = {}

    def step(self, operation: RegisterOperation, *, last: bool = False) -> None:
        """Execute one operation that touches no memory; `last` says whether the trip is the last of its row."""
        match operation:
            case SetAll() | CountDown() | Spread() | TripSelect():
                self._count(operation, last=last)
            case Convert():
                self._convert(operation)
            case Bitwise(mnemonic, result, (one, other), predicate, width):
                left, right = self.registers[one], self.registers[other]
                combined = left | right if mnemonic == "vor" else left & right
                active = self.predicates[predicate][lane_starts(width, self.size)]
                self.registers[result] = np.where(active, combined, np.uint8(0))
            case Interleave(results, (one, other), width):
                both = np.concatenate((self.registers[one], self.registers[other]))
                for name, places in zip(results, interleave_maps(width, self.size), strict=True):
                    self.registers[name] = both[places]
            case Gather(result, source, index):
                self.registers[result] = self.registers[source][self.registers[index]]
            case Duplicate(result, width, value):
                self._fill(result, np.full(self.size * 8 // width, value, f"<u{width // 8}"))
            case Ascend(result, width, start):
                numbers = np.arange(start, start + self.size * 8 // width)
                self._fill(result, numbers.astype(f"<u{width // 8}"))
            case Multiply(result, source, width, factor):
                lanes = self.registers[source].view(f"<u{width // 8}")
                self._fill(result, lanes * lanes.dtype.type(factor))

    def _count(self, operation: SetAll | CountDown | Spread | TripSelect, *, last: bool) -> None:
        match operation:
            case SetAll(result, width):
                self.predicates[result] = self._leading(self.size, width)
            case CountDown(result, width, take, counter):
                count = take if counter is None else self.scalars[counter]
                self.predicates[result] = self._leading(min(count, take), width)
                if counter is not None:
                    self.scalars[counter] = max(count - take, 0)
            case Spread(result, source):
                spread = np.zeros(self.size, np.bool_)
                spread[::2] = self.predicates[source][: self.size // 2]
                self.predicates[result] = spread
            case TripSelect(result, full, tail):
                self.scalars[result] = self.scalars[tail] if last else full

    def _convert(self, operation: Convert) -> None:
        places = convert_map(operation.src, operation.dst, operation.part, self.size)
        codes = _codes(self.registers[operation.source], operation.src)[places.source]
        if operation.integral:
            converted = round_to_integral_codes(codes, operation.dst, operation.policy)
        else:
            converted = convert_codes(codes, operation.src, operation.dst, operation.policy)
        active = self.predicates[operation.predicate][places.governor]
        target = np.zeros(self.size * 8 // _lane_bits(operation.dst), converted.dtype)
        target[places.destination] = np.where(active, converted, converted.dtype.type(0))
        self._fill(operation.result, pack_nibbles(target[None])[0] if operation.dst.bits == 4 else target)

    def _leading(self, count: int, width: int) -> Predicate:
        """Return the predicate of `count` leading lanes: one bit, of the first byte, per lane."""
        predicate = np.zeros(self.size, np.bool_)
        predicate[: min(count * width // 8, self.size) : width // 8] = True
        return predicate

    def _fill(self, name: str, lanes: Codes) -> None:
        self.registers[name] = np.ascontiguousarray(lanes).view(np.uint8)


def _lane_bits(fmt: Format) -> int:
    return fmt.bits if fmt.bits == 4 else fmt.storage_bits


def _codes(register: Bytes, fmt: Format) -> Codes:
    """Return all elements of a register as codes."""
    if fmt.bits == 4:
        nibbles: Codes = unpack_nibbles(register[None])[0]
        return nibbles
    codes: Codes = register.view(f"<u{fmt.storage_bits // 8}")
    return codes

"""Values of vector functions: register by register, or a whole tile at once if probes show that this is equal.

Operations run in program order, without time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import as_strided

from castsim.execution.buffer_values import Bytes, TileValues, pack_nibbles, unpack_nibbles
from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.interpreter.vector_unit import MicroMemory, Value, VectorIssue
from castsim.execution.tree import Tile
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import TileError
from castsim.isa.formats import Codes, Format
from castsim.isa.pto.micro_words import ROUNDINGS
from castsim.isa.pto.value_types import MicroOperation
from castsim.machines.vector_function.function_operations import (
    ConvertMap,
    Nest,
    VectorFunction,
    convert_map,
    formats_of,
    is_load,
    mnemonic,
    number_of,
    width_of,
)
from castsim.machines.vector_function.lane_unit import LaneUnit
from castsim.machines.vector_function.vector_registers import (
    REGISTER_BYTES,
    PredicateRegister,
    VectorRegister,
    converted,
    documented_target,
)
from castsim.numerics.cast import round_to_integral_codes
from castsim.numerics.policy import Policy
from castsim.numerics.tiers import convert_codes

# The vector unit on values: registers, predicates and scalars, one register operation after the other.
#
# Trips run in program order; what an instruction computes is what that of a micro program does.


def execute_function(function: VectorFunction, buffer: Bytes) -> None:
    """Run one vector function on the unified buffer.

    Raises:
        TileError: a store reaches beyond the buffer.
    """
    run = FunctionRun(function, buffer)
    for nest in function.nests:
        run.nest(nest)


class FunctionRun:
    """A running vector function: the values of its registers, predicates and counters by name.

    The lane unit of micro programs executes its instructions.
    """

    def __init__(self, function: VectorFunction, buffer: Bytes) -> None:
        """Run the setup of the function."""
        self.values: dict[str, Value] = {}
        self._function = function
        self._buffer = buffer
        self._unit = LaneUnit(MicroMemory(buffer, {}), documented_target())
        self._conversions: dict[int, tuple[ConvertStep | IntegralStep, ConvertMap]] = {}
        for node in function.setup:
            self.step(node)

    def nest(self, nest: Nest) -> None:
        """Run one loop nest, trip by trip."""
        function = self._function
        for row in range(nest.rows):
            self.begin_row(nest)
            for trip in range(nest.trips):
                source = function.source + row * nest.source_row + trip * nest.source_trip
                destination = function.destination + row * nest.destination_row + trip * nest.destination_trip
                for node in nest.trip:
                    if is_load(node):
                        self.step(node, source)
                    elif node.mnemonic == "vsts":
                        self.step(node, destination + number_of(node, "offset"))
                    else:
                        self.step(node, last=trip == nest.trips - 1)

    def begin_row(self, nest: Nest) -> None:
        """Set the counters of a row and run what precedes its trips."""
        self.values.update({name: DependentScalar(count) for name, count in nest.counters.items()})
        for node in nest.row:
            self.step(node)

    def step(self, node: MicroOperation, address: int | None = None, *, last: bool = False) -> None:
        """Execute one instruction; `last` marks the last trip of its row."""
        operands, unit = tuple(self.values[name] for name in node.operands if name in self.values), self._unit
        match mnemonic(node):
            case "vlds" | "vldsx2" if address is not None and address + 2 * REGISTER_BYTES > self._buffer.size:
                # Kernels load whole registers, also at the end of the buffer: bytes beyond it read as zero.
                ending = np.concatenate((self._buffer[address:], np.zeros(2 * REGISTER_BYTES, np.uint8)))
                unit, address = LaneUnit(MicroMemory(ending, {}), documented_target()), 0
            case "select":
                self.values[node.results[0]] = operands[0] if last else DependentScalar(number_of(node, "full"))
                return
            case "vcvt" | "vtrc":
                self.values[node.results[0]] = self._converted(node, operands)
                return
            case "plt":
                operands = (self._taken(node),)
            case _ if node.word("number"):
                operands = (*operands, DependentScalar(number_of(node, "number")))
        results = unit.execute(VectorIssue(node, operands, address))
        self.values.update(zip(node.results, results, strict=True))

    def _taken(self, node: MicroOperation) -> DependentScalar:
        """Return the number of lanes that a `plt` sets, and take them from its counter."""
        taken = number_of(node, "take")
        for name in node.operands:
            count = self._count(name)
            self.values[name] = DependentScalar(max(count - taken, 0))
            taken = min(count, taken)
        return DependentScalar(taken)

    def _count(self, name: str) -> int:
        counter = self.values[name]
        assert isinstance(counter, DependentScalar)
        return int(counter.value)

    def _converted(self, node: MicroOperation, operands: tuple[Value, ...]) -> VectorRegister:
        """Return the result of a conversion under the function's policy for its formats."""
        source, mask = operands
        assert isinstance(source, VectorRegister)
        assert isinstance(mask, PredicateRegister)
        conversion = self._conversions.get(id(node))
        if conversion is None:
            step = step_of(node, self._function.policies)
            places = convert_map(*step.formats, node.word("part"), REGISTER_BYTES)
            conversion = self._conversions[id(node)] = step, places
        step, places = conversion
        return converted(source, step.formats, places, places.governor, mask, step.apply)


# The steps through which a kernel takes every element: read off its instructions, then checked by running it.
#
# The instructions between load and store give the only chain that there can be. Trips of a row differ in their counters
# alone, so the last ones stand for all. They run on elements whose results differ, and must store what the chain gives.


@dataclass(frozen=True, slots=True)
class ConvertStep:
    """A cast between formats."""

    src: Format
    dst: Format
    policy: Policy

    @property
    def formats(self) -> tuple[Format, Format]:
        """The formats before and after."""
        return self.src, self.dst

    def apply(self, codes: Codes) -> Codes:
        """Return codes of any shape after the step."""
        return convert_codes(codes, self.src, self.dst, self.policy)


@dataclass(frozen=True, slots=True)
class IntegralStep:
    """Rounding to an integral value of the same format."""

    format: Format
    policy: Policy

    @property
    def formats(self) -> tuple[Format, Format]:
        """The formats before and after."""
        return self.format, self.format

    def apply(self, codes: Codes) -> Codes:
        """Return codes of any shape after the step."""
        return round_to_integral_codes(codes, self.format, self.policy)


@dataclass(frozen=True, slots=True)
class MaskStep:
    """Bitwise AND with a constant."""

    mask: int

    def apply(self, codes: Codes) -> Codes:
        """Return codes of any shape after the step."""
        kept: Codes = codes & codes.dtype.type(self.mask)
        return kept


Step = ConvertStep | IntegralStep | MaskStep
Chain = tuple[Step, ...]


_TRIPS = 3
"""Trips of a row that are run: the last one, and two full ones."""
_MOST_DIGITS = 64
"""Maximum number of codes that a probe assigns; any two elements have different ones in at least one probe."""
_POOL = 1 << 9
_MOST_PATHS = 1 << 10
_FOLLOWED: dict[tuple[object, ...], bool] = {}
"""Whether the chain of a kernel holds, by the path of its elements.

Conversions work lane by lane whatever their policy, so a path states no policies and each kernel runs once for all.
"""


def step_of(node: MicroOperation, policies: Mapping[tuple[str, str], Policy]) -> ConvertStep | IntegralStep:
    """Return what a conversion does to every element, with the policy of its formats and its own rounding."""
    formats = formats_of(node)
    assert formats is not None  # of casts, whose kernels state them
    (src, dst), letter = formats, node.word("rnd")
    policy = policies[src.name, dst.name]
    if letter is not None:
        policy = replace(policy, rounding=ROUNDINGS[letter])
    return IntegralStep(dst, policy) if node.mnemonic == "vtrc" else ConvertStep(src, dst, policy)


def trace_nest(function: VectorFunction, nest: Nest) -> Chain | None:
    """Return the chain from every source element of a row to the destination element with the same index.

    None unless that is true of each of the `count` elements of a row, and nothing else is stored.
    """
    formats = function.source_format, function.destination_format
    if (nest.source_trip * 8, nest.destination_trip * 8) != tuple(nest.elements * _bits(fmt) for fmt in formats):
        return None
    chain = _chain_of(function, nest)
    if not chain or _format_after(chain, formats[0]) != formats[1]:
        return None
    lanes = [_without_rounding(node) for nodes in (function.setup, nest.row, nest.trip) for node in nodes]
    steps = nest.elements, nest.source_trip, nest.destination_trip, *nest.counters.items()
    kinds = tuple(step if isinstance(step, MaskStep) else type(step) for step in chain)
    path = (*lanes, nest.trips, nest.count, steps, formats, kinds)
    follows = _FOLLOWED.get(path)
    if follows is None:
        if len(_FOLLOWED) >= _MOST_PATHS:
            _FOLLOWED.clear()
        follows = _FOLLOWED[path] = _follows(function, nest, chain)
    return chain if follows else None


def _without_rounding(node: MicroOperation) -> tuple[object, ...]:
    """Return what decides the lanes that an instruction reads and writes."""
    words = tuple(word for word in node.attributes if word[0] not in ("rnd", "sat"))
    return node.mnemonic, node.operands, node.operand_types, node.results, node.result_types, node.groups, words


def _chain_of(function: VectorFunction, nest: Nest) -> Chain | None:
    """Return the steps between loads and stores of a trip, None if they differ or no chain has them."""
    run, chains = FunctionRun(function, np.zeros(0, np.uint8)), dict[str, Chain]()
    run.begin_row(nest)
    stored: set[Chain | None] = set()
    for node in nest.trip:
        sources = [name for name in node.operands if name in chains]
        match node.mnemonic:
            case "vlds" | "vldsx2":
                chains.update(dict.fromkeys(node.results, ()))
            case "vsts":
                stored.add(chains.get(node.operands[0]))
            case "vcvt" | "vtrc" if sources:
                step, before = step_of(node, function.policies), chains[sources[0]]
                if _format_after(before, function.source_format) != step.formats[0]:
                    return None
                chains[node.results[0]] = (*before, step)
            case name if sources:
                source_chains = {chains[source] for source in sources}
                if name not in ("vor", "vand", "vintlv", "vselr") or len(source_chains) > 1:
                    return None
                chain, bits = source_chains.pop(), width_of(node)
                if name == "vand":
                    if bits != _bits(_format_after(chain, function.source_format)):
                        return None
                    values = [run.values.get(operand) for operand in node.operands]
                    constant = next(value for value in values if isinstance(value, VectorRegister))
                    chain = (*chain, MaskStep(int(constant.lanes(bits)[0])))
                chains.update(dict.fromkeys(node.results, chain))
            case _:
                run.step(node)
    return stored.pop() if len(stored) == 1 else None


def _follows(function: VectorFunction, nest: Nest, chain: Chain) -> bool:
    """Return whether the last trips of a row store the results of the chain, and all earlier ones are full."""
    reach: dict[str, int] = defaultdict(int)
    for item in nest.trip:
        for counter in item.operands if mnemonic(item) == "plt" else ():
            reach[counter] += number_of(item, "take")
    trips = min(nest.trips, _TRIPS)
    left_out = nest.trips - trips
    counters = {name: start - left_out * reach[name] for name, start in nest.counters.items()}
    count = nest.count - left_out * nest.elements
    if not (trips - 1) * nest.elements < count <= trips * nest.elements:
        return False
    if count * _bits(function.destination_format) % 8:  # a row ends with half a byte
        return False
    if left_out and any(counters[name] < taken for name, taken in reach.items() if name in counters):
        return False
    part = replace(nest, rows=1, trips=trips, counters={name: max(0, start) for name, start in counters.items()})
    read = trips * nest.source_trip + REGISTER_BYTES
    source, destination = Side(0, 0, function.source_format), Side(read, 0, function.destination_format)
    function = replace(function, source=0, destination=read)
    for number, codes in enumerate(_probes(chain, function.source_format, count)):
        memory = np.full(read + trips * nest.destination_trip + 2 * REGISTER_BYTES, (0xA5, 0x5A)[number % 2], np.uint8)
        memory[:read] = 0x3C  # lanes beyond the row give something else than what they must leave
        _write(memory, source, codes)
        wanted = memory.copy()
        _write(wanted, destination, apply_chain(chain, codes[:, :count]))
        try:
            FunctionRun(function, memory).nest(part)
        except TileError:
            return False
        if not np.array_equal(memory, wanted):
            return False
    return True


@lru_cache(maxsize=256)
def _digits(chain: Chain, fmt: Format) -> Codes:
    """Return codes whose results differ."""
    numbers = np.random.default_rng(1).integers(0, 1 << 63, _POOL, np.int64), np.arange(_POOL)
    pool: Codes = (np.concatenate(numbers) & ((1 << min(fmt.bits, 62)) - 1)).astype(f"<u{fmt.storage_bits // 8}")
    results, first = np.unique(apply_chain(chain, pool), return_index=True)
    return pool[first[np.linspace(0, results.size - 1, min(results.size, _MOST_DIGITS), dtype=np.int64)]]


def _probes(chain: Chain, fmt: Format, count: int) -> Iterator[Codes]:
    """Yield rows of `count` codes (one more if nibbles need it) that identify the elements of a row.

    A code represents a digit, and each probe has one digit of all elements' indices; the last probe has other codes
    for the first digit, so every element changes.
    """
    digits = _digits(chain, fmt)
    elements = np.arange(count + count % 2)
    power = 1
    while power == 1 or (power < count and digits.size > 1):
        yield digits[elements // power % digits.size][None]
        power *= digits.size
    yield np.roll(digits, 1)[elements % digits.size][None]


def _format_after(chain: Chain, source: Format) -> Format:
    return next((step.dst for step in reversed(chain) if isinstance(step, ConvertStep)), source)


def _bits(fmt: Format) -> int:
    return fmt.bits if fmt.bits == 4 else fmt.storage_bits


# A tile cast in one call: what is done to every element, once `trace_nest` has shown that the operations do the same.


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
    """Return the tile cast as one call if the function's operations add up to exactly that, otherwise None.

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
        codes = step.apply(codes)
    return codes


def _fills_zeros(function: VectorFunction, filled: int) -> bool:
    """Return whether the nests before the last write only zeros to the first `filled` bytes of the destination."""
    memory = np.full(filled + REGISTER_BYTES, 255, np.uint8)
    run = FunctionRun(replace(function, source=0, destination=0), memory)
    for nest in function.nests[:-1]:
        run.nest(nest)
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
"""Function that computes the values of a lowered program."""

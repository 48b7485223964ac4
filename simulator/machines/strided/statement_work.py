"""Statements `pto.strided.NAME` as instructions: streams, lanes, timing rows, and the work of their lanes.

Source: docs/reference/a2a3.md sections 2 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, product

import numpy as np

from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.interpreter.scalar_values import bits_of
from castsim.execution.interpreter.vector_unit import BytePointer, Value
from castsim.execution.outcomes import Judge, tell_change
from castsim.execution.pipe_operations import BLOCK, ControlWrite
from castsim.execution.tree import Access, strided
from castsim.execution.vector_operations.arithmetic import apply, neutral_code, places_of_extremes, reduce_lanes
from castsim.execution.vector_operations.effect import COMPARISONS, UNORDERED
from castsim.execution.vector_operations.rearranging import GROUP, merged_pairs, ranks_of
from castsim.execution.vector_operations.shapes import BUFFER, numbers
from castsim.execution.vector_operations.target_rules import LANE_OPTIONS, Behaviour, lane_behaviour
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.formats import Codes, Format, IntFormat, Overflow, Rounding, format_named
from castsim.isa.pto.strided_statements import (
    INDEX,
    PREFIX,
    REDUCTIONS,
    STRIDED_ROWS,
    lanes_of,
    pointers_of,
    strides_of,
)
from castsim.isa.pto.value_types import ScalarType, StridedStatement, element_format
from castsim.isa.pto.vector_operations import PAIR_BYTES, parts_of
from castsim.machines.strided.kernel_sequence import BITS, KernelSequence, packed
from castsim.machines.strided.plan import single_cast, timing_of
from castsim.machines.strided.strided_instructions import (
    Action,
    DuplicateCode,
    LaneInputs,
    LaneWork,
    Stream,
    StridedInstruction,
    element_bits,
    with_bit,
)
from castsim.machines.strided.values import apply_action
from castsim.numerics.policy import Policy, abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.strided_repeat import StridedRepeatTarget

_OFFSETS = format_named("u32")
_WORD = (1 << 64) - 1
_FULL = (1 << 128) - 1
_COMPARE_MASK_BYTES = 16
"""Bytes of the compare mask: a bit for each of 128 lanes."""
ACCUMULATING = ("vmla", "vmadd", "vmaddrelu", "vaxpy")
"""The instructions that also read their destination."""
UNMASKED = ("vreducev2", "vbitsort", "vmrgsort4", "scatter_vnchwconv")
"""The instructions that no mask applies to."""


@dataclass(slots=True)
class ControlState:
    """The control state that statements set and read: the mask register, the scale of `vconv_deq` (a code of f16), the
    address of the compare mask."""

    target: StridedRepeatTarget
    mask: int = _FULL
    scale: int = 0
    compare_mask: int | None = None
    sequence: KernelSequence = field(init=False)

    def __post_init__(self) -> None:
        self.sequence = KernelSequence(self.target)
        self.scale = self.target.dequantisation_scale.code

    def counts(self, control: int) -> bool:
        """Return whether CTRL makes the mask a number of elements."""
        return bool(control >> self.target.control.mask_is_count & 1)

    def write(self, node: StridedStatement, operands: Sequence[Value], control: int) -> ControlWrite:
        """Execute a statement that sets control state; return what it writes.

        Raises:
            IllegalError: a mask of more lanes than there are.
        """
        values = [operand.value for operand in operands if isinstance(operand, DependentScalar)]
        sequence, counts = self.sequence, self.counts(control)
        match node.mnemonic:
            case "set_vector_mask":
                self.mask = _mask(node, [int(value) for value in values], counts=counts)
                return sequence.control("mask", self.mask)
            case "set_deqscale":
                self.scale = bits_of(values[0], "f16")
                return sequence.control("deqscale", self.scale)
            case "set_cmpmask":
                self.compare_mask = _address(operands[0])
                return sequence.control("cmpmask", self.compare_mask)
        ctrl = with_bit(control, self.target.control.mask_is_count, node.mnemonic == "set_mask_count")
        return sequence.control("ctrl", ctrl)


def _mask(node: StridedStatement, values: list[int], *, counts: bool) -> int:
    """Return the mask register for two words, the high one first, or for a number of lanes."""
    if len(values) == 2:
        return (values[0] & _WORD) << 64 | values[1] & _WORD
    most = _WORD if counts else 128
    if not 0 <= values[0] <= most:
        raise IllegalError(f"a mask of {values[0]} lanes", span=node.span, legal=(f"0 .. {most}",))
    return values[0] if counts else (1 << values[0]) - 1


def _address(operand: Value) -> int:
    assert isinstance(operand, BytePointer)
    return operand.address


# An instruction of the text with its operands: streams, what its lanes do, and the instruction whose time it takes.


@dataclass(frozen=True, slots=True)
class _Work:
    """The streams, the work of the lanes, and the instruction (by default its own) or the row that times it."""

    destination: Stream
    sources: tuple[Stream, ...]
    action: Action
    timing: str = ""
    row: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutedStatement:
    """One execution of an instruction of the text; `scalars` are the codes of its scalars."""

    node: StridedStatement
    state: ControlState
    control: int
    addresses: tuple[int, ...]
    formats: tuple[Format, ...]
    repeats: int
    scalars: tuple[int, ...]

    @property
    def scalar(self) -> int | None:
        """The code of the only scalar, None without one."""
        return self.scalars[0] if self.scalars else None

    @classmethod
    def of(
        cls, node: StridedStatement, operands: Sequence[Value], state: ControlState, control: int
    ) -> ExecutedStatement:
        """Return a statement with its operands."""
        formats = tuple(element_format(kind.element) for kind in pointers_of(node))
        scalars = [
            (operand.value, kind)
            for operand, kind in zip(operands, node.operand_types, strict=True)
            if isinstance(operand, DependentScalar) and isinstance(kind, ScalarType)
        ]
        repeats = node.repeats
        if scalars and scalars[-1][1] == INDEX:
            repeats = int(scalars.pop()[0])
        own = formats[-1]
        codes = tuple(
            int(value) & ((1 << own.storage_bits) - 1) if isinstance(own, IntFormat) else bits_of(value, kind.name)
            for value, kind in scalars
        )
        addresses = tuple(_address(operand) for operand in operands if isinstance(operand, BytePointer))
        return cls(node, state, control, addresses, formats, repeats, codes)

    @property
    def target(self) -> StridedRepeatTarget:
        """The chip."""
        return self.state.target

    @property
    def function(self) -> str:
        """The function of the lanes."""
        return STRIDED_ROWS[self.node.mnemonic].function

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The operands as the strides of the text say."""
        blocks = self.node.blocks or (1,) * len(self.addresses)
        parts = zip(self.addresses, self.formats, blocks, strides_of(self.node), strict=True)
        return tuple(Stream(*part) for part in parts)

    def behaviour(self, function: str, fmt: Format, *names: str) -> Behaviour:
        """Return the chip's part in a function under CTRL."""
        control = self.target.control
        bits = {
            "float_saturation_off_at_start": control.float_saturation_off,
            "integer_saturation_off_at_start": control.integer_saturation_off,
        }
        names += tuple(name for part in parts_of(function) for name in LANE_OPTIONS.get(part, ()))
        return lane_behaviour(self.target, function, fmt.name, self.control, bits, names)

    def issued(self) -> tuple[StridedInstruction, ...]:
        """Return the instruction as parts of one mask each: in count mode whole repeats, then the rest.

        Raises:
            IllegalError: values or cycles are unknown; strides or repeats that no field holds.
            TileError: an operand that is not aligned, or reaches beyond the buffer.
        """
        self._check_fields()
        made = _STRUCTURES.get(self.node.mnemonic, _convert if self.function == "convert" else _elementwise)(self)
        lanes = lanes_of(self.node)
        parts = []
        works = made if isinstance(made, tuple) else (made,)
        for work, (first, repeats, mask) in product(works, self._parts(lanes)):
            if repeats and mask:
                dst, *sources = (
                    replace(stream, address=stream.address + first * stream.step)
                    for stream in (work.destination, *work.sources)
                )
                part = self._instruction(work, repeats, lanes, mask, dst, sources)
                check_reach(part, self.target.memories[BUFFER].capacity_bytes)
                parts.append(part)
        return tuple(parts)

    def _parts(self, lanes: int) -> Iterator[tuple[int, int, int]]:
        """Yield the first repeat, the repeats and the lanes of every part."""
        full, name = (1 << lanes) - 1, self.node.mnemonic
        whole = STRIDED_ROWS[name].compares or name in UNMASKED
        if not self.state.counts(self.control) or name in UNMASKED:
            yield 0, self.repeats, full if whole else self.state.mask & full
            return
        count, rest = divmod(self.state.mask & _WORD, lanes)
        yield 0, count, full
        yield count, int(rest > 0), full if whole else (1 << rest) - 1

    def _instruction(
        self, work: _Work, repeats: int, lanes: int, mask: int, dst: Stream, sources: Sequence[Stream]
    ) -> StridedInstruction:
        sequence, name = self.state.sequence, self.node.mnemonic
        timing = work.timing or STRIDED_ROWS[name].timing
        if STRIDED_ROWS[name].compares and repeats * lanes // 8 % BLOCK:
            timing = f"{timing}_partial"
        instruction = sequence.vector(
            name, repeats, dst, sources, mask=mask, lanes=None if lanes == sequence.lanes(dst.format) else lanes,
            timing=timing, row=work.row, action=work.action,
        )  # fmt: skip
        if instruction.timing not in self.target.timing.vector:
            raise IllegalError(
                f"the cycles of pto.{PREFIX}{name} on {self.target.name} are unknown", span=self.node.span
            )
        return instruction

    def _check_fields(self) -> None:
        """Refuse repeats and strides that the instruction has no room for, and operands that are not aligned."""
        name, repeat = self.node.mnemonic, self.target.repeat
        row = STRIDED_ROWS[name]
        if not 0 <= self.repeats <= repeat.max_repeats:
            raise IllegalError(
                f"{self.repeats} repeats", span=self.node.span, legal=(f"0 .. {repeat.max_repeats}", "count mode")
            )
        narrow = any(name in narrow.mnemonics for narrow in self.target.narrow_strides)
        bits = repeat.repeat_stride_field_bits if row.converts and not narrow else 8
        for number, stride in enumerate(strides_of(self.node)):
            most = (1 << (16 if number == 0 and name in REDUCTIONS else bits)) - 1
            if stride > most:
                raise IllegalError(f"a repeat stride of {stride} blocks", span=self.node.span, legal=(f"0 .. {most}",))
        for block in self.node.blocks:
            if block >= 1 << 16:
                raise IllegalError(f"a block stride of {block}", span=self.node.span, legal=("0 .. 65535",))
        for number, (address, fmt) in enumerate(zip(self.addresses, self.formats, strict=True)):
            packs = (number == 0 and (name in REDUCTIONS or row.compares)) or (fmt.bits == 8 and number > 1)
            packs |= name == "vmrgsort4"  # lists of pairs
            packs |= name == "vgather" and number == 2  # the base of byte offsets
            unit = max(fmt.storage_bits // 8, 1) if packs else BLOCK
            if address % unit:
                legal = (str(address // unit * unit), str((address // unit + 1) * unit))
                raise TileError(
                    f"%{self.node.operands[number]} is at byte {address}, which is no multiple of {unit}",
                    span=self.node.span, legal=legal,
                )  # fmt: skip


def check_reach(part: StridedInstruction, capacity: int) -> None:
    """Refuse an instruction that reaches beyond the buffer.

    Raises:
        TileError: it does.
    """
    for access in accesses_of(part):
        if access.end > capacity:
            raise TileError(
                f"{part.mnemonic} accesses bytes {access.start} .. {access.end - 1} of the buffer of {capacity} bytes",
                legal=(f"bytes 0 .. {capacity - 1}",),
            )


def accesses_of(part: StridedInstruction) -> tuple[Access, ...]:
    """Return the bytes that the active lanes of an instruction touch, the destination's first."""
    reads = [access for source in part.sources for access in _touched(source, part, write=False)]
    if isinstance(part.action, LaneWork) and part.action.reach:
        base = part.sources[-1].address
        reads.append(Access(BUFFER, base, base + part.action.reach, write=False))
    return (*_touched(part.destination, part, write=True), *reads)


def _touched(stream: Stream, part: StridedInstruction, *, write: bool) -> Iterator[Access]:
    """Yield the stretches of a stream: neighbouring blocks of which the same bytes are active are one."""
    lanes, mask = part.lanes, part.mask
    if stream.elements:
        lanes, mask = stream.elements, (1 << stream.elements) - 1
    bits = element_bits(stream)
    per_block = BLOCK * 8 // bits
    pieces: list[list[int]] = []
    for block in range(-(-lanes // per_block)):
        active = mask >> block * per_block & ((1 << per_block) - 1)
        if not active:
            continue
        low = ((active & -active).bit_length() - 1) * bits // 8
        high = -(-active.bit_length() * bits // 8)
        if pieces and pieces[-1][0] + pieces[-1][1] == block and pieces[-1][2:] == [low, high]:
            pieces[-1][1] += 1
        else:
            pieces.append([block, 1, low, high])
    for first, count, low, high in pieces:
        start = stream.address + first * stream.block_stride * BLOCK + low
        rows = ((part.repeats, stream.step), (count, stream.block_stride * BLOCK))
        yield strided(BUFFER, start, rows, high - low, write=write)


# What the instructions do, by structure.


def _elementwise(statement: ExecutedStatement) -> _Work:
    """A function of lanes; a scalar is its second operand, the destination of an accumulating one its last."""
    function, fmt, name = statement.function, statement.formats[0], statement.node.mnemonic
    dst, *sources = statement.streams
    sources += [dst] if name in ACCUMULATING else []
    narrow, scalar = statement.formats[1], statement.scalar
    behaviour = statement.behaviour("rsqrt" if function == "estimate" else function, fmt)

    def run(given: LaneInputs) -> Codes:
        values = [
            convert_codes(own, narrow, fmt, abstract_policy(narrow, fmt)) if stream.format != fmt else own
            for own, stream in zip(given.codes, sources, strict=True)
        ]
        if scalar is not None:
            values.insert(1, np.full((1, 1), scalar, values[0].dtype))
        return apply(function, values, fmt, behaviour)

    return _Work(dst, tuple(sources), LaneWork(run))


def _duplicate(statement: ExecutedStatement) -> _Work:
    assert statement.scalar is not None
    return _Work(statement.streams[0], (), DuplicateCode(statement.scalar))


def _convert(statement: ExecutedStatement) -> _Work:
    """A conversion, rounded by the last letter of its name; without one to nearest, ties to even."""
    name, (to, source) = statement.node.mnemonic, statement.formats[:2]
    rule = statement.target.cast(source.name, to.name)
    assert rule is not None  # the table has no other pairs
    letters = {f"{rule.stem}{suffix}": rounding for rounding, suffix in rule.suffixes.items()}
    plain = Rounding.RINT if rule.suffixes else None
    plan = single_cast(statement.target, source.name, to.name, letters.get(name, plain), statement.control)
    plan = replace(plan, mnemonic=name)
    action = plan.action
    if action.scale is not None:
        action = replace(action, scale=statement.state.scale)

    def run(given: LaneInputs) -> Codes:
        result = apply_action(action, given.codes, source, to)
        tell_change(Judge(source, to, plan.rounding), given.codes[0], result)
        return result

    dst, origin = statement.streams
    return _Work(dst, (origin,), LaneWork(run), row=timing_of(statement.target, plan))


def _narrowing(statement: ExecutedStatement) -> _Work:
    """A sum or difference, its positive part, and a conversion to nearest even that clamps."""
    fmt, to = statement.formats[1], statement.formats[0]
    behaviour = statement.behaviour(statement.function, fmt)

    def run(given: LaneInputs) -> Codes:
        policy = Policy(Rounding.RINT, Overflow.SATURATE)
        wide = np.ascontiguousarray(apply(statement.function, given.codes, fmt, behaviour))
        result = convert_codes(wide, fmt, to, policy)
        tell_change(Judge(fmt, to, policy.rounding, wraps=False), wide, result)
        return result

    dst, *sources = statement.streams
    return _Work(dst, tuple(sources), LaneWork(run))


def _compare(statement: ExecutedStatement) -> _Work:
    """Packed bits, one for every lane of whole repeats: no mask applies."""
    fmt, lanes, scalar = statement.formats[1], lanes_of(statement.node), statement.scalar
    facts = statement.target.tile_arithmetic
    mode = "eq" if fmt.name in facts.equality_only else statement.function
    ordered = mode == "ne" and not isinstance(fmt, IntFormat) and not statement.target.option("unequal_of_nan")

    def run(given: LaneInputs) -> Codes:
        values = [numbers(own, fmt) for own in given.codes]
        if scalar is not None:
            values.append(numbers(np.full((1, 1), scalar, given.codes[0].dtype), fmt))
        holds = COMPARISONS[mode](*values)
        if ordered:
            holds &= ~COMPARISONS[UNORDERED](*values)
        return np.packbits(holds, axis=1, bitorder="little")

    dst = packed(statement.addresses[0], BITS, lanes // 8, lanes // 8)
    return _Work(dst, statement.streams[1:], LaneWork(run))


def _select(statement: ExecutedStatement) -> _Work:
    """The first source where a bit is 1: bits of every element behind the sources, else the compare mask's for every
    repeat; with one source and bits the other is the element at the compare mask's address."""
    node, state, lanes = statement.node, statement.state, lanes_of(statement.node)
    dst, first, *rest = statement.streams
    places, fmt = statement.addresses, statement.formats[0]
    has_bits = len(places) == 4 or statement.formats[2].storage_bits == 8
    start = places[-1] if has_bits else state.compare_mask
    if (len(places) == 3 and state.compare_mask is None) or start is None:
        raise IllegalError("no compare mask is set", span=node.span, legal=(f"pto.{PREFIX}set_cmpmask",))
    bits = packed(start, BITS, lanes // 8 if has_bits else 0, lanes // 8)
    timing = "vsel"
    if len(places) == 3 and has_bits:
        assert state.compare_mask is not None
        rest, timing = [Stream(state.compare_mask, fmt, 0, 0, 0, 1)], "vsel_scalar"

    def run(given: LaneInputs) -> Codes:
        first, second, chosen = given.codes
        return np.where(np.unpackbits(chosen, axis=1, bitorder="little")[:, given.lanes] == 1, first, second)

    return _Work(dst, (first, rest[0], bits), LaneWork(run), timing)


def _reduce(statement: ExecutedStatement) -> _Work:
    """One result a repeat; of extremes also the lane, by `order`."""
    fmt, function, order = statement.formats[0], statement.function, statement.node.word("order")
    if statement.node.mnemonic == "vcadd":
        order = "value"
    width = 1 if order in ("value", "index") else 2
    behaviour = statement.behaviour(function, fmt, "lane_order", "maximum_of_nan")

    def run(given: LaneInputs) -> Codes:
        value = reduce_lanes(function, given.codes[0], fmt, behaviour)
        if order == "value":
            return value[:, None]
        first = places_of_extremes(function, given.codes[0], fmt, behaviour)
        lane = (first if isinstance(given.lanes, slice) else given.lanes[first]).astype(value.dtype)
        return {
            "index": lane[:, None], "index_value": np.stack((lane, value), 1)
        }.get(order or "", np.stack((value, lane), 1))  # fmt: skip

    dst, source = statement.streams
    size = fmt.storage_bits // 8
    return _Work(
        packed(dst.address, fmt, dst.repeat_stride * width * size, width), (source,), LaneWork(run),
    )  # fmt: skip


def _reduce_parts(statement: ExecutedStatement) -> _Work:
    """A result of every block, or of every pair (`vcpadd`); inactive lanes count as the neutral element."""
    fmt, function, lanes = statement.formats[0], statement.function, lanes_of(statement.node)
    count = lanes // 2 if statement.node.mnemonic == "vcpadd" else lanes * fmt.storage_bits // 8 // BLOCK
    behaviour = statement.behaviour(function, fmt, "lane_order", "maximum_of_nan")

    def run(given: LaneInputs) -> Codes:
        whole = np.full((given.codes[0].shape[0], lanes), neutral_code(function, fmt), given.codes[0].dtype)
        whole[:, given.lanes] = given.codes[0]
        return reduce_lanes(function, whole.reshape(-1, lanes // count), fmt, behaviour).reshape(-1, count)

    dst, source = statement.streams
    step = dst.repeat_stride * count * fmt.storage_bits // 8
    return _Work(packed(dst.address, fmt, step, count), (source,), LaneWork(run))


def _spread(statement: ExecutedStatement) -> _Work:
    """Each of eight elements fills a block."""
    fmt = statement.formats[0]
    copies = BLOCK * 8 // fmt.storage_bits
    blocks = statement.target.repeat.repeat_bytes // BLOCK
    dst, source = statement.streams

    def run(given: LaneInputs) -> Codes:
        return np.repeat(given.codes[0], copies, axis=1)[:, given.lanes]

    origin = packed(source.address, fmt, blocks * fmt.storage_bits // 8, blocks)
    return _Work(dst, (origin,), LaneWork(run))


def _fetch(statement: ExecutedStatement) -> _Work:
    """Elements (`vgather`) or blocks (`vgatherb`) at byte offsets from a base. Their bytes are no stream: only values
    tell them, `reach` how far they may lie."""
    fmt, lanes, base = statement.formats[0], lanes_of(statement.node), statement.addresses[2]
    dst, offsets, source = statement.streams
    size = fmt.storage_bits // 8
    blocks = statement.node.mnemonic == "vgatherb"
    count = statement.target.repeat.repeat_bytes // BLOCK

    def run(given: LaneInputs) -> Codes:
        starts = given.codes[0].astype(np.int64) + base
        if blocks:
            starts = (np.repeat(starts, BLOCK // size, axis=1) + np.arange(lanes) % (BLOCK // size) * size)[
                :, given.lanes
            ]
        if starts.size and int(starts.max()) + size > given.buffer.size:
            raise TileError(f"an offset reaches byte {int(starts.max()) + size - 1} of a buffer of {given.buffer.size}")
        fetched: Codes = given.buffer[starts[..., None] + np.arange(size)].view(f"<u{size}")[..., 0]
        return fetched

    places = Stream(offsets.address, _OFFSETS, 1, lanes * 4 // BLOCK)
    if blocks:
        places = packed(offsets.address, _OFFSETS, count * 4, count)
    # The base is an operand whose first block stands for what is read.
    origin, reach = Stream(source.address, fmt, 1, 0, 0, 1), int(statement.node.word("reach") or 0)
    return _Work(dst, (places, origin), LaneWork(run, reach=reach))


PATTERNS = {"1": 0b0101, "2": 0b1010, "3": 0b0001, "4": 0b0010, "5": 0b0100, "6": 0b1000, "7": 0b1111}


def _keep(statement: ExecutedStatement) -> _Work:
    """The elements that a pattern or the bits of an operand choose, one behind the other; in count mode the count is
    that of each repeat."""
    node, fmt = statement.node, statement.formats[0]
    size = fmt.storage_bits // 8
    counts = statement.state.counts(statement.control)
    length = statement.state.mask & _WORD if counts else lanes_of(node)
    dst, source, *bits = statement.streams
    pattern = node.word("pattern")
    if (pattern is None) == (not bits):
        raise IllegalError("the elements are chosen by a pattern or by bits", span=node.span, legal=("{pattern = 1}",))
    origin = replace(source, packed=source.repeat_stride * BLOCK, repeat_stride=0, elements=length)
    chosen = np.array([PATTERNS[pattern or "7"] >> lane % 4 & 1 for lane in range(length)], np.bool_)
    kept = length if bits else int(chosen.sum())
    marks = tuple(packed(mark.address, BITS, mark.repeat_stride * BLOCK, -(-length // 8)) for mark in bits)

    def run(given: LaneInputs) -> Codes:
        if not marks:
            return given.codes[0][:, chosen]
        taken = given.codes[0][np.unpackbits(given.codes[1], axis=1, bitorder="little")[:, :length] == 1]
        old = given.buffer[dst.address : dst.address + given.codes[0].size * size].view(f"<u{size}").copy()
        old[: taken.size] = taken
        return old.reshape(given.codes[0].shape)

    return _Work(packed(dst.address, fmt, kept * size, kept), (origin, *marks), LaneWork(run, at_once=True))


def _sort(statement: ExecutedStatement) -> _Work:
    """Pairs of 32 elements and their numbers, the greatest first; among equals the smaller number first."""
    fmt, size = statement.formats[0], statement.formats[0].storage_bits // 8

    def run(given: LaneInputs) -> Codes:
        values, places = given.codes[0].astype(np.uint64), given.codes[1].astype(np.uint64)
        order = np.lexsort((places, -ranks_of(given.codes[0], fmt)), axis=1)
        pairs = np.take_along_axis(values | places << np.uint64(32), order, axis=1)
        return np.ascontiguousarray(pairs).view(f"<u{size}")

    dst, source, numbering = statement.addresses
    return _Work(
        packed(dst, fmt, GROUP * PAIR_BYTES, GROUP * PAIR_BYTES // size),
        (packed(source, fmt, GROUP * size, GROUP), packed(numbering, _OFFSETS, GROUP * 4, GROUP)),
        LaneWork(run),
    )


def _merge(statement: ExecutedStatement) -> _Work:
    """Lists of pairs, the greatest first, as one; a repeat goes on behind all of its lists.

    `exhausted = stop`: up to the last pair of the list that ends first; what is behind stays as it was.
    """
    node, fmt, lengths = statement.node, statement.formats[0], statement.scalars
    size, (dst, *places) = fmt.storage_bits // 8, statement.addresses
    words, stops = PAIR_BYTES // size, node.word("exhausted") == "stop"
    total = sum(lengths)
    if statement.repeats > 1 and (places[1:] != [places[0] + end * PAIR_BYTES for end in accumulate(lengths)][:-1]):
        raise IllegalError("lists of several repeats lie one behind the other", span=node.span)

    def run(given: LaneInputs) -> Codes:
        lists = [np.ascontiguousarray(own).view("<u8") for own in given.codes]
        merged, ends = merged_pairs(lists, fmt)
        if stops:
            old = (
                given.buffer[dst : dst + given.codes[0].shape[0] * total * PAIR_BYTES].view("<u8").reshape(merged.shape)
            )
            merged = np.where(np.arange(total) <= ends[:, None], merged, old)
        return merged.view(f"<u{size}")

    step = total * PAIR_BYTES
    sources = tuple(
        packed(start, fmt, step, length * words) for start, length in zip(places, lengths, strict=True) if length
    )
    return _Work(packed(dst, fmt, step, total * words), sources, LaneWork(run, at_once=True))


def _transpose(statement: ExecutedStatement) -> tuple[_Work, ...]:
    """16 blocks of as many rows: element j of block i becomes element i of block j, one work for each block written.

    Of 32-bit elements, of which a block has 8, two blocks hold a column; of 8-bit ones half a block counts.
    """
    fmt, halves = statement.formats[0], statement.node.word("halves") or "low_low"
    to_high, from_high = (16 * (half == "high") for half in halves.split("_"))
    streams, bits = statement.streams, fmt.storage_bits
    count = BLOCK * 8 // bits
    sources = tuple(replace(stream, elements=count) for stream in streams[16:])
    held: dict[int, Codes] = {}

    def work(number: int) -> _Work:
        def run(given: LaneInputs) -> Codes:
            if number == 0:  # all are read before any is written
                rows = np.stack(given.codes, axis=1)
                turned = rows[:, :, from_high : from_high + 16].swapaxes(1, 2) if bits == 8 else rows.swapaxes(1, 2)
                held.update(enumerate(turned.reshape(len(rows), 16, -1).swapaxes(0, 1)))
            if bits != 8:
                return held[number]
            stream = streams[number]
            places = stream.address + np.arange(len(given.codes[0]))[:, None] * stream.step + np.arange(count)
            kept: Codes = given.buffer[places].copy()
            kept[:, to_high : to_high + 16] = held[number]
            return kept

        own = replace(streams[number], elements=count)
        return _Work(own, sources, LaneWork(run, at_once=True))

    return tuple(map(work, range(16)))


_STRUCTURES: Mapping[str, Callable[[ExecutedStatement], _Work | tuple[_Work, ...]]] = {
    "vector_dup": _duplicate,
    **{name: _compare for name, row in STRIDED_ROWS.items() if row.compares},
    "vsel": _select,
    **dict.fromkeys(("vcadd", "vcmax", "vcmin"), _reduce),
    **dict.fromkeys(("vcgadd", "vcgmax", "vcgmin", "vcpadd"), _reduce_parts),
    "vbrcb": _spread,
    **dict.fromkeys(("vgather", "vgatherb"), _fetch),
    "vreducev2": _keep,
    "vbitsort": _sort,
    "vmrgsort4": _merge,
    "scatter_vnchwconv": _transpose,
    **dict.fromkeys(("vaddreluconv", "vsubreluconv"), _narrowing),
}
"""The structures of instructions that are neither functions of lanes nor conversions."""

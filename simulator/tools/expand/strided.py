"""A whole lowered program as `pto.strided` statements: instructions, masks, control writes, and the loops around.

The lowering of a tile operation has streams and cycles; the function of its lanes and their scalars come from the
operation. An operation whose lowering only estimates cycles is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.pipe_operations import BLOCK, ControlWrite, ScalarWork
from castsim.execution.tree import Block, Lowered, Operation, ResolvedTileOp, Tree, width
from castsim.execution.vector_operations.arithmetic import apply, constant_codes
from castsim.execution.vector_operations.effect import TileEffect
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format
from castsim.isa.pto import program as pto
from castsim.isa.pto.strided_statements import REDUCTIONS, STRIDED_ROWS, lanes_of, mismatch, strides_of
from castsim.isa.pto.value_types import PointerType, ScalarType, StridedStatement
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.machines.strided.statement_work import ACCUMULATING, PATTERNS
from castsim.machines.strided.strided_instructions import DuplicateCode, Stream, StridedInstruction, start_ctrl
from castsim.targets.strided_repeat import StridedRepeatTarget
from castsim.tools.expand.program_writer import Moves, TreeWriter, framed
from castsim.tools.expand.registers import I64, FunctionEmitter, buffer_pointer
from castsim.tools.micro_builder import Use

_WORD = (1 << 64) - 1
_STRUCTURES = (
    "division", "reciprocal_root", "compare", "select", "move", "row_reduction", "row_expansion", "row_broadcast",
    "column_reduction", "column_expansion", "column_broadcast", "part", "gather", "pattern_gather", "sort",
)  # fmt: skip
"""Structures whose instructions compute what the operation does."""
_OPERATIONS = ("taddc", "taddreluconv", "tsubreluconv", "tpairreducesum")
"""Operations of other structures of several instructions or operands that do."""
_ESTIMATED = "its lowering tells the cycles of its instructions, not what each computes"


def expanded_statements(
    function: pto.Function, issued: Tree | Lowerer, target: StridedRepeatTarget
) -> tuple[str, Mapping[str, str]]:
    """Return the text of the statements that a tile function executes, which needs no options.

    Raises:
        IllegalError: the function was not walked, or the lowering of an operation only estimates cycles.
    """
    if not isinstance(issued, Tree):
        raise IllegalError(
            f"expand writes a function of {target.name} for known scalars", span=function.span,
            legal=("--arg NAME=VALUE for every scalar argument",),
        )  # fmt: skip
    types = {argument.name: argument.type for argument in function.arguments}
    pointers = {name: kind for name, kind in types.items() if isinstance(kind, PointerType)}
    writer = StatementWriter(
        FunctionEmitter(set(types), {}), target, (), pointers, chip=target, ctrl=start_ctrl(target)
    )
    writer.tree(issued)
    return framed(writer, function), {}


@dataclass(slots=True, kw_only=True)
class StatementWriter(TreeWriter):
    """A walk through the tree that writes strided instructions as statements."""

    chip: StridedRepeatTarget
    mask: int = (1 << 128) - 1
    _rest: tuple[str, int] | None = None
    """The instruction in count mode whose last part comes next, and its mask."""
    _read: Use | None = None
    """The element that the scalar unit has read for the next instruction."""
    _pointers: dict[tuple[int, str], str] = field(default_factory=dict)

    @property
    def counting(self) -> bool:
        """Whether the mask is a count."""
        return bool(self.ctrl >> self.chip.control.mask_is_count & 1)

    def _lowered(self, node: Lowered, moves: Sequence[Moves]) -> None:
        if isinstance(node.shortcut, TileEffect) and not self._is_computed(node.shortcut.work):
            instruction = self.instructions[node.instruction]
            message = f"expand cannot write pto.{instruction.name}: {_ESTIMATED}"
            raise IllegalError(message, span=instruction.span)
        TreeWriter._lowered(self, node, moves)

    def _is_computed(self, work: ResolvedTileOp) -> bool:
        """Return whether the instructions of an operation compute its values."""
        rule = self.chip.tile_operation(work.mnemonic)
        assert rule is not None
        in_place = work.dst.address == work.sources[0].address if work.sources else False
        if rule.structure == "elementwise" and len(rule.instructions) == 1:
            whole = work.dst.format.storage_bits > 8 or rule.instructions[0] in ("vand", "vor", "vector_dup")
            return whole and STRIDED_ROWS.get(rule.instructions[0]) is not None
        if rule.structure == "division":
            integers = work.dst.format.name in dict(self.chip.tile_arithmetic.divides_through)
            return not integers and (not in_place or VECTOR_OPERATIONS[work.mnemonic].divides_by_scalar)
        if rule.structure == "compare":  # the inverse of eq is true of NaN, unless the option says so
            return work.mode != "ne" or work.sources[0].format.name in self.chip.tile_arithmetic.equality_only
        if rule.structure == "gather":
            return work.dst.valid_cols * work.dst.element_bits <= self.chip.repeat.repeat_bytes * 8
        if rule.structure == "sort":
            return work.sources[0].valid_cols % 32 == 0
        return rule.structure in _STRUCTURES or work.mnemonic in _OPERATIONS

    def block(self, block: Block, moves: Sequence[Moves]) -> None:
        """Write the nodes of a block; a scalar read takes its address from the fill behind it."""
        start = 0
        for item, behind in zip(block.items, (*block.items[1:], None), strict=True):
            end = start + width(item)
            if isinstance(item, ScalarWork) and item.kind == "read" and isinstance(behind, StridedInstruction):
                self._read = self._element(behind, moves[end])
            else:
                self._node(item, moves[start:end])
            start = end

    def _element(self, fill: StridedInstruction, moves: Moves) -> Use:
        """Write the read of the element that a fill spreads over its row."""
        given = self.given
        if given is None or given.structure != "row_expansion" or given.work.dst.element_bits < 16:
            raise IllegalError("its lowering has a read on pipe S")
        dst, (source,) = given.work.dst, given.work.sources
        row = (fill.destination.address - dst.address) // dst.row_pitch
        terms = [(name, deltas[0] // dst.row_pitch * source.row_pitch) for name, deltas in moves]
        kind = ScalarType(_integer(source.format))
        pointer = self._pointer(source.address + row * source.row_pitch, tuple(terms), kind.name)
        name = self.out.fresh("v")
        self.out.add(pto.ScalarAccess("load_scalar", pointer, buffer_pointer(kind.name), self.out.index(0), name, kind))
        return name, kind

    def _operation(self, operation: Operation, moves: Moves) -> None:
        if isinstance(operation, ControlWrite):
            self._control(operation)
            self._pipes.add(operation.pipe)
        else:
            TreeWriter._operation(self, operation, moves)

    def _control(self, write: ControlWrite) -> None:
        match write.register:
            case "ctrl":
                changed, self.ctrl = self.ctrl ^ write.value, write.value
                if changed == 1 << self.chip.control.mask_is_count:
                    self._statement("set_mask_count" if self.counting else "set_mask_norm", [])
                else:
                    self.out.micro("set_ctrl", [self.out.scalar(write.value, I64)])
            case "mask" if write.pipe != self.chip.pipes.vector:  # it is in force, and waits for nothing
                self.out.micro("set_ctrl", [self.out.scalar(self.ctrl, I64)])
            case "mask":
                self.mask, lanes = write.value, write.value.bit_length()
                if self.counting or write.value == (1 << lanes) - 1:
                    words = [write.value if self.counting else lanes]
                else:
                    words = [_signed(write.value >> 64), _signed(write.value & _WORD)]
                self._statement("set_vector_mask", [self.out.scalar(word, I64) for word in words])
            case "cmpmask":
                self._statement("set_cmpmask", [(self._pointer(write.value, (), "u8"), buffer_pointer("u8"))])
            case _:
                self._statement("set_deqscale", [self.out.scalar(write.value, ScalarType("f16"))])

    def vector(self, operation: Operation, moves: Moves) -> bool:
        """Write an instruction, unless it is the last part of the one before."""
        if not isinstance(operation, StridedInstruction):
            return False
        if self._rest is not None:
            assert self._rest == (operation.mnemonic, operation.mask)
            self._rest = None
            return True
        if operation.mnemonic == "copy_ubuf_to_ubuf":
            self._copy(operation, moves)
            return True
        counts = self.counting and operation.mnemonic != "vreducev2"
        if counts:
            whole, rest = divmod(self.mask, operation.lanes)
            if operation.repeats == whole and rest:
                self._rest = operation.mnemonic, (1 << rest) - 1
        self._write(operation, moves, 1 if counts else operation.repeats)
        return True

    def _write(self, operation: StridedInstruction, moves: Moves, repeats: int) -> None:
        name = self._name(operation)
        streams = [
            (operation.destination, 0),
            *((source, number + 1) for number, source in enumerate(operation.sources)),
        ]
        if name in ACCUMULATING:  # the destination, which is read too
            streams.pop()
        if name == "vgather":
            streams[1:] = streams[:0:-1]
        uses: list[Use] = []
        for stream, number in streams:
            terms = tuple((variable, deltas[number]) for variable, deltas in moves)
            element = _element_of(name, stream.format)
            uses.append((self._pointer(stream.address, terms, element), buffer_pointer(element)))
        scalars = list(self._scalars(name, operation)) if len(uses) < len(STRIDED_ROWS[name].forms[-1]) else []
        kinds = tuple(kind for _, kind in uses)
        problem = mismatch(name, STRIDED_ROWS[name], (*kinds, *(kind for _, kind in scalars)))
        if problem:
            raise IllegalError(f"its lowering has a pto.strided.{name}, which {problem}")
        plain = StridedStatement(name, tuple(operand for operand, _ in uses), kinds, destinations=1, repeats=repeats)
        if lanes_of(plain) != operation.lanes:
            raise IllegalError(f"its lowering has {name} of {operation.lanes} lanes")
        strides = tuple(
            _stride(name, number, stream, default)
            for (number, (stream, _)), default in zip(enumerate(streams), strides_of(plain), strict=True)
        )
        blocks = tuple(1 if stream.elements else stream.block_stride for stream, _ in streams)
        used = strides != strides_of(plain) and (repeats > 1 or self.counting)
        operands = [*uses, *scalars]
        self.out.add(
            replace(
                plain, operands=tuple(name for name, _ in operands), operand_types=tuple(kind for _, kind in operands),
                attributes=tuple(self._words(name)), blocks=blocks if set(blocks) != {1} else (),
                strides=strides if used else (),
            )
        )  # fmt: skip

    def _name(self, operation: StridedInstruction) -> str:
        """Return the mnemonic; those of comparisons and pattern gathers need the operation's words."""
        name, given = operation.mnemonic, self.given
        if name in ("vcmpv", "vcmpvs") and given is not None:
            only = given.work.sources[0].format.name in self.chip.tile_arithmetic.equality_only
            mode = given.work.mode or "eq"
            name = f"{name}_{'eq' if only or mode == 'ne' else mode}"
        if name not in STRIDED_ROWS:
            raise IllegalError(f"its lowering has {name}, which is no statement")
        return name

    def _words(self, name: str) -> Iterator[tuple[str, str]]:
        if name in ("vcmax", "vcmin"):
            yield "order", "value"
        if name == "vreducev2":
            assert self.given is not None and self.given.work.pattern is not None
            words = {f"{letter}{lanes:04b}": word for word, lanes in PATTERNS.items() for letter in ("", "P")}
            yield "pattern", words.get(self.given.work.pattern, "7")

    def _scalars(self, name: str, operation: StridedInstruction) -> Iterator[Use]:
        """Yield the scalar of an instruction, if it has one."""
        letter = STRIDED_ROWS[name].forms[0][-1]
        if letter not in "XN":
            return
        fmt = operation.sources[0].format if operation.sources else operation.destination.format
        if isinstance(operation.action, DuplicateCode):
            code = operation.action.value
        elif self._read is not None:
            yield self._read
            return
        else:
            code = self._code(name, fmt)
        if letter == "N":
            yield self.out.scalar(code, ScalarType("i32"))
        else:
            element = _integer(fmt) if name == "vector_dup" else fmt.name
            bits = fmt.storage_bits
            signed = code - (1 << bits) if element[0] == "i" and code >> bits - 1 else code
            yield self.out.scalar(signed, ScalarType(element))

    def _code(self, name: str, fmt: Format) -> int:
        """Return the code of the scalar of an instruction."""
        assert self.given is not None
        work, behaviour = self.given.work, self.given.behaviour
        operation = VECTOR_OPERATIONS[work.mnemonic]
        if self.given.structure == "select":
            assert work.mask is not None
            return work.mask.address & ((1 << fmt.storage_bits) - 1)
        if self.given.structure == "gather":
            return work.sources[0].element_bits // 8
        if operation.divides_constant or self.given.structure == "reciprocal_root":
            return int(constant_codes(1, fmt)[0])
        if work.mnemonic == "tneg":
            return int(constant_codes(-1, fmt)[0])
        code = constant_codes(0, work.scalars[0][1])
        code[0] = work.scalars[0][0]
        if self.given.structure == "division" and name == "vmuls":
            code = apply("recip", (code,), fmt, behaviour)
        elif operation.function == "sub":
            code = apply("neg", (code,), fmt, behaviour)
        spread = name == "vector_dup" and work.dst.element_bits < fmt.storage_bits
        return int(code[0]) * (0x101 if spread else 1)

    def _copy(self, operation: StridedInstruction, moves: Moves) -> None:
        """Write a copy of blocks inside the buffer."""
        ends: list[Use] = []
        for number, stream in ((1, operation.sources[0]), (0, operation.destination)):
            terms = tuple((variable, deltas[number]) for variable, deltas in moves)
            ends.append((self._pointer(stream.address, terms, "u8"), buffer_pointer("u8")))
        numbers = [self.out.scalar(value, I64) for value in (operation.repeats, 1, 0, 0)]
        names, kinds = zip(*ends, *numbers, strict=True)
        self.out.add(pto.MicroOperation("mte_ub_ub", tuple(names), tuple(kinds), groups=(("nburst", 3),)))

    def _pointer(self, base: int, terms: tuple[tuple[str, int], ...], element: str) -> str:
        """Return a pointer; those to fixed addresses are made once."""
        if any(factor for _, factor in terms):
            return self.out.buffer(self.address(base, terms), element)
        if (base, element) not in self._pointers:
            address = self.out.constant(base, I64)
            with self.out.at(self.out.head):
                self._pointers[base, element] = self.out.buffer(address, element)
        return self._pointers[base, element]

    def _statement(self, name: str, uses: Sequence[Use]) -> None:
        """Write a statement that sets control state."""
        self.out.add(StridedStatement(name, tuple(operand for operand, _ in uses), tuple(kind for _, kind in uses)))


def _integer(fmt: Format) -> str:
    return f"i{fmt.storage_bits}"


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _element_of(name: str, fmt: Format) -> str:
    """Return the element of a pointer: fills move integers, which keep the bits of NaN."""
    if name == "vector_dup":
        return _integer(fmt)
    legal = {element for pair in STRIDED_ROWS[name].elements for element in pair}
    moves = STRIDED_ROWS[name].function in ("move", "select") and fmt.storage_bits > 8
    return _integer(fmt) if moves and fmt.name not in legal else fmt.name


def _stride(name: str, number: int, stream: Stream, default: int) -> int:
    """Return the repeat stride of an operand; that of operands whose strides no field gives is the default."""
    size = stream.format.storage_bits // 8
    if number == 0 and name in REDUCTIONS:
        unit = stream.elements * size
    elif stream.elements and name != "vreducev2":
        return default
    else:
        unit = BLOCK
    if name == "vreducev2" and number == 0:
        return default
    if stream.step % unit:
        raise IllegalError(f"its lowering has rows {stream.step} bytes apart, for which {name} has no stride")
    return stream.step // unit

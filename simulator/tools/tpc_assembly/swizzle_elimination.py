"""Removes lane moves around element-wise work: moves that order elements only to reverse the order again.

A block in which every stored element comes from the loaded element of its own position, by the same operations for
all positions, needs no order in between. It is rewritten in the order that conversions of all lanes leave and scheduled
again. The same analysis then checks that the new block stores the same: equal shapes, not equal samples.
Source: the vendor's document tpc_builtin_support, elimination of swizzle and unswizzle casts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import count

import numpy as np

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Codes
from castsim.isa.tpc.forms import Family
from castsim.isa.tpc.parser import parse, print_declaration, print_instruction
from castsim.isa.tpc.program import File, Operand, Register, Slot, TensorDeclaration, TpcInstruction, TpcProgram
from castsim.machines.vliw.assembled import Ran, assemble, execute
from castsim.machines.vliw.fast_engine import simulate_bundles
from castsim.reports.documents import Keys, apart, derived, record, says
from castsim.reports.schemas.keys import Bundles, Name
from castsim.reports.schemas.keys import Line as SourceLine
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, VliwTarget
from castsim.tools.tpc_assembly.swizzle_analysis import (
    Analysis,
    ProgramPiece,
    Term,
    Terms,
    TermShapes,
    Unsuited,
    VectorAccess,
    analysed,
    constants,
    entering,
    piece_text,
    pieces,
    plans_of,
    registers_written,
)
from castsim.tools.tpc_compiler.c_table import HopMethod, PathHop
from castsim.tools.tpc_compiler.cast_building import hop_in_swizzle, in_lane, takes_group
from castsim.tools.tpc_compiler.code_generation import (
    NOTHING,
    EmittedInstruction,
    Line,
    Sequence,
    SequenceRegister,
    allocate,
    arranged,
    printed,
    text_of,
)
from castsim.tools.tpc_lint.lint_checking import lint

# Element-wise work written anew, in the order that conversions of all lanes leave: no element is moved for order.
#
# A value that is r times as wide as what the block loads and stores lies in r registers, element e in register e % r.
# Conversions up and down keep to that numbering, so that what is stored is in order again.

_BYTE_BITS = 8
_GROUPS = (2, 4)
_LANEWISE = ("operation", "comparison")
"""Kinds of terms that an instruction makes lane by lane."""

Lanes = tuple[SequenceRegister, ...]
"""The registers of a value, numbered by lane; for a constant the same one for every lane."""


class Rewriter:
    """Appends the operations of shapes to a sequence.

    `loaded` are the registers of the loads, by number; `narrow` the width of the loaded and stored elements, in bytes;
    `scalars` the S registers by index.
    """

    def __init__(
        self, sequence: Sequence, shapes: Terms, loaded: dict[int, SequenceRegister], narrow: int, target: VliwTarget
    ) -> None:
        self.sequence = sequence
        self.shapes = shapes
        self.loaded = loaded
        self.narrow = narrow
        self.target = target
        self.scalars: dict[int, SequenceRegister] = {}
        self._made: dict[int, Lanes] = {}
        self._users: dict[int, int] = {}

    def count_users(self, shape: int) -> None:
        """Record the operands of a shape to be written, so that a value with one user may be computed in its place."""
        for child in self.shapes.children(self.shapes.listed[shape]):
            self._users[child] = self._users.get(child, 0) + 1
            if self._users[child] == 1:
                self.count_users(child)

    def written(self, shape: int, into: Lanes | None = None) -> Lanes:
        """Return the registers of a shape's value, appending its computation; `into` are preferred registers.

        Raises:
            Unsuited: an operation is not possible in this order.
        """
        if shape not in self._made:
            self._made[shape] = self._write(self.shapes.listed[shape], shape, into)
        return self._made[shape]

    def _lanes(self, width: int) -> int:
        """Return the number of registers of a value; narrower ones stay in lane 0 of the elements loaded."""
        return max(1, width // self.narrow)

    def _write(self, term: Term, shape: int, into: Lanes | None) -> Lanes:
        count = self._lanes(term.width)
        if term.kind == "load":
            if term.width != self.narrow or term.key[0] not in self.loaded:
                raise Unsuited("loads of several widths are combined")
            return (self.loaded[term.key[0]],)
        if term.kind == "constant":
            return (self.sequence.broadcast(term.key[0], f"i{term.width * _BYTE_BITS}"),) * count
        if term.kind == "joined":
            return self._extended(term)
        if term.kind == "select":
            return self._selected(term, count, into)
        if term.kind == "operation" and len(term.key) > 1:
            return self._converted(term)
        if term.kind in _LANEWISE:
            return self._lanewise(term, count, into)
        raise Unsuited(f"a {term.kind} is used where a vector is needed")

    # -------------------------------------------------------------------------------------------------- operations

    def _operands(self, parts: tuple[int, ...], count: int) -> list[tuple[SequenceRegister | int, ...]]:
        """Return the operands of an instruction, lane by lane."""
        columns: list[tuple[SequenceRegister | int, ...]] = []
        for part in parts:
            term = self.shapes.listed[part]
            if term.kind == "immediate":
                columns.append((int(term.key[0]),) * count)
            elif term.kind == "scalar":
                columns.append((self.scalars[term.key[0]],) * count)
            else:
                columns.append(self.written(part))
        return list(zip(*columns, strict=True))

    def _lanewise(self, term: Term, count: int, into: Lanes | None) -> Lanes:
        head = str(term.key[0])
        results = []
        for lane, operands in enumerate(self._operands(term.parts, count)):
            fresh = self.sequence.mask() if term.kind == "comparison" else self.sequence.vector()
            result = into[lane] if into is not None else fresh
            self.sequence.vpu(head, result, *operands)
            results.append(result)
        return tuple(results)

    def _selected(self, term: Term, count: int, into: Lanes | None) -> Lanes:
        """Write the new elements over a copy of the old ones, under the mask; by their own operation if it is free."""
        mask, new, old = term.parts
        shape = self.shapes.listed[new]
        direct = shape.kind in _LANEWISE and len(shape.key) == 1 and new not in self._made and self._users.get(new) == 1
        if direct:
            head, operands = str(shape.key[0]), self._operands(shape.parts, count)
        else:
            head, operands = "mov", [(value,) for value in self.written(new)]
        results = []
        for lane, (masks, kept) in enumerate(zip(self.written(mask), self.written(old), strict=True)):
            result = into[lane] if into is not None else self.sequence.vector()
            self._copy(result, kept)
            self.sequence.vpu(head, result, *operands[lane], where=masks, inverted=term.key[0] == "!")
            results.append(result)
        return tuple(results)

    def _copy(self, result: SequenceRegister, source: SequenceRegister) -> None:
        """Append a copy of a register in the LOAD slot, which is not an operation of the vector slot."""
        self.sequence.add(Slot.LOAD, "mov", result, source)

    # ------------------------------------------------------------------------------------------------- conversions

    def _converted(self, term: Term) -> Lanes:
        mnemonic, src, dst, mode, shift = term.key
        before = self.shapes.listed[term.parts[0]].width
        row: ConvertRow | IntegerConvertRow | None
        if mnemonic == "convert":
            row, means = self.target.convert(src, dst), HopMethod.CONVERT
        else:
            row, means = self.target.integer_convert(mnemonic, dst), HopMethod.NARROW
        hop = PathHop(means, src, dst, row, shift=shift, integer_rounding=mode)
        return self._through(hop, term.parts[0], before, term.width, mode)

    def _extended(self, term: Term) -> Lanes:
        """Write an element that consists of a narrower one and zeros above it."""
        parts = self.shapes.joined_parts(term)
        low = parts[0][0]
        width = self.shapes.listed[low].width
        zero = all(self.shapes.listed[part] == Term("constant", 1, (0,)) for part, _ in parts[width:])
        if not zero or parts[:width] != tuple((low, offset) for offset in range(width)):
            raise Unsuited("an element is put together from parts of others")
        if self.shapes.listed[low].kind == "constant":
            raise Unsuited("an element is put together from parts of others")
        hop = PathHop(HopMethod.EXTEND, f"u{width * _BYTE_BITS}", f"u{term.width * _BYTE_BITS}")
        return self._through(hop, low, width, term.width, "")

    def _through(self, hop: PathHop, source: int, before: int, after: int, mode: str) -> Lanes:
        """Write a change of type; below the width of the loads it happens in lane 0."""
        if max(before, after) <= self.narrow:
            (value,) = self.written(source)
            return (in_lane(self.sequence, hop, value, mode, zeroed=False, into=None),)
        if min(before, after) < self.narrow:
            raise Unsuited("a conversion goes from below to above the width of the loads")
        count = self._lanes(before)
        values = self._grouped(source, count) if count in _GROUPS and takes_group(hop, count, self.target) else None
        taken = list(values or self.written(source))
        return tuple(hop_in_swizzle(self.sequence, hop, taken, mode, None, self.target))

    def _grouped(self, source: int, count: int) -> Lanes:
        """Return the registers of a value as one group, built in place if it has no other user, else copied."""
        group = self.sequence.vector(count).parts
        term = self.shapes.listed[source]
        movable = (term.kind in _LANEWISE and len(term.key) == 1) or term.kind == "select"
        if source not in self._made and movable and self._users.get(source) == 1:
            return self.written(source, group)
        for part, value in zip(group, self.written(source), strict=True):
            self._copy(part, value)
        return group


_FIXED = 1 << 20
"""Values of a sequence from this number on represent registers with fixed numbers."""
_MOST_PADDING = 16
_UNREAD = "unread result"


@record
class MovesBlock(Keys):
    """A block with lane moves."""

    lines: tuple[int, int] = apart()
    reason: str | None = apart()
    """Why it is unchanged; None if it was rewritten."""
    operations: tuple[int, int] = apart(default=(0, 0))
    """Instructions of the vector slot, before and after."""
    bundles: tuple[int, int] = apart(default=(0, 0))
    first_line: SourceLine = derived("Its first line.", lambda block: block.lines[0])
    last_line: SourceLine = derived("Its last line.", lambda block: block.lines[1])
    reason_kept: str | None = derived("The reason why the block is unchanged; null if it was rewritten.", "reason")
    removed: Mapping[Name, int] = says("Number of removed instructions by mnemonic.", default_factory=dict)
    vector_operations_before: int = derived("Vector operations before.", lambda block: block.operations[0])
    vector_operations_after: int = derived("Vector operations after.", lambda block: block.operations[1])
    bundles_before: Bundles = derived("Length before.", lambda block: block.bundles[0])
    bundles_after: Bundles = derived("Length after.", lambda block: block.bundles[1])


@dataclass(frozen=True, slots=True)
class Elimination:
    """A program before and after; `text` is the new one, canonical, `blocks` those with lane moves."""

    program: TpcProgram
    text: str
    blocks: tuple[MovesBlock, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was removed."""
        return any(block.reason is None for block in self.blocks)


def eliminate(program: TpcProgram, target: VliwTarget) -> Elimination:
    """Remove the lane moves that no stored element needs.

    The program must have no early reads: its meaning is taken from the order of its instructions.

    Raises:
        IllegalError: the target rejects an instruction.
    """
    parts = pieces(program, target)
    tensors = {tensor.number: tensor for tensor in program.declarations if isinstance(tensor, TensorDeclaration)}
    values = constants(program, target)
    lines: list[list[str]] = [piece_text(piece) for piece in parts]
    results: list[MovesBlock] = []
    for position, piece in enumerate(parts):
        moved = any(
            occupant.form.family is Family.LANE_MOVE for bundle in piece.bundles for _, occupant in bundle.occupied
        )
        if not piece.straight or not moved:
            continue
        own = {id(instruction) for bundle in piece.bundles for instruction in bundle.slots}
        before = {index: (bits, width) for index, (bits, width, mov) in values.items() if id(mov) not in own}
        try:
            _check_neighbours(parts, position, target)
            body, block = _rewritten(piece, before, tensors, target)
        except Unsuited as unsuited:
            results.append(MovesBlock(piece.lines, str(unsuited)))
            continue
        lines[position] = _padded(program, lines, position, body, piece, target)
        results.append(block)
    return Elimination(program, _text(program, lines), tuple(results))


def _text(program: TpcProgram, lines: list[list[str]]) -> str:
    head = [print_declaration(declaration) for declaration in program.declarations]
    return "".join(f"{line}\n" for line in [*head, *(line for part in lines for line in part)])


def _check_neighbours(parts: tuple[ProgramPiece, ...], index: int, target: VliwTarget) -> None:
    """Reject a block if another one needs vector registers from before itself; new numbers could overwrite them.

    Raises:
        Unsuited: another block needs such registers.
    """
    for number, other in enumerate(parts):
        if number == index:
            continue
        elsewhere = frozenset(
            name for k, part in enumerate(parts) if k != number for name in registers_written(part, target)
        )
        needed = entering(other, target, elsewhere)
        if needed:
            raise Unsuited(f"line {other.lines[0]}: reads {min(needed)} from before its block")


# ---------------------------------------------------------------------------------------------------------- a block


def _rewritten(
    piece: ProgramPiece, before: dict[int, tuple[int, int]], tensors: dict[int, TensorDeclaration], target: VliwTarget
) -> tuple[list[Line], MovesBlock]:
    """Rewrite a block.

    Raises:
        Unsuited: it does more than element-wise work on its loads, or gets no shorter.
    """
    analysis = analysed(piece.bundles, before, tensors, target)
    shapes = TermShapes(analysis.terms)
    wanted = [_shape_of(store, shapes) for store in analysis.stores]
    body = _bundled(analysis, shapes, wanted, target)
    again = parse("".join(f"{printed(line)}\n" for line in body), target.dialect)
    rewritten = analysed(again.bundles, {}, tensors, target)
    if _signatures(rewritten) != _signatures(analysis):
        raise Unsuited("the rewritten block would not store the same values")
    operations = tuple(sum(bundle.vpu is not None for bundle in bundles) for bundles in (piece.bundles, again.bundles))
    length = len(piece.bundles) - piece.trailing, len(body)
    if operations[1] >= operations[0] or length[1] > length[0]:
        raise Unsuited("without its lane moves the block would be no shorter")
    gone = Counter(move.mnemonic for move in analysis.moves) - Counter(move.mnemonic for move in rewritten.moves)
    return body, MovesBlock(piece.lines, None, (operations[0], operations[1]), length, dict(sorted(gone.items())))


def _shape_of(store: VectorAccess, shapes: TermShapes) -> int:
    """Return the one shape of all elements of a store.

    Raises:
        Unsuited: elements are treated differently, or come from other positions.
    """
    elements = shapes.terms.elements(store.value, store.width)
    element_shapes = [shapes.of(term) for term in elements]
    where = f"line {store.instruction.span.line}"
    for index, shape in enumerate(element_shapes):
        if shape is None or shape[1] not in (None, index):
            raise Unsuited(f"{where}: element {index} is not made only of the loaded elements {index}")
    distinct = {pair[0] for pair in element_shapes if pair is not None}
    if len(distinct) != 1:
        raise Unsuited(f"{where}: not every element went through the same work")
    return distinct.pop()


def _signatures(analysis: Analysis) -> list[object]:
    """Return, for every store in order, its computation with loads named by what they read: equal if values are."""
    shapes = TermShapes(analysis.terms)
    loads = [_without(access.instruction, "dest") for access in analysis.loads]

    def spelled(shape: int) -> object:
        term = shapes.made.listed[shape]
        if term.kind == "load":
            return loads[term.key[0]] if isinstance(term.key[0], int) else term.key
        places = tuple(offset for _, offset in shapes.made.joined_parts(term)) if term.kind == "joined" else ()
        return term.kind, term.width, term.key, places, tuple(map(spelled, shapes.made.children(term)))

    return [(_without(store.instruction, "src_c"), spelled(_shape_of(store, shapes))) for store in analysis.stores]


def _without(access: TpcInstruction, role: str) -> tuple[Operand, ...]:
    """Return the operands of an access but for the vector that it moves."""
    every = access.specified
    return tuple(operand for spec, operand in every if spec.role != role)


def _bundled(analysis: Analysis, shapes: TermShapes, wanted: list[int], target: VliwTarget) -> list[Line]:
    """Return the bundles of a block: its accesses and scalar work in their order, the vector work before its store."""
    widths = {access.width for access in (*analysis.loads, *analysis.stores)}
    if len(widths) != 1:
        raise Unsuited("elements of several widths are loaded and stored: the order must stay")
    sequence = Sequence()
    loaded: dict[int, SequenceRegister] = {}
    writer = Rewriter(sequence, shapes.made, loaded, widths.pop(), target)
    for shape in set(wanted):
        writer.count_users(shape)
    fixed: dict[int, int] = {}

    def register(operand: Register) -> SequenceRegister:
        number = _FIXED * (1 + list(File).index(operand.file)) + operand.index
        fixed[number] = operand.index
        return SequenceRegister(number, operand.file)

    for scalar in analysis.scalars:
        writer.scalars[scalar.index] = register(scalar)
    pending = iter(wanted)
    for _, slot, what in _in_order(analysis):
        if not isinstance(what, VectorAccess):
            sequence.steps.append(EmittedInstruction(slot, what, ()))
            continue
        others = [argument for argument in what.instruction.operands if getattr(argument, "file", None) is not File.V]
        tensor, index = others
        if not isinstance(index, Register) or not hasattr(tensor, "value"):
            raise Unsuited(f"line {what.instruction.span.line}: an access of an unknown form")
        if what.instruction.mnemonic == "ld_tnsr":
            number = analysis.loads.index(what)
            loaded[number] = sequence.vector()
            sequence.add(slot, "ld_tnsr", loaded[number], tensor.value, register(index))
        else:
            (value,) = writer.written(next(pending))
            sequence.add(slot, "st_tnsr", tensor.value, register(index), value)
    try:
        numbers = allocate(sequence.steps, [], target) | fixed
    except IllegalError as error:
        raise Unsuited(error.message) from None
    texts = [(step.slot, text_of(step, numbers).strip()) for step in sequence.steps]
    return list(arranged(texts, target)[0])


def _in_order(analysis: Analysis) -> list[tuple[int, Slot, VectorAccess | str]]:
    """Return accesses and the text of instructions without vectors, in the order of the program.

    Raises:
        Unsuited: there is a scalar access of memory, whose order is not tracked.
    """
    for _, _, instruction in analysis.others:
        if instruction.form.memory is not None:
            raise Unsuited(f"line {instruction.span.line}: {instruction.mnemonic} accesses memory")
    items: list[tuple[int, Slot, VectorAccess | str]] = [
        *((access.place, access.slot, access) for access in (*analysis.loads, *analysis.stores)),
        *((index, slot, print_instruction(instruction)) for index, slot, instruction in analysis.others),
    ]
    return sorted(items, key=lambda item: item[0])


# ------------------------------------------------------------------------------------------------- in the program


def _padded(
    program: TpcProgram,
    lines: list[list[str]],
    position: int,
    body: list[Line],
    piece: ProgramPiece,
    target: VliwTarget,
) -> list[str]:
    """Return the text of a new block followed by empty bundles, as many as before or as the rules require.

    A block that ends where the old one ended in empty bundles keeps them; then more follow, until every result of the
    block is visible and the linter has no new finding.
    """
    findings = _broken(program, target)
    lines_of_body = [printed(line) for line in body]
    visible = max((_visible(line, index, target) for index, line in enumerate(body)), default=0)
    least = max(0, visible - len(body)) if position + 1 < len(lines) else 0
    for padding in count(max(least, piece.trailing if _ends(lines, position) else 0)):
        candidate = [*lines_of_body, *[printed(NOTHING)] * padding]
        text = _text(program, [*lines[:position], candidate, *lines[position + 1 :]])
        if _broken(parse(text, target.dialect), target) <= findings:
            return candidate
        if padding > _MOST_PADDING:
            raise IllegalError("the rewritten block always breaks an issue rule")
    raise AssertionError


def _broken(program: TpcProgram, target: VliwTarget) -> int:
    """Return the number of violations of issue rules; an unread result does not count."""
    return sum(finding.rule != _UNREAD for finding in lint(program, target))


def _ends(lines: list[list[str]], index: int) -> bool:
    """Return whether the program ends after a block."""
    return all("halt" in line or not line.strip("nop; ") for part in lines[index + 1 :] for line in part)


def _visible(line: Line, index: int, target: VliwTarget) -> int:
    """Return the first bundle in which all results of a bundle are visible to any reader."""
    program = parse(f"{printed(line)}\n", target.dialect)
    return max((index + plan.stage.number + 1 for plan in plans_of(program.bundles, target) if plan.results), default=0)


# A program and what it becomes without its lane moves, run on the same inputs and timed.

_MAX_BUNDLES = 10**8
_DEFAULT_INPUT = "random:0"


@dataclass(frozen=True, slots=True)
class Compared:
    """Cycles before and after; `same_outputs` is whether each output is the same, bit by bit."""

    file: str
    target: VliwTarget
    elimination: Elimination
    cycles: tuple[int, int]
    same_outputs: Mapping[str, bool]

    @property
    def saved(self) -> int:
        """Number of cycles saved."""
        return self.cycles[0] - self.cycles[1]


def compared(
    source: str,
    file: str,
    target: VliwTarget,
    inputs: Mapping[str, Codes | str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Compared:
    """Rewrite a program and run it before and after.

    `inputs` are arrays or specifications by name; the default is `random:0`.

    Raises:
        ReadError, IllegalError, TileError: the program or an input is rejected.
        IllegalError: the program reads early, so the order of its instructions is not its meaning.
        EngineError: it does not terminate.
        LimitError: the program exceeds `limits`.
    """
    assembled = assemble(source, file, target, {}, limits.max_statements)
    uses = assembled.arguments
    given = {name: _DEFAULT_INPUT for name, use in uses.items() if use.needs_input} | dict(inputs or {})
    before = execute(assembled, given, values=True, checked=True, max_bundles=_MAX_BUNDLES, max_walk=limits.computed)
    if before.stale_reads:
        first = before.stale_reads[0]
        message = f"{first.reader.text} reads {first.place} before its new value is ready; its lanes cannot be tracked"
        raise IllegalError(message, span=first.reader.span, legal=("a program without stale reads (castsim run)",))
    elimination = eliminate(assembled.program, target)
    changed = assemble(elimination.text, file, target, {})
    after = execute(changed, given, values=True, checked=True, max_bundles=_MAX_BUNDLES, max_walk=limits.computed)
    same = {name: _same(before, after, name) for name in before.outputs}
    if not all(same.values()) or after.stale_reads:
        raise IllegalError("the rewritten program computes something else; please report it")
    return Compared(file, target, elimination, (_cycles(before, target), _cycles(after, target)), same)


def _same(before: Ran, after: Ran, name: str) -> bool:
    original, other = before.outputs[name], after.outputs[name]
    return np.array_equal(np.ascontiguousarray(original).view(np.uint8), np.ascontiguousarray(other).view(np.uint8))


def _cycles(ran: Ran, target: VliwTarget) -> int:
    return simulate_bundles(ran.tree, target).total

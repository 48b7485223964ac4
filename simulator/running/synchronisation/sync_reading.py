"""The elements of a `.pto` function: the pipe of each operation, and the buffers that it reads and writes.

Source: docs/reference/pto.md section 5.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from castsim.execution.interpreter.arguments import Allocator, slot_bytes
from castsim.execution.interpreter.lowerer import Lowerer, gathers, pipe_of
from castsim.execution.interpreter.rerolling import DependentScalar, LoopDependence
from castsim.execution.interpreter.scalar_values import constant, evaluate
from castsim.execution.interpreter.tile_allocation import TileNode, is_foreign, share_bytes
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError
from castsim.isa.pto import program as pto
from castsim.isa.pto.statement_forms import scratch_of
from castsim.isa.pto.value_types import element_format
from castsim.isa.pto.vector_operations import ALIASES
from castsim.running.synchronisation.removing import ElementListing, OperandBytes
from castsim.targets.dataflow import Pipes

# Where parts and slots of tiles lie, as far as the text of a program tells (docs/reference/pto.md section 5.1).


@dataclass(frozen=True, slots=True)
class PlacedTile:
    """A tile at a known address: its first bit, and the distances in bits between rows and between columns."""

    start: int
    row_bits: int
    column_bits: int

    @classmethod
    def of(cls, kind: pto.TileType, address: int, bits: int) -> PlacedTile:
        """Return a placed tile."""
        rows_first = kind.block_layout != "row_major"
        return cls(address * 8, bits if rows_first else kind.cols * bits, kind.rows * bits if rows_first else bits)

    def part(self, row: int, column: int) -> PlacedTile:
        """Return the location of a part, which keeps the distances between rows and between columns."""
        return replace(self, start=self.start + row * self.row_bits + column * self.column_bits)

    def lines(self, kind: pto.TileType) -> tuple[tuple[int, int], ...]:
        """Return the bytes of a part of this type, one range per row, or per column if columns are contiguous."""
        by_rows = self.column_bits <= self.row_bits
        count, length = (kind.rows, kind.cols) if by_rows else (kind.cols, kind.rows)
        step, unit = (self.row_bits, self.column_bits) if by_rows else (self.column_bits, self.row_bits)
        starts = [self.start + number * step for number in range(count)]
        return tuple((start // 8, -(-(start + length * unit) // 8)) for start in starts)


def slots_of(kind: pto.MultiTileType, whole: OperandBytes, size: int, alignment: int) -> tuple[OperandBytes, ...]:
    """Return the contiguous buffers of several tiles of `size` bytes; a single one if no address is known."""
    if whole.ranges is None:
        return (whole,)
    (first, _), step = whole.ranges[0], slot_bytes(size, alignment)
    starts = [first + number * step for number in range(kind.count)]
    return tuple(replace(whole, ranges=((start, start + size),)) for start in starts)


Value = tuple[OperandBytes, ...]
"""The possible buffers of a name: a single one, or several if the path decides."""


@dataclass(frozen=True, slots=True)
class ElementReading:
    """The elements of a function, and the first and last element of each operation with any, by identity."""

    listing: ElementListing
    places: dict[int, tuple[int, int]]


def read(function: pto.Function, lowerer: Lowerer, pipes: Pipes) -> ElementReading:
    """Return the elements of a function, with tiles at the addresses of the later walk."""
    reader = _ElementReader(lowerer, pipes, _shared(function, lowerer), alignment=lowerer.buffer()[2])
    for argument in function.arguments:
        if isinstance(argument.type, pto.PointerType):
            reader.values[argument.name] = (OperandBytes("gm", argument.name),)
        elif isinstance(argument.type, pto.TileType):
            reader.values[argument.name] = (OperandBytes(argument.type.location, argument.name),)
    reader.region(function.body or ())
    return ElementReading(reader.listing, reader.places)


def _shared(function: pto.Function, lowerer: Lowerer) -> dict[int, int]:
    """Return the addresses of tiles that share bytes, by the identity of their allocation."""
    _, capacity, alignment = lowerer.buffer()
    allocator = Allocator(capacity, alignment)
    share_bytes(function, allocator, lowerer)
    return allocator.placed


@dataclass(slots=True)
class _ElementReader:
    lowerer: Lowerer
    pipes: Pipes
    shared: dict[int, int]
    listing: ElementListing = field(default_factory=ElementListing)
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, DependentScalar] = field(default_factory=dict)
    next_address: dict[str, int] = field(default_factory=dict)
    roots: dict[int, int] = field(default_factory=dict)
    """Numbers of the allocations met, by identity."""
    placed: dict[str, PlacedTile] = field(default_factory=dict)
    """The tiles with known addresses, by name."""
    alignment: int = 32

    def region(self, body: Sequence[pto.Operation]) -> tuple[Value, ...]:
        """Read a region; return its yielded values."""
        for node in body:
            if isinstance(node, pto.Yield | pto.Return | pto.Condition):
                return tuple(self.values.get(name, ()) for name in node.values)
            self._operation(node)
        return ()

    def _operation(self, node: pto.Operation) -> None:
        match node:
            case pto.Constant() | pto.Arith() | pto.Compare() | pto.Convert():
                self._scalar(node)
            case pto.Tcvt():
                if node.defines_dst:
                    self.values[node.dst] = (self._tile(node, node.dst, node.dst_type, None),)
                tmp = () if node.tmp is None else (node.tmp,)
                self._emit(node, (node.src,), (node.dst, *tmp))
            case pto.TileOperation() if node.mnemonic in ALIASES:
                self._alias(node)
            case pto.TileOperation():
                scratch = scratch_of(node.mnemonic, node.inputs, node.input_types)
                self._emit(node, [n for n in node.inputs if n not in scratch], (*node.outputs, *scratch))
            case pto.ScalarAccess():
                self._access(node)
            case pto.For():
                self._loop(node)
            case pto.While():
                self._while(node)
            case pto.If():
                self._branch(node)
            case pto.Section():
                self.region(node.body)
            case _:
                self._buffer(node)

    def _buffer(self, node: pto.Operation) -> None:
        """Record the buffers of a name."""
        match node:
            case pto.AllocTile():
                self.values[node.result] = (self._tile(node, node.result, node.type, node.address),)
            case pto.AllocTiles():
                self._slots(node)
            case pto.GetTile():
                self._slot(node)
            case pto.Subview():
                self._part(node)
            case pto.MakeView() | pto.AddPointer():
                self.values[node.result] = self.values.get(node.pointer, ())
            case pto.ForeignOperation():
                for name, kind in zip(node.results, node.result_types, strict=True):
                    if isinstance(kind, pto.TileType):
                        root = self.roots.setdefault(id(node), len(self.roots))
                        self.values[name] = (OperandBytes(kind.location, root),)
            case pto.PartitionView():
                self.values[node.result] = self.values.get(node.view, ())

    def _emit(self, node: pto.Tcvt | pto.TileOperation, reads: Sequence[str], writes: Sequence[str]) -> None:
        pipe = pipe_of(node, self.pipes)
        if pipe is None:
            return
        buffers = [[element for name in names for element in self.values.get(name, ())] for names in (reads, writes)]
        number = self.listing.operation(pipe, *buffers, gathers=gathers(node))
        self.places[id(node)] = number, number

    def _access(self, node: pto.ScalarAccess) -> None:
        """An element read or written by the scalar unit counts as all of its tile or argument."""
        buffers = list(self.values.get(node.base, ()))
        number = self.listing.operation(self.pipes.scalar, *((buffers, []) if node.reads else ([], buffers)))
        self.places[id(node)] = number, number

    # ------------------------------------------------------------------------------------------------------- values

    def _scalar(self, node: pto.Constant | pto.Arith | pto.Compare | pto.Convert) -> None:
        """Store a scalar that is known before the run."""
        if isinstance(node, pto.Constant):
            self.constants[node.result] = DependentScalar(constant(node.value, node.type.name))
            return
        operands = (node.operand,) if isinstance(node, pto.Convert) else node.operands
        if operands and all(name in self.constants for name in operands):
            try:
                self.constants[node.result] = evaluate(
                    node, self.constants.__getitem__, LoopDependence(), lambda *_: False
                )
            except CastsimError:
                return  # the walk says so, if it comes here

    def _tile(self, node: TileNode, name: str, kind: pto.TileType, address: str | None) -> OperandBytes:
        bits = self._bits(kind)
        allocated = self._allocated(node, kind, address, kind.rows * kind.cols * bits // 8)
        self.placed.pop(name, None)
        if allocated.ranges is not None:
            self.placed[name] = PlacedTile.of(kind, allocated.ranges[0][0], bits)
        return allocated

    def _allocated(self, node: TileNode, kind: pto.TileType, address: str | None, size: int) -> OperandBytes:
        """Return the buffers that an operation allocates: `size` bytes for a tile of a type, or for several."""
        start = self._address(node, kind, address, size)
        root = self.roots.setdefault(id(node), len(self.roots))
        ranges = None if start is None else ((start, start + size),)
        return OperandBytes(kind.location, root, ranges, _filled(kind, self._bits(kind)))

    def _bits(self, kind: pto.TileType) -> int:
        fmt = element_format(kind.element)
        return fmt.storage_bits if is_foreign(kind) else self.lowerer.element_bits(fmt)

    def _slots(self, node: pto.AllocTiles) -> None:
        """Read a slot of several tiles: one tile if the text gives its number, otherwise all of them."""
        kind = node.type.tile
        size = kind.rows * kind.cols * self._bits(kind) // 8
        step = slot_bytes(size, self.alignment)
        whole = self._allocated(node, kind, node.address, step * (node.type.count - 1) + size)
        self.values[node.result] = slots_of(node.type, whole, size, self.alignment)

    def _slot(self, node: pto.GetTile) -> None:
        slots, number = self.values.get(node.source, ()), self._known(node.slot)
        self.placed.pop(node.result, None)
        if number is None or not 0 <= number < len(slots):
            self.values[node.result] = slots
            return
        self.values[node.result] = slots[number : number + 1]
        ranges = slots[number].ranges
        if ranges is not None:
            self.placed[node.result] = PlacedTile.of(node.type, ranges[0][0], self._bits(node.type))

    def _part(self, node: pto.Subview) -> None:
        """Read a part: it has separate bytes if the text gives its offsets; otherwise it counts as the whole tile."""
        whole, offsets = self.values.get(node.source, ()), [self._known(name) for name in node.offsets]
        placed_tile, (row, column) = self.placed.get(node.source), offsets
        self.placed.pop(node.result, None)
        if (
            placed_tile is None
            or row is None
            or column is None
            or node.type.scatter_layout != "none_box"
            or len(whole) != 1
        ):
            self.values[node.result] = tuple(replace(element, filled=0) for element in whole)
            return
        placed = self.placed[node.result] = placed_tile.part(row, column)
        self.values[node.result] = (replace(whole[0], ranges=placed.lines(node.type), filled=0),)

    def _known(self, name: str) -> int | None:
        """Return a scalar that is constant in the text."""
        return int(self.constants[name].value) if name in self.constants else None

    def _address(self, node: TileNode, kind: pto.TileType, address: str | None, size: int) -> int | None:
        """Return a tile's address, None if unknown; disjoint tiles are contiguous."""
        if address is not None:
            return int(self.constants[address].value) if address in self.constants else None
        if id(node) in self.shared:
            return self.shared[id(node)]
        start = self.next_address.get(kind.location, 0)
        self.next_address[kind.location] = start + size
        return start

    def _alias(self, node: pto.TileOperation) -> None:
        (kind,) = node.output_types
        assert isinstance(kind, pto.TileType)
        filled, sources = _filled(kind, self._bits(kind)), self.values.get(node.inputs[0], ())
        self.values[node.outputs[0]] = tuple(replace(element, filled=filled) for element in sources)

    # ------------------------------------------------------------------------------------------------- control flow

    def _loop(self, node: pto.For) -> None:
        carried = self._carried(node)
        loop = self.listing.begin_loop()
        self.values.update(carried)
        self.region(node.body)
        self.listing.end_loop(loop)
        self.places[id(node)] = loop.begin, loop.end
        for name, inside in zip(node.results, node.carried, strict=True):
            self.values[name] = carried[inside]

    def _carried(self, node: pto.For) -> dict[str, Value]:
        """Return the possible buffers of the carried names in any trip: initial ones, and those from trips."""
        carried = {name: self.values.get(first, ()) for name, first in zip(node.carried, node.initial, strict=True)}
        if not any(isinstance(kind, pto.TileType) for kind in node.result_types):
            return carried
        while True:
            trial = _ElementReader(self.lowerer, self.pipes, self.shared, roots=self.roots, alignment=self.alignment)
            trial.values, trial.constants = {**self.values, **carried}, dict(self.constants)
            trial.placed = dict(self.placed)
            trial.next_address = dict(self.next_address)
            handed = trial.region(node.body)
            wider = {name: _union(carried[name], more) for name, more in zip(node.carried, handed, strict=False)}
            if wider == carried:
                return carried
            carried = wider

    def _while(self, node: pto.While) -> None:
        """Read a while loop: both regions form one loop, and a carried value may be any of the values."""
        carried = _union(*(self.values.get(name, ()) for name in node.initial))
        if any(isinstance(kind, pto.TileType) for kind in (*node.carried_types, *node.result_types)):
            carried = _union(carried, *self.values.values())
        loop = self.listing.begin_loop()
        self.values.update(dict.fromkeys((*node.carried, *node.arguments), carried))
        self.region(node.before)
        self.region(node.after)
        self.listing.end_loop(loop)
        self.places[id(node)] = loop.begin, loop.end
        self.values.update(dict.fromkeys(node.results, carried))

    def _branch(self, node: pto.If) -> None:
        branch = self.listing.begin_branch()
        then_values = self.region(node.then_body)
        self.listing.turn(branch)
        other = self.region(node.else_body)
        self.listing.end_branch(branch)
        self.places[id(node)] = branch.begin, branch.end
        for name, first, second in zip(node.results, then_values, other, strict=False):
            self.values[name] = _union(first, second)


def _union(*values: Value) -> Value:
    return tuple(dict.fromkeys(buffer for value in values for buffer in value))


def _filled(kind: pto.TileType, bits: int) -> int:
    """Return the bytes of the valid elements if they have no gaps, 0 if they do or the type leaves it open."""
    if kind.valid_rows is None or kind.valid_cols is None or not (kind.valid_cols == kind.cols or kind.valid_rows == 1):
        return 0
    if element_format(kind.element).bits == 4 != bits:
        return 0  # the second half of each row is empty: docs/reference/a2a3.md section 2.4
    return kind.valid_rows * kind.valid_cols * bits // 8

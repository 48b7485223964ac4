"""A `.pto` program as data: types, operations, functions.

The parser builds these, the printer writes them, the executor walks them. Every node has its source position
(`span`), which is ignored in comparisons: two spellings of one instruction are equal objects. Element types are
format names of `castsim.isa.formats` (`i16` for both `i16` and `si16`). Grammar and facts: docs/reference/pto.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Any

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, Located, Span, Warnings
from castsim.isa.formats import Saturation
from castsim.isa.pto.value_types import (
    AlignType,
    DialectOperation,
    MaskType,
    MicroOperation,
    MultiTileType,
    PartitionType,
    PointerType,
    ScalarType,
    StridedStatement,
    TileType,
    Type,
    VectorType,
    ViewType,
    is_foreign_work,
)

__all__ = [
    "AlignType",
    "DialectOperation",
    "MaskType",
    "MicroOperation",
    "MultiTileType",
    "PartitionType",
    "PointerType",
    "ScalarType",
    "StridedStatement",
    "TileType",
    "Type",
    "VectorType",
    "ViewType",
]


# Words of `.pto` text that are values of their own: rounding modes and pipes.


class RoundMode(IntEnum):
    """The `round_mode` enumeration of the PTO instruction set; NONE leaves the choice to the target."""

    NONE = 0
    RINT = 1
    ROUND = 2
    FLOOR = 3
    CEIL = 4
    TRUNC = 5
    ODD = 6


class Pipe(StrEnum):
    """Hardware pipes that flags and barriers name."""

    S = "PIPE_S"
    V = "PIPE_V"
    M = "PIPE_M"
    MTE1 = "PIPE_MTE1"
    MTE2 = "PIPE_MTE2"
    MTE3 = "PIPE_MTE3"
    ALL = "PIPE_ALL"
    MTE4 = "PIPE_MTE4"
    MTE5 = "PIPE_MTE5"
    V2 = "PIPE_V2"
    FIX = "PIPE_FIX"


# Flags and barriers between pipes (docs/reference/pto.md section 3).


@dataclass(frozen=True, slots=True)
class _Flag(Located):
    """A flag between two pipes.

    `inserted` marks a flag that the text lacks, as for barriers. `number` is the value of the id
    in `pto.set_flag_dyn[src, dst, %n]` and in such waits; `event` is then -1.
    """

    src: Pipe
    dst: Pipe
    event: int
    number: str | None = None
    inserted: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetFlag(_Flag):
    """`pto.set_flag[src, dst, id]`: signals once everything issued before it on `src` has finished."""


@dataclass(frozen=True, slots=True)
class WaitFlag(_Flag):
    """`pto.wait_flag[src, dst, id]`: holds `dst` until the matching signal arrives, and consumes it."""


@dataclass(frozen=True, slots=True)
class Barrier(Located):
    """`pto.barrier <PIPE>`: later instructions of the pipe wait until all earlier ones retired."""

    pipe: Pipe
    inserted: bool = field(default=False, compare=False, repr=False)


# Operations that name tiles and parts of tiles: no instruction, no bytes of their own but those of several tiles.
#
# Source: docs/reference/pto.md section 7.8.


@dataclass(frozen=True, slots=True)
class Subview(Located):
    """`%r = pto.subview %t[%i, %j] sizes [R, C] [valid [%vr, %vc]] : T -> T`; the result has R rows and C columns."""

    result: str
    source: str
    offsets: tuple[str, str]
    source_type: TileType
    type: TileType
    valid: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class AllocTiles(Located):
    """`%m = pto.alloc_multi_tile [addr = %a] [valid_row = %r] [valid_col = %c] : !pto.multi_tile_buf<...>`."""

    result: str
    type: MultiTileType
    address: str | None = None
    valid_row: str | None = None
    valid_col: str | None = None


@dataclass(frozen=True, slots=True)
class GetTile(Located):
    """`%t = pto.multi_tile_get %m[%k] : !pto.multi_tile_buf<...> -> T`."""

    result: str
    source: str
    slot: str
    source_type: MultiTileType

    @property
    def type(self) -> TileType:
        """The type of the result."""
        return self.source_type.tile


# The operations of a `.pto` program by which the scalar unit reads and writes memory.
#
# `castsim.isa.pto.program` tells the whole.


@dataclass(frozen=True, slots=True)
class AddPointer(Located):
    """`%q = pto.addptr %p, %n : type -> type`: a pointer advanced by `offset` elements."""

    result: str
    pointer: str
    offset: str
    type: PointerType


@dataclass(frozen=True, slots=True)
class ScalarAccess(Located):
    """One element that the scalar unit reads or writes: `load_scalar`, `store_scalar`, `tgetval`, `tsetval`.

    `base` is a pointer or a tile, `offset` counts elements; `value` is the result of a read, the operand of a write.
    """

    mnemonic: str
    base: str
    base_type: PointerType | TileType
    offset: str
    value: str
    type: ScalarType

    @property
    def reads(self) -> bool:
        """Whether it is a read."""
        return self.mnemonic in ("load_scalar", "tgetval")


@dataclass(frozen=True, slots=True)
class CacheOperation(Located):
    """`pto.fence.barrier_all` or `pto.cmo.cacheinvalid` with its operands as `text`."""

    mnemonic: str
    text: str = ""


# Operations between cores or devices in a `.pto` program.
#
# `castsim.isa.pto.program` tells the whole.


@dataclass(frozen=True, slots=True)
class ForeignOperation(Located):
    """An operation between cores or devices, of which only its values are known.

    `tokens` are the tokens after its name, `%` for each of its `operands`; results are scalars and tiles.
    """

    mnemonic: str
    operands: tuple[str, ...]
    tokens: tuple[str, ...]
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()


_INDEX = ScalarType("index")

# ----------------------------------------------------------------------------------------------------- operations
# Values are named without their leading '%'.


@dataclass(frozen=True, slots=True)
class Constant(Located):
    """`%r = arith.constant 16 : index`.

    `value` is a signed int for an integer type, a bool for `i1`, a float for a decimal of a float type (not yet rounded
    to it). An int with a float type is a bit pattern (`0x7F800000 : f32`).
    """

    result: str
    value: int | float | bool
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Arith(Located):
    """Arithmetic on equal types: `operation` is the name after `arith.` (`addi`, `select`, ...), or `math.NAME`.

    Without operands it is a number of the core, such as `pto.get_block_idx`.
    """

    result: str
    operation: str
    operands: tuple[str, ...]
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Compare(Located):
    """`%r = arith.cmpi slt, %a, %b : index`, or `arith.cmpf olt, ...` of a float type."""

    result: str
    predicate: str
    operands: tuple[str, str]
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Convert(Located):
    """A scalar width or type change: `index_cast`, `extsi`, `trunci`, `bitcast`, `fptosi`, `extf`, ... ."""

    result: str
    operation: str
    operand: str
    from_type: ScalarType
    to_type: ScalarType


@dataclass(frozen=True, slots=True)
class AllocTile(Located):
    """`%t = pto.alloc_tile [addr = %a] [valid_row = %r] [valid_col = %c] : !pto.tile_buf<...>`.

    `added` marks a tile that the assembler adds and no text has.
    """

    result: str
    type: TileType
    address: str | None = None
    valid_row: str | None = None
    valid_col: str | None = None
    added: bool = False


@dataclass(frozen=True, slots=True)
class MakeView(Located):
    """`%v = pto.make_tensor_view %p, shape = [...], strides = [...] {layout = ...} : type`; strides in elements."""

    result: str
    pointer: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    layout: str | None
    type: ViewType


@dataclass(frozen=True, slots=True)
class PartitionView(Located):
    """`%p = pto.partition_view %v, offsets = [...], sizes = [...] : type -> type`; both lists in elements."""

    result: str
    view: str
    offsets: tuple[str, ...]
    sizes: tuple[str, ...]
    source_type: ViewType
    type: PartitionType


@dataclass(frozen=True, slots=True)
class TileOperation(Located):
    """Any `pto.NAME ins(...) outs(...)` other than tcvt; `mnemonic` is NAME (`tload`, `tstore`, `tadd`, ...).

    `attributes` are all attributes of either dictionary as sorted (key, text) pairs. `of_matrix_unit` tells whether
    the mnemonic belongs to the matrix unit.
    """

    mnemonic: str
    inputs: tuple[str, ...]
    input_types: tuple[Type, ...]
    outputs: tuple[str, ...]
    output_types: tuple[Type, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    of_matrix_unit: bool = field(default=False, compare=False)

    @property
    def foreign(self) -> bool:
        """Whether another unit executes it: a tile is in another buffer, or it moves boxed ones."""
        return is_foreign_work(self.mnemonic, (*self.input_types, *self.output_types))


@dataclass(frozen=True, slots=True)
class Tcvt(Located):
    """One tile cast. `rounding` and `saturation` are None if the text gives none.

    `defines_dst` is True for the SSA spellings, in which the instruction itself creates its destination tile.
    """

    dst: str
    src: str
    dst_type: TileType
    src_type: TileType
    tmp: str | None = None
    tmp_type: TileType | None = None
    rounding: RoundMode | None = None
    saturation: Saturation | None = None
    defines_dst: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class SetValidShape(Located):
    """`pto.set_validshape %t, %r, %c : type`: gives a tile with dynamic valid extents new ones."""

    tile: str
    rows: str
    cols: str
    type: TileType


@dataclass(frozen=True, slots=True)
class For(Located):
    """`scf.for %i = %lo to %hi step %s [iter_args(%x = %init) -> (types)] [: type] { ... }`; bounds of one type."""

    variable: str
    lower: str
    upper: str
    step: str
    body: tuple[Operation, ...]
    carried: tuple[str, ...] = ()
    initial: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()
    type: ScalarType = _INDEX


@dataclass(frozen=True, slots=True)
class If(Located):
    """`scf.if %c [-> (types)] { ... } [else { ... }]`."""

    condition: str
    then_body: tuple[Operation, ...]
    else_body: tuple[Operation, ...] = ()
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition(Located):
    """`scf.condition(%c) %a, %b : types`: ends the first region of a `While`."""

    condition: str
    values: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class While(Located):
    """`scf.while (%x = %a) : (T) -> (U) { ... } do { ^bb0(%y: U): ... }`.

    `before` runs first and ends with a `Condition`, whose values are `arguments` of `after`, or the results if it is
    false; values that `after` yields become `carried` in the next trip.
    """

    carried: tuple[str, ...]
    initial: tuple[str, ...]
    before: tuple[Operation, ...]
    arguments: tuple[str, ...]
    after: tuple[Operation, ...]
    results: tuple[str, ...]
    carried_types: tuple[Type, ...]
    result_types: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Call(Located):
    """`%r = func.call @callee(%a) : (types) -> types`."""

    callee: str
    operands: tuple[str, ...]
    operand_types: tuple[Type, ...]
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class External(Located):
    """A call of a function that the program only declares: the creator of the program computes it, without cycles.

    `run` takes the operands, the uses of arguments by name, the memory (None: nothing is computed) and the position.
    """

    callee: str
    operands: tuple[str, ...]
    run: Callable[[tuple[float, ...], Mapping[str, Any], Any, Span], None]
    untimed: str
    """The reason why it has no cycles."""


@dataclass(frozen=True, slots=True)
class Yield(Located):
    """`scf.yield %a, %b : types`."""

    values: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Return(Located):
    """`return` or `func.return`; an entry function returns nothing."""

    values: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Section(Located):
    """`pto.section.vector { ... }` and similar regions. `kind` is `section.vector`, `section.cube`, `vecscope` or
    `strict_vecscope`; only the last has values of its own, `carried` inside for `initial` outside."""

    kind: str
    body: tuple[Operation, ...]
    carried: tuple[str, ...] = ()
    initial: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()


Operation = (
    Constant
    | Arith
    | Compare
    | Convert
    | AllocTile
    | Subview
    | AllocTiles
    | GetTile
    | MakeView
    | PartitionView
    | TileOperation
    | ForeignOperation
    | Tcvt
    | SetFlag
    | WaitFlag
    | Barrier
    | SetValidShape
    | AddPointer
    | ScalarAccess
    | CacheOperation
    | For
    | If
    | While
    | Condition
    | Call
    | External
    | Yield
    | Return
    | Section
    | MicroOperation
    | StridedStatement
    | DialectOperation
)


ENTRY_MARKS = ("pto.entry", "pto.kernel")
TARGET_ARCH = "pto.target_arch"
"""Attributes of functions that are kernels' entries: of tile programs, and of the micro level."""
RECORDED = "castsim.recorded"
"""Attribute of functions recorded from kernels in C++ (docs/languages/pto_cpp.md)."""


@dataclass(frozen=True, slots=True)
class Argument(Located):
    """A function argument; the name is empty in a declaration with only a type."""

    name: str
    type: Type
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Function(Located):
    """`func.func @name(args) attributes {...} { body }`; `body` is None for a declaration."""

    name: str
    arguments: tuple[Argument, ...]
    body: tuple[Operation, ...] | None
    attributes: tuple[tuple[str, str], ...] = ()
    result_types: tuple[Type, ...] = ()

    @property
    def is_entry(self) -> bool:
        """Whether the text marks it as a kernel entry."""
        return any(key in ENTRY_MARKS for key, _ in self.attributes)

    @property
    def is_recorded(self) -> bool:
        """Whether it was recorded from a kernel in C++."""
        return any(key == RECORDED for key, _ in self.attributes)

    @property
    def is_for_core(self) -> bool:
        """Whether it runs on a core: a marked entry or, if the file marks none, any function."""
        return any(key == "pto.aicore" for key, _ in self.attributes)


@dataclass(frozen=True, slots=True)
class RefusedFunction:
    """A function that could not be read, and the reason; for `is_entry` see `Function`.

    `rest` is the function without the statements that could not be read and those that use their definitions, None if
    that is not a function.
    """

    name: str
    error: CastsimError
    is_entry: bool
    rest: Function | None = None


@dataclass(frozen=True, slots=True)
class Program(Located):
    """One file. `attributes` are the module's; `warnings` come from reading and are ignored in comparisons.

    `refused` are the functions that could not be read, if the reader was to skip them. `target_arch_span` is the place
    of the value of `target_arch`, None if the file names no target.
    """

    functions: tuple[Function, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    warnings: Warnings = field(default=(), compare=False)
    refused: tuple[RefusedFunction, ...] = field(default=(), compare=False)
    target_arch_span: Span | None = field(default=None, compare=False)

    @property
    def target_arch(self) -> str | None:
        """Value of `pto.target_arch` without quotes, None if the file names no target."""
        return next((text.strip('"') for key, text in self.attributes if key == TARGET_ARCH), None)


# The regions of operations: lists of operations that belong to another one.

REGION_FIELDS = ("body", "then_body", "else_body", "before", "after")
"""Names of the fields that contain regions."""


def regions_of(node: Operation) -> tuple[Sequence[Operation], ...]:
    """Return the regions of an operation, in text order."""
    match node:
        case For() | Section():
            return (node.body,)
        case While():
            return node.before, node.after
        case If():
            return node.then_body, node.else_body
    return ()


def with_regions(node: Operation, rewrite: Callable[[Sequence[Operation]], tuple[Operation, ...]]) -> Operation:
    """Return an operation with each of its regions replaced."""
    regions = {name: rewrite(getattr(node, name)) for name in REGION_FIELDS if hasattr(node, name)}
    return replace(node, **regions) if regions else node  # type: ignore[arg-type]  # regions of a node of the class


def nodes(body: Sequence[Operation]) -> Iterator[Operation]:
    """Yield every operation of a region and of the regions in it, in text order."""
    for node in body:
        yield node
        for region in regions_of(node):
            yield from nodes(region)

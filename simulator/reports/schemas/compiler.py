"""The documents of `castsim builtin` and `castsim compiled`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from castsim.reports.schemas.keys import Bits, Bundles, Cycles, Form, Keys, Scalar, Value, absent
from castsim.reports.schemas.objects import Number, Output, StaleRead
from castsim.reports.schemas.targets import BuiltinEntry, FunctionEntry
from castsim.targets.description import Status


class TargetBuiltins(Keys):
    """The builtins of a target."""

    name: str
    """Name of the target."""
    builtins: list[BuiltinEntry]
    """The cast builtins."""
    special_functions: list[FunctionEntry]
    """The special functions."""


class BuiltinList(Form):
    """The builtins of targets."""

    NAME: ClassVar[str] = "builtin-list"

    targets: list[TargetBuiltins]
    """The targets."""


class Operations(Keys):
    """How many operations a call issues."""

    counted: int
    """As counted in the assembly."""
    documented: int | None
    """As documented; null if that is not so."""


class Called(Keys):
    """What calls gave; these keys are there if operands were given."""

    calls: int = Field(default_factory=absent)
    """How many calls the operands take."""
    total_cycles: Cycles = Field(default_factory=absent)
    """Cycles of all calls."""
    outputs: list[Output] = Field(default_factory=absent)
    """The results."""
    stale_reads: list[StaleRead] = Field(default_factory=absent)
    """Reads that came too early."""
    warnings: list[str] = Field(default_factory=absent)
    """What else happened."""


class BuiltinCall(Form, Called):
    """A cast builtin."""

    NAME: ClassVar[str] = "builtin"

    builtin: str
    """Its name."""
    target: str
    """Name of the target."""
    signature: str
    """Result and operands."""
    source_holds: str | None
    """What the source's elements are in; null if in themselves."""
    result_order: str
    """Order of the result's elements."""
    rounding: str | None
    """The rounding mode; null where nothing is rounded."""
    vpu_operations: Operations
    """Vector operations of a call."""
    bundles: Bundles
    """Bundles of a call."""
    cycles_per_call: Cycles
    """Cycles of a call."""
    status: Status
    """How well it is known."""
    note: str
    """What else is to be said; may be empty."""
    assembly: str
    """Its assembly."""


class FunctionTable(Keys):
    """A look-up table."""

    name: str
    """Name of the input that gives it."""
    function: int
    """Number of the function."""
    entries: int
    """How many entries."""
    public: bool
    """Whether its contents are published."""


class FunctionCall(Form, Called):
    """A special function."""

    NAME: ClassVar[str] = "builtin-function"

    builtin: str
    """Its name."""
    target: str
    """Name of the target."""
    signature: str
    """Result and operands."""
    kind: str
    """`sequence` or `table`."""
    values: str
    """Where values are from: `instructions`, `correctly rounded` or `none`."""
    claimed: bool | None
    """Whether they are claimed to be the chip's; null if there are none."""
    tables: list[FunctionTable]
    """The tables that it looks up."""
    operations: Operations
    """Operations of a call."""
    bundles: Bundles
    """Bundles of a call."""
    cycles_per_call: Cycles
    """Cycles of a call."""
    accuracy: str | None
    """Its accuracy as others have measured it; null if nobody has."""
    status: Status
    """How well it is known."""
    assembly: str
    """Its assembly."""


class DescriptorCall(Form):
    """A call that reads or writes a word of a descriptor."""

    NAME: ClassVar[str] = "builtin-descriptor"

    builtin: str
    """Its name."""
    target: str
    """Name of the target."""
    signature: str
    """Result and operands."""
    kind: str
    """Always `descriptor`."""
    address: int
    """Address of the word."""
    stored_word: int | None
    """What is stored; null for a read."""
    result: Scalar | None
    """What is read; null for a write, or if the word was not given."""
    bundles: Bundles
    """Bundles of a call."""
    cycles_per_call: Cycles
    """Cycles of a call."""
    status: Status
    """How well it is known."""
    assembly: str
    """Its assembly."""


class Hop(Keys):
    """A step of a path."""

    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    means: str
    """By what."""
    through: str | None
    """The format on the way; null if there is none."""
    rounding: str | None
    """Its own rounding; null if it takes that of the cast."""


class CastPath(Keys):
    """The way of a cast."""

    types: list[str]
    """Names of the formats."""
    steps: list[Hop]
    """The steps."""
    status: Status
    """How well it is known."""
    sources: list[str]
    """Where it is from."""


class CompiledHead(Keys):
    """A cast of the compiler."""

    target: str
    """Name of the target."""
    src: str
    """The source type."""
    dst: str
    """The destination type."""
    form: str
    """How the source says it."""
    reading: str
    """Whose account of a chain is followed."""
    order: str
    """Order of the result's elements."""
    rounding: str | None
    """The rounding; null where nothing is rounded."""
    roundings: list[str]
    """The roundings that it may have."""
    lowering_kind: str | None
    """How the compiler lowers it; null if it does so in none of its ways."""
    path: CastPath
    """The steps."""


class CompiledAssembly(Form, CompiledHead):
    """With `--emit`: the assembly of a cast."""

    NAME: ClassVar[str] = "compiled-emit"

    assembly: str
    """Its assembly."""


class CompiledInput(Number):
    """A value that was cast."""

    text: str
    """As it was given."""


class Account(Keys):
    """Results by one account."""

    account: str
    """Whose."""
    path: str | None
    """Its path in words; null if it has none."""
    values: list[list[Number]]
    """The results of each input."""
    poison: list[bool]
    """Whether each input gives poison, for which any result is right."""


class AccountDifference(Keys):
    """A value for which accounts differ."""

    account: str
    """The other account."""
    input_bits: Bits
    """The code that is cast."""
    input: Value
    """Its number."""
    value: Value
    """The result."""
    other_value: Value
    """The result by the other account."""


class CompiledValues(Form, CompiledHead):
    """Values through a cast of the compiler."""

    NAME: ClassVar[str] = "compiled"

    vector_operations: int
    """Vector operations of one vector."""
    bundles: Bundles
    """Bundles of one vector."""
    ir: list[str]
    """The instructions of LLVM IR."""
    inputs: list[CompiledInput]
    """The values."""
    results: list[Account]
    """The results by account."""
    differences: list[AccountDifference]
    """Where accounts differ."""


class IrCast(CompiledHead):
    """A cast of a text of LLVM IR: as `compiled` has it, or with its assembly."""

    line: int
    """Its line."""
    column: int
    """Its column."""
    written: str
    """The instruction."""
    assembly: str = Field(default_factory=absent)
    """With `--emit`: its assembly."""
    vector_operations: int = Field(default_factory=absent)
    """Vector operations of one vector."""
    bundles: Bundles = Field(default_factory=absent)
    """Bundles of one vector."""
    ir: list[str] = Field(default_factory=absent)
    """The instructions of LLVM IR."""
    inputs: list[CompiledInput] = Field(default_factory=absent)
    """The values."""
    results: list[Account] = Field(default_factory=absent)
    """The results by account."""
    differences: list[AccountDifference] = Field(default_factory=absent)
    """Where accounts differ."""


class CompiledText(Form):
    """The casts of a text of LLVM IR."""

    NAME: ClassVar[str] = "compiled-ir"

    casts: list[IrCast]
    """In the order of the text."""


class TableCell(Keys):
    """A pair of a table."""

    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    cell: str
    """What the vendor's table says."""
    path: CastPath | None
    """The path of a pair without an instruction; null for others."""


class CompiledTable(Form):
    """With `--table`: the C-level casts of a target."""

    NAME: ClassVar[str] = "compiled-table"

    target: str
    """Name of the target."""
    elements: list[str]
    """Names of the element formats."""
    cells: list[TableCell]
    """Every pair."""

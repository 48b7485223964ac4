"""The documents of `castsim builtin` and `castsim compiled`."""

from __future__ import annotations

from castsim.reports.schemas.keys import Bits, Bundles, Cycles, Form, Keys, Scalar, Value, absent, says
from castsim.reports.schemas.objects import Number, Output, StaleRead
from castsim.reports.schemas.targets import BuiltinEntry, FunctionEntry
from castsim.targets.description import Status


class TargetBuiltins(Keys):
    """The builtins of a target."""

    name: str = says("Name of the target.")
    builtins: list[BuiltinEntry] = says("The cast builtins.")
    special_functions: list[FunctionEntry] = says("The special functions.")


class BuiltinList(Form, name="builtin-list"):
    """The builtins of targets."""

    targets: list[TargetBuiltins] = says("The targets.")


class Operations(Keys):
    """How many operations a call issues."""

    counted: int = says("As counted in the assembly.")
    documented: int | None = says("As documented; null if that is not so.")


class Called(Keys):
    """What calls gave; these keys are there if operands were given."""

    calls: int = says("How many calls the operands take.", default_factory=absent)
    total_cycles: Cycles = says("Cycles of all calls.", default_factory=absent)
    outputs: list[Output] = says("The results.", default_factory=absent)
    stale_reads: list[StaleRead] = says("Reads that came too early.", default_factory=absent)
    warnings: list[str] = says("What else happened.", default_factory=absent)


class BuiltinCall(Form, Called, name="builtin"):
    """A cast builtin."""

    builtin: str = says("Its name.")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.")
    source_holds: str | None = says("What the source's elements are in; null if in themselves.")
    result_order: str = says("Order of the result's elements.")
    rounding: str | None = says("The rounding mode; null where nothing is rounded.")
    vpu_operations: Operations = says("Vector operations of a call.")
    bundles: Bundles = says("Bundles of a call.")
    cycles_per_call: Cycles = says("Cycles of a call.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")
    assembly: str = says("Its assembly.")


class FunctionTable(Keys):
    """A look-up table."""

    name: str = says("Name of the input that gives it.")
    function: int = says("Number of the function.")
    entries: int = says("How many entries.")
    public: bool = says("Whether its contents are published.")


class FunctionCall(Form, Called, name="builtin-function"):
    """A special function."""

    builtin: str = says("Its name.")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.")
    kind: str = says("`sequence` or `table`.")
    values: str = says("Where values are from: `instructions`, `correctly rounded` or `none`.")
    claimed: bool | None = says("Whether they are claimed to be the chip's; null if there are none.")
    tables: list[FunctionTable] = says("The tables that it looks up.")
    operations: Operations = says("Operations of a call.")
    bundles: Bundles = says("Bundles of a call.")
    cycles_per_call: Cycles = says("Cycles of a call.")
    accuracy: str | None = says("Its accuracy as others have measured it; null if nobody has.")
    status: Status = says("How well it is known.")
    assembly: str = says("Its assembly.")


class DescriptorCall(Form, name="builtin-descriptor"):
    """A call that reads or writes a word of a descriptor."""

    builtin: str = says("Its name.")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.")
    kind: str = says("Always `descriptor`.")
    address: int = says("Address of the word.")
    stored_word: int | None = says("What is stored; null for a read.")
    result: Scalar | None = says("What is read; null for a write, or if the word was not given.")
    bundles: Bundles = says("Bundles of a call.")
    cycles_per_call: Cycles = says("Cycles of a call.")
    status: Status = says("How well it is known.")
    assembly: str = says("Its assembly.")


class Hop(Keys):
    """A step of a path."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    means: str = says("By what.")
    through: str | None = says("The format on the way; null if there is none.")
    rounding: str | None = says("Its own rounding; null if it takes that of the cast.")


class CastPath(Keys):
    """The way of a cast."""

    types: list[str] = says("Names of the formats.")
    steps: list[Hop] = says("The steps.")
    status: Status = says("How well it is known.")
    sources: list[str] = says("Where it is from.")


class CompiledHead(Keys):
    """A cast of the compiler."""

    target: str = says("Name of the target.")
    src: str = says("The source type.")
    dst: str = says("The destination type.")
    form: str = says("How the source says it.")
    reading: str = says("Whose account of a chain is followed.")
    order: str = says("Order of the result's elements.")
    rounding: str | None = says("The rounding; null where nothing is rounded.")
    roundings: list[str] = says("The roundings that it may have.")
    lowering_kind: str | None = says("How the compiler lowers it; null if it does so in none of its ways.")
    path: CastPath = says("The steps.")


class CompiledAssembly(Form, CompiledHead, name="compiled-emit"):
    """With `--emit`: the assembly of a cast."""

    assembly: str = says("Its assembly.")


class CompiledInput(Number):
    """A value that was cast."""

    text: str = says("As it was given.")


class Account(Keys):
    """Results by one account."""

    account: str = says("Whose.")
    path: str | None = says("Its path in words; null if it has none.")
    values: list[list[Number]] = says("The results of each input.")
    poison: list[bool] = says("Whether each input gives poison, for which any result is right.")


class AccountDifference(Keys):
    """A value for which accounts differ."""

    account: str = says("The other account.")
    input_bits: Bits = says("The code that is cast.")
    input: Value = says("Its number.")
    value: Value = says("The result.")
    other_value: Value = says("The result by the other account.")


class CompiledValues(Form, CompiledHead, name="compiled"):
    """Values through a cast of the compiler."""

    vector_operations: int = says("Vector operations of one vector.")
    bundles: Bundles = says("Bundles of one vector.")
    ir: list[str] = says("The instructions of LLVM IR.")
    inputs: list[CompiledInput] = says("The values.")
    results: list[Account] = says("The results by account.")
    differences: list[AccountDifference] = says("Where accounts differ.")


class IrCast(CompiledHead):
    """A cast of a text of LLVM IR: as `compiled` has it, or with its assembly."""

    line: int = says("Its line.")
    column: int = says("Its column.")
    written: str = says("The instruction.")
    assembly: str = says("With `--emit`: its assembly.", default_factory=absent)
    vector_operations: int = says("Vector operations of one vector.", default_factory=absent)
    bundles: Bundles = says("Bundles of one vector.", default_factory=absent)
    ir: list[str] = says("The instructions of LLVM IR.", default_factory=absent)
    inputs: list[CompiledInput] = says("The values.", default_factory=absent)
    results: list[Account] = says("The results by account.", default_factory=absent)
    differences: list[AccountDifference] = says("Where accounts differ.", default_factory=absent)


class CompiledText(Form, name="compiled-ir"):
    """The casts of a text of LLVM IR."""

    casts: list[IrCast] = says("In the order of the text.")


class TableCell(Keys):
    """A pair of a table."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    cell: str = says("What the vendor's table says.")
    path: CastPath | None = says("The path of a pair without an instruction; null for others.")


class CompiledTable(Form, name="compiled-table"):
    """With `--table`: the C-level casts of a target."""

    target: str = says("Name of the target.")
    elements: list[str] = says("Names of the element formats.")
    cells: list[TableCell] = says("Every pair.")

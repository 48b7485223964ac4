"""The documents of `castsim builtin` and `castsim compiled`, and of commands on program texts, as `asm` and `lint`."""

from __future__ import annotations

from typing import Annotated

from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Bits,
    Bundles,
    Bytes,
    Cycles,
    Hexadecimal,
    Line,
    LintEntry,
    Name,
    Number,
    Output,
    Scalar,
    StaleRead,
    Value,
)
from castsim.reports.schemas.targets import BuiltinEntry, FunctionEntry
from castsim.targets.description import Status


class TargetBuiltins(Keys):
    """The builtins of a target."""

    name: str = says("Name of the target.")
    builtins: list[BuiltinEntry] = says("The cast builtins.")
    special_functions: list[FunctionEntry] = says("The special functions.")


class BuiltinList(CommandDocument, name="builtin-list"):
    """The builtins of targets."""

    targets: list[TargetBuiltins] = says("The targets.")


class Operations(Keys):
    """How many operations a call issues."""

    counted: int = says("As counted in the assembly.")
    documented: int | None = says("As documented; null if that is not so.")


class Called(Keys):
    """What calls gave; these keys are there if operands were given."""

    calls: int = says("How many calls the operands take.", optional=True)
    total_cycles: Cycles = says("Cycles of all calls.", optional=True)
    outputs: list[Output] = says("The results.", optional=True)
    stale_reads: list[StaleRead] = says("Reads that came too early.", optional=True)
    warnings: list[str] = says("What else happened.", optional=True)


class BuiltinCall(CommandDocument, Called, name="builtin"):
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


class FunctionCall(CommandDocument, Called, name="builtin-function"):
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


class DescriptorCall(CommandDocument, name="builtin-descriptor"):
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


class CompiledAssembly(CommandDocument, CompiledHead, name="compiled-emit"):
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


class CompiledValues(CommandDocument, CompiledHead, name="compiled"):
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
    assembly: str = says("With `--emit`: its assembly.", optional=True)
    vector_operations: int = says("Vector operations of one vector.", optional=True)
    bundles: Bundles = says("Bundles of one vector.", optional=True)
    ir: list[str] = says("The instructions of LLVM IR.", optional=True)
    inputs: list[CompiledInput] = says("The values.", optional=True)
    results: list[Account] = says("The results by account.", optional=True)
    differences: list[AccountDifference] = says("Where accounts differ.", optional=True)


class CompiledText(CommandDocument, name="compiled-ir"):
    """The casts of a text of LLVM IR."""

    casts: list[IrCast] = says("In the order of the text.")


class TableCell(Keys):
    """A pair of a table."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    cell: str = says("What the vendor's table says.")
    path: CastPath | None = says("The path of a pair without an instruction; null for others.")


class CompiledTable(CommandDocument, name="compiled-table"):
    """With `--table`: the C-level casts of a target."""

    target: str = says("Name of the target.")
    elements: list[str] = says("Names of the element formats.")
    cells: list[TableCell] = says("Every pair.")


# The documents of commands on texts: `asm`, `disasm`, `expand`, `latency`, `lint`, `record`, `schedule` and others.


class Assembled(CommandDocument, name="asm"):
    """An assembled program."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    bundles: Bundles = says("Its length.")
    size_bytes: Bytes = says("Size of the code.")
    code: Hexadecimal = says("The code.")
    facts_assumed: list[str] = says("Positions of the encoding that no source states.")
    output: str | None = says("The file that it was written to; null if it was not written.")


class CanonicalText(CommandDocument, name="asm-text"):
    """With `--text`: the canonical text of a program."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    text: str = says("The text.")
    output: str | None = says("The file that it was written to; null if it was not written.")


class Recorded(CommandDocument, name="record"):
    """A kernel in C++ as the `.pto` program of what it did."""

    program: str = says("The kernel.")
    blocks: Annotated[int, ("minimum", 1)] = says("How many cores the kernel was told that there are.")
    statements: Annotated[int, ("minimum", 0)] = says("How many statements the function of the program has.")
    text: str = says("The program.")
    output: str | None = says("The file that it was written to; null if it was not written.")


class DisassembledLine(Keys):
    """A bundle of a binary."""

    address: int = says("Its address in bytes.")
    code: Hexadecimal = says("Its code.")
    text: str = says("Its text.")
    labels: list[str] = says("Labels in front of it.")
    directives: list[str] = says("Directives in front of it.")
    known: bool = says("Whether it is a bundle of the target.")
    remark: str | None = says("What else is to be said; null for nothing.")


class Disassembled(CommandDocument, name="disasm"):
    """A disassembled binary."""

    file: str = says("The binary.")
    target: str = says("Name of the target.")
    size_bytes: Bytes = says("Size of the code.")
    unknown_bundles: Bundles = says("How many lines are not bundles of the target.")
    lines: list[DisassembledLine] = says("The bundles.")
    end_labels: list[str] = says("Labels behind the last one.")
    output: str | None = says("The file that the text was written to; null if it was not written.")


class Expanded(CommandDocument, name="expand"):
    """A program of tile operations as one of vector instructions."""

    file: str = says("The program.")
    out: str | None = says("The file that the text was written to; null if it was not written.")
    program: str = says("The text.")


class Distance(Keys):
    """The distance of two instructions."""

    producer: str = says("The first instruction.")
    consumer: str = says("The second instruction.")
    register_: str | None = says("What both share; null if only issue rules are about them.", alias="register")
    consumer_operand: str | None = says("Which operand of the second it is; null as `register`.")
    distance_bundles: Bundles | None = says("Bundles until the new value is read; null as `register`.")
    minimum_bundles: Bundles | None = says("The least distance by issue rules; null if there is none.")
    producer_stage: str | None = says("The stage of the write; null where stages do not decide.")
    consumer_stage: str | None = says("The stage of the read; null where stages do not decide.")
    entry_port: str | None = says("The port of the read; null where stages do not decide.")
    rule: str = says("The rules that decide.")
    source: str = says("Where they are from.")


class Latency(CommandDocument, name="latency"):
    """The distances of pairs of instructions."""

    pairs: list[Distance | None]
    """One entry for each pair; null where nothing is shared and no rule is about it."""


class Notice(Keys):
    """A notice of the linter, which breaks no rule."""

    kind: str = says("What it is about.", "rule")
    bundle: int = says("Number of the bundle, from 0.")
    line: Line = says("Line of the source.", "span.line")
    message: str = says("The notice in words.")


class Lint(CommandDocument, name="lint"):
    """What the linter found."""

    program: str = says("The file.")
    target: str = says("Name of the target.")
    rules: list[str] = says("The rules that it checks.")
    lint: list[LintEntry] = says("The certain findings.")
    lint_possible: list[LintEntry] = says("Findings that depend on the path, on predicates or on start values.")
    notices: list[Notice] = says("Notices.")


class Length(Keys):
    """A number of bundles."""

    static: Bundles = says("In the text.")
    executed: Bundles | None = says("In a run; null if that is not known.")


class Removed(Keys):
    """An instruction that was left out."""

    line: Line = says("Line of the source.")
    instruction: str = says("The instruction.")


class Schedule(CommandDocument, name="schedule"):
    """A scheduled program."""

    file: str = says("The source.")
    target: str = says("Name of the target.")
    output: str | None = says("The file that it was written to; null if it was not written.")
    method: str = says("How loops were scheduled.")
    bundles: Length = says("Its length.")
    padding: Length = says("The length with one instruction a bundle and NOPs.")
    registers: dict[Name, list[str]] = says("The registers of each virtual one.")
    removed: list[Removed] = says("Instructions that were left out.")
    program: str = says("The text.")


class MovesBlock(Keys):
    """A block that moves lanes."""

    first_line: Line = says("Its first line.")
    last_line: Line = says("Its last line.")
    reason_kept: str | None = says("Why it stays; null if it was written anew.")
    removed: dict[Name, int] = says("How many of each instruction were removed.")
    vector_operations_before: int = says("Vector operations before.")
    vector_operations_after: int = says("Vector operations after.")
    bundles_before: Bundles = says("Length before.")
    bundles_after: Bundles = says("Length after.")


class Unswizzled(CommandDocument, name="unswizzle"):
    """A program without the moves of lanes that it can do without."""

    program: str = says("The file.")
    target: str = says("Name of the target.")
    changed: bool = says("Whether anything was removed.")
    cycles_before: Cycles = says("Cycles before.")
    cycles_after: Cycles = says("Cycles after.")
    cycles_saved: Cycles = says("The difference.")
    outputs_unchanged: dict[Name, bool] = says("Whether each output is the same, bit by bit.")
    blocks: list[MovesBlock] = says("The blocks that move lanes.")
    text: str = says("The new program.")
    output: str | None = says("The file that it was written to; null if it was not written.")

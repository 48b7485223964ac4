"""Execution of `castsim builtin NAME`: the assembly of a cast or a special function, and its values; JSON and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from castsim.commands.option_parsers import scalar
from castsim.commands.outcome import CommandOutcome, plain
from castsim.execution.input_data import ArgumentUse, make_inputs, read_input, write_array
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Codes, Format, format_named
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.run_report import output_of
from castsim.reports.schemas.keys import Bundles, Cycles, Output, Scalar, StaleRead
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import FunctionKind, ResultOrder, SpecialFunction
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_compiler.builtin_calls import (
    Builtin,
    BuiltinResult,
    FunctionProgram,
    FunctionResult,
    call,
    call_function,
    descriptor_call,
    emitted,
    function_program,
)
from castsim.tools.tpc_compiler.builtin_calls import DescriptorCall as CalledDescriptor
from castsim.tools.tpc_compiler.builtin_sequences import INPUT, OUTPUT


class Operations(Keys):
    """Numbers of operations that a call issues."""

    counted: int = says("Number of operations in the assembly.")
    documented: int | None = says("Documented number of operations; null if there is none.")


class Called(Keys):
    """Results of calls; these keys exist if operands were given."""

    calls: int = says("Number of calls for these operands.", optional=True)
    total_cycles: Cycles = says("Cycles of all calls.", optional=True)
    outputs: list[Output] = says("The results.", optional=True)
    stale_reads: list[StaleRead] = says("Reads that are too early.", optional=True)
    warnings: list[str] = says("Warnings about the calls.", optional=True)


class NamedBuiltin(Keys):
    """The name of a builtin, and where it exists."""

    builtin: str = says("Its name.", "row.builtin")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.", "row.signature")


class BuiltinCall(NamedBuiltin, CommandDocument, Called, name="builtin", version=2):
    """A cast builtin."""

    source_holds: str | None = says(
        "Meaning of the source's elements; null if they are plain elements.", "built.signature.source.held"
    )
    result_order: str = says("Order of the result's elements.", "row.result_order")
    rounding: str | None = says("The rounding mode; null if nothing is rounded.", "built.rounding")
    vpu_operations: Operations = says("Vector operations of a call.")
    bundles: Bundles = says("Bundles of a call.", lambda builtin: len(builtin.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    status: Status = says("Evidence for the row.", "row.status")
    note: str = says("A note; may be empty.", "row.note")
    assembly: str = says("Its assembly.")


def builtin_document(builtin: Builtin, text: str, result: BuiltinResult | None, files: Mapping[str, Path]) -> Document:
    """Return a builtin: its description, the operations of one call, its assembly; with a result, also its values."""
    operations = Operations.of(counted=builtin.vector_operations, documented=builtin.row.vector_operations)
    called = _called(result, builtin.built.signature.result.format, files)
    return BuiltinCall.of(builtin, vpu_operations=operations, assembly=text, **called)


def _called(result: BuiltinResult | FunctionResult | None, fmt: str, files: Mapping[str, Path]) -> Document:
    """Return the results of calls, empty if there were none."""
    if result is None:
        return {}
    return Called.of(
        calls=result.calls,
        total_cycles=result.cycles,
        outputs=[output_of(name, array, fmt, files) for name, array in result.outputs.items()],
        stale_reads=result.stale_reads,
        warnings=result.warnings,
    )


_FROM_INSTRUCTIONS, _ROUNDED, _NONE = "instructions", "correctly rounded", "none"


class FunctionTable(Keys):
    """A look-up table."""

    name: str = says("Name of the input that gives it.", "table")
    function: int = says("Number of the function.")
    entries: int = says("Number of entries.")
    public: bool = says("Whether its contents are public.", lambda _: False)


class FunctionCall(NamedBuiltin, CommandDocument, Called, name="builtin-function", version=2):
    """A special function."""

    kind: str = says("`sequence` or `table`.", "row.kind")
    values: str = says("Source of the values: `instructions`, `correctly rounded` or `none`.")
    claimed: bool | None = says("Whether the values are claimed to equal the chip's; null if there are none.")
    tables: list[FunctionTable] = says("The look-up tables that it reads.")
    operations: Operations = says("Operations of a call.")
    bundles: Bundles = says("Bundles of a call.", lambda program: len(program.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    accuracy: str | None = says(of=lambda program: program.row.accuracy or None)
    """Its accuracy as measured by others; null if no measurement exists."""
    status: Status = says("Evidence for the row.", "row.status")
    assembly: str = says("Its assembly.")


def function_document(program: FunctionProgram, result: FunctionResult | None, files: Mapping[str, Path]) -> Document:
    """Return a function: operations of one call, origin of its values, its assembly; with a result, also its values."""
    return FunctionCall.of(
        program,
        values=_NONE if result is None else _FROM_INSTRUCTIONS if result.claimed else _ROUNDED,
        claimed=None if result is None else result.claimed,
        tables=[FunctionTable.of(table, function=table.function(program.target)) for table in program.tables],
        operations=Operations.of(counted=program.operations, documented=program.row.operations),
        assembly=program.text() if result is None else result.text,
        **_called(result, "f32", files),
    )


class DescriptorCall(NamedBuiltin, CommandDocument, name="builtin-descriptor", version=2):
    """A call that reads or writes a word of a descriptor."""

    kind: str = says("Always `descriptor`.", "row.kind")
    address: int = says("Address of the word.")
    stored_word: int | None = says("The stored word; null for a read.", "stored")
    result: Scalar | None = says("The word that is read; null for a write, or if no word was given.")
    bundles: Bundles = says("Bundles of a call.", lambda call: len(call.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    status: Status = says("Evidence for the row.", "row.status")
    assembly: str = says("Its assembly.", lambda call: call.text())


@dataclass(frozen=True, slots=True)
class BuiltinRequest:
    """A builtin to show or to call: its inputs and numbers as typed, by name, and the folder for outputs."""

    name: str
    target: VliwTarget
    rounding: str | None
    inputs: Mapping[str, str]
    args: Mapping[str, str]
    emit: bool
    out: str | None


def emit_or_call(request: BuiltinRequest) -> CommandOutcome:
    """Show the assembly of a builtin, and its results if there is an input.

    Raises:
        ReadError, IllegalError: see `castsim.tools.builtins.command.execute`.
    """
    builtin = emitted(request.name, request.target, rounding=request.rounding)
    x, args = _given(request, builtin)
    if x is None and request.out is not None:
        raise ReadError("--out has nothing to write without --in", legal=("--in x=FILE.npy|random:SEED|zeros",))
    result = None if x is None else call(builtin, x, args)
    assembly = builtin.text(1, args or None) if result is None else result.text
    files = {} if result is None else _written(request.out, {OUTPUT: result.outputs[OUTPUT]})
    document = builtin_document(builtin, assembly, result, files)

    return CommandOutcome(
        document,
        lambda _: plain(assembly) if request.emit else builtin_text(builtin, document, result),
        code=1 if result is not None and result.stale_reads else 0,
    )


def _given(request: BuiltinRequest, builtin: Builtin) -> tuple[Codes | None, Mapping[str, int | float]]:
    """Return the input array and the numbers; `--in` may also give numbers.

    Raises:
        ReadError: a name is unknown, a number cannot be parsed, or an input cannot be read.
    """
    named = builtin.built.signature.scalar
    numbers = set() if named is None else {named[0]}
    inputs = dict(request.inputs)
    texts = dict(request.args) | {name: inputs.pop(name) for name in numbers & inputs.keys()}
    args = {name: scalar(name, text) for name, text in texts.items()}
    source = builtin.built.signature.source
    text = inputs.get(INPUT, "")
    if text and text != "zeros" and not text.startswith("random:"):
        return read_input(text, INPUT), args  # any number of calls
    return make_inputs(inputs, {INPUT: _use((source.elements,), format_named(source.format))}).get(INPUT), args


def emit_or_call_function(request: BuiltinRequest, row: SpecialFunction) -> CommandOutcome:
    """Show the assembly of a special function, and its results if there are operands.

    Raises:
        ReadError: an operand, table or number is invalid.
        IllegalError: its instructions are not public and its values cannot be computed.
    """
    if request.rounding is not None:
        raise ReadError(
            f"--rounding applies only to casts; {row.builtin} uses the mode in the rounding register",
            legal=("nothing",),
        )
    if row.kind is FunctionKind.DESCRIPTOR:
        return _descriptor(request, row)
    program = function_program(row, request.target)
    operands, tables = _operands(request, program)
    if not operands and (tables or request.out is not None):
        legal = [f"--in {name}=FILE.npy|random:SEED|zeros" for name in program.operands]
        raise ReadError("no operands to compute with", legal=legal)
    result = call_function(program, operands, tables) if operands else None
    files = {} if result is None else _written(request.out, result.outputs)
    content = function_document(program, result, files)

    return CommandOutcome(
        content,
        lambda _: plain(str(content["assembly"])) if request.emit else function_text(program, content, result),
        code=1 if result is not None and result.stale_reads else 0,
    )


def _descriptor(request: BuiltinRequest, row: SpecialFunction) -> CommandOutcome:
    if request.out is not None:
        raise ReadError(f"--out has nothing to write: {row.builtin} has no array", legal=("--json FILE",))
    numbers = {**request.inputs, **request.args}
    call = descriptor_call(row, request.target, {name: scalar(name, text) for name, text in numbers.items()})

    return CommandOutcome(
        DescriptorCall.of(call), lambda _: plain(call.text()) if request.emit else descriptor_text(call)
    )


def _operands(request: BuiltinRequest, program: FunctionProgram) -> tuple[dict[str, Codes], dict[str, Codes]]:
    """Return the operands and the tables from the command line.

    Raises:
        ReadError: a name is unknown, or an input cannot be read.
    """
    inputs = request.inputs
    lanes = program.target.registers.vector_bytes * 8 // FORMATS["f32"].bits
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(program.operands, (lanes,))
    shapes |= {table.table: (table.entries, table.columns) for table in program.tables}
    uses = {name: _use(shape) for name, shape in shapes.items()}
    generated = {
        n: text for n, text in inputs.items() if n not in uses or text == "zeros" or text.startswith("random:")
    }
    operands = make_inputs(generated, uses)
    operands |= {name: read_input(text, name) for name, text in inputs.items() if name not in generated}
    for name, text in request.args.items():
        if name not in program.operands or name in operands:
            raise ReadError(f"--arg {name} is not one of the missing operands", legal=program.operands)
        operands[name] = np.full((1,), np.float32(scalar(name, text)))
    order = [name for name in program.operands if name in operands]
    return {name: operands[name] for name in order}, {name: operands[name] for name in operands if name not in order}


def _use(shape: tuple[int, ...], fmt: Format = FORMATS["f32"]) -> ArgumentUse:
    elements = int(np.prod(shape))
    return ArgumentUse(format=fmt, elements=elements, padded={elements}, shapes={shape}, needs_input=True, stored=False)


def _written(out: str | None, outputs: Mapping[str, Codes]) -> dict[str, Path]:
    """Write the outputs if requested."""
    files = {} if out is None else {name: Path(out) / f"{name}.npy" for name in outputs}
    for name, path in files.items():
        write_array(path, outputs[name])
    return files


# What calls of builtins and special functions gave, as lines of text.


def _called_lines(
    content: Mapping[str, Any], result: BuiltinResult | FunctionResult | None, operand: str, *notes: str
) -> Iterator[str]:
    """Yield the results of calls, however called: outputs of the document, warnings, reads that came too early.

    `notes` precede the outputs.
    """
    if result is None:
        yield f"values: not computed; --in {operand}=FILE.npy|random:SEED|zeros calls it"
        return
    yield f"{result.calls} call{'s' if result.calls > 1 else ''}, {result.cycles} cycles"
    yield from notes
    for output in content["outputs"]:
        shape = " x ".join(map(str, output["shape"]))
        yield f"output {output['name']}: {output['format']} [{shape}], sha256 {output['sha256']}"
        yield f"  written to {output['file']}" if output["file"] else "  not written; --out DIR writes DIR/NAME.npy"

    yield from (f"warning: {warning}" for warning in result.warnings)
    if not result.stale_reads:
        yield "stale reads: none"
    yield from (read.sentence() for read in result.stale_reads)


_ORDERS = {
    ResultOrder.LINEAR: "element i of the result from element i of the sources",
    ResultOrder.INTERLEAVED: "element r * i + k of the result from element i of source register k of r",
    ResultOrder.SPLIT: "element i of result register k of r from element r * i + k of the source",
    ResultOrder.UNDEFINED: "not documented",
}


def builtin_text(builtin: Builtin, document: Mapping[str, Any], result: BuiltinResult | None) -> Text:
    """Return one builtin and the results of its calls; `document` is the same as JSON. Lines are never wrapped."""
    return _unfolded([*_builtin(builtin, document), *_called_lines(document, result, "x")])


def _unfolded(lines: list[str]) -> Text:
    return Text("\n".join(lines), no_wrap=True)


def _builtin(builtin: Builtin, document: Mapping[str, Any]) -> Iterator[str]:
    row = builtin.row
    yield f"{row.builtin} on {builtin.target.name} ({builtin.target.title})"
    yield f"signature: {row.signature}"
    yield f"result order: {row.result_order}, {_ORDERS[row.result_order]}"
    yield f"VPU operations: {builtin.vector_operations} counted in the run, {row.vector_operations} documented"
    bundles, cycles = len(builtin.kernel.body), builtin.timing.total
    yield f"one call: {bundles} bundles with loads and stores, {cycles} cycles to the end"
    yield f"rounding: {builtin.built.rounding}"
    source = builtin.built.signature.source
    if source.held is not None:
        bits = FORMATS[source.held].bits
        yield f"elements of x: {source.format} with the code of {source.held} in the lower {bits} bits, 0 above"
    if row.note:
        yield f"note ({row.status.value}): {row.note}"
    yield ""
    yield from (f"  {line}" for line in document["assembly"].splitlines())
    yield ""


def function_text(program: FunctionProgram, content: Document, result: FunctionResult | None) -> Text:
    """Return a special function and the results of its calls as text; `content` is its JSON. Lines are not wrapped."""
    claimed = result is not None and result.claimed
    values = "computed by the instructions" if claimed else "correctly rounded, not claimed to be the chip's"
    return _unfolded([*_function(program, content), *_called_lines(content, result, "NAME", f"values: {values}")])


def _function(program: FunctionProgram, content: Document) -> Iterator[str]:
    row = program.row
    yield f"{row.builtin} on {program.target.name} ({program.target.title})"
    yield f"signature: {row.signature}"
    counts = f"operations: {program.operations} counted, {row.operations} documented"
    inferred = "" if program.in_published_counts else "; order and operands are inferred, cycles with them"
    yield f"{counts}{inferred}"
    stored = "bundles with loads and stores" if program.lanes is None else "bundles"
    yield f"one call: {len(program.kernel.body)} {stored}, {program.timing.total} cycles to the end"
    for table in program.tables:
        contents = f"{table.entries} entries of c0, c1, c2; contents not public"
        yield f"table {table.table}, function id {table.function(program.target)}: {contents}"
    if row.accuracy:
        yield f"accuracy, measured by others: {row.accuracy}"
    yield ""
    yield from (f"  {line}" for line in str(content["assembly"]).splitlines())
    yield ""


def descriptor_text(call: CalledDescriptor) -> Text:
    """Return a call that reads or writes a descriptor word as text; lines are not wrapped."""
    did = "read" if call.stored is None else f"set to {call.stored:#x}"
    lines = [
        f"{call.row.builtin} on {call.target.name} ({call.target.title})",
        f"signature: {call.row.signature}",
        f"configuration word {call.address:#x}: {did}",
        f"one call: {len(call.kernel.body)} bundles, {call.timing.total} cycles to the end",
        "",
        *(f"  {line}" for line in call.text().splitlines()),
        "",
    ]
    if call.stored is None:
        unknown = "not computed; --arg word=NUMBER sets the content of the descriptor"
        lines.append(f"result: {unknown if call.result is None else call.result}")
    return _unfolded(lines)

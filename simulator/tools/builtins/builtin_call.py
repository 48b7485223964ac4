"""Execution of `castsim builtin NAME`: the assembly of a cast or a special function, and its values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from castsim.commands.option_parsers import scalar
from castsim.commands.outcome import CommandOutcome, plain
from castsim.execution.input_data import ArgumentUse, make_inputs, read_input, write_array
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Codes, Format, format_named
from castsim.targets.tpc_compiler import FunctionKind, SpecialFunction
from castsim.targets.vliw import VliwTarget
from castsim.tools.builtins.report import (
    DescriptorCall,
    builtin_document,
    builtin_text,
    descriptor_text,
    function_document,
    function_text,
)
from castsim.tools.tpc_compiler.builtin_calls import (
    Builtin,
    FunctionProgram,
    call,
    call_function,
    descriptor_call,
    emitted,
    function_program,
)
from castsim.tools.tpc_compiler.builtin_sequences import INPUT, OUTPUT


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

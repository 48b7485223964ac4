"""Kernels of the compiler, run on arrays; calls of TPC-C's cast builtins and special functions."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from struct import pack, unpack

import numpy as np

from castsim.execution.input_data import arrayed
from castsim.execution.timing import Timing
from castsim.execution.tree import Tree, issued
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError, WarningKind, Warnings, WarningText, arguments_checked
from castsim.isa.formats import FORMATS, Codes, format_named
from castsim.isa.tpc.program import Slot, TpcProgram
from castsim.machines.vliw.assembled import Ran, assemble
from castsim.machines.vliw.assembled import execute as run_assembled
from castsim.machines.vliw.fast_engine import simulate_bundles
from castsim.machines.vliw.findings import StaleRead
from castsim.machines.vliw.lookup_tables import computed_by, rounded
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes, codes_from_array
from castsim.targets.description import with_options
from castsim.targets.loader import Target
from castsim.targets.tpc_compiler import (
    BuiltinRow,
    FunctionKind,
    FunctionTable,
    ResultOrder,
    SpecialFunction,
    descriptors_of,
    function_tables,
)
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_compiler.builtin_sequences import (
    INPUT,
    OUTPUT,
    Built,
    Vectors,
    build,
    builtin_target,
    find_builtin,
)
from castsim.tools.tpc_compiler.code_generation import ScheduledKernel, Sequence, schedule
from castsim.tools.tpc_compiler.special_function_bodies import FUNCTIONS, OPERANDS, SequenceWriter

# Running kernels on arrays: what they compute, what they issue, and what the checked mode says of them.

MAX_BUNDLES = 10**9
"""Maximum number of bundles of a run of a compiled program."""
_UNCOUNTED = ("mov", "halt")
"""VPU instructions that are not operations of a cast: copies and zeroing of registers, the end."""


@dataclass(frozen=True, slots=True)
class KernelResult:
    """The result of running a kernel.

    `outputs` are codes by name, shape (tiles, elements of a tile). `vector_operations` counts the issued instructions
    of the vector slot per tile, without moves of whole registers. `tree` is the issued program, ready for an engine.
    """

    outputs: Mapping[str, Codes]
    tiles: int
    vector_operations: int
    stale_reads: tuple[StaleRead, ...]
    warnings: Warnings
    tree: Tree
    text: str


def execute(
    kernel: ScheduledKernel,
    inputs: Mapping[str, Codes],
    scalars: Mapping[str, int | float] | None = None,
    *,
    target: VliwTarget | None = None,
    checked: bool = True,
) -> KernelResult:
    """Run a kernel over arrays, with as many tiles as they need.

    Args:
        kernel: the return value of `schedule`.
        inputs: codes, or numbers in the native dtype, of any shape, for each input; the last tile is padded with
            zeros, as are inputs with fewer tiles than others.
        scalars: numbers by name.
        target: replaces the kernel's own target, with other options.
        checked: collect stale reads.

    Raises:
        ReadError: an input is missing, unknown, empty or of another dtype, or a scalar is.
        IllegalError: the target rejects an instruction, or its values.
    """
    chosen = kernel.target if target is None else target
    arrays = {name: _codes(kernel, name, array) for name, array in inputs.items()}
    sizes = {placed.port.name: placed.elements for placed in kernel.ports if placed.direction == "in"}
    missing = [name for name in sizes if name not in arrays]
    if missing:
        raise ReadError(f"no values for {', '.join(missing)}", legal=tuple(sizes))
    tiles = max((-(-array.size // sizes[name]) for name, array in arrays.items()), default=1)
    text = kernel.text(tiles, scalars or {})
    given = {name: _tiled(kernel, name, array, tiles * sizes[name]) for name, array in arrays.items()}
    ran, operations = _ran(kernel.name, text, chosen, given, values=True, checked=checked)
    outputs = {
        placed.port.name: codes_from_array(ran.outputs[placed.port.name], format_named(placed.port.format)).reshape(
            tiles, placed.elements
        )
        for placed in kernel.ports
        if placed.direction == "out"
    }
    return KernelResult(outputs, tiles, operations // tiles, ran.stale_reads, ran.warnings, ran.tree, text)


def issue(kernel: ScheduledKernel, *, target: VliwTarget | None = None) -> KernelResult:
    """Run one tile of a kernel without values: its issued instructions and counts; no inputs, no outputs."""
    text = kernel.text()
    chosen = kernel.target if target is None else target
    ran, operations = _ran(kernel.name, text, chosen, {}, values=False, checked=False)
    return KernelResult({}, 1, operations, ran.stale_reads, ran.warnings, ran.tree, text)


def _ran(
    name: str, text: str, target: VliwTarget, inputs: Mapping[str, Codes], *, values: bool, checked: bool = True
) -> tuple[Ran, int]:
    """Run a program; also return the vector operations that it issued."""
    assembled = assemble(text, f"<{name}>", target, {})
    ran = run_assembled(assembled, inputs, values=values, checked=checked, max_bundles=MAX_BUNDLES)
    return ran, vector_operations(ran.tree, assembled.program)


def vector_operations(tree: Tree, program: TpcProgram) -> int:
    """Return the number of issued vector instructions, without moves of whole registers and HALT."""
    counted = [
        bundle.slots[Slot.VPU] is not None and bundle.slots[Slot.VPU].mnemonic not in _UNCOUNTED  # type: ignore[union-attr]
        for bundle in program.bundles
    ]
    return sum(trips for trips, lowered in issued(tree.root) if counted[lowered.instruction])


def _codes(kernel: ScheduledKernel, name: str, array: Codes) -> Codes:
    """Return the codes of an input, flat."""
    formats = {placed.port.name: placed.port.format for placed in kernel.ports if placed.direction == "in"}
    if name not in formats:
        raise ReadError(f"there is no input '{name}'", legal=formats or ("none",))
    fmt = format_named(formats[name])
    array = np.asarray(array)
    if array.size == 0:
        raise ReadError(f"input '{name}' is empty")
    try:
        if array.dtype == code_dtype(fmt):
            return array.reshape(-1)
        return codes_from_array(array, fmt).reshape(-1)
    except ReadError as error:
        raise ReadError(f"input '{name}': {error.message}", legal=error.legal) from None


def _tiled(kernel: ScheduledKernel, name: str, codes: Codes, size: int) -> Codes:
    fmt = next(format_named(placed.port.format) for placed in kernel.ports if placed.port.name == name)
    filled = np.zeros(size, code_dtype(fmt))
    filled[: codes.size] = codes
    return array_from_codes(filled, fmt)


_LANE_RULE = "unpacked_lane_order"


@dataclass(frozen=True, slots=True)
class Builtin:
    """A builtin as a program for one target.

    `issued` is one call, without values; `timing` is its cycles, including loads and stores.
    """

    built: Built
    target: VliwTarget
    kernel: ScheduledKernel
    issued: KernelResult
    timing: Timing

    @property
    def row(self) -> BuiltinRow:
        """Name, signature, result order and the vendor's operation count."""
        return self.built.row

    @property
    def vector_operations(self) -> int:
        """VPU operations of a call, counted at issue."""
        return self.issued.vector_operations

    def text(self, calls: int = 1, args: Mapping[str, int | float] | None = None) -> str:
        """Return the assembly of a number of calls, as `castsim run` takes it."""
        head = f"// {self.row.builtin}: {self.row.signature}\n// result order: {self.row.result_order}\n"
        return head + self.kernel.text(calls, args)


@dataclass(frozen=True, slots=True, repr=False)
class BuiltinResult:
    """The results of calls of a builtin.

    `outputs` maps `y` to an array, native or codes: the elements of a call, or one row of them per call.
    """

    builtin: Builtin
    """The builtin."""
    outputs: Mapping[str, Codes]
    calls: int
    """Number of calls."""
    vector_operations: int
    """VPU operations of a call, counted during execution."""
    stale_reads: tuple[StaleRead, ...]
    """Reads that were too early and returned a register's old value."""
    warnings: Warnings
    """Warnings about surprising behaviour of the calls."""
    timing: Timing
    """Everything that was timed, in cycles."""
    text: str
    """The executed assembly."""

    def __repr__(self) -> str:
        outputs = "".join(f", {name} {arrayed(array)}" for name, array in self.outputs.items())
        return f"<BuiltinResult of {self.calls} calls: {self.cycles} cycles{outputs}>"

    @property
    def cycles(self) -> int:
        """Cycles of all calls together, including loads and stores."""
        return self.timing.total


def emitted(name: str, target: str | Path | Target, *, rounding: str | None = None) -> Builtin:
    """Return a builtin as assembly, with its operation count and cycles, without calling it.

    Args:
        name: with or without `__builtin_cast_`.
        target: name, path of a description, or a loaded target.
        rounding: the build option of the helpers on generations that have one, else the initial value of the rounding
            register; None: the default of the helpers, the register's reset value.

    Raises:
        ReadError: the target or the builtin is unknown.
        IllegalError: the target lacks the builtin or this rounding for it, or it is a special function.
    """
    chosen = builtin_target(target)
    row = find_builtin(name, chosen)
    built = build(row, chosen, rounding)
    placed = _placing(row, chosen)
    kernel = schedule(built.sequence, placed, built.setup, row.builtin)
    issued = issue(kernel)
    return Builtin(built, chosen, kernel, issued, simulate_bundles(issued.tree, chosen))


@arguments_checked
def builtin(
    name: str,
    target: str | Path | Target,
    x: Codes,
    *,
    args: Mapping[str, int | float] | None = None,
    rounding: str | None = None,
) -> BuiltinResult:
    """Call a builtin, once for each set of elements in `x`.

    Args:
        name: with or without `__builtin_cast_`.
        target: name, path of a description, or a loaded target.
        x: the elements of all source registers in sequence, of one call or of several; native dtype or codes.
        args: values of the scalar arguments, `shift` (int) or `scale` (float).
        rounding: see `emitted`.

    Returns:
        An array of the elements of a call, or of a row of them per call, and the cycles of all calls.

    Raises:
        ReadError: the target or builtin is unknown, a dtype or number of elements wrong, a scalar missing or unknown.
        IllegalError: see `emitted`; or no source documents the values (option `unpacked_lane_order` gives a rule).
    """
    return call(emitted(name, target, rounding=rounding), x, args or {})


def call(function: Builtin, x: Codes, args: Mapping[str, int | float]) -> BuiltinResult:
    """Call an emitted builtin; errors: see `builtin`."""
    signature = function.built.signature
    source, result = signature.source, signature.result
    fmt = format_named(source.format)
    try:
        codes = codes_from_array(np.asarray(x), fmt).reshape(-1)
    except ReadError as error:
        raise ReadError(f"{INPUT}: {error.message}", legal=error.legal) from None
    if codes.size == 0 or codes.size % source.elements:
        message = f"{INPUT} has {codes.size} elements, but a call of {function.row.builtin} takes {source.elements}"
        raise ReadError(message, legal=(f"{source.elements}", f"a multiple of {source.elements}"))
    beyond = _beyond_held(codes, source)
    ran = execute(function.kernel, {INPUT: array_from_codes(codes, fmt)}, args, target=function.target)
    shape = (ran.tiles, result.elements) if ran.tiles > 1 else (result.elements,)
    outputs = {OUTPUT: array_from_codes(ran.outputs[OUTPUT].reshape(shape), format_named(result.format))}
    return BuiltinResult(
        function,
        outputs,
        ran.tiles,
        ran.vector_operations,
        ran.stale_reads,
        (*beyond, *ran.warnings),
        simulate_bundles(ran.tree, function.target),
        function.text(ran.tiles, args),
    )


def _beyond_held(codes: Codes, source: Vectors) -> Warnings:
    """Return a warning if lanes have bits above the narrower codes that they should hold."""
    if source.held is None:
        return ()
    bits = format_named(source.held).bits
    wrong = np.flatnonzero(codes >> bits)
    if wrong.size == 0:
        return ()
    first = wrong[0]
    text = (
        f"{wrong.size} of {codes.size} elements have bits above the {bits} of {source.held}, the first "
        f"element {first}, {codes[first]:#x}; the instructions take those for 0, what they make of them need not be "
        f"the value of the lower {bits} bits"
    )
    return (WarningText(WarningKind.WIDE_INPUT, text, INPUT),)


def _placing(row: BuiltinRow, target: VliwTarget) -> VliwTarget:
    """Return the target by whose rules a builtin is placed: undocumented values do not matter for that."""
    if row.result_order is not ResultOrder.UNDEFINED or _LANE_RULE not in target.options:
        return target
    rule = next(legal for legal in target.options[_LANE_RULE].legal if legal != "refuse")
    return with_options(target, {_LANE_RULE: rule})


# The special functions of TPC-C, called: their assembly, what it issues, their values; words of tensor descriptors.

F32 = FORMATS["f32"]
_DIVISION = "s_div_fast_f32"
_OPERANDS = {**OPERANDS, _DIVISION: ("x", "y", "rc")}


@dataclass(frozen=True, slots=True)
class FunctionProgram:
    """A special function as a program for one target; `operations` counts the instructions of a call.

    Instructions that fill and copy registers in the LOAD slot are excluded, as in the published counts. `lanes` is the
    vector twin of a scalar function, which computes its values; else None.
    """

    row: SpecialFunction
    target: VliwTarget
    kernel: ScheduledKernel
    lanes: ScheduledKernel | None
    tables: tuple[FunctionTable, ...]
    operations: int
    timing: Timing

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return _OPERANDS.get(self.row.name, ("x",))

    @property
    def output(self) -> str:
        """The name of its result."""
        return "y" if len(self.operands) == 1 else "z"

    @property
    def in_published_counts(self) -> bool:
        """Whether its instruction count equals that of the vendor's library."""
        return self.operations == self.row.operations

    def text(self, calls: int = 1) -> str:
        """Return the assembly of a number of calls, as `castsim run` takes it."""
        text = self.kernel.text(calls if self.lanes is None else 1)
        scalars = "" if self.lanes is None else "// the result is in the S register of the first MUL\n"
        tables = "".join(
            f"// castsim: table {table.table} {table.function(self.target)} f32 [{table.columns}, {table.entries}]\n"
            for table in self.tables
        )
        return f"// {self.row.builtin}: {self.row.signature}\n{scalars}{tables}{text}"


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The results of calls of a special function.

    `claimed` is whether the instructions computed the values; else they are correctly rounded, unlike the chip's.
    """

    program: FunctionProgram
    outputs: Mapping[str, Codes]
    calls: int
    claimed: bool
    stale_reads: tuple[StaleRead, ...]
    warnings: Warnings
    timing: Timing
    text: str

    @property
    def cycles(self) -> int:
        """Cycles of all calls together, including loads and stores."""
        return self.timing.total


def function_program(row: SpecialFunction, target: VliwTarget) -> FunctionProgram:
    """Return a function of the library as a program, without calling it.

    Raises:
        IllegalError: its instructions are not public.
    """
    if row.name != _DIVISION and row.name not in FUNCTIONS:
        message = f"{row.builtin}, {row.signature}, is not modelled: its instructions and number formats are not public"
        raise IllegalError(message, legal=FUNCTIONS)
    lanes = None
    tables: tuple[FunctionTable, ...] = ()
    if row.name == _DIVISION:
        sequence = _division(Slot.SPU)
        lanes = schedule(_division(Slot.VPU), target, name=row.builtin)
    else:
        tables_by_name = {table.table: table for table in function_tables()}
        writer = SequenceWriter(target, {name: table.function(target) for name, table in tables_by_name.items()})
        given = tuple(writer.sequence.input(name, F32.name)[0] for name in _OPERANDS.get(row.name, ("x",)))
        result = FUNCTIONS[row.name](writer, given)
        writer.sequence.output("y" if len(given) == 1 else "z", F32.name, result)
        sequence, tables = writer.sequence, tuple(tables_by_name[name] for name in writer.tables)
    kernel = schedule(sequence, target, name=row.builtin)
    operations = sum(not (step.slot is Slot.LOAD and step.head.startswith("mov")) for step in sequence.steps)
    timing = simulate_bundles(issue(kernel).tree, target)
    return FunctionProgram(row, target, kernel, lanes, tables, operations, timing)


def call_function(
    program: FunctionProgram, given: Mapping[str, Codes], tables: Mapping[str, Codes] | None = None
) -> FunctionResult:
    """Call a function, once for each set of elements in its operands.

    Args:
        program: the return value of `function_program`.
        given: f32 arrays, or their codes, by the names of the operands; all of one shape.
        tables: the look-up tables by name, f32, shape (entries, 3): c0, c1, c2 of each interval. None: no tables.

    Raises:
        ReadError: an operand is missing, unknown, empty, or of another dtype or shape; only some tables are given.
        IllegalError: the target rejects the values of an instruction (options may allow them).
    """
    codes, shape = _operands(program, given)
    table_values = _tables(program, tables or {})
    lanes = program.target.registers.vector_bytes * 8 // F32.bits
    calls = max(1, -(-next(iter(codes.values())).size // lanes))
    claimed = not program.tables or bool(table_values)
    kernel = program.kernel if program.lanes is None else program.lanes
    text = program.text(calls) if program.lanes is None else kernel.text(calls)
    filled = {name: _filled(argument, kernel, calls) for name, argument in codes.items()} if claimed else {}
    ran, _ = _ran(program.row.builtin, text, program.target, filled | table_values, values=claimed)
    if claimed:
        results = codes_from_array(ran.outputs[program.output], F32).reshape(-1)[: prod(shape)]
    else:
        results = rounded(computed_by(program.row.name), *codes.values())
    outputs = {program.output: array_from_codes(results.reshape(shape), F32)}
    warnings = (*ran.warnings, *_unclaimed(program, claimed=claimed))
    timing = simulate_bundles(ran.tree, program.target) if program.lanes is None else program.timing
    call_count = calls if program.lanes is None else int(prod(shape))
    return FunctionResult(program, outputs, call_count, claimed, ran.stale_reads, warnings, timing, program.text(calls))


def _division(slot: Slot) -> Sequence:
    """Return x / y from the reciprocal of y: the quotient, its residual, and the corrected quotient.

    The arithmetic of both units is the same: on vectors the same instructions give the values of many calls.
    """
    sequence, names, scalar = Sequence(), _OPERANDS[_DIVISION], slot is Slot.SPU
    x, y, rc = (sequence.scalar(name, F32.name) if scalar else sequence.input(name, F32.name)[0] for name in names)
    quotient = sequence.register() if scalar else sequence.vector()
    sequence.add(slot, "mul.f32", quotient, x, rc)
    sequence.add(slot, "mac.f32 neg", x, y, quotient)
    sequence.add(slot, "mac.f32", quotient, x, rc)
    if not scalar:
        sequence.output("z", F32.name, quotient)
    return sequence


def _operands(program: FunctionProgram, given: Mapping[str, Codes]) -> tuple[dict[str, Codes], tuple[int, ...]]:
    """Return flat codes of all operands, in order, and their shape."""
    names = program.operands
    for name in given:
        if name not in names:
            raise ReadError(f"{program.row.builtin} has no operand '{name}'", legal=names)
    missing = [name for name in names if name not in given]
    if missing:
        legal = [f"--in {name}=FILE.npy|random:SEED|zeros" for name in missing]
        raise ReadError(f"{program.row.builtin} also needs {', '.join(missing)}", legal=legal)
    shapes = {name: np.shape(given[name]) for name in names}
    if len(set(shapes.values())) > 1:
        raise ReadError(f"operands of several shapes: {', '.join(f'{n} {list(s)}' for n, s in shapes.items())}")
    operands = {}
    for name in names:
        try:
            operands[name] = codes_from_array(np.asarray(given[name]), F32).reshape(-1)
        except ReadError as error:
            raise ReadError(f"{name}: {error.message}", legal=error.legal) from None
        if operands[name].size == 0:
            raise ReadError(f"{name} is empty", legal=("one element or more",))
    return operands, shapes[names[0]]


def _tables(program: FunctionProgram, tables: Mapping[str, Codes]) -> dict[str, Codes]:
    """Return the tables that are given, after a check of their names."""
    names = [table.table for table in program.tables]
    for name in tables:
        if name not in names:
            raise ReadError(f"{program.row.builtin} reads no table '{name}'", legal=names or ("none",))
    missing = [name for name in names if name not in tables]
    if tables and missing:
        raise ReadError(f"{', '.join(missing)} is missing", legal=[f"--in {n}=FILE" for n in missing])
    return dict(tables)


def _filled(codes: Codes, kernel: ScheduledKernel, calls: int) -> Codes:
    """Return an operand filled up with ones to whole calls: no lane raises a notice that the caller did not cause."""
    lanes = next(placed.elements for placed in kernel.ports)
    whole = np.full(lanes * calls, 0x3F800000, "<u4")
    whole[: codes.size] = codes
    return array_from_codes(whole, F32)


def _unclaimed(program: FunctionProgram, *, claimed: bool) -> Warnings:
    """Return the notes on values that no instruction computed."""
    if claimed or program.row.kind is not FunctionKind.TABLE:
        return ()
    names = ", ".join(table.table for table in program.tables)
    given = " ".join(f"--in {table.table}=FILE" for table in program.tables)
    text = (
        f"the values are correctly rounded and not claimed to be the chip's: the contents of its table {names} are not "
        f"public; {given} gives them, and the instructions compute"
    )
    return (WarningText(WarningKind.UNDOCUMENTED, text, program.output),)


# The functions that read and write words of tensor descriptors (docs/reference/tpc.md section 3.1).

_TYPES = {"int": (32, True), "short": (16, True), "ushort": (16, False), "char": (8, True), "uchar": (8, False)}
"""Bits of a pad value's type, and whether it is signed."""

_PAD, _DIMENSIONS, _STRIDE = 8, 0x10, 4
_DIMENSION_COUNT = 5


@dataclass(frozen=True, slots=True)
class DescriptorCall:
    """A call with numbers as arguments: the address, the stored word, and the program.

    `result` is the function's result for the word in the descriptor; None: the function has no result, or no word was
    given.
    """

    row: SpecialFunction
    target: VliwTarget
    address: int
    stored: int | None
    result: int | float | None
    kernel: ScheduledKernel
    timing: Timing

    def text(self) -> str:
        """Return the assembly, as `castsim run` takes it."""
        return f"// {self.row.builtin}: {self.row.signature}\n{self.kernel.text()}"


def arguments_of(row: SpecialFunction) -> tuple[str, ...]:
    """Return the names of a function's arguments; one that reads also takes the word it reads, if known."""
    stride = row.name.endswith("dim_stride")
    places = ("tensor", "dimension") if stride else ("tensor",)
    return (*places, "value" if row.name.startswith("set_") else "word")


def descriptor_call(row: SpecialFunction, target: VliwTarget, given: Mapping[str, int | float]) -> DescriptorCall:
    """Return a call.

    Raises:
        ReadError: an argument is missing, unknown or out of range.
        IllegalError: no source states the address of the target's descriptors.
    """
    descriptors = descriptors_of(target)
    if descriptors is None:
        raise IllegalError(f"no source documents where {target.name} keeps its tensor descriptors")
    names = arguments_of(row)
    for name in given:
        if name not in names:
            raise ReadError(f"{row.builtin} has no argument '{name}'", legal=names)
    missing = [name for name in names if name != "word" and name not in given]
    if missing:
        raise ReadError(f"{row.builtin} takes {', '.join(missing)}", legal=[f"--arg {name}=NUMBER" for name in missing])
    tensor = _within("tensor", given["tensor"], target.tensors.limit)
    address = descriptors.base + descriptors.descriptor_bytes * tensor + _PAD
    if "dimension" in names:
        dimension = _within("dimension", given["dimension"], _DIMENSION_COUNT)
        address += _DIMENSIONS - _PAD + descriptors.dimension_bytes * dimension + _STRIDE
    stored = _word(row, given["value"]) if "value" in names else None
    kernel = schedule(_sequence(address, stored), target, name=row.builtin)
    text = f"// castsim: tensor {tensor} described in i8 [1]\n{kernel.text()}"
    ran, _ = _ran(row.builtin, text, target, {}, values=False)
    result = _returned(row, int(given["word"])) if "word" in given else None
    return DescriptorCall(row, target, address, stored, result, kernel, simulate_bundles(ran.tree, target))


def _within(name: str, number: int | float, limit: int) -> int:
    if not isinstance(number, int) or not 0 <= number < limit:
        raise ReadError(f"{name}={number}", legal=(f"0 .. {limit - 1}",))
    return number


def _sequence(address: int, stored: int | None) -> Sequence:
    sequence = Sequence()
    word = sequence.register()
    if stored is None:
        sequence.add(Slot.LOAD, "ld_l mmio", word, address)
    else:
        sequence.spu("mov.i32", word, stored)
        sequence.add(Slot.STORE, "st_l mmio", address, word)
    return sequence


def _type(row: SpecialFunction) -> str:
    return row.name.rpartition("_")[2]


def _word(row: SpecialFunction, value: int | float) -> int:
    """Return the word that is stored: a narrow pad value in every part of it."""
    kind = _type(row)
    if kind == "float":
        return int(unpack("<I", pack("<f", float(value)))[0])
    bits, signed = _TYPES.get(kind, (32, False))
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << bits) - 1 if not signed else (1 << (bits - 1)) - 1
    if not isinstance(value, int) or not low <= value <= high:
        raise ReadError(f"value={value} does not fit the type of {row.builtin}", legal=(f"{low} .. {high}",))
    part = value & ((1 << bits) - 1)
    return sum(part << shift for shift in range(0, 32, bits))


def _returned(row: SpecialFunction, word: int) -> int | float:
    """Return the low bits of a word in the type of the result."""
    kind = _type(row)
    if not 0 <= word < 1 << 32:
        raise ReadError(f"word={word}", legal=("0 .. 0xffffffff",))
    if kind == "float":
        return float(unpack("<f", pack("<I", word))[0])
    bits, signed = _TYPES.get(kind, (32, False))
    code = word & ((1 << bits) - 1)
    return code - (1 << bits) if signed and code >> (bits - 1) else code

"""Calling the special functions of TPC-C: their assembly, what it issues, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from castsim.engines import simulate
from castsim.execution.tree import Tree
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc import Slot
from castsim.isa.warning_text import WarningKind, Warnings, WarningText
from castsim.machines.vliw.assembled import Ran, assemble
from castsim.machines.vliw.assembled import execute as run_assembled
from castsim.machines.vliw.findings import StaleRead
from castsim.machines.vliw.lookup_tables import computed_by, rounded
from castsim.numerics import array_from_codes, codes_from_array
from castsim.targets.tpc_special_functions import FunctionKind, FunctionTable, SpecialFunction, function_tables
from castsim.targets.vliw import VliwTarget
from castsim.timing import Timing
from castsim.tpc_compiler.code_generation import ScheduledKernel, Sequence, schedule
from castsim.tpc_compiler.code_generation.execution import MAX_BUNDLES
from castsim.tpc_compiler.special_functions.functions import FUNCTIONS, OPERANDS, Writer

F32 = FORMATS["f32"]
_DIVISION = "s_div_fast_f32"
_OPERANDS = {**OPERANDS, _DIVISION: ("x", "y", "rc")}


@dataclass(frozen=True, slots=True)
class FunctionProgram:
    """A special function as a program for one target; `operations` counts the instructions of a call.

    Those that fill and copy registers in the LOAD slot are left out, as in the published counts. `lanes` is the twin of
    a scalar function on vectors, which computes its values; else None.
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
        """Whether it has as many instructions as the vendor's library."""
        return self.operations == self.row.operations

    def text(self, calls: int = 1) -> str:
        """Return the assembly of so many calls, which `castsim run` takes."""
        text = self.kernel.text(calls if self.lanes is None else 1)
        scalars = "" if self.lanes is None else "// the result is in the S register of the first MUL\n"
        return f"// {self.row.builtin}: {self.row.signature}\n{scalars}{self._declared()}{text}"

    def _declared(self) -> str:
        return "".join(
            f"// castsim: table {each.table} {each.function(self.target)} f32 [{each.columns}, {each.entries}]\n"
            for each in self.tables
        )


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The results of calls of a special function.

    `claimed` says that the instructions computed the values; else they are correctly rounded, and the chip's differ.
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
        """Cycles of all calls together, loads and stores included."""
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
        sequence = _scalar_division()
        lanes = schedule(_vector_division(), target, name=row.builtin)
    else:
        known = {each.table: each for each in function_tables()}
        writer = Writer(target, {name: each.function(target) for name, each in known.items()})
        given = tuple(writer.sequence.input(name, F32.name)[0] for name in _OPERANDS.get(row.name, ("x",)))
        result = FUNCTIONS[row.name](writer, given)
        writer.sequence.output("y" if len(given) == 1 else "z", F32.name, result)
        sequence, tables = writer.sequence, tuple(known[name] for name in writer.tables)
    kernel = schedule(sequence, target, name=row.builtin)
    operations = sum(not (step.slot is Slot.LOAD and step.head.startswith("mov")) for step in sequence.steps)
    timing = simulate(_issued(kernel, target), target)
    return FunctionProgram(row, target, kernel, lanes, tables, operations, timing)


def call_function(
    program: FunctionProgram, given: Mapping[str, Codes], tables: Mapping[str, Codes] | None = None
) -> FunctionResult:
    """Call a function as often as its operands have elements for.

    Args:
        program: what `function_program` returned.
        given: f32 arrays, or their codes, by the names of the operands; all of one shape.
        tables: the look-up tables by name, f32, shape (entries, 3): c0, c1, c2 of each interval. None: no tables.

    Raises:
        ReadError: an operand is missing or unknown, empty, of another dtype or shape; some tables and not all.
        IllegalError: the target refuses the values of an instruction (options may allow them).
    """
    codes, shape = _operands(program, given)
    known = _tables(program, tables or {})
    calls, text = _calls(program, codes), ""
    claimed = not program.tables or bool(known)
    kernel = program.kernel if program.lanes is None else program.lanes
    text = program.text(calls) if program.lanes is None else kernel.text(calls)
    filled = {name: _filled(each, kernel, calls) for name, each in codes.items()} if claimed else {}
    ran = _ran(text, program, filled | known, values=claimed)
    if claimed:
        found = codes_from_array(ran.outputs[program.output], F32).reshape(-1)[: prod(shape)]
    else:
        found = rounded(computed_by(program.row.name), *codes.values())
    outputs = {program.output: array_from_codes(found.reshape(shape), F32)}
    warnings = (*ran.warnings, *_unclaimed(program, claimed=claimed))
    timing = simulate(ran.tree, program.target) if program.lanes is None else program.timing
    each = calls if program.lanes is None else int(prod(shape))
    return FunctionResult(program, outputs, each, claimed, ran.stale_reads, warnings, timing, program.text(calls))


def _scalar_division() -> Sequence:
    """Return x / y from the reciprocal of y: the quotient, its residual, and the corrected quotient."""
    sequence = Sequence()
    x, y, rc = (sequence.scalar(name, F32.name) for name in _OPERANDS[_DIVISION])
    quotient = sequence.register()
    sequence.spu("mul.f32", quotient, x, rc)
    sequence.spu("mac.f32 neg", x, y, quotient)
    sequence.spu("mac.f32", quotient, x, rc)
    return sequence


def _vector_division() -> Sequence:
    """Return the same instructions on vectors: the arithmetic of both units is one."""
    sequence = Sequence()
    x, y, rc = (sequence.input(name, F32.name)[0] for name in _OPERANDS[_DIVISION])
    quotient = sequence.vector()
    sequence.vpu("mul.f32", quotient, x, rc)
    sequence.vpu("mac.f32 neg", x, y, quotient)
    sequence.vpu("mac.f32", quotient, x, rc)
    sequence.output("z", F32.name, quotient)
    return sequence


def _issued(kernel: ScheduledKernel, target: VliwTarget) -> Tree:
    assembled = assemble(kernel.text(), f"<{kernel.name}>", target, {})
    return run_assembled(assembled, {}, values=False, checked=False, max_bundles=MAX_BUNDLES).tree


def _ran(text: str, program: FunctionProgram, arrays: Mapping[str, Codes], *, values: bool) -> Ran:
    assembled = assemble(text, f"<{program.row.builtin}>", program.target, {})
    return run_assembled(assembled, arrays, values=values, checked=True, max_bundles=MAX_BUNDLES)


def _operands(program: FunctionProgram, given: Mapping[str, Codes]) -> tuple[dict[str, Codes], tuple[int, ...]]:
    """Return flat codes of all operands, in order, and their shape."""
    names = program.operands
    for name in given:
        if name not in names:
            raise ReadError(f"{program.row.builtin} has no operand '{name}'", legal=names)
    missing = [name for name in names if name not in given]
    if missing:
        legal = [f"--in {name}=FILE.npy|random:SEED|zeros" for name in missing]
        raise ReadError(f"{program.row.builtin} takes {', '.join(missing)} too: not given", legal=legal)
    shapes = {name: np.shape(given[name]) for name in names}
    if len(set(shapes.values())) > 1:
        raise ReadError(f"operands of several shapes: {', '.join(f'{n} {list(s)}' for n, s in shapes.items())}")
    found = {}
    for name in names:
        try:
            found[name] = codes_from_array(np.asarray(given[name]), F32).reshape(-1)
        except ReadError as error:
            raise ReadError(f"{name}: {error.message}", legal=error.legal) from None
        if found[name].size == 0:
            raise ReadError(f"{name} is empty", legal=("one element or more",))
    return found, shapes[names[0]]


def _tables(program: FunctionProgram, tables: Mapping[str, Codes]) -> dict[str, Codes]:
    """Return the tables that are given, after a check of their names."""
    names = [each.table for each in program.tables]
    for name in tables:
        if name not in names:
            raise ReadError(f"{program.row.builtin} reads no table '{name}'", legal=names or ("none",))
    missing = [name for name in names if name not in tables]
    if tables and missing:
        raise ReadError(
            f"without {', '.join(missing)} nothing can be computed", legal=[f"--in {n}=FILE" for n in missing]
        )
    return dict(tables)


def _calls(program: FunctionProgram, codes: Mapping[str, Codes]) -> int:
    lanes = program.target.registers.vector_bytes * 8 // F32.bits
    return max(1, -(-next(iter(codes.values())).size // lanes))


def _filled(codes: Codes, kernel: ScheduledKernel, calls: int) -> Codes:
    """Return an operand filled up with ones to whole calls: no lane raises a notice that the caller did not cause."""
    lanes = next(placed.elements for placed in kernel.ports)
    whole = np.full(lanes * calls, 0x3F800000, "<u4")
    whole[: codes.size] = codes
    return array_from_codes(whole, F32)


def _unclaimed(program: FunctionProgram, *, claimed: bool) -> Warnings:
    """Return what must be said of values that no instruction computed."""
    if claimed or program.row.kind is not FunctionKind.TABLE:
        return ()
    names = ", ".join(each.table for each in program.tables)
    given = " ".join(f"--in {each.table}=FILE" for each in program.tables)
    text = (
        f"the values are correctly rounded and not claimed to be the chip's: the contents of its table {names} are not "
        f"public; {given} gives them, and the instructions compute"
    )
    return (WarningText(WarningKind.UNDOCUMENTED, text, program.output),)

"""The special functions of TPC-C, called: their assembly, what it issues, their values; words of tensor descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from struct import pack, unpack

import numpy as np

from castsim.execution.timing import Timing
from castsim.isa.errors import IllegalError, ReadError, WarningKind, Warnings, WarningText
from castsim.isa.formats import FORMATS, Codes
from castsim.isa.tpc.program import Slot
from castsim.machines.vliw.assembled import assemble, execute
from castsim.machines.vliw.fast_engine import simulate_bundles
from castsim.machines.vliw.findings import StaleRead
from castsim.machines.vliw.lookup_tables import computed_by, rounded
from castsim.numerics import array_from_codes, codes_from_array
from castsim.targets.tpc_compiler import (
    FunctionKind,
    FunctionTable,
    SpecialFunction,
    descriptors_of,
    function_tables,
)
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtin_calls import MAX_BUNDLES, issue
from castsim.tpc_compiler.code_generation import ScheduledKernel, Sequence, schedule
from castsim.tpc_compiler.special_function_bodies import FUNCTIONS, OPERANDS, SequenceWriter

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
        tables = "".join(
            f"// castsim: table {each.table} {each.function(self.target)} f32 [{each.columns}, {each.entries}]\n"
            for each in self.tables
        )
        return f"// {self.row.builtin}: {self.row.signature}\n{scalars}{tables}{text}"


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
        writer = SequenceWriter(target, {name: each.function(target) for name, each in known.items()})
        given = tuple(writer.sequence.input(name, F32.name)[0] for name in _OPERANDS.get(row.name, ("x",)))
        result = FUNCTIONS[row.name](writer, given)
        writer.sequence.output("y" if len(given) == 1 else "z", F32.name, result)
        sequence, tables = writer.sequence, tuple(known[name] for name in writer.tables)
    kernel = schedule(sequence, target, name=row.builtin)
    operations = sum(not (step.slot is Slot.LOAD and step.head.startswith("mov")) for step in sequence.steps)
    timing = simulate_bundles(issue(kernel).tree, target)
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
    lanes = program.target.registers.vector_bytes * 8 // F32.bits
    calls = max(1, -(-next(iter(codes.values())).size // lanes))
    claimed = not program.tables or bool(known)
    kernel = program.kernel if program.lanes is None else program.lanes
    text = program.text(calls) if program.lanes is None else kernel.text(calls)
    filled = {name: _filled(each, kernel, calls) for name, each in codes.items()} if claimed else {}
    assembled = assemble(text, f"<{program.row.builtin}>", program.target, {})
    ran = execute(assembled, filled | known, values=claimed, checked=True, max_bundles=MAX_BUNDLES)
    if claimed:
        found = codes_from_array(ran.outputs[program.output], F32).reshape(-1)[: prod(shape)]
    else:
        found = rounded(computed_by(program.row.name), *codes.values())
    outputs = {program.output: array_from_codes(found.reshape(shape), F32)}
    warnings = (*ran.warnings, *_unclaimed(program, claimed=claimed))
    timing = simulate_bundles(ran.tree, program.target) if program.lanes is None else program.timing
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


# The functions that read and write words of tensor descriptors (docs/reference/tpc.md section 3.1).

_TYPES = {"int": (32, True), "short": (16, True), "ushort": (16, False), "char": (8, True), "uchar": (8, False)}
"""Bits of a pad value's type, and whether it is signed."""

_PAD, _DIMENSIONS, _STRIDE = 8, 0x10, 4
_DIMENSION_COUNT = 5
_MAX_BUNDLES = 10**6


@dataclass(frozen=True, slots=True)
class DescriptorCall:
    """A call with numbers for its arguments: the address, the word that is stored, and the program.

    `result` is what a function returns of the word that the descriptor holds; None: it returns nothing, or no word was
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
        """Return the assembly, which `castsim run` takes."""
        return f"// {self.row.builtin}: {self.row.signature}\n{self.kernel.text()}"


def arguments_of(row: SpecialFunction) -> tuple[str, ...]:
    """Return the names of a function's arguments; a reading one takes the word that is read, if it is known."""
    stride = row.name.endswith("dim_stride")
    places = ("tensor", "dimension") if stride else ("tensor",)
    return (*places, "value" if row.name.startswith("set_") else "word")


def descriptor_call(row: SpecialFunction, target: VliwTarget, given: Mapping[str, int | float]) -> DescriptorCall:
    """Return a call.

    Raises:
        ReadError: an argument that is missing, unknown or out of its range.
        IllegalError: no source says where the target has its descriptors.
    """
    place = descriptors_of(target)
    if place is None:
        raise IllegalError(f"no source says where {target.name} has the descriptors of its tensors")
    names = arguments_of(row)
    for name in given:
        if name not in names:
            raise ReadError(f"{row.builtin} has no argument '{name}'", legal=names)
    missing = [name for name in names if name != "word" and name not in given]
    if missing:
        raise ReadError(f"{row.builtin} takes {', '.join(missing)}", legal=[f"--arg {name}=NUMBER" for name in missing])
    tensor = _within("tensor", given["tensor"], target.tensors.limit)
    address = place.base + place.descriptor_bytes * tensor + _PAD
    if "dimension" in names:
        dimension = _within("dimension", given["dimension"], _DIMENSION_COUNT)
        address += _DIMENSIONS - _PAD + place.dimension_bytes * dimension + _STRIDE
    stored = _word(row, given["value"]) if "value" in names else None
    kernel = schedule(_sequence(address, stored), target, name=row.builtin)
    tree = execute(
        assemble(f"// castsim: tensor {tensor} described in i8 [1]\n{kernel.text()}", f"<{row.builtin}>", target, {}),
        {},
        values=False,
        checked=True,
        max_bundles=_MAX_BUNDLES,
    ).tree
    result = _returned(row, int(given["word"])) if "word" in given else None
    return DescriptorCall(row, target, address, stored, result, kernel, simulate_bundles(tree, target))


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
        raise ReadError(f"value={value} is not of the type of {row.builtin}", legal=(f"{low} .. {high}",))
    part = value & ((1 << bits) - 1)
    return sum(part << place for place in range(0, 32, bits))


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

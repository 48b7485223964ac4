"""An assembly or binary program ready to run: its declarations, inputs, and results.

Grammar of the declarations: design of castsim, section 5.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import ArgumentUse, check_known, make_inputs, read_array, to_memory
from castsim.execution.outcomes import CastPlace, Outcomes
from castsim.execution.tree import Tree
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import (
    MAX_STATEMENTS,
    EngineError,
    ReadError,
    Span,
    TileError,
    Warnings,
)
from castsim.isa.formats import Codes, Format, IntFormat, format_named
from castsim.isa.reading import Source
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import (
    WORD_BITS,
    File,
    Register,
    RegisterDeclaration,
    TableDeclaration,
    TensorDeclaration,
    TpcProgram,
    VlmDeclaration,
)
from castsim.machines.vliw import chosen_target
from castsim.machines.vliw.findings import StaleRead
from castsim.machines.vliw.lookup_tables import DeclaredTables
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.storage import GlobalMemory
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import array_from_codes, codes_from_array, pack_codes, unpack_codes
from castsim.numerics.policy import abstract_policy
from castsim.targets.loader import Target
from castsim.targets.vliw import VliwTarget

Data = TensorDeclaration | VlmDeclaration | TableDeclaration

_MOST_ELEMENTS = sys.maxsize // 8
"""Maximum number of elements of up to eight bytes that NumPy accepts before it checks the available memory."""


@dataclass(frozen=True, slots=True, repr=False)
class AssembledProgram:
    """A program for one target; `remarks` are the notes from reading it."""

    file: str
    program: TpcProgram
    target: VliwTarget
    remarks: Warnings = ()

    def __repr__(self) -> str:
        return f"<Assembled {self.file} on {self.target.name}>"

    @property
    def entry(self) -> str:
        """The name of the run: the file's name without its suffix."""
        return Path(self.file).stem

    @property
    def arguments(self) -> dict[str, ArgumentUse]:
        """The declared tensors and parts of vector memory; arrays have dimension 0 last."""
        return {
            declaration.name: _use(declaration)
            for declaration in self.program.declarations
            if isinstance(declaration, Data)
        }


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a run: the issued bundles, the outputs, and the findings of the checked mode."""

    tree: Tree
    outputs: Mapping[str, Codes]
    stale_reads: tuple[StaleRead, ...]
    warnings: Warnings
    casts: Mapping[CastPlace, Outcomes]
    """The counts of conversions; empty if no values were computed."""
    dropped: Mapping[str, Span] = field(default_factory=dict)
    """Dropped stores, completely outside their tensor, in words and with their lines."""
    unwritten: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Masks of output elements that nothing wrote, in their shape; empty if no values were computed."""


def assemble(
    text: str,
    file: str,
    target: VliwTarget,
    start: Mapping[str, int | float],
    max_statements: int = MAX_STATEMENTS,
) -> AssembledProgram:
    """Read a program; `start` gives initial values of S registers by name, which override the text.

    Raises:
        ReadError: the text cannot be read, a name is not an S register, or a value has more than 32 bits.
        IllegalError: the generation lacks an instruction or a form.
    """
    return ready(parse(text, target.dialect, file, max_statements), file, target, start)


def ready(
    program: TpcProgram, file: str, target: VliwTarget, start: Mapping[str, int | float], remarks: Warnings = ()
) -> AssembledProgram:
    """Return the program with its declared start values replaced by others.

    Raises:
        ReadError: a name is not an S register, or a value has more than 32 bits.
    """
    given = {name: _start(name, value, target) for name, value in start.items()}
    kept = tuple(
        declaration
        for declaration in program.declarations
        if not (isinstance(declaration, RegisterDeclaration) and str(declaration.register) in given)
    )
    return AssembledProgram(file, replace(program, declarations=(*kept, *given.values())), target, remarks)


def execute(
    assembled: AssembledProgram,
    inputs: Mapping[str, Codes | str],
    *,
    values: bool,
    checked: bool,
    max_bundles: int,
    max_walk: int | None = None,
    heard: Callable[[int], None] = lambda _: None,
    skip: bool = True,
    stop: bool = False,
    watch: Callable[[VliwCore, int], None] | None = None,
) -> Ran:
    """Run a program to its end.

    Args:
        assembled: the program.
        inputs: arrays or specifications (`random:SEED`, `zeros`, a file) by declared name.
        values: False computes only the values that path and addresses need.
        checked: record stale reads.
        max_bundles: maximum number of bundles.
        max_walk: maximum number of bundles executed one by one, without those of skipped trips; None: no limit.
        heard: receives the number of issued bundles at intervals.
        skip: without values, skip trips of loops that repeat earlier ones (False: walk every trip).
        stop: end the run at the first stale read; needs `checked`.
        watch: receives every bundle, by its index in the program, before the core issues it.

    Raises:
        ReadError: a name is unknown, an input is missing or does not fit, or declarations overlap.
        IllegalError, TileError: an instruction is refused.
        StaleReadError: there is a stale read, and `stop` is set.
        EngineError: the run reaches the limit, or the program never ends.
        LimitError: more bundles would be executed one by one than allowed.
    """
    uses = assembled.arguments
    for name in () if values else inputs:
        _check_declared(name, uses)
    codes = _inputs(assembled, inputs) if values else {}
    declared = assembled.program.declarations
    tensors = tuple(declaration for declaration in declared if isinstance(declaration, TensorDeclaration))
    vlm = tuple(declaration for declaration in declared if isinstance(declaration, VlmDeclaration))
    tables = DeclaredTables.of(declared, codes) if values else DeclaredTables.of(declared)
    memory = GlobalMemory(tensors, codes, assembled.target.tensors.limit, tables)
    machine = VliwCore(
        assembled.program, assembled.target, memory, values=values, checked=checked, stop=stop, skip=skip
    )
    _fill_vlm(machine, vlm, codes)
    tree = machine.run(max_bundles, heard, max_walk, None if watch is None else partial(watch, machine))
    outputs = _outputs(machine, tensors, vlm, uses) if values else {}
    casts = {} if machine.casts is None else machine.casts.tally.finish()
    dropped = {
        f"some stores are outside {name}, the first at ({', '.join(map(str, element))}): it is dropped": span
        for (_, _, name), (span, element) in machine.globals.dropped.items()
    }
    stored = machine.globals.memory.tensors.values() if values else ()
    unwritten = {
        tensor.name: ~tensor.written.reshape(uses[tensor.name].shape) for tensor in stored if tensor.written is not None
    }
    remarks = (*assembled.remarks, *machine.remarks)
    return Ran(tree, outputs, machine.findings.all(), remarks, casts, dropped, unwritten)


# ------------------------------------------------------------------------------------------------------------- data


def _is_known(declared: Data) -> bool:
    """Return whether a declaration brings its values: a table's may."""
    return isinstance(declared, TableDeclaration) and declared.content is not None


def _use(declared: Data) -> ArgumentUse:
    elements = prod(declared.shape)
    return ArgumentUse(
        format=format_named(declared.format),
        elements=elements,
        padded={elements},
        shapes={tuple(reversed(declared.shape))},
        needs_input=declared.direction != "out" and not _is_known(declared),
        stored=declared.direction != "in",
        span=declared.span,
    )


def _inputs(assembled: AssembledProgram, inputs: Mapping[str, Codes | str]) -> dict[str, Codes]:
    """Return the codes of all data, one per element, in C order.

    Raises:
        ReadError: a name is unknown, a required input is missing, or an array has another size than declared.
        EngineError: there are more elements than fit the memory.
    """
    uses = assembled.arguments
    for name in inputs:
        _check_declared(name, uses)
    missing = [name for name, use in uses.items() if use.needs_input and name not in inputs]
    if missing:
        raise ReadError(
            f"no input for {', '.join(missing)}, which the program declares",
            legal=[f"--in {name}=FILE.npy|random:SEED|zeros" for name in missing],
        )
    arrays: dict[str, Codes] = {name: array for name, array in inputs.items() if not isinstance(array, str)}
    data = [declaration for declaration in assembled.program.declarations if isinstance(declaration, Data)]
    try:
        if any(use.elements > _MOST_ELEMENTS for use in uses.values()):
            raise MemoryError
        arrays |= make_inputs({name: given for name, given in inputs.items() if isinstance(given, str)}, uses)
        folder = Path(assembled.file).parent
        return {
            declaration.name: _codes_of(declaration, uses[declaration.name], arrays.get(declaration.name), folder)
            for declaration in data
        }
    except MemoryError:
        largest = max(data, key=lambda declaration: uses[declaration.name].elements)
        raise EngineError(
            f"not enough memory: {largest.name} has {_sizes(largest)} of {largest.format}", span=largest.span
        ) from None


def _codes_of(declared: Data, use: ArgumentUse, array: Codes | None, folder: Path) -> Codes:
    """Return the codes of one tensor, table or part of vector memory, zeros if nothing is given."""
    if array is None and isinstance(declared, TableDeclaration):
        codes = declared_codes(declared, folder)
        assert codes is not None
        return codes
    if array is None:
        return np.zeros(use.elements, code_dtype(use.format))
    if np.size(array) != use.elements:
        actual = f"shape {list(np.shape(array))}, {np.size(array)} elements"
        raise ReadError(
            f"input '{declared.name}' has {actual}, but is declared as {_sizes(declared)}",
            span=declared.span,
            legal=(f"shape {list(use.shape)}: dimension 0 of a declaration is the last of an array",),
        )
    return _unpacked(to_memory(array, declared.name, use), use.format, use.elements)


def _sizes(declared: Data) -> str:
    """Return how many elements a declaration has, and how that comes about."""
    factors = " x ".join(map(str, declared.shape))
    return f"{factors} = {prod(declared.shape)} elements" if len(declared.shape) > 1 else f"{factors} elements"


def _check_declared(name: str, uses: Mapping[str, ArgumentUse]) -> None:
    if not uses:  # a binary brings no declarations, and text may forget them
        raise ReadError(
            f"the program does not declare a tensor '{name}'; declare tensors in comments, or for a binary in a file "
            "given with --declare FILE",
            legal=(f"// castsim: tensor 0 {name} in f32 [64, 16]",),
        )
    check_known(name, uses)


def _unpacked(memory: NDArray[np.uint8], fmt: Format, count: int) -> Codes:
    if fmt.bits < 8:
        return unpack_codes(memory, fmt, count).copy()
    return memory.view(code_dtype(fmt)).copy()


def _fill_vlm(machine: VliwCore, declared: tuple[VlmDeclaration, ...], codes: Mapping[str, Codes]) -> None:
    """Place declared data in vector memory.

    Raises:
        TileError: it does not fit there. ReadError: two declarations overlap.
    """
    taken: list[tuple[int, int, str]] = []
    for declaration in declared:
        fmt = format_named(declaration.format)
        size = -(-prod(declaration.shape) * fmt.bits // 8)
        if declaration.address + size > machine.local.vlm.capacity:
            raise TileError(
                f"{declaration.name} ends at VLM address {declaration.address + size:#x}, past the end of the memory "
                f"({machine.local.vlm.capacity} bytes)",
                span=declaration.span,
            )
        for start, end, name in taken:
            if declaration.address < end and start < declaration.address + size:
                raise ReadError(f"{declaration.name} and {name} overlap in VLM", span=declaration.span)
        taken.append((declaration.address, declaration.address + size, declaration.name))
        if declaration.direction == "out":
            continue
        if declaration.name in codes:
            machine.local.vlm.store(
                declaration.address,
                pack_codes(codes[declaration.name], fmt) if fmt.bits < 8 else codes[declaration.name].view(np.uint8),
            )
        else:
            machine.local.vlm.written[declaration.address : declaration.address + size] = True


def _outputs(
    machine: VliwCore,
    tensors: tuple[TensorDeclaration, ...],
    vlm: tuple[VlmDeclaration, ...],
    uses: Mapping[str, ArgumentUse],
) -> dict[str, Codes]:
    outputs: dict[str, Codes] = {}
    for tensor in tensors:
        if tensor.direction != "in":
            outputs[tensor.name] = machine.globals.memory.tensors[tensor.number].codes
    for declaration in vlm:
        if declaration.direction != "in":
            use = uses[declaration.name]
            size = -(-use.elements * use.format.bits // 8)
            outputs[declaration.name] = _unpacked(
                machine.local.vlm.load(declaration.address, size), use.format, use.elements
            )
    return {
        name: array_from_codes(codes.reshape(uses[name].shape), uses[name].format) for name, codes in outputs.items()
    }


# ------------------------------------------------------------------------------------------------------ start values


def _start(name: str, value: int | float, target: VliwTarget) -> RegisterDeclaration:
    last = target.registers.S - 1
    digits = name[1:]
    if name[:1].upper() != "S" or not digits.isdecimal() or int(digits) > last:
        raise ReadError(f"--arg {name}: assembly takes only values of S registers", legal=(f"S0 .. S{last}",))
    if not isinstance(value, int) or not -(1 << (WORD_BITS - 1)) <= value < 1 << WORD_BITS:
        raise ReadError(f"--arg {name}={value}: not an integer of {WORD_BITS} bits")
    register = Register(File.S, int(digits))
    return RegisterDeclaration(register, (value & ((1 << WORD_BITS) - 1),), span=Span("--arg", 1, 1, f"{name}={value}"))


def load_assembly(
    source: Source,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target],
    max_statements: int = MAX_STATEMENTS,
) -> AssembledProgram:
    """Load an assembly program for the requested target, otherwise the one that it declares.

    Raises:
        ReadError: there is no target, an entry is named, the text cannot be read, or a value is not for an S register.
        IllegalError: the target does not run assembly, or lacks an instruction.
        LimitError: there are more bundles than `max_statements`.
    """
    file, text = source.file, source.text
    if entry is not None:
        raise ReadError(f"{file}: --entry applies only to .pto programs; assembly starts at its first bundle")
    return assemble(text, file, chosen_target(text, file, target, prepare), args, max_statements)


# What look-up tables hold (docs/reference/tpc.md section 5.5).

MOST_BYTES = 1 << 20
"""Maximum size of a .csv file in bytes: a table has at most 768 numbers."""


def declared_codes(table: TableDeclaration, folder: Path) -> Codes | None:
    """Return the elements of a declaration, from itself or from a file beside the program; None if it has no values.

    Raises:
        ReadError: a file cannot be read, the number of elements is wrong, or the format cannot represent a number.
    """
    if table.content is None:
        return None
    fmt = format_named(table.format)
    try:
        if table.file is None:
            return _numbers(table.content.split(","), fmt)
        path = folder / table.file
        if table.file.endswith(".npy"):
            codes = codes_from_array(np.asarray(read_array(path, table.name)), fmt).reshape(-1)
        else:
            codes = _numbers(_cells(path), fmt)
        if codes.size != prod(table.shape):
            shape = ", ".join(map(str, reversed(table.shape)))
            message = f"{table.file} holds {codes.size} elements, but table {table.name} has {prod(table.shape)}"
            raise ReadError(message, legal=(f"an array of shape [{shape}]",))
        return codes
    except ReadError as error:
        raise error.at(table.span) from None


def _cells(path: Path) -> list[str]:
    """Return the cells of a CSV file, row by row: a row is an entry."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)  # of a pipe or a device as well
        if len(data) > MOST_BYTES:
            raise ReadError(f"'{path}' has more than {MOST_BYTES} bytes", legal=("a .npy file",))
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"cannot read '{path}': {getattr(error, 'strerror', None) or error}") from None
    return [cell for row in csv.reader(text.splitlines()) for cell in row if cell.strip()]


def _numbers(texts: Iterable[str], fmt: Format) -> Codes:
    """Return the codes of numbers: 0x.. is a code, anything else a number, rounded to nearest for floats."""
    return np.array([_code(text.strip(), fmt) for text in texts], code_dtype(fmt))


def _code(text: str, fmt: Format) -> int:
    try:
        if text.lower().startswith("0x"):
            code = int(text, 16)
            if code >> fmt.bits:
                raise ValueError
            return code
        if isinstance(fmt, IntFormat):
            number = int(text)
            if not fmt.minimum <= number <= fmt.maximum:
                raise ValueError
            return number & ((1 << fmt.bits) - 1)
        wide = format_named("f64")
        value = np.array([float(text)]).view("<u8")
        return int(cast_codes(value, wide, fmt, abstract_policy(wide, fmt))[0])
    except ValueError:
        legal = f"{fmt.minimum} .. {fmt.maximum}" if isinstance(fmt, IntFormat) else "numbers such as 0.5 or nan"
        codes = f"codes 0x0 .. {(1 << fmt.bits) - 1:#x}"
        raise ReadError(f"'{text[:40]}' is not a number of {fmt.name}", legal=(legal, codes)) from None

"""Kernels of the compiler, run on arrays; the cast builtins of TPC-C, called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from castsim.execution.input_data import arrayed
from castsim.execution.timing import Timing
from castsim.execution.tree import Tree, issued
from castsim.isa.errors import ReadError, WarningKind, Warnings, WarningText
from castsim.isa.formats import Codes, format_named
from castsim.isa.tpc.program import Slot, TpcProgram
from castsim.machines.vliw.assembled import Ran, assemble
from castsim.machines.vliw.assembled import execute as run_assembled
from castsim.machines.vliw.fast_engine import simulate_bundles
from castsim.machines.vliw.findings import StaleRead
from castsim.numerics import array_from_codes, code_dtype, codes_from_array
from castsim.targets import Target
from castsim.targets.description import with_options
from castsim.targets.tpc_compiler import BuiltinRow, ResultOrder
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtin_names import builtin_target, find_builtin
from castsim.tpc_compiler.builtin_sequences import INPUT, OUTPUT, Built, Vectors, build
from castsim.tpc_compiler.code_generation import ScheduledKernel, schedule

# Running kernels on arrays: what they compute, what they issue, and what the checked mode says of them.

MAX_BUNDLES = 10**9
"""Bundles after which a program of the compiler is given up."""
_UNCOUNTED = ("mov", "halt")
"""VPU instructions that are not operations of a cast: copies and zeroing of registers, the end."""


@dataclass(frozen=True, slots=True)
class KernelResult:
    """The result of running a kernel.

    `outputs` are codes by name, shape (tiles, elements of a tile). `vector_operations` counts what was issued in the
    vector slot per tile, moves of whole registers aside. `tree` is what was issued, ready for an engine.
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
    """Run a kernel over arrays, as many tiles as they take.

    Args:
        kernel: what `schedule` returned.
        inputs: for each input codes, or numbers in the native dtype, of any shape; the last tile is filled up with
            zeros, and inputs with fewer tiles than others too.
        scalars: numbers by name.
        target: in place of the kernel's own, with other options.
        checked: gather stale reads.

    Raises:
        ReadError: an input is missing, unknown, empty or of another dtype; a scalar likewise.
        IllegalError: the target refuses an instruction, or its values.
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
    ran, operations = _ran(kernel, text, chosen, given, values=True, checked=checked)
    outputs = {
        placed.port.name: codes_from_array(ran.outputs[placed.port.name], format_named(placed.port.format)).reshape(
            tiles, placed.elements
        )
        for placed in kernel.ports
        if placed.direction == "out"
    }
    return KernelResult(outputs, tiles, operations // tiles, ran.stale_reads, ran.warnings, ran.tree, text)


def issue(kernel: ScheduledKernel, *, target: VliwTarget | None = None) -> KernelResult:
    """Run one tile of a kernel without values: what it issues, its counts; no inputs, no outputs."""
    text = kernel.text()
    chosen = kernel.target if target is None else target
    ran, operations = _ran(kernel, text, chosen, {}, values=False, checked=False)
    return KernelResult({}, 1, operations, ran.stale_reads, ran.warnings, ran.tree, text)


def _ran(
    kernel: ScheduledKernel, text: str, target: VliwTarget, inputs: Mapping[str, Codes], *, values: bool, checked: bool
) -> tuple[Ran, int]:
    """Run a program; also return the vector operations that it issued."""
    assembled = assemble(text, f"<{kernel.name}>", target, {})
    ran = run_assembled(assembled, inputs, values=values, checked=checked, max_bundles=MAX_BUNDLES)
    return ran, vector_operations(ran.tree, assembled.program)


def vector_operations(tree: Tree, program: TpcProgram) -> int:
    """Return the number of vector instructions that a run issued, without moves of whole registers and HALT."""
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

    `issued` is one call, without values; `timing` its cycles, loads and stores included.
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
        """VPU operations of a call, counted while it was issued."""
        return self.issued.vector_operations

    def text(self, calls: int = 1, args: Mapping[str, int | float] | None = None) -> str:
        """Return the assembly of so many calls, which `castsim run` takes."""
        head = f"// {self.row.builtin}: {self.row.signature}\n// result order: {self.row.result_order}\n"
        return head + self.kernel.text(calls, args)


@dataclass(frozen=True, slots=True, repr=False)
class BuiltinResult:
    """The results of calls of a builtin.

    `outputs` maps `y` to an array, native or codes: as many elements as a call gives, or a row of them per call.
    """

    builtin: Builtin
    """What was called."""
    outputs: Mapping[str, Codes]
    calls: int
    """How often it was called."""
    vector_operations: int
    """VPU operations of a call, counted while it was executed."""
    stale_reads: tuple[StaleRead, ...]
    """Reads that came too early, and got a register's old value."""
    warnings: Warnings
    """What the calls do in a surprising way."""
    timing: Timing
    """All that was timed, in cycles."""
    text: str
    """The assembly that was executed."""

    def __repr__(self) -> str:
        outputs = "".join(f", {name} {arrayed(array)}" for name, array in self.outputs.items())
        return f"<BuiltinResult of {self.calls} calls: {self.cycles} cycles{outputs}>"

    @property
    def cycles(self) -> int:
        """Cycles of all calls together, loads and stores included."""
        return self.timing.total


def emitted(name: str, target: str | Path | Target, *, rounding: str | None = None) -> Builtin:
    """Return a builtin as assembly, with its operation count and cycles, without calling it.

    Args:
        name: with or without `__builtin_cast_`.
        target: name, path of a description, or a loaded target.
        rounding: the build option of the helpers on generations that have one, else what the rounding register is set
            to first; None: the default of the helpers, the register's reset value.

    Raises:
        ReadError: unknown target, unknown builtin.
        IllegalError: the target has no such builtin, or its builtins cannot round so; a special function.
    """
    chosen = builtin_target(target)
    row = find_builtin(name, chosen)
    built = build(row, chosen, rounding)
    placed = _placing(row, chosen)
    kernel = schedule(built.sequence, placed, built.setup, row.builtin)
    issued = issue(kernel)
    return Builtin(built, chosen, kernel, issued, simulate_bundles(issued.tree, chosen))


def builtin(
    name: str,
    target: str | Path | Target,
    x: Codes,
    *,
    args: Mapping[str, int | float] | None = None,
    rounding: str | None = None,
) -> BuiltinResult:
    """Call a builtin, as often as `x` has elements for.

    Args:
        name: with or without `__builtin_cast_`.
        target: name, path of a description, or a loaded target.
        x: the elements of all source registers one after the other, of one call or of several; native dtype or codes.
        args: values of the scalar arguments, `shift` (int) or `scale` (float).
        rounding: see `emitted`.

    Returns:
        An array of as many elements as a call gives, or of a row of them per call, and the cycles of all calls.

    Raises:
        ReadError: unknown target or builtin; a wrong dtype or number of elements; a scalar missing or unknown.
        IllegalError: as `emitted`; values that no source documents (option `unpacked_lane_order` gives a rule).
    """
    return call(emitted(name, target, rounding=rounding), x, args or {})


def call(found: Builtin, x: Codes, args: Mapping[str, int | float]) -> BuiltinResult:
    """Call an emitted builtin; errors as `builtin`."""
    signature = found.built.signature
    source, result = signature.source, signature.result
    fmt = format_named(source.format)
    try:
        codes = codes_from_array(np.asarray(x), fmt).reshape(-1)
    except ReadError as error:
        raise ReadError(f"{INPUT}: {error.message}", legal=error.legal) from None
    if codes.size == 0 or codes.size % source.elements:
        message = f"{INPUT} has {codes.size} elements; a call of {found.row.builtin} takes {source.elements}"
        raise ReadError(message, legal=(f"{source.elements}", f"a multiple of {source.elements}"))
    beyond = _beyond_held(codes, source)
    ran = execute(found.kernel, {INPUT: array_from_codes(codes, fmt)}, args, target=found.target)
    shape = (ran.tiles, result.elements) if ran.tiles > 1 else (result.elements,)
    outputs = {OUTPUT: array_from_codes(ran.outputs[OUTPUT].reshape(shape), format_named(result.format))}
    return BuiltinResult(
        found,
        outputs,
        ran.tiles,
        ran.vector_operations,
        ran.stale_reads,
        (*beyond, *ran.warnings),
        simulate_bundles(ran.tree, found.target),
        found.text(ran.tiles, args),
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

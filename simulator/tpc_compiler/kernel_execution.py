"""Running kernels on arrays: what they compute, what they issue, and what the checked mode says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from castsim.execution.tree import Tree, issued
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError, Warnings
from castsim.isa.formats import format_named
from castsim.isa.tpc import Slot, TpcProgram
from castsim.machines.vliw.assembled import Ran, assemble
from castsim.machines.vliw.assembled import execute as run_assembled
from castsim.machines.vliw.findings import StaleRead
from castsim.numerics import array_from_codes, code_dtype, codes_from_array
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.code_generation import ScheduledKernel

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

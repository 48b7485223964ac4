"""Which pipe an operation takes, also those of the matrix unit that nothing is known of but that."""

from __future__ import annotations

from castsim.execution.interpreter.structure import bare
from castsim.isa.pto import program as pto
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, text_name
from castsim.targets.dataflow import Pipes

_GATHERS = ("tgather", "tgatherb", "tscatter", "mgather", "mscatter")
"""Operations that make the tool keep all flags."""

_MOVES = {
    ("mat", "left"): pto.Pipe.MTE1,
    ("mat", "right"): pto.Pipe.MTE1,
    ("mat", "bias"): pto.Pipe.MTE1,
    ("mat", "scaling"): pto.Pipe.FIX,
    ("vec", "mat"): pto.Pipe.FIX,
}
"""Movements between memories. What writes the accumulator is a product, what reads it FIX, all else the vector unit's.
"""


def gathers(node: pto.Operation) -> bool:
    """Whether an operation is a gather or scatter."""
    return isinstance(node, pto.TileOperation) and text_name(node.mnemonic) in _GATHERS


def pipe_of(node: pto.Tcvt | pto.TileOperation, pipes: Pipes) -> str | None:
    """Return the pipe of an operation, None if the target has no such pipe (docs/reference/pto.md section 5.1)."""
    source, destination = _locations(node)
    if isinstance(node, pto.TileOperation):
        if node.mnemonic == "tload":
            return pipes.load
        if node.mnemonic == "tstore" and source != "acc":
            return pipes.store
        if _is_scalar(node):
            return pipes.scalar
    pipe = _matrix_pipe(source, destination)
    if pipe is None:
        return pipes.vector
    name = bare(pipe)
    return name if name in pipes.others else None


def _is_scalar(node: pto.TileOperation) -> bool:
    """Whether the tool takes an operation for the scalar unit's.

    With a scratch tile it runs on the vector unit, and is ordered there, whatever the tool makes of it.
    """
    operation = VECTOR_OPERATIONS.get(node.mnemonic)
    if operation is None or not operation.scalar_unit:
        return False
    return not any(isinstance(kind, pto.TileType) for kind in node.input_types)


def _matrix_pipe(source: str, destination: str) -> pto.Pipe | None:
    if destination == "acc":
        return pto.Pipe.M
    return pto.Pipe.FIX if source == "acc" else _MOVES.get((source, destination))


def _locations(node: pto.Tcvt | pto.TileOperation) -> tuple[str, str]:
    """Return the memories of the first tile that is read and the first that is written, empty where there is none."""
    if isinstance(node, pto.Tcvt):
        return node.src_type.location, node.dst_type.location
    sides = (node.input_types, node.output_types)
    found = [[kind.location for kind in kinds if isinstance(kind, pto.TileType)] for kinds in sides]
    return found[0][0] if found[0] else "", found[1][0] if found[1] else ""

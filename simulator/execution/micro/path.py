"""What micro operations contribute to the path: addresses, post-updated pointers, counts that are left."""

from __future__ import annotations

from castsim.execution.interpreter.dependence import Scalar
from castsim.execution.micro.pointers import Pointer
from castsim.execution.micro.unit import Value
from castsim.isa.pto.micro.forms import ROWS
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.value_types import REGISTER_BITS, PointerType, ScalarType
from castsim.targets.dataflow import BLOCK_BYTES

BLOCK_ACCESSES = frozenset(("vsldb", "vsstb"))
GATHERS = frozenset(("vgather2", "vgather2_bc", "vgatherb", "vscatter"))


def buffer_access(node: MicroOperation, operands: tuple[Value, ...]) -> tuple[int | None, bool, Pointer | None]:
    """Return the byte that an instruction begins to access, whether it hands on a pointer, and that pointer.

    An instruction that hands one on accesses its base alone; the offset is how far the pointer moves.
    """
    pointer = next((each for each in operands if isinstance(each, Pointer)), None)
    updates = any(isinstance(kind, PointerType) for kind in node.result_types)
    if pointer is None:
        return None, False, None
    base = operands.index(pointer)
    offsets = [int(each.value) for each in operands if isinstance(each, Scalar)]
    if node.mnemonic in BLOCK_ACCESSES:
        further = Pointer(pointer.argument, pointer.address + offsets[1] * BLOCK_BYTES, pointer.element)
        return (pointer if updates else further).address, updates, further
    if node.mnemonic in GATHERS:
        return pointer.address, False, None
    if node.mnemonic == "vldus":
        further = pointer.moved(offsets[0]) if offsets else pointer.moved(REGISTER_BITS // 8 // pointer.size)
        return pointer.address, updates, further
    if node.mnemonic in ("vstus", "vstas"):
        count = offsets[0] if offsets else 0
        return pointer.address, updates, pointer.moved(count)
    is_offset = base + 1 < len(operands) and isinstance(operands[base + 1], Scalar)
    further = pointer.moved(offsets[0]) if is_offset and offsets else pointer
    return (pointer if updates else further).address, updates, further


def left_over(node: MicroOperation, operands: tuple[Value, ...]) -> Scalar:
    """Return the second result of `plt_bN`: how many lanes the next ones have to do."""
    (count,) = operands
    assert isinstance(count, Scalar)
    width = ROWS[node.mnemonic].width
    assert width is not None
    return Scalar(max(int(count.value) - REGISTER_BITS // width, 0))


def hands_on_scalar(node: MicroOperation) -> bool:
    """Whether an instruction of the vector unit has a scalar result."""
    return any(isinstance(kind, ScalarType) for kind in node.result_types)

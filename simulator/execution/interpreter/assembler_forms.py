"""Forms of operations that only some assemblers know."""

from __future__ import annotations

from castsim.execution.choices import MAKE_SCRATCH, TOOLCHAIN
from castsim.isa.errors import ReadError
from castsim.isa.pto import program as pto
from castsim.isa.pto.scratch_forms import form_of, is_older
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS


def is_binary(node: pto.TileOperation) -> bool:
    """Whether a column sum says that it adds in pairs."""
    return dict(node.attributes).get("isBinary") == "true"


def check_form(node: pto.Operation, toolchain: str) -> None:
    """Refuse an operation without the tmp tile that an older assembler wants.

    Raises:
        ReadError: it is such a one.
    """
    operation = VECTOR_OPERATIONS.get(node.mnemonic) if isinstance(node, pto.TileOperation) else None
    if operation is None or not isinstance(node, pto.TileOperation) or toolchain in MAKE_SCRATCH:
        return
    form = form_of(operation, node.input_types)
    if form is None or is_older(operation, form, binary=is_binary(node)):
        return
    if operation.attribute == "isBinary":
        message = f"pto.{node.mnemonic} has isBinary if and only if it has tmp"
    else:
        message = f"pto.{node.mnemonic} is not written with these operands"
    raise ReadError(
        f"{message}: assemblers add a tmp tile from {MAKE_SCRATCH[0]} on",
        span=node.span,
        legal=(*operation.spellings, f"--{TOOLCHAIN} {MAKE_SCRATCH[0]}"),
    )

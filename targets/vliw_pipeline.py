"""Schema of an exposed pipeline: in which stage results become visible and operands are read, and what follows.

The rule (tpc.md section 6.1): a result committed in stage P is seen by an operand read in stage C, whose sharing group
sits in stage S, at a distance in bundles of

    max(1, S - C + 1)   if S > P
    max(1, P - C + 1)   otherwise

Stages are numbered d1 = -1, d2 = 0, e1 = 1, e2 = 2 and so on.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from targets.schema import Cycles, Fact, Status, Table

_SEPARATOR = ";"
ANYTHING = "*"
"""Cell of a stage table that fits every value."""

SlotName = Literal["load", "spu", "vpu", "store"]
Stage = Annotated[int, Field(ge=-1, le=13, strict=True)]


def _listed(cell: Any) -> Any:
    """Split a CSV cell into its items; an empty cell or `-` has none."""
    if cell is None or cell == "":
        return ()
    return tuple(cell.split(_SEPARATOR)) if isinstance(cell, str) else cell


Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Words that a CSV cell separates by `;`."""


class CommitStage(Table):
    """When results become visible: the first row that fits an instruction and its destination file counts.

    `elements` is float, integer or `*`; `files` are register files or names of special registers.
    """

    slot: SlotName
    mnemonics: Listed
    elements: Literal["float", "integer", "*"]
    files: Listed
    stage: Stage
    status: Status


class ReadStage(Table):
    """When an operand is read: the first row that fits an instruction, operand role and register file counts.

    `roles` are those of the instruction table (`src_a` ..) and `predicate`. `sharing_stage` is that of the sharing
    group; equal to `read_stage` where the operand belongs to none.
    """

    slot: SlotName
    mnemonics: Listed
    roles: Listed
    files: Listed
    read_stage: Stage
    sharing_stage: Stage
    status: Status

    def distance(self, commit_stage: int) -> int:
        """Return the smallest issue distance, in bundles, at which this operand sees a result of that stage."""
        last = max(self.sharing_stage, commit_stage)
        return max(1, last - self.read_stage + 1)


class SpecialDistances(Fact):
    """Distances in bundles that the stages do not give."""

    tied_income: Cycles
    """A writer of V, then an instruction that keeps part of that V."""
    disjoint_parts: Cycles
    """The same, if both write different lanes, groups or dual groups of it."""
    predicate_load_then_write: Cycles
    """A load into SP or VP, then another unit's write of the same register."""
    rounding_register: Cycles
    """A store to a rounding register, then an instruction that takes its mode from there."""
    random_register: Cycles
    """A store to a register of the random generator, then a use of it."""
    reseed: Cycles
    """A MOV to LFSR, then an instruction that draws from it."""
    tensor_register: Cycles
    """A write of a register that tensor accesses read implicitly, then such an access."""
    masked_store: Cycles
    """A VP result, then ST_L_V under that VP where the rule gives the stage after next."""


def fitting(cells: tuple[str, ...], word: str) -> bool:
    """Whether a cell of a stage table covers a word."""
    return ANYTHING in cells or word in cells

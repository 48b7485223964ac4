"""What happened, in columns: a row per bundle that was really stepped through, and the repetitions between them.

Times here are *stepped* cycles: those of repetitions that were skipped do not count. `Repetition` says where they
belong, so that real times can be told afterwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from castsim.execution.tree import Block, Lowered, Node, operations
from castsim.machines.vliw.operations import SLOTS, BundleOperation
from castsim.timing import Cause

VPU = SLOTS.index("VPU")


@dataclass(frozen=True, slots=True)
class BundleKind:
    """One distinct bundle: what the recurrence needs of it, in plain integers.

    `vpu` are the cycles for which it occupies the VPU, `accesses` its loads and stores together, `count` the occupied
    slots. A `plain` one takes a cycle and nothing can wait for it but its results.
    """

    instruction: int
    operation: BundleOperation
    vpu: int
    loads: int
    stores: int
    accesses: int
    due: int
    effect: int
    bubbles: int
    count: int
    plain: bool

    @classmethod
    def of(cls, instruction: int, operation: BundleOperation) -> BundleKind:
        """Read an operation."""
        return cls(
            instruction=instruction,
            operation=operation,
            vpu=operation.slot_cycles[VPU],
            loads=operation.loads,
            stores=operation.stores,
            accesses=operation.loads + operation.stores,
            due=operation.data_due,
            effect=operation.effect,
            bubbles=operation.bubbles,
            count=sum(map(bool, operation.slot_cycles)),
            plain=not (operation.loads or operation.stores or operation.bubbles) and operation.slot_cycles[VPU] <= 1,
        )


class Kinds:
    """The distinct bundles of a tree by number; nodes are recognised by identity, equal ones are one object."""

    def __init__(self) -> None:
        self.all: list[BundleKind] = []
        self._of_node: dict[int, tuple[Lowered, tuple[int, ...]]] = {}
        self._of_block: dict[int, tuple[Block, list[array[int] | Node]]] = {}

    def of(self, lowered: Lowered) -> tuple[int, ...]:
        """Return the numbers of the bundles of a node."""
        found = self._of_node.get(id(lowered))
        if found is None:
            first = len(self.all)
            for operation in operations(lowered, None):
                assert isinstance(operation, BundleOperation)
                self.all.append(BundleKind.of(lowered.instruction, operation))
            # The node is kept, or another one could come to have its identity.
            found = self._of_node[id(lowered)] = (lowered, tuple(range(first, len(self.all))))
        return found[1]

    def parts(self, block: Block) -> list[array[int] | Node]:
        """Return the items of a block, neighbouring instructions together as the numbers of their bundles."""
        found = self._of_block.get(id(block))
        if found is None:
            parts: list[array[int] | Node] = []
            run: array[int] | None = None
            known = self._of_node
            for item in block.items:
                if not isinstance(item, Lowered):
                    parts.append(item)
                    run = None
                    continue
                if run is None:
                    run = array("i")
                    parts.append(run)
                numbers = known.get(id(item))
                run.extend(self.of(item) if numbers is None else numbers[1])
            found = self._of_block[id(block)] = (block, parts)
        return found[1]


@dataclass(frozen=True, slots=True)
class Repetition:
    """Rows [first, end) happened `times` times more, right behind themselves.

    `rows`, `cycles` and `operations` are what one of these repetitions adds, nested repetitions counted.
    """

    first: int
    end: int
    times: int
    rows: int
    cycles: int
    operations: int


@dataclass(slots=True)
class IssueHistory:
    """The columns. `issued_at[c]` is the cycle of the first bundle issued in bundle slot c or later."""

    kinds: Sequence[BundleKind]
    kind: array[int] = field(default_factory=lambda: array("i"))
    clock: array[int] = field(default_factory=lambda: array("I"))
    """The bundle slot of each row; `issued_at`, with eight bytes for each slot, outgrows memory long before this."""
    done_at: array[int] = field(default_factory=lambda: array("q"))
    """The cycle in which the last access of the bundle is done, 0 for bundles without."""
    issued_at: array[int] = field(default_factory=lambda: array("q"))
    waits: dict[int, dict[Cause, int]] = field(default_factory=dict)
    """What the core stood still for before a row."""
    repetitions: list[Repetition] = field(default_factory=list)
    """In the order of `end`; those within another one come before it."""

    def start(self, row: int) -> int:
        """Return the cycle in which a row was issued."""
        return self.issued_at[self.clock[row]]

    def finish(self, row: int) -> int:
        """Return the cycle after the last effect of a row: the core notes effects when it issues, so it is then."""
        kind = self.kinds[self.kind[row]]
        return max(self.issued_at[self.clock[row] + max(kind.effect, 1)], self.done_at[row])

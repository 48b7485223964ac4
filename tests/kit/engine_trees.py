"""Operation trees built by hand for the engine tests, and an observer that remembers everything.

The casts here are dense f32 -> f16 repeats of 64 lanes unless said otherwise: 8 source and 4 destination blocks of 32
bytes per repeat (docs/reference/a2a3.md section 2.1). The engine never looks at what an operation computes, so all of
them carry an action without a policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from castsim.engines import simulate
from castsim.execution.pipe_operations import ControlWrite, Transfer
from castsim.execution.timing import Cause
from castsim.execution.tree import Access, Block, Instruction, Lowered, Node, Tree
from castsim.isa.errors import Span
from castsim.isa.formats import FORMATS
from castsim.machines.strided.strided_instructions import DuplicateCode, Stream, StridedInstruction
from castsim.targets.loader import load_target
from castsim.targets.strided_repeat import StridedRepeatTarget

FULL = (1 << 128) - 1
KIBI = 1024


def a2a3(**changes: Any) -> StridedRepeatTarget:
    """The shipped target with other timing rows or options: `vconv=(9, 2, 14)`, `load=(264, "128")`.

    Transfers are round ones, not those of the chip, which say nothing of the machine (test_transfers_measured.py).
    Three rows have startup, interval and tail of their own, which the engine tests count with.
    """
    changes = {
        "load": (264, "128"),
        "store": (107, "16.36"),
        "vconv": (9, 2, 14),
        "vand": (8, 2, 12),
        "vector_dup": (11, 1, 13),
        **changes,
    }
    target = load_target("a2a3")
    timing, options = target.timing, dict(target.options)
    for name, value in changes.items():
        if name in options:
            options[name] = options[name].model_copy(update={"value": value})
        elif name in ("load", "store"):
            row = getattr(timing, name).model_copy(
                update={"startup_cycles": value[0], "bytes_per_cycle": Decimal(value[1])}
            )
            timing = timing.model_copy(update={name: row})
        elif name in timing.vector:
            keys = ("startup_cycles", "repeat_cycles", "tail_cycles")
            row = timing.vector[name].model_copy(
                update=dict(zip(keys, (Decimal(value[0]), Decimal(value[1]), value[2]), strict=True))
            )
            timing = timing.model_copy(update={"vector": {**timing.vector, name: row}})
        else:
            scalar = timing.scalar.model_copy(update={name: value})
            timing = timing.model_copy(update={"scalar": scalar})
    return target.model_copy(update={"timing": timing, "options": options})


def cast(
    repeats: int = 1,
    src: int = 0,
    dst: int = 64 * KIBI,
    *,
    formats: tuple[str, str] = ("f32", "f16"),
    block_stride: int = 1,
    repeat_strides: tuple[int, int] = (8, 4),
    lanes: int = 64,
    mask: int = FULL,
    timing: str = "vconv",
) -> StridedInstruction:
    source = Stream(src, FORMATS[formats[0]], block_stride, repeat_strides[0])
    destination = Stream(dst, FORMATS[formats[1]], 1, repeat_strides[1])
    return StridedInstruction("vconv", timing, repeats, lanes, mask, destination, (source,), DuplicateCode(0))


def load(ub: int, size: int, *, bursts: int = 1, pitch: int | None = None, argument: str = "x") -> Transfer:
    return Transfer("MTE2", True, argument, 0, size, ub, size if pitch is None else pitch, bursts, size)


def store(ub: int, size: int, *, bursts: int = 1, pitch: int | None = None, argument: str = "y") -> Transfer:
    return Transfer("MTE3", False, argument, 0, size, ub, size if pitch is None else pitch, bursts, size)


def control() -> ControlWrite:
    return ControlWrite("ctrl", 0)


def mask_write() -> ControlWrite:
    return ControlWrite("mask", 0, pipe="V")


def lowered(number: int, *operations: Node, accesses: tuple[Access, ...] = ()) -> Lowered:
    return Lowered(number, Block(tuple(operations)), accesses)


def program(*items: Node, interlocked: bool = False, instructions: int = 32) -> Tree:
    """A tree of `Lowered` nodes and loops; instruction k stands in line k + 1 of `k.pto`."""
    table = tuple(Instruction(f"instruction {k}", "V", Span("k.pto", k + 1, 3)) for k in range(instructions))
    return Tree(Block(tuple(items)), table, interlocked)


def singly(*operations: Any, interlocked: bool = False) -> Tree:
    """Every operation an instruction of its own."""
    items = (lowered(number, operation) for number, operation in enumerate(operations))
    return program(*items, interlocked=interlocked, instructions=len(operations))


def causes(timing: Any, pipe: str) -> dict[str, int]:
    """Causes of a pipe by their printed names, without those that cost nothing."""
    return {str(cause): cycles for cause, cycles in timing.pipes[pipe].causes.items() if cycles}


@dataclass
class Recorder:
    """An observer that keeps what it hears."""

    segments: dict[str, list[tuple[int, int, Cause, int | None]]] = field(default_factory=dict)
    blocks: list[tuple[int, str, int, int, bool, int]] = field(default_factory=list)
    progressed: list[tuple[int, int]] = field(default_factory=list)

    def segment(self, pipe: str, start: int, end: int, cause: Cause, operation: int | None) -> None:
        self.segments.setdefault(pipe, []).append((start, end, cause, operation))

    def block(self, cycle: int, pipe: str, operation: int, address: int, write: bool, asked: int) -> None:
        self.blocks.append((cycle, pipe, operation, address, write, asked))

    def progress(self, cycle: int, operations: int) -> None:
        self.progressed.append((cycle, operations))


class Timed(NamedTuple):
    """Operations, each an instruction of its own: what they take, why by pipe, and when each starts and ends."""

    operations: list[Any]
    total: int
    causes: dict[str, dict[str, int]] = {}  # noqa: RUF012
    spans: list[tuple[int, int]] | None = None
    target: dict[str, Any] = {}  # noqa: RUF012
    """What is changed of A2/A3."""

    def check(self) -> None:
        timing = simulate(singly(*self.operations), a2a3(**self.target))
        assert timing.total == self.total
        assert {pipe: causes(timing, pipe) for pipe in self.causes} == self.causes
        if self.spans is not None:
            assert [(operation.start, operation.end) for operation in timing.operations] == self.spans

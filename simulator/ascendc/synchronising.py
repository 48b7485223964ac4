"""Synchronisation that the compiler of AscendC adds: barriers of V, and flags between the scalar unit and other pipes.

Where exactly it adds them is nowhere stated. Assumed: ahead of an instruction that touches bytes of an earlier one of a
pair of pipes, one of them writing, unless a barrier or flags already order the two. That is the least that a correct
compiler adds (the vendor's page on automatic synchronisation names the pairs; docs/ascendc.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from castsim.execution.tree import Access, common_bytes
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import Span
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import Pipe

COMPILED = frozenset(
    (pair for other in ("V", "MTE2", "MTE3") for pair in (("S", other), (other, "S"))),
) | {("V", "V")}
"""Pairs of pipes, the earlier first, that the compiler synchronises."""

_PIPES = ("S", "V", "MTE2", "MTE3")
_KEPT = 256
"""Accesses after which those are dropped that every pipe knows to be done."""


@dataclass(frozen=True, slots=True)
class _Record:
    pipe: str
    number: int
    access: Access


@dataclass(slots=True)
class Synchroniser:
    """Follows a program and adds what the compiler would; `known` is how many instructions of each pipe have ended for
    what a pipe does next."""

    count: int = 0
    """Barriers and pairs of flags that were added."""
    _issued: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_PIPES, 0))
    _known: dict[str, dict[str, int]] = field(
        default_factory=lambda: {pipe: dict.fromkeys(_PIPES, 0) for pipe in _PIPES}
    )
    _flags: dict[tuple[str, str, int], deque[dict[str, int]]] = field(default_factory=dict)
    _records: list[_Record] = field(default_factory=list)

    def follow(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> None:
        """Take in a flag or a barrier."""
        if isinstance(node, pto.Barrier):
            self._barrier(node.pipe.name)
            return
        source, destination = node.src.name, node.dst.name
        if source not in self._known or destination not in self._known:
            return
        tokens = self._flags.setdefault((source, destination, node.event), deque())
        if isinstance(node, pto.SetFlag):
            tokens.append({**self._known[source], source: self._issued[source]})
        elif tokens:
            self._learn(destination, tokens.popleft())

    def before(self, pipe: str, accesses: tuple[Access, ...], span: Span, adds: bool) -> Iterator[pto.Operation]:
        """Yield what has to stand ahead of an instruction, if it is added at all, and take the instruction in."""
        if adds:
            for other in _PIPES:
                if (other, pipe) in COMPILED and self._meets(other, pipe, accesses):
                    yield from self._ordered(other, pipe, span)
        self._issued[pipe] += 1
        number = self._issued[pipe]
        self._records += (_Record(pipe, number, access) for access in accesses)
        if len(self._records) > _KEPT:
            self._drop()

    def _meets(self, other: str, pipe: str, accesses: tuple[Access, ...]) -> bool:
        done = self._known[pipe][other]
        return any(
            record.pipe == other and record.number > done
            and any(_meet(record.access, access) for access in accesses)
            for record in self._records
        )  # fmt: skip

    def _ordered(self, other: str, pipe: str, span: Span) -> Iterator[pto.Operation]:
        self.count += 1
        if other == pipe:
            node = pto.Barrier(Pipe[pipe], inserted=True, span=span)
            self.follow(node)
            yield node
            return
        taken = {
            event for (source, to, event), tokens in self._flags.items() if (source, to) == (other, pipe) and tokens
        }
        event = next((event for event in reversed(range(8)) if event not in taken), 7)
        for kind in (pto.SetFlag, pto.WaitFlag):
            flag = kind(Pipe[other], Pipe[pipe], event, inserted=True, span=span)
            self.follow(flag)
            yield flag

    def _barrier(self, pipe: str) -> None:
        if pipe == "ALL":
            for known in self._known.values():
                known.update(self._issued)
            self._records.clear()
        elif pipe in self._known:
            self._known[pipe][pipe] = self._issued[pipe]

    def _learn(self, pipe: str, token: dict[str, int]) -> None:
        for other, number in token.items():
            self._known[pipe][other] = max(self._known[pipe][other], number)

    def _drop(self) -> None:
        self._records = [
            record
            for record in self._records
            if any(self._known[pipe][record.pipe] < record.number for pipe in _PIPES if (record.pipe, pipe) in COMPILED)
        ]


def _meet(one: Access, other: Access) -> bool:
    if not (one.write or other.write) or one.space != other.space or one.start >= other.end or other.start >= one.end:
        return False
    return common_bytes(one, other) is not None

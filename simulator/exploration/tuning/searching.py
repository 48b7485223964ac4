"""The search: every point is bounded from below, and those are simulated that could still be worth having.

A point is settled once a simulated one needs no more cycles than it takes at least, and no more bytes of the buffer.
When all are settled the fastest point found is the fastest there is, and the front of cycles against bytes is whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from castsim.exploration.tuning.ledger import Ledger
from castsim.exploration.tuning.points import Points, Row, Study, refused
from castsim.isa.errors import CastsimError, EngineError, ReadError
from castsim.timing import ProgressCallback

MOST_SIMULATED = 200
"""Points that are simulated unless the caller says otherwise."""
ALL = "all"
"""In place of a number of points to simulate: every one."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The outcome of a `study`: `rows` are the simulated ones by cycles, then others by their bounds, then misfits."""

    study: Study
    rows: tuple[Row, ...]
    left_out: int
    """Combinations for which a condition does not hold."""

    @property
    def simulated(self) -> tuple[Row, ...]:
        """Rows with cycles, fastest first; of equals the one with fewer bytes, then the earlier one."""
        return tuple(row for row in self.rows if row.cycles is not None)

    @property
    def misfits(self) -> tuple[Row, ...]:
        """Rows of points that do not run."""
        return tuple(row for row in self.rows if row.reason)

    @property
    def waiting(self) -> tuple[Row, ...]:
        """Rows that were bounded and not simulated."""
        return tuple(row for row in self.rows if row.cycles is None and not row.reason)

    @property
    def best(self) -> Row | None:
        """The fastest point; None if none runs."""
        return next(iter(self.simulated), None)

    @property
    def faster_possible(self) -> tuple[Row, ...]:
        """Rows that were not simulated, and whose bounds leave room for fewer cycles than the best has."""
        best = self.best
        return tuple(row for row in self.waiting if best is None or row.at_least < (best.cycles or 0))

    @property
    def pareto(self) -> tuple[Row, ...]:
        """The simulated points to which none is preferable in cycles and bytes both, fastest first."""
        return front(self.simulated)

    @property
    def unsettled(self) -> tuple[Row, ...]:
        """Rows that were not simulated, and might be on that front."""
        done = self.simulated
        return tuple(row for row in self.waiting if not _is_settled(row, done))

    @property
    def differing(self) -> tuple[tuple[Row, tuple[str, ...]], ...]:
        """Simulated rows whose outputs are not those of the best to the bit, with the names of these outputs."""
        best = self.best
        found = []
        for row in self.simulated if best is not None else ():
            names = {*row.outputs, *best.outputs} if best is not None else set()
            other = [name for name in names if best is not None and row.outputs.get(name) != best.outputs.get(name)]
            if other:
                found.append((row, tuple(sorted(other))))
        return tuple(found)


def front(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows to which none is preferable: fewer cycles or bytes, and no more of the other; fastest first."""
    kept: list[Row] = []
    for row in sorted(rows, key=_rank):
        if not kept or _bytes(row) < _bytes(kept[-1]):
            kept.append(row)
    return tuple(kept)


def search(
    study: Study,
    simulate: int | str = MOST_SIMULATED,
    ledger: Ledger | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> Tuning:
    """Search a space.

    Args:
        study: the kernel and its space.
        simulate: points to simulate at most, most promising first; `all` simulates every one.
        ledger: what is known already, and where to keep what is found.
        progress: hears how far it has come.

    Raises:
        ReadError: the kernel or its inputs cannot be read at any point; no point is left by the conditions; the ledger
            cannot be written.
    """
    ledger = Ledger() if ledger is None else ledger
    points = Points(study)
    rows = _bounded(study, points, ledger, progress)
    waiting = sorted((row for row in rows if not row.reason), key=lambda row: (row.at_least, _bytes(row), row.number))
    most = len(waiting) if simulate == ALL else int(simulate)
    done: list[Row] = []
    unreadable: list[ReadError] = []
    finished: dict[int, Row] = {}
    for row in waiting:
        progress("simulations", len(finished), min(most, len(waiting)))
        if len(finished) >= most:
            break
        if simulate != ALL and _is_settled(row, done):
            continue
        timed = finished[row.number] = _simulated(points, ledger, row, unreadable)
        if timed.cycles is not None:
            done.append(timed)
    if unreadable and not done:
        raise unreadable[0]
    ordered = sorted((finished.get(row.number, row) for row in rows), key=_order)
    return Tuning(study, tuple(ordered), study.space.combinations - len(rows))


def _bounded(study: Study, points: Points, ledger: Ledger, progress: ProgressCallback) -> list[Row]:
    rows: list[Row] = []
    unreadable: list[ReadError] = []
    for number, choices in enumerate(study.space.points(), 1):
        progress("bounds", number, study.space.combinations)
        row = Row(number, choices)
        known = ledger.known(row)
        if known is None:
            try:
                known = points.bounded(row)
                ledger.add(known, simulated=False)
            except (CastsimError, EngineError) as error:
                if isinstance(error, ReadError):
                    unreadable.append(error)
                known = refused(row, error)
        rows.append(known)
    if rows and len(unreadable) == len(rows):
        raise unreadable[0]
    if not rows:
        first = study.space.conditions[0]
        legal = ("a condition that holds for some point",)
        raise ReadError("the space is empty: no point meets --where", span=first.span, legal=legal)
    return rows


def _simulated(points: Points, ledger: Ledger, row: Row, unreadable: list[ReadError]) -> Row:
    known = ledger.timed(row)
    if known is None:
        try:
            known = points.simulated(row)
            ledger.add(known, simulated=True)
        except (CastsimError, EngineError) as error:
            if isinstance(error, ReadError):
                unreadable.append(error)
            known = refused(row, error)
    return replace(known, at_least=row.at_least)


def _is_settled(row: Row, done: Sequence[Row]) -> bool:
    return any((one.cycles or 0) <= row.at_least and _bytes(one) <= _bytes(row) for one in done)


def _bytes(row: Row) -> int:
    return row.buffer_bytes or 0


def _rank(row: Row) -> tuple[int, int, int]:
    return row.cycles or 0, _bytes(row), row.number


def _order(row: Row) -> tuple[int, int, int, int]:
    if row.cycles is not None:
        return (0, *_rank(row))
    return (2, row.number, 0, 0) if row.reason else (1, row.at_least, _bytes(row), row.number)

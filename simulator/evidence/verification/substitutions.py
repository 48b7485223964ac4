"""Proofs that a function gives what an instruction gives, on all 2**32 codes: what there is to prove, and the record.

The planner tries chains on all codes of 32 bits with functions that stand in for arithmetic instructions. Such a trial
proves something of the chip only if function and machine model were found equal on all codes; that is done here, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self

from castsim.evidence.verification.kept import (
    SCHEMA_VERSION,
    KeptRecord,
    changed,
    read_tally,
    read_workers,
    sources_document,
    substitution_digests,
    tally_document,
    today,
    workers_document,
)
from castsim.execution.distribution.distributing import ALONE, Workers, distributed, here
from castsim.execution.distribution.origins import FinishedPiece, Origins, ResultOrigin, Task, origin
from castsim.execution.timing import ProgressCallback
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, format_named
from castsim.lowering import catalogue_of
from castsim.lowering.steps import ConstantArithmetic, TileChoiceForm, TileOperationForm, VectorForm
from castsim.lowering.substitution import Identity, Substitute, disagreeing, substitute_of
from castsim.targets import load_target, target_names

CODES = 1 << 32
SHOWN = 10
"""Codes that are kept of a disagreement; all are counted."""

NEEDED = (
    ("f32", "bool", "f32", ("tcmps+tsels", "sel_neq")),
    ("i32", "i4", "i32", ("and",)),
    ("i32", "i4", "u32", ("and",)),
    ("i32", "i8", "i32", ("and",)),
    ("i32", "i8", "u32", ("and",)),
    ("i32", "i16", "i32", ("and",)),
    ("i32", "i16", "u32", ("and",)),
)
"""Source and destination of a cast, the format of the arithmetic, and the instructions: what the chains of the shipped
specifications on the shipped targets rest on. The operands follow from the cast."""

_PIECE = 1 << 24


@dataclass(slots=True)
class Trial:
    """The progress of trying one substitution, from code 0 on."""

    identity: Identity
    tried: int = 0
    mismatches: int = 0
    first: list[int] = field(default_factory=list)
    cpu_seconds: float = 0.0
    date: str | None = None
    computed_by: dict[ResultOrigin, int] = field(default_factory=dict)

    def add(self, found: _Found, by: ResultOrigin) -> None:
        """Take in what the next piece gave, and who computed it."""
        self.first = [*self.first, *found.shown][:SHOWN]
        self.mismatches += found.wrong
        self.cpu_seconds += found.seconds
        stop = min(self.tried + _PIECE, CODES)
        self.computed_by[by] = self.computed_by.get(by, 0) + stop - self.tried
        self.tried = stop
        self.date = today()

    @property
    def codes(self) -> int:
        """The number of codes to try."""
        return CODES

    @property
    def done(self) -> bool:
        """Whether all codes have been tried."""
        return self.tried == self.codes


@dataclass(slots=True)
class SubstitutionRecord(KeptRecord):
    """All trials, the digests of the sources they are about, and when and with what they were run."""

    KIND: ClassVar[str] = "castsim substitution record"

    trials: list[Trial]
    files: dict[str, str]
    runs: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, identities: Iterable[Identity]) -> Self:
        """Start a record on today's sources."""
        return cls([Trial(identity) for identity in dict.fromkeys(identities)], substitution_digests())

    @property
    def mismatches(self) -> int:
        """The number of codes that differed in all."""
        return sum(trial.mismatches for trial in self.trials)

    def extend(self, identities: Iterable[Identity]) -> None:
        """Add what is not there yet."""
        held = {trial.identity for trial in self.trials}
        self.trials += [Trial(identity) for identity in dict.fromkeys(identities) if identity not in held]

    def changed_files(self) -> list[str]:
        """Return the sources that are no longer what the record is about."""
        return changed(self.files, substitution_digests())

    def document(self) -> dict[str, Any]:
        """Return the record as JSON: `codes` of a part is how many there are, `tried` how many were compared."""
        origins = Origins()
        parts = [
            {
                **asdict(trial.identity),
                "codes": trial.codes,
                "tried": trial.tried,
                "mismatches": trial.mismatches,
                "first_mismatches": trial.first,
                "cpu_seconds": round(trial.cpu_seconds, 3),
                "date": trial.date,
                "computed_by": tally_document(trial.computed_by, origins),
            }
            for trial in self.trials
        ]
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": self.KIND,
            "complete": all(trial.done for trial in self.trials),
            "codes_checked": sum(trial.tried for trial in self.trials),
            "mismatches": self.mismatches,
            "sources": sources_document(self.files),
            "runs": self.runs,
            **workers_document(origins),
            "parts": parts,
        }

    @classmethod
    def of_document(cls, held: Mapping[str, Any]) -> Self:
        """See `KeptRecord`."""
        workers = read_workers(held)
        return cls(
            [_trial(part, workers) for part in held["parts"]], dict(held["sources"]["files"]), list(held["runs"])
        )


class Asked(NamedTuple):
    """Which substitutes are wanted: those of a cast, or all that the shipped specifications need; of which targets."""

    pair: tuple[str, str] | None
    targets: tuple[str, ...]

    def substitutes(self) -> list[Substitute]:
        """Return them; errors as `of_cast`."""
        return needed(self.targets) if self.pair is None else of_cast(*self.pair, self.targets)

    def by_identity(self) -> Mapping[Identity, Substitute]:
        """Return them by what a proof of each is known by."""
        return {substitute.identity: substitute for substitute in self.substitutes()}


def needed(targets: Sequence[str] = ()) -> list[Substitute]:
    """Return the substitutes that the shipped targets (or those named) need for the shipped specifications."""
    found = []
    for target in _named(targets):
        for src, dst, fmt, instructions in NEEDED:
            for instruction, substitute in _of_cast(target, format_named(src), format_named(dst)):
                if instruction in instructions and substitute.primitive.src.name == fmt:
                    found.append(substitute)
    return list({substitute.identity: substitute for substitute in found}.values())


def of_cast(src: str, dst: str, targets: Sequence[str] = ()) -> list[Substitute]:
    """Return the substitutes for all arithmetic on 32 bits that chains of a cast may hold.

    Raises:
        ReadError: an unknown format or target.
        IllegalError: there is none.
    """
    pair = format_named(src), format_named(dst)
    found = [substitute for target in _named(targets) for _, substitute in _of_cast(target, *pair)]
    if not found:
        raise IllegalError(f"chains of {src} -> {dst} have no 32-bit arithmetic with a substitute")
    return list({substitute.identity: substitute for substitute in found}.values())


def verify_substitutions(
    record: SubstitutionRecord,
    asked: Asked,
    save: Callable[[], None] | None,
    progress: ProgressCallback = lambda *_: None,
    workers: Workers = ALONE,
) -> None:
    """Try what a record still lacks of the substitutes asked for, piece by piece, saving after each.

    Here they are tried by threads, which share the tables of the machine models.

    Raises:
        ReadError, EngineError: as `castsim.execution.distribution.distributed`.
    """
    wanted = asked.by_identity()
    record.note_run()
    waiting = [trial for trial in record.trials if not trial.done and trial.identity in wanted]
    pieces = (
        _Piece(number, trial.identity, start)
        for number, trial in enumerate(waiting)
        for start in range(trial.tried, CODES, _PIECE)
    )
    early: dict[tuple[int, int], FinishedPiece[_Piece, _Found]] = {}
    task = Task("verification", partial(_try_there, asked), here(None, workers))
    if workers.scheduler is None:
        found = _in_threads(partial(_try, wanted), pieces, workers.count)
    else:
        found = distributed(task, pieces, workers)
    for done in found:
        trial = waiting[done.piece.number]
        early[done.piece.number, done.piece.start] = done
        while (next_ := early.pop((done.piece.number, trial.tried), None)) is not None:
            trial.add(next_.result, next_.origin)
        progress(trial.identity.name, trial.tried, trial.codes)
        if save is not None:
            save()


class _Piece(NamedTuple):
    """The codes from `start` of a trial by its number."""

    number: int
    identity: Identity
    start: int


class _Found(NamedTuple):
    """The first disagreeing codes, how many there are, and the seconds that it took."""

    shown: list[int]
    wrong: int
    seconds: float


def _try(wanted: Mapping[Identity, Substitute], piece: _Piece) -> _Found:
    began = time.thread_time()
    wrong = disagreeing(wanted[piece.identity], piece.start, piece.start + _PIECE)
    return _Found(wrong[:SHOWN].tolist(), wrong.size, time.thread_time() - began)


def _try_there(asked: Asked, piece: _Piece) -> _Found:
    """Try a piece elsewhere: functions that stand in for instructions cannot be handed over."""
    return _try(_made(asked), piece)


@lru_cache(maxsize=8)
def _made(asked: Asked) -> Mapping[Identity, Substitute]:
    return asked.by_identity()


def _in_threads(
    compute: Callable[[_Piece], _Found], pieces: Iterable[_Piece], workers: int
) -> Iterator[FinishedPiece[_Piece, _Found]]:
    """Try pieces in so many threads; yield them in their order."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = iter(pieces)
        while taken := tuple(islice(waiting, workers)):
            for piece, result in zip(taken, pool.map(compute, taken), strict=True):
                yield FinishedPiece(piece, result, origin())


def _named(targets: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(targets)) or tuple(target_names())


def _of_cast(target: str, src: Format, dst: Format) -> Iterator[tuple[str, Substitute]]:
    """Yield instructions with a constant on 32 bits, and what stands in for them."""
    catalogue = catalogue_of(load_target(target), src, dst)
    for name in catalogue.pairs:
        for step in catalogue.from_format(format_named(name)):
            form = step.forms[0]
            for primitive in step.primitives:
                if not isinstance(primitive, ConstantArithmetic) or primitive.src.storage_bits != 32:
                    continue
                assert isinstance(form, TileOperationForm | TileChoiceForm | VectorForm)
                substitute = substitute_of(primitive)
                if substitute is not None:
                    yield form.mnemonic.partition(".")[0], substitute


def _trial(part: dict[str, Any], workers: Sequence[ResultOrigin]) -> Trial:
    identity = Identity(part["name"], part["format"], part["constant"], part["facts"], part["shape"])
    first = [int(code) for code in part["first_mismatches"]]
    return Trial(
        identity,
        int(part["tried"]),
        int(part["mismatches"]),
        first,
        float(part["cpu_seconds"]),
        part["date"],
        read_tally(part, workers),
    )

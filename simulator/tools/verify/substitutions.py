"""Proofs that a function gives what an instruction gives, on all 2**32 codes: what must be proven, and the record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self

from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, format_named
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Date,
    Seconds,
    SourcesEntry,
    VersionsOfRun,
    WorkerCodes,
    WorkerEntry,
)
from castsim.targets.loader import load_target, target_names
from castsim.tools.distribution.distributing import ALONE, Workers, distributed, here
from castsim.tools.distribution.origins import FinishedPiece, Origins, ResultOrigin, Task, origin
from castsim.tools.lowering.catalogue import catalogue_of
from castsim.tools.lowering.samples import Identity, Substitute, disagreeing, substitute_of
from castsim.tools.lowering.steps import ConstantArithmetic, TileChoiceForm, TileOperationForm, VectorForm
from castsim.tools.verify.kept import (
    KeptRecord,
    changed,
    read_tally,
    read_workers,
    sources_document,
    substitution_digests,
    tally_document,
    today,
)

CODES = 1 << 32
SHOWN = 10
"""Maximum number of codes stored of a disagreement; all are counted."""

NEEDED = (
    ("f32", "bool", "f32", ("tcmps+tsels", "sel_neq")),
    ("i32", "i4", "i32", ("and",)),
    ("i32", "i4", "u32", ("and",)),
    ("i32", "i8", "i32", ("and",)),
    ("i32", "i8", "u32", ("and",)),
    ("i32", "i16", "i32", ("and",)),
    ("i32", "i16", "u32", ("and",)),
)
"""Source and destination of a cast, the format of the arithmetic, and the instructions on which the chains of the
shipped specifications on the shipped targets depend. The operands follow from the cast."""

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

    def add(self, finding: _Found, by: ResultOrigin) -> None:
        """Add the results of the next piece, and its worker."""
        self.first = [*self.first, *finding.shown][:SHOWN]
        self.mismatches += finding.wrong
        self.cpu_seconds += finding.seconds
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


class SubstitutionPart(Keys):
    """A function that replaces an instruction."""

    name: str = says("The target, and the instruction with its operands.", "identity.name")
    format: str = says("Name of its source format.", "identity.format")
    constant: int | None = says("Its constant; null if it has none.", "identity.constant")
    facts: str = says("Digest of the sources of its values.", "identity.facts")
    shape: str = says("The substitute function.", "identity.shape")
    codes: int = says("Number of codes.")
    tried: int = says("Number of compared codes.")
    mismatches: int = says("Number of codes that differ.")
    first_mismatches: list[int] = says("The first codes that differ.", "first")
    cpu_seconds: Seconds = says("Time taken.", lambda trial: round(trial.cpu_seconds, 3))
    date: Date | None = says("The day of the last work; null if nothing was done.")
    computed_by: list[WorkerCodes] = says("Number of codes by worker, as far as it was recorded.")


class SubstitutionVerification(CommandDocument, name="verify-substitutions", version=2):
    """Functions that replace instructions; with `--substitutions`."""

    kind: str = says("Kind of the record.")
    complete: bool = says("Whether everything is finished.", lambda record: all(trial.done for trial in record.trials))
    codes_checked: int = says("Number of compared codes.", lambda record: sum(trial.tried for trial in record.trials))
    mismatches: int = says("Number of codes that differ.")
    sources: SourcesEntry = says(
        "The sources on which the record depends.", lambda record: sources_document(record.files)
    )
    runs: list[VersionsOfRun] = says("The runs that produced the record.")
    workers: list[WorkerEntry] = says("The workers of the computation.")
    parts: list[SubstitutionPart] = says("The functions.")


@dataclass(slots=True)
class SubstitutionRecord(KeptRecord):
    """All trials, the digests of their sources, and the dates and versions of the runs."""

    KIND: ClassVar[str] = "castsim substitution record"
    FORM: ClassVar[type[CommandDocument]] = SubstitutionVerification

    trials: list[Trial]
    files: dict[str, str]
    runs: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, identities: Iterable[Identity]) -> Self:
        """Return a new record for the current sources."""
        return cls([Trial(identity) for identity in dict.fromkeys(identities)], substitution_digests())

    @property
    def mismatches(self) -> int:
        """The total number of codes that differed."""
        return sum(trial.mismatches for trial in self.trials)

    def extend(self, identities: Iterable[Identity]) -> None:
        """Add missing substitutions."""
        recorded = {trial.identity for trial in self.trials}
        self.trials += [Trial(identity) for identity in dict.fromkeys(identities) if identity not in recorded]

    def changed_files(self) -> list[str]:
        """Return the sources that have changed since the record was started."""
        return changed(self.files, substitution_digests())

    def results(self, origins: Origins) -> dict[str, Any]:
        """See `KeptRecord`: `codes` of a part is their total, `tried` the number compared."""
        return {
            "parts": [
                SubstitutionPart.of(trial, computed_by=tally_document(trial.computed_by, origins))
                for trial in self.trials
            ]
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """See `KeptRecord`."""
        workers = read_workers(document)
        return cls(
            [_trial(part, workers) for part in document["parts"]],
            dict(document["sources"]["files"]),
            list(document["runs"]),
        )


class Asked(NamedTuple):
    """The requested substitutes: those of a cast, or all that the shipped specifications need; for some targets."""

    pair: tuple[str, str] | None
    targets: tuple[str, ...]

    def substitutes(self) -> list[Substitute]:
        """Return the requested substitutes; for errors see `of_cast`."""
        return needed(self.targets) if self.pair is None else of_cast(*self.pair, self.targets)

    def by_identity(self) -> Mapping[Identity, Substitute]:
        """Return the substitutes by the identity of their proofs."""
        return {substitute.identity: substitute for substitute in self.substitutes()}


def needed(targets: Sequence[str] = ()) -> list[Substitute]:
    """Return the substitutes that the shipped targets (or the named ones) need for the shipped specifications."""
    substitutes = []
    for target in _named(targets):
        for src, dst, fmt, instructions in NEEDED:
            for instruction, substitute in _of_cast(target, format_named(src), format_named(dst)):
                if instruction in instructions and substitute.primitive.src.name == fmt:
                    substitutes.append(substitute)
    return list({substitute.identity: substitute for substitute in substitutes}.values())


def of_cast(src: str, dst: str, targets: Sequence[str] = ()) -> list[Substitute]:
    """Return the substitutes for all 32-bit arithmetic that chains of a cast may contain.

    Raises:
        ReadError: the format or target is unknown.
        IllegalError: there are none.
    """
    pair = format_named(src), format_named(dst)
    substitutes = [substitute for target in _named(targets) for _, substitute in _of_cast(target, *pair)]
    if not substitutes:
        raise IllegalError(f"chains of {src} -> {dst} contain no 32-bit arithmetic that can be substituted")
    return list({substitute.identity: substitute for substitute in substitutes}.values())


def verify_substitutions(
    record: SubstitutionRecord,
    asked: Asked,
    save: Callable[[], None] | None,
    progress: ProgressCallback = lambda *_: None,
    workers: Workers = ALONE,
) -> None:
    """Try what a record still lacks of the requested substitutes, piece by piece, saving after each.

    Threads do the work, because they share the tables of the machine models.

    Raises:
        ReadError, EngineError: see `castsim.tools.distribution.distributing.distributed`.
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
        results = _in_threads(partial(_try, wanted), pieces, workers.count)
    else:
        results = distributed(task, pieces, workers)
    for done in results:
        trial = waiting[done.piece.number]
        early[done.piece.number, done.piece.start] = done
        while (next_ := early.pop((done.piece.number, trial.tried), None)) is not None:
            trial.add(next_.result, next_.origin)
        progress(trial.identity.name, trial.tried, trial.codes)
        if save is not None:
            save()


class _Piece(NamedTuple):
    """The codes of a trial, given by its number, from `start` on."""

    number: int
    identity: Identity
    start: int


class _Found(NamedTuple):
    """The first disagreeing codes, their number, and the seconds of the piece."""

    shown: list[int]
    wrong: int
    seconds: float


def _try(wanted: Mapping[Identity, Substitute], piece: _Piece) -> _Found:
    began = time.thread_time()
    wrong = disagreeing(wanted[piece.identity], piece.start, piece.start + _PIECE)
    return _Found(wrong[:SHOWN].tolist(), wrong.size, time.thread_time() - began)


def _try_there(asked: Asked, piece: _Piece) -> _Found:
    """Try a piece in another process, which makes the substitutes itself: functions cannot be sent."""
    return _try(_made(asked), piece)


@lru_cache(maxsize=8)
def _made(asked: Asked) -> Mapping[Identity, Substitute]:
    return asked.by_identity()


def _in_threads(
    compute: Callable[[_Piece], _Found], pieces: Iterable[_Piece], workers: int
) -> Iterator[FinishedPiece[_Piece, _Found]]:
    """Try pieces in a number of threads; yield them in order."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = iter(pieces)
        while taken := tuple(islice(waiting, workers)):
            for piece, result in zip(taken, pool.map(compute, taken), strict=True):
                yield FinishedPiece(piece, result, origin())


def _named(targets: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(targets)) or tuple(target_names())


def _of_cast(target: str, src: Format, dst: Format) -> Iterator[tuple[str, Substitute]]:
    """Yield 32-bit instructions with a constant, and their substitutes."""
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

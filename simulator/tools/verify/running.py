"""Verifications: the parts, the record, and the work in pieces, in one or several processes."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from castsim.isa.dataclass import dataclass, field, fields
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.formats import DETERMINISTIC, Format, Overflow, Rounding, format_named
from castsim.isa.reading import read_text
from castsim.isa.value_expressions import mode_named
from castsim.numerics.policy import default_rounding, legal_overflows, legal_roundings
from castsim.numerics.tiers import Tier
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Date,
    Name,
    Seconds,
    SourcesEntry,
    VersionsOfRun,
    WorkerCodes,
    WorkerEntry,
)
from castsim.tools.distribution.distributing import Workers, distributed, here
from castsim.tools.distribution.origins import Origins, ResultOrigin, Task
from castsim.tools.verify.comparison import SHOWN, ComparisonResult, Mismatch, compare, oracle_folder
from castsim.tools.verify.inputs import (
    DEFAULT_TIER,
    EXHAUSTIVE,
    GRAIN,
    NARROW,
    ORACLE,
    SAMPLES,
    STRUCTURED,
    Exhaustive,
    Structured,
    VerificationPart,
    input_set,
)
from castsim.tools.verify.kept import (
    SCHEMA_VERSION,
    KeptRecord,
    changed,
    oracle_digest,
    read_tally,
    read_workers,
    source_digests,
    sources_document,
    tally_document,
    today,
)

# The record of a verification: what was to be tried, how far it went, what was found, and on which sources.

PENDING, PARTIAL, DONE = "pending", "partial", "done"


class StatusCounts(Keys):
    """Numbers of parts by progress."""

    done: int = says("Number of finished parts.")
    partial: int = says("Number of begun parts.")
    pending: int = says("Number of parts not begun.")


class CodeMismatch(Keys):
    """A code for which the results differ."""

    position: int = says("Its position in the set of codes.")
    code: int = says("The code of the input.")
    result: int = says("The result.")
    expected: int = says("The correct result.")
    random: int | None = says("The random word of stochastic rounding; null for other roundings.")


class VerifiedCast(Keys):
    """A cast under one mode, and the compared implementations."""

    src: str = says("Name of the source format.", "part.src")
    dst: str = says("Name of the destination format.", "part.dst")
    rounding: str = says("The rounding.", "part.rounding")
    overflow: str = says("The overflow policy.", "part.overflow")
    tier: str = says("The tested implementation.", "part.tier")
    against: str = says("The reference.", "part.against")


class VerifiedPart(VerifiedCast):
    """A cast under one mode, and its progress."""

    inputs: str = says("Name of the set of codes.", "part.inputs")
    count: int = says("Number of samples.", "part.count")
    seed: int = says("Seed of the samples.", "part.seed")
    status: str = says("`done`, `partial` or `pending`.")
    codes: int = says("Number of codes in the set.", "size")
    checked: int = says("Number of compared results.")
    mismatches: int = says("Number of results that differ.")
    undecided: int = says("Number of results without a reference.")
    first_mismatches: list[CodeMismatch] = says("The first results that differ.", "first")
    done: list[list[int]] = says("Finished ranges of the set: the first code, and the one after the last.")
    cpu_seconds: Seconds = says("Time taken.", lambda progress: round(progress.cpu_seconds, 6))
    codes_per_cpu_second: int | None = says(
        "Speed; null if nothing was done.",
        lambda progress: None if progress.codes_per_second is None else round(progress.codes_per_second),
    )
    date: Date | None = says("The day of the last work; null if nothing was done.")
    computed_by: list[WorkerCodes] = says("Number of codes by worker, as far as it was recorded.")


class RecordedVerification(CommandDocument):
    """The file of a verification."""

    VERSION = SCHEMA_VERSION

    kind: str = says("Always `castsim verification record`.")
    complete: bool = says("Whether everything is finished.")
    parts_by_status: StatusCounts = says("Number of parts by status.")
    codes_checked: int = says("Number of compared results.", "checked")
    mismatches: int = says("Number of results that differ.")
    input_sets: dict[Name, str] = says(
        "Description of each set of codes, or the reason why it suffices.",
        lambda record: dict(sorted(record.arguments.items())),
    )
    sources: SourcesEntry = says(
        "The sources on which the record depends.", lambda record: sources_document(record.sources())
    )
    runs: list[VersionsOfRun] = says("The runs that produced the record.")
    workers: list[WorkerEntry] = says("The workers of the computation.")
    parts: list[VerifiedPart] = says("The casts.")


@dataclass(slots=True)
class PartProgress:
    """The progress of one part. `done` are disjoint, rising stretches of positions, stop excluded.

    `computed_by` maps each worker to its number of tried codes, if that was recorded.
    """

    part: VerificationPart
    size: int
    done: list[tuple[int, int]] = field(default_factory=list)
    mismatches: int = 0
    undecided: int = 0
    first: list[Mismatch] = field(default_factory=list)
    cpu_seconds: float = 0.0
    date: str | None = None
    computed_by: dict[ResultOrigin, int] = field(default_factory=dict)

    @property
    def checked(self) -> int:
        """The number of codes tried."""
        return sum(stop - start for start, stop in self.done)

    @property
    def status(self) -> str:
        """`pending`, `partial` or `done`."""
        checked = self.checked
        return PENDING if not checked else DONE if checked == self.size else PARTIAL

    @property
    def codes_per_second(self) -> float | None:
        """Codes tried per second of processor time, None before the first."""
        return self.checked / self.cpu_seconds if self.cpu_seconds > 0 else None

    def add(self, finding: ComparisonResult, by: ResultOrigin | None = None) -> None:
        """Add the results of a stretch, and its worker."""
        stretches = sorted([*self.done, (finding.start, finding.stop)])
        merged = [stretches[0]]
        for start, stop in stretches[1:]:
            if start < merged[-1][1]:
                raise ValueError(f"positions {start} to {merged[-1][1] - 1} of {self.part} were tried twice")
            if start == merged[-1][1]:
                merged[-1] = (merged[-1][0], stop)
            else:
                merged.append((start, stop))
        self.done = merged
        self.mismatches += finding.mismatches
        self.undecided += finding.undecided
        self.first = sorted([*self.first, *finding.first], key=lambda mismatch: mismatch.position)[:SHOWN]
        self.cpu_seconds += finding.cpu_seconds
        self.date = today()
        if by is not None:
            self.computed_by[by] = self.computed_by.get(by, 0) + finding.stop - finding.start

    def missing(self) -> Iterator[tuple[int, int]]:
        """Yield the stretches that have not been tried."""
        position = 0
        for start, stop in [*self.done, (self.size, self.size)]:
            if position < start:
                yield position, start
            position = stop


@dataclass(slots=True)
class VerificationRecord(KeptRecord):
    """The progress of all parts of a verification.

    `files` are the digests of its sources, None until `sources` computes them: they take longer
    than a small verification that is not saved. `runs` lists the dates and versions of the runs.
    """

    KIND: ClassVar[str] = "castsim verification record"
    FORM: ClassVar[type[CommandDocument]] = RecordedVerification

    progress: list[PartProgress]
    files: Mapping[str, str] | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, parts: Iterable[VerificationPart]) -> Self:
        """Return a new record for the current sources.

        Raises:
            IllegalError: an input set cannot be tried.
        """
        progress = [PartProgress(part, input_set(part).size) for part in parts]
        return cls(progress)

    def sources(self) -> Mapping[str, str]:
        """Return the digests of the record's sources, or of the current ones for a new record."""
        if self.files is None:
            self.files = self._sources_now()
        return self.files

    def _sources_now(self) -> dict[str, str]:
        return source_digests(oracle=any(part_progress.part.against == ORACLE for part_progress in self.progress))

    @property
    def mismatches(self) -> int:
        """The total number of codes that differed."""
        return sum(part_progress.mismatches for part_progress in self.progress)

    @property
    def complete(self) -> bool:
        """Whether every code of every part has been tried."""
        return all(part_progress.status == DONE for part_progress in self.progress)

    def changed_files(self) -> list[str]:
        """Return the sources that have changed since the record was started, empty while nothing has been tried."""
        if all(part_progress.status == PENDING for part_progress in self.progress):
            return []
        return changed(self.sources(), self._sources_now())

    def begin_run(self) -> None:
        """Record the start of a run with these versions; a record without results moves to the current sources."""
        if all(part_progress.status == PENDING for part_progress in self.progress):
            self.files = None
        self.note_run()

    @property
    def checked(self) -> int:
        """The number of codes tried."""
        return sum(part_progress.checked for part_progress in self.progress)

    @property
    def arguments(self) -> dict[str, str]:
        """The description of each set of codes."""
        return {
            part_progress.part.inputs: input_set(part_progress.part).argument
            for part_progress in reversed(self.progress)
        }

    def results(self, origins: Origins) -> dict[str, Any]:
        """See `KeptRecord`; codes are numbers."""
        statuses = [part_progress.status for part_progress in self.progress]
        return {
            "parts_by_status": {status: statuses.count(status) for status in (DONE, PARTIAL, PENDING)},
            "parts": [
                VerifiedPart.of(part_progress, computed_by=tally_document(part_progress.computed_by, origins))
                for part_progress in self.progress
            ],
        }

    def text(self) -> str:
        """Return the document as JSON with one part per line: readable, with short differences between versions."""
        document = self.document()
        head = json.dumps({key: value for key, value in document.items() if key != "parts"}, indent=1)
        parts = ",\n".join(f"  {json.dumps(part)}" for part in document["parts"])
        return f'{head[:-2]},\n "parts": [\n{parts}\n ]\n}}\n'

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """See `KeptRecord`."""
        files = {str(name): str(digest) for name, digest in document["sources"]["files"].items()}
        workers = read_workers(document)
        return cls([_read_progress(entry, workers) for entry in document["parts"]], files, list(document["runs"]))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record.

        Raises:
            ReadError: the file is missing or is not a record.
        """
        try:
            document = json.loads(read_text(path, "record"))
            if not isinstance(document, dict) or document.get("kind") != cls.KIND:
                raise ReadError(f"'{path}' is not a record of castsim verify")
            if document["schema_version"] != SCHEMA_VERSION:
                raise ReadError(
                    f"record '{path}' has schema version {document['schema_version']}", legal=(str(SCHEMA_VERSION),)
                )
            return cls.of_document(document)
        except RecursionError:
            raise ReadError(f"'{path}' is not a record of castsim verify: it nests too deeply") from None
        except CastsimError as error:
            raise ReadError(
                error.message if str(path) in error.message else f"record '{path}': {error.message}", legal=error.legal
            ) from None
        except KeyError as error:
            raise ReadError(f"record '{path}' lacks {error}") from None
        except (ValueError, TypeError, AttributeError, IndexError) as error:
            raise ReadError(f"'{path}' is not a record of castsim verify: {error}") from None


def _read_progress(entry: Mapping[str, Any], workers: Sequence[ResultOrigin]) -> PartProgress:
    kinds = {"rounding": Rounding, "overflow": Overflow, "count": int, "seed": int}
    given = {column.name: entry[column.name] for column in fields(VerificationPart)}
    part = VerificationPart(**given | {name: kind(given[name]) for name, kind in kinds.items()})
    part.check()
    size = input_set(part).size
    done = [(int(start), int(stop)) for start, stop in entry["done"]]
    edges = [0, *(edge for stretch in done for edge in stretch), size]
    if entry["codes"] != size or edges != sorted(edges):
        raise ReadError(f"the finished ranges of {part} exceed its {size} codes")
    return PartProgress(
        part,
        size,
        done,
        mismatches=int(entry["mismatches"]),
        undecided=int(entry["undecided"]),
        first=[Mismatch(**mismatch) for mismatch in entry["first_mismatches"]],
        cpu_seconds=float(entry["cpu_seconds"]),
        date=entry["date"],
        computed_by=read_tally(entry, workers),
    )


PIECE_SECONDS = 0.5
"""The intended duration of one piece of work: an interrupt waits for it, and progress moves by it."""

FIRST_PIECE = 1 << 14
LARGEST_PIECE = 1 << 28

SAVE_SECONDS = 5.0
"""Minimum time between two saves, which limits the loss in a crash. An interrupt loses nothing."""


class VerificationObserver(Protocol):
    """Observer of the progress of the work."""

    def advance(self, part_progress: PartProgress, codes: int) -> None:
        """Report that more codes of a part have been tried."""
        ...


def verify(
    record: VerificationRecord,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    save: Callable[[], None] | None = None,
    observer: VerificationObserver | None = None,
) -> None:
    """Try everything that the record still lacks, in the order of its parts.

    A number of processes does the work, or the workers of the Dask scheduler at an address.
    `save` is called every few seconds and at the end, however the work ends. On the first SIGINT the running
    pieces are finished and added; a second one stops at once.

    Raises:
        KeyboardInterrupt: the work was interrupted; the record contains all results.
        ReadError, EngineError: see `castsim.tools.distribution.distributing.distributed`.
    """
    saved = time.monotonic()
    try:
        with _patient() as interrupted:
            who = Workers(workers, scheduler)
            beside = (
                oracle_digest
                if any(part_progress.part.against == ORACLE for part_progress in record.progress)
                else None
            )
            task = Task("verification", _compared, here(beside, who), beside)
            for done in distributed(task, _pieces(record, interrupted), who):
                part_progress, finding = record.progress[done.piece.number], done.result
                part_progress.add(finding, done.origin)
                if observer is not None:
                    observer.advance(part_progress, finding.stop - finding.start)
                if save is not None and time.monotonic() - saved > SAVE_SECONDS:
                    save()
                    saved = time.monotonic()
        if interrupted.is_set():
            raise KeyboardInterrupt
    finally:
        if save is not None:
            save()


class _Piece(NamedTuple):
    """Positions `start` to `stop - 1` of a part, given by its number."""

    number: int
    part: VerificationPart
    start: int
    stop: int


def _pieces(record: VerificationRecord, interrupted: threading.Event) -> Iterator[_Piece]:
    """Yield the missing work until interrupted, in pieces that grow until they take long enough."""
    for number, part_progress in enumerate(record.progress):
        for first, last in list(part_progress.missing()):
            start = first
            while start < last:
                if interrupted.is_set():
                    return
                stop = min(start + _piece(part_progress), last)
                yield _Piece(number, part_progress.part, start, stop)
                start = stop


def _piece(part_progress: PartProgress) -> int:
    """Return the number of codes for the next piece of a part."""
    rate = part_progress.codes_per_second
    codes = FIRST_PIECE if rate is None else min(int(rate * PIECE_SECONDS), LARGEST_PIECE, 8 * part_progress.checked)
    return max(codes // GRAIN, 1) * GRAIN


def _compared(piece: _Piece) -> ComparisonResult:
    return compare(piece.part, piece.start, piece.stop)


@contextmanager
def _patient() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT sets; the second one has its usual effect. For the main thread only."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.getsignal(signal.SIGINT)

    def note(_: int, __: FrameType | None) -> None:
        event.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


# From words to parts: what is compared when only a pair of formats is named.

SAMPLE_COUNT = 1 << 20
"""Default number of samples for all modes of a pair together, so a pair takes some seconds."""

LEAST_SAMPLES = 1 << 16
"""Minimum number of samples for each mode."""

QUICK = 1 << 26
"""Maximum number of codes of a structured set that is used by default."""


def plan(
    src: str,
    dst: str,
    *,
    roundings: Sequence[str] = (),
    overflows: Sequence[str] = (),
    tier: str | None = None,
    against: str | None = None,
    inputs: str | None = None,
    count: int | None = None,
    seed: int = 0,
) -> tuple[VerificationPart, ...]:
    """Return one part per mode; omitted arguments mean everything that the pair has.

    Stochastic rounding is included only by name.

    Raises:
        ReadError: a word is unknown.
        IllegalError: the pair lacks a mode, or the codes cannot be tried.
    """
    source, destination = format_named(src), format_named(dst)
    modes = [mode_named(Rounding, text, "rounding") for text in roundings]
    policies = [mode_named(Overflow, text, "overflow") for text in overflows]
    modes = modes or [mode for mode in legal_roundings(source, destination) if mode is not Rounding.STOCHASTIC]
    policies = policies or list(legal_overflows(destination))
    kinds = {(mode, overflow): inputs or _quick_inputs(source, destination, mode, overflow)
             for mode, overflow in product(modes, policies)}  # fmt: skip
    if count is None:
        count = max(SAMPLE_COUNT // max(list(kinds.values()).count(SAMPLES), 1), LEAST_SAMPLES)
    parts = []
    for (mode, overflow), kind in kinds.items():
        sampled = kind == SAMPLES
        part = VerificationPart(
            src=source.name,
            dst=destination.name,
            rounding=mode,
            overflow=overflow,
            tier=tier or DEFAULT_TIER,
            against=against or default_opponent(),
            inputs=kind,
            count=count if sampled else 0,
            seed=seed if sampled or mode is Rounding.STOCHASTIC else 0,
        )
        part.check()
        parts.append(part)
    return tuple(parts)


def default_opponent() -> str:
    """Return the default opponent of a tier: the oracle or, if it is not installed, the reference tier.

    The oracle is part of the tests, which an installed package does not contain.
    """
    return str(Tier.REFERENCE) if oracle_folder() is None else ORACLE


def _quick_inputs(src: Format, dst: Format, rounding: Rounding, overflow: Overflow) -> str:
    """Return the kind of input set that proves most within a minute or so."""
    if src.bits <= NARROW and Exhaustive(src).size <= 1 << NARROW:
        return EXHAUSTIVE
    if rounding in (Rounding.HYBRID, Rounding.STOCHASTIC):
        return SAMPLES
    try:
        return STRUCTURED if Structured(src, dst, overflow).size <= QUICK else SAMPLES
    except IllegalError:
        return SAMPLES


# The proofs that are shipped: fp32 to eleven destinations, in all modes, under both overflow policies.

SOURCE = "f32"
DESTINATIONS = ("f16", "bf16", "e4m3fn", "e5m2", "e2m1", "e1m2", "hif8", "i8", "u8", "i16", "i32")

COMPILED = "compiled"
"""The tier that casts of large arrays use by default, named explicitly so no code goes through another tier."""

GENERIC = "generic"
REFERENCE = "reference"


def required_parts() -> tuple[VerificationPart, ...]:
    """Return all parts, the most informative for their time first.

    These are the generic kernel against the reference on the structured sets (minutes); the compiled tier against the
    generic kernel on all codes; the generic kernel against the reference on all codes for the default rounding, and for
    hybrid, which no structured set decides.
    """
    structured, fast, slow = [], [], []
    for name in DESTINATIONS:
        src, dst = format_named(SOURCE), format_named(name)
        modes = [mode for mode in legal_roundings(src, dst) if mode in DETERMINISTIC or mode is Rounding.HYBRID]
        for mode, overflow in product(modes, legal_overflows(dst)):
            fast.append(VerificationPart(SOURCE, name, mode, overflow, COMPILED, GENERIC, EXHAUSTIVE))
            if mode in (default_rounding(dst), Rounding.HYBRID):
                slow.append(VerificationPart(SOURCE, name, mode, overflow, GENERIC, REFERENCE, EXHAUSTIVE))
            else:
                structured.append(VerificationPart(SOURCE, name, mode, overflow, GENERIC, REFERENCE, STRUCTURED))
    return (*structured, *fast, *slow)

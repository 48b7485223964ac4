"""Independent checks of lowered casts: they run again, and the oracle judges the results.

The program that the planner wrote is read from its text, run on the simulated target like a user's program, and its
results are judged by the tests' oracle from the wording of the specification. For a refuted chain, the same is
done with its counterexample, whose result must be wrong.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

import castsim.running.acceptance
import castsim.tools.lowering
from castsim.execution.timing import ProgressCallback
from castsim.files import PARTIAL
from castsim.isa.dataclass import asdict, dataclass, field, replace
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Codes, Format, format_named
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes, codes_from_array
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.targets.loader import load_target, target_names
from castsim.targets.specification import Specification
from castsim.tools.distribution.distributing import ALONE, HandedTargets, Workers, distributed, handed_targets, here
from castsim.tools.distribution.origins import FinishedPiece, Origins, ResultOrigin, Task, origin
from castsim.tools.lowering.catalogue import Assembly, assembly_of, catalogue_of
from castsim.tools.lowering.conformance import Cell
from castsim.tools.lowering.demand import CastRequest, Verdict
from castsim.tools.lowering.lowering_answers import Setting, answer
from castsim.tools.lowering.planner import Plan
from castsim.tools.lowering.samples import Identity, Substitute, all_codes, disagreeing, substitute_of, telling_codes
from castsim.tools.lowering.steps import ConstantArithmetic, TileChoiceForm, TileOperationForm, VectorForm
from castsim.tools.verify.comparison import load_oracle, oracle_folder
from castsim.tools.verify.kept import (
    KeptRecord,
    changed,
    digest_of,
    file_digest,
    oracle_digest,
    read_tally,
    read_workers,
    sources_document,
    substitution_digests,
    tally_document,
    today,
)

SAMPLES = 100_000
"""Number of codes of a source of more than 16 bits."""
_ROWS, _COLS = 32, 256
_ALL, _SAMPLED, _COUNTEREXAMPLE = "all", "samples", "counterexample"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of running a lowered cast again.

    `inputs` says which codes were tried: `all`, `samples`, or the `counterexample` of a refuted chain, which claims
    a wrong result. `wrong` counts results against the claim, `first` is the first such code.
    `options` are the target options of the run, named as in `conform`.
    """

    cell: Cell
    way: str
    verdict: str
    chain: tuple[str, ...]
    program_sha256: str
    inputs: str
    codes: int
    wrong: int
    first: int | None
    seconds: float
    options: Setting = ()

    @property
    def good(self) -> bool:
        """Whether the claim is confirmed."""
        return self.wrong == 0


def load_judge() -> ModuleType:
    """Import the judge of lowered casts, which belongs to the tests.

    Raises:
        IllegalError: castsim is installed without its tests.
    """
    load_oracle()
    judge = import_module("oracle_lowering")
    folder = oracle_folder()
    if folder is None or Path(judge.__file__ or "").resolve().parent != folder:
        raise IllegalError(f"another module '{judge.__file__}' hides the one for lowered casts", legal=(str(folder),))
    return judge


def check_cell(
    cell: Cell,
    spec: Specification,
    version: str,
    samples: int = SAMPLES,
    seed: int = 0,
    targets: HandedTargets | None = None,
) -> Checked | None:
    """Plan a cell, run the claimed chain, and judge it; None if no chain reaches the destination.

    `targets` contains those from files, by name, if workers cannot read them.

    Raises:
        IllegalError: there is no oracle.
    """
    request = CastRequest(
        cell.src,
        cell.dst,
        (targets and targets.get(cell.target)) or cell.target,
        spec=spec,
        version=version,
        attributes=dict(cell.attributes),
        rows=_ROWS,
        cols=_COLS,
    )
    reply = answer(request, explain=False, quick=True)  # what is judged here needs no other proof
    checked = check_plan(cell, reply.plan, samples, seed)
    return checked and replace(checked, way=reply.kind.value, options=reply.settings)


def check_plan(cell: Cell, plan: Plan, samples: int = SAMPLES, seed: int = 0) -> Checked | None:
    """Judge a plan for its target; see `check_cell`."""
    if plan.kind.fails and plan.counterexample is None:
        return None
    began = time.process_time()
    demand = plan.demand
    if plan.assembly is not None:
        assembly, inputs, codes = plan.assembly, _ALL, all_codes(demand.src)
        if codes is None:
            inputs, codes = _SAMPLED, _samples(plan, samples, seed)
    else:
        assert plan.counterexample is not None
        assembly = assembly_of(plan.chain, demand.src, demand.dst, plan.target, 1, _COLS)
        inputs, codes = _COUNTEREXAMPLE, np.array([plan.counterexample.input.code], code_dtype(demand.src))
    results = run_text(assembly, codes)
    cast = demand.cast
    good = load_judge().accepted(
        cast.spec.name, demand.src.name, demand.dst.name, dict(cast.attributes), codes, results
    )
    against = ~good if plan.verdict is not Verdict.DIFFERS else good
    wrong = np.flatnonzero(against)
    return Checked(
        cell=cell,
        way=plan.kind.value,
        verdict=plan.verdict.value,
        chain=tuple(step.label for step in plan.chain),
        program_sha256=hashlib.sha256(assembly.text.encode()).hexdigest(),
        inputs=inputs,
        codes=int(codes.size),
        wrong=int(wrong.size),
        first=int(codes[wrong[0]]) if wrong.size else None,
        seconds=time.process_time() - began,
    )


def run_text(assembly: Assembly, codes: Codes) -> Codes:
    """Write a program to a file, run it over codes as a user would, and return the codes of its results."""
    pieces = []
    with TemporaryDirectory(prefix="castsim-", suffix=PARTIAL) as folder:
        path = Path(folder) / f"lowered{assembly.suffix}"
        path.write_text(assembly.text, encoding="utf-8")
        loaded = load(path, assembly.target, None, {})
        for start in range(0, codes.size, assembly.elements):
            part = codes[start : start + assembly.elements]
            whole = np.zeros(assembly.elements, code_dtype(assembly.source))
            whole[: part.size] = part
            given = {"src": array_from_codes(whole, assembly.source)}
            outputs = run_loaded(loaded, given, stale_reads="ignore").outputs
            results = codes_from_array(outputs["dst"], assembly.destination).reshape(-1)
            pieces.append(results[: part.size])
    return np.concatenate(pieces)


def _samples(plan: Plan, count: int, seed: int) -> Codes:
    """Return codes of a wide source: half structured, half uniform."""
    formats = [plan.demand.dst, *(step.dst for step in plan.chain)]
    rng = np.random.default_rng((seed, 1))
    telling = telling_codes(plan.demand.src, formats, count // 64, seed=seed)
    telling = rng.permutation(telling)[: count // 2]
    bits = plan.demand.src.bits
    words = rng.integers(0, (1 << bits) - 1, count - telling.size, dtype=np.uint64, endpoint=True)
    return np.concatenate((telling, words.astype(telling.dtype)))


@dataclass(slots=True)
class LoweringRecord(KeptRecord):
    """Cells of one specification and the results of running them again; a cell without a chain has no result."""

    KIND: ClassVar[str] = "castsim lowering record"

    spec: str
    version: str
    samples: int
    seed: int
    cells: list[Cell]
    done: dict[Cell, Checked | None] = field(default_factory=dict)
    sources: str = ""
    runs: list[dict[str, Any]] = field(default_factory=list)
    computed_by: dict[Cell, ResultOrigin] = field(default_factory=dict)

    @property
    def wrong(self) -> list[Checked]:
        """The cells whose claim is refuted."""
        return [checked for checked in self.checked if not checked.good]

    @property
    def checked(self) -> list[Checked]:
        """The cells that were run."""
        return [checked for checked in self.done.values() if checked is not None]

    def content(self, origins: Origins) -> tuple[dict[str, Any], dict[str, Any]]:
        """See `KeptRecord`."""
        results = self.checked
        places = {cell: origins.place(by) for cell, by in self.computed_by.items()}
        head = {
            "specification": self.spec,
            "version": self.version,
            "samples": self.samples,
            "seed": self.seed,
            "complete": len(self.done) == len(self.cells),
            "cells": len(self.cells),
            "cells_without_a_way": sum(result is None for result in self.done.values()),
            "programs_run": sum(result.inputs != "counterexample" for result in results),
            "counterexamples_run": sum(result.inputs == "counterexample" for result in results),
            "programs_with_options": sum(bool(result.options) for result in results),
            "codes": sum(result.codes for result in results),
            "wrong": len(self.wrong),
            "planner_sha256": self.sources,
        }
        return head, {
            "results": [
                {**asdict(cell), "number": n, "result": _result(self.done[cell]), "computed_by": places.get(cell)}
                for n, cell in enumerate(self.cells)
                if cell in self.done
            ],
            "missing": [{**asdict(cell), "number": n} for n, cell in enumerate(self.cells) if cell not in self.done],
        }

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record.

        Raises:
            ReadError: it is missing or not such a record, or the planner has changed since.
        """
        record = super().load(path)
        if record.sources != planner_digest():
            raise ReadError(f"record '{path}' is stale, start a new one: the planner has changed since")
        return record

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """See `KeptRecord`."""
        done = {_cell(row): _checked(row) for row in document["results"]}
        rows = [*document["results"], *document["missing"]]
        if all("number" in row for row in rows):  # not in records from before workers did cells in any order
            rows.sort(key=lambda row: int(row["number"]))
        workers = read_workers(document)
        by = {
            _cell(row): workers[row["computed_by"]] for row in document["results"] if row.get("computed_by") is not None
        }
        return cls(
            spec=document["specification"],
            version=document["version"],
            samples=document["samples"],
            seed=document["seed"],
            cells=[_cell(row) for row in rows],
            done=done,
            sources=document["planner_sha256"],
            runs=document["runs"],
            computed_by=by,
        )


def verify_lowering(
    record: LoweringRecord,
    spec: Specification,
    save: Callable[[], None] | None,
    progress: ProgressCallback = lambda *_: None,
    workers: Workers = ALONE,
) -> None:
    """Run every unfinished cell of a record.

    Raises:
        ReadError, EngineError: see `castsim.tools.distribution.distributing.distributed`.
        IllegalError: there is no oracle.
    """
    record.sources = planner_digest()
    record.note_run()
    left = [cell for cell in record.cells if cell not in record.done]
    handed = HandedTargets() if workers.scheduler is None else handed_targets({cell.target for cell in left})
    run = partial(
        check_cell, spec=spec, version=record.version, samples=record.samples, seed=record.seed, targets=handed
    )
    beside = oracle_digest
    for number, done in enumerate(distributed(Task("verification", run, here(beside, workers), beside), left, workers)):
        record.done[done.piece] = done.result
        record.computed_by[done.piece] = done.origin
        if save is not None:
            save()
        label = left[min(number + 1, len(left) - 1)]
        progress(f"{label.src} -> {label.dst} on {label.target}", len(record.done), len(record.cells))


def started(spec: Specification, version: str, cells: Iterable[Cell], samples: int | None, seed: int) -> LoweringRecord:
    """Return a new record without results."""
    return LoweringRecord(spec.name, version, SAMPLES if samples is None else samples, seed, list(cells))


def planner_digest() -> str:
    """Return one SHA-256 over the modules of the planner, without comments and docstrings."""
    folder = Path(castsim.tools.lowering.__file__).parent
    paths = sorted([*folder.glob("*.py"), Path(castsim.running.acceptance.__file__)])
    return digest_of({path.name: file_digest(path) for path in paths})


def _result(checked: Checked | None) -> dict[str, Any] | None:
    return None if checked is None else {name: value for name, value in asdict(checked).items() if name != "cell"}


def _cell(row: Mapping[str, Any]) -> Cell:
    attributes = tuple((str(name), str(value)) for name, value in row["attributes"])
    return Cell(str(row["src"]), str(row["dst"]), attributes, str(row["target"]))


def _checked(row: Mapping[str, Any]) -> Checked | None:
    result = row["result"]
    if result is None:
        return None
    options = tuple((str(name), value) for name, value in result.get("options", ()))
    return Checked(cell=_cell(row), **{**result, "chain": tuple(result["chain"]), "options": options})


# Proofs that a function gives what an instruction gives, on all 2**32 codes: what there is to prove, and the record.

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


@dataclass(slots=True)
class SubstitutionRecord(KeptRecord):
    """All trials, the digests of their sources, and the dates and versions of the runs."""

    KIND: ClassVar[str] = "castsim substitution record"

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

    def content(self, origins: Origins) -> tuple[dict[str, Any], dict[str, Any]]:
        """See `KeptRecord`: `codes` of a part is their total, `tried` the number compared."""
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
        head = {
            "complete": all(trial.done for trial in self.trials),
            "codes_checked": sum(trial.tried for trial in self.trials),
            "mismatches": self.mismatches,
            "sources": sources_document(self.files),
        }
        return head, {"parts": parts}

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
    """Fail: substitute functions cannot be sent to another process."""
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

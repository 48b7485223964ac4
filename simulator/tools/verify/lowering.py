"""Independent checks of lowered casts: they run again, and the oracle judges the results.

The program that the planner wrote is read from its text, run on the simulated target like a user's program, and its
results are judged by the tests' oracle from the wording of the specification. For a refuted chain, the same is
done with its counterexample, whose result must be wrong.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

import castsim.running.acceptance
import castsim.tools.lowering
from castsim.execution.timing import ProgressCallback
from castsim.files import PARTIAL
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Codes
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes, codes_from_array
from castsim.reports.documents import CommandDocument, Keys, apart, derived, record, says
from castsim.reports.schemas.keys import Name, Scalar, Seconds, Sha256, VersionsOfRun, WorkerEntry
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.targets.specification import Specification
from castsim.tools.distribution.distributing import ALONE, HandedTargets, Workers, distributed, handed_targets, here
from castsim.tools.distribution.origins import Origins, ResultOrigin, Task
from castsim.tools.lowering.catalogue import Assembly, assembly_of
from castsim.tools.lowering.conformance import Cell
from castsim.tools.lowering.demand import CastRequest, Verdict
from castsim.tools.lowering.lowering_answers import Setting, answer
from castsim.tools.lowering.planner import Plan
from castsim.tools.lowering.samples import all_codes, telling_codes
from castsim.tools.verify.comparison import load_oracle, oracle_folder
from castsim.tools.verify.kept import KeptRecord, digest_of, file_digest, oracle_digest, read_workers

SAMPLES = 100_000
"""Number of codes of a source of more than 16 bits."""
_ROWS, _COLS = 32, 256
_ALL, _SAMPLED, _COUNTEREXAMPLE = "all", "samples", "counterexample"


class LoweredCell(Keys):
    """A cast of the specification on a target."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    attributes: dict[Name, Scalar] = says("Attributes of the operator.")
    target: str = says("Name of the target.")
    number: int = says("Index of the cast among all, from 0.")


@record
class LoweredResult(Keys):
    """Result of running a lowered cast again."""

    cell: Cell = apart()
    way: str = says("Method of the lowering.")
    verdict: str = says("The claim.")
    chain: tuple[str, ...] = says("The instructions.")
    program_sha256: Sha256 = says("Digest of the program's text.")
    inputs: str = says("`all`, `samples` or `counterexample`.")
    codes: int = says("Number of tried codes.")
    wrong: int = says("Number of results that contradict the claim.")
    first: int | None = says("The first code with such a result; null if there is none.")
    seconds: Seconds = says("Time taken.")
    setting: Setting = apart(default=())
    """The options, named as in `conform`."""
    options: list[list[Scalar]] = derived("The options of the target in the run: name and value.", "setting")

    @property
    def good(self) -> bool:
        """Whether the claim is confirmed."""
        return self.wrong == 0


class CheckedCell(LoweredCell):
    """A cast that was run again."""

    result: LoweredResult | None = says("The result; null if no chain was found.")
    computed_by: int | None = says(
        "The worker that computed it: its index in `workers`, from 0; null if it was not recorded."
    )


class LoweringVerification(CommandDocument, name="verify-lowering", version=3):
    """Lowered casts run again from their text; with `--lowering`."""

    kind: str = says("Always `castsim lowering record`.")
    specification: str = says("Name of the specification.", "spec")
    version: str = says("Its version.")
    samples: int = says("Number of samples of wide sources.")
    seed: int = says("Seed of the samples.")
    complete: bool = says("Whether everything is finished.", lambda record: len(record.done) == len(record.cells))
    cells: int = says("Number of casts.", lambda record: len(record.cells))
    cells_without_a_way: int = says("Number of casts without a chain.")
    programs_run: int = says("Number of executed programs.")
    counterexamples_run: int = says("Number of executed counterexamples.")
    programs_with_options: int = says("Number of programs that need options of the target.")
    codes: int = says("Number of tried codes.")
    wrong: int = says("Number of wrong claims.", lambda record: len(record.wrong))
    planner_sha256: Sha256 = says("Digest of the sources on which it depends.", "sources")
    runs: list[VersionsOfRun] = says("The runs that produced the record.")
    workers: list[WorkerEntry] = says("The workers of the computation.")
    results: list[CheckedCell] = says("The finished casts.")
    missing: list[LoweredCell] = says("The unfinished casts.")


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
) -> LoweredResult | None:
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
    return checked and replace(checked, way=reply.kind.value, setting=reply.settings)


def check_plan(cell: Cell, plan: Plan, samples: int = SAMPLES, seed: int = 0) -> LoweredResult | None:
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
    return LoweredResult(
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
    FORM: ClassVar[type[CommandDocument]] = LoweringVerification

    spec: str
    version: str
    samples: int
    seed: int
    cells: list[Cell]
    done: dict[Cell, LoweredResult | None] = field(default_factory=dict)
    sources: str = ""
    runs: list[dict[str, Any]] = field(default_factory=list)
    computed_by: dict[Cell, ResultOrigin] = field(default_factory=dict)

    @property
    def wrong(self) -> list[LoweredResult]:
        """The cells whose claim is refuted."""
        return [checked for checked in self.checked if not checked.good]

    @property
    def checked(self) -> list[LoweredResult]:
        """The cells that were run."""
        return [checked for checked in self.done.values() if checked is not None]

    @property
    def cells_without_a_way(self) -> int:
        """Number of cells without a chain."""
        return sum(result is None for result in self.done.values())

    @property
    def programs_run(self) -> int:
        """Number of executed programs."""
        return sum(result.inputs != _COUNTEREXAMPLE for result in self.checked)

    @property
    def counterexamples_run(self) -> int:
        """Number of executed counterexamples."""
        return sum(result.inputs == _COUNTEREXAMPLE for result in self.checked)

    @property
    def programs_with_options(self) -> int:
        """Number of programs that need options of the target."""
        return sum(bool(result.setting) for result in self.checked)

    @property
    def codes(self) -> int:
        """Number of tried codes."""
        return sum(result.codes for result in self.checked)

    def results(self, origins: Origins) -> dict[str, Any]:
        """See `KeptRecord`."""
        places = {cell: origins.place(by) for cell, by in self.computed_by.items()}
        numbered = list(enumerate(self.cells))
        return {
            "results": [
                CheckedCell.of(cell, number=number, result=self.done[cell], computed_by=places.get(cell))
                for number, cell in numbered
                if cell in self.done
            ],
            "missing": [LoweredCell.of(cell, number=number) for number, cell in numbered if cell not in self.done],
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


def _cell(row: Mapping[str, Any]) -> Cell:
    attributes = tuple((str(name), str(value)) for name, value in row["attributes"])
    return Cell(str(row["src"]), str(row["dst"]), attributes, str(row["target"]))


def _checked(row: Mapping[str, Any]) -> LoweredResult | None:
    result = row["result"]
    if result is None:
        return None
    setting = tuple((str(name), value) for name, value in result.get("options", ()))
    given = {name: value for name, value in result.items() if name != "options"}
    return LoweredResult(cell=_cell(row), **{**given, "chain": tuple(result["chain"]), "setting": setting})

"""Lowered casts run again, and judged by what does not know the planner.

The program that the planner wrote is read from its text, run on the simulated target like any user's, and its results
are judged by the oracle of the tests from the wording of the specification. Of a chain that was refuted the same is
done with its counterexample, whose result must really be wrong.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

from castsim.evidence.verification.oracle import load_oracle, oracle_folder
from castsim.execution.distribution.distributing import HandedTargets
from castsim.files import PARTIAL
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.numerics import array_from_codes, code_dtype, codes_from_array
from castsim.planning import Assembly, CastRequest, Plan, Verdict, assembly_of
from castsim.planning.conformance import Cell
from castsim.planning.lowering_answers import Setting, answer
from castsim.planning.samples import all_codes, telling_codes
from castsim.running import load, run_loaded
from castsim.targets import Specification

SAMPLES = 100_000
"""Codes of a source of more than 16 bits."""
_ROWS, _COLS = 32, 256
_ALL, _SAMPLED, _COUNTEREXAMPLE = "all", "samples", "counterexample"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of running a lowered cast again.

    `inputs` says which codes were tried: `all`, `samples`, or the `counterexample` of a refuted chain, for which a
    wrong result is what was claimed. `wrong` counts results against the claim, `first` is the first such code.
    `options` are those of the target with which the program was run, as `conform` names them.
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
        """Whether the claim stands."""
        return self.wrong == 0


def load_judge() -> ModuleType:
    """Import the judge of lowered casts, which lives with the tests.

    Raises:
        IllegalError: castsim is installed without its tests.
    """
    load_oracle()
    found = import_module("oracle_lowering")
    folder = oracle_folder()
    if folder is None or Path(found.__file__ or "").resolve().parent != folder:
        raise IllegalError(f"another module '{found.__file__}' hides the judge of lowered casts", legal=(str(folder),))
    return found


def check_cell(
    cell: Cell,
    spec: Specification,
    version: str,
    samples: int = SAMPLES,
    seed: int = 0,
    targets: HandedTargets | None = None,
) -> Checked | None:
    """Plan a cell, run what was claimed, and judge it; None where nothing leads to the destination.

    `targets` has those of files, where these may not be.

    Raises:
        IllegalError: no oracle.
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
    found = answer(request, explain=False, quick=True)  # what is judged here needs no other proof
    checked = check_plan(cell, found.plan, samples, seed)
    return checked and replace(checked, way=found.kind.value, options=found.settings)


def check_plan(cell: Cell, found: Plan, samples: int = SAMPLES, seed: int = 0) -> Checked | None:
    """Judge a plan for the target that it is for; see `check_cell`."""
    if found.kind.fails and found.counterexample is None:
        return None
    began = time.process_time()
    demand = found.demand
    if found.assembly is not None:
        assembly, inputs, codes = found.assembly, _ALL, all_codes(demand.src)
        if codes is None:
            inputs, codes = _SAMPLED, _samples(found, samples, seed)
    else:
        assert found.counterexample is not None
        assembly = assembly_of(found.chain, demand.src, demand.dst, found.target, 1, _COLS)
        inputs, codes = _COUNTEREXAMPLE, np.array([found.counterexample.input.code], code_dtype(demand.src))
    results = run_text(assembly, codes)
    cast = demand.cast
    good = load_judge().accepted(
        cast.spec.name, demand.src.name, demand.dst.name, dict(cast.attributes), codes, results
    )
    against = ~good if found.verdict is not Verdict.DIFFERS else good
    wrong = np.flatnonzero(against)
    return Checked(
        cell=cell,
        way=found.kind.value,
        verdict=found.verdict.value,
        chain=tuple(step.label for step in found.chain),
        program_sha256=hashlib.sha256(assembly.text.encode()).hexdigest(),
        inputs=inputs,
        codes=int(codes.size),
        wrong=int(wrong.size),
        first=int(codes[wrong[0]]) if wrong.size else None,
        seconds=time.process_time() - began,
    )


def run_text(assembly: Assembly, codes: Codes) -> Codes:
    """Write a program to a file, run it over codes as a user would; return the codes of its results."""
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
            found = codes_from_array(outputs["dst"], assembly.destination).reshape(-1)
            pieces.append(found[: part.size])
    return np.concatenate(pieces)


def _samples(found: Plan, count: int, seed: int) -> Codes:
    """Return codes of a wide source: half structured, half uniform."""
    formats = [found.demand.dst, *(step.dst for step in found.chain)]
    rng = np.random.default_rng((seed, 1))
    telling = telling_codes(found.demand.src, formats, count // 64, seed=seed)
    telling = rng.permutation(telling)[: count // 2]
    bits = found.demand.src.bits
    words = rng.integers(0, (1 << bits) - 1, count - telling.size, dtype=np.uint64, endpoint=True)
    return np.concatenate((telling, words.astype(telling.dtype)))

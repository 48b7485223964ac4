"""Sections of docs/measured/engines.json measured one by one: `python tests/benchmarks/engines.py --only NAME`.

Each is put in the place of the section of the same title, or at the end; what is before and after stays as it is. What
was measured before a change stands in the text, as the change is not undone to measure it again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from kit.measured_record import replace_section, table

from benchmarks.timing import ROOT, ended
from castsim.execution.pipe_operations import Survey
from castsim.execution.run_limits import MAX_CYCLES
from castsim.running.loaded import RunOptions
from castsim.running.program_loading import load

_SAMPLES = {
    "f32_to_f16_pipelined.pto": (), "f32_to_bf16_rows.pto": (), "kernels/rms_norm_a2a3.pto": ("--arg", "eps=1e-6"),
    "kernels/rms_norm_a5.pto": ("--arg", "eps=1e-6"), "kernels/rotary_cache_a5.pto": ("--arg", "position=0"),
    "tpc_f32_exp_gaudi2.tpc": (),
}  # fmt: skip
"""Sample programs, and what `castsim run` needs for them."""
_COUNTS = (100, 1000, 10_000)
"""Instructions in a row."""
_TRACED = (4096, 65536)
"""Rows of a program that is traced."""
_NUMBERS = 1 << 26
"""Numbers that are cast to f64."""
_ENGINES = """
import json, os, sys
sys.path.insert(0, "tests")
from benchmarks.engine_cases import every_program
from benchmarks.engines import EVENT, EVERY_TRIP, SKIPPING, engines_of, seconds_of
import castsim.running.program_runs as runs
from castsim.__main__ import main

seen = []
simulate = runs.simulate
runs.simulate = lambda tree, target, *others, **options: (
    seen.append((tree, target)) or simulate(tree, target, *others, **options)
)
found = []
def measure(name, tree, target):
    if os.environ.get("NUMBA_DISABLE_JIT"):
        found.append((name, *(seconds_of(lambda: run(tree)) for run in engines_of(target).values())))
    else:
        found.append((name, seconds_of(lambda: engines_of(target)[SKIPPING](tree))))
for program in every_program():
    for count in json.loads(sys.argv[2]):
        measure(f"{program.name}, {count:,} in a row", program.straight(count), program.target)
    measure(f"{program.name}, loop of 10,000", program.loop(10000), program.target)
for sample, arguments in json.loads(sys.argv[1]).items():
    seen.clear()
    sys.stdout = open(os.devnull, "w")
    assert main(["run", f"programs/{sample}", "--timing-only", *arguments]) == 0
    sys.stdout = sys.__stdout__
    measure(sample, *seen[0])
print(json.dumps(found))
"""


def _python(text: str, *arguments: str, **variables: str) -> str:
    done = ended([sys.executable, "-c", text, *arguments], **variables)
    assert done.code == 0, done.err
    return done.out


def without_numba() -> str:
    """Return how the fast engine compares with the event engine where nothing can be compiled."""
    asked = (json.dumps(_SAMPLES), json.dumps(_COUNTS))
    apart = json.loads(_python(_ENGINES, *asked, NUMBA_DISABLE_JIT="1"))
    compiled = dict(json.loads(_python(_ENGINES, *asked)))
    rows = (
        (name, f"{event * 1e3:.2f}", f"{every * 1e3:.2f}", f"{fast * 1e3:.2f}", f"{event / fast:.1f}",
         f"{compiled[name] * 1e3:.2f}")
        for name, event, every, fast in apart
    )  # fmt: skip
    return """\
Thread CPU time of one simulation, as above, with `NUMBA_DISABLE_JIT=1`; the last column is with numba.
Earlier versions skipped nothing in rows of fewer than 4,096 instructions, which took as long as *fast,
no skip*; 10,000 of the first instruction took them 60 ms, with numba.

""" + table("program | event, ms | fast, no skip, ms | fast, ms | times as fast | fast with numba, ms", rows)


def _operations(program: Path) -> int:
    """Return how many operations a program executes."""
    loaded = load(program, None, None, {})
    treatment = RunOptions(values=False, max_cycles=MAX_CYCLES)
    return Survey(loaded.issue({}, treatment).loaded.tree).operations.total()


def traces() -> str:
    """Return what a trace of a long program costs."""
    source = (ROOT / "programs" / "f32_to_bf16_rows.pto").read_text()
    found = []
    for rows, engine in product(_TRACED, ("event", "fast")):
        with tempfile.TemporaryDirectory() as folder:
            program, file = Path(folder) / "rows.pto", Path(folder) / "trace.json"
            program.write_text(source.replace("%rows = arith.constant 4096", f"%rows = arith.constant {rows}"))
            command = [sys.executable, "-m", "castsim", "run", str(program), "--timing-only", "--trace", str(file)]
            done = ended([*command, "--engine", engine])
            size = f"{file.stat().st_size / 2**20:.0f}"
            operations = f"{_operations(program):,}"
        found.append((f"{rows:,}", operations, engine, f"{done.seconds:.1f}", f"{done.mebibytes:.0f}", size))
    return """\
`castsim run --timing-only --trace FILE` of programs/f32_to_bf16_rows.pto, also with more rows: processor
time and largest resident size of the whole command, on either engine. Both write the same trace; after
500,000 segments it is cut off and the engine stops. Earlier versions traced on the event engine only, built
the whole document in memory and recorded every block: that took 4.5 s and 95 MiB for 7,429 operations, 58 s
and 587 MiB for 118,789.

""" + table("rows | operations | engine | seconds | MiB | size of FILE, MiB", found)


def doubles() -> str:
    """Return what bounds f32 -> f64: bytes read and written against a copy of as many."""
    from castsim import cast  # noqa: PLC0415 - only for this section

    singles = np.random.default_rng(0).standard_normal(_NUMBERS, np.float32)
    wide = singles.astype(np.float64)
    runs: tuple[tuple[Callable[[], object], int], ...] = (
        (lambda: cast(singles, "f64"), 12),
        (wide.copy, 16),
        (lambda: singles.astype(np.float64), 12),
        (lambda: np.empty_like(wide).fill(0), 8),
    )
    taken: list[list[float]] = [[] for _ in runs]
    for _ in range(4):
        for (run, _), times in zip(runs, taken, strict=True):
            begun = time.thread_time()
            run()
            times.append(time.thread_time() - begun)
    rates = (
        f"{_NUMBERS * size / float(np.median(times[1:])) / 1e9:.1f}"
        for (_, size), times in zip(runs, taken, strict=True)
    )
    return """\
Memory bandwidth: the cast moves as many bytes per second as a copy of its result. It reads 4 bytes per
number and writes 8, 12 in all; the copy moves 16. Both include the new pages of the result, an array of
512 MiB. Measured on one thread, as medians of three runs taken in turn.

""" + table(
        "numbers | f32 -> f64, GB/s | copy of the result, GB/s | numpy, GB/s | filling new pages, GB/s",
        [(f"{_NUMBERS:,}", *rates)],
    )


SECTIONS: dict[str, tuple[str, Callable[[], str]]] = {
    "numba": ("Without numba", without_numba),
    "traces": ("Traces", traces),
    "f64": ("What bounds f32 -> f64", doubles),
}


def rewrite(record: Path, name: str) -> None:
    """Measure a section and put it into the record."""
    title, measure = SECTIONS[name]
    replace_section(record, f"## {title}\n\n{measure()}")

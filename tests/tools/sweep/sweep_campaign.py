"""Sweeps of 10^6 estimates and 10^4 simulations, killed 20 times each, and on a cluster that loses a worker.

`python tests sweep_campaign` writes docs/measured/sweeps.json; `--points estimate=80000,simulate=1000 --kills 3` is
a short one, `--out -` prints it. The moments of the kills come from `--seed`.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow.parquet as pq
from distributed import LocalCluster
from kit.measured_record import MEASURED, write
from kit.paths import ROOT

import castsim

RECORD = MEASURED / "sweeps.json"
SPECIFICATIONS = {
    "estimate": """\
[sweep]
kind = "cast"
mode = "estimate"
[grid]
target = ["a2a3", "a5"]
src = ["f32", "f16"]
dst = ["f32", "i32", "i16", "i8", "bf16"]
rounding = ["rint", "round", "floor", "ceil", "trunc"]
saturation = ["on", "off"]
row_stride = ["default", 320]
cols = { from = 16, to = 320, step = 16 }
rows = "1..ROWS"
""",
    "simulate": """\
[sweep]
kind = "cast"
mode = "simulate"
[grid]
target = ["a2a3", "a5"]
src = "f32"
dst = ["f16", "bf16", "i16", "i32", "i64"]
cols = { from = 16, to = 320, step = 16 }
rows = "1..ROWS"
""",
}
PER_ROW = {"estimate": 8000, "simulate": 200}
"""Points for each value of `rows`."""
GOALS = {"estimate": 60, "simulate": 300}
SOONEST, LATEST = 0.5, 8.0
"""Seconds after which a sweep is killed."""


@dataclass
class Measured:
    """A sweep: its clock and CPU seconds, the largest memory of all its processes together, what it says."""

    clock: float
    cpu: float
    peak: int
    said: str


def command(specification: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "castsim", "sweep", str(specification), "--out", str(out), "--workers", "2"]


def measured(specification: Path, out: Path) -> Measured:
    """Run a sweep to its end."""
    before, began = os.times(), time.monotonic()
    process = subprocess.Popen(command(specification, out), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    peak = 0
    while process.poll() is None:
        peak = max(peak, memory(process.pid))
        time.sleep(0.1)
    after = os.times()
    assert process.returncode in (0, 1), process.returncode  # 1: points that the target refuses are rows
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Measured(time.monotonic() - began, cpu, peak, process.communicate()[0].strip())


def memory(pid: int) -> int:
    """Return the bytes that a process and its children have for themselves."""
    found = 0
    try:
        own = psutil.Process(pid)
        for process in (own, *own.children(recursive=True)):
            found += process.memory_full_info().uss
    except psutil.Error:
        pass
    return found


def killed(specification: Path, folder: Path, whole: Path, kills: int, chance: random.Random) -> tuple[int, int]:
    """Kill a sweep until it has been killed so often; return how often it came to its end, and equal the whole."""
    done = rounds = 0
    while done < kills:
        rounds += 1
        out = folder / f"{whole.stem}-killed{rounds}.parquet"
        while not out.exists():
            process = subprocess.Popen(command(specification, out), stdout=subprocess.DEVNULL, cwd=ROOT)
            if done < kills:
                try:
                    process.wait(chance.uniform(SOONEST, LATEST))
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    done += 1
            code = process.wait()
            assert code in (0, 1, -signal.SIGKILL), f"it ended with {code}"
        assert pq.read_table(out).equals(pq.read_table(whole)), "rows differ from those of the uninterrupted sweep"
        out.unlink()
    return done, rounds


def on_a_cluster(specification: Path, folder: Path, whole: Path) -> tuple[float, int]:
    """Sweep on two workers, one of which is killed; return the seconds, and the chunks done before the kill."""
    out, chunks = folder / "cluster.parquet", 0
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        victims = [worker.pid for worker in cluster.workers.values()]

        def progress(*_: object) -> None:
            nonlocal chunks
            chunks += 1
            if chunks == 20:
                os.kill(victims[0], signal.SIGKILL)

        began = time.monotonic()
        castsim.sweep(specification, out, scheduler=cluster.scheduler_address, progress=progress)
        seconds = time.monotonic() - began
    assert not psutil.pid_exists(victims[0]), "the worker was not killed"
    assert pq.read_table(out).equals(pq.read_table(whole)), "rows differ from those of local processes"
    return seconds, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", default="estimate=1000000,simulate=10000")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--out", default=str(RECORD))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    about = (
        f"Written by `python tests sweep_campaign --points {options.points} --kills {options.kills} "
        f"--seed {options.seed}`: castsim {castsim.__version__}, two processes on {os.cpu_count()} processors "
        f"(load before the start: {os.getloadavg()[0]:.1f}). CPU seconds include all processes and their start-up. "
        "Memory is the sum of what each process has for itself (USS), sampled ten times a second."
    )
    lines = [
        "# Sweeps: speed and crash recovery", "", *textwrap.wrap(about, 118), "",
        "| sweep | points | clock s | goal | CPU s | memory MiB | of a tenth of the points | result |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]  # fmt: skip
    after: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in options.points.split(","):
            mode, _, points = part.partition("=")
            rows = int(points) // PER_ROW[mode]
            whole, specification = folder / f"{mode}.parquet", folder / f"{mode}.toml"
            tenth = folder / f"{mode}10.toml"
            specification.write_text(SPECIFICATIONS[mode].replace("ROWS", str(rows)))
            tenth.write_text(SPECIFICATIONS[mode].replace("ROWS", str(max(1, rows // 10))))
            small = measured(tenth, folder / f"{mode}10.parquet")
            found = measured(specification, whole)
            said = found.said.replace(str(whole), "the file")
            lines.append(
                f"| {mode} | {rows * PER_ROW[mode]:,} | {found.clock:.1f} | {GOALS[mode]} | {found.cpu:.1f} | "
                f"{found.peak / 2**20:.0f} | {small.peak / 2**20:.0f} | {said} |"
            )
            kills, rounds = killed(specification, folder, whole, options.kills, chance)
            after.append(
                f"* {mode}: killed {kills} times by SIGKILL after {SOONEST} to {LATEST} s; the Parquet file equals "
                f"that of the uninterrupted sweep row for row ({rounds} {'sweep' if rounds == 1 else 'sweeps'})."
            )
            if mode == "simulate":
                seconds, chunks = on_a_cluster(specification, folder, whole)
                after.append(
                    f"* {mode}, on a Dask cluster of two workers, one killed by SIGKILL after {chunks} chunks: the "
                    f"same rows, in {seconds:.1f} s."
                )
    text = "\n".join([*lines, "", *after]) + "\n"
    if options.out == "-":
        print(text)
    else:
        write(Path(options.out), text)


if __name__ == "__main__":
    main()

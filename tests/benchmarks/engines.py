"""Speed of the engines: `python tests/benchmarks/engines.py [--largest 1e7] [--record FILE] [--json FILE]`.

Thread CPU time of one call on a tree in memory, without a trace: the least of a few calls, engines in turn in one
process. Memory is the largest resident size of a process of its own, what the interpreter and imports take included.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from kit.measured_record import MEASURED, table, write

from benchmarks import start_up
from benchmarks.engine_cases import Program, every_program
from benchmarks.engine_sections import SECTIONS, rewrite
from benchmarks.table import machine, machine_text
from castsim import estimate
from castsim.engines import simulate
from castsim.execution.tree import Tree
from castsim.targets.loader import Target

EVENT, EVERY_TRIP, SKIPPING = "event", "fast, no skip", "fast"
_PATIENCE = {EVENT: 10_000, EVERY_TRIP: 10**7, SKIPPING: 10**9}
"""Instructions beyond which an engine is not waited for. Without skipping, it executes every one of them."""
_LIMIT = 10**15
_ONCE = 1.0
"""Seconds from which a call is timed once."""
_CALLS = 5
_ESTIMATED = (("a2a3", "f32", "f16"), ("a2a3", "i32", "f16"), ("a5", "f32", "bf16"), ("a5", "f32", "e4m3fn"))
_ESTIMATED += (("goya", "f32", "i32"), ("gaudi2", "f32", "f8_143"))


@dataclass(frozen=True, slots=True)
class Row:
    """One program of `count` instructions, in a row or in a loop, on one engine."""

    program: str
    form: str
    count: int
    engine: str
    seconds: float
    blocks: int

    @property
    def rate(self) -> float:
        """Instructions per second."""
        return self.count / self.seconds


def engines_of(target: Target) -> dict[str, Callable[[Tree], object]]:
    """Return the engines that there are for a target."""

    def calls(engine: str, *, skip: bool) -> Callable[[Tree], object]:
        return lambda tree: simulate(tree, target, engine=engine, max_cycles=_LIMIT, record_operations=False, skip=skip)

    return {EVENT: calls("event", skip=True), EVERY_TRIP: calls("fast", skip=False), SKIPPING: calls("fast", skip=True)}


def seconds_of(run: Callable[[], object]) -> float:
    """Return the thread CPU time of a call: the least of some, behind one that warms up."""
    taken = []
    for _ in range(_CALLS):
        begun = time.thread_time()
        run()
        taken.append(time.thread_time() - begun)
        if taken[0] > _ONCE:
            break
    return max(min(taken), 1e-9)


def measured(programs: tuple[Program, ...], largest: int) -> Iterator[Row]:
    """Yield every program in a row, from one instruction up, and in loops of up to a thousand million trips."""
    for program in programs:
        engines = engines_of(program.target)
        counts = [10**power for power in range(8) if 10**power <= largest]
        trips = [10**power for power in range(2, 10)]
        for form, sizes, make in (("row", counts, program.straight), ("loop", trips, program.loop)):
            for count in sizes:
                tree = make(count)
                for name, run in engines.items():
                    if count > _PATIENCE[name] or (name != SKIPPING and count > largest):
                        continue
                    taken = seconds_of(lambda run=run, tree=tree: run(tree))  # type: ignore[misc]
                    row = Row(program.name, form, count, name, taken, program.blocks)
                    print(f"{row.program} {form} {count} {name}: {taken:.6f} s", file=sys.stderr, flush=True)
                    yield row


def exponent(rows: list[Row]) -> float | None:
    """Return the slope of time over count in logarithms, between the two largest counts that take a millisecond."""
    large = sorted((row for row in rows if row.seconds > 1e-3), key=lambda row: row.count)[-2:]
    if len(large) < 2:
        return None
    first, second = large
    return math.log(second.seconds / first.seconds) / math.log(second.count / first.count)


def estimates() -> Iterator[dict[str, Any]]:
    """Yield the rates of `estimate`: distinct shapes one by one, warm, and a million in arrays."""
    rng = np.random.default_rng(1)
    size = 1_000_000
    rows, cols = rng.integers(1, 60, size), rng.integers(1, 8, size) * 64
    valid = np.minimum(rng.integers(1, 257, size) * 2, cols)
    for target, src, dst in _ESTIMATED:
        given = list(dict.fromkeys(zip(rows.tolist(), cols.tolist(), valid.tolist(), strict=True)))[:20_000]
        warm, timed = given[:10_000], given[10_000:]
        for shape in warm:
            estimate(src, dst, *shape[:2], valid_cols=shape[2], target=target)
        begun = time.thread_time()
        for shape in timed:
            estimate(src, dst, *shape[:2], valid_cols=shape[2], target=target)
        single = (time.thread_time() - begun) / len(timed)
        begun = time.thread_time()
        estimate(src, dst, rows, cols, valid_cols=valid, target=target)
        found = {"cast": f"{target} {src} -> {dst}", "microseconds": single * 1e6}
        yield {**found, "shapes_per_second": size / (time.thread_time() - begun)}


def memory_of(number: int, count: int) -> int:
    """Return the largest resident size, in bytes, of a process that simulates `count` instructions of a program."""
    command = [sys.executable, str(Path(__file__)), "--memory", str(number), "--largest", str(count)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(found.stdout)


def _hold(number: int, count: int) -> int:
    program = every_program()[number]
    engines_of(program.target)[EVERY_TRIP](program.straight(count))
    return largest_resident()


def largest_resident() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the process that started this one held
        (kibibytes,) = re.findall(r"VmHWM:\s*(\d+) kB", status.read_text())
        return int(kibibytes) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def compiling_seconds() -> float:
    """Have the compiled machine of tile programs at hand; return the CPU seconds that this took."""
    from castsim.engines.fast_dataflow.compiled_machine import compiled_machine  # noqa: PLC0415 - needs numba

    begun = time.process_time()
    compiled_machine()
    return time.process_time() - begun


def document(largest: int) -> dict[str, Any]:
    """Measure everything."""
    programs = every_program()
    compiling = compiling_seconds()
    rows = list(measured(programs, largest))
    held = [
        {"program": program.name, "count": largest, "bytes": memory_of(number, largest)}
        for number, program in enumerate(programs)
    ]
    return {
        "machine": machine(),
        "compiling_seconds": compiling,
        "rows": [{**asdict(row), "per_second": row.rate} for row in rows],
        "exponents": [
            {"program": name, "form": form, "engine": engine, "exponent": exponent(found)}
            for (name, form, engine), found in _grouped(rows).items()
        ],
        "memory": held,
        "estimates": list(estimates()),
        "commands": list(start_up.measured({}, start_up.CALLS)),
    }


def _grouped(rows: list[Row]) -> dict[tuple[str, str, str], list[Row]]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.program, row.form, row.engine), []).append(row)
    return found


def markdown(found: dict[str, Any]) -> str:
    """Return all measurements as a page."""
    text = f"""# Engines

Written by `python tests/benchmarks/engines.py --record docs/measured/engines.json`. Thread CPU time of one
simulation of a lowered program in memory, without a trace or records of operations: the shortest of five
calls, or a single call if it takes more than a second. Instructions are tile casts or bundles. The fast
engine skips what repeats, in loops and in rows of one instruction; without skipping it executes every
instruction.

{machine_text()}

Long runs of tile programs use compiled code, which is kept on disk; it was ready after \
{found["compiling_seconds"]:.1f} s here.
The very first long run waits for the compiler, or runs without compiled code if that is quicker.
"""
    for form, title in (("row", "Instructions in a row"), ("loop", "Trips of a loop of one instruction")):
        rows = (
            (row["program"], f"{row['count']:,}", row["engine"], f"{row['seconds']:.3g}", f"{row['per_second']:.3g}",
             f"{row['per_second'] * row['blocks']:.3g}" if row["blocks"] else "-")
            for row in found["rows"] if row["form"] == form
        )  # fmt: skip
        columns = "program | count | engine | seconds | per second | blocks per second"
        text += f"\n## {title}\n\n{table(columns, rows)}"
    ratios = ((name, f"{count:,}", f"{ratio:.0f}") for name, count, ratio in _ratios(found["rows"]))
    exponents = (
        (row["program"], row["form"], row["engine"], "-" if row["exponent"] is None else f"{row['exponent']:.2f}")
        for row in found["exponents"]
    )
    sizes = ((row["program"], f"{row['count']:,}", f"{row['bytes'] / 2**20:.0f}") for row in found["memory"])
    rates = (
        (row["cast"], f"{row['microseconds']:.1f}", f"{row['shapes_per_second']:.3g}") for row in found["estimates"]
    )
    return f"""{text}
## Fast without skipping against event, per instruction in a row

{table("program | count | times as fast", ratios)}
## Scaling: exponent of time over count

{table("program | form | engine | exponent", exponents)}
## Largest resident size, tree included

{table("program | instructions | MiB", sizes)}
## estimate()

{table("cast | single shape, us | shapes per second, in arrays", rates)}
{start_up.section(found["commands"], start_up.CALLS)}"""


def _ratios(rows: list[dict[str, Any]]) -> Iterator[tuple[str, int, float]]:
    """Yield how many times the rate of the event engine the fast one has, each at its largest count."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in (row for row in rows if row["form"] == "row"):
        best[row["program"], row["engine"]] = max(
            row, best.get((row["program"], row["engine"]), row), key=lambda each: each["count"]
        )
    for name in dict.fromkeys(row["program"] for row in rows):
        event, fast = best[name, EVENT], best[name, EVERY_TRIP]
        yield name, fast["count"], fast["per_second"] / event["per_second"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python tests/benchmarks/engines.py", description="Speed of the engines.")
    parser.add_argument("--largest", type=lambda text: int(float(text)), default=10**7, help="instructions in a row")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the tables")
    parser.add_argument("--json", metavar="FILE", help="write all figures; - is standard output")
    parser.add_argument("--memory", type=int, metavar="N", help="only simulate program N and say what it held")
    parser.add_argument("--only", choices=SECTIONS, help="measure one section and put it into the record")
    options = parser.parse_args(arguments)
    if options.memory is not None:
        print(_hold(options.memory, options.largest))
        return 0
    if options.only:
        rewrite(options.record or MEASURED / "engines.json", options.only)
        return 0
    found = document(options.largest)
    if options.record:
        write(options.record, markdown(found))
        for name in SECTIONS:
            rewrite(options.record, name)
    if options.json == "-":
        json.dump(found, sys.stdout)
    elif options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Speed on whole kernels: `python tests/benchmarks/kernels.py [--lines 20000] [--rows 1024] [--record FILE]`.

Reading of dense texts beside the parser and the tokenizer of Python on as many calls; flags put in; one function of a
file with many; a kernel of the size of a prefill, with values and timing, each in a process of its own, beside NumPy on
whole tensors. Thread CPU time, contestants in turn, medians.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Callable
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from kit.measured_record import table, write

from benchmarks import prefill
from benchmarks.engines import largest_resident
from benchmarks.table import machine_text
from benchmarks.timing import round_robin
from castsim import run
from castsim.isa.pto.pto_parser import parse
from castsim.machines.mechanisms import lowerer_of
from castsim.running.synchronisation.flags import insert
from castsim.targets.loader import load_target

_TILE = "!pto.tile_buf<vec, 16x64x{}>"
_F32, _F16 = _TILE.format("f32"), _TILE.format("f16")
FUNCTIONS = 250


def dense(lines: int, name: str = "k") -> str:
    """Return a function of so many casts, one a line, on eight tiles in turn."""
    text = [f"func.func @{name}() {{", "%c0 = arith.constant 0 : i64"]
    for kind, letter in ((_F32, "x"), (_F16, "y")):
        text += [f"%{letter}{k} = pto.alloc_tile addr = %c0 : {kind}" for k in range(8)]
    for line in range(lines):
        x, y, mode = line % 8, line // 8 % 8, ("RINT", "ROUND", "FLOOR")[line % 3]
        text.append(f"pto.tcvt ins(%x{x} {{rmode = #pto<round_mode {mode}>}} : {_F32}) outs(%y{y} : {_F16})")
    return "\n".join([*text, "return", "}", ""])


def calls(lines: int) -> str:
    """Return the same in Python: calls with as many operands."""
    words = (("RINT", "ROUND", "FLOOR")[line % 3] for line in range(lines))
    return "\n".join(
        f'pto.tcvt(x{k % 8}, dict(rmode=round_mode("{word}")), "{_F32}", y{k // 8 % 8}, "{_F16}")'
        for k, word in enumerate(words)
    )


def reading(lines: int, rounds: int) -> dict[str, float]:
    """Return microseconds a line of castsim and of what it is compared with."""
    text, other = dense(lines), calls(lines)
    target = load_target("a2a3")
    parsed = parse(text, max_statements=2 * lines + 100).functions[0]
    runs: dict[str, Callable[[], object]] = {
        "castsim: parse and check": lambda: parse(text, max_statements=2 * lines + 100),
        "castsim: put flags in": lambda: insert(parsed, lowerer_of(target), target),
        "ast.parse of Python": lambda: ast.parse(other),
        "tokenize of Python": lambda: list(tokenize.generate_tokens(io.StringIO(other).readline)),
    }
    return {name: float(np.median(found)) / lines * 1e6 for name, found in round_robin(runs, rounds).items()}


def entry_seconds(functions: int, lines: int) -> float:
    """Return the CPU seconds of running one function of a file with many, without start-up."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "many.pto"
        file.write_text("\n".join(dense(lines, f"k{number}") for number in range(functions)))
        wanted = f"k{functions - 1}"
        taken = round_robin({"": lambda: run(file, "a2a3", wanted, timing_only=True, races="ignore")}, 3)
    return float(taken[""].min())


def prefill_run(target: str, rows: int, *, table: bool) -> dict[str, float]:
    """Run the large kernel in this process; return CPU seconds, the largest resident size in MiB, and cycles."""
    inputs: dict[str, np.ndarray | str] = dict(prefill.INPUTS)
    if table:
        inputs["order"] = np.random.default_rng(0).permutation(rows // prefill.BLOCK).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "prefill.pto"
        file.write_text(prefill.kernel(target, rows=rows, table=table))
        begun = time.process_time()
        result = run(file, inputs=inputs, args=prefill.ARGUMENTS)
    taken = time.process_time() - begun
    return {"seconds": taken, "mebibytes": largest_resident() / (1 << 20), "cycles": result.cycles}


def _apart(target: str, rows: int, *, table: bool) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__)), "--prefill", target, "--rows", str(rows), *["--table"] * table]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # compiled code is there from then on
    return dict(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))


def document(lines: int, rows: int, rounds: int) -> str:
    """Measure everything and return the page."""
    found = reading(lines, rounds)
    own = found["castsim: parse and check"]
    large = []
    for target in ("a2a3", "a5"):
        for by_table in (False, True):
            row = _apart(target, rows, table=by_table)
            order = "named by a table" if by_table else "in order"
            large.append((target, order, f"{row['seconds']:.1f}", f"{row['mebibytes']:.0f}", f"{row['cycles']:,}"))
    speeds = ((name, f"{taken:.1f}", f"{1e6 / taken:,.0f}", f"{own / taken:.2f}") for name, taken in found.items())
    return f"""# Whole kernels: reading, flags, size

Written by `python tests/benchmarks/kernels.py`. CPU time; medians of contestants in turn.

{machine_text()}

## Texts of {lines:,} casts, one a line

{table("what | us a line | lines per second | castsim reads in so much of its time", speeds)}
One function of {FUNCTIONS} with 50 casts each, read and timed: {entry_seconds(FUNCTIONS, 50):.2f} s.

## {rows:,} x {prefill.COLUMNS:,}: {rows // prefill.BLOCK} trips, values and timing

{table("target | rows | seconds | MiB | cycles", large)}"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python tests/benchmarks/kernels.py", description="Speed on whole kernels.")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=prefill.ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", type=Path, metavar="FILE", help="write it as docs/measured/kernels.json")
    parser.add_argument("--prefill", metavar="TARGET", help="only run the large kernel, in this process")
    parser.add_argument("--table", action="store_true", help="its rows in the order of a table")
    options = parser.parse_args(arguments)
    if options.prefill:
        print(json.dumps(prefill_run(options.prefill, options.rows, table=options.table)))
        return 0
    page = document(options.lines, options.rows, options.rounds)
    if options.record:
        write(options.record, page)
    else:
        print(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Run the benchmark: `python tests/benchmarks [--size 1M] [--set headline] [--record FILE] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.measured_record import write

from benchmarks.cases import HEADLINE, MODES, SIZES, TABLES, Case, source_codes, target_pairs
from benchmarks.contestants import contestants
from benchmarks.table import Row, as_data, machine_text, markdown, row_of, rows_from
from benchmarks.timing import round_robin
from castsim.numerics.blocks import code_dtype

_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SETS = ("headline", "tables", "modes", "targets", "sizes")


def _count(text: str) -> int:
    return int(text[:-1]) * _SUFFIXES[text[-1].upper()] if text[-1].upper() in _SUFFIXES else int(text)


def _cases(name: str) -> tuple[Case, ...]:
    return {"headline": HEADLINE, "tables": TABLES, "modes": MODES, "sizes": SIZES}.get(name) or target_pairs()


def _free_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return 1 << 62


def _fits(case: Case, elements: int) -> bool:
    """Whether input, output, another library's and the copy's arrays fit in three quarters of the free memory."""
    src, dst = case.formats
    needed = 4 * elements * (code_dtype(src).itemsize + code_dtype(dst).itemsize)
    return needed < _free_bytes() * 3 // 4


def measure(cases: tuple[Case, ...], sizes: list[int], rounds: int, *, only_torch: bool = False) -> list[Row]:
    """Return a row for every case and size that memory allows."""
    rows = []
    for elements in sizes:
        for case in cases:
            if not _fits(case, elements):
                print(f"{case.name}: {elements} elements do not fit", file=sys.stderr)
                continue
            runs = contestants(case, source_codes(case, elements), only_torch=only_torch)
            if only_torch and "torch" not in runs:
                continue
            rows.append(row_of(case, elements, round_robin(runs, rounds)))
            print(markdown(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    return rows


def _with_torch(rows: list[Row], arguments: list[str]) -> None:
    """Add the ratios to torch, measured by this program in a process of its own."""
    command = [sys.executable, str(Path(__file__).parent), *arguments, "--only-torch", "--json", "-"]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        print("the process with torch failed; its column stays empty", file=sys.stderr)
        return
    found = {row.key: row for row in rows_from(json.loads(run.stdout)["rows"])}
    for row in rows:
        if row.key in found:
            row.ratios["torch"] = found[row.key].ratios["torch"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python tests/benchmarks", description="Casts beside other libraries.")
    parser.add_argument("--set", action="append", choices=_SETS, help="what to measure; default: all")
    parser.add_argument("--size", action="append", type=_count, help="elements, as 64K, 1M, 1G; default: 1M")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE", help="write all figures; - is standard output")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the tables, as docs/measured/casts.json")
    parser.add_argument("--only-torch", action="store_true", help="compare with torch alone")
    return parser


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    sizes = options.size or [1 << 20]
    text = f"""# Casts beside other libraries

Written by `python tests/benchmarks`. One thread, reused output, elements per second of castsim (1e9), its
fraction of the speed of a `numpy.copyto` of as many bytes, and how many times as fast it is as each library:
median (quartiles) of ratios of thread CPU time taken in turn in one process, torch in one of its own.

{machine_text()}
"""
    rows: list[Row] = []
    for name in options.set or _SETS:
        found = measure(_cases(name), sizes, options.rounds, only_torch=options.only_torch)
        if not options.only_torch and find_spec("torch"):
            same = ["--set", name, "--rounds", str(options.rounds)]
            _with_torch(found, [*same, *(word for size in sizes for word in ("--size", str(size)))])
        rows += found
        text += f"\n## {name}\n\n{markdown(found)}"
    if options.json == "-":
        json.dump(as_data(rows), sys.stdout)
    elif options.json:
        Path(options.json).write_text(json.dumps(as_data(rows), indent=1) + "\n")
    if options.record:
        write(options.record, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

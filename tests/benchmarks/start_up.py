"""Start-up: `python tests/benchmarks/start_up.py [--calls 15] [--against NAME=COMMAND ...] [--record FILE]`.

User and system time of whole processes, the median of some calls, the contestants in turn. COMMAND is the `castsim` of
another installation. With --record, the section of docs/measured/engines.json is
replaced and the rest of it left alone.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.measured_record import replace_section, table

from benchmarks.checking import CAST, tiles
from benchmarks.table import machine
from benchmarks.timing import ended

HERE = "this version"
TITLE = "## Start-up: processor time"
CALLS = 5
NUMPY = (sys.executable, "-c", "import numpy")
"""What the times of others are compared with."""
LONG = "LONG.pto"
"""Stands for a program of 2,000 casts between 8 tiles, `tests/benchmarks/checking.py`."""
STARTS = (
    ("--help",),
    ("run", "--help"),
    ("run", "programs/f32_to_f16.pto", "--in", "src=random:0"),
    ("run", "programs/f32_to_f16.pto", "--in", "src=programs/f32_to_f16.src.npy"),
    ("run", "programs/tpc_f32_i32_pipelined_goya.tpc", "--timing-only"),
    ("run", "programs/tpc_f32_f8_143_gaudi2.tpc", "--timing-only"),
    ("run", "programs/f32_to_f16.pto", "--timing-only", "--quiet"),
    ("run", LONG, "--timing-only", "--quiet"),
    ("run", LONG, "--timing-only", "--quiet", "--engine", "event"),
    ("check", "programs/f32_to_f16.pto"),
    ("cast", "f32", "e4m3fn", "1"),
    ("cast", "f32", "i16", "1", "--target", "a5"),
    ("targets", "a5"),
    ("scratch", "f32", "i16", "--rows", "4", "--cols", "200"),
    ("lower", "f16", "i8", "--spec", "tosa", "--target", "a5"),
    ("lower", "f16", "i8", "--spec", "tosa", "--target", "gaudi2"),
)


def measured(others: Mapping[str, str], calls: int) -> Iterator[dict[str, Any]]:
    """Yield a row a command: its words, and the seconds of each contestant, None for one that does not know it.

    `imports` are its seconds here in those of `import numpy`, which takes part in turn.
    """
    contestants = {
        **{name: shlex.split(command) for name, command in others.items()},
        HERE: [sys.executable, "-m", "castsim"],
    }
    # castsim finds its checked descriptions: the first call of each is not counted.
    with TemporaryDirectory() as folder:
        long = Path(folder, LONG)
        pairs = ((number * 5 % 8, number * 3 % 7) for number in range(2000))
        long.write_text(tiles("a3", 8, pairs, CAST), encoding="utf-8")
        for words in STARTS:
            taken: dict[str, list[float | None]] = {name: [] for name in contestants}
            imports = []
            for _ in range(calls + 1):
                for name, command in contestants.items():
                    done = ended([*command, *(str(long) if word == LONG else word for word in words)])
                    taken[name].append(done.seconds if done.code == 0 else None)
                imports.append(ended(NUMPY).seconds)
            seconds = {name: median(filter(None, found[1:])) if all(found) else None for name, found in taken.items()}
            here = seconds[HERE]
            times = None if here is None else here / median(imports[1:])
            yield {"command": " ".join(("castsim", *words)), "seconds": seconds, "imports": times}


def section(rows: Sequence[Mapping[str, Any]], calls: int) -> str:
    """Return the section of the record."""
    shown = (
        (
            f"`{row['command']}`",
            *("-" if taken is None else f"{taken * 1e3:.0f}" for taken in row["seconds"].values()),
            "-" if row["imports"] is None else f"{row['imports']:.2f}",
        )
        for row in rows
    )
    head = (
        f"{TITLE}\n\nUser and system time of a process in ms on {machine()['processor']}, the median of {calls}, the "
        "contestants in turn. LONG.pto has 2,000 casts.\n\n"
    )
    return head + table(" | ".join(("command", *rows[0]["seconds"], "in imports of numpy")), shown)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python tests/benchmarks/start_up.py", description="Time of start-up.")
    parser.add_argument("--calls", type=int, default=15, help="calls of each command")
    parser.add_argument("--against", metavar="NAME=COMMAND", action="append", default=[], help="another installation")
    parser.add_argument("--record", type=Path, metavar="FILE", help="replace the section of this record")
    options = parser.parse_args(arguments)
    others = dict(text.split("=", 1) for text in options.against)
    text = section(list(measured(others, options.calls)), options.calls)
    print(text)
    if options.record:
        replace_section(options.record, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""How long `castsim lower` takes: `python tests/benchmarks/answers.py [--record FILE]`.

Every answer is a process of its own, start-up included, once with numba and once without. CPU seconds of all its
threads are those of an idle machine too; seconds of the clock are not, where others work beside it. Python finds its
byte code, as in every run but the first; quick answers are asked for a few times, and the quickest counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.measured_record import table, write

from benchmarks.timing import ended

ASKED = (
    "f16 i8 --spec tosa --target a5", "f16 i8 --spec tosa --target gaudib", "bf16 u8 --spec onnx --target a2a3",
    "i16 bool --spec tosa --target gaudi2", "f16 e4m3fn --spec onnx --target a5", "f32 i8 --spec tosa --target a2a3",
    "f32 bf16 --spec tosa --target gaudi2", "f32 f16 --spec tosa --target a5", "i32 bf16 --spec tosa --target a5",
    "f32 i32 --spec tosa --target a5", "i32 f32 --spec tosa --target gaudi2", "f32 u16 --spec onnx --target gaudi",
    "f32 bool --spec tosa --target a2a3", "i64 f32 --spec onnx --target a5",
)  # fmt: skip
"""Requests: sources of 16 bits, then wide ones that go by breakpoints, by all codes, by samples."""

_QUICK, _TIMES = 3.0, 5
"""Seconds of an answer that is asked for so many times."""

_WITHOUT = "import sys; sys.modules['numba'] = None\n"
_RUN = "from castsim.__main__ import main; raise SystemExit(main({arguments!r}))"


@dataclass(frozen=True)
class Answer:
    """Seconds that one answer took, and the line that tells how it was reached."""

    asked: str
    numba: bool
    cpu: float
    clock: float
    how: str


def quickest(asked: str, *, numba: bool) -> Answer:
    """Return the quickest of a few answers, or the only one where it takes long."""
    found = [ask(asked, numba=numba)]
    while found[0].cpu < _QUICK and len(found) < _TIMES:
        found.append(ask(asked, numba=numba))
    return min(found, key=lambda one: one.cpu)


def ask(asked: str, *, numba: bool) -> Answer:
    """Run one request in a process of its own."""
    code = ("" if numba else _WITHOUT) + _RUN.format(arguments=["lower", *asked.split()])
    began = time.monotonic()
    done = ended([sys.executable, "-c", code], COLUMNS="400")
    clock = time.monotonic() - began
    if done.code not in (0, 1) or "Traceback" in done.err:
        raise RuntimeError(done.err)
    verdicts = ("proven for every", "exact:", "conforms:", "differs:", "no difference found", "nothing beyond")
    lines = [line.strip() for line in done.out.splitlines() if line.strip().startswith(verdicts)]
    return Answer(asked, numba, done.seconds, clock, lines[0] if lines else "nothing leads there")


def markdown(answers: list[Answer]) -> str:
    """Return the table."""
    rows = (
        (one.asked, "with" if one.numba else "without", f"{one.cpu:.2f}", f"{one.clock:.2f}", one.how)
        for one in answers
    )
    return f"""# How long `castsim lower` takes

Written by `python tests/benchmarks/answers.py`: a process per answer, start-up included. CPU seconds add up
those of all threads ({os.cpu_count()} processors); clock seconds depend on what else the machine does.
Byte code is there, as in every run but the first; the quickest of {_TIMES} under {_QUICK:g} s.

{table("castsim lower | numba | CPU s | clock s | answer", rows)}"""


def main(arguments: list[str]) -> int:
    """Measure all, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description="Times of castsim lower.")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write it as docs/measured/lowering.json")
    options = parser.parse_args(arguments)
    answers = []
    for asked in ASKED:
        for numba in (True, False):
            answers.append(quickest(asked, numba=numba))
            print(f"{answers[-1].cpu:7.2f} s CPU {answers[-1].clock:7.2f} s  {asked}", file=sys.stderr, flush=True)
    text = markdown(answers)
    if options.record:
        write(options.record, text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

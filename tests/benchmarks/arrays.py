"""Casts of arrays on chips, quantising, and quick judgements: `python tests/benchmarks/arrays.py [--record FILE]`.

A cast on a chip is measured in turn with the abstract cast that has the chip's own policy where its instructions come
to one conversion, else with the abstract cast's default; judgements are processes of their own, start-up included.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from kit.measured_record import table, write

import castsim
from benchmarks.cases import Case, source_codes
from benchmarks.table import machine_text
from benchmarks.timing import ended, quartiles, round_robin
from castsim.machines.mechanisms import CastAsked, machine_of
from castsim.numerics.codec import native_dtype
from castsim.targets.loader import load_target

SMALL, LARGE, HUGE = 1 << 8, 1 << 20, 1 << 24
CASTS = (
    ("a2a3", "f32", "f16"), ("a2a3", "f32", "i32"), ("a2a3", "f16", "i8"), ("a2a3", "f32", "bf16"),
    ("a5", "f32", "f16"), ("a5", "f32", "e4m3fn"), ("a5", "f16", "i8"), ("a5", "f32", "i16"), ("a5", "i32", "i16"),
    ("gaudi2", "f32", "bf16"), ("gaudi2", "bf16", "f32"), ("gaudi2", "i32", "i8"), ("greco", "f32", "i8"),
)  # fmt: skip
BLOCKS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp4_e2m1", "mxint8")
JUDGEMENTS = (
    "lower i32 f16 --target a5", "lower u16 e2m1 --target a5", "lower f32 bool --spec onnx --target a5",
    "lower f32 f16 --target a5", "graph programs/eight_casts.onnx --target a5 --in x=random:1",
    "conform --spec tosa --target a5", "advise programs/kernels/quantise_rows_fp8_a5.pto",
)  # fmt: skip
_WARM = 1 << 26
"""Elements that go through a cast before it is measured: machine code is then loaded."""


def cast_rows(rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of casts: microseconds of a small call, and both casts of a large array."""
    for target, src, dst in CASTS:
        case = Case(src, dst)
        native = native_dtype(case.formats[0])
        large = source_codes(case, LARGE)
        large = large if native is None else large.view(native)
        policy = machine_of(load_target(target)).element_cast(CastAsked(*case.formats)).policy
        small = large[:SMALL].copy()
        runs = {
            "chip": lambda x=large, t=target, s=src, d=dst: castsim.cast(x, s, d, target=t),
            "abstract": lambda x=large, s=src, d=dst, p=policy: castsim.cast(x, s, d, policy=p),
            "call": lambda x=small, t=target, s=src, d=dst: castsim.cast(x, s, d, target=t),
            "abstract call": lambda x=small, s=src, d=dst: castsim.cast(x, s, d),
        }
        for _ in range(_WARM // LARGE):
            runs["chip"](), runs["abstract"](), castsim.cast(large, src, dst)
        taken = {name: quartiles(times).median for name, times in round_robin(runs, rounds).items()}
        yield (
            target, f"{src} -> {dst}", f"{taken['call'] * 1e6:.1f}", f"{taken['abstract call'] * 1e6:.1f}",
            f"{LARGE / taken['chip'] / 1e9:.2f}", f"{taken['chip'] / taken['abstract']:.2f}",
        )  # fmt: skip


def block_rows(rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of block formats: numbers a second."""
    numbers = np.random.default_rng(1).standard_normal((HUGE // 1024, 1024)).astype(np.float32)
    for name in BLOCKS:
        for _ in range(_WARM // HUGE):
            castsim.quantise(numbers, name)
        for rows, count in ((LARGE // 1024, rounds), (HUGE // 1024, 3)):
            part = numbers[:rows]
            times = round_robin({"quantise": lambda x=part, f=name: castsim.quantise(x, f)}, count)["quantise"]
            yield name, f"{part.size:,}", f"{part.size / quartiles(times).median / 1e9:.3f}"


def judgement_rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of commands: CPU seconds of a process that finds its byte code."""
    for asked in JUDGEMENTS:
        done = ended([sys.executable, "-m", "castsim", *asked.split()])
        if done.code not in (0, 1) or "Traceback" in done.err:
            raise RuntimeError(done.err)
        yield f"castsim {asked}", f"{done.seconds:.2f}"


def markdown(rounds: int) -> str:
    """Measure all and return the record."""
    casts = table(
        "target | cast | us of 256 | us of 256, abstract | G/s of 1M | times the abstract cast", cast_rows(rounds)
    )
    blocks = table("format | numbers | G/s", block_rows(rounds))
    judgements = table("command | CPU s", judgement_rows())
    return f"""# Casts of arrays on chips, quantising, quick judgements

Written by `python tests/benchmarks/arrays.py`: medians of {rounds} rounds of thread CPU time, all contestants in turn.
CPU seconds of commands add up all threads ({os.cpu_count()} processors).

{machine_text()}

## Casts

{casts}
## Blocks

{blocks}
## Judgements

{judgements}"""


def main(arguments: list[str]) -> int:
    """Measure all, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description="Casts of arrays on chips, quantising, quick judgements.")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write it as docs/measured/arrays.json")
    parser.add_argument("--rounds", type=int, default=31, help="samples of each contestant; default: 31")
    options = parser.parse_args(arguments)
    text = markdown(options.rounds)
    if options.record:
        write(options.record, text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

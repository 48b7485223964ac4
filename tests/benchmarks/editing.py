"""How fast `castsim lsp` answers an edit in texts of 10,000 lines; writes `docs/measured/editing.json`.

python tests/benchmarks/editing.py [EDITS]

Every edit spoils a word of some line, or puts it right again; it is answered when the diagnostics of its version have
arrived, with the error if there is one. Edits follow each other while the whole text is being checked, as in typing.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeVar

from lsprotocol import types as lsp

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.lsp_client import editor
from kit.measured_record import MEASURED, table, write

RECORD = MEASURED / "editing.json"
MACHINE = f"python {sys.version.partition(' ')[0]}, two processor cores shared with other work"
Texts = dict[str, tuple[str, Callable[[], list[str]]]]
"""Name of a file, and the maker of its lines, by title."""
Got = TypeVar("Got")
Ask = Callable[[str, list[str], int], Coroutine[Any, Any, Got]]
LINES, EDITS, LIMIT = 10_000, 200, 200

_TILE, _HALF = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x64xf16>"
_BODY = (
    f"    pto.tadd ins(%a, %a : {_TILE}, {_TILE}) outs(%b : {_TILE})",
    f"    pto.tcvt ins(%b {{rmode = #pto<round_mode RINT>}} : {_TILE}) outs(%h : {_HALF})",
)
_ALLOCATED = tuple(f"    %{name} = pto.alloc_tile : {_HALF if name == 'h' else _TILE}" for name in "abh")


def function(name: str, body: int) -> list[str]:
    """Return a function of so many operations."""
    return [f"  func.func @{name}() {{", *_ALLOCATED, *(_BODY[n % 2] for n in range(body)), "    return", "  }"]


def module(functions: list[list[str]]) -> list[str]:
    return ['module attributes {pto.target_arch = "a3"} {', *(line for one in functions for line in one), "}"]


def bundles() -> list[str]:
    head = ["// castsim: target gaudi2", "// castsim: tensor 0 x in f32 [64, 16]", "// castsim: reg S0 = 0x43aa2000"]
    trip = ["nop; nop; mul.f32 V2, V0, S0; nop", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop"]
    return [*head, *(trip * (LINES // 2)), "nop; halt; halt; nop"]


TEXTS = {
    "one function, .pto": ("one.pto", lambda: module([function("k", LINES - 8)])),
    "200 functions, .pto": ("many.pto", lambda: module([function(f"k{n}", 44) for n in range(LINES // 50)])),
    "bundles, .tpc": ("long.tpc", bundles),
}
WRONG = {"tadd": "taddx(", "tcvt": "tcvt(", "mul.f32": "mulx.f32", "convert.f32": "konvert.f32"}
"""Words that are spoilt, and how."""


async def measured(name: str, lines: list[str], edits: int) -> list[float]:
    """Return milliseconds from each edit to its answer."""
    numbers = random.Random(1)
    uri = (Path("/bench") / name).as_uri()
    found = []
    async with editor() as one:
        one.open(uri, "\n".join(lines))
        candidates = [n for n, line in enumerate(lines) if any(f"{word} " in line for word in WRONG)]
        await asyncio.sleep(3)  # the client shows the text, the server has started
        for _ in range(edits // 2):
            number = numbers.choice(candidates)
            word = next(word for word in WRONG if f"{word} " in lines[number])
            start = lines[number].index(word)
            for old, new in ((word, WRONG[word]), (WRONG[word], word)):
                place = lsp.Range(lsp.Position(number, start), lsp.Position(number, start + len(old)))
                began = time.perf_counter()
                version = one.change(uri, place, new)
                answer = await one.of_version(uri, version)
                found.append(1000 * (time.perf_counter() - began))
                wrong = any(each.range.start.line == number and each.severity == 1 for each in answer.diagnostics)
                assert wrong is (new != word), (number, new, answer.diagnostics[:3])
                await asyncio.sleep(0.05)
    return found


def report(rows: dict[str, tuple[int, list[float]]]) -> str:
    shown = (
        (name, f"{lines:,}", len(times), *(f"{each:.0f}" for each in (median(times), _nine_of_ten(times), max(times))))
        for name, (lines, times) in rows.items()
    )
    return f"""# Edits in long texts

Written by `python tests/benchmarks/editing.py`: milliseconds from an edit to its diagnostics, with a
client of `castsim lsp` over standard input and output. An edit is answered with the syntax and types of
its own lines, while another process checks the whole text. Limit at the median: {LIMIT} ms.

{MACHINE}

{table("text | lines | edits | median ms | 90 % ms | most ms", shown)}"""


def _nine_of_ten(times: list[float]) -> float:
    return quantiles(times, n=10)[-1]


def measure(texts: Texts, ask: Ask[Got], times: int) -> dict[str, tuple[int, Got]]:
    """Return the lines of each text, and what was found by so many edits or questions."""
    found = {}
    for title, (name, make) in texts.items():
        lines = make()
        found[title] = len(lines), asyncio.run(ask(name, lines, times))
        print(title, file=sys.stderr)
    return found


def main() -> None:
    rows = measure(TEXTS, measured, int(sys.argv[1]) if len(sys.argv) > 1 else EDITS)
    text = report(rows)
    print(text)
    write(RECORD, text)


if __name__ == "__main__":
    main()

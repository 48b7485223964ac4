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
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles

from lsprotocol import types as lsp

TESTS = Path(__file__).parent.parent
RECORD = TESTS.parent / "docs" / "measured" / "editing.json"
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
    editor = import_module("lsp_client").editor  # of the tests, whose folder is on the path by now
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
    shown = []
    for name, (lines, times) in rows.items():
        figures = (f"{each:.0f}" for each in (median(times), quantiles(times, n=10)[-1], max(times)))
        shown.append(f"| {name} | {lines:,} | {len(times)} | {' | '.join(figures)} |")
    return "\n".join(
        [
            "# Edits in long texts",
            "",
            "Written by `python tests/benchmarks/editing.py`: milliseconds from an edit to its diagnostics, with a",
            "client of `castsim lsp` over standard input and output. An edit is answered with the syntax and types of",
            f"its own lines, while another process checks the whole text. Limit at the median: {LIMIT} ms.",
            "",
            f"python {sys.version.partition(' ')[0]}, two processor cores shared with other work",
            "",
            "| text | lines | edits | median ms | 90 % ms | most ms |",
            "| --- | --- | --- | --- | --- | --- |",
            *shown,
            "",
        ]
    )


def main() -> None:
    sys.path.insert(0, str(TESTS))
    edits = int(sys.argv[1]) if len(sys.argv) > 1 else EDITS
    rows = {}
    for title, (name, make) in TEXTS.items():
        lines = make()
        rows[title] = len(lines), asyncio.run(measured(name, lines, edits))
        print(f"{title}: {median(rows[title][1]):.0f} ms at the median of {edits} edits", file=sys.stderr)
    import_module("measured_record").write(RECORD, report(rows))


if __name__ == "__main__":
    main()

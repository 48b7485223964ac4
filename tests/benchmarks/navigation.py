"""How fast `castsim lsp` finds names and colours words in 10,000 lines; writes `docs/measured/navigation.json`.

python tests/benchmarks/navigation.py [QUESTIONS]

Every question follows an edit, so that nothing of the answer can be kept from the one before. The lines of a text
differ from each other, and a value is used in many of them. Times are from the question to its answer as read JSON;
the objects that the client's library then makes of it are left out. Those of the server's processor alone, of Linux's
`schedstat`, do not rest on what else the machine does.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from lsprotocol import types as lsp

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.lsp_client import editor
from kit.measured_record import MEASURED, table, write

from benchmarks.editing import MACHINE, measure

RECORD = MEASURED / "navigation.json"
LINES, QUESTIONS = 10_000, 300
LIMITS = {"definition": 50, "references": 200, "colours": 200, "colours that changed": 200}
"""Milliseconds at the 99th percentile."""

WORDS = ("ins(%", "addi %", "vadd %", ", V")
"""What stands before the names that are asked for."""

_TILE = "!pto.tile_buf<vec, 16x64xf32>"


def tiles() -> list[str]:
    head = ['module attributes {pto.target_arch = "a3"} {', "  func.func @k(%n: index) attributes {pto.entry} {"]
    made = [f"    %t{n} = pto.alloc_tile : {_TILE}" for n in range(40)]
    added = [
        "    %c0 = arith.constant 1 : index",
        *(f"    %c{n} = arith.addi %c{n // 20}, %n : index" for n in range(1, 4000)),
    ]
    used = [
        f"    pto.tadd ins(%t{n % 40}, %t{n % 37} : {_TILE}, {_TILE}) outs(%t{7 * n % 40} : {_TILE}) // {n}"
        for n in range(LINES - 5 - 4040)
    ]
    return [*head, *made, *added, *used, "    return", "  }", "}"]


def lanes() -> list[str]:
    head = [
        'module attributes {pto.target_arch = "a5"} {',
        "  func.func @k(%x: !pto.ptr<f32, ub>) attributes {pto.kernel} {",
        "    %c0 = arith.constant 0 : index", "    pto.vecscope {",
    ]  # fmt: skip
    load = "      %v{n} = pto.vlds %x[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>"
    lane = "!pto.vreg<64xf32>"
    add = f"      %v{{n}} = pto.vadd %v{{a}}, %v{{b}}, %m : {lane}, {lane}, !pto.mask<b32> -> {lane}"
    body = [(add if n % 2 else load).format(n=n, a=n - 1, b=n // 3 // 2 * 2) for n in range(LINES - 8)]
    return [*head, '      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>', *body, "    }", "    return", "  }", "}"]


def bundles() -> list[str]:
    head = ["// castsim: target gaudi2", "// castsim: tensor 0 x in f32 [64, 16]", "// castsim: reg S0 = 0x43aa2000"]
    trips = [
        f"nop; nop; mul.f32 V{2 + n % 30}, V{2 + n % 7}, S0; nop // {n}"
        if n % 2
        else f"nop; nop; convert.f32 target_type=int16 rhne V{2 + n % 30}, V{2 + (n + 1) % 30}; nop // {n}"
        for n in range(LINES - 4)
    ]
    return [*head, *trips, "nop; halt; halt; nop"]


TEXTS = {
    "tiles, .pto": ("t.pto", tiles),
    "vector instructions, .pto": ("m.pto", lanes),
    "bundles, .tpc": ("b.tpc", bundles),
}


Times = dict[str, list[tuple[float, float]]]
"""Milliseconds that have passed, and those of the server's processor, by question."""


def processor(pid: int) -> float:
    """Return the milliseconds that a process has had of processors."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text(encoding="ascii").split()[0]) for each in tasks) / 1e6


def arrivals(protocol: Any) -> list[float]:
    """Return a list that gets the time of each answer, when it is read and before objects are made of it."""
    found: list[float] = []
    structured = protocol.structure_message

    def read(message: dict[str, object]) -> object:
        if "jsonrpc" in message and "method" not in message:
            found.append(time.perf_counter())
        return structured(message)

    protocol.structure_message = read
    return found


async def measured(name: str, lines: list[str], questions: int) -> Times:
    """Return the times of the answers by question."""
    numbers = random.Random(1)
    uri = (Path("/bench") / name).as_uri()
    document = lsp.TextDocumentIdentifier(uri)
    found: Times = {each: [] for each in LIMITS}
    async with editor() as one:
        arrived = arrivals(one.client.protocol)
        one.open(uri, "\n".join(lines))
        await one.client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
        places = [n for n, line in enumerate(lines) if any(word in line for word in WORDS)]
        held = ""
        for number in range(questions):
            line = numbers.choice(places)
            written = lines[line]
            word = next(word for word in WORDS if word in written)
            place = lsp.Position(line, written.index(word) + len(word))
            end = lsp.Position(line, len(written))
            one.change(uri, lsp.Range(end, end), " ")
            version = one.change(uri, lsp.Range(end, lsp.Position(line, len(written) + 1)), "")
            await one.of_version(uri, version)
            what = list(LIMITS)[number % len(LIMITS)]
            pid = one.client._server.pid  # type: ignore[union-attr]
            used, began = processor(pid), time.perf_counter()
            if what == "definition":
                params = lsp.DefinitionParams(document, place)
                answer = await one.client.text_document_definition_async(params)
                assert answer, written
            elif what == "references":
                params = lsp.ReferenceParams(lsp.ReferenceContext(include_declaration=True), document, place)
                assert await one.client.text_document_references_async(params), written
            elif what == "colours that changed":
                asked = lsp.SemanticTokensDeltaParams(document, held)
                delta = await one.client.text_document_semantic_tokens_full_delta_async(asked)
                assert isinstance(delta, lsp.SemanticTokensDelta)
                held = delta.result_id or ""
            else:
                colours = await one.client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
                assert colours is not None and len(colours.data) > 5 * 3 * len(lines)
                held = colours.result_id or ""
            found[what].append((1000 * (arrived[-1] - began), processor(pid) - used))
    return found


def report(rows: dict[str, tuple[int, Times]]) -> str:
    shown = []
    for name, (lines, times) in rows.items():
        for what, each in times.items():
            columns = zip(*each, strict=True)
            figures = (f"{one:.0f}" for own in columns for one in (median(own), quantiles(own, n=100)[-1]))
            shown.append((name, what, f"{lines:,}", len(each), *figures, LIMITS[what]))
    columns = "text | question | lines | answers | median ms | 99 % ms | own median ms | own 99 % ms | limit ms"
    return f"""# Names and colours in long texts

Written by `python tests/benchmarks/navigation.py`: milliseconds from a question to its answer, with a
client of `castsim lsp` over standard input and output, each right after an edit. `own` is what the
server had of a processor for it. Limits are those of a machine with nothing else to do.

{MACHINE}

{table(columns, shown)}"""


def main() -> None:
    text = report(measure(TEXTS, measured, int(sys.argv[1]) if len(sys.argv) > 1 else QUESTIONS))
    print(text)
    write(RECORD, text)


if __name__ == "__main__":
    main()

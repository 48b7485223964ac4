"""Pages read without a browser: their elements, their data, and the intervals that lanes pack."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kit.sample_arguments import command
from makers.expected_files import PROGRAMS

from castsim.__main__ import main
from castsim.tools.advise import page as advice_page

SAMPLES = [
    path
    for path in sorted((*PROGRAMS.rglob("*.pto"), *PROGRAMS.rglob("*.tpc")))
    if path.parent.name != "sequential"  # these are for `castsim schedule`
]


GRAPHS = {
    "casts_and_rescales.mlir": "--target a2a3 --in arg0=random:1 --in arg1=random:2",
    "dynamic_quantise.onnx": "--target a2a3 --in x=random:1",
    "quantise_block.onnx": "--target a5 --in x=random:1 --arg rows=4",
    "quantise_half.onnx": "--target a2a3 --in x=random:1 --arg rows=4",
    "requantise.mlir": "--target a2a3 --in arg0=random:1 --in arg1=random:2",
}


def run_command(path: Path) -> list[str]:
    """The arguments with which a sample is run; those that come with another command cast `src`."""
    words = command(path)[1:]
    return words if words[0] == "run" else ["run", str(path), "--in", "src=random:1"]


def graph_command(name: str) -> list[str]:
    return ["run", f"programs/{name}", *GRAPHS[name].split()]


@dataclass
class Elements(HTMLParser):
    """Elements with their attributes, and the texts of scripts and styles."""

    found: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[tuple[str, dict[str, str | None], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: tuple[str, dict[str, str | None]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.texts.append((*self._open, data))


def elements(text: str) -> Elements:
    found = Elements()
    found.feed(text)
    found.close()
    return found


def data_of(text: str) -> dict[str, Any]:
    """The data of a page, with its result as it was before it was deflated."""
    (data,) = re.findall('<script type="application/json" id="data">([^<]*)</script>', text)
    found: dict[str, Any] = json.loads(data)
    found["result"] = plain(found["result"])
    return found


def plain(value: Any) -> Any:
    return unpacked(value)["value"] if isinstance(value, dict) and {*value} == {"packed"} else value


def run_page(
    argv: list[str], folder: Path, *, advised: bool = False
) -> tuple[dict[str, Any], dict[str, Any], str, int]:
    """Run a command with `--html` and `--json`: the page's data, the JSON, the page, the exit code.

    Unless it is to be `advised`, no changes are tried, which takes seconds.
    """
    page, document = folder / "page.html", folder / "run.json"
    tried = advice_page.advice_of if advised else lambda *_, **__: None
    with patch.object(advice_page, "advice_of", tried):
        code = main([*argv, "--html", str(page), "--json", str(document), "--quiet"])
    text = page.read_text(encoding="utf-8")
    return data_of(text), json.loads(document.read_text()), text, code


def blocks(data: dict[str, Any], kind: str, name: str | None = None) -> list[dict[str, Any]]:
    """The blocks of a kind, of one section or all, those that are folded too."""
    found = []
    for section in data.get("sections", [data]):
        for block in section["blocks"] if name in (None, section.get("name")) else ():
            found += [{key: plain(value) for key, value in block.items()}] if block["kind"] == kind else []
            found += blocks(block, kind) if block["kind"] == "folded" else []
    return found


def unpacked(block: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(block["packed"])))
    return found


def intervals(block: dict[str, Any], row: str) -> Iterator[tuple[int, int, str, int]]:
    """Start, end, tone and item (-1: none) of the intervals of a row."""
    columns, number = unpacked(block), block["rows"].index(row)
    at, item = block["start"], 0
    parts = (columns[name][number] for name in ("gap", "length", "tone", "item"))
    for gap, length, tone, more in zip(*parts, strict=True):
        at, item = at + gap, item + more
        yield at, at + length, block["tones"][tone]["tone"], item - 1
        at += length


def long_program(folder: Path, lines: int = 3000) -> Path:
    """Write the trips of a kernel one after the other, without its loop: a program of at least as many lines."""
    text = (PROGRAMS / "f32_to_f16_pipelined.pto").read_text()
    head, _, loop = text.partition("    scf.for %r0 = %c0 to %rows step %step {\n")
    body, _, tail = loop.partition("    }\n")
    trips = -(-lines // (body.count("\n") + 1))
    own = re.compile(r"%(r0|r1|src0|src1|dst0|dst1)\b")
    parts = (
        f"    %r0_{trip} = arith.constant {32 * trip} : index\n" + own.sub(rf"%\1_{trip}", body)
        for trip in range(trips)
    )
    head = head.replace("%rows = arith.constant 512 ", f"%rows = arith.constant {32 * trips} ")
    path = folder / "long.pto"
    path.write_text(head + "".join(parts) + tail)
    return path

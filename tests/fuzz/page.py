"""`python -m tests.fuzz --page`: the tables of docs/fuzz.md from the records of the campaigns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fuzz.record import Record
from fuzz.seeds import ROOT

PAGE, KILLS = ROOT / "docs" / "fuzz.md", ROOT / "docs" / "kills.json"


def write_page(record: Record) -> None:
    """Put the tables between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    text = _between(text, "record", tables(record))
    if KILLS.exists():
        text = _between(text, "kills", kill_table(json.loads(KILLS.read_text(encoding="utf-8"))["cases"]))
    Path(PAGE).write_text(text, encoding="utf-8")


def tables(record: Record) -> str:
    """Return the tables of readers and of mechanisms."""
    total = sum(one["inputs"] + one["guided_inputs"] for one in record.readers.values())
    lines = [
        f"{total:,} inputs, {sum(one['programs'] for one in record.engines.values()):,} programs and casts.", "",
        "| reader | inputs | read | longest, s | peak, MiB | lines reached | edges |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for name, one in sorted(record.readers.items()):
        lines.append(
            f"| {name} | {one['inputs'] + one['guided_inputs']:,} | {one['read']:,} | {one['longest_seconds']:.2f} | "
            f"{one.get('peak_bytes', 0) >> 20} | {_share(one)} | {one.get('edges_reached', 0):,} |"
        )
    lines += ["", "| mechanism | programs | differences |", "| --- | --- | --- |"]
    lines += [
        f"| {name} | {one['programs']:,} | {one['differences']} |" for name, one in sorted(record.engines.items())
    ]
    return "\n".join(lines)


def kill_table(cases: dict[str, dict[str, int]]) -> str:
    """Return the table of kills."""
    lines = ["| command | kills | while a file was being written | half files | lost records |", "| --- " * 5 + "|"]
    lines += [
        f"| `{name}` | {one['kills']} | {one['while_writing']} | {one['half_files']} | {one['lost_records']} |"
        for name, one in sorted(cases.items())
    ]
    return "\n".join(lines)


def _share(one: dict[str, Any]) -> str:
    return f"{one.get('lines_reached', 0):,} of {one.get('lines_in_all', 0):,}"


def _between(text: str, mark: str, content: str) -> str:
    pattern = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end of the {mark} -->)", re.DOTALL)
    assert pattern.search(text), mark
    return pattern.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text)

"""Writes the table of docs/advice.md: the best change that `castsim advise` finds for each sample kernel.

    python tests/advice_table.py            all rows
    python tests/advice_table.py rms_norm   the rows whose name holds a text; the others stay as they are

A combined change counts as one. The rows say what is proven; a test holds some of them against the program.
"""

from __future__ import annotations

import sys
from pathlib import Path

from advice_programs import PROGRAMS, SAMPLES

import castsim

PAGE = Path(__file__).resolve().parent.parent / "docs" / "advice.md"
HEAD = "| program | cycles | with the best change | gain | how | change |\n|---|---|---|---|---|---|\n"


def row(name: str) -> str:
    """Return the row of a sample program."""
    advice = castsim.advise(PROGRAMS / name, args=SAMPLES[name])
    if not advice.offers:
        return f"| `{name}` | {advice.cycles:,} | - | - | - | none of {advice.looked_at} looked at |"
    best = advice.offers[0]
    change = best.change.title.replace("|", "\\|")
    return f"| `{name}` | {advice.cycles:,} | {best.cycles:,} | {best.gained_percent:.1f} % | {best.how} | {change} |"


def rows() -> dict[str, str]:
    """Return the rows that the page has, by program."""
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    return {line.split("`")[1]: line for line in lines if line.startswith("| `")}


def write(found: dict[str, str]) -> None:
    """Put rows in the place of those of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, behind = text.partition(HEAD)
    after = behind.partition("\n\n")[2]
    table = "\n".join(found[name] for name in SAMPLES if name in found)
    PAGE.write_text(f"{before}{HEAD}{table}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    found = rows()
    wanted = sys.argv[1:] or [""]
    for name in SAMPLES:
        if any(each in name for each in wanted):
            found[name] = row(name)
            print(found[name], flush=True)
            write(found)

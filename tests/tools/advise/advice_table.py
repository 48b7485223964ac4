"""Writes docs/measured/advice.json: the best change that `castsim advise` finds for each sample kernel.

    python tests advice_table            all rows
    python tests advice_table rms_norm   the rows whose name holds a text; the others stay as they are

A combined change counts as one. The rows say what is proven; a test holds some of them against the program.
"""

from __future__ import annotations

import sys
from typing import Any

from kit import measured_record
from kit.paths import PROGRAMS
from tools.advise.advice_programs import SAMPLES

import castsim

RECORD = measured_record.MEASURED / "advice.json"


def row(name: str) -> list[Any]:
    """Return the row of a sample program: its name, cycles, those of the best change, gain in percent, how, change."""
    advice = castsim.advise(PROGRAMS / name, args=SAMPLES[name])
    if not advice.offers:
        return [name, advice.cycles, None, None, None, f"none of {advice.looked_at} looked at"]
    best = advice.offers[0]
    return [name, advice.cycles, best.cycles, round(best.gained_percent, 1), str(best.how), best.change.title]


def rows() -> dict[str, list[Any]]:
    """Return the rows of the record, by program."""
    return {each[0]: each for each in measured_record.read(RECORD)["tables"][0]["rows"]}


def write(found: dict[str, list[Any]]) -> None:
    """Put rows in the place of those of the record."""
    record = measured_record.read(RECORD)
    record["tables"][0]["rows"] = [found[name] for name in SAMPLES if name in found]
    measured_record.keep(RECORD, record)


if __name__ == "__main__":
    found = rows()
    wanted = sys.argv[1:] or [""]
    for name in SAMPLES:
        if any(each in name for each in wanted):
            found[name] = row(name)
            print(*found[name], flush=True)
            write(found)

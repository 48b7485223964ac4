"""Which cases of which tests run each time, and which only in the long run.

A row of `long_run.csv` names a test and how many of its cases run each time; 0 leaves it to the long run, and so does
what is missing from a row's cases. They are spread evenly over all of them, other tests beginning at others. The rows
are tests that took more than 0.8 s of processor time as a whole.

`pytest --long` runs every case, and so does whoever names one (`pytest tests/test_x.py::test_y`) or sets
CASTSIM_THOROUGH; `--long-record` writes what passed to `long_run.json`, one line a test, with the digest of its source.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import os
import zlib
from collections import Counter
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent
TABLE = TESTS / "long_run.csv"
RECORD = TESTS / "long_run.json"


@cache
def rows() -> dict[str, int]:
    """Return how many cases run each time, by test (`test_file.py::test_name`)."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["test"]: int(row["cases"]) for row in csv.DictReader(file)}


def test_of(node: str) -> str:
    """Return the test of a node id, as rows name it."""
    return node.split("[", 1)[0].removeprefix("tests/")


def chosen(test: str, number: int, cases: int) -> list[int]:
    """Return the places of `cases` of `number` cases, evenly spread."""
    first = zlib.crc32(test.rpartition("/")[2].encode())
    return sorted({(first + place * number // cases) % number for place in range(cases)})


def left_out(nodes: list[str]) -> set[int]:
    """Return the places of those node ids that are for the long run."""
    places: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        if (test := test_of(node)) in rows():
            places.setdefault(test, []).append(place)
    found: set[int] = set()
    for test, own in places.items():
        cases = min(rows()[test], len(own))
        found |= {*own} - {own[k] for k in (chosen(test, len(own), cases) if cases else ())}
    return found


def in_full(arguments: list[str]) -> bool:
    """Tell whether every case is wanted: the tests are named one by one, or campaigns run, too."""
    return "CASTSIM_THOROUGH" in os.environ or any("::" in each for each in arguments)


@cache
def _functions(file: str) -> dict[str, str]:
    """Return the sources of a file's tests, decorators and all."""
    text = (TESTS / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    return {
        node.name: "\n".join(
            lines[min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1 : node.end_lineno]
        )
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }


def digest(test: str) -> str | None:
    """Return the digest of a test's source; None if there is no such test."""
    file, _, name = test.partition("::")
    source = _functions(file).get(name) if (TESTS / file).exists() else None
    return None if source is None else hashlib.sha256(source.encode()).hexdigest()[:12]


def record(passed: list[str], failed: list[str]) -> None:
    """Write what passed of the rows' tests, in place of what was known of them; of a test that failed nothing is."""
    held = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    counts = Counter(test for test in map(test_of, passed) if test in rows())
    wrong = set(map(test_of, failed))
    for test in rows():
        if test in wrong:
            held.pop(test, None)
        elif test in counts:
            held[test] = {"passed": counts[test], "source": digest(test)}
    kept = sorted((test, entry) for test, entry in held.items() if test in rows())
    body = ",\n".join(f"{json.dumps(test)}: {json.dumps(entry)}" for test, entry in kept)
    RECORD.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")

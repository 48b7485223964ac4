"""The micro cases of the vendor's index: what they are made of is known, and counted in the reference as they are."""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path

from castsim.isa.pto.micro_forms import ROWS

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
FACTS = Path(__file__).parent / "vectors" / "micro_index.csv"
COUNTED = {
    "binary-vector": "{} of binary and",
    "unary-vector": "{} of unary vector operations",
    "conversion": "{} of conversions",
    "materialization-predicate": "{} of predicates and",
    "predicate-load-store": "{} of predicates in memory",
    "vector-load-store": "{} of loads and stores",
    "rearrangement": "{} of rearrangement",
    "vec-scalar": "{} with scalars",
    **dict.fromkeys(("reduction", "gather-scatter", "dsa-sfu"), "{} each of reductions, gathers and special functions"),
}
"""How the reference counts the cases of a kind."""


@cache
def cases() -> dict[str, set[str]]:
    """Return the operations of every case, but for the marks of its functions."""
    with FACTS.open(newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {row["case"]: {*row["operations"].split()} - {"kernel", "aicore"} for row in rows}


def test_the_index_has_75_micro_cases_of_known_operations() -> None:
    """What each does with types and words is run, in every combination, by `test_micro_models`."""
    assert len(cases()) == 75
    shared = set(re.findall(r"`(?:%\w+ = )?pto\.(\w+)", (REFERENCE / "pto.md").read_text()))
    with (REFERENCE / "micro-operations.csv").open(newline="") as file:
        listed = {row["operation"].removeprefix("pto.") for row in csv.DictReader(file)}
    for name, operations in cases().items():
        assert operations <= ROWS.keys() | shared, name
        assert operations <= listed | shared, name


def test_the_reference_counts_the_cases() -> None:
    text = " ".join((REFERENCE / "micro.md").read_text().partition("## 8.")[2].partition("## 9.")[0].split())
    counted = Counter(name.partition("/")[0] for name in cases())
    assert counted.keys() == COUNTED.keys()
    for kind, words in COUNTED.items():
        assert words.format(counted[kind]) in text, kind

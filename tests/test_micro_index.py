"""The micro cases of the vendor's index: their operations on their types are read, run, printed and timed."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import micro_index as index
import numpy as np
import pytest

from castsim import run
from castsim.isa.pto.micro_forms import micro_operations
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.warning_text import WarningKind, of_kind

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
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
LEFT_OUT: tuple[str, ...] = ()
"""Cases of which something is not reached."""


def test_the_index_has_75_micro_cases() -> None:
    assert len(index.cases()) == 75
    assert len(LEFT_OUT) <= 0.05 * 75


def test_the_reference_lists_the_operations() -> None:
    """Those of this level in its table, those that tile programs have too in their page."""
    with (REFERENCE / "micro-operations.csv").open(newline="") as file:
        listed = {row["operation"].removeprefix("pto.") for row in csv.DictReader(file)}
    shared = set(re.findall(r"`(?:%\w+ = )?pto\.(\w+)", (REFERENCE / "pto.md").read_text()))
    for case in index.cases():
        assert set(case.operations) - {"kernel", "aicore"} <= listed | shared, case.name


def test_the_reference_counts_the_cases() -> None:
    text = " ".join((REFERENCE / "micro.md").read_text().partition("## 8.")[2].partition("## 9.")[0].split())
    counted = Counter(case.name.partition("/")[0] for case in index.cases())
    assert counted.keys() == COUNTED.keys()
    for kind, words in COUNTED.items():
        assert words.format(counted[kind]) in text, kind


@pytest.mark.parametrize("case", index.cases(), ids=lambda case: case.name)
def test_operations_of_a_case(case: index.Case, tmp_path: Path) -> None:
    text = index.program(case)
    program = parse(text)
    assert parse(print_program(program)) == program
    assert not [each for each in program.warnings if each.kind is not WarningKind.DISTRIBUTION]
    used = {node.mnemonic for node in micro_operations(program.functions[0].body or ())}
    written = set(re.findall(r"pto\.(\w+)", text)) | used
    assert set(case.operations) <= written, set(case.operations) - written
    file = tmp_path / "k.pto"
    file.write_text(text)
    rng = np.random.default_rng(75)
    inputs = {
        f"arg{at}": rng.integers(0, 256, count * index.bits_of(element) // 8, np.uint8).view(
            {"f32": "f4", "f16": "f2", "si64": "i8"}.get(element, f"u{index.bits_of(element) // 8}")
        )
        for at, (element, count, _) in enumerate(case.arguments)
    }
    inputs = {name: array.view(f"i{array.itemsize}") if signed(case, name) else array for name, array in inputs.items()}
    fast = run(file, inputs=inputs)
    event = run(file, inputs=inputs, engine="event")
    assert not fast.untimed
    assert fast.cycles == event.cycles > 0
    assert not of_kind(fast.loaded.executed.warnings, WarningKind.UNDEFINED)
    for at, (_, _, use) in enumerate(case.arguments):
        if "o" in use:
            assert fast.outputs[f"arg{at}"].size


def signed(case: index.Case, name: str) -> bool:
    """Whether an argument holds signed integers."""
    return case.arguments[int(name[3:])][0] in ("i8", "i16", "i32")

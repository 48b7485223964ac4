"""Every vector operation: its row and manual section; by itself between loads and stores nothing races."""

# A `.pto` statement stays on one line.

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from kit.paths import ROOT

from castsim.isa.errors import TargetDataError
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, VectorOperation
from castsim.targets.loader import load_target

# --------------------------------------------------------------------------------------- the table of vector operations


MANUAL = (ROOT / "docs" / "reference" / "pto.md").read_text(encoding="utf-8")
FOLDER = ROOT / "targets"
OPERATIONS = list(VECTOR_OPERATIONS.values())


def section(number: str) -> str:
    """The text of one section of the manual, up to the next heading."""
    found = re.search(rf"^#+ {re.escape(number)} .*?(?=^#|\Z)", MANUAL, re.MULTILINE | re.DOTALL)
    assert found, f"no section {number}"
    return found[0]


def is_named(mnemonic: str, text: str) -> bool:
    """Whether a text names an operation: in full, or as `tcolexpandadd, -sub` and `tfillpad, _expand` do."""
    if re.search(rf"\b{mnemonic}\b", text):
        return True
    names = re.findall(r"\bt[a-z]+\b", text)
    endings = re.findall(r"[-_][a-z]+\b", text)
    return any(f"{name}{ending.lstrip('-')}" == mnemonic for name in names for ending in endings)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.mnemonic)
def test_the_section_of_a_row_describes_the_operation(operation: VectorOperation) -> None:
    assert is_named(operation.name, section(operation.section))


@pytest.mark.parametrize(
    ("chip", "mnemonic", "cells", "said"),
    [
        ("a2a3", "tdivs", {"instructions": "vdiv"}, "tdivs: 1 instructions, but structure 'division' takes 2"),
        ("a2a3", "tabs", {"instructions": "-"}, "tabs: 0 instructions, but structure 'elementwise' takes 1 to 16"),
        ("a2a3", "tmov", {"structure": "select"}, "structure 'select' is for operations of kind select, not move"),
        ("a2a3", "texpands", {"structure": "division"}, "is for operations of kind elementwise, not broadcast"),
        ("a2a3", "tadd", {"instructions": "vcadds"}, "tile_operations: tadd: no timing.vector.vcadds"),
        ("a2a3", "tadd", {"structure": "spiral"}, "mine.csv:6: structure"),
        ("a2a3", "tadd", {"source": "-"}, "mine.csv:6: source"),
        ("a5", "trowsum", {"structure": "row_product"}, "trowsum: 2 instructions, but structure 'row_product' takes 1"),
        ("a5", "tcmp", {"structure": "elementwise"}, "of kind elementwise, broadcast, not compare"),
        ("a5", "tadd", {"choice": "none"}, "tile_operations: tadd: no kernel_variants 'none'"),
        ("a5", "tadd", {"instructions": "vfoo"}, "tile_operations: tadd: no latency of 'vfoo'"),
    ],
)
def test_kernels_that_no_machine_can_lay_out_are_refused(
    chip: str, mnemonic: str, cells: dict[str, str], said: str, tmp_path: Path
) -> None:
    with (FOLDER / f"{chip}_operations.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    next(row for row in rows if row["mnemonic"] == mnemonic).update(cells)
    with (tmp_path / "mine.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    table = '[tile_operations]\ntable = "mine.csv"\nsource = "mine"\nstatus = "assumed"\n'
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "{chip}"\nname = "mine"\n{table}', encoding="utf-8")
    with pytest.raises(TargetDataError, match=re.escape(said)):
        load_target(path)

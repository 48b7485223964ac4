"""Stage tables with mistakes are refused with the file and line of the row."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from castsim.isa.errors import TargetDataError
from castsim.targets import load_target
from castsim.targets.loader import SHIPPED

FIRST = "load,0,gen_addr,src_a,I,e1,load_ia_bypass,"
"""Line 2 of the shipped table of Goya."""


def changed(folder: Path, old: str, new: str, table: str = "tpc_stages_goya.csv") -> Path:
    """A copy of Goya whose table is changed at its first row."""
    text = (SHIPPED / table).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / table).write_text(text.replace(old, new), encoding="utf-8")
    shutil.copy(SHIPPED / "goya.toml", folder / "mine.toml")
    return folder / "mine.toml"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (FIRST.replace("e1", "e14"), "tpc_stages_goya.csv:2: stage: unknown stage 'e14'"),
        (FIRST.replace("load_ia_bypass", ""), "tpc_stages_goya.csv:2: entry_port: src_a of gen_addr has no entry port"),
        (FIRST.replace("load_ia_bypass", "load_x"), "tpc_stages_goya.csv:2: entry_port: unknown port 'load_x'"),
        (f"{FIRST}\n{FIRST}", "tpc_stages_goya.csv:3: the same slot, opcode, operand, file and marks twice"),
        (FIRST.replace("load,", "lane,"), "tpc_stages_goya.csv:2: slot: "),
        (FIRST.replace(",I,", ",J,"), "tpc_stages_goya.csv:2: register_file: "),
        (FIRST.replace(",0,", ",64,"), "tpc_stages_goya.csv:2: opcode: "),
        (FIRST + "fast", "tpc_stages_goya.csv:2: marks: "),
        (FIRST.replace("src_a", "a"), "tpc_stages_goya.csv:2: operand: "),
        (f"{FIRST},1", "tpc_stages_goya.csv:2:1: tpc_stages_goya.csv: a row has more cells than the header"),
    ],
)
def test_bad_rows_are_refused_with_file_and_line(tmp_path: Path, new: str, message: str) -> None:
    with pytest.raises(TargetDataError) as refused:
        load_target(changed(tmp_path, FIRST + "\n", new + "\n"))
    assert message in str(refused.value)


def test_bad_ports_are_refused_with_file_and_line(tmp_path: Path) -> None:
    ports = "tpc_entry_ports_goya.csv"
    with pytest.raises(TargetDataError, match=r"tpc_entry_ports_goya\.csv:3: port 'load_a' is listed twice"):
        load_target(changed(tmp_path, "load_a,e3\n", "load_a,e3\nload_a,e3\n", ports))


def test_a_rule_that_names_no_instruction_is_refused(tmp_path: Path) -> None:
    text = (SHIPPED / "goya.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(text.replace('"spu.set_indx", "load.set_indx"', '"spu.setindx"', 1))
    with pytest.raises(TargetDataError, match="the spu slot has no instruction 'setindx'"):
        load_target(tmp_path / "mine.toml")

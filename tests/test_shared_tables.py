"""CSV tables beside the targets: cells checked, what is wrong named."""

from __future__ import annotations

from pathlib import Path

import pytest

from castsim.isa.errors import TargetDataError
from castsim.targets import tpc_compiler
from castsim.targets.tpc_compiler import BuiltinRounding, CType, c_types


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float,f32,many,documented,x\n", "row 0: promotion: Input should be a valid integer"),
        ("float,f32,1,documented,x\nhalf,f16,1,rumoured,x\n", "row 1: status: Input should be"),
        ("float,f32,1,documented,\n", "row 0: source: String should have at least 1 character"),
    ],
)
def test_a_wrong_cell_is_named(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpc_compiler, "SHIPPED", tmp_path)
    (tmp_path / "types.csv").write_text("name,element,promotion,status,source\n" + text)
    with pytest.raises(TargetDataError, match=rf"^types\.csv: {message}"):
        tpc_compiler.csv_rows("types.csv", CType)


def test_a_cell_without_a_column_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpc_compiler, "SHIPPED", tmp_path)
    (tmp_path / "r.csv").write_text("generation,mode,build_options,status,source\ngoya,rhne,,documented,x,y\n")
    with pytest.raises(TargetDataError, match=r"^r\.csv: row 0"):
        tpc_compiler.csv_rows("r.csv", BuiltinRounding)


def test_a_table_is_read_once() -> None:
    assert c_types() is c_types()

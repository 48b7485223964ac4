"""TOSA's TABLE as programs of look-ups of every vector processor, against its definition in Python integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.command_output import err_of, out_of

import castsim
from castsim.__main__ import main
from castsim.isa.errors import IllegalError
from castsim.targets.loader import load_target
from castsim.tools.graphs.vector_program import table_on

PROCESSORS = ("goya", "gaudi", "gaudi2", "greco", "gaudib")


def interpolated(entries: list[int], value: int) -> int:
    """Nine bits of index, seven of interpolation."""
    index, fraction = divmod(value + 32768, 128)
    return entries[index] * 128 + (entries[index + 1] - entries[index]) * fraction


@pytest.mark.parametrize("chip", PROCESSORS)
def test_tables_on_every_processor(chip: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    target = load_target(chip)
    entries = generator.integers(-128, 128, 256).astype(np.int8)
    values = np.arange(-128, 128, dtype=np.int8)
    assert table_on(values, entries, target).results.tolist() == entries.tolist()
    wide = generator.integers(-16384, 16384, 513).astype(np.int16)
    wide[::64] = generator.choice((-16383, 16383), 9)
    edges = [-32768, -32767, -129, -128, -127, -1, 0, 1, 127, 128, 32640, 32766, 32767]
    values = np.array([*edges, *generator.integers(-32768, 32768, 200)], np.int16)
    found = table_on(values, wide, target)
    assert found.results.tolist() == [interpolated(wide.tolist(), int(value)) for value in values]
    path = tmp_path / "t.tpc"
    path.write_text(found.program)
    given = np.resize(values.astype(np.int32), (-(-values.size // 64), 64))
    again = castsim.run(path, chip, inputs={"x": given})
    assert again.cycles == found.cycles


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = tmp_path / "e.npy"
    np.save(entries, np.arange(-128, 128, dtype=np.int8)[::-1])
    told = out_of(capsys, ["tosa", "TABLE", "-128", "5", "--table", str(entries), "--target", "gaudi2"])
    assert "TABLE(-128) = 127" in told
    assert "TABLE(5) = -6" in told
    assert "by look-ups of gaudi2:" in told
    assert "--target applies only to TABLE" in err_of(capsys, ["tosa", "reciprocal_scale", "3", "--target", "gaudi2"])
    assert main(["tosa", "TABLE", "1", "--table", str(entries), "--target", "a5"]) in (1, 2)
    assert "has no look-ups" in capsys.readouterr().err
    np.save(entries, np.zeros(513, np.float32))
    assert "the table is float32[513]" in err_of(capsys, ["tosa", "TABLE", "1", "--table", str(entries)])


def test_chips_of_tiles_have_none() -> None:
    with pytest.raises(IllegalError, match="has no look-ups"):
        table_on(np.zeros(3, np.int8), np.zeros(256, np.int8), load_target("a2a3"))

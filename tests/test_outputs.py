"""Outputs of a run as files, and runs fed with arrays, files and words."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import oracle
import pytest
from execution_programs import kernel

from castsim.execution.input_data import write_array
from castsim.isa.errors import ReadError
from castsim.running import run


def codes(name: str, *shape: int) -> np.ndarray:
    row = oracle.fmt(name)
    limit = (1 << row.bits) - 1
    drawn = np.random.default_rng(3).integers(0, limit, shape, dtype=np.uint64, endpoint=True)
    return drawn.astype(oracle.storage(name))


# --------------------------------------------------------------------------------------------------------------- output


def test_output_replaces_an_older_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "y.npy"
    write_array(path, np.zeros(1000, np.float32))
    with path.open("rb") as reader:  # whoever has the old file open keeps the old content
        write_array(path, np.ones(4, np.int8))
        assert np.load(reader).size == 1000
    assert np.load(path).tolist() == [1, 1, 1, 1]
    assert [found.name for found in path.parent.iterdir()] == ["y.npy"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_failed_output_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "y.npy").mkdir()
    with pytest.raises(ReadError, match="cannot write"):
        write_array(tmp_path / "y.npy", np.zeros(4))
    assert [found.name for found in tmp_path.iterdir()] == ["y.npy"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ReadError, match="cannot write"):
        write_array(tmp_path / "file" / "y.npy", np.zeros(4))


def test_interrupted_output_keeps_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "y.npy"
    write_array(path, np.arange(4))

    def broken(file: Any, *_: Any, **__: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", broken)
    with pytest.raises(KeyboardInterrupt):
        write_array(path, np.arange(9))
    monkeypatch.undo()
    assert np.load(path).tolist() == [0, 1, 2, 3]
    assert [found.name for found in tmp_path.iterdir()] == ["y.npy"]


# -------------------------------------------------------------------------------------------------------- whole program


def cast_file(folder: Path) -> Path:
    """f32 -> bf16, 1 x 64."""
    kinds = {"x": "f32", "y": "bf16"}
    body = "".join(
        f"%v{name} = pto.make_tensor_view %{name}, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<1x64x{kind}>\n"
        f"%p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<1x64x{kind}> -> "
        f"!pto.partition_tensor_view<1x64x{kind}>\n"
        f"%t{name} = pto.alloc_tile : !pto.tile_buf<vec, 1x64x{kind}>\n"
        for name, kind in kinds.items()
    )
    tiles = {name: f"!pto.tile_buf<vec, 1x64x{kind}>" for name, kind in kinds.items()}
    body += f"pto.tload ins(%px : !pto.partition_tensor_view<1x64xf32>) outs(%tx : {tiles['x']})\n"
    body += f"pto.tcvt ins(%tx : {tiles['x']}) outs(%ty : {tiles['y']})\n"
    body += f"pto.tstore ins(%ty : {tiles['y']}) outs(%py : !pto.partition_tensor_view<1x64xbf16>)\n"
    path = folder / "cast.pto"
    path.write_text(kernel(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<bf16>"))
    return path


def test_inputs_are_not_changed_by_a_run(tmp_path: Path) -> None:
    given = np.linspace(-5, 5, 64, dtype=np.float32).reshape(1, 64)
    kept = given.copy()
    given.flags.writeable = False
    run(cast_file(tmp_path), inputs={"x": given})
    assert np.array_equal(given, kept)


def test_run_takes_arrays_files_and_words(tmp_path: Path) -> None:
    program = cast_file(tmp_path)
    given = np.linspace(-5, 5, 64, dtype=np.float32)
    np.save(tmp_path / "x.npy", given)
    wanted = given.astype(ml_dtypes.bfloat16)
    for value in (given, str(tmp_path / "x.npy"), given.view(np.uint32)):
        (output,) = run(program, inputs={"x": value}).outputs.values()
        assert output.shape == (1, 64)
        assert np.array_equal(np.ascontiguousarray(output).view(np.uint16).reshape(-1), wanted.view(np.uint16))
    assert not np.ascontiguousarray(run(program, inputs={"x": "zeros"}).outputs["y"]).view(np.uint16).any()


def test_run_names_the_missing_input(tmp_path: Path) -> None:
    program = cast_file(tmp_path)
    with pytest.raises(ReadError, match="%x") as caught:
        run(program)
    assert caught.value.exit_code == 2
    assert run(program, timing_only=True).outputs == {}
    with pytest.raises(ReadError, match="'z'"):
        run(program, inputs={"z": "zeros"}, timing_only=True)

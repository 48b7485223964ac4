"""SIMT functions of TileLang's kernels: values, and the cycles that are refused in words."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from castsim.isa.errors import EngineError, IllegalError, TileError

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("tilelang") is None, reason="the extra tilelang"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"),
]


def ran(name: str, arguments: tuple[Any, ...] = (), **words: Any) -> Any:
    factory = getattr(importlib.import_module("tilelang_kernels"), name)
    return importlib.import_module("castsim.tilelang").run(factory.get_tir(*arguments), **words)


@pytest.mark.parametrize("schedule", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("bfloat16", 2**-8)])
@pytest.mark.parametrize("rows", [3, 10])
def test_a_softmax_by_threads(schedule: bool, dtype: str, tolerance: float, rows: int) -> None:
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, 256)).astype(getattr(ml_dtypes, dtype, dtype))
    index = rng.integers(0, 256, 256).astype(np.int32)
    found = ran("softmax_by_threads", (dtype,), core="all", schedule=schedule, x=x, index=index)
    e = np.exp(x.astype(np.float64)[:, index])
    total = e.sum(1, keepdims=True)
    y = np.where(index > 7, e / total, 1 / (1 + np.exp(-x.astype(np.float64))))
    assert np.abs(found.outputs["y"].astype(np.float64) / y - 1).max() <= tolerance
    assert np.abs(found.outputs["total"] / total[:, 0] - 1).max() <= 1e-6


def test_cycles_are_refused_in_words() -> None:
    found = ran("sums_by_reducer", x=np.ones((64, 256), np.float32))
    assert found.untimed == "SIMT functions (T.SimtVF) are computed; their cycles are not modelled"
    assert found.functions == () and (found.outputs["z"] == 256).all()
    with pytest.raises(EngineError, match="cycles are not modelled"):
        assert found.cycles


@pytest.mark.parametrize("cores", [1, 3])
def test_warps_loops_and_atomic_counts(cores: int) -> None:
    """In the order of the source: TileLang's schedule takes no atomic operation on global memory here."""
    x = np.random.default_rng(0).integers(-1000, 1000, (4, 256)).astype(np.int32)
    start = np.arange(8, dtype=np.int32)
    found = ran("warps", (cores,), core="all", schedule=False, x=x, count=start)
    lanes = x.reshape(4, 8, 32).sum(1)
    tid = np.arange(128).reshape(4, 32)
    added = 1000 * np.minimum(tid % 5, 2)  # a third trip is left before it adds
    assert np.array_equal(found.outputs["y"], lanes.sum(1, keepdims=True) + lanes + added)
    assert np.array_equal(found.outputs["most"], np.broadcast_to(lanes.max(1, keepdims=True), (4, 32)))
    assert np.array_equal(found.outputs["count"], start + 16 * cores * (cores + 1) // 2)


def test_random_words_are_philox() -> None:
    """The first block is of Random123's published vectors: counter and key 0."""
    found = ran("draws", dims={"seed": 0})
    assert found.outputs["word"][:4, 0].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert len(np.unique(found.outputs["word"])) == 640
    assert found.outputs["u"].min() > 0 and found.outputs["u"].max() < 1 and abs(found.outputs["u"].mean() - 0.5) < 0.1
    assert abs(found.outputs["normal"].std() - 1) < 0.15


@pytest.mark.parametrize(
    ("which", "kind", "message"),
    [
        ("beyond", TileError, r"reaches element 70000"),
        ("simt", IllegalError, r"a call of own_function in SIMT functions is not supported"),
    ],
)
def test_what_threads_cannot_do_is_refused(which: str, kind: type[Exception], message: str, tmp_path: Any) -> None:
    from test_tilelang import REFUSED  # noqa: PLC0415 - a module beside this one

    (tmp_path / "refused_threads.py").write_text(REFUSED)
    spec = importlib.util.spec_from_file_location("refused_threads", tmp_path / "refused_threads.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(kind, match=message):
        importlib.import_module("castsim.tilelang").run(module.factory.get_tir(which), x=np.ones(128, np.float32))

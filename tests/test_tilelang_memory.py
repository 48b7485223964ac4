"""Kernels of TileLang whose cores wait for each other, tables of pointers, elements that the scalar unit loads."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest

from castsim.isa.errors import IllegalError, ReadError

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("tilelang") is None, reason="the extra tilelang"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"),
]


def ran(name: str, arguments: tuple[Any, ...] = (), **words: Any) -> Any:
    factory = getattr(importlib.import_module("tilelang_kernels"), name)
    return importlib.import_module("castsim.tilelang").run(factory.get_tir(*arguments), **words)


@pytest.mark.parametrize("schedule", [True, False])
@pytest.mark.parametrize("cores", [2, 3])
def test_cores_see_what_the_others_stored_before_the_flag(schedule: bool, cores: int) -> None:
    x = np.random.default_rng(cores).integers(-99, 99, (cores * 4, 64)).astype(np.float32)
    found = ran("sum_of_cores", (cores,), core="all", schedule=schedule, x=x)
    total = x.sum(0)
    assert np.array_equal(found.outputs["whole"], np.broadcast_to(total, (cores, 64)))
    assert np.array_equal(found.outputs["z"], total * 2)
    assert "cycles are not modelled" in found.untimed


def test_a_core_that_waits_for_others_does_not_run_alone() -> None:
    with pytest.raises(IllegalError, match="core 1 waits for other cores"):
        ran("sum_of_cores", (2,), core=1, x=np.zeros((8, 64), np.float32))


@pytest.mark.parametrize("schedule", [True, False])
def test_a_table_of_pointers(schedule: bool) -> None:
    rng = np.random.default_rng(0)
    tensors = [rng.normal(size=(5, 64)).astype(np.float32) for _ in range(3)]
    which = np.array([2, 0, 0, 1, 3], np.int32)
    table = [*tensors, tensors[0]]
    found = ran("doubled_in_place", schedule=schedule, which=which, table=table)
    assert np.array_equal(found.outputs["y"], np.stack([table[each][row] * 2 for row, each in enumerate(which)]))
    changed = [each.copy() for each in tensors]
    for row, each in enumerate(which):
        changed[each % 3][row] *= 2
    assert all(np.array_equal(got, changed[n % 3]) for n, got in enumerate(found.outputs["table"]))
    assert found.cycles > 0 and found.races == ()


def test_tables_of_addresses_in_host_code() -> None:
    torch, tilelang = importlib.import_module("torch"), importlib.import_module("castsim.tilelang")
    tensors = [torch.full((2, 64), float(n)) for n in (3, 5)]
    y, which = torch.empty(2, 64), torch.tensor([1, 0], dtype=torch.int32)
    kernels = importlib.import_module("tilelang_kernels")
    with tilelang.simulated():
        addresses = torch.empty(2, dtype=torch.int64, pin_memory=True)
        for number, each in enumerate(tensors):
            addresses[number] = each.data_ptr()
        kernels.doubled_in_place()(which, addresses, y)
        with pytest.raises(ReadError, match="no tensor is known at address 0x7b"):
            kernels.doubled_in_place()(which, torch.tensor([123, 0]), y)
    assert y[:, 0].tolist() == [10, 6] and tensors[1][0, 0] == 10 and tensors[1][1, 0] == 5


def test_a_table_wants_arrays() -> None:
    with pytest.raises(ReadError, match="table is a table of pointers"):
        ran("doubled_in_place", which=np.zeros(2, np.int32), table=np.zeros(2, np.int64))


@pytest.mark.parametrize("schedule", [True, False])
@pytest.mark.parametrize("count", [0, 3, 16])
def test_elements_that_address_and_end_loops(schedule: bool, count: int) -> None:
    rng = np.random.default_rng(count)
    x, index = rng.normal(size=(64, 64)).astype(np.float32), rng.integers(0, 64, 16).astype(np.int32)
    index[count : count + 1] = -1
    found = ran("rows_by_index", schedule=schedule, x=x, index=index)
    wanted = np.full((16, 64), 0.5, np.float32)
    wanted[:count] = x[index[:count]] * index[:count, None].astype(np.float32)
    assert np.array_equal(found.outputs["y"], wanted) and (found.outputs["count"] == count).all()
    assert found.cycles > 0

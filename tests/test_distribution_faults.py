"""What goes wrong besides the pieces: a scheduler that ends, a ledger whose file fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from distributed import LocalCluster

from castsim.execution.distribution import cluster as client_side
from castsim.execution.distribution.distributing import Ledger, LedgerLabels, Workers, distributed
from castsim.execution.distribution.origins import Task, installation
from castsim.isa.errors import EngineError, ReadError

BOOK = LedgerLabels("trial", "--ledger")


def doubled(number: int) -> int:
    return 2 * number


def test_a_scheduler_that_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_side, "TIMEOUT_SECONDS", 1)
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0"
    )
    try:
        address = cluster.scheduler_address
        work = distributed(Task("trial", doubled, installation()), range(1000), Workers(1, address))
        one = next(work)
        assert one.result == 2 * one.piece
        cluster.close()
        with pytest.raises(EngineError, match=f"--scheduler {address}: the scheduler has ended"):
            list(work)
    finally:
        cluster.close()


def test_a_disk_that_fails_while_a_ledger_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    with Ledger(path, {}, BOOK) as ledger:
        ledger.add(0, b"result")

    def failing(*_: int) -> None:
        raise OSError(5, "Input/output error")

    for name in ("ftruncate", "read"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, failing)
            with pytest.raises(ReadError, match="Input/output error"):
                Ledger(path, {}, BOOK)
    with Ledger(path, {}, BOOK) as ledger:
        assert ledger.results(0) == b"result"

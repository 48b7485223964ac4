"""Verifications, matrices and accuracy shared out: the same results by whomever, also after kills; refusals."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from campaigns.kill_campaign import halting
from distributed import LocalCluster
from kit.command_output import Capture, document_of, err_of
from kit.paths import ROOT
from project import dying_pieces

import castsim
from castsim.__main__ import main
from castsim.isa.errors import EngineError, ReadError
from castsim.targets.loader import Target, load_specification, load_target
from castsim.tools.distribution import cluster as client_side
from castsim.tools.distribution import distributing
from castsim.tools.distribution.distributing import HandedTargets, Ledger, LedgerLabels, Workers, distributed
from castsim.tools.distribution.origins import Installation, Task, installation, origin, sources_digest
from castsim.tools.lowering import conformance as lowered
from castsim.tools.lowering.conformance import entry_document, read_entry
from castsim.tools.lowering.demand import CastRequest
from castsim.tools.lowering.lowering_answers import Answer, answer
from castsim.tools.lowering.samples import RECORD
from castsim.tools.verify import substitutions
from castsim.tools.verify.running import VerificationRecord, plan, verify

thorough = pytest.mark.skipif(
    os.environ.get("CASTSIM_THOROUGH") != "1", reason="CASTSIM_THOROUGH=1: more processes, and more of them killed"
)
MATRIX = {"spec": "tosa", "targets": ["goya", "gaudi"], "src": "bf16"}
WORDS = ["conform", "--spec", "tosa", "--target", "goya", "gaudi", "--src", "bf16"]
TABLE = "src,dst,rows,cols,measured_cycles\n" + "".join(f"f32,f16,{rows},64,{rows * 10}\n" for rows in range(1, 40))


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The scheduler of two workers, which are threads of this process."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0"
    ) as found:
        yield found.scheduler_address


@pytest.fixture(scope="module")
def matrix() -> castsim.tools.lowering.conformance.Matrix:
    return castsim.conform(**MATRIX)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(TABLE)
    return path


def without_workers(held: Any) -> Any:
    """A document but for who computed what and how long that took."""
    if isinstance(held, list):
        return [without_workers(each) for each in held]
    if not isinstance(held, dict):
        return held
    left_out = ("workers", "computed_by", "cpu_seconds", "codes_per_cpu_second", "seconds", "record", "runs")
    return {name: without_workers(each) for name, each in held.items() if name not in left_out}


# ----------------------------------------------------------------------------------------------------- same results


def test_processes_settle_the_same_matrix(matrix: castsim.tools.lowering.conformance.Matrix) -> None:
    assert castsim.conform(**MATRIX, workers=2).entries == matrix.entries
    assert set(matrix.origins) == {origin()}


def test_a_cluster_gives_the_same(
    cluster: str, matrix: castsim.tools.lowering.conformance.Matrix, table: Path, capsys: Capture
) -> None:
    there = castsim.conform(**MATRIX, scheduler=cluster)
    assert there.entries == matrix.entries
    names = {each.worker for each in there.origins}
    assert names == {"0", "1"}  # as Dask names them
    assert {(each.castsim, each.sources_sha256) for each in there.origins} == {
        (castsim.__version__, origin().sources_sha256)
    }
    for words in (
        ["accuracy", "--target", "a5", "--data", str(table)],
        ["verify", "bf16", "e5m2", "--rounding", "floor", "--against", "reference", "--tier", "table"],
        ["verify", "bf16", "i8", "--lowering", "--target", "goya", "gaudi"],
    ):
        alone, shared = document_of(capsys, *words), document_of(capsys, *words, "--scheduler", cluster)
        assert without_workers(shared) == without_workers(alone)
        assert [each["worker"] for each in alone["workers"]] == ["local"]
        assert {each["worker"] for each in shared["workers"]} <= names
        assert shared["workers"]


@thorough
def test_substitutions_are_tried_by_a_cluster(cluster: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(substitutions, "CODES", 1 << 14)
    monkeypatch.setattr(substitutions, "_PIECE", 1 << 12)
    words = ["verify", "--substitutions", "--target", "a2a3"]
    alone, shared = document_of(capsys, *words), document_of(capsys, *words, "--scheduler", cluster)
    assert without_workers(shared) == without_workers(alone)
    assert shared["complete"]
    assert sum(each["codes"] for each in shared["parts"][0]["computed_by"]) == 1 << 14


def test_a_target_that_is_a_file_need_not_be_there(cluster: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text((ROOT / "targets" / "a2a3.toml").read_text())
    asked = {"spec": "tosa", "targets": [str(own)], "src": "f16", "dst": "i8"}
    expected = castsim.conform(**asked)
    seen: list[str] = []

    def progress(*_: object) -> None:
        seen.append("asked")
        if own.exists():
            own.unlink()

    assert castsim.conform(**asked, scheduler=cluster, progress=progress).entries == expected.entries
    assert seen


def test_the_facts_of_a_handed_target_are_digested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    own = load_target("a2a3").model_copy()
    asked: list[Target] = []
    monkeypatch.setattr(distributing, "facts_digest", lambda target: asked.append(target) or f"digest {id(own)}")
    handed = HandedTargets({"own": own})
    assert [handed.get("own") for _ in range(3)] == [own] * 3
    assert handed.get("a5") is None
    assert len(asked) == 1
    copy = pickle.loads(pickle.dumps(HandedTargets({"own": own})))
    assert copy.get("own") is own  # equal facts, another process: the object that is known here


def test_entries_come_back_from_json(matrix: castsim.tools.lowering.conformance.Matrix) -> None:
    differing = castsim.conform("tosa", ["a5"], src="i32", dst="f32").entries
    assert any(each.counterexample for each in differing)
    for each in (*matrix.entries, *differing):
        assert read_entry(json.loads(json.dumps(entry_document(each)))) == each
    for wrong in (None, {}, {"cell": 3}, {**entry_document(matrix.entries[0]), "kind": "none"}):
        with pytest.raises((TypeError, KeyError, ValueError)):
            read_entry(wrong)


def test_a_verification_tells_who_tried_how_many_codes(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    record = VerificationRecord.of(plan("f16", "e5m2", tier="table", against="reference", roundings=["rint"]))
    verify(record, save=lambda: record.save(path))
    held = VerificationRecord.load(path)
    for one in held.progress:
        assert one.computed_by == {origin(): 1 << 16}
    text = json.loads(path.read_text())
    for part in text["parts"]:
        part.pop("computed_by")
    text.pop("workers")
    path.write_text(json.dumps(text))  # as before that was kept
    assert [one.computed_by for one in VerificationRecord.load(path).progress] == [{}, {}]


# ------------------------------------------------------------------------------------------------------------ kills


def test_from_any_part_of_its_ledger_a_matrix_ends_the_same(
    matrix: castsim.tools.lowering.conformance.Matrix, tmp_path: Path
) -> None:
    path = tmp_path / "m.ledger"
    assert castsim.conform(**MATRIX, ledger=path).entries == matrix.entries
    data = path.read_bytes()
    chance = random.Random(21)
    for cut in (5, len(data) - 1, *(chance.randrange(len(data) // 2, len(data)) for _ in range(2))):
        path.write_bytes(data[:cut])
        assert castsim.conform(**MATRIX, ledger=path).entries == matrix.entries
    settled: list[int] = []
    castsim.conform(**MATRIX, ledger=path, progress=lambda _, done, __: settled.append(done))
    assert settled == list(range(len(matrix.entries) + 1))


@pytest.mark.parametrize("ending", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=thorough)])
def test_a_matrix_that_was_killed_goes_on(ending: int, tmp_path: Path, capsys: Capture) -> None:
    ledger, out = tmp_path / "m.ledger", tmp_path / "m.json"
    words = [*WORDS, "--ledger", str(ledger), "--json", str(out), "--quiet"]
    process = subprocess.Popen(halting(3, *words), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and (not ledger.exists() or ledger.stat().st_size < 1500):
        time.sleep(0.005)
    process.send_signal(ending)
    _, told = process.communicate()
    assert process.returncode == (-signal.SIGKILL if ending == signal.SIGKILL else 130)
    assert ending == signal.SIGKILL or f"from {ledger}" in told
    assert not out.exists()
    before = ledger.stat().st_size
    assert before >= 1500
    assert main(words) == 0
    assert not ledger.exists()  # all is written
    assert without_workers(json.loads(out.read_text())) == without_workers(document_of(capsys, *WORDS))


def test_a_ledger_stays_until_the_document_is_written(tmp_path: Path, table: Path) -> None:
    ledger = tmp_path / "a.ledger"
    words = ["accuracy", "--target", "a5", "--data", str(table), "--ledger", str(ledger), "--quiet"]
    assert main([*words, "--json", str(tmp_path / "nowhere" / "a.json")]) == 2
    assert ledger.stat().st_size > 39 * 40
    assert main([*words, "--json", str(tmp_path / "a.json")]) == 0
    assert not ledger.exists()


def test_what_a_process_had_that_died_is_done_again(tmp_path: Path) -> None:
    task = Task("verification", partial(dying_pieces.once, tmp_path / "flag"), Installation("", ""))
    found = [(each.piece, each.result) for each in distributed(task, iter(range(9)), Workers(2))]
    assert sorted(found) == [(number, number**2) for number in range(9)]


@thorough
def test_pieces_on_which_every_process_dies_end_the_work() -> None:
    with pytest.raises(EngineError, match="processes of the verification die"):
        list(distributed(Task("verification", dying_pieces.never, Installation("", "")), iter(range(3)), Workers(2)))


@thorough
def test_a_cluster_that_loses_a_worker_gives_the_same(matrix: castsim.tools.lowering.conformance.Matrix) -> None:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        victim = next(iter(cluster.workers.values())).pid
        killed: list[int] = []

        def progress(_: str, done: int, __: int) -> None:
            if done > 4 and not killed:
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        found = castsim.conform(**MATRIX, scheduler=cluster.scheduler_address, progress=progress)
    assert killed
    assert found.entries == matrix.entries


# --------------------------------------------------------------------------------------------------------- refusals


def test_verdicts_rest_on_the_record_of_substitutions(monkeypatch: pytest.MonkeyPatch) -> None:
    own, read = sources_digest.__wrapped__(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b" " * (path == RECORD))
    assert sources_digest.__wrapped__() != own


def test_a_worker_of_another_castsim_is_given_nothing(cluster: str) -> None:
    own = installation()
    for other, what in (
        (Installation("0.0.1", own.sources), "version"),
        (Installation(own.version, "0" * 64), "source files"),
        (Installation(own.version, own.sources, "1" * 64), "oracle"),
    ):
        with pytest.raises(EngineError, match=rf"worker .* runs a different castsim: its {what} \("):
            next(distributed(Task("verification", abs, other), [0], Workers(1, cluster)))


def test_a_scheduler_that_does_not_answer_is_told_soon(capsys: Capture) -> None:
    began = time.monotonic()
    assert main([*WORDS, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert time.monotonic() - began < 60
    assert "no answer within 5 s" in capsys.readouterr().err


def test_a_ledger_about_something_else_is_refused(tmp_path: Path, table: Path, capsys: Capture) -> None:
    ledger = tmp_path / "m.ledger"
    asked = {"spec": "tosa", "targets": ["a5"], "src": "f16", "dst": "i8", "ledger": ledger}
    castsim.conform(**asked)
    data = ledger.read_bytes()
    for other, what in (
        ({"dst": "i16"}, "set of casts"),
        ({"targets": ["a2a3"]}, "set of targets"),
        ({"spec": "onnx"}, "specification"),
        ({"prove": True}, "choice of --prove"),
        ({"options": {"ctrl_48_at_start": 1}}, "set of target options"),
    ):
        with pytest.raises(ReadError, match=f"not the same {what}"):
            castsim.conform(**{**asked, **other})
    with pytest.raises(ReadError, match="not a ledger of castsim accuracy"):
        castsim.accuracy("a5", data=table, ledger=ledger)
    ledger.write_bytes(data.replace(castsim.__version__.encode(), b"0.0.1", 1))
    with pytest.raises(ReadError, match="not the same version of castsim"):
        castsim.conform(**asked)
    table_before = table.read_text()
    assert main(["accuracy", "--target", "a5", "--data", str(table), "--ledger", str(table)]) == 2
    assert "--data and --ledger name the same file" in capsys.readouterr().err
    with pytest.raises(ReadError, match="not a ledger"):
        castsim.conform(**{**asked, "ledger": table})
    assert table.read_text() == table_before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*WORDS, "--workers", "2", "--scheduler", "h:1"], "--workers and --scheduler cannot be combined"),
        ([*WORDS, "--scheduler", "somewhere"], "--scheduler somewhere: expected an address with a port"),
        (["accuracy", "--target", "a5", "--cross-validate", "pair", "--workers", "2"], "--workers 2: --cross-validate"),
        (["verify", "f16", "i8", "--scheduler", "h"], "--scheduler h: expected an address with a port"),
        ("lower --target a5", "lower takes SRC and DST, or --spec without them"),
        ("lower f16 --spec tosa --target a5", "lower takes SRC and DST"),
        ("lower f16 i8 --target a5 --workers 2", "--workers 2: several processes need all casts"),
        ("lower --spec tosa --target a5 --saturate", "--saturate applies to one cast"),
        ("lower --spec tosa --target a5 --out -", "--out -: needs a folder"),
    ],
)
def test_options_that_do_not_go_together(words: list[str] | str, message: str, capsys: Capture) -> None:
    assert message in err_of(capsys, words.split() if isinstance(words, str) else words)


# ------------------------------------------------------------------------------------------- all casts lowered


@pytest.fixture
def few_casts(tmp_path: Path) -> Path:
    """A specification of two casts, which are exact or nothing."""
    text = (ROOT / "targets" / "exact.toml").read_text()
    own = text.replace('name = "exact"', 'name = "few"').replace(
        'src = "all"\ndst = "all"', 'src = "bf16"\ndst = "DST"'
    )
    head, casts, rest = own.partition("[[casts]]")
    one, facts, rest = rest.partition("[casts_fact]")
    path = tmp_path / "few.toml"
    path.write_text(head + "".join(casts + one.replace("DST", dst) for dst in ("f32", "f16", "i8")) + facts + rest)
    return path


def test_all_casts_lowered_are_each_lowered_alone(
    cluster: str, few_casts: Path, tmp_path: Path, capsys: Capture
) -> None:
    ledger, folder = tmp_path / "l.ledger", tmp_path / "programs"
    words = ["lower", "--spec", str(few_casts), "--target", "gaudi"]
    found: dict[str, dict[str, Any]] = {}
    for who in ([], ["--workers", "2", "--ledger", str(ledger)], ["--scheduler", cluster]):
        code = main([*words, *who, "--out", str(folder), "--json", "-"])
        told = capsys.readouterr()
        held = json.loads(told.out)
        found[" ".join(who[:1])] = without_workers(held)
        assert code == any(each["verdict"] == "differs" for each in held["cells"]), told.err
    assert not ledger.exists()
    assert found[""] == found["--workers"] == found["--scheduler"]
    assert len(found[""]["cells"]) == 3
    for cell in found[""]["cells"]:
        alone = castsim.lower(cell["src"], cell["dst"], target="gaudi", spec=str(few_casts))
        assert (cell["program"], cell["verdict"]) == (alone.text, alone.plan.verdict.value)
        assert (cell["file"] is None) == (alone.text is None)
        if cell["file"] is not None:
            assert Path(cell["file"]).read_text() == alone.text


def test_casts_lowered_to_a_target_of_a_file_share_it(
    few_casts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.toml"
    own.write_text((ROOT / "targets" / "a2a3.toml").read_text())
    asked: list[CastRequest] = []

    def answered(request: CastRequest, **options: Any) -> Answer:
        asked.append(request)
        return answer(request, **options)

    monkeypatch.setattr(lowered, "answer", answered)
    lowered.lower_all(load_specification(few_casts), str(own))
    assert len(asked) == 3
    assert len({id(each.target) for each in asked}) == 1


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

"""`castsim sweep`: rows against single estimates, runs and the event engine; resumption; refusals."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster
from kit.command_output import Capture, document_of, err_of, file_of
from kit.paths import ROOT

import castsim
from castsim.__main__ import main
from castsim.engines import simulate
from castsim.execution.timing import WAITING, Cause
from castsim.isa.errors import EngineError, ReadError
from castsim.running.program_loading import load_program
from castsim.targets.description import with_options
from castsim.tools.distribution.distributing import Ledger, Workers, distributed
from castsim.tools.sweep.points import column_of, computed, work_of
from castsim.tools.sweep.results import BOOK, task_of
from castsim.tools.sweep.specification import read_specification

TILES = ROOT / "programs" / "tuning" / "f32_to_bf16_tiles.pto"
CASTS = {
    "sweep": {"kind": "cast", "mode": "estimate"},
    "grid": {
        "src": ["f32", "f16"], "dst": ["bf16", "i32"], "rows": [1, 7, 16], "cols": {"from": 16, "to": 176, "step": 32},
        "row_stride": ["default", 192], "target": ["a2a3", "a5", "gaudi2"],
    },
    "exclude": [{"where": "rows * cols > 1500"}, {"src": "f16", "dst": "bf16", "target": "a5"}],
}  # fmt: skip
PROGRAMS = {
    "sweep": {"kind": "program", "mode": "simulate"},
    "grid": {"program": str(TILES), "target": "a2a3", "args": {"R": [16, 17], "C": "128..512*2"},
             "option": {"vector_head": ["idle", "always"]}},
    "exclude": [{"where": "args.R * args.C > 8500"}],
}  # fmt: skip
REFUSED = {"cycles": None, "bound_by": None, **{column_of(cause): None for cause in Cause}, "status": "failed"}


def rows_of(path: Path) -> list[dict[str, object]]:
    return pq.read_table(path).to_pylist()


def with_mode(mode: str) -> dict[str, object]:
    return {**CASTS, "sweep": {"kind": "cast", "mode": mode}}


@pytest.mark.parametrize("mode", ["estimate", "simulate"])
def test_rows_are_single_estimates_in_the_order_of_the_grid(mode: str, tmp_path: Path) -> None:
    found = castsim.sweep(with_mode(mode), tmp_path / "r.parquet", workers=1)
    rows = rows_of(found.path)
    points = [
        (src, dst, height, width, stride, target)
        for src, dst, height, width, stride, target in product(
            ("f32", "f16"), ("bf16", "i32"), (1, 7, 16), range(16, 177, 32), (None, 192), ("a2a3", "a5", "gaudi2")
        )
        if height * width <= 1500 and (src, dst, target) != ("f16", "bf16", "a5")
    ]
    assert found.rows == len(rows) == len(points)
    failed = 0
    for row, (src, dst, height, width, stride, target) in zip(rows, points, strict=True):
        point = {"src": src, "dst": dst, "rows": height, "cols": width, "row_stride": stride, "rounding": None,
                 "saturation": None, "target": target}  # fmt: skip
        try:
            alone = castsim.estimate(src, dst, height, width, row_stride=stride, target=target)
        except castsim.CastsimError as error:
            failed += 1
            assert row == {**point, **REFUSED, "error": error.message}
            continue
        causes = {column_of(cause): alone.causes.get(cause, 0) for cause in Cause}
        assert row == {**point, "cycles": alone.cycles, **causes, "bound_by": str(alone.bound_by), "status": "ok",
                       "error": None}  # fmt: skip
        assert sum(causes.values()) == alone.cycles
    assert found.failed == failed > 0


def test_programs_are_runs_of_the_event_engine_with_the_parameters_written_out(tmp_path: Path) -> None:
    found = castsim.sweep(PROGRAMS, tmp_path / "p.parquet", workers=1)
    rows = rows_of(found.path)
    assert [(row["args.R"], row["args.C"], row["option.vector_head"]) for row in rows] == [
        each for each in product((16, 17), (128, 256, 512), ("idle", "always")) if each[0] * each[1] <= 8500
    ]
    text = TILES.read_text()
    for row in rows:
        if row["args.R"] == 17:  # does not divide the rows of the tensor
            assert row == {**row, **REFUSED}
            assert "offs" in str(row["error"])
            continue
        written = tmp_path / "written.pto"
        plain = text
        for name, value in (("R", 16), ("C", 256)):
            plain = plain.replace(f"parameter {name} = {value} ", f"parameter {name} = {row[f'args.{name}']} ")
        written.write_text(plain)
        chosen = {"vector_head": str(row["option.vector_head"])}
        loaded = load_program(written, "a2a3", None, {}, lambda target, chosen=chosen: with_options(target, chosen))
        timing = simulate(loaded.tree, loaded.target, engine="event")
        assert row["cycles"] == timing.total
        own = {
            name: sum(spent for cause, spent in pipe.causes.items() if cause not in WAITING)
            for name, pipe in timing.pipes.items()
        }
        limiting = timing.pipes[max(own, key=lambda name: own[name])].causes
        assert {cause: row[column_of(cause)] for cause in Cause} == {cause: limiting.get(cause, 0) for cause in Cause}


def test_the_file_says_what_it_rests_on(tmp_path: Path) -> None:
    found = castsim.sweep(CASTS, tmp_path / "r.parquet", workers=1)
    schema = pq.read_schema(found.path)
    assert schema.metadata[b"castsim_version"] == castsim.__version__.encode()
    assert schema.metadata[b"facts_digest"] == found.facts_digest.encode()
    assert set(json.loads(schema.metadata[b"facts"])) == {"a2a3", "a5", "gaudi2"}
    assert schema.field("cycles").metadata == {b"unit": b"cycles"}
    again = {**CASTS, "grid": {"src": "f32", "dst": "bf16", "rows": 1, "cols": 16, "target": "a5"}, "exclude": []}
    other = castsim.sweep(again, tmp_path / "o.parquet", workers=1)
    assert pq.read_schema(other.path).equals(schema)  # one schema for all sweeps of casts
    assert list(found.to_frame().columns) == schema.names


def test_values_that_mean_the_same_are_one_point(tmp_path: Path) -> None:
    grid = {"src": ["f32", "fp32"], "dst": "f16", "rows": [16, 16, "8..16:8"], "cols": 64, "target": "a5"}
    given = {"sweep": {"kind": "cast", "mode": "estimate"}, "grid": {**grid, "rounding": ["rint", "RINT"]}}
    rows = rows_of(castsim.sweep(given, tmp_path / "r.parquet").path)
    assert [(row["src"], row["rows"]) for row in rows] == [("f32", 16), ("f32", 8)]


def test_from_any_part_of_its_ledger_a_sweep_ends_with_the_same_rows(tmp_path: Path) -> None:
    """A process that is killed leaves a beginning of the ledger, its last chunk whole or not."""
    whole = castsim.sweep(with_mode("simulate"), tmp_path / "whole.parquet", workers=1)
    data = whole.ledger.read_bytes()
    expected = pq.read_table(whole.path)
    chance = random.Random(21)
    for cut in (0, 5, len(data) - 1, *(chance.randrange(len(data)) for _ in range(4))):
        path = tmp_path / "cut.parquet"
        Path(f"{path}.ledger").write_bytes(data[:cut])
        found = castsim.sweep(with_mode("simulate"), path, workers=1)
        assert pq.read_table(path).equals(expected)
        assert found.resumed >= (cut - 700) * found.chunks // len(data) - 2
    again = castsim.sweep(with_mode("simulate"), whole.path, workers=1)
    assert again.resumed == again.chunks
    spoilt = bytearray(data)
    spoilt[len(data) // 2] ^= 1
    Path(f"{tmp_path / 'cut.parquet'}.ledger").write_bytes(spoilt)
    castsim.sweep(with_mode("simulate"), tmp_path / "cut.parquet", workers=1)
    assert pq.read_table(tmp_path / "cut.parquet").equals(expected)


def test_a_ledger_about_something_else_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    castsim.sweep(CASTS, out, workers=1)
    with pytest.raises(ReadError, match="not the same specification"):
        castsim.sweep(with_mode("simulate"), out, workers=1)
    work = work_of(read_specification(CASTS))
    ledger = Path(f"{out}.ledger")
    with Ledger(ledger, work.about(), BOOK), pytest.raises(ReadError, match="another sweep is writing"):
        Ledger(ledger, work.about(), BOOK)
    with pytest.raises(ReadError, match="not the same version of castsim"):
        Ledger(ledger, {**work.about(), "version of castsim": "0.0.1"}, BOOK)
    ledger.write_bytes(b"something\n")
    with pytest.raises(ReadError, match="not a ledger"):
        castsim.sweep(CASTS, out, workers=1)


def test_a_ledger_that_holds_no_chunk_is_written_anew(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    other = work_of(read_specification({**CASTS, "exclude": []}))
    with Ledger(Path(f"{out}.ledger"), other.about(), BOOK):
        pass
    assert castsim.sweep(CASTS, out).resumed == 0
    with pytest.raises(ReadError, match="not the same specification"):
        castsim.sweep({**CASTS, "exclude": []}, out)


def test_a_file_that_would_not_be_what_its_suffix_says_is_not_written(tmp_path: Path, capsys: Capture) -> None:
    specification = str(ROOT / "programs/sweeps/f32_to_bf16_shapes.toml")
    error = err_of(capsys, ["sweep", specification, "--out", str(tmp_path / "r.csv")])
    assert "results are written as Parquet\n  help: --out FILE.parquet" in error
    assert not list(tmp_path.iterdir())


def test_a_worker_that_is_another_castsim_computes_nothing() -> None:
    work = work_of(read_specification(CASTS))
    for changed, what in (
        ({"version": "0.0.1"}, "version"),
        ({"sources": "0" * 64}, "source files"),
        ({"facts": {**work.identity.facts, "a5": "0" * 64}}, "facts"),
    ):
        with pytest.raises(EngineError, match=f"its {what} "):
            computed(replace(work, identity=replace(work.identity, **changed)), 0)


WRONG = [
    ('[sweep]\nkind = "casts"\nmode = "estimate"\n[grid]\n', 2, "sweep.kind", "cast, program"),
    ('[sweep]\nkind = "cast"\nmode = "guess"\n[grid]\n', 3, "sweep.mode", "estimate, simulate"),
    ('[sweep]\nkind = "program"\nmode = "estimate"\n[grid]\n', 3, "sweep.mode", "simulate"),
    ('[sweep]\nkind = "cast"\nmode = "estimate"\nspeed = 3\n[grid]\n', 4, "sweep.speed", "kind, mode"),
    ("GRID\ncolumns = 3\n", 10, "grid.columns", "row_stride"),
    ('GRID\nrounding = 3\n', 10, "grid.rounding", "word"),
    ('GRID\nsaturation = "perhaps"\n', 10, "grid.saturation", "on, off, default"),
    ("GRID\nrow_stride = { from = 9, to = 8 }\n", 10, "grid.row_stride", "the range is empty"),
    ('GRID\nrow_stride = "8..4"\n', 10, "grid.row_stride", "8..64"),
    ("GRID\nrow_stride = []\n", 10, "grid.row_stride", "8..64"),
    ("GRID\nrow_stride = 9999999999\n", 10, "grid.row_stride", "up to"),
    ('GRID\n[[exclude]]\nwhere = "rows > wide"\n', 11, "'wide'", "rows"),
    ('GRID\n[[exclude]]\nwhere = "__import__(1)"\n', 11, "exclude.where", "names"),
    ('GRID\n[[exclude]]\nlines = 3\n', 11, "exclude.lines", "where"),
    ('[sweep]\nkind = "cast"\nmode = "estimate"\n[grid]\nsrc = "f32"\n', 4, "grid.dst", "dst"),
    ('[sweep]\nkind = "cast"\nmode = \n', 3, "malformed TOML", ""),
    ("", 1, "the table [sweep] is missing", ""),
    ('PROGRAM\n"args.R" = 16\nargs.R = 17\n', 8, "grid.args.R is given twice", ""),
    ('PROGRAM\n"args." = 16\n', 8, "missing name after the point", ""),
    ("PROGRAM\nargs.R = [9007199254740993, 0.5]\n", 8, "9007199254740993 is too large to be mixed with fractions", ""),
    ('PROGRAM\nargs.R = 0.5\n[[exclude]]\nwhere = "args.R > 1"\n', 10, "args.R has fractions, such as 0.5", ""),
    ('PROGRAM\nargs.R = 1\n[[exclude]]\nargs.R = 1\n"args.R" = 1\n', 11, "exclude.args.R is given twice", ""),
    ('GRID\nrow_stride = "default"\n[[exclude]]\nwhere = "row_stride > 1"\n', 12, "exclude.where: 'default' and 1", ""),
    ("GRID\nrow_stride = 8.5\n", 10, "8.5 is not a value", ""),
    ("GRID\nrow_stride = true\n", 10, "true is not a value", ""),
    ("GRID\nrow_stride = { from = 1, to = 9, step = 2, times = 2 }\n", 10, "both 'step' and 'times'", ""),
]  # fmt: skip
GRID = (
    '[sweep]\nkind = "cast"\nmode = "estimate"\n[grid]\nsrc = "f32"\ndst = "f16"\nrows = 8\ncols = 64\ntarget = "a5"\n'
)
PROGRAM = f'[sweep]\nkind = "program"\nmode = "simulate"\n[grid]\nprogram = "{TILES}"\ntarget = "a2a3"\nargs.C = 128\n'


@pytest.mark.parametrize(("text", "line", "said", "legal"), WRONG)
def test_a_wrong_specification_is_told_with_line_key_and_what_is_legal(
    text: str, line: int, said: str, legal: str, tmp_path: Path, capsys: Capture
) -> None:
    path = file_of(tmp_path / "s.toml", text.replace("GRID\n", GRID).replace("PROGRAM\n", PROGRAM))
    told = err_of(capsys, ["sweep", str(path), "--out", str(tmp_path / "r.parquet")])
    assert told.startswith(f"error: {path}:{line}:"), told
    assert said in told
    assert legal in told
    assert not (tmp_path / "r.parquet").exists()


def test_a_target_or_program_that_is_not_there_is_told_at_its_key(tmp_path: Path) -> None:
    path = file_of(tmp_path / "s.toml", GRID.replace('"a5"', '["a5", "a6"]'))
    with pytest.raises(ReadError, match="unknown target 'a6'") as found:
        castsim.sweep(path, tmp_path / "r.parquet")
    assert (found.value.span.line, "a5" in found.value.legal) == (9, True)
    path.write_text('[sweep]\nkind = "program"\nmode = "simulate"\n[grid]\nprogram = "nosuch.pto"\n')
    with pytest.raises(ReadError, match=r"nosuch\.pto") as found:
        castsim.sweep(path, tmp_path / "r.parquet")
    assert found.value.span.line == 5


def test_the_workers_of_a_cluster_give_the_same_rows(tmp_path: Path) -> None:
    expected = castsim.sweep(CASTS, tmp_path / "here.parquet", workers=1)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0"
    ) as cluster:
        found = castsim.sweep(CASTS, tmp_path / "there.parquet", scheduler=cluster.scheduler_address)
        work = work_of(read_specification(CASTS))
        other = replace(work, identity=replace(work.identity, version="0.0.1"))
        with pytest.raises(EngineError, match="a different castsim: its version"):
            next(distributed(task_of(other), [0], Workers(1, cluster.scheduler_address)))
    assert pq.read_table(found.path).equals(pq.read_table(expected.path))


def test_a_page_shows_where_routes_cross(tmp_path: Path, capsys: Capture) -> None:
    sizes, targets = range(16, 1025, 16), ("a2a3", "a5", "gaudi2")
    grid = {"src": "f32", "dst": "i32", "rows": 1, "cols": list(sizes), "target": list(targets)}
    out = castsim.sweep(
        {"sweep": {"kind": "cast", "mode": "estimate"}, "grid": grid}, tmp_path / "r.parquet", workers=1
    )
    cycles = {name: [castsim.estimate("f32", "i32", 1, size, target=name).cycles for size in sizes] for name in targets}
    expected = set()
    for one, other in combinations(targets, 2):
        ahead = None
        for size, left, right in zip(sizes, cycles[one], cycles[other], strict=True):
            if left != right:
                faster = one if left < right else other
                if ahead not in (None, faster):
                    expected.add((ahead, faster, size))
                ahead = faster
    page = tmp_path / "r.html"
    found = document_of(capsys, "sweep", "--report", str(out.path), "--html", str(page))
    assert {(each["below"], each["above"], each["x"]) for each in found["crossings"]} == expected
    assert (found["rows"], found["failed"]) == (3 * len(sizes), 0)
    text = page.read_text()
    assert all(name in text for name in ("f32 -\\u003e i32", "Heat map", "Where routes cross"))
    winners: list[tuple[str, int]] = []
    for k, size in enumerate(sizes):
        least = min(cycles[name][k] for name in targets)
        if not winners or cycles[winners[-1][0]][k] > least:
            winners.append((min(targets, key=lambda name: cycles[name][k]), size))
    changes = len(winners) - 1
    turns = ", ".join(f"{name} from {size:,}" for name, size in winners[1:])
    many = f"the fastest route changes {changes} times; {winners[-1][0]} wins at the largest size."
    few = f"{winners[0][0]} wins below {winners[1][1]:,} elements, {turns} on."
    assert (many if changes > 3 else few) in text
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    (tmp_path / "none.parquet").write_text("rows")
    for name, said in (("other", "another schema"), ("none", "not a Parquet file"), ("nosuch", "nosuch")):
        path = str(tmp_path / f"{name}.parquet")
        assert said in err_of(capsys, ["sweep", "--report", path, "--html", str(page)])


def test_exit_codes_and_json(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "s.toml", str(tmp_path / "r.parquet")
    path.write_text(GRID)
    assert document_of(capsys, "sweep", str(path), "--out", out)["rows"] == 1
    path.write_text(GRID.replace('"f16"', '["f16", "u4"]'))
    Path(f"{out}.ledger").unlink()
    assert main(["sweep", str(path), "--out", out, "--quiet"]) == 1
    assert [row["status"] for row in rows_of(Path(out))] == ["ok", "failed"]


def rows(specification: object, tmp_path: Path) -> list[dict[str, object]]:
    """Sweep, and return the rows."""
    path, out = tmp_path / "s.toml", tmp_path / "r.parquet"
    if isinstance(specification, str):
        path.write_text(specification)
    castsim.sweep(path if isinstance(specification, str) else specification, out, workers=1)  # type: ignore[arg-type]
    return pq.read_table(out).to_pylist()


@pytest.mark.parametrize(
    ("grid", "excluded", "key", "left"),
    [
        ('dst = ["f16", "bf16"]', 'dst = "float16"', "dst", ["bf16"]),
        ('dst = ["float16", "bf16"]', 'dst = "F16"', "dst", ["bf16"]),
        ('saturation = ["on", "off"]', 'saturation = "ON"', "saturation", ["off"]),
        ('rounding = ["default", "rint"]', 'rounding = "RINT"', "rounding", [None]),
        ("rows = [8, 16]", "rows = { from = 1, to = 9 }", "rows", [16]),
    ],
)
def test_what_is_excluded_may_be_spelt_otherwise(
    grid: str, excluded: str, key: str, left: list[object], tmp_path: Path
) -> None:
    lines = [line for line in GRID.splitlines() if not line.startswith(f"{key} =")]
    found = rows("\n".join([*lines, grid, "[[exclude]]", excluded]), tmp_path)
    assert [row[key] for row in found] == left


def test_options_are_excluded_as_words_and_as_numbers() -> None:
    grid = {"program": str(TILES), "option": {"a": [1, 2]}}
    for excluded in (1, "1"):
        found = read_specification({
            "sweep": {"kind": "program", "mode": "simulate"}, "grid": grid, "exclude": [{"option": {"a": excluded}}],
        })  # fmt: skip
        assert found.grid.kept(0, 2).tolist() == [1]


def test_a_number_in_quotes_is_the_number(tmp_path: Path) -> None:
    found = rows(f'{PROGRAM}args.R = ["16", 16, "0x10"]\n', tmp_path)
    assert [(row["args.R"], row["status"]) for row in found] == [(16, "ok")]


@pytest.mark.parametrize(
    ("value", "said"), [("args.R = 0.5", "parameter R takes integers"), ('args.Q = "five"', "'five' is not a number")]
)
def test_an_argument_that_a_program_cannot_take_fails_its_point(value: str, said: str, tmp_path: Path) -> None:
    (found,) = rows(f"{PROGRAM}{value}\n", tmp_path)
    assert found["status"] == "failed"
    assert found["cycles"] is None
    assert said in str(found["error"])


@pytest.mark.parametrize("value", [10**30, -(10**400), {"from": 1, "to": 1 << 63}, float("nan"), float("inf")])
def test_a_number_from_python_that_no_column_holds(value: object, tmp_path: Path) -> None:
    grid = {"program": str(TILES), "target": "a2a3", "args": {"R": value}}
    with pytest.raises(ReadError, match=r"grid\.args\.R: .*(64 bits|is not a value)"):
        castsim.sweep({"sweep": {"kind": "program", "mode": "simulate"}, "grid": grid}, tmp_path / "r.parquet")


def test_no_file_that_is_read_or_written_besides_is_replaced(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.pto").write_bytes(TILES.read_bytes())
    (tmp_path / "p.toml").write_text(PROGRAM.replace(str(TILES), "p.pto"))
    (tmp_path / "s.toml").write_text(GRID)
    (tmp_path / "r.parquet.ledger").write_text("of another sweep")
    for words, said in (
        ("s.toml --out r.parquet --json r.parquet", "--out and --json name the same file"),
        ("s.toml --out r.parquet --json r.parquet.ledger", "the ledger beside --out and --json name the same file"),
        ("s.toml --out -", "--out needs a file"),
        ("s.toml --out .", "--out .: cannot be written"),
        ("s.toml --out nosuch/r.parquet", "--out nosuch/r.parquet: cannot be written"),
        ("s.toml --out s.toml", "would overwrite 's.toml', the specification"),
        ("p.toml --out p.pto", "would overwrite 'p.pto', the program"),
    ):
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert said in err_of(capsys, ["sweep", *words.split(), "--workers", "1"])
        assert {name: (tmp_path / name).read_bytes() for name in before} == before
    for path in tmp_path.glob("r.*"):
        path.unlink()
    assert main(["sweep", "s.toml", "--out", "r.parquet", "--workers", "1"]) == 0
    held = (tmp_path / "r.parquet").read_bytes()
    assert main(["sweep", "--report", "r.parquet", "--html", "r.parquet"]) == 2
    assert (tmp_path / "r.parquet").read_bytes() == held
    error = err_of(capsys, ["sweep", "--report", "nosuch.parquet", "--html", "p.html"])
    assert "error: --report nosuch.parquet: No such file or directory" in error
    with pytest.raises(ReadError, match="is a folder"):
        castsim.sweep("s.toml", tmp_path, workers=1)


@pytest.mark.parametrize("count", ["0", "-1", "1025", "99999999999"])
def test_so_many_processes_there_cannot_be(count: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "s.toml").write_text(GRID)
    for words in (
        f"sweep {tmp_path}/s.toml --out {tmp_path}/r.parquet",
        "conform --spec tosa --target a5 --src f32 --dst f16",
        "verify f16 e4m3fn --samples 10",
        "accuracy --target a5",
        "lower --spec tosa --target a5",
    ):
        assert f"--workers {count}: must be " in err_of(capsys, [*words.split(), "--workers", count])


def test_a_record_is_resumed_for_what_it_is_about(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "record.json"
    kept = ["--record", str(path), "--quiet"]
    verify = ["verify", "--lowering"]
    assert main([*verify, "f16", "i8", "--target", "a5", "--samples", "10", *kept]) == 0
    for words, other in (
        ("f16 i16 --target a5", "casts or targets"),
        ("f16 i8 --target a2a3", "casts or targets"),
        ("--samples 11", "samples"),
        ("--seed 1", "samples"),
        ("--spec onnx", "specifications or versions"),
        ("--spec tosa@1.0", "specifications or versions"),
    ):
        assert f"covers different {other}; " in err_of(capsys, [*verify, *words.split(), "--resume", *kept])
    for words in ("f16 i8 --target a5", "--samples 10 --seed 0", "--spec tosa", ""):
        assert main([*verify, *words.split(), "--resume", *kept]) == 0, words
    assert json.loads(path.read_text())["complete"]

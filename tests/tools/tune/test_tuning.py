"""`castsim tune`: the best point and the front of every space are those of an exhaustive search by the event engine."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import jsonschema
import pytest
from kit.command_output import Capture, document_of, err_of, file_of, out_of
from kit.paths import PROGRAMS
from kit.sample_arguments import scalars

import castsim
from castsim.__main__ import main
from castsim.isa.errors import CastsimError, EngineError
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.tools.reference.schema import form_schema
from castsim.tools.tune.candidates import Bounds, TuningRow
from castsim.tools.tune.report import Tune, tuning_document
from castsim.tools.tune.studies import Tuning, TuningLedger, about, search

SAMPLES = PROGRAMS / "tuning"
TILES, FP8 = SAMPLES / "f32_to_bf16_tiles.pto", SAMPLES / "quantise_tiles_a5.pto"
THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"

VIEW = "!pto.partition_tensor_view<${{R}}x64x{}>"
ROWS = """// castsim: parameter R = 8
// castsim: parameter M = RINT
module attributes {pto.target_arch = "a3"} {
  func.func @rows(%src: !pto.ptr<f32>, %dst: !pto.ptr<i32>, %n: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = arith.constant ${R} : index
    %c = arith.constant ${16 * 4} : index
    %vsrc = pto.make_tensor_view %src, shape = [%n, %c], strides = [%c, %c1] : !pto.tensor_view<?x?xf32>
    %vdst = pto.make_tensor_view %dst, shape = [%n, %c], strides = [%c, %c1] : !pto.tensor_view<?x?xi32>
    %a = pto.alloc_tile : !pto.tile_buf<vec, ${R}x64xf32>
    %b = pto.alloc_tile : !pto.tile_buf<vec, ${R}x64xi32>
    scf.for %i = %c0 to %n step %r {
      %p = pto.partition_view %vsrc, offsets = [%i, %c0], sizes = [%r, %c] : !pto.tensor_view<?x?xf32> -> PART
      %q = pto.partition_view %vdst, offsets = [%i, %c0], sizes = [%r, %c] : !pto.tensor_view<?x?xi32> -> GIVEN
      pto.tload ins(%p : PART) outs(%a : !pto.tile_buf<vec, ${R}x64xf32>)
      pto.tcvt ins(%a {rmode = #pto<round_mode ${M}>} : !pto.tile_buf<vec, ${R}x64xf32>)
        outs(%b : !pto.tile_buf<vec, ${R}x64xi32>)
      pto.tstore ins(%b : !pto.tile_buf<vec, ${R}x64xi32>) outs(%q : GIVEN)
    }
    return
  }
}
""".replace("PART", VIEW.format("f32")).replace("GIVEN", VIEW.format("i32"))
"""64 columns; 48 rows: 32 of them leave the view at the end, and a tile of 512 rows does not fit the buffer."""


def plain(text: str, values: dict[str, object]) -> str:
    """Fill parameters in as an editor would: by search and replace."""
    return re.sub(r"\$\{(\w+)\}", lambda match: str(values[match[1]]), text).replace("${16 * 4}", "64")


def exhaustive(
    text: str, space: dict[str, list[object]], tmp_path: Path, sides: dict[str, str] | None = None, **given: object
) -> dict[tuple[object, ...], tuple[int, int]]:
    """Return cycles of the event engine, and bytes of the touched buffer by its accesses, for each point that runs."""
    found = {}
    for number, values in enumerate(product(*space.values())):
        path = file_of(tmp_path / f"point{number}.pto", plain(text, dict(zip(space, values, strict=True))))
        run = dict(given)
        for name, value in zip(space, values, strict=True):
            if (sides or {}).get(name) == "args":
                run["args"] = {name: value}
            elif (sides or {}).get(name) == "target":
                run["target"] = value
        try:
            result = castsim.run(path, engine="event", timing_only=True, **run)  # type: ignore[arg-type]
        except (CastsimError, EngineError):
            continue
        found[values] = result.cycles, touched(path.read_text())
    return found


def touched(text: str) -> int:
    """Return the bytes of all tiles of a program that places them one after the other: rows x columns x size."""
    sizes = {"f32": 4, "i32": 4, "bf16": 2, "f8E4M3FN": 1}
    tiles = re.findall(r"alloc_tile : !pto\.tile_buf<vec, (\d+)x(\d+)x(\w+)>", text)
    return sum(int(rows) * int(cols) * sizes[kind] for rows, cols, kind in tiles)


def naive_front(points: dict[tuple[object, ...], tuple[int, int]]) -> set[tuple[int, int]]:
    """Return cycles and bytes of the points that no other one is better than, pair by pair."""
    pairs = set(points.values())
    return {one for one in pairs if not any(two != one and two[0] <= one[0] and two[1] <= one[1] for two in pairs)}


def check(found: Tuning, points: dict[tuple[object, ...], tuple[int, int]], count: int) -> None:
    """Compare a search with an exhaustive one."""
    assert found.best.cycles == min(cycles for cycles, _ in points.values())
    assert points[tuple(found.best.choices.values())] == (found.best.cycles, found.best.buffer_bytes)
    assert {(row.cycles, row.buffer_bytes) for row in found.pareto} == naive_front(points)
    assert not found.faster_possible
    assert not found.unsettled
    assert len(found.rows) == count
    assert len(found.misfits) == count - len(points)
    for row in found.rows:
        values = tuple(row.choices.values())
        assert bool(row.reason) == (values not in points)
        if row.cycles is not None:
            assert (row.cycles, row.buffer_bytes) == points[values]
        if values in points:
            assert 0 < row.at_least <= points[values][0]


@pytest.mark.parametrize(
    ("program", "rows", "columns", "given"),
    [
        (TILES, [4, 8, 24, 32], [128, 512], "R in 4,8,24,32, C in 128,512"),
        (str(FP8), [16, 32, 64], [256, 512], {"R": [16, 32, 64], "C": [256, 512]}),
    ],
    ids=["cast", "kernel of A5"],
)
def test_tile_shapes(
    program: Path | str, rows: list[object], columns: list[object], given: object, tmp_path: Path
) -> None:
    points = exhaustive(Path(program).read_text(), {"R": rows, "C": columns}, tmp_path)
    check(castsim.tune(program, given), points, len(rows) * len(columns))


def test_rounding_modes_rows_and_points_that_do_not_fit(tmp_path: Path) -> None:
    path = file_of(tmp_path / "rows.pto", ROWS)
    space: dict[str, list[object]] = {"R": [8, 16, 32, 512], "M": ["RINT", "FLOOR", "ROUNDED"]}
    points = exhaustive(ROWS, space, tmp_path, args={"n": 48})
    assert len(points) == 4  # 8 and 16 rows in two modes
    found = castsim.tune(path, "R in 8,16,32,512, M in RINT,FLOOR,ROUNDED", args={"n": 48})
    check(found, points, 12)


def test_arguments_and_targets(tmp_path: Path) -> None:
    path = file_of(tmp_path / "rows.pto", ROWS)
    space: dict[str, list[object]] = {"R": [8, 16], "M": ["RINT"], "n": [16, 32, 48], "target": ["a2a3", "a5"]}
    points = exhaustive(ROWS, space, tmp_path, {"n": "args", "target": "target"})
    found = castsim.tune(path, "R in 8..16:8, M in RINT", args={"n": range(16, 49, 16)}, target=["a2a3", "a5"])
    check(found, points, 12)


def test_points_that_need_no_simulation_are_left_out_and_the_rest_is_as_in_a_full_search(tmp_path: Path) -> None:
    path = file_of(tmp_path / "rows.pto", ROWS)
    short = castsim.tune(path, "R in 8", args={"n": range(8, 161, 8)})
    full = castsim.tune(path, "R in 8", args={"n": range(8, 161, 8)}, simulate="all")
    assert len(short.simulated) < len(full.simulated) == 20
    assert short.best == full.best
    assert {(row.cycles, row.buffer_bytes) for row in short.pareto} == {(r.cycles, r.buffer_bytes) for r in full.pareto}
    assert not short.unsettled


def test_a_few_simulations_say_that_the_best_is_not_proven() -> None:
    found = castsim.tune(TILES, simulate=1)
    assert len(found.simulated) == 1
    assert found.faster_possible
    document = tuning_document(found)
    assert (document["best_is_proven"], document["pareto_is_proven"]) == (False, False)


def test_conditions_leave_points_out() -> None:
    found = castsim.tune(TILES, where=["R*C*4 <= 16384", "R >= 8 or C == 512"])
    wanted = {(r, c) for r in (4, 8, 16, 32) for c in (128, 256, 512) if r * c * 4 <= 16384 and (r >= 8 or c == 512)}
    assert {tuple(row.choices.values()) for row in found.rows} == wanted
    assert found.left_out == 12 - len(wanted)


def test_outputs_are_compared_to_the_bit(tmp_path: Path) -> None:
    same = castsim.tune(TILES, "R in 8,32, C in 512", inputs={"src": "random:3"})
    assert same.differing == ()
    assert all(row.outputs for row in same.simulated)
    path = file_of(tmp_path / "rows.pto", ROWS)
    other = castsim.tune(path, "M in RINT,FLOOR", args={"n": 16}, inputs={"src": "random:3"}, simulate="all")
    assert [names for _, names in other.differing] == [("dst",)]


def is_quick(path: Path) -> bool:
    return path.parent.name in ("programs", "tuning") and path.stem != "f32_to_bf16_rows"


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(SAMPLES.parent.rglob("*.pto")) if THOROUGH or is_quick(path)],
    ids=lambda path: path.stem,
)
def test_no_program_is_faster_than_its_lower_bound(path: Path) -> None:
    loaded = load(path, None, None, scalars(path))
    if loaded.tree is None:  # its path rests on values: its bound is 0
        return
    bound = Bounds(loaded.target).of(loaded.tree)
    assert 0 < bound <= run_loaded(loaded, {}, timing_only=True, races="ignore").cycles


def test_what_is_kept_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l"
    first = castsim.tune(TILES, resume=path, simulate="all")
    path.write_bytes(path.read_bytes()[:-9])  # cut off in the middle of a row, as a process that is killed leaves it
    assert castsim.tune(TILES, resume=path, simulate="all").rows == first.rows
    monkeypatch.setattr("castsim.tools.tune.candidates.load", None)
    again = search(first.study, ledger=TuningLedger.opened(path, about(first.study)))
    assert again.rows == first.rows


def test_another_program_or_option_is_refused(tmp_path: Path, capsys: Capture) -> None:
    ledger, path = str(tmp_path / "l"), tmp_path / "k.pto"
    path.write_text(TILES.read_text())
    words = ["tune", str(path), "--tile", "R in 32, C in 512", "--resume", ledger, "--quiet"]
    assert main(words) == 0
    assert "not the same settings" in err_of(capsys, [*words, "--option", "vector_head=always"])
    path.write_text(TILES.read_text() + "\n")
    told = err_of(capsys, words)
    assert "not the same program" in told
    assert ledger in told
    (tmp_path / "no").write_text("# a text\n")
    assert "not a ledger of castsim tune" in err_of(capsys, [*words[:-2], str(tmp_path / "no")])


@pytest.mark.parametrize(
    ("words", "place", "told", "legal"),
    [
        ("--tile|Q in 8", "--tile:1:1: ", "'Q' is not a parameter", "R, C"),
        ("--tile|R in 8, Q in 8", "--tile:1:9: ", "'Q' is not a parameter", "R, C"),
        ("--tile|R in 64..8", "--tile:1:6: ", "is empty", "8..64"),
        ("--tile|R in 8...64", "--tile:1:6: ", "not a range", "8..64:8"),
        ("--tile|R in 8..64:0", "--tile:1:6: ", "never reaches its end", "8..64:8"),
        ("--tile|R in 0..64*2", "--tile:1:6: ", "never reaches its end", "8..64:8"),
        ("--tile|R in 8,, 9", "--tile:1:8: ", "missing value", "128,256,512"),
        ("--tile|R in", "--tile:1:", "missing value", "8..64"),
        ("--tile|R in 1e3", "--tile:1:6: ", "must be an integer or a word", "RINT"),
        ("--tile|R = 4", "--tile:1:1: ", "expected NAME in VALUES", "--tile 'R in 8..64'"),
        ("--tile|R in 8, R in 9", "--tile:1:9: ", "given twice", ""),
        ("--where|R*", "--where:1:1: ", "not an expression", "integers"),
        ("--where|R < Q", "--where:1:5: ", "'Q' is not one of the choices", "R, C"),
        ("--where|R*C < 3", "--where:1:1: ", "the space is empty", "holds for some point"),
        ("--where|R / 2 == 1", "--where:1:1: ", "is not allowed in an expression", "//"),
        ("--where|R % 0 == 1", "--where:1:1: ", "divides by zero", ""),
        ("--where|R.real > 1", "--where:1:1: ", "is not allowed in an expression", ""),
        ("--where|__import__('os')", "--where:1:1: ", "is not allowed in an expression", ""),
        ("--where|R ** R ** R > 1", "--where:1:1: ", "is not allowed in an expression", ""),
        ("--tile|R in 1..90000, C in 1..90000", "", "combinations are more than", "8..64*2"),
    ],
)  # fmt: skip
def test_bad_input_has_its_place_and_what_would_be_legal(
    words: str, place: str, told: str, legal: str, capsys: Capture
) -> None:
    found = err_of(capsys, ["tune", str(TILES), *words.split("|")])
    assert found.startswith(f"error: {place}")
    assert told in found
    assert legal in found


def test_a_space_in_which_nothing_runs_is_a_table_of_reasons(capsys: Capture) -> None:
    document = document_of(capsys, "tune", str(TILES), "--tile", "R in 24, C in 512", code=1)
    assert document["best"] is None
    assert [row["choices"] for row in document["rows"]] == [{"R": 24, "C": 512}]
    assert "exceed the view" in document["rows"][0]["reason"]


def test_the_document_and_the_text_tell_the_same(capsys: Capture) -> None:
    words = ["tune", str(TILES), "--tile", "R in 8..64*2, C in 128,512", "--option", "vector_head=always"]
    document = document_of(capsys, *words)
    jsonschema.validate(document, form_schema(Tune))
    text = out_of(capsys, words)
    best = document["best"]
    assert f"Best: R={best['choices']['R']}, C={best['choices']['C']}: {best['cycles']:,} cycles (" in text
    assert document["command"] in text
    assert document_of(capsys, *document["command"].split()[1:])["total_cycles"] == best["cycles"]


def test_the_table_groups_thousands(capsys: Capture) -> None:
    answer, *_ = lines = out_of(capsys, ["tune", str(TILES), "--tile", "R in 16,32", "--tile", "C in 512"]).splitlines()
    found = castsim.tune(TILES, "R in 16,32, C in 512")
    assert f": {found.best.cycles:,} cycles (" in answer
    rows = [line.split() for line in lines if re.match(r" +\d+ ", line)]
    for row, cells in zip(found.simulated, rows, strict=True):
        assert row.cycles is not None and row.cycles >= 1000
        assert [f"{row.cycles:,}", f"{row.at_least:,}", f"{row.buffer_bytes:,}"] == [*cells[3:5], cells[6]]


def test_a_disk_that_takes_half_a_row_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, about_it, write = tmp_path / "l", {"program": "0"}, os.write
    row, next_one = TuningRow(1, {"R": 8}, cycles=9), TuningRow(2, {"R": 16}, cycles=7)

    def half(descriptor: int, data: bytes) -> int:
        write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with TuningLedger.opened(path, about_it) as ledger:
        ledger.add(row, simulated=True)
        with monkeypatch.context() as patched, pytest.raises(CastsimError, match="No space left"):
            patched.setattr(os, "write", half)
            ledger.add(next_one, simulated=True)
        ledger.add(next_one, simulated=False)
    with TuningLedger.opened(path, about_it) as again:
        assert [*again.rows.values()] == [replace(each, number=0) for each in (row, next_one)]

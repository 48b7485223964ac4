"""What is walked, compared and computed of a program has a stated limit, and an option that raises it."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest
from kit.paths import PROGRAMS

from castsim import run
from castsim.__main__ import main
from castsim.execution.run_limits import MAX_COMPUTED, MAX_WALK
from castsim.isa.errors import LimitError
from castsim.running.lifted_limits import what_if
from castsim.running.program_loading import load

SAMPLES = PROGRAMS
BASE = (SAMPLES / "f32_to_f16.pto").read_text()
CAST = next(line for line in BASE.splitlines() if "pto.tcvt" in line)


def nested(depth: int, body: str = "", *, trips: int = 10, used: bool = False) -> str:
    """The sample with loops inside each other in place of its cast, or around it; `used`: each names its variable."""
    own = "\n%s{0} = arith.addi %i{0}, %c1 : index" if used else ""
    heads = "".join(f"scf.for %i{k} = %c0 to %n step %c1 {{{own.format(k)}\n" for k in range(depth))
    return BASE.replace(CAST, f"%n = arith.constant {trips} : index\n{heads}{body}\n{'}' * depth}\n{CAST}")


def carried(trips: int) -> str:
    loop = f"""%n = arith.constant {trips} : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c1) -> (index) {{
      %b = arith.muli %a, %cols : index
      %q = arith.xori %b, %i : index
      scf.yield %q : index
    }}"""
    return BASE.replace(CAST, f"{loop}\n{CAST}")


def squares(trips: int) -> str:
    """A branch in a loop that depends on the square of its variable: nothing is known of its trips."""
    loop = f"""%n = arith.constant {trips} : index
    scf.for %i = %c0 to %n step %c1 {{
      %m = arith.muli %i, %i : index
      %w = arith.remui %m, %cols : index
      %t = arith.cmpi eq, %w, %c1 : index
      scf.if %t {{
      {CAST}
      }}
    }}"""
    return BASE.replace(CAST, f"{loop}\n{CAST}")


def written(folder: Path, text: str) -> Path:
    path = folder / "k.pto"
    path.write_text(text)
    return path


def line_of(text: str, what: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if what in line)


@pytest.mark.parametrize("text", [carried(10**9), carried(10**18), squares(10**9), nested(20, used=True)])
def test_a_walk_without_end_is_refused_at_its_loop(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = written(tmp_path, text)
    assert main(["run", str(path), "--timing-only"]) == 1
    shown = capsys.readouterr().err
    places = [number for number, line in enumerate(text.splitlines(), 1) if "scf.for" in line]
    assert any(f"{path}:{place}:" in shown for place in places)
    assert f"more than {MAX_WALK}, the limit of --max-walk" in shown


def test_the_limit_can_be_raised_and_lowered(tmp_path: Path):
    path = written(tmp_path, carried(1000))
    whole = run(path, timing_only=True)
    with pytest.raises(LimitError, match="more than 2999, "):
        run(path, timing_only=True, max_walk=2999)
    assert run(path, timing_only=True, max_walk=3000).cycles == whole.cycles
    with pytest.raises(LimitError):
        what_if(path, max_walk=2999)


def test_statements_are_limited_by_the_option_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = written(tmp_path, BASE)
    assert main(["run", str(path), "--max-statements", "5", "--timing-only"]) == 1
    assert "more than 5 statements, the limit of --max-statements" in capsys.readouterr().err
    assert main(["run", str(path), "--max-statements", "14", "--timing-only"]) == 0
    with pytest.raises(LimitError):
        run(path, max_statements=13, timing_only=True)


@pytest.mark.parametrize("depth", [4, 20, 40, 60])
def test_loops_around_nothing_cost_the_walk_nothing(depth: int, tmp_path: Path):
    loaded = load(written(tmp_path, nested(depth)), None, None, {})
    node, trips = loaded.tree.root, 1
    while True:
        loops = [item for item in node.items if hasattr(item, "trips")]
        if not loops:
            break
        (loop,) = loops
        trips *= loop.trips
        node = loop.body
    assert trips == 10**depth


@pytest.mark.parametrize("trips", [2 * 10**6, 10**18])
def test_values_of_too_many_executions_are_refused_before_the_first(
    trips: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    text = nested(1, CAST, trips=trips)
    path = written(tmp_path, text)
    assert main(["run", str(path), "--in", "src=zeros"]) == 1
    shown = capsys.readouterr().err
    assert f"{path}:{line_of(text, 'scf.for')}:" in shown
    assert f"more than {MAX_COMPUTED}, the limit of --max-walk" in shown
    assert trips > 10**7 or run(path, timing_only=True).cycles > trips


HEAD = """// castsim: target gaudi
// castsim: reg S1 = 5
"""
LOOP = (
    HEAD
    + "nop; loop 0, {bound}, 1, <, End; nop; nop\nnop; nop; nop; nop\nnop; add.i32 S2, S2, S1; nop; nop\nnop; nop; nop; nop\nEnd:\nnop; halt; halt; nop\n"
)


def assembly(folder: Path, text: str) -> Path:
    path = folder / "k.tpc"
    path.write_text(text)
    return path


def test_trips_that_are_skipped_do_not_count(tmp_path: Path):
    path = assembly(tmp_path, LOOP.format(bound=10**6))
    assert run(path, timing_only=True).cycles > 2 * 10**6
    with pytest.raises(LimitError):
        run(path, timing_only=True, skip=False)


def test_bundles_of_assembly_are_counted_exactly(tmp_path: Path):
    path = assembly(tmp_path, LOOP.format(bound=10))
    bundles = 2 + 10 * 2 + 1
    whole = run(path)
    assert run(path, max_walk=bundles).cycles == whole.cycles
    with pytest.raises(LimitError, match="executed one by one"):
        run(path, max_walk=bundles - 1)


def test_a_jump_without_end_is_given_up(tmp_path: Path):
    text = (
        HEAD
        + "Top:\nnop; add.i32 S2, S2, S1; nop; nop\nnop; jmpr Top; nop; nop\n"
        + "nop; nop; nop; nop\n" * 4
        + "nop; halt; halt; nop\n"
    )
    with pytest.raises(LimitError, match="executed one by one"):
        run(assembly(tmp_path, text), max_walk=5000)


def test_an_argument_too_large_to_be_computed_is_refused_at_its_view(tmp_path: Path) -> None:
    view = "%vsrc = pto.make_tensor_view %src, shape = [%rows, %cols]"
    text = BASE.replace(view, f"%big = arith.constant 1000000000 : index\n{view.replace('%rows', '%big')}")
    path = tmp_path / "big.pto"
    path.write_text(text.replace("!pto.tensor_view<4x64xf32>", "!pto.tensor_view<1000000000x64xf32>"))
    with pytest.raises(
        LimitError, match="argument 'src' has 64000000000 elements, over the limit of 134217728"
    ) as found:
        run(path, inputs={"src": "random:0"})
    assert found.value.span is not None
    assert "make_tensor_view" in found.value.span.text
    assert found.value.legal[0] == "--max-elements 64000000000"
    assert run(path, timing_only=True).cycles == run(SAMPLES / "f32_to_f16.pto", timing_only=True).cycles

"""Cycles of programs of vector instructions: the launch, the pipes around it, what has no cycles."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.micro_cases import texts
from kit.paths import VECTORS

from castsim import run
from castsim.isa.errors import EngineError, Span, WarningKind, of_kind
from castsim.running.program_runs import Result

FRAME = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {pto.kernel} {
    %o = arith.constant 0 : i64
    %p = arith.constant 65536 : i64
    %one = arith.constant 1 : i64
    %length = arith.constant 4096 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 10 : index
    %step = arith.constant 64 : index
    %in = pto.castptr %o : i64 -> !pto.ptr<f32, ub>
    %out = pto.castptr %p : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %in, %o, %length nburst(%one, %length, %length)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.vecscope {
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
BODY
    }
    pto.mte_ub_gm %out, %y, %length nburst(%one, %length, %length)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
MORE
    return
  }
}
"""
V = "!pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>"
TRIP = f"""%at = arith.muli %i, %step : index
        %v = pto.vlds %in[%at] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        %w = pto.vabs %v, %m : {V}
        pto.vsts %w, %out[%at], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>"""
LOOP = f"""      scf.for %i = %c0 to %n step %c1 {{
        {TRIP}
      }}"""
KEPT = "// castsim: option short_loops=kept\n"


def timed(tmp_path: Path, body: str, more: str = "", engine: str = "fast") -> Result:
    file = tmp_path / "k.pto"
    head, body = (KEPT, body.removeprefix(KEPT)) if body.startswith(KEPT) else ("", body)
    file.write_text(head + FRAME.replace("BODY", body).replace("MORE", more))
    return run(file, timing_only=True, engine=engine)


def launch(result: Result) -> int:
    (operation,) = (each for each in result.timing.operations if each.pipe == "V")
    return operation.end - operation.start


def test_a_loop_of_a_program(tmp_path: Path) -> None:
    # start 22, loop 2, load to use 6, vabs 5 - 3, store 9, drain 12, and nine more trips
    assert launch(timed(tmp_path, LOOP)) == 22 + 2 + 6 + 2 + 9 + 12 + 9


@pytest.mark.parametrize(("trips", "turns"), [("2", False), ("8", False), ("9", True)])
def test_short_loops_inside_of_others_are_written_out(trips: str, turns: bool, tmp_path: Path) -> None:
    """Two to eight trips by constants of the text (`timing.micro.unrolling`), unless an option keeps them."""
    inner = LOOP.replace("%n", "%few").replace("%i ", "%j ").replace("muli %i", "muli %j")
    body = f"      %few = arith.constant {trips} : index\n      scf.for %i = %c0 to %n step %c1 {{\n{inner}\n}}"
    assert (launch(timed(tmp_path, body)) == launch(timed(tmp_path, KEPT + body))) == turns


@pytest.mark.parametrize("inside", [False, True])
def test_stores_of_constants_take_about_what_is_published(inside: bool, tmp_path: Path) -> None:
    """128 of them take 142 cycles (fa_clear of TileLang's flash attention), wherever the constant is made."""
    made = "%z = pto.vdup %zero, %m : f32, !pto.mask<b32> -> !pto.vreg<64xf32>"
    store = "pto.vsts %z, %out[%at], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>"
    trip = f"%at = arith.muli %i, %step : index\n{made if inside else ''}\n{store}\n"
    body = f"%zero = arith.constant 0.0 : f32\n%many = arith.constant 128 : index\n{'' if inside else made}\n"
    found = launch(timed(tmp_path, f"{body}scf.for %i = %c0 to %many step %c1 {{\n{trip}}}"))
    assert abs(found / 142 - 1) <= 0.15


@pytest.mark.parametrize("rows", [2, 10])
def test_a_trip_that_only_the_run_knows_turns(rows: int, tmp_path: Path) -> None:
    """Rows of a vector 6 cycles apart, in the vendor's simulator, where the text does not state that it is one."""
    inner = LOOP.replace("%n", "%c1").replace("%i ", "%j ")
    body = f"      %rows = arith.constant {rows} : index\n      scf.for %i = %c0 to %rows step %c1 {{\n{inner}\n}}"
    late = f"%more = arith.addi %c0, %c1 : index\n{body}".replace("to %c1", "to %more")
    assert launch(timed(tmp_path, late)) - launch(timed(tmp_path, body)) == 5 * (rows - 1)


def test_without_flags_a_launch_waits_for_the_transfer(tmp_path: Path) -> None:
    result = timed(tmp_path, LOOP)
    ends = {each.pipe: (each.start, each.end) for each in result.timing.operations}
    assert ends["MTE2"][1] <= ends["V"][0] < ends["V"][1] <= ends["MTE3"][0]


def test_a_select_in_a_loop_branches(tmp_path: Path) -> None:
    select = """%even = arith.cmpi eq, %i, %c0 : index
        %which = arith.select %even, %c0, %c1 : index
        """
    straight, branching = (launch(timed(tmp_path, LOOP.replace(TRIP, text + TRIP))) for text in ("", select))
    assert branching > straight + 39 * 20


def test_an_empty_loop_costs_nothing(tmp_path: Path) -> None:
    empty = LOOP.replace("to %n", "to %c0").replace("%i =", "%j =").replace(TRIP, "")
    assert launch(timed(tmp_path, empty + "\n" + LOOP)) == launch(timed(tmp_path, LOOP))


def test_what_no_text_states_has_no_cycles(tmp_path: Path) -> None:
    within = (
        "pto.mte_ub_ub %in, %out, %one nburst(%one, %o, %o) : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, i64, i64, i64, i64"
    )
    result = timed(tmp_path, LOOP, within)
    assert "the cycles of pto.mte_ub_ub are unknown" in result.untimed
    with pytest.raises(EngineError, match="mte_ub_ub"):
        assert result.cycles


def test_an_instruction_of_unknown_latency_has_no_cycles(tmp_path: Path) -> None:
    offsets = "%far = pto.vlds %whole[%c0] : !pto.ptr<i32, ub> -> !pto.vreg<64xi32>"
    gather = "pto.vgather2_bc %in, %far, %m : !pto.ptr<f32, ub>, !pto.vreg<64xi32>, !pto.mask<b32> -> !pto.vreg<64xf32>"
    body = f"%whole = pto.castptr %in : !pto.ptr<f32, ub> -> !pto.ptr<i32, ub>\n{offsets}\n%g = {gather}"
    assert "vgather2_bc" in timed(tmp_path, body).untimed
    assert not timed(tmp_path, body.replace("vgather2_bc", "vgather2")).untimed


@pytest.mark.parametrize(
    ("name", "published", "within"), [("sub_exp_vcvt_u2", 681, 0.05), ("expdif_mulcvt_u1", 713, 0.10)]
)
def test_softmax_pieces_take_about_what_is_published(name: str, published: int, within: float) -> None:
    """Of the vendor's cycle simulator (VfSimulator cce_code/softmax); the second carries one sum from row to row."""
    file = VECTORS / "softmax" / f"{name}.pto"
    fast, event = (run(file, timing_only=True, engine=engine) for engine in ("fast", "event"))
    assert abs(launch(fast) / published - 1) <= within
    assert (fast.cycles, fast.pipes) == (event.cycles, event.pipes)


@pytest.mark.parametrize("name", sorted(texts())[::29])
def test_both_engines_agree_on_programs(name: str, tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(texts()[name])
    fast, event = (run(file, timing_only=True, engine=engine) for engine in ("fast", "event"))
    assert not fast.untimed
    assert (fast.cycles, fast.pipes, fast.timing.facts) == (event.cycles, event.pipes, event.timing.facts)
    assert list(fast.timing.operations) == list(event.timing.operations)


AGAIN = f"""%again = pto.vlds %out[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        %more = pto.vabs %again, %m : {V}
        pto.vsts %more, %in[%c0], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>"""


@pytest.mark.parametrize(
    ("between", "warned"),
    [("", True), ('pto.mem_bar "VST_VLD"', False), ('pto.mem_bar "VST_VST"', True), ('pto.mem_bar "VV_ALL"', False)],
)
def test_a_load_behind_a_store_of_the_same_bytes_needs_a_barrier(tmp_path: Path, between: str, warned: bool) -> None:
    result = timed(tmp_path, f"{LOOP}\n{between}\n{AGAIN}")
    found = of_kind(result.loaded.executed.warnings, WarningKind.OVERTAKING)
    assert bool(found) == warned
    if warned:
        (warning,) = found
        lines = (tmp_path / "k.pto").read_text().splitlines()
        assert isinstance(warning.place, Span)
        assert lines[warning.place.line - 1].strip().startswith("%again")
        store = next(number for number, line in enumerate(lines, 1) if "pto.vsts %w" in line)
        assert f"the store in line {store}, which writes byte 65536" in warning.text


def test_a_load_of_other_bytes_needs_no_barrier(tmp_path: Path) -> None:
    result = timed(tmp_path, f"{LOOP}\n{AGAIN.replace('%out[%c0]', '%in[%c0]')}")
    assert of_kind(result.loaded.executed.warnings, WarningKind.OVERTAKING) == ()

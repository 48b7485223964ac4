"""scf.while and the index dialect (docs/reference/pto.md sections 7.6 and 7.10), and what is walked of a program at most."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.execution_programs import kernel, kernel_file
from kit.paths import PROGRAMS
from kit.work_programs import synchronised, target, walked

from castsim import run
from castsim.__main__ import main
from castsim.engines import simulate
from castsim.execution.run_limits import MAX_COMPUTED, MAX_WALK
from castsim.isa.errors import CastsimError, LimitError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.machines.mechanisms import lowerer_of, tile_target
from castsim.reports.lifted_limits import what_if
from castsim.running.program_loading import load
from castsim.running.synchronisation.flags import insert
from castsim.running.synchronisation.race_detector import find_races

TARGETS = ("a2a3", "a5")
TILE = "!pto.tile_buf<vec, 1x64xf32>"
VIEW, PART = "!pto.tensor_view<?x?xf32>", "!pto.partition_tensor_view<1x64xf32>"


INT_TO_Z = "%z: !pto.ptr<i32>"


COUNTED = kernel(
    f"""%vx = pto.make_tensor_view %x, shape = [%c8, %c64], strides = [%c64, %c1] : {VIEW}
%vy = pto.make_tensor_view %y, shape = [%c8, %c64], strides = [%c64, %c1] : {VIEW}
%two = arith.constant 2.0 : f32
%a = pto.alloc_tile : {TILE}
%end = scf.while (%i = %c0) : (index) -> (index) {{
  %more = index.cmp slt(%i, %n)
  scf.condition(%more) %i : index
}} do {{
^bb0(%j: index):
  %px = pto.partition_view %vx, offsets = [%j, %c0], sizes = [%c1, %c64] : {VIEW} -> {PART}
  %py = pto.partition_view %vy, offsets = [%j, %c0], sizes = [%c1, %c64] : {VIEW} -> {PART}
  pto.tload ins(%px : {PART}) outs(%a : {TILE})
  pto.tmuls ins(%a, %two : {TILE}, f32) outs(%a : {TILE})
  pto.tstore ins(%a : {TILE}) outs(%py : {PART})
  %k = index.add %j, %s
  scf.yield %k : index
}}
%code = arith.index_cast %end : index to i32
pto.store_scalar %code, %z[%c0] : !pto.ptr<i32>, i32""",
    "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<i32>, %n: index, %s: index",
)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("end", "step"), [(0, 1), (1, 1), (8, 1), (7, 3), (8, 5)])
def test_a_loop_that_counts(name: str, end: int, step: int, tmp_path: Path) -> None:
    """Its trips, its result and its cycles by both engines; the flags that the tool inserts leave no race."""
    path = tmp_path / "k.pto"
    path.write_text(COUNTED)
    x = np.random.default_rng(1).standard_normal((8, 64)).astype("<f4")
    arguments = {"n": end, "s": step}
    made = run(path, name, inputs={"x": x}, args=arguments)
    wanted = np.zeros((8, 64), "<f4")
    reached = 0
    while reached < end:
        wanted[reached] = 2 * x[reached]
        reached += step
    if end:
        assert np.array_equal(made.outputs["y"].view("<f4").reshape(8, 64), wanted)
    assert made.outputs["z"].view("<i4")[0] == reached
    assert made.cycles == run(path, name, inputs={"x": x}, args=arguments, engine="event").cycles
    assert not made.races


def test_flags_of_a_loop_are_those_of_a_counted_one() -> None:
    """Both regions stand between the beginning and the end of a loop: three pairs are carried over."""
    counted = f"""scf.for %j = %c0 to %n step %s {{
{COUNTED[COUNTED.index("  %px") : COUNTED.index("  %k")]}}}
%end = arith.addi %n, %c0 : index"""
    start, end = COUNTED.index("%end = scf.while"), COUNTED.index("%code")
    other = COUNTED[:start] + counted + "\n" + COUNTED[end:]

    def texts(text: str) -> list[str]:
        parsed, chip = parse(text, "k.pto"), target("a2a3")
        plan = insert(parsed.functions[0], lowerer_of(chip), tile_target(chip))
        return [repr(each.node) for each in plan.inserts]

    assert texts(COUNTED) == texts(other)
    assert len(texts(other)) > 8


def test_it_is_printed_as_it_is_read() -> None:
    empty = kernel(
        "scf.while : () -> () {\n%t = index.bool.constant false\nscf.condition(%t)\n} do {\nscf.yield\n}", ""
    )
    for text in (COUNTED, empty):
        parsed = parse(text, "k.pto")
        assert parse(print_program(parsed), "k.pto") == parsed
    assert walked(empty, target("a5")).tree


def test_a_loop_that_tests_at_its_end_hands_on_other_types() -> None:
    """Newton's root of a number of the argument, until it no longer falls."""
    body = """%d = arith.index_cast %n : index to i64
%one = arith.constant 1 : i64
%two = arith.constant 2 : i64
%root, %fits = scf.while (%r = %d, %q = %one) : (i64, i64) -> (i64, i1) {
  %sum = arith.addi %r, %q : i64
  %half = arith.divsi %sum, %two : i64
  %falls = arith.cmpi slt, %half, %r : i64
  %same = arith.cmpi eq, %half, %r : i64
  scf.condition(%falls) %half, %same : i64, i1
} do {
^bb0(%h: i64, %e: i1):
  %p = arith.divsi %d, %h : i64
  scf.yield %h, %p : i64, i64
}
%shown = arith.trunci %root : i64 to i32
pto.store_scalar %shown, %z[%c0] : !pto.ptr<i32>, i32"""
    text = kernel(body, "%z: !pto.ptr<i32>, %n: index")
    for number in (2, 9, 10, 12345678):
        (found,) = stored(text, arguments={"n": number})
        r, q = number, 1
        while True:
            half = (r + q) // 2
            if not half < r:
                break
            r, q = half, number // half
        assert found == half


def stored(text: str, name: str = "a5", arguments: dict[str, int | float] | None = None) -> list[int]:
    with tempfile.TemporaryDirectory() as folder:
        path = kernel_file(Path(folder), text)
        return [int(value) for value in run(path, name, args=arguments or {}).outputs["z"].view("<i4")]


def test_a_loop_that_does_not_end_is_stopped() -> None:
    text = kernel("scf.while : () -> () {\n%t = arith.constant true\nscf.condition(%t)\n} do {\nscf.yield\n}", "")
    with pytest.raises(LimitError, match="trips and statements of this loop") as caught:
        walked(text, target("a5"))
    assert caught.value.span is not None


HANDS_ON = "%r = scf.while : () -> (index) {\nscf.condition(%c) %n : index\n} do {\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scf.while %c { }", "expected ':'"),
        ("scf.condition(%c)", "scf.condition is not allowed in this region"),
        ("scf.while : () -> () {\n} do {\n}", "must end with scf.condition"),
        ("scf.while : () -> () {\nscf.condition(%n)\n} do {\n}", "used as i1"),
        ("scf.while (%i = %n) : (i32) -> (i32) {\nscf.condition(%c) %i : i32\n} do {\n}", "%n is defined as index"),
        (
            "scf.while (%i = %n) : (index) -> () {\nscf.condition(%c) %i : index\n} do {\n}",
            "whose types differ from its scf.condition",
        ),
        (f"{HANDS_ON}scf.yield\n}}", "the 1 values that scf.condition passes on"),
        (f"{HANDS_ON}^bb0(%j: i32):\nscf.yield\n}}", "differ from those"),
        (
            f"{HANDS_ON}^bb0(%j: index):\nscf.yield %j : index\n}}",
            "0 values whose types differ from its scf.yield",
        ),
        (
            "scf.while (%i = %n, %j = %n) : (index) -> () {\nscf.condition(%c)\n} do {\n}",
            "2 carried values, but 1 types",
        ),
        ("scf.while : () -> () {\nscf.condition(%c)\n}", "expected 'do'"),
        ("%v = index.add %n, %c", "used as index"),
        ("%v = index.cmp olt(%n, %n)", "unknown predicate 'olt'"),
        ("%v = index.casts %n : index to index", "between index and another integer"),
        ("%v = index.constant 1.5", "must be an integer"),
        ("%v = index.plus %n, %n", "unknown operation 'index.plus'"),
        ("%v = math.isnan %n : index", "needs floats"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(CastsimError) as caught:
        parse(f"func.func @k(%n: index, %c: i1) attributes {{pto.entry}} {{\n{text}\nreturn\n}}\n", "k.pto")
    assert message in str(caught.value), caught.value
    assert caught.value.span is not None


def signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int) -> int:
    return value & (2**64 - 1)


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MEANING = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "divs": toward_zero,
    "divu": lambda a, b: unsigned(a) // unsigned(b), "ceildivs": lambda a, b: -(-a // b),
    "ceildivu": lambda a, b: -(-unsigned(a) // unsigned(b)), "floordivs": lambda a, b: a // b,
    "rems": lambda a, b: a - b * toward_zero(a, b), "remu": lambda a, b: unsigned(a) % unsigned(b), "maxs": max,
    "maxu": lambda a, b: max(unsigned(a), unsigned(b)), "mins": min,
    "minu": lambda a, b: min(unsigned(a), unsigned(b)), "shl": lambda a, b: a << (b & 31),
    "shrs": lambda a, b: a >> (b & 31), "shru": lambda a, b: unsigned(a) >> (b & 31), "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
COMPARED = {"eq": 0, "ne": 0, "slt": 0, "sle": 0, "sgt": 0, "sge": 0, "ult": 1, "ule": 1, "ugt": 1, "uge": 1}


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9))
def test_every_operation_on_indices(a: int, b: int) -> None:
    """Against Python's integers: the low 32 bits of each result, stored one behind the other."""
    b = b or 1
    lines = ["%m = index.constant 31", f"%a = index.constant {a}", f"%b = index.constant {b}", "%s = index.and %b, %m"]
    wanted = []
    for number, (name, meaning) in enumerate(MEANING.items()):
        right = "%s" if name.startswith("sh") else "%b"
        lines += [f"%r{number} = index.{name} %a, {right}", f"%t{number} = index.casts %r{number} : index to i32"]
        wanted.append(signed(meaning(a, b), 32))
    for number, (name, is_unsigned) in enumerate(COMPARED.items(), len(MEANING)):
        x, y = (unsigned(a), unsigned(b)) if is_unsigned else (a, b)
        truths = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
        lines += [f"%q{number} = index.cmp {name}(%a, %b)", f"%t{number} = arith.extui %q{number} : i1 to i32"]
        wanted.append(int(truths[name[-2:]]))
    lines += [SHOWN.format(number, f"%t{number}") for number in range(len(wanted))]
    assert stored(kernel("\n".join(lines), INT_TO_Z), "a2a3") == wanted


SHOWN = "%o{0} = index.constant {0}\npto.store_scalar {1}, %z[%o{0}] : !pto.ptr<i32>, i32"
CLASSES = ("isnan", "isinf", "isfinite", "isnormal")


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.0, 65504.0, 6e-5, 6.2e-5, 1e-40, 1.2e-38, math.inf, -math.inf, math.nan]
)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_classes_of_floats(value: float, kind: str) -> None:
    held = np.array([value], {"f16": "<f2", "f32": "<f4", "f64": "<f8"}[kind])[0]
    lines = [
        f"%t{n} = math.{name} %v : {kind}\n%s{n} = arith.extui %t{n} : i1 to i32" for n, name in enumerate(CLASSES)
    ]
    lines += [SHOWN.format(n, f"%s{n}") for n in range(len(CLASSES))]
    found = stored(kernel("\n".join(lines), f"{INT_TO_Z}, %v: {kind}"), arguments={"v": float(held)})
    normal = np.isfinite(held) and abs(held) >= np.finfo(held.dtype).tiny
    assert found == [int(np.isnan(held)), int(np.isinf(held)), int(np.isfinite(held)), int(normal)]


@pytest.mark.parametrize("name", TARGETS)
def test_engines_and_races(name: str) -> None:
    """A loop without arguments of the kernel: folded trips and their flags."""
    text = COUNTED.replace(", %n: index, %s: index", "")
    text = text.replace("%vx =", "%n = index.constant 8\n%s = index.constant 1\n%vx =", 1)
    made, chip = synchronised(text, target(name)), target(name)
    fast, event = (simulate(made.tree, chip, None, engine=one, max_cycles=10**7) for one in ("fast", "event"))
    assert fast.total == event.total
    assert not find_races(made.tree, chip)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3), st.integers(-40, 40))
def test_powers(base: int, exponent: int) -> None:
    base = base or 1
    head = f"%a = arith.constant {base} : i32\n%b = arith.constant {exponent} : i32\n%r = math.ipowi %a, %b : i32\n"
    exact = Fraction(base) ** exponent
    found = stored(kernel(f"{head}pto.store_scalar %r, %z[%c0] : !pto.ptr<i32>, i32", INT_TO_Z))
    assert found == [signed(math.trunc(exact), 32)]


def test_a_power_of_zero_and_what_has_two_results() -> None:
    text = "%a = arith.constant 0 : i32\n%b = arith.constant -1 : i32\n%r = math.ipowi %a, %b : i32"
    with pytest.raises(CastsimError, match="division by zero") as caught:
        walked(kernel(text, ""), target("a5"))
    assert caught.value.span is not None
    with pytest.raises(CastsimError, match="known, not modelled: it has two results"):
        parse(kernel("%a = arith.constant 0 : i32\n%l, %h = arith.mulsi_extended %a, %a : i32", ""), "k.pto")


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


@pytest.mark.parametrize("option", ["--max-walk", "--max-statements"])
@pytest.mark.parametrize("value", ["0", "-3", "x", "1.5", "9" * 5000])
def test_an_option_that_is_no_positive_integer_is_refused(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["run", str(written(tmp_path, BASE)), option, value, "--timing-only"]) == 2
    assert len(capsys.readouterr().err) < 400


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


def test_loops_around_nothing_are_in_nobody_s_way(tmp_path: Path):
    """10^6 empty trips: values come at once, and cycles as those of one loop of as many trips at most."""
    source = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
    plain = run(written(tmp_path, BASE), inputs={"src": source})
    found = run(written(tmp_path, nested(6)), inputs={"src": source})
    np.testing.assert_array_equal(found.outputs["dst"], plain.outputs["dst"])
    turnarounds = sum(10**level for level in range(1, 7))
    assert found.cycles >= turnarounds > plain.cycles


@pytest.mark.parametrize("body", ["", CAST])
def test_a_loop_walked_once_takes_as_long_as_one_walked_trip_by_trip(body: str, tmp_path: Path):
    """Naming the variables changes nothing but that no trip is known to be like another before it is walked."""
    once = load(written(tmp_path, nested(3, body, trips=5)), None, None, {})
    named = nested(3, body, trips=5).replace("step %c1 {", "step %c1 {\n%u = arith.muli %c0, %VAR : index")
    for level in range(3):
        named = named.replace("%u = arith.muli %c0, %VAR", f"%u{level} = arith.muli %c0, %i{level}", 1)
    apart = load(written(tmp_path, named), None, None, {})
    scalar = once.target.timing.scalar
    extra = sum(5**level for level in (1, 2, 3)) * scalar.arithmetic_cycles
    causes = [
        simulate(each.tree, each.target, None, engine="event", max_cycles=10**7).pipes["S"] for each in (once, apart)
    ]
    assert causes[1].busy - causes[0].busy == extra


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


def test_values_may_be_computed_of_as_many_as_the_limit_says(tmp_path: Path):
    path = written(tmp_path, nested(1, CAST, trips=30))
    # Beside the 30 casts in the loop: load, cast, store.
    with pytest.raises(LimitError):
        run(path, inputs={"src": "zeros"}, max_walk=32)
    run(path, inputs={"src": "zeros"}, max_walk=33, races="ignore")


def test_races_of_loops_deep_in_each_other_are_refused_in_time(tmp_path: Path):
    with pytest.raises(LimitError, match="compared for races"):
        run(written(tmp_path, nested(20, CAST)), timing_only=True)


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


@pytest.mark.parametrize("bound", [10**6, 2**31 - 1])
def test_a_long_loop_of_assembly_is_refused_before_it_is_walked(
    bound: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = assembly(tmp_path, LOOP.format(bound=bound))
    assert main(["run", str(path)]) == 1
    shown = capsys.readouterr().err
    assert f"{path}:3:6: {2 * bound} bundles of this loop" in shown
    assert "--max-walk" in shown


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


def test_bundles_of_a_text_are_limited(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = assembly(tmp_path, LOOP.format(bound=10))
    for command in (["run"], ["lint"], ["unswizzle"]):
        assert main([*command, str(path), "--max-statements", "3"]) == 1
        assert "more than 3 bundles" in capsys.readouterr().err


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


def test_the_limit_on_elements_is_raised_and_lowered(capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(SAMPLES / "f32_to_f16.pto")
    assert main(["run", sample, "--in", "src=zeros", "--max-elements", "256", "--quiet"]) == 0
    assert main(["run", sample, "--in", "src=zeros", "--max-elements", "255"]) == 1
    assert "help: --max-elements 256, --timing-only" in capsys.readouterr().err
    assert main(["run", sample, "--in", "src=zeros", "--max-elements", "0"]) == 2

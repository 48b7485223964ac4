"""Loops: summarised, folded and walked trip by trip they issue the same."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import pytest
from execution_programs import issued, loops, moved, walk
from walker_cases import X32, Y16, both, loop, program, step

from castsim.execution.tree import Loop
from castsim.isa.errors import CastsimError, ReadError, TileError

# ------------------------------------------------------------------------------------------------------------- loops


def test_affine_loop_is_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    found = both(program(loop(step())), monkeypatch)
    (only,) = loops(found.tree.root)
    assert only.trips == 16
    assert moved(found, "tload") == [(row * 64 * 4, 0) for row in range(0, 256, 16)]
    assert moved(found, "tstore") == [(row * 64 * 2, 4096) for row in range(0, 256, 16)]


@pytest.mark.parametrize(
    ("lower", "upper", "by", "first_rows"),
    [
        ("%c0", "%c64", "%c16", [0, 16, 32, 48]),
        ("%c3", "%c64", "%c32", [3, 35]),
        ("%c0", "%c1", "%c16", [0]),  # one trip
        ("%c2", "%c3", "%c128", [2]),
        ("%c0", "%c0", "%c16", []),
        ("%c64", "%c16", "%c16", []),  # backwards: no trip
        ("%c0", "%c64", "%c4", list(range(0, 64, 4))),  # overlapping parts
    ],
)
def test_bounds(lower: str, upper: str, by: str, first_rows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    found = both(program(loop(step(), lower, upper, by)), monkeypatch)
    assert moved(found, "tload") == [(row * 256, 0) for row in first_rows]


def test_step_that_never_ends_is_refused() -> None:
    for value in (0, -4):
        with pytest.raises(CastsimError, match=f"step.*{value}") as caught:  # known to the reader
            walk(program(f"%s = arith.constant {value} : index\n{loop(step(), by='%s')}"))
        assert caught.value.span is not None
        with pytest.raises(ReadError, match=f"step {value}") as caught:  # known to the walk only
            walk(program(loop(step(), by="%s"), extra=", %s: index"), {"s": value})
        assert caught.value.span is not None


def test_index_arithmetic_that_stays_affine(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "%t = arith.muli %i, %c32 : index\n%u = arith.addi %t, %c3 : index\n%v = arith.subi %u, %c2 : index\n"
    found = both(program(loop(body + step("%v"), upper="%c8", by="%c2")), monkeypatch)
    assert isinstance(found.tree.root.items[-1], Loop)
    assert moved(found, "tload") == [((i * 32 + 1) * 256, 0) for i in (0, 2, 4, 6)]


@pytest.mark.parametrize(
    ("body", "row"),
    [
        ("%r = arith.muli %i, %i : index", lambda i: i * i),
        ("%r = arith.minsi %i, %c3 : index", lambda i: min(i, 3)),
        ("%r = arith.maxsi %i, %c3 : index", lambda i: max(i, 3)),
        ("%r = arith.remsi %i, %c3 : index", lambda i: i % 3),
        ("%r = arith.divui %i, %c2 : index", lambda i: i // 2),
        ("%r = arith.xori %i, %c1 : index", lambda i: i ^ 1),
        ("%r = arith.shli %i, %c1 : index", lambda i: i << 1),
        ("%q = arith.cmpi slt, %i, %c4 : index\n%r = arith.select %q, %i, %c1 : index", lambda i: i if i < 4 else 1),
    ],
)
def test_index_arithmetic_that_does_not(body: str, row: object, monkeypatch: pytest.MonkeyPatch) -> None:
    found = both(program(loop(body + "\n" + step("%r"), upper="%c8", by="%c1")), monkeypatch)
    assert moved(found, "tload") == [(row(i) * 256, 0) for i in range(8)]


def test_nested_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = "scf.for %j = %c0 to %c4 step %c1 {%t = arith.muli %j, %c16 : index\n%r = arith.addi %i, %t : index\n"
    found = both(program(loop(inner + step("%r") + "}", upper="%c256", by="%c64")), monkeypatch)
    (outer,) = loops(found.tree.root)
    assert outer.trips == 4
    assert any(isinstance(item, Loop) for item in outer.body.items)
    assert moved(found, "tload") == [((i + 16 * j) * 256, 0) for i in range(0, 256, 64) for j in range(4)]


def test_triangular_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    # The inner bound is the outer variable: the outer loop cannot be summarised, the inner ones can.
    inner = "scf.for %j = %c0 to %i step %c1 {" + step("%j") + "}"
    found = both(program(loop(inner, upper="%c4", by="%c1")), monkeypatch)
    assert moved(found, "tload") == [(j * 256, 0) for i in range(4) for j in range(i)]


def test_branches_on_the_loop_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "%q = arith.cmpi sge, %i, %c4 : index\nscf.if %q {" + step("%i") + "} else {" + step("%c64") + "}"
    found = both(program(loop(body, upper="%c8", by="%c1")), monkeypatch)
    assert moved(found, "tload") == [((i if i >= 4 else 64) * 256, 0) for i in range(8)]


def test_branch_taken_in_the_last_but_one_trip_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # First, second and last trip look alike: only walking all of them finds trip 6.
    body = "%q = arith.cmpi eq, %i, %k : index\nscf.if %q {" + step("%c64") + "}" + step("%i")
    text = program("%k = arith.constant 6 : index\n" + loop(body, upper="%c8", by="%c1"))
    assert len(moved(both(text, monkeypatch), "tload")) == 9


def test_branches_that_do_not_depend(monkeypatch: pytest.MonkeyPatch) -> None:
    for predicate, rows in (("eq", [0, 16]), ("ne", [64, 64])):
        body = f"scf.if %q {{{step('%i')}}} else {{{step('%c64')}}}"
        text = program(f"%q = arith.cmpi {predicate}, %c1, %c1 : index\n" + loop(body, upper="%c32"))
        assert moved(both(text, monkeypatch), "tload") == [(row * 256, 0) for row in rows]


def test_wrapping_narrow_arithmetic_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two truncations that cancel in the first, second and last trip, but not between."""
    # t = i mod 256 and u = (i + 64) mod 256, both read as signed 8 bits; 64 + t - u is 0 except for i in 64 .. 127,
    # where u has wrapped and t has not: 256. Likewise with products in 8 bits.
    narrow = """
%w = arith.addi %i, %c64 : index
%t8 = arith.index_cast %i : index to i8
%u8 = arith.index_cast %w : index to i8
%t = arith.index_cast %t8 : i8 to index
%u = arith.index_cast %u8 : i8 to index
%d = arith.subi %t, %u : index
%r = arith.addi %d, %c64 : index
"""
    text = program("%n = arith.constant 301 : index\n" + loop(narrow + step("%r"), upper="%n", by="%c1"))

    def signed(value: int) -> int:
        return (value + 128) % 256 - 128

    found = both(text, monkeypatch)
    wanted = [64 + signed(i) - signed(i + 64) for i in range(301)]
    assert set(wanted) == {0, 256}
    assert wanted[0] == wanted[1] == wanted[300]
    assert moved(found, "tload") == [(row * 256, 0) for row in wanted]


def test_zero_extension_of_a_negative_loop_value(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = """
%s = arith.subi %i, %c2 : index
%t8 = arith.index_cast %s : index to i8
%r = arith.index_castui %t8 : i8 to index
"""
    found = both(program(loop(narrow + step("%r"), upper="%c8", by="%c1")), monkeypatch)
    assert moved(found, "tload") == [((i - 2) % 256 * 256, 0) for i in range(8)]


def test_part_outside_the_view_in_the_last_trip_is_found() -> None:
    with pytest.raises(TileError, match=r"leave the view of 100 x 64") as caught:
        walk(program(loop(step()), rows=100))
    assert caught.value.span is not None
    assert caught.value.span.text.lstrip().startswith("%px")


def test_loop_carried_tiles_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ping-pong buffers: the tiles change places in every trip."""
    body = f"""
%a2 = pto.alloc_tile : {X32}
%l:2 = scf.for %i = %c0 to %c64 step %c16 iter_args(%p = %a, %q = %a2) -> ({X32}, {X32}) {{
%px = pto.partition_view %vx, offsets = [%i, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> !pto.partition_tensor_view<16x64xf32>
pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%p : {X32})
pto.tcvt ins(%p : {X32}) outs(%b : {Y16})
scf.yield %q, %p : {X32}, {X32}
}}
"""
    found = both(program(body), monkeypatch)
    assert moved(found, "tload") == [(row * 256, at) for row, at in ((0, 0), (16, 6144), (32, 0), (48, 6144))]


def test_loop_carried_scalar(monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
%l = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %c1) -> (index) {
%t = arith.muli %s, %c2 : index
""" + step("%s") + "scf.yield %t : index\n}\n" + step("%l")  # fmt: skip
    assert moved(both(program(body), monkeypatch), "tload") == [(s * 256, 0) for s in (1, 2, 4, 8, 16)]


def test_loop_without_trips_yields_its_initial_values(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "%l = scf.for %i = %c4 to %c4 step %c1 iter_args(%s = %c3) -> (index) {\nscf.yield %i : index\n}\n"
    assert moved(both(program(body + step("%l")), monkeypatch), "tload") == [(3 * 256, 0)]


def test_branch_yields_views(monkeypatch: pytest.MonkeyPatch) -> None:
    part = "!pto.partition_tensor_view<16x64xf32>"
    pick = (
        "%{0} = pto.partition_view %vx, offsets = [{1}, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> "
        + part
    )
    body = f"""
%q = arith.cmpi slt, %i, %c32 : index
%p = scf.if %q -> ({part}) {{
{pick.format("p1", "%i")}
scf.yield %p1 : {part}
}} else {{
{pick.format("p2", "%c128")}
scf.yield %p2 : {part}
}}
pto.tload ins(%p : {part}) outs(%a : {X32})
"""
    found = both(program(loop(body, upper="%c64")), monkeypatch)
    assert moved(found, "tload") == [(row * 256, 0) for row in (0, 16, 128, 128)]


def test_huge_loop_is_summarised() -> None:
    text = program("%n = arith.constant 1000000000000 : index\n" + loop(step("%c0"), upper="%n", by="%c1"))
    (only,) = loops(walk(text).tree.root)
    assert only.trips == 10**12


def test_flags_and_barriers_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        "pto.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]"
        + step()
        + "pto.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]\n"
    )
    found = both(program(loop(body) + "\npto.barrier <PIPE_ALL>"), monkeypatch)
    assert not found.tree.interlocked
    names = [name for name, _ in issued(found)]
    assert names.count("set_flag V -> MTE2 id 0") == names.count("wait_flag V -> MTE2 id 0") == 16
    assert walk(program(loop(step()))).tree.interlocked

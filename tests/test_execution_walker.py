"""Walking programs: loops summarised or walked, branches, placement, valid extents, what arguments must hold."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import pytest
from execution_programs import issued, kernel, loops, moved, touched, walk

from isa import pto
from isa.errors import CastsimError, IllegalError, ReadError, TileError
from simulator.execution import walker
from simulator.tree import Block, Loop

X32 = "!pto.tile_buf<vec, 16x64xf32>"
Y16 = "!pto.tile_buf<vec, 16x64xf16>"
VIEWS = """\
%vx = pto.make_tensor_view %x, shape = [%rows, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>
%vy = pto.make_tensor_view %y, shape = [%rows, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf16>
"""
TILES = f"%a = pto.alloc_tile : {X32}\n%b = pto.alloc_tile : {Y16}\n"


def step(row: str = "%i", column: str = "%c0") -> str:
    """Load 16 rows from `row` on, cast, store."""
    part = "!pto.partition_tensor_view<16x64x"
    return f"""
%px = pto.partition_view %vx, offsets = [{row}, {column}], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> {part}f32>
%py = pto.partition_view %vy, offsets = [{row}, {column}], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf16> -> {part}f16>
pto.tload ins(%px : {part}f32>) outs(%a : {X32})
pto.tcvt ins(%a : {X32}) outs(%b : {Y16})
pto.tstore ins(%b : {Y16}) outs(%py : {part}f16>)
"""


def program(body: str, rows: int = 4096, extra: str = "") -> str:
    arguments = "%x: !pto.ptr<f32>, %y: !pto.ptr<f16>" + extra
    return kernel(f"%rows = arith.constant {rows} : index\n{VIEWS}{TILES}{body}", arguments)


def loop(body: str, lower: str = "%c0", upper: str = "%c256", by: str = "%c16") -> str:
    return f"scf.for %i = {lower} to {upper} step {by} {{{body}}}"


@pytest.fixture
def trip_by_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never summarise and never fold: the plainest reading of a loop."""
    monkeypatch.setattr(walker._Walker, "_summarise", lambda *_: None)
    monkeypatch.setattr(walker, "fold", lambda trips: [item for trip in trips for item in trip.items])


def both(text: str, monkeypatch: pytest.MonkeyPatch, args: dict[str, int] | None = None) -> walker.Executed:
    """Walk as shipped, folded only, and trip by trip; all must issue and touch the same; return the first."""
    first = walk(text, args)
    with monkeypatch.context() as patch:
        patch.setattr(walker._Walker, "_summarise", lambda *_: None)
        folded = walk(text, args)
        patch.setattr(walker, "fold", lambda trips: [item for trip in trips for item in trip.items])
        plain = walk(text, args)
    assert not any(isinstance(item, Loop) for item in plain.tree.root.items)
    wanted = issued(plain)
    for other in (folded, first):
        assert issued(other) == wanted
        assert touched(other) == touched(plain)
        assert other.arguments == plain.arguments
        assert other.warnings == plain.warnings
    return first


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


# ------------------------------------------------------------------------------- dynamic valid extents, ragged tiles


def ragged(total: int, block: int = 16) -> str:
    """Rows in blocks of 16, the last one shorter: minsi decides its valid rows."""
    kind32, kind16 = "!pto.tile_buf<vec, 16x64xf32, valid=?x64>", "!pto.tile_buf<vec, 16x64xf16, valid=?x64>"
    part = "!pto.partition_tensor_view<?x64x"
    return kernel(f"""\
%rows = arith.constant {total} : index
{VIEWS}
%n = arith.constant {block} : index
scf.for %i = %c0 to %rows step %n {{
%left = arith.subi %rows, %i : index
%m = arith.minsi %left, %n : index
%a = pto.alloc_tile valid_row = %m : {kind32}
%b = pto.alloc_tile valid_row = %m : {kind16}
%px = pto.partition_view %vx, offsets = [%i, %c0], sizes = [%m, %c64] : !pto.tensor_view<?x64xf32> -> {part}f32>
%py = pto.partition_view %vy, offsets = [%i, %c0], sizes = [%m, %c64] : !pto.tensor_view<?x64xf16> -> {part}f16>
pto.tload ins(%px : {part}f32>) outs(%a : {kind32})
pto.tcvt ins(%a : {kind32}) outs(%b : {kind16})
pto.tstore ins(%b : {kind16}) outs(%py : {part}f16>)
}}""")


@pytest.mark.parametrize(("total", "extents"), [(40, [16, 16, 8]), (33, [16, 16, 1]), (16, [16]), (3, [3]), (0, [])])
def test_ragged_last_tile(total: int, extents: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    found = both(ragged(total), monkeypatch)
    loads = [operation for name, operation in issued(found) if name.startswith("tload")]
    assert [operation.bursts for operation in loads] == extents
    assert [operation.ub_address for operation in loads] == [0] * len(extents)  # the same place in every trip


SET_VALID = """
%a = pto.alloc_tile valid_row = %c16 valid_col = %c64 : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
%b = pto.alloc_tile valid_row = %c16 valid_col = %c64 : !pto.tile_buf<vec, 16x64xf16, valid=?x?>
scf.for %i = %c1 to %c4 step %c1 {{
pto.set_validshape %a, {0} : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
pto.set_validshape %b, {0} : !pto.tile_buf<vec, 16x64xf16, valid=?x?>
pto.tcvt ins(%a : !pto.tile_buf<vec, 16x64xf32, valid=?x?>) outs(%b : !pto.tile_buf<vec, 16x64xf16, valid=?x?>)
}}
pto.tcvt ins(%a : !pto.tile_buf<vec, 16x64xf32, valid=?x?>) outs(%b : !pto.tile_buf<vec, 16x64xf16, valid=?x?>)
"""


def test_set_validshape(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whole rows of 64: one call per valid row; 1 + 2 + 3 in the loop, and 3 rows stay valid behind it.
    found = both(kernel(SET_VALID.format("%i, %c64")), monkeypatch)
    assert sum(name.startswith("tcvt") and op.pipe == "V" for name, op in issued(found)) == 1 + 2 + 3 + 3


@pytest.mark.parametrize("extent", [(32, 64), (16, 128), (-1, 64), (16, -1)])
def test_set_validshape_beyond_the_tile(extent: tuple[int, int]) -> None:
    text = kernel(SET_VALID.format("%m, %n"), "%m: index, %n: index")
    with pytest.raises(TileError, match=f"{extent[0]} x {extent[1]}|negative") as caught:
        walk(text, {"m": extent[0], "n": extent[1]})
    assert caught.value.span is not None


def test_set_validshape_may_not_contradict_a_static_extent() -> None:
    text = """
%a = pto.alloc_tile valid_row = %c16 : !pto.tile_buf<vec, 16x64xf32, valid=?x64>
pto.set_validshape %a, %c4, %c32 : !pto.tile_buf<vec, 16x64xf32, valid=?x64>
"""
    with pytest.raises(CastsimError, match="64"):
        walk(kernel(text))


@pytest.mark.parametrize("value", [-1, 17, 2**40])
def test_valid_extent_out_of_range(value: int) -> None:
    text = f"%m = arith.constant {value} : index\n%a = pto.alloc_tile valid_row = %m : !pto.tile_buf<vec, 16x64xf32, valid=?x64>"
    with pytest.raises(TileError, match=str(value)) as caught:
        walk(kernel(text))
    assert caught.value.span is not None


# --------------------------------------------------------------------------------------------------------- placement


def places(text: str) -> list[int]:
    """Destination addresses of the casts."""
    return [op.destination.address for name, op in issued(walk(text)) if name.startswith("tcvt") and op.pipe == "V"]


def test_level_2_places_tiles_one_behind_the_other() -> None:
    tiles = "".join(
        f"%t{n} = pto.alloc_tile : !pto.tile_buf<vec, 1x{cols}xf16>\n" for n, cols in enumerate((16, 48, 64))
    )
    casts = "".join(
        f"%s{n} = pto.alloc_tile : !pto.tile_buf<vec, 1x{cols}xf32>\n"
        f"pto.tcvt ins(%s{n} : !pto.tile_buf<vec, 1x{cols}xf32>) outs(%t{n} : !pto.tile_buf<vec, 1x{cols}xf16>)\n"
        for n, cols in enumerate((16, 48, 64))
    )
    assert places(kernel(tiles + casts)) == [0, 32, 128]


def test_level_2_capacity_is_192_kib() -> None:
    # pto_assembly.md section 4: f32 + f16 tiles of 128 x 256 fit exactly, 129 x 256 do not.
    for rows, fits in ((128, True), (129, False)):
        text = kernel(
            f"%a = pto.alloc_tile : !pto.tile_buf<vec, {rows}x256xf32>\n%b = pto.alloc_tile : !pto.tile_buf<vec, {rows}x256xf16>"
        )
        if fits:
            walk(text)
            continue
        with pytest.raises(TileError, match=f"{256 * 6} bytes missing") as caught:
            walk(text)
        assert caught.value.span is not None


def test_level_3_takes_addresses_as_they_are() -> None:
    text = """
%p = arith.constant 64 : i64
%q = arith.constant 4096 : i64
%a = pto.alloc_tile addr = %p : !pto.tile_buf<vec, 1x64xf32>
%b = pto.alloc_tile addr = %q : !pto.tile_buf<vec, 1x64xf16>
pto.tcvt ins(%a : !pto.tile_buf<vec, 1x64xf32>) outs(%b : !pto.tile_buf<vec, 1x64xf16>)
"""
    assert places(kernel(text)) == [4096]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (8, "32-byte aligned"),
        (196_608, "256 bytes too far"),
        (196_384, "32 bytes too far"),
        (-32, "-32"),
        (2**62, "too far"),
    ],
)
def test_level_3_address_out_of_range(address: int, message: str) -> None:
    text = f"%p = arith.constant {address} : i64\n%a = pto.alloc_tile addr = %p : !pto.tile_buf<vec, 1x64xf32>"
    with pytest.raises(TileError, match=message) as caught:
        walk(kernel(text))
    assert caught.value.span is not None


def test_levels_do_not_mix() -> None:
    text = f"%p = arith.constant 64 : i64\n%a = pto.alloc_tile addr = %p : {Y16}\n%b = pto.alloc_tile : {Y16}"
    with pytest.raises(ReadError, match="level 3"):
        walk(kernel(text))


def test_addresses_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile whose address is the loop variable moves in the buffer."""
    text = f"""
scf.for %i = %c0 to %c4 step %c1 {{
%o = arith.muli %i, %size : index
%p = arith.index_cast %o : index to i64
%a = pto.alloc_tile addr = %p : {X32}
%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> !pto.partition_tensor_view<16x64xf32>
pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%a : {X32})
}}"""
    head = f"%rows = arith.constant 64 : index\n{VIEWS}%size = arith.constant 4096 : index\n"
    found = both(kernel(head + text), monkeypatch)
    assert moved(found, "tload") == [(0, 4096 * i) for i in range(4)]


def test_tiles_of_ssa_casts_get_places_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spellings that create their destination: every instruction has its own tile, the same in every trip."""
    kinds = {name: f"!pto.tile_buf<vec, 1x64x{name}>" for name in ("f32", "f16", "i8", "i16")}
    cast = "%{0} = pto.tcvt %{1} : {2} -> {3}\n"
    body = (
        f"%a = pto.alloc_tile : {kinds['f32']}\n"
        + cast.format("h", "a", kinds["f32"], kinds["f16"])
        + cast.format("q", "h", kinds["f16"], kinds["i8"])
        + cast.format("w", "h", kinds["f16"], kinds["i16"])
    )
    assert places(kernel(body)) == [256, 384, 448]
    looped = f"scf.for %i = %c0 to %c3 step %c1 {{{body}}}"
    both(kernel(looped), monkeypatch)
    assert places(kernel(looped)) == [256, 384, 448] * 3


# --------------------------------------------------------------------------------------------------------- arguments


def use(text: str, name: str, args: dict[str, int] | None = None) -> object:
    return walk(text, args).arguments[name]


def test_needs_input_and_output() -> None:
    found = walk(program(step("%c0")))
    assert (found.arguments["x"].needs_input, found.arguments["x"].stored) == (True, False)
    assert (found.arguments["y"].needs_input, found.arguments["y"].stored) == (False, True)


def test_loaded_only_after_it_was_stored() -> None:
    part = "!pto.partition_tensor_view<16x64xf16>"
    again = f"pto.tload ins(%py : {part}) outs(%b : {Y16})\n"
    assert not use(program(step("%c0") + again), "y").needs_input
    reverse = step("%c0").replace("pto.tload ins(%px", again + "pto.tload ins(%px")
    found = use(program(reverse), "y")
    assert (found.needs_input, found.stored) == (True, True)
    # In a loop the load of the first trip comes before every store.
    assert use(program(loop(reverse.replace("%c0, %c0]", "%i, %c0]"), upper="%c64")), "y").needs_input


def test_branch_not_taken_does_not_count() -> None:
    body = "%q = arith.cmpi sgt, %i, %c256 : index\nscf.if %q {" + step("%i") + "}"
    found = walk(program(loop(body))).arguments
    assert not found["x"].needs_input
    assert not found["y"].stored


@pytest.mark.parametrize(
    ("shape", "strides", "elements"),
    [
        (["%c16", "%c64"], ["%c64", "%c1"], 1024),
        (["%c16", "%c64"], ["%c128", "%c1"], 15 * 128 + 64),  # 1 + sum((extent - 1) * stride)
        (["%c16", "%c64"], ["%c1", "%c16"], 15 + 63 * 16 + 1),
        (["%c2", "%c3", "%c64"], ["%c256", "%c64", "%c1"], 256 + 128 + 64),
        (["%c0", "%c64"], ["%c64", "%c1"], 0),
        (["%c4", "%c64"], ["%c0", "%c1"], 64),
    ],
)
def test_argument_size(shape: list[str], strides: list[str], elements: int) -> None:
    dims = "x".join("?" * len(shape))
    view = f"%v = pto.make_tensor_view %x, shape = [{', '.join(shape)}], strides = [{', '.join(strides)}] : !pto.tensor_view<{dims}xf32>"
    assert use(kernel(view), "x").elements == elements


def test_argument_size_is_the_largest_view() -> None:
    views = "".join(
        f"%v{n} = pto.make_tensor_view %x, shape = [%c{n}, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>\n"
        for n in (4, 16, 8)
    )
    assert use(kernel(views), "x").elements == 1024


def test_extents_from_scalar_arguments() -> None:
    view = "%v = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>"
    text = kernel(view, "%x: !pto.ptr<f32>, %n: index")
    assert use(text, "x", {"n": 5}).elements == 320
    with pytest.raises(ReadError, match="%n") as caught:
        walk(text)
    assert caught.value.legal == ("--arg n=VALUE",)
    with pytest.raises(ReadError, match="'m'") as caught:
        walk(text, {"m": 5})
    assert "n" in caught.value.legal
    with pytest.raises(ReadError):
        walk(text, {"n": 5, "x": 1})
    with pytest.raises(CastsimError, match="negative"):
        walk(text, {"n": -5})


@pytest.mark.parametrize("value", [2.5, 2**32, -(2**31) - 1, float("nan"), float("inf")])
def test_scalar_argument_that_is_not_of_its_type(value: float) -> None:
    text = kernel("%r = arith.index_cast %n : i32 to index", "%x: !pto.ptr<f32>, %n: i32")
    with pytest.raises(ReadError, match=r"argument %n"):
        walk(text, {"n": value})


def test_unsigned_reading_of_a_scalar_argument() -> None:
    # 0xFFFFFFFF for an i32 is -1, as it would be in a register.
    text = kernel(
        "%r = arith.index_cast %n : i32 to index\n%s = arith.addi %r, %c8 : index\n"
        "%v = pto.make_tensor_view %x, shape = [%s], strides = [%c1] : !pto.tensor_view<?xf32>",
        "%x: !pto.ptr<f32>, %n: i32",
    )
    assert use(text, "x", {"n": 0xFFFFFFFF}).elements == use(text, "x", {"n": -1}).elements == 7


def test_scalar_argument_reaches_a_view() -> None:
    text = kernel(
        "%r = arith.index_cast %n : i32 to index\n"
        + "%v = pto.make_tensor_view %x, shape = [%r], strides = [%c1] : !pto.tensor_view<?xf32>",
        "%x: !pto.ptr<f32>, %n: i32",
    )
    assert use(text, "x", {"n": 7}).elements == 7


def test_view_extents_contradict_the_type() -> None:
    view = "%v = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<8x64xf32>"
    with pytest.raises(TileError, match=r"8 x 64.*9 x 64"):
        walk(kernel(view, "%x: !pto.ptr<f32>, %n: index"), {"n": 9})
    assert use(kernel(view, "%x: !pto.ptr<f32>, %n: index"), "x", {"n": 8}).elements == 512


def test_negative_extents_and_strides() -> None:
    for shape, strides in (("%m, %c64", "%c64, %c1"), ("%c4, %c64", "%m, %c1")):
        text = f"%m = arith.subi %c0, %c1 : index\n%v = pto.make_tensor_view %x, shape = [{shape}], strides = [{strides}] : !pto.tensor_view<?x?xf32>"
        with pytest.raises(CastsimError, match=r"-1|negative"):
            walk(kernel(text))


def test_partition_sizes_contradict_the_type() -> None:
    part = (
        "%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%n, %c64] : !pto.tensor_view<?x64xf32> -> "
        "!pto.partition_tensor_view<16x64xf32>"
    )
    with pytest.raises(TileError, match=r"16.*8|8.*16") as caught:
        walk(program(part, extra=", %n: index"), {"n": 8})
    assert caught.value.span is not None
    walk(program(part, extra=", %n: index"), {"n": 16})


def test_part_with_fewer_dimensions() -> None:
    text = """
%v = pto.make_tensor_view %x, shape = [%c2, %c1, %c4, %c8, %c64], strides = [%s, %s, %c512, %c64, %c1] : !pto.tensor_view<2x1x4x8x64xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0, %c0, %c0, %c0], sizes = [%c2, %c1, %c4, %c8, %c64] : !pto.tensor_view<2x1x4x8x64xf32> -> !pto.partition_tensor_view<64x64xf32>
%t = pto.alloc_tile : !pto.tile_buf<vec, 64x64xf32>
pto.tload ins(%p : !pto.partition_tensor_view<64x64xf32>) outs(%t : !pto.tile_buf<vec, 64x64xf32>)
"""
    head = "%s = arith.constant 2048 : index\n%c512 = arith.constant 512 : index\n"
    # One transfer per index of the three leading dimensions: 2 x 1 x 4.
    assert len(moved(walk(kernel(head + text)), "tload")) == 8


@pytest.mark.parametrize("rank", [1, 6])
def test_views_of_other_ranks(rank: int) -> None:
    dims, ones = "x".join("?" * rank), ", ".join(["%c1"] * rank)
    text = f"%v = pto.make_tensor_view %x, shape = [{ones}], strides = [{ones}] : !pto.tensor_view<{dims}xf32>\n%p = pto.partition_view %v, offsets = [{', '.join(['%c0'] * rank)}], sizes = [{ones}] : !pto.tensor_view<{dims}xf32> -> !pto.partition_tensor_view<{dims}xf32>"
    if rank > 5:
        with pytest.raises(CastsimError):
            walk(kernel(text))
    else:
        walk(kernel(text))


# ----------------------------------------------------------------------------------------------------------- refusals


def test_unsupported_operation() -> None:
    text = program(step("%c0") + f"pto.texp ins(%a : {X32}) outs(%a : {X32})")
    with pytest.raises(IllegalError, match=r"pto\.texp") as caught:
        walk(text)
    assert caught.value.span is not None
    assert caught.value.legal


def test_cube_section() -> None:
    with pytest.raises(IllegalError, match="cube"):
        walk(program("pto.section.cube {" + step("%c0") + "}"))
    assert walk(program("pto.section.vector {" + step("%c0") + "}")).tree.interlocked


def test_division_by_zero_is_refused() -> None:
    for operation in ("divsi", "remsi", "divui", "remui"):
        with pytest.raises(ReadError, match="zero") as caught:
            walk(kernel(f"%r = arith.{operation} %c8, %c0 : index"))
        assert caught.value.span is not None


@pytest.mark.parametrize("pipe", ["PIPE_MTE4", "PIPE_MTE5", "PIPE_V2"])
def test_pipes_that_the_chip_lacks(pipe: str) -> None:
    with pytest.raises(IllegalError, match=pipe.removeprefix("PIPE_")):
        walk(program(f"pto.barrier <{pipe}>"))
    with pytest.raises(IllegalError):
        walk(program(f"pto.set_flag[<PIPE_V>, <{pipe}>, <EVENT_ID0>]"))


def test_every_refusal_has_a_place() -> None:
    for body in (
        "pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%b : !pto.tile_buf<vec, 16x64xf16>)",
        "pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%s : !pto.tile_buf<vec, 8x64xf32>)",
    ):
        text = program(
            "%s = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>\n"
            "%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> "
            "!pto.partition_tensor_view<16x64xf32>\n" + body
        )
        with pytest.raises(CastsimError) as caught:
            walk(text)
        assert caught.value.span is not None
        assert caught.value.span.text.startswith("pto.tload")


def test_empty_function() -> None:
    found = walk("func.func @k() attributes {pto.entry} {\nreturn\n}")
    assert found.tree.root == Block(())
    assert found.arguments == {}


def test_programs_are_parsed_as_written() -> None:
    """The templates here mean what they seem to mean."""
    parsed = pto.parse(program(loop(step())), "k.pto")
    (function,) = parsed.functions
    assert sum(isinstance(node, pto.For) for node in function.body) == 1

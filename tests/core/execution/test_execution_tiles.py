"""Valid regions that change at run time, and where tiles are placed."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import pytest
from kit.execution_programs import issued, kernel, walk
from kit.walker_cases import VIEWS, both
from kit.work_programs import target, walked

from castsim.execution.interpreter.tile_allocation import lifetimes_of
from castsim.execution.tree import instances
from castsim.isa.errors import TileError
from castsim.isa.pto.pto_parser import parse
from castsim.machines.strided.strided_instructions import StridedInstruction
from castsim.targets.description import with_options
from castsim.targets.loader import load_target


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


# --------------------------------------------------------------------------------------------------------- placement
def places(text: str) -> list[int]:
    """Return where the results of casts lie that have no addresses, one tile behind the other."""
    consecutive = with_options(load_target("a2a3"), {"tile_placement": "consecutive"})
    found = [op for name, op in issued(walk(text, target=consecutive)) if name.startswith("tcvt")]
    return [op.destination.address for op in found if isinstance(op, StridedInstruction)]


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
    # docs/reference/pto.md section 4: f32 + f16 tiles of 128 x 256 fit exactly, 129 x 256 do not.
    for rows, fits in ((128, True), (129, False)):
        text = kernel(
            f"%a = pto.alloc_tile : !pto.tile_buf<vec, {rows}x256xf32>\n%b = pto.alloc_tile : !pto.tile_buf<vec, {rows}x256xf16>"
        )
        if fits:
            walk(text)
            continue
        with pytest.raises(TileError, match=f"{256 * 6} bytes too few") as caught:
            walk(text)
        assert caught.value.span is not None


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (8, "32-byte aligned"), (196_608, "256 bytes past the end"), (196_384, "32 bytes past the end"), (-32, "-32"),
        (2**62, "past the end"),
    ],
)  # fmt: skip
def test_level_3_address_out_of_range(address: int, message: str) -> None:
    text = f"%p = arith.constant {address} : i64\n%a = pto.alloc_tile addr = %p : !pto.tile_buf<vec, 1x64xf32>"
    with pytest.raises(TileError, match=message) as caught:
        walk(kernel(text))
    assert caught.value.span is not None


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


# --------------------------------------------------- level-2 placement of programs that only fit if tiles share bytes
BIG = "!pto.tile_buf<vec, 128x128xf32>"  # 64 KiB: three of them fill an A2/A3 buffer
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 128)) + "\n%s = arith.constant 2.0 : f32"


def lifetimes(body: str, arguments: str = "") -> str:
    return f"func.func @k({arguments}) attributes {{pto.entry}} {{\n{CONSTANTS}\n{body}\nreturn\n}}\n"


def tiles(count: int) -> str:
    return "\n".join(f"%t{n} = pto.alloc_tile : {BIG}" for n in range(count))


def step(src: int, dst: int) -> str:
    return f"pto.tmuls ins(%t{src}, %s : {BIG}, f32) outs(%t{dst} : {BIG})"


def fill(dst: int) -> str:
    return f"pto.texpands ins(%s : f32) outs(%t{dst} : {BIG})"


def written(text: str) -> list[int]:
    found = []
    for lowered, _ in instances(walked(text, target("a2a3")).tree):
        if lowered.accesses:
            found.append(lowered.accesses[0].start)
    return found


def test_a_chain_of_tiles_shares_bytes() -> None:
    """Five tiles of 64 KiB, never more than two in use: 128 KiB are enough."""
    text = lifetimes("\n".join([tiles(5), fill(0), *(step(n, n + 1) for n in range(4))]))
    assert written(text) == [0, 65536, 0, 65536, 0]
    (warning,) = walked(text, target("a2a3")).warnings
    assert "its tiles take 327680 bytes, the buffer has 196608" in warning
    assert "131072 in all" in warning
    assert walked(text, target("a5")).warnings  # 248 KiB there


def test_what_is_in_use_together_does_not_fit() -> None:
    body = "\n".join([tiles(4), *(fill(n) for n in range(4)), *(step(n, (n + 1) % 4) for n in range(4))])
    with pytest.raises(TileError, match="65536 bytes too few") as caught:
        walked(lifetimes(body), target("a2a3"))
    assert caught.value.span is not None
    with pytest.raises(TileError, match="8192 bytes too few"):
        walked(lifetimes(body), target("a5"))


def test_a_loop_keeps_what_it_uses() -> None:
    """A tile of outside lives through the whole loop; tiles of inside live for a trip."""
    body = f"""
{tiles(2)}
{fill(0)}
scf.for %i = %c0 to %c4 step %c1 {{
  %t2 = pto.alloc_tile : {BIG}
  {step(0, 2)}
  %t3 = pto.alloc_tile : {BIG}
  {step(2, 3)}
}}
{fill(1)}
"""
    program = parse(lifetimes(body), "k.pto")
    lives = lifetimes_of(program.functions[0].body or ())
    zero, one, two, three = ((life.first, life.last) for life in lives)
    assert zero[0] < two[0] <= two[1] == three[0] <= three[1] < zero[1]
    assert one[0] == one[1] > zero[1]
    places = written(lifetimes(body))
    assert places[0] == 0
    assert len(set(places)) == 3


def test_aliases_prolong_a_life() -> None:
    flat = "!pto.tile_buf<vec, 64x256xf32>"
    body = "\n".join(
        [
            tiles(4), fill(0), f"%f = pto.treshape %t0 : {BIG} -> {flat}", fill(1), step(1, 2), step(2, 3),
            f"pto.tmuls ins(%f, %s : {flat}, f32) outs(%f : {flat})",
        ]
    )  # fmt: skip
    assert written(lifetimes(body)) == [0, 65536, 131072, 65536, 0]

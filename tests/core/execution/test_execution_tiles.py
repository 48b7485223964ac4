"""Valid regions that change at run time, and where tiles are placed."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from kit.execution_programs import issued, kernel, moved, walk
from kit.walker_cases import VIEWS, X32, Y16, both
from kit.work_programs import noise, target, walked

from castsim.execution.interpreter.tile_allocation import lifetimes_of
from castsim.execution.tree import instances
from castsim.isa.errors import CastsimError, ReadError, TileError
from castsim.isa.pto.pto_parser import parse
from castsim.machines.mechanisms import compute_of
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
        (8, "32-byte aligned"), (196_608, "256 bytes past the end"), (196_384, "32 bytes past the end"), (-32, "-32"),
        (2**62, "past the end"),
    ],
)  # fmt: skip
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
    assert moved(both(kernel(head + text), monkeypatch), "tload") == [(0, 4096 * i) for i in range(4)]


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


# -------------------- tiles and entries that no program may have: each refusal with its place and what would be legal
VEC = "!pto.tile_buf<vec, {}>"


def alloc(kind: str) -> str:
    return kernel(f"%t = pto.alloc_tile : {VEC.format(kind)}")


@pytest.mark.parametrize(
    ("kind", "message", "legal"),
    [
        ("0x64xf32", "tile %t of 0 rows and 64 columns is empty", None),
        ("8x0xf32", "tile %t of 8 rows and 0 columns is empty", None),
        ("8x64xf32, valid=9x64", "9 valid rows in a tile of 8 rows", None),
        ("16x64xf32, slayout=row_major, fractal=100", "a tile cannot have boxes of 100 bytes", "fractal=512"),
        ("0x64xf32, slayout=row_major", "tile %t of 0 rows and 64 columns is empty", None),
        ("2048x64xf32, slayout=row_major", "the buffer has 196608: 327680 bytes too few", None),
        ("8x4xf32", "8 x f32 is 16 bytes per line, not a multiple of 32", None),
        ("4x8xf32, blayout=col_major", "is 16 bytes per line", None),
    ],
)
def test_tiles_that_cannot_be(kind: str, message: str, legal: str | None):
    with pytest.raises(CastsimError) as caught:
        walk(alloc(kind))
    assert message.removeprefix("8 x f32 is ") in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line == 13
    assert legal is None or legal in caught.value.legal


T = VEC.format("8x64xf32")


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        (f"%p = arith.constant 0 : i64\n%a = pto.alloc_tile addr = %p : {T}\n%b = pto.alloc_tile : {T}", "missing address", 15),
        (f"%p = arith.constant 16 : i64\n%a = pto.alloc_tile addr = %p : {T}", "not 32-byte aligned", 14),
        (f"%p = arith.constant 196608 : i64\n%a = pto.alloc_tile addr = %p : {T}", "the buffer has 196608", 14),
        (f"%p = arith.constant 64 : i64\n%a = pto.alloc_tile addr = %p : {T}\n%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 8x64xf32, count=2>", "missing address", 15),
        ("return %c0 : index", "declares 0 results but returns 1", 14),
    ],
)  # fmt: skip
def test_addresses_and_results_that_cannot_be(body: str, message: str, line: int):
    text = kernel(body)
    if body.startswith("return"):
        text = text.replace("\nreturn\n}", "\n}")
    with pytest.raises(CastsimError) as caught:
        walk(text)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line == line


def test_an_entry_has_no_results():
    text = "func.func @k() -> index attributes {pto.entry} {\n%c = arith.constant 1 : index\nreturn %c : index\n}\n"
    with pytest.raises(CastsimError, match="entry function @k must return nothing") as caught:
        parse(text)
    assert caught.value.span is not None


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


def test_what_fits_is_placed_one_behind_the_other() -> None:
    text = lifetimes("\n".join([tiles(3), fill(0), step(0, 1), step(1, 2)]))
    assert written(text) == [0, 65536, 131072]
    assert not walked(text, target("a2a3")).warnings


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


def test_values_do_not_change() -> None:
    """The chain with and without sharing stores the same."""
    part = "!pto.partition_tensor_view<128x128xf32>"
    head = f"""
%v = pto.make_tensor_view %x, shape = [%c128, %c128], strides = [%c128, %c1] : !pto.tensor_view<?x?xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c128, %c128] : !pto.tensor_view<?x?xf32> -> {part}
"""
    load, store = (
        f"pto.tload ins(%p : {part}) outs(%t0 : {BIG})",
        lambda last: f"pto.tstore ins(%t{last} : {BIG}) outs(%p : {part})",
    )
    results = []
    for count in (2, 6):
        chain = [step(n, n + 1) for n in range(count - 1)]
        body = "\n".join([head, tiles(count), load, *chain, store(count - 1)])
        executed = walked(lifetimes(body, "%x: !pto.ptr<f32>"), target("a2a3"))
        x = np.arange(128 * 128, dtype=np.float32)
        memory = {"x": x.view(np.uint8).copy()}
        compute_of(target("a2a3"))(executed.tree, noise(target("a2a3")), memory)
        results.append(memory["x"].view(np.float32) / x.clip(1) * 0.5 ** (count - 1))
    assert np.array_equal(*results)

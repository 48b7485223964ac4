"""What vector operations refuse: operands of the wrong type, shape, layout or place, scratch, attributes; each named."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from work_model import Model, special
from work_programs import Spot, computed, noise, program, statement, target, walked

from castsim.isa.errors import CastsimError, IllegalError, ReadError, ScratchError, TileError

F = Spot("f", "f32", 8, 64, 0)
G = Spot("g", "f32", 8, 64, 4096)
D = Spot("d", "f32", 8, 64, 8192)
H = Spot("h", "f16", 8, 64, 16384)
B = Spot("b", "bf16", 8, 64, 20480)
J = Spot("i", "i32", 8, 64, 24576)
PART = Spot("p", "f32", 8, 64, 32768, (8, 60))
WIDE = Spot("w", "f32", 8, 128, 40960)
COLUMN = Spot("c", "f32", 8, 1, 49152, column=True)
COLUMNS = Spot("e", "f32", 8, 8, 49408, column=True)
BLOCK = Spot("k", "f32", 8, 8, 53248)
ROW = Spot("r", "f32", 1, 64, 57344)
BYTES = Spot("y", "i8", 8, 64, 61440)
NARROW = Spot("n", "i8", 8, 32, 65536)
T = Spot("t", "f32", 8, 64, 69632)
SMALL = Spot("s", "f32", 1, 8, 73728)
PADDED = Spot("z", "f32", 8, 64, 77824, pad=1)
S = ("x", "f32")
SCALARS = {"x": ("1.5", "f32"), "j": ("3", "i32"), "v": ("3", "index")}


def refused(text: str, name: str) -> CastsimError:
    with pytest.raises(CastsimError) as caught:
        walked(text, target(name))
    error = caught.value
    assert error.span is not None
    assert error.span.line > 0
    return error


def refusal(operation: str, spots: list[Spot], name: str = "a2a3") -> CastsimError:
    return refused(program(operation, spots, SCALARS), name)


CASES = [
    # type
    (statement("tadd", [F, H], D), ReadError, "tadd works on one element type: %h is f16, not f32", ("f32",)),
    (statement("tadd", [F, G], J), ReadError, "%d is f32, not i32|%i is i32, not f32", ("f32",)),
    (statement("tadds", [F, ("j", "i32")], D), ReadError, "the scalar is i32, not f32", ("f32",)),
    (statement("tadd", [B, B], B), IllegalError, "pto.tadd does not take bf16 on a2a3", ("i16", "i32", "f16", "f32")),
    (statement("texp", [J], J), IllegalError, "pto.texp does not take i32 on a2a3", ("f16", "f32")),
    (statement("tmov", [F], H), ReadError, "copies elements of one size", ()),
    (statement("tcmp", [F, G], D), ReadError, "writes bits into a tile of bytes, %d holds f32", ("i8", "ui8")),
    (statement("texpands", [("j", "i32")], D), ReadError, "the scalar is i32, not f32", ("f32",)),
    # shape
    (statement("tadd", [F, PART], D), TileError, "valid region of %p is 8 x 60, of %d 8 x 64", ()),
    (statement("texp", [WIDE], D), TileError, "valid region of %w is 8 x 128, of %d 8 x 64", ()),
    (statement("tmov", [WIDE], D), TileError, "shape of %w is 8 x 128, of %d 8 x 64", ()),
    (statement("trowsum", [F, T], D), TileError, "%d must have one valid column, it has 64 of 64", ("8x1 column-major",)),
    (statement("trowsum", [ROW, T], COLUMN), TileError, "valid rows of %r is 1, of %c 8", ()),
    (statement("tcolsum", [WIDE], D), TileError, "valid columns of %w is 128, of %d 64", ()),
    (statement("tcolexpandmul", [F, WIDE], D), TileError, "valid columns of %w", ()),
    (statement("trowexpandmul", [F, WIDE], D), TileError, "rows of one full block, 8 elements", ("8x8 row-major",)),
    (statement("trowexpandmul", [F, COLUMNS], D), TileError, "column-major %e must have one column, it has 8", ()),
    (statement("tfillpad", [F], D), TileError, "%d declares no pad value", ("pad=1",)),
    (statement("tfillpad_inplace", [F], PADDED), TileError, "must be the same bytes", ()),
    (statement("tfillpad_expand", [WIDE], PADDED), TileError, "shape of %w is 8 x 128, of %z smaller", ()),
    (statement("tsel", [NARROW, WIDE, WIDE, T], WIDE.__class__("q", "f32", 8, 512, 98304)), TileError, "valid region", ()),
    # layout
    (statement("texp", [COLUMN], COLUMN), TileError, "texp: tile %c is column-major", ("blayout=row_major",)),
    (statement("trowexpand", [COLUMNS], D), TileError, "trowexpand: tile %e is column-major", ()),
    # scratch
    (statement("trowmin", [F, SMALL], COLUMN), TileError, "tmp tile of the type and valid region of %f", ()),
    (statement("trowexpandmul", [F, COLUMN, SMALL], D), ScratchError, "tmp %s has 32 bytes, trowexpandmul needs 256", ()),
    (statement("tcolsum", [F, SMALL], ROW, "{isBinary = true}"), ScratchError, "tmp %s has 32 bytes, tcolsum needs 1024: 992 missing", ()),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "kind", "message", "legal"), CASES, ids=[c[2][:40] for c in CASES])
def test_refusals(operation: str, kind: type[CastsimError], message: str, legal: tuple[str, ...]) -> None:
    everything = [F, G, D, H, B, J, PART, WIDE, COLUMN, COLUMNS, BLOCK, ROW, BYTES, NARROW, T, SMALL, PADDED]
    if "%q" in operation:
        everything.append(Spot("q", "f32", 8, 512, 98304))
    error = refusal(operation, everything)
    assert type(error) is kind
    if "|" in message:
        assert any(part in error.message for part in message.split("|"))
    else:
        assert message in error.message
    assert set(legal) <= set(error.legal), error.legal


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (f"pto.tadd ins(%f : {F.type}) outs(%d : {D.type})", "pto.tadd is not written with these operands"),
        (f"pto.tadd ins(%f, %x : {F.type}, f32) outs(%d : {D.type})", "not written with these operands"),
        (f"pto.tadds ins(%f, %v : {F.type}, index) outs(%d : {D.type})", "not index"),
        (f"pto.trowsum ins(%f : {F.type}) outs(%c : {COLUMN.type})", "not written with these operands"),
        (f"pto.texpands ins(%f : {F.type}) outs(%d : {D.type})", "not written with these operands"),
        (f"pto.texp ins(%f : {F.type}) outs(%d, %g : {D.type}, {G.type})", "writes one tile"),
        (f"pto.tcmp ins(%f, %g {{cmpMode = #pto<cmp less_than>}} : {F.type}, {G.type}) outs(%y : {BYTES.type})", "less_than"),
        (f"pto.tadd ins(%f, %g {{cmpMode = #pto<cmp lt>}} : {F.type}, {G.type}) outs(%d : {D.type})", "no attribute 'cmpMode'"),
        (f"pto.tcolsum ins(%f, %t : {F.type}, {T.type}) outs(%r : {ROW.type})", "isBinary if and only if"),
        (f"pto.tcolsum ins(%f {{isBinary = true}} : {F.type}) outs(%r : {ROW.type})", "isBinary if and only if"),
        (f"pto.tcolsum ins(%f, %t {{isBinary = 3 : i32}} : {F.type}, {T.type}) outs(%r : {ROW.type})", "true or false"),
    ],
)  # fmt: skip
def test_forms_that_are_not_written(operation: str, message: str) -> None:
    error = refusal(operation, [F, G, D, COLUMN, BYTES, ROW, T])
    assert isinstance(error, ReadError)
    assert message in error.message
    assert error.span is not None
    assert "pto.t" in error.span.text


def test_unknown_operations_suggest_the_nearest() -> None:
    error = refusal(f"pto.trowsums ins(%f, %t : {F.type}, {T.type}) outs(%c : {COLUMN.type})", [F, T, COLUMN])
    assert isinstance(error, IllegalError)
    assert "unknown operation pto.trowsums" in error.message
    assert error.legal[0] == "pto.trowsum"


def test_scratch_by_target() -> None:
    """A5 refuses tmp where the library has none, and ignores it elsewhere."""
    for mnemonic in ("trowexpandmax", "trowexpandmin", "trowexpandexpdif"):
        text = program(statement(mnemonic, [F, COLUMN, T], D), [F, COLUMN, T, D])
        walked(text, target("a2a3"))
        assert "takes no tmp tile on a5" in refused(text, "a5").message
    text = program(statement("trowexpandmul", [F, COLUMN, SMALL], D), [F, COLUMN, SMALL, D])
    (lowered,) = walked(text, target("a5")).tree.root.items
    assert len(lowered.accesses) == 3


def test_scratch_that_nobody_reserves_brings_a_warning() -> None:
    """A2/A3, a column vector without tmp: 8 KiB from byte 188416 on are overwritten."""
    above = Spot("above", "f32", 8, 64, 190000 // 32 * 32)
    operation = statement("trowexpandmul", [F, COLUMN], D)
    (warning,) = walked(program(operation, [F, COLUMN, D, above]), target("a2a3")).warnings
    assert "188416 .. 196607" in warning
    assert "%above" in warning
    for quiet, name in (
        (program(operation, [F, COLUMN, D]), "a2a3"),
        (program(operation, [F, COLUMN, D, above]), "a5"),
    ):
        assert not walked(quiet, target(name)).warnings
    blocked = statement("trowexpandmul", [F, BLOCK], D)
    assert not walked(program(blocked, [F, BLOCK, D, above]), target("a2a3")).warnings


@pytest.mark.parametrize(("element", "mode", "told"), [("i32", "lt", 1), ("i32", "eq", 0), ("f32", "lt", 0)])
@pytest.mark.parametrize(("name", "has_it"), [("a2a3", True), ("a5", False)])
def test_comparisons_that_act_as_equality_bring_a_warning(
    element: str, mode: str, told: int, name: str, has_it: bool
) -> None:
    """A2/A3: every comparison of i32 is one for equality (docs/reference/pto.md section 7.3)."""
    a, b = Spot("a", element, 4, 64, 0), Spot("b", element, 4, 64, 4096)
    m = Spot("m", "i8", 4, 64, 8192)
    operation = statement("tcmp", [a, b], m, f"{{cmpMode = #pto<cmp {mode}>}}")
    found = walked(program(operation, [a, b, m]), target(name)).warnings
    assert len(found) == told * has_it
    assert all(f"'{mode}' acts as 'eq'" in one for one in found)


def test_a_source_that_a_division_leaves_as_floats_brings_a_warning() -> None:
    """A2/A3: integers are divided by a scalar as floats, into which the source is converted where it lies."""
    for element, float_name in (("i32", "f32"), ("i16", "f16")):
        a, d = Spot("a", element, 4, 64, 0), Spot("d", element, 4, 64, 4096)
        for name, out, told in (("a2a3", d, 1), ("a5", d, 0), ("a2a3", a, 0)):
            text = program(statement("tdivs", [a, ("s", element)], out), [a, d], {"s": ("3", element)})
            found = walked(text, target(name)).warnings
            assert len(found) == told
            assert all(f"%a is left holding {float_name}" in one for one in found)


# ------------------------------------------------------------------------------------------------------- overlaps


@pytest.mark.parametrize("name", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("mnemonic", "ins"),
    [("tadd", "fg"), ("tadd", "gf"), ("texp", "f"), ("tmuls", "fx"), ("tcolexpandmul", "fr"), ("trowexpandmul", "fk"), ("tsel", "yfgt"), ("tmov", "f")],
)  # fmt: skip
def test_in_place_equals_apart(mnemonic: str, ins: str, name: str) -> None:
    by_name = {"f": F, "g": G, "r": ROW, "k": BLOCK, "x": S, "y": BYTES, "t": Spot("t", "ui32", 1, 16, 69632)}
    operands = [by_name[letter] for letter in ins]
    spots = [operand for operand in operands if isinstance(operand, Spot)]
    before = noise(target(name))
    for number, spot in enumerate(s for s in spots if s.element == "f32"):
        spot.put(before, special("f32", spot.region, number))
    apart = computed(
        program(statement(mnemonic, operands, D), [*spots, D], {"x": ("1.5", "f32")}), target(name), before
    )
    inside = computed(program(statement(mnemonic, operands, F), spots, {"x": ("1.5", "f32")}), target(name), before)
    assert np.array_equal(D.get(apart).view(np.uint32), F.get(inside).view(np.uint32))
    assert np.array_equal(G.get(inside).view(np.uint32), G.get(before).view(np.uint32))


@pytest.mark.parametrize(
    ("operation", "others", "name", "message"),
    [
        (statement("tadd", [F, G], Spot("o", "f32", 8, 64, 2048 - 32)), [F, G], "a5", "%o and %f share bytes 2016 .. 2047"),
        (statement("trecip", [F], F), [F], "a2a3", "trecip cannot run in place: it writes %f"),
        (statement("tdivs", [S, F], F), [F], "a2a3", "tdivs cannot run in place"),
        (statement("tcolexpandmul", [F, G], G), [F, G], "a5", "tcolexpandmul cannot run in place: it writes %g"),
        (statement("trowexpandmul", [F, COLUMN, F], D), [F, COLUMN, D], "a2a3", "tmp %f and %f share bytes"),
        (statement("trowsum", [F, F], COLUMN), [F, COLUMN], "a2a3", "tmp %f and %f share bytes"),
        (statement("tcmp", [F, G], Spot("o", "i8", 8, 64, 0)), [F, G], "a5", "%o and %f share bytes 0 .. 7"),
        (statement("tsel", [BYTES, F, G, T], Spot("o", "f32", 8, 64, 61440)), [BYTES, F, G, T], "a5", "mask %y and %o share"),
    ],
)  # fmt: skip
def test_overlaps_that_destroy_operands(operation: str, others: list[Spot], name: str, message: str) -> None:
    spots = [*others]
    if "%o" in operation:
        place = operation.split("outs(%o : ")[1][:-1]
        at = {"0 .. 7": 0, "2016": 2016, "%y": 61440}
        address = next(value for key, value in at.items() if key in message)
        spots.append(Spot("o", "i8" if "i8" in place else "f32", 8, 64, address))
    error = refusal(operation, spots, name)
    assert isinstance(error, TileError)
    assert message in error.message


def test_rows_that_interleave_share_nothing() -> None:
    """Two tiles of half the pitch, one beside the other; sums of one into the other's neighbour."""
    left, right = Spot("l", "f32", 4, 64, 0, (4, 32)), Spot("r", "f32", 4, 64, 128, (4, 32))
    before = noise(target("a5"))
    left.put(before, special("f32", (4, 32), 1))
    after = computed(program(statement("tneg", [left], right), [left, right]), target("a5"), before)
    expected = Model("f32", "a5")._neg(left.get(before))
    assert np.array_equal(right.get(after).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("name", ["a2a3", "a5"])
def test_empty_regions_issue_nothing(name: str) -> None:
    a, d = Spot("a", "f32", 4, 64, 0, (0, 64)), Spot("d", "f32", 4, 64, 4096, (0, 64))
    (lowered,) = walked(program(statement("texp", [a], d), [a, d]), target(name)).tree.root.items
    assert not lowered.body.items
    assert not lowered.accesses

"""Where the targets differ: masks, moves, fills, division by scalars, roots through scratch, options.

Facts: docs/reference/pto.md sections 7.2 to 7.4, by target."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from core.execution.test_tile_work_values import check, filled, literal
from kit.work_model import NAN, Model, special
from kit.work_programs import Spot, computed, noise, program, statement, target, walked

from castsim.isa.errors import CastsimError, IllegalError, ReadError, ScratchError, TileError

MODES = ("eq", "ne", "lt", "le", "gt", "ge")


def bits(rows: np.ndarray) -> np.ndarray:
    """Bits of a row packed into bytes, least significant first, by arithmetic."""
    packed = np.zeros((rows.shape[0], -(-rows.shape[1] // 8)), int)
    for number in range(rows.shape[1]):
        packed[:, number // 8] += rows[:, number].astype(int) << (number % 8)
    return packed.astype(np.uint8)


# -------------------------------------------------------------------------------------------------- comparisons
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "f16", "bf16", "f32"])
def test_compare_writes_valid_bits_on_a5(element: str, mode: str) -> None:
    region = (3, 45)
    a, b = Spot("a", element, 4, 64, 0, region), Spot("b", element, 4, 64, 4096, region)
    d = Spot("d", "i8", 4, 64, 8192, region)
    x = special(element, region, 1)
    y = np.where(np.random.default_rng(2).random(region) < 0.4, x, special(element, region, 2))
    expected = bits(Model(element, "a5")._compare(mode, x, y))
    text = program(statement("tcmp", [a, b], d, f"{{cmpMode = #pto<cmp {mode}>}}"), [a, b, d])
    check(text, "a5", filled({a: x, b: y}, "a5"), {d: expected})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("element", ["i32", "f16", "f32"])
@pytest.mark.parametrize("scalar", [False, True])
def test_compare_takes_whole_repeats_on_a2a3(element: str, mode: str, scalar: bool) -> None:
    """Bits beyond the valid columns come of what lies there; i32 compares for equality only; ne inverts the tile."""
    region = (3, 45)
    cols = 256
    a, b = Spot("a", element, 4, cols, 0, region), Spot("b", element, 4, cols, 8192, region)
    d = Spot("d", "i8", 4, 64, 16384, (3, 32))
    width = 256 // a.size
    x, y = special(element, (3, width), 3), special(element, (3, width), 4)
    y = np.where(np.random.default_rng(2).random(x.shape) < 0.4, x, y)
    if scalar:
        y = np.broadcast_to(x[1, 7], x.shape)
    found = bits(Model(element, "a2a3")._compare(mode, x, y))
    before = filled({a: x, b: y}, "a2a3")
    attribute = f"{{cmpMode = #pto<cmp {mode}>}}"
    operation = statement("tcmp", [a, b], d, attribute)
    if scalar:
        operation = statement("tcmps", [a, ("s", element)], d, attribute)
    text = program(operation, [a, b, d], {"s": (literal(y[0, 0]), element)} if scalar else {})
    whole = d.get(before, 4, 64).astype(np.uint8)
    if mode == "ne" and element != "i32":
        whole = ~whole
    whole[:3, : found.shape[1]] = found
    check(text, "a2a3", before, {Spot("d", "ui8", 4, 64, d.address): whole})


def test_scalar_comparison_defaults_to_equality() -> None:
    a, d = Spot("a", "f32", 1, 64, 0), Spot("d", "ui8", 1, 64, 4096)
    x = np.arange(64, dtype=np.float32)[None]
    text = program(statement("tcmps", [a, ("s", "f32")], d), [a, d], {"s": ("5.0", "f32")})
    check(text, "a5", filled({a: x}, "a5"), {d: bits(x == 5)})


def test_spare_bits_of_a_mask_are_an_option() -> None:
    a, d = Spot("a", "f32", 2, 64, 0, (2, 13)), Spot("d", "ui8", 2, 64, 4096, (2, 13))
    text = program(statement("tcmps", [a, ("s", "f32")], d), [a, d], {"s": ("1.0", "f32")})
    before = filled({a: np.ones((2, 13), np.float32), d: np.full((2, 2), 0b10100000, np.uint8)}, "a5")
    assert d.get(computed(text, target("a5"), before), 2, 2).tolist() == [[0xFF, 0x1F]] * 2
    keeping = target("a5", ("spare_mask_bits", "keep"))
    assert d.get(computed(text, keeping, before), 2, 2).tolist() == [[0xFF, 0xBF]] * 2


@pytest.mark.parametrize("name", ["a2a3", "a5"])
@pytest.mark.parametrize("element", ["i16", "i32", "f16", "f32"])
@pytest.mark.parametrize("scalar", [False, True])
def test_selections_read_the_bits_of_a_mask(element: str, name: str, scalar: bool) -> None:
    region = (3, 75)
    a, b, d = (Spot(n, element, 4, 96, at, region) for n, at in (("a", 0), ("b", 4096), ("d", 8192)))
    m = Spot("m", "ui8", 4, 96, 16384, (3, 32))
    t = Spot("t", element if scalar else "ui32", 1, 16, 20480)
    x, y = special(element, region, 5), special(element, region, 6)
    chosen = np.random.default_rng(7).random((3, 80)) < 0.5
    before = filled({a: x, b: y, m: bits(chosen)}, name)
    value = x[0, 3]
    other = np.broadcast_to(value, region) if scalar else y
    written = {d: np.where(chosen[:, :75], x, other)}
    if scalar and name == "a2a3":
        written[Spot("t0", element, 1, 1, t.address)] = value.reshape(1, 1)
    operation = statement("tsels", [m, a, t, ("s", element)], d) if scalar else statement("tsel", [m, a, b, t], d)
    text = program(operation, [a, b, m, t, d], {"s": (literal(value), element)} if scalar else {})
    check(text, name, before, written)


# --------------------------------------------------------------------------------------------- moves and fills
def test_moves_copy_the_common_part() -> None:
    """A5: any shapes, elements only. A2/A3: one shape, whole blocks, bits whatever they mean."""
    a, d = Spot("a", "f32", 4, 64, 0, (3, 21)), Spot("d", "f32", 6, 32, 4096, (5, 13))
    before = filled({a: special("f32", (3, 21), 8)}, "a5")
    text = program(statement("tmov", [a], d), [a, d])
    check(text, "a5", before, {Spot("d0", "f32", 6, 32, d.address): a.get(before, 3, 13)})
    with pytest.raises(Exception, match="shape of %a is 4 x 64, of %d 6 x 32"):
        computed(text, target("a2a3"), before)
    b = Spot("b", "i32", 4, 64, 8192, (2, 13))
    text = program(statement("tmov", [a], b), [a, b])
    check(text, "a2a3", before, {Spot("b0", "i32", 4, 64, b.address): a.get(before, 2, 16).view(np.int32)})


def padding(element: str, pad: int) -> float | int:
    if pad == 1 or element == "f8E4M3FN":
        return 0
    if element[0] in "fb":
        return np.inf if pad == 2 else -np.inf
    limits = np.iinfo(np.dtype(element.replace("ui", "uint") if element[0] == "u" else element.replace("i", "int")))
    return limits.max if pad == 2 else limits.min


@pytest.mark.parametrize("pad", [1, 2, 3])
@pytest.mark.parametrize(
    ("element", "name"),
    [(e, n) for n in ("a2a3", "a5") for e in ("i8", "ui16", "i32", "f16", "bf16", "f32")] + [("f8E4M3FN", "a5")],
)
def test_fills(element: str, name: str, pad: int) -> None:
    """Right of the source's columns up to the tile's edge, below it to the last valid row."""
    a = Spot("a", element, 8, 64, 0, (3, 37))
    d = Spot("d", element, 8, 64, 4096, (6, 50), pad=pad)
    before = noise(target(name), 9)
    expected = np.full((6, 64), padding(element, pad)).astype(d.get(before).dtype)
    expected[:3, :37] = a.get(before)
    whole = Spot("d0", element, 8, 64, d.address)
    check(program(statement("tfillpad", [a], d), [a, d]), name, before, {whole: expected})
    wide = Spot("d", element, 10, 96, 8192, (4, 96), pad=pad)
    expected = np.full((4, 96), padding(element, pad)).astype(expected.dtype)
    expected[:3, :37] = a.get(before)
    check(program(statement("tfillpad_expand", [a], wide), [a, wide]), name, before, {wide: expected})


@pytest.mark.parametrize("name", ["a2a3", "a5"])
def test_fills_of_equal_pads_and_in_place(name: str) -> None:
    """A2/A3 trusts the load to have padded the block in which the valid columns end."""
    a, d = Spot("a", "f32", 4, 32, 0, (3, 13), pad=1), Spot("d", "f32", 4, 32, 4096, (3, 32), pad=1)
    before = noise(target(name), 10)
    kept = 16 if name == "a2a3" else 13
    expected = np.zeros((3, 32), np.float32)
    expected[:, :kept] = a.get(before, 3, kept)
    check(program(statement("tfillpad", [a], d), [a, d]), name, before, {d: expected})
    e = Spot("e", "f32", 4, 32, 0, (3, 32), pad=1)
    check(program(statement("tfillpad_inplace", [a], e), [a, e]), name, before, {e: expected})


# ------------------------------------------------------------------------------------------------ divisions, roots
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("element", "wide"), [("i32", np.float32), ("i16", np.float16)])
def test_integer_division_by_a_scalar_goes_through_floats_on_a2a3(element: str, wide: type, first: bool) -> None:
    a, d = Spot("a", element, 2, 64, 0, (2, 61)), Spot("d", element, 2, 64, 4096, (2, 61))
    x = special(element, (2, 61), 11)
    floats = x.astype(wide)
    limits = np.iinfo(x.dtype)
    for value in (7, -3, 0, 30001):
        with np.errstate(all="ignore"):
            scalar = np.array(value).astype(wide)
            quotient = scalar / floats if first else floats / scalar
        clamped = np.trunc(np.nan_to_num(quotient.astype(float), nan=0, posinf=1e9**2, neginf=-(1e9**2)))
        expected = np.clip(clamped, limits.min, limits.max).astype(x.dtype)
        operands = [("s", element), a] if first else [a, ("s", element)]
        text = program(statement("tdivs", operands, d), [a, d], {"s": (str(value), element)})
        floating = Spot("af", "f32" if element == "i32" else "f16", 2, 64, 0)
        check(text, "a2a3", filled({a: x}, "a2a3"), {d: expected, floating: floats})


@pytest.mark.parametrize("element", ["f16", "f32"])
def test_division_in_place_multiplies_by_the_reciprocal_on_a2a3(element: str) -> None:
    a = Spot("a", element, 2, 128, 0)
    x = special(element, (2, 128), 12)
    text = program(
        statement("tdivs", [a, ("s", element)], a), [a], {"s": (literal(np.array(3).astype(x.dtype)), element)}
    )
    with np.errstate(all="ignore"):
        for name, formula in (("a2a3", lambda m: m._mul(x, m._recip(m.one(3)))), ("a5", lambda m: m._div(x, m.one(3)))):
            check(text, name, filled({a: x}, name), {a: formula(Model(element, name))})
        model = Model(element, "a5")
        assert np.any(model._mul(x, model._recip(model.one(3))) != model._div(x, model.one(3)))


@pytest.mark.parametrize("name", ["a2a3", "a5"])
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_reciprocal_root_with_scratch(element: str, name: str) -> None:
    """Root and quotient, each rounded; A2/A3 leaves a block of ones in tmp."""
    a, d, t = (Spot(n, element, 2, 64, at) for n, at in (("a", 0), ("d", 4096), ("t", 8192)))
    x = special(element, (2, 64), 13)
    model = Model(element, name)
    with np.errstate(all="ignore"):
        expected = model.rounded(model.one(1) / model._sqrt(x))
    written = {d: expected}
    if name == "a2a3":
        count = 32 // a.size
        written[Spot("t0", element, 1, count, t.address)] = np.ones((1, count), x.dtype)
    check(program(statement("trsqrt", [a, t], d), [a, d, t]), name, filled({a: x}, name), written)


# -------------------------------------------------------------------------------------------------------- options
def pair(operation: str, x: object, y: object, chip: str, *options: tuple[str, int | str], element: str = "f32") -> int:
    """The code that an operation on two equal rows gives."""
    a, b, d = (Spot(n, element, 1, 64, at) for n, at in (("a", 0), ("b", 4096), ("d", 8192)))
    sources = [a] if y is None else [a, b]
    model = Model(element, chip)
    before = filled(
        {a: np.full((1, 64), x).astype(model.dtype), b: np.full((1, 64), 0 if y is None else y).astype(model.dtype)},
        chip,
    )
    after = computed(program(statement(operation, sources, d), [*sources, d]), target(chip, *options), before)
    found = set(model.codes(d.get(after)).ravel().tolist())
    assert len(found) == 1
    return found.pop()


NOT = float("nan")
MINUS = 0x80000000


@pytest.mark.parametrize(
    ("operation", "x", "y", "by"),
    [
        ("tmax", NOT, 1.0, {"number": 0x3F800000, "nan": NAN["f32"], "first": NAN["f32"]}),
        ("tmax", 1.0, NOT, {"number": 0x3F800000, "nan": NAN["f32"], "first": 0x3F800000}),
        ("tmin", NOT, NOT, {"number": NAN["f32"], "nan": NAN["f32"], "first": NAN["f32"]}),
        ("tmax", -0.0, 0.0, {"number": 0, "nan": 0, "first": MINUS}),
        ("tmin", 0.0, -0.0, {"number": MINUS, "nan": MINUS, "first": 0}),
    ],
)
@pytest.mark.parametrize("chip", ["a2a3", "a5"])
def test_extremes_of_nan_and_zeros(operation: str, x: float, y: float, by: dict[str, int], chip: str) -> None:
    for choice, expected in by.items():
        assert pair(operation, x, y, chip, ("maximum_of_nan", choice)) == expected
    assert pair(operation, x, y, chip) == by["nan"]


@pytest.mark.parametrize("chip", ["a2a3", "a5"])
def test_relu_of_nan(chip: str) -> None:
    assert pair("trelu", NOT, None, chip) == NAN["f32"]
    assert pair("trelu", NOT, None, chip, ("relu_of_nan", "zero")) == 0
    assert pair("trelu", -0.0, None, chip) == 0


def test_half_precision_results_clamp_by_control_bit() -> None:
    big, infinity = 0x7BFF, 0x7C00
    clamps = ("float_saturation_off_at_start", 0)
    assert pair("tadd", 60000, 60000, "a2a3", element="f16") == infinity
    assert pair("tadd", 60000, 60000, "a2a3", clamps, element="f16") == big
    assert pair("tsub", np.inf, np.inf, "a2a3", clamps, element="f16") == 0
    assert pair("tadd", 60000, 60000, "a5", ("ctrl_60_at_start", 0), element="f16") == infinity
    assert pair("tadd", 60000, 60000, "a5", ("ctrl", "hivm"), element="f16") == infinity
    assert pair("tadd", 60000, 60000, "a5", element="f16") == big
    assert pair("tadd", 60000, 60000, "a5", ("ctrl_48_at_start", 1), element="f16") == infinity
    assert pair("tmax", np.inf, 1, "a2a3", element="f16") == infinity
    assert pair("tmax", np.inf, 1, "a2a3", clamps, element="f16") == big


def test_integer_division_by_zero() -> None:
    assert pair("tdiv", 5, 0, "a5", element="i32") == 0
    assert pair("tdiv", 5, 0, "a5", ("integer_division_by_zero", "all_ones"), element="i32") == 0xFFFFFFFF
    assert pair("tdiv", -(2**31), -1, "a5", element="i32") == 0x80000000
    assert pair("tdiv", -7, 2, "a5", element="i32") == (-3) & 0xFFFFFFFF


@pytest.mark.parametrize("chip", ["a2a3", "a5"])
def test_order_of_lanes(chip: str) -> None:
    """1 + 2^-24 is 1, 2^-24 + 2^-24 is 2^-23: the order shows."""
    a, t = Spot("a", "f32", 1, 64, 0, (1, 4)), Spot("t", "f32", 1, 64, 4096)
    d = Spot("d", "f32", 1, 8, 8192, (1, 1))
    tiny = 2.0**-24
    before = filled({a: np.array([[1, tiny, tiny, tiny]], np.float32)}, chip)
    text = program(statement("trowsum", [a, t], d), [a, t, d])
    assert d.get(computed(text, target(chip), before))[0, 0] == np.float32(1 + 2.0**-23)
    assert d.get(computed(text, target(chip, ("lane_order", "sequential")), before))[0, 0] == 1


def test_types_of_the_library_are_an_option() -> None:
    with pytest.raises(Exception, match="library_types=accept"):
        pair("tmax", 1, 2, "a5", element="bf16")
    assert pair("tmax", 1, 2, "a5", ("library_types", "accept"), element="bf16") == 0x4000
    assert pair("tabs", -(2**15), None, "a2a3", ("library_types", "accept"), element="i16") == 0x8000


# ---------------------------------------------------------------------------------------- what vector operations refuse
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
    (statement("tadd", [F, G], J), ReadError, "%d is f32, not i32|%i is i32, not f32", ("f32",)),
    (statement("texp", [J], J), IllegalError, "pto.texp does not take i32 on a2a3", ("f16", "f32")),
    (statement("tmov", [F], H), ReadError, "cannot change the element size", ()),
    (statement("tcmp", [F, G], D), ReadError, "writes bits into a tile of bytes, %d holds f32", ("i8", "ui8")),
    # shape
    (statement("tcolsum", [WIDE], D), TileError, "valid columns of %w is 128, of %d 64", ()),
    (statement("trowexpandmul", [F, COLUMNS], D), TileError, "column-major %e must have one column, not 8", ()),
    (statement("tsel", [NARROW, WIDE, WIDE, T], WIDE.__class__("q", "f32", 8, 512, 98304)), TileError, "valid region", ()),
    # layout
    (statement("trowexpand", [COLUMNS], D), TileError, "trowexpand: tile %e is column-major", ()),
    # scratch
    (statement("trowexpandmul", [F, COLUMN, SMALL], D), ScratchError, "tmp %s has 32 bytes, trowexpandmul needs 256", ()),
    (statement("tcolsum", [F, SMALL], ROW, "{isBinary = true}"), ScratchError, "tmp %s has 32 bytes, tcolsum needs 1024: 992 bytes too few", ()),
    # forms that are not written
    (f"pto.tadd ins(%f : {F.type}) outs(%d : {D.type})", ReadError, "pto.tadd does not take these operands", ()),
    (f"pto.tadd ins(%f, %x : {F.type}, f32) outs(%d : {D.type})", ReadError, "does not take these operands", ()),
    (f"pto.tadds ins(%f, %v : {F.type}, index) outs(%d : {D.type})", ReadError, "not index", ()),
    (f"pto.trowsum ins(%f : {F.type}) outs(%c : {COLUMN.type})", ReadError, "does not take these operands", ()),
    (f"pto.texpands ins(%f : {F.type}) outs(%d : {D.type})", ReadError, "does not take these operands", ()),
    (f"pto.tadd ins(%f, %g {{cmpMode = #pto<cmp lt>}} : {F.type}, {G.type}) outs(%d : {D.type})", ReadError, "no attribute 'cmpMode'", ()),
    (f"pto.tcolsum ins(%f, %t {{isBinary = 3 : i32}} : {F.type}, {T.type}) outs(%r : {ROW.type})", ReadError, "true or false", ()),
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
    assert error.span is not None and "pto.t" in error.span.text


def test_scratch_by_target() -> None:
    """A5 refuses tmp where the library has none, and ignores it elsewhere."""
    for mnemonic in ("trowexpandmax", "trowexpandmin", "trowexpandexpdif"):
        text = program(statement(mnemonic, [F, COLUMN, T], D), [F, COLUMN, T, D])
        walked(text, target("a2a3"))
        assert "does not take a tmp tile on a5" in refused(text, "a5").message
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
def test_comparisons_that_act_as_equality_bring_a_warning(element, mode, told, name, has_it) -> None:
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

"""Logical registers against NumPy and ml_dtypes: arithmetic, comparison, groups, control flow; loads, stores, masks."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from languages.vmi.vmi_kernels import OUTPUT, Body, as_bytes, bits, blank, lowered, mask, ptr, reg, run_body, run_text
from numpy.typing import NDArray

Array = NDArray[np.generic]
RNG = np.random.default_rng(5)
KINDS = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
}  # fmt: skip
INTEGERS = [name for name in KINDS if name[0] in "iu"]
NUMBERS = [*KINDS]
FLOATS = ["f16", "f32"]
FAR = 32768
"""The byte of the second operand."""


def operands(element: str, count: int) -> tuple[Array, Array]:
    kind = KINDS[element]
    if element in INTEGERS:
        info = np.iinfo(kind)
        return tuple(RNG.integers(info.min, info.max, count, endpoint=True).astype(kind) for _ in "ab")  # type: ignore
    return tuple((RNG.normal(size=count) * 8).astype(np.float32).astype(kind) for _ in "ab")  # type: ignore


def amounts(element: str, count: int) -> Array:
    return RNG.integers(0, bits(element), count).astype(KINDS[element])


def exact(one: Array, other: Array, function: Callable[[Array, Array], Array]) -> Array:
    """A function of floats in f64, rounded once; of integers as they wrap."""
    if one.dtype.kind in "iu":
        return function(one, other)
    return function(one.astype(np.float64), other.astype(np.float64)).astype(one.dtype)


BINARY: dict[str, tuple[list[str], Callable[[Array, Array], Array]]] = {
    "vadd": (NUMBERS, lambda a, b: exact(a, b, np.add)), "vsub": (NUMBERS, lambda a, b: exact(a, b, np.subtract)),
    "vmul": (NUMBERS, lambda a, b: exact(a, b, np.multiply)), "vmax": (NUMBERS, np.maximum),
    "vmin": (NUMBERS, np.minimum), "vdiv": (FLOATS, lambda a, b: exact(a, b, np.divide)),
    "vand": (INTEGERS, np.bitwise_and), "vor": (INTEGERS, np.bitwise_or), "vxor": (INTEGERS, np.bitwise_xor),
    "vshl": (INTEGERS, np.left_shift), "vshr": (INTEGERS, np.right_shift),
}  # fmt: skip
UNARY: dict[str, tuple[list[str], Callable[[Array], Array]]] = {
    "vabs": (NUMBERS, np.abs),
    "vneg": (["i16", "f16", "f32"], np.negative),
    "vrelu": (["i32", "f32"], lambda a: np.maximum(a, 0).astype(a.dtype)),
    "vnot": (INTEGERS, np.invert),
    "vsqrt": (FLOATS, lambda a: np.sqrt(a.astype(np.float64)).astype(a.dtype)),
}
SCALAR: dict[str, tuple[list[str], Callable[[Array, float], Array]]] = {
    "vadds": (NUMBERS, lambda a, s: exact(a, np.full_like(a, s), np.add)),
    "vmuls": (NUMBERS, lambda a, s: exact(a, np.full_like(a, s), np.multiply)),
    "vmaxs": (NUMBERS, lambda a, s: np.maximum(a, np.full_like(a, s))),
    "vmins": (NUMBERS, lambda a, s: np.minimum(a, np.full_like(a, s))),
    "vshls": (INTEGERS, lambda a, s: np.left_shift(a, np.full_like(a, s))),
    "vshrs": (INTEGERS, lambda a, s: np.right_shift(a, np.full_like(a, s))),
}
WIDER = {8: "i32", 16: "f32"}


def given(one: Array, other: Array) -> NDArray[np.uint8]:
    found = np.zeros(2 * FAR, np.uint8)
    found[: one.nbytes], found[FAR : FAR + other.nbytes] = as_bytes(one), as_bytes(other)
    return found


def outcome(body: Body, one: Array, other: Array, like: Array) -> Array:
    return run_body(body, given(one, other), -(-like.nbytes // 32) * 32)[: like.nbytes].view(like.dtype)


def same(got: Array, want: Array) -> bool:
    if want.dtype.kind in "iu":
        return np.array_equal(got, want)
    return np.array_equal(got.astype(np.float64), want.astype(np.float64), equal_nan=True)


def masked(body: Body, lanes: int, count: int | None) -> tuple[str, str]:
    if count is None:
        return "", ""
    m = body.make(f"pto.vmi.create_mask {body.constant(count)} : index -> {mask(lanes)}")
    return f", {m}", f", {mask(lanes)}"


def widened(body: Body, value: str, lanes: int, element: str) -> None:
    """Convert a register to 32 bits, so that its lanes stand in containers of as many."""
    if element != "bf16" and bits(element) == 16 and element[0] == "f":
        body.make(f"pto.vmi.vcvt {value} : {reg(lanes, element)} -> {reg(lanes, 'f32')}")
    elif bits(element) < 32 and element != "bf16":
        wide = f"{element[0]}32"
        body.make(f"pto.vmi.vcvt {value} : {reg(lanes, element)} -> {reg(lanes, wide)}")


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("name", "element"), [(name, each) for name, (kinds, _) in BINARY.items() for each in kinds])
def test_operations_of_two_registers(name: str, element: str, *, wide: bool) -> None:
    for lanes, count in ((300, None), (64, 40), (7, None)):
        one, other = operands(element, lanes)
        if name in ("vshl", "vshr"):
            other = amounts(element, lanes)
        body = Body()
        a, b = body.load(lanes, element), body.load(lanes, element, byte=FAR)
        if wide:
            widened(body, a, lanes, element)
        more, kind = masked(body, lanes, count)
        v = reg(lanes, element)
        r = body.make(f"pto.vmi.{name} {a}, {b}{more} : {v}, {v}{kind} -> {v}")
        body.store(r, lanes, element)
        want = BINARY[name][1](one, other)
        if count is not None:
            want[count:] = 0
        assert same(outcome(body, one, other, want), want), (lanes, count)


@pytest.mark.parametrize(("name", "element"), [(name, each) for name, (kinds, _) in UNARY.items() for each in kinds])
def test_operations_of_one_register(name: str, element: str) -> None:
    for lanes, count in ((300, None), (70, 33)):
        one = np.abs(operands(element, lanes)[0]) if name == "vsqrt" else operands(element, lanes)[0]
        body = Body()
        a = body.load(lanes, element)
        more, kind = masked(body, lanes, count)
        v = reg(lanes, element)
        body.store(body.make(f"pto.vmi.{name} {a}{more} : {v}{kind} -> {v}"), lanes, element)
        want = UNARY[name][1](one)
        if count is not None:
            want[count:] = 0
        assert same(outcome(body, one, one, want), want), (lanes, count)


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize(("name", "function"), [("vexp", np.exp), ("vln", np.log)])
def test_functions_within_one_unit_in_the_last_place(
    name: str, element: str, function: Callable[[Array], Array]
) -> None:  # fmt: skip
    one = np.abs(operands(element, 200)[0]) / np.asarray(4, KINDS[element])
    body = Body()
    v = reg(200, element)
    body.store(body.make(f"pto.vmi.{name} {body.load(200, element)} : {v} -> {v}"), 200, element)
    want = function(one.astype(np.float64)).astype(one.dtype)
    got = outcome(body, one, one, want).astype(np.float64)
    assert (np.abs(got - want.astype(np.float64)) <= np.spacing(np.abs(want)).astype(np.float64)).all()


@pytest.mark.parametrize(("name", "element"), [(name, each) for name, (kinds, _) in SCALAR.items() for each in kinds])
def test_operations_with_a_scalar(name: str, element: str) -> None:
    lanes, number = 130, 3
    one = operands(element, lanes)[0]
    body = Body()
    a, v = body.load(lanes, element), reg(lanes, element)
    kind = "i16" if name in ("vshls", "vshrs") else element.replace("u", "i")
    scalar = body.constant(f"{number}.0" if element not in INTEGERS else number, kind)
    body.store(body.make(f"pto.vmi.{name} {a}, {scalar} : {v}, {kind} -> {v}"), lanes, element)
    want = SCALAR[name][1](one, number)
    assert same(outcome(body, one, one, want), want)


COMPARED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
            "ge": np.greater_equal}  # fmt: skip


@pytest.mark.parametrize("word", COMPARED)
@pytest.mark.parametrize("element", NUMBERS)
def test_comparison_governs_selection_and_logic(element: str, word: str) -> None:
    """The lesser of the two where a comparison of the first lanes holds, then lanes where it does not."""
    lanes = 150
    one, other = operands(element, lanes)
    other[::5] = one[::5]
    body = Body()
    a, b, v, m = body.load(lanes, element), body.load(lanes, element, byte=FAR), reg(lanes, element), mask(lanes)
    more, kind = masked(body, lanes, 99)
    k = body.make(f'pto.vmi.vcmp {a}, {b}{more}, "{word}" : {v}, {v}{kind} -> {m}')
    zero = body.constant(f"{1}.0" if element not in INTEGERS else 1, element.replace("u", "i"))
    scalar = element.replace("u", "i")
    j = body.make(f'pto.vmi.vcmps {a}, {zero} {{cmp_mode = "{word}"}} : {v}, {scalar} -> {m}')
    n = body.make(f"pto.vmi.pnot {k} : {m} -> {m}")
    both = body.make(f"pto.vmi.pand {n}, {j} : {m}, {m} -> {m}")
    either = body.make(f"pto.vmi.pxor {both}, {k} : {m}, {m} -> {m}")
    first = body.make(f"pto.vmi.vsel {a}, {b}, {k} : {v}, {v}, {m} -> {v}")
    body.store(first, lanes, element)
    body.store(first, lanes, element, byte=OUTPUT + 1024, m=either)
    held = COMPARED[word](one, other) & (np.arange(lanes) < 99)
    also = COMPARED[word](one, np.full_like(one, 1))
    want = np.full(512 // one.itemsize * 4, 0xA5A5A5A5, np.uint32).view(one.dtype)
    picked = np.where(held, one, other)
    got = run_body(body, given(one, other), 2048)
    assert same(got[: one.nbytes].view(one.dtype), picked)
    stored = (~held & also) ^ held
    tail = np.full(one.nbytes, 0xA5, np.uint8).view(one.dtype)
    tail[stored] = picked[stored]
    assert as_bytes(tail).tobytes() == got[1024 : 1024 + one.nbytes].tobytes()
    assert want.size


@pytest.mark.parametrize("element", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("lanes", [5, 300])
def test_scalars_and_counts_in_all_lanes(element: str, lanes: int) -> None:
    v, scalar = reg(lanes, element), element.replace("u", "i")
    number = body_number = 3
    body = Body()
    s = body.constant(f"{body_number}.0" if element in FLOATS else body_number, scalar)
    all_lanes = body.make(f"pto.vmi.vbrc {s} : {scalar} -> {v}")
    body.store(all_lanes, lanes, element)
    want = np.full(lanes, number, KINDS[element])
    assert same(outcome(body, want, want, want), want)
    if element[0] == "u" or element == "i8":
        return
    for order, sign in (("ASC", 1), ("DESC", -1)):
        body = Body()
        s = body.constant(f"{number}.0" if element in FLOATS else number, scalar)
        counted = body.make(f'pto.vmi.vci {s} {{order = "{order}"}} : {scalar} -> {v}')
        if element == "i16":
            widened(body, counted, lanes, element)
        body.store(counted, lanes, element)
        want = (number + sign * np.arange(lanes)).astype(KINDS[element])
        assert same(outcome(body, want, want, want), want)


GROUPS = [(64, 8), (128, 8), (256, 8), (512, 8), (256, 1), (512, 2), (1024, 4), (1024, 128), (96, 3), (640, 8),
          (64, 32), (300, 1), (2048, 16), (24, 24)]  # fmt: skip


@pytest.mark.parametrize("count", [None, 3, 1000])
@pytest.mark.parametrize(("lanes", "groups"), GROUPS)
@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "i32", "i16", "u8"])
def test_groups_are_reduced_and_broadcast(element: str, lanes: int, groups: int, count: int | None) -> None:
    """Whole numbers whose sums every format holds: no order of additions matters."""
    size = lanes // groups
    one = RNG.integers(0, 3 if element in ("bf16", "u8") else 9, lanes).astype(np.float32).astype(KINDS[element])
    if element in ("bf16", "u8"):
        one[np.arange(lanes) % size > 60] = 0
    body = Body()
    a, v, slots = body.load(lanes, element), reg(lanes, element), reg(groups, element)
    more, kind = "", ""
    if count is not None:
        words = f"{{num_groups = {groups}, group_size = {size}}}"
        m = body.make(f"pto.vmi.create_group_mask {body.constant(count)} {words} : index -> {mask(lanes)}")
        more, kind = f", {m}", f", {mask(lanes)}"
    words = f"{{group = {groups}}}" if groups > 1 else ""
    step = -(-groups * one.itemsize // 32) * 32
    for number, name in enumerate(("vcadd", "vcmax", "vcmin")):
        r = body.make(f"pto.vmi.{name} {a}{more} {words} : {v}{kind} -> {slots}")
        body.store(r, groups, element, byte=OUTPUT + number * step)
        everywhere = body.make(f"pto.vmi.vbrc {r} {words} : {slots} -> {v}")
        body.store(everywhere, lanes, element, byte=OUTPUT + 4096 + number * 8192)
    got = run_body(body, as_bytes(one), 4096 + 3 * 8192)
    active = one.reshape(groups, size)[:, : size if count is None else min(count, size)].astype(np.float64)
    wants = (active.sum(axis=1), active.max(axis=1), active.min(axis=1))
    for number, want in enumerate(wants):
        slot = got[number * step : number * step + groups * one.itemsize].view(one.dtype)
        assert same(slot, want.astype(one.dtype)), number
        wide = got[4096 + number * 8192 :][: one.nbytes].view(one.dtype)
        assert same(wide, np.repeat(want, size).astype(one.dtype)), number


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bf16", "u16"), ("f32", "i32"), ("u16", "u8"), ("f32", "f16"), ("u8", "u32"), ("bf16", "bf16_pair"),
        ("i64", "u8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("bytes_", [32, 256, 480])
def test_reinterpretation_keeps_the_bytes(one: str, other: str, bytes_: int) -> None:
    data = RNG.integers(0, 256, bytes_).astype(np.uint8)
    near, far = bytes_ * 8 // bits(one), bytes_ * 8 // bits(other)
    body = Body()
    r = body.make(f"pto.vmi.vinterpret_cast {body.load(near, one)} : {reg(near, one)} -> {reg(far, other)}")
    body.store(r, far, other)
    assert np.array_equal(run_body(body, data, bytes_), data)


def test_loops_and_conditions_carry_registers_and_masks() -> None:
    """Sums in f32 of rows of f16, with a mask that a loop hands on and a condition that chooses."""
    lanes, rows = 96, 4
    data = RNG.integers(-20, 20, (rows, lanes)).astype(np.float16)
    v, h, m = reg(lanes, "f32"), reg(lanes, "f16"), mask(lanes)
    body = Body("%flag: i32")
    body.before += ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index",
                    "%f0 = arith.constant 0.0 : f32", f"%rows = arith.constant {rows} : index",
                    f"%lanes = arith.constant {lanes} : index",
                    "%n = arith.constant 50 : index", f"%pt = pto.castptr %zero : i64 -> {ptr('f16')}",
                    "%i0 = arith.constant 0 : i32"]  # fmt: skip
    body.inside += [
        f"%none = pto.vmi.vbrc %f0 : f32 -> {v}",
        f"%part = pto.vmi.create_mask %n : index -> {m}",
        f"%all = pto.vmi.create_mask %lanes : index -> {m}",
        "%big = arith.cmpi sgt, %flag, %i0 : i32",
        f"%sum:2 = scf.for %r = %c0 to %rows step %c1 iter_args(%acc = %none, %k = %all) -> ({v}, {m}) {{",
        "  %at = arith.muli %r, %lanes : index",
        f"  %x16 = pto.vmi.vload %pt[%at] : {ptr('f16')} -> {h}",
        f"  %x32 = pto.vmi.vcvt %x16, %k : {h}, {m} -> {v}",
        f"  %next = pto.vmi.vadd %acc, %x32 : {v}, {v} -> {v}",
        f"  scf.yield %next, %part : {v}, {m}",
        "}",
        f"%chosen = scf.if %big -> ({v}) {{",
        f"  %twice = pto.vmi.vadd %sum#0, %sum#0 : {v}, {v} -> {v}",
        f"  scf.yield %twice : {v}",
        f"}} else {{ scf.yield %sum#0 : {v} }}",
    ]
    body.store("%chosen", lanes, "f32")
    want = data[0].astype(np.float32)
    want[:50] += data[1:, :50].astype(np.float32).sum(axis=0)
    for flag, factor in ((1, 2), (0, 1)):
        got = run_body(body, as_bytes(data), 384, {"flag": flag}).view(np.float32)
        assert np.array_equal(got, want * factor)


def test_a_called_function_and_a_scope_that_sees_only_what_it_names() -> None:
    kinds = f"{ptr('f16')}, {ptr('f32')}, index, index"
    h, v, m = reg(100, "f16"), reg(100, "f32"), mask(100)
    callee = f"""func.func private @go(%a: {ptr("f16")}, %b: {ptr("f32")}, %c: index, %d: index) {{
      pto.strict_vecscope(%a, %b, %c, %d) {{
      ^bb0(%p: {ptr("f16")}, %q: {ptr("f32")}, %z: index, %n: index):
        %m = pto.vmi.create_mask %n : index -> {m}
        %v = pto.vmi.vload %p[%z] : {ptr("f16")} -> {h}
        %w = pto.vmi.vcvt %v : {h} -> {v}
        pto.vmi.vstore %w, %q[%z], %m : {v}, {ptr("f32")}, {m}
      }} : ({kinds}) -> ()
      return
    }}
    func.func @f"""
    body = Body()
    body.before += ["%c0 = arith.constant 0 : index", "%c70 = arith.constant 70 : index",
                    f"%in = pto.castptr %zero : i64 -> {ptr('f16')}", f"%out = pto.castptr %far : i64 -> {ptr('f32')}",
                    f"func.call @go(%in, %out, %c0, %c70) : ({kinds}) -> ()"]  # fmt: skip
    text = body.text(256, 512).replace("func.func @f", callee, 1)
    x = RNG.normal(size=128).astype(np.float16)
    got = run_text(text, as_bytes(x), blank(512)).view(np.float32)
    assert np.array_equal(got[:70], x[:70].astype(np.float32))
    assert np.array_equal(as_bytes(got[70:]), blank(232))
    lowered(text)


DRAWN = np.random.default_rng(11)
STORED = {"i8": np.int8, "u16": np.uint16, "f32": np.float32}
SHAPES = [(8, 8), (64, 8), (96, 12), (256, 4), (256, 2), (320, 5), (30, 3), (640, 2), (40, 40), (24, 6)]
"""Lanes and groups: slots, blocks, parts of registers, whole ones, more than one, uneven ones."""


def numbers(element: str, count: int) -> NDArray[np.generic]:
    return DRAWN.integers(0, 100, count).astype(STORED[element])


def rows_of(data: NDArray[np.generic], offset: int, lanes: int, groups: int, stride: int) -> NDArray[np.generic]:
    size = lanes // groups
    return np.concatenate([data[offset + g * stride : offset + g * stride + size] for g in range(groups)])


def access(body: Body, byte: int, element: str, offset: int, stride: int, *, dynamic: bool) -> tuple[str, str]:
    """A pointer with an offset in brackets, and a stride: constants, or what scalar arguments say."""
    where, apart = body.constant(offset), body.constant(stride)
    if dynamic:
        where, apart = (f"%{name}" for name in ("o", "s"))
    return f"{body.pointer(byte, element)}[{where}]", apart


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("lanes", "groups"), SHAPES)
@pytest.mark.parametrize("element", STORED)
def test_rows_that_are_apart(element: str, lanes: int, groups: int, *, dynamic: bool, wide: bool) -> None:
    """Every stride: side by side, aligned, unaligned, overlapping; `wide` ones share lanes with 32 bits."""
    size, unit = lanes // groups, 32 // STORED[element]().itemsize
    for offset, stride in ((0, size), (unit, 2 * size), (0, -(-size // unit) * unit), (3, size + 1), (2 * unit, 0)):
        data = numbers(element, offset + groups * max(stride, 1) + size + 600)
        body = Body("%o: index, %s: index")
        where, apart = access(body, 0, element, offset, stride, dynamic=dynamic)
        kinds = f"{ptr(element)} -> {reg(lanes, element)}"
        value = body.make(f"pto.vmi.vload {where}, {apart} {{group = {groups}}} : {kinds}")
        name, found = element, STORED[element]
        if wide and element != "f32":
            name, found = ("i32", np.int32) if element == "i8" else ("u32", np.uint32)
            value = body.make(f"pto.vmi.vcvt {value} : {reg(lanes, element)} -> {reg(lanes, name)}")
        body.store(value, lanes, name)
        want = rows_of(data, offset, lanes, groups, stride).astype(found)
        args = {"o": offset, "s": stride}
        got = run_body(body, as_bytes(data), -(-want.nbytes // 32) * 32, args)
        assert np.array_equal(got[: want.nbytes].view(found), want), (offset, stride)


@pytest.mark.parametrize("count", [None, 7, 29])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("lanes", "groups"), SHAPES)
@pytest.mark.parametrize("element", STORED)
def test_rows_stored_apart(element: str, lanes: int, groups: int, count: int | None, *, dynamic: bool) -> None:
    size, unit = lanes // groups, 32 // STORED[element]().itemsize
    for offset, stride in ((0, size), (unit, -(-size // unit) * unit), (1, size + 2)):
        if element == "i8" and groups * (size + 2) > 40000:
            continue
        data = numbers(element, lanes)
        body = Body("%o: index, %s: index")
        value = body.load(lanes, element)
        more, kind = masked(body, lanes, count)
        where, apart = access(body, OUTPUT, element, offset, stride, dynamic=dynamic)
        body.line(
            f"pto.vmi.vstore {value}, {where}, {apart}{more} {{group = {groups}}} : "
            f"{reg(lanes, element)}, {ptr(element)}{kind}"
        )
        total = -(-(offset + groups * stride + size + 64) * data.itemsize // 32) * 32
        want = blank(total).copy()
        elements = want.view(STORED[element])
        for lane in range(lanes if count is None else min(count, lanes)):
            elements[offset + lane // size * stride + lane % size] = data[lane]
        got = run_body(body, as_bytes(data), total, {"o": offset, "s": stride})
        assert np.array_equal(got, want), (offset, stride)


@pytest.mark.parametrize("offset", [0, 1, 8, 13, 32])
@pytest.mark.parametrize("lanes", [1, 64, 300])
@pytest.mark.parametrize("element", [*STORED, "i64"])
def test_continuous_rows_anywhere(element: str, lanes: int, offset: int) -> None:
    kind = STORED.get(element, np.int64)
    data = DRAWN.integers(0, 100, lanes + offset).astype(kind)
    body = Body()
    body.store(body.load(lanes, element, offset=offset, words=' {dist_mode = "continuous"}'), lanes, element)
    body.store(body.load(lanes, element), lanes, element, offset=lanes + offset)
    size = (2 * lanes + offset) * data.itemsize
    elements = run_body(body, as_bytes(data), -(-size // 32) * 32)[:size].view(kind)
    assert np.array_equal(elements[:lanes], data[offset:])
    assert np.array_equal(elements[lanes + offset :], data[:lanes])
    assert np.array_equal(as_bytes(elements[lanes : lanes + offset]), blank(offset * data.itemsize))


@pytest.mark.parametrize("lanes", [5, 64, 200, 513])
@pytest.mark.parametrize(("near", "far"), [("u16", "u8"), ("u32", "u8"), ("u32", "u16"), ("i16", "i8")])
@pytest.mark.parametrize("offset", [0, 32, 3])
def test_unpacking_loads_extend_by_zero(near: str, far: str, lanes: int, offset: int) -> None:
    size = int(far[1:]) // 8
    data = DRAWN.integers(0, 256**size, lanes + offset).astype(f"<u{size}")
    body = Body()
    where = f"{body.pointer(0, far)}[{body.constant(offset)}]"
    value = body.make(f'pto.vmi.vload {where} {{dist_mode = "unpack"}} : {ptr(far)} -> {reg(lanes, near)}')
    body.store(value, lanes, near)
    want = data[offset:].astype(f"<u{int(near[1:]) // 8}")
    got = run_body(body, as_bytes(data), -(-want.nbytes // 32) * 32)
    assert np.array_equal(got[: want.nbytes].view(want.dtype), want)


@pytest.mark.parametrize("groups", [None, 1, 4, 20, 100])
@pytest.mark.parametrize("stride", [None, 0, 1, 3])
@pytest.mark.parametrize("element", STORED)
def test_one_element_in_all_lanes(element: str, groups: int | None, stride: int | None) -> None:
    lanes, data = 300, numbers(element, 400)
    body = Body()
    where, words = f"{body.pointer(0, element)}[{body.constant(5)}]", '{dist_mode = "brc"}'
    if groups is not None:
        where += "" if stride is None else f", {body.constant(stride)}"
        words = f'{{dist_mode = "brc", group = {groups}}}'
    value = body.make(f"pto.vmi.vload {where} {words} : {ptr(element)} -> {reg(lanes, element)}")
    body.store(value, lanes, element)
    slots = [data[5 + g * (1 if stride is None else stride)] for g in range(groups or 1)]
    want = np.repeat(np.array(slots, data.dtype), lanes // (groups or 1))
    got = run_body(body, as_bytes(data), -(-want.nbytes // 32) * 32)
    assert np.array_equal(got[: want.nbytes].view(want.dtype), want)


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("count", [None, 20, 75])
@pytest.mark.parametrize("wide", [False, True])
def test_blocks(stride: int, count: int | None, *, wide: bool) -> None:
    """Blocks of 32 bytes, `stride` blocks apart, loaded and stored; masks cut through blocks."""
    lanes, data = 160, numbers("u16", 160 * stride)
    body = Body()
    apart = body.constant(stride, "i16")
    where = f"{body.pointer(0, 'u16')}[{body.constant(0)}]"
    value = body.make(f"pto.vmi.vload {where}, {apart} : {ptr('u16')}, i16 -> {reg(lanes, 'u16')}")
    if wide:
        value = body.make(f"pto.vmi.vcvt {value} : {reg(lanes, 'u16')} -> {reg(lanes, 'u32')}")
        words = '{saturate = "NOSAT"}'
        value = body.make(f"pto.vmi.vcvt {value} {words} : {reg(lanes, 'u32')} -> {reg(lanes, 'u16')}")
    more, kind = masked(body, lanes, count)
    where = f"{body.pointer(OUTPUT, 'u16')}[{body.constant(16)}]"
    body.line(f"pto.vmi.vstore {value}, {where}, {apart}{more} : {reg(lanes, 'u16')}, {ptr('u16')}{kind}")
    want = blank(32 * (10 * stride + 2)).copy()
    for lane in range(lanes if count is None else count):
        place = lane // 16 * 16 * stride + lane % 16
        want.view(np.uint16)[16 + place] = data[place]
    assert np.array_equal(run_body(body, as_bytes(data), want.size), want)


@pytest.mark.parametrize("index", ["u16", "u32", "i32"])
@pytest.mark.parametrize("count", [None, 0, 37])
@pytest.mark.parametrize("element", STORED)
def test_gathers(element: str, index: str, count: int | None) -> None:
    lanes = 130
    data = numbers(element, 512)
    places = DRAWN.integers(0, 500, lanes).astype(f"<u{int(index[1:]) // 8}")
    body = Body()
    named = body.load(lanes, index, byte=16384)
    more, kind = masked(body, lanes, count)
    where = f"{body.pointer(0, element)}[{body.constant(8)}]"
    kinds = f"{ptr(element)}, {reg(lanes, index)}{kind} -> {reg(lanes, element)}"
    value = body.make(f"pto.vmi.vgather {where}, {named}{more} : {kinds}")
    body.store(value, lanes, element)
    given = np.zeros(16384 + 4 * lanes, np.uint8)
    given[: data.nbytes] = as_bytes(data)
    given[16384 : 16384 + places.nbytes] = as_bytes(places)
    want = data[8 + places.astype(np.int64)].copy()
    want[lanes if count is None else count :] = 0
    got = run_body(body, given, -(-want.nbytes // 32) * 32)
    assert np.array_equal(got[: want.nbytes].view(want.dtype), want)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("count", [-3, 0, 5, 64, 200, 5000])
@pytest.mark.parametrize(("lanes", "groups"), [(300, None), (300, 5), (512, 2), (128, 16), (1024, 4), (64, 64)])
def test_masks_of_lanes_and_of_groups(lanes: int, groups: int | None, count: int, *, dynamic: bool) -> None:
    """On 8, 16, 32 and 64 bits: the mask of a store, from a number of the text or of an argument."""
    body, size = Body("%n: index"), lanes // (groups or 1)
    number = "%n" if dynamic else body.constant(count)
    name, words = "create_mask", ""
    if groups is not None:
        name, words = "create_group_mask", f" {{num_groups = {groups}, group_size = {size}}}"
    m = body.make(f"pto.vmi.{name} {number}{words} : index -> {mask(lanes)}")
    data = np.arange(1, 2 * lanes + 1) % 100
    given, want, place = np.zeros(65536, np.uint8), blank(65536).copy(), 0
    for element, kind in (("i8", np.int8), ("i16", np.int16), ("f32", np.float32), ("i64", np.int64)):
        codes = data[:lanes].astype(kind)
        given[place : place + codes.nbytes] = as_bytes(codes)
        body.store(body.load(lanes, element, byte=place), lanes, element, byte=OUTPUT + place, m=m)
        active = np.arange(lanes) % size < count
        want[place : place + codes.nbytes].view(kind)[active] = codes[active]
        place += 16384
    assert np.array_equal(run_body(body, given, want.size, {"n": count}), want)


def test_pairs_count_in_elements_of_their_pointer() -> None:
    data = np.arange(256, dtype=np.uint16)
    body = Body()
    where = f"{body.pointer(0, 'bf16')}[{body.constant(32)}]"
    value = body.make(f"pto.vmi.vload {where} : {ptr('bf16')} -> {reg(70, 'bf16_pair')}")
    body.store(value, 70, "bf16_pair", offset=8)
    got = run_body(body, as_bytes(data), 512).view(np.uint16)
    assert np.array_equal(got[16 : 16 + 140], data[32 : 32 + 140])


@pytest.mark.parametrize(
    ("wide", "narrow"), [("u16", "u8"), ("i16", "u8"), ("i32", "u8"), ("u32", "i8"), ("u32", "u16")]
)
@pytest.mark.parametrize("offset", [0, 32, 3])
def test_stores_of_wider_integers_write_their_low_bits(wide: str, narrow: str, offset: int) -> None:
    lanes, held = 200, np.dtype({"i": "int", "u": "uint"}[wide[0]] + wide[1:])
    kept = np.dtype(f"u{int(narrow[1:]) // 8}")
    data = DRAWN.integers(0, 1 << 8 * held.itemsize, lanes, dtype=np.uint64).astype(held)
    body = Body()
    value = body.load(lanes, wide)
    where = f"{body.pointer(OUTPUT, narrow)}[{body.constant(offset)}]"
    body.line(f"pto.vmi.vstore {value}, {where} : {reg(lanes, wide)}, {ptr(narrow)}")
    got = run_body(body, as_bytes(data), 512).view(kept)
    want = blank(512).view(kept)
    want[offset : offset + lanes] = data.astype(kept)
    assert np.array_equal(got, want)


@pytest.mark.parametrize(("pattern", "count"), [("PAT_ALL", 96), ("PAT_ALLF", 0), ("PAT_VL8", 8), ("PAT_VL128", 96)])
@pytest.mark.parametrize("sign", [":", ":  ->"])
def test_patterns_and_older_names_of_accesses(pattern: str, count: int, sign: str) -> None:
    data, body = numbers("f32", 96), Body()
    where = f"{body.pointer(0, 'f32')}[{body.constant(0)}]"
    value = body.make(f"pto.vmi.load {where} : {ptr('f32')} -> {reg(96, 'f32')}")
    m = body.make(f'pto.vmi.pset "{pattern}" {sign} {mask(96)}')
    where = f"{body.pointer(OUTPUT, 'f32')}[{body.constant(0)}]"
    body.line(f"pto.vmi.store {value}, {where}, {m} : {reg(96, 'f32')}, {ptr('f32')}, {mask(96)}")
    want = blank(384).view(np.float32)
    want[:count] = data[:count]
    assert np.array_equal(run_body(body, as_bytes(data), 384), want.view(np.uint8))

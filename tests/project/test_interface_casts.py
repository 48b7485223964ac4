"""Type pairs that one text of the vendor has and another refuses: an option, and exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.work_programs import NATIVE, Spot, computed, noise, program, statement, target, walked

import castsim
from castsim.engines import simulate
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Saturation
from castsim.isa.pto.value_types import element_format
from castsim.machines.strided.plan import plan_cast, scratch_need

ACCEPT = ("interface_casts", "accept")


def cast(
    src: str, dst: str, values: np.ndarray, *options: tuple[str, str], saturation: str | None = None
) -> np.ndarray:
    spots = [Spot("x", src, 2, 128, 0), Spot("y", dst, 2, 128, 0x8000)]
    before = noise(target("a5"), 2)
    spots[0].put(before, values.astype(NATIVE[src]))
    more = "" if saturation is None else f", sat_mode = #pto<saturation_mode {saturation}>"
    text = f"pto.tcvt ins(%x {{rmode = #pto<round_mode RINT>{more}}} : {spots[0].type}) outs(%y : {spots[1].type})"
    return spots[1].get(computed(program(text, spots), target("a5", *options), before))


@pytest.mark.parametrize(("src", "dst"), [("ui8", "ui32"), ("ui16", "ui32"), ("ui16", "ui8")])
def test_pairs_of_the_interface(src: str, dst: str) -> None:
    top = np.iinfo(NATIVE[src]).max
    values = np.random.default_rng(1).integers(0, top + 1, (2, 128)).astype(NATIVE[src])
    values[0, :6] = 0, 1, 255, top, top // 2 + 1, top - 1
    with pytest.raises(IllegalError, match=r"a5 has no cast") as caught:
        cast(src, dst, values)
    assert any("interface_casts=accept" in each for each in caught.value.legal)
    values = values.astype(np.int64)
    wanted = np.minimum(values, np.iinfo(NATIVE[dst]).max)
    assert cast(src, dst, values, ACCEPT).tolist() == wanted.tolist()
    assert cast(src, dst, values, ACCEPT, saturation="ON").tolist() == wanted.tolist()
    low = values & np.iinfo(NATIVE[dst]).max
    assert cast(src, dst, values, ACCEPT, saturation="OFF").tolist() == low.tolist()


def test_no_other_pair_is_let_through() -> None:
    with pytest.raises(IllegalError, match="a5 has no cast"):
        cast("ui16", "i8", np.zeros((2, 128), np.uint16), ACCEPT)


@pytest.mark.parametrize("dst", ["i8", "ui8"])
@pytest.mark.parametrize("shape", [(256, 128, 128), (3, 256, 200), (260, 64, 33), (1, 128, 1)], ids=str)
@pytest.mark.parametrize("first", [-32768, 0])
def test_narrowing_of_the_interface_on_a2a3(dst: str, shape: tuple[int, int, int], first: int) -> None:
    """Every i16 in two programs of the first shape: clamped, or its low byte; the formula sizes the tile."""
    rows, cols, valid = shape
    values = np.arange(first, first + rows * cols).reshape(rows, cols).astype(np.int16)
    x, y = (Spot(n, e, rows, cols, at, (rows, valid)) for n, e, at in (("x", "i16", 0), ("y", dst, 0x20000)))
    legal = np.iinfo(NATIVE[dst])
    for mode, wanted in (("ON", np.clip(values, legal.min, legal.max)), ("OFF", values.astype(NATIVE[dst]))):
        chip = target("a2a3", ACCEPT)
        plan = plan_cast(chip, *map(element_format, ("i16", dst)), None, Saturation(mode.lower()), scratch=True)
        tmp = Spot("t", "i8", 1, scratch_need(plan, chip.repeat, rows, valid, cols).total, 0x2F000)
        attribute = f"{{sat_mode = #pto<saturation_mode {mode}>}}"
        before = noise(chip, 2)
        x.put(before, values)
        text = program(statement("tcvt", (x, tmp), y, attribute), (x, y, tmp))
        after = computed(text, chip, before)
        assert np.array_equal(y.get(after), wanted[:, :valid])
        assert np.array_equal(after[tmp.end :], before[tmp.end :])
        tree = walked(text, chip).tree
        event, fast = (simulate(tree, chip, engine=name) for name in ("event", "fast"))
        assert event.total == fast.total


def test_narrowing_on_a2a3_needs_the_option_and_a_tmp_tile() -> None:
    x, y = Spot("x", "i16", 2, 128, 0), Spot("y", "i8", 2, 128, 0x8000)
    text = program(statement("tcvt", (x,), y), (x, y))
    with pytest.raises(IllegalError, match="a2a3 has no cast i16 -> i8") as caught:
        walked(text, target("a2a3"))
    assert any("interface_casts=accept" in each for each in caught.value.legal)
    with pytest.raises(IllegalError, match="always needs a tmp tile"):
        walked(text, target("a2a3", ACCEPT))


# ------------------------------------------------------------------------------------------- vcvt, over every code

TEXT = """
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @cast(%x: !pto.ptr<{a}, gm>, %y: !pto.ptr<{b}, gm>) attributes {{pto.kernel}} {{
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %step = arith.constant 128 : index
    %end = arith.constant {end} : index
    %zero = arith.constant 0 : i64
    %times = arith.constant 1 : i64
    %read = arith.constant {read} : i64
    %written = arith.constant {written} : i64
    %far = arith.constant 0x20000 : i64
    %from = pto.castptr %zero : i64 -> !pto.ptr<{a}, ub>
    %to = pto.castptr %far : i64 -> !pto.ptr<{b}, ub>
    pto.mte_gm_ub %x, %from, %zero, %read nburst(%times, %read, %read)
      : !pto.ptr<{a}, gm>, !pto.ptr<{a}, ub>, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.vecscope {{
      %mask = pto.pset_b{bits} "PAT_ALL" : !pto.mask<b{bits}>
      %m16 = pto.pset_b16 "PAT_ALL" : !pto.mask<b16>
      scf.for %i = %c0 to %end step %step {{
        %v = pto.vlds %from[%i] {load} : !pto.ptr<{a}, ub> -> {va}
        %r = pto.vcvt %v, %mask {{{words}}} : {va}, !pto.mask<b{bits}> -> {vb}
        pto.vsts %r, %to[%i], %m16 {store} : {vb}, !pto.ptr<{b}, ub>, !pto.mask<b16>
      }}
    }}
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %to, %y, %written nburst(%times, %written, %written)
      : !pto.ptr<{b}, ub>, !pto.ptr<{b}, gm>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }}
}}
"""
SHOWN = {"bf16": ("bf16", 16), "f16": ("f16", 16), "e8m0": ("!pto.f8E8M0", 8)}


def converted(folder: Path, src: str, dst: str, codes: np.ndarray, words: str, *options: tuple[str, str]) -> np.ndarray:
    (a, wide), (b, narrow) = SHOWN[src], SHOWN[dst]
    text = TEXT.format(
        a=a, b=b, bits=wide, end=codes.size, read=codes.nbytes, written=codes.size * narrow // 8, words=words,
        va=f"!pto.vreg<{2048 // wide}x{a}>", vb=f"!pto.vreg<{2048 // narrow}x{b}>",
        load='{dist = "UNPK_B8"}' if wide < narrow else "", store='{dist = "PK_B16"}' if narrow < wide else "",
    )  # fmt: skip
    (folder / "cast.pto").write_text(text, encoding="utf-8")
    found = castsim.run(folder / "cast.pto", target("a5", *options), inputs={"x": codes})
    return found.outputs["y"].view(f"u{narrow // 8}")


def exponent(code: int, rounding: str, *, saturating: bool) -> int:
    """Convert a bf16 code to e8m0 by the definition: exact arithmetic, the exponent rounded as a real number."""
    x = float(np.uint16(code).view(ml_dtypes.bfloat16))
    if not x > 0:
        return 255
    if x == float("inf"):
        return 254 if saturating else 255
    fraction, above = math.frexp(x)
    e = above - 1
    if e < -127:
        return 0 if saturating else 255
    if fraction != 0.5:
        if e == 127:
            return 254 if saturating else 255
        nearest = int(Fraction(fraction) ** 2 * 4 > 2)
        e += {"R": nearest, "A": nearest, "F": 0, "C": 1, "Z": int(e < 0), "O": int(e % 2 == 0)}[rounding]
    return e + 127


@pytest.mark.parametrize("rounding", "RAFCZO")
@pytest.mark.parametrize("sat", ["SAT", "NOSAT"])
def test_every_bf16_becomes_an_exponent(rounding: str, sat: str, tmp_path: Path) -> None:
    codes = np.arange(1 << 16).astype(np.uint16)
    words = f'rnd = "{rounding}", sat = "{sat}", part = "EVEN"'
    found = converted(tmp_path, "bf16", "e8m0", codes, words, ACCEPT)
    assert found.tolist() == [exponent(code, rounding, saturating=sat == "SAT") for code in codes]


@pytest.mark.parametrize(
    ("src", "dst", "words"), [("e8m0", "bf16", 'part = "EVEN"'), ("f16", "bf16", 'rnd = "R", sat = "NOSAT"')]
)
def test_every_code_becomes_the_bf16_of_ml_dtypes(src: str, dst: str, words: str, tmp_path: Path) -> None:
    codes = np.arange(1 << SHOWN[src][1]).astype(f"u{SHOWN[src][1] // 8}")
    kind = ml_dtypes.float8_e8m0fnu if src == "e8m0" else np.float16
    values = codes.view(kind).astype(np.float32).astype(ml_dtypes.bfloat16)
    found = converted(tmp_path, src, dst, codes, words, ACCEPT).view(ml_dtypes.bfloat16)
    nan = np.isnan(values.astype(np.float32))
    assert np.array_equal(np.isnan(found.astype(np.float32)), nan)
    assert np.array_equal(found.view(np.uint16)[~nan], values.view(np.uint16)[~nan])
    with pytest.raises(IllegalError, match=f"vcvt {src} -> {dst}: the vendor's verifier rejects") as caught:
        converted(tmp_path, src, dst, codes[:128], words)
    assert any("interface_casts=accept" in each for each in caught.value.legal)

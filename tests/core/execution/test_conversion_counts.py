"""What conversions of vector instructions and of the TPC did to their numbers, counted from arrays in and out.

The oracle is that of `test_outcomes`: exact fractions, and the definitions of the glossary.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from core.running.test_outcomes import counted, exact
from makers.expected_files import PROGRAMS
from numpy.typing import NDArray

from castsim.execution.outcomes import Outcomes
from castsim.running.program_runs import Result, run

Codes = NDArray[np.generic]

EVERY = np.arange(1 << 16, dtype=np.uint16)
SPELLED = {"e4m3fn": "f8E4M3FN", "e5m2": "f8E5M2", "u8": "ui8"}
NATIVE = {"f16": np.float16, "i16": np.int16, "i8": np.int8, "f32": np.float32}


def bits(name: str) -> int:
    return 8 if name in ("e4m3fn", "e5m2", "f8_143", "f8_152") else int(name.lstrip("biuf"))


def codes_of(array: Codes) -> NDArray[np.unsignedinteger]:
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")


def given(codes: Codes, name: str) -> Codes:
    """Codes as the array that a run takes."""
    return codes.view(NATIVE[name]) if name in NATIVE else codes


@cache
def number(code: int, name: str) -> Fraction | float:
    return exact(code, name)


def judged(before: Codes, after: Codes, src: str, dst: str, rounding: str, overflow: str) -> Outcomes:
    """The outcomes of elements by the oracle."""
    xs, ys = ([number(code, name) for code in array.tolist()] for array, name in ((before, src), (after, dst)))
    return counted(xs, ys, dst, rounding, overflow)


def total(result: Result) -> Outcomes:
    found = Outcomes()
    for each in result.casts.values():
        found.add(each)
    return found


# ------------------------------------------------------------------------------------------------ vector instructions

MICRO = """
module attributes {pto.target_arch = "a5"} {
  func.func @cast(%x: !pto.ptr<SRC, gm>, %y: !pto.ptr<DST, gm>) attributes {pto.kernel} {
    %l0 = arith.constant 0 : i64
    %l1 = arith.constant 1 : i64
    %in = arith.constant IN : i64
    %out = arith.constant OUT : i64
    %far = arith.constant 65536 : i64
    %c0 = arith.constant 0 : index
    %n = arith.constant COUNT : index
    %step = arith.constant LANES : index
    %count = arith.constant COUNT : i32
    %ux = pto.castptr %l0 : i64 -> !pto.ptr<SRC, ub>
    %uy = pto.castptr %far : i64 -> !pto.ptr<DST, ub>
    pto.mte_gm_ub %x, %ux, %l0, %in nburst(%l1, %in, %in) : !pto.ptr<SRC, gm>, !pto.ptr<SRC, ub>, FIVE
    pto.vecscope {
      %all = pto.pset_bSMASK "PAT_ALL" : !pto.mask<bSMASK>
      %end = scf.for %i = %c0 to %n step %step iter_args(%left = %count) -> (i32) {
        %p, %rest = pto.plt_bMASK %left : i32 -> !pto.mask<bMASK>, i32
        %v = pto.vlds %ux[%i] LOAD: !pto.ptr<SRC, ub> -> !pto.vreg<SLANESxSRC>
        %h = pto.vcvt %v, %GOVERN {WORDS} : !pto.vreg<SLANESxSRC>, !pto.mask<bSMASK> -> !pto.vreg<DLANESxDST>
        pto.vsts %h, %uy[%i], %p STORE: !pto.vreg<DLANESxDST>, !pto.ptr<DST, ub>, !pto.mask<bMASK>
        scf.yield %rest : i32
      }
    }
    pto.mte_ub_gm %uy, %y, %out nburst(%l1, %out, %out) : !pto.ptr<DST, ub>, !pto.ptr<DST, gm>, i64, i64, i64, i64
    return
  }
}
"""


def micro(src: str, dst: str, count: int, **words: str) -> str:
    """A program that converts `count` elements: unpacked before they widen, packed when they have become narrow."""
    wide = max(bits(src), bits(dst))
    load = f'{{dist = "UNPK_B{bits(src)}"}} ' if bits(dst) > bits(src) else ""
    store = f'{{dist = "PK_B{wide}"}} ' if bits(dst) < bits(src) else ""
    values = {
        "SLANES": 2048 // bits(src), "DLANES": 2048 // bits(dst), "LANES": 2048 // wide, "COUNT": count,
        "WORDS": ", ".join(f'{key} = "{word}"' for key, word in words.items()), "SMASK": bits(src), "MASK": wide,
        "GOVERN": "all" if bits(dst) > bits(src) else "p", "LOAD": load,
        "STORE": store, "IN": count * bits(src) // 8, "OUT": count * bits(dst) // 8, "SRC": SPELLED.get(src, src),
        "DST": SPELLED.get(dst, dst),
    }  # fmt: skip
    text = MICRO.replace("FIVE", ", ".join(["i64"] * 5))
    for key, value in values.items():
        text = text.replace(key, str(value))
    return text


def ran(tmp_path: Path, text: str, x: Codes, ending: str = "pto", **options: object) -> Result:
    path = tmp_path / f"cast.{ending}"
    path.write_text(text)
    return run(path, inputs={"x": x}, **options)


VECTOR = [
    ("f16", "i8", "F", "floor", "NOSAT", "wrap"), ("f16", "u8", "R", "rint", "SAT", "saturate"),
    ("f16", "e4m3fn", "Z", "trunc", "SAT", "saturate"), ("bf16", "f16", "C", "ceil", "NOSAT", "special"),
    ("f16", "f32", "", "rint", "", "special"), ("i16", "u8", "", "rint", "NOSAT", "wrap"),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "letter", "rounding", "word", "overflow"), VECTOR)
def test_vector_conversions_of_all_inputs_of_16_bits(
    tmp_path: Path, src: str, dst: str, letter: str, rounding: str, word: str, overflow: str
) -> None:
    part = "EVEN" if bits(dst) != 16 else ""
    words = {key: text for key, text in (("rnd", letter), ("sat", word), ("part", part)) if text}
    text, found, after = micro(src, dst, 1 << 14, **words), Outcomes(), []
    for quarter in np.split(EVERY, 4):
        result = ran(tmp_path, text, given(quarter, src))
        found.add(total(result))
        after.append(codes_of(result.outputs["y"]))
    assert found == judged(EVERY, np.concatenate(after), src, dst, rounding, overflow)


def numbers(count: int, seed: int = 3) -> NDArray[np.float32]:
    generator = np.random.default_rng(seed)
    pool = generator.standard_normal(count) * 10.0 ** generator.integers(-4, 7, count)
    pool[:3] = np.inf, -np.inf, np.nan
    return generator.permutation(pool).astype(np.float32)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_lanes_without_predicate_do_not_count(tmp_path: Path, count: int) -> None:
    """Behind the last element the buffer holds other numbers, which the last trip loads and does not convert."""
    x = numbers(256)
    text = micro("f32", "f16", 256, rnd="R", sat="SAT", part="EVEN")
    part = text.replace("constant 256 : index", f"constant {count} : index")
    part = part.replace("constant 256 : i32", f"constant {count} : i32")
    result = ran(tmp_path, part, x)
    y = codes_of(result.outputs["y"])[:count]
    (found,) = result.casts.values()
    assert found == judged(codes_of(x[:count]), y, "f32", "f16", "rint", "saturate")


def test_parts_count_line_by_line() -> None:
    x = numbers(512)
    result = run(PROGRAMS / "micro" / "f32_to_e4m3fn_quarters.pto", inputs={"x": x})
    before, after = codes_of(x), codes_of(result.outputs["y"])
    assert [place.line for place in result.casts] == sorted(place.line for place in result.casts)
    for part, (place, found) in enumerate(result.casts.items()):
        assert (place.op, place.src, place.dst) == ("vcvt f32 -> e4m3fn", "f32", "e4m3fn")
        assert found == judged(before[part::4], after[part::4], "f32", "e4m3fn", "rint", "saturate")


def test_bytes_that_nothing_wrote_do_not_count(tmp_path: Path) -> None:
    x = numbers(256)
    text = micro("f32", "f16", 256, rnd="R", sat="SAT", part="EVEN")
    result = ran(tmp_path, text.replace("constant 1024 : i64", "constant 400 : i64"), x[:100])
    assert total(result).elements == 100


def test_logical_registers_count_what_their_instructions_convert(tmp_path: Path) -> None:
    x = numbers(256)
    text = (PROGRAMS / "micro" / "logical" / "quantise_int8.pto").read_text().replace("i8", "f16")
    text = text.replace("constant 256 : i64", "constant 512 : i64")
    result = ran(tmp_path, text, x, args={"scale": 1.0})
    (found,) = result.casts.values()
    assert found == judged(codes_of(x), codes_of(result.outputs["y"]), "f32", "f16", "rint", "saturate")
    widened = run(PROGRAMS / "micro" / "logical" / "dequantise_tail.pto", inputs={"x": "zeros"}, args={"scale": 2.0})
    assert list(widened.casts.values()) == [Outcomes(256)]


# --------------------------------------------------------------------------------------------------------------- TPC

WAIT = "nop; nop; nop; nop\n" * 6


def tpc(src: str, dst: str, rows: int, body: str, target: str = "gaudi2") -> str:
    """A program that loads rows of a register each into V0 and stores V4; `body` is what stands between."""
    return (
        f"// castsim: target {target}\n"
        f"// castsim: tensor 0 x in {src} [{2048 // bits(src)}, {rows}]\n"
        f"// castsim: tensor 1 y out {dst} [{2048 // bits(dst)}, {rows}]\n"
        "// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg I1 = [0, 0, 0, 0, 0]\n"
        f"nop; loop 0, {rows}, 1, <, End; nop; nop\nnop; nop; nop; nop\n"
        f"ld_tnsr V0, 0x0, I0; nop; nop; nop\nnop; add.i32 b00010 I0, 0x1, I0; nop; nop\n{WAIT}"
        f"{body}\n{WAIT}nop; nop; nop; st_tnsr 0x1, I1, V4\nnop; add.i32 b00010 I1, 0x1, I1; nop; nop\n{WAIT}"
        "End:\nnop; halt; halt; nop\n"
    )


TPC = [
    ("f16", "i16", "rhne", "rint", "saturate"), ("bf16", "f16", "ru", "ceil", "special"),
    ("f16", "bf16", "rz", "trunc", "special"), ("bf16", "u16", "rd", "floor", "saturate"),
    ("bf16", "f16", "clip_fp rhne", "rint", "saturate"),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "words", "rounding", "overflow"), TPC)
def test_tpc_conversions_of_all_inputs_of_16_bits(
    tmp_path: Path, src: str, dst: str, words: str, rounding: str, overflow: str
) -> None:
    names = {"i16": "int16", "u16": "uint16"}
    body = f"nop; nop; convert.{src} target_type={names.get(dst, dst)} {words} V4, V0; nop"
    result = ran(tmp_path, tpc(src, dst, 512, body), given(EVERY, src).reshape(512, 128), "tpc")
    (place,) = result.casts
    assert (place.op, place.src, place.dst) == (f"convert {src} -> {dst}", src, dst)
    assert result.casts[place] == judged(EVERY, codes_of(result.outputs["y"]), src, dst, rounding, overflow)


def test_tpc_lanes_count_where_the_instruction_converts_them(tmp_path: Path) -> None:
    """Two registers of 64 elements into the even and odd lanes of one: each instruction converts 64."""
    x = numbers(512).reshape(8, 64)
    result = run(PROGRAMS / "tpc_f32_i16_quantise_gaudi2.tpc", inputs={"x": np.repeat(x, 2, axis=0)})
    scaled = np.repeat(x, 2, axis=0) * np.array([0x43AA2000], "<u4").view(np.float32)[0]
    y = codes_of(result.outputs["y"]).reshape(8, 64, 2)
    assert len(result.casts) == 2
    for lane, found in enumerate(result.casts.values()):
        before, after = codes_of(scaled[lane::2]), np.ascontiguousarray(y[:, :, lane]).reshape(-1)
        assert found == judged(before, after, "f32", "i16", "rint", "saturate")


def test_tpc_all_lanes_of_a_pair_count(tmp_path: Path) -> None:
    x = numbers(1024).reshape(16, 64)
    result = run(PROGRAMS / "tpc_f32_bf16_packed_gaudi.tpc", inputs={"x": x})
    (found,) = result.casts.values()
    assert found == judged(codes_of(x), codes_of(result.outputs["y"]), "f32", "bf16", "rint", "special")


def test_tpc_predicates_leave_lanes_out(tmp_path: Path) -> None:
    """Bits of a vector predicate, polarities, and a scalar predicate that is false."""
    x = np.tile(np.array([0.5, 300.0, 40000.0, 1.0], np.float16), 32).reshape(1, 128)
    body = (
        "nop; nop; mov.i32 V4, 0x0; nop\nnop; nop; cmp_grt.f16 VP1, V0, 0x5800; nop\n" + WAIT  # 128
        + "nop; nop; convert.f16 target_type=int16 rhne V4, V0, VP1; nop\n" + WAIT
        + "nop; nop; convert.f16 target_type=int16 rhne V4, V0, !VP1; nop\n" + WAIT
        + "nop; nop; convert.f16 target_type=int16 rhne V4, V0, !SP0; nop\n"
    )  # fmt: skip
    result = ran(tmp_path, tpc("f16", "i16", 1, body), x, "tpc")
    assert list(result.casts.values()) == [Outcomes(64, clamped=32), Outcomes(64, rounded=32)]


@pytest.mark.parametrize("shift", [0, -3, -20, 2])
def test_tpc_narrowing_judges_shifted_numbers(tmp_path: Path, shift: int) -> None:
    """All 16-bit integers times a power of two, rounded once to 8 bits, kept in every second byte."""
    body = f"nop; nop; convert_int16 rhne V4, V0, {shift % 2**32:#x}; nop"
    result = ran(tmp_path, tpc("i16", "i8", 512, body), EVERY.view(np.int16).reshape(512, 128), "tpc")
    after = codes_of(result.outputs["y"]).reshape(512, 256)[:, ::2].reshape(-1)
    xs = [Fraction(x) * Fraction(2) ** shift for x in EVERY.view(np.int16).tolist()]
    (found,) = result.casts.values()
    assert found == counted(xs, [exact(code, "i8") for code in after.tolist()], "i8", "rint", "saturate")


def test_tpc_scalar_conversions_count_one_number_each(tmp_path: Path) -> None:
    body = "nop; mov.i32 S1, 0x40200000; nop; nop\n" + WAIT + "nop; convert.f32 target_type=int32 rhne S2, S1; nop; nop"
    result = ran(tmp_path, tpc("f32", "f32", 3, body), np.zeros((3, 64), np.float32), "tpc")
    assert list(result.casts.values()) == [Outcomes(3, rounded=3)]  # 2.5

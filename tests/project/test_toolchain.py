"""What versions of the assembler and texts of the vendor decide: saturation, tmp tiles, pairs that one text refuses.

Expected values are NumPy's, the oracle's or exact arithmetic; sizes of tmp tiles are those of docs/reference/pto.md
section 1.3."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.cast_kernels import FLOATS, INTEGERS, OFF, ON, chip, codes, given, integer_result, kernel, outputs
from kit.command_output import document_of, err_of, file_of, out_of
from kit.work_programs import NATIVE, Spot, computed, noise, program, statement, target, walked

import castsim
from castsim import run
from castsim.engines import simulate
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Saturation
from castsim.isa.pto.value_types import element_format
from castsim.machines.strided.plan import plan_cast, scratch_need

VERSIONS = ("older", "2026-05", "2026-07", "2026-08")
OFF_BY_DEFAULT = ("2026-05", "2026-07")
MATTER_A5 = {("f32", "i32"), ("f32", "i64"), ("f16", "i32"), ("bf16", "i32"), ("i16", "ui8"), ("i32", "ui16"),
             ("i32", "ui8"), ("ui32", "ui16"), ("ui32", "i16"), ("ui32", "ui8")}  # fmt: skip
"""Pairs whose library default is ON and that obey OFF (docs/reference/a5.md section 4)."""
DEFAULT_OFF = (("f32", "i16"), ("f16", "i16"), ("f16", "i8"), ("f16", "ui8"), ("i32", "i16"), ("i64", "i32"))


# ------------------------------------------------------------------------------------------------------- saturation


@pytest.mark.parametrize("pair", sorted(MATTER_A5))
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("words", ["", ON, OFF])
def test_an_absent_saturation_on_a5(pair: tuple[str, str], version: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    trunc = "" if pair[0] in INTEGERS else "rmode = #pto<round_mode TRUNC>"
    file.write_text(kernel(pair, ((4, 64), (4, 64)), ", ".join(filter(None, (trunc, words)))))
    x = given(pair[0], (4, 64))
    result, found = outputs(file, chip("a5", toolchain=version), {"x": x})
    wraps = words == OFF or (not words and version in OFF_BY_DEFAULT)
    assert np.array_equal(found["y"], integer_result(x, pair[1], wraps=wraps))
    choices = [choice for choice, _ in result.choices]
    assert [(choice.option, choice.value) for choice in choices] == ([] if words else [("toolchain", version)])


@pytest.mark.parametrize("pair", [*DEFAULT_OFF, ("f32", "f16"), ("f32", "f32"), ("i16", "i32")])
@pytest.mark.parametrize("version", [each for each in VERSIONS if each != "2026-08"])
def test_where_both_mean_the_same_nothing_changes_and_nothing_is_said(
    pair: tuple[str, str], version: str, tmp_path: Path
) -> None:
    file = tmp_path / "k.pto"
    file.write_text(kernel(pair, ((4, 64), (4, 64))))
    x = given(pair[0], (4, 64))
    result, found = outputs(file, chip("a5", toolchain=version), {"x": x})
    older, values = outputs(file, chip("a5"), {"x": x})
    assert np.array_equal(found["y"], values["y"])
    assert result.timing == older.timing
    assert result.warnings == older.warnings
    assert not result.choices


@pytest.mark.parametrize("version", ["older", "2026-05"])
@pytest.mark.parametrize("pair", [("f32", "i32"), ("f16", "i32"), ("f32", "i16"), ("f32", "f16")])
def test_a2a3_obeys_off_without_tmp_in_the_narrowing_pairs_alone(
    pair: tuple[str, str], version: str, tmp_path: Path
) -> None:
    file = file_of(tmp_path / "k.pto", kernel(pair, ((4, 64), (4, 64)), arch="a3"))
    x = given(pair[0], (4, 64))
    result, found = outputs(file, chip("a2a3", toolchain=version), {"x": x})
    _, values = outputs(file, chip("a2a3"), {"x": x})
    assert np.array_equal(found["y"], values["y"])
    assert not result.choices
    without_tmp = [each for each in result.warnings if "saturation" in each]  # f32 -> i16 has a path with tmp
    assert len(without_tmp) == (pair == ("f32", "i16"))
    assert all("f32 -> i16 with saturation OFF" in each for each in without_tmp)


@pytest.mark.parametrize(("version", "wraps"), [("older", False), ("2026-05", True)])
def test_with_tmp_a2a3_obeys_off_everywhere(version: str, wraps: bool, tmp_path: Path) -> None:
    text = kernel(("f32", "i32"), ((4, 64), (4, 64)), "rmode = #pto<round_mode TRUNC>", arch="a3")
    tmp = "!pto.tile_buf<vec, 1x1024xi8>"
    text = text.replace("pto.tcvt ins(%xt {", f"%t = pto.alloc_tile : {tmp}\npto.tcvt ins(%xt, %t {{")
    text = text.replace("} : !pto.tile_buf<vec, 4x64xf32>)", f"}} : !pto.tile_buf<vec, 4x64xf32>, {tmp})")
    file = file_of(tmp_path / "k.pto", text)
    x = np.where(np.arange(256) % 2, 3.7e9, -7.5).astype(np.float32).reshape(4, 64)
    result, found = outputs(file, chip("a2a3", toolchain=version), {"x": x})
    assert np.array_equal(found["y"], integer_result(x, "i32", wraps=wraps))
    ((choice, span),) = result.choices
    assert (choice.option, choice.value) == ("toolchain", version)
    assert "tcvt" in span.text


@pytest.mark.parametrize("pair", DEFAULT_OFF)
def test_the_assembler_of_august_saturates_by_default(pair: tuple[str, str], tmp_path: Path) -> None:
    """Where the library's own default is OFF, values change; the report says so."""
    file = tmp_path / "k.pto"
    trunc = "" if pair[0] in INTEGERS else "rmode = #pto<round_mode TRUNC>"
    file.write_text(kernel(pair, ((4, 64), (4, 64)), trunc))
    x = given(pair[0], (4, 64))
    result, found = outputs(file, chip("a5", toolchain="2026-08"), {"x": x})
    assert np.array_equal(found["y"], integer_result(x, pair[1], wraps=False))
    assert "which is ON" in result.choices[0][0].effect


@pytest.mark.parametrize(("version", "word"), [("2026-08", OFF), ("2026-07", OFF)])
def test_bf16_to_f16_is_left_without_saturation(version: str, word: str, tmp_path: Path) -> None:
    """As if the text said OFF, also where option `ctrl_60_at_start` makes the saturation of this pair count."""
    x = (np.exp2(np.arange(256, dtype=np.float32).reshape(4, 64) - 128)).astype(FLOATS["bf16"])
    found = []
    for toolchain, words in ((version, ""), ("older", word)):
        file = file_of(tmp_path / "k.pto", kernel(("bf16", "f16"), ((4, 64), (4, 64)), words))
        target = chip("a5", toolchain=toolchain, ctrl_60_at_start=1)
        found.append(outputs(file, target, {"x": x})[1]["y"])
    assert np.array_equal(*found)
    assert np.isinf(found[0].view(np.float16)).any()


# ---------------------------------------------------------------------------------------------------------- reports


def test_the_report_says_what_was_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.pto"
    text = kernel(("f32", "i32"), ((8, 64), (8, 64)))
    file.write_text(text)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "tcvt" in each)
    words = ["run", str(file), "--timing-only", "--toolchain", "2026-05"]
    assert "toolchain = 2026-05 (also older, 2026-07, 2026-08: --toolchain)" in out_of(
        capsys, [*words, "--report", "full"]
    )
    assert "results depend on --toolchain 2026-05" in out_of(capsys, words)
    (choice,) = document_of(capsys, *words)["choices"]
    assert choice == {
        "option": "toolchain",
        "value": "2026-05",
        "legal": list(VERSIONS),
        "effect": "f32 -> i32 does not set saturation, which is OFF: OFF since 2026-05, ON since 2026-08, the "
        "library's default before",
        "lines": [line],
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--toolchain", "2025"], "option toolchain cannot be '2025'"),
        (["--toolchain", "2026-05", "--option", "toolchain=older"], "contradict each other"),
        (["--backend", "vpto", "--target", "a2a3"], "a2a3 has no option 'backend'"),
    ],
)
def test_options_that_are_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.pto"
    file.write_text(kernel(("f32", "i32"), ((8, 64), (8, 64))))
    assert message in err_of(capsys, ["run", str(file), "--timing-only", *words])


def test_older_is_the_default(tmp_path: Path) -> None:
    file = file_of(tmp_path / "k.pto", kernel(("f32", "i32"), ((8, 64), (8, 64))))
    x = given("f32", (8, 64))
    plain, older = (run(file, inputs={"x": x}, **more).outputs["y"] for more in ({}, {"toolchain": "older"}))
    assert codes(plain).tolist() == codes(older).tolist()


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


def test_no_other_pair_is_let_through() -> None:
    with pytest.raises(IllegalError, match="a5 has no cast"):
        cast("ui16", "i8", np.zeros((2, 128), np.uint16), ACCEPT)

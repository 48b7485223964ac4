"""What operations beside casts do to their numbers: quantising, saturating arithmetic, rounding to integral values.

Expected counts: NumPy on the same operands, after docs/reference/pto.md section 7.12, docs/reference/a5.md section 7
(saturation: infinity becomes the largest number, NaN becomes 0) and docs/reference/tpc.md section 5.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.command_output import document_of, out_of
from kit.paths import VECTORS

Capture = pytest.CaptureFixture[str]
OUTCOMES = ("rounded", "clamped", "wrapped", "overflow", "nan")


def counted(
    folder: Path, capsys: Capture, words: list[str], **inputs: np.ndarray
) -> dict[tuple[str, str, str], dict[str, int]]:
    """The counts of every cast row that are not zero, by operation and formats, and its elements."""
    given = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        given += ["--in", f"{name}={folder / f'{name}.npy'}"]
    rows = document_of(capsys, "run", *words, *given).get("casts", [])
    return {
        (row["op"].split()[0], row["src"], row["dst"]): {
            name: row[name] for name in ("elements", *OUTCOMES) if row[name] or name == "elements"
        }
        for row in rows
    }


def test_a_quantisation_counts_what_it_rounds_and_clamps(tmp_path: Path, capsys: Capture) -> None:
    """The scale is 127 divided by the largest magnitude of a row, its product with the numbers rounded to f32."""
    src = np.random.default_rng(1).standard_normal((32, 512)).astype(np.float16)
    src[0, 0], src[1, 0] = 0, 0
    program = [str(VECTORS / "headlines/absmax_tquant.pto"), "--target", "a5"]
    wide = src.astype(np.float32)
    scale = (np.float32(127) / np.abs(wide).max(axis=1, keepdims=True)).astype(np.float32)
    product = wide * scale
    found = counted(tmp_path, capsys, program, src=src)
    assert found["tquant", "f32", "i8"] == {
        "elements": src.size, "rounded": int(np.count_nonzero(product != np.rint(product)))
    }  # fmt: skip
    np.save(tmp_path / "src.npy", src)
    text = out_of(capsys, ["run", *program, "--in", f"src={tmp_path / 'src.npy'}"])
    assert "numbers exact" not in text


SATURATING = ["--target", "a2a3", "--option", "float_saturation_off_at_start=0"]
"""A2/A3 in its other mode: docs/reference/a2a3.md, CTRL[48] = 0."""


@pytest.mark.parametrize("words", [["--target", "a5"], SATURATING])
@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("tabs f16 4x64", np.abs),
        ("tadds f16 4x64 1", lambda x: x + np.float16(1)),
        ("tmuls f16 4x64 2", lambda x: x * np.float16(2)),
        ("tsqrt f16 4x64", np.sqrt),
    ],
)
def test_saturating_arithmetic_counts_infinity_and_nan_that_it_replaces(
    tmp_path: Path, capsys: Capture, text: str, function: np.ufunc, words: list[str]
) -> None:
    src = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float16)
    src[0, :3], src[1, :2], src[2, 0] = np.nan, np.inf, -np.inf
    src[3, :4] = 65504
    with np.errstate(all="ignore"):
        exact = function(src)
    nan, infinite = int(np.isnan(exact).sum()), int(np.isinf(exact).sum())
    name = text.split(maxsplit=1)[0]
    found = counted(tmp_path, capsys, ["-e", text, *words], src=src)[name, "f16", "f16"]
    assert found == {"elements": 256, "nan": nan, **({"clamped": infinite} if infinite else {})}
    assert counted(tmp_path, capsys, ["-e", text, *words], src=np.ones((4, 64), np.float16)) == {}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_sums_that_narrow_count_what_they_round_and_clamp(tmp_path: Path, capsys: Capture, target: str) -> None:
    """The relu of a sum rounded to f16 becomes i8: to nearest even, clamped at 127, NaN to 0."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-200, 200, (4, 64)).astype(np.float16) / 2 for _ in range(2))
    a[0, :3] = np.nan
    with np.errstate(invalid="ignore"):
        total = np.where(a + b > 0, a + b, np.float16(0))
    clamped = int(np.count_nonzero(total >= 127.5))
    rounded = int(np.count_nonzero((total != np.rint(total)) & (total < 127.5)))
    program = [str(VECTORS / "headlines/sum_relu_narrowed.pto"), "--target", target]
    rows = counted(tmp_path, capsys, program, x=a, y=b)
    narrowed = rows["taddreluconv", "f16", "i8"]
    assert (narrowed["elements"], narrowed["rounded"], narrowed["clamped"]) == (256, rounded, clamped)
    assert sum(row.get("nan", 0) for row in rows.values()) == 3


def test_a_chip_that_keeps_infinity_replaces_nothing(tmp_path: Path, capsys: Capture) -> None:
    """A2/A3 saturates floats of 16 bits only where CTRL says so (option float_saturation_off_at_start)."""
    src = np.full((4, 64), np.inf, np.float16)
    words = ["-e", "tabs f16 4x64", "--target", "a2a3", "--option", "float_saturation_off_at_start=1"]
    assert counted(tmp_path, capsys, words, src=src) == {}


MICRO = """module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @lanes(%x: !pto.ptr<TYPE, gm>, %y: !pto.ptr<TYPE, gm>) attributes {pto.kernel} {
    %l0 = arith.constant 0 : i64
    %l1 = arith.constant 1 : i64
    %size = arith.constant 256 : i64
    %far = arith.constant 8192 : i64
    %c0 = arith.constant 0 : index
    %ux = pto.castptr %l0 : i64 -> !pto.ptr<TYPE, ub>
    %uy = pto.castptr %far : i64 -> !pto.ptr<TYPE, ub>
    pto.mte_gm_ub %x, %ux, %l0, %size nburst(%l1, %size, %size) : !pto.ptr<TYPE, gm>, !pto.ptr<TYPE, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {
      %some = pto.pset_bBITS "PAT_VL8" : !pto.mask<bBITS>
      %v = pto.vlds %ux[%c0] : !pto.ptr<TYPE, ub>, index -> !pto.vreg<LANESxTYPE>
      %r = OPERATION
      pto.vsts %r, %uy[%c0], %some : !pto.vreg<LANESxTYPE>, !pto.ptr<TYPE, ub>, !pto.mask<bBITS>
    }
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %uy, %y, %size nburst(%l1, %size, %size) : !pto.ptr<TYPE, ub>, !pto.ptr<TYPE, gm>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }
}
"""  # noqa: E501 - one statement a line


def micro(folder: Path, kind: str, operation: str) -> list[str]:
    bits = 16 if kind == "f16" else 32
    register = f"!pto.vreg<{2048 // bits}x{kind}>"
    text = MICRO.replace("OPERATION", f"{operation} : {register}, !pto.mask<b{bits}> -> {register}")
    text = text.replace("LANES", str(2048 // bits)).replace("TYPE", kind).replace("BITS", str(bits))
    path = folder / "lanes.pto"
    path.write_text(text)
    return [str(path), "--races", "ignore"]


def test_vector_instructions_count_active_lanes(tmp_path: Path, capsys: Capture) -> None:
    x = np.full(128, np.nan, np.float16)
    x[1] = np.inf
    saturating = [*micro(tmp_path, "f16", "pto.vabs %v, %some"), "--option", "ctrl=reset"]
    assert counted(tmp_path, capsys, saturating, x=x)["vabs", "f16", "f16"] == {"elements": 8, "clamped": 1, "nan": 7}
    y = np.linspace(0, 16, 64, dtype=np.float32)
    words = micro(tmp_path, "f32", 'pto.vtrc %v, %some {rnd = "R"}')
    expected = int(np.count_nonzero(y[:8] != np.rint(y[:8])))
    assert counted(tmp_path, capsys, words, x=y)["vtrc", "f32", "f32"] == {"elements": 8, "rounded": expected}


TPC = """// castsim: target gaudi2
// castsim: tensor 0 x in TYPE [64, 4]
// castsim: tensor 1 y out TYPE [64, 4]
// castsim: reg I0 = [0, 0, 0, 0, 0]
ld_tnsr V0, 0x0, I0; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; INSTRUCTION; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; st_tnsr 0x1, I0, V1
nop; halt; nop; nop
"""


def test_tpc_instructions_count_what_they_saturate_and_round(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "sums.tpc"
    path.write_text(
        TPC.replace("TYPE", "i8").replace("[64, 4]", "[256, 1]").replace("INSTRUCTION", "add.i8 st V1, V0, V0")
    )
    x = np.arange(256, dtype=np.uint8).view(np.int8).reshape(1, 256)
    twice = 2 * x.astype(int)
    beyond = int(np.count_nonzero((twice > 127) | (twice < -128)))
    assert counted(tmp_path, capsys, [str(path)], x=x) == {("add", "i8", "i8"): {"elements": 256, "clamped": beyond}}
    path.write_text(
        TPC.replace("TYPE", "f32").replace("[64, 4]", "[64, 1]").replace("INSTRUCTION", "nearbyint.f32 rhne V1, V0")
    )
    y = np.linspace(-4, 4, 64, dtype=np.float32).reshape(1, 64)
    expected = int(np.count_nonzero(y != np.rint(y)))
    assert counted(tmp_path, capsys, [str(path)], x=y)["nearbyint", "f32", "f32"] == {
        "elements": 64,
        "rounded": expected,
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wide", ["i64", "f16"])
def test_signalling_nan_is_counted_without_a_warning_of_numpy(tmp_path: Path, capsys: Capture, wide: str) -> None:
    text = (VECTORS.parent.parent / "programs/f32_to_f16.pto").read_text(encoding="utf-8")
    program = tmp_path / "k.pto"
    program.write_text(text.replace("f16", wide), encoding="utf-8")
    src = np.full((4, 64), 0x7F800001, np.uint32).view(np.float32)
    rows = counted(tmp_path, capsys, [str(program), "--target", "a5"], src=src)
    assert rows["tcvt", "f32", wide]["nan" if wide == "i64" else "elements"] == src.size

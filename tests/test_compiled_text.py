"""Text of LLVM IR: every cast is the one that its types say; the instructions are those of the vendor's own tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tpc_text import table, target

from castsim.__main__ import main
from castsim.isa.errors import CastsimError
from castsim.isa.formats import FORMATS
from castsim.numerics import codes_from_array
from castsim.tpc_compiler.cast_comparison import casts_of_text

ROWS = [
    row
    for row in table("tpc_ir_casts.csv")
    if row["status"] == "active" and re.fullmatch(r"(fp|si|ui)\w+ \w+->\w+", row["casts"])
    and "|" not in row["expected_sequence"]
]  # fmt: skip


def line(row: dict[str, str]) -> str:
    opcode, types = row["casts"].split(" ")
    src, dst = types.split("->")
    if row["unit"] == "vector":
        src, dst = (f"<{row['elements']} x {each}>" for each in (src, dst))
    return f"  %y = {opcode} {src} %x to {dst}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['gen']}-{row['casts']}-{row['unit']}")
def test_the_instruction_is_the_one_that_the_vendors_test_expects(row: dict[str, str]) -> None:
    (found,) = casts_of_text(f"define void @f() {{\n{line(row)}\n", "t.ll", target(row["gen"]))
    assert (found.span.line, found.span.column) == (2, 8)
    head = " ".join(word for word in row["expected_sequence"].split(",")[0].split(" ")[:-1])
    heads = re.findall(r"convert\S*(?: (?!r\d)[a-z_]\S*)*", found.cast.kernel.text())
    assert any(each.replace(" rhne", "").replace(" csr", "").startswith(head) for each in heads), heads


TEXT = """; casts of a kernel
declare <128 x bfloat> @llvm.tpc.fptrunc.swch.v128bf16.v128f32(<128 x float>, i32)
define void @main(<128 x float> %x, <256 x i8> %n) {
  %a = tail call <128 x bfloat> @llvm.tpc.fptrunc.swch.v128bf16.v128f32(<128 x float> %x, i32 MODE)
  %s = fadd <128 x float> %x, %x ; not a cast: fptrunc
  %b = fptoui fast <128 x float> %x to <128 x i32>, !dbg !3
  %c = trunc <128 x i32> %b to <128 x i16>
  %d = zext nneg <256 x i8> %n to <256 x i16>
}
"""
MODES = {0: "rhne", 1: "rz", 2: "ru", 3: "rd"}
"""Source: the switches of conversions in docs/reference/tpc_c.md, rounding << 16."""


@pytest.mark.parametrize("mode", MODES)
def test_calls_round_as_their_switches_say_and_results_keep_their_signs(mode: int) -> None:
    found = casts_of_text(TEXT.replace("MODE", str(mode << 16 | 1 << 24)), "t.ll", target("gaudi2"))
    kinds = [(each.span.line, each.cast.src.element, each.cast.dst.element) for each in found]
    assert kinds == [(4, "f32", "bf16"), (6, "f32", "u32"), (7, "u32", "u16"), (8, "u8", "u16")]
    x = np.random.default_rng(mode).uniform(-100, 100, 128).astype(np.float32)
    codes = codes_from_array(x, FORMATS["f32"]).astype(np.int64)
    up = {"rz": 0, "ru": np.where(x > 0, 0xFFFF, 0), "rd": np.where(x < 0, 0xFFFF, 0)}
    added = up.get(MODES[mode], 0x7FFF + (codes >> 16 & 1))
    assert np.array_equal(found[0].cast.values(codes.astype(np.uint32)), (codes + added >> 16).astype(np.uint16))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("%y = fptrunc <128 x float> %x", "1:6", "cannot be read"),
        ("\n %y = fptrunc <128 x double> %x to <128 x float>", "2:15", "double> is not one that TPC converts"),
        ("%y = fptrunc <128 x float> %x to <64 x bfloat>", "1:6", "different numbers of elements"),
        ("%y = fpext <128 x float> %x to <128 x bfloat>", "1:6", "does not lead from"),
        ("%y = zext <64 x i32> %x to <64 x i32>", "1:6", "does not lead from"),
        ("%y = fptosi <96 x float> %x to <96 x i32>", "1:6", "96 elements of f32 do not fill"),
        ("%y = call <128 x i32> @llvm.tpc.convert.swch(<128 x float> %x, i32 0)", "1:23", "there is no @llvm.tpc.conv"),
        ("%y = call <128 x bfloat> @llvm.tpc.fptrunc.swch(<128 x float> %x)", "1:26", "cannot be read"),
        ("%y = call <128 x bfloat> @llvm.tpc.fptrunc.swch(<128 x float> %x, i32 %s)", "1:71", "no constant"),
        ("%y = call <128 x bfloat> @llvm.tpc.fptrunc.swch(<128 x float> %x, i32 1)", "1:71", "more than a rounding"),
        ("%y = call <128 x bfloat> @llvm.tpc.fptrunc.swch(<128 x float> %x, i32 458752)", "1:71", "no rounding mode 7"),
        ("%y = fadd <128 x float> %x, %x", "", "holds no cast"),
    ],
)  # fmt: skip
def test_refusals_name_their_place(text: str, place: str, message: str) -> None:
    with pytest.raises(CastsimError, match=re.escape(message)) as caught:
        casts_of_text(text, "t.ll", target("goya" if "458752" in text else "gaudi"))
    assert str(caught.value.span or "t.ll:") == f"t.ll:{place}"
    assert caught.value.legal


def test_the_command_shows_each_cast_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "casts.ll"
    path.write_text(TEXT.replace("MODE", "65536").replace("%d =", "%d = add"), encoding="utf-8")
    assert main(["compiled", str(path), "3", "--target", "gaudi2"]) == 0
    shown = "".join(capsys.readouterr().out.split())  # a long path is wrapped
    assert f"{path}:6:8:fptoui128xf32tou32" in shown
    assert main(["compiled", str(path), "3", "--target", "gaudi2", "--json", "-", "--quiet"]) == 0
    casts = json.loads(capsys.readouterr().out)["casts"]
    assert [each["line"] for each in casts] == [4, 6, 7]
    assert all(each["results"][0]["values"][0][0]["value"] == 3 for each in casts)
    assert main(["compiled", str(path), "--emit", "--target", "gaudi2"]) == 0
    assert capsys.readouterr().out.count("// castsim: target gaudi2") == 3
    assert main(["compiled", str(path), "--form", "as_is", "--target", "gaudi2"]) == 2
    assert "--form does not go with a text of LLVM IR" in capsys.readouterr().err

"""Commands on kernels in C: stepping by lines of C, comparison, advice, and what editors are told."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from castsim import check_text
from castsim.__main__ import main

pytest.importorskip("pcpp")
Capture = pytest.CaptureFixture[str]
KERNEL = Path(__file__).parent.parent / "programs" / "tpc_c" / "cast_f32_bf16.c"
LAUNCH = [str(KERNEL), "--target", "gaudi2", "--tensor", "x=f32[300,5]", "--tensor", "y=bf16[300,5]",
          "--index-space", "3,5", "--in", "x=random:1"]  # fmt: skip
LINES = KERNEL.read_text(encoding="utf-8").split("\n")


def test_debug_stops_at_lines_of_c(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    load = next(number for number, line in enumerate(LINES, 1) if "v_f32_ld_tnsr_b" in line)
    commands = f"step\nbreak {load}\ncontinue\nwhere\nprint x[0:2,0]\nreverse-step\nquit\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(commands))
    assert main(["debug", *LAUNCH]) == 0
    printed = capsys.readouterr().out
    assert f"cast_f32_bf16.c:{load} cycle" in printed
    assert "ld_tnsr|add.i32 on LOAD" in printed  # with the increment of its coordinates
    assert "x[0,0] = " in printed


def test_diff_compares_two_kernels_and_two_generations(tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "wider.c"
    changed = KERNEL.read_text(encoding="utf-8").replace("b(at, x);", "b(at, x) + 1.0f;")
    other.write_text(changed, encoding="utf-8")
    assert main(["diff", LAUNCH[0], str(other), *LAUNCH[1:], "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    (output,) = found["outputs"]
    assert output["differing"] > 0
    assert main(["diff", *LAUNCH, "--target-b", "gaudi", "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    (output,) = found["outputs"]
    assert output["differing"] == 0
    assert found["cycles_a"] != found["cycles_b"]


def test_advise_looks_at_the_bundles(capsys: Capture) -> None:
    assert main(["advise", *LAUNCH, "--seconds", "1", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["file"] == "cast_f32_bf16.tpc"
    assert main(["run", *LAUNCH, "--json", "-"]) == 0
    assert found["cycles"] == json.loads(capsys.readouterr().out)["total_cycles"]


@pytest.mark.parametrize("command", ["debug", "diff", "advise"])
def test_what_a_launch_lacks_is_told_at_main(command: str, capsys: Capture) -> None:
    more = ["--target-b", "gaudi"] if command == "diff" else []
    assert main([command, str(KERNEL), "--target", "gaudi2", *more]) in (1, 2)
    told = capsys.readouterr().err
    assert "cast_f32_bf16.c:3:" in told
    assert "main has the tensor x" in told
    assert "--tensor x=" in told


@pytest.mark.parametrize("command", ["debug", "diff", "advise"])
def test_a_launch_is_refused_for_other_programs(command: str, capsys: Capture) -> None:
    program = str(KERNEL.parent.parent / "f32_to_f16.pto")
    more = ["--target-b", "a5"] if command == "diff" else []
    assert main([command, program, "--index-space", "3,5", *more]) == 2
    assert "--index-space 3,5" in capsys.readouterr().err


def test_editors_get_the_findings_of_check() -> None:
    pytest.importorskip("pygls")
    from lsp_client import Editor, session, uri  # noqa: PLC0415 - needs the extra
    from test_lsp import got, wanted  # noqa: PLC0415 - needs the extra

    text = "void main(tensor a, tensor b)\n{\n    int5 c = {0};\n    v_f32_st_tnsr(c, b, v_f32_lod_tnsr_b(c, a));\n}\n"

    async def work(one: Editor) -> None:
        one.open(uri("kernel.c"), text)
        expected = check_text(str(Path("/kernels") / "kernel.c"), text)
        assert [(each.severity, each.line) for each in expected] == [("error", 4)]
        assert got(await one.checked(uri("kernel.c"))) == wanted(expected, text)
        assert "st_tnsr" in await one.hover(uri("kernel.c"), 3, 6)
        one.open(KERNEL.as_uri(), "\n".join(LINES))
        assert [each for each in await one.checked(KERNEL.as_uri()) if each.severity == 1] == []

    session(work)


PRINTS = """#pragma tpc_printf (enable)
void main(tensor x, tensor y, float scale)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    for (int row = start[1]; row < end[1]; row++)
    {
        int5 at = {0, row};
        float64 v = v_f32_ld_tnsr_b(at, x);
        v_f32_st_tnsr(at, y, v * scale);
        printf("row %d: ", row);
        printf("lane %.3f\\n", v[row + 3]);
        if (row == 2)
            printf("\\t%hd of 100%%\\n", (short)(row - 7));
        printf("end\\n");
    }
}
"""


@pytest.mark.parametrize("target", ["goya", "gaudi2"])
@pytest.mark.parametrize("engines", ["1", "3"])
def test_what_a_kernel_prints_stands_in_the_report(target: str, engines: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "prints.c"
    path.write_text(PRINTS, encoding="utf-8")
    x = np.random.default_rng(5).standard_normal((4, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    words = ["run", str(path), "--target", target, "--tensor", "x=f32[64,4]", "--tensor", "y=f32[64,4]",
             "--index-space", "1,4", "--arg", "scale=2.5", "--in", f"x={tmp_path / 'x.npy'}",
             "--tpcs", engines]  # fmt: skip
    expected = []
    for row in range(4):
        expected.append(f"{path}:11: row {row}: lane {x[row, row + 3]:.3f}")
        expected += [f"{path}:14: \t-5 of 100%"] * (row == 2)
        expected.append(f"{path}:15: end")
    assert main([*words, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["printed"] == expected
    assert main(words) == 0
    assert "printed: " in capsys.readouterr().out
    assert main([*words, "--timing-only", "--json", "-"]) == 0
    assert "printed" not in json.loads(capsys.readouterr().out)
    assert main(["lint", str(path), "--target", target]) == 0
    assert "no issues found" in capsys.readouterr().out


def test_a_store_outside_of_its_tensor_is_told_at_its_line(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "outside.c"
    head = "void main(tensor x, tensor y)\n{\n    int5 at = {0, 0};\n    float64 v = v_f32_ld_tnsr_b(at, x);\n"
    path.write_text(head + "    at[1] = 7;\n    v_f32_st_tnsr(at, y, v);\n}\n", encoding="utf-8")
    words = ["run", str(path), "--target", "gaudi2", "--tensor", "x=f32[64,4]", "--tensor", "y=f32[64,4]",
             "--index-space", "1", "--in", "x=random:1", "--json", "-"]  # fmt: skip
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)["warnings"]
    assert [each for each in told if "outside.c:6:5: a store lies outside of y, the first at (0, 7, 0, 0, 0)" in each]
    text = head + "    s_f32_st_g(gen_addr(at, y), 1.5f);\n    at[1] = 9;\n    s_f32_st_g(gen_addr(at, y), 1.5f);\n}\n"
    path.write_text(text, encoding="utf-8")
    assert main(words) == 1
    assert "outside.c:7:5: global address" in capsys.readouterr().err


def test_without_the_pragma_nothing_is_printed(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "prints.c"
    path.write_text(PRINTS.partition("\n")[2], encoding="utf-8")
    words = ["run", str(path), "--target", "gaudi2", "--tensor", "x=f32[64,4]", "--tensor", "y=f32[64,4]",
             "--index-space", "1,4", "--arg", "scale=2.5", "--in", "x=random:1", "--json", "-"]  # fmt: skip
    assert main(words) == 0
    assert "printed" not in json.loads(capsys.readouterr().out)

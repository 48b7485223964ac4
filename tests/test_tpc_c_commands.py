"""Commands on kernels in C: stepping by lines of C, comparison, advice, and what editors are told."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

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
    assert "ld_tnsr on LOAD" in printed
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
        assert await one.hover(uri("kernel.c"), 3, 6) == ""
        one.open(KERNEL.as_uri(), "\n".join(LINES))
        assert [each for each in await one.checked(KERNEL.as_uri()) if each.severity == 1] == []

    session(work)

"""Kernels in C: commands, what is refused at its line, and the instructions that the vendor's tests expect."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.paths import PROGRAMS

import castsim
from castsim import check_text
from castsim.__main__ import main
from castsim.isa.errors import ReadError

pytest.importorskip("pcpp")
Capture = pytest.CaptureFixture[str]
KERNEL = PROGRAMS / "tpc_c" / "cast_f32_bf16.c"
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
    assert "the format and sizes of tensor x" in told
    assert "--tensor x=" in told


@pytest.mark.parametrize("command", ["debug", "diff", "advise"])
def test_a_launch_is_refused_for_other_programs(command: str, capsys: Capture) -> None:
    program = str(KERNEL.parent.parent / "f32_to_f16.pto")
    more = ["--target-b", "a5"] if command == "diff" else []
    assert main([command, program, "--index-space", "3,5", *more]) == 2
    assert "--index-space 3,5" in capsys.readouterr().err


def test_editors_get_the_findings_of_check() -> None:
    pytest.importorskip("pygls")
    from kit.lsp_client import Editor, session, uri  # noqa: PLC0415 - needs the extra
    from tools.editor.test_lsp import got, wanted  # noqa: PLC0415 - needs the extra

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
    assert [each for each in told if "outside.c:6:5: some stores are outside y, the first at (0, 7, 0, 0, 0)" in each]
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


pytest.importorskip("pcpp")
HEAD = "void main(tensor a, tensor b) {\n  int5 c = {0};\n  float64 x = v_f32_ld_tnsr_b(c, a);\n"

CASES = [
    ("double d = 1.0;", "double is not a type", "gaudi2"),
    ("goto end;\n  end: ;", "goto is not supported", "gaudi2"),
    ("float64 y = v_f32_foo_b(x);", "undefined function: v_f32_foo_b", "gaudi2"),
    ("float64 y = v_f32_addd_b(x, x);", "undefined function: v_f32_addd_b", "gaudi2"),
    ("float64 y = x / x;", "/ on vectors is not supported", "gaudi2"),
    ('asm("nop");', "inline assembly is not supported", "gaudi2"),
    ("minifloat256 q;", "minifloat256 is not available on gaudi; from gaudi2 on", "gaudi"),
    ("float64 y = v_f32_madd_b(x, x, x, 0, x);", "v_f32_madd_b is not available on gaudi; from greco on", "gaudi"),
    ("int64 z = x;", "expected int64, found a value of type float64", "gaudi2"),
    ("float q = x[3];", "an element of a vector", "gaudi2"),
    ("int i = 1; c[i] = 3;", "the index of an int5 must be a constant", "gaudi2"),
    ("c++;", "operator ++ does not take int5", "gaudi2"),
    ("int256 s; s = v_i8_mac_acc32_b(x, x, s);", "undefined function: v_i8_mac_acc32_b", "gaudi2"),
    ("#include", "#include does not name a header", "gaudi2"),
    ("c[7] = 3;", "an int5 has no coordinate 7", "gaudi2"),
    ("float64 y = {1.0, 2.0};", "omit the braces", "gaudi2"),
    ("y = x;", "y is not declared", "gaudi2"),
    ("const int k = 1; k = 2;", "k is const", "gaudi2"),
    ("int (*p)(int);", "pointers to functions are not supported", "gaudi2"),
    ("switch (1) { case 1: break; }", "switch is not supported", "gaudi2"),
    ("int i = 2 << c[0] << 1.5f;", "operator << does not take float", "gaudi2"),
    ("int i = c[0] / 0;", "division by zero", "gaudi2"),
    ("int i = " + "(" * 3000 + "1" + ")" * 3000 + ";", "brackets are nested more than 100 levels deep", "gaudi2"),
    ("float64 y = v_f32_add_b(x);", "v_f32_add_b takes 2 to 6 arguments, not 1", "gaudi2"),
    ("float64 y = v_f32_add_b(x, x, 0, x, x > 1);", "> compares scalars", "gaudi2"),
    ("int s[4]; s[5] = 1;", "5 is out of range", "gaudi2"),
    ("break;", "break is not inside a loop", "gaudi2"),
    ("int n = 1; v_f32_st_tnsr(c, b, x, n + c[0]);", "the switches of v_f32_st_tnsr must be a constant", "gaudi2"),
]


@pytest.mark.parametrize(("line", "message", "target"), CASES)
def test_a_kernel_is_refused_at_its_line(line: str, message: str, target: str) -> None:
    found = [each for each in check_text("k.c", f"{HEAD}  {line}\n}}\n", target=target) if each.severity == "error"]
    assert len(found) == 1
    assert message in found[0].message
    assert found[0].file == "k.c"
    assert found[0].line == 4
    assert found[0].column


def test_recursion_variable_arguments_and_a_missing_main_are_refused() -> None:
    texts = {
        "int f(int n) { return g(n); } int g(int n) { return f(n); }\nvoid main(tensor a) { int x = f(1); }":
            "recursion is not supported: f -> g -> f",
        "int f(int n, ...) { return n; }\nvoid main(tensor a) { int x = f(1); }": "variable number of arguments",
        "void other(tensor a) { }": "no function main",
        "#include \"absent.h\"\nvoid main(tensor a) { }": "header 'absent.h' was not found",
        "void main(tensor a) { int x = ; }": "an expression is missing before ';'",
        "void main(tensor a) { int x = 1;": "missing '}' at the end of the text",
        "void main(tensor a) { /* int x = 1; }": "missing '*/' at the end of the comment",
        "#error no such device\nvoid main(tensor a) { }": "#error no such device",
        "#if FOO(\n#endif\nvoid main(tensor a) { }": "the condition of #if cannot be evaluated: FOO(",
        "#include \"/dev/zero\"\nvoid main(tensor a) { }": "header '/dev/zero' was not found",
        "void main(tensor a, int a) { }": "the parameter a is declared twice",
        "int main { return 0; }": "main has a body and no list of parameters",
        "int f[3] { }\nvoid main(tensor a) { }": "f has a body and no list of parameters",
    }  # fmt: skip
    for text, message in texts.items():
        (found,) = [each for each in check_text("k.c", text, target="gaudi2") if each.severity == "error"]
        assert message in found.message, found


def test_what_cannot_run_and_is_c_is_a_warning() -> None:
    text = f'#pragma tpc_printf (enable)\n{HEAD}  printf("%f", x[1]);\n  float64 y = sigmoid_f32(x);\n}}\n'
    found = [each for each in check_text("k.c", text, target="gaudi") if each.severity == "warning"]
    assert [each.line for each in found] == [6]
    assert "its instructions are not public" in found[0].message


NESTED = "for (int i{n} = 0; i{n} < 60; i{n}++) {{"
HOSTILE = {
    "extent": "int w[3000000];",
    "extents": "float64 w[2000][2000];",
    "size of a type": "int n = sizeof(int[2000000000]);",
    "initialisers": "int w[] = {" + "1," * 5000 + "};",
    "unrolled loops": "#pragma unroll\n"
    + "\n#pragma unroll\n".join(NESTED.format(n=n) for n in range(4))
    + "c[0] += 1;"
    + "}" * 4,
    "nested choices": "int n = c[0]; " + "n = n ? s_i32_ld_g(gen_addr(c, a)) + (" * 40 + "n" + ") : 2" * 40 + ";",
    "calls of calls": "int n = g29(c[0]);",
    "loops in calls of calls": "for (int i = 0; i < g29(3); i++) { c[0] += 1; }",
    "number": "int n = " + "9" * 6000 + ";",
    "number of #if": "\n#if " + "9" * 6000 + "\n#endif\n",
    "shift of #if": "\n#if 1 << 99999999999\n#endif\n",
    "macros of macros": "\n"
    + "\n".join(f"#define M{n} M{n + 1} M{n + 1} M{n + 1} M{n + 1}" for n in range(30))
    + "\nM0",
    "arguments of macros": "\n#define D(x) " + "x " * 100 + "\n" + "D(" * 8 + "1" + ")" * 8,
    "sum": "int n = c[0]" + " + 1" * 20000 + ";",
    "an infinite index": "c[1e308] = 1;",
    "an index that is no number": "int s[4]; s[1.5f] = 1;",
    "a suffix twice": "int n = 1uu;",
    "a directive without a name": "\n#define\n",
    "a macro without its arguments": "\n#define P(x, y) x\nint n = P(1);",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_kernels_are_refused_at_their_place_within_limits(name: str) -> None:
    """Extents, unrolling, initialisers, headers, macros, nesting and sizes of expressions are bounded."""
    functions = "int f(int n) { return n + 1; }\nint g0(int n) { return f(n) + f(n); }\n"
    functions += "".join(f"int g{n}(int n) {{ return g{n - 1}(n) + g{n - 1}(n); }}\n" for n in range(1, 30))
    text = f"{functions if 'g29' in HOSTILE[name] else ''}{HEAD}{HOSTILE[name]}\n}}\n"
    before = time.process_time()
    found = [each for each in check_text("k.c", text, target="gaudi2")
             if each.severity == "error"]  # fmt: skip
    taken = time.process_time() - before
    assert found
    assert found[0].line is not None
    assert found[0].line > 3 or "calls" in name
    assert taken < 10


def test_headers_are_read_from_the_kernels_folder_and_those_of_the_option_alone(tmp_path: Path) -> None:
    inside, other, outside = (tmp_path / name for name in ("inside", "other", "outside"))
    for folder in (inside, other, outside):
        folder.mkdir()
    (outside / "secret.h").write_text("the secret is 42\n", encoding="utf-8")
    (inside / "own.h").write_text("#define OWN 1\n", encoding="utf-8")
    (other / "more.h").write_text("#define MORE 1\n", encoding="utf-8")
    (inside / "link.h").symlink_to(outside / "secret.h")
    (inside / "away").symlink_to(outside)
    end = "\nvoid main(tensor a) { int n = OWN + MORE; }\n"
    for header in (
        outside / "secret.h",
        "../outside/secret.h",
        "link.h",
        "away/secret.h",
        "../inside/../outside/secret.h",
    ):
        text = f'#include "{header}"{end}'
        (found,) = check_text(str(inside / "k.c"), text, target="gaudi2", folders=[other])
        assert "was not found in the folder of the kernel" in found.message
        assert (found.line, "secret is" in str(found)) == (1, False)
    text = f'#include "own.h"\n#include <more.h>{end}'
    assert check_text(str(inside / "k.c"), text, target="gaudi2", folders=[other]) == ()
    assert check_text(str(inside / "k.c"), text, target="gaudi2")[0].line == 2


@pytest.mark.parametrize("given", [True, False])
def test_check_takes_macros_and_folders(given: bool, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "step.h").write_text("#define STEP 64\n", encoding="utf-8")
    text = '#include "step.h"\nvoid main(tensor x) { int5 at = {STEP * WIDTH + FLAG}; at[0] += 1; }\n'
    (tmp_path / "k.c").write_text(text, encoding="utf-8")
    more = ["-I", str(tmp_path / "headers"), "-D", "WIDTH=2", "-D", "FLAG"] if given else []
    assert main(["check", str(tmp_path / "k.c"), "--target", "gaudi2", *more]) == (0 if given else 2)
    capsys.readouterr()
    assert main(["check", str(KERNEL.parent.parent / "f32_to_f16.pto"), *more]) == (2 if given else 0)
    assert ("--define WIDTH=2 FLAG" in capsys.readouterr().err) is given


@pytest.mark.parametrize("by", ["command line", "editor", "neither"])
def test_the_language_server_takes_macros_and_folders(by: str, tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    from kit.lsp_client import Editor, session, uri  # noqa: PLC0415 - needs the extra

    headers = tmp_path / "headers"
    headers.mkdir()
    (headers / "step.h").write_text("#define STEP 64\n", encoding="utf-8")
    text = '#include "step.h"\nvoid main(tensor x) { int5 at = {STEP * WIDTH + FLAG}; at[0] += 1; }\n'

    async def work(one: Editor) -> list[str]:
        one.open(uri("kernel.c"), text)
        return [str(each.message) for each in await one.checked(uri("kernel.c")) if each.severity == 1]

    options = {"defines": {"WIDTH": "2", "FLAG": "1"}, "folders": [str(headers)]}
    if by == "command line":
        errors = session(work, "--target", "gaudi2", "-I", str(headers), "-D", "WIDTH=2", "-D", "FLAG")
    else:
        errors = session(work, "--target", "gaudi2", options=options if by == "editor" else {})
    assert bool(errors) is (by == "neither")


def test_a_kernel_runs_from_python_as_the_command_runs_it(tmp_path: Path) -> None:
    x = np.arange(1500, dtype=np.float32).reshape(5, 300) / 7
    more = {"tensors": {"y": "bf16[300,5]"}, "index_space": (3, 5)}
    found = castsim.run(KERNEL, "gaudi2", inputs={"x": x}, tpcs=2, **more)
    assert np.array_equal(found.outputs["y"], x.astype(ml_dtypes.bfloat16))
    (tmp_path / "k.c").write_text(f'#include "by.h"\n{SCALED}', encoding="utf-8")
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "by.h").write_text("#define HALF 0.5f\n", encoding="utf-8")
    found = castsim.run(
        tmp_path / "k.c", "gaudi2", inputs={"x": x}, args={"scale": 3.0}, tensors={"y": "f32[300,5]"},
        index_space=(5, 5), folders=[tmp_path / "headers"], defines={"TWICE": "2"},
    )  # fmt: skip
    assert np.array_equal(found.outputs["y"], x * np.float32(3))
    with pytest.raises(ReadError, match="index space") as caught:
        castsim.run(KERNEL, "gaudi2", inputs={"x": x}, tensors={"y": "bf16[300,5]"})
    assert caught.value.legal
    for wrong in ({"tpcs": 0}, {"accumulators": "tree"}, {"index_space": (0,)}, {"tensors": {"y": "f32"}}):
        with pytest.raises(ReadError):
            castsim.run(KERNEL, "gaudi2", inputs={"x": x}, **{**more, **wrong})  # type: ignore[arg-type]
    with pytest.raises(ReadError, match="is not a C kernel"):
        castsim.run(KERNEL.parent.parent / "f32_to_f16.pto", index_space=(1,))


SCALED = """void main(tensor x, tensor y, float scale)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    for (int row = start[1]; row < end[1]; row++)
    {
        for (int column = start[0] * 64; column < end[0] * 64; column += 64)
        {
            int5 at = {column, row};
            v_f32_st_tnsr(at, y, v_f32_ld_tnsr_b(at, x) * scale * HALF * TWICE);
        }
    }
}
"""


@pytest.mark.parametrize("engines", ["1", "2"])
@pytest.mark.parametrize(("space", "left"), [("3,5", 0), ("3,4", 300), ("2,5", 220), ("1,1", 1372)])
def test_elements_that_nothing_writes_are_counted(
    space: str, left: int, engines: str, tmp_path: Path, capsys: Capture
) -> None:
    """A member of the index space stores 128 columns of a row of 300."""
    words = ["run", str(KERNEL), "--target", "gaudi2", "--tensor", "x=f32[300,5]", "--tensor", "y=bf16[300,5]",
             "--index-space", space, "--in", "x=random:1", "--tpcs", engines]  # fmt: skip
    assert main([*words, "--json", str(tmp_path / "out.json")]) == 0
    said = capsys.readouterr().out
    assert (f"{left:,} of 1,500 elements depend on bytes that nothing wrote" in " ".join(said.split())) is (left > 0)
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [each["elements"] for each in document.get("outputs_undefined", [])] == [left] * (left > 0)


UNROLLED = """void main(tensor a, tensor b, int n) {{
  int5 c = {{0}};
  float64 sum = 0;
  #pragma loop_unroll({at_once}){more}
  for (int i = 0; i < {bound}; i++) {{
    c[1] = i;
    {body}
  }}
  c[1] = 0;
  v_f32_st_tnsr(c, b, sum);
}}
"""
MAC = "sum = v_f32_mac_b(v_f32_ld_tnsr_b(c, a), 2.0f, sum);"


@pytest.mark.parametrize(
    ("bound", "at_once", "more", "body", "told"),
    [
        ("10", 4, "", MAC, {"multiple of 4 trips, not 10", "splits the sums"}),
        ("12", 4, "", MAC, {"splits the sums"}),
        ("200", 3, "", "sum += v_f32_ld_tnsr_b(c, a);", {"multiple of 3 trips, not 200"}),
        ("10", 4, " unaligned_trip_count(true)", "sum += v_f32_ld_tnsr_b(c, a);", set()),
        ("n", 4, "", "sum += v_f32_ld_tnsr_b(c, a);", set()),
        ("10", 1, "", MAC, set()),
    ],
)
def test_what_a_promise_of_trips_means_is_told(bound: str, at_once: int, more: str, body: str, told: set[str]) -> None:
    text = UNROLLED.format(bound=bound, at_once=at_once, more=more, body=body)
    found = [each for each in check_text("k.c", text, target="gaudi2") if "ignored" not in each.message]
    assert {each.severity for each in found} <= {"note"}
    assert len(found) == len(told)
    assert all(any(part in each.message for each in found) for part in told)
    assert {each.line for each in found} <= {5}


EIGHT = """#define STEP(K) { float128 w; at[0] = K * 128; w.v1 = v_f32_ld_tnsr_b(at, x); at[0] += 64; \\
    w.v2 = v_f32_ld_tnsr_b(at, x); v_bf16_st_tnsr(at, y, convert_float128_to_bfloat128(w, SW_LINEAR)); }
void main(tensor x, tensor y)
{
    int5 at = {0};
    STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
}
"""


def test_the_bound_that_the_warning_names_is_printed(tmp_path: Path, capsys: Capture) -> None:
    """24 accesses of global memory, one per four cycles, leave 96 cycles at least."""
    kernel = tmp_path / "eight.c"
    kernel.write_text(EIGHT, encoding="utf-8")
    launch = [str(kernel), "--target", "gaudi2", "--tensor", "x=f32[1024]", "--tensor", "y=out:bf16[1024]",
              "--index-space", "1", "--timing-only"]  # fmt: skip
    assert main(["run", *launch, "--report", "full"]) == 0
    assert "Lower bound: no order of these instructions takes fewer than 96 cycles (global memory)" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["run", *launch, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["lower_bound"] == {
        "cycles": 96, "limited_by": "global memory", "loop": None,
    }  # fmt: skip


RECURRENCE = """// castsim: target gaudi2
// castsim: tensor 0 x in f32 [64]
ld_tnsr V1, 0x0, I0; nop; nop; nop
nop; loop 0, 100, 1, <, End; nop; nop
nop; nop; nop; nop
nop; nop; mul.f32 V1, V1, V2; nop
nop; nop; mov.f32 V3, 0x0; nop
nop; nop; mov.f32 V4, 0x0; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; nop
nop; nop; nop; nop
End: nop; nop; nop; st_l_v 0x0, V1
nop; halt; halt; nop
nop
nop
nop
"""


def test_a_product_that_needs_the_last_one_bounds_the_interval(tmp_path: Path, capsys: Capture) -> None:
    """MUL.f32 to MUL.f32 is 6 bundles on gaudi2, as the stage tables have it: 100 trips need 595."""
    program = tmp_path / "k.tpc"
    program.write_text(RECURRENCE, encoding="utf-8")
    assert main(["run", str(program), "--timing-only", "--json", "-"]) == 0
    bound = json.loads(capsys.readouterr().out)["lower_bound"]
    assert bound["loop"]["least_bundles"] == 6
    assert bound["cycles"] == 99 * 6 + 1 and bound["limited_by"] == "latencies"


def test_a_pragma_of_pipelining_says_which_loops_are_pipelined() -> None:
    """Those with constant trips and without branches; the note says nothing of others."""
    text = (
        "void main(tensor x, int n) { int5 at = {0};\n#pragma loop_unroll(4)\nfor (int i = 0; i < n; i++) at[0] += 1; }"
    )
    (found,) = [each for each in check_text("k.c", text, target="gaudi2") if "ignored" in each.message]
    assert "pipelines innermost loops without branches and with constant trips" in found.message


CHOSEN = """void main(tensor x, tensor y)
{
    int5 at = {0};
    float64 v = v_f32_ld_tnsr_b(at, x);
    v_f32_st_tnsr(at, y, convert_uint64_to_float64(convert_float64_to_uint64(v, 0), 0));
}
"""


@pytest.mark.parametrize("command", ["run", "lint"])
def test_nothing_is_said_of_instructions_that_castsim_chose(command: str, tmp_path: Path, capsys: Capture) -> None:
    """The user wrote no `all_lanes`."""
    kernel = tmp_path / "k.c"
    kernel.write_text(CHOSEN, encoding="utf-8")
    launch = ["--tensor", "x=f32[64]", "--tensor", "y=out:f32[64]", "--index-space", "1", "--in", "x=random:1"]
    assert main([command, str(kernel), "--target", "gaudi2", *(launch if command == "run" else ())]) == 0
    printed = capsys.readouterr()
    assert "compiler form" not in printed.out + printed.err and "all_lanes" not in printed.out + printed.err

"""What is refused in kernels in C: in words, at the line and column, with what is legal."""

from __future__ import annotations

import pytest

from castsim.checking import check_text

pytest.importorskip("pcpp")
HEAD = "void main(tensor a, tensor b) {\n  int5 c = {0};\n  float64 x = v_f32_ld_tnsr_b(c, a);\n"

CASES = [
    ("double d = 1.0;", "double is not a type", "gaudi2"),
    ("goto end;\n  end: ;", "goto is not supported", "gaudi2"),
    ("float64 y = v_f32_foo_b(x);", "used but not defined: v_f32_foo_b", "gaudi2"),
    ("float64 y = v_f32_addd_b(x, x);", "used but not defined: v_f32_addd_b", "gaudi2"),
    ("float64 y = x / x;", "/ on vectors is not an instruction", "gaudi2"),
    ('asm("nop");', "inline assembly is not supported", "gaudi2"),
    ("minifloat256 q;", "minifloat256 is not available on gaudi; from gaudi2 on", "gaudi"),
    ("float64 y = v_f32_madd_b(x, x, x, 0, x);", "v_f32_madd_b is not available on gaudi; from greco on", "gaudi"),
    ("int64 z = x;", "float64 stands where int64 is needed", "gaudi2"),
    ("float q = x[3];", "an element of a vector", "gaudi2"),
    ("int i = 1; c[i] = 3;", "the index of an int5 must be a constant", "gaudi2"),
    ("c++;", "operator ++ does not take int5", "gaudi2"),
    ("int256 s; s = v_i8_mac_acc32_b(x, x, s);", "used but not defined: v_i8_mac_acc32_b", "gaudi2"),
    ("#include", "#include names no header", "gaudi2"),
    ("c[7] = 3;", "an int5 has no coordinate 7", "gaudi2"),
    ("float64 y = {1.0, 2.0};", "omit the braces", "gaudi2"),
    ("y = x;", "y is not declared", "gaudi2"),
    ("const int k = 1; k = 2;", "k is const", "gaudi2"),
    ("int (*p)(int);", "pointers to functions are not supported", "gaudi2"),
    ("switch (1) { case 1: break; }", "switch is not supported", "gaudi2"),
    ("int i = 2 << c[0] << 1.5f;", "operator << does not take float", "gaudi2"),
    ("int i = c[0] / 0;", "division by zero", "gaudi2"),
    ("int i = " + "(" * 3000 + "1" + ")" * 3000 + ";", "the kernel is nested too deeply", "gaudi2"),
    ("float64 y = v_f32_add_b(x);", "v_f32_add_b takes 2 to 6 arguments, 1 are given", "gaudi2"),
    ("float64 y = v_f32_add_b(x, x, 0, x, x > 1);", "> compares scalars", "gaudi2"),
    ("int s[4]; s[5] = 1;", "there is no 5", "gaudi2"),
    ("break;", "break stands in no loop", "gaudi2"),
    ("int n = 1; v_f32_st_tnsr(c, b, x, n + c[0]);", "the switches of v_f32_st_tnsr must be a constant", "gaudi2"),
]


@pytest.mark.parametrize(("line", "message", "target"), CASES)
def test_a_kernel_is_refused_at_its_line(line: str, message: str, target: str) -> None:
    found = [each for each in check_text("k.c", f"{HEAD}  {line}\n}}\n", target=target) if each.severity == "error"]
    assert len(found) == 1
    assert message in found[0].message
    assert found[0].file == "k.c"
    assert found[0].line == (1 if "too deeply" in message else 4)
    assert found[0].column


def test_recursion_variable_arguments_and_a_missing_main_are_refused() -> None:
    texts = {
        "int f(int n) { return g(n); } int g(int n) { return f(n); }\nvoid main(tensor a) { int x = f(1); }":
            "recursion is not supported: f -> g -> f",
        "int f(int n, ...) { return n; }\nvoid main(tensor a) { int x = f(1); }": "variable number of arguments",
        "void other(tensor a) { }": "no function main",
        "#include \"absent.h\"\nvoid main(tensor a) { }": "header 'absent.h' is not found",
        "void main(tensor a) { int x = ; }": "this is not C",
        "void main(tensor a) { int x = 1;": "this is not C, the text ends behind ';'",
        "void main(tensor a) { /* int x = 1; }": "the comment is not closed",
        "#error no such device\nvoid main(tensor a) { }": "#error no such device",
        "#if FOO(\n#endif\nvoid main(tensor a) { }": "the condition of #if cannot be evaluated: FOO(",
        "#include \"/dev/zero\"\nvoid main(tensor a) { }": "header '/dev/zero' is not found",
        "void main(tensor a, int a) { }": "the parameter a is declared twice",
    }  # fmt: skip
    for text, message in texts.items():
        (found,) = [each for each in check_text("k.c", text, target="gaudi2") if each.severity == "error"]
        assert message in found.message, found


def test_what_cannot_run_and_is_c_is_a_warning() -> None:
    text = f'#pragma tpc_printf (enable)\n{HEAD}  printf("%f", x[1]);\n  float64 y = sigmoid_f32(x);\n}}\n'
    found = [each for each in check_text("k.c", text, target="gaudi") if each.severity == "warning"]
    assert [each.line for each in found] == [6]
    assert "its instructions are not public" in found[0].message


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
        ("10", 4, "", MAC, {"multiple of 4 trips, and there are 10", "splits the sums"}),
        ("12", 4, "", MAC, {"splits the sums"}),
        ("200", 3, "", "sum += v_f32_ld_tnsr_b(c, a);", {"multiple of 3 trips, and there are 200"}),
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

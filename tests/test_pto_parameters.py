"""Parameters of tile programs: what is filled in, the places of errors, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from execution_programs import kernel_file

import castsim
from castsim.__main__ import main
from castsim.isa.errors import ReadError, SourceText, Span
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.pto.parameters import filled, parameters, with_values
from castsim.isa.pto.pto_parser import parse
from castsim.isa.value_expressions import Expression, read_values

Capture = pytest.CaptureFixture[str]
SAMPLE = Path(__file__).parent.parent / "programs" / "tuning" / "f32_to_bf16_tiles.pto"
HEAD = "// castsim: parameter R = 16 in 8..32:8\n// castsim: parameter M = RINT\n"


def test_the_text_with_values_filled_in_is_the_program(tmp_path: Path) -> None:
    by_hand = kernel_file(tmp_path, SAMPLE.read_text().replace("${R}", "8").replace("${C}", "512"), "by_hand.pto")
    given = kernel_file(tmp_path, with_values(SAMPLE.read_text(), "k.pto", {"R": 8, "C": 512}), "given.pto")
    one, two = (castsim.run(path, timing_only=True).timing for path in (by_hand, given))
    assert (one.total, one.pipes) == (two.total, two.pipes)


def test_defaults_are_filled_in_and_nothing_else_changes() -> None:
    source = PtoSource("k.pto", f'{HEAD}a ${{R}}x${{R * 2 + 1}} ${{M}} "${{R}}" // ${{R}} ${{\n')
    found = filled(source)
    assert found is not None
    assert found.source.text == f'{HEAD}a 16x33 RINT "${{R}}" // ${{R}} ${{\n'
    for word in ("a ", "x33", '"${R}"', "// ${R}"):
        assert source.text[found.origin(found.source.text.index(word, len(HEAD)))] == word[0]
    assert found.origin(found.source.text.index("16x", len(HEAD))) == source.text.index("${R}x")
    assert {name: (one.default, one.values) for name, one in parameters(source).items()} == {
        "R": (16, (8, 16, 24, 32)),
        "M": ("RINT", ()),
    }
    assert filled(PtoSource("k.pto", HEAD)) is None


@pytest.mark.parametrize(
    ("line", "place", "told"),
    [
        ("x ${Q}", "k.pto:3:3", "parameter Q is not declared"),
        ("x ${R", "k.pto:3:3", "not closed on its line"),
        ("x ${}", "k.pto:3:3", "not an expression"),
        ("x ${M*2}", "k.pto:3:3", "'RINT' is a word"),
        ("x ${R // 0}", "k.pto:3:3", "divides by zero"),
        ("x ${R.real}", "k.pto:3:3", "is not allowed in an expression"),
        ("// castsim: parameter R = 3\n${R}", "k.pto:3:23", "declared twice, first in line 1"),
        ("// castsim: parameter S\n${R}", "k.pto:3:22", "NAME = VALUE"),
        ("// castsim: parameter S = 1 in 4..2\n${R}", "k.pto:3:32", "is empty"),
        ("module {\n  func.func @f(%a: !pto.ptr<${M}>) {\n    bad ${R}\n  }\n}", "k.pto:", ""),
    ],
)
def test_what_cannot_be_read_has_its_place(line: str, place: str, told: str) -> None:
    with pytest.raises(ReadError) as caught:
        parse(HEAD + line + "\n", "k.pto")
    assert str(caught.value.span).startswith(place)
    assert told in caught.value.message


def test_errors_of_the_program_are_where_the_text_has_them(tmp_path: Path) -> None:
    text = SAMPLE.read_text().replace("pto.tstore ins(%slim", "pto.tstore ins(%slam")
    with pytest.raises(ReadError) as caught:
        castsim.run(kernel_file(tmp_path, text), timing_only=True)
    span = caught.value.span
    assert span is not None
    line = text.splitlines()[span.line - 1]
    assert "${R}" in line
    assert line[span.column - 1 :].startswith("%slam")


def test_run_takes_values(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", str(SAMPLE), "--tile", "R=32", "--tile", "C=512", "--timing-only", "--quiet"]) == 0
    assert main(["run", str(SAMPLE), "--tile", "Q=32", "--timing-only"]) == 2
    assert "'Q' is not a parameter" in capsys.readouterr().err
    assert main(["run", str(SAMPLE), "--tile", "R=3.5", "--timing-only"]) == 2
    assert "--tile:1:3: '3.5' is neither" in capsys.readouterr().err
    assert main(["run", str(SAMPLE.parent.parent / "tpc_f32_exp_goya.tpc"), "--tile", "R=3", "--timing-only"]) == 2
    assert "only tile programs have parameters" in capsys.readouterr().err


@pytest.mark.parametrize("text", [
    "7 + 3 * 2", "(7 + 3) * 2", "-7 // 2", "-7 % 3", "min(4, 9, 2) - max(1, 2)", "1 < 2 < 3", "not 3 or 2 and 1 == 1",
])  # fmt: skip
def test_expressions_mean_what_python_means(text: str) -> None:
    span = Span("e", 1, 1, text)
    named = text.replace("7", "a").replace("2", "b")
    assert Expression(text, span).value({}) == int(eval(text))
    assert Expression(named, span).value({"a": 7, "b": 2}) == int(eval(text))


@pytest.mark.parametrize("text", [
    "", "1.5", "a", "2 ** 9", "a[0]", "lambda: 1", "'x' < 3", "9223372036854775807 + 1", "(" * 300, "-" * 399 + "1",
    "1 if 1 else 2", "min(3)", "min(3, key=4)", "f'{1}'", "x := 3", "True",
])  # fmt: skip
def test_nothing_else_is_an_expression(text: str) -> None:
    try:
        Expression(text, Span("e", 1, 1, text)).value({})
    except ReadError as error:
        assert error.span is not None
    else:
        assert text.startswith("---")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("8..12", (8, 9, 10, 11, 12)), ("8..30:8", (8, 16, 24)), ("3..30*3", (3, 9, 27)),
        ("128, 256,0x10", (128, 256, 16)), ("8..10,9,RINT", (8, 9, 10, "RINT")), ("-4", (-4,)),
    ],
)  # fmt: skip
def test_lists_of_values(text: str, values: tuple[object, ...]) -> None:
    assert read_values(SourceText("--tile", text), 0, len(text)) == values

"""Places in texts cost the same however long the line is, and nesting of any depth is refused, not run into."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from kit.execution_programs import kernel_file
from kit.paths import PROGRAMS

import castsim
from castsim.isa.errors import MAX_STATEMENTS, CastsimError, ReadError, SourceText, Span
from castsim.isa.pto.lexer import PtoSource, TokenKind, filled, parameters, tokenize
from castsim.isa.pto.pto_parser import parse
from castsim.isa.value_expressions import Expression, read_values


def one_line(constants: int) -> str:
    """A kernel on one line; its size in characters is about 35 per constant."""
    body = " ".join(f"%k{number} = arith.constant {number} : index" for number in range(constants))
    return f"func.func @k() attributes {{pto.entry}} {{ {body} return }}"


def peak_of(action: object) -> int:
    """Bytes at the most while something runs that may be refused."""
    tracemalloc.start()
    try:
        action()  # type: ignore[operator]
    except CastsimError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("attribute", ['"{}"', "[{}]", "{}"])
def test_a_long_word_is_held_a_few_times_not_once_per_place(attribute: str):
    word = attribute.format("x" * 300_000)
    text = f"module attributes {{a = {word}, b = {word}}} {{ {one_line(200)} }}"
    assert peak_of(lambda: parse(text)) < 20 * len(text)


DEPTH = 2_000  # twice what Python itself bears


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scf.if %b {" * DEPTH, "nested more than 64 levels deep"),
        ("scf.for %i = %c to %c step %c {" * DEPTH, "nested more than 64 levels deep|redefinition"),
        (f"pto.barrier <PIPE_ALL> {{a = {'[' * DEPTH}{']' * DEPTH}}}", "nested more than 64 levels deep|expected"),
        (f"%t = pto.alloc_tile {{a = {'{b = ' * DEPTH}{'}' * DEPTH}}}", "."),
    ],
)
def test_nesting_is_refused_with_its_place(text: str, message: str):
    head = "func.func @k() { %b = arith.constant 1 : i1\n%c = arith.constant 1 : index\n"
    with pytest.raises(ReadError, match=message) as caught:
        parse(head + text + "return }")
    assert caught.value.span is not None


def test_more_statements_than_the_limit_are_refused_at_the_first_of_them():
    text = "func.func @k() {\n" + "".join(f"%k{n} = arith.constant {n} : index\n" for n in range(40)) + "return\n}"
    assert len(parse(text, max_statements=41).functions[0].body or ()) == 41
    with pytest.raises(CastsimError, match="more than 10 statements, the limit of --max-statements") as caught:
        parse(text, "k.pto", max_statements=10)
    assert str(caught.value.span) == "k.pto:12:1"
    with pytest.raises(CastsimError, match="more than 2 statements' words and signs") as caught:
        parse("}" * 200_000, "k.pto", max_statements=2)
    assert str(caught.value.span) == "k.pto:1:100080"
    assert caught.value.exit_code == 1
    assert MAX_STATEMENTS == 200_000


def tokens(text: str) -> list[tuple[TokenKind, str]]:
    found = tokenize(PtoSource("t.pto", text))
    return list(zip(found.kinds, found.texts, strict=True))[:-1]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a\n  \\", 2, 3, "unexpected character"), ("a /* b */", 1, 3, "comment"),
        ('a "open', 1, 3, "is not closed on its line"), ('"a\nb"', 1, 1, "is not closed on its line"),
        ("\ta ; b", 1, 4, "unexpected character"), ("% x", 1, 1, "missing name after"),
        ("caf\u00e9", 1, 4, "unexpected character"), ("a - b", 1, 3, "unexpected character '-'"),
        ("\0", 1, 1, "unexpected character"),
    ],
)  # fmt: skip
def test_what_begins_no_token_is_refused_where_it_stands(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ReadError, match=message) as caught:
        tokens(text)
    span = caught.value.span
    assert span is not None
    assert (span.file, span.line, span.column, span.text) == ("t.pto", line, column, text.split("\n")[line - 1])


def test_places_count_lines_and_columns_from_one_and_stay_on_the_line() -> None:
    source = PtoSource("t.pto", "ab\r\n\ncdef\n")
    assert str(source.span(0)) == "t.pto:1:1"
    assert source.span(1, 50).length == 1
    assert source.span(0).text == "ab"
    assert str(source.span(3 + 1)) == "t.pto:2:1"
    assert str(source.span(7)) == "t.pto:3:3"
    assert str(source.span(10)) == "t.pto:4:1"


# ---------------------- parameters of tile programs: what is filled in, the places of errors, and what cannot be read
SAMPLE = PROGRAMS / "tuning" / "f32_to_bf16_tiles.pto"
HEAD = "// castsim: parameter R = 16 in 8..32:8\n// castsim: parameter M = RINT\n"


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
        ("// castsim: parameter R = 3\n${R}", "k.pto:3:23", "declared again, after line 1"),
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

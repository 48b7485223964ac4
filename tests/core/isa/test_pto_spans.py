"""Places in texts cost the same however long the line is, and nesting of any depth is refused, not run into."""

from __future__ import annotations

import pickle
import time
import tracemalloc
from pathlib import Path

import pytest
from kit.execution_programs import kernel_file
from kit.paths import PROGRAMS

import castsim
from castsim.__main__ import main
from castsim.isa.errors import MAX_STATEMENTS, CastsimError, ReadError, SourceText, Span
from castsim.isa.pto.lexer import PtoSource, TokenKind, filled, parameters, tokenize, with_values
from castsim.isa.pto.pto_parser import parse
from castsim.isa.tpc.program import AssemblySource
from castsim.isa.value_expressions import Expression, read_values
from castsim.tools.graphs.tosa_reader import TosaReader


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


def test_memory_of_a_program_on_one_line_grows_with_its_length_only():
    text = one_line(4000)
    peak = peak_of(lambda: parse(text))
    assert peak < 100 * len(text)  # a copy per statement would be 4000 times the text


def test_spans_of_assembly_hold_no_lines():
    text = "nop " * 50_000
    source = AssemblySource(text, "k.tpc")
    spans: list[Span] = []
    assert peak_of(lambda: spans.extend(source.span(0, 4 * number, 3) for number in range(5000))) < 5 * len(text)
    assert str(spans[7]) == "k.tpc:1:29"
    assert spans[7].text == text


def test_spans_of_tosa_text_hold_no_lines():
    text = " ".join(f"%v{number}" for number in range(20_000))
    reader = TosaReader(PtoSource("g.mlir", text))
    spans: list[Span] = []
    assert peak_of(lambda: spans.extend(map(reader.span, range(5000)))) < 5 * len(text)
    assert spans[3].column == len("%v0 %v1 %v2 ") + 1


@pytest.mark.parametrize("attribute", ['"{}"', "[{}]", "{}"])
def test_a_long_word_is_held_a_few_times_not_once_per_place(attribute: str):
    word = attribute.format("x" * 300_000)
    text = f"module attributes {{a = {word}, b = {word}}} {{ {one_line(200)} }}"
    assert peak_of(lambda: parse(text)) < 20 * len(text)


def test_a_span_says_what_it_said_before():
    span = PtoSource("k.pto", "ab\r\ncd ef\n").span(7, 50)
    assert (span.file, span.line, span.column, span.length, span.text) == ("k.pto", 2, 4, 2, "cd ef")
    assert span == Span("k.pto", 2, 4, "cd ef", 2)
    assert hash(span) == hash(Span("k.pto", 2, 4, "cd ef", 2))
    assert pickle.loads(pickle.dumps(span)) == span
    assert Span("t.csv", 12, 5, "a,b,c,d").text == "a,b,c,d"
    assert str(Span("t.csv", 12, 5, "a,b,c,d")) == "t.csv:12:5"
    assert str(Span("nowhere", 3, 9)) == "nowhere:3:9"
    assert Span("nowhere", 3, 9, "", 4).length == 4


def test_a_long_line_is_shown_from_the_place_on():
    assert PtoSource("k.pto", "  short  \n" + "y" * 300 + "x" * 300).span(10 + 300, 5).excerpt() == "x" * 200
    assert PtoSource("k.pto", "  short  \n").span(4).excerpt() == "short"


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
    ("text", "expected"),
    [
        ("%7{rmode", [(TokenKind.VALUE, "%7"), (TokenKind.PUNCTUATION, "{"), (TokenKind.WORD, "rmode")]),
        ("%a__b.c$d-e", [(TokenKind.VALUE, "%a__b.c$d-e")]),
        ("%a->", [(TokenKind.VALUE, "%a"), (TokenKind.PUNCTUATION, "->")]),
        ("%r:2", [(TokenKind.VALUE, "%r:2")]),
        ("%r#1", [(TokenKind.VALUE, "%r#1")]),
        ("%x: i32", [(TokenKind.VALUE, "%x"), (TokenKind.PUNCTUATION, ":"), (TokenKind.WORD, "i32")]),
        ("%x:i32", [(TokenKind.VALUE, "%x"), (TokenKind.PUNCTUATION, ":"), (TokenKind.WORD, "i32")]),
        ("-127.0", [(TokenKind.NUMBER, "-127.0")]),
        ("1.000000e+00", [(TokenKind.NUMBER, "1.000000e+00")]),
        ("0x7F800000", [(TokenKind.NUMBER, "0x7F800000")]),
        ("#pto<round_mode ROUND>", [(TokenKind.ATTRIBUTE, "#pto<round_mode ROUND>")]),
        ("#pto.layout<nd>", [(TokenKind.ATTRIBUTE, "#pto.layout<nd>")]),
        ("#rmode=FLOOR", [(TokenKind.ATTRIBUTE, "#rmode"), (TokenKind.PUNCTUATION, "="), (TokenKind.WORD, "FLOOR")]),
        ("<PIPE_V>", [(TokenKind.PUNCTUATION, "<"), (TokenKind.WORD, "PIPE_V"), (TokenKind.PUNCTUATION, ">")]),
        ('"PIPE_V"', [(TokenKind.STRING, '"PIPE_V"')]),
        ("!pto.tile_buf<vec, 4x256xf32, valid=4x200>", [
            (TokenKind.TYPE, "!pto.tile_buf<vec, 4x256xf32, valid=4x200>")]),
        ("!pto.tensor_view<?x?xf32> -> i8", [
            (TokenKind.TYPE, "!pto.tensor_view<?x?xf32>"), (TokenKind.PUNCTUATION, "->"), (TokenKind.WORD, "i8")]),
        ("^bb0", [(TokenKind.BLOCK, "^bb0")]),
        ("a // b\nc", [(TokenKind.WORD, "a"), (TokenKind.WORD, "c")]),
        ("a // to the end", [(TokenKind.WORD, "a")]),
        ("// only a comment", []),
        (" \t\r\n ", []),
        ("", []),
    ],
)  # fmt: skip
def test_tokens(text: str, expected: list[tuple[TokenKind, str]]) -> None:
    assert tokens(text) == expected


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


def test_long_blank_or_commented_tails_take_linear_time() -> None:
    start = time.thread_time()
    tokens("a" + " " * 400_000 + "\n" * 100_000 + "// x\n" * 50_000 + "//" + "/" * 200_000)
    tokens("!pto.tile_buf<" + " " * 400_000)
    assert time.thread_time() - start < 60  # processor time: linear takes a fraction of a second, else hours


# ---------------------- parameters of tile programs: what is filled in, the places of errors, and what cannot be read
SAMPLE = PROGRAMS / "tuning" / "f32_to_bf16_tiles.pto"
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


Capture = pytest.CaptureFixture[str]


def test_run_takes_values(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", str(SAMPLE), "--tile", "R=32", "--tile", "C=512", "--timing-only", "--quiet"]) == 0
    assert main(["run", str(SAMPLE), "--tile", "Q=32", "--timing-only"]) == 2
    assert "'Q' is not a parameter" in capsys.readouterr().err
    assert main(["run", str(SAMPLE), "--tile", "R=3.5", "--timing-only"]) == 2
    assert "--tile:1:3: '3.5' must be an integer or a word" in capsys.readouterr().err
    assert main(["run", str(SAMPLE.parent.parent / "tpc_f32_exp_goya.tpc"), "--tile", "R=3", "--timing-only"]) == 2
    assert "only tile programs take parameters" in capsys.readouterr().err


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

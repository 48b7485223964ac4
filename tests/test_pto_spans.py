"""Places in texts cost the same however long the line is, and nesting of any depth is refused, not run into."""

from __future__ import annotations

import pickle
import tracemalloc

import pytest

from castsim.isa.errors import CastsimError, ReadError, Span
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.pto.pto_parser import parse
from castsim.isa.reading import MAX_STATEMENTS
from castsim.isa.tpc.program import AssemblySource
from castsim.lowering.graphs.tosa_reader import TosaReader


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
    span = PtoSource("k.pto", "  short  \n" + "y" * 300 + "x" * 300).span(10 + 300, 5)
    assert span.excerpt() == "x" * 200
    assert PtoSource("k.pto", "  short  \n").span(4).excerpt() == "short"


DEPTH = 2_000  # twice what Python itself bears


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scf.if %b {" * DEPTH, "nested more than 64 deep"),
        ("scf.for %i = %c to %c step %c {" * DEPTH, "nested more than 64 deep|redefinition"),
        (f"pto.barrier <PIPE_ALL> {{a = {'[' * DEPTH}{']' * DEPTH}}}", "nested more than 64 deep|expected"),
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

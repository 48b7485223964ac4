from __future__ import annotations

import time

import pytest

from castsim.isa.errors import ReadError
from castsim.isa.pto.lexer import PtoSource, TokenKind, tokenize


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


def test_case_matters() -> None:
    assert tokens("Return") != tokens("return")


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a\n  \\", 2, 3, "unexpected character"),
        ("a /* b */", 1, 3, "comment"),
        ('a "open', 1, 3, "does not end on its line"),
        ('"a\nb"', 1, 1, "does not end on its line"),
        ("\ta ; b", 1, 4, "unexpected character"),
        ("% x", 1, 1, "name must follow"),
        ("caf\u00e9", 1, 4, "unexpected character"),
        ("a - b", 1, 3, "unexpected character '-'"),
        ("\0", 1, 1, "unexpected character"),
    ],
)
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

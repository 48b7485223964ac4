"""Statements in a form met before are read, and refused, as if each were the first."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.statement_reader import Forms

PROGRAMS = sorted((Path(__file__).parent.parent / "programs").rglob("*.pto"))
STATEMENT = re.compile(r"^\s*pto\.\w+ ins\(.*$", re.MULTILINE)
WORDS = re.compile(r"%[\w.]+|!pto\.tile_buf<[^>]*>|#pto<[^>]*>|\w+|[(){}:,]")


def outcome(text: str) -> object:
    """The program with all its places, or the refusal."""
    try:
        program = parse(text, "k.pto")
    except CastsimError as error:
        return type(error), str(error), str(error.span)
    return program, [repr(function) for function in program.functions]


def changed(text: str, draw: random.Random) -> str:
    """A program with a statement repeated, in which a word may be another one of the statement or of the program."""
    lines = text.splitlines()
    numbers = [number for number, line in enumerate(lines) if STATEMENT.match(line)]
    number = draw.choice(numbers)
    line = lines[number]
    if draw.random() < 0.8:
        word = draw.choice(list(WORDS.finditer(line)))
        other = draw.choice(WORDS.findall(lines[draw.choice(numbers)]))
        line = line[: word.start()] + draw.choice([other, "", f"{word[0]} {other}"]) + line[word.end() :]
    lines.insert(draw.choice([number, number + 1]), line)
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_with_and_without_forms(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    texts = [path.read_text() for path in PROGRAMS]
    made = [changed(text, draw) for text in draw.sample([text for text in texts if STATEMENT.search(text)], 20)]
    found = [outcome(text) for text in made]
    monkeypatch.setattr(Forms, "read", lambda *_: None)
    assert [outcome(text) for text in made] == found


def test_forms_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second statement of a form is not read word by word; one with a value of another type is."""
    tile = "!pto.tile_buf<vec, 16x64x{}>"
    f32, f16 = tile.format("f32"), tile.format("f16")
    cast = f"pto.tcvt ins(%{{}} : {f32}) outs(%{{}} : {f16})"
    head = [f"%{name} = pto.alloc_tile : {f32}" for name in "ab"] + [
        f"%{name} = pto.alloc_tile : {f16}" for name in "cd"
    ]
    casts = [cast.format(*each) for each in ("ac", "bd", "bc")]
    text = "\n".join(["func.func @k() {", *head, *casts, "return", "}"])
    hits = []
    read = Forms.read
    monkeypatch.setattr(Forms, "read", lambda *given: hits.append(read(*given)) or hits[-1])
    (function,) = parse(text).functions
    assert [(node.src, node.dst, node.span.line) for node in function.body[4:7]] == [
        ("a", "c", 6), ("b", "d", 7), ("b", "c", 8),
    ]  # fmt: skip
    assert sum(hit is not None for hit in hits) == 2
    printed = f"pto.tprint ins(%a : {f32})"
    assert len(parse(text.replace(casts[2], f"{printed}\n{printed}")).functions[0].body) == 9
    with pytest.raises(CastsimError, match="%d is defined as"):
        parse(text.replace(casts[2], cast.format("d", "c")))

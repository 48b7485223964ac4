"""Statements in a form met before are read, and refused, as if each were the first."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from kit.execution_programs import kernel_file
from kit.paths import ROOT

from castsim import run
from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.statement_reader import Forms

PROGRAMS = sorted((ROOT / "programs").rglob("*.pto"))
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


# ------------------------ A function that cannot be read refuses itself only, as long as the text tells where it ends
GOOD = "func.func @good() attributes {pto.entry} {\npto.barrier <PIPE_ALL>\nreturn\n}\n"
HELPER = GOOD.replace("@good", "@helper").replace(" attributes {pto.entry}", "")
FAULTS = {
    "unknown operation": ("pto.nonsense ins(%a) outs(%b)", 3),
    "undefined value": ("%y = arith.addi %x, %x : index", 3),
    "redefinition": ("%y = arith.constant 1 : index\n%y = arith.constant 2 : index", 4),
    "syntax": ("%y = = arith.constant 1 : index", 3),
    "unknown character": ("%y = arith.constant 1 ; index", 3),
    "open string": ('%y = arith.constant 1 : index {a = "b}', 3),
    "tile": ("%t = pto.alloc_tile : !pto.tile_buf<vec, 4x64xf32, valid=8x64>", 3),
    "call": ("func.call good() : () -> ()", 3),
    "in nested regions": (
        "%c = arith.constant 1 : index\n"
        "scf.for %i = %c to %c step %c {\nscf.for %j = %c to %c step %c {\nnonsense\n}\n}",
        6,
    ),
}


def bad(fault: str, *, entry: bool = False) -> str:
    marked = " attributes {pto.entry}" if entry else ""
    return f"func.func @bad(){marked} {{\n{fault}\nreturn\n}}\n"


def whole(*functions: str) -> str:
    return "module {\n" + "".join(functions) + "}\n"


def refusal(text: str, entry: str | None, folder: Path) -> CastsimError:
    with pytest.raises(CastsimError) as caught:
        run(kernel_file(folder, text), entry=entry, timing_only=True)
    return caught.value


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("first", [True, False])
def test_another_function_is_none_of_its_business(fault: str, first: bool, tmp_path: Path):
    text, line = FAULTS[fault]
    functions = (bad(text), GOOD) if first else (GOOD, bad(text))
    path = kernel_file(tmp_path, whole(*functions))
    assert run(path, entry="good", timing_only=True).loaded.entry == "good"
    assert run(path, entry="good").warnings == ()
    with pytest.raises(CastsimError) as caught:
        run(path, entry="@bad")
    with pytest.raises(CastsimError) as strict:
        parse(whole(*functions), str(path))
    assert str(caught.value) == str(strict.value)
    assert type(caught.value) is type(strict.value)
    assert caught.value.span is not None
    assert caught.value.span.line == line + (0 if first else 4)


def test_without_a_name_the_one_good_entry_runs_with_a_warning(tmp_path: Path):
    path = kernel_file(tmp_path, whole(bad("nonsense"), GOOD))
    found = run(path, timing_only=True)
    (warning,) = found.warnings
    assert (
        warning == f"{path}:3:1: function @bad is skipped, because castsim cannot read it: unknown operation 'nonsense'"
    )


@pytest.mark.parametrize(
    "functions",
    [(bad("nonsense", entry=True), HELPER), (bad("nonsense"),), (bad("x"), HELPER, HELPER.replace("helper", "other"))],
)
def test_without_a_name_what_may_be_meant_is_refused(functions: tuple[str, ...], tmp_path: Path):
    assert "unknown operation" in str(refusal(whole(*functions), None, tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        whole(bad("scf.for %i = %c to %c step %c {"), GOOD),  # a brace too few
        whole(bad("%y = arith.constant (1 : index"), GOOD),
        whole(GOOD) + "rubbish",
        whole(GOOD, "rubbish\n"),
        whole(GOOD) + "\x01",
    ],
)
def test_text_that_does_not_tell_where_a_function_ends_is_refused_as_a_whole(text: str, tmp_path: Path):
    found = refusal(text, "good", tmp_path)
    with pytest.raises(CastsimError) as strict:
        parse(text, str(tmp_path / "k.pto"))
    assert str(found) == str(strict.value)


def test_very_many_functions_are_not_all_listed(tmp_path: Path):
    many = "".join(f"func.func @f{number}() {{ return }}\n" for number in range(3000))
    found = refusal(whole(many), None, tmp_path)
    assert len(found.legal) == 13
    assert found.legal[-1] == "and 2988 more"

"""`castsim lsp` through a client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.check_cases import ASSEMBLY, MICRO, TILES, unmarked
from kit.command_output import err_of
from kit.lsp_client import Editor, applied, session, uri
from kit.paths import PROGRAMS
from lsprotocol import types as lsp

from castsim import check_text
from castsim.tools.check.checking import Finding
from castsim.tools.editor.actions import repaired as mended
from castsim.tools.editor.actions import repairs
from castsim.tools.editor.checker import line_cycles
from castsim.tools.editor.program_slice import EditedText, Settings

SAMPLES = sorted(path for suffix in ("pto", "tpc") for path in PROGRAMS.rglob(f"*.{suffix}"))
DELIBERATE = "tpc_f32_i32_pipelined_stale_goya.tpc"
"""The sample that shows what stale reads are."""

PIPELINED = (PROGRAMS / "f32_to_f16_pipelined.pto").read_text(encoding="utf-8")


def without_line(number: int) -> str:
    """Return the pipelined sample without a line, which places or awaits a flag."""
    return "\n".join(line for place, line in enumerate(PIPELINED.split("\n"), 1) if place != number)


WRONG = [
    *((f"{name}.pto", unmarked(text)[0]) for name, text in (TILES | MICRO).items()),
    *((f"{name}.tpc", unmarked(text)[0]) for name, text in ASSEMBLY.items()),
    *((f"without line {number}.pto", without_line(number)) for number in (21, 31, 33, 37, 38, 41, 46, 47, 54)),
]
_SEVERITIES = {"error": 1, "warning": 2, "note": 3}


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def wanted(found: tuple[Finding, ...], text: str) -> list[tuple[object, ...]]:
    """Return findings as their diagnostics have to be, columns in units of UTF-16."""
    lines = text.split("\n")
    result: list[tuple[object, ...]] = []
    for one in found:
        start = end = line = 0
        if one.line is not None and one.column is not None and one.end_column is not None:
            line, written = one.line - 1, lines[one.line - 1]
            start, end = utf16(written[: one.column - 1]), utf16(written[: one.end_column - 1])
        result.append((_SEVERITIES[one.severity], one.kind, one.message, line, start, end))
    return result


def got(diagnostics: list[lsp.Diagnostic]) -> list[tuple[object, ...]]:
    return [
        (
            int(one.severity or 0), one.code, one.message.partition("\nlegal: ")[0].partition("\nhelp: ")[0],
            one.range.start.line, one.range.start.character, one.range.end.character,
        )
        for one in diagnostics
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------ diagnostics


def test_wrong_programs_give_the_findings_of_check() -> None:
    async def work(one: Editor) -> None:
        for name, text in WRONG:
            one.open(uri(name), text)
            expected = check_text(str(Path("/kernels") / name), text)
            assert any(each.severity == "error" for each in expected), name
            assert got(await one.checked(uri(name))) == wanted(expected, text), name
            one.close(uri(name))

    session(work)


def test_samples_have_no_false_diagnostic() -> None:
    """Nor has any while it is typed: every line of some samples is changed and changed back."""

    async def work(one: Editor) -> None:
        for path in SAMPLES:
            one.open(path.as_uri(), path.read_text(encoding="utf-8"))
            found = await one.checked(path.as_uri())
            errors = [each for each in found if each.severity == lsp.DiagnosticSeverity.Error]
            assert (errors == []) is (path.name != DELIBERATE), path.name
        for name in ("kernels/rms_norm_a5.pto", "tpc_f32_i16_quantise_gaudi2.tpc", "micro/masked_tail.pto"):
            path = PROGRAMS / name
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")):
                end = lsp.Position(number, len(line))
                one.change(path.as_uri(), lsp.Range(end, end), " ")
                version = one.change(path.as_uri(), lsp.Range(end, lsp.Position(number, len(line) + 1)), "")
                found = list((await one.of_version(path.as_uri(), version)).diagnostics)
                assert [each.message for each in found if each.severity == 1] == [], (name, number)

    session(work)


def test_an_edit_is_answered_at_once_and_then_checked_as_a_whole() -> None:
    """The text has 20,000 statements: its whole check takes seconds, the answer to the edit does not wait for it."""

    async def work(one: Editor) -> None:
        tile = "!pto.tile_buf<vec, 16x64xf32>"
        add = f"    pto.tadd ins(%a, %a : {tile}, {tile}) outs(%b : {tile})\n"
        head = "func.func @k() {\n" + "".join(f"    %{name} = pto.alloc_tile : {tile}\n" for name in "ab")
        text = head + add * 20_000 + "    return\n}\n"
        one.open(uri("long.pto"), text)
        place = lsp.Range(lsp.Position(9000, 13), lsp.Position(9000, 16))
        version = one.change(uri("long.pto"), place, "inz")
        answer = await one.of_version(uri("long.pto"), version)
        (found,) = answer.diagnostics
        assert (found.range.start.line, found.severity) == (9000, 1)
        again = one.change(uri("long.pto"), place, "ins")
        assert list((await one.of_version(uri("long.pto"), again)).diagnostics) == []

    session(work)


def test_a_session_ends_while_a_text_is_checked() -> None:
    tile = "!pto.tile_buf<vec, 16x64xf32>"
    add = f"  pto.tadd ins(%a, %a : {tile}, {tile}) outs(%a : {tile})\n"

    async def work(one: Editor) -> float:
        one.open(uri("long.pto"), f"func.func @k() {{\n  %a = pto.alloc_tile : {tile}\n{add * 40_000}  return\n}}\n")
        await asyncio.sleep(3)
        return time.monotonic()

    assert time.monotonic() - session(work) < 10


def test_findings_move_with_their_lines() -> None:
    async def work(one: Editor) -> None:
        text, _ = unmarked(TILES["two undefined operands"])
        one.open(uri("k.pto"), text)
        before = await one.checked(uri("k.pto"))
        top = lsp.Position(0, 0)
        version = one.change(uri("k.pto"), lsp.Range(top, top), "// one\n// two\n")
        answer = await one.of_version(uri("k.pto"), version)
        assert [each.range.start.line for each in answer.diagnostics] == [each.range.start.line + 2 for each in before]
        assert got(await one.checked(uri("k.pto"))) == got(list(answer.diagnostics))

    session(work)


@pytest.mark.parametrize(("encoding", "units"), [(None, (2, 4)), ("utf-8", (2, 6)), ("utf-32", (2, 3))])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_columns_are_in_the_units_of_the_client(encoding: str | None, units: tuple[int, int], end: str) -> None:
    text = "func.func @k() {\n  \U0001f600 pto.tfoo\n  return\n}\n".replace("\n", end)

    async def work(one: Editor) -> list[lsp.Diagnostic]:
        one.open(uri("k.pto"), text)
        return await one.checked(uri("k.pto"))

    first, second = session(work, encodings=None if encoding is None else [encoding])
    assert (first.range.start.character, first.range.end.character) == units
    assert (second.range.start.line, second.range.start.character) == (1, units[1] + 1)
    assert second.range.end.character == units[1] + 9


def test_target_and_arguments_come_from_the_editor() -> None:
    text, _ = unmarked(TILES["cast that the target lacks"])

    async def work(one: Editor) -> list[lsp.Diagnostic]:
        one.open(uri("k.pto"), text)
        return await one.checked(uri("k.pto"))

    found = session(work, "--target", "a2a3", options={"target": "a5", "args": {"n": 16}})
    assert got(found) == wanted(check_text("k.pto", text, target="a5", args={"n": 16}), text)
    assert "not checked" not in [one.code for one in found]


def test_other_languages_and_closed_texts_have_no_diagnostics() -> None:
    async def work(one: Editor) -> None:
        one.open(uri("k.txt"), "hello", "plaintext")
        one.open(uri("k.pto"), "hello")
        assert len(await one.checked(uri("k.pto"))) > 0
        one.close(uri("k.pto"))
        one.open("untitled:Untitled-1", "func.func @k() {\n  pto.tfoo\n  return\n}\n", "pto")
        assert len(await one.checked("untitled:Untitled-1")) == 1
        assert [each.uri for each in one.published if each.uri == uri("k.txt")] == []
        assert list([each for each in one.published if each.uri == uri("k.pto")][-1].diagnostics) == []

    session(work)


# ------------------------------------------------------------------------------------------------- without the extra


def test_without_pygls_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("castsim.isa.errors.installed", lambda _: False)
    assert "pip install '.[lsp]'" in err_of(capsys, ["lsp"])


def test_nothing_but_the_server_loads_pygls() -> None:
    code = "import sys, castsim; [getattr(castsim, n) for n in castsim.__all__]; sys.exit('pygls' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def message(**content: object) -> bytes:
    data = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(data) + data


BEGIN = message(id=1, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}})
END = message(id=2, method="shutdown") + message(method="exit")


@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [
        (BEGIN + END, 0, ""),
        (BEGIN, 0, ""),
        (BEGIN + b"Content-Length: 99999999999\r\n\r\nx", 2, "error: a message of 99999999999 bytes"),
    ],
    ids=["ended", "left", "too long"],
)
def test_the_end_of_a_session_is_no_error_and_messages_have_a_limit(sent: bytes, code: int, said: str) -> None:
    words = [sys.executable, "-m", "castsim", "lsp"]
    done = subprocess.run(words, input=sent, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr.decode().partition("\n")[0]) == (code, said)


PLACE = {"textDocument": {"uri": "file:///k.pto"}, "position": {"line": 0, "character": 0}}
INVALID = [
    ("textDocument/hover", {}), ("textDocument/hover", []), ("textDocument/hover", PLACE | {"position": {"line": -1}}),
    ("textDocument/completion", PLACE | {"position": {"line": "x", "character": 0}}),
    ("textDocument/rename", PLACE), ("textDocument/codeAction", PLACE), ("castsim/checked", {"uri": 5}),
    ("workspace/executeCommand", {}),
]  # fmt: skip


def test_invalid_parameters_are_answered_as_such() -> None:
    """Error -32602 of JSON-RPC, for every request; the session goes on."""
    asked = [message(id=10 + k, method=name, params=params) for k, (name, params) in enumerate(INVALID)]
    sent = BEGIN + message(method="initialized", params={}) + b"".join(asked) + END
    words = [sys.executable, "-m", "castsim", "lsp"]
    done = subprocess.run(words, input=sent, capture_output=True, timeout=300, check=False)
    answers = [
        json.loads(body) for body in re.findall(rb"\r\n\r\n(\{.*?\})(?=Content-Length|$)", done.stdout, re.DOTALL)
    ]
    codes = {each["id"]: each.get("error", {}).get("code") for each in answers if "id" in each}
    assert {number: codes.get(number) for number in range(10, 10 + len(INVALID))} == dict.fromkeys(
        range(10, 10 + len(INVALID)), -32602
    )
    assert done.returncode == 0


# ------------------------------------------------------------------------------------------------------------ hover


def place_of(text: str, word: str) -> tuple[int, int]:
    """Return line and character, from 0, inside of the first such word."""
    before = text[: text.index(word)]
    return before.count("\n"), len(before) - before.rfind("\n")


HOVERS = [
    # docs/reference/a2a3.md 3 to 6: f32 -> f16 has ODD; NaN and infinity stay in Inf/NaN mode
    ("f32_to_f16_pipelined.pto", "tcvt", ("f32 -> f16", "`odd`", "| NaN | NaN |", "| INF | INF |", "vconv_f322f16o")),
    ("f32_to_f16_pipelined.pto", "wait_flag[<PIPE_MTE2>", ("makes the second pipe wait", "In this program: 16 x")),
    ("f32_to_f16_pipelined.pto", "%wide0 {rmode", ("pto.alloc_tile addr = %a_wide0",)),
    ("f32_to_f16_pipelined.pto", "ODD>", ("rounds to odd",)),
    ("f32_to_f16_pipelined.pto", "512xf16>", ("format f16: 16 bits, 5 of exponent (bias 15), 10 of fraction",)),
    # docs/reference/tpc.md 2: an all-lanes conversion; v1 and v2 lie in registers in a row
    ("tpc_c/cast_f32_bf16.c", "v_convert_f32_to_bf16_all_b", ("converts vectors of f32 to bf16",)),
    ("tpc_c/cast_f32_bf16.c", "v_f32_ld_tnsr_b", ("`ld_tnsr` on vectors of f32", "```tpc\nld_tnsr")),
    ("tpc_c/cast_f32_bf16.c", "float128", ("2 vectors", "`v2` float64")),
    ("tpc_c/cast_f32_bf16.c", "SW_PACK", ("`SW_PACK` is 4",)),
    ("a5_f32_to_e4m3fn_padded.pto", "tcvt", ("f32 -> e4m3fn", "pto.vcvt", 'part = "P0"', "cycles")),
    # docs/reference/a5.md 5: by way of i32, whose extremes end in 16 ones and 16 zeros; padded rows take one step
    ("a5_f32_to_i16_both_routes.pto", "tcvt ins(%wide", ("form: 1d", "| INF | -1 |", "| -INF | 0 |")),
    ("a5_f32_to_i16_both_routes.pto", "tcvt ins(%spare", ("form: 2d",)),
    ("kernels/rms_norm_a5.pto", "tmul ins", ("element by element", "docs/reference/pto.md 7.3", "`f32`", "pto.vmul")),
    ("kernels/rms_norm_a5.pto", "trowsum", ("reduces every row to one element",)),
    ("micro/f32_to_e4m3fn_quarters.pto", "vcvt", ("f32 -> e4m3fn", "`rnd`: `R`, `A`, `H`, `Z`", "`SAT` clamps")),
    ("micro/f32_to_e4m3fn_quarters.pto", "vdintlv", ("instruction of the vector unit",)),
    # docs/reference/tpc.md 2: to integers CONVERT clamps
    ("tpc_f32_i16_quantise_gaudi2.tpc", "convert.f32", ("`VPU`", "f32 -> i16", "| 32768.0 | 32767 |", "| 2.5 | 2 |")),
    ("tpc_f32_i16_quantise_gaudi2.tpc", "V4, V2", ("vector register of 256 bytes; gaudi2 has V0 to V39",)),
    ("tpc_f32_i16_quantise_gaudi2.tpc", "int16 rhne", ("format i16: 16 bits, integers -32768 to 32767",)),
]


def test_hover_tells_what_a_word_is() -> None:
    async def work(one: Editor) -> None:
        for name in dict.fromkeys(name for name, _, _ in HOVERS):
            path = PROGRAMS / name
            one.open(path.as_uri(), path.read_text(encoding="utf-8"))
            await one.checked(path.as_uri())
        for name, word, said in HOVERS:
            path = PROGRAMS / name
            found = await one.hover(path.as_uri(), *place_of(path.read_text(encoding="utf-8"), word))
            for each in said:
                assert each in found, (name, word, found)

    session(work)


def test_hover_on_a_cast_that_is_not_legal_names_the_legal_ones() -> None:
    async def work(one: Editor) -> str:
        text, _ = unmarked(TILES["three casts, two of them lacking"])
        one.open(uri("k.pto"), text)
        return await one.hover(uri("k.pto"), *place_of(text, "tcvt"))

    assert "a2a3 has no cast i8 -> f32" in session(work)


# ------------------------------------------------------------------------------------------------------- completion

COMPLETIONS = [
    ("k.pto", "    pto.tad", {"pto.tadd", "pto.tadds", "pto.taddc"}, {"pto.tmul"}),
    ("k.pto", "    pto.vcv", {"pto.vcvt"}, set()),
    ("k.pto", "    pto.tcvt ins(%", {"%x", "%n", "%c0", "%a"}, {"%later"}),
    ("k.pto", "    pto.tcvt ins(%a {rmode = #pto<round_mode ", {"RINT", "ODD", "NONE"}, {"pto.tadd"}),
    ("k.pto", "    %t = pto.alloc_tile : !", {"!pto.tile_buf", "!pto.tile_buf<vec, 16x64xf32>"}, set()),
    ("k.pto", "    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x", {"f8E4M3FN", "bf16"}, set()),
    ("k.pto", "    pto.set_flag[<PIPE_M", {"PIPE_MTE2", "PIPE_MTE3"}, {"PIPE_V"}),
    ("k.pto", '    %v = pto.vcvt %a, %m {rnd = "', {"R", "A", "H"}, {"SAT"}),
    ("k.tpc", "conv", {"convert.f32", "convert_int32"}, {"mul.f32"}),
    ("k.tpc", "nop; nop; convert.f32 target_type=", {"int16", "bf16"}, {"V1"}),
    ("k.tpc", "nop; nop; convert.f32 V", {"V0", "V39"}, {"V40", "S0"}),
    ("k.tpc", "nop; nop; convert.f32 r", {"rhne", "rz"}, set()),
    ("k.tpc", "// castsim: target g", {"gaudi2", "goya"}, {"a5"}),
]


def test_completion_offers_what_may_stand_there() -> None:
    texts = {
        "k.pto": 'module attributes {pto.target_arch = "a5"} {\nfunc.func @k(%x: !pto.ptr<f32>, %n: index) {\n'
        "    %c0 = arith.constant 0 : index\n    %a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>\nHERE\n"
        "    %later = arith.constant 0 : index\n    return\n}\n}\n",
        "k.tpc": "// castsim: target gaudi2\nHERE\nnop; halt; halt; nop\n",
    }

    async def work(one: Editor) -> None:
        for number, (name, before, some, none) in enumerate(COMPLETIONS):
            address = uri(f"{number}{name}")
            text = texts[name].replace("HERE", before)
            one.open(address, text)
            found = await one.completions(address, text[: text.index(before)].count("\n"), len(before))
            words = {each.label for each in found}
            assert some <= words and not none & words, (before, sorted(words)[:40])
            for each in found:  # what is inserted stands for what is typed of it
                assert isinstance(each.text_edit, lsp.TextEdit)
                typed = before[each.text_edit.range.start.character :]
                assert each.text_edit.new_text.lower().startswith(typed.lower())

    session(work)


# ------------------------------------------------------------------------------------------------------ inlay hints


def test_hints_tell_the_cycles_of_lines() -> None:
    """The loop of the sample is walked 16 times (512 rows, 32 of them a trip)."""

    async def work(one: Editor) -> None:
        path = PROGRAMS / "f32_to_f16_pipelined.pto"
        one.open(path.as_uri(), PIPELINED)
        await one.checked(path.as_uri())
        lines = PIPELINED.split("\n")
        found = {each.position.line: each for each in await one.hints(path.as_uri(), len(lines))}
        casts = [number for number, line in enumerate(lines) if "pto.tcvt" in line]
        for number in casts:
            assert str(found[number].label).startswith("16 x, ") and str(found[number].label).endswith(" cycles")
            assert found[number].position.character == len(lines[number])
        assert not any("arith.constant" in lines[number] for number in found)
        unknown = PIPELINED.replace("%dst: !pto.ptr<f16>", "%dst: !pto.ptr<f16>, %n: index")
        one.open(uri("n.pto"), unknown)
        await one.checked(uri("n.pto"))
        assert await one.hints(uri("n.pto"), len(lines)) == []
        one.open(uri("k.tpc"), (PROGRAMS / "tpc_f32_i16_quantise_gaudi2.tpc").read_text(encoding="utf-8"))
        await one.checked(uri("k.tpc"))
        assert any(str(each.label).startswith("8 x, ") for each in await one.hints(uri("k.tpc"), 40))

    session(work)


# ----------------------------------------------------------------------------------------------------- code actions


async def repaired(one: Editor, name: str, text: str, code: str, title: str) -> str:
    """Return a text with the first repair, of that title, of the first diagnostic of a code."""
    one.open(uri(name), text)
    diagnostic = next(each for each in await one.checked(uri(name)) if each.code == code)
    actions = await one.actions(uri(name), diagnostic)
    action = next(each for each in actions if (each.title or "").startswith(title))
    assert list(action.diagnostics or ()) == [diagnostic]
    assert action.edit is not None and action.edit.changes is not None
    return applied(text, list(action.edit.changes[uri(name)]))  # type: ignore[arg-type]


def errors(name: str, text: str) -> list[str]:
    return [one.message for one in check_text(name, text) if one.severity == "error"]


@pytest.mark.parametrize(
    ("text", "code", "title", "left"),
    [
        (unmarked(TILES["in a loop and behind it"])[0], "not legal on this target", "Cast i8 -> f16 -> f32", 1),
        (unmarked(TILES["an unknown type"])[0], "cannot be read", "Write index", 0),
        *((without_line(number), "race", "Insert pto.wait_flag", 0) for number in (31, 37, 38, 47)),
    ],
)
def test_the_first_repair_of_a_diagnostic(text: str, code: str, title: str, left: int) -> None:
    """The error goes, others stay; a flag is the line that was taken out, a chain has a tile of its own."""

    async def work(one: Editor) -> str:
        return await repaired(one, "k.pto", text, code, title)

    behind = session(work)
    assert len(errors("k.pto", text)) > len(errors("k.pto", behind)) == left
    assert ("outs(%via_f16 :" in behind) == title.startswith("Cast")
    assert code != "race" or sorted(behind.split("\n")) == sorted(PIPELINED.split("\n"))


def test_programs_of_vector_instructions_have_cycles() -> None:
    path = PROGRAMS / "micro" / "masked_tail.pto"
    text = path.read_text(encoding="utf-8")
    found = {one.line: one.cycles for one in line_cycles(EditedText(path.name, "pto", text), Settings())}
    words = {line: text.split("\n")[line - 1].split()[0] for line, cycles in found.items() if cycles}
    assert {"pto.mte_gm_ub", "pto.vecscope", "pto.mte_ub_gm"} <= set(words.values())


TYPED = """module attributes {pto.target_arch = "a5"} {
func.func @k(%tile: !pto.ptr<f32>) {
  %tilf = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf16>
  %tilg = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  pto.texp ins(%tils : !pto.tile_buf<vec, 16x64xf32>) outs(%tilg : !pto.tile_buf<vec, 16x64xf32>)
  pto.texp ins(%tilg : !pto.tile_buf<vec, 16x64xf33>) outs(%tilg : !pto.tile_buf<vec, 16x64xf32>)
  return
}
}
"""
BUNDLES = "// castsim: target gaudi2\nnop; nop; mulx.f32 V4, V2, V3; nop\nnop; halt; halt; nop\n"


@pytest.mark.parametrize(
    ("name", "text", "line", "titles"),
    [
        ("k.pto", TYPED, 5, ["Write %tilg"]),
        ("k.pto", TYPED, 6, ["Write f32"]),
        ("k.tpc", BUNDLES, 2, ["Write mul.f32"]),
    ],
)
def test_only_words_of_the_right_type_are_offered(name: str, text: str, line: int, titles: list[str]) -> None:
    findings = check_text(name, text)
    (found,) = [one for one in findings if one.line == line and one.severity == "error"]
    assert len(found.legal) == (3 if line == 5 else 1)
    assert [one.title for one in repairs(EditedText(name, name[2:], text), found, findings, Settings())] == titles


def mutants(count: int) -> Iterator[tuple[str, str]]:
    """Yield short samples with one change each: a letter, a word, a type, or a line that is missing."""
    rng = random.Random(48)
    short = [path for path in SAMPLES if len(path.read_text(encoding="utf-8").split("\n")) < 90]
    for _ in range(count):
        path = rng.choice(short)
        lines = path.read_text(encoding="utf-8").split("\n")
        words = [
            (number, word) for number, line in enumerate(lines) if not line.strip().startswith("//")
            for word in re.finditer(r"[%@!#]?[\w.]+", line)
        ]  # fmt: skip
        number, word = rng.choice(words)
        place = rng.randrange(len(word[0]))
        new = rng.choice(
            [
                word[0][:place] + word[0][place + 1 :],
                word[0][:place] + "x" + word[0][place:],
                re.sub("f32|f16|i8", rng.choice(("f32", "f16", "i16", "bf16")), word[0]),
                rng.choice(words)[1][0],
                None,
            ]
        )
        line = lines[number]
        lines[number : number + 1] = [] if new is None else [line[: word.start()] + new + line[word.end() :]]
        yield path.name, "\n".join(lines)


def test_every_offered_fix_removes_its_diagnostic_and_adds_no_error() -> None:
    """Messages are compared without numbers: lines move where a fix inserts some."""

    def told(findings: tuple[Finding, ...]) -> Counter[str]:
        return Counter(re.sub(r"\d+", "", one.message) for one in findings if one.severity == "error")

    tried = 0
    for name, text in (*mutants(80), *WRONG[::3]):
        edited = EditedText(name, name.rpartition(".")[2], text)
        findings = check_text(name, text)
        for finding in findings:
            for repair in repairs(edited, finding, findings, Settings()):
                left = told(check_text(name, mended(edited, repair.edits).text))
                message = re.sub(r"\d+", "", finding.message)
                assert left <= told(findings), (name, finding, repair)
                assert left[message] < told(findings)[message], (name, finding, repair)
                tried += 1
    assert tried > 20

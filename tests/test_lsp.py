"""`castsim lsp` through a client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from check_cases import ASSEMBLY, MICRO, TILES, unmarked
from lsp_client import Editor, session, uri
from lsprotocol import types as lsp

from castsim import check_text
from castsim.__main__ import main
from castsim.checking import Finding

PROGRAMS = Path(__file__).parent.parent / "programs"
SAMPLES = sorted(path for suffix in ("pto", "tpc") for path in PROGRAMS.rglob(f"*.{suffix}"))
DELIBERATE = "tpc_f32_i32_pipelined_stale_goya.tpc"
"""The sample that shows what stale reads are."""

PIPELINED = (PROGRAMS / "f32_to_f16_pipelined.pto").read_text(encoding="utf-8")
WITHOUT_FLAG = {
    f"line {number} of the pipelined sample missing": "\n".join(
        line for place, line in enumerate(PIPELINED.split("\n"), 1) if place != number
    )
    for number in (21, 31, 33, 37, 38, 41, 46, 47, 54)
}
WRONG = [
    *((f"{name}.pto", unmarked(text)[0]) for name, text in (TILES | MICRO).items()),
    *((f"{name}.tpc", unmarked(text)[0]) for name, text in ASSEMBLY.items()),
    *((f"{name}.pto", text) for name, text in WITHOUT_FLAG.items()),
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


def test_there_are_sixty_wrong_programs() -> None:
    assert len(WRONG) >= 60


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


@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-32"])
def test_columns_are_in_the_units_of_the_client(encoding: str | None) -> None:
    text = "func.func @k() {\n  \U0001f600 pto.tfoo\n  return\n}\n"
    units = {None: (2, 4), "utf-8": (2, 6), "utf-32": (2, 3)}[encoding]

    async def work(one: Editor) -> list[lsp.Diagnostic]:
        one.open(uri("k.pto"), text)
        return await one.checked(uri("k.pto"))

    found = session(work, encodings=None if encoding is None else [encoding])
    first, second = found
    assert (first.range.start.character, first.range.end.character) == units
    assert second.range.start.character == units[1] + 1


def test_carriage_returns_do_not_count() -> None:
    async def work(one: Editor) -> list[lsp.Diagnostic]:
        one.open(uri("k.pto"), "func.func @k() {\r\n  pto.tfoo\r\n  return\r\n}\r\n")
        return await one.checked(uri("k.pto"))

    (found,) = session(work)
    assert found.range == lsp.Range(lsp.Position(1, 2), lsp.Position(1, 10))


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
    monkeypatch.setattr("castsim.commands.lsp.find_spec", lambda _: None)
    assert main(["lsp"]) == 2
    assert "pip install 'castsim[lsp]'" in capsys.readouterr().err


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

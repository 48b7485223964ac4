"""Reports on narrow terminals: a table may be wrapped or broken into several, but no word or number of it is cut."""

from __future__ import annotations

import io
import itertools
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.command_output import document_of, out_of
from kit.paths import PROGRAMS, ROOT
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from castsim.__main__ import main
from castsim.commands import command_line
from castsim.commands.outcome import SCREEN, one_screen
from castsim.reports.terminal import indented, pieces, rendered, table

COMMANDS = (
    "run programs/f32_to_f16.pto --timing-only --report kernel --show-sync",
    "run programs/f32_to_f16.pto --in src=random:0",
    "run programs/kernels/rms_norm_a2a3.pto --in src=random:0 --in gamma=random:1 --arg eps=1e-6",
    "run programs/a5_f32_to_e4m3fn_padded.pto --timing-only --what-if all",
    "run programs/tpc_f32_i16_quantise_greco.tpc --in x=random:0",
    "run programs/tpc_f32_i32_pipelined_stale_goya.tpc --timing-only --lint",
    "cast f32 e4m3fn 464 480 -0.0009 nan",
    "cast f32 i16 40000 2.5 -inf --target all",
    "cast f32 e4m3fn 480 --spec tosa",
    "cast f32 i16 40000 3e9 --target a2a3 --saturation off --scratch",
    "targets",
    "targets a2a3",
    "targets a2a3 f16 i8",
    "targets gaudi",
    "targets --diff a2a3 a5",
    "scratch f32 i16 --rows 4 --cols 200 --row-stride 256 --audit",
    "lint programs/tpc_f32_i32_pipelined_goya.tpc",
    "asm programs/tpc_f32_i32_pipelined_goya.tpc",
    "builtin f32_to_u8_lin_order --target greco --in x=random:1",
    "compiled f32 u16 40000 --target gaudi",
    "compiled --table --target gaudi",
    "unswizzle programs/tpc_bf16_scale_linear_gaudi.tpc",
    "lower f32 i8 --spec tosa --target a2a3",
    "conform --spec tosa --target a5 --src f16 --dst i8",
    "graph programs/casts_and_rescales.mlir --target gaudi2 --in arg0=random:1 --in arg1=random:2",
    "verify f16 e2m1 --rounding rint --samples 2000 --against reference",
    "accuracy --target a2a3",
    "expand programs/a5_f32_to_i16_both_routes.pto",
    "scratch f32 i16 --rows 0:300:100 --cols 0:256:32 --row-stride 256:512:64 --sweep",
    "latency 'add.f16 V10, V2, V3' 'mul.f16 V4, V10, V5' --target gaudi2",
    "builtin --target gaudi2",
)
"""Every command of which a report has a table, on what comes with the checkout."""


def tables(shown: RenderableType) -> Iterator[Table]:
    if isinstance(shown, Table):
        yield shown
    elif isinstance(shown, Group):
        for each in shown.renderables:
            yield from tables(each)
    elif isinstance(shown, Padding):
        yield from tables(shown.renderable)


def words_of(shown: Table) -> Counter[str]:
    """The words of all cells and headings, as a very wide console shows each alone."""
    console = Console(file=io.StringIO(), width=10_000)
    with console.capture() as heard:
        for column in shown.columns:
            for cell in (column.header, *column.cells):
                console.print(cell, markup=False, highlight=False, emoji=False, no_wrap=True)
    return Counter(heard.get().split())


Capture = pytest.CaptureFixture[str]


class _Pipe(io.StringIO):
    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_of_a_table_is_cut(command: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", str(width))
    outcome = command_line.execute(*command_line.parse(shlex.split(command)))
    shown = outcome.text(width)
    found = Counter(rendered(shown, _Pipe()).split())
    for each in tables(shown):
        lost = words_of(each) - found
        assert not lost, f"{command} at {width}: {sorted(lost)[:10]}"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    "command", [line for line in COMMANDS if line.split(maxsplit=1)[0] in ("run", "targets", "cast", "accuracy")]
)
def test_rules_of_tables_keep_within_the_width(command: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", str(width))
    text = rendered(command_line.execute(*command_line.parse(shlex.split(command))).text(width), _Pipe())
    assert max((len(line) for line in text.splitlines() if set(line.strip()) == {"-"}), default=0) <= width


def test_the_rows_keep_their_names_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    made = table("name", *(f">column{n}" for n in range(9)))
    for row in ("first row", "second row"):
        made.add_row(row, *(f"{n}{n}{n}{n}{n} B" for n in range(9)))
    shown = rendered(made, _Pipe())
    assert max(map(len, shown.splitlines())) <= 60
    parts = shown.strip().split("\n\n")
    assert len(parts) == 2
    assert all("first row" in part and "second row" in part for part in parts)
    assert all(f"{n}{n}{n}{n}{n} B" in shown for n in range(9))


KEYS = {
    "cast f32 i16 40000 2.5 -inf --target all": ("given", "target"),
    "accuracy --target a2a3": ("operation", "types"),
    "run programs/kernels/rms_norm_a2a3.pto --timing-only --arg eps=1e-6 --report full": ("line", "instruction"),
}


@pytest.mark.parametrize("command", [*COMMANDS, *KEYS])
def test_every_part_of_a_table_repeats_what_tells_its_rows_apart(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns the rows of each part are as many different ones by the columns that are repeated as by all texts
    before the first number.
    """
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    console = Console(file=io.StringIO(), width=80)
    for each in tables(command_line.execute(*command_line.parse(shlex.split(command))).text(80)):
        _, groups = each._fitted(console, console.options)
        repeated = set(groups[0]).intersection(*groups[1:])
        assert (repeated and all({*repeated} < {*group} for group in groups)) or len(groups) == 1
        if len(groups) == 1:
            continue
        named = {str(each.columns[number].header).replace("\n", " ") for number in repeated}
        assert {*KEYS.get(command, ())} <= named
        cells = [[getattr(cell, "plain", str(cell)) for cell in column.cells] for column in each.columns]
        filled = list(itertools.accumulate(cells[0], lambda above, own: own or above))
        texts = next((n for n, column in enumerate(each.columns) if n and column.justify == "right"), len(cells))
        by_keys = {*zip(filled, *(cells[number] for number in sorted(repeated - {0})), strict=True)}
        by_texts = {*zip(filled, *cells[1:texts], strict=True)}
        assert len(by_keys) >= len(by_texts), (named, command)


def test_a_word_longer_than_the_terminal_goes_past_its_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    made = table("digest", ">bytes")
    made.add_row("0123456789abcdef" * 4, "12345678901234567890 B")
    shown = rendered(made, _Pipe())
    assert "0123456789abcdef" * 4 in shown
    assert "12345678901234567890 B" in shown


def counted() -> Table:
    made = table("name", ">first start", ">last end", "two-step count")
    made.add_row("row", "0", "12", "word")
    return made


@pytest.mark.parametrize(
    ("width", "parts", "broken"), [(80, 1, False), (43, 1, False), (42, 1, True), (27, 1, True), (26, 2, True)]
)
def test_headings_of_several_words_are_broken_before_a_table_is(
    width: int, parts: int, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, the headings take 4 + 11 + 8 + 14 columns and 3 gaps of 2; broken, 4 + 5 + 4 + 8; "two-step" stays."""
    monkeypatch.setenv("COLUMNS", str(width))
    shown = rendered(counted(), _Pipe())
    assert len(shown.strip().split("\n\n")) == parts
    assert ("first start" not in shown) == broken
    assert "two-step" in shown
    assert max(map(len, shown.splitlines())) <= width


# ------------------------------------------------------------------------------- `--summary`: one screen of 24 lines


@pytest.mark.parametrize("command", [*COMMANDS, "schema", "manual", "check programs/f32_to_f16.pto"])
def test_every_report_fits_a_screen(command: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    status = main([*shlex.split(command), "--summary"])
    out, err = capsys.readouterr()
    assert status in (0, 1), err
    assert out.count("\n") <= SCREEN == 24


def test_what_fits_is_left_as_it_is() -> None:
    short = [f"line {number}" for number in range(SCREEN - 1)]
    assert one_screen(short) == "\n".join(short) + "\n"


@pytest.mark.parametrize("lines", [24, 25, 100, 12_345])
def test_the_beginning_and_the_end_stay(lines: int) -> None:
    text = [f"line {number}" for number in range(lines)]
    shown = one_screen(text).splitlines()
    kept = [line for line in shown if line.startswith("line ")]
    assert len(shown) < SCREEN
    assert kept[0] == text[0]
    assert kept[-1] == text[-1]
    assert f"... {lines - len(kept):,} lines omitted; run without --summary to see them" in shown


def sentence(number: int, words: int) -> str:
    return f"Sentence {number} has {words} words, " + " ".join(f"name_{number}_{word}" for word in range(words)) + "."


@pytest.mark.parametrize("words", [2, 20, 40])
@pytest.mark.parametrize("width", [40, 80])
def test_no_sentence_is_cut_however_long_its_names_are(words: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = table(">line", "what it does")
    for number in range(60):
        rows.add_row(str(number), f"begins {number} " + "and goes on " * words + f"ends {number}")
    sentences = [sentence(number, words) for number in range(60)]
    parts = [Text("\n".join(sentences[:20])), rows, *(indented(Text(each)) for each in sentences[20:])]
    shown = one_screen(pieces(Group(*parts), io.StringIO()))
    assert shown.count("\n") <= max(SCREEN, rendered(Text(sentences[0]), io.StringIO()).count("\n") + 10)
    joined = " ".join(shown.split())
    for number, whole in enumerate(sentences):
        assert (f"Sentence {number} has" in joined) == (whole in joined), number
    assert sentences[0] in joined
    for number in range(60):
        assert (f"begins {number} " in joined) == (f"ends {number}" in joined.replace("  ", " ")), number


def test_a_run_with_long_names_cuts_no_sentence(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / f"{'kernel_with_a_name_' * 10}.pto"
    path.write_text((PROGRAMS / "a5_f32_to_i16_both_routes.pto").read_text())
    words = ["run", str(path), "--in", "src=random:0"]
    assert main([*words, "--summary"]) == 0
    short = " ".join(capsys.readouterr().out.replace("\\\n", " ").split())
    for end in ("(undocumented clock)", "busy)", "cycles"):
        assert end in short
    assert ("Trust: " in short) == ("held-out rows)" in short)


@pytest.mark.parametrize("words", [("--summary", "targets", "a5"), ("targets", "a5", "--summary")])
def test_it_stands_before_or_after_the_command(words: tuple[str, ...], capsys: Capture) -> None:
    assert out_of(capsys, list(words)).count("\n") < SCREEN


def test_a_summary_has_the_largest_gains_that_were_asked_for(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    words = ["run", str(PROGRAMS / "f32_to_f16_pipelined.pto"), "--timing-only", "--what-if", "all"]
    found = document_of(capsys, *words)["what_if"]
    gains = sorted((entry["gained_cycles"] for entry in found), reverse=True)[:3]
    assert main([*words, "--summary"]) == 0
    shown = capsys.readouterr().out.splitlines()
    rows = shown[next(number for number, line in enumerate(shown) if line.startswith("lifted ")) + 2 :]
    assert [int(row.split()[2].replace(",", "")) for row in rows[:3]] == gains

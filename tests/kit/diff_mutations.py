"""Changes of sample programs, each with the lines that a comparison must show; both follow from the edit alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kit.paths import PROGRAMS

Shown = tuple[str, int | None, int | None]
"""Kind of change, line before, line after."""

Edit = tuple[list[str], list[Shown]]
"""The lines of the edited program, and what is to be shown of them."""


@dataclass(frozen=True)
class Mutation:
    """An edit of a program."""

    name: str
    program: str
    edit: Callable[[list[str]], Edit]
    arguments: dict[str, float] = field(default_factory=dict)

    def edited(self) -> tuple[str, list[Shown]]:
        """Return the text, and what is to be shown."""
        lines, shown = self.edit((PROGRAMS / self.program).read_text().split("\n"))
        return "\n".join(lines), shown


def exchanged(
    first: int, last: int, made: Callable[[list[str]], list[str]], *shown: Shown
) -> Callable[[list[str]], Edit]:
    """Put other lines in the place of those from the first to the last."""
    return lambda lines: ([*lines[: first - 1], *made(lines[first - 1 : last]), *lines[last:]], list(shown))


def replaced(line: int, old: str, new: str) -> Callable[[list[str]], Edit]:
    """Change a part of a line."""

    def made(lines: list[str]) -> list[str]:
        assert old in lines[0]
        return [lines[0].replace(old, new)]

    return exchanged(line, line, made, ("changed", line, line))


def everywhere(old: str, new: str, kind: str) -> Callable[[list[str]], Edit]:
    """Change a word wherever it stands outside of comments."""

    def edit(lines: list[str]) -> Edit:
        word = re.compile(rf"(?<![\w%]){re.escape(old)}(?!\w)")
        shown: list[Shown] = []
        for number, text in enumerate(lines, 1):
            code, slashes, comment = text.partition("//")
            if word.search(code):
                lines[number - 1] = word.sub(new, code) + slashes + comment
                shown.append((kind, number, number))
        assert shown
        return lines, shown

    return edit


def inserted(before: int, *texts: str) -> Callable[[list[str]], Edit]:
    """Put lines before a line."""
    shown: list[Shown] = [("added", None, before + number) for number in range(len(texts))]
    return exchanged(before, before - 1, lambda _: list(texts), *shown)


def repeated(line: int) -> Callable[[list[str]], Edit]:
    """Put a line a second time behind itself."""
    return exchanged(line, line, lambda lines: lines * 2, ("added", None, line + 1))


def removed(line: int) -> Callable[[list[str]], Edit]:
    """Take a line away."""
    return exchanged(line, line, lambda _: [], ("removed", line, None))


def swapped(line: int) -> Callable[[list[str]], Edit]:
    """Exchange a line with the next one: the second one has moved up, or the first one down."""
    return moved(line + 1, line)


def moved(line: int, before: int) -> Callable[[list[str]], Edit]:
    """Take a line from its place and put it before an earlier one."""
    return exchanged(before, line, lambda lines: [lines[-1], *lines[:-1]], ("moved", line, before))


def both(*edits: Callable[[list[str]], Edit]) -> Callable[[list[str]], Edit]:
    """Make edits that change no line numbers."""

    def edit(lines: list[str]) -> Edit:
        found: list[Shown] = []
        for each in edits:
            lines, shown = each(lines)
            found += shown
        return lines, sorted(found, key=lambda entry: entry[1] or 0)

    return edit


def silent(change: Callable[[str], str]) -> Callable[[list[str]], Edit]:
    """Change every line in a way that says nothing else."""
    return lambda lines: ([change(text) for text in lines], [])


def spaced(text: str) -> str:
    """Put blanks where they do not matter."""
    return f"  {text.replace(', ', ' ,  ')}"


SMALL, LOOP, NORM = "f32_to_f16.pto", "f32_to_f16_pipelined.pto", "kernels/rms_norm_a2a3.pto"
BARRIERS, MICRO, PACKED = "f32_to_i32_barriers.pto", "micro/f32_to_f16_parts.pto", "tpc_f32_bf16_packed_gaudi2.tpc"
QUANTISE = "tpc_f32_i16_quantise_greco.tpc"
EPS = {"eps": 1e-6}
TWO = "    %c2 = arith.constant 2 : index"
MERGED = (
    "        %more = pto.vor %low, %low, %both : !pto.vreg<128xf16>, !pto.vreg<128xf16>, !pto.mask<b16>"
    " -> !pto.vreg<128xf16>"
)

MUTATIONS = (
    Mutation("mode", SMALL, replaced(15, "RINT", "TRUNC")),
    Mutation("saturation", SMALL, replaced(15, "RINT>}", "RINT>, sat_mode = #pto<saturation_mode OFF>}")),
    Mutation("renamed tile", SMALL, everywhere("%wide", "%broad", "renamed")),
    Mutation("renamed constant", SMALL, everywhere("%c1", "%one", "renamed")),
    Mutation("renamed argument", SMALL, everywhere("%dst", "%out", "renamed")),
    Mutation("renamed function", SMALL, replaced(3, "@f32_to_f16", "@other")),
    Mutation("inserted constant", SMALL, inserted(6, TWO)),
    Mutation("inserted instructions", SMALL, inserted(8, TWO, "%c3 = arith.addi %c2, %c1 : index")),
    Mutation("repeated cast", SMALL, repeated(15)),
    Mutation("swapped constants", SMALL, swapped(4)),
    Mutation("swapped tiles", SMALL, swapped(12)),
    Mutation("moved constant", SMALL, moved(7, 4)),
    Mutation("blanks", SMALL, silent(spaced)),
    Mutation("comments", SMALL, silent(lambda text: f"{text} // as before")),
    Mutation("removed barrier at the end", BARRIERS, removed(20)),
    Mutation("other barrier", BARRIERS, replaced(20, "<PIPE_ALL>", "<PIPE_MTE3>")),
    Mutation("mode and name", BARRIERS, both(replaced(17, "CEIL", "FLOOR"), replaced(4, "@f32_to_i32", "@other"))),
    Mutation("rows", LOOP, replaced(9, "512", "256")),
    Mutation("other instruction", NORM, replaced(35, "pto.tadd ", "pto.tmax "), EPS),
    Mutation("other operand", NORM, replaced(40, "ins(%root ", "ins(%acc "), EPS),
    Mutation("mode in a loop", NORM, replaced(51, "ROUND", "RINT"), EPS),
    Mutation("repeated in a loop", NORM, repeated(32), EPS),
    Mutation("default mode", NORM, replaced(51, " {rmode = #pto<round_mode ROUND>}", ""), EPS),
    Mutation("mode of a lane", MICRO, replaced(24, '"R"', '"Z"')),
    Mutation("trips", MICRO, replaced(12, "512", "256")),
    Mutation("swapped conversions", MICRO, swapped(24)),
    Mutation("renamed register", MICRO, everywhere("%half", "%merged", "renamed")),
    Mutation("inserted in a launch", MICRO, inserted(27, MERGED)),
    Mutation("rounding", PACKED, replaced(19, "rhne", "rz")),
    Mutation("register", PACKED, everywhere("V2", "V6", "changed")),
    Mutation("trips of a loop", PACKED, replaced(9, "0, 8, 1", "0, 4, 1")),
    Mutation("start value", QUANTISE, replaced(6, "0x43aa2000", "0x43aa0000")),
    Mutation("lane", QUANTISE, replaced(25, "lane_sel=1", "lane_sel=0")),
    Mutation("inserted bundle", QUANTISE, inserted(20, "nop; add.i32 b00010 I0, 0x0, I0; nop; nop")),
)  # fmt: skip

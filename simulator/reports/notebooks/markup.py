"""HTML of results: text that stays text, tables, bars and lanes as SVG, in colours that suit light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from castsim.execution.timing import Cause, share
from castsim.isa.errors import escaped
from castsim.reports.numbers import CAUSE_COLOURS, grouped

# Colours that are told apart on light and on dark pages, by colour-blind readers too.
#
# Those of eight things are of Okabe and Ito, "Color Universal Design" (2008), without black; causes have fixed ones, so
# that drawings can be compared.

SERIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#999999")
"""Colours of things in the order in which they appear; the last is for all that are left."""


def cause_colour(cause: Cause) -> str:
    """Return the colour of a cause."""
    return CAUSE_COLOURS[cause][0]


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each different name, in the order of their first appearance."""
    known = dict.fromkeys(names)
    return {name: SERIES[min(number, len(SERIES) - 1)] for number, name in enumerate(known)}


def meanings(colours: Mapping[str, str]) -> dict[str, str]:
    """Return the name behind each colour; of several names of one colour only that there are others."""
    found: dict[str, str] = {}
    for name, colour in colours.items():
        found[colour] = "others" if colour in found else name
    return found


WIDTH = 640
"""Pixels of a drawing."""

_LABEL = 64
"""Pixels for the name of a lane."""

_LANE = 18
"""Pixels from lane to lane."""

_BORDER = "border-bottom:1px solid rgba(128,128,128,.35);padding:.1em .7em .1em 0;background:none;color:inherit"
_RIGHT = f"{_BORDER};text-align:right;font-variant-numeric:tabular-nums"
_LEFT = f"{_BORDER};text-align:left"


def short(result: object) -> str:
    """Return the short form of a result without the name of its class."""
    return repr(result)[1:-1].partition(" ")[2]


def text(words: object) -> str:
    """Return words as HTML that shows them, with nothing in them that opens an element or turns the line around."""
    return html.escape(escaped(str(words)), quote=True)


def line(words: object, *, bold: bool = False, dim: bool = False) -> str:
    """Return a line of words."""
    style = f"{'font-weight:bold;' if bold else ''}{'opacity:.7;' if dim else ''}margin:.15em 0"
    return f'<div style="{style}">{text(words)}</div>'


def whole(*parts: str) -> str:
    """Return the parts as the one element that a notebook shows."""
    return f'<div style="color:inherit;line-height:1.4">{"".join(parts)}</div>'


def program_text(source: str) -> str:
    """Return a program, folded away."""
    shown = f'<pre style="background:none;color:inherit">{text(source)}</pre>'
    return f"<details><summary>program</summary>{shown}</details>"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> str:
    """Return a table; the columns `numbers` stand flush right, and cells that are `Markup` go in as they are."""
    styles = [_RIGHT if head in numbers else _LEFT for head in heads]
    head = "".join(f'<th style="{style}">{text(name)}</th>' for style, name in zip(styles, heads, strict=True))
    body = "".join(_row(styles, row) for row in rows)
    return (
        '<table style="border-collapse:collapse;margin:.4em 0;background:none;font-size:inherit">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(styles: Sequence[str], row: Sequence[object]) -> str:
    cells = (f'<td style="{style}">{_cell(cell)}</td>' for style, cell in zip(styles, row, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that is finished."""

    html: str


def _cell(cell: object) -> str:
    return cell.html if isinstance(cell, Markup) else text(cell)


def cause_bar(causes: Mapping[Cause, int], total: int, width: int = 320) -> Markup:
    """Return the cycles of a pipe as a bar whose parts are its causes; their words appear on hovering."""
    parts, behind = [], 0
    for cause in Cause:
        cycles = causes.get(cause, 0)
        if cycles and total:
            title = f"{cause}: {grouped(cycles)} cycles, {share(cycles, total)}"
            parts.append(
                f'<rect x="{width * behind / total:.2f}" y="1" width="{width * cycles / total:.2f}" height="12" '
                f'fill="{cause_colour(cause)}"><title>{text(title)}</title></rect>'
            )
        behind += cycles
    return Markup(_svg(width, 14, parts, "cycles by cause"))


def legend(colours: Mapping[str, str]) -> str:
    """Return what colours mean."""
    parts = [
        f'<span style="white-space:nowrap;margin-right:1em"><span style="display:inline-block;width:.8em;height:.8em;'
        f'background:{colour}"></span> {text(name)}</span>'
        for colour, name in meanings(colours).items()
    ]
    return f'<div style="font-size:90%">{"".join(parts)}</div>'


@dataclass(frozen=True, slots=True)
class Mark:
    """Cycles [start, end) of a lane, in a colour, and what is said on hovering."""

    lane: str
    start: int
    end: int
    colour: str
    title: str


def lanes(names: Sequence[str], marks: Iterable[Mark], start: int, end: int) -> str:
    """Return marks between two cycles as SVG, a lane each name; tiny ones of a colour join where nobody sees a gap."""
    scale = (WIDTH - _LABEL) / max(end - start, 1)
    drawn = [_lane(number, name) for number, name in enumerate(names)]
    place = {name: number * _LANE for number, name in enumerate(names)}
    for mark in _joined(marks, 1 / scale):
        left = _LABEL + (max(mark.start, start) - start) * scale
        width = max((min(mark.end, end) - max(mark.start, start)) * scale, 0.5)
        drawn.append(
            f'<rect x="{left:.2f}" y="{place[mark.lane] + 3}" width="{width:.2f}" height="{_LANE - 6}" '
            f'fill="{mark.colour}" fill-opacity=".8"><title>{text(mark.title)}</title></rect>'
        )
    bottom = len(names) * _LANE + 12
    drawn.append(_words(_LABEL, bottom, f"cycle {grouped(start)}"))
    drawn.append(_words(WIDTH, bottom, grouped(end), anchor="end"))
    return _svg(WIDTH, bottom + 6, drawn, "timeline")


def _joined(marks: Iterable[Mark], gap: float) -> Iterable[Mark]:
    """Yield marks, one for all of a lane and colour between which nobody would see anything."""
    opened: dict[tuple[str, str], tuple[Mark, int, int]] = {}
    for mark in sorted(marks, key=lambda each: each.start):
        key = mark.lane, mark.colour
        known = opened.get(key)
        tiny = mark.end - mark.start < gap
        if known is not None and tiny and mark.start - known[1] < gap:
            opened[key] = known[0], max(known[1], mark.end), known[2] + 1
            continue
        if known is not None:
            yield _one(*known)
        opened[key] = mark, mark.end, 1
    for known in opened.values():
        yield _one(*known)


def _one(mark: Mark, end: int, count: int) -> Mark:
    title = mark.title if count == 1 else f"{mark.title}, and {count - 1} more"
    return Mark(mark.lane, mark.start, end, mark.colour, title)


def _lane(number: int, name: str) -> str:
    y = number * _LANE + _LANE // 2
    ruled = f'<line x1="{_LABEL}" x2="{WIDTH}" y1="{y}" y2="{y}" stroke="currentColor" stroke-opacity=".2"/>'
    return _words(0, y + 4, name) + ruled


def _words(x: int, y: int, words: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" font-size="11" fill="currentColor" text-anchor="{anchor}">{text(words)}</text>'


def _svg(width: int, height: int, parts: Iterable[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{text(label)}">{"".join(parts)}</svg>'
    )

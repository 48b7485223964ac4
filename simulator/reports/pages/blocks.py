"""Blocks of data from which pages and notebook outputs are built; the page's scripts draw them, or plain HTML."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, TypeAlias, cast
from zlib import compress

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as TextTable
from rich.text import Text as StyledText

from castsim.execution.timing import Cause
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import escaped
from castsim.reports.documents import Document, Json, document, identifier
from castsim.reports.numbers import SERIES, TONES, grouped


def compact(value: Json) -> str:
    """Return a value as JSON in one line without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def shown(value: Json) -> Json:
    """Return a value whose texts cannot control a terminal or change the direction of the surrounding text."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Mapping):
        return {escaped(key): shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    return value


Cell: TypeAlias = str | int | float | None
"""One cell of a table; None is empty."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; `tone` is plain, answer, alarm, strong, warning or dim."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of text."""

    lines: tuple[Line, ...]
    kind: str = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """A prominent figure: `value` in units of `unit`, with a remark below."""

    label: str
    value: Cell
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures side by side."""

    items: tuple[Figure, ...]
    kind: str = field(default="figures", init=False)


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table: `numbers` are the numeric columns, `heat` is the one whose numbers are also shown as bars.

    `lines` is the column of source line numbers, which link to the lines. The page shows `most` rows until the reader
    requests the others. Text reports show only the first `reported` columns; None shows all.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: tuple[int, ...] = ()
    heat: int | None = None
    lines: int | None = None
    most: int = 300
    reported: int | None = None
    kind: str = field(default="table", init=False)


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers with a name; `tone` is the name of a colour on the page, or empty."""

    name: str
    values: tuple[int | float, ...]
    tone: str = ""


def cause_series(bars: Sequence[Mapping[Cause, int]]) -> tuple[Series, ...]:
    """Return the cycles of bars by cause, for every cause in any of them."""
    return tuple(
        Series(str(cause), tuple(causes.get(cause, 0) for causes in bars), identifier(cause))
        for cause in Cause
        if any(causes.get(cause) for causes in bars)
    )


@dataclass(frozen=True, slots=True)
class Bars:
    """A stacked bar for each of `names`, with one number from each series; with a `table` they are also listed."""

    caption: str
    unit: str
    names: tuple[str, ...]
    series: tuple[Series, ...]
    table: bool = True
    kind: str = field(default="bars", init=False)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of numbers between edges; bin k is [edges[k], edges[k + 1]), the last one closed."""

    caption: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    marks: tuple[tuple[str, float], ...] = ()
    kind: str = field(default="histogram", init=False)


@dataclass(frozen=True, slots=True)
class Curve:
    """A quantity that keeps each value until the next one: `points` are (position, value); `limit` is a line."""

    name: str
    points: tuple[tuple[int, int | float], ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves over a common axis from `start` to `end`."""

    caption: str
    unit: str
    start: int
    end: int
    curves: tuple[Curve, ...]
    kind: str = field(default="curves", init=False)


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line with a name through `points` (x, y)."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over a common axis; both axes are logarithmic with `logarithmic`."""

    caption: str
    x: str
    y: str
    lines: tuple[PlotLine, ...]
    logarithmic: bool = False
    kind: str = field(default="plot", init=False)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A field for each row and column: `cells` are (column, row, value, tooltip)."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[int, int, float, str], ...]
    kind: str = field(default="matrix", init=False)


@dataclass(frozen=True, slots=True)
class Maps:
    """Matrices of which the reader chooses one by its caption."""

    caption: str
    maps: tuple[Matrix, ...]
    kind: str = field(default="maps", init=False)


@dataclass(frozen=True, slots=True)
class Packed:
    """Columns of numbers and texts that may be long: their JSON, deflated, in base 64."""

    columns: Mapping[str, Json]

    def as_json(self) -> str:
        """Return the columns in the form that the page reads."""
        plain = compact(self.columns)
        if "\\u00" in plain or escaped(plain) != plain:
            plain = compact(shown(self.columns))
        return b64encode(compress(plain.encode("utf-8", "backslashreplace"), 6)).decode()


@dataclass(frozen=True, slots=True)
class Tone:
    """A class of intervals: its name, and the name of its colour on the page."""

    name: str
    tone: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Intervals in rows over a common axis from `start` to `end`, which can be zoomed.

    Columns of `packed`, each a list per row: `gap` from the end of the previous interval (the first: from `start`),
    `length`, `tone` (an index into `tones`), `item` (the item's number plus 1, 0 for none, as the
    difference from the previous one). `details` names the columns that describe the items: see `lanes.js`.
    """

    caption: str
    unit: str
    start: int
    end: int
    rows: tuple[str, ...]
    tones: tuple[Tone, ...]
    packed: Packed
    details: str = ""
    notes: tuple[str, ...] = ()
    kind: str = field(default="lanes", init=False)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line of a program: its number and text, and its cost, None for nothing.

    `causes` are (tone, name, amount) and add up to `cycles`; `note` follows it. Successive lines marked by `folds`
    are hidden until the reader opens them.
    """

    number: int
    text: str
    cycles: int | None = None
    share: float | None = None
    executions: int | None = None
    causes: tuple[tuple[str, str, int], ...] = ()
    note: str = ""
    folds: bool = False


@dataclass(frozen=True, slots=True)
class ProgramListing:
    """A program with the cost of its lines; `grammar` are the patterns of coloured text, each with its name."""

    caption: str
    rows: tuple[SourceRow, ...]
    grammar: tuple[tuple[str, str], ...] = ()
    kind: str = field(default="program", init=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """A text whose lines and blanks matter, such as a program."""

    caption: str
    text: str
    kind: str = field(default="listing", init=False)


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A box of a diagram: its name, lines below it, and a word in the colour of its `tone`."""

    name: str
    lines: tuple[str, ...]
    word: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes and arrows: `edges` are (from, to, data), by the numbers of nodes, without cycles."""

    caption: str
    nodes: tuple[DiagramNode, ...]
    edges: tuple[tuple[int, int, str], ...]
    kind: str = field(default="diagram", init=False)


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that are hidden until the reader opens their title."""

    title: str
    blocks: tuple[Block, ...]
    kind: str = field(default="folded", init=False)


@dataclass(frozen=True, slots=True)
class ResultsView:
    """Results that can be chosen, pointed at and selected: `kind` names the script that draws them.

    The head of that script describes the contents of `packed`.
    """

    kind: str
    caption: str
    packed: Packed


Block: TypeAlias = (
    Text
    | Figures
    | PageTable
    | Bars
    | Histogram
    | Curves
    | Plot
    | Matrix
    | Maps
    | Lanes
    | ProgramListing
    | Listing
    | Diagram
    | Folded
    | ResultsView
)


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of a page: `name` is its name in links."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: `kind` is the command (`run`), `result` the JSON document that `--json` writes for it."""

    kind: str
    title: str
    subtitle: str
    sections: tuple[PageSection, ...]
    result: Document


def section_document(section: PageSection) -> Document:
    """Return a section in the form that the scripts read."""
    return document(section)


# Blocks as HTML that needs no scripts: on a page whose scripts are off, and in a notebook.

_NOTE = "JavaScript is off: this page shows texts and the first rows of tables, but no charts and timelines."
_MOST_FIELDS = 2000
"""Maximum number of fields of maps that are listed."""

_BAR, _DRAWING, _NAME, _LANE = 320, 640, 64, 18
"""Sizes in pixels: width of a bar, of a drawing and of a lane's name in it, and distance between lanes."""

_COLOURS = {name: (light, hatch) for name, (light, _, hatch) in TONES.items()} | {
    light: (light, hatch) for light, _, hatch in SERIES
}
_BORDER = "border-bottom:1px solid rgba(128,128,128,.35);padding:.1em .7em .1em 0;background:none;color:inherit"
_LEFT, _RIGHT = f"{_BORDER};text-align:left", f"{_BORDER};text-align:right;font-variant-numeric:tabular-nums"
_STYLES = {
    '<p class="line plain">': "margin:.15em 0",
    '<p class="line answer">': "font-weight:bold;margin:.15em 0",
    '<p class="line alarm">': "font-weight:bold;color:#c0392b;margin:.15em 0",
    '<p class="line strong">': "font-weight:bold;margin:.15em 0",
    '<p class="line warning">': "color:#b7791f;margin:.15em 0",
    '<p class="line dim">': "opacity:.7;margin:.15em 0",
    '<p class="caption">': "opacity:.7;margin:.4em 0",
    '<div class="wide">': "overflow-x:auto",
    "<table>": "border-collapse:collapse;margin:.4em 0;background:none;font-size:inherit",
    '<th scope="col">': _LEFT,
    '<th scope="col" class="number">': _RIGHT,
    "<td>": _LEFT,
    '<td class="number">': _RIGHT,
    "<pre>": "background:none;color:inherit",
}
"""Styles of elements in a notebook, which has no style sheet for them."""


_FOLDED_ROWS = 8
"""Maximum number of rows of a folded table shown without scripts."""


def page_body(page: Page) -> str:
    """Return the content of a page as HTML without scripts."""
    parts = [f"<main><h1>{_text(page.title)}</h1>", f"<p>{_text(page.subtitle)}</p>", f"<p>{_NOTE}</p>"]
    for section in page.sections:
        shown = "".join(html for block in section.blocks for html in _block(block, "are shown by JavaScript"))
        parts.append(f"<section><h2>{_text(section.title)}</h2>{shown}</section>" if shown else "")
    return "\n".join((*filter(None, parts), "</main>"))


def notebook_html(blocks: Iterable[Block], more: str) -> str:
    """Return blocks as one element for a notebook, with bars and lanes drawn as SVG.

    `more` tells where to find the rows that a table leaves out: `are in to_frame()`.
    """
    shown = "".join(html for block in blocks for html in (_drawn(block) or _block(block, more)))
    for element, style in _STYLES.items():  # texts are escaped: none of these stands in one
        shown = shown.replace(element, f'{element.partition(" class=")[0].rstrip(">")} style="{style}">')
    return f'<div style="color:inherit;line-height:1.4">{shown}</div>'


def _block(block: Block, more: str) -> Iterator[str]:
    match block:
        case Text():
            yield from (f'<p class="line {line.tone}">{_coded(line.text)}</p>' for line in block.lines)
        case Figures():
            rows = [(entry.label, entry.value, f"{entry.unit} {entry.note}".strip()) for entry in block.items]
            yield _table("", ("", "", ""), rows, {1})
        case PageTable():
            yield _table(block.caption, block.columns, block.rows[: block.most], set(block.numbers))
            left = len(block.rows) - block.most
            yield (
                f"<p style='opacity:.7;margin:.4em 0'>{grouped(left)} more row{'s' * (left > 1)} {_text(more)}.</p>"
                if left > 0
                else ""
            )
        case Bars():
            columns = ("", *(series.name for series in block.series))
            bars = [(name, *(series.values[k] for series in block.series)) for k, name in enumerate(block.names)]
            yield _table(block.caption, columns, bars, set(range(1, len(columns))))
        case Histogram():
            yield _table(block.caption, ("", "values"), block.marks, {1})
        case Diagram():
            boxes = [(node.name, ", ".join(node.lines), node.word) for node in block.nodes]
            yield _table(block.caption, ("node", "", "verdict"), boxes, set())
        case Maps():
            fields = [
                (chart.caption, chart.rows[row], chart.columns[column], text)
                for chart in block.maps
                for column, row, _, text in chart.cells
            ]
            yield _table(block.caption, ("map", "down", "across", "value"), fields[:_MOST_FIELDS], {1, 2, 3})
        case Listing():
            yield f"{_caption(block.caption)}<pre>{_text(block.text)}</pre>"
        case ProgramListing():
            lines = [(row.number, row.cycles, row.text) for row in block.rows]
            yield _table(block.caption, ("line", "cycles", "source"), lines, {0, 1}, code=2)
        case Folded():
            inner = (
                replace(child, most=_FOLDED_ROWS) if isinstance(child, PageTable) else child for child in block.blocks
            )
            shown = "".join(html for child in inner for html in _block(child, more))
            yield f"<details><summary>{_text(block.title)}</summary>{shown}</details>"


def _table(
    caption: str, columns: Iterable[str], rows: Iterable[Iterable[Cell]], numbers: set[int], code: int | None = None
) -> str:
    def cell(index: int, value: Cell) -> str:
        text = _text("" if value is None else value if isinstance(value, str) else _number(value))
        shown = f"<code>{text}</code>" if index == code else text
        return f'<td class="number">{shown}</td>' if index in numbers else f"<td>{shown}</td>"

    kinds = ('<th scope="col">', '<th scope="col" class="number">')
    head = "".join(f"{kinds[index in numbers]}{_text(heading)}</th>" for index, heading in enumerate(columns))
    body = "\n".join(f"<tr>{''.join(cell(k, value) for k, value in enumerate(row))}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'{_caption(caption)}<div class="wide">{table}</div>'


def _caption(text: str) -> str:
    return f'<p class="caption">{_text(text)}</p>' if text else ""


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _text(text: str) -> str:
    return escape(escaped(text), quote=True)


def _coded(text: str) -> str:
    """Return a text with backquoted parts as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text))


def _drawn(block: Block) -> list[str]:
    """Return a block of bars or lanes as SVG with its legend; empty for other blocks."""
    if isinstance(block, Bars):
        total = max((sum(series.values[k] for series in block.series) for k in range(len(block.names))), default=0)
        bars = "".join(_bar(block, number, total) for number in range(len(block.names)))
        legend = _legend((series.name, series.tone) for series in block.series)
        return [f"{_caption(block.caption)}<table><tbody>{bars}</tbody></table>{legend}"]
    if isinstance(block, Lanes):
        notes = _block(Text(tuple(Line(note, "dim") for note in block.notes)), "")
        return [_lanes(block), _legend((tone.name, tone.tone) for tone in block.tones if tone.name), *notes]
    return []


def _bar(block: Bars, number: int, total: float) -> str:
    """Return a row of a table: the name, and a bar whose parts have tooltips."""
    parts, behind = [], 0.0
    own = sum(series.values[number] for series in block.series)
    for series in block.series:
        value = series.values[number]
        if value:
            title = f"{series.name}: {_number(value)} {block.unit}, {100 * value / own:.1f} %"
            parts.append(_rectangle(_BAR * behind / total, 1, _BAR * value / total, 12, series.tone, title))
        behind += value
    drawing = _svg(_BAR, 14, parts, block.caption)
    return f"<tr><td>{_text(block.names[number])}</td><td>{drawing}</td></tr>"


def _lanes(block: Lanes) -> str:
    """Return lanes as SVG; tiny intervals of a tone are joined if the gap is invisible."""
    scale = (_DRAWING - _NAME) / max(block.end - block.start, 1)
    columns = cast(Mapping[str, Any], block.packed.columns)
    texts = columns.get("texts", ())
    rows = zip(*(columns[key] for key in ("gap", "length", "tone", "item")), strict=True)
    drawn = []
    for number, (name, row) in enumerate(zip(block.rows, rows, strict=True)):
        y = number * _LANE + _LANE // 2
        drawn.append(_words(0, y + 4, name))
        drawn.append(
            f'<line x1="{_NAME}" x2="{_DRAWING}" y1="{y}" y2="{y}" stroke="currentColor" stroke-opacity=".2"/>'
        )
        for start, end, tone, item, count in _joined(_intervals(row, block.start), 1 / scale):
            left = _NAME + (max(start, block.start) - block.start) * scale
            width = max((min(end, block.end) - max(start, block.start)) * scale, 0.5)
            title = texts[item - 1][0] if item and texts else block.tones[tone].name
            title += f", and {count - 1} more" * (count > 1)
            drawn.append(_rectangle(left, number * _LANE + 3, width, _LANE - 6, block.tones[tone].tone, title))
    bottom = len(block.rows) * _LANE + 12
    drawn.append(_words(_NAME, bottom, grouped(block.start)))
    drawn.append(_words(_DRAWING, bottom, f"{grouped(block.end)} {block.unit}", anchor="end"))
    return _svg(_DRAWING, bottom + 6, drawn, "timeline")


def _intervals(row: Iterable[Iterable[int]], start: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the intervals of a row of lanes before packing: start, end, tone, item."""
    item = 0
    for gap, length, tone, further in zip(*row, strict=True):
        begin, item = start + gap, item + further
        start = begin + length
        yield begin, start, tone, item


def _joined(intervals: Iterable[tuple[int, int, int, int]], gap: float) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield intervals with the number of merged ones: intervals of a tone with invisible gaps between them."""
    opened: dict[int, tuple[int, int, int, int, int]] = {}
    for start, end, tone, item in intervals:
        interval = opened.get(tone)
        if interval is not None and end - start < gap and start - interval[1] < gap:
            opened[tone] = (interval[0], max(interval[1], end), tone, interval[3], interval[4] + 1)
            continue
        if interval is not None:
            yield interval
        opened[tone] = start, end, tone, item, 1
    yield from opened.values()


def _legend(entries: Iterable[tuple[str, str]]) -> str:
    marks = ((_svg(12, 12, [_rectangle(0, 0, 12, 12, tone, name)], name), name) for name, tone in entries)
    parts = [f'<span style="white-space:nowrap;margin-right:1em">{mark} {_text(name)}</span>' for mark, name in marks]
    return f'<div style="font-size:90%">{"".join(parts)}</div>'


def _rectangle(x: float, y: int, width: float, height: int, tone: str, title: str) -> str:
    colour, hatch = _COLOURS.get(tone, (tone, ""))
    area = f'<path d="M{x:.2f} {y}h{width:.2f}v{height}h-{width:.2f}z" fill="url(#{_pattern_id(hatch)})"'
    hatching = f'{area} pointer-events="none"/>' if hatch and width >= _LEAST_HATCHED else ""
    return (
        f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{height}" fill="{colour}"><title>{_text(title)}</title>'
        f"</rect>{hatching}"
    )


_LEAST_HATCHED = 4
"""Minimum width in pixels at which hatching is visible."""

_STROKES = {
    "/": "M0 6L6 0", "\\": "M0 0L6 6", "|": "M3 0V6", "-": "M0 3H6", "x": "M0 6L6 0M0 0L6 6", "+": "M3 0V6M0 3H6",
    ".": "M2 3h2", "o": "M2 2h2v2h-2z",
}  # fmt: skip
"""The strokes of each hatching in a square of six pixels; a doubled hatching has a smaller square."""


def _pattern_id(hatch: str) -> str:
    return f"castsim-hatch-{[*_STROKES].index(hatch[0])}-{len(hatch)}" if hatch else ""


def _patterns(drawing: str) -> str:
    """Return the definitions of the hatchings in a drawing."""
    hatches = {hatch: 8 - 2 * len(hatch) for _, hatch in _COLOURS.values() if hatch}
    return "".join(
        f'<pattern id="{_pattern_id(hatch)}" width="{size}" height="{size}" viewBox="0 0 6 6" '
        f'patternUnits="userSpaceOnUse"><path d="{_STROKES[hatch[0]]}" stroke="#000" stroke-opacity=".5" fill="none"/>'
        "</pattern>"
        for hatch, size in hatches.items()
        if f"#{_pattern_id(hatch)})" in drawing
    )


def _words(x: int, y: int, words: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" font-size="11" fill="currentColor" text-anchor="{anchor}">{_text(words)}</text>'


def _svg(width: int, height: int, parts: Iterable[str], label: str) -> str:
    drawing = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{_text(label)}">{_patterns(drawing)}{drawing}</svg>'
    )


# A page as one file: template, style, scripts, library and data in it; it asks for nothing else.
#
# Data stand in the file as JSON, in which no character can end the element that holds it; scripts put texts into the
# page as text. A policy in the file forbids everything that would load something.

_SCRIPTS = (
    "page.js",
    "tables.js",
    "charts.js",
    "inflate.js",
    "lanes_data.js",
    "lanes.js",
    "choosing.js",
    "conformance.js",
    "measurements.js",
    "tuning.js",
    "diagram.js",
    "changes.js",
    "start.js",
)
"""The scripts of a page in execution order, after the library."""

_PLAIN_KINDS = frozenset({"text", "figures", "table", "listing", "folded"})
_PLAIN_SCRIPTS = ("page.js", "tables.js", "inflate.js", "start.js")
"""The scripts of a page whose blocks need no drawing."""

_LIBRARY = "vendor/echarts.min.js"
_DRAWN = {"bars", "histogram", "curves", "plot", "matrix", "maps", "lanes", "measurements", "tuning"}
"""The kinds of blocks that the library draws."""

_MARKING = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_PLACE = re.compile(r"@@(\w+)@@")


def page_html(page: Page) -> str:
    """Return a page as the text of an HTML file."""
    kinds = {block.kind for section in page.sections for block in _every_block(section.blocks)}
    parts = {
        "TITLE": escape(escaped(f"{page.title} - castsim"), quote=True),
        "BODY": page_body(page),
        "STYLE": asset("page.css"),
        "LIBRARY": asset(_LIBRARY) if kinds & _DRAWN else "",
        "SCRIPT": "\n".join(asset(name) for name in (_PLAIN_SCRIPTS if kinds <= _PLAIN_KINDS else _SCRIPTS)),
        "DATA": json_for_html(_document(page)),
    }
    return _PLACE.sub(lambda match: parts[match[1]], asset("page.html"))


def _every_block(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from _every_block(block.blocks) if isinstance(block, Folded) else ()


def json_for_html(value: Json) -> str:
    """Return a value as JSON that is safe inside an element of a page."""
    text = compact(shown(value))
    return text.translate(_MARKING).encode("utf-8", "backslashreplace").decode()


@cache
def asset(name: str) -> str:
    """Return the text of a file beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _document(page: Page) -> Json:
    return {
        "kind": page.kind,
        "title": page.title,
        "subtitle": page.subtitle,
        "tones": TONES,
        "series": SERIES,
        "sections": [_packed_blocks(section_document(section)) for section in page.sections],
        "result": _packed(page.result),
    }


_MOST_PLAIN = 3000
"""Number of characters of rows, a listing or a result above which the page stores them deflated."""


def _packed(value: Json) -> Json:
    """Return a value, deflated if it is long, as `page.plain` reads it."""
    return {"packed": Packed({"value": value}).as_json()} if len(compact(value)) > _MOST_PLAIN else value


def _packed_blocks(block: Document) -> Document:
    """Return a section or a block with long tables, listings and programs deflated."""
    inner = block.get("blocks")
    if isinstance(inner, list):
        return {**block, "blocks": [_packed_blocks(child) for child in inner]}
    is_long = block.get("kind") in ("table", "listing", "program")
    return {name: _packed(value) if is_long and name in ("rows", "text") else value for name, value in block.items()}


# Blocks made of what a section of the text report prints: its lines and its tables.

_TONES = (("yellow", "warning"), ("red", "warning"), ("bold", "strong"), ("dim", "dim"))
"""The tone of a line by a part of its style's name."""


def text_blocks(parts: Iterable[RenderableType]) -> Iterator[Block]:
    """Yield the text of a section as blocks; successive lines form one block."""
    lines: list[Line] = []
    for part in _flat(parts):
        if isinstance(part, StyledText) and part.no_wrap and "\n" in part.plain.strip():
            if lines:
                yield Text(tuple(lines))
                lines = []
            yield Listing("", part.plain.rstrip("\n"))
            continue
        if isinstance(part, StyledText):
            lines += (Line(text, _tone(part)) for text in part.plain.splitlines() if text.strip())
            continue
        if not isinstance(part, TextTable):
            raise TypeError(f"no block for a {type(part).__name__}")
        if lines:
            yield Text(tuple(lines))
            lines = []
        yield _text_table(part)
    if lines:
        yield Text(tuple(lines))


def _flat(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Yield the contents of groups and indented parts."""
    for part in parts:
        if isinstance(part, Padding):
            yield from _flat((part.renderable,))
        elif isinstance(part, Group):
            yield from _flat(part.renderables)
        elif isinstance(part, str):
            yield StyledText(part)
        else:
            yield part


def _tone(text: StyledText) -> str:
    styles = " ".join([str(text.style), *(str(span.style) for span in text.spans)])
    return next((tone for name, tone in _TONES if name in styles), "plain")


def _text_table(text_table: TextTable) -> PageTable:
    columns = text_table.columns
    rows = zip(*(map(_plain, column.cells) for column in columns), strict=True)
    numbers = tuple(number for number, column in enumerate(columns) if column.justify == "right")
    return PageTable("", tuple(_plain(column.header) for column in columns), tuple(rows), numbers)


def _plain(cell: RenderableType) -> str:
    return (cell.plain if isinstance(cell, StyledText) else str(cell)).strip()

"""The content of a page: sections of blocks. A block is data; how it looks is up to the scripts of the page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from zlib import compress

from castsim.isa.errors import escaped
from castsim.reports.documents import Document, Json, document


def compact(value: Json) -> str:
    """Return a value as JSON in one line without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def shown(value: Json) -> Json:
    """Return a value whose texts steer neither a terminal nor the direction of what stands around them."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Mapping):
        return {escaped(key): shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    return value


Cell: TypeAlias = str | int | float | None
"""One cell of a table; None is left empty."""


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
    """A figure to be seen first: `value` in units of `unit`, with a remark below."""

    label: str
    value: Cell
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures beside each other."""

    items: tuple[Figure, ...]
    kind: str = field(default="figures", init=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: `numbers` are the columns that hold numbers, `heat` is the one whose numbers also show as bars.

    `lines` is the column whose numbers are source lines, and lead to them. Of more than `most` rows the others are
    shown when they are asked for.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: tuple[int, ...] = ()
    heat: int | None = None
    lines: int | None = None
    most: int = 300
    kind: str = field(default="table", init=False)


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers with a name; `tone` is a name that the page has a colour for, or empty."""

    name: str
    values: tuple[int | float, ...]
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """A stacked bar for each of `names`, made of one number of each series; with a `table` they are listed too."""

    caption: str
    unit: str
    names: tuple[str, ...]
    series: tuple[Series, ...]
    table: bool = True
    kind: str = field(default="bars", init=False)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many numbers lie between two edges each; bin k is [edges[k], edges[k + 1]), the last with its end."""

    caption: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    marks: tuple[tuple[str, float], ...] = ()
    kind: str = field(default="histogram", init=False)


@dataclass(frozen=True, slots=True)
class Curve:
    """A quantity that keeps each value until the next one: `points` are (place, value); `limit` is drawn as a line."""

    name: str
    points: tuple[tuple[int, int | float], ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves over one axis from `start` to `end`."""

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
    """Lines over one axis; both axes are logarithmic with `logarithmic`."""

    caption: str
    x: str
    y: str
    lines: tuple[PlotLine, ...]
    logarithmic: bool = False
    kind: str = field(default="plot", init=False)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A field for each row and column: `cells` are (column, row, value, what to say of it)."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[int, int, float, str], ...]
    kind: str = field(default="matrix", init=False)


@dataclass(frozen=True, slots=True)
class Maps:
    """Matrices of which one is shown, chosen by its caption."""

    caption: str
    maps: tuple[Matrix, ...]
    kind: str = field(default="maps", init=False)


@dataclass(frozen=True, slots=True)
class Packed:
    """Columns of numbers and texts that may be long: their JSON, deflated, in base 64."""

    columns: Mapping[str, Json]

    def text(self) -> str:
        """Return the columns as the page reads them."""
        plain = compact(self.columns)
        if "\\u00" in plain or escaped(plain) != plain:
            plain = compact(shown(self.columns))
        return b64encode(compress(plain.encode("utf-8", "backslashreplace"), 6)).decode()


@dataclass(frozen=True, slots=True)
class Tone:
    """A class of intervals: its name, and a name that the page has a colour for."""

    name: str
    tone: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Intervals in rows over one axis from `start` to `end`, to zoom into.

    Columns of `packed`, each a list per row: `gap` from the end of the interval before (the first: from `start`),
    `length`, `tone` (an index into `tones`), `item` (number of what it belongs to plus 1, 0 for nothing, as the
    difference to the one before). `details` names what describes the items: see `lanes.js`.
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
    """A line of a program: its number and text, and what it cost, None for nothing.

    `causes` are (tone, name, amount) and add up to `cycles`; `note` stands behind it. Several lines that `folds` marks
    one after the other are shown when they are asked for.
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
class Program:
    """A program with the cost of its lines; `grammar` are patterns of what has a colour, each with its name."""

    caption: str
    rows: tuple[SourceRow, ...]
    grammar: tuple[tuple[str, str], ...] = ()
    kind: str = field(default="program", init=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """A text whose lines and blanks count, such as a program."""

    caption: str
    text: str
    kind: str = field(default="listing", init=False)


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A box of a diagram: its name, lines below it, and a word that its `tone` has a colour for."""

    name: str
    lines: tuple[str, ...]
    word: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes and arrows: `edges` are (from, to, what goes there), by the numbers of nodes, and have no circle."""

    caption: str
    nodes: tuple[DiagramNode, ...]
    edges: tuple[tuple[int, int, str], ...]
    kind: str = field(default="diagram", init=False)


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that are shown when their title is opened."""

    title: str
    blocks: tuple[Block, ...]
    kind: str = field(default="folded", init=False)


@dataclass(frozen=True, slots=True)
class View:
    """Results to choose from, to point at and to select: `kind` names the script that draws them.

    What `packed` holds is said at the head of that script.
    """

    kind: str
    caption: str
    packed: Packed


Block: TypeAlias = (
    Text
    | Figures
    | Table
    | Bars
    | Histogram
    | Curves
    | Plot
    | Matrix
    | Maps
    | Lanes
    | Program
    | Listing
    | Diagram
    | Folded
    | View
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: `name` is how links call it."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: `kind` says of what (`run`), `result` is the JSON document that `--json` gives of the same."""

    kind: str
    title: str
    subtitle: str
    sections: tuple[Section, ...]
    result: Document


def block_document(block: Block) -> Document:
    """Return a block as the scripts read it."""
    if isinstance(block, Lanes):
        names = ("kind", "caption", "unit", "start", "end", "rows", "tones", "details", "notes")
        return {**document(block, *names), "packed": block.packed.text()}
    if isinstance(block, Folded):
        return {**document(block, "kind", "title"), "blocks": [block_document(each) for each in block.blocks]}
    if isinstance(block, View):
        return {**document(block, "kind", "caption"), "packed": block.packed.text()}
    return document(block)


def section_document(section: Section) -> Document:
    """Return a section as the scripts read it."""
    blocks: Sequence[Json] = [block_document(block) for block in section.blocks]
    return {"name": section.name, "title": section.title, "blocks": blocks}

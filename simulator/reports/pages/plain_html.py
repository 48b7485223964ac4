"""What a page shows where scripts are off: its texts, figures, tables and programs, without charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from castsim.isa.errors import escaped
from castsim.reports.numbers import grouped
from castsim.reports.pages.blocks import (
    Bars,
    Block,
    Cell,
    Diagram,
    Figures,
    Folded,
    Histogram,
    Listing,
    Maps,
    Page,
    Program,
    Table,
    Text,
)

_NOTE = "Charts and timelines are drawn by JavaScript, which is switched off here; texts and tables are below."
_MOST_FIELDS = 2000
"""Fields of maps that are listed."""


def page_body(page: Page) -> str:
    """Return the content of a page as HTML that needs no script."""
    parts = [f"<main><h1>{_text(page.title)}</h1>", f"<p>{_text(page.subtitle)}</p>", f"<p>{_NOTE}</p>"]
    for section in page.sections:
        shown = "".join(html for block in section.blocks for html in _block(block))
        parts.append(f"<section><h2>{_text(section.title)}</h2>{shown}</section>" if shown else "")
    return "\n".join((*filter(None, parts), "</main>"))


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield from (f'<p class="line {line.tone}">{_text(line.text)}</p>' for line in block.lines)
        case Figures():
            rows = [(each.label, each.value, f"{each.unit} {each.note}".strip()) for each in block.items]
            yield _table("", ("", "", ""), rows, {1})
        case Table():
            yield _table(block.caption, block.columns, block.rows[: block.most], set(block.numbers))
            more = len(block.rows) - block.most
            yield f"<p>{grouped(more)} more rows are shown by JavaScript.</p>" if more > 0 else ""
        case Bars():
            columns = ("", *(each.name for each in block.series))
            bars = [(name, *(each.values[k] for each in block.series)) for k, name in enumerate(block.names)]
            yield _table(block.caption, columns, bars, set(range(1, len(columns))))
        case Histogram():
            yield _table(block.caption, ("", "values"), block.marks, {1})
        case Diagram():
            boxes = [(each.name, ", ".join(each.lines), each.word) for each in block.nodes]
            yield _table(block.caption, ("node", "", "verdict"), boxes, set())
        case Maps():
            fields = [
                (each.caption, each.rows[row], each.columns[column], told)
                for each in block.maps
                for column, row, _, told in each.cells
            ]
            yield _table(block.caption, ("map", "down", "across", "value"), fields[:_MOST_FIELDS], {1, 2, 3})
        case Listing():
            yield f"<p>{_text(block.caption)}</p><pre>{_text(block.text)}</pre>"
        case Program():
            lines = [(row.number, row.cycles, row.text) for row in block.rows]
            yield _table(block.caption, ("line", "cycles", "source"), lines, {0, 1}, code=2)
        case Folded():
            shown = "".join(html for each in block.blocks for html in _block(each))
            yield f"<details><summary>{_text(block.title)}</summary>{shown}</details>"


def _table(
    caption: str, columns: Iterable[str], rows: Iterable[Iterable[Cell]], numbers: set[int], code: int | None = None
) -> str:
    def cell(place: int, value: Cell) -> str:
        text = _text("" if value is None else value if isinstance(value, str) else _number(value))
        shown = f"<code>{text}</code>" if place == code else text
        return f'<td class="number">{shown}</td>' if place in numbers else f"<td>{shown}</td>"

    head = "".join(f'<th scope="col">{_text(each)}</th>' for each in columns)
    body = "\n".join(f"<tr>{''.join(cell(k, value) for k, value in enumerate(row))}</tr>" for row in rows)
    told = f'<p class="caption">{_text(caption)}</p>' if caption else ""
    return f'{told}<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _text(text: str) -> str:
    return escape(escaped(text), quote=True)

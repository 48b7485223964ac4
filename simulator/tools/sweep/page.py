"""The page of a sweep: cycles by size on each route, crossings of routes, heat maps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from castsim.reports.documents import Document
from castsim.reports.numbers import grouped
from castsim.reports.pages.blocks import (
    Block,
    Line,
    Maps,
    Matrix,
    Page,
    PageSection,
    PageTable,
    Plot,
    PlotLine,
    Text,
)
from castsim.tools.sweep.results import Summary, summary
from castsim.tools.sweep.specification import SweepDrawn

_MOST_TOLD, _MOST_TURNS = 3, 3
"""Maximum number of tasks, and of changes of the fastest route, that the answer names."""


def sweep_page(path: Path, html: str) -> tuple[Page, Document]:
    """Return the page of a file of results, and its JSON document.

    Raises:
        ReadError: the file is not one of results.
    """
    results = summary(path)
    result = SweepDrawn(str(path), html, results.rows, results.failed, results.crossings).as_json()
    sections = (
        PageSection("summary", "Summary", (Text(tuple(_answer(results))),)),
        PageSection("cycles", "Cycles by size", _plots(results)),
        PageSection("crossings", "Where routes cross", (_crossings(results),)),
        PageSection("heat", "Heat map", (_heat(results),) if results.heats else ()),
    )
    page = Page("sweep", path.name, "castsim sweep", tuple(section for section in sections if section.blocks), result)
    return page, result


def _answer(results: Summary) -> Iterator[Line]:
    """Yield the fastest route for each task, and the number of points compared."""
    whats = dict.fromkeys(route.what for route in results.routes)
    for number, what in enumerate(whats):
        if number == _MOST_TOLD:
            yield Line(f"and {len(whats) - _MOST_TOLD} more, below", "dim")
            break
        head = f"{what}: " if len(whats) > 1 and what else ""
        yield Line(f"{head}{_winner(what, results)}.", "answer")
    failed = f"; {grouped(results.failed)} failed" if results.failed else ""
    yield Line(f"{grouped(results.rows)} points{failed}; the fewest cycles win", "dim")


def _winner(what: str, results: Summary) -> str:
    """Return the route with the fewest cycles in words, and the size from which it is fastest if sizes are shared."""
    routes = {route.how or route.name: dict(route.points) for route in results.routes if route.what == what}
    counts = Counter(x for points in routes.values() for x in points)
    sizes = sorted(x for x, count in counts.items() if count > 1)
    fastest: list[tuple[str, float]] = []  # a route, and the size from which on it wins
    for size in sizes:
        here = {name: points[size] for name, points in routes.items() if size in points}
        least = min(here.values())
        if not fastest or here.get(fastest[-1][0], math.inf) > least:
            fastest.append((next(name for name, cycles in here.items() if cycles == least), size))
    unit = results.x or "points"
    if len(routes) < 2:
        (points,) = routes.values()
        return f"{grouped_number(min(points.values()))} to {grouped_number(max(points.values()))} cycles"
    if not fastest:
        return "no size is there for two routes"
    if len(fastest) == 1:
        return f"{fastest[0][0]} takes fewest cycles at every size"
    if len(fastest) > _MOST_TURNS:
        return f"the fastest route changes {len(fastest) - 1} times; {fastest[-1][0]} wins at the largest size"
    turns = ", ".join(f"{name} from {grouped_number(size)}" for name, size in fastest[1:])
    return f"{fastest[0][0]} wins below {grouped_number(fastest[1][1])} {unit}, {turns} on"


def grouped_number(value: float) -> str:
    """Return a number with separators, an integer without a decimal point."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def _plots(results: Summary) -> tuple[Block, ...]:
    """Return a plot for each task, with one line per route."""
    blocks: list[Block] = []
    for what in dict.fromkeys(route.what for route in results.routes):
        routes = [route for route in results.routes if route.what == what]
        lines = tuple(PlotLine(route.how or route.name, route.points) for route in routes)
        positive = all(x > 0 and y > 0 for line in lines for x, y in line.points)
        blocks.append(Plot(f"{what}: fewest cycles of each size", results.x or "point", "cycles", lines, positive))
    return tuple(blocks)


def _crossings(results: Summary) -> Block:
    rows = tuple((crossing.what, crossing.below, crossing.above, crossing.x) for crossing in results.crossings)
    if not rows:
        return Text((Line("None: of any two routes, one takes no more cycles at any size that both have.", "dim"),))
    caption = "Break-even sizes: the route that is faster below, and the one from there on"
    return PageTable(caption, ("what", "faster below", "faster from there on", results.x or "size"), rows, (3,))


def _heat(results: Summary) -> Maps:
    unit = "cycles per element" if results.x == "elements" else "cycles"
    maps = tuple(
        Matrix(
            heat.name, tuple(map(str, heat.columns)), tuple(map(str, heat.rows)),
            tuple((column, row, value, f"{value:.4g} {unit}") for column, row, value in heat.cells),
        )
        for heat in results.heats
    )  # fmt: skip
    return Maps(f"{unit}: {results.keys[0]} across, {results.keys[1]} down", maps)

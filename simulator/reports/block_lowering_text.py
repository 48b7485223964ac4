"""The ways to a block format on a target as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.reports.terminal import indented
from castsim.running.block_lowering import BlockLowering, BlockWay


def block_lowering_text(found: BlockLowering, out: str | None) -> RenderableType:
    """Return the report; `out` is the file that the first program was written to."""
    return Group(*_parts(found, out))


def _parts(found: BlockLowering, out: str | None) -> Iterator[RenderableType]:
    answer = "no way" if not found.ways else f"{found.ways[0].kind} ({len(found.ways)} in all)"
    yield Text(f"{found.src} -> {found.format} on {found.target}: {answer}", style="bold")
    for way in found.ways:
        yield from _way(way, found)
    if found.refused:
        yield Text("not otherwise:" if found.ways else "why not:")
        yield from (indented(Text(reason)) for reason in found.refused)
    if found.ways and out is None:
        yield Text("--out FILE writes the first program, --out - prints it alone; run it with: castsim run FILE")
    elif found.ways:
        yield Text(f"program written to {out}; run it with: castsim run {out} --target {found.target} --in x=random:0")


def _way(way: BlockWay, found: BlockLowering) -> Iterator[RenderableType]:
    cycles = f"{way.cycles} cycles for {found.rows} x {found.cols} elements, loads and stores included"
    yield Text(f"{way.kind} by the rule {way.rule}: {', '.join(way.operations)}")
    yield indented(Text(f"{cycles}: {way.cycles / (found.rows * found.cols):.3g} each"))
    yield from (indented(Text(f"unlike castsim quantise: {one}")) for one in way.differs)

"""Removed lane moves, as a JSON document and as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.reports.documents import Document, document, json_of
from castsim.reports.terminal import table
from castsim.tpc_compiler.swizzle_elimination import BlockResult, Compared


def unswizzle_document(found: Compared, output: Path | None) -> Document:
    """Return the removed instructions, the savings, and the new program."""
    return {
        **document(found, "file", "target", file="program"),
        **document(found.elimination, "changed"),
        **_change_of("cycles", found.cycles),
        **document(found, "saved", "same_outputs", saved="cycles_saved", same_outputs="outputs_unchanged"),
        "blocks": [_block(block) for block in found.elimination.blocks],
        **document(found.elimination, "text"),
        "output": json_of(output),
    }


def _block(block: BlockResult) -> Document:
    return {
        "first_line": block.lines[0],
        "last_line": block.lines[1],
        "reason_kept": block.reason,
        "removed": dict(block.removed),
        **_change_of("vector_operations", block.operations),
        **_change_of("bundles", block.bundles),
    }


def _change_of(name: str, pair: tuple[int, int]) -> Document:
    return dict(zip((f"{name}_before", f"{name}_after"), pair, strict=True))


def unswizzle_text(found: Compared, output: Path | None) -> RenderableType:
    """Return cycles before and after, a row per block that moves lanes, and the new program or where it is."""
    return Group(*_sections(found, output))


def _sections(found: Compared, output: Path | None) -> Iterator[RenderableType]:
    before, after = found.cycles
    yield Text(f"{found.file}, target {found.target.name}", style="bold")
    if not found.elimination.blocks:
        yield Text("no block moves lanes: nothing to remove")
        return
    numbers = ("VPU operations", "bundles")
    made = table("lines", "removed", *numbers, "outcome", numbers=numbers)
    for block in found.elimination.blocks:
        made.add_row(
            f"{block.lines[0]}-{block.lines[1]}",
            ", ".join(f"{count} {name}" for name, count in block.removed) or "-",
            _change(block.operations) if block.reason is None else "-",
            _change(block.bundles) if block.reason is None else "-",
            Text("rewritten") if block.reason is None else Text(f"kept: {block.reason}", style="yellow"),
        )
    yield made
    if not found.elimination.changed:
        return
    yield Text(f"{before} cycles before, {after} after: {found.saved} saved ({100 * found.saved / before:.1f} %)")
    yield Text(f"outputs unchanged, bit by bit: {', '.join(found.same_outputs)}")
    if output is None:
        yield Text("")
        yield Text(found.elimination.text.rstrip("\n"), no_wrap=True, overflow="ignore")
    else:
        yield Text(f"{output}: the new program")


def _change(pair: tuple[int, int]) -> str:
    return f"{pair[0]} -> {pair[1]}"

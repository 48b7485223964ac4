"""The command `unswizzle`: remove lane moves around element-wise work."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from castsim.commands.option_parsers import limits_of
from castsim.commands.outcome import CommandOutcome, write_out
from castsim.isa.errors import ReadError
from castsim.machines.vliw import chosen_target
from castsim.reports.documents import CommandDocument, says
from castsim.reports.schemas.keys import Cycles, Name
from castsim.reports.terminal import composed, table
from castsim.tools.tpc_assembly.asm import read_assembly
from castsim.tools.tpc_assembly.swizzle_elimination import Compared, MovesBlock, compared


class Unswizzled(CommandDocument, name="unswizzle"):
    """A program without its unnecessary lane moves."""

    program: str = says("The file.", "file")
    target: str = says("Name of the target.")
    changed: bool = says("Whether anything was removed.", "elimination.changed")
    cycles_before: Cycles = says("Cycles of the original program.", lambda compared: compared.cycles[0])
    cycles_after: Cycles = says("Cycles of the new program.", lambda compared: compared.cycles[1])
    cycles_saved: Cycles = says("Number of saved cycles.", "saved")
    outputs_unchanged: dict[Name, bool] = says("Whether each output is the same, bit by bit.", "same_outputs")
    blocks: list[MovesBlock] = says("The blocks that move lanes.", "elimination.blocks")
    text: str = says("The new program.", "elimination.text")
    output: str | None = says("The output file; null if none was written.")


def execute(options: Namespace) -> CommandOutcome:
    """Rewrite the program, and run both versions.

    Raises:
        ReadError: the program cannot be read or names no target, or an input is unknown or malformed.
        IllegalError: the target lacks an instruction, or the program reads a result too early.
        EngineError: the program does not end.
    """
    file, source = read_assembly(options.program, "unswizzle", "has no lanes to move")
    inputs = {}
    for given in options.inputs:
        name, equals, value = given.strip().partition("=")
        if not equals or not name or not value:
            raise ReadError(f"--in {given.strip()}: expected NAME=VALUE", legal=("NAME=FILE.npy", "NAME=random:SEED"))
        inputs[name] = value
    limits = limits_of(options.max_walk, options.max_statements)
    comparison = compared(source, file, chosen_target(source, file, options.target), inputs, limits)
    written = write_out(options.out, comparison.elimination.text.encode(), options.program)

    return CommandOutcome(Unswizzled.of(comparison, output=written), lambda _: unswizzle_text(comparison, written))


@composed
def unswizzle_text(comparison: Compared, output: Path | None) -> Iterator[RenderableType]:
    """Yield cycles before and after, a row per block with lane moves, and the new program or its file."""
    before, after = comparison.cycles
    yield Text(f"{comparison.file}, target {comparison.target.name}", style="bold")
    if not comparison.elimination.blocks:
        yield Text("no block moves lanes: nothing to remove")
        return
    block_table = table("lines", "removed", ">VPU operations", ">bundles", "outcome")
    for block in comparison.elimination.blocks:
        block_table.add_row(
            f"{block.lines[0]}-{block.lines[1]}",
            ", ".join(f"{count} {name}" for name, count in block.removed.items()) or "-",
            _change(block.operations) if block.reason is None else "-",
            _change(block.bundles) if block.reason is None else "-",
            Text("rewritten") if block.reason is None else Text(f"kept: {block.reason}", style="yellow"),
        )
    yield block_table
    if not comparison.elimination.changed:
        return
    yield Text(
        f"{before} cycles before, {after} after: {comparison.saved} saved ({100 * comparison.saved / before:.1f} %)"
    )
    yield Text(f"outputs unchanged, bit by bit: {', '.join(comparison.same_outputs)}")
    if output is None:
        yield Text("")
        yield Text(comparison.elimination.text.rstrip("\n"), no_wrap=True, overflow="ignore")
    else:
        yield Text(f"{output}: the new program")


def _change(pair: tuple[int, int]) -> str:
    return f"{pair[0]} -> {pair[1]}"

"""Answers of the tools for TPC programs, as JSON and as text: asm and disasm, unswizzle, latency, lint.

Listings follow the style of objdump.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.lint import Notice
from castsim.reports.schemas.keys import Bundles, Bytes, Cycles, Hexadecimal, Line, LintEntry, Name
from castsim.reports.terminal import composed, table
from castsim.targets.description import Fact
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import DistanceRule, stage_name
from castsim.tools.tpc_binary.assembler import AssembledBinary, Disassembly, ListedLine

if TYPE_CHECKING:
    from castsim.machines.vliw.latency_bound import PairDistance
    from castsim.tools.tpc_assembly.swizzle_elimination import Compared


class Assembled(CommandDocument, name="asm"):
    """An assembled program."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    bundles: Bundles = says("Its length.")
    size_bytes: Bytes = says("Size of the code.", lambda assembled: len(assembled.code))
    code: Hexadecimal = says("The code.")
    facts_assumed: list[str] = says(
        "Positions of the encoding that are assumed, because no source states them.", "assumed"
    )
    output: str | None = says("The output file; null if none was written.")


class CanonicalText(CommandDocument, name="asm-text"):
    """With `--text`: the canonical text of a program."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    text: str = says("The text.")
    output: str | None = says("The output file; null if none was written.")


def assembled_text(assembled: AssembledBinary, listing: Disassembly, target: str, output: Path | None) -> Text:
    """Return the listing of an assembled program, or its output file; also which positions are assumed."""
    if output is None:
        lines = [*_listing(listing)]
    else:
        lines = [f"{output}: {assembled.bundles} bundles for {target}, {len(assembled.code)} bytes"]
    if assembled.assumed:
        lines += ["", "positions that no source states:", *(f"  {item}" for item in assembled.assumed)]
    return Text("\n".join(lines), no_wrap=True)


class DisassembledLine(Keys):
    """A bundle of a binary."""

    address: int = says("Its address in bytes.")
    code: Hexadecimal = says("Its code.")
    text: str = says("Its text.")
    labels: list[str] = says("Labels before it.")
    directives: list[str] = says("Directives before it.")
    known: bool = says("Whether it is a bundle of the target.")
    remark: str | None = says("A remark; null if there is none.")


class Disassembled(CommandDocument, name="disasm"):
    """A disassembled binary."""

    file: str = says("The binary.")
    target: str = says("Name of the target.")
    size_bytes: Bytes = says("Size of the code.", lambda found: sum(len(line.code) for line in found.lines))
    unknown_bundles: Bundles = says(of=lambda found: sum(not line.known for line in found.lines))
    """Number of lines that are not bundles of the target."""
    lines: list[DisassembledLine] = says("The bundles.")
    end_labels: list[str] = says("Labels after the last bundle.")
    output: str | None = says("The output file of the text; null if none was written.")


def disassembled_text(disassembly: Disassembly, file: str, target: str, output: Path | None) -> Text:
    """Return the listing of a binary, or the output file of its text; also how much of it is unknown."""
    lines = [f"{file}: {target}", *_listing(disassembly)] if output is None else [f"{output}: assembly for {target}"]
    unknown = sum(not line.known for line in disassembly.lines)
    if unknown:
        lines += ["", f"unknown: {unknown} of {len(disassembly.lines)} lines are not bundles of {target}"]
    return Text("\n".join(lines), no_wrap=True)


def source_text(disassembly: Disassembly, target: str) -> str:
    """Return text that names its target and assembles to the same bytes."""
    return f"// castsim: target {target}\n{disassembly.text()}"


def _listing(disassembly: Disassembly) -> Iterator[str]:
    """Yield a line per bundle: address, bytes, text; labels and directives are on separate lines."""
    width = max((2 * len(line.code) for line in disassembly.lines), default=0)
    for line in disassembly.lines:
        yield from (f"\n{line.address:08x} <{label}>:" for label in line.labels)
        yield from (f"{'':10}{directive}" for directive in line.directives)
        yield f"{line.address:8x}: {_words(line):{width + width // 16}} {_text(line)}"
    end = sum(len(line.code) for line in disassembly.lines)
    yield from (f"\n{end:08x} <{label}>:" for label in disassembly.end_labels)


def _words(line: ListedLine) -> str:
    """Return the bytes in order, in groups of eight."""
    digits = line.code.hex()
    return " ".join(digits[start : start + 16] for start in range(0, len(digits), 16))


def _text(line: ListedLine) -> str:
    text = line.text if line.known else "(unknown)"
    return text if line.remark is None else f"{text}  // {line.remark}"


# Removed lane moves, as a JSON document and as text.


class MovesBlock(Keys):
    """A block with lane moves."""

    first_line: Line = says("Its first line.", lambda block: block.lines[0])
    last_line: Line = says("Its last line.", lambda block: block.lines[1])
    reason_kept: str | None = says("The reason why the block is unchanged; null if it was rewritten.", "reason")
    removed: dict[Name, int] = says("Number of removed instructions by mnemonic.", lambda block: dict(block.removed))
    vector_operations_before: int = says("Vector operations before.", lambda each: each.operations[0])
    vector_operations_after: int = says("Vector operations after.", lambda each: each.operations[1])
    bundles_before: Bundles = says("Length before.", lambda each: each.bundles[0])
    bundles_after: Bundles = says("Length after.", lambda each: each.bundles[1])


class Unswizzled(CommandDocument, name="unswizzle"):
    """A program without its unnecessary lane moves."""

    program: str = says("The file.", "file")
    target: str = says("Name of the target.")
    changed: bool = says("Whether anything was removed.", "elimination.changed")
    cycles_before: Cycles = says("Cycles of the original program.", lambda each: each.cycles[0])
    cycles_after: Cycles = says("Cycles of the new program.", lambda each: each.cycles[1])
    cycles_saved: Cycles = says("Number of saved cycles.", "saved")
    outputs_unchanged: dict[Name, bool] = says("Whether each output is the same, bit by bit.", "same_outputs")
    blocks: list[MovesBlock] = says("The blocks that move lanes.", "elimination.blocks")
    text: str = says("The new program.", "elimination.text")
    output: str | None = says("The output file; null if none was written.")


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
            ", ".join(f"{count} {name}" for name, count in block.removed) or "-",
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


# Distances between two instructions, as data and as text.

_PAGE = "docs/reference/tpc.md"


class Lint(CommandDocument, name="lint"):
    """Findings of the linter."""

    program: str = says("The file.")
    target: str = says("Name of the target.")
    rules: list[str] = says("The rules that it checks.")
    lint: list[LintEntry] = says("The certain findings.")
    lint_possible: list[LintEntry] = says("Findings that depend on the path, on predicates or on initial values.")
    notices: list[Notice] = says("Notices.")


class Distance(Keys):
    """The distance between two instructions."""

    producer: str = says("The earlier instruction.")
    consumer: str = says("The later instruction.")
    register_: str | None = says("The shared register; null if only issue rules apply.", key="register")
    consumer_operand: str | None = says("The operand of the later instruction; null if no register is shared.")
    distance_bundles: Bundles | None = says("Bundles until the new value is read; null if no register is shared.")
    latency_cycles: Cycles | None = says("Cycles from the access until the core continues after LD_G; null for others.")
    minimum_bundles: Bundles | None = says("The smallest distance by issue rules; null if there is none.")
    producer_stage: str | None = says("The stage of the write; null if stages do not determine the distance.")
    consumer_stage: str | None = says("The stage of the read; null if stages do not determine the distance.")
    entry_port: str | None = says("The port of the read; null if stages do not determine the distance.")
    rule: str = says("The rules that determine the distance.")
    source: str = says("Sources of the rules.")


class Latency(CommandDocument, name="latency", version=2):
    """The distances of pairs of instructions."""

    pairs: list[Distance | None]
    """One entry per pair; null if the instructions share no register and no rule applies."""


def pair_entry(target: VliwTarget, producer: str, consumer: str, distance: PairDistance | None) -> Document | None:
    """Return a pair as data; None if the instructions share nothing and no rule applies."""
    if distance is None:
        return None
    shared = distance.shared
    latency = None if shared is None else shared.latency
    return Distance.of(
        producer=producer.strip(),
        consumer=consumer.strip(),
        register_=None if shared is None else shared.register,
        consumer_operand=None if shared is None else shared.operand,
        distance_bundles=None if latency is None else latency.distance,
        latency_cycles=distance.latency_cycles or None,
        minimum_bundles=distance.minimum,
        producer_stage=None if latency is None else _stage(latency.producer_stage),
        consumer_stage=None if latency is None else _stage(latency.consumer_stage),
        entry_port=None if latency is None else latency.entry_port,
        rule="; ".join(_rules(distance)),
        source="; ".join(_sources(target, distance)),
    )


def pair_text(
    target: str, distances: Sequence[tuple[str, str, PairDistance | None]], entries: Sequence[Document | None]
) -> str:
    """Return the answers as text, the distance first."""
    blocks = (_pair_block(target, *pair, entry) for pair, entry in zip(distances, entries, strict=True))
    return "\n".join(blocks)


def _pair_block(
    target: str, producer: str, consumer: str, distance: PairDistance | None, entry: Document | None
) -> str:
    pair = f"{producer.strip()} -> {consumer.strip()}"
    if distance is None or entry is None:
        return f"{pair}\n  no distance: the second reads nothing that the first writes, and no rule is about the pair"
    lines = [f"{_bundles(_needed(distance))} on {target}: {pair}"]
    if distance.shared is not None:
        latency = distance.shared.latency
        stages = (
            f"written in {entry['producer_stage']}, read in {entry['consumer_stage']} through {entry['entry_port']}"
            if latency.producer_stage is not None
            else "not by stages"
        )
        where = f"{distance.shared.register} as {distance.shared.operand}"
        lines.append(f"  {_bundles(latency.distance)} until {where} is up to date: {stages}")
    if distance.latency_cycles:
        lines.append(f"  the core is stalled until {distance.latency_cycles} cycles after the access (element_loads)")
    if distance.minimum is not None:
        lines.append(f"  {_bundles(distance.minimum)} at least by issue rules")
    return "\n".join([*lines, f"  rule: {entry['rule']}", f"  source: {entry['source']}"])


def _needed(pair_distance: PairDistance) -> int:
    """Return the smallest distance that keeps the pair correct and obeys the issue rules."""
    return next(distance for distance in count() if pair_distance.allows(distance))


def _bundles(number: int) -> str:
    return f"{number} bundle{'' if number == 1 else 's'}"


def _stage(number: int | None) -> str | None:
    return None if number is None else stage_name(number)


def _rules(distance: PairDistance) -> Iterator[str]:
    if distance.shared is not None:
        steps = distance.shared.latency.steps
        yield f"{steps[-1]}" if len(steps) == 1 else f"{steps[-1]} (after: {', '.join(steps[:-1])})"
    yield from dict.fromkeys(rule.rule for rule in distance.rules)


def _sources(target: VliwTarget, distance: PairDistance) -> Iterator[str]:
    if distance.shared is not None:
        latency = distance.shared.latency
        facts: list[Fact] = (
            [] if latency.rule in (DistanceRule.RESEED, DistanceRule.TENSOR_REGISTER) else [target.stages_fact]
        )
        deciding = _fact(target, latency.rule)
        facts += [deciding] if deciding is not None else []
        for source in dict.fromkeys(fact.source for fact in facts):
            yield f"{source} ({_PAGE} 6.1)"
    if distance.rules:
        yield f"{target.bundle_distances_fact.source} ({_PAGE} 6.2)"


def _fact(target: VliwTarget, rule: DistanceRule) -> Fact | None:
    """Return the fact behind a rule other than the stages."""
    rules = target.latency_rules
    facts: dict[DistanceRule, Fact | None] = {
        DistanceRule.RESEED: target.distances,
        DistanceRule.TENSOR_REGISTER: target.distances,
        DistanceRule.UNLISTED: rules.default,
        DistanceRule.PORT: target.entry_ports_fact,
        DistanceRule.INDEX_BYPASS: rules.index_bypass,
        DistanceRule.MASKED_STORE: rules.masked_store,
        DistanceRule.EVENT: rules.event,
        DistanceRule.LOOKUP: rules.lookup,
        DistanceRule.ADDRESS_INCREMENT: rules.address_increment,
        DistanceRule.INTEGER_ACCUMULATOR: rules.integer_accumulator,
        DistanceRule.LATE_ACCUMULATOR: rules.float_accumulator,
        DistanceRule.FORWARDED_ACCUMULATOR: rules.float_accumulator,
    }
    return facts.get(rule)


# Findings of the linter; a run with --lint shows the same.

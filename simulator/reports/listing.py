"""The answers of the tools on TPC programs, as JSON and as text: asm and disasm, unswizzle, latency, lint.

Listings are in the manner of objdump.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.isa.tpc.encoding import AssembledBinary, Disassembly, ListedLine
from castsim.reports.documents import Document, document, json_of
from castsim.reports.terminal import indented, table
from castsim.targets.description import Fact
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import DistanceRule, stage_name

if TYPE_CHECKING:
    from castsim.machines.vliw.latency_bound import PairDistance
    from castsim.machines.vliw.lint_flow import LintFinding
    from castsim.tpc_compiler.swizzle_elimination import BlockResult, Compared


def assembled_document(file: str, target: str, assembled: AssembledBinary, output: Path | None) -> Document:
    """Return the JSON of an assembled program."""
    return {
        "file": file,
        "target": target,
        "bundles": assembled.bundles,
        "size_bytes": len(assembled.code),
        **document(assembled, "code", "assumed", assumed="facts_assumed"),
        "output": json_of(output),
    }


def assembled_text(assembled: AssembledBinary, listing: Disassembly, target: str, output: Path | None) -> Text:
    """Return the listing of an assembled program, or where it was written; and which positions are assumed."""
    if output is None:
        lines = [*_listing(listing)]
    else:
        lines = [f"{output}: {assembled.bundles} bundles for {target}, {len(assembled.code)} bytes"]
    if assembled.assumed:
        lines += ["", "positions that no source states:", *(f"  {item}" for item in assembled.assumed)]
    return plain_text("\n".join(lines))


def disassembled_document(found: Disassembly, file: str, target: str, output: Path | None) -> Document:
    """Return the JSON of a disassembled program."""
    return {
        "file": file,
        "target": target,
        "size_bytes": sum(len(line.code) for line in found.lines),
        "unknown_bundles": sum(not line.known for line in found.lines),
        "lines": [
            document(line, "address", "code", "text", "labels", "directives", "known", "remark") for line in found.lines
        ],
        **document(found, "end_labels"),
        "output": json_of(output),
    }


def disassembled_text(found: Disassembly, file: str, target: str, output: Path | None) -> Text:
    """Return the listing of a binary, or where its text was written; and how much of it is unknown."""
    lines = [f"{file}: {target}", *_listing(found)] if output is None else [f"{output}: assembly for {target}"]
    unknown = sum(not line.known for line in found.lines)
    if unknown:
        lines += ["", f"unknown: {unknown} of {len(found.lines)} lines are not bundles of {target}"]
    return plain_text("\n".join(lines))


def source_text(found: Disassembly, target: str) -> str:
    """Return text that assembles to the same bytes and names its target."""
    return f"// castsim: target {target}\n{found.text()}"


def plain_text(text: str) -> Text:
    """Return text that is shown as it is, however wide."""
    return Text(text.removesuffix("\n"), no_wrap=True)


def _listing(found: Disassembly) -> Iterator[str]:
    """Yield a line per bundle: address, bytes, text; labels and directives on lines of their own."""
    width = max((2 * len(line.code) for line in found.lines), default=0)
    for line in found.lines:
        yield from (f"\n{line.address:08x} <{label}>:" for label in line.labels)
        yield from (f"{'':10}{directive}" for directive in line.directives)
        yield f"{line.address:8x}: {_words(line):{width + width // 16}} {_text(line)}"
    end = sum(len(line.code) for line in found.lines)
    yield from (f"\n{end:08x} <{label}>:" for label in found.end_labels)


def _words(line: ListedLine) -> str:
    """Return the bytes in their order, in groups of eight."""
    digits = line.code.hex()
    return " ".join(digits[start : start + 16] for start in range(0, len(digits), 16))


def _text(line: ListedLine) -> str:
    text = line.text if line.known else "(unknown)"
    return text if line.remark is None else f"{text}  // {line.remark}"


# Removed lane moves, as a JSON document and as text.


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


# Distances between two instructions, as data and as text.

_PAGE = "docs/reference/tpc.md"


class DocumentedPair(TypedDict):
    """One pair in JSON."""

    producer: str
    consumer: str
    register: str | None
    consumer_operand: str | None
    distance_bundles: int | None
    minimum_bundles: int | None
    producer_stage: str | None
    consumer_stage: str | None
    entry_port: str | None
    rule: str
    source: str


def pair_entry(target: VliwTarget, producer: str, consumer: str, found: PairDistance | None) -> DocumentedPair | None:
    """Return a pair as data; None where nothing is shared or known."""
    if found is None:
        return None
    shared = found.shared
    latency = None if shared is None else shared.latency
    return DocumentedPair(
        producer=producer.strip(),
        consumer=consumer.strip(),
        register=None if shared is None else shared.register,
        consumer_operand=None if shared is None else shared.operand,
        distance_bundles=None if latency is None else latency.distance,
        minimum_bundles=found.minimum,
        producer_stage=None if latency is None else _stage(latency.producer_stage),
        consumer_stage=None if latency is None else _stage(latency.consumer_stage),
        entry_port=None if latency is None else latency.entry_port,
        rule="; ".join(_rules(found)),
        source="; ".join(_sources(target, found)),
    )


def pair_text(
    target: str, found: Sequence[tuple[str, str, PairDistance | None]], entries: Sequence[DocumentedPair | None]
) -> str:
    """Return the answers as text, the distance first."""
    blocks = (_pair_block(target, *each, entry) for each, entry in zip(found, entries, strict=True))
    return "\n".join(blocks)


def _pair_block(
    target: str, producer: str, consumer: str, found: PairDistance | None, entry: DocumentedPair | None
) -> str:
    pair = f"{producer.strip()} -> {consumer.strip()}"
    if found is None or entry is None:
        return f"{pair}\n  no distance: the second reads nothing that the first writes, and no rule is about the pair"
    lines = [f"{_bundles(_needed(found))} on {target}: {pair}"]
    if found.shared is not None:
        latency = found.shared.latency
        stages = (
            f"written in {entry['producer_stage']}, read in {entry['consumer_stage']} through {entry['entry_port']}"
            if latency.producer_stage is not None
            else "not by stages"
        )
        where = f"{found.shared.register} as {found.shared.operand}"
        lines.append(f"  {_bundles(latency.distance)} until {where} is up to date: {stages}")
    if found.minimum is not None:
        lines.append(f"  {_bundles(found.minimum)} at least by issue rules")
    return "\n".join([*lines, f"  rule: {entry['rule']}", f"  source: {entry['source']}"])


def _needed(found: PairDistance) -> int:
    """Return the smallest distance at which the pair is right and keeps the issue rules."""
    return next(distance for distance in count() if found.allows(distance))


def _bundles(number: int) -> str:
    return f"{number} bundle{'' if number == 1 else 's'}"


def _stage(number: int | None) -> str | None:
    return None if number is None else stage_name(number)


def _rules(found: PairDistance) -> Iterator[str]:
    if found.shared is not None:
        steps = found.shared.latency.steps
        yield f"{steps[-1]}" if len(steps) == 1 else f"{steps[-1]} (after: {', '.join(steps[:-1])})"
    yield from dict.fromkeys(rule.rule for rule in found.rules)


def _sources(target: VliwTarget, found: PairDistance) -> Iterator[str]:
    if found.shared is not None:
        latency = found.shared.latency
        facts: list[Fact] = (
            [] if latency.rule in (DistanceRule.RESEED, DistanceRule.TENSOR_REGISTER) else [target.stages_fact]
        )
        deciding = _fact(target, latency.rule)
        facts += [deciding] if deciding is not None else []
        for source in dict.fromkeys(fact.source for fact in facts):
            yield f"{source} ({_PAGE} 6.1)"
    if found.rules:
        yield f"{target.bundle_distances_fact.source} ({_PAGE} 6.2)"


def _fact(target: VliwTarget, rule: DistanceRule) -> Fact | None:
    """Return the fact of a rule beyond the stages."""
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


def lint_section(found: tuple[LintFinding, ...]) -> Iterator[RenderableType]:
    """Yield the findings of the linter."""
    yield Text()
    certain = [each for each in found if each.certain]
    possible = [each for each in found if not each.certain]
    if certain:
        yield Text(f"lint: {_findings(certain)}", style="bold yellow")
        yield from map(_finding_line, certain)
    else:
        yield Text("lint: no certain issues" if possible else "lint: no issues found")
    if possible:
        yield Text(f"possible, depending on path, predicates or start values: {_findings(possible)}", style="dim")
        yield from map(_finding_line, possible)


def notice_section(found: tuple[LintFinding, ...]) -> Iterator[RenderableType]:
    """Yield the notices of the linter, which break no rule; nothing if there is none."""
    if found:
        yield Text(f"notices: {len(found)}", style="dim")
    yield from map(_finding_line, found)


def _findings(found: list[LintFinding]) -> str:
    return f"{len(found)} finding{'s' if len(found) > 1 else ''}"


def _finding_line(found: LintFinding) -> RenderableType:
    return indented(Text(f"line {found.span.line}, bundle {found.bundle}: {found.rule}: {found.message}"))

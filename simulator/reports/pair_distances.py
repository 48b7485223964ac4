"""Distances between two instructions, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TypedDict

from castsim.machines.vliw.latency_bound import PairDistance
from castsim.targets.description import Fact
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import Rule, stage_name

_PAGE = "docs/reference/tpc.md"


class Entry(TypedDict):
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


def pair_entry(target: VliwTarget, producer: str, consumer: str, found: PairDistance | None) -> Entry | None:
    """Return a pair as data; None where nothing is shared or known."""
    if found is None:
        return None
    shared = found.shared
    latency = None if shared is None else shared.latency
    return Entry(
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
    target: str, found: Sequence[tuple[str, str, PairDistance | None]], entries: Sequence[Entry | None]
) -> str:
    """Return the answers as text, the distance first."""
    blocks = (_block(target, *each, entry) for each, entry in zip(found, entries, strict=True))
    return "\n".join(blocks)


def _block(target: str, producer: str, consumer: str, found: PairDistance | None, entry: Entry | None) -> str:
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
        facts: list[Fact] = [] if latency.rule in (Rule.RESEED, Rule.TENSOR_REGISTER) else [target.stages_fact]
        deciding = _fact(target, latency.rule)
        facts += [deciding] if deciding is not None else []
        for source in dict.fromkeys(fact.source for fact in facts):
            yield f"{source} ({_PAGE} 6.1)"
    if found.rules:
        yield f"{target.bundle_distances_fact.source} ({_PAGE} 6.2)"


def _fact(target: VliwTarget, rule: Rule) -> Fact | None:
    """Return the fact of a rule beyond the stages."""
    rules = target.latency_rules
    facts: dict[Rule, Fact | None] = {
        Rule.RESEED: target.distances,
        Rule.TENSOR_REGISTER: target.distances,
        Rule.UNLISTED: rules.default,
        Rule.PORT: target.entry_ports_fact,
        Rule.INDEX_BYPASS: rules.index_bypass,
        Rule.MASKED_STORE: rules.masked_store,
        Rule.EVENT: rules.event,
        Rule.LOOKUP: rules.lookup,
        Rule.ADDRESS_INCREMENT: rules.address_increment,
        Rule.INTEGER_ACCUMULATOR: rules.integer_accumulator,
        Rule.LATE_ACCUMULATOR: rules.float_accumulator,
        Rule.FORWARDED_ACCUMULATOR: rules.float_accumulator,
    }
    return facts.get(rule)

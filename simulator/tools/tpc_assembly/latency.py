"""The command `latency`: show the latency in bundles between two instructions, and its reason."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import count

from castsim.commands.outcome import CommandOutcome
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, ReadError, SourceText, Span
from castsim.isa.reading import STDIN
from castsim.isa.tpc.forms import Dialect
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Bundle, Slot
from castsim.machines.vliw import tpc_target
from castsim.machines.vliw.latency_bound import PairDistance, SlottedInstruction, pair_distance
from castsim.reports.documents import CommandDocument, Keys, apart, record, says
from castsim.reports.schemas.keys import Bundles, Cycles
from castsim.targets.description import Fact
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import DistanceRule, stage_name
from castsim.tools.tpc_assembly.asm import named_bytes

_PAGE = "docs/reference/tpc.md"
_APART = "no distance: the second reads nothing that the first writes, and no rule is about the pair"
_ARROW = " -> "
_COLUMN = len(_ARROW)


@record
class Distance(Keys):
    """The distance between two instructions."""

    pair: PairDistance = apart()
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


@dataclass(frozen=True, slots=True)
class _InstructionText:
    """An instruction as written, and its position (line and column count from 0)."""

    file: str
    text: str
    line: int = 0
    column: int = 0

    @property
    def in_place(self) -> str:
        """The text preceded by as many lines and columns as in its file."""
        return "\n" * self.line + " " * self.column + self.text

    def error(self, message: str, legal: tuple[str, ...]) -> ReadError:
        """Return (do not raise) the error about the text."""
        span = Span.within(SourceText(self.file, self.in_place), self.line + self.column, len(self.text) or 1)
        return ReadError(message, span=span, legal=legal)


def execute(options: Namespace) -> CommandOutcome:
    """Find the distances.

    Raises:
        ReadError: an option is wrong, a line is not a pair, or a text is not one instruction.
        IllegalError: the target lacks an instruction, or has no assembly.
    """
    loaded = load_target(options.target)
    target = tpc_target(loaded, f"{loaded.name} has no TPC assembly")
    read_texts: dict[str, SlottedInstruction] = {}
    distances: list[Distance | None] = []
    answers: list[str] = []
    for first, other in _pairs(options.producer, options.consumer):
        producer, consumer = (
            _read_once(instruction_text, target.dialect, read_texts) for instruction_text in (first, other)
        )
        pair = pair_distance(target, producer, consumer)
        distance = None if pair is None else _distance(target, first.text.strip(), other.text.strip(), pair)
        distances.append(distance)
        answers.append(
            f"{first.text.strip()} -> {other.text.strip()}\n  {_APART}"
            if distance is None
            else _answer(target, distance)
        )
    document = Latency.of(pairs=distances)
    return CommandOutcome(document, lambda _: "\n".join(answers), code=1 if None in distances else 0)


def _pairs(producer: str, consumer: str | None) -> Iterator[tuple[_InstructionText, _InstructionText]]:
    """Yield the pairs from the command line or from standard input."""
    if producer != STDIN:
        if consumer is None:
            raise ReadError("latency needs two instructions, or - for pairs on standard input", legal=("CONSUMER", "-"))
        yield _InstructionText("PRODUCER", producer), _InstructionText("CONSUMER", consumer)
        return
    if consumer is not None:
        raise ReadError("with -, pairs are read only from standard input", legal=("castsim latency - --target T",))
    file, data = named_bytes(STDIN)
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ReadError(f"{file}: byte {error.start} is not UTF-8 text") from None
    for number, line in enumerate(lines):
        first, arrow, second = line.partition(_ARROW)
        if not arrow or _ARROW in second:
            written = _InstructionText(file, line, number)
            raise written.error("write a line as PRODUCER -> CONSUMER", ("one ' -> ' between two instructions",))
        start = len(first) + _COLUMN
        yield _InstructionText(file, first, number), _InstructionText(file, second, number, start)


def _read_once(
    written: _InstructionText, dialect: Dialect, instructions: dict[str, SlottedInstruction]
) -> SlottedInstruction:
    """Return the only instruction of a text in its slot; equal texts are read once, and errors name the position."""
    if written.text not in instructions:
        try:
            instructions[written.text] = _instruction(written.text, written, dialect)
        except CastsimError:
            # Read again where it stands, so that the error says so.
            instructions[written.text] = _instruction(written.in_place, written, dialect)
    return instructions[written.text]


def _instruction(text: str, written: _InstructionText, dialect: Dialect) -> SlottedInstruction:
    items = parse(text, dialect, written.file).items
    placed = [
        SlottedInstruction(slot, instruction)
        for item in items
        if isinstance(item, Bundle)
        for slot, instruction in zip(Slot, item.slots, strict=True)
        if instruction is not None
    ]
    if len(items) != 1 or len(placed) != 1:
        message = f"'{written.text.strip()[:60]}' is not one instruction"
        raise written.error(message, ("one instruction", "four slots of which three are nop"))
    return placed[0]


def _distance(target: VliwTarget, producer: str, consumer: str, pair: PairDistance) -> Distance:
    """Return the distance of a pair, with its rules and sources."""
    shared = pair.shared
    latency = None if shared is None else shared.latency
    return Distance(
        pair=pair,
        producer=producer,
        consumer=consumer,
        register_=None if shared is None else shared.register,
        consumer_operand=None if shared is None else shared.operand,
        distance_bundles=None if latency is None else latency.distance,
        latency_cycles=pair.latency_cycles or None,
        minimum_bundles=pair.minimum,
        producer_stage=None if latency is None else _stage(latency.producer_stage),
        consumer_stage=None if latency is None else _stage(latency.consumer_stage),
        entry_port=None if latency is None else latency.entry_port,
        rule="; ".join(_rules(pair)),
        source="; ".join(_sources(target, pair)),
    )


def _answer(target: VliwTarget, distance: Distance) -> str:
    """Return the answer as text, the distance first."""
    lines = [f"{_bundles(_needed(distance.pair))} on {target.name}: {distance.producer} -> {distance.consumer}"]
    if distance.distance_bundles is not None:
        stages = (
            f"written in {distance.producer_stage}, read in {distance.consumer_stage} through {distance.entry_port}"
            if distance.producer_stage is not None
            else "not by stages"
        )
        where = f"{distance.register_} as {distance.consumer_operand}"
        lines.append(f"  {_bundles(distance.distance_bundles)} until {where} is up to date: {stages}")
    if distance.latency_cycles:
        lines.append(f"  the core is stalled until {distance.latency_cycles} cycles after the access (element_loads)")
    if distance.minimum_bundles is not None:
        lines.append(f"  {_bundles(distance.minimum_bundles)} at least by issue rules")
    return "\n".join([*lines, f"  rule: {distance.rule}", f"  source: {distance.source}"])


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

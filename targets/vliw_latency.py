"""The latency in bundles from a producer to an operand: the stage tables, the rule, and the exceptions.

With P the stage of the result, C that of the operand and S that of the operand's entry port, the distance is

    max(1, S - C + 1)   if S > P
    max(1, P - C + 1)   otherwise

and the fields of `LatencyRules` change it, in the order of that class. Facts: docs/reference/tpc.md section 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from castsim.isa.dataclass import dataclass
from castsim.targets import validated
from castsim.targets.description import LIST_SEPARATOR, Fact, Table
from castsim.targets.validated import AfterValidator, BeforeValidator, Field

# Schema of the stage tables of an exposed pipeline: when results are committed and operands are read.
#
# A row says in which stage an instruction commits a result or reads an operand. Operands enter the pipeline through
# ports that several operands share; a port has a stage of its own. Stages are numbered d1 = -1, d2 = 0, e1 = 1 and so
# on. Facts: docs/reference/tpc.md section 6.1.

SlotName = Literal["load", "spu", "vpu", "store"]
FileName = Literal["V", "S", "I", "AD", "SP", "VP", "imm", "hw"]
"""Register files of the stage tables; `hw` are registers with a name instead of a number."""

RESULT = "dst"
DESTINATION_KINDS = 4
"""Maximum number of kinds of destinations that a rule distinguishes: the destination number modulo this."""
WHOLE_SLOT = "*"
PREDICATE = "predicate"

_LAST = 13
_STAGES = {"d1": -1, "d2": 0} | {f"e{number}": number for number in range(1, _LAST + 1)}
_NAMES = {number: name for name, number in _STAGES.items()}


class RowMark(StrEnum):
    """The marks that distinguish rows of the same operand."""

    FLOAT = "float"
    """The element type is floating-point."""
    F16 = "f16"
    F8 = "f8"
    INDEX = "index"
    """The destination is in file I."""
    VECTOR = "vector"
    """A source that is read by the vector pipe."""
    PAIR = "pair"
    """Two S registers are written."""
    X2 = "x2"


def _stage(cell: Any) -> Any:
    """Turn the name of a stage into its number."""
    if isinstance(cell, str):
        if cell not in _STAGES:
            raise ValueError(f"unknown stage '{cell}'; stages are d1, d2, e1 to e{_LAST}")
        return _STAGES[cell]
    return cell


def _marks(cell: Any) -> Any:
    return frozenset(cell.split(LIST_SEPARATOR) if cell else ()) if isinstance(cell, str) or cell is None else cell


Stage = Annotated[int, Field(ge=-1, le=_LAST, strict=True), BeforeValidator(_stage)]
Opcode = Annotated[int, Field(ge=0, lt=64, strict=True)]


def stage_name(stage: int) -> str:
    """Return the vendor's name of a stage, such as `e5`."""
    return _NAMES[stage]


class RowKey(NamedTuple):
    """The key of a row of the stage table."""

    slot: str
    opcode: int
    operand: str
    file: str
    marks: frozenset[RowMark]


class StageRow(Table):
    """The stage in which an operand is read, or a result committed (`dst`, or `dst_` and the name of a register).

    `entry_port` is the port of an operand; results have none.
    """

    slot: SlotName
    opcode: Opcode
    mnemonic: str
    operand: Annotated[str, Field(pattern=r"^(predicate|dst|(src|dst)_[a-z0-9_]+)$")]
    register_file: FileName
    stage: Stage
    entry_port: Annotated[str | None, BeforeValidator(lambda cell: None if cell == "" else cell)]
    marks: Annotated[frozenset[RowMark], BeforeValidator(_marks)]

    @property
    def key(self) -> RowKey:
        """The key of this row."""
        return RowKey(self.slot, self.opcode, self.operand, self.register_file, self.marks)

    @property
    def is_result(self) -> bool:
        """Whether the row describes a result."""
        return self.operand.partition("_")[0] == RESULT


class EntryPort(Table):
    """A port through which operands enter the pipeline, and its stage."""

    name: str
    stage: Stage


InstructionName = Annotated[str, Field(pattern=r"^(load|spu|vpu|store)\.([a-z0-9_]+|\*)$")]
"""Slot and mnemonic, `spu.add`; `load.*` is any instruction of the slot. Only the opcode is compared."""


class DefaultDistance(Fact):
    """Distance of a pair for which the stage tables lack a row."""

    distance: int


class ImplicitRandom(Fact):
    """Stage in which a conversion with stochastic rounding commits the generator state that it advances."""

    stage: Stage


class IndexBypass(Fact):
    """Operands in file I are read in `stage` unless producer and consumer are on these lists."""

    producers: tuple[InstructionName, ...]
    consumers: tuple[InstructionName, ...]
    stage: Stage


class MaskedStore(Fact):
    """Stores that see a VP result of their own bundle where the rule gives distance 0."""

    consumers: tuple[InstructionName, ...]


class EventConsumer(Fact):
    """An EVENT that waits for all results: a distance, and a second one after a given opcode in any slot."""

    consumers: tuple[InstructionName, ...]
    distance: int
    late_opcode: Opcode
    late_distance: int


class LookupProducer(Fact):
    """Look-ups whose results are later than their stage implies, except those of pairs (x2)."""

    producers: tuple[InstructionName, ...]
    added: int


class AddressIncrement(Fact):
    """Accesses that forward their incremented address: a consumer of the same family sees it at `distance`."""

    families: tuple[tuple[InstructionName, ...], ...]
    distance: int


class IntegerAccumulator(Fact):
    """Operand c of integer products, which arrives earlier after commit stages of the same slot."""

    consumers: tuple[InstructionName, ...]
    stages: tuple[Stage, ...]
    added: int


def _told_apart(count: int) -> int:
    if count not in (1, 2, DESTINATION_KINDS):
        raise ValueError(f"{count} is not simulated: destinations are distinguished by their number modulo 4, 2 or 1")
    return count


class ForwardedDestinations(Fact):
    """Number of destinations that the forwarding of f32 accumulators in the VPU distinguishes; 1 for other floats."""

    f8: Annotated[int, AfterValidator(_told_apart)]
    half: Annotated[int, AfterValidator(_told_apart)]


class FloatAccumulator(Fact):
    """The accumulator path of float products and sums.

    `products` take the accumulator as operand c, `sums` of 16 bits, 8 bits or pairs as operand a. All of them and
    `factors` forward it. After one of `late_producers` an accumulator arrives `added` bundles later; a pair of
    accumulators at distance `direct` is at `forwarded` if forwarding applies, else at `otherwise`.
    """

    products: tuple[InstructionName, ...]
    factors: tuple[InstructionName, ...]
    sums: tuple[InstructionName, ...]
    late_producers: tuple[InstructionName, ...]
    late_scalar_producers: tuple[InstructionName, ...]
    late_scalar_pairs: tuple[InstructionName, ...]
    added: int
    direct: int
    forwarded: int
    otherwise: int
    destinations: ForwardedDestinations


class LatencyRules(Table):
    """The rules beyond the stages for the distance of a pair; a rule without a table does not apply.

    The rules apply in the order of the fields (docs/reference/tpc.md section 6.1).
    """

    default: DefaultDistance
    implicit_random: ImplicitRandom
    index_bypass: IndexBypass
    masked_store: MaskedStore | None = None
    event: EventConsumer | None = None
    lookup: LookupProducer
    address_increment: AddressIncrement | None = None
    integer_accumulator: IntegerAccumulator | None = None
    float_accumulator: FloatAccumulator | None = None


def refuse_unknown_instructions(rules: LatencyRules, instructions: Set[tuple[str, str]]) -> None:
    """Reject rules with an instruction that its slot does not have; `instructions` are slots and mnemonics.

    Raises:
        ValueError: a rule has such an instruction; the message names both.
    """
    for rule in LatencyRules.model_fields:
        for name in _instructions_of(getattr(rules, rule)):
            slot, mnemonic = name.split(".", 1)
            if mnemonic != WHOLE_SLOT and (slot, mnemonic) not in instructions:
                raise ValueError(f"latency_rules.{rule}: the {slot} slot has no instruction '{mnemonic}'")


def _instructions_of(rule: Fact | None) -> Iterator[str]:
    """Yield the instructions in a rule; only instructions are in tuples of words."""
    for field in type(rule).model_fields if rule is not None else ():
        value = getattr(rule, field)
        for item in value if isinstance(value, tuple) else ():
            yield from item if isinstance(item, tuple) else (item,) if isinstance(item, str) else ()


def refuse_bad_rows(stages: tuple[StageRow, ...], ports: tuple[EntryPort, ...]) -> None:
    """Reject rules that only the whole tables show to be wrong: duplicate keys, operands without a known port.

    Raises:
        PydanticCustomError: a rule is wrong; its context has `table` and `row`, counted from 0.
    """
    _refuse_doubles("entry_ports", (port.name for port in ports), "port '{key}' is listed twice")
    _refuse_doubles("stages", (row.key for row in stages), "the same slot, opcode, operand, file and marks twice")
    port_names = {port.name for port in ports}
    for number, row in enumerate(stages):
        if row.is_result:
            continue
        if row.entry_port is None:
            raise _bad_row("stages", number, f"entry_port: {row.operand} of {row.mnemonic} has no entry port")
        if row.entry_port not in port_names:
            raise _bad_row("stages", number, f"entry_port: unknown port '{row.entry_port}'")


def _refuse_doubles(table: str, keys: Iterable[Hashable], message: str) -> None:
    seen: set[Hashable] = set()
    for number, key in enumerate(keys):
        if key in seen:
            raise _bad_row(table, number, message.format(key=key))
        seen.add(key)


def _bad_row(table: str, row: int, message: str) -> validated.PydanticCustomError:
    return validated.PydanticCustomError("bad_row", "{message}", {"message": message, "table": table, "row": row})


_WIDTHS = frozenset((RowMark.F16, RowMark.F8, RowMark.X2))
_FLOAT_WIDTHS = _WIDTHS | {RowMark.FLOAT}
_RESEEDS = (f"{RESULT}_vpu_lfsr", f"{RESULT}_spu_lfsr")
_VECTOR_SLOT, _SCALAR_SLOT = "vpu", "spu"


class DistanceRule(StrEnum):
    """The rule that decides a distance, in the order in which the rules apply."""

    RESEED = "a use of the random generator behind a reseed"
    UNLISTED = "the stage tables do not have the pair"
    TENSOR_REGISTER = "a register that tensor accesses read beside what they name"
    PORT = "the entry port of the operand"
    STAGES = "commit stage and read stage"
    INDEX_BYPASS = "no bypass of index registers for the pair"
    MASKED_STORE = "a masked store sees results of its own bundle"
    EVENT = "EVENT waits for all results"
    LOOKUP = "a look-up comes later than its stage"
    ADDRESS_INCREMENT = "an incremented address is passed on"
    INTEGER_ACCUMULATOR = "the integer accumulator arrives sooner"
    LATE_ACCUMULATOR = "a rearranged accumulator comes later"
    FORWARDED_ACCUMULATOR = "one accumulator passes to another"


@dataclass(frozen=True, slots=True)
class OperandKey:
    """A result or an operand of an instruction, with everything that determines its distances.

    `operand` and `file` are those of the stage tables; `acc_fp32` is whether a product accumulates in f32, `index` the
    number of the instruction's destination; `random` marks a generator state that a conversion advances.
    """

    slot: str
    opcode: int
    operand: str
    file: str
    marks: frozenset[RowMark] = frozenset()
    acc_fp32: bool = False
    index: int = 0
    random: bool = False

    @property
    def row(self) -> RowKey:
        """The key of its row in the stage table, which is independent of accumulator and destination."""
        return RowKey(self.slot, self.opcode, self.operand, self.file, self.marks)

    @property
    def is_float(self) -> bool:
        """Whether the element type is floating-point."""
        return RowMark.FLOAT in self.marks


@dataclass(frozen=True, slots=True, eq=False)
class Commit:
    """The stage in which a result becomes visible, and the producer's properties for the exceptions.

    There is one object per target and kind of result, so it can be the key of an operand's distances. `listed` is
    whether the stage tables have it; otherwise `number` is the stage equivalent to the default distance.
    """

    key: OperandKey | None
    number: int
    listed: bool = True


@dataclass(frozen=True, slots=True)
class SmallestDistance:
    """The smallest distance of a pair in bundles, and its reason.

    Stages are numbered (d2 = 0, e1 = 1), None where the tables lack the pair; `consumer_stage` is the effective one,
    which the index bypass may change. `rule` is the deciding rule; `steps` are all rules that applied.
    """

    distance: int
    producer_stage: int | None
    consumer_stage: int | None
    entry_port: str | None
    rule: DistanceRule
    steps: tuple[DistanceRule, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pair:
    """A producer and a consumer with their stages: P, C and S of the rule."""

    producer: OperandKey
    consumer: OperandKey
    result: int
    operand: int
    port: int


class CommitDistances(dict[Commit, int]):
    """Smallest distances in bundles by the producer's commit, computed on demand."""

    def __init__(self, latencies: Latencies, consumer: OperandKey) -> None:
        super().__init__()
        self._latencies = latencies
        self._consumer = consumer

    def __missing__(self, commit: Commit) -> int:
        assert commit.key is not None
        distance = self._latencies.latency(commit.key, self._consumer).distance
        self[commit] = distance
        return distance


class Latencies:
    """The distances of one generation.

    `reseed` is the distance from a MOV to a random generator to any instruction that uses it.

    `unmarked` decides for an operand that the tables do not list for its width or for floats: whether the row without
    these marks applies; otherwise the default distance does.
    """

    def __init__(
        self,
        stages: Iterable[StageRow],
        ports: Iterable[EntryPort],
        rules: LatencyRules,
        opcodes: Mapping[tuple[str, str], int],
        *,
        reseed: int,
        unmarked: Callable[[], bool],
    ) -> None:
        self.rules = rules
        self._rows = {row.key: row for row in stages}
        self._ports = {port.name: port.stage for port in ports}
        self.opcodes = opcodes
        self._reseed = reseed
        self._unmarked = unmarked
        self._sets = self._instruction_sets()
        self._longest: dict[frozenset[tuple[str, str]], int] = {}
        self._commits: dict[OperandKey, Commit] = {}
        self._distances: dict[OperandKey, CommitDistances] = {}

    def commit(self, key: OperandKey) -> Commit:
        """Return the commit of a result; the same object for the same key."""
        cached = self._commits.get(key)
        if cached is None:
            row = self.row(key)
            default = self.rules.default.distance - 1
            stage = self.rules.implicit_random.stage if key.random else default if row is None else row.stage
            cached = Commit(key, stage, listed=key.random or row is not None)
            self._commits[key] = cached
        return cached

    def distances(self, key: OperandKey) -> CommitDistances:
        """Return the distances of an operand from all producers."""
        cached = self._distances.get(key)
        if cached is None:
            cached = self._distances[key] = CommitDistances(self, key)
        return cached

    def port_stage(self, key: OperandKey) -> int | None:
        """Return the stage of an operand's entry port, None if the tables lack the operand."""
        row = self.row(key)
        return None if row is None or row.entry_port is None else self._ports[row.entry_port]

    def row(self, key: OperandKey) -> StageRow | None:
        """Return the row of a result or operand, None if the tables lack it."""
        wanted = key.row
        if self._among("lookups", key) and wanted.operand == RESULT:  # pairs only count for what a rule adds
            wanted = wanted._replace(marks=wanted.marks - {RowMark.X2})
        exact = self._rows.get(wanted)
        if exact is not None:
            return exact
        for marks in (_WIDTHS, _FLOAT_WIDTHS):
            exact = exact or self._rows.get(wanted._replace(marks=wanted.marks - marks))
        return exact if exact is not None and self._unmarked() else None

    def latency(self, producer: OperandKey, consumer: OperandKey) -> SmallestDistance:
        """Return the distance of a pair and the rule that decides it."""
        if producer.operand in _RESEEDS and not producer.random:
            return SmallestDistance(self._reseed, None, None, None, DistanceRule.RESEED, (DistanceRule.RESEED,))
        commit, row = self.commit(producer), self.row(consumer)
        if not commit.listed or row is None:
            return SmallestDistance(
                self.rules.default.distance, None, None, None, DistanceRule.UNLISTED, (DistanceRule.UNLISTED,)
            )
        assert row.entry_port is not None
        bypass = self.rules.index_bypass
        early = row.register_file != "I" or (
            self._among("bypass producers", producer) and self._among("bypass consumers", consumer)
        )
        operand = row.stage if early else bypass.stage
        pair = _Pair(producer, consumer, commit.number, operand, self._ports[row.entry_port])
        distance, first = self._by_stages(pair)
        steps: tuple[DistanceRule, ...] = (first,) if operand == row.stage else (first, DistanceRule.INDEX_BYPASS)
        for apply in (self._event, self._lookup, self._increment, self._integer, self._float):
            changed = apply(pair, distance)
            if changed is not None:
                distance, rule = changed
                steps = (*steps, rule)
        return SmallestDistance(distance, commit.number, operand, row.entry_port, steps[-1], steps)

    def longest(self, instructions: frozenset[tuple[str, str]]) -> int:
        """Return an upper bound on the distance of any pair of these instructions (slot and mnemonic)."""
        cached = self._longest.get(instructions)
        if cached is None:
            cached = self._longest[instructions] = self._find_longest(instructions)
        return cached

    def _find_longest(self, instructions: Set[tuple[str, str]]) -> int:
        opcodes = {(slot, self.opcodes[slot, name]) for slot, name in instructions if (slot, name) in self.opcodes}
        rows = [row for row in self._rows.values() if (row.slot, row.opcode) in opcodes]
        last: dict[str, int] = {}
        for row in rows:
            if row.is_result:
                last[_place(row)] = max(last.get(_place(row), 0), row.stage)
        longest = self.rules.default.distance
        for row in rows:
            if not row.is_result and row.entry_port is not None:
                operand = min(row.stage, self.rules.index_bypass.stage) if row.register_file == "I" else row.stage
                longest = max(longest, max(self._ports[row.entry_port], last.get(_place(row), 0)) - operand + 1)
        return max(longest, self._longest_exception(rows))

    def _longest_exception(self, rows: Iterable[StageRow]) -> int:
        """Return the maximum total of the rules that add to the stages."""
        rules, longest = self.rules, 0
        events = rules.event
        accumulators = [row for row in rows if self._takes_accumulator(OperandKey(*row.key))]
        for row in rows:
            key = OperandKey(*row.key)
            if self._among("lookups", key) and row.is_result:
                longest = max(longest, row.stage + 1 + rules.lookup.added)
            if rules.float_accumulator is not None and row.is_result and self._among("late producers", key):
                added = rules.float_accumulator.added
                longest = max([longest, *(row.stage - other.stage + 1 + added for other in accumulators)])
            if events is not None and self._among("events", key):
                longest = max(longest, events.distance, events.late_distance)
        return longest

    # ------------------------------------------------------------------------------------------------------- rules

    def _by_stages(self, pair: _Pair) -> tuple[int, DistanceRule]:
        if pair.port > pair.result:
            return max(1, pair.port - pair.operand + 1), DistanceRule.PORT
        distance = pair.result - pair.operand + 1
        masks = pair.producer.file == pair.consumer.file == "VP"
        if distance == 0 and masks and self._among("masked stores", pair.consumer):
            return 0, DistanceRule.MASKED_STORE
        return max(1, distance), DistanceRule.STAGES

    def _event(self, pair: _Pair, distance: int) -> tuple[int, DistanceRule] | None:
        event = self.rules.event
        if event is None or pair.consumer.operand == PREDICATE or not self._among("events", pair.consumer):
            return None
        return event.late_distance if pair.producer.opcode == event.late_opcode else event.distance, DistanceRule.EVENT

    def _lookup(self, pair: _Pair, distance: int) -> tuple[int, DistanceRule] | None:
        if not self._among("lookups", pair.producer) or RowMark.X2 in pair.producer.marks:
            return None
        return distance + self.rules.lookup.added, DistanceRule.LOOKUP

    def _increment(self, pair: _Pair, distance: int) -> tuple[int, DistanceRule] | None:
        """Return the distance to the next access of the same family; files distinguish the address from loaded data."""
        increment = self.rules.address_increment
        if increment is None or pair.consumer.operand != "src_a" or pair.producer.file != pair.consumer.file:
            return None
        for number in range(len(increment.families)):
            family = f"family {number}"
            if self._among(family, pair.producer) and self._among(family, pair.consumer):
                return increment.distance, DistanceRule.ADDRESS_INCREMENT
        return None

    def _integer(self, pair: _Pair, distance: int) -> tuple[int, DistanceRule] | None:
        rule, consumer = self.rules.integer_accumulator, pair.consumer
        if rule is None or consumer.is_float or consumer.operand != "src_c":
            return None
        fits = pair.producer.slot == consumer.slot and pair.result in rule.stages
        if not fits or not self._among("integer products", consumer):
            return None
        return distance + rule.added, DistanceRule.INTEGER_ACCUMULATOR

    def _float(self, pair: _Pair, distance: int) -> tuple[int, DistanceRule] | None:
        rule, producer, consumer = self.rules.float_accumulator, pair.producer, pair.consumer
        if rule is None or not self._takes_accumulator(consumer):
            return None
        if not self._passes_accumulator(producer):
            scalar = consumer.slot == _SCALAR_SLOT and (
                self._among("late scalars", producer)
                or (RowMark.PAIR in producer.marks and self._among("late scalar pairs", producer))
            )
            late = scalar or self._among("late producers", producer)
            return (distance + rule.added, DistanceRule.LATE_ACCUMULATOR) if late else None
        if distance != rule.direct:
            return None
        return rule.forwarded if _forwards(
            producer, consumer, rule
        ) else rule.otherwise, DistanceRule.FORWARDED_ACCUMULATOR

    def _takes_accumulator(self, key: OperandKey) -> bool:
        if key.operand == "src_c":
            return key.is_float and self._among("products", key)
        return key.operand == "src_a" and bool(key.marks & _WIDTHS) and self._among("sums", key)

    def _passes_accumulator(self, key: OperandKey) -> bool:
        if key.operand != RESULT:
            return False
        if key.is_float and (self._among("products", key) or self._among("factors", key)):
            return True
        return bool(key.marks & _WIDTHS) and self._among("sums", key)

    # ------------------------------------------------------------------------------------------------ instructions

    def _among(self, name: str, key: OperandKey) -> bool:
        named = self._sets[name]
        return (key.slot, key.opcode) in named or (key.slot, None) in named

    def _instruction_sets(self) -> dict[str, frozenset[tuple[str, int | None]]]:
        """Return the instructions that rules name, by slot and opcode; an opcode of None is the whole slot."""
        rules, none = self.rules, ()
        floats, events, masked = rules.float_accumulator, rules.event, rules.masked_store
        families = rules.address_increment.families if rules.address_increment else none
        named: dict[str, tuple[str, ...]] = {
            "bypass producers": rules.index_bypass.producers,
            "bypass consumers": rules.index_bypass.consumers,
            "masked stores": masked.consumers if masked else none,
            "events": events.consumers if events else none,
            "lookups": rules.lookup.producers,
            "integer products": rules.integer_accumulator.consumers if rules.integer_accumulator else none,
            "products": floats.products if floats else none,
            "factors": floats.factors if floats else none,
            "sums": floats.sums if floats else none,
            "late producers": floats.late_producers if floats else none,
            "late scalars": floats.late_scalar_producers if floats else none,
            "late scalar pairs": floats.late_scalar_pairs if floats else none,
            **{f"family {number}": family for number, family in enumerate(families)},
        }
        return {name: frozenset(map(self._opcode_of, names)) for name, names in named.items()}

    def _opcode_of(self, name: str) -> tuple[str, int | None]:
        slot, mnemonic = name.split(".", 1)
        if mnemonic == WHOLE_SLOT:
            return slot, None
        return slot, self.opcodes[slot, mnemonic]


def _place(row: StageRow) -> str:
    """Return the place that is written or read: a register file, or a named register."""
    return row.operand.partition("_")[2] if row.register_file == "hw" else row.register_file


def _forwards(producer: OperandKey, consumer: OperandKey, rule: FloatAccumulator) -> bool:
    """Return whether an accumulator is forwarded to the next one."""
    same_type = (RowMark.F16 in producer.marks) == (RowMark.F16 in consumer.marks)
    if producer.acc_fp32 != consumer.acc_fp32 or not same_type:
        return False
    if consumer.slot == _SCALAR_SLOT or not (producer.acc_fp32 or consumer.acc_fp32):
        return True
    count = rule.destinations.f8 if RowMark.F8 in consumer.marks else rule.destinations.half
    return consumer.slot == _VECTOR_SLOT and producer.index % count == consumer.index % count

"""Schema of the stage tables of an exposed pipeline: when results are committed and operands are read.

A row says in which stage an instruction commits a result or reads an operand. Operands enter the pipeline through
ports that several operands share; a port has a stage of its own. Stages are numbered d1 = -1, d2 = 0, e1 = 1 and so
on. Facts: docs/reference/tpc.md section 6.1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Set
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from castsim.targets.cells import LIST_SEPARATOR
from castsim.targets.schema import Fact, Table

SlotName = Literal["load", "spu", "vpu", "store"]
FileName = Literal["V", "S", "I", "AD", "SP", "VP", "imm", "hw"]
"""Register files of the stage tables; `hw` are registers that have a name instead of a number."""

RESULT = "dst"
DESTINATION_KINDS = 4
"""Maximum number of kinds of destinations that a rule distinguishes, by their number modulo this."""
WHOLE_SLOT = "*"
PREDICATE = "predicate"

_LAST = 13
_STAGES = {"d1": -1, "d2": 0} | {f"e{number}": number for number in range(1, _LAST + 1)}
_NAMES = {number: name for name, number in _STAGES.items()}


class Mark(StrEnum):
    """The marks that tell two rows of one operand apart."""

    FLOAT = "float"
    """The element type is a float."""
    F16 = "f16"
    F8 = "f8"
    INDEX = "index"
    """The destination is in file I."""
    VECTOR = "vector"
    """A source that the vector pipe takes."""
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


def _optional(cell: Any) -> Any:
    return None if cell == "" else cell


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
    marks: frozenset[Mark]


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
    entry_port: Annotated[str | None, BeforeValidator(_optional)]
    marks: Annotated[frozenset[Mark], BeforeValidator(_marks)]

    @property
    def key(self) -> RowKey:
        """The key of this row."""
        return RowKey(self.slot, self.opcode, self.operand, self.register_file, self.marks)

    @property
    def is_result(self) -> bool:
        """Whether the row is about a result."""
        return self.operand.partition("_")[0] == RESULT


class EntryPort(Table):
    """A port through which operands enter the pipeline, and its stage."""

    name: str
    stage: Stage


InstructionName = Annotated[str, Field(pattern=r"^(load|spu|vpu|store)\.([a-z0-9_]+|\*)$")]
"""Slot and mnemonic, `spu.add`; `load.*` is any instruction of the slot. Only the opcode is compared."""


class DefaultDistance(Fact):
    """Distance of a pair of which the stage tables do not have both."""

    distance: int


class ImplicitRandom(Fact):
    """Stage in which a conversion with stochastic rounding commits the state of the generator that it steps."""

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
    """An EVENT that waits for all results: a distance, and another behind an opcode, whatever its slot."""

    consumers: tuple[InstructionName, ...]
    distance: int
    late_opcode: Opcode
    late_distance: int


class LookupProducer(Fact):
    """Look-ups whose results come later than their stage says, unless they take pairs (x2)."""

    producers: tuple[InstructionName, ...]
    added: int


class AddressIncrement(Fact):
    """Accesses that pass their incremented address on: a consumer of the same family sees it at `distance`."""

    families: tuple[tuple[InstructionName, ...], ...]
    distance: int


class IntegerAccumulator(Fact):
    """Operand c of integer products, which arrives sooner behind commit stages of the same slot."""

    consumers: tuple[InstructionName, ...]
    stages: tuple[Stage, ...]
    added: int


def _told_apart(count: int) -> int:
    if count not in (1, 2, DESTINATION_KINDS):
        raise ValueError(f"{count} is not simulated: destinations are distinguished by their number modulo 4, 2 or 1")
    return count


class ForwardedDestinations(Fact):
    """Numbers of destinations that forwarding of f32 accumulators in the VPU tells apart; for other floats 1."""

    f8: Annotated[int, AfterValidator(_told_apart)]
    half: Annotated[int, AfterValidator(_told_apart)]


class FloatAccumulator(Fact):
    """The accumulator path of float products and sums.

    `products` take the accumulator as operand c; `sums` as operand a, if their type is among `sum_types` or they take
    pairs. All of them and `factors` pass it on. Behind one of `late_producers` an accumulator comes `added` bundles
    later; a pair of accumulators at distance `direct` is at `forwarded` if the forwarding fits, else at `otherwise`.
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
    """The rules on the distance of a pair beyond the stages; a missing table is a rule that does not hold.

    The order of the fields is that in which the rules apply (docs/reference/tpc.md section 6.1).
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


def refuse_unknown_instructions(rules: LatencyRules, known: Set[tuple[str, str]]) -> None:
    """Reject rules that name an instruction that its slot does not have; `known` are slots and mnemonics.

    Raises:
        ValueError: names the rule and the instruction.
    """
    for rule in LatencyRules.model_fields:
        for name in _instructions_of(getattr(rules, rule)):
            slot, mnemonic = name.split(".", 1)
            if mnemonic != WHOLE_SLOT and (slot, mnemonic) not in known:
                raise ValueError(f"latency_rules.{rule}: the {slot} slot has no instruction '{mnemonic}'")


def _instructions_of(rule: Fact | None) -> Iterator[str]:
    """Yield the instructions that a rule names; they alone stand in tuples of words."""
    for field in type(rule).model_fields if rule is not None else ():
        value = getattr(rule, field)
        for each in value if isinstance(value, tuple) else ():
            yield from each if isinstance(each, tuple) else (each,) if isinstance(each, str) else ()


def refuse_bad_rows(stages: tuple[StageRow, ...], ports: tuple[EntryPort, ...]) -> None:
    """Reject rows that only the whole tables show to be wrong: the same key twice, an operand without a known port.

    Raises:
        PydanticCustomError: names the table and the row, counted from 0, as `table` and `row` of its context.
    """
    _refuse_doubles("entry_ports", (port.name for port in ports), "port '{key}' is listed twice")
    _refuse_doubles("stages", (row.key for row in stages), "the same slot, opcode, operand, file and marks twice")
    known = {port.name for port in ports}
    for number, row in enumerate(stages):
        if row.is_result:
            continue
        if row.entry_port is None:
            raise _bad_row("stages", number, f"entry_port: {row.operand} of {row.mnemonic} has no entry port")
        if row.entry_port not in known:
            raise _bad_row("stages", number, f"entry_port: unknown port '{row.entry_port}'")


def _refuse_doubles(table: str, keys: Iterable[Hashable], message: str) -> None:
    seen: set[Hashable] = set()
    for number, key in enumerate(keys):
        if key in seen:
            raise _bad_row(table, number, message.format(key=key))
        seen.add(key)


def _bad_row(table: str, row: int, message: str) -> PydanticCustomError:
    return PydanticCustomError("bad_row", "{message}", {"message": message, "table": table, "row": row})

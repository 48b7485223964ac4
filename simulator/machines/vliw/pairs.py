"""How far apart two instructions must stand: by the register that one writes and the other reads, and by issue rules.

Facts: docs/reference/tpc.md section 6.1 (latency) and 6.2 (issue).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from castsim.isa.errors import CastsimError
from castsim.isa.tpc import Register, Slot, Special, TpcInstruction
from castsim.isa.tpc.program import GROUPED
from castsim.machines.vliw.latency import ACCUMULATOR, DEST, IMPLICIT, operand_key
from castsim.machines.vliw.meanings import computes, prepare
from castsim.machines.vliw.registers import CONSTANT, RANDOM
from castsim.targets.vliw import BundleDistance, VliwTarget, names, smallest
from castsim.targets.vliw_latency import PREDICATE, Latency, OperandKey, Rule


@dataclass(frozen=True, slots=True)
class Placed:
    """An instruction in its slot."""

    slot: Slot
    instruction: TpcInstruction


@dataclass(frozen=True, slots=True)
class _Access:
    """A register or named state by its name, with the operand or result that reads or writes it."""

    register: str
    key: OperandKey
    role: str


@dataclass(frozen=True, slots=True)
class Shared:
    """A register that a producer writes and a consumer reads: the operand that sees it last, and its distance."""

    register: str
    operand: str
    latency: Latency


@dataclass(frozen=True, slots=True)
class PairDistance:
    """The distances of a pair in bundles.

    `shared` is the register that decides, None if no register is written by one and read by the other; `rules` are the
    issue rules that hold for the pair, `minimum` the smallest distance that they allow (None without rules).
    """

    shared: Shared | None
    rules: tuple[BundleDistance, ...]

    @property
    def minimum(self) -> int | None:
        """The smallest distance that the issue rules allow."""
        return smallest(self.rules)

    def allows(self, distance: int) -> bool:
        """Whether the consumer may stand so many bundles behind the producer, by latency and by all rules."""
        late = self.shared is not None and distance < self.shared.latency.distance
        return not late and not any(distance < rule.distance or distance in rule.excluded for rule in self.rules)


def pair_distance(target: VliwTarget, producer: Placed, consumer: Placed) -> PairDistance | None:
    """Return the distances of a pair; None if it shares no register and no rule is known.

    Of several registers the first one decides, in the order of the producer's destination; of several operands that
    read it the one with the greatest distance.
    """
    written, read = tuple(_written(target, producer)), tuple(_read(target, consumer))
    shared = None
    for result in written:
        found = [
            Shared(result.register, operand.key.operand, _latency(target, result, operand))
            for operand in read
            if operand.register == result.register
        ]
        if found:
            shared = max(found, key=lambda each: each.latency.distance)
            break
    rules = tuple(rule for rule in target.bundle_distances if applies(rule, target, producer, consumer))
    return None if shared is None and not rules else PairDistance(shared, rules)


def _latency(target: VliwTarget, result: _Access, operand: _Access) -> Latency:
    if operand.role in IMPLICIT and operand.key.file != "hw":
        rule = Rule.TENSOR_REGISTER
        return Latency(target.distances.tensor_register, None, None, None, rule, (rule,))
    return target.latencies.latency(result.key, operand.key)


# --------------------------------------------------------------------------------------------- what is written and read


def _written(target: VliwTarget, placed: Placed) -> Iterator[_Access]:
    """Yield the results of an instruction in the order of its destination, then a generator that it steps."""
    slot, instruction = placed.slot, placed.instruction
    dest = instruction.operand(DEST)
    if isinstance(dest, Register | Special):
        key = operand_key(target, slot, instruction, DEST, _file(dest))
        for register in _registers(target, instruction, DEST, dest):
            yield _Access(register, key, DEST)
    if instruction.draws:
        name, key = _generator(target, placed)
        yield _Access(name, replace(key, random=True), "random")


def _read(target: VliwTarget, placed: Placed) -> Iterator[_Access]:
    """Yield the registers that an instruction reads, in the order of its operands, its predicate last."""
    slot, instruction = placed.slot, placed.instruction
    for spec, operand in zip(instruction.form.operands, instruction.operands, strict=True):
        if not isinstance(operand, Register | Special) or str(operand) in CONSTANT:
            continue
        role = spec.role
        if role == DEST:
            if instruction.form.accumulator is None:
                continue
            role = ACCUMULATOR
        key = operand_key(target, slot, instruction, role, _file(operand))
        for register in _registers(target, instruction, spec.role, operand):
            yield _Access(register, key, role)
    if instruction.draws:
        name, key = _generator(target, placed)
        yield _Access(name, key, "random")
    if instruction.predicate is not None:
        predicate = instruction.predicate.register
        key = operand_key(target, slot, instruction, PREDICATE, str(predicate.file))
        yield _Access(str(predicate), key, PREDICATE)


def _generator(target: VliwTarget, placed: Placed) -> tuple[str, OperandKey]:
    name = "S_LFSR" if placed.slot is Slot.SPU else "LFSR"
    return name, operand_key(target, placed.slot, placed.instruction, "src_a", name)


def _file(operand: Register | Special) -> str:
    return operand.name if isinstance(operand, Special) else str(operand.file)


def _registers(
    target: VliwTarget, instruction: TpcInstruction, role: str, operand: Register | Special
) -> tuple[str, ...]:
    """Return the single registers of an operand; of a conversion also where a V operand names the first of a group."""
    if isinstance(operand, Special):
        return (RANDOM[operand.name].generator if operand.name in RANDOM else operand.name,)
    groups: tuple[Register, ...] = (operand,)
    if computes(instruction):
        with suppress(CastsimError):  # a form that does not run is in the tables all the same
            groups = tuple(prepare(instruction, target).registers.get(role, groups))
    found: list[str] = []
    for register in groups:
        file, count = GROUPED.get(register.file, (register.file, 1))
        found += [f"{file}{register.index + place}" for place in range(count)]
    return tuple(found)


# ------------------------------------------------------------------------------------------------------- issue rules


def applies(rule: BundleDistance, target: VliwTarget, first: Placed, second: Placed) -> bool:
    """Whether a rule is one of the generation's and about this pair."""
    return (
        _matches(first, rule.first, rule.first_types, rule.first_switches)
        and _matches(second, rule.second, rule.second_types, rule.second_switches)
        and rule.holds(target.dialect.features)
        and (not rule.first_reads or _reads_any(target, first, rule.first_reads))
        and (not rule.second_reads or _reads_any(target, second, rule.second_reads))
        and (not rule.same_destination or _destinations_meet(target, first, second))
    )


def _matches(placed: Placed, listed: tuple[str, ...], types: tuple[str, ...], switches: dict[str, str]) -> bool:
    instruction = placed.instruction
    return (
        names(listed, placed.slot.name.lower(), instruction.mnemonic)
        and (not types or instruction.type in types)
        and all(str(instruction.switch(name)) == value for name, value in switches.items())
    )


def _reads_any(target: VliwTarget, placed: Placed, wanted: tuple[str, ...]) -> bool:
    return any(access.register in wanted or access.role in wanted for access in _read(target, placed))


def _destinations_meet(target: VliwTarget, first: Placed, second: Placed) -> bool:
    one, other = ({access.register for access in _written(target, placed)} for placed in (first, second))
    return not one.isdisjoint(other)

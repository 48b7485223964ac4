"""The linter and the run over all instructions: what a run reports as read early is what the linter says beforehand.

Programs are random bundles of everything that castsim executes, all on a few registers, so that almost every bundle
depends on the ones before it.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from functools import cache

import numpy as np
import pytest
from test_tpc_pairs import CONTROL, TENSOR, written_out
from tpc_operands import places
from tpc_text import GENERATIONS, target

from castsim.isa.errors import CastsimError
from castsim.isa.tpc import Bundle, Slot, TpcInstruction, TpcProgram
from castsim.machines.vliw.findings import StaleReadKind
from castsim.machines.vliw.latency_bound import SlottedInstruction, pair_distance
from castsim.machines.vliw.lint_checking import lint
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.memories import GlobalMemory

PROGRAMS = 1500 if "CASTSIM_THOROUGH" in os.environ else 18
TAIL = (Bundle(),) * 14
Early = tuple[int, str, int, int]
"""Bundle of the reader, register, bundle of the writer, distance."""


def machine_of(program: TpcProgram, generation: str, seed: int) -> VliwCore:
    """A machine whose registers all hold something that loads and stores can use."""
    chip, rng = target(generation), np.random.default_rng(seed)
    machine = VliwCore(program, chip, GlobalMemory((TENSOR,), {"x": np.zeros(512, np.uint32)}, chip.tensors.limit))
    for name, cell in machine.registers._cells.items():
        old = cell.settled
        if name in ("SP0", "VP0"):
            continue
        if isinstance(old, np.ndarray):
            cell.set(rng.integers(0, 2 if old.dtype == np.bool_ else 64, old.size).astype(old.dtype))
        elif isinstance(old, bool):
            cell.set(True)
        elif name.startswith("AD"):
            cell.set((1 << 32) + 4 * int(rng.integers(0, 100)))
        else:
            cell.set((0,) * 5 if isinstance(old, tuple) else 0)
    return machine


def runs(bundles: tuple[Bundle, ...], generation: str, seed: int) -> VliwCore | None:
    try:
        machine = machine_of(TpcProgram((), bundles), generation, seed)
        machine.run(1000)
    except CastsimError:  # no values, or an address that some value makes illegal
        return None
    return machine


@cache
def pool(generation: str, *, predicates: bool, values: bool = True) -> dict[Slot, list[TpcInstruction]]:
    """Instructions by slot: every form, type and register file, each operand once the register in question.

    `values`: those that run; else also those that the linter alone knows, such as look-ups.
    """
    found: dict[Slot, dict[str, TpcInstruction]] = {slot: {} for slot in Slot}
    for place in places(generation):
        if place.instruction.mnemonic in CONTROL or (place.role == "predicate") is not predicates:
            continue
        try:
            bundle = written_out(place, generation)
            lint(TpcProgram((), (bundle,)), target(generation))
        except CastsimError:
            continue
        instruction = bundle.slots[place.slot]
        if instruction is not None and (not values or runs((bundle, *TAIL), generation, 1) is not None):
            found[place.slot][f"{instruction.mnemonic} {place.role} {place.file} {instruction.type}"] = instruction
    return {slot: list(each.values()) for slot, each in found.items()}


def some_program(instructions: dict[Slot, list[TpcInstruction]], source: random.Random) -> tuple[Bundle, ...]:
    bundles = []
    for _ in range(source.randint(5, 14)):
        slots = [slot for slot in Slot if instructions[slot] and source.random() < 0.6]
        bundles.append(Bundle(**{slot.name.lower(): source.choice(instructions[slot]) for slot in slots}))
    return (*bundles, *TAIL)


def reported(machine: VliwCore) -> set[Early]:
    return {
        (found.reader.bundle, found.place, found.writer.bundle, found.distance)
        for found in machine.findings.all()
        if found.kind is StaleReadKind.EARLY and found.writer is not None
    }


def told(bundles: tuple[Bundle, ...], generation: str) -> tuple[set[Early], set[tuple[int, str]]]:
    """What the linter says, and of that the certain readers."""
    every, certain = set(), set()
    for each in lint(TpcProgram((), bundles), target(generation)):
        if each.rule == "stale read":
            words = each.message.split()
            at = words.index("reads")
            every.add((each.bundle, words[at + 1], int(words[at + 8]), int(words[at + 2])))
            if each.certain:
                certain.add((each.bundle, words[at + 1]))
    return every, certain


@pytest.mark.parametrize("generation", GENERATIONS)
def test_stale_reads_are_told_exactly_as_they_run(generation: str) -> None:
    instructions, source = pool(generation, predicates=False), random.Random(f"all of {generation}")
    seen, total, done = Counter[str](), 0, 0
    for number in range(PROGRAMS * 4):
        bundles = some_program(instructions, source)
        machine = runs(bundles, generation, number)
        if machine is None:
            continue
        early = reported(machine)
        every, certain = told(bundles, generation)
        assert every == early, bundles
        assert certain == {(reader, place) for reader, place, *_ in early}, bundles
        done, total = done + 1, total + len(early)
        seen.update(each.mnemonic for bundle in bundles for each in bundle.slots if each is not None)
        if done == PROGRAMS:
            break
    assert done == PROGRAMS
    assert total > PROGRAMS
    new = {"mac", "nearbyint", "pack", "unpack", "mov_g", "mov_dg", "shuffle", "popcnt", "find_first", "extract_exp"}
    assert new <= set(seen) or PROGRAMS < 100


@pytest.mark.parametrize("generation", GENERATIONS)
def test_stale_reads_under_predicates_are_told_at_least(generation: str) -> None:
    plain, guarded = pool(generation, predicates=False), pool(generation, predicates=True)
    instructions = {slot: [*plain[slot], *guarded[slot] * 3] for slot in Slot}
    source, total = random.Random(f"predicates of {generation}"), 0
    for number in range(PROGRAMS):
        bundles = some_program(instructions, source)
        machine = runs(bundles, generation, number)
        if machine is not None:
            early = reported(machine)
            assert early <= told(bundles, generation)[0], bundles
            total += len(early)
    assert total > PROGRAMS // 2


# ---------------------------------------------------------------------------------------------------- bundle distances

SPACING = {"issue distance", "product write", "tensor half spacing", "tensor store spacing", "mapped store"}
"""Rules of the linter on the distance of two bundles."""
STORES = ("st_tnsr", "st_tnsr_low", "st_tnsr_high")


def too_close(bundles: tuple[Bundle, ...], generation: str) -> set[int]:
    """Bundles that `castsim latency` does not let stand where they do, for a rule on issue and not for a result.

    Besides, docs/reference/tpc.md 6.2: before Gaudi2 no tensor store exactly 4 bundles behind another one.
    """
    chip, found = target(generation), set()
    for first, one in enumerate(bundles):
        for second in range(first + 1, min(first + 9, len(bundles))):
            for slot, producer in zip(Slot, one.slots, strict=True):
                for other, consumer in zip(Slot, bundles[second].slots, strict=True):
                    if producer is None or consumer is None:
                        continue
                    pair = pair_distance(chip, SlottedInstruction(slot, producer), SlottedInstruction(other, consumer))
                    stores = producer.mnemonic in STORES and consumer.mnemonic in STORES
                    if stores and second - first == 4 and generation != "gaudi2":
                        found.add(second)
                    distance, rules = second - first, () if pair is None else pair.rules
                    if any(distance < rule.distance or distance in rule.excluded for rule in rules):
                        found.add(second)
    return found


@pytest.mark.parametrize("generation", GENERATIONS)
def test_bundle_distances_are_those_of_castsim_latency(generation: str) -> None:
    instructions = pool(generation, predicates=False, values=False)
    source = random.Random(f"spacing of {generation}")
    total = 0
    for _ in range(PROGRAMS):
        bundles = some_program(instructions, source)
        every = [each for each in lint(TpcProgram((), bundles), target(generation)) if each.rule in SPACING]
        found = {each.bundle for each in every if "0 bundles after" not in each.message}  # LOAD and STORE of one bundle
        assert found == too_close(bundles, generation), bundles
        total += len(found)
    assert total > PROGRAMS // 10

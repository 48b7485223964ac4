"""The linter's search for stale reads: what it must find, what it must leave alone, and that it agrees with runs."""

from __future__ import annotations

import os
import random
from collections import Counter
from functools import cache

import numpy as np
import pytest
from core.machines.vliw.test_tpc_pairs import CONTROL, TENSOR, written_out
from kit.tpc_machine import END, assembled, chip, nops, ran
from kit.tpc_operands import places
from kit.tpc_text import GENERATIONS, target

from castsim.execution.tree import instances
from castsim.isa.errors import CastsimError
from castsim.isa.tpc.program import Bundle, Slot, TpcInstruction, TpcProgram
from castsim.machines.vliw.findings import LintFinding, StaleRead, StaleReadKind
from castsim.machines.vliw.latency_bound import SlottedInstruction, pair_distance
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.storage import GlobalMemory
from castsim.tools.tpc_lint.lint_checking import lint

NOP = "nop; nop; nop; nop\n"
Pair = tuple[int, str, int, int]
"""Bundle of the reader, register, bundle of the writer, distance."""


def stale(text: str, target: str = "gaudi2", **options: int) -> list[LintFinding]:
    program = assembled(text, chip(target, **options))
    return [each for each in lint(program.program, program.target) if each.rule == "stale read"]


def verdicts(text: str, target: str = "gaudi2", **options: int) -> list[tuple[int, bool]]:
    """Return the bundles of readers, and whether the finding is certain."""
    return [(each.bundle, each.certain) for each in stale(text, target, **options)]


def mov(destination: str, source: str, predicate: str = "") -> str:
    return f"nop; nop; mov {destination}, {source}{predicate and ', ' + predicate}; nop\n"


def test_a_conversion_in_the_bundle_behind_its_load() -> None:
    """docs/reference/tpc.md section 6.1: LD_TNSR to any VPU source 4."""
    text = "// castsim: tensor 0 x in f32 [64]\nld_tnsr V0, 0x0, I0; nop; nop; nop\n{gap}"
    text += f"nop; nop; convert.f32 target_type=int32 rhne V1, V0; nop\n{nops(9)}nop; nop; nop; st_l_v 0x0, V1\n{END}"
    for distance in (1, 2, 3):
        (found,) = stale(text.format(gap=nops(distance - 1)))
        assert (found.bundle, found.certain) == (distance, True)
        apart = f"reads V0 {distance} bundle{'s' * (distance != 1)} after ld_tnsr in bundle 0 (line 2)"
        assert f"{apart}, and gets the old value; needed: 4" in found.message
    assert stale(text.format(gap=nops(3))) == []


def test_reading_beside_a_write_is_no_finding() -> None:
    """The old value, by the definition of a bundle."""
    assert stale("ld_l_v V0, 0x0; nop; mov V1, V0; nop\n" + END) == []


def test_state_beside_registers() -> None:
    """docs/reference/tpc.md section 6.1: a store to the rounding register 3, the random generator's polynomial 2,
    reseed 4.
    """
    convert = "nop; nop; convert.f32 target_type=int32 {mode} V1, V0; nop\n"
    rounding = "nop; nop; nop; st_l mmio 0xca8, S1\n"
    for distance, expected in ((1, 1), (2, 1), (3, 0)):
        text = rounding + nops(distance - 1) + convert.format(mode="csr") + END
        assert len(stale(text, "gaudi2")) == expected
    assert stale(rounding + convert.format(mode="rz") + END) == []
    for distance, expected in ((3, 1), (4, 0)):
        text = "nop; nop; mov LFSR, V0; nop\n" + nops(distance - 1) + convert.format(mode="sr") + END
        assert len(stale(text, "gaudi2")) == expected


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        *((*each, [True]) for each in (("", ""), ("SP1", "SP1"), ("!SP1", "!SP1"), ("VP1", "VP1"), ("SP0", ""))),
        ("", "SP1", [True]),  # wherever it reads, it reads too early
        *((*each, [False]) for each in (("SP1", ""), ("SP1", "SP2"), ("VP1", ""))),
        *((*each, []) for each in (("SP1", "!SP1"), ("!SP0", ""), ("", "!SP0"))),
    ],
)
def test_predicates(writer: str, reader: str, expected: list[bool]) -> None:
    text = mov("V0", "V1", writer) + mov("V2", "V0", reader) + END
    assert [certain for _, certain in verdicts(text)] == expected


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_predicate_that_changes_is_another_predicate(place: int) -> None:
    bundles = [NOP, mov("V0", "V1", "SP1"), mov("V2", "V0", "SP1")]
    bundles[place] = bundles[place].replace("nop; nop;", "nop; mov SP1, S1;", 1)
    # Written in the reader's own bundle it is not seen there, so that both saw the same.
    assert [certain for _, certain in verdicts("".join(bundles) + END)] == [place == 2]


def loop(body: str, bounds: str = "0, 9, 1, <", *, before: str = "", delay: str = NOP, behind: str = "") -> str:
    return f"{before}nop; loop {bounds}, End; nop; nop\n{delay}{body}End:\n{behind}{END}"


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("0, 1, 1, <", []),  # one trip
        ("0, 2, 1, <", [(2, True)]),
        ("5, 5, 1, <", []),  # none
        ("0, S1, 1, <", [(2, True)]),  # unknown: taken to be many
        ("8, 0, -4, >", [(2, True)]),
        ("8, 0, -8, >", []),
    ],
)
def test_the_text_tells_how_often_a_body_runs(bounds: str, expected: list[tuple[int, bool]]) -> None:
    body = mov("V2", "V0") + nops(5) + mov("V0", "V1")
    assert verdicts(loop(body, bounds)) == expected


@pytest.mark.parametrize("value", [0, 1, 2])
@pytest.mark.parametrize("how", ["declared", "moved"])
def test_registers_that_hold_one_number_tell_it_too(value: int, how: str) -> None:
    body = mov("V2", "V0") + nops(5) + mov("V0", "V1")
    head = f"// castsim: reg S1 = {value}\n" if how == "declared" else f"nop; mov.i32 S1, {value}; nop; nop\n{nops(5)}"
    found = verdicts(loop(body, "0, S1, 1, <", before=head))
    assert found == ([(2 + 6 * (how == "moved"), True)] if value == 2 else [])


def test_into_a_loop_and_out_of_it() -> None:
    assert verdicts(loop(mov("V2", "V0") + nops(6), delay=mov("V0", "V1"))) == [(2, True)]  # its first trip
    assert verdicts(loop(nops(6) + mov("V0", "V1"), behind=mov("V2", "V0"))) == [(9, True)]
    past = loop(nops(6), delay=mov("V0", "V1"), behind=mov("V2", "V0"))
    assert verdicts(past) == []
    assert verdicts(past.replace("0, 9, 1", "9, 9, 1")) == [(8, True)]  # no trip
    assert verdicts(past.replace("0, 9, 1", "0, S1, 1")) == [(8, False)]
    assert verdicts(past.replace("<, End", "<, End, SP1")) == [(8, False)]


def test_the_last_trip_is_not_the_first() -> None:
    """Of a body of two bundles, written before the loop and read behind it: one trip is not enough to be fresh."""
    text = loop(nops(2), "0, {trips}, 1, <", delay=mov("V0", "V1"), behind=mov("V2", "V0"))
    assert verdicts(text.format(trips=1)) == [(4, True)]
    assert verdicts(text.format(trips=2)) == []


def test_a_loop_sets_its_iterator_for_everybody() -> None:
    text = "nop; mov.i32 S32, 0x7; nop; nop\n" + loop(
        "nop; add.i32 S3, S32, 0x1; nop; nop\n" + nops(7), behind="nop; add.i32 S4, S32, 0x1; nop; nop\n"
    )
    assert stale(text) == []


# ------------------------------------------------------------------------------------------ agreement with the machine
# Straight code: test_tpc_stale_lint.py.

THOROUGH = "CASTSIM_THOROUGH" in os.environ
REGISTERS = tuple(f"V{index}" for index in range(6))


def vector(source: random.Random) -> str:
    """One instruction of the vector unit."""
    d, a, b, c, e = (source.choice(REGISTERS) for _ in range(5))
    pair = f"D{2 * source.randrange(3)}"
    return source.choice(
        [
            f"mov {d}, {a}",
            f"add.f32 {d}, {a}, {b}",
            f"mul.f32 {d}, {a}, S{source.randrange(3)}",
            f"mul.i16 {pair}, {a}, {b}",
            f"convert.f32 target_type=bf16 rhne {d}, {a}",
            f"convert.f32 target_type=int32 {d}, {a}",
            f"pack.i16 source_group=0 element_stride=2 {d}, {a}",
            f"mov_g g_en=0b11 dg_en=0b1111 {d}, {a}, 0x7",
            f"cmp_less.f32 VP{source.randrange(1, 3)}, {a}, {b}",
            f"sel_grt.i32 {d}, {a}, {b}, {c}, {e}",
            "mov LFSR, V0",
            f"convert.f32 target_type=bf16 sr {d}, {a}",
        ]
    )


def bundle(source: random.Random, generation: str) -> str:
    """A bundle of up to four instructions; they need not obey the rules on issue."""
    place = "S4, 0x0" if generation == "goya" else "S4"
    scalar, other = f"S{source.randrange(3)}", f"S{source.randrange(3)}"
    load = [f"ld_l_v {source.choice(REGISTERS)}, {place}", f"ld_l {scalar}, 0x0", "ld_l SP1, 0x4"]
    spu = [f"add.i32 {scalar}, {other}, 0x1", f"mov.i32 {scalar}, 0x5", f"cmp_less.i32 SP1, {scalar}, {other}"]
    spu.append(f"mul.f32 {scalar}, {other}, {other}")
    store = [f"st_l_v {place}, {source.choice(REGISTERS)}", f"st_l 0x8, {scalar}", "st_l 0xc, SP1"]
    words = [source.choice(each) for each in (load, spu)] + [vector(source), source.choice(store)]
    if generation == "goya":
        words[2] = words[2].replace("target_type=bf16 sr", "target_type=int16 rz").replace("bf16", "int32")
        words[2] = "nop" if "csr" in words[2] else words[2]
    kept = [word if source.random() < 0.55 else "nop" for word in words]
    return "; ".join(kept) + "\n"


def straight(source: random.Random, generation: str) -> str:
    return "".join(bundle(source, generation) for _ in range(source.randint(3, 14)))


def predicated(text: str, source: random.Random) -> str:
    """Put some instructions under a scalar predicate."""
    found = []
    for line in text.splitlines():
        words = [
            word if word == "nop" or source.random() < 0.7 else f"{word}, {source.choice(('SP1', '!SP1', 'SP2'))}"
            for word in line.split("; ")
        ]
        if words[0] != "nop" and words[3] != "nop":  # LOAD and STORE share one predicate
            words[3] = "nop"
        found.append("; ".join(words))
    return "\n".join(found) + "\n"


HEAD = "// castsim: reg S4 = 0\n// castsim: reg S0 = 3\n// castsim: reg SP2 = 1\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n"


def program(source: random.Random, generation: str) -> str:
    """A program of straight pieces, loops with known bounds, jumps and predicates."""
    pieces, loops = [], 0
    for number in range(source.randint(1, 4)):
        piece = predicated(straight(source, generation), source)
        match source.randrange(3):
            case 0:
                body = piece
                if source.random() < 0.4:
                    loops += 1
                    end = f"E{number}i"
                    body += f"nop; loop 0, {source.randint(0, 3)}, 1, <, {end}; nop; nop\n{NOP}{piece}{end}:\n"
                piece = f"nop; loop 0, {source.randint(0, 4)}, 1, <, E{number}; nop; nop\n{NOP}{body}E{number}:\n"
            case 1:
                when = source.choice(("SP1", "!SP2", "SP2"))
                piece = f"nop; jmpr J{number}, {when}; nop; nop\n{bundle(source, generation)}{piece}J{number}:\n"
            case _:
                pass
        pieces.append(piece + straight(source, generation))
    return HEAD + "".join(pieces) + nops(8) + END


def told(program: TpcProgram | tuple[Bundle, ...], generation: str) -> tuple[set[Pair], set[tuple[int, str]]]:
    """What the linter says, and of that the certain readers."""
    every, certain = set(), set()
    for each in lint(TpcProgram((), program) if isinstance(program, tuple) else program, target(generation)):
        if each.rule == "stale read":
            words = each.message.split()
            at = words.index("reads")
            every.add((each.bundle, words[at + 1], int(words[at + 8]), int(words[at + 2])))
            if each.certain:
                certain.add((each.bundle, words[at + 1]))
    return every, certain


def reported(run: VliwCore | tuple[StaleRead, ...]) -> set[Pair]:
    """What a run reports as read early."""
    return {
        (each.reader.bundle, each.place, each.writer.bundle, each.distance)
        for each in (run if isinstance(run, tuple) else run.findings.all())
        if each.kind is StaleReadKind.EARLY and each.writer and each.reader.instruction.mnemonic != "loop"
    }


def both(text: str, generation: str) -> tuple[set[Pair], set[Pair], set[tuple[int, str]]]:
    """Return what a run reports as read early, what the linter says about it, and of that the certain readers."""
    found = reported(ran(text, generation, limit=10**4).stale_reads)
    return found, *told(assembled(text, generation).program, generation)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_code_with_branches_is_told_as_it_runs(generation: str) -> None:
    """What a run reports is told; what is certain is reported, if the reader is issued and no predicate hides it."""
    source, reported, certainly = random.Random(f"branches {generation}"), 0, 0
    for _ in range(40 if THOROUGH else 16):
        text = program(source, generation)
        early, told, certain = both(text, generation)
        assert early <= told, text
        reported += len(early)
        issued = {lowered.instruction for lowered, _ in instances(ran(text, generation, limit=10**4).tree)}
        bundles = assembled(text, generation).program.bundles
        for reader, place in certain:
            slots = [each for each in bundles[reader].slots if each is not None]
            if reader in issued and all(each.predicate is None for each in slots):
                assert (reader, place) in {(bundle, name) for bundle, name, *_ in early}, (text, reader, place)
                certainly += 1
    assert reported > 80
    assert certainly > 24


PROGRAMS = 1500 if "CASTSIM_THOROUGH" in os.environ else 18
TAIL = (Bundle(),) * 14


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


def test_a_read_that_is_stale_on_one_path_only_is_possible() -> None:
    text = f"nop; jmpr Skip, SP1; nop; nop\n{NOP}{mov('V0', 'V1')}Skip:\n{mov('V2', 'V0')}{END}"
    assert verdicts(text) == [(3, False)]


@pytest.mark.parametrize(("target", "needed"), [("goya", 7), ("gaudi", 7), ("gaudib", 7), ("greco", 4)])
def test_distances_are_those_of_the_generation(target: str, needed: int) -> None:
    """docs/reference/tpc.md section 6.1, CONVERT / MOV -> ST_L_V data."""
    address = "S0, 0x0" if target == "goya" else "0x0"
    for distance in range(1, needed + 2):
        text = mov("V0", "V1") + nops(distance - 1) + f"nop; nop; nop; st_l_v {address}, V0\n{END}"
        assert verdicts(text, target) == ([(distance, True)] if distance < needed else [])


def test_bubbles_of_taken_jumps_count() -> None:
    text = f"nop; jmpr Skip; nop; nop\n{mov('V0', 'V1')}{nops(4)}Skip:\n{mov('V2', 'V0')}{END}"
    assert verdicts(text, "gaudi", taken_jump_cycles=0) == [(6, True)]
    assert verdicts(text, "gaudi", taken_jump_cycles=2) == [(6, True)]
    assert verdicts(text, "gaudi", taken_jump_cycles=3) == []

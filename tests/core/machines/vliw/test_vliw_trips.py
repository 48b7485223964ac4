"""Skipping trips of hardware loops in a walk without values: what comes out is what walking every trip gives."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from kit.tpc_machine import assembled, nops
from kit.tpc_text import GENERATIONS
from makers import tpc_expected_reports as expected_reports

from castsim import run
from castsim.execution.tree import Block, Loop
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.tpc.program import LoopComparison, TensorDeclaration
from castsim.machines.vliw.control import LoopShape, RunningLoop, holds, signed
from castsim.machines.vliw.findings import StaleRead
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.storage import GlobalMemory, RegisterCell
from castsim.machines.vliw.trips import Trips, trips_left
from castsim.targets.vliw import VliwTarget

HEAD = """// castsim: tensor 0 x in f32 [64, 16]
// castsim: tensor 1 y out f32 [64, 16]
// castsim: vlm 0x0 a in f32 [64, 4]
// castsim: reg S0 = 0
// castsim: reg S1 = 256
// castsim: reg S2 = 0x1000
// castsim: reg S3 = 64
// castsim: reg I0 = [0, 0, 0, 0, 0]
// castsim: reg I1 = [-3, 1, 0, 0, 0]
// castsim: reg SP2 = 1
"""
FOOT = "nop; nop; nop; nop\nnop; halt; halt; nop\n"
_COUNTERS = ("S4", "S5", "S6", "S7")
_PLACES = ("S0", "S1", "S2")
_INDICES = ("I0", "I1", "I2", "I3")
_MASKS = ("b00001", "b00010", "b00011", "b11111")
_VECTORS = ("V0", "V1", "V2", "V3")
_ADDRESSES = ("AD0", "AD1")
_COMPARES = ("<", "<=", ">", ">=", "!=", "==")


@dataclass
class Writer:
    """Writes one program; `wild` is how often an instruction may do what keeps trips from being skipped."""

    generation: str
    source: random.Random
    wild: float
    labels: int = 0
    lines: list[str] = field(default_factory=list)

    def program(self) -> str:
        self.lines = [HEAD]
        self.straight(self.source.randint(0, 3))
        for _ in range(self.source.randint(1, 2)):
            self.loop(self.source.randint(1, 3), 0)
            self.straight(self.source.randint(0, 4))
        self.lines.append(FOOT)
        return "".join(self.lines)

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def loop(self, depth: int, level: int) -> None:
        end, step = self.label(), self.source.choice((1, 1, 1, 2, 3, -1, -2, 256))
        trips, start = self.source.choice((3, 7, 20, 45, 160)) >> level, self.source.choice((0, 0, 1, 5, 0x7FFFFFF0))
        compare = self.source.choice(("<", "<", "!=", "<=") if step > 0 else (">", "!=", ">="))
        bound = f"{start + step * trips if start < 1 << 30 else 0x7FFFFFFF}"
        if self.source.random() < 0.05:
            compare, bound = self.source.choice(_COMPARES), str(self.source.randint(-9, 9))
        if self.rarely():
            step, bound = self.source.choice((0, 1, 1 << 30)), self.source.choice((bound, *_COUNTERS, "S3"))
        predicate = f", {self.predicate()}" if self.source.random() < 0.1 else ""
        self.lines.append(f"nop; loop {start}, {bound}, {step}, {compare}, {end}{predicate}; nop; nop\n")
        self.lines.append(self.bundle(level))
        self.straight(self.source.randint(1, 5), level + 1)
        if depth > 1:
            self.loop(depth - 1, level + 1)
        elif self.source.random() < 0.4:
            self.jump(level + 1)
        self.straight(self.source.randint(0, 5), level + 1)
        self.lines.append(f"nop; nop; nop; nop\n{end}:\n")

    def jump(self, level: int) -> None:
        behind = self.label()
        predicate = f", {self.predicate()}" if self.source.random() < 0.8 else ""
        self.lines.append(f"nop; jmpr {behind}{predicate}; nop; nop\n")
        self.straight(self.source.randint(1, 3), level)
        self.lines.append(f"{behind}:\n")

    def straight(self, count: int, level: int = 0) -> None:
        self.lines += [self.bundle(level) for _ in range(count)]

    def rarely(self) -> bool:
        """Decide for what keeps trips from being skipped."""
        return self.source.random() < self.wild

    def bundle(self, level: int) -> str:
        slots = [self.slot(kind, level) if self.source.random() < 0.45 else "nop" for kind in range(4)]
        return "; ".join(slots) + "\n"

    def slot(self, kind: int, level: int) -> str:
        """Return an instruction of one of the four slots, perhaps under a predicate."""
        text = (self.load, self.scalar, self.vector, self.store)[kind](level)
        return f"{text}, {self.predicate()}" if self.source.random() < 0.15 else text

    def predicate(self) -> str:
        """Return a predicate; SP3 is the one that wild compares write."""
        return self.source.choice(("", "!")) + self.source.choice(("SP1", "SP2", *(("SP3",) if self.rarely() else ())))

    def any_scalar(self, level: int) -> str:
        """Return an S register: a counter, a fixed one, or an iterator of a loop around it."""
        iterators = tuple(f"S{32 + depth}" for depth in range(level))
        return self.source.choice((*_COUNTERS, *_COUNTERS, *_PLACES, *iterators, *iterators))

    def place(self, level: int) -> str:
        first = self.any_scalar(level) if self.rarely() else self.source.choice(_PLACES)
        return f"{first}, {self.source.choice(('0x0', '0x100', '0x2000'))}" if self.generation == "goya" else first

    def scalar(self, level: int) -> str:
        pick, dest, one = self.source.choice, self.source.choice(_COUNTERS), self.any_scalar(level)
        two = pick((self.any_scalar(level), pick(("0x1", "0x40", "0xffffffff", "0x100"))))
        mask, index, other = pick(_MASKS), pick(_INDICES), pick(_INDICES)
        steps = [
            f"add.i32 {dest}, {dest}, {two}",
            f"add.i32 {dest}, {one}, {two}",
            f"sub.i32 {dest}, {one}, {two}",
            f"mul.i32 {dest}, {one}, {pick(('0x3', '0x10', 'S3'))}",
            f"mov.i32 {dest}, {two}",
            f"add.i32 {mask} {index}, {pick((one, '0x1'))}, {pick((index, other))}",
            f"set_indx {index}, {mask}, {two}",
            f"mov_irf_dim 0x1, {dest}, {index}",
            f"shl.i32 {dest}, {one}, 0x2",
            f"not.i32 {dest}, {one}",
            f"cmp_less.i32 SP3, {one}, {two}",
            f"cmp_less.i32 SP1, {pick(_PLACES)}, {pick(_PLACES)}",
        ]
        bent = [
            f"and.i32 {dest}, {one}, 0x7",
            f"max.i32 {dest}, {one}, {two}",
            f"ash.i32 {dest}, {one}, 0x1",
            f"add.i32 st {dest}, {one}, {two}",
            f"mul.i32 {mask} {index}, {one}, {other}",
            f"add.i16 {dest}, {one}, {two}",
            "xor.b SP3, SP3, SP1",
        ]
        odd = [
            f"cmp_less.i32 SP1, {one}, {two}",
            f"mov.i32 {dest}, S_LFSR",
            f"add.i32 {pick(_PLACES)}, {pick(_PLACES)}, 0x100",
            f"mov.i32 S3, {one}",
            "xor.b SP1, SP1, SP2",
            "halt",
        ]
        return pick(odd if self.rarely() else bent if self.source.random() < 0.2 else steps)

    def load(self, level: int) -> str:
        pick, index = self.source.choice, self.source.choice(_INDICES)
        steps = [
            f"ld_l_v {pick(_VECTORS)}, {self.place(level)}",
            f"ld_tnsr {pick(_VECTORS)}, 0x0, {index}",
            f"gen_addr {pick(_ADDRESSES)}, 0x0, {index}",
            f"ld_g {pick(_VECTORS)}, {pick(_ADDRESSES)}",
            f"ld_l {pick((*_COUNTERS, 'SP3'))}, {pick(('0x40', '0x44'))}",
            f"mov.i32 {pick(_COUNTERS)}, {pick(('0x5', self.any_scalar(level)))}",
            f"set_indx {index}, {pick(_MASKS)}, {self.any_scalar(level)}",
        ]
        odd = [f"ld_g {pick(_COUNTERS)}, AD0", f"ld_l mmio S4, 0x0{pick('48')}", f"ld_l S5, {self.any_scalar(level)}"]
        return pick(odd if self.rarely() else steps)

    def vector(self, level: int) -> str:
        pick = self.source.choice
        return pick(
            (
                f"add.f32 {pick(_VECTORS)}, {pick(_VECTORS)}, {pick(_VECTORS)}",
                f"mov.i32 {pick(_VECTORS)}, {self.any_scalar(level)}",
                f"cmp_grt.f32 VP1, {pick(_VECTORS)}, {pick(_VECTORS)}",
            )
        )

    def store(self, level: int) -> str:
        pick = self.source.choice
        steps = [
            f"st_l_v {self.place(level)}, {pick(_VECTORS)}",
            f"st_tnsr 0x1, {pick(_INDICES)}, {pick(_VECTORS)}",
            f"st_l 0x40, {pick(('S0', 'S1', 'SP2'))}",
            f"set_indx {pick(_INDICES)}, {pick(_MASKS)}, 0x4",
        ]
        odd = [f"st_l 0x44, {self.any_scalar(level)}", f"st_g AD0, {pick(_COUNTERS)}"]
        return pick(odd if self.rarely() else steps)


def loop_program(generation: str, seed: int) -> str:
    """Return a random program, the same for the same seed."""
    source = random.Random(f"{generation} {seed}")
    return Writer(generation, source, source.choice((0.0, 0.01, 0.03, 0.1))).program()


SEEDS = 400 if "CASTSIM_THOROUGH" in os.environ else 12
LIMIT = 2500
MANY = 10**9
NOP = "nop; nop; nop; nop\n"


class Counting(VliwCore):
    """A machine that counts the bundles that it walks through, and knows when the last one was."""

    walked = 0
    last = 0

    def _issue(self, index: int, now: int) -> tuple[int, int]:
        self.walked += 1
        self.last = now
        return super()._issue(index, now)


@dataclass(frozen=True)
class Walk:
    """What a walk leaves: `state` is everything that could tell it from another one, or the error."""

    state: tuple[object, ...]
    walked: int
    machine: Counting
    root: Block | None

    @property
    def stale(self) -> tuple[StaleRead, ...]:
        return self.machine.findings.all()

    def register(self, name: str) -> object:
        return self.machine.registers._cells[name].newest


def walk(text: str, generation: str | VliwTarget, *, skip: bool, limit: int = LIMIT) -> Walk:
    """Walk through a program without values. CastsimError if it is refused before it begins."""
    read = assembled(text, generation)
    declared = tuple(each for each in read.program.declarations if isinstance(each, TensorDeclaration))
    memory = GlobalMemory(declared, {}, read.target.tensors.limit)
    machine = Counting(read.program, read.target, memory, values=False, skip=skip)
    machine.local.vlm.written[:1024] = True
    try:
        root = machine.run(limit).root
    except (CastsimError, EngineError) as error:
        return Walk((type(error), str(error), *found(machine)), machine.walked, machine, None)
    memories = (machine.local.slm.bytes, machine.local.slm.written, machine.local.vlm.written)
    path = (machine.last, machine._control.changed_at, machine._control._visits)
    state = (root, *path, *found(machine), registers(machine), *(each.tobytes() for each in memories))
    return Walk(state, machine.walked, machine, root)


def found(machine: Counting) -> tuple[object, ...]:
    return machine.findings.all(), tuple(machine.remarks)


def registers(machine: Counting) -> dict[str, object]:
    """Return every register with the writes that somebody may not see yet; arrays are those of the start."""
    left: dict[str, object] = {}
    for name, cell in machine.registers._cells.items():
        cell.settle(machine.last, machine.horizon)
        writes = [(write.time, write.stage.key, write.writer, shown(write.value)) for write in cell.pending]
        left[name] = (cell.written, shown(cell.settled), writes)
    return left


def shown(held: object) -> object:
    return held.tobytes() if isinstance(held, np.ndarray) else held


def both(text: str, generation: str | VliwTarget = "gaudi2", limit: int = LIMIT) -> tuple[Walk, Walk]:
    """Walk with and without skipping, which must agree."""
    skipping, stepping = (walk(text, generation, skip=skip, limit=limit) for skip in (True, False))
    assert skipping.state == stepping.state
    return skipping, stepping


def load(text: str) -> str:
    return f"{text}; nop; nop; nop\n"


def spu(text: str) -> str:
    return f"nop; {text}; nop; nop\n"


def store(text: str) -> str:
    return f"nop; nop; nop; {text}\n"


def loop(trips: int | str, body: str, label: str = "End") -> str:
    """Return a loop whose delay bundle is empty."""
    return f"nop; loop 0, {trips}, 1, <, {label}; nop; nop\n{NOP}{body}{label}:\n"


@pytest.mark.parametrize("generation", GENERATIONS)
def test_random_programs_are_walked_alike(generation: str) -> None:
    skipped = compared = 0
    for seed in range(SEEDS):
        text = loop_program(generation, seed)
        try:
            skipping, stepping = both(text, generation)
        except CastsimError:  # refused before it begins, as a whole
            continue
        compared += 1
        skipped += skipping.walked < stepping.walked
    assert compared > SEEDS * 0.6
    assert skipped > compared * 0.2


COMPARE = spu("cmp_less.i32 SP1, {}, {}") + nops(5)
LOADED = load("ld_tnsr V0, 0x0, I0, SP1")
JUMP = spu("jmpr Out, SP1") + nops(3) + "Out:\n" + NOP
NOT_SKIPPED = {
    "predicate of a varying compare": COMPARE.format("S32", "S3") + LOADED,
    "jump on a varying compare": COMPARE.format("S4", "S3") + spu("add.i32 S4, S4, 0x1") + JUMP,
    "bound of an inner loop": spu("and.i32 S4, S32, 0x3") + nops(7) + loop("S4", nops(3), "Inner") + NOP,
    "sum of the iterator": spu("add.i32 S4, S4, S32"),
    "carried over by bits": spu("xor.i32 S4, S4, S32"),
    "predicate that alternates": spu("xor.b SP1, SP1, SP2") + nops(5) + LOADED,
    "counter in memory": load("ld_l S4, 0x40")
    + nops(6)
    + spu("add.i32 S4, S4, 0x1")
    + nops(6)
    + store("st_l 0x40, S4"),
    "random numbers": spu("mov.i32 S4, S_LFSR"),
    "configuration": store("st_l mmio 0x8010, S32"),
    "place that moves": spu("shl.i32 S4, S32, 0x8") + nops(6) + load("ld_l_v V0, S4"),
}


@pytest.mark.parametrize("body", NOT_SKIPPED.values(), ids=NOT_SKIPPED)
def test_bodies_that_values_decide_are_walked(body: str) -> None:
    skipping, stepping = both(HEAD + loop(60, body) + FOOT)
    assert skipping.walked == stepping.walked > 60


NEXT_ROW = "add.i32 b00010 I0, 0x1, I0"
SKIPPED = {
    "nothing": NOP,
    "counter": spu("add.i32 S4, S4, 0x3"),
    "chain of counters": spu("add.i32 S4, S5, 0x3") + load("mov.i32 S5, S4") + spu("sub.i32 S6, S3, S5"),
    "iterator scaled": spu("mul.i32 S4, S32, 0x40") + load("set_indx I2, b00010, S4") + load("ld_tnsr V0, 0x0, I2"),
    "coordinates": f"ld_tnsr V0, 0x0, I0; {NEXT_ROW}; nop; st_tnsr 0x1, I0, V1\n",
    "masked coordinates": spu("and.i32 S4, S32, 0x7") + load("set_indx I2, b11111, S4") + load("ld_tnsr V0, 0x0, I2"),
    "compare that nothing reads": COMPARE.format("S32", "S3"),
    "addresses of elements": f"gen_addr AD0, 0x0, I0; {NEXT_ROW}; nop; nop\n" + nops(6) + load("ld_g V0, AD0"),
    "steady place": "ld_l_v V0, S0; nop; nop; st_l_v S2, V1\n",
    "steady predicate": COMPARE.format("S0", "S1") + LOADED + store("st_l_v S2, V0, !SP1"),
    "steady jump": COMPARE.format("S0", "S1") + JUMP,
    "word that memory keeps": load("ld_l S4, 0x40") + nops(6) + store("st_l 0x40, S4"),
    "inner loop": loop(7, load("ld_tnsr V0, 0x0, I0") + nops(2), "Inner") + NOP,
    "stale read": spu("add.i32 S4, S4, 0x1") + spu("add.i32 S5, S4, 0x0"),
}


@pytest.mark.parametrize("body", SKIPPED.values(), ids=SKIPPED)
def test_bodies_that_values_do_not_decide_are_skipped(body: str) -> None:
    skipping, stepping = both(HEAD + loop(60, body) + FOOT, limit=10**4)
    assert skipping.walked < stepping.walked
    few = walk(HEAD + loop(MANY, body) + FOOT, "gaudi2", skip=True, limit=10**13)
    assert few.walked < 40 * (2 + body.count("\n"))
    assert few.root is not None
    assert max(item.trips for item in few.root.items if isinstance(item, Loop)) > MANY - 40


def test_three_loops_of_a_thousand_million_trips_in_each_other() -> None:
    count = spu("add.i32 S4, S4, 0x1") + nops(6)
    inner = NOP + loop(MANY, NOP + loop(MANY, count, "L3") + NOP, "L2") + NOP
    left = walk(HEAD + loop(MANY, inner, "L1") + FOOT, "gaudi2", skip=True, limit=10**40)
    assert left.walked < 1000
    assert left.register("S4") == MANY**3 % 2**32
    per_middle = 1 + 2 + 7 * MANY + 1
    per_outer = 1 + 2 + per_middle * MANY + 1
    assert left.machine.last == 2 + per_outer * MANY + 1


@pytest.mark.parametrize("limit", [50, 51, 52, 53, 54, 55, 999, 1000, 1001])
def test_the_limit_is_reached_in_the_same_bundle(limit: int) -> None:
    skipping, _ = both(HEAD + loop(MANY, nops(5) + spu("add.i32 S4, S4, 0x1")) + FOOT, limit=limit)
    assert skipping.state[0] is EngineError


def followers(compare: LoopComparison, value: int, bound: int, step: int, at_most: int) -> int:
    """Return how many trips follow one by counting them, stopping where the iterator wraps."""
    count = 0
    while count < at_most and -(2**31) <= value + step < 2**31 and holds(compare, value + step, bound):
        value += step
        count += 1
    return count


def test_trips_left_are_those_that_follow() -> None:
    source = random.Random(5)
    shape = LoopShape(0, 0, 1, 2, 0)
    some = 0
    for _ in range(20_000):
        compare = LoopComparison(source.choice(("<", "<=", ">", ">=", "==", "!=")))
        near = source.choice((0, 0, 2**31 - 20, -(2**31) + 20))
        value, bound = (max(min(near + source.randint(-30, 30), 2**31 - 1), -(2**31)) for _ in range(2))
        step = source.choice((0, 1, 1, -1, 2, -3, 7, -7, 2**30, -(2**31)))
        if not holds(compare, value, bound):
            continue
        turn = RunningLoop(shape, RegisterCell("S32", value % 2**32), bound, step % 2**32, compare)
        left = trips_left(turn)
        expected = followers(compare, value, bound, signed(step % 2**32), 100)
        if step == 0:
            assert left == 0
        elif expected < 100:
            assert left == expected
            some += left > 0
        else:
            assert left >= 100
    assert some > 2000


@pytest.mark.parametrize("name", expected_reports.names())
def test_sample_programs_are_walked_alike(name: str) -> None:
    path = expected_reports.PROGRAMS / f"{name}.tpc"
    skipping, stepping = (run(path, timing_only=True, skip=skip) for skip in (True, False))
    assert skipping.cycles == stepping.cycles
    assert skipping.stale_reads == stepping.stale_reads
    assert skipping.timing.pipes == stepping.timing.pipes
    both(path.read_text(), expected_reports.target_of(name), 10**6)


@pytest.mark.parametrize(
    ("head", "counts"),
    [("0, 5, 0, <", False), ("0, 5, 0, <", True), ("0, 1, 2, !=", False), ("0, 0x7fffffff, 0x10000000, <=", True)],
)
def test_loops_without_an_end(head: str, counts: bool) -> None:
    body = (spu("add.i32 S4, S4, 0x1") if counts else NOP) + nops(4)
    skipping, _ = both(f"{HEAD}nop; loop {head}, End; nop; nop\n{NOP}{body}End:\n{FOOT}", limit=1000)
    assert skipping.state[0] is EngineError


def test_an_iterator_that_wraps() -> None:
    """Up to 2**31 - 1 and on from -2**31: the loop ends where its condition fails, not before."""
    for compare, bound in ((">", 0), (">=", -5), ("!=", -2147483600)):
        text = f"{HEAD}nop; loop 2147483600, {bound}, 1, {compare}, End; nop; nop\n{NOP}{nops(2)}End:\n{FOOT}"
        skipping, stepping = both(text)
        assert skipping.walked < stepping.walked
        assert skipping.root is not None


def test_no_skip_walks_every_trip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "p.tpc"
    path.write_text("// castsim: target gaudi2\n" + HEAD + loop(50, nops(3)) + FOOT)
    skipping = run(path, timing_only=True)
    monkeypatch.delattr(Trips, "skip")
    with pytest.raises(AttributeError):
        run(path, timing_only=True)
    assert run(path, timing_only=True, skip=False).cycles == skipping.cycles
    inputs = {"x": "random:1", "a": "random:1"}
    assert run(path, inputs=inputs).cycles == skipping.cycles

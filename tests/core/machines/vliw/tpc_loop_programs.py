"""Random TPC programs of nested hardware loops, for comparing walks that skip trips with walks that do not."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

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
        """Return the text of a program."""
        self.lines = [HEAD]
        self.straight(self.source.randint(0, 3))
        for _ in range(self.source.randint(1, 2)):
            self.loop(self.source.randint(1, 3), 0)
            self.straight(self.source.randint(0, 4))
        self.lines.append(FOOT)
        return "".join(self.lines)

    def label(self) -> str:
        """Return a new label."""
        self.labels += 1
        return f"L{self.labels}"

    def loop(self, depth: int, level: int) -> None:
        """Write a loop with others inside it."""
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
        """Write a jump over a few bundles."""
        behind = self.label()
        predicate = f", {self.predicate()}" if self.source.random() < 0.8 else ""
        self.lines.append(f"nop; jmpr {behind}{predicate}; nop; nop\n")
        self.straight(self.source.randint(1, 3), level)
        self.lines.append(f"{behind}:\n")

    def straight(self, count: int, level: int = 0) -> None:
        """Write some bundles."""
        self.lines += [self.bundle(level) for _ in range(count)]

    def rarely(self) -> bool:
        """Decide for what keeps trips from being skipped."""
        return self.source.random() < self.wild

    def bundle(self, level: int) -> str:
        """Return one bundle."""
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
        """Return the operands of an address in vector memory."""
        first = self.any_scalar(level) if self.rarely() else self.source.choice(_PLACES)
        return f"{first}, {self.source.choice(('0x0', '0x100', '0x2000'))}" if self.generation == "goya" else first

    def scalar(self, level: int) -> str:
        """Return an instruction of the SPU."""
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
        """Return an instruction of the LOAD slot."""
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
        """Return an instruction of the VPU."""
        pick = self.source.choice
        return pick(
            (
                f"add.f32 {pick(_VECTORS)}, {pick(_VECTORS)}, {pick(_VECTORS)}",
                f"mov.i32 {pick(_VECTORS)}, {self.any_scalar(level)}",
                f"cmp_grt.f32 VP1, {pick(_VECTORS)}, {pick(_VECTORS)}",
            )
        )

    def store(self, level: int) -> str:
        """Return an instruction of the STORE slot."""
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

"""Random texts of one instruction a line, and what they mean when executed one instruction after the other.

The sequential meaning is found without the scheduler: every virtual register gets a register of its own, every
instruction a bundle of its own, and so many empty bundles follow that all results have landed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

import numpy as np
from kit.tpc_text import GENERATIONS
from kit.tpc_text import target as target_of

from castsim.machines.vliw.assembled import Ran, assemble, execute

ROWS = 24
_EMPTY = 16
_FIRST = {"v": 0, "s": 0, "i": 0, "vp": 1, "sp": 1, "d": 30, "a": 32, "z": 20}
_NAME = re.compile(r"%(vp|sp|[vsidaz])\.(\w+)(?:\.(\d))?")


class Writer:
    """Writes one random text. Names of virtual registers are used again and again, as people do."""

    def __init__(self, seed: int, generation: str) -> None:
        self.rng = random.Random(seed)
        self.generation = generation
        self.lines: list[str] = []
        self.vectors = ["x0"]
        self.predicates: list[str] = []
        self.masks: list[str] = []

    def text(self, steps: int) -> str:
        """A text of so many steps, one after the other."""
        rng = self.rng
        head = [
            f"// castsim: target {self.generation}",
            f"// castsim: tensor 0 x in f32 [64, {ROWS}]",
            f"// castsim: tensor 1 y out i32 [64, {ROWS}]",
            "// castsim: vlm 0x0 m in u32 [64, 8]",
            "// castsim: vlm 0x1000 n inout u32 [64, 8]",
            "// castsim: reg %s.one = 0x3f800000",
            f"// castsim: reg %s.k = {rng.randint(1, 9)}",
            f"// castsim: reg %s.mode = {rng.choice((0, 2))}",
            "// castsim: reg %i.in = [0, 0, 0, 0, 0]",
            "// castsim: reg %i.out = [0, 0, 0, 0, 0]",
            "// castsim: reg S3 = 0x40200000",
        ]
        self.lines = []
        self.load("x0")
        for _ in range(steps):
            self.one()
        self.store()
        return "\n".join([*head, *self.lines, "halt", ""])

    def add(self, line: str) -> None:
        self.lines.append(line)

    def fresh(self) -> str:
        name = self.rng.choice([*self.vectors, f"t{self.rng.randrange(9)}"])
        if name not in self.vectors:
            self.vectors.append(name)
        return name

    def place(self, *addresses: int) -> str:
        return f"{self.rng.choice(addresses):#x}{', %s.zero' * (self.generation == 'goya')}"

    def load(self, name: str) -> None:
        if self.rng.random() < 0.5:
            self.add(f"ld_tnsr %v.{name}, 0x0, %i.in")
            self.add("add.i32 b00010 %i.in, 0x1, %i.in")
        else:
            self.add(f"ld_l_v %v.{name}, {self.place(0, 0x100, 0x200, 0x1000, 0x1100)}")
        if name not in self.vectors:
            self.vectors.append(name)

    def store(self) -> None:
        value = self.rng.choice(self.vectors)
        if self.rng.random() < 0.6:
            self.add(f"st_tnsr 0x1, %i.out, %v.{value}")
            self.add("add.i32 b00010 %i.out, 0x1, %i.out")
        else:
            self.add(f"st_l_v {self.place(0x1000, 0x1100, 0x1200)}, %v.{value}")

    def one(self) -> None:
        rng, pick = self.rng, lambda: f"%v.{rng.choice(self.vectors)}"
        kind = rng.randrange(18)
        guard = ""
        if self.predicates and rng.random() < 0.25:
            guard = f", {rng.choice(('', '!'))}%sp.{rng.choice(self.predicates)}"
        elif self.masks and rng.random() < 0.2:
            guard = f", {rng.choice(('', '!'))}%vp.{rng.choice(self.masks)}"
        a, b = pick(), pick()
        if kind < 2:
            self.load(self.fresh())
        elif kind < 4:
            self.store()
        elif kind < 7:
            other = rng.choice((b, "%s.one", "S3"))
            keep = rng.choice(self.vectors) if guard else self.fresh()
            self.add(f"{rng.choice(('add', 'mul', 'sub', 'max'))}.f32 %v.{keep}, {a}, {other}{guard}")
        elif kind == 7:
            keep = rng.choice(self.vectors) if guard else self.fresh()
            self.add(f"{rng.choice(('add.i32', 'xor.i32', 'and.i32', 'or.i32'))} %v.{keep}, {a}, {b}{guard}")
        elif kind == 8:
            keep = rng.choice(self.vectors) if guard else self.fresh()
            self.add(f"convert.f32 target_type=int32 {rng.choice(('rhne', 'rz'))} %v.{keep}, {a}{guard}")
        else:
            self.other(kind, a, b)

    def other(self, kind: int, a: str, b: str) -> None:
        """Predicates, masks, scalars, state, copies."""
        rng = self.rng
        if kind == 9:
            name = f"p{rng.randrange(3)}"
            self.add(f"cmp_less.i32 %sp.{name}, %s.k, {rng.randint(0, 9):#x}")
            self.predicates = sorted({*self.predicates, name})
        elif kind == 10:
            name = f"m{rng.randrange(3)}"
            self.add(f"cmp_less.f32 %vp.{name}, {a}, {b}")
            self.masks = sorted({*self.masks, name})
        elif kind == 11:
            self.add(f"add.i32 %s.k, %s.k, {rng.randint(1, 5):#x}")
        elif kind == 12:
            keep = self.fresh()
            self.add(f"convert.f32 target_type=int16 rhne %v.{keep}, {a}" if self.generation == "goya"
                     else f"convert.f32 target_type=int16 lane_sel=0 rhne %v.{keep}, {a}")  # fmt: skip
        elif kind == 13:
            self.state(a)
        elif kind == 14:
            self.scalar()
        elif kind == 15 and self.generation != "goya":
            self.add(f"convert.bf16 all_lanes target_type=fp32 rhne %d.q, {a}")
            self.add(f"add.f32 %v.{self.fresh()}, %v.q.0, %v.q.1")
        else:
            keep = self.fresh()
            self.add(f"mov %v.{keep}, {a}" if rng.random() < 0.5 else f"mov.f32 %v.{keep}, %s.one")

    def state(self, value: str) -> None:
        """Random numbers and the rounding register."""
        old = self.generation == "goya"
        kinds = ["csr", "lfsr"] if old else ["csr", "lfsr", "sr", "sr"]
        kind = self.rng.choice(kinds)
        if kind == "lfsr":
            self.add(f"mov LFSR, {value}")
        elif kind == "sr":
            name = self.fresh()
            self.add(f"convert.f32 target_type=bf16 sr %v.{name}, {value}")
            self.add(f"st_tnsr 0x1, %i.out, %v.{name}")
        else:
            address = {"goya": "0x7fc", "gaudi2": "0xca8", "greco": "0xca8"}.get(self.generation, "0x8fc")
            self.add(f"st_l mmio {address}, %s.mode")
            self.add(f"convert.f32 target_type=int32 %v.{self.fresh()}, {value}")

    def scalar(self) -> None:
        """Scalars and their memory."""
        kinds = ["st_l 0x10, %s.k", "ld_l %s.k, 0x10", "ld_l %s.k, 0x20"]
        kinds += ["convert.i32 target_type=fp32 rhne %s.one, %s.k", "mul.f32 %s.one, %s.one, S3"]
        self.add(self.rng.choice(kinds))


def straight_text(seed: int, generation: str, steps: int) -> str:
    """A random text without loops and jumps; what it needs of zeros is declared."""
    text = Writer(seed, generation).text(steps)
    return text.replace("// castsim: reg S3", "// castsim: reg %s.zero = 0\n// castsim: reg S3", 1)


def sequential(text: str) -> str:
    """The same text with real registers and a long wait behind every instruction."""
    numbers: dict[tuple[str, str], int] = {}

    def real(found: re.Match[str]) -> str:
        file, name = found[1], found[2]
        root = {"d": "v", "a": "v", "z": "s"}.get(file, file)
        size = {"d": 2, "z": 2, "a": 4}.get(file, 1)
        if (root, name) not in numbers:
            start = _FIRST[file] if size > 1 else _FIRST[root]
            taken = [n for (f, _), n in numbers.items() if f == root]
            number = next(n for n in range(start, 40, max(size, 1)) if n not in taken and (root, n) != ("s", 3))
            numbers[root, name] = number
        return f"{file.upper()}{numbers[root, name] + int(found[3] or 0)}"

    lines = []
    for line in text.splitlines():
        shown = _NAME.sub(real, line)
        if line.startswith("//") or line.endswith(":") or not line.strip():
            lines.append(shown)
        elif line == "halt":
            lines.append("nop; halt; halt; nop")
        else:
            lines += [shown, *["nop; nop; nop; nop"] * _EMPTY]
    return "\n".join(lines) + "\n"


Inputs = Mapping[str, np.ndarray]  # type: ignore[type-arg]


def inputs(seed: int) -> Inputs:
    """Random inputs of a text."""
    rng = np.random.default_rng(seed)
    return {
        "x": (rng.standard_normal((ROWS, 64)) * 100).astype(np.float32),
        "m": rng.integers(0, 1 << 32, (8, 64), np.uint32),
        "n": rng.integers(0, 1 << 32, (8, 64), np.uint32),
    }


def ran(text: str, generation: str, seed: int, inputs: Callable[[int], Inputs] = inputs) -> Ran:
    """Run a text in bundles, in the checked mode."""
    assembled = assemble(text, "<random>", target_of(generation), {})
    given = {name: each for name, each in inputs(seed).items() if name in assembled.arguments}
    return execute(assembled, given, values=True, checked=True, max_bundles=10**6)


__all__ = ["GENERATIONS", "inputs", "ran", "sequential", "straight_text", "target_of"]

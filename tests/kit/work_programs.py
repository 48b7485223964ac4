"""Vector operations on a buffer full of noise: one program per operation, every byte compared.

A `Spot` is a tile at a fixed address; it reads and writes the buffer row by row, by its own arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

from castsim.engines import simulate
from castsim.execution.interpreter.interpreter import Executed, execute
from castsim.execution.tree import Access, accesses, instances
from castsim.isa.pto.pto_parser import parse
from castsim.machines.mechanisms import compute_of, lowerer_of, tile_target
from castsim.running.synchronisation.flags import insert
from castsim.running.synchronisation.race_detector import find_races
from castsim.running.synchronisation.race_findings import RaceKind
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target

NATIVE = {
    "f32": np.dtype("<f4"), "f16": np.dtype("<f2"), "bf16": np.dtype(ml_dtypes.bfloat16), "i8": np.dtype("<i1"),
    "i16": np.dtype("<i2"), "i32": np.dtype("<i4"), "i64": np.dtype("<i8"), "ui8": np.dtype("<u1"),
    "ui16": np.dtype("<u2"), "ui32": np.dtype("<u4"), "f8E4M3FN": np.dtype("<u1"), "!pto.f4E2M1x2": np.dtype("<u1"),
}  # fmt: skip


@dataclass(frozen=True)
class Spot:
    """A tile of a level-3 program; `valid` are its valid rows and columns (all by default)."""

    name: str
    element: str
    rows: int
    cols: int
    address: int
    valid: tuple[int, int] | None = None
    column: bool = False
    pad: int = 0

    @property
    def region(self) -> tuple[int, int]:
        return self.valid or (self.rows, self.cols)

    @property
    def size(self) -> int:
        return NATIVE[self.element].itemsize

    @property
    def end(self) -> int:
        return self.address + self.rows * self.cols * self.size

    @property
    def type(self) -> str:
        fields = [f"vec, {self.rows}x{self.cols}x{self.element}"]
        if self.valid:
            fields.append(f"valid={self.valid[0]}x{self.valid[1]}")
        if self.column:
            fields.append("blayout=col_major")
        if self.pad:
            fields.append(f"pad={self.pad}")
        return f"!pto.tile_buf<{', '.join(fields)}>"

    def place(self, row: int, col: int) -> int:
        number = col * self.rows + row if self.column else row * self.cols + col
        return self.address + number * self.size

    def get(self, buffer: np.ndarray, rows: int | None = None, cols: int | None = None) -> np.ndarray:
        """Elements of the valid region, or of other extents from the tile's first element on."""
        rows, cols = self.region[0] if rows is None else rows, self.region[1] if cols is None else cols
        found = np.zeros((rows, cols), NATIVE[self.element])
        for row in range(rows):
            for col in range(cols) if self.column else (0,):
                length = 1 if self.column else cols
                start = self.place(row, col)
                found[row, col : col + length] = np.frombuffer(
                    buffer[start : start + length * self.size].tobytes(), found.dtype
                )
        return found

    def put(self, buffer: np.ndarray, values: np.ndarray) -> None:
        for row, line in enumerate(np.asarray(values)):
            pieces = [(col, line[col : col + 1]) for col in range(len(line))] if self.column else [(0, line)]
            for col, piece in pieces:
                data = np.ascontiguousarray(piece).view(np.uint8)
                start = self.place(row, col)
                buffer[start : start + data.size] = data


@cache
def target(name: str, *options: tuple[str, int | str]) -> Target:
    return with_options(load_target(name), dict(options))


def program(
    operation: str, spots: Sequence[Spot], scalars: Mapping[str, tuple[str, str]] | None = None, prefix: str = ""
) -> str:
    """A level-3 program of one operation; `scalars` are name -> (literal, type)."""
    lines = [f"%{name} = arith.constant {text} : {kind}" for name, (text, kind) in (scalars or {}).items()]
    for spot in dict.fromkeys(spots):
        lines.append(f"%at_{spot.name} = arith.constant {spot.address} : i64")
        lines.append(f"%{spot.name} = pto.alloc_tile addr = %at_{spot.name} : {spot.type}")
    return f"func.func @k() attributes {{pto.entry}} {{\n{prefix}" + "\n".join([*lines, operation]) + "\nreturn\n}\n"


def statement(mnemonic: str, ins: Sequence[Spot | tuple[str, str]], out: Spot, attribute: str = "") -> str:
    """`pto.NAME ins(...) outs(...)`; a pair is a scalar's name and type."""
    names = ", ".join(f"%{i.name}" if isinstance(i, Spot) else f"%{i[0]}" for i in ins)
    types = ", ".join(i.type if isinstance(i, Spot) else i[1] for i in ins)
    return f"pto.{mnemonic} ins({names}{' ' + attribute if attribute else ''} : {types}) outs(%{out.name} : {out.type})"


def walked(text: str, chip: Target, args: Mapping[str, int | float] | None = None) -> Executed:
    parsed = parse(text, "k.pto")
    return execute(parsed, parsed.functions[0], lowerer_of(chip), args or {})


def synchronised(text: str, chip: Target) -> Executed:
    """A program with the flags that it lacks, walked."""
    parsed = parse(text, "k.pto")
    plan = insert(parsed.functions[0], lowerer_of(chip), tile_target(chip))
    return execute(parsed, plan.function, lowerer_of(chip), {})


def computed(text: str, chip: Target, buffer: np.ndarray) -> np.ndarray:
    """The buffer after a program; what it held before stays as it was.

    Bytes that the program says it does not touch are changed and must neither matter nor change again.
    """
    tree = walked(text, chip).tree
    after, elsewhere = buffer.copy(), buffer.copy()
    compute_of(chip)(tree, after, {})
    foreign = np.ones(buffer.size, bool)
    for lowered, deltas in instances(tree):
        for access in accesses(lowered, deltas):
            foreign[touched(access)] = False
    if "pto.tmov" in text:  # copies whole blocks: what lies behind the valid elements is copied, whatever it is
        foreign = foreign.reshape(-1, 32).all(axis=1).repeat(32)
    elsewhere[foreign] ^= 0x55
    compute_of(chip)(tree, elsewhere, {})
    elsewhere[foreign] ^= 0x55
    assert np.array_equal(after, elsewhere), "the result rests on bytes that the accesses do not name"
    return after


def touched(access: Access) -> np.ndarray:
    """The numbers of the bytes of an access."""
    places = np.zeros(1, int)
    for count, distance in access.runs:
        places = (places[:, None] + np.arange(count)[None, :] * distance).ravel()
    length = access.end - access.start - sum((count - 1) * distance for count, distance in access.runs)
    return (access.start + places[:, None] + np.arange(length)[None, :]).ravel()


def noise(chip: Target, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, chip.memories["ub"].capacity_bytes, np.uint8)


# ---- running one operation on tiles everywhere: walked, flagged, timed by both engines, searched for races, computed
def ran(text: str, name: str, before: np.ndarray, *options: tuple[str, int | str]) -> np.ndarray:
    """The buffer after a program, which both engines time alike and whose inserted flags leave no race."""
    chip = target(name, *options)
    tree = synchronised(text, chip).tree
    fast, event = (simulate(tree, chip, None, engine=engine, max_cycles=10**7) for engine in ("fast", "event"))
    assert fast.total == event.total > 0
    assert fast.pipes == event.pipes
    assert not [finding for finding in find_races(tree, chip) if finding.kind is not RaceKind.UNWRITTEN]
    return computed(text, chip, before)


def expect(
    text: str, name: str, before: np.ndarray, spot: Spot, values: np.ndarray, *options: tuple[str, int | str]
) -> None:
    """Nothing but these values of a tile changes."""
    wanted = before.copy()
    spot.put(wanted, values)
    wrong = np.flatnonzero(ran(text, name, before, *options) != wanted)
    assert not wrong.size, f"bytes {wrong[:10]}"

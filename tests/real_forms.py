"""One program for every form that occurs in public kernels: templates of our own, which share nothing with the printer.

A form is an operation with its attributes and the types of its operands; `vectors/pto_real_forms.csv` counts them. A
program loads its operands from memory, does the operation, and stores what came out.
"""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from functools import cache
from math import prod
from pathlib import Path

VECTORS = Path(__file__).parent / "vectors"
BYTES = {"f32": 4, "i32": 4, "ui32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "ui8": 1, "i64": 8, "ui64": 8}
_ABBREVIATED = re.compile(
    r"(\w+) (\w+) (\d+)x(\d+)(?: valid (\S+)x(\S+))?( colmajor)?(?: box:(\w+))?(?: pad(\d))?"
)  # vec f32 16x64 valid ?x? colmajor box:row_major pad1
_COMPACT = re.compile(r"(\w+) (\d+)x(\d+)x([!\w.]+)((?:, \w+=\w+)*)")  # vec 16x64xf32, valid=16x60, slayout=row_major
_PART = re.compile(r"part ((?:[\d?]+x)+)([!\w.]+)")  # part 16x?xf32


@dataclass(frozen=True)
class Form:
    operation: str
    target: str
    attributes: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    occurrences: int

    def __str__(self) -> str:
        attributes = f" {self.attributes}" if self.attributes else ""
        return f"{self.target} {self.operation}{attributes}: {' | '.join(self.inputs)} -> {' ; '.join(self.outputs)}"


@dataclass(frozen=True)
class TileForm:
    """A tile type, read from the abbreviation of the list."""

    location: str
    element: str
    rows: int
    cols: int
    valid: tuple[str, str]
    column_major: bool = False
    box: str = "none_box"
    pad: str = "0"
    fractal: str = "512"

    @property
    def text(self) -> str:
        return (
            f"!pto.tile_buf<{self.location}, {self.rows}x{self.cols}x{self.element}, valid={'x'.join(self.valid)}, "
            f"blayout={'col' if self.column_major else 'row'}_major, slayout={self.box}, fractal={self.fractal}, pad={self.pad}>"
        )

    @property
    def plain(self) -> bool:
        """Whether it lies in the vector unit's buffer, without boxes."""
        return self.location == "vec" and self.box == "none_box"

    @property
    def size(self) -> int:
        return self.rows * self.cols * BYTES.get(self.element, 1)


def tile_form(text: str) -> TileForm | None:
    """Read an abbreviated tile; None if it is none."""
    if match := _ABBREVIATED.fullmatch(text):
        location, element, rows, cols, down, across, column_major, box, pad = match.groups()
        fractal = "1024" if location == "acc" else "512"
        valid = (down or rows, across or cols)
        return TileForm(
            location, element, int(rows), int(cols), valid, bool(column_major), box or "none_box", pad or "0", fractal
        )
    if match := _COMPACT.fullmatch(text):
        location, rows, cols, element, rest = match.groups()
        keys = dict(each.split("=") for each in rest.split(", ")[1:])
        down, _, across = keys.get("valid", f"{rows}x{cols}").partition("x")
        return TileForm(
            location, element, int(rows), int(cols), (down, across), keys.get("blayout") == "col_major",
            keys.get("slayout", "none_box"), keys.get("pad", "0"), keys.get("fractal", "512"),
        )  # fmt: skip
    return None


def part_form(text: str) -> tuple[tuple[str, ...], str] | None:
    """Read `part 16x?xf32`: extents and element; None if it is none."""
    match = _PART.fullmatch(text)
    return None if match is None else (tuple(match.group(1).split("x")[:-1]), match.group(2))


@cache
def kernels() -> tuple[dict[str, str], ...]:
    """The functions of the index of public kernels."""
    with (VECTORS / "pto_real_index.csv").open() as file:
        return tuple(csv.DictReader(file))


@cache
def forms(*, of_vector_kernels: bool = True) -> tuple[Form, ...]:
    """Every form of the operations that kernels of the vector unit contain, or of those that only others do."""
    used = {name for row in kernels() if row["class"] == "vector" for name in row["ops"].split()}
    with (VECTORS / "pto_real_forms.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (row["op"] in used) is of_vector_kernels]
    return tuple(
        Form(
            row["op"], row["arch"], row["attributes"], tuple(filter(None, row["in_types"].split(" | "))),
            tuple(filter(None, row["out_type"].split(" ; "))), int(row["occurrences"]),
        )
        for row in rows
    )  # fmt: skip


@dataclass
class Written:
    """A program being written, with the arguments that it takes."""

    form: Form
    open_extents: str = "full"
    """How much of a tile is valid where the program says it: `full`, `ragged` or `empty`."""
    arguments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)
    args: dict[str, float] = field(default_factory=dict)
    loaded: dict[str, TileForm] = field(default_factory=dict)
    """Tensor arguments that are loaded, with the tile that receives each."""
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Shapes of tensor arguments, as a view has them."""
    extents: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Valid rows and columns of tiles, by name."""
    opaque: bool = False
    """Whether something in it is the matrix unit's: no values are computed."""
    address: int = 0

    def region(self, kind: TileForm) -> tuple[int, int]:
        """Return the valid region of a tile: what its type says, else what this program chooses."""
        chosen = {"full": (kind.rows, kind.cols), "empty": (0, kind.cols)}.get(self.open_extents)
        if chosen is None:  # what is left out of a row is whole blocks, which every store takes
            chosen = max(kind.rows - 1, 1), kind.cols - 32 if kind.cols > 32 else kind.cols
        down, across = (now if said == "?" else int(said) for said, now in zip(kind.valid, chosen, strict=True))
        return down, across

    def constant(self, value: int, kind: str = "index") -> str:
        name = f"%c{value}" if kind == "index" else f"%k{value}"
        self.constants[name] = f"{name} = arith.constant {value} : {kind}"
        return name

    def tile(self, name: str, kind: TileForm, extents: tuple[int, int]) -> str:
        """Allocate a tile at a fixed address; return its name."""
        self.extents[name] = extents
        operands = f"addr = {self.constant(self.address if kind.location == 'vec' else 0, 'i64')}"
        for key, stated, extent in zip(("valid_row", "valid_col"), kind.valid, extents, strict=True):
            if stated == "?":
                operands += f" {key} = {self.constant(extent)}"
        self.lines.append(f"{name} = pto.alloc_tile {operands} : {kind.text}")
        if kind.location == "vec":
            self.address += -(-kind.size // 32) * 32
        self.opaque |= not kind.plain
        return name

    def part(self, name: str, dims: tuple[str, ...], element: str, sizes: list[int], *, columns: bool = False) -> str:
        """Make a view of a new argument and a part of it; `columns` puts neighbours of a column side by side."""
        self.arguments.append(f"%{name}: !pto.ptr<{element}>")
        rank = len(sizes)
        self.shapes[name] = tuple(sizes)
        steps = [prod(sizes[position + 1 :]) for position in range(rank)]
        if columns:
            steps = [prod(sizes[:position]) for position in range(rank)]
        shape = ", ".join(self.constant(size) for size in sizes)
        strides = ", ".join(self.constant(step) for step in steps)
        offsets = ", ".join(self.constant(0) for _ in sizes)
        layout = " {layout = #pto.layout<dn>}" if columns else ""
        view, part = (
            f"!pto.tensor_view<{'?x' * rank}{element}>",
            f"!pto.partition_tensor_view<{'x'.join(dims)}x{element}>",
        )
        self.lines.append(
            f"%{name}_view = pto.make_tensor_view %{name}, shape = [{shape}], strides = [{strides}]{layout} : {view}"
        )
        self.lines.append(
            f"%{name}_part = pto.partition_view %{name}_view, offsets = [{offsets}], sizes = [{shape}] : {view} -> {part}"
        )
        return part

    def load(self, name: str, tile: str, kind: TileForm) -> None:
        rows, cols = self.extents[tile]
        part = self.part(name, (str(rows), str(cols)), kind.element, [rows, cols], columns=kind.column_major)
        self.lines.append(f"pto.tload ins(%{name}_part : {part}) outs({tile} : {kind.text})")
        self.loaded[name] = kind

    def store(self, name: str, tile: str, kind: TileForm) -> None:
        rows, cols = self.extents[tile]
        part = self.part(name, (str(rows), str(cols)), kind.element, [rows, cols], columns=kind.column_major)
        self.lines.append(f"pto.tstore ins({tile} : {kind.text}) outs(%{name}_part : {part})")

    def scalar(self, name: str, kind: str, value: float) -> str:
        self.arguments.append(f"%{name}: {kind}")
        self.args[name] = value
        return f"%{name}"

    @property
    def text(self) -> str:
        arch = {"a2a3": "a3", "a5": "a5"}[self.form.target]
        body = "\n".join(f"    {line}" for line in (*self.constants.values(), *self.lines, "return"))
        head = f"  func.func @form({', '.join(self.arguments)}) attributes {{pto.entry}} {{"
        return f'module attributes {{pto.target_arch = "{arch}"}} {{\n{head}\n{body}\n  }}\n}}\n'

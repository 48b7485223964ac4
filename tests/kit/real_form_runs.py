"""One program for every form that occurs in public kernels: templates of our own, which share nothing with the printer.

A form is an operation with its attributes and the types of its operands; `vectors/pto_real_forms.csv` counts them. A
program loads its operands from memory, does the operation, and stores what came out. It is run with time and values, of
which a few lines of NumPy say what they are.
"""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from kit.paths import VECTORS

from castsim import run
from castsim.isa.errors import CastsimError

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


Arrays = Mapping[str, np.ndarray]
NATIVE = {"f32": np.float32, "i32": np.int32, "f16": np.float16}
WHOLE = ("tconcat", "ttrans", "tfillpad", "tgather", "tload", "tstore", "subview", "tsetval", "tgetval", "tci")
"""Operations whose templates say the extents of all operands themselves: these run with full tiles only."""


@dataclass(frozen=True)
class Outcome:
    """What became of a form: `refusal` is the message, empty if it ran; `opaque` that it did so without values."""

    form: Form
    refusal: str = ""
    opaque: bool = False


def inputs_of(written: Written) -> dict[str, np.ndarray | str]:
    """Random inputs; numbers that name elements lie in their tile."""
    random = np.random.default_rng(7)
    found: dict[str, np.ndarray | str] = {}
    for name, kind in written.loaded.items():
        native = NATIVE.get(kind.element)
        if native is None or kind.plain is False:
            found[name] = "random:7"
            continue
        shape = written.shapes[name]
        limit = written.loaded["in0"].rows * written.loaded["in0"].cols if written.form.operation == "tgather" else 100
        low = (
            1
            if written.form.operation in ("tsqrt", "trsqrt", "tlog")
            else 0
            if written.form.operation == "tgather"
            else -100
        )
        found[name] = random.integers(low, limit, shape).astype(native)
    if "in0" not in found and any(each.startswith("%in0:") for each in written.arguments):
        found["in0"] = "random:7"
    return found


_EXPECTED: dict[str, Callable[[Arrays, Written], np.ndarray]] = {
    "tload": lambda x, _: x["in0"], "tstore": lambda x, _: x["in0"], "tmov": lambda x, _: x["in0"],
    "tadd": lambda x, _: x["in0"] + x["in1"], "tsub": lambda x, _: x["in0"] - x["in1"],
    "tmul": lambda x, _: x["in0"] * x["in1"], "tmax": lambda x, _: np.maximum(x["in0"], x["in1"]),
    "tadds": lambda x, w: x["in0"] + x["in0"].dtype.type(w.args["s1"]),
    "tsubs": lambda x, w: x["in0"] - x["in0"].dtype.type(w.args["s1"]),
    "tmuls": lambda x, w: x["in0"] * x["in0"].dtype.type(w.args["s1"]),
    "tmaxs": lambda x, w: np.maximum(x["in0"], x["in0"].dtype.type(w.args["s1"])),
    "tmins": lambda x, w: np.minimum(x["in0"], x["in0"].dtype.type(w.args["s1"])), "tneg": lambda x, _: -x["in0"],
    "tabs": lambda x, _: np.abs(x["in0"]), "tcolexpand": lambda x, w: np.broadcast_to(x["in0"][:1], w.extents["%r0"]),
    "trowexpand": lambda x, w: np.broadcast_to(x["in0"][:, :1], w.extents["%r0"]),
    "tcolexpandmul": lambda x, _: x["in0"] * x["in1"][:1], "trowexpandmul": lambda x, _: _by_row(x, np.multiply),
    "trowexpandsub": lambda x, _: _by_row(x, np.subtract),
    "trowmax": lambda x, _: x["in0"].max(axis=1, keepdims=True),
    "tcolmax": lambda x, _: x["in0"].max(axis=0, keepdims=True), "ttrans": lambda x, _: x["in0"].T,
    "tconcat": lambda x, _: np.hstack([x["in0"], x["in1"]]), "tgather": lambda x, _: x["in0"].ravel()[x["in1"]],
}  # fmt: skip


def _by_row(x: Arrays, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """A tile with a vector of one element, or one block of equal use, per row."""
    full, vector = x["in0"], x["in1"]
    return function(full, vector[:, np.arange(full.shape[1]) % vector.shape[1]])


def check_values(written: Written, inputs: Mapping[str, np.ndarray | str], outputs: Arrays) -> None:
    """Compare what came out with NumPy, where the operation is exact and its elements are native."""
    arrays = {name: array for name, array in inputs.items() if isinstance(array, np.ndarray)}
    rule = _EXPECTED.get(written.form.operation)
    if (
        rule is None
        or not all(array.size for array in arrays.values())
        or len(arrays) < len(written.loaded)
        or "out0" not in outputs
    ):
        return
    expected, found = rule(arrays, written), outputs["out0"]
    if found.dtype != expected.dtype or not expected.size:
        return
    np.testing.assert_array_equal(found.reshape(expected.shape), expected, err_msg=str(written.form))


def try_form(form: Form, path: Path, open_extents: str = "full") -> Outcome:
    """Write and run the program of a form; raises AssertionError where its values are wrong."""
    try:
        written = program(form, open_extents)
        path.write_text(written.text)
        if written.opaque:
            assert run(path, timing_only=True, args=written.args).cycles >= 0
            return Outcome(form, opaque=True)
        inputs = inputs_of(written)
        result = run(path, args=written.args, inputs=inputs)
    except (NotWrittenError, CastsimError) as error:
        return Outcome(form, str(error) or type(error).__name__)
    assert result.cycles > 0 or open_extents == "empty"
    check_values(written, inputs, result.outputs)
    return Outcome(form)


def opens(form: Form) -> bool:
    """Whether the program chooses the valid regions of all tiles of a form."""
    kinds = [kind for text in (*form.inputs, *form.outputs) if (kind := tile_form(text)) is not None]
    return form.operation not in WHOLE and bool(kinds) and all(kind.plain and "?" in kind.valid for kind in kinds)


@cache
def outcomes(*, of_vector_kernels: bool = True) -> tuple[Outcome, ...]:
    with TemporaryDirectory() as folder:
        every = forms(of_vector_kernels=of_vector_kernels)
        return tuple(try_form(form, Path(folder) / "form.pto") for form in every)


MISSING = {
    r": !pto\.tile_view<|-> !pto\.tile_view<": "views as an older assembler spelt them; no sheet describes them",
    r"memref<": "memory without a view; no sheet describes what makes it",
    r"tmov: !pto\.tile_buf<loc=": "keys of a tile type in an order that the front end refuses",
    r"vec 16x2x": "rows of 2 elements: the library takes rows of whole 32-byte blocks only",
    r"trowmax: vec f32 32x32 pad1 ->": "without a scratch tile, which older assemblers demand",
}
"""Forms that need not run, as the list of forms writes them, and why."""


def listed(text: str) -> str | None:
    """Return why a form need not run."""
    return next((reason for pattern, reason in MISSING.items() if re.search(pattern, text)), None)


# ----------------------------- the program of each form: what is loaded, how the operation is written, what is stored
_SIZES = re.compile(r"sizes \[(\d+), (\d+)\]")
SCALAR_OPERANDS = {"f32": 1.5, "f16": 1.5, "bf16": 1.5, "i32": 3, "ui32": 3, "i16": 3, "i8": 3, "ui8": 3, "index": 0}


class NotWrittenError(Exception):
    """A form that no template writes, with the reason."""


def program(form: Form, open_extents: str = "full") -> Written:
    """Return the program of a form; `open_extents` is how much of a tile is valid where no type says it.

    Raises:
        NotWrittenError: no source says how it is written.
    """
    old = next(
        (
            text
            for text in (*form.inputs, *form.outputs)
            if text.startswith(("!pto.tile_view", "memref", "!pto.tile_buf"))
        ),
        None,
    )
    if old is not None:
        raise NotWrittenError(f"spelling of an older assembler: {old.split('<')[0]}")
    written = Written(form, open_extents)
    _WRITERS.get(form.operation, _operation)(written)
    return written


def _tile(text: str) -> TileForm:
    kind = tile_form(text)
    if kind is None:
        raise NotWrittenError(f"no template reads the type '{text}'")
    return kind


def _in(written: Written, number: int, text: str, extents: tuple[int, int] | None = None) -> tuple[str, str]:
    """Return name and type of an input of the operation, which is loaded if it is a plain tile."""
    kind = tile_form(text)
    if kind is None and text not in SCALAR_OPERANDS:
        raise NotWrittenError(f"no template reads the type '{text}'")
    if kind is None:
        return written.scalar(f"s{number}", text, SCALAR_OPERANDS[text]), text
    name = written.tile(f"%t{number}", kind, extents or written.region(kind))
    if kind.plain:
        written.load(f"in{number}", name, kind)
    return name, kind.text


def _operation(written: Written) -> None:
    """An operation with its inputs in `ins` and one or more outputs in `outs`."""
    form = written.form
    if not form.inputs or not form.outputs:
        raise NotWrittenError("the list of forms does not say what it writes")
    fits = _fitting(written)
    operands = [_in(written, number, text, fits(text)) for number, text in enumerate(form.inputs)]
    results = []
    for number, text in enumerate(form.outputs):
        kind = _tile(text)
        results.append((written.tile(f"%r{number}", kind, fits(text) or written.region(kind)), kind))
        if form.operation in ("taxpy",):  # what is written is read first
            written.load(f"inout{number}", *results[-1])
    names, types = (", ".join(each) for each in zip(*operands, strict=True))
    attributes = f" {{{_unlisted(form)}}}" if _unlisted(form) else f" {form.attributes}" if form.attributes else ""
    outputs = ", ".join(name for name, _ in results)
    kinds = ", ".join(kind.text for _, kind in results)
    written.lines.append(f"pto.{form.operation} ins({names}{attributes} : {types}) outs({outputs} : {kinds})")
    for number, (name, kind) in enumerate(results):
        if kind.plain:
            written.store(f"out{number}", name, kind)


def _unlisted(form: Form) -> str:
    """Attributes that the list of forms leaves out, as the shapes tell them: of what quantises groups or moves theirs."""
    if form.operation == "tmov" and len(form.inputs) > 1:
        source, boxes = (_tile(text) for text in (form.inputs[0], form.outputs[0]))
        down = boxes.box == "row_major" and boxes.rows < source.rows
        return "grpAxis = #pto<mx_group_axis axis0>" if down else ""
    if form.operation != "tquant.mx":
        return ""
    source, exponents = (_tile(text) for text in (form.inputs[0], form.outputs[1]))
    down = exponents.cols == source.cols and exponents.rows * 32 == source.rows
    return "quant_type = #pto<quant_type MXFP8>" + (", grpAxis = #pto<mx_group_axis axis0>" if down else "")


def _fitting(written: Written) -> Callable[[str], tuple[int, int] | None]:
    """Return what says the valid region of an operand where the text leaves it open."""
    form = written.form
    first = tile_form(form.inputs[0])
    result = tile_form(form.outputs[0])
    if form.operation == "tfillpad" and first is not None and first.plain:
        # What is padded is smaller than what comes out.
        part = (max(first.rows // 2, 1), first.cols - 3) if first.valid == ("?", "?") else None
        return lambda text: part if text == form.inputs[0] else None
    if first is None or result is None or form.operation not in ("tcvt", "tmov"):
        return lambda text: None
    # Equal valid regions, where the tiles are not equally large.
    sides = written.region(first), written.region(result)
    common = min(sides[0][0], sides[1][0]), min(sides[0][1], sides[1][1])
    stated = next((written.region(kind) for kind in (first, result) if "?" not in kind.valid), common)
    return lambda text: stated if "?" in "".join(_tile(text).valid) else None


def _sizes(dims: tuple[str, ...], region: tuple[int, int]) -> list[int]:
    """Return the sizes of a part; an open one is what the valid region of the tile leaves for it."""
    sizes = [1 if extent == "?" else int(extent) for extent in dims]
    if dims[-1] == "?":
        sizes[-1] = region[1]
    rows = [position for position, extent in enumerate(dims[:-1]) if extent == "?"]
    if rows:
        sizes[rows[-1]] = region[0] // prod(sizes[:-1])
    return sizes


def _transfer(written: Written, part_text: str, tile_text: str, *, load: bool) -> None:
    found = part_form(part_text)
    if found is None:
        raise NotWrittenError(f"no template reads the type '{part_text}'")
    (dims, element), kind = found, _tile(tile_text)
    sizes = _sizes(dims, written.region(kind))
    region = prod(sizes[:-1]), sizes[-1]
    extents = tuple(size if stated == "?" else int(stated) for size, stated in zip(region, kind.valid, strict=True))
    name = written.tile("%t", kind, (extents[0], extents[1]))
    columns = kind.plain and kind.column_major and len(sizes) == 2
    part = written.part("in0" if load else "out0", dims, element, sizes, columns=columns)
    if load:
        written.loaded["in0"] = kind
        written.lines.append(f"pto.tload ins(%in0_part : {part}) outs({name} : {kind.text})")
        if kind.plain:
            written.store("out0", name, kind)
        return
    if kind.plain:
        written.load("in0", name, kind)
    written.lines.append(f"pto.tstore ins({name} : {kind.text}) outs(%out0_part : {part})")


def _load(written: Written) -> None:
    _transfer(written, written.form.inputs[0], written.form.outputs[0], load=True)


def _store(written: Written) -> None:
    _transfer(written, written.form.outputs[0], written.form.inputs[0], load=False)


def _load_scalar(written: Written) -> None:
    pointer = written.form.inputs[0]
    element = pointer[len("!pto.ptr<") : -1]
    written.arguments += [f"%in0: {pointer}", f"%out0: {pointer}"]
    written.lines.append(f"%n = pto.load_scalar %in0[{written.constant(3)}] : {pointer} -> {element}")
    written.lines.append(f"pto.store_scalar %n, %out0[{written.constant(1)}] : {pointer}, {element}")


def _store_scalar(written: Written) -> None:
    pointer = written.form.inputs[0]
    element = pointer[len("!pto.ptr<") : -1]
    written.arguments.append(f"%out0: {pointer}")
    value = written.scalar("s", element, 3)
    written.lines.append(f"pto.store_scalar {value}, %out0[{written.constant(2)}] : {pointer}, {element}")


def _get_value(written: Written) -> None:
    kind, element = _tile(written.form.inputs[0]), written.form.outputs[0]
    name, _ = _in(written, 0, written.form.inputs[0])
    written.arguments.append(f"%out0: !pto.ptr<{element}>")
    index = written.constant(min(kind.rows * kind.cols - 1, 5))
    written.lines.append(f"%n = pto.tgetval ins({name}, {index} : {kind.text}, index) outs : {element}")
    written.lines.append(f"pto.store_scalar %n, %out0[{written.constant(0)}] : !pto.ptr<{element}>, {element}")


def _set_value(written: Written) -> None:
    kind = _tile(written.form.outputs[0])
    name, _ = _in(written, 0, written.form.outputs[0])
    element = written.form.inputs[1]
    value, index = written.scalar("s", element, 3), written.constant(5)
    written.lines.append(f"pto.tsetval ins({index}, {value} : index, {element}) outs({name} : {kind.text})")
    written.store("out0", name, kind)


def _ramp(written: Written) -> None:
    kind = _tile(written.form.outputs[0])
    name = written.tile("%r0", kind, written.region(kind))
    start = written.scalar("s", written.form.inputs[0], 7)
    written.lines.append(f"pto.tci ins({start} : {written.form.inputs[0]}) outs({name} : {kind.text})")
    written.store("out0", name, kind)


def _subview(written: Written) -> None:
    form = written.form
    kind, result = _tile(form.inputs[0]), _tile(form.outputs[0])
    name, _ = _in(written, 0, form.inputs[0])
    match = _SIZES.search(form.attributes)
    assert match, f"no sizes: {form.attributes}"
    sizes = int(match.group(1)), int(match.group(2))
    ways = form.attributes.split(", sizes")[0].split()[1:]
    begin = (kind.rows - sizes[0], kind.cols - sizes[1])  # the last part of the tile
    offsets = [
        _number(written, f"o{axis}", start, way) for axis, (start, way) in enumerate(zip(begin, ways, strict=True))
    ]
    valid, extents = "", written.region(result)
    if "valid" in form.attributes:
        said = form.attributes.split("valid ")[1].split()
        valid = (
            f" valid [{', '.join(_number(written, f'v{axis}', extents[axis], way) for axis, way in enumerate(said))}]"
        )
    written.lines.append(
        f"%part = pto.subview {name}[{', '.join(offsets)}] sizes [{sizes[0]}, {sizes[1]}]{valid} : {kind.text} -> {result.text}"
    )
    written.extents["%part"] = extents
    if result.plain:
        written.store("out0", "%part", result)


def _number(written: Written, name: str, value: int, way: str) -> str:
    """An index, constant or known when the program runs."""
    return written.constant(value) if way == "constant" else written.scalar(name, "index", value)


def _move_with_scratch(written: Written) -> None:
    """`tmov` whose list of types begins with the name of the scratch tile."""
    form = written.form
    texts = tuple(
        re.sub(r"^%\w+ : !pto\.tile_buf<(.*)>$", lambda match: match.group(1).replace(", ", " ", 1), text)
        for text in form.inputs
    )
    written.form = replace(form, inputs=texts)
    _operation(written)


_WRITERS: dict[str, Callable[[Written], None]] = {
    "tload": _load, "tstore": _store, "load_scalar": _load_scalar, "store_scalar": _store_scalar,
    "tgetval": _get_value, "tsetval": _set_value, "tci": _ramp, "subview": _subview, "tmov": _move_with_scratch,
}  # fmt: skip

"""A kernel of the size of a prefill: 64 trips over tensors of 1,024 x 7,168, twenty tile operations a part of a row.

Residual, scale by a gate of the row, RMS norm in two passes, SiLU, maximum for a scale of the row, quantised to int8.
"""

from __future__ import annotations

ROWS, COLUMNS, BLOCK = 1024, 7168, 16
_VIEWS = {
    "x": ("bf16", ROWS, COLUMNS), "residual": ("f32", ROWS, COLUMNS), "gamma": ("f32", 1, COLUMNS),
    "mixed": ("f32", ROWS, COLUMNS),
    "y": ("bf16", ROWS, COLUMNS), "q": ("i8", ROWS, COLUMNS), "scales": ("f32", 1, ROWS),
}  # fmt: skip
_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "i8": 1}
ARGUMENTS = {"eps": 1e-6, "gain": 1.5}
INPUTS = {"x": "random:0", "residual": "random:1", "gamma": "random:2"}
_FIRST = """
tload part_x -> xb
tload part_residual -> r
tcvt xb -> a
tmuls a gain -> a
tadd a r -> a
tstore a -> part_mixed
tmul a a -> b
trowsum b t -> one
tadd total_row one_row -> total_row
"""
_BETWEEN = """
tmuls total_row mean -> total_row
tadds total_row eps -> total_row
tsqrt total_row -> total_row
trecip total_row -> inverse_row
"""
_SECOND = """
tload part_mixed -> a
tload part_gamma -> g
trowexpandmul a inverse t -> b
tcolexpandmul b g -> b
tneg b -> c
texp c -> c
tadds c unit -> c
tdiv b c -> c
tcvt c -> xb
tstore xb -> part_y
tabs c -> r
trowmax r t -> one
tmax peak_row one_row -> peak_row
tmuls c inverse_top -> r
tmins r top -> r
tmaxs r bottom -> r
tcvt r -> h
tcvt h -> q8
tadds r unit -> r
tstore q8 -> part_q
"""


class _Text:
    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines: list[str] = []
        self.kinds: dict[str, str] = {}
        self.address = 0

    def tile(self, name: str, shape: str, element: str, layout: str = "", *, over: str = "") -> None:
        """Allocate a tile behind the others, or over one that is as large."""
        rows, columns = map(int, shape.split("x"))
        self.kinds[name] = f"!pto.tile_buf<vec, {shape}x{element}{layout}>"
        if not over:
            self.lines.append(f"%addr_{name} = arith.constant {self.address} : i64")
        self.lines.append(f"%{name} = pto.alloc_tile addr = %addr_{over or name} : {self.kinds[name]}")
        self.address += 0 if over else -(-rows * columns * _BYTES[element] // 32) * 32

    def reshape(self, name: str) -> None:
        self.kinds[f"{name}_row"] = f"!pto.tile_buf<vec, 1x{BLOCK}xf32>"
        kinds = f"{self.kinds[name]} -> {self.kinds[f'{name}_row']}"
        self.lines.append(f"%{name}_row = pto.treshape %{name} : {kinds}")

    def part(self, name: str, row: str, column: str, rows: int, columns: int) -> None:
        element = _VIEWS[name][0]
        self.kinds[f"part_{name}"] = f"!pto.partition_tensor_view<{rows}x{columns}x{element}>"
        self.lines.append(
            f"%part_{name} = pto.partition_view %view_{name}, offsets = [%{row}, %{column}], sizes = [%c{rows},"
            f" %c{columns}] : !pto.tensor_view<?x?x{element}> -> {self.kinds[f'part_{name}']}"
        )

    def operations(self, words: str) -> None:
        for line in words.strip().splitlines():
            before, dst = line.split(" -> ")
            name, *sources = before.split()
            kinds = ", ".join(self.kinds.get(each, "f32") for each in sources)
            operands = ", ".join(f"%{each}" for each in sources)
            self.lines.append(f"pto.{name} ins({operands} : {kinds}) outs(%{dst} : {self.kinds[dst]})")


def kernel(target: str, columns: int = 512, rows: int = ROWS, *, table: bool = False) -> str:
    """Return the text for a target, with parts of `columns` columns; fewer `rows` make a smaller one.

    With a table, the rows of each trip are those that an element of it names, so that no trip is like the others.
    """
    text = _Text(columns)
    text.lines += [
        f"%c{n} = arith.constant {n} : index" for n in sorted({0, 1, BLOCK, rows // BLOCK, columns, rows, COLUMNS})
    ]
    numbers = {"nothing": 0.0, "unit": 1.0, "top": 127.0, "bottom": -127.0, "mean": 1 / 8192, "inverse_top": 4.0}
    text.lines += [f"%{name} = arith.constant {value!r} : f32" for name, value in numbers.items()]
    for name, (element, height, width) in _VIEWS.items():
        shape = [f"%c{rows if each == ROWS else each}" for each in (height, width)]
        kind = f"!pto.tensor_view<?x?x{element}>"
        strides = f"strides = [{shape[1]}, %c1]"
        text.lines.append(
            f"%view_{name} = pto.make_tensor_view %{name}, shape = [{', '.join(shape)}], {strides} : {kind}"
        )
    for name in ("a", "b", "c", "r"):
        text.tile(name, f"{BLOCK}x{columns}", "f32")
    text.tile("t", f"{BLOCK}x{columns}", "f32")
    text.tile("g", f"1x{columns}", "f32")
    for name, element in (("xb", "bf16"), ("q8", "i8")):
        text.tile(name, f"{BLOCK}x{columns}", element)
    text.tile("h", f"{BLOCK}x{columns}", "f16", over="xb")
    for name in ("total", "inverse", "peak", "one"):
        text.tile(name, f"{BLOCK}x1", "f32", ", blayout=col_major")
        text.reshape(name)
    _body(text, rows, table=table)
    head = ", ".join(f"%{name}: !pto.ptr<{_VIEWS[name][0]}>" for name in _VIEWS)
    head += ", %order: !pto.ptr<i32>" if table else ""
    return "\n".join(
        [
            f'module attributes {{pto.target_arch = "{"a3" if target == "a2a3" else target}"}} {{',
            f"func.func @prefill({head}, %eps: f32, %gain: f32) attributes {{pto.entry}} {{",
            *(line.replace("%peak_row", "%tops_row") for line in text.lines),
            "return", "}", "}", "",
        ]
    )  # fmt: skip


def _body(text: _Text, rows: int, *, table: bool) -> None:
    columns = text.columns
    if table:
        text.lines += [
            f"scf.for %k = %c0 to %c{rows // BLOCK} step %c1 {{",
            "%named = pto.load_scalar %order[%k] : !pto.ptr<i32> -> i32",
            "%block = arith.index_cast %named : i32 to index",
            f"%i = arith.muli %block, %c{BLOCK} : index",
        ]
    else:
        text.lines.append(f"scf.for %i = %c0 to %c{rows} step %c{BLOCK} {{")
    for name in ("total_row", "peak_row"):
        text.lines.append(f"pto.texpands ins(%nothing : f32) outs(%{name} : {text.kinds[name]})")
    for words, names in ((_FIRST, ("x", "residual", "mixed")), (_SECOND, ("mixed", "gamma", "y", "q"))):
        text.lines.append(f"scf.for %j = %c0 to %c{COLUMNS} step %c{columns} {{")
        for name in names:
            text.part(name, "i" if name != "gamma" else "c0", "j", BLOCK if name != "gamma" else 1, columns)
        text.operations(words)
        text.lines.append("}")
        if words is _FIRST:
            text.operations(_BETWEEN)
    text.part("scales", "c0", "i", 1, BLOCK)
    text.operations("tstore peak_row -> part_scales")
    text.lines.append("}")

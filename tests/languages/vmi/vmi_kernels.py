"""Kernels of logical registers, each with a model in NumPy and ml_dtypes: quantise, dequantise, scale by blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from castsim.isa.pto.program import Program
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.reading import Language, Source
from castsim.languages.vmi.lowering import lower_function
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import load_tiles

Bytes = NDArray[np.uint8]
SPELLED = {
    "f32": "f32", "f16": "f16", "bf16": "bf16", "e4m3fn": "f8E4M3FN", "e5m2": "f8E5M2", "hif8": "!pto.hif8",
    "e1m2": "!pto.f4E1M2x2", "e2m1": "!pto.f4E2M1x2", "bf16_pair": "!pto.bf16x2",
    **{f"i{n}": f"si{n}" for n in (8, 16, 32, 64)}, **{f"u{n}": f"ui{n}" for n in (8, 16, 32, 64)},
}  # fmt: skip
OUTPUT = 131072
"""Byte of the buffer where the output begins; the input begins at 0."""
_GM, _UB = "!pto.ptr<ui8, gm>", "!pto.ptr<ui8, ub>"


def bits(element: str) -> int:
    return {"f32": 32, "bf16_pair": 32, "f16": 16, "bf16": 16}.get(
        element, int(element[1:]) if element[0] in "iu" else 8
    )


def reg(lanes: int, element: str) -> str:
    return f"!pto.vmi.vreg<{lanes}x{SPELLED[element]}>"


def mask(lanes: int) -> str:
    return f"!pto.vmi.mask<{lanes}xpred>"


def ptr(element: str) -> str:
    return f"!pto.ptr<{SPELLED[element]}, ub>"


class Value(str):
    """The name of a value in a program, with its type."""

    kind: str

    @classmethod
    def of(cls, name: str, kind: str) -> Value:
        value = cls(name)
        value.kind = kind
        return value

    @property
    def lanes(self) -> int:
        return int(self.kind.partition("<")[2].partition("x")[0])

    @property
    def element(self) -> str:
        return NAMES[self.kind.partition("x")[2][:-1]]


NAMES = {spelling: name for name, spelling in SPELLED.items()}


class Body:
    """Text of a vecscope, with pointers and constants before it."""

    def __init__(self, arguments: str = "") -> None:
        self.arguments, self.before, self.inside = arguments, list[str](), list[str]()
        self._number = 0

    def fresh(self) -> str:
        self._number += 1
        return f"%t{self._number}"

    def constant(self, value: float | str, kind: str = "index") -> Value:
        name = self.fresh()
        self.before.append(f"{name} = arith.constant {value} : {kind}")
        return Value.of(name, kind)

    def pointer(self, byte: int, element: str) -> Value:
        name = self.fresh()
        self.before.append(f"{name} = pto.castptr {self.constant(byte, 'i64')} : i64 -> {ptr(element)}")
        return Value.of(name, ptr(element))

    def at(self, byte: int, element: str, offset: int | str = 0) -> Value:
        """Return a pointer with an offset in brackets."""
        pointer = self.pointer(byte, element)
        return Value.of(f"{pointer}[{self.constant(offset) if isinstance(offset, int) else offset}]", pointer.kind)

    def line(self, text: str) -> None:
        self.inside.append(text)

    def make(self, text: str) -> Value:
        """Add a statement whose text ends with the type of its result; return the result."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return Value.of(name, text.rpartition("-> ")[2])

    def op(self, name: str, *operands: Value | str, to: str = "", words: str = "") -> Value:
        """Add an operation on the operands that are not empty; its result has the type of the first, or `to`."""
        values = [value for value in operands if isinstance(value, Value)]
        kinds = ", ".join(value.kind for value in values)
        words = f" {{{words}}}" if words else ""
        return self.make(f"pto.vmi.{name} {', '.join(values)}{words} : {kinds} -> {to or values[0].kind}")

    def first(self, count: int, lanes: int) -> Value:
        """Return the mask of the first lanes."""
        return self.op("create_mask", self.constant(count), to=mask(lanes))

    def all_lanes(self, number: float | str, lanes: int, element: str) -> Value:
        return self.op("vbrc", self.constant(number, element.replace("u", "i")), to=reg(lanes, element))

    def cast(self, value: Value, element: str, words: str = "", m: Value | str = "") -> Value:
        return self.op("vcvt", value, m, to=reg(value.lanes, element), words=words)

    def seen_as(self, value: Value, lanes: int, element: str) -> Value:
        return self.op("vinterpret_cast", value, to=reg(lanes, element))

    def load(self, lanes: int, element: str, byte: int = 0, offset: int = 0, words: str = "") -> Value:
        return self.op("vload", self.at(byte, element, offset), to=reg(lanes, element), words=words)

    def store(self, value: Value, byte: int = OUTPUT, offset: int = 0, m: Value | str = "") -> None:
        self.put(value, self.at(byte, value.element, offset), m)

    def put(self, *operands: Value | str, words: str = "") -> None:
        """Add a store of the first operand."""
        values = [value for value in operands if isinstance(value, Value)]
        kinds = ", ".join(value.kind for value in values if value.kind != "index")
        self.line(f"pto.vmi.vstore {', '.join(values)}{f' {{{words}}}' if words else ''} : {kinds}")

    def text(self, given: int, taken: int) -> str:
        """The program that loads so many bytes of %x and of %y, and stores those of %y."""
        more = f", {self.arguments}" if self.arguments else ""
        zero, one = "arith.constant 0 : i64", "arith.constant 1 : i64"
        head = [
            f"%zero = {zero}", f"%one = {one}", f"%given = arith.constant {given} : i64",
            f"%taken = arith.constant {taken} : i64", f"%far = arith.constant {OUTPUT} : i64",
            f"%ux = pto.castptr %zero : i64 -> {_UB}", f"%uy = pto.castptr %far : i64 -> {_UB}",
            _in("x", "given"), _in("y", "taken"),
            'pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]', 'pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]',
        ]  # fmt: skip
        tail = [
            'pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]', 'pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]',
            f"pto.mte_ub_gm %uy, %y, %taken nburst(%one, %taken, %taken) : {_UB}, {_GM}, i64, i64, i64, i64",
            "pto.barrier #pto.pipe<PIPE_ALL>", "return",
        ]  # fmt: skip
        lines = [*head, *self.before, "pto.vecscope {", *self.inside, "}", *tail]
        inner = "\n".join(lines)
        return (
            'module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {\n'
            f"func.func @f(%x: {_GM}, %y: {_GM}{more}) attributes {{pto.kernel}} {{\n{inner}\n}}\n}}\n"
        )


def _in(name: str, size: str) -> str:
    kinds = f"{_GM}, {_UB}, i64, i64, i64, i64, i64"
    return f"pto.mte_gm_ub %{name}, %u{name}, %zero, %{size} nburst(%one, %{size}, %{size}) : {kinds}"


def as_bytes(codes: NDArray[np.generic]) -> Bytes:
    return np.frombuffer(codes.tobytes(), np.uint8)


def blank(size: int) -> Bytes:
    """An output that nothing has been stored to."""
    return np.full(size, 0xA5, np.uint8)


def run_text(
    text: str, x: Bytes, y: Bytes, args: Mapping[str, int | float] | None = None, *, warns: bool = False
) -> Bytes:  # fmt: skip
    """What a program leaves in %y; nothing of it may be undefined."""
    loaded = load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5", args=args or {}))
    issued = loaded.issue({"x": x, "y": y}, RunOptions())
    said = [each for each in issued.loaded.executed.warnings if each.kind == "undefined"]
    assert warns or not said, said
    return np.asarray(issued.outputs["y"])


def lowered(text: str) -> Program:
    """The program with its operations on logical registers lowered; it prints and reads as itself."""
    program = parse(text)
    assert parse(print_program(program)) == program
    found = replace(program, functions=tuple(lower_function(each) for each in program.functions))
    assert parse(print_program(found)) == found
    return found


def run_body(body: Body, x: Bytes, size: int, args: Mapping[str, int | float] | None = None) -> Bytes:
    """What a body leaves in `size` bytes of output, 0xA5 before; its text and its lowered text read as themselves."""
    given = np.zeros(-(-x.size // 32) * 32, np.uint8)
    given[: x.size] = x
    text = body.text(given.size, size)
    lowered(text)
    return run_text(text, given, blank(size), args)


Array = NDArray[np.generic]
KINDS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "i16": np.int16,
}  # fmt: skip
RNG = np.random.default_rng(2026)
SECOND, THIRD = 16384, 32768
"""Bytes of further inputs, and, beyond the first output, of further outputs."""


@dataclass
class Kernel(Body):
    """A body, its input bytes by place, and what it leaves by place."""

    given: dict[int, Array] = field(default_factory=dict)
    wanted: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Body.__init__(self)

    def groups(self, name: str, value: Value, lanes: int, groups: int, m: Value | str = "") -> Value:
        count = lanes if name == "vbrc" else groups
        return self.op(name, value, m, to=reg(count, value.element), words=f"group = {groups}")

    def widened(self, lanes: int, element: str, byte: int = 0, offset: int = 0) -> Value:
        """Load a register and convert it to f32."""
        value = self.load(lanes, element, byte, offset)
        return value if element == "f32" else self.cast(value, "f32")


def random(element: str, count: int, scale: float = 4.0) -> Array:
    if element[0] in "iu":
        info = np.iinfo(KINDS[element])
        return RNG.integers(info.min, info.max, count, endpoint=True).astype(KINDS[element])
    return (RNG.normal(size=count) * scale).astype(np.float32).astype(KINDS[element])


def saturated(values: Array, element: str) -> Array:
    top = float(ml_dtypes.finfo(KINDS[element]).max)
    return np.clip(values.astype(np.float32), -top, top).astype(KINDS[element])


SAT = 'saturate = "SAT"'


def dequantised(src: str, lanes: int, count: int) -> Kernel:
    """f16 or bf16 to f32 times a scale in all lanes, the first lanes only."""
    k, x = Kernel(), random(src, lanes)
    m = k.first(count, lanes)
    wide = k.widened(lanes, src)
    k.store(k.op("vmul", wide, k.all_lanes(0.75, lanes, "f32"), m), m=m)
    k.given[0], k.wanted[0] = x, (x.astype(np.float32) * np.float32(0.75))[:count]
    return k


def narrowed(src: str, dst: str, lanes: int, count: int | None, words: str, model: Callable[[Array], Array]) -> Kernel:
    """A conversion of a register, stored whole or its first lanes."""
    k = Kernel()
    x = random(src, lanes) if src[0] in "iu" else random(src, lanes, 300.0)
    m = "" if count is None else k.first(count, lanes)
    k.store(k.cast(k.load(lanes, src), dst, words), m=m)
    k.given[0], k.wanted[0] = x, model(x)[:count]
    return k


def pairs_of_four_bits(dst: str, lanes: int, count: int | None, *, seen: bool) -> Kernel:
    """bf16 as pairs, or pairs from memory, to 4 bits; values on the grid of both formats."""
    k = Kernel()
    grid = np.array([0, 0.5, 1, 1.5, -0.5, -1.5, -1, 100 if dst == "e2m1" else 1], np.float32)
    codes = {"e2m1": [0, 1, 2, 3, 9, 11, 10, 7], "e1m2": [0, 2, 4, 6, 10, 14, 12, 4]}[dst]
    picked = RNG.integers(0, 8, 2 * lanes)
    pair = k.seen_as(k.load(2 * lanes, "bf16"), lanes, "bf16_pair") if seen else k.load(lanes, "bf16_pair")
    m = "" if count is None else k.first(count, lanes)
    k.store(k.cast(pair, dst, 'rounding = "R"'), m=m)
    nibbles = np.array(codes, np.uint8)[picked]
    k.given[0], k.wanted[0] = grid[picked].astype(ml_dtypes.bfloat16), (nibbles[::2] | nibbles[1::2] << 4)[:count]
    return k


def four_bits_to_pairs(src: str, lanes: int, count: int) -> Kernel:
    k, x = Kernel(), RNG.integers(0, 256, lanes).astype(np.uint8)
    m = k.first(count, lanes)
    k.store(k.cast(k.load(lanes, src), "bf16_pair"), m=m)
    grid = {"e1m2": [0.0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75], "e2m1": [0.0, 0.5, 1, 1.5, 2, 3, 4, 6]}[src]
    numbers = np.array([*grid, *(-each for each in grid)], np.float32)
    k.given[0] = x
    k.wanted[0] = numbers[np.stack([x & 15, x >> 4], axis=1)].ravel().astype(ml_dtypes.bfloat16)[: 2 * count]
    return k


def reduced_and_narrowed(lanes: int, groups: int) -> Kernel:
    """f32 to e4m3fn, and the sum of every group beside it; whole numbers."""
    k, x = Kernel(), RNG.integers(-9, 9, lanes).astype(np.float32)
    m, v = k.first(lanes, lanes), k.load(lanes, "f32")
    k.store(k.groups("vcadd", v, lanes, groups, m), OUTPUT + THIRD, m=k.first(groups, groups))
    k.store(k.cast(v, "e4m3fn", SAT))
    k.given[0] = x
    k.wanted = {0: saturated(x, "e4m3fn"), THIRD: x.reshape(groups, -1).sum(axis=1)}
    return k


def sums_in_all_lanes(lanes: int, groups: int, *, narrow_first: bool) -> Kernel:
    """The sums of groups, back in all lanes of them; as f16, narrowed before they are spread or after a product."""
    k, x = Kernel(), RNG.integers(-9, 9, lanes).astype(np.float32)
    m, v = k.first(lanes, lanes), k.load(lanes, "f32")
    sums, slots = k.groups("vcadd", v, lanes, groups, m), x.reshape(groups, -1).sum(axis=1)
    spread = np.repeat(slots, lanes // groups)
    k.given[0] = x
    if narrow_first:
        k.store(k.groups("vbrc", k.cast(sums, "f16", SAT), lanes, groups))
        k.wanted[0] = spread.astype(np.float16)
    else:
        k.store(k.cast(k.op("vmul", v, k.groups("vbrc", sums, lanes, groups)), "f16", SAT))
        k.store(sums, OUTPUT + THIRD)
        k.wanted = {0: (x * spread).astype(np.float16), THIRD: slots}
    return k


def sums_of_two_formats(lanes: int, groups: int, stride: int) -> Kernel:
    """Rows of f16 that stand apart times their sum, times e4m3fn beside them."""
    k, size = Kernel(), lanes // groups
    x = RNG.integers(-4, 5, groups * stride).astype(np.float16)
    y = RNG.integers(-4, 5, groups * stride).astype(KINDS["e4m3fn"])
    k.given = {0: x, SECOND: y}
    apart, by_group = k.constant(stride), f"group = {groups}"
    f16, f8 = (
        k.cast(k.op("vload", k.at(byte, element), apart, to=reg(lanes, element), words=by_group), "f32")
        for byte, element in ((0, "f16"), (SECOND, "e4m3fn"))
    )
    sums = k.groups("vbrc", k.groups("vcadd", f16, lanes, groups, k.first(lanes, lanes)), lanes, groups)
    k.put(k.op("vmul", f8, sums), k.at(OUTPUT, "f32"), apart, words=by_group)
    rows, others = (each.reshape(groups, stride)[:, :size].astype(np.float32) for each in (x, y))
    want = np.full((groups, stride), 0xA5A5A5A5, np.uint32)
    want[:, :size] = (others * rows.sum(axis=1)[:, None]).astype(np.float32).view(np.uint32)
    k.wanted[0] = want.ravel()
    return k


def scaled_by_powers(src: str, dst: str, lanes: int, groups: int) -> Kernel:
    """8 bits times a power of two a group, whose exponent is a byte: the bits of a float are made by a shift."""
    k = Kernel()
    x = random(src, lanes, 2.0)
    e = RNG.integers(120, 135, groups).astype(np.uint8)
    k.given = {0: as_bytes(x), SECOND: e}
    v = k.cast(k.seen_as(k.load(lanes, "u8"), lanes, src), "f32")
    near, whole, by = ("f32", "u32", 23) if dst == "f32" else ("bf16", "u16", 7)
    raw = k.op("vload", k.at(SECOND, "u8"), to=reg(groups, whole), words='dist_mode = "unpack"')
    scale = k.seen_as(k.op("vshl", raw, k.all_lanes(by, groups, whole)), groups, near)
    if near == "bf16":
        v = k.cast(v, "bf16", SAT)
    k.store(k.op("vmul", v, k.groups("vbrc", scale, lanes, groups)))
    powers = np.repeat(2.0 ** (e.astype(np.float64) - 127), lanes // groups)
    k.wanted[0] = (x.astype(np.float64) * powers).astype(KINDS[near])
    return k


def quantised_by_blocks(src: str, lanes: int, groups: int) -> Kernel:
    """Every group divided by its greatest magnitude over 448, to e4m3fn; the scales beside it."""
    k, x = Kernel(), random(src, lanes)
    m = k.first(lanes, lanes)
    v = k.widened(lanes, src)
    top = k.groups("vcmax", k.op("vabs", v), lanes, groups, m)
    scale = k.op("vdiv", top, k.all_lanes("448.0", groups, "f32"))
    k.store(scale, OUTPUT + THIRD, m=k.first(groups, groups))
    k.store(k.cast(k.op("vdiv", v, k.groups("vbrc", scale, lanes, groups)), "e4m3fn", SAT))
    wide = x.astype(np.float32).reshape(groups, -1)
    scales = np.abs(wide).max(axis=1) / np.float32(448)
    k.given[0] = x
    k.wanted = {0: saturated((wide / scales[:, None]).ravel(), "e4m3fn"), THIRD: scales}
    return k


def quantised_by_exponents(src: str, dst: str, lanes: int, groups: int, *, gated: bool = False) -> Kernel:
    """Every group times the power of two that its greatest exponent asks for, to 8 bits; the exponents as bytes.

    `gated`: of x / (1 + exp(-x)) times a second input instead.
    """
    k, x = Kernel(), random(src, lanes)
    k.given[0] = x
    v = k.widened(lanes, src)
    wide = x.astype(np.float32)
    if gated:
        y = random(src, lanes)
        k.given[SECOND] = y
        other = k.widened(lanes, src, SECOND)
        grown = k.op("vexp", k.op("vsub", k.all_lanes("0.0", lanes, "f32"), v))
        v = k.op("vmul", k.op("vdiv", v, k.op("vadd", grown, k.all_lanes("1.0", lanes, "f32"))), other)
        exponential = np.exp(-wide.astype(np.float64)).astype(np.float32)
        wide = (wide / (np.float32(1) + exponential)) * y.astype(np.float32)
    size, room = lanes // groups, {"e4m3fn": 8, "e5m2": 15}[dst]
    words = f"num_groups = {groups}, group_size = {size}"
    every = k.op("create_group_mask", k.constant(size), to=mask(lanes), words=words)
    top = k.groups("vcmax", k.op("vabs", v), lanes, groups, every)
    exponent = k.op("vand", k.seen_as(top, groups, "u32"), k.all_lanes(0x7F800000, groups, "u32"))
    biased = k.op("vshr", exponent, k.all_lanes(23, groups, "u32"))
    shared = k.op("vsub", biased, k.all_lanes(room, groups, "u32"))
    ordinal = k.op("vci", k.constant(0, "i32"), to=reg(groups, "i32"))
    below = k.make(
        f'pto.vmi.vcmp {ordinal}, {k.all_lanes(1 << 20, groups, "i32")}, "lt" : {ordinal.kind}, {ordinal.kind} '
        f"-> {mask(groups)}"
    )
    shared = k.op("vsel", shared, k.all_lanes(0, groups, "u32"), below)
    k.store(k.cast(shared, "u8", SAT), OUTPUT + THIRD, m=k.first(groups, groups))
    inverse = k.op("vsub", k.all_lanes(254, groups, "u32"), shared)
    bits = k.op("vshl", inverse, k.all_lanes(23, groups, "u32"))
    power = k.groups("vbrc", k.seen_as(bits, groups, "f32"), lanes, groups)
    k.store(k.cast(k.op("vmul", v, power), dst, SAT))
    exponents = (np.abs(wide).reshape(groups, size).max(axis=1).view(np.uint32) >> 23).astype(np.int64) - room
    scales = np.repeat(2.0 ** (127 - exponents), size)
    k.wanted = {
        0: saturated((wide.astype(np.float64) * scales).astype(np.float32), dst),
        THIRD: exponents.astype(np.uint8),
    }
    return k


def quantised_by_columns(src: str, rows: int, lanes: int, *, gathered: bool = False) -> Kernel:
    """Rows of integers of 8 bits by a scale and an offset a column: extremes over rows, then conversions by f16."""
    k, x = Kernel(), random(src, rows * lanes)
    k.given[0] = x
    zero, m = k.all_lanes("0.0", lanes, "f32"), mask(lanes)
    if gathered:
        k.given[SECOND] = np.arange(lanes, dtype=np.uint16)[::-1].copy()
        index = k.load(lanes, "u16", SECOND)
    wide, all_lanes = [], k.first(lanes, lanes)
    for row in range(rows):
        if gathered:
            loaded = k.op("vgather", k.at(0, src, row * lanes), index, all_lanes, to=reg(lanes, src))
            wide.append(k.cast(loaded, "f32"))
        else:
            wide.append(k.widened(lanes, src, offset=row * lanes))
    low, high = zero, zero
    for values in wide:
        low, high = k.op("vmin", low, values), k.op("vmax", high, values)
    scale = k.op("vdiv", k.op("vmax", k.op("vabs", low), high), k.all_lanes("127.0", lanes, "f32"))
    positive = k.make(f'pto.vmi.vcmp {scale}, {zero}, "gt" : {scale.kind}, {scale.kind} -> {m}')
    scale = k.op("vsel", scale, k.all_lanes("1.0", lanes, "f32"), positive)
    k.store(scale, OUTPUT + THIRD)
    for row, values in enumerate(wide):
        moved = k.op("vadd", k.op("vdiv", values, scale), k.all_lanes("0.5", lanes, "f32"))
        whole = k.cast(moved, "i32", f'rounding = "F", {SAT}')
        codes = k.cast(k.cast(k.cast(whole, "i16", SAT), "f16"), "i8", SAT)
        k.store(k.seen_as(codes, lanes, "u8"), offset=row * lanes)
    columns = x.reshape(rows, lanes).astype(np.float32)[:, :: -1 if gathered else 1]
    scales = np.abs(columns).max(axis=0) / np.float32(127)
    codes = np.clip(np.floor(columns / scales + np.float32(0.5)), -128, 127).astype(np.int8)
    k.wanted = {0: codes.view(np.uint8).ravel(), THIRD: scales}
    return k


def quantised_by_rows(src: str, rows: int, lanes: int, *, smooth: bool) -> Kernel:
    """Rows of 8-bit integers by a scale a row, the row times a vector before."""
    k, x, total = Kernel(), random(src, rows * lanes), rows * lanes
    k.given[0] = x
    v = k.widened(total, src)
    wide = x.astype(np.float32).reshape(rows, lanes)
    if smooth:
        y = random(src, lanes)
        k.given[SECOND] = y
        same = k.op("vload", k.at(SECOND, src), k.constant(0), to=reg(total, src), words=f"group = {rows}")
        v = k.op("vmul", v, k.cast(same, "f32"))
        wide = wide * y.astype(np.float32)
    top = k.groups("vcmax", k.op("vabs", v), total, rows, k.first(total, total))
    scale = k.op("vdiv", top, k.all_lanes("127.0", rows, "f32"))
    k.store(scale, OUTPUT + THIRD, m=k.first(rows, rows))
    r = k.op("vdiv", v, k.groups("vbrc", scale, total, rows))
    k.store(k.cast(r, "i8", f'rounding = "R", {SAT}'))
    scales = np.abs(wide).max(axis=1) / np.float32(127)
    k.wanted = {0: np.rint(wide / scales[:, None]).astype(np.int8).ravel(), THIRD: scales}
    return k


def quantised_asymmetrically(rows: int, lanes: int) -> Kernel:
    """f32 to u8 by a scale and an offset a row, which a gather puts into all lanes of it."""
    k, total = Kernel(), rows * lanes
    x = random("f32", total, 40.0)
    k.given = {0: x, SECOND: random("f32", rows), THIRD: RNG.integers(0, 200, rows).astype(np.float32)}
    ordinal = k.op("vci", k.constant(0, "i32"), to=reg(total, "i32"))
    index = k.op("vshr", ordinal, k.all_lanes(lanes.bit_length() - 1, total, "i32"))
    m = k.first(total, total)
    scale, offset = (k.op("vgather", k.at(byte, "f32"), index, m, to=reg(total, "f32")) for byte in (SECOND, THIRD))
    r = k.op("vadd", k.op("vmul", k.load(total, "f32"), scale), offset)
    k.store(k.cast(r, "u8", f'rounding = "R", {SAT}'))
    grown = x.reshape(rows, lanes) * k.given[SECOND][:, None].astype(np.float32) + k.given[THIRD][:, None]  # type: ignore
    k.wanted[0] = np.clip(np.rint(grown), 0, 255).astype(np.uint8).ravel()
    return k


def cast_by_blocks(lanes: int, groups: int) -> Kernel:
    """f16 times a scale a group, which a load spreads, to e4m3fn."""
    k = Kernel()
    k.given = {0: random("f16", lanes), SECOND: random("f32", groups)}
    words = f'dist_mode = "brc", group = {groups}'
    scale = k.op("vload", k.at(SECOND, "f32"), k.constant(1), to=reg(lanes, "f32"), words=words)
    one = k.all_lanes("1.0", lanes, "f32")
    v = k.widened(lanes, "f16")
    k.store(k.cast(k.op("vmul", k.op("vmul", v, scale), one), "e4m3fn", SAT))
    spread = np.repeat(k.given[SECOND].astype(np.float32), lanes // groups)
    k.wanted[0] = saturated(k.given[0].astype(np.float32) * spread, "e4m3fn")
    return k


def one_mask_for_two_widths(lanes: int, count: int) -> Kernel:
    """f32 and its f16 stored under one mask."""
    k, x = Kernel(), random("f32", lanes)
    m, v = k.first(count, lanes), k.load(lanes, "f32")
    k.store(v, m=m)
    k.store(k.cast(v, "f16", SAT), OUTPUT + THIRD, m=m)
    k.given[0], k.wanted = x, {0: x[:count], THIRD: x[:count].astype(np.float16)}
    return k


def summed_in_a_loop(lanes: int, trips: int) -> Kernel:
    """A register that trips of a loop add to, and that every trip stores."""
    k, x = Kernel(), RNG.integers(-9, 9, lanes).astype(np.float16)
    v, zero, one, last = reg(lanes, "f32"), k.constant(0), k.constant(1), k.constant(trips)
    wide, to = k.widened(lanes, "f16"), k.pointer(OUTPUT, "f32")
    k.line(f"%sum = scf.for %i = {zero} to {last} step {one} iter_args(%a = {wide}) -> ({v}) {{")
    k.line(f"%n = pto.vmi.vadd %a, {wide} : {v}, {v} -> {v}")
    k.line(f"pto.vmi.vstore %n, {to}[{zero}] : {v}, {ptr('f32')}")
    k.line(f"scf.yield %n : {v}\n}}")
    k.given[0], k.wanted[0] = x, x.astype(np.float32) * (trips + 1)
    return k


def low_bytes(x: Array) -> Array:
    return x.astype(np.int64).astype(np.int8)


KERNELS: Mapping[str, Callable[[], Kernel]] = {
    "dequantise": lambda: dequantised("f16", 1024, 1000),
    "dequantise-bf16": lambda: dequantised("bf16", 200, 77),
    "four-bits": lambda: four_bits_to_pairs("e1m2", 256, 251),
    "reduce-and-narrow": lambda: reduced_and_narrowed(256, 8),
    "to-s32": lambda: narrowed("f16", "i32", 256, None, 'rounding = "R"', lambda x: np.rint(x).astype(np.int32)),
    "to-s16": lambda: narrowed("f32", "i16", 256, None, SAT, lambda x: np.rint(x).clip(-32768, 32767).astype(np.int16)),
    "sums": lambda: sums_in_all_lanes(128, 8, narrow_first=False),
    "sums-narrowed": lambda: sums_in_all_lanes(128, 8, narrow_first=True),
    "two-formats": lambda: sums_of_two_formats(512, 8, 80),
    "powers-bf16": lambda: scaled_by_powers("e4m3fn", "bf16", 1024, 32),
    "powers-bf16-small": lambda: scaled_by_powers("e4m3fn", "bf16", 512, 16),
    "powers-f32": lambda: scaled_by_powers("e4m3fn", "f32", 512, 16),
    "powers-e5m2": lambda: scaled_by_powers("e5m2", "bf16", 2048, 64),
    "exponents-bf16": lambda: quantised_by_exponents("bf16", "e4m3fn", 512, 16),
    "exponents-f16": lambda: quantised_by_exponents("f16", "e4m3fn", 512, 16),
    "exponents-e5m2": lambda: quantised_by_exponents("f16", "e5m2", 2048, 64),
    "exponents-f32": lambda: quantised_by_exponents("f32", "e4m3fn", 2048, 64),
    "blocks-bf16": lambda: quantised_by_blocks("bf16", 256, 2),
    "blocks-f16": lambda: quantised_by_blocks("f16", 1024, 32),
    "columns-bf16": lambda: quantised_by_columns("bf16", 8, 128, gathered=True),
    "columns-f16": lambda: quantised_by_columns("f16", 8, 256),
    "columns-gathered": lambda: quantised_by_columns("f16", 8, 128, gathered=True),
    "rows-bf16": lambda: quantised_by_rows("bf16", 4, 32, smooth=False),
    "rows-smooth": lambda: quantised_by_rows("f16", 16, 128, smooth=True),
    "rows-smooth-small": lambda: quantised_by_rows("f16", 8, 64, smooth=True),
    "cast-by-blocks": lambda: cast_by_blocks(4096, 32),
    "gated-small": lambda: quantised_by_exponents("bf16", "e4m3fn", 16, 4, gated=True),
    "gated": lambda: quantised_by_exponents("f16", "e4m3fn", 512, 16, gated=True),
    "gated-e5m2": lambda: quantised_by_exponents("f16", "e5m2", 256, 8, gated=True),
    "asymmetric": lambda: quantised_asymmetrically(8, 128),
    "two-widths": lambda: one_mask_for_two_widths(128, 100),
    "pairs": lambda: pairs_of_four_bits("e2m1", 64, None, seen=True),
    "pairs-e1m2": lambda: pairs_of_four_bits("e1m2", 128, None, seen=True),
    "pairs-from-memory": lambda: pairs_of_four_bits("e1m2", 256, None, seen=False),
    "pairs-tail": lambda: pairs_of_four_bits("e1m2", 512, 500, seen=True),
    "to-e4m3fn": lambda: narrowed("f32", "e4m3fn", 256, None, SAT, lambda x: saturated(x, "e4m3fn")),
    "to-e4m3fn-tail": lambda: narrowed("f32", "e4m3fn", 1024, 999, SAT, lambda x: saturated(x, "e4m3fn")),
    "loop": lambda: summed_in_a_loop(128, 3),
    "low-bytes": lambda: narrowed("i32", "i8", 256, None, 'saturate = "NOSAT"', low_bytes),
    "low-bytes-tail": lambda: narrowed("i32", "i8", 1024, 1001, 'saturate = "NOSAT"', low_bytes),
}
"""Every kernel by name; they use the operations and elements together that the published conversion cases use."""

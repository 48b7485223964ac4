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


class Body:
    """Text of a vecscope, with pointers and constants before it."""

    def __init__(self, arguments: str = "") -> None:
        self.arguments, self.before, self.inside = arguments, list[str](), list[str]()
        self._number = 0

    def fresh(self) -> str:
        self._number += 1
        return f"%t{self._number}"

    def constant(self, value: float | str, kind: str = "index") -> str:
        name = self.fresh()
        self.before.append(f"{name} = arith.constant {value} : {kind}")
        return name

    def pointer(self, byte: int, element: str) -> str:
        name = self.fresh()
        self.before.append(f"{name} = pto.castptr {self.constant(byte, 'i64')} : i64 -> {ptr(element)}")
        return name

    def line(self, text: str) -> None:
        self.inside.append(text)

    def make(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def load(self, lanes: int, element: str, byte: int = 0, offset: int = 0, words: str = "") -> str:
        where = f"{self.pointer(byte, element)}[{self.constant(offset)}]"
        return self.make(f"pto.vmi.vload {where}{words} : {ptr(element)} -> {reg(lanes, element)}")

    def store(self, value: str, lanes: int, element: str, byte: int = OUTPUT, offset: int = 0, m: str = "") -> None:
        where = f"{self.pointer(byte, element)}[{self.constant(offset)}]"
        more, kind = (f", {m}", f", {mask(lanes)}") if m else ("", "")
        self.line(f"pto.vmi.vstore {value}, {where}{more} : {reg(lanes, element)}, {ptr(element)}{kind}")

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
class Kernel:
    """A body, its input bytes by place, what it leaves by place, and within how many units in the last place."""

    body: Body = field(default_factory=Body)
    given: dict[int, Array] = field(default_factory=dict)
    wanted: dict[int, Array] = field(default_factory=dict)

    def cast(self, value: str, lanes: int, src: str, dst: str, words: str = "") -> str:
        if src == dst:
            return value
        dictionary = f" {{{words}}}" if words else ""
        return self.body.make(f"pto.vmi.vcvt {value}{dictionary} : {reg(lanes, src)} -> {reg(lanes, dst)}")

    def two(self, name: str, a: str, b: str, lanes: int, element: str, m: str = "") -> str:
        v, more, kind = reg(lanes, element), f", {m}" if m else "", f", {mask(lanes)}" if m else ""
        return self.body.make(f"pto.vmi.{name} {a}, {b}{more} : {v}, {v}{kind} -> {v}")

    def one(self, name: str, a: str, lanes: int, element: str) -> str:
        v = reg(lanes, element)
        return self.body.make(f"pto.vmi.{name} {a} : {v} -> {v}")

    def all_lanes(self, number: float | str, lanes: int, element: str) -> str:
        scalar = element.replace("u", "i")
        return self.body.make(f"pto.vmi.vbrc {self.body.constant(number, scalar)} : {scalar} -> {reg(lanes, element)}")

    def groups(self, name: str, value: str, lanes: int, groups: int, element: str, m: str = "") -> str:
        one, other = (groups, lanes) if name == "vbrc" else (lanes, groups)
        more, kind = (f", {m}", f", {mask(lanes)}") if m else ("", "")
        kinds = f"{reg(one, element)}{kind} -> {reg(other, element)}"
        return self.body.make(f"pto.vmi.{name} {value}{more} {{group = {groups}}} : {kinds}")

    def seen_as(self, value: str, one: tuple[int, str], other: tuple[int, str]) -> str:
        return self.body.make(f"pto.vmi.vinterpret_cast {value} : {reg(*one)} -> {reg(*other)}")

    def first(self, count: int, lanes: int) -> str:
        return self.body.make(f"pto.vmi.create_mask {self.body.constant(count)} : index -> {mask(lanes)}")


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
    wide = k.cast(k.body.load(lanes, src), lanes, src, "f32")
    k.body.store(k.two("vmul", wide, k.all_lanes(0.75, lanes, "f32"), lanes, "f32", m), lanes, "f32", m=m)
    k.given[0], k.wanted[0] = x, (x.astype(np.float32) * np.float32(0.75))[:count]
    return k


def narrowed(src: str, dst: str, lanes: int, count: int | None, words: str, model: Callable[[Array], Array]) -> Kernel:
    """A conversion of a register, stored whole or its first lanes."""
    k = Kernel()
    x = random(src, lanes) if src[0] in "iu" else random(src, lanes, 300.0)
    m = "" if count is None else k.first(count, lanes)
    k.body.store(k.cast(k.body.load(lanes, src), lanes, src, dst, words), lanes, dst, m=m)
    k.given[0], k.wanted[0] = x, model(x)[:count]
    return k


def pairs_of_four_bits(dst: str, lanes: int, count: int | None, *, seen: bool) -> Kernel:
    """bf16 as pairs, or pairs from memory, to 4 bits; values on the grid of both formats."""
    k = Kernel()
    grid = np.array([0, 0.5, 1, 1.5, -0.5, -1.5, -1, 100 if dst == "e2m1" else 1], np.float32)
    codes = {"e2m1": [0, 1, 2, 3, 9, 11, 10, 7], "e1m2": [0, 2, 4, 6, 10, 14, 12, 4]}[dst]
    picked = RNG.integers(0, 8, 2 * lanes)
    x = grid[picked].astype(ml_dtypes.bfloat16)
    pair = k.body.load(lanes, "bf16_pair") if not seen else k.seen_as(
        k.body.load(2 * lanes, "bf16"), (2 * lanes, "bf16"), (lanes, "bf16_pair")
    )  # fmt: skip
    m = "" if count is None else k.first(count, lanes)
    k.body.store(k.cast(pair, lanes, "bf16_pair", dst, 'rounding = "R"'), lanes, dst, m=m)
    nibbles = np.array(codes, np.uint8)[picked]
    k.given[0], k.wanted[0] = x, (nibbles[::2] | nibbles[1::2] << 4)[:count]
    return k


def four_bits_to_pairs(src: str, lanes: int, count: int) -> Kernel:
    k, x = Kernel(), RNG.integers(0, 256, lanes).astype(np.uint8)
    m = k.first(count, lanes)
    k.body.store(k.cast(k.body.load(lanes, src), lanes, src, "bf16_pair"), lanes, "bf16_pair", m=m)
    grid = {"e1m2": [0.0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75], "e2m1": [0.0, 0.5, 1, 1.5, 2, 3, 4, 6]}[src]
    numbers = np.array([*grid, *(-each for each in grid)], np.float32)
    k.given[0] = x
    k.wanted[0] = numbers[np.stack([x & 15, x >> 4], axis=1)].ravel().astype(ml_dtypes.bfloat16)[: 2 * count]
    return k


def reduced_and_narrowed(lanes: int, groups: int) -> Kernel:
    """f32 to e4m3fn, and the sum of every group beside it; whole numbers."""
    k, x = Kernel(), RNG.integers(-9, 9, lanes).astype(np.float32)
    m, v = k.first(lanes, lanes), k.body.load(lanes, "f32")
    k.body.store(
        k.groups("vcadd", v, lanes, groups, "f32", m), groups, "f32", byte=OUTPUT + THIRD, m=k.first(groups, groups)
    )
    k.body.store(k.cast(v, lanes, "f32", "e4m3fn", SAT), lanes, "e4m3fn")
    k.given[0] = x
    k.wanted = {0: saturated(x, "e4m3fn"), THIRD: x.reshape(groups, -1).sum(axis=1)}
    return k


def sums_in_all_lanes(lanes: int, groups: int, *, narrow_first: bool) -> Kernel:
    """The sums of groups, back in all lanes of them; as f16, narrowed before they are spread or after a product."""
    k, x = Kernel(), RNG.integers(-9, 9, lanes).astype(np.float32)
    m, v = k.first(lanes, lanes), k.body.load(lanes, "f32")
    sums, slots = k.groups("vcadd", v, lanes, groups, "f32", m), x.reshape(groups, -1).sum(axis=1)
    spread = np.repeat(slots, lanes // groups)
    if narrow_first:
        short = k.cast(sums, groups, "f32", "f16", SAT)
        k.body.store(k.groups("vbrc", short, lanes, groups, "f16"), lanes, "f16")
        k.wanted[0] = spread.astype(np.float16)
    else:
        product = k.two("vmul", v, k.groups("vbrc", sums, lanes, groups, "f32"), lanes, "f32")
        k.body.store(k.cast(product, lanes, "f32", "f16", SAT), lanes, "f16")
        k.body.store(sums, groups, "f32", byte=OUTPUT + THIRD)
        k.wanted = {0: (x * spread).astype(np.float16), THIRD: slots}
    k.given[0] = x
    return k


def sums_of_two_formats(lanes: int, groups: int, stride: int) -> Kernel:
    """Rows of f16 that stand apart times their sum, times e4m3fn beside them."""
    k, size = Kernel(), lanes // groups
    x = RNG.integers(-4, 5, groups * stride).astype(np.float16)
    y = RNG.integers(-4, 5, groups * stride).astype(KINDS["e4m3fn"])
    k.given = {0: x, SECOND: y}
    apart, zero = k.body.constant(stride), k.body.constant(0)
    wide = []
    for byte, element in ((0, "f16"), (SECOND, "e4m3fn")):
        where = f"{k.body.pointer(byte, element)}[{zero}], {apart} {{group = {groups}}}"
        v = k.body.make(f"pto.vmi.vload {where} : {ptr(element)} -> {reg(lanes, element)}")
        wide.append(k.cast(v, lanes, element, "f32"))
    m = k.first(lanes, lanes)
    sums = k.groups("vbrc", k.groups("vcadd", wide[0], lanes, groups, "f32", m), lanes, groups, "f32")
    r = k.two("vmul", wide[1], sums, lanes, "f32")
    where = f"{k.body.pointer(OUTPUT, 'f32')}[{zero}], {apart} {{group = {groups}}}"
    k.body.line(f"pto.vmi.vstore {r}, {where} : {reg(lanes, 'f32')}, {ptr('f32')}")
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
    v = k.cast(k.seen_as(k.body.load(lanes, "u8"), (lanes, "u8"), (lanes, src)), lanes, src, "f32")
    near, whole, by = ("f32", "u32", 23) if dst == "f32" else ("bf16", "u16", 7)
    where = f"{k.body.pointer(SECOND, 'u8')}[{k.body.constant(0)}]"
    raw = k.body.make(f'pto.vmi.vload {where} {{dist_mode = "unpack"}} : {ptr("u8")} -> {reg(groups, whole)}')
    shifted = k.two("vshl", raw, k.all_lanes(by, groups, whole), groups, whole)
    scale = k.seen_as(shifted, (groups, whole), (groups, near))
    if near == "bf16":
        v = k.cast(v, lanes, "f32", "bf16", SAT)
    r = k.two("vmul", v, k.groups("vbrc", scale, lanes, groups, near), lanes, near)
    k.body.store(r, lanes, near)
    powers = np.repeat(2.0 ** (e.astype(np.float64) - 127), lanes // groups)
    k.wanted[0] = (x.astype(np.float64) * powers).astype(KINDS[near])
    return k


def quantised_by_blocks(src: str, lanes: int, groups: int) -> Kernel:
    """Every group divided by its greatest magnitude over 448, to e4m3fn; the scales beside it."""
    k, x = Kernel(), random(src, lanes)
    m = k.first(lanes, lanes)
    v = k.cast(k.body.load(lanes, src), lanes, src, "f32")
    top = k.groups("vcmax", k.one("vabs", v, lanes, "f32"), lanes, groups, "f32", m)
    scale = k.two("vdiv", top, k.all_lanes("448.0", groups, "f32"), groups, "f32")
    k.body.store(scale, groups, "f32", byte=OUTPUT + THIRD, m=k.first(groups, groups))
    r = k.two("vdiv", v, k.groups("vbrc", scale, lanes, groups, "f32"), lanes, "f32")
    k.body.store(k.cast(r, lanes, "f32", "e4m3fn", SAT), lanes, "e4m3fn")
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
    v = k.cast(k.body.load(lanes, src), lanes, src, "f32")
    wide = x.astype(np.float32)
    if gated:
        y = random(src, lanes)
        k.given[SECOND] = y
        other = k.cast(k.body.load(lanes, src, byte=SECOND), lanes, src, "f32")
        minus = k.two("vsub", k.all_lanes("0.0", lanes, "f32"), v, lanes, "f32")
        one = k.two("vadd", k.one("vexp", minus, lanes, "f32"), k.all_lanes("1.0", lanes, "f32"), lanes, "f32")
        v = k.two("vmul", k.two("vdiv", v, one, lanes, "f32"), other, lanes, "f32")
        grown = np.exp(-wide.astype(np.float64)).astype(np.float32)
        wide = (wide / (np.float32(1) + grown)) * y.astype(np.float32)
    size, room = lanes // groups, {"e4m3fn": 8, "e5m2": 15}[dst]
    words = f"{{num_groups = {groups}, group_size = {size}}}"
    every = k.body.make(f"pto.vmi.create_group_mask {k.body.constant(size)} {words} : index -> {mask(lanes)}")
    top = k.groups("vcmax", k.one("vabs", v, lanes, "f32"), lanes, groups, "f32", every)
    raw = k.seen_as(top, (groups, "f32"), (groups, "u32"))
    held = k.two("vand", raw, k.all_lanes(0x7F800000, groups, "u32"), groups, "u32")
    biased = k.two("vshr", held, k.all_lanes(23, groups, "u32"), groups, "u32")
    shared = k.two("vsub", biased, k.all_lanes(room, groups, "u32"), groups, "u32")
    ordinal = k.body.make(f"pto.vmi.vci {k.body.constant(0, 'i32')} : i32 -> {reg(groups, 'i32')}")
    u, s, m = reg(groups, "u32"), reg(groups, "i32"), mask(groups)
    known = k.body.make(f'pto.vmi.vcmp {ordinal}, {k.all_lanes(1 << 20, groups, "i32")}, "lt" : {s}, {s} -> {m}')
    shared = k.body.make(f"pto.vmi.vsel {shared}, {k.all_lanes(0, groups, 'u32')}, {known} : {u}, {u}, {m} -> {u}")
    k.body.store(k.cast(shared, groups, "u32", "u8", SAT), groups, "u8", byte=OUTPUT + THIRD, m=k.first(groups, groups))
    inverse = k.two("vsub", k.all_lanes(254, groups, "u32"), shared, groups, "u32")
    bits = k.two("vshl", inverse, k.all_lanes(23, groups, "u32"), groups, "u32")
    power = k.groups("vbrc", k.seen_as(bits, (groups, "u32"), (groups, "f32")), lanes, groups, "f32")
    k.body.store(k.cast(k.two("vmul", v, power, lanes, "f32"), lanes, "f32", dst, SAT), lanes, dst)
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
    zero, v, m = k.all_lanes("0.0", lanes, "f32"), reg(lanes, "f32"), mask(lanes)
    if gathered:
        k.given[SECOND] = np.arange(lanes, dtype=np.uint16)[::-1].copy()
        index = k.body.load(lanes, "u16", byte=SECOND)
    wide, all_lanes = [], k.first(lanes, lanes)
    for row in range(rows):
        if gathered:
            where = f"{k.body.pointer(0, src)}[{k.body.constant(row * lanes)}], {index}, {all_lanes}"
            kinds = f"{ptr(src)}, {reg(lanes, 'u16')}, {m} -> {reg(lanes, src)}"
            loaded = k.body.make(f"pto.vmi.vgather {where} : {kinds}")
        else:
            loaded = k.body.load(lanes, src, offset=row * lanes)
        wide.append(k.cast(loaded, lanes, src, "f32"))
    low, high = zero, zero
    for each in wide:
        low, high = k.two("vmin", low, each, lanes, "f32"), k.two("vmax", high, each, lanes, "f32")
    top = k.two("vmax", k.one("vabs", low, lanes, "f32"), high, lanes, "f32")
    scale = k.two("vdiv", top, k.all_lanes("127.0", lanes, "f32"), lanes, "f32")
    positive = k.body.make(f'pto.vmi.vcmp {scale}, {zero}, "gt" : {v}, {v} -> {m}')
    scale = k.body.make(f"pto.vmi.vsel {scale}, {k.all_lanes('1.0', lanes, 'f32')}, {positive} : {v}, {v}, {m} -> {v}")
    k.body.store(scale, lanes, "f32", byte=OUTPUT + THIRD)
    for row, each in enumerate(wide):
        moved = k.two("vadd", k.two("vdiv", each, scale, lanes, "f32"), k.all_lanes("0.5", lanes, "f32"), lanes, "f32")
        whole = k.cast(moved, lanes, "f32", "i32", f'rounding = "F", {SAT}')
        short = k.cast(k.cast(whole, lanes, "i32", "i16", SAT), lanes, "i16", "f16")
        codes = k.seen_as(k.cast(short, lanes, "f16", "i8", SAT), (lanes, "i8"), (lanes, "u8"))
        k.body.store(codes, lanes, "u8", offset=row * lanes)
    held = x.reshape(rows, lanes).astype(np.float32)[:, :: -1 if gathered else 1]
    scales = np.abs(held).max(axis=0) / np.float32(127)
    codes = np.clip(np.floor(held / scales + np.float32(0.5)), -128, 127).astype(np.int8)
    k.wanted = {0: codes.view(np.uint8).ravel(), THIRD: scales}
    return k


def quantised_by_rows(src: str, rows: int, lanes: int, *, smooth: bool) -> Kernel:
    """Rows of 8-bit integers by a scale a row, the row times a vector before."""
    k, x, total = Kernel(), random(src, rows * lanes), rows * lanes
    k.given[0] = x
    v = k.cast(k.body.load(total, src), total, src, "f32")
    held = x.astype(np.float32).reshape(rows, lanes)
    if smooth:
        y = random(src, lanes)
        k.given[SECOND] = y
        where = f"{k.body.pointer(SECOND, src)}[{k.body.constant(0)}], {k.body.constant(0)} {{group = {rows}}}"
        same = k.body.make(f"pto.vmi.vload {where} : {ptr(src)} -> {reg(total, src)}")
        v = k.two("vmul", v, k.cast(same, total, src, "f32"), total, "f32")
        held = held * y.astype(np.float32)
    m = k.first(total, total)
    top = k.groups("vcmax", k.one("vabs", v, total, "f32"), total, rows, "f32", m)
    scale = k.two("vdiv", top, k.all_lanes("127.0", rows, "f32"), rows, "f32")
    k.body.store(scale, rows, "f32", byte=OUTPUT + THIRD, m=k.first(rows, rows))
    r = k.two("vdiv", v, k.groups("vbrc", scale, total, rows, "f32"), total, "f32")
    k.body.store(k.cast(r, total, "f32", "i8", f'rounding = "R", {SAT}'), total, "i8")
    scales = np.abs(held).max(axis=1) / np.float32(127)
    k.wanted = {0: np.rint(held / scales[:, None]).astype(np.int8).ravel(), THIRD: scales}
    return k


def quantised_asymmetrically(rows: int, lanes: int) -> Kernel:
    """f32 to u8 by a scale and an offset a row, which a gather puts into all lanes of it."""
    k, total = Kernel(), rows * lanes
    x = random("f32", total, 40.0)
    k.given = {0: x, SECOND: random("f32", rows), THIRD: RNG.integers(0, 200, rows).astype(np.float32)}
    counted = k.body.make(f"pto.vmi.vci {k.body.constant(0, 'i32')} : i32 -> {reg(total, 'i32')}")
    index = k.two("vshr", counted, k.all_lanes(lanes.bit_length() - 1, total, "i32"), total, "i32")
    m, slots = k.first(total, total), []
    for byte in (SECOND, THIRD):
        where = f"{k.body.pointer(byte, 'f32')}[{k.body.constant(0)}], {index}, {m}"
        kinds = f"{ptr('f32')}, {reg(total, 'i32')}, {mask(total)} -> {reg(total, 'f32')}"
        slots.append(k.body.make(f"pto.vmi.vgather {where} : {kinds}"))
    scaled = k.two("vmul", k.body.load(total, "f32"), slots[0], total, "f32")
    r = k.two("vadd", scaled, slots[1], total, "f32")
    k.body.store(k.cast(r, total, "f32", "u8", f'rounding = "R", {SAT}'), total, "u8")
    grown = x.reshape(rows, lanes) * k.given[SECOND][:, None].astype(np.float32) + k.given[THIRD][:, None]  # type: ignore
    k.wanted[0] = np.clip(np.rint(grown), 0, 255).astype(np.uint8).ravel()
    return k


def cast_by_blocks(lanes: int, groups: int) -> Kernel:
    """f16 times a scale a group, which a load spreads, to e4m3fn."""
    k = Kernel()
    k.given = {0: random("f16", lanes), SECOND: random("f32", groups)}
    where = f"{k.body.pointer(SECOND, 'f32')}[{k.body.constant(0)}], {k.body.constant(1)}"
    kinds = f"{ptr('f32')} -> {reg(lanes, 'f32')}"
    scale = k.body.make(f'pto.vmi.vload {where} {{dist_mode = "brc", group = {groups}}} : {kinds}')
    one = k.all_lanes("1.0", lanes, "f32")
    v = k.cast(k.body.load(lanes, "f16"), lanes, "f16", "f32")
    r = k.two("vmul", k.two("vmul", v, scale, lanes, "f32"), one, lanes, "f32")
    k.body.store(k.cast(r, lanes, "f32", "e4m3fn", SAT), lanes, "e4m3fn")
    spread = np.repeat(k.given[SECOND].astype(np.float32), lanes // groups)
    k.wanted[0] = saturated(k.given[0].astype(np.float32) * spread, "e4m3fn")
    return k


def one_mask_for_two_widths(lanes: int, count: int) -> Kernel:
    """f32 and its f16 stored under one mask."""
    k, x = Kernel(), random("f32", lanes)
    m, v = k.first(count, lanes), k.body.load(lanes, "f32")
    k.body.store(v, lanes, "f32", m=m)
    k.body.store(k.cast(v, lanes, "f32", "f16", SAT), lanes, "f16", byte=OUTPUT + THIRD, m=m)
    k.given[0], k.wanted = x, {0: x[:count], THIRD: x[:count].astype(np.float16)}
    return k


def summed_in_a_loop(lanes: int, trips: int) -> Kernel:
    """A register that trips of a loop add to, and that every trip stores."""
    k, x = Kernel(), RNG.integers(-9, 9, lanes).astype(np.float16)
    v, body = reg(lanes, "f32"), k.body
    zero, one, last = body.constant(0), body.constant(1), body.constant(trips)
    wide, to = k.cast(body.load(lanes, "f16"), lanes, "f16", "f32"), body.pointer(OUTPUT, "f32")
    body.line(f"%sum = scf.for %i = {zero} to {last} step {one} iter_args(%a = {wide}) -> ({v}) {{")
    body.line(f"%n = pto.vmi.vadd %a, {wide} : {v}, {v} -> {v}")
    body.line(f"pto.vmi.vstore %n, {to}[{zero}] : {v}, {ptr('f32')}")
    body.line(f"scf.yield %n : {v}\n}}")
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
"""Every kernel by name."""

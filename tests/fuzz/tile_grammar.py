"""Random `.pto` texts: tiles, vector instructions, logical registers. Most can be read; some are wrong somewhere."""

from __future__ import annotations

import re
from random import Random

from core.execution import sync_random

from castsim.isa.pto.micro_forms import ROWS as MICRO
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.languages.vmi.operations import VMI_ROWS as LOGICAL

_ELEMENTS = (
    "f32", "f16", "bf16", "i8", "si8", "ui8", "i16", "i32", "ui32", "i64", "f8E4M3FN", "f8E5M2", "hif8", "f4E2M1x2",
    "s4", "f64", "i7", "f8", "ui4",
)  # fmt: skip
_EXTENTS = ("1", "2", "4", "8", "15", "16", "32", "64", "255", "0", "?", "-1", "4294967296", "65536")
_SCALARS = ("index", "index", "index", "i32", "i64", "f32", "i1", "f16")
_PLACES = ("vec", "vec", "vec", "mat", "acc", "left")
_PIPES = ("PIPE_V", "PIPE_MTE2", "PIPE_MTE3", "PIPE_S", "PIPE_M", "PIPE_ALL", "PIPE_FIX", "PIPE_X")


class _Text:
    """Statements of a function, with the values that they may name."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.known: list[tuple[str, str]] = [("%p", "!pto.ptr<f32>"), ("%n", "index"), ("%c", "i1"), ("%x", "f32")]
        self.names = 0

    def fresh(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def value(self, kind: str = "") -> tuple[str, str]:
        fitting = [one for one in self.known if kind in one[1]]
        if not fitting or self.rng.random() < 0.03:
            fitting = self.known
        return self.rng.choice(fitting)

    def extents(self) -> tuple[str, str]:
        if self.rng.random() < 0.8:
            return "16", "64"
        few = _EXTENTS if self.rng.random() < 0.3 else _EXTENTS[3:8]
        return self.rng.choice(few), self.rng.choice(few)

    def element(self, likely: float = 0.6) -> str:
        return "f32" if self.rng.random() < likely else self.rng.choice(_ELEMENTS)

    def tile(self) -> str:
        rows, cols = self.extents()
        element = self.element()
        if self.rng.random() < 0.4:
            loc, boxes = self.rng.choice(_PLACES), self.rng.choice(("none_box", "row_major"))
            return (f"!pto.tile_buf<loc={loc}, dtype={element}, rows={rows}, cols={cols}, v_row={rows}, v_col={cols}, "
                    f"blayout=row_major, slayout={boxes}, fractal=512, pad=0>")  # fmt: skip
        valid = f", valid={'x'.join(self.extents())}" if self.rng.random() < 0.2 else ""
        return f"!pto.tile_buf<vec, {rows}x{cols}x{element}{valid}>"

    def statement(self, depth: int) -> None:
        self.rng.choice((self.constant, self.arith, self.alloc, self.view, self.part, self.move, self.work, self.work,
                         self.cast, self.flag, self.validity, self.region if depth else self.work))(depth)  # fmt: skip

    def constant(self, _: int) -> None:
        name, kind = self.fresh(), self.rng.choice(_SCALARS)
        fitting = {"f": ("1.0", "-0.5", "1e30", "0x7F800000"), "i": ("0", "1", "16", "64"), "u": ("0",)}[kind[0]]
        fitting = ("true", "false") if kind == "i1" else fitting
        number = self.rng.choice(
            fitting if self.rng.random() < 0.9 else ("-3", "1e400", "9" * 25, "0x7F", "1.0", "true")
        )
        self.lines.append(f"{name} = arith.constant {number} : {kind}")
        self.known.append((name, kind))

    def arith(self, _: int) -> None:
        name, (one, kind), (two, _) = self.fresh(), self.value("i"), self.value("i")
        operation = self.rng.choice(("addi", "muli", "subi", "divsi", "remsi", "maxsi", "addf", "mulf", "shli", "xori"))
        self.lines.append(f"{name} = arith.{operation} {one}, {two} : {kind}")
        self.known.append((name, kind))

    def alloc(self, _: int) -> None:
        name, kind = self.fresh(), self.tile()
        address = f" addr = {self.value('i64')[0]}" if self.rng.random() < 0.2 else ""
        self.lines.append(f"{name} = pto.alloc_tile{address} : {kind}")
        self.known.append((name, kind))

    def view(self, _: int) -> None:
        name, size = self.fresh(), self.value("index")[0]
        extents = self.rng.choice(("?x?", "x".join(self.extents())))
        kind = f"!pto.tensor_view<{extents}x{self.element(0.97)}>"
        self.lines.append(
            f"{name} = pto.make_tensor_view %p, shape = [{size}, {size}], strides = [{size}, {size}] : {kind}"
        )
        self.known.append((name, kind))

    def part(self, _: int) -> None:
        name, (view, kind), size = self.fresh(), self.value("tensor_view"), self.value("index")[0]
        part = f"!pto.partition_tensor_view<{'x'.join(self.extents())}x{self.element(0.97)}>"
        self.lines.append(f"{name} = pto.partition_view {view}, offsets = [{size}, {size}], sizes = [{size}, {size}] : "
                          f"{kind} -> {part}")  # fmt: skip
        self.known.append((name, part))

    def move(self, _: int) -> None:
        tile, part = self.value("tile_buf"), self.value("partition")
        one, two, name = (part, tile, "tload") if self.rng.random() < 0.5 else (tile, part, "tstore")
        self.lines.append(f"pto.{name} ins({one[0]} : {one[1]}) outs({two[0]} : {two[1]})")

    def work(self, _: int) -> None:
        name = self.rng.choice(sorted(VECTOR_OPERATIONS)).partition(".")[0]
        given = [
            self.value("tile_buf" if self.rng.random() < 0.9 else "") for _ in range(self.rng.choice((1, 1, 2, 2, 3)))
        ]
        names, kinds = ", ".join(one[0] for one in given), ", ".join(one[1] for one in given)
        out = self.value("tile_buf")
        self.lines.append(f"pto.{name} ins({names} : {kinds}) outs({out[0]} : {out[1]})")

    def cast(self, _: int) -> None:
        src, dst = self.value("tile_buf"), self.value("tile_buf")
        mode = self.rng.choice(("RINT", "CAST_RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD", "NONE", "X"))
        self.lines.append(
            f"pto.tcvt ins({src[0]} {{rmode = #pto<round_mode {mode}>}} : {src[1]}) outs({dst[0]} : {dst[1]})"
        )

    def flag(self, _: int) -> None:
        one, two = self.rng.choice(_PIPES), self.rng.choice(_PIPES)
        event = f"EVENT_ID{self.rng.choice((0, 1, 7, 8, 99))}"
        self.lines.append(self.rng.choice((
            f'pto.set_flag["{one}", "{two}", "{event}"]', f'pto.wait_flag["{one}", "{two}", "{event}"]',
            f"pto.barrier <{one}>", f"pto.set_flag[<{one}>, <{two}>, <{event}>]",
        )))  # fmt: skip

    def validity(self, _: int) -> None:
        tile, size = self.value("tile_buf"), self.value("index")[0]
        self.lines.append(f"pto.set_validshape {tile[0]}, {size}, {size} : {tile[1]}")

    def region(self, depth: int) -> None:
        before = len(self.known)
        name, bound = self.fresh(), self.value("index")[0]
        if self.rng.random() < 0.6:
            self.lines.append(f"scf.for {name} = {bound} to {self.value('index')[0]} step {self.value('index')[0]} {{")
            self.known.append((name, "index"))
        else:
            self.lines.append(f"scf.if {self.value('i1')[0]} {{")
        for _ in range(self.rng.randint(0, 3)):
            self.statement(depth - 1)
        self.lines.append("}")
        del self.known[before:]


def tile(rng: Random) -> bytes:
    """A program of tiles: any statements, or a kernel of loops and branches that can be read."""
    if rng.random() < 0.3:
        return (
            sync_random.Maker(rng.randrange(1 << 30), rng.choice((sync_random.SMALL, sync_random.LARGE)))
            .text()
            .encode()
        )
    text = _Text(rng)
    for make in (text.constant, text.view, text.part, text.alloc, text.alloc):
        make(0)
    for _ in range(rng.randint(1, 12)):
        text.statement(2)
    arch = rng.choice(("a3", "a5", "a2", "a9"))
    return "\n".join([
        f'module attributes {{pto.target_arch = "{arch}"}} {{',
        "func.func @k(%p: !pto.ptr<f32>, %n: index, %c: i1, %x: f32) attributes {pto.entry} {",
        *text.lines, "return", "}", "}", "",
    ]).encode()  # fmt: skip


_HEAD = (
    'module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {',
    "func.func @k(%x: !pto.ptr<f32, gm>, %s: f32) attributes {pto.kernel} {",
    "%c0 = arith.constant 0 : index", "%c64 = arith.constant 64 : index", "%l0 = arith.constant 0 : i64",
    "%w = arith.constant 64 : i32", "%u = pto.castptr %l0 : i64 -> !pto.ptr<f32, ub>", "pto.vecscope {",
)  # fmt: skip
_WORDS = ("PAT_ALL", "PAT_VL8", "NORM", "DINTLV_B32", "UNPK_B16", "lt", "EVEN", "R", "SAT", "VST_VLD", "LOWER", "?", "")

_NAMES = sorted(name for name, row in MICRO.items() if row.place.name == "SCOPE")
_FITTING = {
    "pattern": ("PAT_ALL", "PAT_VL8"), "dist": ("NORM", "NORM_B32"), "cmp": ("lt", "eq"), "half": ("LOWER", "HIGHER"),
    "part": ("EVEN", "ODD"), "barrier": ("VST_VLD", "VV_ALL"), "mode": ("POST_UPDATE", "NO_POST_UPDATE"),
}  # fmt: skip


def _operand(letter: str, rng: Random, element: str) -> tuple[str, str]:
    """Return a value and its type for a letter of a form."""
    lanes = {"f32": 64, "f16": 128, "i32": 64, "i16": 128, "i8": 256, "bf16": 128, "ui32": 64}[element]
    bits = 2048 // lanes
    some = rng.randrange(4)
    match letter:
        case "V" | "U" | "k" | "A":
            word = {"V": f"vreg<{lanes}x{element}>", "U": f"vreg<{lanes}xui{bits}>", "k": "mask<b16>", "A": "align"}
            return f"%{letter.lower()}{some}", f"!pto.{word[letter]}"
        case "M" | "m":
            return f"%m{some}", f"!pto.mask<b{bits if rng.random() < 0.9 else 8}>"
        case "P":
            return "%u", f"!pto.ptr<{element if rng.random() < 0.3 else 'f32'}, ub>"
        case "N":
            return "%w", "i32"
        case "T":
            return "%s", element
    return "%c0", "index"


def _instruction(name: str, rng: Random) -> str:
    element = "f32" if rng.random() < 0.9 else rng.choice(("f16", "i32", "i16", "i8", "bf16", "ui32"))
    left, _, right = rng.choice(MICRO[name].forms).partition(">")
    shown, kinds = [], []
    for part in left.split():
        if part.startswith('"'):
            fitting = _FITTING.get(part.strip('"?'), _WORDS) if rng.random() < 0.9 else _WORDS
            shown.append(f'"{rng.choice(fitting)}"')
        elif part in ("P[I]", "P[i]"):
            shown.append("%u[%c0]")
            kinds.append(_operand("P", rng, element)[1])
        elif part[0].isalpha():
            value, kind = _operand(part[0], rng, element)
            shown.append(value)
            kinds.append(kind)
    results = [_operand(part[0], rng, element) for part in right.split() if not part.endswith("?")]
    head = f"{', '.join(value for value, _ in results)} = " if results else ""
    words = f' {{{rng.choice(("rnd", "sat", "part", "dist"))} = "{rng.choice(_WORDS)}"}}' if rng.random() < 0.1 else ""
    arrow = f" -> {', '.join(kind for _, kind in results)}" if results else ""
    colon = f" : {', '.join(kinds)}" if kinds or results else ""
    return f"{head}pto.{name} {', '.join(shown)}{words}{colon}{arrow}"


def micro(rng: Random) -> bytes:
    """A scope of vector instructions with the operands of their forms, each result under a name of its own."""
    lines = ['%m0 = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>',
             "%v0 = pto.vlds %u[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>"]  # fmt: skip
    for number in range(1, rng.randint(2, 9)):
        line = _instruction(rng.choice(_NAMES), rng)
        left, equals, right = line.partition(" = ")
        if equals:
            left = re.sub(r"%([a-z])\d", rf"%\g<1>{number + 3}", left) if rng.random() < 0.9 else left
            right = re.sub(r"%([vm])\d", r"%\g<1>0", right) if rng.random() < 0.9 else right
            line = left + equals + right
        else:
            line = re.sub(r"%([vm])\d", r"%\g<1>0", line)
        lines.append(line)
        if rng.random() < 0.1:
            lines[-1] = f"scf.for %i{number} = %c0 to %c64 step %c64 {{\n{lines[-1]}\n}}"
    return "\n".join([*_HEAD, *lines, "}", "return", "}", "}", ""]).encode()


def logical(rng: Random) -> bytes:
    """A scope of logical registers: examples of the forms with types and counts put in."""
    lines = ["%v = pto.vmi.vload %u[%c0] : !pto.ptr<f32, ub> -> !pto.vmi.vreg<64xf32>",
             "%mm = pto.vmi.create_mask %c64 : index -> !pto.vmi.mask<64xpred>"]  # fmt: skip
    for number in range(rng.randint(1, 8)):
        line = rng.choice(list(LOGICAL.values())).example
        lanes, element = "64", "f32"
        if rng.random() < 0.15:
            lanes, element = rng.choice(("64", "256", "1", "0", "65537")), rng.choice(("f32", "f16", "i8"))
        line = line.replace("<L", f"<{lanes}").replace("xT", f"x{element}").replace("<T", f"<{element}")
        line = (
            line.replace(": T", f": {element}")
            .replace(" T,", f" {element},")
            .replace("xU", f"x{rng.choice(_ELEMENTS)}")
        )
        line = line.replace("<M", "<64").replace("<C", "<8").replace("= C", f"= {rng.choice((1, 8, 0, 99))}")
        line = line.replace("= S", f"= {rng.choice((8, 1, 7))}")
        for name, known in (("%p", "%u"), ("%i", "%c0"), ("%n", "%c64"), ("%x", "%s"), ("%a", "%v"), ("%b", "%v"),
                            ("%c,", "%v,"), ("%m", "%mm")):  # fmt: skip
            head, equals, rest = line.partition(" = ")
            line = head + equals + rest.replace(name, known) if equals else line.replace(name, known)
        lines.append(re.sub(r"^%\w+", f"%r{number}", line))
    return "\n".join([*_HEAD, *lines, "}", "return", "}", "}", ""]).encode()

"""Random `.pto` texts: tiles, vector instructions, logical registers. Most can be read; some are wrong somewhere."""

from __future__ import annotations

import re
from random import Random

from core.execution import sync_random

from castsim.isa.pto.micro_forms import ROWS as MICRO
from castsim.languages.vmi.operations import VMI_ROWS as LOGICAL

_ELEMENTS = (
    "f32", "f16", "bf16", "i8", "si8", "ui8", "i16", "i32", "ui32", "i64", "f8E4M3FN", "f8E5M2", "hif8", "f4E2M1x2",
    "s4", "f64", "i7", "f8", "ui4",
)  # fmt: skip


def tile(rng: Random) -> bytes:
    """A kernel of loops and branches that can be read; what cannot comes of mutations."""
    kind = rng.choice((sync_random.SMALL, sync_random.LARGE))
    return sync_random.Maker(rng.randrange(1 << 30), kind).text().encode()


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

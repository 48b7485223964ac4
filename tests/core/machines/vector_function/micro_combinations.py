"""Every combination of types, modes and words that the micro level accepts, asked of its reader, and a text for each.

What is accepted is not looked up in tables: each combination is written and read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from castsim.isa.errors import CastsimError
from castsim.isa.pto.micro_forms import OPAQUE, ROWS, Place
from castsim.isa.pto.micro_words import CONVERSIONS, LEGAL, OF_OPERATION, WRITTEN, MicroForm, forms_of
from castsim.isa.pto.pto_parser import parse

SPELLINGS = {
    "f32": "f32", "f16": "f16", "bf16": "bf16", "e4m3fn": "f8E4M3FN", "e5m2": "f8E5M2", "hif8": "!pto.hif8",
    "e1m2": "!pto.f4E1M2x2", "e2m1": "!pto.f4E2M1x2", "bf16_pair": "!pto.bf16x2",
    **{f"i{n}": f"i{n}" for n in (8, 16, 32, 64)}, **{f"u{n}": f"ui{n}" for n in (8, 16, 32, 64)},
}  # fmt: skip
BITS = {"bf16_pair": 32, "f32": 32, "f16": 16, "bf16": 16, **{f"{k}{n}": n for k in "iu" for n in (8, 16, 32, 64)}}
ELEMENTS = (*SPELLINGS,)
RESULTS = 8192
"""The byte of the buffer from which on results lie: four slots for each combination, the first for what it stores."""
SLOT = 1024
SIZE = 0x30000
MASKS = 4096
"""The byte where images of predicates lie, 32 for each."""
INSIDE = tuple(sorted(name for name, row in ROWS.items() if row.place is Place.SCOPE and name not in OPAQUE))
NUMBERS = {
    "plt": [(-1,), (0,), (5,), (64,), (65,), (1000,)], "pltm": [(0, 0), (0, 70), (1, 70), (-1, 3), (2, 1000)],
    "vsunpack": [(0,), (1,)], "vzunpack": [(0,), (1,)], "vldus": [(8,)], "vstus": [(5,), (0,)], "vstas": [(0,)],
    "vsldb": [(1, 0), (2, 3), (1, 1)], "vsstb": [(1, 0), (2, 3), (1, 1)], "vshls": [(0,), (1,), (7,)],
    "vshrs": [(0,), (1,), (7,)], "vgather2": [(0,), (9,), (64,)], "vgatherb": [(0,), (3,), (8,)],
    "vscatter": [(0,), (9,), (64,)],
}  # fmt: skip
"""Values of whole numbers, in the order of the text, by the name without its width."""


def bits_of(element: str) -> int:
    return BITS.get(element, 8)


@dataclass(frozen=True)
class Combination:
    """One way to write an operation: elements of its first and second kind of register, widths of its masks, words."""

    name: str
    form: MicroForm
    element: str
    other: str
    mask: int
    half: int
    words: tuple[tuple[str, str], ...]
    results: int
    numbers: tuple[int, ...]

    @property
    def family(self) -> str:
        """The name without the width of its lanes."""
        return ROWS[self.name].family or self.name

    def word(self, kind: str) -> str | None:
        return dict(self.words).get(kind)

    @property
    def updates(self) -> bool:
        """Whether it hands on a pointer."""
        return "P" in self.form.results[: self.results]


def accepted(name: str) -> Iterator[Combination]:
    """Yield the combinations of an operation that the reader takes."""
    seen = set()
    for form in forms_of(name):
        refused: set[str] = set()
        """Elements of the first register that the operation never takes."""
        for kinds in _kinds(name, form):
            if kinds[0] in refused:
                continue
            trials = [Combination(name, form, *kinds, words, form_results, ()) for words in _words(name, form, kinds)
                      for form_results in range(len(form.results) - form.optional, len(form.results) + 1)]  # fmt: skip
            if not trials:
                continue
            # Whether types fit rests on words only where these are modes.
            few = trials if "dist" in (*form.words, *form.keys) else trials[:: max(1, len(trials) // 3)]
            if not any(_is_read(each, refused) for each in few):
                continue
            for each in trials:
                key = (form, *kinds, each.words, each.results)
                if key not in seen and _is_read(each):
                    seen.add(key)
                    yield each


def _kinds(name: str, form: MicroForm) -> Iterator[tuple[str, str, int, int]]:
    letters = {*form.operands, *form.results}
    width = ROWS[name].width
    elements = ELEMENTS if letters & set("VPTU") else ("f32",)
    others = ELEMENTS if "U" in letters else ("f32",)
    if name == "vcvt":
        pairs = list(CONVERSIONS)
    elif name.startswith(("vgather", "vscatter")):
        pairs = list(product(elements, [each for each in ELEMENTS if each[0] in "iu"]))
    else:
        pairs = list(product(elements, others))
    masks = (8, 16, 32) if letters & set("Mmk") else (32,)
    halves = (8, 16, 32) if "k" in letters else (32,)
    for (element, other), mask, half in product(pairs, masks if width is None else (width,), halves):
        yield element, other, mask, half


def _words(name: str, form: MicroForm, kinds: tuple[str, str, int, int]) -> Iterator[tuple[tuple[str, str], ...]]:
    choices: list[list[tuple[str, str] | None]] = []
    for kind in (*form.words, *form.keys):
        legal = tuple(OF_OPERATION[name]) if kind == "dist" else LEGAL.get(kind, ("0",))
        if name == "vcvt":
            legal = CONVERSIONS[kinds[0], kinds[1]].words[kind] or ()
        found: list[tuple[str, str] | None] = [(kind, word) for word in legal]
        choices.append([*found, None] if kind in form.free else found)
    for chosen in product(*choices):
        yield tuple(each for each in chosen if each is not None)


def _is_read(each: Combination, refused: set[str] | None = None) -> bool:
    try:
        parse(program([each]))
    except CastsimError as error:
        if refused is not None and "does not take elements" in error.message:
            refused.add(each.element)
        return False
    return True


def scalar_type(element: str) -> str:
    return f"i{bits_of(element)}" if element[0] in "iu" else SPELLINGS[element]


def vector(element: str) -> str:
    return f"!pto.vreg<{2048 // bits_of(element)}x{SPELLINGS[element]}>"


def pointer(element: str) -> str:
    return f"!pto.ptr<{SPELLINGS[element]}, ub>"


def scalar_code(element: str) -> int:
    """The code of the scalar operand: -3 of integers, 1.5 of floats."""
    floats = {"f32": 0x3FC00000, "f16": 0x3E00, "bf16": 0x3FC0}
    return floats.get(element, (1 << bits_of(element)) - 3)


def program(each: list[Combination]) -> str:
    """A function that runs each of them on the registers at bytes 0, 256, 512 and stores what it yields.

    All of the buffer's first 192 KiB come from an argument and go back to it.
    """
    head = [
        f"%size = arith.constant {SIZE} : i64",
        "%l0 = arith.constant 0 : i64",
        "%l1 = arith.constant 1 : i64",
        "%zero = arith.constant 0 : index",
        "%all = pto.castptr %l0 : i64 -> !pto.ptr<ui8, ub>",
        "pto.mte_gm_ub %x, %all, %l0, %size nburst(%l1, %size, %size) : "
        "!pto.ptr<ui8, gm>, !pto.ptr<ui8, ub>, i64, i64, i64, i64, i64",
        "pto.vecscope {",
        '%every = pto.pset_b8 "PAT_ALL" : !pto.mask<b8>',
    ]
    body = [line for number, one in enumerate(each) for line in _statement(one, number)]
    tail = [
        "}",
        "pto.mte_ub_gm %all, %x, %size nburst(%l1, %size, %size) : "
        "!pto.ptr<ui8, ub>, !pto.ptr<ui8, gm>, i64, i64, i64, i64",
        "return",
    ]
    lines = "\n".join([*head, *body, *tail])
    return f"func.func @f(%x: !pto.ptr<ui8, gm>) attributes {{pto.kernel}} {{\n{lines}\n}}\n"


def _statement(one: Combination, number: int) -> list[str]:
    """Operands, the operation, and the stores of its results."""
    lines: list[str] = []
    prefix = f"%n{number}_"
    kinds = {
        "V": vector(one.element), "U": vector(one.other), "M": f"!pto.mask<b{one.mask}>",
        "m": f"!pto.mask<b{one.mask}>", "k": f"!pto.mask<b{one.half}>", "P": pointer(one.element),
        "T": scalar_type(one.element), "I": "index", "N": "i32", "A": "!pto.align",
    }  # fmt: skip
    items: list[str] = []
    types: list[str] = []
    counts = {"register": 0, "mask": 0, "number": 0}
    words = dict(one.words)
    operand = 0
    for item in one.form.items:
        if len(item) > 1:
            word = words.pop(item, None)
            items += [] if word is None else [f'"{word}"']
            continue
        name = f"{prefix}{operand}"
        lines += _operand(one, item, name, kinds[item], counts, number, is_offset=operand == one.form.offset)
        if operand == one.form.offset:
            items[-1] += f"[{name}]"
            types += [kinds[item]] if one.form.offset_typed else []
        else:
            items.append(name)
            types.append(kinds[item])
        operand += 1
    text = f"pto.{one.name} {', '.join(items)}"
    if words:
        entries = ", ".join(f'{WRITTEN.get(key, key)} = "{word}"' for key, word in words.items())
        text += f" {{{entries}}}"
    results = one.form.results[: one.results]
    names = [f"{prefix}r{at}" for at in range(len(results))]
    listed = ", ".join(kinds[letter] for letter in results)
    if types:
        text += f" : {', '.join(types)}" + (f" -> {listed}" if listed else "")
    elif listed:
        text += f" : {listed}"
    lines.append(f"{', '.join(names)} = {text}" if names else text)
    for at, (name, letter) in enumerate(zip(names, results, strict=True)):
        lines += _kept(name, letter, kinds[letter], RESULTS + (4 * number + 1 + at) * SLOT)
    return lines


def _operand(
    one: Combination, letter: str, name: str, kind: str, counts: dict[str, int], number: int, *, is_offset: bool
) -> list[str]:
    if letter in "VU":
        at = counts["register"]
        counts["register"] += 1
        return [
            f"{name}_a = arith.constant {(3 if letter == 'U' else at) * 256} : i64",
            f"{name}_p = pto.castptr {name}_a : i64 -> !pto.ptr<ui8, ub>",
            f"{name}_b = pto.vlds {name}_p[%zero] : !pto.ptr<ui8, ub> -> !pto.vreg<256xui8>",
            f"{name} = pto.vbitcast {name}_b : !pto.vreg<256xui8> -> {kind}",
        ]
    if letter in "Mmk":
        at = counts["mask"]
        counts["mask"] += 1
        return [
            f"{name}_a = arith.constant {MASKS + 128 * (one.mask // 8) + 32 * at} : i64",
            f"{name}_p = pto.castptr {name}_a : i64 -> !pto.ptr<ui8, ub>",
            f'{name} = pto.plds {name}_p[%zero], "NORM" : !pto.ptr<ui8, ub>, index -> {kind}',
        ]
    if letter == "P":
        stores = not one.form.results or one.form.results[0] == "P" or one.name.startswith("vst")
        return [
            f"{name}_a = arith.constant {RESULTS + 4 * number * SLOT if stores else 1024} : i64",
            f"{name} = pto.castptr {name}_a : i64 -> {kind}",
        ]
    if letter == "A":
        return [f"{name} = pto.init_align : !pto.align"]
    if letter == "T":
        value = "1.5" if "f" in kind else "-3"
        return [f"{name} = arith.constant {value} : {kind}"]
    if is_offset:
        return [f"{name} = arith.constant {64 if one.updates else 32 * 8 // bits_of(one.element) * 4} : {kind}"]
    at = counts["number"]
    counts["number"] += 1
    value = one.numbers[at] if one.numbers else 0
    return [f"{name} = arith.constant {value} : {kind}"]


def _kept(name: str, letter: str, kind: str, place: int) -> list[str]:
    where = [
        f"{name}_a = arith.constant {place} : i64",
        f"{name}_p = pto.castptr {name}_a : i64 -> !pto.ptr<ui8, ub>",
    ]
    store = f"pto.vsts {name}_b, {name}_p[%zero], %every : !pto.vreg<256xui8>, !pto.ptr<ui8, ub>, !pto.mask<b8>"
    if letter in "VU":
        return [*where, f"{name}_b = pto.vbitcast {name} : {kind} -> !pto.vreg<256xui8>", store]
    if letter in "Mmk":
        return [*where, f'pto.psts {name}, {name}_p[%zero], "NORM" : {kind}, !pto.ptr<ui8, ub>, index']
    if letter == "A":
        return []
    shown = name
    if letter == "P":
        where += [f"{name}_i = pto.castptr {name} : {kind} -> i64", f"{name}_t = arith.trunci {name}_i : i64 to i32"]
        shown = f"{name}_t"
    spread = f"{name}_v = pto.vbr {shown} : i32 -> !pto.vreg<64xi32>"
    return [*where, spread, f"{name}_b = pto.vbitcast {name}_v : !pto.vreg<64xi32> -> !pto.vreg<256xui8>", store]

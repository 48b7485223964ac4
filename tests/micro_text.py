"""Random statements of the micro level: every operation in every form, with operands that fit."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from castsim.isa.pto.micro_forms import GROUPS, ROWS, Place
from castsim.isa.pto.micro_words import (
    CONVERSIONS,
    LEGAL,
    NUMBERS,
    OF_OPERATION,
    SYNONYMS,
    WRITTEN,
    MicroForm,
    forms_of,
)

SPELLINGS = {
    "f32": ["f32"], "f16": ["f16"], "bf16": ["bf16"], "e4m3fn": ["f8E4M3FN"], "e5m2": ["f8E5M2"],
    "hif8": ["!pto.hif8"], "e1m2": ["!pto.f4E1M2x2"], "e2m1": ["!pto.f4E2M1x2"],
    "bf16_pair": ["!pto.bf16x2"],
    **{f"i{n}": [f"i{n}", f"si{n}"] for n in (8, 16, 32, 64)}, **{f"u{n}": [f"ui{n}"] for n in (8, 16, 32, 64)},
}  # fmt: skip
BITS = {"bf16_pair": 32, "f32": 32, "f16": 16, "bf16": 16, **{f"{k}{n}": n for k in "iu" for n in (8, 16, 32, 64)}}


def bits_of(element: str) -> int:
    """Bits of a lane."""
    return BITS.get(element, 8)


@dataclass
class Written:
    """A program of one statement."""

    name: str
    chosen: random.Random
    form: MicroForm
    arguments: list[str] = field(default_factory=list)

    def value(self, kind: str) -> str:
        """A new argument of the function."""
        name = f"%v{len(self.arguments)}"
        self.arguments.append(f"{name}: {kind}")
        return name

    def vector(self, element: str) -> str:
        """The type of a register."""
        return f"!pto.vreg<{2048 // bits_of(element)}x{self.chosen.choice(SPELLINGS[element])}>"


def program_of(name: str, seed: int) -> str:
    """A function with one statement of an operation in some form."""
    chosen = random.Random(f"{name} {seed}")
    made = Written(name, chosen, chosen.choice(forms_of(name)))
    statement = _statement(made)
    inside = ROWS[name].place is not Place.OUTSIDE
    body = f"pto.vecscope {{\n{statement}\n}}" if inside else statement
    return f"func.func @f({', '.join(made.arguments)}) attributes {{pto.kernel}} {{\n{body}\nreturn\n}}\n"


def _statement(made: Written) -> str:
    kinds, attributes = _kinds(made)
    items: list[str] = []
    types: list[str] = []
    for item in _indexed(made.form):
        if isinstance(item, str):
            word = attributes.pop(item, None)
            items += [] if word is None else [word if word.isdecimal() else f'"{word}"']
            continue
        letter, position = item
        value = made.value(kinds[letter])
        if position == made.form.offset:
            items[-1] += f"[{value}]"
            if made.form.offset_typed or made.chosen.random() < 0.3:
                types.append(kinds[letter])
        else:
            items.append(value)
            types.append(kinds[letter])
    text = f"pto.{made.name} {', '.join(items)}"
    text += _groups(made, types)
    if attributes:
        entries = [f'{WRITTEN.get(key, key)} = "{word}"' for key, word in attributes.items()]
        made.chosen.shuffle(entries)
        text += f" {{{', '.join(entries)}}}"
    return _with_types(made, text, types, kinds)


def _with_types(made: Written, text: str, types: list[str], kinds: dict[str, str]) -> str:
    """Put results and types around a statement, as many results as are optional or less."""
    count = len(made.form.results) - made.chosen.randint(0, made.form.optional)
    results = [kinds[f">{letter}"] if f">{letter}" in kinds else kinds[letter] for letter in made.form.results[:count]]
    head = ", ".join(f"%r{number}" for number in range(count))
    listed = ", ".join(results)
    if len(results) > 1 and made.chosen.random() < 0.5:
        listed = f"({listed})"
    if types:
        text += f" : {', '.join(types)}" + (f" -> {listed}" if results else "")
    elif results:
        text += f" : {listed}"
    return f"{head} = {text}" if results else text


def _indexed(form: MicroForm) -> list[str | tuple[str, int]]:
    found: list[str | tuple[str, int]] = []
    number = 0
    for item in form.items:
        if len(item) > 1:
            found.append(item)
        else:
            found.append((item, number))
            number += 1
    return found


def _groups(made: Written, types: list[str]) -> str:
    text = ""
    for group in made.form.groups:
        for _ in range(1 if group == "nburst" else made.chosen.randint(0, 2 if group == "loop" else 1)):
            count = made.chosen.choice(GROUPS[group])
            kinds = ["f32", "i64", "i64"][:count] if group == "pad" else ["i64"] * count
            text += f" {group}({', '.join(made.value(kind) for kind in kinds)})"
            prefix = f"{group} " if group in ("loop", "pad") else ""
            types += [f"{prefix}{kinds[0]}", *kinds[1:]]
    return text


_PACKED = {"i32": "u16", "u32": "u16", "i16": "u8", "u16": "u8"}
_UNPACKED = {"i8": "i16", "i16": "i32", "u8": "u16", "u16": "u32"}


def _kinds(made: Written) -> tuple[dict[str, str], dict[str, str]]:
    """Types of the letters and words of the kinds; results that differ from operands stand under `>LETTER`."""
    name, chosen, form = made.name, made.chosen, made.form
    scalars = [each for each in ROWS[name].elements if each in BITS and each != "bf16_pair"]
    element = chosen.choice((scalars if "T" in form.items else ROWS[name].elements) or ("f32", "f16", "u8", "i32"))
    words = {kind: _spelled(chosen, kind, chosen.choice(LEGAL[kind])) for kind in form.words if kind in LEGAL}
    words |= {kind: str(chosen.randint(0, 31)) for kind in form.words if kind in NUMBERS}
    if name == "vtrc":
        words["rnd"] = chosen.choice("RAFCZ")
    other = element
    if name == "vexpdif":
        words["part"] = chosen.choice(("EVEN", "PART_ODD"))
        other = "f32"
    if name == "vcvt":
        pair = CONVERSIONS[chosen.choice(sorted(CONVERSIONS))]
        element, other = pair.src, pair.dst
        words = {key: _spelled(chosen, key, chosen.choice(legal)) for key, legal in pair.words.items() if legal}
    elif form.keys and chosen.random() < 0.5:
        words |= {key: chosen.choice(LEGAL[key]) for key in form.keys if key in LEGAL}
    if name == "vpack":
        other = _PACKED[element]
    elif name in ("vsunpack", "vzunpack"):
        other = _UNPACKED[element]
    elif name in ("vselr", "vshl", "vshr"):
        other = f"{chosen.choice('iu')}{bits_of(element)}"
    elif name in ("vgather2", "vgather2_bc", "vgatherb", "vscatter"):
        other = "u32" if name == "vgatherb" else f"u{bits_of(element)}"
    suffix = name.rpartition("_b")[2]
    mask = int(suffix) if suffix.isdecimal() else min(32, bits_of(element))
    if "dist" in (*form.words, *form.keys):
        element, mask = _distributed(made, element, mask, words)
    vector, dual = made.vector(element), made.vector(other)
    space = chosen.choice(SPELLINGS[element])
    whole = chosen.choice(("index", "i32", "i64"))
    half = mask // 2 if name == "ppack" and mask > 8 else mask * 2 if name == "punpack" and mask < 32 else mask
    pointers = {"P": f"!pto.ptr<{space}, ub>", "G": f"!pto.ptr<{space}, gm>"}
    pointers["Q"] = pointers["P"]
    scalar = "i64" if name == "castptr" else "f32"
    of_scalar = f"i{bits_of(element)}" if element[0] in "iu" else SPELLINGS[element][0]
    return {
        "V": vector, "U": dual, "M": f"!pto.mask<b{mask}>", "m": f"!pto.mask<b{mask}>", "k": f"!pto.mask<b{half}>",
        **pointers, "T": of_scalar, "I": whole if form.offset is None else "index", "N": whole,
        "L": "i64", "B": "i1", "S": scalar, "A": "!pto.align",
    }, words  # fmt: skip


def _distributed(made: Written, element: str, mask: int, words: dict[str, str]) -> tuple[str, int]:
    """Choose a mode, and an element and a mask that it has."""
    modes = {name: mode for name, mode in OF_OPERATION[made.name].items() if mode.supported}
    name = made.chosen.choice(sorted(modes))
    mode = modes[name]
    if "dist" in made.form.free and made.chosen.random() < 0.4:
        return element, mask
    words["dist"] = name
    if mode.lanes:
        fitting = [each for each in ("f32", "f16", "bf16", "i8", "u16", "i64") if bits_of(each) in mode.lanes]
        element = made.chosen.choice(fitting)
        mask = mode.mask or min(32, bits_of(element))
    return element, mode.mask or mask


def _spelled(chosen: random.Random, kind: str, word: str) -> str:
    """A word, or another name of it."""
    others = [other for other, short in SYNONYMS.get(kind, {}).items() if short == word]
    return chosen.choice([word, *others])

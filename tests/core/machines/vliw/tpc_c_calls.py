"""Calls of intrinsics by kinds of arguments, as the vendor's tests list them, and the instructions that they become."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice, product

from kit.tpc_text import plain, target

from castsim.isa.errors import CastsimError
from castsim.isa.tpc.parser import canonical_text
from castsim.languages.tpc_c.code import Value
from castsim.languages.tpc_c.compiling import Compiler
from castsim.languages.tpc_c.source_text import Parsed
from castsim.tools.tpc_compiler.c_language import (
    BOOL,
    FLOAT,
    INDEX,
    INT,
    TENSOR,
    UNSIGNED,
    CType,
    Group,
    Mask,
    Pointer,
    Scalar,
    call_named,
    constants,
    group_of,
    type_named,
    vector_of,
)

Row = Mapping[str, str]
MOST_TYPES = 8000
"""Combinations of types that are tried for one call."""

_NUMBERS = {"V": 4, "D": 8, "A": 16, "S": 5, "I": 3, "VP": 2, "SP": 2, "AD": 1, "Z": 4}
_CAST = re.compile(r"\(([a-z_0-9]+)\)(.+)")


def _elements(name: str) -> list[str]:
    """The element types that the name of a function speaks of, the first one the likeliest."""
    found = call_named(name)
    words = (
        [found.element, found.result]
        if hasattr(found, "element")
        else (
            [found.source, found.target] if found is not None else re.findall(r"\b(?:bf16|[fiu](?:32|16|8|4))\b", name)
        )
    )
    return [each for each in dict.fromkeys(words) if each != "i1"] or ["f32"]


def _vectors(name: str) -> list[CType]:
    """Types that a vector argument may have."""
    elements = _elements(name)
    aggregates = re.fullmatch(r"convert_(\w+?)_to_(\w+)", name)
    own = [type_named(each) for each in aggregates.groups()] if aggregates else []
    if "x2" in name and elements == ["f32"]:
        return [group_of("f32", 2), group_of("f32", 1)]
    counts = [group_of(element, count) for count in (1, 2, 4) for element in elements]
    sums = ["f32"] if "f" in elements[0] else ["i32", "u32", "i16", "u16"]
    wide = [group_of(element, count) for count in (2, 4) for element in sums]
    product_ = any(each in name for each in ("mac", "madd", "mul"))
    shifts = [] if product_ else [group_of(element, 1) for element in ("i32", "i16", "i8")]
    masks = [Mask(256), Mask(64), Mask(128)] if not product_ else []
    pairs = ("uint64_float64_pair_t", "ushort128_bfloat128_pair_t", "ushort128_half128_pair_t")
    mixed = [type_named(each) for each in pairs] if "lut" in name else []
    if "cnvrt" in name:
        mixed = [Group((vector_of(elements[0]), vector_of(f"i{Scalar(elements[0]).bits}")))]
    return list(dict.fromkeys(each for each in (*own, *counts, *shifts, *wide, *masks, *mixed) if each is not None))


def _literal(text: str) -> Value | None:
    """A number, a cast of one, or constants of the header joined by bars; None for what is none."""
    cast = _CAST.fullmatch(text)
    kind = type_named(cast[1]) if cast else None
    inner = cast[2] if cast else text
    try:
        number = float(inner.rstrip("fF")) if re.search(r"\.|e[-+]?\d", inner) and "0x" not in inner else int(inner, 0)
        found: CType = FLOAT if isinstance(number, float) else INT
        return Value(kind if isinstance(kind, Scalar) else found, const=number)
    except ValueError:
        pass
    total = 0
    for word in re.split(r"[|+]", inner.replace("(", "").replace(")", "")):
        if word.strip() not in constants():
            return None
        total |= constants()[word.strip()]
    return Value(INT, const=total)


def _scalars(name: str, place: int) -> list[Value]:
    kinds = dict.fromkeys((*(Scalar(each) for each in _elements(name) if each not in ("i4", "u4")), INT, FLOAT))
    return [*(Value(each, f"%s.a{place}") for each in kinds), Value(Pointer(INT, "global"), f"%ad.a{place}")]


def _registers(name: str, place: int) -> list[Value]:
    found = []
    for each in _vectors(name):
        file = "vp" if isinstance(each, Mask) else {1: "v", 2: "d", 4: "a"}[len(getattr(each, "members", "1"))]
        found.append(Value(each, f"%{file}.a{place}"))
    return found


def _values(row: Row, kind: str, place: int) -> list[Value]:
    """What an argument of a kind may be; a variable that a test declares twice may be listed under the wrong kind."""
    name = row["intrinsic"]
    if kind == "V" and "_l_v" in name and place == 0:  # an address of local memory
        addresses = re.findall(r"0x[0-9a-f]+", row["expected_instruction"])
        return [*(Value(UNSIGNED, const=int(each, 16)) for each in addresses), *_scalars(name, place)]
    if kind == "V":
        return [*_registers(name, place), *_scalars(name, place)]
    if kind == "S":
        return [*_scalars(name, place), *_registers(name, place)]
    if kind == "SP":
        return [Value(BOOL, f"%sp.a{place}")]
    if kind == "VP":
        lanes = [Mask(2048 // Scalar(each).bits) for each in _elements(name) if Scalar(each).bits in (8, 16, 32)]
        return [Value(each, f"%vp.a{place}") for each in dict.fromkeys((*lanes, Mask(256), Mask(64), Mask(128)))]
    if kind == "I":
        return [Value(INDEX, f"%i.a{place}")]
    if kind == "tensor":
        return [Value(TENSOR, const=number) for number in range(2)]
    literal = _literal(kind)
    return [] if literal is None else [literal]


@lru_cache(maxsize=8192)
def _without_numbers(text: str, generation: str) -> str:
    """An instruction of the front end, canonical, register numbers dropped as the table drops them."""
    named = re.sub(
        r"%(v|vp|sp|s|i|ad|d|a|z)\.\w+(?:\.\d)?", lambda found: f"{found[1].upper()}{_NUMBERS[found[1].upper()]}", text
    )
    printed = canonical_text(named, target(generation).dialect)
    (slot,) = [slot for slot in printed.split("; ") if slot != "nop"] or [""]
    files = r"\b(VP|SP|AD|V|D|A|S|I|Z|M)\d+\b"
    return re.sub(files, lambda found: f"{found[1]}n" if found[1] in "MZ" else found[1], slot)


def _agrees(printed: str, expected: str) -> bool:
    pattern = re.escape(plain(expected)).replace(r"mov_dg\ ", r"mov_dg[ .]")
    pattern = re.sub(r"(?<![\w])_(?![\w])", r"[A-Z_]+\\w*", pattern)
    pattern = re.sub(r"\\-0x([0-9a-f]+)", lambda found: hex((1 << 32) - int(found[1], 16)), pattern)
    return re.fullmatch(pattern, plain(printed)) is not None


def instructions(name: str, arguments: tuple[Value, ...], generation: str) -> list[str]:
    """The instructions that a call becomes, register numbers dropped."""
    compiler = Compiler(Parsed("call.c", None, {}), target(generation), frozenset())
    compiler.called(name, list(arguments))
    return [_without_numbers(line.text, generation) for line in compiler.lines if not line.is_label]


def calls(row: Row) -> Iterator[tuple[Value, ...]]:
    """The arguments of a row, with every type that they may have."""
    kinds = [each.strip() for each in row["arguments"].split(";") if each.strip()]
    ways = [_values(row, kind, place) for place, kind in enumerate(kinds)]
    yield from islice(product(*ways), MOST_TYPES)


def lowered(row: Row, generation: str) -> tuple[bool, str]:
    """Whether a row gives its instruction on a generation, and what it gives, or the last refusal."""
    found = "no such arguments"
    for arguments in calls(row):
        try:
            lines = instructions(row["intrinsic"], arguments, generation)
        except CastsimError as error:
            if found == "no such arguments" or "::" in found:
                found = f":: {error.message}"
            continue
        if any(_agrees(line, row["expected_instruction"]) for line in lines):
            return True, ""
        if "::" in found or found == "no such arguments":
            found = " | ".join(lines)
    return False, found

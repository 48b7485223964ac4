"""The intrinsics by their rows, and the rule by which a name says unit, types and operation.

`UNIT_TYPE_OPERATION[_S]`: unit v, s or i; type of the operation; its words; b or vb for a predicate of one bit or of
lanes. `v_convert_A_to_B..` are conversions. Source: the rows of `targets/tpc_c_intrinsics.csv`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache

from castsim.isa.formats import FORMATS, FloatFormat
from castsim.isa.tpc.instructions import forms_of
from castsim.targets.description import Status, Table
from castsim.targets.tpc_compiler import csv_rows
from castsim.tpc_compiler.tpc_c.types import SHORT

_TYPES = "|".join(sorted((*SHORT, "f8_143", "f8_152", "i1"), key=len, reverse=True))
_NAME = re.compile(rf"([vsi])_({_TYPES})_(\w+)")
_SELECT = re.compile(rf"(sel2?_[a-z]+)_({_TYPES})")
_CONVERT = re.compile(rf"([vs])_convert_(u?int(?:8|16|32)|{_TYPES})_to_({_TYPES})(_all|_single|_x2|_x4)?(?:_(b|vb))?")
_PRODUCTS = ("product", "pairs", "accumulate", "add_product")
"""Shapes of calls whose words are switches of the instruction."""
_SUFFIXES = ("_partial", "_rmw", "_direct")


class Intrinsic(Table):
    """An operation of the header: its instruction, the shape of its call, words that it always has."""

    operation: str
    units: str
    mnemonic: str
    shape: str
    words: str
    generation: str
    status: Status
    source: str


@cache
def intrinsics() -> dict[str, Intrinsic]:
    """Return the rows by operation."""
    return {row.operation: row for row in csv_rows("tpc_c_intrinsics.csv", Intrinsic)}


@dataclass(frozen=True, slots=True)
class IntrinsicCall:
    """A name taken apart. `element` is the type of the operation, `result` that of a selection's lanes."""

    row: Intrinsic
    unit: str
    element: str
    result: str
    lanewise: bool
    extras: frozenset[str]


@dataclass(frozen=True, slots=True)
class IntrinsicConversion:
    """The name of a conversion taken apart: `integer` is the source of CONVERT_INT, else empty; `form` as written."""

    unit: str
    source: str
    target: str
    form: str
    lanewise: bool
    integer: str


def _format(word: str) -> str:
    return SHORT.get(word, word)


def call_named(name: str) -> IntrinsicCall | IntrinsicConversion | None:
    """Return what the name of a function says, None if the rule gives it no meaning."""
    found = _CONVERT.fullmatch(name)
    if found is not None:
        integer = found[2] if "int" in found[2] else ""
        source = integer.replace("uint", "u").replace("int", "i") if integer else _format(found[2])
        return IntrinsicConversion(found[1], source, _format(found[3]), (found[4] or "")[1:], found[5] == "vb", integer)
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    unit, element, rest = found[1], _format(found[2]), found[3]
    lanewise = rest.endswith("_vb")
    rest = re.sub(r"_v?b$", "", rest)
    extras = set()
    if re.match(r"(?:ld|st)_tnsr", rest):
        while (suffix := next((each for each in _SUFFIXES if rest.endswith(each)), None)) is not None:
            extras.add(suffix[1:])
            rest = rest.removesuffix(suffix)
    result, select = element, _SELECT.fullmatch(rest)
    if select is not None:
        rest, element = select[1], _format(select[2])
    if unit == "v" and element == "i1" and rest.startswith("mov_"):
        rest = "mov"
    row = intrinsics().get(rest)
    if row is None or unit not in row.units or not _has_product(row, element):
        return None
    return IntrinsicCall(row, unit, element, result, lanewise, frozenset(extras))


def _has_product(row: Intrinsic, element: str) -> bool:
    """Whether the instruction has the words of a product for a type: i8 has no wider accumulator than its own."""
    if row.shape not in _PRODUCTS or not row.words:
        return True
    wide = "acc_fp32" if isinstance(FORMATS.get(element), FloatFormat) else "acc_i32"
    wanted = {wide if word == "acc_32" else word for word in row.words.split()}
    return any(
        element in form.types and wanted.issubset(switch.name for switch in form.switches)
        for form in forms_of(row.mnemonic)
    )


def near(name: str, known: list[str]) -> list[str]:
    """Return names that an unknown one may have been meant for."""
    found = _NAME.fullmatch(name)
    if found is not None:
        rest = re.sub(r"_v?b$", "", found[3])
        element = _format(found[2])
        options = [each for each, row in intrinsics().items() if found[1] in row.units and _has_product(row, element)]
        suffix = "_b" if found[1] == "v" else ""
        return [f"{found[1]}_{found[2]}_{each}{suffix}" for each in difflib.get_close_matches(rest, options, 3)]
    return difflib.get_close_matches(name, known, 4)

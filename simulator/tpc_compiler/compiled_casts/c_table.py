"""The table of C-level casts of a generation, as the vendor's document draws it, generated from the target's tables.

A cell names the casts of LLVM IR that the one instruction of a pair stands for, and the instruction: `-C` is CONVERT,
`-C-INT` CONVERT_INT, `N/A` none (the compiler then goes through mediators). The words are the document's: `fptoi` is
the signed conversion, a change of sign alone counts as `zext`, and a conversion to a narrower type than that of equal
width is written as both steps, `trunc(fptoi)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.compiled_casts.paths import HopMethod, Path, direct_hop, path_of
from castsim.tpc_compiler.compiled_casts.vector_types import bits_of, is_float, is_signed

NONE = "N/A"
_SUFFIX = {HopMethod.CONVERT: "C", HopMethod.NARROW: "C-INT"}
_WIDTHS = range(8, 33)
_SPELLED = {"f32": "FP32", "bf16": "BF16", "f16": "FP16", "f8_143": "FP8_143", "f8_152": "FP8_152"}


@dataclass(frozen=True, slots=True)
class CompiledCastTable:
    """Cells by pairs of element types, and the paths of the pairs without an instruction."""

    target: VliwTarget
    elements: tuple[str, ...]
    cells: dict[tuple[str, str], str]
    mediated: dict[tuple[str, str], Path]

    def markdown(self) -> str:
        """Return the table as Markdown, sources down, destinations across."""
        heads = [spelled(element) for element in self.elements]
        lines = [["From/To", *heads], ["---"] * (len(heads) + 1)]
        lines += [[spelled(src), *(self.cells[src, dst] for dst in self.elements)] for src in self.elements]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cast_table(target: VliwTarget) -> CompiledCastTable:
    """Return the table of a generation."""
    elements = table_elements(target)
    pairs = [(src, dst) for src in elements for dst in elements]
    cells = {pair: cell_of(*pair, target) for pair in pairs}
    mediated = {pair: path_of(*pair, target) for pair in pairs if cells[pair] == NONE and pair[0] != pair[1]}
    return CompiledCastTable(target, elements, cells, mediated)


def table_elements(target: VliwTarget) -> tuple[str, ...]:
    """Return the types of the table: floats, signed, unsigned, each from wide to narrow."""
    elements = [element for element in target.elements.formats if bits_of(element) in _WIDTHS]
    kinds = (is_float, lambda e: not is_float(e) and is_signed(e), lambda e: not is_signed(e))
    return tuple(element for kind in kinds for element in sorted(filter(kind, elements), key=bits_of, reverse=True))


def spelled(element: str) -> str:
    """Return the document's name of a type: FP32, BF16, INT32, UINT8."""
    if element in _SPELLED:
        return _SPELLED[element]
    return f"{'INT' if is_signed(element) else 'UINT'}{bits_of(element)}"


def cell_of(src: str, dst: str, target: VliwTarget) -> str:
    """Return one cell."""
    hop = direct_hop(src, dst, target) if src != dst else None
    return NONE if hop is None else f"{expression(src, dst)}-{_SUFFIX[hop.means]}"


def expression(src: str, dst: str) -> str:
    """Return the casts of LLVM IR from one type to another in the document's words."""
    before, after = bits_of(src), bits_of(dst)
    if is_float(src) and is_float(dst):
        return "fptrunc(fpext)" if before == after else "fpext" if before < after else "fptrunc"
    if is_float(src):
        single = "fptoi" if is_signed(dst) else "fptoui"
        return f"trunc({single})" if after < before else single
    if is_float(dst):
        single, widening = ("sitofp", "sext") if is_signed(src) else ("uitofp", "zext")
        if before == after:
            return single
        return f"{single}({widening})" if before < after else f"fptrunc({single})"
    if after < before:
        return "trunc"
    return "sext" if is_signed(src) and is_signed(dst) else "zext"

"""Instructions of the text as time sees them: what they are, the bytes of their access.

Source: docs/reference/micro.md 6.2.
"""

from __future__ import annotations

import re

from castsim.isa.pto.micro.forms import OPAQUE
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import AlignType, MaskType, PointerType, ScalarType, VectorType
from castsim.machines.vector_function.scopes.extents import MASK_WIDTH, REGISTER_BYTES
from castsim.machines.vector_function.scopes.scope import Instruction, Kind

_LOADS = frozenset(("vlds", "vldsx2", "vsldb", "vldus", "plds", "pldi"))
_STORES = frozenset(
    (
        *("vsts", "vstsx2", "vsstb", "vstus", "vstur", "vstas", "vstar", "psts", "psti", "vscatter"),
        *OPAQUE,  # no text times them: assumed to take what their neighbours take
    )
)
_FREE = frozenset(
    (
        *("plt", "pltm", "pset", "pge", "pand", "por", "pxor", "pnot", "psel", "pmov", "ppack", "pintlv", "pdintlv"),
        *("pbitcast", "vbitcast", "init_align", "vldas", "sprclr"),
    )
)

_PARTS = {"UNPK4": 4, "UNPK": 2, "US": 2, "PK4": 4, "PK": 2}
_MULTIPLES = {"DINTLV": 2, "BDINTLV": 2, "DS": 2, "INTLV": 2}
_MASK_BYTES = REGISTER_BYTES // 8
_BLOCKS_OF_ELEMENTS = 8
"""Elements that a load E2B spreads over the blocks of a register."""


def instruction_of(node: MicroOperation) -> Instruction:
    """Return an instruction of the text."""
    name = MASK_WIDTH.sub("", node.mnemonic)
    results = [kind for kind in node.result_types if not isinstance(kind, PointerType | ScalarType | AlignType)]
    masks = bool(results) and all(isinstance(kind, MaskType) for kind in results)
    word = node.word("barrier" if name == "mem_bar" else "dist") or ""
    kind = _kind(name)
    return Instruction(
        mnemonic=name,
        kind=kind,
        width=_width(node),
        word=word,
        size=_bytes(node, name, word) if kind in (Kind.LOAD, Kind.STORE) else 0,
        updates=kind is Kind.LOAD and any(isinstance(each, PointerType) for each in node.result_types),
        unpacks=kind is Kind.LOAD and word.startswith("UNPK"),
        masks=masks,
        integers=_integers(node),
        line=node.span.line,
        text=_text(node),
    )


def _text(node: MicroOperation) -> str:
    """Return an instruction as reports name it: its elements, or those it converts, and its words."""
    kinds = (
        next((each.element for each in side if isinstance(each, VectorType)), "")
        for side in (node.operand_types, node.result_types)
    )
    between = " -> ".join(dict.fromkeys(filter(None, kinds)))
    return " ".join(filter(None, (node.mnemonic, between, *(word for _, word in node.attributes))))


def _kind(name: str) -> Kind:
    if name == "mem_bar":
        return Kind.BARRIER
    if name in _FREE:
        return Kind.PREDICATE
    return Kind.LOAD if name in _LOADS else Kind.STORE if name in _STORES else Kind.COMPUTE


def _width(node: MicroOperation) -> int:
    """Return the bits of a lane of the first register that an instruction names."""
    kinds = (*node.operand_types, *node.result_types)
    return next((lane_bits(kind.element) for kind in kinds if isinstance(kind, VectorType)), 32)


def _integers(node: MicroOperation) -> bool:
    """Whether the lanes of the first register that an instruction names are integers."""
    kinds = (*node.operand_types, *node.result_types)
    element = next((kind.element for kind in kinds if isinstance(kind, VectorType)), "")
    return element.removeprefix("u").removeprefix("s").startswith("i")


def _bytes(node: MicroOperation, name: str, word: str) -> int:
    """Return the bytes that an access touches when all of its lanes are active."""
    mode, _, width = word.partition("_")
    if name in ("plds", "pldi", "psts", "psti") or name in OPAQUE:
        return _MASK_BYTES
    if name in ("vstas", "vstar", "vscatter"):
        return 0
    if mode in _PARTS:
        return REGISTER_BYTES // _PARTS[mode]
    if mode in _MULTIPLES or name in ("vldsx2", "vstsx2"):
        return REGISTER_BYTES * 2
    element = int(width[1:]) // 8 if re.fullmatch(r"B\d+", width) else _width(node) // 8
    if mode in ("BRC", "1PT"):
        return _MASK_BYTES if width == "BLK" else element
    return _BLOCKS_OF_ELEMENTS * element if mode == "E2B" else REGISTER_BYTES

"""The words of micro operations: patterns, comparisons, parts, roundings, barriers, and other names of the same.

Source: docs/reference/micro.md section 1.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from castsim.isa.pto.attributes import ENDPOINTS

PATTERNS = ("PAT_ALL", "PAT_ALLF", *(f"PAT_VL{n}" for n in (1, 2, 3, 4, 8, 16, 32, 64, 128)), "PAT_M3", "PAT_M4",
            "PAT_H", "PAT_Q")  # fmt: skip
ROUNDINGS = ("R", "A", "F", "C", "Z", "O", "H")
SATURATIONS = ("SAT", "NOSAT")
PARTS = ("EVEN", "ODD", "P0", "P1", "P2", "P3")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
HALVES = ("LOWER", "HIGHER")
BARRIERS = (
    "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST", "SV_ALL", "ST_VLD", "LD_VST",
    "ST_VST",
)  # fmt: skip
PIPES = tuple(f"PIPE_{name}" for name in ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"))

LEGAL: Mapping[str, tuple[str, ...]] = {
    "pattern": PATTERNS,
    "rnd": ROUNDINGS,
    "sat": SATURATIONS,
    "part": PARTS,
    "cmp": COMPARISONS,
    "half": HALVES,
    "order": ("ASC", "DESC"),
    "position": ("LOWEST", "HIGHEST"),
    "barrier": BARRIERS,
    "pipe": PIPES,
    "domain": ("DDR", "ALL", "UB"),
    "register": ("AR",),
    "mode": ("POST_UPDATE", "NO_POST_UPDATE"),
}
"""What may stand for each kind of word; distribution modes differ from operation to operation."""

SYNONYMS: Mapping[str, Mapping[str, str]] = {
    "rnd": {f"ROUND_{word}": word for word in ROUNDINGS},
    "sat": {"RS_ENABLE": "SAT", "RS_DISABLE": "NOSAT"},
    "part": {f"PART_{word}": word for word in PARTS},
    "half": {"UPPER": "HIGHER", "PART_LOWER": "LOWER", "PART_HIGHER": "HIGHER"},
    "order": {"ORDER_ASC": "ASC", "ORDER_DESC": "DESC"},
    "dist": {f"ONEPT_B{bits}": f"1PT_B{bits}" for bits in (8, 16, 32)},
    "pipe": {name: pipe.value for name, pipe in ENDPOINTS.items()},
    "position": {"POS_LOWEST": "LOWEST", "POS_HIGHEST": "HIGHEST"},
}
"""Other names of words, by their kind."""

WRITTEN: Mapping[str, str] = {"half": "part", "cmp": "cmp_mode"}
"""The keys by which dictionaries call words of these kinds."""


NUMBERS = ("id", "turn")
"""Kinds of words that are numbers."""


def short(kind: str, word: str) -> str:
    """Return the short name of a word."""
    return SYNONYMS.get(kind, {}).get(word, word)

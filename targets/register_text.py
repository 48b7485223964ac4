"""The text of vector-function kernels: one register instruction per line, checked when a target is loaded.

    v0, v1 = vlds DINTLV_B32          two registers, even and odd elements
    v2 = vcvt v0 p0 PART_EVEN         from source to destination format of the cast
    v2 = vcvt v0 p0 PART_EVEN f16 i32 between named formats, in kernels of several steps
    p1 = plt_b16 n                    leading lanes from counter n, which loses as many
    p1 = plt_b8 n take 64             at most 64 lanes, and n loses 64
    s = select 64 tail                64, on the last trip of a row the counter `tail`
    vsts NORM_B32 v3 p1 +256          store 256 bytes beyond the trip's own place

Meaning of the instructions: docs/reference/a5.md sections 1.1 and 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from castsim.isa.formats import FORMATS

_LINE = re.compile(r"(?:([a-z]\w*(?:, *[a-z]\w*)*) *= *)?([a-z_]+?)(?:_b(8|16|32|64))?((?: +\S+)*)")
_WIDTHS = "8|16|32"
LOADS = re.compile(rf"NORM|UNPK_B({_WIDTHS})|DINTLV_B({_WIDTHS})")
STORES = re.compile(rf"NORM_B({_WIDTHS})|PK_B(16|32|64)")
PARTS = ("PART_EVEN", "PART_ODD", "PART_P0", "PART_P1", "PART_P2", "PART_P3")
BARRIERS = ("VST_VST",)


class DistributionMode(StrEnum):
    """The way in which an access distributes the bytes of memory over the lanes of a register."""

    NORM = "NORM"
    """Side by side."""
    UNPK = "UNPK"
    """Each element into the lower half of a lane twice as wide."""
    UNPK4 = "UNPK4"
    """Each element into the lowest quarter of a lane four times as wide."""
    PK = "PK"
    """The lower half of each lane."""
    PK4 = "PK4"
    """The lowest quarter of each lane."""
    DINTLV = "DINTLV"
    """Even elements into one register, odd ones into another."""
    BRC = "BRC"
    """One element into all lanes."""
    ONEPT = "ONEPT"
    """The element of the first lane."""
    BLK = "BLK"
    """One block into every block of the register."""
    MASK = "MASK"
    """A predicate: one bit per lane."""


@dataclass(frozen=True, slots=True)
class NamedDistribution:
    """A distribution as instructions name it: its mode, and the bits of a lane or element where it has any."""

    mode: DistributionMode
    bits: int | None


@lru_cache(maxsize=64)
def distribution_of(text: str) -> NamedDistribution:
    """Read a distribution such as `NORM` or `DINTLV_B32`.

    Raises:
        ValueError: no such mode.
    """
    mode, _, bits = text.partition("_B")
    return NamedDistribution(DistributionMode(mode), int(bits) if bits else None)


_FORMS: dict[str, tuple[str, tuple[int, ...], bool]] = {
    "vlds": ("v", (1,), False),
    "vsts": ("", (3, 4), False),
    "vcvt": ("v", (2, 3, 4, 5), False),
    "vtrc": ("v", (2,), False),
    "vor": ("v", (3,), False),
    "vand": ("v", (3,), False),
    "vdup": ("v", (1, 2), True),
    "vci": ("v", (1,), True),
    "vmuls": ("v", (2,), True),
    "vintlv": ("vv", (2,), True),
    "vselr": ("v", (2,), False),
    "pset": ("p", (0,), True),
    "plt": ("p", (1, 3), True),
    "punpack": ("p", (1,), False),
    "select": ("s", (2,), False),
    "mem_bar": ("", (1,), False),
}
"""Mnemonic: kinds of its results (v register, p predicate, s scalar), numbers of operands, whether it has a width."""


@dataclass(frozen=True, slots=True)
class RegisterInstruction:
    """One line: `width` is the lane width of the mnemonic (`_b16`), None where it has none."""

    mnemonic: str
    width: int | None
    results: tuple[str, ...]
    operands: tuple[str, ...]

    def __str__(self) -> str:
        name = self.mnemonic if self.width is None else f"{self.mnemonic}_b{self.width}"
        left = f"{', '.join(self.results)} = " if self.results else ""
        return " ".join((left + name, *self.operands))


def parse_instruction(text: str) -> RegisterInstruction:
    """Read one line.

    Raises:
        ValueError: unknown mnemonic or mode, wrong number of results or operands.
    """
    match = _LINE.fullmatch(text.strip())
    mnemonic = match.group(2) if match else ""
    if match is None or mnemonic not in _FORMS:
        raise ValueError(f"'{text}': not a register instruction; there are {', '.join(_FORMS)}")
    results = tuple(re.split(r", *", match.group(1))) if match.group(1) else ()
    operands = tuple(match.group(4).split())
    kinds, counts, wide = _FORMS[mnemonic]
    dual = mnemonic == "vlds" and operands[:1] and operands[0].startswith(DistributionMode.DINTLV)
    expected = len(kinds) + bool(dual)
    if len(results) != expected or len(operands) not in counts or wide != (match.group(3) is not None):
        raise ValueError(
            f"'{text}': {mnemonic} has {expected} results, {' or '.join(map(str, counts))} operands and "
            f"{'a' if wide else 'no'} lane width"
        )
    instruction = RegisterInstruction(mnemonic, int(match.group(3)) if wide else None, results, operands)
    _check_words(text, instruction)
    return instruction


def check_registers(instructions: Iterable[RegisterInstruction], counters: Iterable[str]) -> None:
    """Reject a register that is read before it is written.

    Raises:
        ValueError: names register and instruction.
    """
    known = set(counters)
    for instruction in instructions:
        for operand in read_by(instruction):
            if operand not in known:
                raise ValueError(f"{instruction.mnemonic} reads '{operand}', which nothing has written")
        known.update(instruction.results)


def read_by(instruction: RegisterInstruction) -> tuple[str, ...]:
    """Return the registers, predicates and counters that an instruction reads."""
    operands = instruction.operands
    match instruction.mnemonic:
        case "vlds" | "mem_bar" | "vci" | "pset":
            return ()
        case "vsts":
            return operands[1:3]
        case "vcvt":
            return operands[:2]
        case "vdup" | "select":
            return operands[1:]
        case "vmuls":
            return operands[:1]
        case "plt":
            return () if operands[0].isdecimal() else operands[:1]
        case _:
            return operands


def _check_words(text: str, instruction: RegisterInstruction) -> None:
    operands = instruction.operands
    match instruction.mnemonic:
        case "vlds":
            legal = LOADS.fullmatch(operands[0]) is not None
        case "vsts":
            legal = STORES.fullmatch(operands[0]) is not None and (
                len(operands) == 3 or re.fullmatch(r"\+\d+", operands[3]) is not None
            )
        case "vcvt":
            rest = operands[3:] if operands[2:3] and operands[2] in PARTS else operands[2:]
            legal = len(rest) in (0, 2) and all(name in FORMATS for name in rest)
        case "vdup" | "vci" | "select":
            legal = operands[0].isdecimal()
        case "vmuls":
            legal = operands[1].isdecimal()
        case "plt":
            legal = len(operands) == 1 or (operands[1] == "take" and operands[2].isdecimal())
        case "mem_bar":
            legal = operands[0] in BARRIERS
        case _:
            legal = True
    if not legal:
        raise ValueError(f"'{text}': operands of {instruction.mnemonic} are not understood")

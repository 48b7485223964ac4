"""A random text in its sequential meaning, and with virtual registers."""

from __future__ import annotations

import re
from collections.abc import Mapping

WAIT = "nop; nop; nop; nop\n" * 16
_REAL: Mapping[str, tuple[int, ...]] = {
    "V": (28, 29, 30, 31, 33), "S": (12, 13, 14, 15), "I": (8,), "SP": (0, 6), "VP": (0, 6), "AD": (3,),
}  # fmt: skip
"""Registers that keep their numbers."""
_TOKEN = re.compile(r"\b(VP|SP|AD|[VDASZI])(\d+)\b")


def waiting(text: str) -> str:
    """The text in its sequential meaning: a long wait behind every instruction."""
    found = []
    for line in text.splitlines():
        plain = line.startswith("//") or line.endswith(":")
        found.append(f"{line}\n" if plain else "nop; halt; halt; nop\n" if line == "halt" else f"{line}\n{WAIT}")
    return "".join(found)


def named(text: str) -> str:
    """The text with virtual registers in place of all but some real ones."""
    lines = []
    for line in text.splitlines():
        outside = line.startswith("//") and " reg " not in line
        lines.append(line if outside else _TOKEN.sub(_virtual, line))
    return "\n".join(lines) + "\n"


def _virtual(found: re.Match[str]) -> str:
    file, number = found[1], int(found[2])
    whole = {"D": "V", "A": "V", "Z": "S"}.get(file, file)
    if number in _REAL.get(whole, ()) or (whole == "S" and (number >= 27)):
        return found[0]
    if whole == "V" and 12 <= number < 28:
        start = number - number % 4 if number >= 20 else number - number % 2
        member = f".{number - start}" if file == "V" else ""
        return f"%{file.lower()}.g{start}{member}"
    if whole == "S" and 8 <= number < 12 and not (number == 11 and file == "S"):
        start = number - number % 2
        return f"%{file.lower()}.g{start}{f'.{number - start}' if file == 'S' else ''}"
    return f"%{file.lower()}.r{number}"

"""Text from files and names made safe to show: no character in it steers the terminal that prints it.

A file may name a function `\\x1b[2J`; shown raw, the terminal would obey. Sources of the sets: ECMA-48 (C0, DEL, C1),
Unicode Standard Annex 9 (explicit directional formatting characters). Unicode's own line and paragraph separators are
escaped as well, since some terminals and pagers end a line at them.
"""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 without tab and newline, DEL, C1, bidirectional controls, line and paragraph separator."""


def escaped(text: str) -> str:
    """Return text with every character that steers a terminal written as `\\xNN` or `\\uNNNN`.

    Tab and newline stay. What is escaped once stays as it is the second time.
    """
    return _STEERING.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"

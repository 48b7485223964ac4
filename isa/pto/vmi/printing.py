"""Writing operations on logical registers, in one canonical form each (docs/reference/micro.md section 9.2)."""

from __future__ import annotations

from castsim.isa.pto.types import format_type
from castsim.isa.pto.vmi.forms import COUNTS, PREFIX, ROWS
from castsim.isa.pto.vmi.nodes import VmiOperation


def vmi_text(node: VmiOperation) -> str:
    """Return the text of an operation, without its results."""
    row, items = ROWS[node.mnemonic], list[str]()
    for place, name in enumerate(node.operands):
        if place == node.offset_at:
            items[-1] += f"[%{name}]"
        else:
            items.append(f"%{name}")
    if row.word:
        items.append(f'"{node.word(row.word)}"')
    entries = [_entry(key, word) for key, word in node.attributes if key != row.word]
    kinds = [format_type(kind) for place, kind in enumerate(node.operand_types) if place != node.offset_at]
    text = f"pto.{PREFIX}{node.mnemonic} {', '.join(items)}"
    text += f" {{{', '.join(entries)}}}" if entries else ""
    arrow = " -> " if node.results and kinds else ""
    return f"{text} : {', '.join(kinds)}{arrow}{', '.join(map(format_type, node.result_types))}"


def _entry(key: str, word: str) -> str:
    if not word:
        return key
    return f"{key} = {word}" if key in COUNTS else f'{key} = "{word}"'

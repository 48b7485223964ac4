"""What is said of a word of a TPC kernel in C: intrinsics, types, constants of the vendor's header."""

from __future__ import annotations

from castsim.commands.editor.document import EditedText, Settings, target_of_text
from castsim.commands.editor.hover_tiles import Said, conversion_part
from castsim.isa.formats import format_named
from castsim.isa.tpc import forms_of
from castsim.tpc_compiler.tpc_c.source import MACROS
from castsim.tpc_compiler.tpc_c.table import IntrinsicCall, IntrinsicConversion, call_named
from castsim.tpc_compiler.tpc_c.types import GENERATIONS, Group, Mask, Vector, first_generation, type_named

_UNITS = {"v": "vectors", "s": "scalars", "i": "coordinates"}


def kernel_hover(text: EditedText, line: int, word: str, settings: Settings) -> Said | None:
    """Return what is known of a word; None if nothing is."""
    del line
    call = call_named(word)
    if isinstance(call, IntrinsicCall):
        return Said(_call_parts(word, call), of_operation=True)
    if isinstance(call, IntrinsicConversion):
        return Said(_conversion_parts(word, call, text, settings), of_operation=True)
    if word in MACROS:
        return Said([f"`{word}` is {MACROS[word]}, a constant of the vendor's header"])
    if (about := _type_part(word)) is not None:
        return Said([about])
    return None


def _call_parts(word: str, call: IntrinsicCall) -> list[str]:
    row = call.row
    words = f" with `{row.words}`" if row.words else ""
    since = "" if row.generation == GENERATIONS[0] else f"; from {row.generation} on"
    parts = [f"`{word}`: `{row.mnemonic}`{words} on {_UNITS[call.unit]} of {call.element}{since}"]
    if lines := "\n".join(dict.fromkeys(form.pattern() for form in forms_of(row.mnemonic))):
        parts.append(f"```tpc\n{lines}\n```")
    return parts


def _conversion_parts(word: str, call: IntrinsicConversion, text: EditedText, settings: Settings) -> list[str]:
    parts = [f"`{word}` converts {_UNITS[call.unit]} of {call.source} to {call.target}"]
    target = target_of_text(text, settings)
    if target is not None:
        parts.append(conversion_part(format_named(call.source), format_named(call.target), target, None, None))
    return parts


def _type_part(word: str) -> str | None:
    kind = type_named(word)
    since = GENERATIONS[0] if kind is None else first_generation(kind)
    later = "" if since == GENERATIONS[0] else f"; from {since} on"
    if isinstance(kind, Vector):
        return f"`{word}` is a vector of {kind.lanes} {kind.element}: one V register{later}"
    if isinstance(kind, Group):
        members = ", ".join(f"`v{n}` {one}" for n, one in enumerate(kind.members, 1))
        return f"`{word}` is {len(kind.members)} vectors in registers in a row: {members}{later}"
    if isinstance(kind, Mask):
        return f"`{word}` is a predicate of {kind.lanes} lanes: one VP register"
    return {
        "int5": "`int5` is five coordinates: one I register",
        "tensor": "`tensor` is a tensor of the launch, by its number",
    }.get(word)

"""Writing micro operations as their rows tell, in one canonical form each."""

from __future__ import annotations

from collections.abc import Iterable

from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.micro.words import NUMBERS, WRITTEN, Form, forms_of, mismatch
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import Type


def micro_text(node: MicroOperation) -> str:
    """Return the text of an operation, without its results."""
    form = _form_of(node)
    plain = len(node.operands) - sum(count for _, count in node.groups)
    items = _items(node, form, node.operands[:plain])
    text = f"pto.{node.mnemonic}" + (f" {', '.join(items)}" if items else "")
    types = [(number, format_type(kind)) for number, kind in enumerate(node.operand_types)]
    shown = [kind for number, kind in types if number < plain and (number != form.offset or form.offset_typed)]
    start = plain
    for name, count in node.groups:
        text += f" {name}({_values(node.operands[start : start + count])})"
        kinds = [kind for _, kind in types[start : start + count]]
        prefix = f"{name} " if name in ("loop", "pad") else ""
        shown += [f"{prefix}{kinds[0]}", *kinds[1:]]
        start += count
    entries = [f'{WRITTEN.get(key, key)} = "{node.word(key)}"' for key in form.keys if node.word(key) is not None]
    if entries:
        text += f" {{{', '.join(entries)}}}"
    return text + _types(shown, node.result_types)


def _form_of(node: MicroOperation) -> Form:
    plain = node.operand_types[: len(node.operands) - sum(count for _, count in node.groups)]
    return next(
        form for form in forms_of(node.mnemonic) if mismatch(node.mnemonic, form, plain, node.result_types) is None
    )


def _items(node: MicroOperation, form: Form, operands: tuple[str, ...]) -> list[str]:
    items: list[str] = []
    number = 0
    for item in form.items:
        if len(item) > 1:
            word = node.word(item)
            items += [] if word is None else [word if item in NUMBERS else f'"{word}"']
        else:
            if number == form.offset:
                items[-1] += f"[%{operands[number]}]"
            else:
                items.append(f"%{operands[number]}")
            number += 1
    return items


def _types(shown: list[str], results: tuple[Type, ...]) -> str:
    given = ", ".join(map(format_type, results))
    if not shown:
        return f" : {given}" if results else ""
    return f" : {', '.join(shown)}" + (f" -> {given}" if results else "")


def _values(names: Iterable[str]) -> str:
    return ", ".join(f"%{name}" for name in names)

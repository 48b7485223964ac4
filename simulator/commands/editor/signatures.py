"""What an operation takes, while its operands are typed: its forms, and which operand the cursor is at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from castsim.commands.editor.document import EditedText, Settings, target_of_text
from castsim.commands.editor.words import OTHERS, SHAPES
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.micro_words import forms_of as micro_forms
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.isa.tpc import available, forms_of
from castsim.isa.tpc.forms import SELECTORS, Form
from castsim.isa.tpc.instructions import ALIASES
from castsim.machines.vliw.program_sources import assembly_target

TRIGGERS = ("(", ",", "[", " ")
"""Characters behind which clients ask by themselves."""

_BY_HAND = {
    "tcvt": "pto.tcvt ins(%src {rmode = #pto<round_mode ..>} : T) outs(%dst : T)",
    "tload": "pto.tload ins(%view : T) outs(%tile : T)",
    "tstore": "pto.tstore ins(%tile : T) outs(%view : T)",
    "set_flag": "pto.set_flag[<producer>, <consumer>, <event>]",
    "wait_flag": "pto.wait_flag[<producer>, <consumer>, <event>]",
    "alloc_tile": "%r = pto.alloc_tile addr = %address valid_row = %rows valid_col = %cols : T",
    "make_tensor_view": "%r = pto.make_tensor_view %pointer, shape = [%extents], strides = [%strides] : T",
    "partition_view": "%r = pto.partition_view %view, offsets = [%offsets], sizes = [%sizes] : T -> T",
    "scf.for": "scf.for %i = %lower to %upper step %step {",
}
"""Forms of operations that are in no table (docs/reference/pto.md section 3)."""

_OPERATION = re.compile(r"\b(?:pto\.)?([A-Za-z_][\w.]*)")
_NAMED = re.compile(r"(?:pto\.\w+|scf\.for)\b")
_OPERAND = re.compile(r"[%<][\w]+>?")
_SEPARATOR = re.compile(r";|\|\||[{}]")


@dataclass(frozen=True, slots=True)
class ShownSignature:
    """A form with the places of its operands in it, which operand is being typed, and what the operation does."""

    label: str
    parameters: tuple[tuple[int, int], ...]
    active: int
    about: str = ""


def signatures(text: EditedText, line: int, column: int, settings: Settings) -> list[ShownSignature]:
    """Return the forms of the operation whose operands stand at a place, line and column from 1; none elsewhere."""
    before = text.lines[line - 1][: column - 1]
    if "//" in before:
        return []
    if text.language == "pto":
        return list(_of_tiles(before))
    return list(_of_assembly(text, before, settings)) if text.language == "tpc" else []


def _of_tiles(before: str) -> Iterator[ShownSignature]:
    found = next(reversed([*_NAMED.finditer(before)]), None)
    if found is None or found.end() == len(before):
        return
    name = found[0].removeprefix("pto.")
    operands = before[found.end() :]
    row = VECTOR_OPERATIONS.get(name)
    about = ""
    if row is not None:
        outs = f"outs({', '.join(['%tile'] * row.destinations)})"
        forms = [f"pto.{name} {spelling} {outs}" for spelling in row.spellings]
        about = SHAPES[row.kind]
    elif name in ROWS:
        forms = list(dict.fromkeys(form.spelling(name) for form in micro_forms(name)))
    elif name in _BY_HAND:
        forms, about = [_BY_HAND[name]], OTHERS.get(found[0], "")
    else:
        return
    for form in forms:
        start = form.index(found[0]) + len(found[0])
        end = form.find(" : ", start)
        whole = form if "outs(" in form or end < 0 else form[:end]
        places = [match.span() for match in _OPERAND.finditer(whole, start)]
        yield ShownSignature(form, tuple(places), _active(operands, form), about)


def _active(operands: str, form: str) -> int:
    """Return which operand is being typed behind an operation; types behind `:` count as the last one."""
    inputs, _, outputs = operands.partition("outs(")
    if outputs or "outs(" in operands:
        listed = form.partition("outs(")[0]
        return len(_OPERAND.findall(listed)) + _commas(outputs)
    return _commas(inputs.partition("ins(")[2] if "ins(" in inputs else inputs)


def _commas(text: str) -> int:
    """Return how many operands are complete: commas and opening brackets between them, before any type."""
    plain = re.sub(r"\{[^}]*\}?|<[^<>]*>", "", text.partition(" : ")[0])
    return plain.count(",") + len(re.findall(r"%[\w.$#-]+\s*\[", plain))


def _of_assembly(text: EditedText, before: str, settings: Settings) -> Iterator[ShownSignature]:
    words = _SEPARATOR.split(before)[-1].lstrip()
    mnemonic, blank, operands = words.partition(" ")
    if not blank:
        return
    name, _, suffix = mnemonic.lower().partition(".")
    name = ALIASES.get(name, name)
    chip = assembly_target(target_of_text(text, settings))
    forms = forms_of(name) or forms_of(f"{name}.{suffix.partition('.')[0]}")
    here = [form for form in forms if chip is None or available(form, chip.dialect)]
    seen = set()
    for form in here:
        label = form.pattern()
        if label not in seen:
            seen.add(label)
            yield ShownSignature(label, _places(form, label), _position(form, operands))


def _places(form: Form, label: str) -> tuple[tuple[int, int], ...]:
    found, start = [], label.index(" ") + 1 if " " in label else len(label)
    for spec in form.operands:
        length = len("|".join(spec.accepts))
        found.append((start, start + length))
        start += length + 2
    return tuple(found)


def _position(form: Form, operands: str) -> int:
    """Return which operand is being typed; no comma stands behind a leading mask or dimension."""
    leads = bool(form.operands) and form.operands[0].role in SELECTORS
    return operands.count(",") + (leads and (operands.count(",") > 0 or len(operands.split()) > 1 or _ends(operands)))


def _ends(operands: str) -> bool:
    return bool(operands.strip()) and operands.endswith(" ")


def shown(found: Sequence[ShownSignature]) -> int:
    """Return which of several forms fits what is typed: the first that has such an operand."""
    return next((number for number, one in enumerate(found) if one.active < len(one.parameters)), 0)

"""What is said of a word of a `.pto` text."""

from __future__ import annotations

import re

from castsim.editor.alone import node_at, work
from castsim.editor.document import Settings, Text
from castsim.editor.hover_parts import Said, conversion_part, format_part, listed
from castsim.editor.targeted import target_of_text
from castsim.editor.words import OTHERS, ROUNDINGS, SHAPES
from castsim.isa import pto
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.modes import Rounding
from castsim.isa.pto.attributes import ROUND_MODES
from castsim.isa.pto.micro.conversions import ROUNDINGS as LETTERS
from castsim.isa.pto.micro.conversions import conversion, destinations_of
from castsim.isa.pto.micro.form import forms_of
from castsim.isa.pto.micro.forms import ROWS
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.program import MicroOperation, Operation, VectorType
from castsim.isa.pto.types import ELEMENTS, EXTENSIONS
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, VectorOperation
from castsim.machines.mechanisms import machine_of, tiles_of
from castsim.machines.target_cast import form_of
from castsim.targets import Target

_ELEMENT = re.compile(r"(?:\d+x)*([A-Za-z]\w*)$")
_DEFINES = r"\s*(?:%[\w.$-]+(?::\d+)?\s*,\s*)*%{}\s*(?::\d+)?\s*(?:,[^=]*)?="


def tile_hover(text: Text, line: int, word: str, settings: Settings) -> Said | None:
    """Return what is known of a word; None if nothing is."""
    if word.startswith("%"):
        return _value(text, line, word)
    name = word.removeprefix("pto.")
    if word in OTHERS or f"pto.{name}" in OTHERS or name in VECTOR_OPERATIONS or name in ROWS:
        return _operation(text, line, name, word, settings)
    if word.removeprefix("CAST_") in ROUND_MODES:
        mode = word.removeprefix("CAST_").lower()
        about = "leaves the choice to the target" if mode == "none" else f"rounds {ROUNDINGS[Rounding(mode)]}"
        return Said([f"`{word}` {about}"])
    element = _ELEMENT.match(word)
    if element is not None and element[1] in {**ELEMENTS, **EXTENSIONS}:
        return Said([format_part(element_format({**ELEMENTS, **EXTENSIONS}[element[1]]), element[1])])
    return None


def _value(text: Text, line: int, word: str) -> Said | None:
    """Return the line that defines a value: the last one before its use, else the head of its function."""
    defines = re.compile(_DEFINES.format(re.escape(word[1:])))
    for written in reversed(text.lines[:line]):
        if defines.match(written):
            return Said([f"```pto\n{written.strip()}\n```"])
        if "func.func" in written and re.search(rf"{re.escape(word)}\s*:", written):
            argument = re.search(rf"{re.escape(word)}\s*:\s*(![\w.]+<[^>]*>|\w+)", written)
            return Said([f"```pto\n{word}: {argument[1]}\n```\n\nan argument of the function"]) if argument else None
    return None


def _operation(text: Text, line: int, name: str, word: str, settings: Settings) -> Said:
    target = target_of_text(text, settings)
    node, statement = node_at(text, line)
    row = VECTOR_OPERATIONS.get(getattr(node, "mnemonic", name), VECTOR_OPERATIONS.get(name))
    if row is not None:
        parts = [_about(row), *_legality(row, target)]
    elif name in ROWS:
        parts = _micro(name, node)
    else:
        parts = [f"`{word}` {OTHERS.get(word) or OTHERS[f'pto.{name}']}"]
    if isinstance(node, pto.Tcvt) and name == "tcvt" and target is not None:
        parts.append(_cast(node, target))
    if node is not None and target is not None and (row is not None or isinstance(node, pto.Tcvt)):
        parts += _work(node, statement, target, settings)
    return Said(parts, of_operation=True)


def _about(row: VectorOperation) -> str:
    function = f" by `{row.function}`" if row.function not in ("move", "fill", "ramp") else ""
    forms = "\n".join(
        f"pto.{row.name} {form} outs({', '.join(['%tile'] * row.destinations)})" for form in row.spellings
    )
    source = f"docs/reference/pto.md {row.section}"
    return f"`pto.{row.name}` {SHAPES[row.kind]}{function} ({source})\n\n```pto\n{forms}\n```"


def _legality(row: VectorOperation, target: Target | None) -> list[str]:
    chip = tiles_of(target)
    if chip is None:
        return []
    facts = next((one for one in chip.tile_operations if one.mnemonic == row.mnemonic), None)
    if facts is None:
        return [f"{chip.name} does not have it"]
    scratch = {"none": "", "used": "; uses its tmp tile", "ignored": "; ignores its tmp tile"}.get(facts.tmp, "")
    found = [f"On {chip.name}: elements {listed(facts.types)}{scratch}"]
    if facts.approximate is not None:
        found.append(f"Values are not claimed to be bit-exact: {facts.approximate}")
    return found


def _cast(node: pto.Tcvt, target: Target) -> str:
    return conversion_part(
        element_format(node.src_type.element),
        element_format(node.dst_type.element),
        target,
        None if node.rounding is None else node.rounding.name.lower(),
        node.saturation,
        scratch=node.tmp is not None,
        form=form_of(node.src_type, node.dst_type) if machine_of(target).cast_forms else None,
    )


def _work(node: Operation, statement: str, target: Target, settings: Settings) -> list[str]:
    found = work(node, statement, target, settings)
    if found is None:
        return []
    parts = [] if found.cycles is None else [f"Alone: {found.cycles:,} cycles"]
    return [*parts, *([f"Executed as\n\n```pto\n{found.instructions}\n```"] if found.instructions else [])]


def _micro(name: str, node: Operation | None) -> list[str]:
    row = ROWS[name]
    forms = "\n".join(dict.fromkeys(form.spelling(name) for form in forms_of(name)))
    parts = [
        f"`pto.{name}` is an instruction of the vector unit (docs/reference/micro.md); it belongs {row.place.value}"
    ]
    parts.append(f"```pto\n{forms}\n```")
    if row.elements:
        parts.append(f"Elements: {listed(row.elements)}")
    if name == "vcvt" and isinstance(node, MicroOperation):
        parts.append(_vcvt(node))
    return parts


def _vcvt(node: MicroOperation) -> str:
    source, result = node.operand_types[0], node.result_types[0]
    if not isinstance(source, VectorType) or not isinstance(result, VectorType):
        return ""
    try:
        pair = conversion(source.element, result.element)
    except IllegalError:
        return f"From {source.element} it converts to {listed(destinations_of(source.element))}"
    except CastsimError as error:
        return error.message
    words = [
        f"- `{key}`: {listed(legal) if legal else 'must not be given'}"
        for key, legal in (("rnd", pair.roundings), ("sat", pair.saturations), ("part", pair.parts))
    ]
    letter = node.word("rnd") or ""
    rounded = f"\n\n`{letter}` rounds {ROUNDINGS[LETTERS[letter]]}" if letter in LETTERS else ""
    clamps = {"SAT": "clamps what is out of range", "NOSAT": "does not clamp"}.get(node.word("sat") or "", "")
    clamped = f"\n\n`{node.word('sat')}` {clamps}" if clamps else ""
    return f"**{pair.src} -> {pair.dst}**\n\n" + "\n".join(words) + rounded + clamped

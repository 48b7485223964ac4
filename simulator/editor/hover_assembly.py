"""What is said of a word of TPC assembly."""

from __future__ import annotations

import re

from castsim.editor.document import Settings, Text
from castsim.editor.hover_parts import Said, conversion_part, format_part, listed
from castsim.editor.program_slice import excerpt
from castsim.editor.targeted import target_of_text
from castsim.isa.errors import CastsimError
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.tpc import Bundle, Form, Slot, TpcInstruction, available, forms_of, parse
from castsim.isa.tpc.forms import ROUNDING, TYPE_ALIASES, TYPES
from castsim.isa.tpc.instructions import ALIASES
from castsim.machines.vliw.source import assembly_target
from castsim.targets import Target

_REGISTER = re.compile(r"%?(VP|SP|AD|V|S|I)(\d+)$", re.IGNORECASE)
_FILES = {
    "V": "vector register of 256 bytes",
    "S": "scalar register of 32 bits",
    "I": "index register: the coordinates of an element of a tensor",
    "AD": "address register of 64 bits",
    "SP": "scalar predicate; SP0 is always true",
    "VP": "vector predicate, a bit for each byte of a vector",
}


def assembly_hover(text: Text, line: int, word: str, settings: Settings) -> Said | None:
    """Return what is known of a word; None if nothing is."""
    target = target_of_text(text, settings)
    register = _REGISTER.match(word)
    if register is not None:
        return Said([_register(register[1].upper(), word, target)])
    lowered = word.lower()
    mnemonic, _, suffix = lowered.partition(".")
    mnemonic = lowered if forms_of(lowered) else ALIASES.get(mnemonic, mnemonic)
    if forms := forms_of(mnemonic):
        instruction = _instruction(text, line, mnemonic, suffix, target)
        return Said(_instruction_parts(mnemonic, forms, instruction, target), of_operation=True)
    name = TYPE_ALIASES.get(lowered, lowered)
    if name in FORMATS and (name in TYPES or lowered in TYPE_ALIASES):
        return Said([format_part(format_named(name), word)])
    chip = assembly_target(target)
    if chip is not None and lowered in chip.convert_rounding.modes:
        return Said([f"`{word}` rounds by {chip.convert_rounding.modes[lowered]}"])
    return None


def _register(file: str, word: str, target: Target | None) -> str:
    chip = assembly_target(target)
    count = None if chip is None else chip.dialect.registers.get(file)
    many = "" if count is None or chip is None else f"; {chip.name} has {file}0 to {file}{count - 1}"
    return f"`{word}` is a {_FILES[file]}{many}"


def _instruction(text: Text, line: int, mnemonic: str, suffix: str, target: Target | None) -> TpcInstruction | None:
    """Return the instruction of a line that has a mnemonic, None if the line cannot be read."""
    found = excerpt(text, line - 1, line - 1)
    chip = assembly_target(target)
    if found is None or chip is None:
        return None
    try:
        items = parse(found.text.text, chip.dialect, text.name).items
    except CastsimError:
        return None
    own = [
        instruction
        for item in items
        if isinstance(item, Bundle)
        for instruction in item.slots
        if instruction is not None and instruction.span.line == line and instruction.form.mnemonic == mnemonic
    ]
    typed = [one for one in own if one.type == TYPE_ALIASES.get(suffix, suffix)]
    return next(iter(typed or own), None)


def _instruction_parts(
    mnemonic: str, forms: tuple[Form, ...], instruction: TpcInstruction | None, target: Target | None
) -> list[str]:
    chip = assembly_target(target)
    dialect = None if chip is None else chip.dialect
    here = [form for form in forms if dialect is None or available(form, dialect)]
    if not here and target is not None:
        return [f"`{mnemonic}`: {target.name} does not have it"]
    shown = here if instruction is None else [instruction.form]
    lines = "\n".join(dict.fromkeys(form.pattern() for form in shown))
    slots = [Slot(slot).name for slot in sorted({slot for form in shown for slot in form.slots})]
    parts = [f"`{mnemonic}` in the slots {listed(slots)}\n\n```tpc\n{lines}\n```"]
    types = tuple(dict.fromkeys(kind for form in shown for kind in form.types))
    if types:
        parts.append(f"Types: {listed(types)}")
    switches = tuple(dict.fromkeys(switch.name for form in shown for switch in form.switches))
    if switches:
        parts.append(f"Switches: {listed(switches)}")
    if instruction is not None and target is not None:
        parts += _conversion(instruction, target)
    return parts


def _conversion(instruction: TpcInstruction, target: Target) -> list[str]:
    switches = dict(instruction.switches)
    result = switches.get("target_type")
    if instruction.type is None or not isinstance(result, str) or instruction.form.mnemonic != "convert":
        return []
    rounding = switches.get(ROUNDING)
    mode = rounding if isinstance(rounding, str) else None
    return [conversion_part(format_named(instruction.type), format_named(result), target, mode, None)]

"""Suggestions in TPC assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from castsim.editor.completion_item import CompletionItem
from castsim.editor.document import Settings, Text
from castsim.editor.targeted import target_of_text
from castsim.isa.formats import FORMATS
from castsim.isa.sources import Language
from castsim.isa.tpc import FORMS, Form, Slot, Switch, available
from castsim.isa.tpc.dialect import Dialect
from castsim.machines.vliw.source import assembly_target, targets_running

DECLARATIONS = ("target", "tensor", "vlm", "reg")
"""What `// castsim:` comments begin with."""

_SEGMENT = re.compile(r"[;{]")
_MOST_REGISTERS = 64


def assembly_suggestions(text: Text, ahead: str, start: str, settings: Settings) -> Iterator[CompletionItem]:
    """Yield what may follow `ahead`; of it `start` is typed."""
    if "castsim:" in ahead:
        yield from _declared(ahead)
        return
    target = target_of_text(text, settings)
    assembly = assembly_target(target)
    dialect = None if assembly is None else assembly.dialect
    forms = [form for form in FORMS if dialect is None or available(form, dialect)]
    segment = _SEGMENT.split(ahead)[-1].split()
    if not segment:
        yield from _mnemonics(forms)
        return
    own = [form for form in forms if form.mnemonic == segment[0].lower().partition(".")[0]]
    key = re.search(r"(\w+)=$", ahead)
    for form in own:
        for switch in form.switches:
            yield from _switch(switch, None if key is None else key[1], dialect)
    if key is None and dialect is not None:
        yield from _registers(dialect, start)


def _declared(ahead: str) -> Iterator[CompletionItem]:
    words = ahead.rpartition("castsim:")[2].split()
    if not words:
        yield from (CompletionItem(word, "word", "declaration") for word in DECLARATIONS)
    elif words == ["target"]:
        yield from (CompletionItem(name, "word", "target") for name in targets_running(Language.ASSEMBLY.value))
    else:
        yield from (CompletionItem(word, "word", "direction") for word in ("in", "out", "inout"))
        yield from (CompletionItem(name, "type", "format") for name in FORMATS)


def _mnemonics(forms: list[Form]) -> Iterator[CompletionItem]:
    for form in forms:
        detail = f"{'/'.join(Slot(slot).name for slot in form.slots)}: {form.pattern()}"
        yield CompletionItem(form.mnemonic, "operation", detail)
        yield from (CompletionItem(f"{form.mnemonic}.{kind}", "operation", detail) for kind in form.types)
    yield CompletionItem("nop", "operation", "any slot")


def _switch(switch: Switch, key: str | None, dialect: Dialect | None) -> Iterator[CompletionItem]:
    words = switch.words
    if switch.rounding is not None and dialect is not None:
        words = tuple((value, spelling) for value, spelling in words if value in dialect.roundings[switch.rounding])
    if key is not None:
        if key in (switch.name, *switch.keys):
            yield from (CompletionItem(spelling, "mode", switch.name) for _, spelling in words)
            yield from (CompletionItem(str(number), "mode", switch.name) for number in switch.numbers if not words)
        return
    named = switch.style.value.startswith("name=")
    if named:
        yield CompletionItem(f"{switch.name}=", "mode", "switch")
    elif words:
        yield from (CompletionItem(spelling, "mode", switch.name) for _, spelling in words)
    else:
        yield CompletionItem(switch.name, "mode", "switch")


def _registers(dialect: Dialect, start: str) -> Iterator[CompletionItem]:
    letters = start.lstrip("%").rstrip("0123456789").upper()
    for file, count in dialect.registers.items():
        if file.startswith(letters):
            yield from (CompletionItem(f"{file}{number}", "register") for number in range(min(count, _MOST_REGISTERS)))

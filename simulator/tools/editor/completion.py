"""Completion at the cursor (operations, types, modes, registers, values), and the operands of an operation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from castsim.isa.dataclass import dataclass
from castsim.isa.formats import FORMATS, Rounding
from castsim.isa.pto.control_flow import HANDLERS
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.micro_words import LEGAL, OF_OPERATION
from castsim.isa.pto.micro_words import forms_of as micro_forms
from castsim.isa.pto.statement_forms import EVENTS, LAYOUTS, PIPES, ROUND_MODES, SATURATIONS
from castsim.isa.pto.types import BLOCK_LAYOUTS, ELEMENTS, EXTENSIONS, LOCATIONS, PADS, SCALARS
from castsim.isa.pto.value_types import dialect_names
from castsim.isa.pto.vector_operations import COMPARISONS, PATTERNS, VECTOR_OPERATIONS, text_name
from castsim.isa.reading import Language
from castsim.isa.tpc.forms import SELECTORS, Dialect, Form, Switch
from castsim.isa.tpc.instructions import ALIASES, FORMS, available, forms_of
from castsim.isa.tpc.program import Slot
from castsim.machines.vliw import assembly_target, targets_running
from castsim.tools.editor.hover import OTHERS, ROUNDINGS, SHAPES
from castsim.tools.editor.program_slice import EditedText, Settings, target_of_text

# One thing that may stand where the cursor is.

Sort = Literal["operation", "type", "mode", "register", "value", "word"]


@dataclass(frozen=True, slots=True)
class CompletionItem:
    """A text to insert, its kind, a short description, and a longer one in Markdown."""

    text: str
    kind: Sort
    detail: str = ""
    about: str = ""


# Suggestions in `.pto` texts.

TYPES = {
    "!pto.tile_buf": "<vec, ROWSxCOLSxELEMENT>",
    "!pto.ptr": "<ELEMENT>",
    "!pto.tensor_view": "<ROWSxCOLSxELEMENT>",
    "!pto.partition_tensor_view": "<ROWSxCOLSxELEMENT>",
    "!pto.multi_tile_buf": "<vec, ROWSxCOLSxELEMENT, count=N>",
    "!pto.vreg": "<LANESxELEMENT>",
    "!pto.mask": "<bBITS>",
    "!pto.align": "",
}
"""Types by name, with the text that follows the name."""

_DEFINED = re.compile(r"^[ \t]*((?:%[\w.$-]+(?::\d+)?\s*,?\s*)+)=(.*)$")
_NAME = re.compile(r"%[\w.$-]+")
_ARGUMENT = re.compile(r"(%[\w.$-]+)\s*:\s*([^,){]+(?:<[^>]*>)?)")
_WRITTEN_TYPE = re.compile(r"![\w.]+<[^<>\n]*>")
_OPERATION = re.compile(r"\bpto\.(\w+)")
_MODE_KEYS = {
    "round_mode ": (tuple(ROUND_MODES), "rounding mode"),
    "saturation_mode ": (tuple(SATURATIONS), "saturation"),
    "cmp ": (COMPARISONS, "comparison"),
    "mask_pattern ": (PATTERNS, "pattern"),
    "layout<": (LAYOUTS, "layout"),
}
_TILE_KEYS = {"blayout=": BLOCK_LAYOUTS, "pad=": PADS}


def tile_suggestions(text: EditedText, line: int, ahead: str, start: str) -> Iterator[CompletionItem]:
    """Yield the words that may follow `ahead` and begin with `start`, which is already typed."""
    if start.startswith("%"):
        yield from _values(text, line)
    elif start.startswith("!"):
        yield from _types(text)
    elif ahead.endswith(tuple(_MODE_KEYS)):
        words, what = next(mode_words for key, mode_words in _MODE_KEYS.items() if ahead.endswith(key))
        yield from (CompletionItem(word, "mode", what, _mode(word)) for word in words)
    elif re.search(r"(?:set_flag|wait_flag|barrier)\b[^\]]*$", ahead) is not None:
        yield from _words(PIPES, "mode", "pipe")
        yield from _words(EVENTS, "mode", "event")
    elif ahead.endswith('"'):
        yield from _quoted(ahead)
    elif (inside := re.search(r"!pto\.(\w+)<[^<>]*$", ahead)) is not None:
        yield from _parameters(inside[1], ahead)
    elif ahead.rstrip().endswith((":", "->")) and ahead.count("(") == ahead.count(")"):
        yield from _types(text)
        yield from _words(SCALARS, "type", "scalar")
    elif re.search(r"\btcvt\b.*[{,]\s*$", ahead) is not None and "{" in ahead:
        yield CompletionItem("rmode = #pto<round_mode RINT>", "mode", "rounding of the cast")
        yield CompletionItem("sat_mode = #pto<saturation_mode ON>", "mode", "saturation of the cast")
    else:
        yield from _operations()


def _mode(word: str) -> str:
    return ROUNDINGS[Rounding(word.lower())] if word.lower() in tuple(Rounding) else ""


def _words(words: object, kind: Sort, detail: str) -> Iterator[CompletionItem]:
    if isinstance(words, tuple | list | dict):
        yield from (CompletionItem(str(word), kind, detail) for word in words)


def _operations() -> Iterator[CompletionItem]:
    for row in VECTOR_OPERATIONS.values():
        yield CompletionItem(f"pto.{text_name(row.mnemonic)}", "operation", SHAPES[row.kind], row.spellings[0])
    for name, about in OTHERS.items():
        yield CompletionItem(name, "operation", about)
    for name in ROWS:
        yield CompletionItem(
            f"pto.{name}", "operation", "vector instruction", f"`{micro_forms(name)[0].spelling(name)}`"
        )
    for name in (*HANDLERS, *dialect_names()):
        if not name.startswith('"'):
            yield CompletionItem(name, "operation")


def _values(text: EditedText, line: int) -> Iterator[CompletionItem]:
    """Yield the values defined before a line, nearest first, back to the head of the function."""
    for written in reversed(text.lines[: line - 1]):
        match = _DEFINED.match(written)
        if match is not None:
            kind = match[2].rpartition(":")[2].rpartition("->")[2].strip()
            yield from (CompletionItem(name, "value", kind[:60]) for name in _NAME.findall(match[1]))
        elif "scf.for" in written:
            yield from (CompletionItem(name, "value", "variable of a loop") for name in _NAME.findall(written)[:1])
        if "func.func" in written:
            yield from (CompletionItem(name, "value", kind.strip()) for name, kind in _ARGUMENT.findall(written))
            return


def _types(text: EditedText) -> Iterator[CompletionItem]:
    """Yield the types in the text, then all other types."""
    yield from (
        CompletionItem(written, "type", "in this text") for written in dict.fromkeys(_WRITTEN_TYPE.findall(text.text))
    )
    yield from (CompletionItem(name, "type", f"{name}{behind}") for name, behind in TYPES.items())


def _parameters(name: str, ahead: str) -> Iterator[CompletionItem]:
    for key, words in _TILE_KEYS.items():
        if ahead.endswith(key):
            yield from _words(words, "mode", key)
            return
    if name == "mask":
        yield from _words(("b8", "b16", "b32"), "type", "bits of a lane")
        return
    if name in ("tile_buf", "multi_tile_buf") and "," in ahead.rpartition("<")[2] and "x" in ahead.rpartition(",")[2]:
        yield from _words(ELEMENTS, "type", "element")
    if name in ("tile_buf", "multi_tile_buf"):
        yield from _words(LOCATIONS, "word", "buffer")
        yield from _words(("valid=", "blayout=", "slayout=", "pad="), "word", "of the tile")
    shape = re.search(r"(?:\d+|\?)x$", ahead) is not None
    if shape or name in ("ptr", "vreg"):
        yield from _words({**ELEMENTS, **EXTENSIONS}, "type", "element")


def _quoted(ahead: str) -> Iterator[CompletionItem]:
    """Yield the words of the vector instruction in a line."""
    match = _OPERATION.search(ahead)
    if match is None or match[1] not in ROWS:
        return
    key = re.search(r'(\w+)\s*=\s*"$', ahead)
    kinds = {word for form in micro_forms(match[1]) for word in (*form.words, *form.keys)}
    for kind in sorted(kinds):
        if key is None or key[1] in (kind, "cmp_mode" if kind == "cmp" else kind):
            legal = tuple(OF_OPERATION.get(match[1], {})) if kind == "dist" else LEGAL.get(kind, ())
            yield from _words(legal, "mode", kind)


# Suggestions in TPC assembly.

DECLARATIONS = ("target", "tensor", "vlm", "reg")
"""Beginnings of `// castsim:` comments."""

_SEGMENT = re.compile(r"[;{]")
_MOST_REGISTERS = 64


def assembly_suggestions(text: EditedText, ahead: str, start: str, settings: Settings) -> Iterator[CompletionItem]:
    """Yield the words that may follow `ahead` and begin with `start`, which is already typed."""
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


TRIGGERS = (".", "%", "!", "#", "<", "=", '"')
"""Characters after which clients request completions by themselves."""

_TYPED = re.compile(r'[%!#@]?[\w.$]*$|"\w*$')

_SHAPE = re.compile(r"^(?:\d+x)+")
"""Extents, which are written in one word with the element type after them."""


def completions(text: EditedText, line: int, column: int, settings: Settings) -> tuple[list[CompletionItem], int]:
    """Return the completions at a line and column (from 1), and the number of their characters already typed."""
    before = text.lines[line - 1][: column - 1]
    typed = _TYPED.search(before)
    start = "" if typed is None else _SHAPE.sub("", typed[0].lstrip('"'))
    ahead = before[: len(before) - len(start)]
    if text.language == "c":
        return [], 0
    if text.language == "pto":
        suggestions: Iterable[CompletionItem] = tile_suggestions(text, line, ahead, start)
    else:
        suggestions = assembly_suggestions(text, ahead, start, settings)
    fitting: dict[str, CompletionItem] = {}
    for item in suggestions:
        if item.text.lower().startswith(start.lower()):
            fitting.setdefault(item.text, item)
    return list(fitting.values()), len(start)


# What an operation takes, while its operands are typed: its forms, and which operand the cursor is at.

OPERAND_TRIGGERS = ("(", ",", "[", " ")
"""Characters after which clients request signatures by themselves."""

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
"""Forms of operations that no table contains (docs/reference/pto.md section 3)."""

_NAMED = re.compile(r"(?:pto\.\w+|scf\.for)\b")
_OPERAND = re.compile(r"[%<][\w]+>?")
_SEPARATOR = re.compile(r";|\|\||[{}]")


@dataclass(frozen=True, slots=True)
class ShownSignature:
    """A form with the positions of its operands, the operand being typed, and a description of the operation."""

    label: str
    parameters: tuple[tuple[int, int], ...]
    active: int
    about: str = ""


def signatures(text: EditedText, line: int, column: int, settings: Settings) -> list[ShownSignature]:
    """Return the forms of the operation whose operands are at a line and column (from 1); empty elsewhere."""
    before = text.lines[line - 1][: column - 1]
    if "//" in before:
        return []
    if text.language == "pto":
        return list(_of_tiles(before))
    return list(_of_assembly(text, before, settings)) if text.language == "tpc" else []


def _of_tiles(before: str) -> Iterator[ShownSignature]:
    named_match = next(reversed([*_NAMED.finditer(before)]), None)
    if named_match is None or named_match.end() == len(before):
        return
    name = named_match[0].removeprefix("pto.")
    operands = before[named_match.end() :]
    row = VECTOR_OPERATIONS.get(name)
    about = ""
    if row is not None:
        outs = f"outs({', '.join(['%tile'] * row.destinations)})"
        forms = [f"pto.{name} {spelling} {outs}" for spelling in row.spellings]
        about = SHAPES[row.kind]
    elif name in ROWS:
        forms = list(dict.fromkeys(form.spelling(name) for form in micro_forms(name)))
    elif name in _BY_HAND:
        forms, about = [_BY_HAND[name]], OTHERS.get(named_match[0], "")
    else:
        return
    for form in forms:
        start = form.index(named_match[0]) + len(named_match[0])
        end = form.find(" : ", start)
        whole = form if "outs(" in form or end < 0 else form[:end]
        places = [match.span() for match in _OPERAND.finditer(whole, start)]
        yield ShownSignature(form, tuple(places), _active(operands, form), about)


def _active(operands: str, form: str) -> int:
    """Return the index of the operand being typed after an operation; types after `:` count as the last one."""
    inputs, _, outputs = operands.partition("outs(")
    if outputs or "outs(" in operands:
        listed = form.partition("outs(")[0]
        return len(_OPERAND.findall(listed)) + _commas(outputs)
    return _commas(inputs.partition("ins(")[2] if "ins(" in inputs else inputs)


def _commas(text: str) -> int:
    """Return the number of complete operands: commas and opening brackets between them, before any type."""
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
    spans, start = [], label.index(" ") + 1 if " " in label else len(label)
    for spec in form.operands:
        length = len("|".join(spec.accepts))
        spans.append((start, start + length))
        start += length + 2
    return tuple(spans)


def _position(form: Form, operands: str) -> int:
    """Return the index of an operand; no comma follows a leading mask or dimension."""
    leads = bool(form.operands) and form.operands[0].role in SELECTORS
    return operands.count(",") + (leads and (operands.count(",") > 0 or len(operands.split()) > 1 or _ends(operands)))


def _ends(operands: str) -> bool:
    return bool(operands.strip()) and operands.endswith(" ")


def shown(signatures_shown: Sequence[ShownSignature]) -> int:
    """Return the index of the first form that has the operand being typed."""
    return next(
        (number for number, signature in enumerate(signatures_shown) if signature.active < len(signature.parameters)), 0
    )

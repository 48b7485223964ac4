"""Hover texts for the word under the pointer: operations, values, types, modes and registers, in all languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, IllegalError, legal_text
from castsim.isa.formats import (
    FORMATS,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    Saturation,
    format_named,
)
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.micro_words import ROUNDINGS as LETTERS
from castsim.isa.pto.micro_words import conversion, destinations_of
from castsim.isa.pto.micro_words import forms_of as micro_forms
from castsim.isa.pto.program import MicroOperation, Operation, VectorType
from castsim.isa.pto.statement_forms import ROUND_MODES
from castsim.isa.pto.types import ELEMENTS, EXTENSIONS
from castsim.isa.pto.value_types import element_format
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.isa.reading import table_rows
from castsim.isa.tpc.forms import ROUNDING, TYPE_ALIASES, TYPES, Form
from castsim.isa.tpc.instructions import ALIASES, available, forms_of
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Bundle, Slot, TpcInstruction
from castsim.machines.casting import cast_on_target
from castsim.machines.mechanisms import CastForm, TargetCast, form_of, machine_of, tiles_of
from castsim.machines.vliw import assembly_target
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import codes_from_strings, strings_from_codes
from castsim.targets.loader import Target
from castsim.tools.editor.checker import CheckedLine
from castsim.tools.editor.program_slice import EditedText, Settings, excerpt, node_at, target_of_text, work
from castsim.tools.tpc_compiler.c_language import (
    GENERATIONS,
    Group,
    IntrinsicCall,
    IntrinsicConversion,
    Mask,
    Vector,
    call_named,
    constants,
    first_generation,
    type_named,
)

# What words of programs mean, in a phrase each, where no table of castsim says it at run time. Source:
# docs/reference/pto.md sections 3 to 7, docs/reference/formats.md section 6, docs/reference/tpc.md section 2.

_MEANINGS = {row["word"]: row["meaning"] for row in table_rows(Path(__file__).with_name("word_meanings.csv"))}
SHAPES: Mapping[Kind, str] = {kind: _MEANINGS.pop(kind) for kind in Kind}
"""Description of an operation, by its kind."""
OTHERS: Mapping[str, str] = _MEANINGS
"""Descriptions of operations that are not in a table of vector operations."""

ROUNDINGS: Mapping[Rounding, str] = {
    Rounding.RINT: "to nearest, ties to even",
    Rounding.ROUND: "to nearest, ties away from zero",
    Rounding.FLOOR: "toward minus infinity",
    Rounding.CEIL: "toward plus infinity",
    Rounding.TRUNC: "toward zero",
    Rounding.ODD: "to odd: an inexact result gets 1 as its last kept bit",
    Rounding.HALF_UP: "to nearest, ties toward plus infinity",
    Rounding.STOCHASTIC: "up with the probability of the dropped part",
    Rounding.HYBRID: "ties away from zero near one, pseudo-stochastic elsewhere",
}
"""Description of each rounding mode."""

# What a target makes of the values by which conversions differ: NaN, infinities, ends of ranges, ties.

_LONGEST = 20
"""Maximum number of characters of a number that is shown as a plain decimal."""

_TIES = ("0.5", "1.5", "2.5", "-2.5")
_OVERFLOWS = {
    Overflow.SATURATE: "clamped to the ends of the range",
    Overflow.WRAP: "wrapped: the low bits are kept",
    Overflow.SPECIAL: "infinity or NaN, as the format has them",
}

_FORMS: dict[CastForm, str] = {
    "1d": "1d, of full rows or a single row",
    "2d": "2d, of rows with invalid columns at the end",
}


def _beyond(target_cast: TargetCast) -> str:
    if target_cast.saturation == "not needed":
        return "nothing can be"
    switch = "switch " if target_cast.saturation in tuple(Saturation) else ""
    return f"{_OVERFLOWS[target_cast.overflow]} (saturation {switch}{target_cast.saturation})"


def _shown(codes: Codes, fmt: Format) -> list[str]:
    texts = [str(text) for text in np.ravel(strings_from_codes(codes, fmt))]
    return [text if len(text) <= _LONGEST else f"{float(text):.9g}" for text in texts]


def _codes(src: Format, dst: Format) -> Codes:
    """Return sample codes of the source: special values, values just outside the destination's range, ties."""
    codes = [code for text in _texts(src) for code in _code(text, src)]
    if isinstance(dst, IntFormat) and isinstance(src, FloatFormat):
        codes += [code for end in (dst.maximum + 1, dst.minimum - 1) for code in _code(str(end), src)]
    elif isinstance(dst, FloatFormat):
        codes += _code(_largest(dst), src)
    return np.array(list(dict.fromkeys(codes)), code_dtype(src))


def _largest(fmt: FloatFormat) -> str:
    return str(np.ravel(strings_from_codes(np.array([fmt.max_finite_code], code_dtype(fmt)), fmt))[0])


def _texts(src: Format) -> Iterator[str]:
    if isinstance(src, IntFormat):
        yield from (str(src.minimum), "-1", "1", str(src.maximum))
    else:
        yield from ("nan", "inf", "-inf", "-0.0", *_TIES)
        if isinstance(src, FloatFormat):
            yield _largest(src)


def _code(text: str, src: Format) -> Iterator[int]:
    """Yield the code of a value in a format; empty if the format lacks it."""
    try:
        codes = codes_from_strings([text], src)
    except (CastsimError, ValueError):
        return
    yield int(np.ravel(codes)[0])


# Parts that hovers of several languages are made of.


@dataclass(slots=True)
class Said:
    """Paragraphs in Markdown; `of_operation` tells whether they describe the line's operation."""

    parts: list[str]
    of_operation: bool = False


def conversion_part(
    src: Format,
    dst: Format,
    target: Target,
    rounding: str | None,
    saturation: Saturation | None,
    *,
    scratch: bool = False,
    form: CastForm | None = None,
) -> str:
    """Return a conversion on a target: whether it exists, its modes, a table of special values."""
    codes = _codes(src, dst)
    try:
        target_cast = cast_on_target(
            codes, src, dst, target, rounding=rounding, saturation=saturation, scratch=scratch, form=form
        )
    except CastsimError as error:
        legal = f"\n\nlegal: {legal_text(error.values, error.message, error.span)}" if error.values else ""
        return f"**{src.name} -> {dst.name}** on {target.name}: {error.message}{legal}"
    about = f", {ROUNDINGS[Rounding(target_cast.rounding)]}" if target_cast.rounding in tuple(Rounding) else ""
    modes = [f"rounding: `{target_cast.rounding}`{about}", f"out of range: {_beyond(target_cast)}"]
    modes += [] if form is None else [f"form: {_FORMS[form]}"]
    modes += [str(warning.text) for warning in target_cast.warnings]
    results = dict(zip(_shown(codes, src), _shown(target_cast.codes, dst), strict=True))
    rows = "\n".join(f"| {value} | {result} |" for value, result in results.items())
    listed_modes = "\n".join(f"- {mode}" for mode in modes)
    head = f"**{src.name} -> {dst.name}** on {target.name}"
    return f"{head}\n\n{listed_modes}\n\n| {src.name} | {dst.name} |\n|--|--|\n{rows}"


def format_part(fmt: Format, spelling: str) -> str:
    """Return the layout of a number format."""
    about = f"`{spelling}` is the format {fmt.name}: {fmt.bits} bits"
    if isinstance(fmt, IntFormat):
        return f"{about}, integers {fmt.minimum} to {fmt.maximum}"
    if isinstance(fmt, FloatFormat):
        fields = f"{fmt.exponent_bits} of exponent (bias {fmt.bias}), {fmt.fraction_bits} of fraction"
        specials = [
            word
            for word, there in (("infinities", fmt.has_infinity), ("NaN", fmt.has_nan), ("-0", fmt.has_negative_zero))
            if there
        ]
        return f"{about}, {fields}; has {', '.join(specials) or 'finite numbers only'}"
    return about


def listed(words: Sequence[str]) -> str:
    """Return words as code, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)


# What is said of a word of a `.pto` text.

_ELEMENT = re.compile(r"(?:\d+x)*([A-Za-z]\w*)$")
_DEFINES = r"\s*(?:%[\w.$-]+(?::\d+)?\s*,\s*)*%{}\s*(?::\d+)?\s*(?:,[^=]*)?="


def tile_hover(text: EditedText, line: int, word: str, settings: Settings) -> Said | None:
    """Return the hover text of a word in a tile program; None if it has none."""
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


def _value(text: EditedText, line: int, word: str) -> Said | None:
    """Return the line that defines a value: the last one before its use, else the head of its function."""
    defines = re.compile(_DEFINES.format(re.escape(word[1:])))
    for written in reversed(text.lines[:line]):
        if defines.match(written):
            return Said([f"```pto\n{written.strip()}\n```"])
        if "func.func" in written and re.search(rf"{re.escape(word)}\s*:", written):
            argument = re.search(rf"{re.escape(word)}\s*:\s*(![\w.]+<[^>]*>|\w+)", written)
            return Said([f"```pto\n{word}: {argument[1]}\n```\n\nan argument of the function"]) if argument else None
    return None


def _operation(text: EditedText, line: int, name: str, word: str, settings: Settings) -> Said:
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
        instructions, cycles = work(node, statement, target) or ("", None)
        parts += [] if cycles is None else [f"Alone: {cycles:,} cycles"]
        parts += [f"Executed as\n\n```pto\n{instructions}\n```"] if instructions else []
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
    facts = next((operation for operation in chip.tile_operations if operation.mnemonic == row.mnemonic), None)
    if facts is None:
        return [f"{chip.name} does not have it"]
    scratch = {"none": "", "used": "; uses its tmp tile", "ignored": "; ignores its tmp tile"}.get(facts.tmp, "")
    lines = [f"On {chip.name}: elements {listed(facts.types)}{scratch}"]
    if facts.approximate is not None:
        lines.append(f"Values are not claimed to be bit-exact: {facts.approximate}")
    return lines


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


def _micro(name: str, node: Operation | None) -> list[str]:
    row = ROWS[name]
    forms = "\n".join(dict.fromkeys(form.spelling(name) for form in micro_forms(name)))
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
    clamps = {"SAT": "clamps values out of range", "NOSAT": "does not clamp"}.get(node.word("sat") or "", "")
    clamped = f"\n\n`{node.word('sat')}` {clamps}" if clamps else ""
    return f"**{pair.src} -> {pair.dst}**\n\n" + "\n".join(words) + rounded + clamped


# What is said of a word of a TPC kernel in C: intrinsics, types, constants of the vendor's header.

_UNITS = {"v": "vectors", "s": "scalars", "i": "coordinates"}


def kernel_hover(text: EditedText, line: int, word: str, settings: Settings) -> Said | None:
    """Return the hover text of a word in a kernel in C; None if it has none."""
    del line
    call = call_named(word)
    if isinstance(call, IntrinsicCall):
        return Said(_call_parts(word, call), of_operation=True)
    if isinstance(call, IntrinsicConversion):
        return Said(_conversion_parts(word, call, text, settings), of_operation=True)
    if word in constants():
        return Said([f"`{word}` is {constants()[word]}, a constant of the vendor's header"])
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
        members = ", ".join(f"`v{n}` {member}" for n, member in enumerate(kind.members, 1))
        return f"`{word}` is {len(kind.members)} vectors in registers in a row: {members}{later}"
    if isinstance(kind, Mask):
        return f"`{word}` is a predicate of {kind.lanes} lanes: one VP register"
    return {
        "int5": "`int5` is five coordinates: one I register",
        "tensor": "`tensor` is a tensor of the launch, by its number",
    }.get(word)


# What is said of a word of TPC assembly.

_REGISTER = re.compile(r"%?(VP|SP|AD|V|S|I)(\d+)$", re.IGNORECASE)
_FILES = {
    "V": "vector register of 256 bytes",
    "S": "scalar register of 32 bits",
    "I": "index register: the coordinates of an element of a tensor",
    "AD": "address register of 64 bits",
    "SP": "scalar predicate; SP0 is always true",
    "VP": "vector predicate, a bit for each byte of a vector",
}


def assembly_hover(text: EditedText, line: int, word: str, settings: Settings) -> Said | None:
    """Return the hover text of a word in assembly; None if it has none."""
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


def _instruction(
    text: EditedText, line: int, mnemonic: str, suffix: str, target: Target | None
) -> TpcInstruction | None:
    """Return the instruction of a line that has a mnemonic, None if the line cannot be read."""
    region = excerpt(text, line - 1, line - 1)
    chip = assembly_target(target)
    if region is None or chip is None:
        return None
    try:
        items = parse(region.text.text, chip.dialect, text.name).items
    except CastsimError:
        return None
    own = [
        instruction
        for item in items
        if isinstance(item, Bundle)
        for instruction in item.slots
        if instruction is not None and instruction.span.line == line and instruction.form.mnemonic == mnemonic
    ]
    typed = [signature for signature in own if signature.type == TYPE_ALIASES.get(suffix, suffix)]
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


# The word under the pointer, in any of the languages.

_HOVERS = {"pto": tile_hover, "tpc": assembly_hover, "c": kernel_hover}
_WORD = re.compile(r"[%!@#]?[\w.$]+(?:-(?!>)[\w.$]+)*")


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown on a word, with its columns in the line (from 1, the end exclusive)."""

    text: str
    column: int
    end: int


def hover(
    text: EditedText, line: int, column: int, settings: Settings, cycles: Sequence[CheckedLine] = ()
) -> Hover | None:
    """Return the hover text of the word at a position; None if it has none. `cycles` are the costs of lines."""
    written = text.lines[line - 1]
    match = next(
        (candidate for candidate in _WORD.finditer(written) if candidate.start() < column <= candidate.end() + 1), None
    )
    if match is None or "//" in written[: match.start()]:
        return None
    hover_text = _HOVERS[text.language](text, line, match[0], settings)
    if hover_text is None:
        return None
    own = next((timed_line for timed_line in cycles if timed_line.line == line), None)
    if own is not None and hover_text.of_operation:
        hover_text.parts.append(f"In this program: {own.label}\n\n```\n{own.about}\n```")
    return Hover("\n\n".join(hover_text.parts), match.start() + 1, match.end() + 1)

"""What is said of a word of a `.pto` text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from castsim.commands.editor.alone import node_at, work
from castsim.commands.editor.document import EditedText, Settings, target_of_text
from castsim.commands.editor.words import OTHERS, ROUNDINGS, SHAPES
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.isa.pto import program as pto
from castsim.isa.pto.attributes import ROUND_MODES
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.micro_words import ROUNDINGS as LETTERS
from castsim.isa.pto.micro_words import conversion, destinations_of, forms_of
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.program import MicroOperation, Operation, VectorType
from castsim.isa.pto.types import ELEMENTS, EXTENSIONS
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, VectorOperation
from castsim.machines.casting import cast_on_target
from castsim.machines.mechanisms import machine_of, tiles_of
from castsim.machines.target_cast import CastForm, TargetCast, form_of
from castsim.numerics import code_dtype, codes_from_strings, strings_from_codes
from castsim.targets import Target

# What a target makes of the values by which conversions differ: NaN, infinities, ends of ranges, ties.

_LONGEST = 20
"""Characters of a number that is shown as a plain decimal."""

_TIES = ("0.5", "1.5", "2.5", "-2.5")
_OVERFLOWS = {
    Overflow.SATURATE: "clamped to the ends of the range",
    Overflow.WRAP: "wrapped: the low bits are kept",
    Overflow.SPECIAL: "infinity or NaN, as the format has them",
}

_FORMS: dict[CastForm, str] = {
    "1d": "1d, of full rows or a single row",
    "2d": "2d, of rows that go on behind their valid columns",
}


@dataclass(frozen=True, slots=True)
class HoveredConversion:
    """A conversion on a target: its modes in force, in words, and pairs of a value and its result."""

    modes: tuple[str, ...]
    values: tuple[tuple[str, str], ...]


def converted(
    src: Format,
    dst: Format,
    target: Target,
    rounding: str | None,
    saturation: Saturation | None,
    *,
    scratch: bool,
    form: CastForm | None,
) -> HoveredConversion:
    """Convert the values that tell conversions apart.

    Raises:
        CastsimError: the target lacks the pair or the mode.
    """
    codes = _codes(src, dst)
    found = cast_on_target(
        codes, src, dst, target, rounding=rounding, saturation=saturation, scratch=scratch, form=form
    )
    modes = [
        f"rounding: `{found.rounding}`{_conversions_about(found.rounding)}",
        f"out of range: {_beyond(found)}",
    ]
    modes += [] if form is None else [f"form: {_FORMS[form]}"]
    modes += [str(one.text) for one in found.warnings]
    pairs = dict(zip(_shown(codes, src), _shown(found.codes, dst), strict=True))
    return HoveredConversion(tuple(modes), tuple(pairs.items()))


def _beyond(found: TargetCast) -> str:
    if found.saturation == "not needed":
        return "nothing can be"
    switch = "switch " if found.saturation in tuple(Saturation) else ""
    return f"{_OVERFLOWS[found.overflow]} (saturation {switch}{found.saturation})"


def _shown(codes: Codes, fmt: Format) -> list[str]:
    texts = [str(text) for text in np.ravel(strings_from_codes(codes, fmt))]
    return [text if len(text) <= _LONGEST else f"{float(text):.9g}" for text in texts]


def _conversions_about(rounding: str) -> str:
    return f", {ROUNDINGS[Rounding(rounding)]}" if rounding in tuple(Rounding) else ""


def _codes(src: Format, dst: Format) -> Codes:
    """Return codes of the source: its special ones, what lies just outside of the destination, ties."""
    found = [code for text in _texts(src) for code in _code(text, src)]
    if isinstance(dst, IntFormat) and isinstance(src, FloatFormat):
        found += [code for end in (dst.maximum + 1, dst.minimum - 1) for code in _code(str(end), src)]
    elif isinstance(dst, FloatFormat):
        found += _code(_largest(dst), src)
    return np.array(list(dict.fromkeys(found)), code_dtype(src))


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
    """Yield the code of a value in a format; nothing if the format does not have it."""
    try:
        codes = codes_from_strings([text], src)
    except (CastsimError, ValueError):
        return
    yield int(np.ravel(codes)[0])


# Parts that hovers of both languages are made of.


@dataclass(slots=True)
class Said:
    """Paragraphs in Markdown; `of_operation` tells whether they are about what the line executes."""

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
    """Return what a target makes of a conversion: whether it has it, modes, a table of special values."""
    try:
        found = converted(src, dst, target, rounding, saturation, scratch=scratch, form=form)
    except CastsimError as error:
        legal = f"\n\nlegal: {', '.join(error.values)}" if error.values else ""
        return f"**{src.name} -> {dst.name}** on {target.name}: {error.message}{legal}"
    rows = "\n".join(f"| {value} | {result} |" for value, result in found.values)
    modes = "\n".join(f"- {mode}" for mode in found.modes)
    return f"**{src.name} -> {dst.name}** on {target.name}\n\n{modes}\n\n| {src.name} | {dst.name} |\n|--|--|\n{rows}"


def format_part(fmt: Format, spelling: str) -> str:
    """Return what a number format is made of."""
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


_ELEMENT = re.compile(r"(?:\d+x)*([A-Za-z]\w*)$")
_DEFINES = r"\s*(?:%[\w.$-]+(?::\d+)?\s*,\s*)*%{}\s*(?::\d+)?\s*(?:,[^=]*)?="


def tile_hover(text: EditedText, line: int, word: str, settings: Settings) -> Said | None:
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

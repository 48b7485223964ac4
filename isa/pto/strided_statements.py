"""The instructions of A2/A3 as statements `pto.strided.NAME`: their table, reading and writing.

An instruction works from buffer to buffer, `repeats` times over 256 bytes of its wider operand; `set_vector_mask`,
`set_mask_count` and `set_mask_norm` say which lanes. Source: docs/reference/a2a3.md sections 2 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from castsim.isa.dataclass import dataclass
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Operation
from castsim.isa.pto.statement_forms import Attribute, format_attributes, read_attributes, unknown_key, values_text
from castsim.isa.pto.statement_reader import NamedOperation, PtoReader, Use
from castsim.isa.pto.types import element_spelling, format_type
from castsim.isa.pto.value_types import PointerType, ScalarType, StridedStatement, Type, element_format
from castsim.isa.reading import table_rows

PREFIX = "strided."
"""The prefix of their names after `pto.`."""

BLOCK, REPEAT = 32, 256
"""Bytes of a block of the buffer, and of a repeat (docs/reference/a2a3.md section 2.1)."""


@dataclass(frozen=True, slots=True)
class StridedRow:
    """A statement: its forms, its elements (none: any) and the function of its lanes.

    A form is a string of letters: D is a destination, S a source; B and O are pointers to bits and to 32-bit byte
    offsets (B in front: the destination), R any pointer. X is a scalar of the
    source's element, N a whole number, W a 64-bit word, F an f16. `elements` are pairs of destination and source.
    """

    forms: tuple[str, ...]
    elements: tuple[tuple[str, str], ...]
    function: str
    keys: tuple[str, ...]
    timing: str
    """The instruction by which tables of cycles name it: a comparison's without its relation."""

    @property
    def converts(self) -> bool:
        """Whether it is a conversion."""
        return self.function == "convert"

    @property
    def compares(self) -> bool:
        """Whether it packs a bit for every lane."""
        return self.forms[0][:1] == "B"

    @property
    def destinations(self) -> int:
        """How many operands, the first ones, are written."""
        form = self.forms[0]
        return max(form.count("D"), form[:1] == "B") if self.elements else 0


_KEYS = {
    "vcmax": ("order",), "vcmin": ("order",), "vreducev2": ("pattern",), "vmrgsort4": ("exhausted",),
    "scatter_vnchwconv": ("halves",), "vgather": ("reach",), "vgatherb": ("reach",),
}  # fmt: skip
WORDS: Mapping[str, tuple[str, ...]] = {
    "order": ("value_index", "index_value", "value", "index"),
    "pattern": tuple(map(str, range(1, 8))),
    "exhausted": ("stop",),
    "halves": ("low_high", "high_low", "high_high"),
}
"""The legal words of attributes: `order` of a maximum and its lane, by default the first; `pattern` of a gather;
`exhausted` of a merge that ends with the first list that does; `halves` of the blocks of 8-bit elements that a
transposition writes and reads, by default the low ones. `reach` of a gather is a number, the bytes from its base that
it may read: by default a block."""


def _read_table() -> Iterator[tuple[str, StridedRow]]:
    for row in table_rows(Path(__file__).with_name("strided_rows.csv")):
        forms = tuple(form.replace(" ", "").strip("-") for form in row["operands"].split(" | "))
        pairs = (pair.partition("<") for pair in row["elements"].strip("-").split())
        elements = tuple((to, source or to) for to, _, source in pairs)
        names, functions = row["names"].split(), row["function"].split()
        for number, name in enumerate(names):
            timing = name.partition("_")[0] if forms[0][:1] == "B" else name
            yield name, StridedRow(forms, elements, functions[number % len(functions)], _KEYS.get(name, ()), timing)


STRIDED_ROWS: Mapping[str, StridedRow] = dict(_read_table())
"""Every statement by its name."""

REDUCTIONS = ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd")
"""The instructions that make fewer results than elements."""

_LETTERS = {
    "D": "!pto.ptr<T, ub>", "S": "!pto.ptr<T, ub>", "B": "!pto.ptr<ui8, ub>", "O": "!pto.ptr<ui32, ub>",
    "R": "!pto.ptr<T, ub>", "X": "T", "N": "i32", "W": "i64", "F": "f16",
}  # fmt: skip
_WHOLE = ("index", "i16", "i32", "i64", "u16", "u32", "u64")
INDEX = ScalarType("index")
"""The type of a number of repeats among the operands."""

_LIST = re.compile(r"\[(-?\d+(?:, -?\d+)*)?\]")


def pointers_of(node: StridedStatement) -> tuple[PointerType, ...]:
    """Return the types of the pointers of a statement, the destination's first."""
    return tuple(kind for kind in node.operand_types if isinstance(kind, PointerType))


def lanes_of(node: StridedStatement) -> int:
    """Return the elements of a full repeat: 256 bytes of the wider operand.

    Those of comparisons count in their sources, blocks of `vgatherb` in the destination.
    """
    pointers = pointers_of(node)
    if STRIDED_ROWS[node.mnemonic].compares:
        pointers = pointers[1:]
    elif node.mnemonic == "vgatherb":
        pointers = pointers[:1]
    return REPEAT * 8 // max(element_format(kind.element).bits for kind in pointers[:2])


def strides_of(node: StridedStatement) -> tuple[int, ...]:
    """Return the repeat strides of a statement's pointers; by default, those of adjacent repeats.

    Those of a reduction's destination count results: single elements (pairs with their lanes) of `vcadd`, `vcmax` and
    `vcmin`, a result of each block of `vcgadd` and its like, of each pair of `vcpadd`.
    """
    if node.strides:
        return node.strides
    lanes = lanes_of(node)
    strides = [max(lanes * element_format(kind.element).bits // 8 // BLOCK, 1) for kind in pointers_of(node)]
    return (1, *strides[1:]) if node.mnemonic in REDUCTIONS else tuple(strides)


def read_strided(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read one statement.

    Raises:
        ReadError: operands, types, attributes or results that it is not written with.
    """
    statement.no_result(reader)
    name = statement.operation.removeprefix(PREFIX)
    row = STRIDED_ROWS[name]
    inputs, index = _operands(reader, "ins")
    outputs, at = _operands(reader, "outs")
    index = at if index is None else index
    if len(outputs) != row.destinations:
        count = {0: "no destination", 1: "one destination"}.get(row.destinations, f"{row.destinations} destinations")
        raise reader.error(f"{statement.name} has {count}", at or statement.index, _examples(name)[:1])
    uses = [*outputs, *inputs]
    kinds = tuple(use[2].type for use in uses)
    problem = mismatch(name, row, kinds)
    if problem:
        raise reader.error(f"{statement.name} {problem}", index or statement.index, _examples(name))
    numbers: dict[str, tuple[int, ...]] = {}
    words = []
    pointers = sum(isinstance(kind, PointerType) for kind in kinds)
    for key, attribute in read_attributes(reader).items():
        if key in ("repeats", "blocks", "strides") and row.elements:
            numbers[key] = _numbers(reader, statement, key, attribute, 1 if key == "repeats" else pointers)
        elif key not in row.keys:
            legal = (*(("repeats", "blocks", "strides") if row.elements else ()), *row.keys)
            unknown_key(reader, statement.name, key, attribute.key_index, legal)
        elif key not in WORDS:
            words.append((key, str(_numbers(reader, statement, key, attribute, 1)[0])))
        elif attribute.text not in WORDS[key]:
            raise reader.error(f"unknown {key} '{attribute.text[:40]}'", attribute.value_index, WORDS[key])
        else:
            words.append((key, attribute.text))
    return StridedStatement(
        name, tuple(use[0] for use in uses), kinds, attributes=tuple(sorted(words)),
        destinations=row.destinations, repeats=numbers.get("repeats", (1,))[0],
        blocks=numbers.get("blocks", ()), strides=numbers.get("strides", ()), span=statement.span,
    )  # fmt: skip


def _operands(reader: PtoReader, word: str) -> tuple[list[Use], int | None]:
    """Read `WORD(%a, %b : T0, T1)`, if it is there; return the uses and the token of the first type."""
    if not reader.at(word) or reader.kinds[reader.position] is not TokenKind.WORD:
        return [], None
    reader.expect(word)
    reader.expect("(")
    uses = [reader.operand()]
    while reader.take(","):
        uses.append(reader.operand())
    reader.expect(":")
    types = reader.types()
    reader.check_uses(uses, types)
    reader.expect(")")
    return uses, types[0][1]


def _numbers(
    reader: PtoReader, statement: NamedOperation, key: str, attribute: Attribute, count: int
) -> tuple[int, ...]:
    """Return the numbers of an attribute: one, or a list of one for each pointer."""
    text = attribute.text.partition(" :")[0]
    match = _LIST.fullmatch(f"[{text}]" if key in ("repeats", "reach") else text)
    numbers = tuple(map(int, match[1].split(", "))) if match is not None and match[1] else ()
    if len(numbers) != count or min(numbers) < 0:
        legal = "4" if key in ("repeats", "reach") else str([1 if key == "blocks" else 8] * count)
        what = "a whole number" if key in ("repeats", "reach") else f"a list of {count}, the destination's first"
        raise reader.error(f"{key} of {statement.name} is {what}, not {text[:40]}", attribute.value_index, (legal,))
    return numbers


def mismatch(name: str, row: StridedRow, kinds: tuple[Type, ...]) -> str:
    """Return why operands of these types do not fit; empty if they do."""
    if row.elements and kinds and kinds[-1] == INDEX and not any(len(form) == len(kinds) for form in row.forms):
        kinds = kinds[:-1]  # the number of repeats
    fitting = [form for form in row.forms if len(form) == len(kinds)]
    if not fitting:
        return f"takes {' or '.join(str(len(form)) for form in row.forms)} operands, not {len(kinds)}"
    problems = [_misfit(name, row, form, kinds) for form in fitting]
    return "" if "" in problems else problems[0]


def _misfit(name: str, row: StridedRow, form: str, kinds: tuple[Type, ...]) -> str:
    pointed = [(letter, kind) for letter, kind in zip(form, kinds, strict=True) if letter in "DSBOR"]
    for letter, kind in pointed:
        if not isinstance(kind, PointerType) or kind.space != "ub":
            return f"works on pointers into the buffer, not on {format_type(kind)}"
        if letter == "O" and kind.element not in ("i32", "u32"):
            return f"takes byte offsets of ui32, not {format_type(kind)}"
    elements = {letter: {kind.element for own, kind in pointed if own == letter and isinstance(kind, PointerType)} for letter in "DS"}  # fmt: skip # noqa: E501
    if row.elements:
        fits = [
            (to, source) for to, source in row.elements
            if (not elements["D"] or elements["D"] == {to}) and (not elements["S"] or elements["S"] == {source})
        ]  # fmt: skip
        if not fits:
            shown = ", ".join(
                element_spelling(to) if to == source else f"{source} -> {to}" for to, source in row.elements
            )
            return f"has no form for these elements; it has {shown}"
    source = next(iter(elements["S"] or elements["D"]), "")
    for letter, kind in zip(form, kinds, strict=True):
        wanted = {"X": (source,), "N": _WHOLE, "W": ("i64", "u64"), "F": ("f16",)}.get(letter)
        if wanted is not None and not (isinstance(kind, ScalarType) and kind.name in wanted):
            return f"takes a scalar of {wanted[0]}, not {format_type(kind)}"
    return ""


def _examples(name: str) -> tuple[str, ...]:
    """Return the forms of a statement as text."""
    examples = []
    for form in STRIDED_ROWS[name].forms:
        letters = form
        out = letters[: STRIDED_ROWS[name].destinations]
        inputs = letters[len(out) :]
        names = ", ".join(f"%{chr(97 + number)}" for number in range(len(inputs)))
        text = f"pto.{PREFIX}{name}"
        text += f" ins({names} : {', '.join(_LETTERS[letter] for letter in inputs)})" if inputs else ""
        made = ", ".join(f"%d{number or ''}" for number in range(len(out)))
        examples.append(text + (f" outs({made} : {', '.join(_LETTERS[letter] for letter in out)})" if out else ""))
    return tuple(examples)


def strided_text(node: StridedStatement) -> str:
    """Return the text of a statement."""
    split = node.destinations
    text = f"pto.{PREFIX}{node.mnemonic}"
    for word, part in (("ins", slice(split, None)), ("outs", slice(split))):
        if node.operands[part]:
            kinds = ", ".join(map(format_type, node.operand_types[part]))
            text += f" {word}({values_text(node.operands[part])} : {kinds})"
    entries = [*node.attributes]
    entries += [("repeats", str(node.repeats))] if node.repeats != 1 else []
    entries += [(key, str([*own])) for key, own in (("blocks", node.blocks), ("strides", node.strides)) if own]
    return f"{text} {format_attributes(tuple(entries))}".rstrip()

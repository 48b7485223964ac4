"""A text in canonical form: statements as the printers write them, blocks indented; comments stay.

A text that cannot be read is not touched, nor is a statement that would read as another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from castsim.commands.editor.document import EditedText, Settings, target_of_text
from castsim.commands.editor.symbols_tiles import TileIndex
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.pto import program as pto
from castsim.isa.pto import pto_parser
from castsim.isa.pto.program import For, If, Section, While, nodes
from castsim.isa.pto.pto_printer import head_text, operation_text
from castsim.isa.tpc import parse
from castsim.isa.tpc.printer import canonical_text
from castsim.machines.vliw.program_sources import assembly_target
from castsim.tpc_compiler.virtual_registers import has_virtual_registers

_STEP = "  "
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|//.*|\s+|[^\s"/]+|.')
_OUTSIDE = re.compile(r'//.*|"(?:[^"\\]|\\.)*"|<[^<>]*>')


def formatted(text: EditedText, settings: Settings) -> str:
    """Return a text in canonical form.

    Raises:
        CastsimError: it cannot be read.
        ReadError: assembly without a target, or with named registers, which only scheduling replaces.
    """
    if text.language == "pto":
        return _tiles(text)
    if text.language == "tpc":
        return _assembly(text, settings)
    raise ReadError(f"{text.language} is not formatted", legal=(".pto", ".tpc"))


# ------------------------------------------------------------------------------------------------------------- .pto


def _tiles(text: EditedText) -> str:
    program = pto_parser.parse(text.text, text.name)
    for statements in (_statements(text, program), {}):
        found = _indented(text.lines, statements)
        try:
            if pto_parser.parse(found, text.name) == program:
                return found
        except CastsimError:
            continue
    raise ReadError("the text cannot be formatted without changing what it says")


def _statements(text: EditedText, program: pto.Program) -> dict[int, tuple[int, str]]:
    """Return the canonical statements by their first line, from 0, with the line behind them."""
    index = TileIndex(text.lines)
    starts: dict[int, list[pto.Operation]] = {}
    for function in program.functions:
        for node in nodes(function.body or ()):
            starts.setdefault(node.span.line - 1, []).append(node)
    found = {}
    for number, here in starts.items():
        end = number + 1
        while end < len(text.lines) and end not in starts and _continues(index, end):
            end += 1
        node = here[0]
        lines = text.lines[number:end]
        if len(here) > 1 or any("//" in line for line in lines[:-1]):
            continue
        if not isinstance(node, For | If | While | Section):
            if index.line(number).plain or len(lines) > 1:
                found[number] = end, operation_text(node)
        elif not isinstance(node, Section) and len(lines) == 1 and _is_head(lines[0]):
            found[number] = end, head_text(node)
    return found


def _is_head(line: str) -> bool:
    return _OUTSIDE.sub("", line).rstrip().endswith("{") and not line.lstrip().startswith("}")


def _continues(index: TileIndex, number: int) -> bool:
    """Whether a line goes on with the statement of the line before: it has words, and is no end, label or comment."""
    first = index.line(number).tokens.texts[0]
    return bool(first) and first not in ("}", "func.func", "module") and not first.startswith("^")


def _indented(lines: Sequence[str], statements: dict[int, tuple[int, str]]) -> str:
    found: list[str] = []
    depth, number, continued = 0, 0, 0
    while number < len(lines):
        end, statement = statements.get(number, (number + 1, None))
        line = lines[end - 1]
        plain = _OUTSIDE.sub("", line)
        comment = _comment(line)
        body = _blanks(line.removesuffix(comment)) if statement is None else statement
        closing = len(plain) - len(plain.lstrip(" \t}")) and plain.lstrip()[:1] == "}"
        label = body.startswith("^")
        margin = _STEP * max(0, depth - bool(closing) - label) + _STEP * 2 * continued
        gap = "  " if body and comment else ""
        found.append(f"{margin}{body}{gap}{comment}".rstrip())
        opened = _OUTSIDE.sub("", "\n".join(lines[number:end]))
        depth = max(0, depth + opened.count("{") - opened.count("}"))
        continued = int((statement is None and opened.count("(") > opened.count(")")) or (
            bool(continued) and opened.count("(") >= opened.count(")") and bool(body)))  # fmt: skip
        number = end
    return "\n".join(found)


def _comment(line: str) -> str:
    """Return the comment at the end of a line."""
    return next((one for one in _PIECE.findall(line) if one.startswith("//")), "")


def _blanks(text: str) -> str:
    """Return a text with one blank where there are several, strings as they are."""
    return "".join(" " if one.isspace() else one for one in _PIECE.findall(text)).strip()


# ------------------------------------------------------------------------------------------------------------- .tpc


def _assembly(text: EditedText, settings: Settings) -> str:
    target = target_of_text(text, settings)
    chip = assembly_target(target)
    if chip is None:
        raise ReadError("no target tells how this assembly is read", legal=("// castsim: target NAME",))
    if has_virtual_registers(text.text):
        raise ReadError("named registers are not formatted; `castsim schedule` replaces them")
    program = parse(text.text, chip.dialect, text.name)
    if "/*" in text.text:
        raise ReadError("comments in /* */ are not formatted", legal=("//",))
    lines = []
    in_bundle = False
    for old, new in zip(text.lines, canonical_text(text.text, chip.dialect, text.name).split("\n"), strict=True):
        comment = _comment(old)
        plain = old.removesuffix(comment)
        in_bundle = in_bundle or plain.lstrip().startswith("{")
        if in_bundle:
            in_bundle = "}" not in plain
            lines.append(old.rstrip())
        elif "castsim" in comment:
            lines.append(old.strip())
        elif not comment:
            lines.append(new)
        else:
            lines.append(f"{new.ljust(len(plain) if new else 0)}{comment}".rstrip())
    found = "\n".join(lines)
    if parse(found, chip.dialect, text.name) != program:
        raise ReadError("the text cannot be formatted without changing what it says")
    return found

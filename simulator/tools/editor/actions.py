"""Changes to a text: repairs of findings (the legal chain of casts, the flag that a race lacks, the intended word),
and the canonical form.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Severity
from castsim.isa.pto import program as pto
from castsim.isa.pto import pto_parser
from castsim.isa.pto.program import For, If, Section, While, nodes
from castsim.isa.pto.pto_printer import head_text, operation_text
from castsim.isa.pto.types import format_type
from castsim.isa.tpc.parser import canonical_text, has_virtual_registers, parse
from castsim.machines.vliw import assembly_target
from castsim.tools.check.checking import Finding, check_text
from castsim.tools.editor.program_slice import EditedText, Settings, excerpt, findings_in, node_at, target_of_text
from castsim.tools.editor.symbols import TileIndex
from castsim.tools.lowering.demand import CastRequest
from castsim.tools.lowering.lowering_answers import Answer, answer
from castsim.tools.lowering.planner import PlanKind
from castsim.tools.lowering.steps import TileCastForm

# What a repair is, and a text with it.


@dataclass(frozen=True, slots=True)
class Edit:
    """Text that replaces columns `column` to `end` (exclusive) of a line, all from 1; it may have several lines."""

    line: int
    column: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair: its title, edits of lines of the current text, and whether it is the preferred one."""

    title: str
    edits: tuple[Edit, ...]
    preferred: bool = False


def line_before(line: int, text: str, like: str) -> Edit:
    """Return the insertion of a line before another, indented as the line `like`."""
    indent = like[: len(like) - len(like.lstrip())]
    return Edit(line, 1, 1, f"{indent}{text}\n")


def repaired(text: EditedText, edits: tuple[Edit, ...]) -> EditedText:
    """Return a text with edits."""
    lines = list(text.lines)
    for edit in sorted(edits, key=lambda text_edit: (text_edit.line, text_edit.column), reverse=True):
        old = lines[edit.line - 1]
        lines[edit.line - 1] = old[: edit.column - 1] + edit.text + old[edit.end - 1 :]
    return text.with_lines("\n".join(lines).split("\n"))


# A cast that the target lacks, replaced by the chain of casts that `castsim lower` finds.

_STEPS = 2
"""Maximum number of casts in a chain: a search for three takes minutes."""

_REFUSALS = (IllegalError.kind, "tile does not fit", "cannot be read", "scratch too small")


def chain_repairs(text: EditedText, finding: Finding, settings: Settings) -> list[Repair]:
    """Return the chain that replaces a cast that the target lacks; empty for other findings.

    Raises:
        CastsimError: the cast cannot be written as a program.
    """
    if finding.kind != IllegalError.kind or "no cast" not in finding.message or finding.line is None:
        return []
    node, statement = node_at(text, finding.line)
    target = target_of_text(text, settings)
    if not isinstance(node, pto.Tcvt) or node.defines_dst or node.tmp is not None or target is None:
        return []
    if statement.count("tcvt") != 1 or "addr" in text.text:  # others share its lines; tiles are placed by hand
        return []
    rounding = None if node.rounding in (None, pto.RoundMode.NONE) else node.rounding.name.lower()
    cast_answer = _answer(
        node.src_type.element,
        node.dst_type.element,
        settings.target or target.name,
        rounding,
        str(node.saturation) == "on",
    )
    if cast_answer.plan.kind is not PlanKind.CHAIN or cast_answer.settings:
        return []
    edit = _edit(text, node, finding.line, cast_answer)
    if edit is None:
        return []
    path = " -> ".join([cast_answer.plan.chain[0].src.name, *(step.dst.name for step in cast_answer.plan.chain)])
    return [Repair(f"Cast {path} ({cast_answer.plan.claim})", (edit,))]


@lru_cache(maxsize=64)
def _answer(src: str, dst: str, target: str, rounding: str | None, saturate: bool) -> Answer:
    request = CastRequest(src, dst, target, rounding=rounding, saturate=saturate, steps=_STEPS)
    return answer(request, explain=False, quick=True, alternatives=False)


def _edit(text: EditedText, node: pto.Tcvt, line: int, plan_answer: Answer) -> Edit | None:
    """Return the edit that replaces the lines of a cast by a chain; None if a step needs a tmp tile."""
    region = excerpt(text, line - 1, line - 1)
    forms = [step.forms[0] for step in plan_answer.plan.chain]
    if region is None or not all(isinstance(form, TileCastForm) and not form.scratch for form in forms):
        return None
    head = text.lines[region.first]
    indent = head[: len(head) - len(head.lstrip())]
    lines, source, kind = [], node.src, node.src_type
    for number, (step, form) in enumerate(zip(plan_answer.plan.chain, forms, strict=True)):
        last = number == len(forms) - 1
        name = node.dst if last else _free(text, f"via_{step.dst.name}")
        result = node.dst_type if last else replace(node.dst_type, element=step.dst.name)
        if not last:
            lines.append(f"%{name} = pto.alloc_tile : {format_type(result)}")
        modes = _modes(form) if isinstance(form, TileCastForm) else ""
        lines.append(f"pto.tcvt ins(%{source}{modes} : {format_type(kind)}) outs(%{name} : {format_type(result)})")
        source, kind = name, result
    written = f"\n{indent}".join(lines)
    old = "\n".join(text.lines[region.first : region.last + 1])
    if "\n" in old.strip():
        return None
    return Edit(region.first + 1, len(indent) + 1, len(head) + 1, written)


def _modes(form: TileCastForm) -> str:
    words = [] if form.rounding is None else [f"rmode = #pto<round_mode {form.rounding.name}>"]
    words += [] if form.saturation is None else [f"sat_mode = #pto<saturation_mode {form.saturation.name}>"]
    return f" {{{', '.join(words)}}}" if words else ""


def _free(text: EditedText, name: str) -> str:
    number, free = 1, name
    while f"%{free} " in text.text or f"%{free}," in text.text:
        number += 1
        free = f"{name}{number}"
    return free


# Flags and barriers that a race lacks.

_LACKS = re.compile(
    r"set_flag (?P<pair>(?P<from>\w+) -> (?P<to>\w+)) after line (?P<set>\d+) "
    r"and wait_flag (?P=pair) before line (?P<wait>\d+)"
)
_UNMATCHED = re.compile(r"set_flag (\w+ -> \w+) id (\d+) .* is never waited for")
_EVENTS = 8


def flag_repairs(text: EditedText, finding: Finding, findings: Sequence[Finding]) -> Iterator[Repair]:
    """Yield the flags, or the barrier, that a race may lack; empty for other findings."""
    lacks = _LACKS.search(finding.help)
    if lacks is None or len(text.lines) > _MOST_LINES:
        return
    lines, pair = text.lines, lacks["pair"]
    pipes, wait, behind = f"<PIPE_{lacks['from']}>, <PIPE_{lacks['to']}>", int(lacks["wait"]), int(lacks["set"])
    for diagnosed in findings:
        unmatched = _UNMATCHED.search(diagnosed.message)
        if unmatched is not None and unmatched[1] == pair:
            waiting = f"pto.wait_flag[{pipes}, <EVENT_ID{unmatched[2]}>]"
            yield Repair(f"Insert {waiting}", (line_before(wait, waiting, lines[wait - 1]),))
    event = next((number for number in range(_EVENTS) if not _used(text, lacks, number)), None)
    if event is not None:
        setting, waiting = (f"pto.{what}_flag[{pipes}, <EVENT_ID{event}>]" for what in ("set", "wait"))
        both = (line_before(behind + 1, setting, lines[behind - 1]), line_before(wait, waiting, lines[wait - 1]))
        title = f"Insert set_flag and wait_flag {pair}, event {event}"
        yield Repair(title, both)
        loop = _loop(lines, wait, behind)
        if loop is not None:
            head, end = loop
            around = (line_before(head, setting, lines[head - 1]), line_before(end + 1, waiting, lines[head - 1]))
            yield Repair(f"{title}, with a first set before the loop and a last wait behind it", (*both, *around))
    barrier = "pto.barrier <PIPE_ALL>"
    yield Repair(f"Insert {barrier}", (line_before(wait, barrier, lines[wait - 1]),))


def _used(text: EditedText, lacks: re.Match[str], event: int) -> bool:
    pattern = (
        rf'_flag\s*\[[<"]*PIPE_{lacks["from"]}[>"]*\s*,\s*[<"]*PIPE_{lacks["to"]}[>"]*\s*,\s*[<"]*EVENT_ID{event}\b'
    )
    return re.search(pattern, text.text) is not None


def _loop(lines: Sequence[str], wait: int, behind: int) -> tuple[int, int] | None:
    """Return the first and last line, from 1, of the innermost loop around two lines; None if there is none."""
    depth, ends = 0, None
    for number in range(min(wait, behind) - 1, 0, -1):
        depth += lines[number - 1].count("{") - lines[number - 1].count("}")
        if depth > 0:
            if "scf.for" not in lines[number - 1]:
                return None
            ends = number
            break
    if ends is None:
        return None
    depth = 0
    for number in range(ends, len(lines) + 1):
        depth += lines[number - 1].count("{") - lines[number - 1].count("}")
        if depth == 0:
            return (ends, number) if number > max(wait, behind) else None
    return None


# Only repairs are offered with which a check no longer has the finding, and no error that it did not have before.

_TOKEN = re.compile(r"[%!#@]?[\w.$-]+")
_MOST = 4
_BUDGET = 2.0
"""Seconds after which no further repair is tried."""
_MOST_LINES = 3000
"""Maximum number of lines of a text that is checked again for every repair; in longer texts, only changed lines are."""


def repairs(text: EditedText, finding: Finding, findings: Sequence[Finding], settings: Settings) -> list[Repair]:
    """Return the repairs for a finding of a text; `findings` are all findings of that text. Changes nothing.

    Raises:
        CastsimError: a file that a repair needs cannot be read.
    """
    offers: list[Repair] = _words(text, finding)
    if text.language == "pto":
        offers += chain_repairs(text, finding, settings)
    by_flags = [] if text.language != "pto" else list(flag_repairs(text, finding, findings))
    kept = _improving(text, finding, [*offers, *by_flags], settings)
    preferred = kept[:1] if by_flags or len(kept) == 1 else []
    return [replace(offer, preferred=offer in preferred) for offer in kept]


def _improving(text: EditedText, finding: Finding, offers: Sequence[Repair], settings: Settings) -> list[Repair]:
    """Return the repairs that leave fewer errors; if there are none, those that let the check reach the races."""
    if not offers or len(text.lines) > _MOST_LINES:
        return [offer for offer in offers if all(_fits(text, edit, settings) for edit in offer.edits)]
    limit, errors = time.monotonic() + _BUDGET, _errors(_checked(text, settings))
    clean, further = [], []
    for offer in offers:
        if time.monotonic() > limit:
            break
        before = Counter({_moved(kind, line, offer.edits): count for (kind, line), count in errors.items()})
        left = _errors(_checked(repaired(text, offer.edits), settings))
        key, new = _moved(finding.kind, finding.line, offer.edits), left - before
        if left[key] < before[key]:
            clean += [] if new else [offer]
            further += [offer] if all(kind not in _REFUSALS for kind, _ in new) else []
    return clean or further


def _checked(text: EditedText, settings: Settings) -> Sequence[Finding]:
    return check_text(
        text.name, text.text, target=settings.target, args=settings.args, language=text.language,
        defines=settings.defines, folders=settings.folders,
    )  # fmt: skip


def _errors(findings: Sequence[Finding]) -> Counter[tuple[str, int | None]]:
    return Counter((finding.kind, finding.line) for finding in findings if finding.severity is Severity.ERROR)


def _moved(kind: str, line: int | None, edits: tuple[Edit, ...]) -> tuple[str, int | None]:
    """Return kind and line that a finding would have with edits."""
    return kind, line and line + sum(edit.text.count("\n") for edit in edits if edit.line <= line)


def _words(text: EditedText, finding: Finding) -> list[Repair]:
    """Return replacements of a word by the legal words."""
    if finding.line is None or finding.column is None or finding.end_column is None:
        return []
    written = text.lines[finding.line - 1][finding.column - 1 : finding.end_column - 1]
    legal = [word for word in finding.legal if _TOKEN.fullmatch(word) and word != written]
    if not _TOKEN.fullmatch(written) or len(legal) != len(finding.legal) or not 0 < len(legal) <= _MOST:
        return []
    kept = written[written.index(".") :] if text.language == "tpc" and "." in written else ""
    words = [word if "." in word else word + kept for word in legal]
    return [Repair(f"Write {word}", (Edit(finding.line, finding.column, finding.end_column, word),)) for word in words]


def _fits(text: EditedText, edit: Edit, settings: Settings) -> bool:
    """Return whether a word fits its position: the position has no finding, and the word keeps its type."""
    for finding in findings_in(repaired(text, (edit,)), edit.line - 1, edit.line - 1, settings) or ():
        if finding.line == edit.line and (
            finding.column == edit.column or f"{edit.text} is defined as" in finding.message
        ):
            return False
    return True


# A text in canonical form: statements as the printers write them, blocks indented; comments stay. A text that cannot
# be read is not touched, nor is a statement that would read as another one.

_STEP = "  "
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|//.*|\s+|[^\s"/]+|.')
_OUTSIDE = re.compile(r'//.*|"(?:[^"\\]|\\.)*"|<[^<>]*>')


def formatted(text: EditedText, settings: Settings) -> str:
    """Return a text in canonical form.

    Raises:
        CastsimError: the text cannot be read.
        ReadError: the assembly names no target, or has named registers, which only scheduling replaces.
    """
    if text.language == "pto":
        return _tiles(text)
    if text.language == "tpc":
        return _assembly(text, settings)
    raise ReadError(f"castsim does not format {text.language}", legal=(".pto", ".tpc"))


def _tiles(text: EditedText) -> str:
    program = pto_parser.parse(text.text, text.name)
    for statements in (_statements(text, program), {}):
        indented = _indented(text.lines, statements)
        try:
            if pto_parser.parse(indented, text.name) == program:
                return indented
        except CastsimError:
            continue
    raise ReadError("cannot format this text without changing its meaning")


def _statements(text: EditedText, program: pto.Program) -> dict[int, tuple[int, str]]:
    """Return the canonical statements by their first line, from 0, with the line after them."""
    index = TileIndex(text.lines)
    starts: dict[int, list[pto.Operation]] = {}
    for function in program.functions:
        for node in nodes(function.body or ()):
            starts.setdefault(node.span.line - 1, []).append(node)
    statements = {}
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
                statements[number] = end, operation_text(node)
        elif not isinstance(node, Section) and len(lines) == 1 and _is_head(lines[0]):
            statements[number] = end, head_text(node)
    return statements


def _is_head(line: str) -> bool:
    return _OUTSIDE.sub("", line).rstrip().endswith("{") and not line.lstrip().startswith("}")


def _continues(index: TileIndex, number: int) -> bool:
    """Return whether a line continues the previous line's statement: it has words, and is no end, label or comment."""
    first = index.line(number).tokens.texts[0]
    return bool(first) and first not in ("}", "func.func", "module") and not first.startswith("^")


def _indented(lines: Sequence[str], statements: dict[int, tuple[int, str]]) -> str:
    indented: list[str] = []
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
        indented.append(f"{margin}{body}{gap}{comment}".rstrip())
        opened = _OUTSIDE.sub("", "\n".join(lines[number:end]))
        depth = max(0, depth + opened.count("{") - opened.count("}"))
        continued = int((statement is None and opened.count("(") > opened.count(")")) or (
            bool(continued) and opened.count("(") >= opened.count(")") and bool(body)))  # fmt: skip
        number = end
    return "\n".join(indented)


def _comment(line: str) -> str:
    """Return the comment at the end of a line."""
    return next((piece for piece in _PIECE.findall(line) if piece.startswith("//")), "")


def _blanks(text: str) -> str:
    """Return a text with runs of blanks reduced to one, except in strings."""
    return "".join(" " if piece.isspace() else piece for piece in _PIECE.findall(text)).strip()


def _assembly(text: EditedText, settings: Settings) -> str:
    target = target_of_text(text, settings)
    chip = assembly_target(target)
    if chip is None:
        raise ReadError("cannot read this assembly: the target is missing", legal=("// castsim: target NAME",))
    if has_virtual_registers(text.text):
        raise ReadError("cannot format named registers; `castsim schedule` replaces them")
    program = parse(text.text, chip.dialect, text.name)
    if "/*" in text.text:
        raise ReadError("cannot format /* */ comments", legal=("//",))
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
    written = "\n".join(lines)
    if parse(written, chip.dialect, text.name) != program:
        raise ReadError("cannot format this text without changing its meaning")
    return written

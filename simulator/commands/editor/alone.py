"""One statement of a tile program taken alone: its node, and what its target executes for it in how many cycles."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from castsim.commands.editor.document import EditedText, Settings
from castsim.commands.editor.program_slice import excerpt
from castsim.execution.tree import Block, Loop, Lowered, Node
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import Operation, nodes
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.types import format_type
from castsim.isa.sources import Language, Source
from castsim.machines.mechanisms import vector_units_of
from castsim.machines.vector_function.function_operations import VectorFunction, mnemonic
from castsim.running.estimating import estimate
from castsim.running.loaded import LoadRequest
from castsim.running.micro import MicroProgram
from castsim.running.program_loading import TileProgram, walking_of
from castsim.targets import Target

_SCOPE = re.compile(r"^( *)pto\.vecscope \{\n.*?^\1\}\n", re.MULTILINE | re.DOTALL)
_MOST_LINES = 24
"""Lines of vector instructions that are shown."""


@dataclass(frozen=True, slots=True)
class StatementWork:
    """What a target executes for a statement, as text of its vector instructions, and the cycles of that alone."""

    instructions: str
    cycles: int | None


def node_at(text: EditedText, line: int) -> tuple[Operation | None, str]:
    """Return the statement that a line, counted from 1, belongs to, and its text; None if it cannot be read."""
    found = excerpt(text, line - 1, line - 1)
    if found is None:
        return None, ""
    try:
        parsed = parse(found.text.text, text.name, go_past_refused=True)
    except CastsimError:
        return None, ""
    within = [node for one in parsed.functions for node in nodes(one.body or ()) if found.holds(node.span.line)]
    own = [node for node in within if node.span.line <= line]
    return (own[-1] if own else None), "\n".join(found.text.lines[found.first : found.last + 1])


def work(node: Operation, statement: str, target: Target, settings: Settings) -> StatementWork | None:
    """Return what a target does for a cast or a vector operation; None for others, and where it is refused."""
    declared = _declarations(node)
    if declared is None:
        return None
    head = f'module attributes {{pto.target_arch = "{target.architectures[0]}"}} {{\nfunc.func @alone() {{\n'
    source = Source("statement.pto", Language.TILES, f"{head}{declared}{statement}\nreturn\n}}\n}}\n")
    request = LoadRequest(target)
    try:
        walking = walking_of(source, request)
        if isinstance(walking, MicroProgram):
            return None
        walking = replace(walking, plan=None)
        program = walking.program()
        return StatementWork(_instructions(program, walking.function), _cycles(node, target))
    except (CastsimError, EngineError):
        return None


def _declarations(node: Operation) -> str | None:
    """Return definitions of all that a statement names; None if it names more than tiles and numbers."""
    used: dict[str, pto.Type]
    if isinstance(node, pto.Tcvt):
        used = {node.src: node.src_type}
        used |= {} if node.defines_dst else {node.dst: node.dst_type}
        used |= {} if node.tmp is None or node.tmp_type is None else {node.tmp: node.tmp_type}
    elif isinstance(node, pto.TileOperation):
        names = (*node.inputs, *node.outputs)
        used = dict(zip(names, (*node.input_types, *node.output_types), strict=True))
    else:
        return None
    lines = []
    for name, kind in used.items():
        if isinstance(kind, pto.TileType) and None not in (kind.valid_rows, kind.valid_cols) and not kind.foreign:
            lines.append(f"%{name} = pto.alloc_tile : {format_type(kind)}\n")
        elif isinstance(kind, pto.ScalarType):
            number = "1.0" if kind.name in ("f16", "bf16", "f32", "f64") else "1"
            lines.append(f"%{name} = arith.constant {number} : {format_type(kind)}\n")
        else:
            return None
    return "".join(lines)


def _cycles(node: Operation, target: Target) -> int | None:
    """Return the estimate of a cast; None for other operations."""
    if not isinstance(node, pto.Tcvt):
        return None
    src, dst = node.src_type, node.dst_type
    found = estimate(
        src.element, dst.element, src.rows, src.cols, target=target, dst_row_stride=dst.cols,
        valid_rows=src.valid_rows, valid_cols=src.valid_cols, scratch=node.tmp is not None,
        rounding=None if node.rounding is None else node.rounding.name.lower(),
        saturation=None if node.saturation is None else str(node.saturation),
    )  # fmt: skip
    return found.cycles


def _instructions(program: TileProgram, function: pto.Function) -> str:
    """Return vector instructions: as `castsim expand` writes them, else the names of those that work on memory."""
    try:
        written, _ = vector_units_of(program.target).expanded(program.tree, function)
    except CastsimError:
        return "\n".join(_counted(program.tree.root))
    scopes = [found[0] for found in _SCOPE.finditer(written)]
    lines = "".join(scopes).rstrip("\n").split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    shown = [line[indent:] for line in lines[:_MOST_LINES]]
    return "\n".join([*shown, *(["..."] if len(lines) > _MOST_LINES else [])])


def _counted(root: Node) -> list[str]:
    """Return the instructions of a tree in the order of their first execution, each with how often it is executed."""
    counts: dict[str, int] = {}
    _count(root, 1, counts)
    return [f"{name} x {count:,}" if count > 1 else name for name, count in counts.items()]


def _count(node: object, times: int, counts: dict[str, int]) -> None:
    if isinstance(node, Block):
        for item in node.items:
            _count(item, times, counts)
    elif isinstance(node, Loop):
        _count(node.body, times * node.trips, counts)
    elif isinstance(node, Lowered):
        _count(node.body, times, counts)
    elif isinstance(node, VectorFunction):
        for nest in node.nests:
            trips = times * nest.rows * nest.trips
            for instruction in nest.trip:
                name = mnemonic(instruction)
                counts[name] = counts.get(name, 0) + trips
    else:
        own = getattr(node, "mnemonic", None)
        if isinstance(own, str):
            counts[own] = counts.get(own, 0) + times

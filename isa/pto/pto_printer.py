"""Writer of a program as `.pto` text, in one canonical form that the vendor's front end reads if possible.

`parse(print_program(p)) == p` is true for every program from `parse`. Casts are written in the ins/outs form,
unless the cast itself defines its destination, which that form cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from castsim.isa.formats import Saturation
from castsim.isa.pto import control_flow, pto_scalars, tile_forms, tile_operation_forms
from castsim.isa.pto.micro_words import micro_text
from castsim.isa.pto.program import (
    Argument,
    CacheOperation,
    Call,
    Constant,
    DialectOperation,
    For,
    ForeignOperation,
    Function,
    If,
    MicroOperation,
    Operation,
    Program,
    Section,
    StridedStatement,
    Tcvt,
    TileOperation,
    Type,
    While,
)
from castsim.isa.pto.pto_scalars import bits_of
from castsim.isa.pto.statement_forms import FLOATS, StatementForm, format_attributes, values_text
from castsim.isa.pto.strided_statements import strided_text
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import dialect_module
from castsim.isa.pto.vector_operations import ALIASES, VECTOR_OPERATIONS, text_name

# The lines that begin regions: loops, conditions, and the values that they carry.


def head_text(operation: For | If | While) -> str:
    """Return the line that begins the first region of an operation."""
    results = results_text(operation.results)
    if isinstance(operation, For):
        return f"{results}{_loop_head(operation)} {{"
    if isinstance(operation, If):
        types = f" -> {parenthesised(operation.result_types)}" if operation.result_types else ""
        return f"{results}scf.if %{operation.condition}{types} {{"
    pairs = _carried(operation)
    types = f"{parenthesised(operation.carried_types)} -> {parenthesised(operation.result_types)}"
    return f"{results}scf.while{f' ({pairs})' if pairs else ''} : {types} {{"


def region_arguments(loop: While) -> str:
    """Return the line with the arguments of the second region; empty if it has none."""
    return _block_head(loop.arguments, loop.result_types) if loop.arguments else ""


def _block_head(names: Sequence[str], kinds: Sequence[Type]) -> str:
    own = zip(names, kinds, strict=True)
    return f"^bb0({', '.join(f'%{name}: {format_type(kind)}' for name, kind in own)}):"


def _carried(loop: For | While) -> str:
    return ", ".join(f"%{name} = %{initial}" for name, initial in zip(loop.carried, loop.initial, strict=True))


def _loop_head(loop: For) -> str:
    text = f"scf.for %{loop.variable} = %{loop.lower} to %{loop.upper} step %{loop.step}"
    if loop.carried:
        text += f" iter_args({_carried(loop)}) -> {parenthesised(loop.result_types)}"
    return text if loop.type.name == "index" else f"{text} : {format_type(loop.type)}"


def results_text(names: tuple[str, ...]) -> str:
    """Return `%a, %b:2 = `, combining `b#0` and `b#1`, or empty text without results."""
    counts: dict[str, int] = {}
    for name in names:
        base = name.partition("#")[0]
        counts[base] = counts.get(base, 0) + 1
    shown = (f"%{base}" if count == 1 else f"%{base}:{count}" for base, count in counts.items())
    return f"{', '.join(shown)} = " if names else ""


def types_text(kinds: Iterable[Type]) -> str:
    """Return types side by side."""
    return ", ".join(map(format_type, kinds))


def parenthesised(kinds: Iterable[Type]) -> str:
    """Return types in parentheses."""
    return f"({types_text(kinds)})"


_INDENT = "  "


class _Lines(list[str]):
    """Lines of a text, with the comments ahead of operations."""

    def __init__(self, notes: Mapping[int, str]) -> None:
        super().__init__()
        self.notes = notes


def print_program(program: Program, notes: Mapping[int, str] | None = None) -> str:
    """Return the canonical text of a program, with a final newline.

    A module is written only if it has attributes. `notes` are comments before operations, by the operation's identity.

    Raises:
        ReadError: an element format that `.pto` cannot spell.
    ReadError: `.pto` cannot spell an element format."""
    lines = _Lines(notes or {})
    depth = 0
    if program.attributes:
        lines.append(f"module attributes {format_attributes(program.attributes)} {{")
        depth = 1
    for function in program.functions:
        _print_function(function, lines, depth)
    if program.attributes:
        lines.append("}")
    return "".join(f"{line}\n" for line in lines)


def _print_function(function: Function, lines: _Lines, depth: int) -> None:
    declared = "private " if function.body is None else ""
    head = f"func.func {declared}@{function.name}({', '.join(map(_argument, function.arguments))})"
    if function.result_types:
        head += f" -> {parenthesised(function.result_types)}"
    if function.attributes:
        head += f" attributes {format_attributes(function.attributes)}"
    if function.body is None:
        lines.append(_INDENT * depth + head)
        return
    lines.append(f"{_INDENT * depth}{head} {{")
    _print_body(function.body, lines, depth + 1)
    lines.append(f"{_INDENT * depth}}}")


def _print_body(body: Iterable[Operation], lines: _Lines, depth: int) -> None:
    for operation in body:
        if id(operation) in lines.notes:
            lines.append(f"{_INDENT * depth}// {lines.notes[id(operation)]}")
        if isinstance(operation, For | If | While | Section):
            _print_nested(operation, lines, depth)
        else:
            lines.append(_INDENT * depth + operation_text(operation))


def _print_nested(operation: For | If | While | Section, lines: _Lines, depth: int) -> None:
    margin = _INDENT * depth
    if isinstance(operation, Section):
        if operation.kind == "strict_vecscope":
            _print_strict_scope(operation, lines, depth)
            return
        lines.append(f"{margin}pto.{operation.kind} {{")
        _print_body(operation.body, lines, depth + 1)
    elif isinstance(operation, While):
        _print_while(operation, lines, depth)
    elif isinstance(operation, For):
        lines.append(margin + head_text(operation))
        _print_body(operation.body, lines, depth + 1)
    else:
        lines.append(margin + head_text(operation))
        _print_body(operation.then_body, lines, depth + 1)
        if operation.else_body:
            lines.append(f"{margin}}} else {{")
            _print_body(operation.else_body, lines, depth + 1)
    lines.append(f"{margin}}}")


def _print_strict_scope(scope: Section, lines: _Lines, depth: int) -> None:
    margin = _INDENT * depth
    lines.append(f"{margin}pto.strict_vecscope({values_text(scope.initial)}) {{")
    lines.append(margin + _block_head(scope.carried, scope.types))
    _print_body(scope.body, lines, depth + 1)
    lines.append(f"{margin}}} : {parenthesised(scope.types)} -> ()")


def _micro(node: MicroOperation | DialectOperation) -> str:
    if isinstance(node, MicroOperation):
        text = micro_text(node)
    else:
        text = dialect_module(node.dialect, "operations").operation_text(node)
    return results_text(node.results) + text


def _print_while(loop: While, lines: _Lines, depth: int) -> None:
    """Write all except the last brace."""
    margin = _INDENT * depth
    lines.append(margin + head_text(loop))
    _print_body(loop.before, lines, depth + 1)
    lines.append(f"{margin}}} do {{")
    if loop.arguments:
        lines.append(margin + region_arguments(loop))
    _print_body(loop.after, lines, depth + 1)


def _argument(argument: Argument) -> str:
    text = f"%{argument.name}: {format_type(argument.type)}" if argument.name else format_type(argument.type)
    return f"{text} {format_attributes(argument.attributes)}" if argument.attributes else text


def _spaced(text: str) -> str:
    return f" {text}" if text else ""


def _constant(node: Constant) -> str:
    if isinstance(node.value, bool):
        return f"%{node.result} = arith.constant {'true' if node.value else 'false'}"
    if isinstance(node.value, float):
        text = repr(node.value)
        # The front end wants a point before the exponent.
        text = text if "." in text else text.replace("e", ".0e")
    elif node.type.name in FLOATS:
        text = f"0x{node.value:0{bits_of(node.type) // 4}X}"
    else:
        text = str(node.value)
    return f"%{node.result} = arith.constant {text} : {format_type(node.type)}"


def _call(node: Call) -> str:
    types = f"{parenthesised(node.operand_types)} -> {parenthesised(node.result_types)}"
    return f"{results_text(node.results)}func.call @{node.callee}({values_text(node.operands)}) : {types}"


def _tile_operation(node: TileOperation) -> str:
    attributes = _spaced(format_attributes(node.attributes))
    if node.mnemonic in ALIASES:
        types = f"{types_text(node.input_types)} -> {types_text(node.output_types)}"
        return f"{values_text(node.outputs)} = pto.{node.mnemonic} {values_text(node.inputs)}{attributes} : {types}"
    if node.mnemonic not in VECTOR_OPERATIONS or "." not in node.mnemonic:
        return _plain(node, node.mnemonic, attributes)
    entries = dict(node.attributes)
    if "maskPattern" not in entries:
        ins = _operands("ins", node.inputs, node.input_types)
        return f"pto.{text_name(node.mnemonic)} {ins} {_outs(node)}{attributes}"
    direction = entries.pop("direction", "")
    pattern = format_attributes(tuple(entries.items()))
    types = types_text(node.input_types) + (f", {direction}" if direction else "")
    return f"pto.{text_name(node.mnemonic)} ins({values_text(node.inputs)}, {pattern} : {types}) {_outs(node)}"


def _plain(node: TileOperation, name: str, attributes: str) -> str:
    # The operations with attributes of their own want them before the types of their inputs.
    ins = _operands("ins", node.inputs, node.input_types, attributes)
    if not node.outputs:
        return f"pto.{name} {ins}"
    return f"pto.{name} {ins} {_outs(node)}" if node.inputs else f"pto.{name} {_outs(node)}{attributes}"


def _operands(word: str, names: Sequence[str], kinds: Sequence[Type], attributes: str = "") -> str:
    return f"{word}({values_text(names)}{attributes} : {types_text(kinds)})"


def _outs(node: TileOperation) -> str:
    return _operands("outs", node.outputs, node.output_types)


def _tcvt(node: Tcvt) -> str:
    entries = []
    if node.rounding is not None:
        entries.append(("rmode", f"#pto<round_mode {node.rounding.name}>"))
    if node.saturation is not None:
        entries.append(("sat_mode", f"#pto<saturation_mode {'ON' if node.saturation is Saturation.ON else 'OFF'}>"))
    attributes = _spaced(format_attributes(tuple(entries)))
    inputs: list[str] = [node.src]
    kinds: list[Type] = [node.src_type]
    if node.tmp is not None and node.tmp_type is not None:
        inputs.append(node.tmp)
        kinds.append(node.tmp_type)
    operands, dst_type = f"{values_text(inputs)}{attributes} : {types_text(kinds)}", format_type(node.dst_type)
    if node.defines_dst:
        return f"%{node.dst} = pto.tcvt {operands} -> {dst_type}"
    return f"pto.tcvt ins({operands}) outs(%{node.dst} : {dst_type})"


def _foreign_operation(node: ForeignOperation) -> str:
    operands = iter(node.operands)
    words = [f"%{next(operands)}" if token == "%" else token for token in node.tokens]
    results = f"{values_text(node.results)} = " if node.results else ""
    return " ".join((f"{results}pto.{node.mnemonic}", *words))


_WRITERS: dict[type, Callable[[Any], str]] = {
    Constant: _constant,
    Call: _call,
    TileOperation: _tile_operation,
    ForeignOperation: _foreign_operation,
    Tcvt: _tcvt,
    CacheOperation: lambda node: f"pto.{node.mnemonic}{_spaced(node.text)}",
    MicroOperation: _micro,
    DialectOperation: _micro,
    StridedStatement: strided_text,
}
_FORMS: dict[Any, list[StatementForm]] = {}
for _form in (*pto_scalars.FORMS, *tile_operation_forms.FORMS, *tile_forms.FORMS, *control_flow.FORMS):
    _FORMS.setdefault(_form.node, []).append(_form)


def operation_text(operation: Operation) -> str:
    """Return one operation without regions as a line, by the first row of its class that has its fixed fields."""
    write = _WRITERS.get(type(operation))
    if write is not None:
        return write(operation)
    return next(form for form in _FORMS[type(operation)] if form.prints(operation)).text(operation)

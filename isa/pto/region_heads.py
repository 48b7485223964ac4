"""The lines that begin regions: loops, conditions, and the values that they carry."""

from __future__ import annotations

from collections.abc import Iterable

from castsim.isa.pto.program import For, If, Type, While
from castsim.isa.pto.types import format_type


def head_text(operation: For | If | While) -> str:
    """Return the line that begins the first region of an operation."""
    results = results_text(operation.results)
    if isinstance(operation, For):
        return f"{results}{_loop_head(operation)} {{"
    if isinstance(operation, If):
        types = f" -> {parenthesised(operation.result_types)}" if operation.result_types else ""
        return f"{results}scf.if %{operation.condition}{types} {{"
    pairs = ", ".join(
        f"%{name} = %{initial}" for name, initial in zip(operation.carried, operation.initial, strict=True)
    )
    types = f"{parenthesised(operation.carried_types)} -> {parenthesised(operation.result_types)}"
    return f"{results}scf.while{f' ({pairs})' if pairs else ''} : {types} {{"


def region_arguments(loop: While) -> str:
    """Return the line that names the values of the second region; empty if it has none."""
    own = zip(loop.arguments, loop.result_types, strict=True)
    return f"^bb0({', '.join(f'%{name}: {format_type(kind)}' for name, kind in own)}):" if loop.arguments else ""


def _loop_head(loop: For) -> str:
    text = f"scf.for %{loop.variable} = %{loop.lower} to %{loop.upper} step %{loop.step}"
    if loop.carried:
        pairs = (f"%{name} = %{initial}" for name, initial in zip(loop.carried, loop.initial, strict=True))
        text += f" iter_args({', '.join(pairs)}) -> {parenthesised(loop.result_types)}"
    return text if loop.type.name == "index" else f"{text} : {format_type(loop.type)}"


def results_text(names: tuple[str, ...]) -> str:
    """Return `%a, %b:2 = `, gathering `b#0` and `b#1`, or nothing without results."""
    counts: dict[str, int] = {}
    for name in names:
        base = name.partition("#")[0]
        counts[base] = counts.get(base, 0) + 1
    shown = (f"%{base}" if count == 1 else f"%{base}:{count}" for base, count in counts.items())
    return f"{', '.join(shown)} = " if names else ""


def values_text(names: Iterable[str]) -> str:
    """Return values as operands."""
    return ", ".join(f"%{name}" for name in names)


def types_text(kinds: Iterable[Type]) -> str:
    """Return types side by side."""
    return ", ".join(map(format_type, kinds))


def parenthesised(kinds: Iterable[Type]) -> str:
    """Return types in parentheses."""
    return f"({types_text(kinds)})"

"""Builtin functions of TPC-C as text: those of a target, and one emitted or called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import RenderableType
from rich.text import Text

from castsim.isa.formats import FORMATS
from castsim.reports.call_text import duration_line, notice_lines, output_lines
from castsim.reports.terminal import indented
from castsim.targets import Target
from castsim.targets.tpc_compiler import ResultOrder, builtins_of, special_functions
from castsim.targets.vliw import VliwTarget

if TYPE_CHECKING:
    from castsim.tpc_compiler.builtin_calls import Builtin, BuiltinResult

_Row = TypeVar("_Row")

_ORDERS = {
    ResultOrder.LINEAR: "element i of the result from element i of the sources",
    ResultOrder.INTERLEAVED: "element r * i + k of the result from element i of source register k of r",
    ResultOrder.SPLIT: "element i of result register k of r from element r * i + k of the source",
    ResultOrder.UNDEFINED: "not documented",
}


def builtin_list(targets: Sequence[VliwTarget]) -> RenderableType:
    """Return the cast builtins of several targets, and the special functions; lines are never folded."""
    lines: list[str] = []
    for target in targets:
        lines += [f"{target.name}: cast builtin, result (arguments), VPU operations, result order", *_casts(target), ""]
    lines += [
        "special functions (`castsim builtin NAME` shows whose values are claimed): result (arguments)",
        *_special(),
    ]
    return _unfolded(lines)


def target_section(target: Target) -> Iterator[RenderableType]:
    """Yield the builtins and special functions of a target; nothing for chips without TPC-C."""
    if not target.has_builtins:
        return
    yield Text()
    yield Text(f"cast builtins (more by `castsim builtin --target {target.name}`): result (arguments)", style="bold")
    for name, row in _aligned([(row.builtin, row) for row in builtins_of(target)]):
        yield indented(Text(f"{name}  {row.signature}"))
    yield Text()
    yield Text(
        "special functions (`castsim builtin NAME` shows whose values are claimed): result (arguments)", style="bold"
    )
    yield from (indented(Text(line)) for line in _special())


def _casts(target: VliwTarget) -> Iterator[str]:
    rows = builtins_of(target)
    width = max((len(row.signature) for row in rows), default=0)
    for name, row in _aligned([(row.builtin, row) for row in rows]):
        yield f"{name}  {row.signature:{width}}  {row.vector_operations:2}  {row.result_order}"


def _special() -> Iterator[str]:
    for name, special in _aligned([(special.builtin, special) for special in special_functions()]):
        yield f"{name}  {special.signature}"


def _aligned(named: list[tuple[str, _Row]]) -> Iterator[tuple[str, _Row]]:
    """Fill names up to the width of the longest."""
    width = max((len(name) for name, _ in named), default=0)
    yield from ((f"{name:{width}}", row) for name, row in named)


def builtin_text(found: Builtin, document: Mapping[str, Any], result: BuiltinResult | None) -> RenderableType:
    """Return one builtin, and what its calls computed; `document` is the same as JSON. Lines are never folded."""
    return _unfolded([*_builtin(found, document), *_values(document, result)])


def _unfolded(lines: list[str]) -> Text:
    return Text("\n".join(lines), no_wrap=True)


def _builtin(found: Builtin, document: Mapping[str, Any]) -> Iterator[str]:
    row = found.row
    yield f"{row.builtin} on {found.target.name} ({found.target.title})"
    yield f"signature: {row.signature}"
    yield f"result order: {row.result_order}, {_ORDERS[row.result_order]}"
    yield f"VPU operations: {found.vector_operations} counted in the run, {row.vector_operations} documented"
    yield f"one call: {len(found.kernel.body)} bundles with loads and stores, {found.timing.total} cycles to the end"
    yield f"rounding: {found.built.rounding}"
    source = found.built.signature.source
    if source.held is not None:
        bits = FORMATS[source.held].bits
        yield f"elements of x: {source.format} with the code of {source.held} in the lower {bits} bits, 0 above"
    if row.note:
        yield f"note ({row.status.value}): {row.note}"
    yield ""
    yield from (f"  {line}" for line in document["assembly"].splitlines())
    yield ""


def _values(document: Mapping[str, Any], result: BuiltinResult | None) -> Iterator[str]:
    if result is None:
        yield "values: not computed; --in x=FILE.npy|random:SEED|zeros calls it"
        return
    yield duration_line(result)
    yield from output_lines(document["outputs"])
    yield from notice_lines(result)

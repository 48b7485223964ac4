"""What calls of builtins and special functions gave, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from castsim.tpc_compiler.builtin_calls import BuiltinResult
    from castsim.tpc_compiler.special_function_calls import FunctionResult


def duration_line(result: BuiltinResult | FunctionResult) -> str:
    """Return how many calls there were, and the cycles of all of them."""
    return f"{result.calls} call{'s' if result.calls > 1 else ''}, {result.cycles} cycles"


def output_lines(outputs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the outputs of a document: format, shape, digest, file."""
    for output in outputs:
        shape = " x ".join(map(str, output["shape"]))
        yield f"output {output['name']}: {output['format']} [{shape}], sha256 {output['sha256']}"
        yield f"  written to {output['file']}" if output["file"] else "  not written; --out DIR writes DIR/NAME.npy"


def notice_lines(result: BuiltinResult | FunctionResult) -> Iterator[str]:
    """Yield the warnings, and the reads of registers that came too early."""
    yield from (f"warning: {warning}" for warning in result.warnings)
    if not result.stale_reads:
        yield "stale reads: none"
    yield from (each.sentence() for each in result.stale_reads)

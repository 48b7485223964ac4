"""`castsim.lower`: what a target does for a cast, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from castsim.isa.spellings import format_spelled
from castsim.numerics import FormatLike, format_name
from castsim.planning.lowering_answers.answer import Answer, answer, answer_through
from castsim.planning.request import MOST_STEPS, CastRequest
from castsim.specifications import parse_specification
from castsim.targets import Specification, Target


def lower(
    src: FormatLike,
    dst: FormatLike,
    *,
    target: str | Path | Target,
    spec: str | Specification = "exact",
    rounding: str | None = None,
    saturate: bool = False,
    via: Sequence[str] = (),
    options: Mapping[str, int | str] | None = None,
    rows: int = 16,
    cols: int = 256,
    steps: int = MOST_STEPS,
) -> Answer:
    """Find the cheapest instructions of a target that give what a specification asks of a cast, and prove them.

        found = lower("f32", "i8", target="a2a3", spec="tosa@1.1")
        found.kind, found.plan.verdict, found.settings, found.text

    Args:
        src, dst: formats, as `castsim.cast` takes them.
        target: a chip.
        spec: `NAME[@VERSION][:ATTRIBUTE=VALUE]...` as on the command line, or a specification.
        rounding, saturate: what is asked for beyond the specification: a rounding mode; results out of range clamped.
        via: judge the chain through these formats, each `FORMAT[:MODE]`, instead of searching.
        options: options of the target, as `castsim targets T` lists them.
        rows, cols: extent in elements of the tensor that the program converts.
        steps: instructions of the longest chain that is searched, 1 to 4.

    Returns:
        The plan with its proof, its cycles and its program; where nothing gives what is asked, the smallest input
        that shows it. That is an answer, not an error.

    Raises:
        ReadError: unknown format, target, specification, option or mode.
        IllegalError: the specification does not have the cast.
        TileError: no program of the target holds a tensor of that extent.
    """
    version: str | None = None
    attributes: Mapping[str, str] = {}
    if isinstance(spec, str):
        spec, version, attributes = parse_specification(spec)
    source, destination = (format_spelled(format_name(each)).name for each in (src, dst))
    request = CastRequest(source, destination, target, spec, version, attributes, rounding, saturate, rows, cols, steps)
    return answer_through(request, via, options=options) if via else answer(request, options=options)

"""How chains of a vector unit's instructions are planned: see `castsim.planning.mechanisms.Planning`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from castsim.isa.formats import FORMATS, Format
from castsim.planning.assembly import Assembly
from castsim.planning.builtin_steps import builtin_casts
from castsim.planning.catalogue import Catalogue, Steps, arithmetic_of, by_source, casts_of
from castsim.planning.constants import Constants
from castsim.planning.steps import Chain, LoweringStep
from castsim.planning.vector_steps import vector_arithmetic, vector_casts
from castsim.planning.vector_text import vector_assembly
from castsim.targets.vliw import VliwTarget


def casts(target: VliwTarget) -> Catalogue:
    """Return all casts, and the rereads among all formats."""
    return Catalogue.of(_casts(target), FORMATS.values(), rereads_inside=True)


def catalogue(target: VliwTarget, constants: Constants) -> Catalogue:
    """Return the casts, and the arithmetic with these constants."""
    found = casts_of(target, lambda: by_source(_casts(target)))
    work = arithmetic(target, constants)
    steps = {source: (*found.get(source, ()), *work.get(source, ())) for source in (*found, *work)}
    ends = [(step.src, step.dst) for listed in steps.values() for step in listed]
    return Catalogue.made_later(steps, ends, (constants.src, constants.dst), rereads_inside=True)


def _casts(target: VliwTarget) -> Iterator[LoweringStep]:
    yield from vector_casts(target)
    yield from builtin_casts(target)


def arithmetic(target: VliwTarget, constants: Constants) -> Steps:
    """Return the arithmetic with these constants."""
    return arithmetic_of(target, constants, partial(vector_arithmetic, target))


def assembly(chain: Chain, src: Format, dst: Format, target: VliwTarget, rows: int, cols: int) -> Assembly:
    """Return the program over all elements of a tensor, whose shape does not matter."""
    return vector_assembly(chain, src, dst, target, rows * cols)

"""The tile casts of a chip as steps: every type pair with every rounding, saturation and scratch that a text can name.

Values come from the same plans as the machines': see `strided_casts` and `function_casts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from castsim.isa.formats import FORMATS, Format, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode
from castsim.planning.assembly import Assembly
from castsim.planning.catalogue import Catalogue, LazySteps, Steps, arithmetic_of, casts_of
from castsim.planning.constants import Constants
from castsim.planning.primitives import Primitive
from castsim.planning.steps import Chain, LoweringStep, TileCastForm
from castsim.planning.tile_arithmetic import tile_arithmetic, tile_choices
from castsim.planning.tile_text import tile_assembly
from castsim.targets import TileTarget

Primitives = tuple[Primitive, ...]

Tracer = Callable[[Format, Format, TileCastForm], Primitives]
"""Tells the steps of each form of a type pair."""

_Chip = TypeVar("_Chip", bound=TileTarget)

_SATURATIONS = (None, Saturation.ON, Saturation.OFF)


@dataclass(frozen=True, slots=True)
class TilePlanning(Generic[_Chip]):
    """See `castsim.planning.mechanisms.Planning`; `tracer` makes what tells the steps of one target's type pair."""

    tracer: Callable[[_Chip], Tracer]

    def casts(self, target: _Chip) -> Catalogue:
        """Return all casts, and the rereads among all formats."""
        return Catalogue.of(self._steps(target), FORMATS.values(), rereads_inside=False)

    def catalogue(self, target: _Chip, constants: Constants) -> Catalogue:
        """Return the casts, only traced from formats that chains come to, and the arithmetic with these constants."""
        sources = [rule.src for rule in target.casts]
        casts = casts_of(target, lambda: LazySteps(sources, lambda source: self._steps(target, source)))
        work = self.arithmetic(target, constants)
        steps = LazySteps((*sources, *work), lambda source: (*casts.get(source, ()), *work.get(source, ())))
        ends = [(format_named(rule.src), format_named(rule.dst)) for rule in target.casts]
        ends += [(step.src, step.dst) for listed in work.values() for step in listed]
        return Catalogue.made_later(steps, ends, (constants.src, constants.dst), rereads_inside=True)

    def arithmetic(self, target: _Chip, constants: Constants) -> Steps:
        """Return the arithmetic with these constants."""
        return arithmetic_of(target, constants, partial(tile_arithmetic, target), partial(tile_choices, target))

    def assembly(self, chain: Chain, src: Format, dst: Format, target: _Chip, rows: int, cols: int) -> Assembly:
        """Return the program for one tile."""
        return tile_assembly(chain, src, dst, target, rows, cols)

    def _steps(self, target: _Chip, source: str | None = None) -> Iterator[LoweringStep]:
        """Yield one step per type pair and behaviour, from `source` alone where it is named."""
        for rule in target.casts:
            if source not in (None, rule.src):
                continue
            src, dst = format_named(rule.src), format_named(rule.dst)
            modes = [None, *(RoundMode[mode.name] for mode in rule.suffixes)]
            found: dict[Primitives, list[TileCastForm]] = {}
            steps_of = self.tracer(target)
            for form in _forms(modes, scratch=target.uses_scratch(rule.src, rule.dst)):
                found.setdefault(steps_of(src, dst, form), []).append(form)
            for primitives, forms in found.items():
                plainest = tuple(sorted(forms, key=lambda form: len(form.options)))
                yield LoweringStep(src, dst, primitives, plainest, f"tcvt {src.name} -> {dst.name}")


def _forms(modes: Sequence[RoundMode | None], *, scratch: bool) -> Iterator[TileCastForm]:
    for with_tmp in (False, True) if scratch else (False,):
        for saturation in _SATURATIONS:
            for mode in modes:
                yield TileCastForm(mode, saturation, with_tmp)

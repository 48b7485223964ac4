"""The tile casts of a chip as steps: every type pair with every rounding, saturation and scratch that a text can name.

Values come from the same plans as the machines': see `strided_casts` and `function_casts`, of which only that of the
mechanism in use is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode
from castsim.planning.primitives import Primitive
from castsim.planning.steps import Step, TileCastForm
from castsim.targets.strided_repeat import StridedRepeatTarget
from castsim.targets.vector_function import VectorFunctionTarget

Primitives = tuple[Primitive, ...]

_SATURATIONS = (None, Saturation.ON, Saturation.OFF)


def tile_casts(target: StridedRepeatTarget | VectorFunctionTarget, source: str | None = None) -> Iterator[Step]:
    """Yield one step per type pair and behaviour, from `source` alone where it is named."""
    for rule in target.casts:
        if source not in (None, rule.src):
            continue
        src, dst = format_named(rule.src), format_named(rule.dst)
        modes = [None, *(RoundMode[mode.name] for mode in rule.suffixes)]
        found: dict[Primitives, list[TileCastForm]] = {}
        steps_of = _steps(target)
        for form in _forms(target, rule.src, rule.dst, modes):
            primitives = steps_of(src, dst, form)
            found.setdefault(primitives, []).append(form)
        for primitives, forms in found.items():
            plainest = tuple(sorted(forms, key=lambda form: len(form.options)))
            yield Step(src, dst, primitives, plainest, f"tcvt {src.name} -> {dst.name}")


def _forms(
    target: StridedRepeatTarget | VectorFunctionTarget, src: str, dst: str, modes: Iterable[RoundMode | None]
) -> Iterator[TileCastForm]:
    scratches = [False]
    if isinstance(target, StridedRepeatTarget) and target.scratch_sequence(src, dst) is not None:
        scratches.append(True)
    for scratch in scratches:
        for saturation in _SATURATIONS:
            for mode in modes:
                yield TileCastForm(mode, saturation, scratch)


def _steps(
    target: StridedRepeatTarget | VectorFunctionTarget,
) -> Callable[[Format, Format, TileCastForm], Primitives]:
    """Return what tells the steps of each form of one type pair."""
    if isinstance(target, VectorFunctionTarget):
        from castsim.planning.function_casts import function_primitives  # noqa: PLC0415 - only the mechanism in use

        traced: dict[tuple[object, ...], Primitives] = {}
        return lambda src, dst, form: function_primitives(target, src, dst, form, traced)
    from castsim.planning.strided_casts import strided_primitives  # noqa: PLC0415 - as above

    return lambda src, dst, form: strided_primitives(target, src, dst, form)

"""The catalogue of a target: every legal instruction that takes elements from one format to another, as steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from isa.errors import IllegalError
from isa.formats import FloatFormat, Format, IntFormat
from simulator.planning.constants import Constants
from simulator.planning.primitives import Reread
from simulator.planning.steps import RereadForm, Step
from targets import Target
from targets.strided_repeat import StridedRepeatTarget
from targets.vector_function import VectorFunctionTarget
from targets.vliw import VliwTarget


@dataclass(frozen=True)
class Catalogue:
    """Steps by source format. `rereads` cost nothing; `rereads_inside` tells whether they may stand within a chain.

    Registers of a vector unit hold bits, so that any instruction may read another format of the width; the bytes of a
    tile get another element type by `bitcast`.
    """

    steps: Mapping[str, tuple[Step, ...]]
    rereads: Mapping[str, tuple[Step, ...]]
    rereads_inside: bool

    @classmethod
    def of(cls, steps: Iterable[Step], formats: Iterable[Format], *, rereads_inside: bool) -> Catalogue:
        """Gather steps, and the rereads among `formats` and the formats of the steps."""
        listed = tuple(dict.fromkeys(steps))
        known = {fmt.name: fmt for step in listed for fmt in (step.src, step.dst)}
        known |= {fmt.name: fmt for fmt in formats}
        return cls(
            _by_source(listed),
            _by_source(_reread(src, dst) for src in known.values() for dst in known.values() if _same_bits(src, dst)),
            rereads_inside,
        )

    @cached_property
    def size(self) -> int:
        """Number of steps."""
        return sum(map(len, self.steps.values()))

    def from_format(self, fmt: Format) -> tuple[Step, ...]:
        """Return the steps from a format."""
        return self.steps.get(fmt.name, ())

    def rereads_of(self, fmt: Format) -> tuple[Step, ...]:
        """Return the other formats as which codes of a format may be read."""
        return self.rereads.get(fmt.name, ())

    def leads(self, src: Format, dst: Format, steps: int) -> bool:
        """Whether any chain of up to so many instructions leads from one format to another."""
        if not self._holds(src):
            return False
        reached = {src.name}
        for _ in range(steps + 1):
            reached |= {step.dst.name for name in reached for step in self.rereads.get(name, ())}
            if dst.name in reached:
                return True
            reached |= {step.dst.name for name in reached for step in self.steps.get(name, ())}
        return False

    def _holds(self, fmt: Format) -> bool:
        """Whether some instruction takes or gives a format, or one as which its codes may be read."""
        known = set(self.steps) | {step.dst.name for steps in self.steps.values() for step in steps}
        return fmt.name in known or any(step.dst.name in known for step in self.rereads_of(fmt))


_KEPT = 16


class _Casts:
    """Casts of targets that do not depend on a request, found again by the identity of the target."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Target, tuple[Step, ...]]] = {}

    def of(self, target: Target, make: Callable[[], Iterable[Step]]) -> tuple[Step, ...]:
        """Return the casts of a target, made on first use."""
        if id(target) not in self._found:
            if len(self._found) >= _KEPT:
                self._found.clear()
            # The target is kept too, so that no other object can get its identity.
            self._found[id(target)] = target, tuple(make())
        return self._found[id(target)][1]


_CASTS = _Casts()


def catalogue_of(target: Target, src: Format, dst: Format) -> Catalogue:
    """Return what a target can do on the way from `src` to `dst`; these decide the constants of its arithmetic.

    Raises:
        IllegalError: a mechanism without casts.
    """
    constants = Constants(src, dst)
    if isinstance(target, VliwTarget):
        from simulator.planning.vector_steps import vector_arithmetic, vector_casts  # noqa: PLC0415

        casts = _CASTS.of(target, lambda: vector_casts(target))
        steps = (*casts, *vector_arithmetic(target, constants))
        return Catalogue.of(steps, (src, dst), rereads_inside=True)
    if isinstance(target, StridedRepeatTarget | VectorFunctionTarget):
        from simulator.planning.tile_arithmetic import tile_arithmetic, tile_truth  # noqa: PLC0415
        from simulator.planning.tile_casts import tile_casts  # noqa: PLC0415

        casts = _CASTS.of(target, lambda: tile_casts(target))
        steps = (*casts, *tile_arithmetic(target, constants), *tile_truth(target, constants))
        return Catalogue.of(steps, (src, dst), rereads_inside=True)
    raise IllegalError(f"{target.name} has no casts to plan with")


def _by_source(steps: Iterable[Step]) -> dict[str, tuple[Step, ...]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(step.src.name, []).append(step)
    return {name: tuple(listed) for name, listed in found.items()}


def _reread(src: Format, dst: Format) -> Step:
    return Step(src, dst, (Reread(src, dst),), (RereadForm(),), f"read {src.name} as {dst.name}")


def _same_bits(src: Format, dst: Format) -> bool:
    """Whether codes of one format may pass for codes of another: integers of one width, floats with equal numbers.

    A boolean lies in a byte and is 0 or 1.
    """
    if src.name == dst.name:
        return False
    if isinstance(src, IntFormat) and isinstance(dst, IntFormat):
        widths = {8 if fmt.boolean else fmt.bits for fmt in (src, dst)}
        return len(widths) == 1
    if not isinstance(src, FloatFormat) or not isinstance(dst, FloatFormat):
        return False
    return all(
        getattr(src, part) == getattr(dst, part)
        for part in ("exponent_bits", "fraction_bits", "bias", "specials", "signed", "has_zero")
    )

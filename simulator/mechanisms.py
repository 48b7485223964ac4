"""Which modules run which mechanism; the only place that knows all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isa.errors import IllegalError, ReadError
from isa.formats import Format
from isa.modes import Rounding, Saturation
from isa.pto.program import RoundMode
from targets import Target
from targets.vector_function import VectorFunctionTarget
from targets.vliw import VliwTarget

if TYPE_CHECKING:
    from simulator.execution import Lowerer
    from simulator.target_cast import TargetCast
    from simulator.tree import Tree

Bytes = NDArray[np.uint8]


class Compute(Protocol):
    """Runs all operations of a tree on the buffer and the global memory, both changed in place."""

    def __call__(self, tree: Tree, buffer: Bytes, arguments: Mapping[str, Bytes], *, shortcuts: bool = True) -> None:
        """See `simulator.strided.values.compute`."""


def lowerer_of(target: Target, *, unsafe_scratch: bool = False) -> Lowerer:
    """Return the lowering of the target's mechanism.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    # Only the mechanism in use is loaded.
    if isinstance(target, VectorFunctionTarget):
        from simulator.vector_function.lowerer import VectorFunctionLowerer  # noqa: PLC0415

        return VectorFunctionLowerer(target)
    if isinstance(target, VliwTarget):
        raise _no_tiles(target)
    from simulator.strided.lowerer import StridedLowerer  # noqa: PLC0415

    return StridedLowerer(target, unsafe_scratch=unsafe_scratch)


def compute_of(target: Target) -> Compute:
    """Return what computes the values of the target's operations.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    # Only the mechanism in use is loaded.
    if isinstance(target, VectorFunctionTarget):
        from simulator.vector_function import values  # noqa: PLC0415

        return values.compute
    if isinstance(target, VliwTarget):
        raise _no_tiles(target)
    from simulator.strided.values import compute  # noqa: PLC0415

    return compute


def cast_elements(
    target: Target,
    codes: NDArray[Any],
    src: Format,
    dst: Format,
    rounding: str | None,
    saturation: Saturation | None,
    *,
    scratch: bool,
) -> TargetCast:
    """Convert codes of any shape as the chip does; `rounding` is a mode in the chip's words.

    Raises:
        ReadError: a word that is no rounding mode.
        IllegalError: no such type pair, or a mode that the chip's instructions cannot name.
    """
    # Only the mechanism in use is loaded.
    if isinstance(target, VliwTarget):
        from simulator.vliw.loose_cast import cast_elements as by_convert  # noqa: PLC0415

        return by_convert(target, codes, src, dst, rounding, saturation, scratch=scratch)
    mode = None if rounding is None else _tile_mode(rounding, target)
    if isinstance(target, VectorFunctionTarget):
        from simulator.vector_function.elementwise import cast_elements as by_function  # noqa: PLC0415

        return by_function(target, codes, src, dst, mode, saturation, scratch=scratch)
    from simulator.strided.elementwise import cast_elements as by_repeats  # noqa: PLC0415

    return by_repeats(target, codes, src, dst, mode, saturation, scratch=scratch)


def _tile_mode(rounding: str, target: Target) -> RoundMode:
    """Return a mode of the tile instructions, as their enumeration names it."""
    name = rounding.upper().removeprefix("CAST_")
    if name in RoundMode.__members__:
        return RoundMode[name]
    legal = [mode.name.lower() for mode in RoundMode]
    if rounding.lower() in {mode.value for mode in Rounding}:
        raise IllegalError(f"{target.name} has no rounding mode {rounding}", legal=legal)
    raise ReadError(f"unknown rounding mode '{rounding}'", legal=legal)


def _no_tiles(target: VliwTarget) -> IllegalError:
    languages = ", ".join(f".{language}" for language in target.languages)
    return IllegalError(f"{target.name} has no tile instructions; it runs {languages} programs")

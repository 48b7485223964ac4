"""Casts of f32 that keep the low bits of rounded numbers: by the processor's conversion to i32, in machine code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.formats import Codes, Format, Rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.policy import Policy
from castsim.numerics.tiers import why_not_compiled

_MODES = (Rounding.RINT, Rounding.ROUND, Rounding.FLOOR, Rounding.CEIL, Rounding.TRUNC)
_RINT, _ROUND, _FLOOR, _CEIL, _TRUNC = range(len(_MODES))

_COMPILED = "castsim.numerics.compiled"
_LOADS = 1 << 26
"""Elements that take as long by NumPy as numba takes to be imported."""


def machine_code_pays(count: int) -> bool:
    """Return whether numba is loaded already, or would have paid for so many elements."""
    return (_COMPILED in sys.modules or count > _LOADS) and why_not_compiled() is None


def wraps_in_machine_code(src: Format, policy: Policy) -> bool:
    """Return whether `WrappingLoop` has a cast; that of a shorter source is a table."""
    return src.name == "f32" and policy.rounding in _MODES and not policy.flush_source


@dataclass(slots=True)
class WrappingLoop:
    """A cast to the low bits of the rounded number; `steps` gives the same, and alone what i32 does not hold."""

    steps: Callable[[Codes], Codes]
    rounding: Rounding
    dst: Format
    converted: int = 0
    code: Callable[..., None] | None = None

    def run(self, codes: Codes, results: Codes) -> None:
        """Fill the results of codes; both arrays are contiguous."""
        self.converted += codes.size
        if self.code is None and machine_code_pays(self.converted):
            self.code = _kernel(_MODES.index(self.rounding), code_dtype(self.dst))
        outside = np.zeros(1, np.uint32)
        for start in range(0, codes.size, _BLOCK):
            block, made = codes[start : start + _BLOCK], results[start : start + _BLOCK]
            if self.code is None:
                made[...] = self.steps(block)
                continue
            numbers = block.view(np.float32)
            self.code(numbers, made, outside)
            if outside[0]:
                beyond = ~(np.abs(numbers) < _END)
                made[beyond] = self.steps(block[beyond])


_BLOCK = 1 << 16
_END = np.float32(0x7FFFFF80)
"""The largest number below 2**31: up to it every rounding stays within i32."""


@cache
def _kernel(mode: int, results: np.dtype[Any]) -> Callable[..., None]:
    """Return the loop over numbers; it tells whether any is as large as `_END`, or not a number."""
    import numba  # noqa: PLC0415 - loaded already, or worth it

    from castsim.numerics.compiled import compiled  # noqa: PLC0415 - likewise

    end, low = _END, results.type

    def kernel(numbers: NDArray[np.float32], codes: Codes, outside: NDArray[np.uint32]) -> None:
        beyond = np.uint32(0)
        for index in range(numbers.size):
            number = numbers[index]
            if mode == _RINT:
                whole = np.rint(number)
            elif mode == _FLOOR:
                whole = np.floor(number)
            elif mode == _CEIL:
                whole = np.ceil(number)
            else:
                whole = np.trunc(number)
                if mode == _ROUND:
                    whole += np.copysign(np.float32(abs(number - whole) >= np.float32(0.5)), number)
            inside = abs(number) < end
            codes[index] = low(np.int32(whole if inside else np.float32(0)))
            beyond |= np.uint32(0) if inside else np.uint32(1)
        outside[0] = beyond

    array = numba.types.Array
    single, made = numba.types.float32, numba.from_dtype(results)
    types = numba.types.void(
        array(single, 1, "C", readonly=True), array(made, 1, "C"), array(numba.types.uint32, 1, "C")
    )
    return compiled(lambda: kernel, types)

"""Global memory of a tile program as its inputs fill it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from castsim.execution.inputs import check_known, empty_memory, make_inputs, to_memory
from castsim.execution.interpreter import ArgumentUse
from castsim.isa.codes import Codes
from castsim.isa.errors import LimitError, ReadError


def check_elements(uses: Mapping[str, ArgumentUse], most: int) -> None:
    """Refuse arguments that take more memory than a simulation should, before any of it is allocated.

    Raises:
        LimitError: one has more than `most` elements; its place is the view that needs them.
    """
    for name, use in uses.items():
        if use.elements > most:
            raise LimitError(
                f"argument '{name}' has {use.elements} elements, over the limit of {most}",
                span=use.span,
                legal=(f"--max-elements {use.elements}", "--timing-only"),
            )


def filled_memory(uses: Mapping[str, ArgumentUse], inputs: Mapping[str, Codes | str]) -> dict[str, NDArray[np.uint8]]:
    """Return the bytes of every argument, filled from the inputs.

    Raises:
        ReadError: an unknown name, a missing input, an array that does not fit.
    """
    for name in inputs:
        check_known(name, uses)
    missing = [name for name, use in uses.items() if use.needs_input and name not in inputs]
    if missing:
        raise ReadError(
            f"the program loads {', '.join(f'%{name}' for name in missing)} before storing to it: no input given",
            legal=[f"--in {name}=FILE.npy|random:SEED|zeros" for name in missing],
        )
    named = {name: text for name, text in inputs.items() if isinstance(text, str)}
    arrays = {
        **{name: array for name, array in inputs.items() if not isinstance(array, str)},
        **make_inputs(named, uses),
    }
    return {
        name: to_memory(arrays[name], name, use) if name in arrays else empty_memory(use) for name, use in uses.items()
    }

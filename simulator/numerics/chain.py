"""Several casts in a row, block by block, as multi-instruction lowerings need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Format
from castsim.isa.modes import Rounding
from castsim.numerics.blocks import check_codes, convert_blocks
from castsim.numerics.cast import cast_block, check_random
from castsim.numerics.policy import Policy, check_policy
from castsim.numerics.rounding import U64


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One cast of a chain: to `dst`, by `policy`."""

    dst: Format
    policy: Policy


def cast_chain(
    codes: Codes,
    src: Format,
    steps: Sequence[ChainStep],
    *,
    random: NDArray[np.uint32] | None = None,
    out: Codes | None = None,
) -> Codes:
    """Convert codes of `src` through all steps; every step rounds by its own policy.

    Args:
        codes: unsigned integers of `src`'s storage width, any shape and layout.
        src: format of the codes.
        steps: the casts in order, at least one, of which one at most is stochastic.
        random: words for the stochastic step, as for `cast_codes`.
        out: array of the same shape for the result.

    Raises:
        ReadError: no steps, or as `cast_codes`.
        IllegalError: more than one stochastic step, or as `cast_codes`.
    """
    if not steps:
        raise ReadError("a chain of casts needs at least one step")
    sources = [src, *(step.dst for step in steps[:-1])]
    for source, step in zip(sources, steps, strict=True):
        check_policy(source, step.dst, step.policy)
    stochastic = [step for step in steps if step.policy.rounding is Rounding.STOCHASTIC]
    if len(stochastic) > 1:
        raise IllegalError(f"{len(stochastic)} stochastic steps in one chain", legal=("at most one",))
    check_random(codes, (stochastic or steps)[0].policy, random)

    def convert(block: U64, words: U64 | None) -> U64:
        for source, step in zip(sources, steps, strict=True):
            drawn = words if step.policy.rounding is Rounding.STOCHASTIC else None
            block = cast_block(block, source, step.dst, step.policy, drawn)
        return block

    return convert_blocks(check_codes(codes, src), steps[-1].dst, convert, random, out)

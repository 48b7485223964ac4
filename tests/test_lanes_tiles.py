"""Casts between tiles and micro instructions agree: conversions of kernels are legal `vcvt`s with the same bits."""

from __future__ import annotations

from itertools import product

import numpy as np
import oracle
import pytest
from a5_cases import source_codes

from castsim.isa.formats import format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.micro_words import CONVERSIONS, ROUNDINGS
from castsim.isa.pto.program import RoundMode
from castsim.machines.vector_function.plan import FunctionCastPlan, plan_cast, step_policy
from castsim.machines.vector_function.vector_registers import documented_target, policy_of
from castsim.numerics import convert_codes
from castsim.targets.description import with_options

A5 = with_options(documented_target(), {"micro_integer_to_float": "as_asked"})
"""The chip as tile casts have it: an option of micro programs alone rounds integers to nearest even."""
LETTERS = {mode: letter for letter, mode in ROUNDINGS.items()}


def plans(src: str, dst: str) -> list[FunctionCastPlan]:
    """Every mode, saturation and shape of a tile cast."""
    cases = product((None, *RoundMode), (None, *Saturation), (False, True))
    return [
        plan_cast(A5, format_named(src), format_named(dst), mode, saturation, contiguous=contiguous, scratch=False)
        for mode, saturation, contiguous in cases
    ]


def steps(plan: FunctionCastPlan) -> set[tuple[str, str]]:
    """The pairs that a kernel converts between, one after the other."""
    found = set()
    for line in plan.kernel.trip:
        if line.mnemonic == "vcvt":
            named = [word for word in line.operands[1:] if word in oracle.FLOATS or word in oracle.INTS]
            found.add((named[0], named[1]) if named else (plan.src.name, plan.dst.name))
    return found


@pytest.mark.parametrize(("src", "dst"), [(row.src, row.dst) for row in A5.casts if row.src != row.dst])
def test_conversions_of_tile_casts(src: str, dst: str) -> None:
    """The CTRL register that the kernel sets decides; only infinities differ, in the first step of several.

    There the tile level has what the special-value class of the vendor's script says (option
    `multi_step_intermediate`), which no single instruction does.
    """
    tried = 0
    for plan in plans(src, dst):
        for pair in sorted(steps(plan)):
            row = CONVERSIONS[pair]
            source, result = (format_named(name) for name in pair)
            policy = step_policy(A5, plan, source, result)
            letter = LETTERS[policy.rounding] if row.roundings else None
            assert letter is None or letter in row.roundings
            codes = source_codes(*pair).astype(f"<u{source.storage_bits // 8}")
            saturation = "NOSAT" if row.saturations else None
            own = convert_codes(codes, source, result, policy_of(A5, row, letter, saturation, plan.ctrl))
            same = own == convert_codes(codes, source, result, policy)
            if pair != (src, dst) and pair[0] == src:
                kinds = np.array([getattr(oracle.decode(code, pair[0]), "kind", "finite") for code in codes.tolist()])
                same |= kinds == "inf"
            assert same.all(), (pair, plan.rounding, plan.saturation)
            tried += 1
    assert tried

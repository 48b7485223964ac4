"""Running one instruction of a kernel on given operands, and the codes that its tests run through."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from kit.tpc_semantics_cases import instruction, samples, state
from kit.tpc_text import target
from oracle_formats import fmt

from castsim.machines.vliw.plans import prepare
from castsim.machines.vliw.semantics import PreparedInstruction
from castsim.machines.vliw.semantics.operands import Effects, OperandValues, State
from castsim.targets.vliw import VliwTarget

RNG = np.random.default_rng(18)
INCOME = RNG.integers(0, 256, 256).astype(np.uint8)
MASK = RNG.integers(0, 2, 256).astype(bool)
MODES = ("RHNE", "RZ", "RU", "RD")


@lru_cache(maxsize=1024)
def _prepared(text: str, generation: str, slot: str) -> PreparedInstruction:
    return prepare(instruction(text, generation, slot), target(generation))


def run(
    text: str, generation: str = "gaudi2", *, slot: str = "vpu", income: Any = INCOME, predicate: Any = True,
    machine: State | None = None, chip: VliwTarget | None = None, **sources: Any,
) -> Effects:  # fmt: skip
    if chip is None:
        found = _prepared(text, generation, slot)
    else:
        found = prepare(instruction(text, generation, slot), chip)
    return found(OperandValues(sources, income, predicate), machine or state())


def every_code(name: str) -> Iterator[np.ndarray]:
    """Vectors of all codes of 8 and 16 bits; of 32 bits the samples."""
    bits = fmt(name).bits
    some = np.asarray(samples(name) if bits == 32 else range(1 << bits))
    lanes = 2048 // bits
    for start in range(0, some.size, lanes):
        yield np.resize(some[start : start + lanes], lanes)


def machine_in(mode: str, generation: str = "gaudi2", **more: int) -> State:
    return state({"round": target(generation).convert_rounding.modes[mode.lower()].code, **more})

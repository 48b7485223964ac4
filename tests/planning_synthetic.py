"""Random targets for the planner, and all their chains tried one by one.

A synthetic target is A2/A3 with another table of casts: random type pairs, rounding modes, default saturation. What a
chain gives is asked of `cast_elements`, what is right of the test oracle; nothing here is the planner's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import oracle

from isa.formats import FORMATS, TaperedFormat
from isa.modes import Rounding, Saturation
from simulator.mechanisms import cast_elements
from targets import load_target
from targets.strided_repeat import StridedRepeatTarget

NARROW = ("i8", "u8", "e4m3fn", "e5m2", "hif8")
WIDE = ("f16", "bf16", "i16", "u16")
MODES = ("rint", "round", "floor", "ceil", "trunc", "odd")


@dataclass(frozen=True)
class Case:
    """A random target and a random cast that it is asked for."""

    target: StridedRepeatTarget
    src: str
    dst: str
    rounding: str
    saturate: bool


def case(seed: int, sources: tuple[str, ...] = NARROW) -> Case:
    rng = np.random.default_rng((2, seed))
    src, dst = str(rng.choice(sources)), str(rng.choice(NARROW + WIDE))
    while dst == src:
        dst = str(rng.choice(NARROW + WIDE))
    modes = [mode for mode in MODES if dst != "hif8" or mode in ("round", "floor", "ceil", "trunc")]
    return Case(target(rng, src, dst), src, dst, str(rng.choice(modes)), bool(rng.integers(2)))


def target(rng: np.random.Generator, src: str, dst: str) -> StridedRepeatTarget:
    base = load_target("a2a3")
    assert isinstance(base, StridedRepeatTarget)
    middle = [str(name) for name in rng.choice([name for name in NARROW + WIDE if name not in (src, dst)], 3, False)]
    pairs = [pair for pair in product((src, *middle), (*middle, dst)) if pair[0] != pair[1]]
    chosen = [pairs[index] for index in sorted(rng.choice(len(pairs), min(len(pairs), 7), False))]
    rows = []
    for source, destination in chosen:
        legal = ("round", "floor", "ceil", "trunc")
        if not isinstance(FORMATS[destination], TaperedFormat):
            legal = MODES
        modes = [str(mode) for mode in rng.choice(legal, int(rng.integers(1, 4)), False)]
        update = {
            "src": source,
            "dst": destination,
            "action": "convert",
            "suffixes": {Rounding(mode): mode[0] for mode in modes},
            "fallback": Rounding(modes[0]),
            "plain": False,
            "saturation_off_by_default": bool(rng.integers(2)),
        }
        rows.append(base.casts[0].model_copy(update=update))
    return base.model_copy(update={"casts": tuple(rows), "scratch_sequences": ()})


def instructions(chip: StridedRepeatTarget, src: str) -> Iterator[tuple[str, str, Saturation]]:
    """Every instruction from a format; what a text leaves out is one of these modes."""
    for rule in chip.casts:
        if rule.src == src:
            yield from product((rule.dst,), (mode.value for mode in rule.suffixes), Saturation)


def issue(chip: StridedRepeatTarget, codes: np.ndarray, src: str, instruction: tuple) -> np.ndarray:
    dst, mode, saturation = instruction
    return cast_elements(chip, codes, FORMATS[src], FORMATS[dst], mode, saturation, scratch=False).codes


def reads_as(src: str, dst: str) -> bool:
    """Whether the program's argument may be declared as the other: integers of one width."""
    return src[0] in "iu" and dst[0] in "iu" and src[1:] == dst[1:]


def shortest(found: Case, steps: int) -> int | None:
    """Return the length of the shortest right chain, by trying all; None if there is none."""
    codes = np.arange(1 << oracle.fmt(found.src).bits, dtype=oracle.storage(found.src))
    is_float = found.dst in oracle.FLOATS
    overflow = "saturate" if found.saturate else "special" if is_float else "wrap"
    right = oracle.cast_array(codes, found.src, found.dst, found.rounding, overflow)
    nan = oracle.is_nan(right, found.dst) if is_float else np.zeros(right.shape, bool)

    def is_right(results: np.ndarray) -> bool:
        same = results == right
        return bool((same | (nan & oracle.is_nan(results, found.dst)) if is_float else same).all())

    starts = [name for name in FORMATS if name == found.src or reads_as(found.src, name)]
    level = [(name, codes) for name in starts]
    for length in range(steps + 1):
        for name, results in level:
            if (name == found.dst or (reads_as(name, found.dst) and length)) and is_right(results):
                return length
        if length == 0 and reads_as(found.src, found.dst) and is_right(codes):
            return 0
        level = [
            (instruction[0], issue(found.target, results, name, instruction))
            for name, results in level
            for instruction in instructions(found.target, name)
            if length + 1 < steps or instruction[0] == found.dst or reads_as(instruction[0], found.dst)
        ]
    return None

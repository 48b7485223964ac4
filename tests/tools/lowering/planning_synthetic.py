"""Random targets for the planner, and all their chains tried one by one.

A synthetic target is A2/A3 with another table of casts: random type pairs, rounding modes, default saturation; and
with or without each of three operations on i16, sums on f16 too. What a cast gives is asked of `cast_elements`, what
an operation gives of NumPy, what is right of the test oracle. Only the constants to try are the planner's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import oracle

from castsim.isa.formats import FORMATS, Overflow, Rounding, Saturation, TaperedFormat
from castsim.machines.mechanisms import CastAsked, machine_of
from castsim.numerics.policy import Policy
from castsim.targets.loader import load_target
from castsim.targets.strided_repeat import StridedRepeatTarget
from castsim.tools.lowering.steps import Constants, FormatCast, LoweringStep, TileCastForm

NARROW = ("i8", "u8", "e4m3fn", "e5m2", "hif8")
WIDE = ("f16", "bf16", "i16", "u16")
MODES = ("rint", "round", "floor", "ceil", "trunc", "odd")


OPERATIONS = {"tmaxs": np.maximum, "tmins": np.minimum, "tadds": np.add}


@dataclass(frozen=True)
class Case:
    """A random target and a random cast that it is asked for."""

    target: StridedRepeatTarget
    src: str
    dst: str
    rounding: str
    saturate: bool

    @property
    def overflow(self) -> str:
        return "saturate" if self.saturate else "special" if self.dst in oracle.FLOATS else "wrap"


def policy_step(src: str, dst: str, rounding: str, overflow: str) -> LoweringStep:
    convert = FormatCast(FORMATS[src], FORMATS[dst], Policy(Rounding(rounding), Overflow(overflow)))
    form = TileCastForm(None, None, False)
    return LoweringStep(FORMATS[src], FORMATS[dst], (convert,), (form,), f"{src} -> {dst} {rounding} {overflow}")


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
    if rng.integers(3) == 0:  # no way but the long one
        chosen = [(src, middle[0]), (middle[0], middle[1]), (middle[1], dst)]
    rows = []
    for source, destination in chosen:
        legal = ("round", "floor", "ceil", "trunc")
        if not isinstance(FORMATS[destination], TaperedFormat):
            legal = MODES
        modes = [str(mode) for mode in rng.choice(legal, int(rng.integers(1, 4)), False)]
        update = {"src": source, "dst": destination, "action": "convert", "plain": False}
        update |= {"suffixes": {Rounding(mode): mode[0] for mode in modes}, "fallback": Rounding(modes[0])}
        update |= {"saturation_off_by_default": bool(rng.integers(2))}
        rows.append(base.casts[0].model_copy(update=update))
    operations = tuple(
        rule.model_copy(update={"types": ("i16", "f16") if rule.mnemonic == "tadds" else ("i16",)})
        for rule in base.tile_operations
        if rule.mnemonic in OPERATIONS and rng.integers(2)
    )
    return base.model_copy(update={"casts": tuple(rows), "scratch_sequences": (), "tile_operations": operations})


def instructions(chip: StridedRepeatTarget, src: str, ends: tuple[str, str]) -> Iterator[tuple]:
    """Every instruction from a format; what a text leaves out is one of these modes."""
    constants = Constants(*(FORMATS[name] for name in ends))
    for rule in chip.tile_operations:
        if src == "i16":
            values = constants.offsets(FORMATS[src]) if rule.mnemonic == "tadds" else constants.bounds(FORMATS[src])
            yield from product(("i16",), (rule.mnemonic,), values)
        if src == "f16" and rule.mnemonic == "tadds":
            yield from product(("f16",), ("tadds",), constants.offsets_of_floats(FORMATS[src]))
    for rule in chip.casts:
        if rule.src == src:
            yield from product((rule.dst,), (mode.value for mode in rule.suffixes), Saturation)


def issue(chip: StridedRepeatTarget, codes: np.ndarray, src: str, instruction: tuple) -> np.ndarray:
    dst, mode, saturation = instruction
    if mode in OPERATIONS:
        element = np.float16 if dst == "f16" else np.int16
        constant = np.array(saturation, np.uint16).view(element)
        with np.errstate(all="ignore"):
            return OPERATIONS[mode](codes.view(element), constant).astype(element).view(np.uint16)
    return machine_of(chip).cast_elements(codes, CastAsked(FORMATS[src], FORMATS[dst], mode, saturation)).codes


def reads_as(src: str, dst: str) -> bool:
    """Whether codes of one format may pass for codes of the other: integers of one width."""
    return src != dst and src[0] in "iu" and dst[0] in "iu" and src[1:] == dst[1:]


def shortest(found: Case, steps: int) -> int | None:
    """Return the length of the shortest right chain, by trying all; None if there is none."""
    codes = np.arange(1 << oracle.fmt(found.src).bits, dtype=oracle.storage(found.src))
    is_float = found.dst in oracle.FLOATS
    right = oracle.cast_array(codes, found.src, found.dst, found.rounding, found.overflow)
    nan = oracle.is_nan(right, found.dst) if is_float else np.zeros(right.shape, bool)

    def is_right(results: np.ndarray) -> bool:
        same = results == right
        return bool((same | (nan & oracle.is_nan(results, found.dst)) if is_float else same).all())

    known = {name for rule in found.target.casts for name in (rule.src, rule.dst)}
    if not known & {name for name in FORMATS if name == found.src or reads_as(found.src, name)}:
        return None
    level = {(found.src, codes.tobytes()): codes}
    for length in range(steps + 1):
        # The bytes of a tile may be given another element type anywhere.
        readings = [(name, results) for (other, _), results in level.items() for name in FORMATS
                    if name == other or reads_as(other, name)]  # fmt: skip
        if any(name == found.dst and is_right(results) for name, results in readings):
            return length
        level = {}
        for name, results in readings:
            for instruction in instructions(found.target, name, (found.src, found.dst)):
                if length + 1 < steps or instruction[0] == found.dst or reads_as(instruction[0], found.dst):
                    after = issue(found.target, results, name, instruction)
                    level[instruction[0], after.tobytes()] = after
    return None

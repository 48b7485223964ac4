"""Comparison of two computations of the same casts, code by code and bit by bit."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

import castsim
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Codes, FloatFormat, Format, Overflow, Rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import decode_to_float64
from castsim.numerics.policy import Policy, is_power_format
from castsim.numerics.tiers import Tier, convert_codes, why_not_compiled
from castsim.tools.verify.inputs import ORACLE, InputSet, VerificationPart, input_set, random_words, tier_named

# Access to the independent oracle, which lives with the tests of a source checkout and not in the package.

_POWER_MODES = {
    Rounding.CEIL: "up",
    Rounding.FLOOR: "down",
    Rounding.TRUNC: "down",
    Rounding.ROUND: "nearest",
    Rounding.HALF_UP: "nearest",
}
"""Modes towards powers of two, by their ONNX names in the oracle: only positive numbers reach the rounding."""


def oracle_folder() -> Path | None:
    """Return the folder of the oracle: `tests/` beside the packages; None if castsim is installed without it."""
    folder = Path(castsim.__file__).resolve().parent.parent / "tests"
    return folder if (folder / "oracle.py").is_file() else None


def load_oracle() -> ModuleType:
    """Import the oracle.

    Raises:
        IllegalError: castsim is installed without its tests.
    """
    folder = oracle_folder()
    if folder is None:
        raise IllegalError(
            "the independent oracle is part of the tests: get the source checkout and install it with"
            " `pip install -e .`, or compare two tiers",
            legal=("--against reference",),
        )
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    module = import_module("oracle")
    if Path(module.__file__ or "").resolve().parent != folder:
        raise IllegalError(
            f"another module '{module.__file__}' hides the independent oracle in {folder}",
            legal=("--against reference",),
        )
    return module


def check_oracle(part: VerificationPart) -> None:
    """Reject a pair that the oracle does not support.

    Raises:
        IllegalError: the pair is not supported, or there is no oracle.
    """
    formats = {**load_oracle().FLOATS, **load_oracle().INTS}
    for name in (part.source.name, part.destination.name):
        if name not in formats:
            raise IllegalError(f"the oracle has no format {name}", legal=("--against reference",))


def oracle_results(part: VerificationPart, codes: Codes, random: NDArray[np.uint32] | None) -> Codes:
    """Return the oracle's results."""
    oracle = load_oracle()
    src, dst = part.source.name, part.destination.name
    mode = _POWER_MODES[part.rounding] if is_power_format(part.destination) else str(part.rounding)
    if random is None:
        result: Codes = oracle.cast_array(codes, src, dst, mode, str(part.overflow))
        return result
    results = [
        oracle.cast(code, src, dst, mode, str(part.overflow), random=word)
        for code, word in zip(codes.tolist(), random.tolist(), strict=True)
    ]
    return np.array(results, oracle.storage(dst))


def undecided(part: VerificationPart, codes: Codes) -> NDArray[np.bool_] | None:
    """Return a mask of the codes for which the published sources contradict each other or are silent; None: no code.

    Between 2**127 and 2**128 without saturation, down and nearest to a power of two: onnxruntime overflows before
    rounding, the reference evaluator of ONNX after it. Hybrid of subnormal f16: neither the instruction's description
    nor the vendor's script decides.
    """
    src, dst = part.source, part.destination
    if is_power_format(dst) and part.overflow is Overflow.SPECIAL and part.rounding is not Rounding.CEIL:
        return np.asarray(decode_to_float64(codes, src) > 2.0**127)
    if part.rounding is Rounding.HYBRID and src.bits <= 16:
        return _subnormal(codes, src)
    return None


def _subnormal(codes: Codes, src: Format) -> NDArray[np.bool_]:
    assert isinstance(src, FloatFormat)
    return np.asarray((codes >> src.fraction_bits & src.exponent_mask) == 0)


BLOCK = 1 << 18
"""Number of codes compared at a time: inputs and both results stay in the caches."""

SHOWN = 10
"""Maximum number of mismatches stored per part; all are counted."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A code for which both sides disagree. `position` is that in the input set, `random` the word if one was used."""

    position: int
    code: int
    result: int
    expected: int
    random: int | None = None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of comparing positions `start` to `stop - 1`.

    `undecided` counts the codes left out because the sources contradict each other or are silent.
    `cpu_seconds` is the processor time for generating the codes, computing both results and comparing them.
    """

    start: int
    stop: int
    mismatches: int
    undecided: int
    first: tuple[Mismatch, ...]
    cpu_seconds: float


@lru_cache(maxsize=4)
def _prepared(part: VerificationPart) -> tuple[InputSet, Policy]:
    return input_set(part), part.policy


def probe(part: VerificationPart) -> None:
    """Reject a part that cannot be computed, by trying one code.

    Raises:
        ReadError, IllegalError: see `VerificationPart.check`; also an input set, tier or oracle that lacks the cast,
            or a tier that is not installed.
    """
    part.check()
    if Tier.COMPILED in (part.tier, part.against) and (missing := why_not_compiled()) is not None:
        raise ReadError(f"tier '{Tier.COMPILED}' is not available: {missing}", legal=(Tier.REFERENCE, Tier.TABLE))
    if part.against == ORACLE:
        check_oracle(part)
    compare(part, 0, 1)


def compare(part: VerificationPart, start: int, stop: int) -> ComparisonResult:
    """Compare both sides of a part on positions `start` to `stop - 1` of its input set."""
    began = time.thread_time()
    count = left_out = 0
    mismatches: list[Mismatch] = []
    for first in range(start, stop, BLOCK):
        differing, skipped = _compare_block(part, first, min(first + BLOCK, stop), mismatches)
        count += differing
        left_out += skipped
    return ComparisonResult(start, stop, count, left_out, tuple(mismatches), time.thread_time() - began)


def _compare_block(part: VerificationPart, start: int, stop: int, mismatches: list[Mismatch]) -> tuple[int, int]:
    """Return the numbers of differing and of undecided codes; append the first differing ones up to the maximum."""
    inputs, policy = _prepared(part)
    codes = inputs.codes(start, stop)
    random = random_words(part, start, stop) if part.rounding is Rounding.STOCHASTIC else None
    results = _results(part, policy, part.tier, codes, random)
    expected = _results(part, policy, part.against, codes, random)
    skip = undecided(part, codes) if part.against == ORACLE else None
    skipped = 0 if skip is None else int(np.count_nonzero(skip))
    if np.array_equal(results, expected):
        return 0, skipped
    different = results != expected
    if skip is not None:
        different &= ~skip
    indices = np.flatnonzero(different)
    for index in indices[: max(SHOWN - len(mismatches), 0)].tolist():
        word = None if random is None else int(random[index])
        code, result, wanted = (int(array[index]) for array in (codes, results, expected))
        mismatches.append(Mismatch(start + index, code, result, wanted, word))
    return len(indices), skipped


def _results(
    part: VerificationPart, policy: Policy, side: str, codes: Codes, random: NDArray[np.uint32] | None
) -> Codes:
    if side == ORACLE:
        return oracle_results(part, codes, random).astype(code_dtype(part.destination), copy=False)
    return convert_codes(codes, part.source, part.destination, policy, random=random, tier=tier_named(side))

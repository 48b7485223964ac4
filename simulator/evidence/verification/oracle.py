"""Access to the independent oracle, which lives with the tests of a source checkout and not in the package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

import castsim
from castsim.evidence.verification.part import VerificationPart
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FloatFormat, Format
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics.codec import decode_to_float64
from castsim.numerics.policy import is_power_format

_POWER_MODES = {
    Rounding.CEIL: "up",
    Rounding.FLOOR: "down",
    Rounding.TRUNC: "down",
    Rounding.ROUND: "nearest",
    Rounding.HALF_UP: "nearest",
}
"""Modes towards powers of two have the names of ONNX in the oracle: only positive numbers reach the rounding."""


def oracle_folder() -> Path | None:
    """Return the folder of the oracle: `tests/` beside the packages; None if they are installed without it."""
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
    """Reject a pair that the oracle does not know.

    Raises:
        IllegalError: as said, or no oracle.
    """
    known = {**load_oracle().FLOATS, **load_oracle().INTS}
    for name in (part.source.name, part.destination.name):
        if name not in known:
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
    nor the vendor's script tells.
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

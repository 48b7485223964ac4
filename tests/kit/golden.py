"""Reading the published vectors of `tests/vectors` and putting them to a subject: the product, or the oracle itself.

Keys and known defects of the files are described in `tests/vectors/README.md`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import oracle
from kit.paths import VECTORS

from castsim.isa.formats import Overflow, Rounding, format_named
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import E8M0Rule, Policy, abstract_policy

FORMAT = {
    **{f"fp{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}
"""Format ids of the vector files that differ from ours."""

E8M0_MODE = {"ceil": "up", "floor": "down", "trunc": "down", "round": "nearest", "half_up": "nearest"}
"""Our modes as ONNX's for e8m0: up is away from zero, and only positive numbers reach the rounding."""

Caster = Callable[..., np.ndarray]


def load(name: str) -> dict[str, np.ndarray]:
    """Return all arrays of a vector file."""
    with np.load(VECTORS / name, allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def format_name(identifier: str) -> str:
    return FORMAT.get(identifier, identifier)


def as_codes(array: np.ndarray, name: str) -> np.ndarray:
    """Return an array of the file as unsigned codes of the format."""
    return np.ascontiguousarray(array).view(oracle.storage(name))


def oracle_cast(
    source: np.ndarray,
    src: str,
    dst: str,
    rounding: str,
    overflow: str,
    random: np.ndarray | None = None,
    **options: object,
) -> np.ndarray:
    if random is None:
        return oracle.cast_array(source, src, dst, rounding, overflow, **options)
    results = [
        oracle.cast(code, src, dst, rounding, overflow, random=word, **options)
        for code, word in zip(source.tolist(), random.tolist(), strict=True)
    ]
    return np.array(results, dtype=oracle.storage(dst))


def oracle_mode(dst: str, mode: str) -> str:
    """Return the oracle's name of a mode for the destination."""
    return E8M0_MODE.get(mode, mode) if dst == "e8m0" else mode


def product_cast(
    source: np.ndarray,
    src: str,
    dst: str,
    rounding: str,
    overflow: str,
    random: np.ndarray | None = None,
    e8m0: str | None = None,
) -> np.ndarray:
    one, other = format_named(src), format_named(dst)
    mode = Rounding({"up": "ceil", "down": "floor", "nearest": "half_up"}.get(rounding, rounding))
    if e8m0 is None:
        policy = abstract_policy(one, other, mode, Overflow(overflow))
    else:
        policy = Policy(rounding=mode, overflow=Overflow(overflow), e8m0_rule=E8M0Rule(e8m0))
    return cast_codes(source, one, other, policy, random=random)


SUBJECTS: dict[str, Caster] = {"oracle": oracle_cast, "product": product_cast}
"""Who answers: the vectors judge the oracle as well as the product."""


def mismatches(expected: np.ndarray, got: np.ndarray, name: str) -> np.ndarray:
    """Return the indices at which two code arrays differ; any NaN equals any other."""
    both_nan = oracle.is_nan(expected, name) & oracle.is_nan(got, name)
    return np.flatnonzero((expected != got) & ~both_nan)


def assert_same(expected: np.ndarray, got: np.ndarray, source: np.ndarray, src: str, dst: str) -> None:
    """Fail with the first differing cells: source code, its value, expected and obtained code."""
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    bad = mismatches(expected, got, dst)
    cells = [
        f"{int(source[i]):#x} ({oracle.decode(int(source[i]), src)}): "
        f"expected {int(expected[i]):#x}, got {int(got[i]):#x}"
        for i in bad[:5]
    ]
    assert not len(bad), f"{src} -> {dst}: {len(bad)} of {len(source)} differ\n" + "\n".join(cells)


def nearest_bf16(values: np.ndarray) -> np.ndarray:
    """Round integers to 8 significant bits, ties to even."""
    out = []
    for value in values.tolist():
        shift = max(0, abs(value).bit_length() - 8)
        kept, dropped = divmod(abs(value), 1 << shift)
        half = (1 << shift) >> 1
        kept += bool(half) and (dropped > half or (dropped == half and kept & 1))
        out.append((kept << shift) * (-1 if value < 0 else 1))
    return np.array(out)

"""What vector operations give, from the formulas of docs/reference/pto.md section 7, in NumPy and ml_dtypes arithmetic.

Functions are transcribed from the tables of the section and share nothing with the simulator. Arithmetic runs in
native element types (each operation of NumPy's float16 and of ml_dtypes' bfloat16 rounds once to the type); maxima
compare sign-magnitude codes; sums go through plain lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce

import numpy as np
from kit.work_programs import NATIVE

from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.targets.loader import load_target

FLOATS = ("f16", "bf16", "f32")
TARGETS = ("a2a3", "a5")
APART = {
    "tmov", "tfillpad", "tfillpad_expand", "tfillpad_inplace", "tci", "tgather", "tgather.mask", "tgather.compare",
    "tsort32", "tmrgsort", "ttrans", "tconcat", "tconcatidx", "taxpy", "taddc", "trowargmax", "trowargmin",
    "tcolargmax", "tcolargmin", "tquant", "tquant.mx", "tdequant", "tpack", "tmov.zz", "tmov.nz", "tmuladddst",
    "tfusedmuladd", "tfusedmuladdrelu", "taddreluconv", "tsubreluconv", "tadddeqrelu", "tpartargmax", "tpartargmin",
    "tpairreducesum", "tgatherb", "tinterleave", "tdeinterleave",
}  # fmt: skip
"""Operations whose tests have arithmetic of their own."""
TYPES = {
    mnemonic: tuple(" ".join(load_target(name).tile_operation(mnemonic).types) for name in TARGETS)
    for mnemonic in VECTOR_OPERATIONS
    if mnemonic not in APART
}
"""Operation -> element types on A2/A3 and on A5, as the descriptions have them."""

# The canonical quiet NaN of each float.
NAN = {"f32": 0x7FC00000, "f16": 0x7E00, "bf16": 0x7FC0}


class Model:
    """The formulas in one element type on one target: A5 clamps f16 results (CTRL[60] = 1), A2/A3 does not."""

    def __init__(self, element: str, target: str) -> None:
        self.element = element
        self.dtype = NATIVE[element]
        self.is_float = element in FLOATS
        self.clamps = target == "a5" and element == "f16"
        self.target = target

    # ------------------------------------------------------------------------------------------------- elements

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """An arithmetic result in the element type: NaN canonical, clamped where the target clamps."""
        result = np.asarray(values).astype(self.dtype)
        if not self.is_float:
            return result
        wide = result.astype(np.float64)
        if self.clamps:
            result = np.where(np.isinf(wide), np.copysign(65504.0, wide), np.where(np.isnan(wide), 0.0, wide))
            return result.astype(self.dtype)
        return self.canonical(result)

    def canonical(self, result: np.ndarray) -> np.ndarray:
        codes = self.codes(result).copy()
        codes[np.isnan(result.astype(np.float64))] = NAN[self.element]
        return codes.view(self.dtype)

    def codes(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values).view(f"<u{self.dtype.itemsize}")

    def one(self, value: int) -> np.ndarray:
        return np.array(value).astype(self.dtype)

    def function(self, name: str) -> Callable[..., np.ndarray]:
        return getattr(self, f"_{name}")

    def _add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.rounded(a + b)

    def _sub(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.rounded(a - b)

    def _mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.rounded(a * b)

    def _div(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.is_float:
            return self.rounded(a / b)
        a, b = np.broadcast_arrays(a, b)
        pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
        quotients = [int(Fraction(x, y)) if y else 0 for x, y in pairs]
        return np.array(quotients, np.int64).astype(self.dtype).reshape(a.shape)

    def key(self, values: np.ndarray) -> np.ndarray:
        """Integers in the order of the numbers, -0 below +0."""
        if not self.is_float:
            return values.astype(np.int64)
        codes = self.codes(values).astype(np.int64)
        sign = 1 << (8 * self.dtype.itemsize - 1)
        return np.where(codes & sign, -(codes ^ sign) - 1, codes)

    def _max(self, a: np.ndarray, b: np.ndarray, *, larger: bool = True) -> np.ndarray:
        a, b = np.broadcast_arrays(a, b)
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        first = self.key(a) >= self.key(b) if larger else self.key(a) <= self.key(b)
        result = np.where(first, a, b)
        if not self.is_float:
            return result
        no_a, no_b = np.isnan(a.astype(np.float64)), np.isnan(b.astype(np.float64))
        codes = self.codes(result).copy()
        codes[no_a | no_b] = NAN[self.element]
        return self.kept(codes.view(self.dtype))

    def kept(self, result: np.ndarray) -> np.ndarray:
        """A result that has the bits of an operand: as it is unless the target clamps."""
        return self.rounded(result) if self.clamps else result

    def _min(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._max(a, b, larger=False)

    def _exp(self, a: np.ndarray) -> np.ndarray:
        return self.rounded(np.exp(a.astype(np.float64)))

    def _log(self, a: np.ndarray) -> np.ndarray:
        return self.rounded(np.log(a.astype(np.float64)))

    def _sqrt(self, a: np.ndarray) -> np.ndarray:
        return self.rounded(np.sqrt(a))

    def _rsqrt(self, a: np.ndarray) -> np.ndarray:
        if self.target == "a2a3":  # without tmp: one estimate
            return self.rounded(1 / np.sqrt(a.astype(np.float64)))
        return self.rounded(self.one(1) / self._sqrt(a))

    def _recip(self, a: np.ndarray) -> np.ndarray:
        return self.rounded(self.one(1) / a)

    def _abs(self, a: np.ndarray) -> np.ndarray:
        sign = 1 << (8 * self.dtype.itemsize - 1)
        return self.kept((self.codes(a) & (sign - 1)).view(self.dtype))

    def _neg(self, a: np.ndarray) -> np.ndarray:
        return self.rounded(a * self.one(-1))

    def _relu(self, a: np.ndarray) -> np.ndarray:
        result = np.where(a > 0, a, self.one(0))
        return self.rounded(np.where(np.isnan(a.astype(np.float64)), a, result)) if self.is_float else result

    def _addrelu(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._relu(self._add(a, b))

    def _subrelu(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._relu(self._sub(a, b))

    def _pow(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """C's power of doubles; of integers Python's, low bits kept."""
        if self.is_float:
            return self.rounded(np.float_power(a.astype(np.float64), b.astype(np.float64)))
        pairs = zip(*(x.ravel().tolist() for x in np.broadcast_arrays(a, b)), strict=True)
        width = 8 * self.dtype.itemsize
        powers = [
            pow(x, y, 1 << width) if y >= 0 else (x if y % 2 else 1) if abs(x) == 1 else 0 for x, y in pairs
        ]  # fmt: skip
        found = np.array([y % (1 << width) for y in powers], np.uint64).astype(f"<u{width // 8}")
        return found.view(self.dtype).reshape(np.broadcast(a, b).shape)

    def _expdif(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._exp(self._sub(a, b))

    def _and(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a & b

    def _or(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a | b

    def _xor(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a ^ b

    def _not(self, a: np.ndarray) -> np.ndarray:
        return -1 - a

    def _shl(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """By Python's numbers of any length; amounts outside the width leave nothing."""
        width = 8 * self.dtype.itemsize
        pairs = zip(*(x.ravel().tolist() for x in np.broadcast_arrays(a, b)), strict=True)
        shifted = [(x << y) % (1 << width) if 0 <= y < width else 0 for x, y in pairs]
        return np.array(shifted, np.uint64).astype(f"<u{width // 8}").view(self.dtype).reshape(a.shape)

    def _shr(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        width = 8 * self.dtype.itemsize
        pairs = zip(*(x.ravel().tolist() for x in np.broadcast_arrays(a, b)), strict=True)
        shifted = [x >> (y if 0 <= y < width else width) for x, y in pairs]
        return np.array(shifted).astype(self.dtype).reshape(a.shape)

    def _rem(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._rest(a, b, np.floor, corrected=True)

    def _fmod(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._rest(a, b, np.trunc, corrected=False)

    def _rest(self, a: np.ndarray, b: np.ndarray, whole: np.ufunc, *, corrected: bool) -> np.ndarray:
        """Step by step in f32; nothing but 0 for integers by 0, and no integer beyond the range."""
        x, y = np.broadcast_arrays(a.astype(np.float32), b.astype(np.float32))
        rest = np.subtract(x, np.multiply(whole(np.divide(x, y)), y))
        if corrected:
            rest = np.where(np.sign(rest) * np.sign(y) == -1, rest + y, rest)
        if self.is_float:
            return self.rounded(rest)
        limits = np.iinfo(self.dtype)
        exact = [
            0 if d == 0 else min(max(int(r), limits.min), limits.max) for r, d in zip(rest.flat, y.flat, strict=True)
        ]
        return np.array(exact, np.int64).astype(self.dtype).reshape(rest.shape)

    def _prelu(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.rounded(np.where(np.signbit(a.astype(np.float64)), a * b, a))

    def _compare(self, mode: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.target == "a2a3" and self.element == "i32":
            mode = "eq"
        a, b = a.astype(np.float64), b.astype(np.float64)  # every element type is exact in it
        if self.target == "a2a3" and mode == "ne":
            return (a != b) & ~np.isnan(a) & ~np.isnan(b)
        return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[mode]

    # ----------------------------------------------------------------------------------------------- reductions

    def by_neighbours(self, name: str, vectors: Sequence[np.ndarray]) -> np.ndarray:
        """Join neighbours, then neighbours of the results; one without a partner goes to the next round.

        Every sum clamps where results do, of extremes the last one.
        """
        plain = Model(self.element, "a2a3") if name in ("max", "min") else self
        function, left = plain.function(name), list(vectors)
        while len(left) > 1:
            pairs = [function(left[i], left[i + 1]) for i in range(0, len(left) - 1, 2)]
            left = pairs + ([left[-1]] if len(left) % 2 else [])
        return self.kept(left[0])

    def row_reduction(self, name: str, values: np.ndarray) -> np.ndarray:
        """One value per row: 256 bytes at a time."""
        lanes = 256 // self.dtype.itemsize
        columns = [values[:, j] for j in range(values.shape[1])]
        pieces = [columns[start : start + lanes] for start in range(0, len(columns), lanes)]
        if self.target == "a5":
            if name == "mul":  # lane by lane onto ones, then neighbours: no instruction multiplies lanes
                ones = [np.ones(len(values), self.dtype)] * lanes
                for piece in pieces:
                    both = zip(ones, piece, strict=False)
                    ones = [*(self.function(name)(x, y) for x, y in both), *ones[len(piece) :]]
                return self.by_neighbours(name, ones)
            sums = [self.by_neighbours(name, piece) for piece in pieces]
            return reduce(self.function(name), sums, np.full(len(values), self.neutral(name), self.dtype))
        while len(pieces) > 1:
            joined = []
            for i in range(0, len(pieces) - 1, 2):
                one, two = pieces[i], pieces[i + 1]
                both = [self.function(name)(x, y) for x, y in zip(one, two, strict=False)]
                joined.append([*both, *one[len(two) :]])
            pieces = joined + ([pieces[-1]] if len(pieces) % 2 else [])
        return self.by_neighbours(name, pieces[0])

    def neutral(self, name: str) -> float | int:
        if name in ("add", "mul"):
            return int(name == "mul")
        if self.is_float:
            return -np.inf if name == "max" else np.inf
        limits = np.iinfo(self.dtype)
        return limits.min if name == "max" else limits.max

    def column_reduction(self, name: str, values: np.ndarray) -> np.ndarray:
        return reduce(self.function(name), list(values))


def special(element: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Numbers of an element type, small and large; zeros of both signs, infinities, NaN and subnormals among them."""
    rng = np.random.default_rng(seed)
    dtype = NATIVE[element]
    wanted = int(np.prod(shape))
    count = max(wanted, 16)
    if element not in FLOATS:
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, count, endpoint=True, dtype=dtype)
        values = np.where(rng.random(count) < 0.5, rng.integers(-9, 9, count), values).astype(dtype)
        values[:6] = [limits.min, limits.max, 0, 1, -1, limits.min]
    else:
        values = (rng.standard_normal(count) * 10.0 ** rng.integers(-3, 3, count)).astype(dtype)
        odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 65504.0, 3e38 if element != "f16" else 6e4, 88.0]
        values[: len(odd)] = np.array(odd).astype(dtype)
        bits = values.view(f"<u{dtype.itemsize}")
        bits[len(odd) : len(odd) + 2] = [1, (1 << (8 * dtype.itemsize - 1)) | 3]  # subnormals
    return rng.permutation(values)[:wanted].reshape(shape)

"""Sets of acceptable results, one per element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format
from castsim.numerics.blocks import check_codes
from castsim.specifications.order import is_nan, order_keys

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AcceptanceSets:
    """The acceptable results of a cast to `dst`, one set per element; all arrays have the shape of the source.

    Where `anything`, every code is acceptable. Else, where `numbers`, those from `lowest` to `highest` in the order of
    their values (minus zero before zero, infinity after the largest number), and `further`, which is one of them or
    one code more. Where `nan`, every NaN.
    """

    dst: Format
    lowest: Codes
    highest: Codes
    further: Codes
    numbers: Mask
    nan: Mask
    anything: Mask

    def contains(self, codes: Codes) -> Mask:
        """Return a mask of the codes that lie in the set of their element.

        Raises:
            ReadError: not codes of the destination, or another shape.
        """
        codes = check_codes(codes, self.dst)
        if codes.shape != self.lowest.shape:
            raise ReadError(f"results of shape {codes.shape} for sources of shape {self.lowest.shape}")
        keys = order_keys(codes, self.dst)
        inside = (order_keys(self.lowest, self.dst) <= keys) & (keys <= order_keys(self.highest, self.dst))
        nan = is_nan(codes, self.dst)
        number = self.numbers & (inside | (codes == self.further)) & ~nan
        accepted: Mask = number | (self.nan & nan) | self.anything
        return accepted

    @property
    def single(self) -> Mask:
        """A mask of the sets that hold one code only."""
        one = self.numbers & (self.lowest == self.highest) & (self.further == self.lowest)
        alone: Mask = one & ~self.nan & ~self.anything
        return alone


def one_of(dst: Format, first: Codes, *others: Codes) -> AcceptanceSets:
    """Return the sets that reach from the lowest to the highest of several results; NaN stands for any NaN."""
    results = [first, *others]
    nans = [is_nan(codes, dst) for codes in results]
    nan = np.logical_or.reduce(nans)
    numbers = ~np.logical_and.reduce(nans)
    limits = np.iinfo(np.int64)
    low = np.min(
        [np.where(mask, limits.max, order_keys(codes, dst)) for codes, mask in zip(results, nans, strict=True)], 0
    )
    high = np.max(
        [np.where(mask, limits.min, order_keys(codes, dst)) for codes, mask in zip(results, nans, strict=True)], 0
    )
    lowest, highest = first.copy(), first.copy()
    for codes, mask in zip(results, nans, strict=True):
        keys = order_keys(codes, dst)
        np.copyto(lowest, codes, where=~mask & (keys == low))
        np.copyto(highest, codes, where=~mask & (keys == high))
    return AcceptanceSets(dst, lowest, highest, lowest, numbers, nan, np.zeros(first.shape, bool))

"""The loop of the table tier, for any table: two integers describe it."""

from __future__ import annotations

from castsim.isa.codes import Codes
from castsim.numerics.compiled.words import KernelFunction, Word, add, band, bor, like, shl, shr, sub


def lookup_kernel(shortened: bool, model: Word, stamp: int) -> KernelFunction:
    """Make the loop that looks codes up; `shortened` by `fields[0]` bits first, the last one sticky."""

    def kernel(codes: Codes, results: Codes, table: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        dropped = like(fields[0], model)
        mask = sub(shl(like(1, model), dropped), 1)
        for index in range(codes.size):
            code = like(codes[index], model)
            if shortened:
                code = shr(bor(code, add(band(code, mask), mask)), dropped)
            results[index] = table[code]

    return kernel

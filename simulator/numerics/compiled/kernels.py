"""Loops over arrays: the compiled steps for any cast of a family or for a single one, and look-ups in a table."""

from __future__ import annotations

from collections.abc import Callable

from numba.np.unsafe import ndarray

from castsim.isa.codes import Codes
from castsim.numerics.compiled.fields import Fields, FormatFamily
from castsim.numerics.compiled.steps import (
    inline,
    normalise,
    pack_float,
    pack_integer,
    pack_power,
    pack_tapered,
    settle_specials,
    unpack_float,
    unpack_integer,
    unpack_tapered,
)
from castsim.numerics.compiled.words import KernelFunction, Word, above, add, band, bor, like, shl, shr, sub

_FLOAT, _INTEGER, _TAPERED, _POWER, _BOOLEAN = (int(kind) for kind in FormatFamily)


@inline
def convert(code: Word, word: Word, p: Word, tables: Codes, source: int, destination: int, width: int) -> Word:
    """Return the code of one element; `source` and `destination` are kinds, `width` the bits of a word."""
    if source == _FLOAT:
        negative, exponent, significand, nan, infinite = unpack_float(code, p)
    elif source == _TAPERED:
        negative, exponent, significand, nan, infinite = unpack_tapered(code, p, tables)
    else:
        negative, exponent, significand, nan, infinite = unpack_integer(code, p, width - 1)
        if source == _BOOLEAN:
            significand = above(code, 0)
    if destination == _BOOLEAN:
        return bor(above(significand, 0), bor(nan, infinite))
    shifted = normalise(exponent, significand, width - 1)
    if p.normalise:
        exponent, significand = shifted
    drawn = bor(like(word, code), bor(shl(band(code, p.draw_mask), p.draw_left), p.draw_low))
    if destination == _FLOAT:
        result = pack_float(negative, exponent, significand, drawn, p, width)
    elif destination == _TAPERED:
        result = pack_tapered(negative, exponent, significand, drawn, p, width, tables)
    elif destination == _POWER:
        result = pack_power(negative, exponent, significand, drawn, p, width)
    else:
        result = pack_integer(negative, exponent, significand, drawn, p, width)
    return settle_specials(result, code, negative, nan, infinite, p)


_COUNT = len(Fields._fields)
_fixed_tuple: Callable[..., Word] = ndarray.to_fixed_tuple


def family_kernel(source: int, destination: int, width: int, draws: bool, tables: Codes, stamp: int) -> KernelFunction:
    """Make the loop for every cast between two families of formats; the formats and the policy come at run time.

    The kernel takes codes, results, random words (one per element if `draws`) and the fields as words. `stamp`
    changes with the sources; being part of the function it keys numba's cache, which itself looks at one file only.
    """

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        p = Fields(*_fixed_tuple(fields, _COUNT))
        for index in range(codes.size):
            word = random[index] if draws else 0
            code = like(codes[index], p.rule)
            results[index] = convert(code, word, p, tables, source, destination, width)

    return kernel


def single_kernel(
    source: int, destination: int, width: int, draws: bool, tables: Codes, p: Fields, model: Word, stamp: int
) -> KernelFunction:
    """Make the same loop for one cast, all of whose fields are constants of the code; `model` is a word."""

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        for index in range(codes.size):
            word = random[index] if draws else 0
            results[index] = convert(like(codes[index], model), word, p, tables, source, destination, width)

    return kernel


# The loop of the table tier, for any table: two integers describe it.


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

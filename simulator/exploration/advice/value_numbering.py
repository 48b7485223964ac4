"""What every byte of a program's results is made of, as a fingerprint: equal ones mean equal terms.

A term says which cast or operation, with which mode and constants, was applied to which terms, down to the bytes of the
inputs. Loads, stores and moves carry terms along. Two programs whose outputs have equal terms give equal bits for any
input, on one and the same path. A fingerprint is a number of 64 bits; a proof compares two of each byte, by different
seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Fingerprints = NDArray[np.uint64]
"""One number for each byte, element, row or tile."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(numbers: Fingerprints) -> Fingerprints:
    """Return numbers stirred one by one, a bijection (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):  # of single numbers NumPy says that they wrap
        stirred: Fingerprints = numbers + _MULTIPLIER
        stirred = (stirred ^ (stirred >> np.uint64(30))) * _FIRST
        stirred = (stirred ^ (stirred >> np.uint64(27))) * _SECOND
    return stirred ^ (stirred >> np.uint64(31))


def key_of(seed: int, *words: object) -> np.uint64:
    """Return the fingerprint of what can be written down."""
    digest = blake2b(repr((seed, words)).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def applied(key: np.uint64, operands: Sequence[Fingerprints], shape: tuple[int, ...]) -> Fingerprints:
    """Return the terms of an operation applied element by element to operands that broadcast to a shape."""
    found = np.full(shape, key, np.uint64)
    for operand in operands:
        found = mixed(found * _MULTIPLIER ^ operand)
    return found


def joined(parts: Fingerprints) -> Fingerprints:
    """Return one term for each stretch along the last axis, in which order matters."""
    found = np.full(parts.shape[:-1], _FIRST, np.uint64)
    for place in range(parts.shape[-1]):
        found = mixed(found * _MULTIPLIER ^ parts[..., place])
    return found


def gathered(key: np.uint64, parts: Fingerprints) -> Fingerprints:
    """Return one term for each stretch along the last axis, as `joined`, for long stretches."""
    places = mixed(np.arange(parts.shape[-1], dtype=np.uint64) + key)
    summed: Fingerprints = mixed(parts ^ places).sum(axis=-1, dtype=np.uint64)
    return mixed(summed ^ key)


def spread(terms: Fingerprints, count: int) -> Fingerprints:
    """Return the terms of the `count` bytes of each element, along a new last axis."""
    places = np.arange(1, count + 1, dtype=np.uint64) * _SECOND
    return mixed(terms[..., None] ^ places)

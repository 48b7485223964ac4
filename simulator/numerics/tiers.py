"""The same cast by the fastest way that pays: all tiers give identical bits."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from isa.errors import IllegalError, ReadError
from isa.formats import Format
from simulator.numerics.blocks import Codes
from simulator.numerics.cast import cast_codes
from simulator.numerics.policy import Policy
from simulator.numerics.tables import cast_by_table, table_size

_SMALL_TABLE = 1 << 16
"""Entries that take about a millisecond to fill: worth it for any program, whose casts repeat."""

_ENTRIES_PER_ELEMENT = 8
"""A larger table is filled for arrays of at least this fraction of its size."""


class Tier(StrEnum):
    """A way to compute casts."""

    REFERENCE = "reference"
    """NumPy integers; has every cast."""
    TABLE = "table"
    """Look-up in tables that the reference fills; no random words, and few wide sources."""
    COMPILED = "compiled"
    """Kernels compiled for the pair and policy (extra `fast`)."""
    GENERIC = "generic"
    """The compiled kernel that takes formats and policy at run time, without shortcuts (extra `fast`)."""


def convert_codes(
    codes: Codes,
    src: Format,
    dst: Format,
    policy: Policy,
    *,
    random: NDArray[np.uint32] | None = None,
    tier: Tier | None = None,
    out: Codes | None = None,
) -> Codes:
    """Convert codes as `cast_codes` does, in the given tier or, for None, in the one that pays.

    Raises:
        IllegalError: the tier does not have this cast, or as `cast_codes`.
        ReadError: as `cast_codes`.
    """
    if tier is Tier.TABLE and random is not None:
        raise IllegalError("random words have no table", legal=(Tier.REFERENCE,))
    if tier in (Tier.COMPILED, Tier.GENERIC):
        raise ReadError(f"tier '{tier}' is not available", legal=(Tier.REFERENCE, Tier.TABLE))
    if tier is None:
        size = table_size(src, dst, policy) if random is None else None
        pays = size is not None and size <= max(_SMALL_TABLE, np.size(codes) * _ENTRIES_PER_ELEMENT)
        tier = Tier.TABLE if pays else Tier.REFERENCE
    if tier is Tier.TABLE:
        return cast_by_table(codes, src, dst, policy, out=out)
    return cast_codes(codes, src, dst, policy, random=random, out=out)

"""Distribution modes of vector loads and stores, as the verifier knows them: names, widths and masks.

What they do with bytes, and which addresses they take, is for the unit. Source: docs/reference/micro.md section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Distribution:
    """A mode: `lanes` are the widths in bits of the elements that value or pointer may have; none: any.

    `mask` is the lane width of the mask of a store, None where it is that of the value; `masked` tells whether a store
    looks at its mask at all.
    """

    lanes: tuple[int, ...] = ()
    mask: int | None = None
    masked: bool = True
    supported: bool = True


_ANY = Distribution()

LOADS: Mapping[str, Distribution] = {
    "NORM": _ANY,
    # They are named for what is read: a register of any elements holds it (newer kernels of the vendor).
    **{f"BRC_B{w}": Distribution((8, 16, 32, 64)) for w in (8, 16, 32)},
    "BRC_BLK": _ANY,
    **{f"UNPK_B{w}": Distribution((w, 2 * w)) for w in (8, 16, 32)},
    **dict.fromkeys(("UNPK4", "UNPK4_B8"), Distribution((8, 32))),
    **{f"US_B{w}": Distribution((w,)) for w in (8, 16)},
    **{f"DS_B{w}": Distribution((w,)) for w in (8, 16)},
    **{f"E2B_B{w}": Distribution((w,)) for w in (16, 32)},
    "SPLT2CHN": Distribution((8, 16)),
    **{f"SPLT2CHN_B{w}": Distribution((w,)) for w in (8, 16)},
    **dict.fromkeys(("SPLT4CHN", "SPLT4CHN_B8"), Distribution((8,))),
}
"""Modes of `vlds`."""

PAIR_LOADS: Mapping[str, Distribution] = {
    **{f"DINTLV_B{w}": Distribution((w,)) for w in (8, 16, 32)},
    **dict.fromkeys(("BDINTLV", "BDINTLV_BLK"), _ANY),
}
"""Modes of `vldsx2`."""

STORES: Mapping[str, Distribution] = {
    "NORM": _ANY,
    "NORM_B8": Distribution((8,), 8),
    "NORM_B16": Distribution((16,), 16),
    "NORM_B32": Distribution((32, 64), 32),
    **{f"1PT_B{w}": Distribution((w,), masked=False) for w in (8, 16, 32)},
    "PK_B16": Distribution((16, 8), 16),
    "PK_B32": Distribution((32, 16), 32),
    "PK_B64": Distribution((64, 32), 32),
    "PK4_B32": Distribution((32, 8), 32),
    "MRG4CHN_B8": Distribution((8,), 32, supported=False),
    "MRG2CHN_B8": Distribution((8,), 16, supported=False),
    "MRG2CHN_B16": Distribution((16,), 32, supported=False),
}
"""Modes of `vsts`."""

PAIR_STORES: Mapping[str, Distribution] = {f"INTLV_B{w}": Distribution((w,)) for w in (8, 16, 32)}
"""Modes of `vstsx2`."""

MASK_LOADS: Mapping[str, Distribution] = dict.fromkeys(("NORM", "US", "DS"), _ANY)
"""Modes of `plds` and `pldi`."""

MASK_STORES: Mapping[str, Distribution] = dict.fromkeys(("NORM", "PK"), _ANY)
"""Modes of `psts` and `psti`."""

OF_OPERATION: Mapping[str, Mapping[str, Distribution]] = {
    "vlds": LOADS,
    "vldsx2": PAIR_LOADS,
    "vsts": STORES,
    "vstsx2": PAIR_STORES,
    **dict.fromkeys(("plds", "pldi"), MASK_LOADS),
    **dict.fromkeys(("psts", "psti"), MASK_STORES),
}
"""The modes of each operation that has any."""

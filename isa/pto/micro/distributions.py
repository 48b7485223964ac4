"""Distribution modes of vector loads and stores: their names, widths, bytes in memory, alignment and masks.

Source: docs/reference/micro.md 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_BLOCK = 32


@dataclass(frozen=True, slots=True)
class Distribution:
    """A mode: `width` is that of the element that it names in bits, None for whole registers and blocks.

    `size` is how many bytes of memory it spans, `alignment` what its address is a multiple of. `lanes` are the widths
    of the elements that a value or a pointer may have beside it, `mask` the width of the mask of a store.
    """

    width: int | None
    size: int
    alignment: int = _BLOCK
    lanes: tuple[int, ...] = ()
    mask: int | None = None
    supported: bool = True


def _load(width: int | None, size: int, alignment: int = _BLOCK, lanes: tuple[int, ...] = ()) -> Distribution:
    return Distribution(width, size, alignment, lanes or (() if width is None else (width,)))


LOADS: Mapping[str, Distribution] = {
    "NORM": _load(None, 256),
    **{f"BRC_B{w}": _load(w, w // 8, w // 8) for w in (8, 16, 32)},
    "BRC_BLK": _load(None, _BLOCK),
    **{f"UNPK_B{w}": _load(w, 128, 16, (w, 2 * w)) for w in (8, 16, 32)},
    **dict.fromkeys(("UNPK4", "UNPK4_B8"), _load(8, 64, 16, (8, 32))),
    **{f"US_B{w}": _load(w, 128, 16) for w in (8, 16)},
    **{f"DS_B{w}": _load(w, 512) for w in (8, 16)},
    **{f"E2B_B{w}": _load(w, w, w) for w in (16, 32)},
    **dict.fromkeys(("SPLT2CHN", "SPLT2CHN_B8", "SPLT2CHN_B16"), _load(None, 512)),
    **dict.fromkeys(("SPLT4CHN", "SPLT4CHN_B8"), _load(None, 1024)),
}
"""Modes of `vlds`."""

PAIR_LOADS: Mapping[str, Distribution] = {
    **{f"DINTLV_B{w}": _load(w, 512) for w in (8, 16, 32)},
    **dict.fromkeys(("BDINTLV", "BDINTLV_BLK"), _load(None, 512)),
}
"""Modes of `vldsx2`."""


def _store(width: int, size: int, alignment: int = _BLOCK, share: int = 1, mask: int | None = None) -> Distribution:
    lanes = (width, width // share) if share > 1 else (width,)
    return Distribution(width, size, alignment, lanes, mask)


STORES: Mapping[str, Distribution] = {
    "NORM": Distribution(None, 256),
    "NORM_B8": _store(8, 256, mask=8),
    "NORM_B16": _store(16, 256, mask=16),
    "NORM_B32": Distribution(32, 256, _BLOCK, (32, 64), 32),
    **{f"1PT_B{w}": _store(w, w // 8, w // 8) for w in (8, 16, 32)},
    "PK_B16": _store(16, 128, share=2, mask=16),
    "PK_B32": _store(32, 128, share=2, mask=32),
    "PK_B64": _store(64, 128, share=2, mask=32),
    "PK4_B32": _store(32, 64, share=4, mask=32),
    "MRG4CHN_B8": Distribution(8, 256, lanes=(8,), mask=32, supported=False),
    "MRG2CHN_B8": Distribution(8, 256, lanes=(8,), mask=16, supported=False),
    "MRG2CHN_B16": Distribution(16, 256, lanes=(16,), mask=32, supported=False),
}
"""Modes of `vsts`."""

PAIR_STORES: Mapping[str, Distribution] = {f"INTLV_B{w}": _store(w, 512) for w in (8, 16, 32)}
"""Modes of `vstsx2`."""

MASK_LOADS: Mapping[str, Distribution] = {
    "NORM": Distribution(None, 32),
    "US": Distribution(None, 16, 16),
    "DS": Distribution(None, 64),
}
"""Modes of `plds` and `pldi`."""

MASK_STORES: Mapping[str, Distribution] = {"NORM": Distribution(None, 32), "PK": Distribution(None, 16, 16)}
"""Modes of `psts` and `psti`."""

OF_OPERATION: Mapping[str, Mapping[str, Distribution]] = {
    "vlds": LOADS,
    "vldsx2": PAIR_LOADS,
    "vsts": STORES,
    "vstsx2": PAIR_STORES,
    "plds": MASK_LOADS,
    "pldi": MASK_LOADS,
    "psts": MASK_STORES,
    "psti": MASK_STORES,
}
"""The modes of each operation that has any."""

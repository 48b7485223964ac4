"""The vectors that the golden scripts of the PTO library gave for casts, case by case."""

from __future__ import annotations

import numpy as np
from kit.golden import as_codes, format_name, load

DATA = load("golden_pto_tcvt.npz")


def unpack(array: np.ndarray) -> np.ndarray:
    """Split bytes into two nibbles, low one first."""
    return np.stack([array & 15, array >> 4], axis=-1).ravel()


def arrays(key: str) -> tuple[str, str, str, np.ndarray, np.ndarray, np.ndarray]:
    """Return src, dst, mode in capitals, source codes, expected codes, and where the script's result is undefined."""
    _, source_id, target_id, mode, _ = key.split("__")
    base = key.rsplit("__", 2)[0]
    src, dst = format_name(source_id), format_name(target_id)
    packed = DATA.get(f"{base}__in_packed")
    source = as_codes(DATA[f"{base}__in"], src) if packed is None else unpack(packed)
    expected = unpack(DATA[key]) if key.endswith("packed") else as_codes(DATA[key], dst)
    return src, dst, mode, source, expected, DATA.get(f"{base}__undef", np.zeros(source.shape)) == 1

"""The `.expected` files beside the sample programs of vector instructions.

The derivation is arithmetic on named facts of the target file, read here as plain TOML and evaluated without the
product; the digests are those of NumPy and ml_dtypes. `python tests micro_expected` refreshes digests and reports,
never a derivation, and refuses if a derivation disagrees with the simulation.
"""

from __future__ import annotations

import csv
import math
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
from makers.expected_files import ROOT, SEED, digest, evaluated, write
from numpy.typing import NDArray

FOLDER = "micro"
SCALE = "0.25"
Array = NDArray[np.generic]


def saturated(values: Array, kind: type) -> Array:
    """Clamped to the range, NaN as +0, and rounded to nearest even by the library."""
    top = float(ml_dtypes.finfo(kind).max)
    return np.where(np.isnan(values), 0, np.clip(values, -top, top)).astype(np.float32).astype(kind)


def toward_zero(values: Array) -> Array:
    """f16 toward zero: the neighbour of the nearest where that is too large; beyond the range the largest."""
    near = values.astype(np.float16)
    far = np.abs(near.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(far, np.nextafter(near, np.float16(0)), near)


def bytes_of_pairs(values: Array) -> Array:
    """e2m1, two elements in a byte, the first in its low half; clamped, the sign of zero kept."""
    codes = np.clip(values.astype(np.float32), -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return codes[::2] | codes[1::2] << 4


def dequantised(words: Array, scale: float) -> Array:
    """I16 times a scale, in f32, then f16."""
    return saturated(words.astype(np.float32) * np.float32(scale), np.float16)


SAMPLES: dict[str, tuple[type, int, Callable[[Array], Array]]] = {
    "bf16_to_e2m1": (ml_dtypes.bfloat16, 512, bytes_of_pairs),
    "dequantise": (np.int16, 256, lambda x: dequantised(x, float(SCALE))),
    "f32_to_e4m3fn_quarters": (np.float32, 512, lambda x: saturated(x, ml_dtypes.float8_e4m3fn)),
    "f32_to_f16_parts": (np.float32, 512, lambda x: saturated(x, np.float16)),
    "i8_to_f32_unpacked": (np.int8, 512, lambda x: x.astype(np.float32)),
    "masked_tail": (np.float32, 200, toward_zero),
}
"""Source type, elements, and the outputs by the libraries."""


def facts() -> dict[str, object]:
    """Facts of the shipped target file; an instruction's is from its start to that of one that uses its result."""
    found = tomllib.loads((ROOT / "targets" / "a5.toml").read_text(), parse_float=Fraction)
    timing, banks = found["timing"], found["banks"]
    chain, saved = timing["chain"]["latency_cycles"], timing["chain"]["forwarding_cycles"]
    return {
        "issue": timing["scalar"]["issue_cycles"], "load": transfer(timing["load"]),
        "store": transfer(timing["store"]), "startup": timing["launch"]["startup_cycles"],
        "drain": timing["launch"]["drain_cycles"], "loop": timing["loops"]["setup_cycles"],
        "vlds": timing["access"]["load_cycles"] - saved, "vsts": timing["access"]["store_cycles"],
        "one_store": timing["port"]["store_cycles"], "one_vcvt": timing["port"]["occupancy_cycles"]["vcvt"],
        "one_vintlv": timing["port"]["occupancy_cycles"]["vintlv"],
        **{name: latency - saved for name, latency in chain.items()}, "one_vdintlv": int(_row("vdintlv")["held"]),
        **{
            name: Fraction(_row(name)["latency_32"]) - saved
            for name in ("vdintlv", "vintlv_lanes", "vcvt_short", "vcvt_float", "vcvt_integer")
        },
        "vmuls": timing["micro"]["forwarding"]["cycles"]["vmuls"],
        "blocks_a_cycle": banks["groups"] * banks["reads_per_group"],
        "rounded": lambda exact: math.floor(Fraction(exact) + Fraction(1, 2)),
    }  # fmt: skip


def _row(mnemonic: str) -> dict[str, str]:
    with (ROOT / "targets" / "a5_arithmetic.csv").open(encoding="utf-8", newline="") as rows:
        return next(row for row in csv.DictReader(rows) if row["mnemonic"] == mnemonic)


def transfer(row: dict[str, Fraction]) -> Callable[[int], int]:
    """Return the cycles of a transfer of so many bytes on its own, by its row of facts."""
    rate, least = Fraction(row["bytes_per_cycle"]), row.get("descriptor_cycles", 0)

    def cycles(size: int) -> int:
        last = math.floor((-(-size // 32) - 1) * 32 / rate)  # the cycle of the last block, which needs it whole
        return row["startup_cycles"] + max(least, math.floor(size / rate + Fraction(1, 2)), last + 1)

    return cycles


def derived_total(name: str) -> int:
    return evaluated(f"{FOLDER}/{name}", facts())


def source(name: str) -> Array:
    """What `--in x=random:0` makes: uniform in [-100, 100) rounded to the type, integers over all of their range."""
    kind, count, _ = SAMPLES[name]
    generator = np.random.default_rng(SEED)
    if np.issubdtype(kind, np.integer):
        limits = np.iinfo(kind)
        return generator.integers(limits.min, limits.max, count, dtype=np.int64, endpoint=True).astype(kind)
    return generator.uniform(-100, 100, count).astype(kind)


def digests(name: str) -> dict[str, str]:
    made = SAMPLES[name][2](source(name))
    return {"y": digest(made.view(f"u{made.dtype.itemsize}"))}


def words(name: str) -> list[str]:
    scale = ("--arg", f"scale={SCALE}") if name == "dequantise" else ()
    return ["run", f"programs/{FOLDER}/{name}.pto", "--in", f"x=random:{SEED}", *scale]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    for each in SAMPLES:
        write(f"{FOLDER}/{each}", words(each), "a5", derived_total(each), digests(each))
        print(f"refreshed {each}")

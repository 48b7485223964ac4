"""Blocks quantised against exact arithmetic, for every element format, scale format, rule and size.

`python tests quantisation_campaign` runs ten million blocks (about 15 minutes on one core) and writes the record
beside itself; `--blocks N` runs fewer and writes none.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from kit.quantisation_oracle import element_codes, nearest_is_right, same, scale_values, top_of

from castsim.isa.formats import FORMATS
from castsim.numerics.codec import codes_from_array, decode_to_float64
from castsim.tools.quantise.quantisation import RULES, quantise

RECORD = Path(__file__).with_name("quantisation_campaign.json")
TOTAL = 10_000_000

ELEMENTS = (
    "e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "f8_143", "f8_152", "hif8", "e3m2", "e2m3", "e2m1", "e1m2",
    "i8", "i4", "i16", "mxint8",
)  # fmt: skip
SCALES = ("e8m0", "f32", "e4m3fn", "e5m2", "f16", "bf16")
SIZES = (16, 32, 128)
CASES = tuple(product(ELEMENTS, SCALES, RULES, SIZES))


def numbers(generator: np.random.Generator, element: str, rows: int, size: int) -> Any:
    """Rows of two blocks and a ragged one: f32 numbers of one scale or many, ties, subnormals, zeros, NaN, Inf."""
    cols = 2 * size + int(generator.integers(1, size))
    top = top_of("i8" if element == "mxint8" else element, 0)
    sign = generator.choice((-1.0, 1.0), (rows, cols))
    centre = np.ldexp(1.0, generator.integers(-150, 128, (rows, 1)))
    spread = np.exp2(generator.uniform(-12, 0, (rows, cols)))
    grid = np.round(generator.uniform(0, 64, (rows, cols))) / 32 * np.exp2(generator.integers(-6, 1, (rows, cols)))
    full = np.where(generator.random((rows, 1)) < 0.5, spread, grid) * centre
    near = top * np.ldexp(1.0, generator.integers(-20, 20, (rows, 1)))
    steps = generator.integers(-2, 3, (rows, cols)) * 2.0**-23
    near = near * (1 + steps) * generator.choice((1, 0.5, 0.25), (rows, cols))
    with np.errstate(over="ignore"):
        made = (sign * np.where(generator.random((rows, 1)) < 0.3, near, full)).astype(np.float32)
    lot = generator.random((rows, 1))
    made = np.where(lot < 0.02, 0.0, made).astype(np.float32)
    at = generator.random((rows, cols)) < 1 / size
    for index, special in enumerate((np.nan, np.inf, -np.inf, 1e-45, -0.0, 3.4028235e38), 1):
        made[(lot >= 0.02 * index) & (lot < 0.02 * (index + 1)) & at] = special
    random = generator.integers(0, 1 << 32, (rows, cols), np.uint32).view(np.float32)
    return np.where(lot > 0.9, random, made)


def differences(x: Any, element: str, scale: str, rule: str, size: int) -> tuple[int, int]:
    """Blocks that were quantised, and those that differ from exact arithmetic."""
    name, unit = ("i8", -6) if element == "mxint8" else (element, 0)
    made = quantise(x, element, block=size, scale_format=scale, scale=rule)
    starts = np.arange(0, x.shape[1], size)
    with np.errstate(invalid="ignore"):  # signalling NaN
        wide = x.astype(float)
    greatest = np.maximum.reduceat(np.abs(wide), starts, axis=1)
    scales = decode_to_float64(codes_from_array(made.scales, FORMATS[scale]), FORMATS[scale])
    if rule == "nearest":
        wrong = ~nearest_is_right(scales, greatest, name, unit, scale)
    else:
        wrong = ~same(scales, scale_values(greatest, name, unit, scale, rule))
    expected = element_codes(wide, np.repeat(scales, size, axis=1)[:, : x.shape[1]], name, unit)
    bad = codes_from_array(made.elements, FORMATS[name]) != expected
    return greatest.size, int((wrong | np.logical_or.reduceat(bad, starts, axis=1)).sum())


def campaign(blocks: int, seed: int = 0) -> Iterator[tuple[tuple[str, str, str, int], int, int]]:
    """Yield every case with its numbers of blocks and of differences."""
    generator = np.random.default_rng(seed)
    rows = -(-blocks // (3 * len(CASES)))
    for case in CASES:
        element, scale, rule, size = case
        done = wrong = 0
        for start in range(0, rows, 1024):
            x = numbers(generator, element, min(1024, rows - start), size)
            count, bad = differences(x, element, scale, rule, size)
            done, wrong = done + count, wrong + bad
        yield case, done, wrong


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=TOTAL)
    blocks = parser.parse_args().blocks
    start, totals, wrong = time.process_time(), dict.fromkeys(ELEMENTS, 0), 0
    for case, done, bad in campaign(blocks):
        totals[case[0]] += done
        wrong += bad
        if bad:
            print(*case, f"{bad} of {done} blocks differ")
    record = {
        "blocks": sum(totals.values()), "differences": wrong, "cases": len(CASES), "blocks_by_element": totals,
        "scales": list(SCALES), "rules": list(RULES), "block_sizes": list(SIZES), "seed": 0,
        "seconds": round(time.process_time() - start), "python": platform.python_version(), "numpy": np.__version__,
    }  # fmt: skip
    print(json.dumps(record, indent=1))
    if blocks >= TOTAL:
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

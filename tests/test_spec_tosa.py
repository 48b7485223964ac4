"""TOSA CAST: legal casts by version, profile and extension; acceptance at the edges; which rounding modes conform.

Expected pairs and verdicts: docs/reference/semantics.md sections 1.1, 1.2 and 6, copied by hand.
"""

from __future__ import annotations

import numpy as np
import oracle
import oracle_acceptance
import pytest

from castsim.isa.errors import IllegalError, ReadError
from castsim.specifications import acceptance, accepts, specified_cast
from castsim.targets import load_specification

SPEC = load_specification("tosa")
INTEGERS = ("i8", "i16", "i32")
FP8 = {"e4m3fn": "EXT-FP8E4M3", "e5m2": "EXT-FP8E5M2"}
LEGAL: dict[tuple[str, str], tuple[str, frozenset[str]]] = {}
"""Version and requirements of every legal cast."""


def both_ways(one: tuple[str, ...], other: tuple[str, ...], version: str, *requires: str) -> None:
    for src, dst in [(a, b) for a in one for b in other] + [(b, a) for a in one for b in other]:
        if src != dst:
            LEGAL[src, dst] = version, frozenset(requires)


both_ways(("bool",), INTEGERS, "1.0", "PRO-INT")
both_ways(INTEGERS, INTEGERS, "1.0", "PRO-INT")
both_ways(INTEGERS, ("f16", "f32"), "1.0", "PRO-FP")
both_ways(("f16",), ("f32",), "1.0", "PRO-FP")
both_ways((*INTEGERS, "f32"), ("bf16",), "1.0", "EXT-BF16")
for fp8, extension in FP8.items():
    both_ways(("f16", "f32"), (fp8,), "1.0", extension)
    both_ways(("bf16",), (fp8,), "1.0", "EXT-BF16", extension)
both_ways(("bool", "i32"), ("i64",), "1.1", "EXT-INT64")
both_ways(("bool",), ("f32",), "1.1", "PRO-FP")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_legal_casts(version: str) -> None:
    for src in (*oracle.FLOATS, *oracle.INTS):
        if src.startswith("f8_143@"):
            continue
        for dst in (*oracle.FLOATS, *oracle.INTS):
            if dst.startswith("f8_143@"):
                continue
            since, requires = LEGAL.get((src, dst), ("none", frozenset()))
            if since <= version:
                cast = specified_cast(SPEC, src, dst, version=version)
                assert (cast.since, frozenset(cast.requires), cast.version) == (since, requires, version)
            else:
                with pytest.raises(IllegalError, match=rf"tosa {version} has no cast {src} -> {dst}"):
                    specified_cast(SPEC, src, dst, version=version)


def test_a_cast_of_a_later_version_says_so() -> None:
    with pytest.raises(IllegalError, match=r"tosa 1\.0 has no cast f32 -> bool; it came with 1\.1"):
        specified_cast("tosa", "fp32", "bool", version="1.0")
    with pytest.raises(ReadError, match=r"tosa has no version '0\.9'"):
        specified_cast("tosa", "f32", "f16", version="0.9")


# ------------------------------------------------------------------------------------------------- unsigned sources


def test_signless_integers_may_be_read_as_unsigned() -> None:
    source = np.array([0x00, 0x7F, 0x80, 0xFF], np.uint8)
    wide = acceptance("tosa", "i8", "i16", source, version="1.1", attributes={"input_unsigned": 1})
    assert wide.lowest.tolist() == wide.highest.tolist() == [0, 127, 128, 255]
    half = acceptance("tosa", "i8", "f32", source, attributes={"input_unsigned": "1"})
    assert half.highest.view(np.float32).tolist() == [0.0, 127.0, 128.0, 255.0]
    low = acceptance("tosa", "i16", "i8", np.array([0xFF80], np.uint16), attributes={"input_unsigned": 1})
    assert low.highest.tolist() == [0x80]  # truncated from 65408
    assert accepts("tosa", "i8", "i16", source, np.array([0, 127, 0xFF80, 0xFFFF], np.uint16)).all()  # signed


def test_refusals_of_the_attribute() -> None:
    with pytest.raises(IllegalError, match=r"tosa 1\.0 has no attribute input_unsigned"):
        specified_cast("tosa", "i8", "i16", version="1.0", attributes={"input_unsigned": 1})
    with pytest.raises(IllegalError, match="f32 cannot be read as unsigned"):
        specified_cast("tosa", "f32", "f16", attributes={"input_unsigned": 1})
    with pytest.raises(ReadError, match="attribute input_unsigned cannot be '2'"):
        specified_cast("tosa", "i8", "i16", attributes={"input_unsigned": 2})
    with pytest.raises(ReadError, match="tosa has no attribute 'saturate'"):
        specified_cast("tosa", "i8", "i16", attributes={"saturate": 1})


# -------------------------------------------------------------------------------------------------------- the edges


def edges(src: str, dst: str) -> np.ndarray:
    """Return source codes around every kind of edge of the destination: all of narrow sources, else chosen ones."""
    row = oracle.fmt(src)
    if row.bits <= 8:
        return np.arange(1 << row.bits, dtype=oracle.storage(src))
    generator = np.random.default_rng([row.bits, oracle.fmt(dst).bits])
    random = generator.integers(0, 1 << row.bits, 30, dtype=np.uint64)
    near = np.array(sorted({anchor & (1 << row.bits) - 1 for anchor in anchors(src, dst)}), np.uint64)
    steps = np.arange(-2, 3).astype(np.uint64)
    chosen = np.concatenate([random, (near[:, None] + steps).ravel()]) & np.uint64((1 << row.bits) - 1)
    return np.unique(chosen).astype(oracle.storage(src))


def anchors(src: str, dst: str) -> list[int]:
    """Return codes at zero, extremes, powers of two, and at numbers and midpoints next to the destination's limits."""
    row = oracle.fmt(src)
    if src in oracle.INTS:
        powers = [1 << bit for bit in range(row.bits)]
        limits = [65504, 65488, 65520, 65535, 65536, 62783487, 127, 255]
        return [code for code in (*powers, *(-power for power in powers), *limits, 0) if abs(code) < 1 << row.bits - 1]
    found = [0, row.sign_code, row.inf or row.max_code, row.nan or 0, row.max_code, 1 << row.fraction_bits, 1]
    if dst in oracle.FLOATS:
        limits = [oracle.FLOATS[dst].max_code, 1 << oracle.FLOATS[dst].fraction_bits, 1, 2]
        numbers = [oracle.decode(code, dst).magnitude for code in limits]
        step = numbers[0] / 64
        numbers += [numbers[0] + step, numbers[2] / 2, numbers[1] - numbers[2] / 2, 3 * numbers[2] / 2]
        found += [nearest(number, src) for number in numbers]
    else:
        found += [nearest(number, src) for number in (oracle.fmt(dst).high, 0.5, 1.5, 2.5)]
    return [*found, *(code | row.sign_code for code in found)]


def nearest(number: object, src: str) -> int:
    """Return the code of the float at or below a number."""
    native = {"f16": (np.float16, np.uint16), "f32": (np.float32, np.uint32), "bf16": (np.float32, np.uint32)}
    floating, integer = native[src]
    with np.errstate(over="ignore"):
        code = int(np.array([float(number)], floating).view(integer)[0])  # type: ignore[arg-type]
    return code >> 16 if src == "bf16" else code


@pytest.mark.parametrize(("src", "dst"), LEGAL)
def test_edges_against_rational_arithmetic(src: str, dst: str) -> None:
    source = edges(src, dst)
    sets = acceptance("tosa", src, dst, source)
    row = oracle.fmt(dst)
    fixed = [0, *((row.sign_code, row.max_code, row.nan, row.inf or 0) if dst in oracle.FLOATS else ())]
    mask = (1 << row.bits) - 1
    cells = [
        (code, out)
        for index, code in enumerate(source.tolist())
        for out in {
            *fixed,
            *(int(part[index]) + step & mask for part in (sets.lowest, sets.highest) for step in (-2, -1, 0, 1, 2)),
        }
    ]
    codes, results = (np.array(part, dtype=np.uint64) for part in zip(*cells, strict=True))
    verdicts = accepts("tosa", src, dst, codes.astype(source.dtype), results.astype(oracle.storage(dst)))
    for (code, out), verdict in zip(cells, verdicts.tolist(), strict=True):
        assert verdict == oracle_acceptance.accepts(code, out, src, dst), f"{code:#x} -> {out:#x}"


def test_flushing_is_allowed_where_the_type_permits() -> None:
    tiny = np.array([0x00000001, 0x80000001, 0x00800000], np.uint32)  # smallest subnormals, smallest normal
    zeros = np.array([0x0000, 0x8000, 0x0000], np.uint16)
    assert accepts("tosa", "f32", "bf16", tiny, zeros).tolist() == [True, True, False]
    assert accepts("tosa", "f32", "bf16", tiny, zeros ^ 0x8000).tolist() == [False, False, False]
    small = np.array([0x3B000000], np.uint32)  # 2**-9, the smallest subnormal of e4m3fn, and twice that
    assert accepts("tosa", "f32", "e4m3fn", small + 0x800000, np.array([0], np.uint8)).tolist() == [False]

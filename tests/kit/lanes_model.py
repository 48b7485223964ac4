"""A naive model of vector instructions: one lane after the other, in Python's integers and fractions.

Written from docs/reference/micro.md alone; elements convert by the rational oracle. Registers are `bytes` of 256,
masks lists of 256 bits, memory is `bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import oracle
from oracle_scalar import cast, round_to_integral

from castsim.machines.vector_function.vector_registers import PredicateRegister, VectorRegister

SIZE = 256
WORDS = {"R": "rint", "A": "round", "F": "floor", "C": "ceil", "Z": "trunc", "O": "odd"}

TABLE = """
f32  f16 bf16 s16 s64     any      yes EO
f32  s32                  any      yes -
f32  e4m3 e5m2            RAHZ     yes P
f32  hif8                 AH       yes P
f16  f32                  -        -   EO
f16  s32                  any      -   EO
f16  s16                  any      yes -
f16  s8 u8                any      yes EO
f16  e4m3 e5m2            RAFCZ    yes EO
f16  hif8                 AH       yes EO
bf16 f32                  -        -   EO
bf16 s32                  any      yes EO
bf16 f16                  any      yes -
bf16 e4m3 e5m2            RAFCZ    yes EO
bf16 f4E1M2x2 f4E2M1x2    RAFCZ    -   P
u8   f16 u16              -        -   EO
u8   u32                  -        -   P
s8   f16 s16              -        -   EO
s8   s32                  -        -   P
u16  u8                   -        yes EO
u16  u32                  -        -   EO
s16  f16                  any      -   -
s16  f32 s32 u32          -        -   EO
s16  u8                   -        yes EO
u32  u16 s16              -        yes EO
u32  u8                   -        yes P
s32  f32                  any      -   -
s32  s16 u16              -        yes EO
s32  u8                   -        yes P
s32  s64                  -        -   EO
s64  f32                  any      -   EO
s64  s32                  -        yes EO
e4m3 f32                  -        -   P
e5m2 f32                  -        -   P
hif8 f32                  -        -   P
f4E1M2x2 bf16             -        -   P
f4E2M1x2 bf16             -        -   P
"""
"""Source, destinations, rnd, sat, part, in the words of the sheet's table."""

_NAMES = {"e4m3": "e4m3fn", "f4E1M2x2": "e1m2", "f4E2M1x2": "e2m1", **{f"s{n}": f"i{n}" for n in (8, 16, 32, 64)}}


def pairs() -> dict[tuple[str, str], tuple[str, bool, tuple[str, ...]]]:
    """Pair -> letters of rnd (none: forbidden), whether it has sat, words of part."""
    found = {}
    for line in TABLE.strip().splitlines():
        src, *destinations, rnd, sat, part = line.split()
        letters = {"any": "RAFCZOH", "-": ""}.get(rnd, rnd)
        parts = {"EO": ("EVEN", "ODD"), "P": ("P0", "P1", "P2", "P3"), "-": ()}[part]
        for dst in destinations:
            found[_NAMES.get(src, src), _NAMES.get(dst, dst)] = (letters, sat == "yes", parts)
    return found


def bits_of(name: str) -> int:
    """Bits of a register's element: a 4-bit pair counts as one of 8, one of bf16 as one of 32."""
    if name == "bf16_pair":
        return 32
    row = oracle.fmt(name)
    return row.storage if isinstance(row, oracle.Int) else max(8, row.bits)


@cache
def element(code: int, src: str, dst: str, rnd: str | None, sat: str | None) -> int:
    """Convert one element as section 3.4 says."""
    value = oracle.decode(code, src)
    special = getattr(value, "kind", "finite")
    mode = "hybrid" if rnd == "H" and dst == "hif8" else {**WORDS, "H": "trunc", None: "rint"}[rnd]
    if dst in oracle.INTS:
        if special == "nan":
            return 0
        return cast(code, src, dst, mode, "wrap" if sat == "NOSAT" and special == "finite" else "saturate")
    if dst in ("e1m2", "e2m1") or sat == "SAT":
        return 0 if special == "nan" else cast(code, src, dst, mode, "saturate")
    return cast(code, src, dst, mode, "special")


def lane(data: bytes, index: int, bits: int) -> int:
    size = bits // 8
    return int.from_bytes(data[index * size : (index + 1) * size], "little")


def put(data: bytearray, index: int, bits: int, value: int) -> None:
    size = bits // 8
    data[index * size : (index + 1) * size] = (value & ((1 << bits) - 1)).to_bytes(size, "little")


def vcvt(
    data: bytes, src: str, dst: str, part: str | None, mask: Sequence[int], rnd: str | None, sat: str | None
) -> bytes:
    """Section 3.2: which lanes, which mask bits."""
    result = bytearray(SIZE)
    p = {"EVEN": 0, "ODD": 1, None: 0}.get(part, int(part[-1]) if part and part[0] == "P" else 0)
    a, b = bits_of(src), bits_of(dst)
    if dst in ("e1m2", "e2m1"):
        for i in range(64):
            low, high = (
                element(lane(data, 2 * i + k, 16), src, dst, rnd, sat) if mask[2 * (2 * i + k)] else 0 for k in (0, 1)
            )
            result[4 * i + p] = low + 16 * high
    elif src in ("e1m2", "e2m1"):
        for i in range(64):
            byte = data[4 * i + p]
            for k, nibble in enumerate((byte & 15, byte >> 4)):
                put(result, 2 * i + k, 16, element(nibble, src, dst, rnd, sat) if mask[4 * i + p] else 0)
    elif a == b:
        for i in range(SIZE * 8 // a):
            put(result, i, b, element(lane(data, i, a), src, dst, rnd, sat) if mask[i * a // 8] else 0)
    elif a > b:
        r = a // b
        for i in range(SIZE * 8 // a):
            put(result, r * i + p, b, element(lane(data, i, a), src, dst, rnd, sat) if mask[i * a // 8] else 0)
    else:
        r = b // a
        for i in range(SIZE * 8 // b):
            governing = 8 * i if b == 64 else (r * i + p) * a // 8
            put(result, i, b, element(lane(data, r * i + p, a), src, dst, rnd, sat) if mask[governing] else 0)
    return bytes(result)


def vtrc(data: bytes, name: str, mask: Sequence[int], rnd: str) -> bytes:
    result, bits = bytearray(SIZE), bits_of(name)
    for i in range(SIZE * 8 // bits):
        put(result, i, bits, _integral(lane(data, i, bits), name, rnd) if mask[i * bits // 8] else 0)
    return bytes(result)


@cache
def _integral(code: int, name: str, rnd: str) -> int:
    return round_to_integral(code, name, WORDS[rnd])


def loaded(dist: str, memory: bytes, at: int) -> tuple[bytes, ...]:
    """Section 4.1: each register of a load, element by element."""
    mode, _, text = dist.partition("_B")
    if dist == "BRC_BLK":
        return (memory[at : at + 32] * 8,)
    if mode == "NORM":
        return (memory[at : at + 256],)
    if mode == "BDINTLV":
        blocks = [memory[at + 32 * k : at + 32 * k + 32] for k in range(16)]
        return b"".join(blocks[0::2]), b"".join(blocks[1::2])
    size = int(text or 8) // 8
    e = [memory[at + k * size : at + (k + 1) * size] for k in range(1024 // size)]
    zero, lanes = bytes(size), 256 // size
    if mode == "BRC":
        return (e[0] * lanes,)
    if mode == "UNPK":
        return (b"".join(e[i] + zero for i in range(lanes // 2)),)
    if mode == "UNPK4":
        return (b"".join(e[i] + 3 * zero for i in range(lanes // 4)),)
    if mode == "US":
        return (b"".join(e[i] + e[i] for i in range(lanes // 2)),)
    if mode in ("DS", "SPLT2CHN"):
        return (b"".join(e[2 * i] for i in range(lanes)),)
    if mode == "SPLT4CHN":
        return (b"".join(e[4 * i] for i in range(lanes)),)
    if mode == "E2B":
        return (b"".join(e[i] * (32 // size) for i in range(8)),)
    assert mode == "DINTLV", dist
    return b"".join(e[0 : 2 * lanes : 2]), b"".join(e[1 : 2 * lanes : 2])


READS = {
    "NORM": 256, "BRC_B8": 1, "BRC_B16": 2, "BRC_B32": 4, "BRC_BLK": 32, "UNPK_B8": 128, "UNPK_B16": 128,
    "UNPK_B32": 128, "UNPK4": 64, "UNPK4_B8": 64, "US_B8": 128, "US_B16": 128, "DS_B8": 512, "DS_B16": 512,
    "E2B_B16": 16, "E2B_B32": 32, "SPLT2CHN_B8": 512, "SPLT2CHN_B16": 512, "SPLT4CHN_B8": 1024,
    "DINTLV_B8": 512, "DINTLV_B16": 512, "DINTLV_B32": 512, "BDINTLV": 512,
}  # fmt: skip
"""Bytes of memory that each load touches."""


def stored(dist: str, registers: Sequence[bytes], mask: Sequence[int]) -> dict[int, int]:
    """Section 4.2: byte beyond the address -> byte written."""
    mode, _, text = dist.partition("_B")
    size = int(text) // 8
    first = registers[0]
    written: dict[int, int] = {}
    if mode == "1PT":
        return dict(enumerate(first[:size]))
    if mode == "INTLV":
        for i in range(256 // size):
            for k, register in enumerate(registers):
                for j in range(size):
                    written[(2 * i + k) * size + j] = register[i * size + j]
        return written
    kept = {"NORM": size, "PK": size // 2, "PK4": size // 4}[mode]
    for i in range(256 // size):
        if mask[i * size]:
            for j in range(kept):
                written[i * kept + j] = first[i * size + j]
    return written


def masks(width: int, seed: int) -> list[list[int]]:
    """All, none, one lane, tails and random ones of lanes of `width` bits."""
    step, lanes = width // 8, 2048 // width
    rng = np.random.default_rng(seed)
    chosen: list[Callable[[int], bool]] = [
        lambda i: True,
        lambda i: False,
        lambda i: i < 1,
        lambda i: i < lanes - 1,
        lambda i: i % 3 == 1,
    ]
    patterns = [[bool(rule(i)) for i in range(lanes)] for rule in chosen]
    patterns += [rng.integers(0, 2, lanes).astype(bool).tolist() for _ in range(2)]
    return [[int(k % step == 0 and pattern[k // step]) for k in range(256)] for pattern in patterns]


def register(data: bytes) -> VectorRegister:
    return VectorRegister(np.frombuffer(data, np.uint8).copy())


def predicate(bits: Sequence[int]) -> PredicateRegister:
    return PredicateRegister(np.array(bits, np.bool_))

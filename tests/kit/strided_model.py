"""A second, slow model of the A2/A3 `tcvt`: which bytes each instruction reads and writes, one repeat after the other.

Written from docs/reference/a2a3.md sections 1 to 3 alone; it shares no code with the lowering it judges. Conversions of
single lanes come from `oracle_a2a3`, places from the arithmetic below. Buffers are plain uint8 arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import oracle
import oracle_a2a3

STORED_BITS = {name: oracle.fmt(name).bits for pair in oracle_a2a3.legal_pairs() for name in pair}
"""Bits of one packed element."""

SIZE = {name: max(bits // 8, 1) for name, bits in STORED_BITS.items()}
"""sizeof of the element type in C++; int4 counts 1 (section 2.4)."""

TRUNCATED = {("i32", "f16"): 8, ("i4", "f16"): 8}
"""Bits of the repeat stride fields of the two instructions with narrow ones (section 2.1)."""


def repeat_shape(src: str, dst: str) -> tuple[int, int, int]:
    """Elements per repeat, destination and source repeat stride in blocks (section 2.1, the derived rule)."""
    if "i4" in (src, dst):
        return 128, 2 if dst == "i4" else 8, 2 if src == "i4" else 8
    wide = max(SIZE[src], SIZE[dst])
    return 256 // wide, 8 // wide * SIZE[dst], 8 // wide * SIZE[src]


@dataclass
class Lanes:
    convert: Callable[[int], int]
    known: dict[int, int] = field(default_factory=dict)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        return np.array([self._one(code) for code in codes.tolist()], np.uint64)

    def _one(self, code: int) -> int:
        if code not in self.known:
            self.known[code] = self.convert(code)
        return self.known[code]


_LANES: dict[tuple, Lanes] = {}


def lanes(src: str, dst: str, mode: str, saturation: str | None, tmp: bool) -> Lanes:
    """What the whole `tcvt` does to one element."""
    key = (src, dst, mode, saturation, tmp)
    return _LANES.setdefault(key, Lanes(lambda code: oracle_a2a3.lane(src, dst, code, mode, saturation, tmp)))


def single(src: str, dst: str, mode: str, saturation: str) -> Lanes:
    """What one conversion instruction does to one element."""
    key = (src, dst, mode, saturation)
    return _LANES.setdefault(key, Lanes(lambda code: oracle_a2a3.vconv(src, dst, code, mode, saturation)))


def read(buffer: np.ndarray, name: str, address: int, count: int) -> np.ndarray:
    """`count` packed elements from byte `address` on."""
    if STORED_BITS[name] == 4:
        packed = buffer[address : address + (count + 1) // 2]
        return np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)[:count]
    return buffer[address : address + count * SIZE[name]].view(f"<u{SIZE[name]}")


def write(buffer: np.ndarray, name: str, address: int, codes: np.ndarray) -> None:
    """Store packed elements; the neighbour of an odd last nibble keeps its value."""
    if STORED_BITS[name] == 4:
        for lane, code in enumerate(codes.tolist()):
            place, shift = address + lane // 2, lane % 2 * 4
            buffer[place] = buffer[place] & (0xF0 >> shift) | code << shift
        return
    buffer[address : address + codes.size * SIZE[name]] = codes.astype(f"<u{SIZE[name]}").view(np.uint8)


@dataclass
class Cast:
    """One `tcvt`: formats, valid rows and columns, declared columns, byte addresses, what is asked.

    `declared` are the columns of the source tile, and of the destination tile unless `dst_declared` says otherwise.
    `mode` None is an instruction without the attribute, which means RINT (docs/reference/pto.md section 1); `none` is
    NONE.
    """

    src: str
    dst: str
    rows: int
    cols: int
    declared: int
    src_at: int
    dst_at: int
    tmp_at: int | None = None
    mode: str | None = None
    saturation: str | None = None
    dst_declared: int | None = None

    @property
    def pitches(self) -> tuple[int, int]:
        return self.declared if self.dst_declared is None else self.dst_declared, self.declared

    @property
    def asked(self) -> str:
        return self.mode or "rint"

    def run(self, buffer: np.ndarray) -> None:
        """Change `buffer` as the chip would, in issue order."""
        per, dst_stride, src_stride = repeat_shape(self.src, self.dst)
        whole, rest = divmod(self.cols, per)
        dst_pitch, src_pitch = self.pitches
        if whole:
            for row in range(self.rows):
                dst = self.dst_at + row * dst_pitch * SIZE[self.dst]
                src = self.src_at + row * src_pitch * SIZE[self.src]
                for first in range(0, whole, 255):
                    self._call(
                        buffer, min(255, whole - first), per,
                        dst + first * per * SIZE[self.dst], src + first * per * SIZE[self.src],
                        dst_stride, src_stride,
                    )  # fmt: skip
        if rest:
            strides = [
                self._field(pitch % 65536 // (32 // SIZE[name]))
                for pitch, name in ((dst_pitch, self.dst), (src_pitch, self.src))
            ]
            for first in range(0, self.rows, 255):
                self._call(
                    buffer, min(255, self.rows - first), rest,
                    self.dst_at + (first * dst_pitch + whole * per) * SIZE[self.dst],
                    self.src_at + (first * src_pitch + whole * per) * SIZE[self.src], *strides,
                )  # fmt: skip

    def _field(self, stride: int) -> int:
        return stride % (1 << TRUNCATED.get((self.src, self.dst), 12))

    def _call(
        self, buffer: np.ndarray, repeats: int, active: int, dst: int, src: int, dst_stride: int, src_stride: int
    ) -> None:
        pair = (self.src, self.dst)
        off = oracle_a2a3.effective_saturation(*pair, self.saturation, self.tmp_at is not None) == "off"
        if self.tmp_at is not None and off and pair in oracle_a2a3.TMP_BACKED:
            if pair == ("f32", "i16"):
                self._via_int32(buffer, repeats, active, dst, src, dst_stride, src_stride)
                return
            for row in range(repeats):
                for chunk in range(0, active, 64):
                    self._chunk(
                        buffer, min(64, active - chunk),
                        dst + row * dst_stride * 32 + chunk * SIZE[self.dst], src + row * src_stride * 32 + chunk * 2,
                    )  # fmt: skip
            return
        convert = lanes(*pair, self.asked, self.saturation, self.tmp_at is not None)
        for repeat in range(repeats):
            codes = read(buffer, self.src, src + repeat * src_stride * 32, active)
            write(buffer, self.dst, dst + repeat * dst_stride * 32, convert(codes))

    def _via_int32(
        self, buffer: np.ndarray, repeats: int, active: int, dst: int, src: int, dst_stride: int, src_stride: int
    ) -> None:
        """Section 3.4 A."""
        wide = single("f32", "i32", oracle_a2a3.effective_mode("f32", "i16", self.asked), "on")
        low = single("i32", "i16", "rint", "off")
        for repeat in range(repeats):
            codes = read(buffer, "f32", src + repeat * src_stride * 32, active)
            write(buffer, "i32", self.tmp_at + repeat * src_stride * 32, wide(codes))
        for repeat in range(repeats):
            codes = read(buffer, "i32", self.tmp_at + repeat * src_stride * 32, active)
            write(buffer, "i16", dst + repeat * dst_stride * 32, low(codes))

    def _chunk(self, buffer: np.ndarray, active: int, dst: int, src: int) -> None:
        """Section 3.4 B and C, one sub-chunk."""
        low_at, high_at = self.tmp_at, self.tmp_at + 128
        mode = oracle_a2a3.effective_mode(self.src, self.dst, self.asked)
        write(buffer, "i32", low_at, single("f16", "i32", mode, "on")(read(buffer, "f16", src, active)))
        narrow = single("i32", "i16", "rint", "off")(read(buffer, "i32", low_at, active))
        if self.dst == "i16":
            write(buffer, "i16", dst, narrow)
            return
        write(buffer, "i16", low_at, narrow)
        write(buffer, "i16", high_at, np.full(active, 255))
        write(buffer, "i16", low_at, read(buffer, "i16", low_at, active) & read(buffer, "i16", high_at, active))
        write(buffer, "f16", high_at, single("i16", "f16", "rint", "off")(read(buffer, "i16", low_at, active)))
        write(buffer, "i8", dst, single("f16", "i8", "trunc", "off")(read(buffer, "f16", high_at, active)))

"""Runs of AscendC kernels for tests: those of programs/ascendc, those written for tests, and generated calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from kit.paths import PROGRAMS, TESTS

from castsim.languages.ascendc import run

KERNELS = PROGRAMS / "ascendc"
TEST_KERNELS = TESTS / "languages" / "ascendc" / "kernels"

SIZE = 8192
"""Bytes of each source, and of the result of a call."""
ELEMENTS = {
    "f32": ("float", np.float32), "f16": ("half", np.float16), "bf16": ("bfloat16_t", np.uint16),
    "i32": ("int32_t", np.int32), "u32": ("uint32_t", np.uint32), "i16": ("int16_t", np.int16),
    "u16": ("uint16_t", np.uint16), "i8": ("int8_t", np.int8), "u8": ("uint8_t", np.uint8),
    "i64": ("int64_t", np.int64), "i4": ("int4b_t", np.uint8),
}  # fmt: skip
"""Elements by castsim's names: in C++, and as an array of codes or values."""

HEAD = """#include "kernel_operator.h"
using namespace AscendC;
template <typename T> LocalTensor<T> at(uint32_t byte) {
  return LocalTensor<T>(TPosition::VECCALC, byte, 4 * %d * 8 / castsim::bits_per_element<T>);
}
extern "C" __global__ __aicore__ void calls(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  TPipe pipe;
  GlobalTensor<uint8_t> source, result;
  source.SetGlobalBuffer(x);
  result.SetGlobalBuffer(y);
  GlobalTensor<uint8_t> first;
  first.SetGlobalBuffer(z);
  DataCopy(at<uint8_t>(0), source, 4 * %d);
"""


@dataclass
class Calls:
    """A kernel of many calls, compiled and run once: each finds four sources and zeros, and its result is stored.

    The sources are bytes 0 .. 4 SIZE of the buffer, the result begins at byte 4 SIZE, scratch at 6 SIZE.
    """

    sources: np.ndarray
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> int:
        """Add the text of a call, whose result is `dst`; return its number."""
        self.texts.append(text)
        return len(self.texts) - 1

    def results(self, folder: Path, **how: object) -> np.ndarray:
        """Return the bytes of every result."""
        body = HEAD % (SIZE, SIZE)
        for number, text in enumerate(self.texts):
            body += (
                f"  PipeBarrier<PIPE_ALL>();\n  DataCopy(at<uint8_t>({4 * SIZE}), first, {SIZE});\n"
                f"  PipeBarrier<PIPE_ALL>();\n  {{ {text} }}\n  PipeBarrier<PIPE_ALL>();\n"
                f"  ResetMask(); SetMaskNorm();\n"
                f"  DataCopy(result[{number * SIZE}], at<uint8_t>({4 * SIZE}), {SIZE});\n"
            )
        path = folder / "calls.cpp"
        path.write_text(body + "}\n")
        given = {"x": self.sources, "z": np.zeros(SIZE, np.uint8)}
        found = run(path, inputs=given, **{"target": "a2a3", **how})
        assert not found.races, found.races[:2]
        return np.asarray(found.outputs["y"]).view(np.uint8).reshape(len(self.texts), SIZE)


def random_sources(seed: int, element: str) -> np.ndarray:
    """Return four sources of an element as bytes: numbers of moderate size, specials among floats."""
    generator = np.random.default_rng(seed)
    _, kind = ELEMENTS[element]
    count = 4 * SIZE // np.dtype(kind).itemsize
    if np.issubdtype(kind, np.floating):
        values = (generator.normal(0, 1, count) * 4.0 ** generator.integers(-2, 3, count)).astype(kind)
        return values.view(np.uint8)
    info = np.iinfo(kind)
    return generator.integers(info.min // 64, info.max // 64 + 1, count).astype(kind).view(np.uint8)


@dataclass(frozen=True)
class Lanes:
    """Which elements a call touches, as its page says: repeats, active lanes, strides in blocks of 32 bytes."""

    repeats: int
    active: np.ndarray

    @classmethod
    def low(cls, repeats: int, lanes: int) -> Lanes:
        """Return those of a mask of low lanes."""
        return cls(repeats, np.arange(lanes))

    def places(self, size: int, block: int, repeat: int) -> np.ndarray:
        """Return the numbers of elements of a stream, shape (repeats, lanes)."""
        per_block = 32 // size
        inside = self.active // per_block * block * per_block + self.active % per_block
        return np.arange(self.repeats)[:, None] * repeat * per_block + inside[None, :]

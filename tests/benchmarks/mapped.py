"""A mapped file larger than memory needs: what a cast holds beyond its input and output."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from castsim.isa.formats import format_named
from castsim.numerics import abstract_policy, code_dtype, convert_codes


def _anonymous_bytes() -> int:
    """Return what the process holds that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def cast_mapped_file(source_bytes: int, src: str = "f32", dst: str = "e4m3fn") -> dict[str, float]:
    """Cast a sparse file of that size into another; return seconds and the bytes held beyond both."""
    source_format, destination = format_named(src), format_named(dst)
    policy = abstract_policy(source_format, destination)
    count = source_bytes // code_dtype(source_format).itemsize
    with tempfile.TemporaryDirectory() as folder:
        source = np.memmap(Path(folder) / "in", code_dtype(source_format), "w+", shape=(count,))
        result = np.memmap(Path(folder) / "out", code_dtype(destination), "w+", shape=(count,))
        convert_codes(source[:1], source_format, destination, policy, out=result[:1])
        before, start = _anonymous_bytes(), time.perf_counter()
        convert_codes(source, source_format, destination, policy, out=result)
        return {"seconds": time.perf_counter() - start, "held_bytes": _anonymous_bytes() - before}

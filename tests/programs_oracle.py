"""What the sample programs must put out, by the test oracle: the casts of each program and its inputs, by hand."""

from __future__ import annotations

import numpy as np
import oracle
import oracle_a2a3

# Program -> casts in order: argument read, argument written, source, destination, mode, saturation, tmp given.
CASTS = {
    "f32_to_f16": [("src", "dst", "f32", "f16", "rint", None, False)],
    "f32_to_bf16_rows": [("src", "dst", "f32", "bf16", "round", None, False)],
    "f16_to_i8_wrap": [("src", "dst", "f16", "i8", "trunc", "off", True)],
    "f32_to_i16_partial": [("src", "dst", "f32", "i16", "trunc", "off", True)],
    "f16_s4_round_trip": [
        ("src", "packed", "f16", "i4", "rint", None, False),
        ("packed", "dst", "i4", "f16", None, None, False),
    ],
    "i32_to_f16_deq": [("src", "dst", "i32", "f16", None, None, False)],
    "i64_to_f32_narrow_rows": [("src", "dst", "i64", "f32", "ceil", None, False)],
    "f32_to_i32_barriers": [("src", "dst", "f32", "i32", "ceil", None, False)],
    "bank_conflict": [("src", "dst", "f32", "f16", "floor", None, False)],
    "f32_to_f16_pipelined": [("src", "dst", "f32", "f16", "odd", None, False)],
}

SAMPLE = 4096
"""Elements of a large output that the exact scalar oracle judges; the rest is judged by `bf16_ties_away`."""


def outputs(program: str, source: np.ndarray) -> dict[str, np.ndarray]:
    """Return the codes of every output of a program, given the codes of its input."""
    held = {"src": source}
    copied: dict[str, np.ndarray] = {}
    if program == "bank_conflict":  # its last three rows pass through unconverted
        held, copied = {"src": source[:12]}, {"copy": source[12:]}
    for read, written, src, dst, mode, saturation, tmp in CASTS[program]:
        held[written] = _cast(held[read], src, dst, mode, saturation, tmp)
    del held["src"]
    return held | copied


def _cast(codes: np.ndarray, src: str, dst: str, mode: str | None, saturation: str | None, tmp: bool) -> np.ndarray:
    if codes.size > 1 << 20:
        assert (src, dst, mode) == ("f32", "bf16", "round")
        return _bf16_ties_away(codes)
    if codes.size > 1 << 16:
        # Finite inputs far from the limits: the abstract cast, whose array oracle is faster, says the same.
        assert np.all(np.abs(codes.view(np.float32)) < 1000)
        return oracle.cast_array(codes, src, dst, mode, "saturate")
    lane = np.vectorize(
        lambda code: oracle_a2a3.lane(src, dst, int(code), mode, saturation, tmp), otypes=[oracle.storage(dst)]
    )
    return lane(codes)


def _bf16_ties_away(codes: np.ndarray) -> np.ndarray:
    """Nearest, ties away, for finite f32 far from overflow: add half of the dropped field, cut it off.

    Adding to the magnitude bits of a sign-magnitude code is rounding the magnitude up; the scalar oracle confirms it
    on a sample.
    """
    assert np.all(np.abs(codes.view(np.float32)) < 1000)
    rounded = ((codes.astype(np.uint64) + 0x8000) >> 16).astype(np.uint16)
    sample = np.random.default_rng(1).integers(0, codes.size, SAMPLE)
    flat, result = codes.reshape(-1)[sample], rounded.reshape(-1)[sample]
    assert np.array_equal(oracle.cast_array(flat, "f32", "bf16", "round", "saturate"), result)
    return rounded

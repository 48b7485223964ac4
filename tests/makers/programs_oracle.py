"""What the sample programs must put out, by the test oracle: the casts of each program and its inputs, by hand."""

from __future__ import annotations

import numpy as np
import oracle
import oracle_a2a3
import oracle_a5

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
    "f32_to_i8_own_barriers": [
        ("src", "%half", "f32", "f16", "rint", None, False),
        ("%half", "dst", "f16", "i8", "rint", "on", False),
    ],
}

# The same on A5: argument or tile read, written, source, destination, mode, saturation, several steps (1D kernels).
CASTS_A5 = {
    "a5_f32_to_e4m3fn_padded": [("src", "dst", "f32", "e4m3fn", "rint", None, False)],
    "a5_bf16_to_e2m1": [("src", "dst", "bf16", "e2m1", "rint", None, False)],
    "a5_hif8_round_trip": [
        ("src", "%slim", "f32", "hif8", "round", None, False),
        ("%slim", "dst", "hif8", "f32", None, None, False),
    ],
    "a5_f32_to_i16_both_routes": [
        ("src", "flat", "f32", "i16", "trunc", "off", True),
        ("src", "padded", "f32", "i16", "trunc", "off", False),
    ],
    "a5_i64_to_i32": [("src", "dst", "i64", "i32", None, None, False)],
    "a5_bf16_to_f16_barriers": [("src", "dst", "bf16", "f16", "rint", "on", False)],
    "a5_f16_to_f32_long_rows": [("src", "dst", "f16", "f32", None, None, False)],
    "a5_f16_to_f32_one_trip": [("src", "dst", "f16", "f32", None, None, False)],
    "a5_f32_to_i8_by_steps": [
        ("src", "%whole", "f32", "f32", "trunc", None, False),
        ("%whole", "%half", "f32", "f16", "rint", None, False),
        ("%half", "dst", "f16", "i8", "rint", "off", True),
    ],
    "a5_e2m1_to_bf16_rows": [
        ("src", "%slim", "bf16", "e2m1", "rint", None, False),
        ("%slim", "dst", "e2m1", "bf16", None, None, False),
    ],
}

SAMPLE = 4096
"""Elements of a large output that the exact scalar oracle judges; the rest is judged by `bf16_ties_away`."""


def source_format(program: str) -> str:
    """Return the format of a program's input."""
    return (CASTS | CASTS_A5)[program][0][2]


def outputs(program: str, source: np.ndarray) -> dict[str, np.ndarray]:
    """Return the codes of every output of a program, given the codes of its input."""
    if program in CASTS_A5:
        return _outputs_a5(program, source)
    held = {"src": source}
    copied: dict[str, np.ndarray] = {}
    if program == "bank_conflict":  # elements of its last row pass through unconverted
        held, copied = {"src": source[:13]}, {"copy": source[13:, :16]}
    for read, written, src, dst, mode, saturation, tmp in CASTS[program]:
        held[written] = _cast(held[read], src, dst, mode, saturation, tmp)
    del held["src"]
    return {name: codes for name, codes in held.items() if not name.startswith("%")} | copied


def _outputs_a5(program: str, source: np.ndarray) -> dict[str, np.ndarray]:
    held = {"src": source}
    for read, written, src, dst, mode, saturation, multi_step in CASTS_A5[program]:
        held[written] = oracle_a5.lanes(src, dst, held[read], mode, saturation, multi_step=multi_step)
    # Names with % are tiles, which nobody sees.
    formats = {written: dst for _, written, _, dst, *_ in CASTS_A5[program] if not written.startswith("%")}
    return {name: held[name].astype(oracle.storage(fmt)) for name, fmt in formats.items()}


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

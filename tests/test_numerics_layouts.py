"""Arrays of every layout give the same codes; wrong arrays and codes are refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numerics_samples import cast, samples

from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Format, IntFormat, format_named
from castsim.numerics import abstract_policy, cast_codes, code_dtype, decode_to_float64, value_of
from castsim.numerics.blocks import BLOCK


def layouts(codes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the same codes in layouts that differ in strides, byte order, alignment and permission."""
    unaligned = np.frombuffer(b"\0" + codes.tobytes(), np.uint8)[1:].view(codes.dtype)
    read_only = codes.copy()
    read_only.flags.writeable = False
    doubled = np.repeat(codes, 2)
    return {
        "strided": doubled[::2],
        "reversed": codes[::-1].copy()[::-1],
        "unaligned": unaligned,
        "big-endian": codes.astype(codes.dtype.newbyteorder(">")),
        "read-only": read_only,
        "transposed": np.asfortranarray(codes.reshape(-1, 4)).reshape(-1),
    }


@pytest.mark.parametrize(("src", "dst"), [("f32", "f16"), ("i64", "e4m3fn"), ("bf16", "i48"), ("e2m1", "f64")])
def test_every_layout_gives_the_same(src: str, dst: str) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 1 << FORMATS[src].bits, BLOCK + 4, dtype=np.uint64).astype(code_dtype(FORMATS[src]))
    want = cast(codes, src, dst)
    assert want.dtype == code_dtype(FORMATS[dst])
    for name, array in layouts(codes).items():
        assert np.array_equal(cast(array, src, dst), want), name
    square = codes.reshape(-1, 4)
    assert np.array_equal(cast(square.T, src, dst), want.reshape(-1, 4).T)
    assert cast(codes[0], src, dst).shape == ()
    assert cast(np.array(codes[0]), src, dst) == want[0]
    assert cast(square[:0], src, dst).shape == (0, 4)


def test_out_is_filled_in_any_layout_and_may_be_the_input() -> None:
    policy = abstract_policy(FORMATS["f16"], FORMATS["bf16"])
    codes = samples(FORMATS["f16"])
    want = cast(codes, "f16", "bf16")
    for out in (np.empty_like(codes), np.empty(2 * codes.size, np.uint16)[::-2], np.empty(codes.size, ">u2")):
        assert cast_codes(codes, FORMATS["f16"], FORMATS["bf16"], policy, out=out) is out
        assert np.array_equal(out, want)
    shifted = np.concatenate([codes, codes[:1]])
    with pytest.raises(ReadError, match="overlaps"):
        cast_codes(shifted[:-1], FORMATS["f16"], FORMATS["bf16"], policy, out=shifted[1:])
    in_place = codes.copy()
    assert cast_codes(in_place, FORMATS["f16"], FORMATS["bf16"], policy, out=in_place) is in_place
    assert np.array_equal(in_place, want)


def test_wrong_arrays_are_refused() -> None:
    policy = abstract_policy(FORMATS["f32"], FORMATS["f16"])
    good = np.zeros(3, np.uint32)
    for codes in (np.zeros(3, np.float32), np.zeros(3, np.uint16), np.zeros(3, np.int32)):
        with pytest.raises(ReadError, match="uint32"):
            cast_codes(codes, FORMATS["f32"], FORMATS["f16"], policy)
    read_only = np.zeros(3, np.uint16)
    read_only.flags.writeable = False
    for out in (np.zeros(3, np.uint32), np.zeros(4, np.uint16), read_only, [0, 0, 0]):
        with pytest.raises(ReadError):
            cast_codes(good, FORMATS["f32"], FORMATS["f16"], policy, out=out)


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS.values() if fmt.bits < fmt.storage_bits], ids=lambda f: f.name)
def test_codes_wider_than_the_format_are_refused_except_bool(fmt: Format) -> None:
    codes = np.array([0, 1 << fmt.bits], code_dtype(fmt))
    policy = abstract_policy(fmt, FORMATS["f64"])
    if isinstance(fmt, IntFormat) and fmt.boolean:
        got = cast_codes(np.array([0, 1, 2, 255], np.uint8), fmt, FORMATS["f64"], policy)
        assert got.view(np.float64).tolist() == [0, 1, 1, 1]
        return
    with pytest.raises(ReadError, match=fmt.name):
        cast_codes(codes, fmt, FORMATS["f64"], policy)


def test_f8_143_bias_moves_the_range() -> None:
    for bias in range(16):
        fmt = format_named(f"f8_143@{bias}")
        codes = samples(fmt)
        scaled = decode_to_float64(codes, fmt)
        plain = decode_to_float64(codes, FORMATS["f8_143"])
        assert np.array_equal(scaled, plain * 2.0 ** (7 - bias), equal_nan=True)
        # docs/reference/tpc.md section 5: smallest normal exponent 1 - bias, largest 15 - bias - 1.
        assert value_of(0x08, fmt) == Fraction(2) ** (1 - bias)
        assert value_of(0x70, fmt) == Fraction(2) ** (15 - bias - 1)

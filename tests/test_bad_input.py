"""Bad input to `castsim.cast`: a ValueError that names what was wrong and what would be right, in every tier.

Where a tier is chosen makes no difference to what is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from castsim import cast
from castsim.isa import CastsimError, IllegalError, ReadError
from castsim.numerics import Tier

F32 = np.array([1.5, -2.0, 3.25], np.float32)
F16 = np.array([1.5, -2.0, 3.25], np.float16)
TIERS = [None, *(str(tier) for tier in Tier)]


def refused(
    kind: type[CastsimError], *words: str, legal: str | None = None, tier: str | None = None, **call: Any
) -> None:
    """The cast raises `kind`, a ValueError; its message has all the words, its list of alternatives the legal one."""
    arguments = {"array": F32, "src": "f32", "dst": "f16", "tier": tier, **call}
    with pytest.raises(kind) as caught:
        cast(**arguments)
    assert isinstance(caught.value, ValueError)
    for word in words:
        assert word in caught.value.message, caught.value.message
    if legal is not None:
        assert any(legal in item for item in caught.value.legal), caught.value.legal


# ------------------------------------------------------------------------------------------------------ what was typed


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("call", "word", "legal"),
    [
        ({"src": "f33"}, "f33", "f32"),
        ({"dst": "float17"}, "float17", "f16"),
        ({"dst": "f8_143@16"}, "f8_143@16", "f8_143@15"),
        ({"dst": "f16@3"}, "f16@3", "f8_143@BIAS"),
        ({"rounding": "up"}, "up", "half_up"),
        ({"rounding": ""}, "''", "rint"),
        ({"overflow": "clip"}, "clip", "saturate"),
    ],
)
def test_unknown_words(call: dict[str, Any], word: str, legal: str, tier: str | None) -> None:
    refused(ReadError, word, legal=legal, tier=tier, **call)


@pytest.mark.parametrize(
    ("call", "word", "legal"),
    [
        ({"tier": "fastest"}, "fastest", "reference"),
        ({"target": "a4"}, "a4", "a2a3"),
        ({"target": "a2a3", "saturation": "half"}, "half", "off"),
        ({"target": "a2a3", "rounding": "up"}, "up", "rint"),
        ({"saturation": "on"}, "saturation", None),
        ({"target": "a2a3", "overflow": "wrap"}, "saturation", None),
    ],
)
def test_unknown_words_without_a_choice_of_tier(call: dict[str, Any], word: str, legal: str | None) -> None:
    refused(ReadError, word, legal=legal, **call)


# ---------------------------------------------------------------------------------------------- refused combinations


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("call", "words", "legal"),
    [
        ({"overflow": "wrap"}, ("wrap", "f16"), "special"),
        ({"dst": "i8", "overflow": "special"}, ("special", "i8"), "wrap"),
        ({"dst": "hif8", "rounding": "rint"}, ("rint", "f32 -> hif8"), "hybrid"),
        ({"dst": "hif8", "rounding": "odd"}, ("odd", "f32 -> hif8"), "trunc"),
        ({"dst": "e8m0", "rounding": "rint"}, ("rint", "f32 -> e8m0"), "ceil"),
        ({"dst": "f16", "rounding": "hybrid"}, ("hybrid", "f32 -> f16"), "stochastic"),
        ({"array": F16, "src": "f16", "dst": "e4m3fn", "rounding": "hybrid"}, ("hybrid", "f16 -> e4m3fn"), "rint"),
    ],
)
def test_refused_combinations(call: dict[str, Any], words: tuple[str, ...], legal: str, tier: str | None) -> None:
    refused(IllegalError, *words, legal=legal, tier=tier, **call)


def test_pairs_that_a_chip_does_not_have() -> None:
    refused(IllegalError, "a2a3", "f32 -> e4m3fn", legal="f32 -> f16", dst="e4m3fn", target="a2a3")
    refused(IllegalError, "a2a3", "stochastic", legal="rint", target="a2a3", rounding="stochastic")


# ------------------------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("array", "src", "legal"),
    [
        (np.zeros(3, np.float64), "f32", "float32"),
        (np.zeros(3, np.int32), "f32", "uint32"),
        (np.zeros(3, np.uint16), "f32", "uint32"),
        (np.zeros(3, np.uint32), "i32", "int32"),
        (np.zeros(3, np.int8), "e4m3fn", "uint8"),
        (np.zeros(3, np.float32), "hif8", "uint8"),
        (np.zeros(3, np.int16), "i4", "uint8"),
        (np.zeros(3, object), "f32", "float32"),
        (np.zeros(3, "U3"), "f32", "float32"),
    ],
)
def test_wrong_dtypes(array: np.ndarray, src: str, legal: str, tier: str | None) -> None:
    refused(ReadError, src, str(array.dtype), legal=legal, tier=tier, array=array, src=src)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("array", "src", "word", "legal"),
    [
        (np.array([1, 0x10], np.uint8), "e2m1", "0x10", "0 to 0xf"),
        (np.array([0x40], np.uint8), "e3m2", "0x40", "0 to 0x3f"),
        (np.array([4], np.uint8), "u2", "0x4", "0 to 0x3"),
        (np.array([3, 9], np.int8), "i4", "9", "-8 to 7"),
        (np.array([-9], np.int8), "i4", "-9", "-8 to 7"),
        (np.array([1 << 47], np.int64), "i48", str(1 << 47), f"-{1 << 47} to {(1 << 47) - 1}"),
        (np.array([-(1 << 47) - 1], np.int64), "i48", str(-(1 << 47) - 1), f"-{1 << 47} to"),
    ],
)
def test_values_outside_the_width_of_a_code(
    array: np.ndarray, src: str, word: str, legal: str, tier: str | None
) -> None:
    if tier == "table" and src == "i48":
        tier = "reference"  # no table has 2**48 entries, which is refused first
    refused(ReadError, word, src, legal=legal, tier=tier, array=array, src=src)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("out", "words"),
    [
        (np.zeros(4, np.float16), ("(4,)", "(3,)")),
        (np.zeros((3, 1), np.float16), ("(3, 1)", "(3,)")),
        (np.zeros((), np.float16), ("()", "(3,)")),
        (np.zeros(3, np.float32), ("float32",)),
        (np.zeros(3, np.int16), ("int16",)),
        ([0, 0, 0], ("list",)),
    ],
)
def test_wrong_outputs(out: Any, words: tuple[str, ...], tier: str | None) -> None:
    refused(ReadError, *words, tier=tier, out=out)


@pytest.mark.parametrize("tier", TIERS)
def test_outputs_that_cannot_be_written(tier: str | None) -> None:
    out = np.zeros(3, np.float16)
    out.flags.writeable = False
    refused(ReadError, "writ", tier=tier, out=out)
    memory = np.zeros(16, np.uint8)
    source = memory[:12].view(np.float32)
    refused(ReadError, "overlap", tier=tier, array=source, out=memory[2:8].view(np.float16))


@pytest.mark.parametrize(
    ("random", "words"),
    [
        (None, ("stochastic", "random words")),
        (np.zeros(3, np.int32), ("int32",)),
        (np.zeros(3, np.uint64), ("uint64",)),
        (np.zeros(4, np.uint32), ("(4,)", "(3,)")),
        ([1, 2, 3], ("list",)),
    ],
)
@pytest.mark.parametrize("tier", [None, "reference", "compiled", "generic"])
def test_random_words(random: Any, words: tuple[str, ...], tier: str | None) -> None:
    refused(ReadError, *words, tier=tier, rounding="stochastic", random=random)


@pytest.mark.parametrize("tier", TIERS)
def test_needless_random_words(tier: str | None) -> None:
    kind = IllegalError if tier == "table" else ReadError
    refused(kind, "random words", tier=tier, random=np.zeros(3, np.uint32))


def test_tables_have_no_random_words() -> None:
    refused(
        IllegalError, "table", legal="reference", tier="table", rounding="stochastic", random=np.zeros(3, np.uint32)
    )


@pytest.mark.parametrize(("array", "dtype"), [(None, "object"), ([{}], "object"), ([1j], "complex128")])
def test_what_holds_no_numbers(array: Any, dtype: str) -> None:
    refused(ReadError, f"f32 holds numbers, not {dtype}", array=array)


def test_a_text_that_is_no_number() -> None:
    refused(ReadError, "'1.5x' is not a number", legal="decimal", array=["1.5", "1.5x"])

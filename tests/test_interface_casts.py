"""Type pairs of the A5's instruction set that its tile library does not take: an option, and exact integers."""

from __future__ import annotations

import numpy as np
import pytest
from work_programs import NATIVE, Spot, computed, noise, program, target

from castsim.isa.errors import IllegalError

ACCEPT = ("interface_casts", "accept")


def cast(
    src: str, dst: str, values: np.ndarray, *options: tuple[str, str], saturation: str | None = None
) -> np.ndarray:
    spots = [Spot("x", src, 2, 128, 0), Spot("y", dst, 2, 128, 0x8000)]
    before = noise(target("a5"), 2)
    spots[0].put(before, values.astype(NATIVE[src]))
    more = "" if saturation is None else f", sat_mode = #pto<saturation_mode {saturation}>"
    text = f"pto.tcvt ins(%x {{rmode = #pto<round_mode RINT>{more}}} : {spots[0].type}) outs(%y : {spots[1].type})"
    return spots[1].get(computed(program(text, spots), target("a5", *options), before))


@pytest.mark.parametrize(("src", "dst"), [("ui8", "ui32"), ("ui16", "ui32"), ("ui16", "ui8")])
def test_pairs_of_the_interface(src: str, dst: str) -> None:
    """Unsigned integers widen unchanged; narrowing clamps, or keeps the low bits with saturation off."""
    top = np.iinfo(NATIVE[src]).max
    values = np.random.default_rng(1).integers(0, top + 1, (2, 128)).astype(NATIVE[src])
    values[0, :6] = 0, 1, 255, top, top // 2 + 1, top - 1
    with pytest.raises(IllegalError, match=r"a5 has no cast") as caught:
        cast(src, dst, values)
    assert any("interface_casts=accept" in each for each in caught.value.legal)
    values = values.astype(np.int64)
    wanted = np.minimum(values, np.iinfo(NATIVE[dst]).max)
    assert cast(src, dst, values, ACCEPT).tolist() == wanted.tolist()
    assert cast(src, dst, values, ACCEPT, saturation="ON").tolist() == wanted.tolist()
    low = values & np.iinfo(NATIVE[dst]).max
    assert cast(src, dst, values, ACCEPT, saturation="OFF").tolist() == low.tolist()


def test_no_other_pair_is_let_through() -> None:
    with pytest.raises(IllegalError, match="a5 has no cast"):
        cast("ui16", "i8", np.zeros((2, 128), np.uint16), ACCEPT)

"""Casting loose elements on VLIW chips: `castsim cast --target gaudi2` and `castsim.cast`."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from castsim import cast
from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError

SOURCE = np.array([1.5, 2.5, -0.5, 40000.0, -1e9, np.inf, -np.inf, np.nan, 1.00390625], np.float32)


@pytest.mark.parametrize("target", ["goya", "gaudi", "gaudib", "greco", "gaudi2"])
def test_float_to_int_saturates_and_rounds_to_nearest_even(target):
    wanted = np.clip(np.rint(np.nan_to_num(SOURCE.astype(np.float64), nan=0.0)), -32768, 32767).astype(np.int16)
    assert cast(SOURCE, "f32", "i16", target=target).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("mode", "function"), [("rz", np.trunc), ("rd", np.floor), ("ru", np.ceil), ("rhne", np.rint), ("trunc", np.trunc)]
)
def test_modes_by_either_name(mode, function):
    wanted = np.clip(function(np.nan_to_num(SOURCE.astype(np.float64), nan=0.0)), -(2**31), 2**31 - 1)
    got = cast(SOURCE, "f32", "i32", target="gaudi2", rounding=mode)
    assert got.tolist() == wanted.astype(np.int64).tolist()


def test_bf16_is_the_librarys_but_for_nan():
    got = cast(SOURCE.view(np.uint32), "f32", "bf16", target="gaudi")
    wanted = SOURCE.astype(ml_dtypes.bfloat16).view(np.uint16)
    finite = ~np.isnan(SOURCE)
    assert np.array_equal(got[finite], wanted[finite])
    assert got[~finite].tolist() == [0x7FFF]  # docs/reference/tpc.md section 5


def test_ties_away_exists_from_gaudi_on():
    assert cast(np.float32([2.5]), "f32", "i32", target="gaudi", rounding="rhaz").tolist() == [3]
    with pytest.raises(IllegalError, match="no rounding mode round") as error:
        cast(np.float32([2.5]), "f32", "i32", target="goya", rounding="round")
    assert "rhne" in error.value.legal


def test_what_is_refused():
    with pytest.raises(IllegalError, match="goya has no instruction f32 -> bf16") as error:
        cast(SOURCE, "f32", "bf16", target="goya")
    assert "f32 -> i16" in error.value.legal
    with pytest.raises(IllegalError, match="random generator"):
        cast(SOURCE, "f32", "bf16", target="gaudi2", rounding="sr")
    with pytest.raises(ReadError, match="unknown rounding mode 'up'"):
        cast(SOURCE, "f32", "i16", target="goya", rounding="up")


def test_command_line_takes_the_chips_words(capsys):
    assert main(["cast", "f32", "bf16", "1.00390625", "--target", "gaudi2", "--rounding", "rz", "rhaz"]) == 0
    out = capsys.readouterr().out
    assert "0x3f80" in out and "0x3f81" in out

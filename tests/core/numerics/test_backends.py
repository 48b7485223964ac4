"""f32 to fp8 on the A5 by either back end: calls of the library under CTRL, or instructions that saturate themselves.

Expected values follow docs/reference/a5.md section 4.2: ml_dtypes within the range, the device tests' codes outside.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import oracle_scalar
import pytest
from kit.cast_kernels import chip, codes, kernel, outputs
from kit.command_output import file_of

from castsim import run
from castsim.isa.errors import ReadError, WarningKind, of_kind

FORMATS = {"f8E4M3FN": ("e4m3fn", ml_dtypes.float8_e4m3fn, 448.0), "f8E5M2": ("e5m2", ml_dtypes.float8_e5m2, 57344.0)}
SPECIAL = {"f8E4M3FN": {np.inf: 0x7E, -np.inf: 0xFE, 1e30: 0x7E, -1e30: 0xFE},
           "f8E5M2": {np.inf: 0x7B, -np.inf: 0xFB, 1e30: 0x7B, -1e30: 0xFB}}  # fmt: skip
"""What the device tests of the micro back end expect; NaN gives 0 (docs/reference/a5.md section 4.2)."""
MODES = {"RINT": "rint", "ROUND": "round", "FLOOR": "floor", "CEIL": "ceil", "TRUNC": "trunc"}


def values(count: int, seed: int) -> np.ndarray:
    """Numbers of every magnitude around both ranges, ties, NaN and infinities."""
    generator = np.random.default_rng(seed)
    found = (generator.uniform(-1, 1, count) * 2.0 ** generator.integers(-20, 20, count)).astype(np.float32)
    found[:14] = [np.inf, -np.inf, np.nan, -np.nan, 448, 464, 465, 480, -480, 57344, 61439, 61440, -65536, -0.0]
    return found


def clamped(found: np.ndarray, spelling: str, rounding: str) -> np.ndarray:
    """NaN to 0, everything else rounded and held within the range, by exact arithmetic."""
    name = FORMATS[spelling][0]
    every = [
        0 if np.isnan(value) else oracle_scalar.cast(int(code), "f32", name, rounding, "saturate")
        for value, code in zip(found.flat, codes(found).flat, strict=True)
    ]
    return np.array(every, np.uint8).reshape(found.shape)


@pytest.mark.parametrize("spelling", FORMATS)
@pytest.mark.parametrize("mode", [None, *MODES])
@pytest.mark.parametrize("valid", [None, ((5, 50), (5, 50))])
def test_the_micro_back_end_clamps(
    spelling: str, mode: str | None, valid: tuple[tuple[int, int], tuple[int, int]] | None, tmp_path: Path
) -> None:
    file = tmp_path / "k.pto"
    words = f"rmode = #pto<round_mode {mode}>" if mode else ""
    file.write_text(kernel(("f32", spelling), ((8, 64), (8, 64)), words, valid=valid))
    given = values(512 if valid is None else 250, 4).reshape((8, 64) if valid is None else (5, 50))
    _, found = outputs(file, chip("a5", backend="vpto"), {"x": given})
    assert np.array_equal(found["y"], clamped(given, spelling, MODES[mode or "RINT"]))
    for value, code in SPECIAL[spelling].items():
        assert set(found["y"][given == np.float32(value)]) <= {code}
    if mode in (None, "RINT"):  # a second witness within the range
        inside = np.abs(given) <= FORMATS[spelling][2]
        assert np.array_equal(found["y"][inside], given[inside].astype(FORMATS[spelling][1]).view(np.uint8))


@pytest.mark.parametrize("spelling", FORMATS)
@pytest.mark.parametrize(("start", "overflow"), [(0, "special"), (1, "saturate")])
def test_the_library_follows_ctrl(spelling: str, start: int, overflow: str, tmp_path: Path) -> None:
    file = file_of(tmp_path / "k.pto", kernel(("f32", spelling), ((8, 64), (8, 64)), "rmode = #pto<round_mode FLOOR>"))
    given = values(512, 8).reshape(8, 64)
    result, found = outputs(file, chip("a5", ctrl_60_at_start=start), {"x": given})
    name = FORMATS[spelling][0]
    if start:
        wanted = clamped(given, spelling, "rint")
    else:
        every = [oracle_scalar.cast(int(code), "f32", name, "rint", overflow) for code in codes(given).flat]
        wanted = np.array(every, np.uint8).reshape(8, 64)
    finite = ~np.isnan(given)
    assert np.array_equal(found["y"][finite], wanted[finite])
    kept = found["y"][~finite]
    assert all(code == 0 for code in kept) if start else np.isnan(kept.view(FORMATS[spelling][1]).astype(float)).all()
    assert of_kind(result.warnings, WarningKind.ROUNDING)


def test_refusals(tmp_path: Path) -> None:
    file = file_of(tmp_path / "k.pto", kernel(("f32", "f16"), ((8, 64), (8, 64)), arch="a3"))
    with pytest.raises(ReadError, match="a2a3 has no option 'backend'"):
        run(file, timing_only=True, backend="vpto")
    with pytest.raises(ReadError, match="option backend cannot be 'micro'") as caught:
        run(file, "a5", timing_only=True, backend="micro")
    assert caught.value.legal == ("library", "vpto")

"""Programs whose results the tests of notebooks look at: tiles, in a loop, padded, assembly."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
TILES = ROOT / "programs/f32_to_f16.pto"
LOOPED = ROOT / "programs/f32_to_f16_pipelined.pto"
PROGRAMS = (
    TILES,
    LOOPED,
    ROOT / "programs/a5_f32_to_e4m3fn_padded.pto",
    ROOT / "programs/tpc_f32_i16_quantise_gaudi2.tpc",
)

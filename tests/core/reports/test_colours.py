"""Colours of charts: told apart by readers with each kind of colour blindness, by hatching, and the same everywhere."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from core.reports.html_pages import blocks, run_command, run_page
from makers.expected_files import PROGRAMS
from numpy.typing import NDArray

from castsim.execution.timing import Cause
from castsim.reports.documents import identifier
from castsim.reports.numbers import CAUSE_COLOURS, SERIES, TONES
from castsim.reports.pages.run_page import _TONES as BUFFERS
from castsim.reports.pages.run_timeline import _ALL_TONES as LANES
from castsim.reports.run_outcomes import OUTCOMES
from castsim.targets.loader import target_names
from castsim.tools.lowering.page import _TONES as WAYS
from castsim.tools.lowering.planner import PlanKind
from castsim.tools.notebooks.presentation import HATCHING, cause_colour

SIGHT = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip
"""Machado, Oliveira and Fernandes (2009), severity 1.0, for linear RGB."""

LEAST = 12.0
"""The least difference by CIEDE2000 of two colours in one chart."""

CHARTS = {
    "causes": [each.tone for each in LANES],
    "ways": [*WAYS.values()],
    "outcomes": ["exact", *OUTCOMES],
    "buffers": [each.tone for each in BUFFERS],
    "measurements": ["first", "second"],
    "search": ["sound", "flag_wait", "first"],  # points
    "chips": [name for name in target_names() if name != "exact"],
    "pipes": ["S", "V", "MTE2", "MTE3", "M", "MTE1", "FIX"],
    "slots": ["LOAD", "SPU", "VPU", "STORE"],
}
"""The tones that occur in one chart."""

Lab = NDArray[np.float64]


def seen(colour: str, sight: str) -> Lab:
    """Return a colour as CIELAB (D65), as a reader sees it."""
    code = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.asarray(SIGHT[sight]) @ linear, 0, 1)
    matrix = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    scaled = matrix @ linear / matrix.sum(axis=1)
    x, y, z = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(one: Lab, other: Lab) -> float:
    """Return the difference of two colours by CIE 142-2001, in the order of steps of Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean**7 / (mean**7 + 25.0**7))
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (float(np.degrees(np.arctan2(b, a)) % 360) for a, b in ((a1, b1), (a2, b2)))
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    step_h = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    hue = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    t = 1 - 0.17 * np.cos(np.radians(hue - 30)) + 0.24 * np.cos(np.radians(2 * hue))
    t += 0.32 * np.cos(np.radians(3 * hue + 6)) - 0.2 * np.cos(np.radians(4 * hue - 63))
    by_l = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    by_c, by_h = (c2 - c1) / (1 + 0.045 * chroma), step_h / (1 + 0.015 * chroma * t)
    rotation = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    rotation *= np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    return float(np.sqrt(by_l**2 + by_c**2 + by_h**2 + rotation * by_c * by_h))


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_measure_is_that_of_the_paper(one: Lab, other: Lab, difference: float) -> None:
    """Sharma, Wu and Dalal (2005), table 1."""
    assert ciede2000(one, other) == pytest.approx(difference, abs=1e-4)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("chart", [*CHARTS, "series"])
def test_colours_of_a_chart_are_told_apart(chart: str, theme: int, sight: str) -> None:
    shades = SERIES if chart == "series" else [TONES[tone] for tone in dict.fromkeys(CHARTS[chart])]
    colours = [shade[theme] for shade in shades]
    pairs = {pair: ciede2000(*(seen(each, sight) for each in pair)) for pair in combinations(colours, 2)}
    assert min(pairs.values()) >= LEAST, min(pairs, key=lambda pair: pairs[pair])


@pytest.mark.parametrize("chart", [chart for chart in CHARTS if chart != "search"])  # its points have forms
def test_hatching_tells_them_apart_too(chart: str) -> None:
    """The chain that binds has a row of its own; operations that are not issued yet have the colour of the page."""
    tones = [tone for tone in CHARTS[chart] if tone not in ("empty", "chain")]
    hatching = [TONES[tone][2] for tone in dict.fromkeys(tones)]
    assert len(set(hatching)) == len(hatching)


def test_all_charts_have_their_colours_from_one_map() -> None:
    assert {identifier(cause) for cause in Cause} <= TONES.keys()
    assert {WAYS[kind] for kind in PlanKind} <= TONES.keys()
    for cause, (light, _, _, hatch) in CAUSE_COLOURS.items():
        assert cause_colour(cause) == TONES[identifier(cause)][0] == light
        assert HATCHING[light] == hatch


@pytest.mark.parametrize("name", ["f32_to_f16_pipelined.pto", "tpc_f32_i8_quantise_gaudi2.tpc"])
def test_every_tone_of_a_page_has_a_colour(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    data, *_ = run_page(run_command(PROGRAMS / name), tmp_path_factory.mktemp("page"))
    tones = {each["tone"] for block in blocks(data, "bars") for each in block["series"]}
    tones |= {each["tone"] for block in blocks(data, "lanes") for each in block["tones"]}
    assert tones <= data["tones"].keys()
    assert {name: [*shade] for name, shade in TONES.items()} == data["tones"]

"""The text that `castsim expand` prints: legal, canonical, deterministic, with the names of its source."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from micro_line_checks import check
from test_expand import EVERY, program
from test_expand_operations import WRITTEN

from castsim.__main__ import main
from castsim.isa.errors import IllegalError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.running.expanding import expand
from castsim.running.loaded import LoadRequest

PROGRAMS = Path(__file__).parents[1] / "programs"
EXPANDABLE = [
    *sorted(each for each in PROGRAMS.glob("a5_*.pto")),
    *(PROGRAMS / "kernels" / f"{name}_a5.pto" for name in (
        "softmax_prepare", "rotary_cache", "quantise_rows_i8", "quantise_rows_fp8", "rms_norm",
        "serving/norm_quantise",
    )),
]  # fmt: skip
LEFT_OUT = {
    "gated_activation": "pto.load_scalar", "combine_experts": "pto.load_scalar", "online_softmax": "pto.load_scalar",
    "topk_routing": "pto.tci",
}  # fmt: skip
"""Kernels that are not written, and the operation for which they are not."""


def texts() -> list[tuple[str, str]]:
    """Sources of all kinds: a sample of casts, one of operations."""
    rng = random.Random(8)
    casts = [(str(case), program(*case[0], *case[1:])) for case in rng.sample(EVERY, 25)]
    return [*casts, *((str(case), case.program()) for case in rng.sample(WRITTEN, 60))]


def accepted(text: str) -> None:
    """Check a text by its lines, by the reader with its rules, and by the printer."""
    assert check(text) > 0
    parsed = parse(text, "x.pto")
    assert not parsed.refused
    assert all("f4E" in str(each) for each in parsed.warnings)  # arguments that are arrays of 4-bit elements
    assert parse(print_program(parsed), "x.pto") == parsed


@pytest.mark.parametrize("path", EXPANDABLE, ids=lambda path: path.stem)
def test_every_program_for_the_chip_is_written_as_legal_text(path: Path) -> None:
    text = expand(path, LoadRequest())
    accepted(text)
    assert text == expand(path, LoadRequest())
    source = path.read_text()
    names = re.findall(r"func\.func @(\w+)\((.*?)\) attributes", source)[0]
    written = re.findall(r"func\.func @(\w+)\((.*?)\) attributes", text)[0]
    assert written[0] == names[0]
    assert re.findall(r"%\w+", written[1]) == re.findall(r"%\w+", names[1])


@pytest.mark.parametrize("name", LEFT_OUT)
def test_kernels_that_are_left_out_say_why(name: str) -> None:
    path = PROGRAMS / "kernels" / "serving" / f"{name}_a5.pto"
    with pytest.raises(IllegalError) as caught:
        expand(path, LoadRequest())
    assert f"expand cannot write {LEFT_OUT[name]}" in str(caught.value)
    assert caught.value.span is not None
    assert LEFT_OUT[name] in path.read_text().splitlines()[caught.value.span.line - 1]


@pytest.mark.parametrize(("name", "source"), texts(), ids=lambda each: each if "%" not in each else "")
def test_samples_are_written_as_legal_text(name: str, source: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pto"
    path.write_text(source)
    accepted(expand(path, LoadRequest()))


def test_an_entry_is_chosen_and_a_file_written_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "two.pto", tmp_path / "micro.pto"
    text = program("f32", "f16", None, None, (1, 64, 1, 64))
    whole = text[text.index("func.func") : text.rindex("}")]
    other = whole.replace("@cast", "@second")
    path.write_text(f'module attributes {{pto.target_arch = "a5"}} {{\n{whole}\n{other}\n}}\n')
    assert main(["expand", str(path), "--entry", "second", "-o", str(out)]) == 0
    assert "func.func @second(" in out.read_text() and "@cast" not in out.read_text()
    before = out.read_text()
    assert main(["expand", str(PROGRAMS / "f32_to_f16.pto"), "-o", str(out)]) == 1
    assert (out.read_text() == before and [each.name for each in tmp_path.iterdir()] == ["micro.pto", "two.pto"]) or (
        sorted(each.name for each in tmp_path.iterdir()) == ["micro.pto", "two.pto"]
    )
    assert "error" in capsys.readouterr().err

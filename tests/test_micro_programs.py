"""Programs of vector instructions with expected outputs, bit for bit, through the library and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from micro_cases import arrays, cases, different, texts, typed

from castsim.__main__ import main
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.sources import Language, Source
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import load_tiles
from castsim.targets import load_target
from castsim.targets.options import with_options

TO_FLOATS = [
    name for name in cases()
    if name.startswith(("cvt_s16_f16_", "cvt_s32_f32_", "cvt_s64_f32_")) and not name.endswith(("_r", "_h", "_o"))
]  # fmt: skip
"""Their expected outputs round to nearest even whatever `rnd` says (docs/reference/micro.md section 3.3)."""


def outputs_of(name: str, options: dict[str, str]) -> None:
    """Run a case and compare what it stores."""
    held, arguments = arrays(), cases()[name]
    target = with_options(load_target("a5"), options)
    source = Source(f"{name}.pto", Language.TILES, texts()[name])
    loaded = load_tiles(source, LoadRequest(target))
    inputs = {each["name"]: typed(held[f"{name}.{each['name']}.input"], each["elem"]) for each in arguments}
    found = loaded.issue(inputs, RunOptions()).outputs
    for each in arguments:
        if each.get("expected"):
            want = held[f"{name}.{each['name']}.expected"]
            wrong = different(found[each["name"]], want, each["elem"])
            assert not wrong.any(), (name, int(wrong.sum()), int(np.argmax(wrong)))


def test_there_are_292_programs() -> None:
    assert len(cases()) == len(texts()) == 292
    assert len(TO_FLOATS) == 12


@pytest.mark.parametrize("name", cases())
def test_outputs_are_the_expected_ones(name: str) -> None:
    outputs_of(name, {})


@pytest.mark.parametrize("name", cases())
def test_printing_and_parsing_again_gives_the_same_program(name: str) -> None:
    program = parse(texts()[name])
    text = print_program(program)
    assert parse(text) == program
    assert print_program(parse(text)) == text
    assert not program.warnings


def test_the_command_writes_the_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "merge_f32_bf16"
    program = tmp_path / "kernel.pto"
    program.write_text(texts()[name])
    command = ["run", str(program), "--out", str(tmp_path / "out"), "--quiet", "--json", str(tmp_path / "run.json")]
    for each in cases()[name]:
        file = tmp_path / f"{each['name']}.npy"
        np.save(file, typed(arrays()[f"{name}.{each['name']}.input"], each["elem"]))
        command += ["--in", f"{each['name']}={file}"]
    assert main(command) == 0
    assert capsys.readouterr().out == ""
    (result,) = (each for each in cases()[name] if each.get("expected"))
    got = np.load(tmp_path / "out" / f"{result['name']}.npy")
    assert not different(got, arrays()[f"{name}.{result['name']}.expected"], result["elem"]).any()
    report = json.loads((tmp_path / "run.json").read_text())
    assert sum(report["pipes"]["V"]["causes"].values()) == report["total_cycles"] > 0

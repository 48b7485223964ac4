"""Programs of vector instructions with expected outputs, bit for bit, through the library and the command."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.micro_cases import arrays, cases, different, texts, typed
from kit.paths import ROOT, VECTORS
from makers import expected_files, micro_expected
from makers.micro_expected import bytes_of_pairs, dequantised, saturated, toward_zero
from numpy.typing import NDArray

from castsim.__main__ import main
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.reading import Language, Source
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import load_tiles
from castsim.running.program_runs import run
from castsim.targets.description import with_options
from castsim.targets.loader import load_target


def outputs_of(name: str, options: dict[str, str]) -> None:
    held, arguments = arrays(), cases()[name]
    target = with_options(load_target("a5"), options)
    loaded = load_tiles(Source(f"{name}.pto", Language.TILES, texts()[name]), LoadRequest(target))
    inputs = {each["name"]: typed(held[f"{name}.{each['name']}.input"], each["elem"]) for each in arguments}
    found = loaded.issue(inputs, RunOptions()).outputs
    for each in arguments:
        if each.get("expected"):
            wrong = different(found[each["name"]], held[f"{name}.{each['name']}.expected"], each["elem"])
            assert not wrong.any(), (name, int(wrong.sum()), int(np.argmax(wrong)))


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


# ----------------------------------------------- the sample programs of vector instructions against NumPy and ml_dtypes
PROGRAMS = ROOT / "programs" / "micro"
Array = NDArray[np.generic]
RNG = np.random.default_rng(23)
FLOATS = RNG.uniform(-600, 600, 512).astype(np.float32)
FLOATS[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e6, -1e6, 2.0**-12]


BRAINS = np.concatenate((np.linspace(-8, 8, 448), RNG.uniform(-3, 3, 64))).astype(ml_dtypes.bfloat16)
WORDS = RNG.integers(-32768, 32768, 256).astype(np.int16)
CASES: dict[str, tuple[Array, dict[str, float], Callable[[Array], Array]]] = {
    "f32_to_f16_parts": (FLOATS, {}, lambda x: saturated(x, np.float16)),
    "f32_to_e4m3fn_quarters": (FLOATS, {}, lambda x: saturated(x, ml_dtypes.float8_e4m3fn)),
    "i8_to_f32_unpacked": (np.resize(np.arange(-128, 128), 512).astype(np.int8), {}, lambda x: x.astype(np.float32)),
    "masked_tail": (FLOATS[8:208], {}, toward_zero),
    "dequantise": (WORDS, {"scale": 2.5}, lambda x: dequantised(x, 2.5)),
    "bf16_to_e2m1": (BRAINS, {}, bytes_of_pairs),
}


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_the_libraries(name: str) -> None:
    given, scalars, model = CASES[name]
    held = given.view(np.uint16) if given.dtype == ml_dtypes.bfloat16 else given
    result = run(PROGRAMS / f"{name}.pto", inputs={"x": held}, args=scalars)
    assert result.outputs["y"].tobytes() == model(given).tobytes()
    assert not result.loaded.executed.warnings


def test_every_sample_has_an_expected_report() -> None:
    for ending in ("pto", "expected"):
        assert sorted(path.stem for path in PROGRAMS.glob(f"*.{ending}")) == sorted(micro_expected.SAMPLES)


@pytest.mark.parametrize("name", micro_expected.SAMPLES)
def test_cycles_follow_from_the_facts_by_hand_and_the_report_is_the_expected_one(name: str) -> None:
    found = expected_files.sections(f"micro/{name}")
    total = micro_expected.derived_total(name)
    for engine in ("fast", "event"):
        args = {"scale": float(micro_expected.SCALE)} if name == "dequantise" else {}
        assert run(PROGRAMS / f"{name}.pto", args=args, timing_only=True, engine=engine).cycles == total
    digests = micro_expected.digests(name)
    assert [f"{output} sha256 {value}" for output, value in digests.items()] == [
        each for each in found["outputs"] if each
    ]
    report = expected_files.reported(micro_expected.words(name))
    assert report == found["report"]
    text = " ".join(report)  # long lines are wrapped
    assert all(f"sha256 {value} " in text.split(f"output {output}: ")[1] for output, value in digests.items())


def test_the_operations_of_the_vendors_kernel_cases_are_known() -> None:
    shared = set(re.findall(r"`(?:%\w+ = )?pto\.(\w+)", (ROOT / "docs" / "reference" / "pto.md").read_text()))
    with (VECTORS / "micro_index.csv").open(newline="") as file:
        rows = [*csv.DictReader(line for line in file if not line.startswith("#"))]
    assert len(rows) == 75
    for row in rows:
        assert {*row["operations"].split()} - {"kernel", "aicore"} <= ROWS.keys() | shared, row["case"]

"""The sample kernels: casts bit for bit, the rest equal to formulas in NumPy, and their expected reports."""

from __future__ import annotations

import json

import numpy as np
import oracle
import pytest
from kit.paths import VECTORS
from kit.work_programs import NATIVE
from makers import kernels_expected
from makers.expected_files import PROGRAMS, printed, reported, sections
from makers.kernels_expected import ARGUMENTS, FILES, KERNELS, bf16_ties_away

from castsim import run
from castsim.isa.errors import IllegalError
from castsim.targets.loader import load_target

SAMPLES = [(target, name) for target, files in FILES.items() for name in files]


def made(name: str, seed: int) -> dict[str, np.ndarray]:
    """Inputs of a kernel, with rows that are all zero, tiny or of one large number."""
    rng = np.random.default_rng(seed)
    if name == "softmax_prepare":
        scores = (rng.standard_normal((64, 500)) * 40).astype(np.float32)
        scores[3], scores[5, 7] = 0.0, 700.0
        return {"scores": scores}
    if name == "rotary_cache":
        angle = rng.uniform(0, 6.3, (32, 64))
        k = rng.standard_normal((32, 1024)).astype(np.float32)
        return {"k": k, "cos": np.cos(angle).astype(np.float32), "sin": np.sin(angle).astype(np.float32)}
    shape = (32, 2048) if name == "rms_norm" else (64, 1024)
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 4, (shape[0], 1))).astype(NATIVE["bf16"])
    x[1], x[2, 5] = 0.0, 3e4
    source = {"src": x.view(np.uint16)}
    return source if name != "rms_norm" else source | {"gamma": rng.uniform(0.5, 2, (1, 2048)).astype(np.float32)}


def same_bits(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.shape == expected.shape and found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize(("target", "name"), SAMPLES)
def test_outputs_equal_the_formulas(target: str, name: str) -> None:
    arguments = ARGUMENTS.get(name, {})
    inputs = made(name, 7)
    result = run(PROGRAMS / f"{FILES[target][name]}.pto", inputs=inputs, args=arguments)
    assert result.loaded.target.name == target
    expected = KERNELS[name](inputs, target, *arguments.values())
    assert set(result.outputs) == set(expected)
    for output, values in expected.items():
        assert same_bits(result.outputs[output], values), output
    assert result.cycles > 0
    assert not result.warnings


@pytest.mark.parametrize("name", FILES["a2a3"])
def test_both_targets_run_one_text(name: str) -> None:
    """The samples differ in the target that they name, and each runs on the other one."""
    texts = [(PROGRAMS / f"{files[name]}.pto").read_text() for files in FILES.values()]
    assert texts[0].replace('"a3"', '"a5"') == texts[1]
    inputs, arguments = made(name, 8), ARGUMENTS.get(name, {})
    crossed = run(PROGRAMS / f"{FILES['a2a3'][name]}.pto", "a5", inputs=inputs, args=arguments)
    own = run(PROGRAMS / f"{FILES['a5'][name]}.pto", inputs=inputs, args=arguments)
    assert all(same_bits(crossed.outputs[output], own.outputs[output]) for output in own.outputs)
    assert crossed.cycles == own.cycles


def test_fp8_is_refused_where_there_is_none() -> None:
    with pytest.raises(IllegalError, match="a2a3 has no cast f32 -> e4m3fn") as caught:
        run(PROGRAMS / "kernels" / "quantise_rows_fp8_a5.pto", "a2a3", timing_only=True)
    assert caught.value.span is not None


def test_the_model_casts_as_the_oracle_does() -> None:
    sample = (np.random.default_rng(1).standard_normal(2000) * 10).astype(np.float32)
    codes = oracle.cast_array(sample.view(np.uint32), "f32", "bf16", "round", "saturate")
    assert np.array_equal(bf16_ties_away(sample), codes)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_specimen_of_a_quantised_row(target: str) -> None:
    """docs/reference/pto.md section 8, with the values expected there by hand."""
    path = VECTORS / "pto_specimens" / "quantise_row.pto"
    x = np.zeros((128, 512), np.float32)
    row = {3.5: 4, 2.5: 2, -126.5: -126, 200.0: 127, -1e9: -127, np.inf: 127, 2.5001: 2}
    x[5, : len(row)] = list(row)
    result = run(path, target, inputs={"in": x}, args={"scale": 1.0, "row": 5})
    assert result.outputs["out"][5, : len(row)].tolist() == list(row.values())
    assert not result.outputs["out"][5, len(row) :].any()
    assert not result.outputs["out"][:5].any()
    assert load_target(target).name == result.loaded.target.name


def test_every_kernel_has_an_expected_report() -> None:
    named = sorted(file for files in FILES.values() for file in files.values())
    for ending in ("pto", "expected"):
        assert sorted(f"kernels/{path.stem}" for path in (PROGRAMS / "kernels").glob(f"*.{ending}")) == named


@pytest.mark.parametrize(("target", "name"), SAMPLES)
def test_pipes_work_as_the_facts_say(target: str, name: str) -> None:
    values = kernels_expected.derived(target, FILES[target][name])
    assert {"load_pipe", "store_pipe", "total_at_least"} <= set(values)
    line = kernels_expected.words(target, name)
    document = json.loads("\n".join(printed([*line, "--timing-only", "--json", "-", "--quiet"])))
    assert not kernels_expected.contradictions(values, document)
    assert document["total_cycles"] < 4 * values["total_at_least"]


@pytest.mark.parametrize(("target", "name"), SAMPLES)
def test_digests_are_the_models_and_the_report_is_the_expected_one(target: str, name: str) -> None:
    found = sections(FILES[target][name])
    digests = {line.split()[0]: line.split()[2] for line in found["outputs"] if line.strip()}
    assert digests == kernels_expected.digests(target, name)
    report = reported(kernels_expected.words(target, name))
    assert report == found["report"]
    text = " ".join(report)  # long lines are wrapped
    for output, digest in digests.items():
        assert f"sha256 {digest} " in text.split(f"output {output}: ")[1].split("output ")[0]

"""The sample kernels: casts bit for bit, everything else equal to their formulas in NumPy, on both targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest
from kernels_model import ARGUMENTS, FILES, KERNELS, bf16_ties_away
from work_programs import NATIVE

from castsim import run
from castsim.execution.input_data import make_inputs
from castsim.isa.errors import IllegalError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.running import load_program
from castsim.targets import load_target

PROGRAMS = Path(__file__).parent.parent / "programs"
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


def plain(array: np.ndarray) -> np.ndarray:
    """An array of bf16 as codes, which is what `.npy` files hold of it."""
    return array.view(np.uint16) if array.dtype == NATIVE["bf16"] else array


def same_bits(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.shape == expected.shape and found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize(("target", "name"), SAMPLES)
def test_outputs_equal_the_formulas(target: str, name: str) -> None:
    arguments = ARGUMENTS.get(name, {})
    inputs = made(name, 7)
    path = PROGRAMS / f"{FILES[target][name]}.pto"
    result = run(path, inputs=inputs, args=arguments)
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


@pytest.mark.parametrize(("target", "name"), SAMPLES)
def test_files_and_seeds_are_inputs_too(target: str, name: str, tmp_path: Path) -> None:
    """Random inputs of the command line, and the same from `.npy` files."""
    path = PROGRAMS / f"{FILES[target][name]}.pto"
    arguments = ARGUMENTS.get(name, {})
    uses = load_program(path, None, None, arguments).arguments
    wanted = {argument: f"random:{seed}" for seed, argument in enumerate(uses) if uses[argument].needs_input}
    arrays = {argument: plain(array) for argument, array in make_inputs(wanted, uses).items()}
    for argument, array in arrays.items():
        np.save(tmp_path / f"{argument}.npy", array)
    files = {argument: str(tmp_path / f"{argument}.npy") for argument in arrays}
    ours = [run(path, inputs=given, args=arguments) for given in (wanted, files)]
    assert all(same_bits(ours[0].outputs[output], ours[1].outputs[output]) for output in ours[0].outputs)
    shaped = {argument: np.asarray(array).reshape(uses[argument].shape) for argument, array in arrays.items()}
    expected = KERNELS[name](shaped, target, *arguments.values())
    assert all(same_bits(ours[0].outputs[output], values) for output, values in expected.items())


def test_the_model_casts_as_the_oracle_does() -> None:
    sample = (np.random.default_rng(1).standard_normal(2000) * 10).astype(np.float32)
    codes = oracle.cast_array(sample.view(np.uint32), "f32", "bf16", "round", "saturate")
    assert np.array_equal(bf16_ties_away(sample), codes)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_specimen_of_a_quantised_row(target: str) -> None:
    """docs/reference/pto.md section 8, with the values expected there by hand."""
    path = Path(__file__).parent / "vectors" / "pto_specimens" / "quantise_row.pto"
    x = np.zeros((128, 512), np.float32)
    row = {3.5: 4, 2.5: 2, -126.5: -126, 200.0: 127, -1e9: -127, np.inf: 127, 2.5001: 2}
    x[5, : len(row)] = list(row)
    result = run(path, target, inputs={"in": x}, args={"scale": 1.0, "row": 5})
    assert result.outputs["out"][5, : len(row)].tolist() == list(row.values())
    assert not result.outputs["out"][5, len(row) :].any()
    assert not result.outputs["out"][:5].any()
    assert load_target(target).name == result.loaded.target.name


def test_kernels_survive_printing() -> None:
    for files in FILES.values():
        for name in files.values():
            parsed = parse((PROGRAMS / f"{name}.pto").read_text(), name)
            assert parse(print_program(parsed), name) == parsed

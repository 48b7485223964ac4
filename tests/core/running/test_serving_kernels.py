"""The kernels of programs/kernels/serving, as serving systems have them: tables decide, a run gives extents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from core.running.serving_inputs import MADE, TABLES, Given
from core.running.serving_model import KERNELS, Exact, Steps
from kit.engine_outcome import outcome
from kit.paths import PROGRAMS
from oracle_races import judge

from castsim import run
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.machines.mechanisms import compute_of, lowerer_of
from castsim.running.loaded import Loaded
from castsim.running.program_loading import load_program
from castsim.running.synchronisation.flags import insert
from castsim.running.synchronisation.race_detector import find_races
from castsim.targets.loader import load_target

FOLDER = PROGRAMS / "kernels" / "serving"
SEEDS = range(8)
CODED = ("bfloat16", "float8_e4m3fn")
"""Formats that NumPy lacks: given as codes."""


def path_of(name: str) -> Path:
    return FOLDER / f"{name}_{KERNELS[name].target}.pto"


def codes(values: np.ndarray) -> np.ndarray:
    """Numbers as the codes that outputs hold; NaN is left to the formats that have one."""
    return np.ascontiguousarray(values).view(f"<u{values.dtype.itemsize}")


def plain(given: Given) -> dict[str, np.ndarray]:
    """Arrays as `run` takes them: formats that NumPy lacks as codes."""
    return {name: codes(array) if array.dtype.name in CODED else array for name, array in given[0].items()}


def table_arguments(given: Given) -> dict[str, int | float]:
    """The scalar arguments, and every element of the tables: what decides the path when no values are computed."""
    arrays, numbers = given
    tables = {name: array for name, array in arrays.items() if name in TABLES}
    elements = {f"{name}[{k}]": value.item() for name, array in tables.items() for k, value in enumerate(array.flat)}
    return dict(numbers) | elements


def test_every_kernel_has_a_model() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.pto")) == sorted(path_of(name).stem for name in KERNELS)
    assert set(MADE) == set(KERNELS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", KERNELS)
def test_outputs_are_those_of_the_steps(name: str, seed: int) -> None:
    kernel, given = KERNELS[name], MADE[name](seed)
    with np.errstate(all="ignore"):
        expected = kernel.formula(given[0], given[1], Steps(kernel.target))
    runs = [run(path_of(name), inputs=plain(given), args=given[1], engine=engine) for engine in ("fast", "event")]
    assert set(runs[0].outputs) == set(expected)
    for output, values in expected.items():
        found = np.asarray(runs[0].outputs[output])
        np.testing.assert_array_equal(codes(found), codes(values.reshape(found.shape)), err_msg=output)
    assert runs[0].timing.total == runs[1].timing.total > 0
    # Its cast to i8 keeps low bits without the tmp tile that the library's sequence needs, and is told so.
    told = {"scratch"} if name == "cache_write_i8" else set()
    assert {str(warning.kind) for warning in runs[0].warnings} <= told


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", KERNELS)
def test_steps_stay_near_the_formula(name: str, seed: int) -> None:
    kernel, given = KERNELS[name], MADE[name](seed)
    with np.errstate(all="ignore"):
        steps, exact = (kernel.formula(given[0], given[1], how) for how in (Steps(kernel.target), Exact()))
    for output, values in steps.items():
        near, far = values.astype(np.float64), exact[output].astype(np.float64)
        assert np.array_equal(np.isfinite(near), np.isfinite(far)), output
        near, far = np.nan_to_num(near), np.nan_to_num(far)
        allowed = kernel.tolerance.get(output, 0) * np.maximum(np.abs(far).max(axis=-1, keepdims=True), 1e-30)
        assert np.all(np.abs(near - far) <= allowed), output


@pytest.mark.parametrize("name", KERNELS)
def test_the_value_paths_agree(name: str) -> None:
    """Whole tiles at once where that was proven equal, and instruction by instruction."""
    given = MADE[name](2)
    loaded = load_program(path_of(name), None, None, table_arguments(given))
    found = []
    for shortcuts in (True, False):
        buffer = np.zeros(loaded.target.memories["ub"].capacity_bytes, np.uint8)
        memory = {}
        for argument, use in loaded.arguments.items():
            array = plain(given).get(argument)
            size = use.elements * use.format.bits // 8 if array is None else array.nbytes
            memory[argument] = np.zeros(size, np.uint8)
            if array is not None:
                memory[argument][:] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        compute_of(loaded.target)(loaded.tree, buffer, memory, shortcuts=shortcuts)
        found.append(memory)
    for argument in found[0]:
        np.testing.assert_array_equal(found[0][argument], found[1][argument], err_msg=argument)


@pytest.mark.parametrize("name", KERNELS)
def test_engines_agree_cause_by_cause(name: str) -> None:
    for seed in (1, 4):
        loaded = load_program(path_of(name), None, None, table_arguments(MADE[name](seed)))
        expected = outcome(loaded.tree, loaded.target, engine="event")
        assert outcome(loaded.tree, loaded.target, engine="fast") == expected
        assert outcome(loaded.tree, loaded.target, engine="fast", skip=False) == expected
        assert find_races(loaded.tree, loaded.target) == ()


@pytest.mark.parametrize("name", KERNELS)
def test_no_inserted_flag_can_be_left_out(name: str, tmp_path: Path) -> None:
    """Each by itself is missed, on paths through all of the kernel.

    Barriers may be idle, as the vendor's rules look neither at offsets of stores nor at extents of the run: then the
    judge, which unrolls everything, must see that nothing depends on them.
    """
    paths = [table_arguments(MADE[name](seed)) for seed in (1, 3, 0)]
    lines = written_out(path_of(name), KERNELS[name].target)
    file = tmp_path / "k.pto"
    for order in orders(lines):
        file.write_text("".join(lines[:order] + lines[order + 1 :]))
        loaded = [load_program(file, None, None, args, sync="program") for args in paths]
        if not any(find_races(each.tree, each.target) for each in loaded):
            assert "pto.barrier" in lines[order], lines[order]
            assert all(is_clean(each) for each in loaded), lines[order]


def is_clean(loaded: Loaded) -> bool:
    facts = loaded.target.synchronisation
    return judge(loaded.tree, tuple(map(str, facts.required_barriers)), facts.unordered_bytes or 10**9).clean


def test_they_survive_printing() -> None:
    for name in KERNELS:
        parsed = parse(path_of(name).read_text(), name)
        assert parse(print_program(parsed), name) == parsed


# ------------------------------------------------------------------------- a kernel with its inserted flags written out


_ORDERS = ("pto.set_flag", "pto.wait_flag", "pto.barrier")


def written_out(path: Path, target: str) -> list[str]:
    """The lines of a program with the flags and barriers that are inserted into it."""
    chip = load_target(target)
    parsed = parse(path.read_text(), path.name)
    (function,) = parsed.functions
    made = insert(function, lowerer_of(chip), chip).function
    return print_program(replace(parsed, functions=(made,))).splitlines(keepends=True)


def orders(lines: list[str]) -> list[int]:
    """The numbers of the lines with a flag or barrier."""
    return [number for number, line in enumerate(lines) if line.strip().startswith(_ORDERS)]

"""`castsim.cast` with a target: the plan that is kept gives, bit for bit, what the chip's own instructions give."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from kit.numerics_samples import samples

import castsim
from castsim.isa.formats import FORMATS, Saturation, format_named
from castsim.machines.casting import WrappingLoop, cast_on_target
from castsim.machines.mechanisms import CastAsked, CastForm, machine_of
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import native_dtype
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target, target_names

THOROUGH = "CASTSIM_THOROUGH" in os.environ
MODES = (None, "rint", "round", "floor", "ceil", "trunc", "odd", "half_up", "hybrid", "none", "rhne", "rz")


@dataclass(frozen=True)
class Asked:
    """A cast as a user asks for it."""

    src: str
    dst: str
    rounding: str | None = None
    saturation: str | None = None
    scratch: bool = False
    form: CastForm | None = None


def pairs(chip: Target) -> list[tuple[str, str]]:
    """Return the pairs of a chip whose formats castsim has for arrays."""
    rows = chip.casts if chip.has_tiles else [row for row in chip.converts if row.unit == "vpu"]
    return sorted({(row.src, row.dst) for row in rows})


def asked(chip: Target) -> Iterator[Asked]:
    """Yield every pair with every mode; without CASTSIM_THOROUGH the modes change in turn, from pair to pair."""
    forms = machine_of(chip).cast_forms or (None,)
    further = [
        (mode, saturation, scratch, form)
        for mode in MODES
        for saturation in (None, "on", "off")
        for scratch in (False, True)
        for form in forms
    ]
    step = 1 if THOROUGH else 11 if chip.has_tiles else 29
    for number, (src, dst) in enumerate(pairs(chip)):
        yield from (Asked(src, dst, *each) for each in further[number % step :: step])


def by_instructions(codes: np.ndarray, one: Asked, chip: Target) -> np.ndarray | castsim.CastsimError:
    """Return what the chip's instructions make of codes, or the refusal."""
    saturation = None if one.saturation is None else Saturation(one.saturation)
    formats = FORMATS[one.src], FORMATS[one.dst]
    modes = {"rounding": one.rounding, "saturation": saturation, "scratch": one.scratch, "form": one.form}
    try:
        return cast_on_target(codes, *formats, chip, **modes).codes
    except castsim.CastsimError as error:
        return error


def by_plan(codes: np.ndarray, one: Asked, chip: Target | str, options: dict[str, int | str] | None = None) -> object:
    """Return the codes that `castsim.cast` gives, from an array of codes or numbers, or the refusal."""
    native = native_dtype(FORMATS[one.src])
    array = codes if native is None else codes.view(native)
    modes = {name: getattr(one, name) for name in ("rounding", "saturation", "scratch", "form")}
    try:
        found = castsim.cast(array, one.src, one.dst, target=chip, options=options, **modes)
    except castsim.CastsimError as error:
        return error
    return bits(found, one.dst)


def bits(found: np.ndarray, dst: str) -> np.ndarray:
    """Return the bits of results, which are numbers or codes."""
    return found.view(code_dtype(FORMATS[dst]))


def check(one: Asked, chip: Target, name: Target | str, options: dict[str, int | str] | None = None) -> bool:
    """Compare on special and random codes, twice: the second time the plan is there. Return whether there is a cast."""
    codes = samples(FORMATS[one.src], seed=7, count=3000)
    wanted = by_instructions(codes, one, chip)
    for _ in range(2):
        found = by_plan(codes, one, name, options)
        if isinstance(wanted, castsim.CastsimError):
            assert isinstance(found, castsim.CastsimError), one
            assert (type(found), str(found)) == (type(wanted), str(wanted)), one
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=str(one))
    return not isinstance(wanted, castsim.CastsimError)


@pytest.mark.parametrize("name", target_names())
def test_all_pairs_and_modes(name: str) -> None:
    chip = load_target(name)
    legal = [check(one, chip, name) for one in asked(chip)]
    assert sum(legal) >= len(pairs(chip))


@pytest.mark.parametrize("name", target_names())
def test_all_options(name: str) -> None:
    """Every value of every option, each with some pairs; with CASTSIM_THOROUGH all."""
    chip = load_target(name)
    every = pairs(chip)
    settings = [(option, value) for option, row in chip.options.items() for value in row.legal]
    for number, (option, value) in enumerate(settings):
        chosen = every if THOROUGH else every[number % 29 :: 29]
        changed = with_options(chip, {option: value})
        for src, dst in chosen:
            for saturation in (None, "off") if chip.has_tiles else (None,):
                one = Asked(src, dst, saturation=saturation)
                check(one, changed, chip, {option: value})


@pytest.mark.parametrize(("src", "dst"), [("f32", "f16"), ("f32", "f32"), ("f16", "i8"), ("bf16", "e2m1")])
def test_layouts_and_results(src: str, dst: str) -> None:
    """Strided, transposed, empty and 0-d arrays, arrays of codes, and arrays to fill give the same bits."""
    codes = samples(FORMATS[src], seed=3, count=4096)[: 1 << 12]
    modes = {"target": "a5", "saturation": "off"}
    wanted = by_instructions(codes, Asked(src, dst, saturation="off"), load_target("a5"))
    assert not isinstance(wanted, castsim.CastsimError)

    def given(array: np.ndarray) -> np.ndarray:
        return castsim.cast(array, src, dst, **modes)

    for shaped in (lambda x: x.reshape(64, 64).T, lambda x: x[::-3], lambda x: x[:0], lambda x: x[5].reshape(())):
        found = given(shaped(codes))
        assert found.shape == shaped(codes).shape
        np.testing.assert_array_equal(bits(found, dst), shaped(wanted))
    filled = np.empty(codes.shape, wanted.dtype)
    assert castsim.cast(codes, src, dst, out=filled, **modes) is filled
    np.testing.assert_array_equal(filled, wanted)
    swapped = codes.astype(codes.dtype.newbyteorder())
    np.testing.assert_array_equal(bits(given(swapped), dst), wanted)


def test_a_description_that_changes_is_read_again(tmp_path: object) -> None:
    path = tmp_path / "mine.toml"  # type: ignore[operator]
    numbers = np.array([3e9, 1e30], np.float32)
    for value, low in ((0, False), (1, True)):
        path.write_text(
            'base = "a2a3"\nname = "mine"\n[options.integer_saturation_off_at_start]\n'
            f'value = {value}\nsource = "this test"\nstatus = "assumed"\n'
        )
        chip = load_target(path)
        found = castsim.cast(numbers, "f32", "i32", target=path)
        wanted = by_instructions(numbers.view(np.uint32), Asked("f32", "i32"), chip)
        np.testing.assert_array_equal(found.view(np.uint32), wanted)
        assert chip.option("integer_saturation_off_at_start") == int(low)


@pytest.mark.parametrize("rounding", ["rint", "round", "floor", "ceil", "trunc"])
def test_low_bits_by_machine_code_are_those_of_the_steps(rounding: str) -> None:
    """The A5 casts f32 to i16 by i32, whose low bits it keeps; one loop does both, for every number that i32 has."""
    from castsim.numerics import compiled  # noqa: F401, PLC0415 - machine code is used where numba is loaded

    asked = CastAsked(format_named("f32"), format_named("i16"), rounding, Saturation.OFF)
    chip = machine_of(load_target("a5")).element_cast(asked)
    assert chip.wrapping is not None
    generator, loop = np.random.default_rng(5), WrappingLoop(chip.run, chip.wrapping.rounding, asked.dst)
    powers = np.exp2(np.arange(-150, 127, dtype=np.float64))
    near = np.concatenate([powers, powers * 1.5, powers + 0.5, powers - 0.5, powers - 1]).astype(np.float32)
    special = np.array([0x7F800000, 0x7FC00000, 0x7F800001, 0x4EFFFFFF, 0x4F000000, 0x3EFFFFFF, 0x3F000000], np.uint32)
    codes = np.concatenate([near.view(np.uint32), special, generator.integers(0, 1 << 31, 1 << 18, np.uint32)])
    codes = np.concatenate([codes, codes | np.uint32(1 << 31)])
    results = np.empty(codes.size, np.uint16)
    loop.run(codes, results)
    assert loop.code is not None
    assert np.array_equal(results, chip.run(codes))
    numbers = codes.view(np.float32)[np.abs(codes.view(np.float32)) < 1 << 31].astype(np.float64)
    away = np.trunc(numbers) + np.copysign(np.abs(numbers - np.trunc(numbers)) >= 0.5, numbers)
    whole = away if rounding == "round" else getattr(np, rounding)(numbers)
    held = np.abs(codes.view(np.float32)) < 1 << 31
    assert np.array_equal(results[held], whole.astype(np.int64).astype(np.uint16))

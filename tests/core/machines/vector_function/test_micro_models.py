"""Every combination that the micro level accepts, run as a program and compared with the naive models.

A combination without a model fails: what is accepted is asked of the reader, not of a table.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
from core.machines.vector_function import micro_combinations as mc
from core.machines.vector_function.micro_combinations import Combination
from core.machines.vector_function.micro_naive import LOADS, PREDICATES, REGISTERS, STORES, Bits, Given
from core.machines.vector_function.test_lanes_arithmetic import codes
from core.running.test_micro_running import issued
from kit import lanes_model as model

AT_ONCE = 40
THOROUGH = "CASTSIM_THOROUGH" in os.environ
SEEDS = {True: (0, 2), False: (0, 1, 2)} if THOROUGH else {True: (2,), False: (0, 2)}
"""Buffers and masks to try, by whether an operation accesses memory."""
NEAR = ("vexp", "vln", "vexpdif")
"""Functions that one unit more or less may follow."""


def numbered(name: str) -> list[Combination]:
    """The combinations of an operation, with each of the numbers that it may have."""
    found = []
    for one in mc.accepted(name):
        numbers = mc.NUMBERS.get(one.family, [()])
        counted = sum(letter in "NI" for at, letter in enumerate(one.form.operands) if at != one.form.offset)
        found += [replace(one, numbers=each) for each in numbers] if counted else [one]
    return found


def data(one: Combination, seed: int) -> np.ndarray:
    """The buffer at the start: registers of edges and random elements, offsets, memory, masks, old results."""
    rng = np.random.default_rng([seed, len(one.name), model.bits_of(one.element)])
    image = rng.integers(0, 256, mc.SIZE, dtype=np.uint8)
    if one.element not in ("bf16_pair", "i64", "u64"):
        size = model.bits_of(one.element) // 8
        for at in range(3):
            values = codes(one.element, 3 * seed + at)
            image[256 * at : 256 * at + 256] = np.array(values, f"<u{size}").view(np.uint8)
    bits = model.bits_of(one.other)
    most = {"vshl": bits, "vshr": bits, "vselr": 2048 // bits}.get(one.name, min(64, 1 << bits - 1))
    offsets = rng.integers(0, most, 2048 // bits)
    if one.name == "vgatherb":
        offsets = offsets % 16 * 32
    image[768:1024] = offsets.astype(f"<u{bits // 8}").view(np.uint8)
    for width in (8, 16, 32):
        for at, chosen in enumerate(model.masks(width, seed)[seed : seed + 4]):
            start = mc.MASKS + 128 * (width // 8) + 32 * at
            image[start : start + 32] = np.packbits(chosen, bitorder="little")
            if seed == 2:  # bits between those of the lanes, which nothing looks at but logic
                image[start : start + 32] = rng.integers(0, 256, 32)
    return image


def given_of(one: Combination, image: np.ndarray, address: int) -> Given:
    registers, masks = [], []
    for letter in one.form.operands:
        if letter in "VU":
            at = 3 if letter == "U" else len(registers)
            registers.append(image[256 * at : 256 * at + 256].tobytes())
        elif letter in "Mmk":
            start = mc.MASKS + 128 * (one.mask // 8) + 32 * len(masks)
            masks.append(np.unpackbits(image[start : start + 32], bitorder="little").tolist())
    return Given(one, tuple(registers), tuple(masks), image[address : address + 4096].tobytes(), address)


def expected(one: Combination, number: int, image: np.ndarray, want: np.ndarray) -> None:
    """Write into `want` what a combination leaves in the buffer."""
    stores = one.family in STORES
    base = mc.RESULTS + 4 * number * mc.SLOT if stores else 1024
    moved = one.form.offset is not None and not one.updates
    advance = (64 if one.updates else 128 * 8 // model.bits_of(one.element)) * model.bits_of(one.element) // 8
    given = given_of(one, image, base + (advance if moved else 0))
    if stores:
        for at, byte in STORES[one.family](given).items():
            want[given.address + at] = byte
        results: list[bytes | Bits | int] = []
    else:
        results = {**REGISTERS, **PREDICATES, **LOADS}[one.family](given)
    left = iter(results)
    for at, letter in enumerate(one.form.results[: one.results]):
        place = mc.RESULTS + (4 * number + 1 + at) * mc.SLOT
        if letter == "A":
            continue
        found = base + pointer_step(one, advance) if letter == "P" else next(left)
        if isinstance(found, int):
            found = found.to_bytes(4, "little") * 64
        elif isinstance(found, list):
            found = np.packbits(found, bitorder="little").tobytes()
        want[place : place + len(found)] = np.frombuffer(found, np.uint8)


def pointer_step(one: Combination, advance: int) -> int:
    """Bytes from the base to the pointer that an access hands on."""
    if one.name in ("vsldb", "vsstb"):
        return 32 * one.numbers[1]
    if one.name == "vldus" and not one.numbers:
        return 256
    if one.name in ("vldus", "vstus"):
        return one.numbers[0] * model.bits_of(one.element) // 8
    return advance


@pytest.mark.parametrize("name", mc.INSIDE)
def test_programs_do_what_the_models_say(name: str) -> None:
    every = numbered(name)
    assert every
    groups: dict[tuple[str, str], list[Combination]] = {}
    for one in every:
        groups.setdefault((one.element, one.other if "U" in one.form.operands else ""), []).append(one)
    for group in groups.values():
        for start in range(0, len(group), AT_ONCE):
            part = group[start : start + AT_ONCE]
            text = mc.program(part)
            for seed in SEEDS[part[0].family in {*LOADS, *STORES}]:
                image = data(part[0], seed)
                want = image.copy()
                for number, one in enumerate(part):
                    expected(one, number, image, want)
                got = issued(text, {"x": image}).outputs["x"]
                if name in NEAR:
                    near(got, want, name, part[0])
                else:
                    wrong = np.flatnonzero(got != want)
                    assert not wrong.size, (part[(wrong[0] - mc.RESULTS) // (4 * mc.SLOT)], wrong[:8], seed)


def near(got: np.ndarray, want: np.ndarray, name: str, one: Combination) -> None:
    """Compare to one unit in the last place; NaN is NaN."""
    bits = 32 if name == "vexpdif" else model.bits_of(one.element)
    kind = {16: "<f2", 32: "<f4"}[bits]
    unequal = got.view(f"<i{bits // 8}").astype(np.int64) - want.view(f"<i{bits // 8}")
    assert (np.abs(unequal) <= 1)[~(np.isnan(got.view(kind)) & np.isnan(want.view(kind)))].all()


@pytest.mark.parametrize("name", NEAR)
def test_signalling_nans_warn_of_nothing(name: str) -> None:
    combination = next(combination for combination in mc.accepted(name) if combination.element == "f32")
    image = data(combination, 0)
    image[:512].view("<u4")[:] = 0x7FA00001
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = issued(mc.program([combination]), {"x": image}).outputs["x"][mc.RESULTS :].view("<f4")
    assert np.isnan(result).any()


def test_every_operation_has_a_model() -> None:
    assert {mc.ROWS[name].family or name for name in mc.INSIDE} == {*REGISTERS, *PREDICATES, *LOADS, *STORES}

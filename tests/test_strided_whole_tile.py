"""The proof that a tile may be converted at once: right for right operations, none for any broken one."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from strided_cases import calls, lower, tile_cast
from strided_model import Cast

from castsim.execution.tree import Operation
from castsim.isa.formats import format_named
from castsim.machines.strided.operations import (
    StridedInstruction,
)
from castsim.machines.strided.values import natural_map

# --------------------------------------------------------------------------------------------------- natural map
PROVABLE = Cast("f32", "f16", 3, 130, 144, 0, 65536)


def proof(operations: list[Operation], model: Cast = PROVABLE) -> object:
    described = tile_cast(model)
    return natural_map(operations, described.src, described.dst)


def with_stream(operation: StridedInstruction, end: str, **changes: object) -> StridedInstruction:
    if end == "dst":
        return dataclasses.replace(operation, destination=dataclasses.replace(operation.destination, **changes))
    return dataclasses.replace(operation, sources=(dataclasses.replace(operation.sources[0], **changes),))


def test_natural_map_of_the_right_operations() -> None:
    found = proof(lower(PROVABLE))
    assert found is not None
    assert (found.rows, found.cols) == (3, 130)
    assert (found.source.address, found.source.repeat_stride) == (0, 18)
    assert (found.destination.address, found.destination.repeat_stride) == (65536, 9)


@pytest.mark.parametrize("index", range(4))
def test_natural_map_fails_for_a_missing_or_doubled_operation(index: int) -> None:
    operations = calls(lower(PROVABLE))
    assert proof(operations[:index] + operations[index + 1 :]) is None
    assert proof([*operations, operations[index]]) is None
    assert proof([]) is None


@pytest.mark.parametrize("index", range(4))
def test_natural_map_fails_for_another_action_mask_or_length(index: int) -> None:
    right = calls(lower(PROVABLE))
    ceil = calls(lower(dataclasses.replace(PROVABLE, mode="ceil")))[0].action
    mask = right[index].mask
    for change in (
        {"action": ceil},
        {"mask": mask & ~1},
        {"mask": mask & ~2},
        {"mask": mask >> 1 if index == 3 else (1 << 63) - 1},
        {"lanes": right[index].lanes - 63},
        {"repeats": right[index].repeats - 1},
        {"repeats": right[index].repeats + 1},
        {"sources": right[index].sources * 2},
        {"sources": ()},
    ):
        wrong = list(right)
        wrong[index] = dataclasses.replace(right[index], **change)
        assert proof(wrong) is None, change


@pytest.mark.parametrize("index", range(4))
def test_natural_map_fails_for_another_format(index: int) -> None:
    # Same width, other format: the bytes are the right ones, their meaning is not.
    for end, fmt in (("src", "i32"), ("dst", "bf16")):
        wrong = calls(lower(PROVABLE))
        wrong[index] = with_stream(wrong[index], end, format=format_named(fmt))
        assert proof(wrong) is None, (end, fmt)


def test_natural_map_of_permuted_operations() -> None:
    # Order does not matter where nothing overlaps.
    assert proof(calls(lower(PROVABLE))[::-1]) is not None


def test_natural_map_fails_for_crossed_rows() -> None:
    first, second, *rest = calls(lower(PROVABLE))
    crossed = [
        with_stream(first, "src", address=second.sources[0].address),
        with_stream(second, "src", address=first.sources[0].address),
        *rest,
    ]
    assert proof(crossed) is None


def test_natural_map_of_different_pitches() -> None:
    model = Cast("f32", "i32", 3, 130, 144, 0, 65536, dst_declared=160)
    assert proof(calls(lower(model)), model) is not None
    # In place such a map moves rows onto others: all at once is not one after the other.
    model = Cast("f32", "i32", 2, 64, 128, 0, 0, dst_declared=64)
    assert proof(calls(lower(model)), model) is None


def test_natural_map_in_place() -> None:
    model = Cast("f32", "i32", 3, 130, 144, 0, 0)
    assert proof(calls(lower(model)), model) is not None
    narrower = Cast("f32", "f16", 2, 64, 64, 0, 0)
    assert proof(calls(lower(narrower)), narrower) is None


def test_random_changes_never_keep_a_wrong_proof() -> None:
    """Any random change that the proof lets through must leave the bytes as they are."""
    rng = np.random.default_rng(5)
    right = calls(lower(PROVABLE))
    for _ in range(400):
        wrong = list(right)
        place = int(rng.integers(len(wrong)))
        name = str(rng.choice(["address", "repeat_stride", "block_stride", "mask", "repeats", "lanes"]))
        delta = int(rng.integers(-3, 4)) * (int(rng.choice([1, 2, 4, 32, 128, 256])) if name == "address" else 1)
        if name in ("address", "repeat_stride", "block_stride"):
            end = str(rng.choice(["src", "dst"]))
            stream = wrong[place].destination if end == "dst" else wrong[place].sources[0]
            wrong[place] = with_stream(wrong[place], end, **{name: getattr(stream, name) + delta})
        elif name == "mask":
            wrong[place] = dataclasses.replace(wrong[place], mask=wrong[place].mask ^ 1 << int(rng.integers(130)))
        else:
            wrong[place] = dataclasses.replace(wrong[place], **{name: getattr(wrong[place], name) + delta})
        if proof(wrong) is not None:
            assert places_of(wrong) == places_of(right), wrong[place]


def places_of(operations: list[StridedInstruction]) -> dict[int, tuple[int, ...]]:
    """Destination byte -> source byte of every lane of every operation, by the definition of docs/reference/a2a3.md
    section 2.1.
    """
    found: dict[int, list[int]] = {}
    for operation in operations:
        for repeat, lane in product(range(operation.repeats), range(operation.lanes)):
            if not operation.mask >> lane & 1:
                continue
            ends = []
            for stream, size in ((operation.destination, 2), (operation.sources[0], 4)):
                block, rest = divmod(lane * size, 32)
                ends.append(stream.address + 32 * (repeat * stream.repeat_stride + block * stream.block_stride) + rest)
            found.setdefault(ends[0], []).append(ends[1])
    return {dst: tuple(sources) for dst, sources in found.items()}

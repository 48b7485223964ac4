"""Transfers: startup and rate, exact arithmetic, order. Loads against the measured rows of docs/reference/a2a3.md
section 6.3.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

import pytest
from engine_trees import a2a3, causes, load, singly, store

from castsim.engines import simulate


@pytest.mark.parametrize(
    ("transfers", "size", "measured", "tolerance"),
    [
        (1, 65536, 776, 0),
        (1, 65024, 773, 1),  # 264 + 508 = 772
        (1, 32512, 519, 1),
        (1, 16256, 392, 1),
        (8, 8192, 2624, 0),
        (32, 512, 8576, 0),
        (32, 1024, 8704, 0),
    ],
)
def test_loads_take_the_measured_cycles(transfers, size, measured, tolerance):
    timing = simulate(singly(*[load(0, size) for _ in range(transfers)]), a2a3())
    assert abs(timing.total - 1 - measured) <= tolerance  # one cycle to issue the first
    assert causes(timing, "MTE2") == {"empty": 1, "memory latency": 264 * transfers, "busy": transfers * size // 128}


@pytest.mark.parametrize("rate", ["0.64", "12.8", "16.36", "31.99", "64", "128", "594.3"])
@pytest.mark.parametrize("size", [1, 32, 33, 96, 160, 1000, 4096])
def test_durations_are_exact_and_rounded_half_up(rate, size):
    blocks = -(-size // 32)
    last = floor((blocks - 1) * 32 / Fraction(rate))  # cycle of the last block, which needs it whole
    stream = max(floor(size / Fraction(rate) + Fraction(1, 2)), last + 1)
    for transfer, target, pipe in (
        (load(0, size), a2a3(load=(5, rate)), "MTE2"),
        (store(0, size), a2a3(store=(5, rate)), "MTE3"),
    ):
        timing = simulate(singly(transfer), target)
        conflict = causes(timing, pipe).get("bank conflict", 0)  # above 512 bytes per cycle ports are the limit
        assert conflict == (max(0, -(-blocks // 16) - stream) if rate == "594.3" else 0)
        assert timing.total == 1 + 5 + stream + conflict
        assert causes(timing, pipe)["busy"] == stream


def test_a_store_streams_first_and_waits_for_memory_then():
    # 128 bytes at 16.36 per cycle: 7.82, rounded 8; then 107.
    timing = simulate(singly(store(0, 128)), a2a3())
    assert timing.total == 1 + 8 + 107
    assert causes(timing, "MTE3") == {"empty": 1, "busy": 8, "memory latency": 107}


def test_bursts_take_whole_blocks_and_lie_a_pitch_apart():
    # 32 bursts of 240 bytes are 7680 bytes: 60 cycles at 128, whatever the pitch as long as groups differ.
    timing = simulate(singly(load(0, 240, bursts=32, pitch=256)), a2a3())
    assert timing.total == 1 + 264 + 60


def test_bursts_in_one_bank_group_wait_for_its_port():
    # 8 blocks, 512 bytes apart, all in group 0; four ask per cycle, one passes: 8 cycles instead of 2.
    timing = simulate(singly(load(0, 32, bursts=8, pitch=512)), a2a3())
    assert timing.total == 1 + 264 + 8
    assert causes(timing, "MTE2") == {"empty": 1, "memory latency": 264, "busy": 2, "bank conflict": 6}
    # A store asks for one block every other cycle at most, so the port is no limit.
    assert simulate(singly(store(0, 32, bursts=8, pitch=512)), a2a3()).total == 1 + 16 + 107


def test_transfers_of_one_pipe_never_overlap_and_those_of_two_do():
    # 512 bytes: load 264 + 4, from 1 and then from 269. Store: 512 / 16.36 = 31.3, 31 + 107, issued third.
    timing = simulate(singly(load(0, 512), load(512, 512), store(8192, 512)), a2a3())
    assert [(o.start, o.end) for o in timing.operations] == [(1, 269), (269, 537), (3, 3 + 31 + 107)]

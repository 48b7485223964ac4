"""The rules of timing by themselves, on numbers worked out by hand, and that each of them stands once."""

from __future__ import annotations

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from kit.paths import ROOT

from castsim.execution import transfer_timing as transfers
from castsim.execution.transfer_timing import NO_TICK, TICKS
from castsim.machines.strided import strided_instructions as strided
from castsim.machines.vector_function import function_timing as functions
from castsim.machines.vliw import stage_latency as vliw
from castsim.targets.loader import load_target

SOURCES = sorted((ROOT / "simulator").rglob("*.py"))


@pytest.mark.parametrize("tick", [0, 1, 49, 50, 99, 100, 101, 149, 150, 12_345])
def test_ticks_become_cycles(tick: int) -> None:
    cycles = Fraction(tick, TICKS)
    assert transfers.cycle_from(tick) == -(-cycles.numerator // cycles.denominator)
    assert transfers.rounded(tick) == (cycles + Fraction(1, 2)).__floor__()


@pytest.mark.parametrize(("total", "rate"), [(32, 12_800), (33, 12_800), (6400, 9_137), (96, 6400), (0, 100)])
def test_a_rate_lets_bytes_through(total: int, rate: int) -> None:
    exact = Fraction(total * 100, rate)
    assert transfers.let_through(total, rate, 100) == exact.__floor__()
    assert transfers.streaming(total, rate, 100) == (exact + Fraction(1, 2)).__floor__()


def test_a_transfer_ends_behind_the_last_block_at_the_port() -> None:
    assert transfers.transfer_end(14, 13) == 14
    assert transfers.transfer_end(14, 16) == 17  # held for three cycles at the port


def test_a_repeat_waits_for_its_slowest_operand() -> None:
    assert strided.passes(5, 3, 4) == 5
    assert strided.passes(5, 7, 9) == 9
    assert strided.next_repeat(12, 10) == 12
    assert strided.next_repeat(12, 14) == 15
    # Written one cycle after its port: a repeat that asks in time and passes at once is in the buffer when due.
    assert strided.written(strided.write_asked(strided.results_due(12, 13))) == 25


def test_a_load_hides_its_wait_behind_those_before_it() -> None:
    assert functions.loaded(100, 0, 150, 0, 900) == 1000
    assert functions.loaded(100, 2, 150, 200, 900) == 1300
    assert functions.loaded(100, 2, 150, 400, 900) == 1400


def test_an_opened_path_does_not_wait_for_lines() -> None:
    assert functions.path_through(500, 800, 120, opened=False) == 920
    assert functions.path_through(900, 800, 120, opened=False) == 1020
    assert functions.path_through(500, 800, 120, opened=True) == 620


def test_stores_leave_apart_and_behind_their_barriers() -> None:
    assert functions.store_start(700, NO_TICK, 100, NO_TICK, 300) == 700
    assert functions.store_start(700, 650, 100, NO_TICK, 300) == 750
    assert functions.store_start(700, NO_TICK, 100, 600, 300) == 900
    assert functions.store_start(700, 650, 100, 600, 300) == 950
    assert functions.store_start(1200, 650, 100, 600, 300) == 1200


def test_a_trip_keeps_the_front_end() -> None:
    assert (functions.busy_of_hold(100), functions.busy_of_hold(260), functions.busy_of_hold(40)) == (100, 100, 40)
    assert (functions.branch_rest(400, 260), functions.branch_rest(400, 500)) == (140, 0)
    # 26 cycles of turning, of which each cycle beyond the first of a hold of 5 hides 1.5.
    assert functions.row_turn(2600, 150, 500) == 2000
    assert functions.row_turn(300, 150, 500) == 0


def test_a_row_writes_whole_bytes() -> None:
    assert functions.bytes_of_row(100, 128, 64) == 200
    assert functions.bytes_of_row(3, 32, 64) == 2  # three numbers of 4 bits


def test_a_group_serves_fewer_reads_beside_a_write() -> None:
    facts = (2, 1, 1)
    free = {
        (reads, writes): functions.group_has_room(reads, writes, 0, *facts) for reads in (0, 1, 2) for writes in (0, 1)
    }
    assert free == {(0, 0): True, (0, 1): True, (1, 0): True, (1, 1): False, (2, 0): False, (2, 1): False}
    assert [functions.group_has_room(reads, 0, 1, *facts) for reads in (0, 1, 2)] == [True, True, False]
    assert not functions.group_has_room(0, 1, 1, *facts)


def test_the_head_is_the_same_for_arrays() -> None:
    sizes = np.arange(0, 4096, 32)
    facts = (3, 1250, 256, 512, 8)
    assert functions.head_penalty(sizes, *facts).tolist() == [
        functions.head_penalty(int(size), *facts) for size in sizes
    ]
    assert functions.head_penalty(128, *facts) == 3 * 1250
    assert functions.head_penalty(256, *facts) == 0  # whole lines
    assert functions.head_penalty(640, *facts) == 2 * 1250
    assert functions.head_penalty(1152, *facts) == 1250
    assert functions.head_penalty(320, *facts) == 0  # the bit of a bank
    assert functions.head_penalty(1664, *facts) == 0  # fallen to nothing


def test_data_is_there_when_it_has_crossed_and_no_sooner_than_its_latency() -> None:
    for latency, element in ((30, 3), (3, 30)):
        memory = replace(vliw.MemoryTiming.of(load_target("gaudi2")), latency=latency, element=element)
        assert memory.load_cycles(4, element=False) == max(4, latency)
        assert memory.load_cycles(4, element=True) == max(4, element)


# ---------------------------------------------------------------------------------------------------- each stands once


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def made_at_top_level(source: str) -> set[str]:
    """The names of what a module makes at its top level."""
    names = set()
    for node in ast.parse(source).body:
        names.add(getattr(node, "name", ""))
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            names |= {leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name)} if target else set()
    return names


def defining(name: str) -> set[str]:
    """The modules at whose top level something of this name is made."""
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    return {module_of(path) for path, text in texts.items() if name in text and name in made_at_top_level(text)}


@pytest.mark.parametrize("name", ["TICKS", "_TICKS", "ticks", "NO_TICK", "head_penalty", "store_start", "path_through"])
def test_a_rule_stands_in_one_module(name: str) -> None:
    homes = defining(name)
    assert len(homes) == (0 if name.startswith("_") else 1)
    assert not any(home.startswith("castsim.engines") for home in homes)


def test_engines_share_nothing_but_what_stands_outside_of_them() -> None:
    for path in SOURCES:
        parts = module_of(path).split(".")
        if parts[:2] == ["simulator", "engines"] and len(parts) > 3:
            kind = parts[2].split("_")[0]  # event or fast
            others = {name for name in imported(path) if name.startswith("castsim.engines.")}
            others -= {
                name for name in others if name.startswith("castsim.engines.event_pipes")
            }  # what cycles add up to
            assert all(name.split(".")[2].split("_")[0] == kind for name in others), path


def test_nothing_else_looks_into_an_engine() -> None:
    for path in SOURCES:
        if "engines" not in path.parts:
            assert not any(name.startswith("castsim.engines.") for name in imported(path)), path

"""Which accesses to the buffer exclude each other in a cycle: what the facts say, both engines do, what-ifs lift."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from statistics import fmean

import pytest
from kit import fast_programs, strided_works
from kit.engine_outcome import outcome
from kit.engine_trees import KIBI, Recorder, a2a3, cast, causes, load, singly, store
from kit.paths import PROGRAMS

from castsim import estimate, run
from castsim.__main__ import main
from castsim.engines import simulate
from castsim.execution.interpreter.tile_allocation import apart_addresses
from castsim.execution.timing import Cause
from castsim.isa.errors import EngineError
from castsim.isa.formats import format_named
from castsim.machines.mechanisms import lowerer_of
from castsim.reports.lifted_limits import what_if
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.description import lifted, with_facts, with_options
from castsim.targets.loader import load_target
from castsim.tools.accuracy.accuracy_assessment import assess
from castsim.tools.accuracy.measured_rows import read_table
from castsim.tools.estimate.cast_estimates import SCALAR, CastShape, OperandPlacement, TileCastRequest, timed_alone
from castsim.tools.estimate.operation_estimates import estimate_tile_operation
from castsim.tools.estimate.strided import further_repeats
from castsim.tools.estimate.tile_estimates import TileEstimator, estimator_of

SEEDS, LOOPED = (4000, 800) if "CASTSIM_THOROUGH" in os.environ else (240, 10)
LIMIT = 10**6
EXCLUSIONS = tuple(product((True, False), repeat=2))
COUNTS = ((1, 1, 1), (2, 2, 1), (2, 1, 2), (3, 0, 1), (4, 2, 3), (10**6, 10**6, 10**6))
"""Reads of a group without a write, reads beside a write, writes."""

each_exclusion = pytest.mark.parametrize("exclusions", EXCLUSIONS, ids=str)
each_count = pytest.mark.parametrize("counts", COUNTS, ids=str)
each_engine = pytest.mark.parametrize("engine", ["event", "fast"])


def excluding(target, exclusions):
    ports, banks = exclusions
    return with_facts(target, {"banks.exclusive_ports": ports, "banks.exclusive_banks": banks})


def counting(target, counts):
    names = ("reads_per_group", "reads_beside_write", "writes_per_group")
    return with_facts(target, {f"banks.{name}": count for name, count in zip(names, counts, strict=True)})


def conflicts(timing):
    return sum(causes(timing, pipe).get("bank conflict", 0) for pipe in timing.pipes)


# ---------------------------------------------------------------------------------------------- what the facts mean


@each_exclusion
def test_blocks_pass_as_soon_as_none_that_they_exclude_is_before_them(exclusions):
    # Block b lies in group b mod 16, its bank changes every 64 KiB (docs/reference/a2a3.md section 8); both
    # written anew here.
    ports, banks = exclusions
    waited = 0
    for seed in range(SEEDS):
        tree, target = fast_programs.strided(seed, small=True)
        recorder = Recorder()
        if isinstance(outcome(tree, excluding(target, exclusions), recorder, engine="event", max_cycles=LIMIT), str):
            continue  # a deadlock
        served: dict[object, int] = {}
        for cycle, _, _, address, write, asked in sorted(recorder.blocks, key=lambda block: (block[5], block[2])):
            group, bank = address // 32 % 16, address // (64 * KIBI) % 3
            before = [served.get(("port", group, write), -1)] if ports else []
            before += [served.get(("bank", group, bank, not write), -1)] if banks else []
            assert cycle == max([asked, *(last + 1 for last in before)]), seed
            served["port", group, write] = served["bank", group, bank, write] = cycle
            waited += cycle - asked
    assert (waited > 0) == (ports or banks)


@each_engine
@pytest.mark.parametrize(("stride", "apart"), [(16, 8), (8, 4), (4, 2), (1, 2), (17, 2)])
def test_reads_of_one_group(engine, stride, apart):
    # docs/reference/a2a3.md section 8: 8 blocks in one group take 8 cycles per repeat, in two groups 4; a repeat takes
    # 2 anyway.
    tree = singly(cast(4, block_stride=stride, repeat_strides=(1, 4)))
    for ports, banks in EXCLUSIONS:
        timing = simulate(tree, excluding(a2a3(), (ports, banks)), engine=engine)
        each = apart if ports else 2
        assert timing.total == 1 + 9 + 4 * each + 14
        assert conflicts(timing) == 4 * (each - 2)


@each_engine
@pytest.mark.parametrize(("make", "pipe"), [(load, "MTE2"), (store, "MTE3")])
def test_accesses_of_one_group_by_a_transfer(engine, make, pipe):
    # 16 bursts of a block each, 512 bytes apart: all in group 0 and bank 0. 128 bytes per cycle are 4 cycles, one
    # block per cycle is 16; whatever the blocks do, startup and issue are the same.
    target = a2a3(load=(10, "128"), store=(10, "128"))
    for ports, banks in EXCLUSIONS:
        timing = simulate(singly(make(0, 32, bursts=16, pitch=512)), excluding(target, (ports, banks)), engine=engine)
        assert timing.total == 1 + 10 + (16 if ports else 4)
        assert causes(timing, pipe).get("bank conflict", 0) == (12 if ports else 0)


@each_engine
@pytest.mark.parametrize(("source", "waits"), [(0, 1), (96, 1), (512, 1), (128, 0), (64 * KIBI, 0), (128 * KIBI, 0)])
def test_a_read_and_a_write_of_one_bank(engine, source, waits):
    # Head 0, repeat 1, tail 3: operation k repeats in cycle 1 + k, its blocks are written in 4 + k. Operation 3 reads
    # in 4, when operation 0 writes blocks 0 to 3 (groups 0 to 3, bank 0): it is one cycle late if it reads bank 0 of
    # one of these groups (its own blocks start at `source`; at 128 they are 4 to 11). End: 4 + 1 (+ 1) + 3.
    others = [cast(1, 64 * KIBI + 256 * k, 160 * KIBI + 128 * k) for k in range(2)]
    tree = singly(cast(1, 65 * KIBI, 0), *others, cast(1, source, 170 * KIBI))
    for ports, banks in EXCLUSIONS:
        timing = simulate(tree, excluding(a2a3(vconv=(0, 1, 3)), (ports, banks)), engine=engine)
        assert timing.total == 8 + waits * banks
        assert conflicts(timing) == waits * banks


@each_count
def test_groups_pass_no_more_than_they_may(counts):
    reads, beside, writes = counts
    most = 0
    for seed in range(SEEDS // 8):
        tree, target = fast_programs.functions(seed, small=True)
        recorder = Recorder()
        outcome(tree, counting(target, counts), recorder, engine="event", max_cycles=LIMIT)
        served = Counter((cycle, address // 32 % 8, write) for cycle, _, _, address, write, _ in recorder.blocks)
        for (cycle, group, write), count in served.items():
            assert count <= (writes if write else beside if served[cycle, group, True] else reads)
        late = {(asked, cycle) for cycle, *_, asked in recorder.blocks if cycle > asked}
        assert not late or reads < 10**6, seed
        most = max([most, *(count for (*_, write), count in served.items() if write)])
    assert most > 1 or writes == 1  # the facts matter here


@each_engine
@pytest.mark.parametrize(("writes", "cycles"), [(1, 16), (2, 8), (3, 6), (4, 4), (100, 4)])
def test_writes_of_one_group_by_counts(engine, writes, cycles):
    # 16 blocks of group 0 (256 bytes apart), four of them ask per cycle.
    target = load_target("a5")
    facts = {"startup_cycles": 10, "bytes_per_cycle": 128, "descriptor_cycles": 0}
    facts = {f"timing.load.{name}": fact for name, fact in facts.items()} | {"banks.writes_per_group": writes}
    timing = simulate(singly(load(0, 32, bursts=16, pitch=256)), with_facts(target, facts), engine=engine)
    issue = target.timing.scalar.issue_cycles
    assert timing.total == issue + 10 + cycles
    assert conflicts(timing) == cycles - 4


# ------------------------------------------------------------------------------------------------ engines, facts read


@each_exclusion
def test_random_programs_agree_whatever_excludes_what(exclusions):
    other = 0
    for seed in range(SEEDS):
        tree, target = fast_programs.strided(seed, small=True)
        target, shipped = excluding(target, exclusions), target
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT) == expected, seed
        other += expected != outcome(tree, shipped, engine="fast", max_cycles=LIMIT)
    assert (other > 0) == (exclusions != (True, True))  # the facts matter here
    for seed in range(LOOPED):
        tree, target = fast_programs.strided(seed)
        target = excluding(target, exclusions)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT) == expected, seed
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT, skip=False) == expected, seed


@each_count
def test_random_functions_agree_whatever_a_group_serves(counts):
    for seed in range(SEEDS // 4):
        tree, target = fast_programs.functions(seed, small=True)
        target = counting(target, counts)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, engine="fast", max_cycles=LIMIT) == expected, seed


@pytest.mark.skipif("CASTSIM_THOROUGH" not in os.environ, reason="compiles the machine: set CASTSIM_THOROUGH=1")
@each_exclusion
def test_compiled_code_reads_the_facts(exclusions, monkeypatch):
    pytest.importorskip("numba")
    driving = pytest.importorskip("castsim.engines.fast_dataflow.tile_simulation")
    monkeypatch.setattr(driving.Driver, "pays_to_compile", lambda self, _: self.step is driving.run)
    monkeypatch.setattr("castsim.engines.fast_dataflow.tile_simulation._PROGRESS_INTERVAL", 3)
    for seed, make in product(range(200), (fast_programs.strided, fast_programs.functions)):
        tree, target = make(seed, small=seed % 3 > 0)
        counts = COUNTS[seed % len(COUNTS)]
        target = excluding(target, exclusions) if make is fast_programs.strided else counting(target, counts)
        expected = outcome(tree, target, engine="event", max_cycles=LIMIT)
        assert outcome(tree, target, max_cycles=LIMIT) == expected, seed


def test_some_shipped_program_or_operation_depends_on_each_fact():
    target = load_target("a2a3")
    select = strided_works.example("tsel")  # its selections read whole groups
    assert strided_works.cycles(excluding(target, (False, True)), select) < strided_works.cycles(target, select)
    program = PROGRAMS / "bank_conflict.pto"
    one_less = run(program, excluding(target, (True, False)), timing_only=True).cycles + 1
    assert one_less == run(program, timing_only=True).cycles


# -------------------------------------------------------------------------------------------------------- what-ifs


@each_engine
def test_lifting_all_conflicts_gains_the_cycles_that_they_are_said_to_cost(engine):
    # One pipe alone on the critical path: what it lost is what the run lost.
    tree = singly(cast(40, block_stride=16, repeat_strides=(1, 4)))
    before = simulate(tree, a2a3(), engine=engine)
    gained = {
        name: before.total - simulate(tree, lifted(a2a3(), name), engine=engine).total
        for name in ("no-bank-conflicts", "infinite-ports", "reads-beside-writes")
    }
    assert gained == {"no-bank-conflicts": 240, "infinite-ports": 240, "reads-beside-writes": 0}
    assert conflicts(before) == 40 * (8 - 2)
    assert conflicts(simulate(tree, lifted(a2a3(), "no-bank-conflicts"), engine=engine)) == 0


@pytest.mark.parametrize("make", [fast_programs.strided, fast_programs.functions])
def test_nothing_waits_for_a_bank_once_conflicts_are_lifted(make):
    had = 0
    for seed in range(SEEDS // 4):
        tree, target = make(seed, small=True)
        with suppress(EngineError):  # a deadlock: there is one whatever waits for banks
            had += conflicts(simulate(tree, target, max_cycles=LIMIT))
            assert conflicts(simulate(tree, lifted(target, "no-bank-conflicts"), max_cycles=LIMIT)) == 0, seed
    assert had > 0


def test_the_shipped_conflict_is_found(capsys):
    # The derivation in bank_conflict.expected: one read and one write meet in a bank, everything behind is 1 late.
    gains = {gain.name: gain.gained for gain in what_if(PROGRAMS / "bank_conflict.pto")}
    assert (gains["no-bank-conflicts"], gains["infinite-ports"], gains["reads-beside-writes"]) == (1, 0, 1)
    program = str(PROGRAMS / "bank_conflict.pto")
    assert main(["run", program, "--timing-only", "--what-if", "all", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = next(each for each in document["what_if"] if each["name"] == "no-bank-conflicts")
    assert found["facts"] == {"banks.exclusive_ports": False, "banks.exclusive_banks": False}
    lost = sum(pipe["causes"].get("bank_conflict", 0) for pipe in document["pipes"].values())
    assert found["gained_cycles"] == document["total_cycles"] - found["total_cycles"] == lost == 1


def test_a_target_without_such_a_limit_says_what_it_has(capsys):
    program = str(PROGRAMS / "tpc_f32_i16_quantise_greco.tpc")
    assert main(["run", program, "--timing-only", "--what-if", "no-bank-conflicts"]) == 2
    said = capsys.readouterr().err
    assert "greco has no what-if 'no-bank-conflicts'" in said
    assert "deep-global-queue" in said


@pytest.mark.parametrize("name", ["a2a3", "a5"])
def test_facts_must_be_what_they_can_be(name, tmp_path, capsys):
    wrong = {"a2a3": 'exclusive_banks = "often"', "a5": "writes_per_group = 0"}[name]
    file = tmp_path / "edited.toml"
    file.write_text(f'base = "{name}"\n[banks]\n{wrong}\n')
    assert main(["targets", str(file)]) == 2
    assert wrong.split(maxsplit=1)[0] in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------- estimates

SHAPES = ((1, 64, 64), (3, 192, 192), (20, 704, 704), (90, 192, 256), (150, 64, 256))
"""Rows, columns and row stride of the destination; the last ones leave no room for banks of their own."""
PAIRS = {"a2a3": (("f32", "f32"), ("f32", "f16"), ("f16", "f32")), "a5": (("f32", "f16"), ("f16", "f32"))}


@each_exclusion
def test_estimates_are_simulations_whatever_excludes_what(exclusions):
    # With a repeat in every cycle, writes meet the reads of later repeats where operands share banks.
    target = excluding(a2a3(vconv=(9, 1, 15)), exclusions)
    found = [_compare(target, *pair) for pair in PAIRS["a2a3"]]
    assert any(lost > 0 for lost in found) == exclusions[1]
    assert all(_is_closed(target, *pair) for pair in PAIRS["a2a3"])


@each_count
def test_estimates_are_simulations_whatever_a_group_serves(counts):
    target = counting(load_target("a5"), counts)
    for pair in PAIRS["a5"]:
        _compare(target, *pair)
    assert _is_closed(target, "f32", "f16")


def _compare(target, src, dst):
    """Compare estimates with simulations; return the cycles of bank conflicts."""
    lowerer = lowerer_of(target)
    request = TileCastRequest(format_named(src), format_named(dst), None, None, False)
    placement, lost = OperandPlacement.of(target, lowerer, request), 0
    for rows, cols, stride in SHAPES:
        shape = CastShape(rows, cols, stride, rows, cols, cols)
        expected = timed_alone(target, lowerer.cast(placement.cast(lowerer, shape)), "cast")
        assert estimate(src, dst, rows, cols, dst_row_stride=stride, target=target) == expected
        lost += expected.causes.get(Cause.BANK_CONFLICT, 0)
    return lost


def _is_closed(target, src, dst):
    """Whether a small shape is estimated without a simulation."""
    estimator = estimator_of(target, src, dst, None, None, False)
    assert isinstance(estimator, TileEstimator)
    return estimator.is_closed(CastShape(3, 192, 192, 3, 192, 192), SCALAR)


# Tiles without addresses: the operands of one operation share no bank (docs/reference/a2a3.md section 8).


def distances(work: Sequence[int]) -> tuple[int, int]:
    """Return how far two sources are apart modulo 512, and in how many 64 KiB result and sources lie together."""
    first, second, result = work
    return (second - first) % 512, sum(source // 65536 == result // 65536 for source in (first, second))


@pytest.mark.parametrize("size", [256, 8192, 16384, 32768])
def test_operands_of_one_operation_lie_in_different_banks(size: int) -> None:
    rule = load_target("a2a3").tile_placement
    assert rule is not None
    pairs = [(0, 1, False), (0, 2, True), (1, 2, True)]
    placed = apart_addresses([size] * 3, pairs, rule, 196608)
    assert placed is not None and placed[1] == 0
    assert distances(placed[0]) == (256, 0)
    assert apart_addresses([65536] * 3, pairs, rule, 196608) is None  # they fill the buffer


@pytest.mark.parametrize("table", ["tiles", "banks"])
def test_figures_of_the_vendors_simulators_are_met(table: str) -> None:
    rows = assess(load_target("a2a3"), read_table(SHIPPED / f"a2a3_measured_{table}.csv")).rows
    assert fmean(abs(row.error) for row in rows) <= 2
    assert max(abs(row.error) for row in rows) <= 5


def test_consecutive_tiles_are_an_option_and_the_estimate_names_the_placement() -> None:
    """85 cycles were measured for 64 repeats; consecutive sources share groups and take two cycles a repeat."""
    chip = load_target("a2a3")
    apart = estimate_tile_operation("tadd", "f32", 1, 4096, target=chip)
    consecutive = with_options(chip, {"tile_placement": "consecutive"})
    behind = estimate_tile_operation("tadd", "f32", 1, 4096, target=consecutive)
    full = estimate_tile_operation("tadd", "f32", 1, 16384, target=chip)
    assert (apart.placement, behind.placement, full.placement) == ("apart", "consecutive", "in place")
    assert behind.cycles - apart.cycles >= 64


def test_held_out_operations_above_ten_percent_have_a_reason() -> None:
    rows = assess(load_target("a2a3"), read_table(SHIPPED / "a2a3_measured_operations.csv")).unfitted
    assert fmean(abs(row.error) for row in rows) <= 8
    assert [row.row.span.line for row in rows if abs(row.error) > 10 and not row.reason] == []


@pytest.mark.parametrize("operation", ["tadd", "tmuladddst"])
@pytest.mark.parametrize("second", [0x4000, 0x4080, 0x4100])
def test_engines_agree_on_repeats_in_conflict(operation: str, second: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cycles = []
    for engine in ("event", "fast"):
        monkeypatch.setattr("castsim.tools.estimate.cast_estimates.simulate", partial(simulate, engine=engine))
        cycles.append(further_repeats(load_target("a2a3"), operation, format_named("f32"), 32, (0, second, 0x8000), 1))
    assert cycles[0] == cycles[1]

"""Which instruction lost most cycles: counted by hand in small runs, the same however many trips an engine skips."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from bundle_trees import NOWHERE, Mix, random_tree
from command_output import document_of, out_of
from counted_work import at_most
from sample_arguments import scalars

from castsim import run
from castsim.execution.timing import WAITING, Cause, Execution, OperationTiming, PipeTiming, Timing, repeated
from castsim.execution.tree import Block, Instruction, Loop, Lowered, Tree
from castsim.isa.errors import Span
from castsim.machines.vliw.fast_engine import simulate_bundles
from castsim.machines.vliw.stage_latency import BundleOperation
from castsim.reports.run_report import Loss, lost_most
from castsim.running.program_runs import source_lines
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
SAMPLES = sorted(PROGRAMS.rglob("*.pto"))
LIMITS: Mapping[tuple[Cause, str], tuple[str, str]] = {
    (Cause.MEMORY_LATENCY, "MTE2"): ("instant-loads", "[timing.load]\nstartup_cycles = 0"),
    (Cause.MEMORY_LATENCY, "MTE3"): ("instant-stores", "[timing.store]\nstartup_cycles = 0"),
    (Cause.SERIALISING_BRANCH, "V"): ("free-branches", "[timing.branch]\ncycles = 0"),
    (Cause.LOOP_TURNAROUND, "V"): (
        "free-loops",
        '[timing.loads]\npost_update_cycles = 0\nsource = "lifted"\nstatus = "assumed"\n'
        "[timing.loops]\nsetup_cycles = 0\nrow_loop_cycles = 0\nturnaround_cycles = 0\nhalf_byte_row_cycles = 0",
    ),
    (Cause.PORT, "V"): ("fast-special-functions", "[timing.special_function]\nport_cycles = { f32 = 0, f16 = 0 }"),
}
"""The limit behind a cause on a pipe: its name for `--what-if`, and the description of a chip that lacks it."""
NO_LIMIT = {Cause.BARRIER, Cause.DEPENDENCE, Cause.DRAIN, Cause.STORE_BARRIER}
"""Causes that the glossary says have no limit of their own."""

GAUDI = load_target("gaudi")


def instruction(text: str, line: int, pipe: str = "V") -> Instruction:
    return Instruction(text, pipe, Span("x.pto", line, 1), mnemonic=text.split(maxsplit=1)[0])


def timing_of(*waits: tuple[int, str, dict[Cause, int]]) -> Timing:
    """One operation per entry: the number of its instruction, its pipe, its causes."""
    executions = tuple(Execution(number, 0, 1) for number, _, _ in waits)
    operations = tuple(
        OperationTiming(index, index, pipe, "x", 0, 1, causes) for index, (_, pipe, causes) in enumerate(waits)
    )
    return Timing(1, {"V": PipeTiming({})}, executions, operations, frozenset())


TREE = Tree(Block(()), (instruction("tcvt a", 3), instruction("tadd b", 4), instruction("tload c", 5)), False)


def test_all_executions_of_an_instruction_count_together() -> None:
    found = lost_most(
        TREE,
        timing_of(
            (0, "V", {Cause.BUSY: 90, Cause.FILL: 9}),
            (1, "V", {Cause.BANK_CONFLICT: 4, Cause.FILL: 2}),
            (1, "V", {Cause.BANK_CONFLICT: 1, Cause.FILL: 3, Cause.EMPTY: 50}),
        ),
        "S",
    )
    assert found == Loss(TREE.instructions[1], {Cause.BANK_CONFLICT: 5, Cause.FILL: 5})
    assert found.cause is Cause.FILL  # of equals the first in the order of causes
    assert found.sentence() == "Line 4 (tadd) leaves V idle for 10 cycles: fill, 5 of them"


def test_the_pipe_that_issues_loses_nothing_and_work_is_no_loss() -> None:
    assert lost_most(TREE, timing_of((0, "S", {Cause.BARRIER: 99}), (1, "V", {Cause.BUSY: 7})), "S") is None
    found = lost_most(TREE, timing_of((0, "S", {Cause.BARRIER: 99}), (2, "V", {Cause.DRAIN: 7})), "S")
    assert found.sentence() == "Line 5 (tload) leaves V idle for 7 cycles: drain"


def test_waiting_for_other_pipes_is_their_loss() -> None:
    found = lost_most(TREE, timing_of((2, "MTE3", {Cause.FLAG_WAIT: 900}), (0, "V", {Cause.FILL: 1})), "S")
    assert found == Loss(TREE.instructions[0], {Cause.FILL: 1})


def test_the_a5_cliff_of_padded_tiles_explains_itself() -> None:
    """docs/reference/a5.md section 6.2: serialising branches around every trip, 2n + 1 of 39.5 cycles per row of n
    trips.
    """
    result = run("programs/a5_f32_to_e4m3fn_padded.pto", timing_only=True)
    found = lost_most(result.loaded.tree, result.timing, "S")
    assert found.instruction.text.startswith("tcvt")
    assert found.cause is Cause.SERIALISING_BRANCH


@pytest.mark.parametrize("seed", range(40))
def test_what_was_skipped_counts_as_what_was_not(seed: int) -> None:
    assert isinstance(GAUDI, VliwTarget)
    tree = random_tree(Random(seed), Mix(trips=60))
    skipped, stepped = (simulate_bundles(tree, GAUDI, 10**9, skip=skip) for skip in (True, False))
    assert lost_most(tree, skipped, None) == lost_most(tree, stepped, None)
    assert source_lines(tree, skipped) == source_lines(tree, stepped)
    for records in (skipped.operations, skipped.executions):
        assert sum(times for _, _, times in repeated(records)) == len(records)


def test_a_thousand_million_trips_are_summed_up_at_once() -> None:
    load = BundleOperation((1, 0, 0, 0), ("ld_tnsr", "", "", ""), 1, 0, 4, 5, 0)
    body = Block((Lowered(0, Block((load,))),))
    tree = Tree(Block((Loop(10**9, body, ((), ())),)), (Instruction("ld_tnsr", "LOAD", NOWHERE),), False)
    timing = simulate_bundles(tree, GAUDI, 10**13)
    with at_most(10_000):
        found, lines = lost_most(tree, timing, None), source_lines(tree, timing)
    assert found is not None
    waited = timing.pipes["LOAD"].causes
    assert found.cycles == sum(cycles for cause, cycles in waited.items() if cause in found.causes)
    assert lines[0].executions == 10**9


def test_reports_tell_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "programs/f32_to_i16_partial.pto", "--in", "src=random:0"]
    shown = [line for line in out_of(capsys, words).splitlines() if " idle for " in line]
    document = document_of(capsys, *words)["lost_most"]
    (line,) = shown
    assert f"{document['lost_cycles']:,} cycles" in line
    assert f"Line {document['line']} " in line
    assert sum(document["causes"].values()) == document["lost_cycles"]
    assert document["causes"][document["cause"]] == max(document["causes"].values())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_what_the_glossary_says_about_losses_and_gains_is_true(path: Path, tmp_path: Path) -> None:
    """The entry `leaves ... idle` of docs/glossary.md, by a second run on a chip without the limit."""
    result = run(path, timing_only=True, args=scalars(path))
    found = lost_most(result.loaded.tree, result.timing, "S")
    assert found is not None
    cause, pipe = found.cause, found.instruction.pipe
    whole = result.timing.pipes[pipe].causes[cause]
    assert 0 < found.causes[cause] <= whole  # other lines may lose cycles to the same cause
    target = result.loaded.target
    if cause in NO_LIMIT or cause is Cause.FILL:  # heads are a table per class of instruction: one line cannot zero it
        assert cause is not Cause.FILL or "no-fill" in target.what_if
        return
    name, facts = LIMITS[cause, pipe]
    assert name in target.what_if
    chip = tmp_path / "lifted.toml"
    chip.write_text(f'base = "{target.name}"\nname = "lifted"\n\n{facts}\nsource = "lifted"\nstatus = "assumed"\n')
    lifted = run(path, chip, timing_only=True, args=scalars(path))
    assert lifted.timing.pipes[pipe].causes.get(cause, 0) == 0
    met, meet = (
        each.timing.pipes["V"].causes.get(Cause.BANK_CONFLICT, 0) if "V" in each.timing.pipes else 0
        for each in (result, lifted)
    )
    assert min(0, met - meet) <= result.cycles - lifted.cycles <= whole


@pytest.mark.parametrize("engine", ["fast", "event"])
def test_a_function_whose_stores_wait_at_its_own_barriers_is_occupied(engine: str) -> None:
    """docs/reference/a5.md section 6: every store of the fp8 casts stands behind a barrier of the function itself, so
    that no other pipe is what V waits for.
    """
    result = run("programs/a5_f32_to_e4m3fn_padded.pto", timing_only=True, engine=engine)
    for pipe in result.timing.pipes.values():
        assert sum(pipe.causes.values()) == result.cycles
    vector = result.timing.pipes["V"].causes
    assert vector[Cause.STORE_BARRIER] > 0
    assert Cause.BARRIER not in vector
    assert Cause.STORE_BARRIER not in WAITING

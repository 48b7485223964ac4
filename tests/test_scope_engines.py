"""Both engines on launches of micro programs: the same cycles, causes and operations; causes add up."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from a5_cases import A5, SPAN
from scope_works import compute, random_scope

from castsim.engines import simulate
from castsim.execution.dataflow.pipe_operations import FlagSignal, FlagWait, PipeBarrier, Transfer
from castsim.execution.tree import Access, Block, Instruction, Lowered, Operation, Tree
from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.function_launches import MicroFunction, time_scope
from castsim.machines.vector_function.launched_scope import Scope
from castsim.timing import Cause, Timing

PROGRAMS = 1000 if "CASTSIM_THOROUGH" in os.environ else 60
"""Seeded programs of a run."""


def program(rng: Random) -> Tree:
    """Launches between transfers, with flags or, without, waiting for each other's bytes."""
    flags = rng.random() < 0.5
    items: list[tuple[Operation, tuple[Access, ...]]] = []
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(0, 4096, 32)
        load = Transfer("MTE2", True, "x", 0, 256, start, 256, rng.randint(1, 4), 256)
        items.append((load, (Access("ub", start, start + 1024, write=True),)))
        if flags:
            items += [(FlagSignal("MTE2", "V", 0), ()), (FlagWait("V", "MTE2", 0), ())]
        touched = (Access("ub", 0, 8192, write=False), Access("ub", 0, 8192, write=True))
        items.append((MicroFunction("m", random_scope(rng), "V"), touched))
        if rng.random() < 0.3:
            items.append((PipeBarrier("V"), ()))
    instructions = tuple(Instruction(type(each).__name__, each.pipe, SPAN) for each, _ in items)
    nodes = tuple(Lowered(number, Block((each,)), bytes_) for number, (each, bytes_) in enumerate(items))
    return Tree(Block(nodes), instructions, interlocked=not flags)


def same(one: Timing, other: Timing) -> bool:
    """Whether two reports agree in everything."""
    return (
        (one.total, one.pipes, one.facts) == (other.total, other.pipes, other.facts)
        and list(one.executions) == list(other.executions)
        and list(one.operations) == list(other.operations)
    )


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_the_engines_agree(seed: int) -> None:
    tree = program(Random(seed))
    event, fast = (simulate(tree, A5, engine=name) for name in ("event", "fast"))
    assert same(event, fast)
    for pipe in event.pipes.values():
        assert sum(pipe.causes.values()) == event.total


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_the_causes_of_a_launch_add_up_and_so_do_its_lines(seed: int) -> None:
    timing = time_scope(random_scope(Random(seed)), A5)
    assert sum(timing.causes.values()) == timing.cycles
    lines: Counter[Cause] = Counter()
    for (_, cause), cycles in timing.by_line.items():
        lines[cause] += cycles
    assert lines == timing.causes


def test_an_instruction_without_a_latency_is_refused() -> None:
    scope = Scope()
    scope.issue(compute("vnothing"), (), 1)
    tree = Tree(
        Block((Lowered(0, Block((MicroFunction("m", scope, "V"),))),)),
        (Instruction("m", "V", SPAN),),
        interlocked=False,
    )
    for engine in ("event", "fast"):
        with pytest.raises(IllegalError, match="no latency for 'vnothing'") as error:
            simulate(tree, A5, engine=engine)
        assert "vadd" in error.value.legal

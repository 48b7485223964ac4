"""Loops cut into pieces issue, compute and take what walking every trip does, on random programs; and are short."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from kit.execution_programs import issued, touched, walk
from kit.loop_programs import NARROW, Maker
from kit.walker_cases import Plain, both, in_a_row, loop, program, step

from castsim.engines import simulate
from castsim.execution.interpreter import interpreter
from castsim.execution.interpreter.interpreter import Executed
from castsim.execution.interpreter.rerolling import LONGEST_PERIOD, Pieces
from castsim.execution.tree import Block, Loop, Lowered, Node
from castsim.isa.errors import CastsimError
from castsim.machines.mechanisms import compute_of
from castsim.targets.loader import load_target

PARTS = 4
THOROUGH = "CASTSIM_THOROUGH" in os.environ
PROGRAMS = 20_000 if THOROUGH else 140
TIMED = 1 if THOROUGH else 4
"""Of so many programs, one is simulated too."""
COMPUTED = 1_000 if THOROUGH else 25


def outcome(text: str, name: str) -> Any:
    """The walked program, or what it is refused for: the kind of error and its line."""
    try:
        return walk(text, target=load_target(name))
    except CastsimError as error:
        assert error.span is not None
        return type(error), error.span.line


def size(node: Node) -> int:
    """Executed instructions that a tree holds, whatever its loops repeat."""
    if isinstance(node, Loop):
        return size(node.body)
    return sum(map(size, node.items)) if isinstance(node, Block) else int(isinstance(node, Lowered))


@pytest.mark.parametrize("part", range(PARTS))
def test_pieces_are_the_walk_trip_by_trip(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    smaller = refused = 0
    for seed in range(part, PROGRAMS, PARTS):
        text = Maker(seed, narrow=seed % 3 == 0).text()
        name = "a5" if seed % 5 == 0 else "a2a3"
        found = outcome(text, name)
        with monkeypatch.context() as patch:
            patch.setattr(interpreter, "Pieces", Plain)
            patch.setattr(interpreter, "fold", in_a_row)
            plain = outcome(text, name)
        if not isinstance(plain, Executed):
            refused += 1
            assert type(found) is tuple and found[0] is plain[0], seed
            continue
        assert issued(found) == issued(plain), seed
        assert touched(found) == touched(plain), seed
        assert (found.arguments, found.warnings) == (plain.arguments, plain.warnings), seed
        smaller += size(found.tree.root) < size(plain.tree.root) / 2
        if seed // PARTS % TIMED:
            continue
        one, other = (simulate(each.tree, load_target(name)) for each in (found, plain))
        assert (one.total, one.pipes) == (other.total, other.pipes), seed
        assert list(one.executions) == [
            type(each)(number, each.start, each.end)
            for each, number in zip(other.executions, (each.instruction for each in one.executions), strict=True)
        ], seed
    # Neither is the rule: a program that is refused says little, one that stays as long says less.
    assert smaller > PROGRAMS / PARTS / 5
    assert refused < PROGRAMS / PARTS / 3


def test_pieces_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_target("a2a3")
    rng = np.random.default_rng(5)
    source = rng.integers(0, 256, (NARROW + 16) * 64 * 4, np.uint8)
    for seed in range(COMPUTED):
        text = Maker(seed, narrow=True).text()
        memories = []
        for each in (Pieces, Plain):
            with monkeypatch.context() as patch:
                patch.setattr(interpreter, "Pieces", each)
                tree = walk(text).tree
            buffer = np.zeros(target.memories["ub"].capacity_bytes, np.uint8)
            far = {"x": source.copy(), "y": np.zeros((NARROW + 16) * 64 * 2, np.uint8)}
            compute_of(target)(tree, buffer, far)
            memories.append((buffer.tobytes(), far["y"].tobytes()))
        assert memories[0] == memories[1], seed


BRANCH = "%q = arith.cmpi {0}, %i, {1} : index\nscf.if %q {{" + step("%c3") + "}} else {{" + step("%c0") + "}}\n"

HUGE = {
    "branch": BRANCH.format("slt", "%c3"),
    "branch from the end": "%d = arith.subi %n, %i : index\n%q = arith.cmpi sle, %d, %c3 : index\n"
    "scf.if %q {" + step("%c1") + "}",
    "one trip": BRANCH.format("eq", "%h"),
    "all but one trip": BRANCH.format("ne", "%h"),
    "unsigned": BRANCH.format("ugt", "%h"),
    "remainder": "%r = arith.remui %i, %c3 : index\n" + step("%r"),
    "quotient": "%r = arith.divui %i, %c64 : index\n%s = arith.remsi %r, %c8 : index\n" + step("%s"),
    "last bits": "%r = arith.andi %i, %c3 : index\n" + step("%r"),
    "other one of two": "%r = arith.xori %i, %c1 : index\n%s = arith.remui %r, %c32 : index\n" + step("%s"),
    "every third trip": "%r = arith.remui %i, %c3 : index\n" + BRANCH.replace("%i", "%r").format("eq", "%c0"),
    "both": "%r = arith.remui %i, %c3 : index\n" + BRANCH.format("sge", "%h") + step("%r"),
    "smaller": "%r = arith.minsi %i, %c32 : index\n" + step("%r"),
    "select": "%q = arith.cmpi slt, %i, %c32 : index\n%r = arith.select %q, %i, %c1 : index\n" + step("%r"),
    "byte": "%w = arith.index_cast %i : index to i8\n%r = arith.index_castui %w : i8 to index\n" + step("%r"),
    "inner loop": "scf.for %j = %c0 to %n step %c1 {\n"
    "%s = arith.addi %i, %j : index\n%r = arith.remui %s, %c3 : index\n" + step("%r") + "}\n",
    "flat index": "scf.for %j = %c0 to %c16 step %c1 {\n%m = arith.muli %i, %c16 : index\n"
    "%s = arith.addi %m, %j : index\n%q = arith.cmpi slt, %s, %h : index\nscf.if %q {" + step("%j") + "}\n}\n",
}


@pytest.mark.parametrize("body", HUGE.values(), ids=list(HUGE))
def test_a_huge_loop_is_walked_at_once(body: str) -> None:
    """10^12 trips; `%h` is half of them and one: nothing but what is known of the pieces ends this walk."""
    named = "%n = arith.constant 1000000000000 : index\n%h = arith.constant 500000000001 : index\n"
    found = walk(program(named + loop(body, upper="%n", by="%c1")))
    assert size(found.tree.root) < 3000


@pytest.mark.parametrize("body", [text for name, text in HUGE.items() if name != "inner loop"])
@pytest.mark.parametrize("trips", [1, 2, 7, 60])
def test_a_short_loop_of_the_kind_is_walked_the_same(body: str, trips: int, monkeypatch: pytest.MonkeyPatch) -> None:
    named = f"%n = arith.constant {trips} : index\n%h = arith.constant {trips // 2 + 1} : index\n"
    both(program(named + loop(body, upper="%n", by="%c1")), monkeypatch)


@pytest.mark.parametrize("beyond", [0, 1])
def test_units_are_limited(beyond: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit as long as is allowed is walked three times, of a longer one every trip once; both after a first try."""
    walked = 0
    trip = interpreter.Interpreter._trip

    def counting(self: Any, *arguments: Any) -> Any:
        nonlocal walked
        walked += 1
        return trip(self, *arguments)

    monkeypatch.setattr(interpreter.Interpreter, "_trip", counting)
    period = LONGEST_PERIOD + beyond
    named = f"%n = arith.constant {4 * period} : index\n%m = arith.constant {period} : index\n"
    body = "%r = arith.remui %i, %m : index\n" + step("%r")
    walk(program(named + loop(body, upper="%n", by="%c1"), rows=9000))
    assert walked == (3 + beyond) * period + 1

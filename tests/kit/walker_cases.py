"""Small `.pto` programs for the walk of programs, each walked summarised and trip by trip."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from kit.execution_programs import issued, kernel, touched, walk

from castsim.execution.interpreter import interpreter
from castsim.execution.interpreter.interpreter import Executed
from castsim.execution.interpreter.rerolling import Walk, fold
from castsim.execution.tree import Block, Loop, Node

X32 = "!pto.tile_buf<vec, 16x64xf32>"
Y16 = "!pto.tile_buf<vec, 16x64xf16>"
VIEWS = """\
%vx = pto.make_tensor_view %x, shape = [%rows, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>
%vy = pto.make_tensor_view %y, shape = [%rows, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf16>
"""
TILES = f"%a = pto.alloc_tile : {X32}\n%b = pto.alloc_tile : {Y16}\n"


def step(row: str = "%i", column: str = "%c0") -> str:
    """Load 16 rows from `row` on, cast, store."""
    part = "!pto.partition_tensor_view<16x64x"
    return f"""
%px = pto.partition_view %vx, offsets = [{row}, {column}], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> {part}f32>
%py = pto.partition_view %vy, offsets = [{row}, {column}], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf16> -> {part}f16>
pto.tload ins(%px : {part}f32>) outs(%a : {X32})
pto.tcvt ins(%a : {X32}) outs(%b : {Y16})
pto.tstore ins(%b : {Y16}) outs(%py : {part}f16>)
"""


def program(body: str, rows: int = 4096, extra: str = "") -> str:
    arguments = "%x: !pto.ptr<f32>, %y: !pto.ptr<f16>" + extra
    return kernel(f"%rows = arith.constant {rows} : index\n{VIEWS}{TILES}{body}", arguments)


def loop(body: str, lower: str = "%c0", upper: str = "%c256", by: str = "%c16") -> str:
    return f"scf.for %i = {lower} to {upper} step {by} {{{body}}}"


def in_a_row(trips: Iterable[Block]) -> list[Node]:
    """Trips as they are."""
    return [item for trip in trips for item in trip.items]


class Folded:
    """Walks every trip of a loop; equal ones are folded."""

    joined: Callable[[Iterable[Block]], Iterable[Node]] = staticmethod(fold)

    def __init__(self, trips: int, walk_trip: Walk, _loops: object) -> None:
        self.walked = (walk_trip(number, None, 1) for number in range(trips))

    def nodes(self) -> list[Node]:
        return list(self.joined(self.walked))


class Plain(Folded):
    """Walks every trip of a loop and leaves it as it is."""

    joined = staticmethod(in_a_row)


@pytest.fixture
def trip_by_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never summarise and never fold: the plainest reading of a loop."""
    monkeypatch.setattr(interpreter, "Pieces", Plain)
    monkeypatch.setattr(interpreter, "fold", in_a_row)


def both(text: str, monkeypatch: pytest.MonkeyPatch, args: dict[str, int] | None = None) -> Executed:
    """Walk as shipped, folded only, and trip by trip; all must issue and touch the same; return the first."""
    first = walk(text, args)
    with monkeypatch.context() as patch:
        patch.setattr(interpreter, "Pieces", Folded)
        folded = walk(text, args)
        patch.setattr(interpreter, "Pieces", Plain)
        patch.setattr(interpreter, "fold", in_a_row)
        plain = walk(text, args)
    assert not any(isinstance(item, Loop) for item in plain.tree.root.items)
    wanted = issued(plain)
    for other in (folded, first):
        assert issued(other) == wanted
        assert touched(other) == touched(plain)
        assert other.arguments == plain.arguments
        assert other.warnings == plain.warnings
    return first

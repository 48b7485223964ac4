"""The rooms of the house: files and folders seen from `simulator/`, with `isa/` and `targets/`; who may import whom."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

from test_architecture import SOURCES, imports, module_of, tree_of

PICTURE = """
13  __main__         -> commands
12  commands         -> editor reports checking evidence graphs estimating planning exploration pto_cpp running
                        tpc_compiler casting engines machines synchronisation execution specifications numerics
                        targets files isa
11  editor           -> reports checking estimating planning running tpc_compiler casting machines synchronisation
                        execution numerics targets isa
10  reports          -> checking evidence graphs estimating planning exploration running tpc_compiler engines
                        machines synchronisation execution specifications numerics targets isa timing
 9  checking         -> graphs running tpc_compiler machines synchronisation execution targets isa
 8  evidence         -> estimating planning running machines execution numerics targets files isa timing
 8  graphs           -> planning running tpc_compiler machines execution specifications numerics targets isa
                        timing
 7  estimating       -> tpc_compiler engines machines execution numerics targets isa timing
 7  testing          -> execution numerics targets isa
 7  planning         -> running tpc_compiler machines execution specifications numerics targets isa timing
 7  pto_cpp          -> running machines synchronisation execution targets isa
 8  exploration      -> estimating running tpc_compiler engines machines execution numerics targets files isa
                        timing
 6  running          -> engines machines synchronisation execution numerics targets isa timing
 6  tpc_compiler     -> engines machines execution numerics targets isa timing
 5  casting          -> machines numerics targets isa
 5  engines          -> machines execution targets files isa timing
 4  machines         -> execution numerics targets isa timing
 4  synchronisation  -> execution targets isa
 3  execution        -> numerics targets files isa timing
 3  specifications   -> numerics targets isa
 2  __init__
 2  numerics         -> files isa
 2  targets          -> isa
 1  files
 1  former_name
 1  isa
 1  timing
"""
"""A line a room, from the top floor down: its floor, its name, and the rooms that it imports.

A room stands above all that it imports, wherever in a file the import stands. Not drawn are imports of
`castsim/__init__.py`, which everybody enters first and which hands names on when they are used; by these it is that a
result asks the room of reports for what a notebook shows of it.
"""

MOST_FLOORS, MOST_ROOMS = 14, 27


def drawn() -> dict[str, tuple[int, set[str]]]:
    """Floor and arrows of every room of the picture."""
    whole = re.sub(r"\n {8,}", " ", PICTURE.strip("\n"))
    found = {}
    for line in whole.splitlines():
        head, _, arrows = line.partition("->")
        floor, name = head.split()
        found[name] = int(floor), set(arrows.split())
    return found


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def at_run_time(path: Path) -> set[str]:
    """What a file imports, but for what only type checkers read."""
    tree = tree_of(path)
    for_types = {
        alias
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom)
        for alias in (inner.module, *(f"{inner.module}.{name.name}" for name in inner.names))
    }
    return {name for name in imports(path) if name.split(".")[0] == "castsim"} - for_types


def measured() -> dict[str, set[str]]:
    modules = {module_of(path) for path in SOURCES}
    found: dict[str, set[str]] = {room_of(module): set() for module in modules}
    for path in SOURCES:
        own = room_of(module_of(path))
        for name in at_run_time(path):
            known = name if name in modules else name.rpartition(".")[0]
            if (known in modules and known != "castsim") or name in modules:
                found[own] |= {room_of(known)} - {own}
    found["__init__"].clear()
    return {name: arrows - {"__init__"} for name, arrows in found.items()}


def test_the_picture_is_what_the_imports_are() -> None:
    picture = {name: arrows for name, (_, arrows) in drawn().items()}
    assert picture == measured()


def test_every_arrow_runs_down() -> None:
    rooms = drawn()
    for name, (floor, arrows) in rooms.items():
        assert all(rooms[below][0] < floor for below in arrows), name


def test_the_house_stays_low() -> None:
    rooms = drawn()
    assert len(rooms) <= MOST_ROOMS
    assert max(floor for floor, _ in rooms.values()) <= MOST_FLOORS


def test_no_files_import_each_other_in_a_round() -> None:
    """Not even for type checkers, and wherever in a file the import stands."""
    modules = {module_of(path): path for path in SOURCES}
    order = TopologicalSorter(
        {
            name: {each for each in imports(path) if each in modules and not modules[each].match("__init__.py")}
            - {name}
            for name, path in modules.items()
        }
    )
    order.prepare()  # CycleError names the files of a round

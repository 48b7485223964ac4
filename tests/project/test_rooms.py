"""The rooms of the house: files and folders seen from `simulator/`, with `isa/` and `targets/`; who may import whom."""

from __future__ import annotations

import ast
import textwrap
from graphlib import TopologicalSorter
from pathlib import Path

from project.test_architecture import SOURCES, imports, module_of, tree_of

PICTURE = """
10  languages        -> tools commands reports running engines machines execution numerics targets isa
 9  tools            -> commands reports running engines machines execution numerics targets files isa
 8  commands         -> reports running engines machines execution numerics targets files isa
 7  reports          -> running engines machines execution numerics targets files isa
 6  running          -> engines machines execution numerics targets isa
 5  engines          -> machines execution targets files isa
 4  machines         -> execution numerics targets isa
 3  execution        -> numerics targets files isa
 2  numerics         -> files isa
 2  targets          -> isa
 1  files
 1  isa
"""
"""A line a room, from the top floor down: its floor, its name, and the rooms that it imports.

A room stands above all that it imports, wherever in a file the import stands. Not drawn are the doors.
"""


DOORS = {"__init__", "__main__", "testing"}
"""Single files at the top: `import castsim`, the command line, the pytest plugin. They hand on what stands in rooms.

Everybody enters by `__init__`, which fetches a name when it is used; by it a result asks the room of reports for what a
notebook shows of it. No file imports the other two.
"""


BUDGET = """
__init__           1    200
__main__           1    300
commands          15   3700
engines           19   6900
execution         29  12300
files              1    300
isa               31  13500
languages         45  16900
machines          54  22700
numerics          11   3300
reports           36   9700
running           17   6400
targets           13   6000
testing            1    100
tools            195  59900
"""
"""A line a room: its files and lines, at most; the lines rounded up to the next hundred."""


LONGEST_CHAIN = 26
"""Files, at most, of which each imports the next when it is loaded; those of packages count."""


def floors(arrows: dict[str, set[str]]) -> dict[str, int]:
    """Return the floor of every room: one above the highest that it imports."""
    found: dict[str, int] = {}
    for name in TopologicalSorter(arrows).static_order():
        found[name] = 1 + max((found[below] for below in arrows[name]), default=0)
    return found


def picture(arrows: dict[str, set[str]]) -> str:
    """Return the picture of rooms and what they import, as `python tests/project/test_rooms.py` prints it."""
    level = floors(arrows)
    order = sorted(arrows, key=lambda name: (-level[name], name))
    lines = []
    for name in order:
        below = " ".join(each for each in order if each in arrows[name])
        head = f"{level[name]:2}  {name:16} -> {below}" if below else f"{level[name]:2}  {name}"
        lines += textwrap.wrap(head, 110, subsequent_indent=" " * 24)
    return "\n" + "\n".join(lines) + "\n"


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
    return {name: arrows - {"__init__"} for name, arrows in found.items() if name not in DOORS}


def test_the_picture_is_what_the_imports_are() -> None:
    assert picture(measured()) == PICTURE, "python tests/project/test_rooms.py"


def test_no_files_import_each_other_in_a_round() -> None:
    modules = {module_of(path): path for path in SOURCES}
    order = TopologicalSorter(
        {
            name: {each for each in imports(path) if each in modules and not modules[each].match("__init__.py")}
            - {name}
            for name, path in modules.items()
        }
    )
    order.prepare()  # CycleError names the files of a round


def loaded_with(path: Path) -> set[str]:
    """Return what a file imports when it is imported itself."""
    found: set[str] = set()
    for node in tree_of(path).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_chains_of_imports_are_short() -> None:
    modules = {module_of(path): path for path in SOURCES}
    below = {name: loaded_with(path) & {*modules} - {name, "castsim"} for name, path in modules.items()}
    length: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():
        length[name] = 1 + max((length[each] for each in below[name]), default=0)
    assert max(length.values()) <= LONGEST_CHAIN, max(length, key=length.__getitem__)


def budget() -> str:
    """Return the files and lines of every room, as `python tests/project/test_rooms.py` prints them."""
    sizes: dict[str, list[int]] = {}
    for path in SOURCES:
        sizes.setdefault(room_of(module_of(path)), []).append(len(path.read_text(encoding="utf-8").splitlines()))
    rows = [f"{room:16}{len(own):4}{-(-sum(own) // 100) * 100:7}" for room, own in sorted(sizes.items())]
    return "\n" + "\n".join(rows) + "\n"


def test_rooms_keep_within_their_budgets() -> None:
    allowed, found = (
        {room: (int(files), int(lines)) for room, files, lines in map(str.split, table.strip().splitlines())}
        for table in (BUDGET, budget())
    )
    assert {*found} == {*allowed}
    assert not {room: own for room, own in found.items() if own[0] > allowed[room][0] or own[1] > allowed[room][1]}


if __name__ == "__main__":
    print(picture(measured()), budget())

"""Boundaries of the source: the rooms seen from `simulator/`, who imports whom, and what code may not hold."""

from __future__ import annotations

import ast
import re
import subprocess
import symtable
import sys
import textwrap
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from kit.paths import ROOT
from project import remove_feature

from castsim.commands.feature import COMMANDS, shipped_features

LAZY_IMPORTS = 175
"""Imports inside functions that the product may have; what a command loads is in test_start_up.py."""


DECLARING = (
    "castsim.commands.feature",
    "castsim.commands.shared_options",
    "castsim.reports.sections",
    "castsim.isa.errors",
)
"""What a declaration may import of castsim."""


PACKAGES = ("isa", "targets", "simulator")
MOST_EMPTY_NAMES = 300
"""Functions, at most, with a local or a parameter called `found`, `each` and the like."""
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TEXTS = sorted(
    path
    for folder in (*PACKAGES, "programs", "tests", "docs", ".ci", ".")
    for path in ((ROOT / folder).rglob("*") if folder != "." else ROOT.glob("*"))
    if path.suffix in (".py", ".toml", ".md", ".csv", ".pto", ".txt", ".yml", ".yaml", ".tpc", ".s", ".cfg", ".json")
)

ROOMS = sorted(path.stem for path in (ROOT / "simulator").iterdir() if path.name != "__init__.py")
"""Files and folders below `simulator/`."""


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return "castsim" + name.removeprefix("simulator") if parts[0] == "simulator" else f"castsim.{name}"


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file, parsed once for all rules."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Every imported module name, wherever in the file the import stands."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def users_of(library: str) -> set[str]:
    return {module_of(path) for path in SOURCES if any(name.split(".")[0] == library for name in imports(path))}


def beneath(modules: set[str], *packages: str) -> bool:
    return all(any(module == package or module.startswith(package + ".") for package in packages) for module in modules)


def folder_of(module: str) -> str:
    second = f"{module}.".split(".")[1]
    return second if second in ("isa", "targets") else "simulator"


@pytest.mark.parametrize(("package", "below"), [("isa", {"isa"}), ("targets", {"isa", "targets"})])
def test_imports_point_one_way(package: str, below: set[str]) -> None:
    for path in (ROOT / package).rglob("*.py"):
        own = {name for name in imports(path) if name.split(".")[0] == "castsim" and name != "castsim"}
        assert {folder_of(name) for name in own} <= below, path


def test_castsim_has_one_import_name() -> None:
    for path in SOURCES:
        assert not {name.split(".")[0] for name in imports(path)} & set(PACKAGES), path


def test_every_folder_is_installed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted({*(module_of(path) for path in SOURCES if path.name == "__init__.py")})


def test_nothing_imports_the_tests_or_the_programs() -> None:
    assert not users_of("tests")
    assert not users_of("programs")
    assert not set(sys.stdlib_module_names) & {path.stem for path in SOURCES if path.parent.parent == ROOT}


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("simpy", ("castsim.engines",)),
        ("pydantic", ("castsim.targets", "castsim.tools.diff")),
        ("rich", ("castsim.reports", "castsim.commands", "castsim.tools", "castsim.languages")),
        ("numba", ("castsim.numerics", "castsim.machines.casting", "castsim.engines.fast_dataflow.compiled_machine")),
        ("numpy", (*(f"castsim.{name}" for name in ROOMS), "castsim.isa.formats")),
        ("gfloat", ()),
        ("en_dtypes", ()),
        ("hypothesis", ()),
        ("pytest", ("castsim.testing",)),
        ("shtab", ("castsim.tools.reference.completion",)),
        ("platformdirs", ("castsim.files",)),
        ("distributed", ("castsim.tools.distribution.cluster",)),  # it refuses to be imported without
    ],
)
def test_libraries_stay_where_they_belong(library: str, homes: tuple[str, ...]) -> None:
    assert beneath(users_of(library), *homes) if homes else not users_of(library), users_of(library)


def test_engines_never_import_values_and_values_never_import_engines() -> None:
    for path in SOURCES:
        module = module_of(path)
        found = imports(path)
        if module.startswith("castsim.engines"):
            assert not any(name.startswith("castsim.numerics") or name.endswith(".values") for name in found), module
        if module.startswith("castsim.numerics") or module.endswith(".values"):
            assert not any(name.startswith("castsim.engines") for name in found), module


def feature_folder(module: str) -> str | None:
    """The folder of a tool or language, None for the core."""
    parts = module.split(".")
    return ".".join(parts[1:3]) if len(parts) > 2 and parts[1] in ("tools", "languages") else None


def test_engines_share_nothing_but_what_stands_outside_of_them() -> None:
    """What cycles add up to is in `event_pipes`. Nothing else looks into an engine."""
    for path in SOURCES:
        parts = module_of(path).split(".")
        inner = {name.split(".")[2] for name in imports(path) if name.startswith("castsim.engines.")}
        modules = {name for name in inner if (ROOT / "simulator" / "engines" / name).is_dir()} - {"event_pipes"}
        if parts[1:2] == ["engines"] and len(parts) > 3:
            assert all(name.split("_")[0] == parts[2].split("_")[0] for name in modules), path
        elif parts[1:2] != ["engines"]:
            assert not modules, path


def test_locals_say_what_they_hold() -> None:
    counted = subprocess.run([sys.executable, ROOT / ".ci" / "names"], capture_output=True, text=True, check=True)
    assert int(counted.stdout.split()[0]) <= MOST_EMPTY_NAMES, counted.stdout


def test_the_core_imports_no_feature() -> None:
    for path in SOURCES:
        own = feature_folder(module_of(path))
        used = {feature_folder(name) for name in imports(path)} - {None, own}
        if own is None:
            assert not used or module_of(path) == "castsim", (path, used)
        else:
            assert used <= remove_feature.REQUIRED.get(own, set()), (path, used)


def test_the_core_names_features_in_tables_only() -> None:
    tables = {*(ROOT / name for name in remove_feature.TABLES), ROOT / "simulator" / "__init__.py"}
    named = re.compile(r"\b(?:" + "|".join(map(re.escape, remove_feature.features())) + r")\b")
    core = [path for path in SOURCES if feature_folder(f"{module_of(path)}.") is None]
    assert not [path for path in core if path not in tables and named.search(path.read_text(encoding="utf-8"))]


def test_public_names_are_documented() -> None:
    for path in SOURCES:
        tree = tree_of(path)
        assert ast.get_docstring(tree), path
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path}: {node.name}"


def test_public_names_are_listed_once_and_exist() -> None:
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for node in tree_of(path).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                listed = ast.literal_eval(node.value)
                assert len(set(listed)) == len(listed), path
                lazy = "__getattr__" in text  # names that are imported when first asked for
                symbols = symtable.symtable(text, str(path), "exec").get_symbols()
                bound = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
                assert lazy or set(listed) <= bound, (path, set(listed) - bound)


def test_chips_are_data() -> None:
    chips = {path.stem for path in (ROOT / "targets").glob("*.toml")} - {"exact"}  # a specification, and a plain word
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Compare):
                literals = {leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)}
                assert not chips & {value for value in literals if isinstance(value, str)}, f"{path}:{node.lineno}"


def test_no_float_of_a_chip_in_code() -> None:
    timed = ("buffer_values", "pipe_operations", "tile_lowering", "transfer_timing")
    rooms = ("simulator/engines", "simulator/machines/strided", *(f"simulator/execution/{name}.py" for name in timed))
    for path in SOURCES:
        if relative(path).startswith(rooms):
            for node in ast.walk(tree_of(path)):
                fraction = isinstance(node, ast.Constant) and isinstance(node.value, float)
                assert not fraction, f"{path}:{getattr(node, 'lineno', 0)}"


# Written in pieces, so that this file does not contain what it looks for.
PRIVATE = re.compile("|".join(re.escape("/" + folder + "/") for folder in ("work", "root", "home", "Users")))


def test_no_private_paths() -> None:
    for path in TEXTS:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            assert not PRIVATE.search(line), f"{relative(path)}:{number}: {line}"


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


FEATURES = ("languages", "tools")
"""The rooms of folders that can be taken out."""


DOORS = {"__init__", "__main__", "testing"}
"""Single files at the top: `import castsim`, the command line, the pytest plugin. They hand on what stands in rooms.

Everybody enters by `__init__`, which fetches a name when it is used; by it a result asks the room of reports for what a
notebook shows of it. No file imports the other two.
"""


MOST_FLOORS, MOST_ROOMS = 8, 10


BUDGET = """
__init__           1    200
__main__           1    300
commands          14   3200
engines           18   6900
execution         29  12300
files              1    300
isa               30  13500
languages         39  16700
machines          54  22700
numerics          11   3400
reports           38  10600
running           15   5700
targets           13   6000
testing            1    100
tools            174  59100
"""
"""A line a room: its files and lines, at most; the lines rounded up to the next hundred."""


ONE_IMPORTER = 10
"""Modules, at most, that one module of their own folder imports and no other: they may well stand in it."""


SAME_NAMES = 8
"""Names, at most, that several files have."""


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


def test_the_house_stays_low() -> None:
    """Features stand on top of the core, which is read without them."""
    rooms = floors(measured())
    core = {room: floor for room, floor in rooms.items() if room not in FEATURES}
    assert len(core) <= MOST_ROOMS
    assert max(core.values()) <= MOST_FLOORS


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


def importers() -> dict[str, set[str]]:
    """Return the modules that import each module."""
    found: dict[str, set[str]] = {module_of(path): set() for path in SOURCES}
    for path in SOURCES:
        for name in imports(path):
            known = name if name in found else name.rpartition(".")[0]
            if known in found and known != module_of(path):
                found[known].add(module_of(path))
    return found


def test_few_modules_are_there_for_one_neighbour() -> None:
    above, paths = importers(), {module_of(path): path for path in SOURCES}
    alone = [
        name
        for path in SOURCES
        if path.name != "__init__.py" and room_of(module_of(path)) not in FEATURES
        for name in [module_of(path)]
        if [paths[each].parent for each in above[name]] == [path.parent]
    ]
    assert len(alone) <= ONE_IMPORTER, alone


def test_file_names_say_which_subject() -> None:
    """But for features, whose folder says it: each has a command, most a report."""
    core = [path for path in SOURCES if room_of(module_of(path)) not in FEATURES]
    names = Counter(path.name for path in core if path.name != "__init__.py")
    assert len([name for name, files in names.items() if files > 1]) <= SAME_NAMES


if __name__ == "__main__":
    print(picture(measured()), budget())


def test_imports_within_functions_are_few() -> None:
    found = {
        f"{relative(path)}:{node.lineno}"
        for path in SOURCES
        for function in ast.walk(tree_of(path))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert len(found) <= LAZY_IMPORTS, len(found)


def test_features_are_read_without_what_they_run() -> None:
    """A help and a start import the declarations alone; what commands share imports no command."""
    executing = {feature.module for feature in shipped_features()}
    assert executing <= {module_of(path) for path in SOURCES}
    for path in SOURCES:
        if module_of(path) in {"castsim.commands.feature", *COMMANDS.values()}:
            assert all(name.startswith(DECLARING) for name in imports(path) if name.startswith("castsim")), path
        elif module_of(path).startswith("castsim.commands.") and module_of(path) not in executing:
            assert not imports(path) & executing, path


def test_no_module_without_a_subject() -> None:
    for path in SOURCES:
        parts = set(path.relative_to(ROOT).with_suffix("").parts)
        assert not parts & {"utils", "util", "helpers", "helper", "common", "misc"}, path

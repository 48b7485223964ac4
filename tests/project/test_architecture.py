"""Boundaries of the source: who imports whom, how long things are, what a name may not be."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from kit.paths import ROOT
from project import remove_feature

PACKAGES = ("isa", "targets", "simulator")
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
    """The folder in which a module of castsim lies."""
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

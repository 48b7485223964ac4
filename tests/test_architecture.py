"""Boundaries of the source: who imports whom, how long things are, what a name may not be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("isa", "targets", "simulator")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TEXTS = sorted(
    path
    for folder in (*PACKAGES, "programs", "tests", "docs", ".ci", ".")
    for path in ((ROOT / folder).rglob("*") if folder != "." else ROOT.glob("*"))
    if path.suffix in (".py", ".toml", ".md", ".csv", ".pto", ".txt", ".yml", ".yaml", ".tpc", ".s", ".cfg", ".json")
)

LONG_FILES: dict[str, str] = {}
"""Files past 400 lines, each with its reason."""

LONG_FUNCTIONS: dict[str, str] = {
    "simulator/casting.py:cast": "half of it documents the keyword parameters of the public function",
}
"""Functions past 50 lines as `path:name`, each with its reason."""


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every imported module name, wherever in the file the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def users_of(library: str) -> set[str]:
    return {module_of(path) for path in SOURCES if any(name.split(".")[0] == library for name in imports(path))}


def beneath(modules: set[str], *packages: str) -> bool:
    return all(any(module == package or module.startswith(package + ".") for package in packages) for module in modules)


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 50
    assert {path.suffix for path in TEXTS} >= {".py", ".toml", ".md", ".csv", ".pto"}


@pytest.mark.parametrize(("package", "above"), [("isa", ("targets", "simulator")), ("targets", ("simulator",))])
def test_imports_point_one_way(package: str, above: tuple[str, ...]) -> None:
    for name in above:
        assert not any(module.split(".")[0] == package for module in users_of(name)), f"{package} imports {name}"


def test_nothing_imports_the_tests_or_the_programs() -> None:
    assert not users_of("tests")
    assert not users_of("programs")
    assert not set(sys.stdlib_module_names) & {path.stem for path in SOURCES if path.parent.parent == ROOT}


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("simpy", ("simulator.engines",)),
        ("pydantic", ("targets",)),
        ("rich", ("simulator.reports", "simulator.commands", "simulator.__main__")),
        ("numba", ("simulator.numerics", "simulator.engines.fast_dataflow.compiling")),
        ("numpy", ("simulator", "isa.tpc")),
        ("gfloat", ()),
        ("en_dtypes", ()),
        ("hypothesis", ()),
        ("pytest", ()),
    ],
)
def test_libraries_stay_where_they_belong(library: str, homes: tuple[str, ...]) -> None:
    assert beneath(users_of(library), *homes) if homes else not users_of(library), users_of(library)


def test_engines_never_import_values_and_values_never_import_engines() -> None:
    for path in SOURCES:
        module = module_of(path)
        found = set(imports(path))
        if module.startswith("simulator.engines"):
            assert not any(name.startswith("simulator.numerics") or name.endswith(".values") for name in found), module
        if module.startswith("simulator.numerics") or module.endswith(".values"):
            assert not any(name.startswith("simulator.engines") for name in found), module


def test_lower_layers_do_not_know_the_command_line() -> None:
    for path in SOURCES:
        module = module_of(path)
        if not module.startswith(("simulator.commands", "simulator.__main__")):
            assert not any(name.startswith("simulator.commands") for name in imports(path)), module


def test_no_module_without_a_subject() -> None:
    for path in SOURCES:
        parts = set(path.relative_to(ROOT).with_suffix("").parts)
        assert not parts & {"utils", "util", "helpers", "helper", "common", "misc"}, path


def test_files_stay_short() -> None:
    long = {relative(path) for path in SOURCES if len(path.read_text(encoding="utf-8").splitlines()) > 400}
    assert long == set(LONG_FILES)  # a waiver no longer needed is to be deleted


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{relative(path)}:{node.name}", node.end_lineno - node.lineno + 1


def test_functions_stay_short() -> None:
    long = {name for path in SOURCES for name, length in functions(path) if length > 50}
    assert long == set(LONG_FUNCTIONS)


def test_public_names_are_documented() -> None:
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path}: {node.name}"


def test_public_names_are_listed_and_exist() -> None:
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined = {
            name.split(".")[0]
            for node in tree.body
            for name in (
                [alias.asname or alias.name for alias in node.names]
                if isinstance(node, ast.Import | ast.ImportFrom)
                else [getattr(node, "name", "")]
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
                else [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
                if isinstance(node, ast.Assign)
                else [node.target.id]
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
                else []
            )
        }
        for node in tree.body:
            names = [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
            if "__all__" in names:
                listed = ast.literal_eval(node.value)
                assert len(set(listed)) == len(listed), path
                lazy = "__getattr__" in defined  # names that are imported when first asked for
                assert lazy or set(listed) <= defined, (path, set(listed) - defined)


def test_chips_are_data() -> None:
    """No code asks which chip it runs on: a comparison with a chip's name would."""
    chips = {path.stem for path in (ROOT / "targets").glob("*.toml")} - {"exact"}  # a specification, and a plain word
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                literals = {leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)}
                assert not chips & {value for value in literals if isinstance(value, str)}, f"{path}:{node.lineno}"


def test_no_float_of_a_chip_in_code() -> None:
    """Frequencies, bandwidths and latencies belong to the descriptions; code has hardly any use for a fraction."""
    for path in SOURCES:
        if relative(path).startswith(("simulator/engines", "simulator/strided", "simulator/dataflow")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                fraction = isinstance(node, ast.Constant) and isinstance(node.value, float)
                assert not fraction, f"{path}:{getattr(node, 'lineno', 0)}"


# Written in pieces, so that this file does not contain what it looks for.
PRIVATE = re.compile("|".join(re.escape("/" + folder + "/") for folder in ("work", "root", "home", "Users")))


def test_no_private_paths() -> None:
    for path in TEXTS:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            assert not PRIVATE.search(line), f"{relative(path)}:{number}: {line}"


def test_importing_the_packages_loads_nothing_heavy() -> None:
    """`--help` must be quick: libraries are imported by who needs them."""
    code = "import simulator.__main__, sys; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "simpy", "pydantic", "rich", "numba", "ml_dtypes"} & set(loaded)

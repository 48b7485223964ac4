"""Take a feature out of a copy of castsim, and check that the rest works without it.

python tests remove_feature tools.advise    # or `today`: a feature a day, in turn
python tests remove_feature all
"""

from __future__ import annotations

import ast
import datetime
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kit.paths import ROOT, TESTS

import castsim

TABLES = (
    "simulator/commands/feature.py",
    "simulator/running/languages.py",
    "isa/pto/value_types.py",
    "simulator/commands/declared_commands.py",
)
"""The files with a row for each feature."""

COPY = ROOT / "build" / "without" / "castsim"
"""A fixed folder, so that mypy can reuse its cache."""

LEFT_BEHIND = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", "*.egg-info")

REQUIRED = {
    "languages.ascendc": {"languages.cpp_recording"},
    "languages.pto_cpp": {"languages.cpp_recording"},
    "languages.tpc_c": {"tools.check", "tools.tpc_assembly", "tools.tpc_compiler", "tools.tpc_lint"},
    "languages.vmi": {"tools.micro_builder"},
    "tools.accuracy": {"tools.distribution", "tools.estimate"},
    "tools.advise": {"tools.expand", "tools.tpc_assembly"},
    "tools.builtins": {"tools.tpc_compiler"},
    "tools.calibrate": {"tools.accuracy"},
    "tools.check": {"tools.tpc_lint"},
    "tools.compare": {"tools.verify"},
    "tools.compiled": {"tools.tpc_compiler"},
    "tools.editor": {"tools.check", "tools.estimate", "tools.expand", "tools.lowering", "tools.tpc_compiler"},
    "tools.estimate": {"tools.tpc_compiler", "tools.tpc_lint"},
    "tools.expand": {"tools.micro_builder"},
    "tools.graphs": {"tools.check", "tools.lowering", "tools.tpc_compiler"},
    "tools.lowering": {"tools.distribution", "tools.quantise", "tools.tpc_compiler"},
    "tools.notebooks": {"tools.accuracy", "tools.estimate", "tools.lowering"},
    "tools.sweep": {"tools.distribution", "tools.estimate"},
    "tools.tpc_assembly": {"tools.tpc_binary", "tools.tpc_compiler", "tools.tpc_lint"},
    "tools.tpc_compiler": {"tools.tpc_lint"},
    "tools.traces": {"tools.diff"},
    "tools.tune": {"tools.distribution"},
    "tools.verify": {"tools.distribution", "tools.lowering"},
}
"""Features that a feature needs; it is taken out with them."""


def features(root: Path = ROOT) -> tuple[str, ...]:
    """The folders of `simulator/languages` and `simulator/tools`, as `tools.NAME`."""
    found = (
        path.parent for kind in ("languages", "tools") for path in (root / "simulator" / kind).glob("*/__init__.py")
    )
    return tuple(sorted(f"{path.parent.name}.{path.name}" for path in found))


def with_dependents(name: str) -> tuple[str, ...]:
    """A feature, those that need it, and those that need them."""
    needing = [name]
    for needed in needing:
        needing += [other for other, own in REQUIRED.items() if needed in own and other not in needing]
    return tuple(needing)


def is_of(module: str, names: tuple[str, ...]) -> bool:
    """Whether a module of castsim belongs to one of the features."""
    return any(f"{module}.".startswith(f"castsim.{name}.") for name in names)


def remove(root: Path, names: tuple[str, ...]) -> None:
    """Remove folders, their pages, their rows in the tables, their names of `castsim`, and the tests that use them."""
    for name in names:
        shutil.rmtree(root / "simulator" / Path(*name.split(".")))
        shutil.rmtree(root / "tests" / Path(*name.split(".")), ignore_errors=True)
        page = f"{name.replace('.', '/')}.md"
        (root / "docs" / page).unlink(missing_ok=True)
        edit(root / "mkdocs.yml", rf"^ *- (?:[^\n:]*: )?{re.escape(page)}\n", "")
    of = "|".join(re.escape(name) for name in names)
    for table in TABLES:
        edit(root / table, rf'^ *(?:"?[\w.]+"?: )?"castsim\.(?:{of})[.:"][^\n]*\n', "")
        edit(root / table, rf'"castsim\.(?:{of})\.[^"]*",?\s*', "")
    edit(root / "pyproject.toml", rf'^ *"castsim\.(?:{of})",\n', "")
    remove_names(root / "simulator" / "__init__.py", of)
    for path in (root / "tests").rglob("*.py"):
        if uses(path, names):
            path.unlink()


def edit(path: Path, pattern: str, replacement: str) -> None:
    """Replace every match of a pattern in a file."""
    path.write_text(
        re.sub(pattern, replacement, path.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8"
    )


def remove_names(path: Path, of: str) -> None:
    """Remove the names of features from `castsim/__init__.py`."""
    text = path.read_text(encoding="utf-8")
    rows = re.findall(rf'^ *"castsim\.(?:{of})[\w.]*": \(([^)]*)\),\n', text, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r'"(\w+)"', row)}
    text = re.sub(
        rf'^ *(?:"castsim\.(?:{of})[\w.]*": |from castsim\.(?:{of})[\w.]* import )[^\n]*\n',
        "",
        text,
        flags=re.MULTILINE,
    )
    for name in names:
        text = re.sub(rf'^ *"{name}",\n', "", text, flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")


def uses(path: Path, names: tuple[str, ...]) -> bool:
    """Whether a test imports one of the features, at once or through a file beside it that does."""
    homes = {f"castsim.{name}": home for home, own in castsim._HOMES.items() for name in own}
    return any(is_of(homes.get(module, module), names) for module in imported(path, set()))


def imported(path: Path, seen: set[Path]) -> Iterator[str]:
    """Every module that a file of tests imports, also through its neighbours."""
    if path in seen:
        return
    seen.add(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in found:
            neighbour = TESTS.joinpath(*name.split(".")).with_suffix(".py")
            if neighbour.is_file():
                yield from imported(neighbour, seen)
            yield name


def check(name: str) -> bool:
    """Whether types, lint, every help and the smoke tests pass without a feature; prints what does not."""
    names = with_dependents(name)
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT, COPY, ignore=LEFT_BEHIND)
    remove(COPY, names)
    scripts = Path(sys.executable).parent
    (COPY / ".venv").symlink_to(scripts.parent)
    steps = {
        "lint": ["sh", "-c", f"{scripts}/ruff check -q --fix . && {scripts}/ruff check -q ."],
        "types": ["bash", ".ci/types", "--cache-dir", str(COPY.parent / "types")],
        "helps": [sys.executable, "-c", HELPS],
        "smoke tests": [sys.executable, "-m", "pytest", "-q", "-m", "smoke", "-p", "no:cacheprovider", "-n", "2"],
    }
    environment = {**os.environ, "PYTHONPATH": str(COPY / "build" / "types")}
    failed = False
    for title, words in steps.items():
        done = subprocess.run(words, cwd=COPY, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            failed = True
            print(f"without {name}: {title} fails\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    print(f"without {', '.join(names)}: {'fails' if failed else 'all passes'}", flush=True)
    return not failed


HELPS = (
    "from castsim.commands.feature import shipped_features; from castsim.commands.command_line import parser_of; "
    "[parser_of(each.name).format_help() for each in shipped_features()]"
)


def main() -> int:
    """Check the features that are named on the command line."""
    known = features()
    asked = sys.argv[1:] or ["today"]
    if asked == ["all"]:
        asked = list(known)
    elif asked == ["today"]:
        asked = [known[datetime.datetime.now(tz=datetime.UTC).toordinal() % len(known)]]
    if wrong := [name for name in asked if name not in known]:
        print(f"no feature {', '.join(wrong)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    passed = [check(name) for name in asked]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())

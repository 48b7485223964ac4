"""The source files that a proof is about, and their digests.

A proof concerns the modules that compute casts and those that choose the inputs and compare. They are found by
following imports, also those inside functions, from the modules that start it all. A digest leaves out what cannot
change a bit: comments, docstrings and blank lines.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import castsim
import castsim.isa
import castsim.targets
from castsim.evidence.verification.oracle import oracle_folder

PACKAGES = {
    "castsim.isa": Path(castsim.isa.__file__).resolve().parent,
    "castsim.targets": Path(castsim.targets.__file__).resolve().parent,
    "castsim": Path(castsim.__file__).resolve().parent,
}
"""The folders of modules, the longest name first: a checkout has three folders side by side, an installation one.

Modules of any other name are third-party, and their sources are not part of a proof.
"""

PROVEN = ("castsim.numerics.tiers", "castsim.evidence.verification.comparison")
"""The modules at which following the imports starts."""

_OWN = frozenset({"castsim", "simulator", "isa", "targets"})
"""Today's name, and those of the three folders, by which sources imported each other before."""

BITLESS = frozenset({"castsim.isa.errors", "castsim"})
"""Modules that only name errors or the version: they decide neither a bit nor what is tried."""


def source_digests(*, oracle: bool) -> dict[str, str]:
    """Return the SHA-256 of every source file of a proof by its path; with `oracle` those of the oracle too.

    Paths are those of the modules (`castsim/isa/formats.py`), wherever castsim is installed; the oracle's begin with
    `tests/`.
    """
    starts = list(PROVEN)
    folder = oracle_folder() if oracle else None
    if folder is not None:
        starts.append("oracle")
    return _digests(_files(starts, folder))


SUBSTITUTED = (
    "castsim.lowering.substitution",
    "castsim.lowering.tile_arithmetic",
    "castsim.lowering.vector_steps",
)
"""The modules at which following the imports starts for proofs that a function may stand in for an instruction."""

LEFT_OUT = (
    *("castsim.isa.pto.", "castsim.isa.tpc.", "castsim.targets"),
    *("castsim.execution.dataflow.", "castsim.execution.tiles", "castsim.execution.tree"),
    "castsim.machines.vliw.semantics.moves",
)
"""Beginnings of modules that decide nothing: they read text or say what a target is, and what a proof takes from them
stands in its entry; or they do other instructions than arithmetic with a constant."""

_SAYING_WHAT = frozenset({"castsim.isa.pto.vector_operations"})
"""Modules among those that decide what an instruction does."""


def substitution_digests() -> dict[str, str]:
    """Return the SHA-256 of every source file that decides whether a substitute gives what an instruction gives."""

    def left_out(module: str) -> bool:
        return module.startswith(LEFT_OUT) and module not in _SAYING_WHAT

    return _digests(_files(list(SUBSTITUTED), None, left_out))


def _digests(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: file_digest(files[name]) for name in sorted(files)}


def digest_of(files: Mapping[str, str]) -> str:
    """Return one SHA-256 over paths and digests."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a source file without comments, docstrings, blank lines and where our modules lie."""
    return _text_digest(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def _text_digest(source: str) -> str:
    taken, rows = own_imports(source)
    return hashlib.sha256("\n".join([*taken, stripped(source, rows)]).encode()).hexdigest()


def stripped(source: str, rows: Collection[int] = ()) -> str:
    """Return source text without comments, strings that are statements, trailing and empty lines, and `rows`."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    kept = (line for row, line in enumerate(lines, 1) if row not in rows)
    return "\n".join(line.rstrip() for line in kept if line.strip())


def own_imports(source: str) -> tuple[list[str], set[int]]:
    """Return the names that a source imports from our own modules, and the lines of these imports.

    A module is identified by its last name: one that moves to another folder decides the same bits. The list
    of files gives the modules.
    """
    taken, rows = [], set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in _OWN:
            module = node.module.rpartition(".")[2]
            taken += [f"{module}: {alias.name} {alias.asname or ''}".rstrip() for alias in node.names]
            rows |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sorted(taken), rows


def _files(
    starts: list[str], tests: Path | None, left_out: Callable[[str], bool] = BITLESS.__contains__
) -> dict[str, Path]:
    found: dict[str, Path] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name in found or name in BITLESS or left_out(name):
            continue
        path = _path_of(name, tests)
        if path is None:
            continue
        found[name] = path
        waiting.extend(_imported(path, tests))
    return {_shown(name, path): path for name, path in found.items()}


def _shown(module: str, path: Path) -> str:
    """Return the path of a module's file below the folder from which it is imported."""
    name = module.replace(".", "/")
    name += "/__init__.py" if path.name == "__init__.py" else ".py"
    return name if name.startswith("castsim/") else f"tests/{name}"


def _path_of(module: str, tests: Path | None) -> Path | None:
    """Return the file of a module of ours, None for one from elsewhere."""
    base = None if tests is None else tests.joinpath(*module.split("."))
    for package, folder in PACKAGES.items():
        if module == package or module.startswith(f"{package}."):
            base = folder.joinpath(*module.split(".")[package.count(".") + 1 :])
            break
    if base is None:
        return None
    paths = (base.with_name(f"{base.name}.py"), base / "__init__.py")
    return next((path for path in paths if path.is_file()), None)


def _imported(path: Path, tests: Path | None) -> Iterator[str]:
    """Yield the modules that a file names in its imports; a package stands for the modules its names come from."""
    for module, name in _imports(path.read_text(encoding="utf-8")):
        yield module if name is None else _home_of(module, name, tests)


def _home_of(module: str, name: str, tests: Path | None) -> str:
    """Return the module that defines a name, looking through packages that hand it on."""
    if _path_of(f"{module}.{name}", tests) is not None:
        return f"{module}.{name}"
    path = _path_of(module, tests)
    if path is not None and path.name == "__init__.py":
        for origin, handed_on in _imports(path.read_text(encoding="utf-8")):
            if handed_on == name and origin != module:
                return _home_of(origin, name, tests)
    return module


@lru_cache(maxsize=256)
def _imports(source: str) -> tuple[tuple[str, str | None], ...]:
    """Return the (module, name) of everything imported, also inside functions; a whole module has no name."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [(node.module, alias.name) for alias in node.names]
    return tuple(found)

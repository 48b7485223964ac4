"""Which source files a proof is about, and their digests.

A proof concerns the modules that compute casts and those that choose the inputs and compare. They are found by
following imports, also those inside functions, from the modules that start it all. A digest leaves out what cannot
change a bit: comments, docstrings and blank lines.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import simulator
from simulator.verification.oracle import oracle_folder

ROOT = Path(simulator.__file__).resolve().parent.parent

PROVEN = ("simulator.numerics.tiers", "simulator.verification.comparison")
"""Where following the imports starts."""

BITLESS = frozenset({"isa.errors", "simulator"})
"""Modules that only name errors or the version: they decide neither a bit nor what is tried."""


def source_digests(*, oracle: bool) -> dict[str, str]:
    """Return the SHA-256 of every source file of a proof by its path; with `oracle` those of the oracle too."""
    folders = {"": ROOT}
    starts = list(PROVEN)
    folder = oracle_folder()
    if oracle and folder is not None:
        folders["tests/"] = folder
        starts.append("oracle")
    files = _files(starts, list(folders.values()))
    named = {str(path.relative_to(ROOT).as_posix()): path for path in files}
    return {name: file_digest(named[name]) for name in sorted(named)}


def digest_of(files: Mapping[str, str]) -> str:
    """Return one SHA-256 over paths and digests."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a source file without comments, docstrings and blank lines."""
    return _text_digest(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def _text_digest(source: str) -> str:
    return hashlib.sha256(stripped(source).encode()).hexdigest()


def stripped(source: str) -> str:
    """Return source text without comments, strings that are statements, trailing and empty lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _files(starts: list[str], folders: list[Path]) -> set[Path]:
    found: dict[str, Path] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name in found or name in BITLESS:
            continue
        path = _path_of(name, folders)
        if path is None:
            continue
        found[name] = path
        waiting.extend(_imported(path, folders))
    return set(found.values())


def _path_of(module: str, folders: list[Path]) -> Path | None:
    """Return the file of a module of ours, None for one from elsewhere."""
    for folder in folders:
        base = folder.joinpath(*module.split("."))
        for path in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


def _imported(path: Path, folders: list[Path]) -> Iterator[str]:
    """Yield the modules that a file names in its imports; a package stands for the modules its names come from."""
    for module, name in _imports(path.read_text(encoding="utf-8")):
        yield module if name is None else _home_of(module, name, folders)


def _home_of(module: str, name: str, folders: list[Path]) -> str:
    """Return the module that defines a name, looking through packages that hand it on."""
    if _path_of(f"{module}.{name}", folders) is not None:
        return f"{module}.{name}"
    path = _path_of(module, folders)
    if path is not None and path.name == "__init__.py":
        for origin, handed_on in _imports(path.read_text(encoding="utf-8")):
            if handed_on == name and origin != module:
                return _home_of(origin, name, folders)
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

"""Names: locals say what they hold, and names in backticks exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

from kit.paths import ROOT

MOST_EMPTY_NAMES = 300
"""Functions, at most, with a local or a parameter called `found`, `each` and the like."""

SOURCES = [path for folder in ("isa", "targets", "simulator") for path in sorted((ROOT / folder).rglob("*.py"))]
READ = ("isa", "targets", "simulator", "programs", "docs/reference", "tests/vectors")
"""Folders whose words a docstring may quote: instructions, facts, files."""

SUFFIXES = {".toml", ".csv", ".pto", ".tpc", ".hpp", ".h", ".c", ".cpp", ".md", ".js", ".css", ".html"}
OTHERS = {
    "DIALECT", "NA", "NAME", "V1004", "a5_2d", "e_machine", "float8e4m3fn", "fp16_t", "fp8e4m3_t", "make_ubuf_ptr",
    "philox_rng", "savez", "scale_t",
}  # fmt: skip
"""Placeholders, and names of other projects."""


def test_locals_say_what_they_hold() -> None:
    counted = subprocess.run([sys.executable, ROOT / ".ci" / "names"], capture_output=True, text=True, check=True)
    assert int(counted.stdout.split()[0]) <= MOST_EMPTY_NAMES, counted.stdout


def texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Docstrings of modules, classes, functions and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def words_of(tree: ast.Module) -> Iterator[str]:
    """Identifiers of a module, and the words of its strings that are no docstrings."""
    docstrings = {id(text) for text in texts(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield from (other or name).split(".")
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield from re.findall(r"\w+", text)


def test_names_in_backticks_exist() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    words = {*OTHERS, *(word for tree in trees.values() for word in words_of(tree))}
    for path in (path for folder in READ for path in (ROOT / folder).rglob("*") if path.is_file()):
        words |= {path.stem, path.name.partition(".")[0], path.suffix[1:], *path.relative_to(ROOT).parts}
        if path.suffix in SUFFIXES:
            words |= {*re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace"))}
    unknown = [
        f"{path.relative_to(ROOT)}:{text.lineno}: {quoted}"
        for path, tree in trees.items()
        for text in texts(tree)
        for quoted in re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", str(text.value))
        if not words.issuperset(part for part in quoted.split(".") if part)
    ]
    assert not unknown, "\n".join(unknown)

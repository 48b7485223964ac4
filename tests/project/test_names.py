"""Names in backticks exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kit.paths import ROOT

SOURCES = [path for folder in ("isa", "targets", "simulator") for path in sorted((ROOT / folder).rglob("*.py"))]
READ = ("isa", "targets", "simulator", "programs", "docs/reference", "tests/vectors")
"""Folders whose words a docstring may quote: instructions, facts, files."""

SUFFIXES = {".toml", ".csv", ".pto", ".tpc", ".hpp", ".h", ".c", ".cpp", ".md", ".js", ".css", ".html"}
OTHERS = {
    "DIALECT", "NA", "NAME", "V1004", "a5_2d", "e_machine", "float8e4m3fn", "fp16_t", "fp8e4m3_t", "make_ubuf_ptr",
    "max_percent", "mean_percent", "median_percent", "philox_rng", "savez", "scale_t",
}  # fmt: skip
"""Placeholders, names of other projects, and columns whose unit is added to their name."""

EMPTY_NAMES = {"found", "each", "place", "held", "told", "said", "made", "known", "one", "two"}
"""Words that a docstring quotes only as names of its own function."""

HOMES = {"isa": ROOT / "isa", "targets": ROOT / "targets"}
"""Folders of `castsim.isa` and `castsim.targets`; all other modules are in `simulator`."""


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


def resolves(reference: str) -> bool:
    """Whether a dotted name below `castsim` is a module, or a name that a module binds or castsim exports."""
    _, *rest = reference.split(".")
    path = ROOT / "simulator"
    while rest:
        below = HOMES.get(rest[0], path / rest[0]) if path == ROOT / "simulator" else path / rest[0]
        if not below.is_dir() and not below.with_suffix(".py").exists():
            break
        path = below
        del rest[0]
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return set(rest) <= {
        name
        for node in ast.walk(tree)
        for name in (
            getattr(node, "name", None),
            getattr(node, "asname", None),
            node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None,
        )
        if name is not None
    }


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
        or (quoted.startswith("castsim.") and not resolves(quoted))
    ]
    assert not unknown, "\n".join(unknown)


def own_names(node: ast.AST) -> set[str]:
    """Parameters, variables, attributes, functions and classes that occur in a definition."""
    return {
        name
        for part in ast.walk(node)
        for name in (getattr(part, field, None) for field in ("arg", "id", "attr", "name"))
        if isinstance(name, str)
    }


def misnamed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield lines and quoted words of docstrings whose function, or the class around it, has no such name."""
    owners: list[tuple[ast.AST, set[str]]] = [(tree, set())]
    for owner, around in owners:
        for node in ast.iter_child_nodes(owner):
            names = around
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                if isinstance(node, ast.ClassDef):
                    names = around | {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                quoted = re.findall(r"`(\w+)`", ast.get_docstring(node) or "")
                for word in EMPTY_NAMES.intersection(quoted) - own_names(node) - names:
                    yield node.lineno, word
            owners.append((node, names))


def test_docstrings_name_parameters_as_the_code_does() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in SOURCES
        for line, word in misnamed(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not wrong, "\n".join(wrong)


def test_only_references_to_what_exists_resolve() -> None:
    there = ("castsim.run", "castsim.isa.formats", "castsim.running.program_loading.load", "castsim.numerics")
    assert all(map(resolves, there))
    gone = ("castsim.running.run", "castsim.targets.load_target", "castsim.isa.pto.micro", "castsim.execution.run")
    assert not any(map(resolves, gone))


def test_a_renamed_parameter_is_noticed() -> None:
    text = 'def f(index: int) -> None:\n    """Count from `place` on, below `index`."""\n'
    assert list(misnamed(ast.parse(text))) == [(1, "place")]
    assert not list(misnamed(ast.parse(text.replace("index: int", "place: int"))))

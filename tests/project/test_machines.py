"""One folder per mechanism: whoever has something of its own for each names it in one table, and nobody else asks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from project.test_rooms import ROOT, SOURCES, module_of, relative, tree_of

from castsim.isa.errors import ReadError
from castsim.machines.mechanisms import MACHINES, Machine, machine_of
from castsim.machines.registry import MachinePart
from castsim.reports.pairs import PAIRS, PairsReport
from castsim.targets.description import TargetHeader
from castsim.targets.loader import load_target, target_names
from castsim.targets.tpc_compiler import builtins_of
from castsim.tools.graphs.graph_kernels import WRITING, Writing
from castsim.tools.lowering.catalogue import PLANNING, Planning

MECHANISMS = {load_target(name).mechanism for name in target_names()}
FOLDERS = sorted(path.parent for path in (ROOT / "simulator" / "machines").glob("*/__init__.py"))

TOLD = {
    "simulator/machines/registry.py": "the one place where tables are looked up",
}
"""Modules that read `.mechanism`, each with its reason."""

TILES = {"strided-repeat", "vector-function"}
PARTIAL = {
    "castsim.engines.fast_dataflow.tile_simulation:UNITS": TILES,  # units of the engine that chips with tiles share
    "castsim.tools.expand.expansion:EXPANSIONS": TILES,  # only tile operations have an expansion
    "castsim.engines:TELLING": TILES,  # that engine as it tells of segments; of bundles, the event engine does
    "castsim.reports.launches:LAUNCHES": {"vector-function"},  # no other mechanism launches functions
}
"""The mechanisms of tables that have no row for the others."""


def classes_of_targets() -> set[str]:
    """Names of the classes of targets, and of their unions."""
    found, left = {"Target", "TileTarget"}, [TargetHeader]
    while left:
        left += (kind := left.pop()).__subclasses__()
        found.add(kind.__name__)
    return found


TARGETS = classes_of_targets() - {"TargetHeader"}  # which all of them are: it tells a target from other things
OUTSIDE = [path for path in SOURCES if path.parts[len(ROOT.parts)] != "targets" and not {*FOLDERS} & {*path.parents}]
"""Sources that are of no mechanism's own."""


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """What runs of a source: all but annotations, bases of classes, parameters (`X[...]`) and variables of types."""
    skipped = {"annotation", "returns", "bases"}
    if isinstance(node, ast.Call) and named(node.func) == "TypeVar":
        return
    if isinstance(node, ast.Subscript) and named(node.value):
        skipped |= {"slice"}
    yield node
    for name, value in ast.iter_fields(node):
        if name not in skipped:
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from evaluated(each)


def named(node: ast.AST) -> str:
    """The last word of a name with dots, '' of anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def switches(tree: ast.Module) -> list[int]:
    """Lines in which it matters of which class a target is.

    Whatever does so at run time (`isinstance`, a pattern, `type(...) is`, a table by class) has to name the class,
    or it tries what a target has.
    """
    found = []
    for node in evaluated(tree):
        names_class = isinstance(node, ast.Name | ast.Attribute) and named(node) in TARGETS
        names_class = names_class and not ast.unparse(node).startswith("tvm.")  # TVM's targets are none of ours
        asks = isinstance(node, ast.Call) and (
            named(node.func) == "hasattr" or (named(node.func) == "getattr" and len(node.args) == 3)
        )
        if names_class or (asks and ("target" in named(node.args[0]) or named(node.args[0]) == "chip")):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "switch",
    [
        "isinstance(target, VliwTarget)",
        "isinstance(self.target, StridedRepeatTarget | VectorFunctionTarget)",
        "type(target) is vliw.VliwTarget",
        "{VliwTarget: 1}[type(target)]",
        "rows = {vliw.VliwTarget: 1}",
        "issubclass(type(target), DataflowTarget)",
        "match target:\n    case VliwTarget(name=name):\n        pass",
        "hasattr(loaded.target, 'dialect')",
        "getattr(chip, 'dialect', None)",
    ],
)
def test_a_switch_is_seen(switch: str) -> None:
    assert switches(ast.parse(switch))


def test_types_are_no_switch() -> None:
    text = "def f(target: VliwTarget) -> Target: return target\nclass A(B[VliwTarget]): x: Target\nC = D[Target]"
    assert not switches(ast.parse(text))


def test_nobody_asks_for_the_class_of_a_target() -> None:
    assert len(OUTSIDE) > 300
    assert {relative(path): lines for path in OUTSIDE if (lines := switches(tree_of(path)))} == {}


def test_nobody_compares_the_words_of_mechanisms() -> None:
    """They stand in tables, and only the lookup reads those of targets."""
    reading, spelling = set(), set()
    for path in OUTSIDE:
        tree = tree_of(path)
        tables = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and named(node.func) == "MachinePart"]
        within = {id(node) for table in tables for node in ast.walk(table)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "mechanism":
                reading.add(relative(path))
            if isinstance(node, ast.Constant) and node.value in MECHANISMS and id(node) not in within:
                spelling.add(relative(path))
    assert reading == set(TOLD)
    assert not spelling


@cache
def tables() -> dict[str, MachinePart[Any]]:
    found = {}
    for path in SOURCES:
        if "MachinePart" not in path.read_text(encoding="utf-8"):
            continue  # so that no file is parsed in vain by those who only collect these tests
        for node in tree_of(path).body:
            value = node.value if isinstance(node, ast.AnnAssign) else None
            if isinstance(value, ast.Call) and named(value.func) == "MachinePart":
                module, name = module_of(path), named(node.target)
                found[f"{module}:{name}"] = getattr(import_module(module), name)
    return found


def test_a_room_has_one_table() -> None:
    """But for the two engines, the units and the segments of one of them, and features."""
    rooms = [place.split(".")[1].partition(":")[0] for place in tables()]
    others = ["machines", "reports", "reports", *["tools"] * 4]
    assert sorted(rooms) == ["engines"] * 4 + others
    assert PARTIAL.keys() <= tables().keys()


@pytest.mark.parametrize("place", tables())
def test_every_target_finds_its_row(place: str) -> None:
    table = tables()[place]
    targets = map(load_target, target_names())
    having = [target for target in targets if target.mechanism in PARTIAL.get(place, {target.mechanism})]
    assert set(table.places) == {target.mechanism for target in having}
    for target in having:
        assert table.of(target) is table.of(target)
    with pytest.raises(ReadError) as refused:
        table.of(SimpleNamespace(name="made_up", mechanism="quantum"))  # type: ignore[arg-type]
    assert refused.value.legal == tuple(table.places)


@pytest.mark.parametrize("name", target_names())
@pytest.mark.parametrize(
    ("table", "offered"), [(MACHINES, Machine), (PLANNING, Planning), (WRITING, Writing), (PAIRS, PairsReport)]
)
def test_a_row_is_complete(name: str, table: MachinePart[Any], offered: type) -> None:
    target = load_target(name)
    row = type(machine_of(target)) if table is MACHINES else table.of(target)
    asked = {part for part in (*vars(offered), *offered.__annotations__) if not part.startswith("_")}
    assert asked
    assert not {part for part in asked if not hasattr(row, part)}


def test_a_mechanism_is_a_folder() -> None:
    assert len(FOLDERS) == len(MECHANISMS)
    rows = [machine_of(load_target(name)).parts for name in target_names()]
    assert {row.element_cast.split(".")[2] for row in rows} == {folder.name for folder in FOLDERS}


@pytest.mark.parametrize("name", target_names())
def test_what_a_target_says_of_itself(name: str) -> None:
    """Only A2/A3 has scratch sequences (docs/reference/a2a3.md section 3); builtins are the TPC's."""
    target = load_target(name)
    assert target.has_tiles == ("pto" in target.languages) == ("ub" in target.memories)
    assert (target.scalar_pipe is not None) == target.has_tiles
    assert target.casts_use_scratch == any(target.uses_scratch(rule.src, rule.dst) for rule in target.casts)
    assert target.has_builtins == ("tpc" in target.languages)
    assert not target.has_builtins or builtins_of(target)

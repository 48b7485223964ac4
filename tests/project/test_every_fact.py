"""Every key of a description and every column of its tables is read by code, or marked as informational."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from project.test_rooms import SOURCES, tree_of

from castsim.targets import tpc_compiler
from castsim.targets.description import Table
from castsim.targets.loader import load_specification, load_target, specification_names, target_names

PROVENANCE = {"tile_operations", "variants", "arithmetic", "encoding_fields", "placements", "compiler_converts",
              "integer_converts", "types"}  # fmt: skip
"""Tables of which a key `NAME_fact` has source and status, which `facts_of` finds by its type."""


def tables(owner: type[Table] = Table) -> Iterator[type[Table]]:
    """Yield the tables of the product, those that are derived from others too."""
    for table in owner.__subclasses__():
        if table.__module__.startswith("castsim.targets"):
            yield table
        yield from tables(table)


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Return the attributes that code reads, and the words of its strings, as paths of facts are."""
    for name in target_names():
        load_target(name)
    for name in specification_names():
        load_specification(name)
    assert tpc_compiler.c_types()
    found: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {*node.value.split(".")}
    return found


def test_every_fact_is_read(names: set[str]) -> None:
    fields = {(table.__name__, name) for table in tables() for name in table.model_fields}
    assert len(fields) > 1000
    unread = {(table, name) for table, name in fields if name not in names}
    assert {name.removesuffix("_fact") for _, name in unread} <= PROVENANCE

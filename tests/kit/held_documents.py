"""JSON documents held against their schemas, for tests that run commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema

from castsim.tools.reference import schema as registry

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

NAMES_IN_DIGITS = {
    "version", "version_asked", "versions", "default_version", "since",  # of specifications: `1.1`, `21`
    "castsim", "python", "numpy", "numba", "llvmlite",  # versions of packages
    "name", "output",  # tensors of TOSA text are called 0, 1, 2
    "text", "program", "assembly", "given",  # what somebody typed
    "code",  # bytes in hexadecimal
    "sha256", "facts",
}  # fmt: skip
"""Keys whose texts may consist of digits without being numbers."""


@cache
def validator(command: str) -> jsonschema.Draft202012Validator:
    schema = registry.schema_of(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def strings(node: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, str):
        yield key, node
    elif isinstance(node, dict):
        for name, each in node.items():
            yield from strings(each, name)
    elif isinstance(node, list):
        for each in node:
            yield from strings(each, key)


def keys(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from keys(each)


def hold(command: str, document: Any) -> None:
    """Hold the document of a command against its schema; keys have no blanks, and no text is a number."""
    errors = sorted(validator(command).iter_errors(document), key=jsonschema.exceptions.relevance)
    assert not errors, "\n".join(f"{each.json_path}: {each.message[:300]}" for each in (errors[0], *errors[0].context))
    assert not [key for key in keys(document) if " " in key]
    if command != "schema":
        spelt = {(key, text) for key, text in strings(document) if NUMBER.fullmatch(text)}
        assert not {pair for pair in spelt if pair[0] not in NAMES_IN_DIGITS}

"""Arguments of the wrong type to the functions that users call: a refusal that names function, argument and type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import castsim
from castsim.isa.errors import CastsimError, ReadError

PROGRAM = "programs/f32_to_f16.pto"
ROWS: list[tuple[str, Mapping[str, object], str]] = [
    ("run", {"program": 3}, "program"),
    ("run", {"program": None}, "program"),
    ("run", {"program": PROGRAM, "inputs": np.ones(3)}, "inputs"),
    ("run", {"program": PROGRAM, "inputs": [("src", "zeros")]}, "inputs"),
    ("run", {"program": PROGRAM, "inputs": {1: "zeros"}}, "inputs"),
    ("run", {"program": PROGRAM, "args": 3}, "args"),
    ("run", {"program": PROGRAM, "target": 3}, "target"),
    ("run", {"program": PROGRAM, "max_cycles": "many"}, "max_cycles"),
    ("run", {"program": PROGRAM, "opaque": {1: 2}}, "opaque"),
    ("cast", {"array": [1.0], "src": "f32", "dst": "f16", "options": 3}, "options"),
    ("cast", {"array": [1.0], "src": "f32", "dst": "f16", "policy": 3}, "policy"),
    ("estimate", {"src": "f32", "dst": "f16", "rows": 16, "cols": 64, "target": 3}, "target"),
    ("estimate", {"src": "f32", "dst": "f16", "rows": 16, "cols": 64, "target": "a5", "rounding": 3}, "rounding"),
    ("lower", {"src": "f32", "dst": "f16", "target": "a5", "via": np.ones(2)}, "via"),
    ("check", {"path": 3}, "path"),
    ("check_text", {"name": 3, "text": "x"}, "name"),
    ("diff", {"a": 3}, "a"),
    ("compare", {"x": [1.0], "given": [1.0], "src": "f32", "dst": "f16", "target": 3}, "target"),
    ("conform", {"spec": 3}, "spec"),
    ("conform", {"spec": "tosa", "targets": 3}, "targets"),
    ("quantise", {"array": [1.0], "src": "f32", "dst": 3}, "dst"),
    ("dequantise", {"elements": [1], "scales": [1], "src": 3}, "src"),
    ("sweep", {"specification": 3, "out": "x"}, "specification"),
    ("tune", {"program": PROGRAM, "tile": 3}, "tile"),
    ("accuracy", {"data": 3}, "data"),
    ("advise", {"program": 3}, "program"),
    ("builtin", {"name": 3, "target": "gaudi2", "x": [1.0]}, "name"),
    ("load_target", {"name": 3}, "name"),
]


@pytest.mark.parametrize(("function", "arguments", "wrong"), ROWS)
def test_an_argument_of_another_type_is_refused(function: str, arguments: Mapping[str, object], wrong: str) -> None:
    with pytest.raises(ReadError) as refused:
        getattr(castsim, function)(**arguments)
    assert isinstance(refused.value, CastsimError)
    assert str(refused.value).startswith(f"{function}: {wrong} has type {type(arguments[wrong]).__name__}")
    assert refused.value.legal


def test_types_that_stand_for_others_are_taken() -> None:
    assert castsim.run(PROGRAM, timing_only=True, max_cycles=1e6).cycles == 450
    assert castsim.run(PROGRAM, timing_only=True, max_cycles=np.int64(10**6)).cycles == 450
    assert castsim.load_target(castsim.load_target("a5")).name == "a5"

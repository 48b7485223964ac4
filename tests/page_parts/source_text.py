"""What sources say beside a name: the string below an enumeration's member or a model's field."""

from __future__ import annotations

import ast
import inspect
from functools import cache


@cache
def told(owner: type) -> dict[str, str]:
    """Return the text below each name that a class assigns or annotates, by name; nothing for names without one."""
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if isinstance(text, str) and isinstance(targets[0], ast.Name):
            found[targets[0].id] = " ".join(text.split())
    return found

"""The operations of TileLang's register dialect as its package defines them: table `tests/vectors/tilelang_simd.csv`.

Read from the source of `tilelang/ascend/language/simd.py` (MIT): parameters of each public function, what its call of
`tl.simd.NAME` passes on in this order, and the formula of its docstring. Run this file to write the table anew.
"""

from __future__ import annotations

import ast
import csv
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from kit.paths import VECTORS

TABLE = VECTORS / "tilelang_simd.csv"
COLUMNS = ("operation", "parameters", "passed", "definition", "package")
_FORMULA = re.compile(r"(?:dst|dst\[lane\]|base\[index\[lane\]\]) = (?![\w<>]+\()[^\n]*|dst = exp[^\n]*|mask \? [^\n]*")


def simd_source() -> Path:
    """Return the file of the installed package that defines the operations."""
    (folder,) = importlib.util.find_spec("tilelang").submodule_search_locations
    return Path(folder) / "ascend" / "language" / "simd.py"


def rows() -> list[dict[str, str]]:
    """Return the rows of the table, in the order of the package's source."""
    package = f"tilelang {importlib.metadata.version('tilelang')}"
    table = []
    for function in ast.parse(simd_source().read_text(encoding="utf-8")).body:
        if not isinstance(function, ast.FunctionDef) or function.name.startswith("_"):
            continue
        calls = [given for name, given in _calls(function) if name == function.name]
        passed = [" ".join(map(ast.unparse, given)) for given in calls]
        if not passed:
            continue
        formula = _FORMULA.search(ast.get_docstring(function) or "")
        table.append({
            "operation": function.name,
            "parameters": " ".join(word.arg for word in (*function.args.args, *function.args.kwonlyargs)),
            "passed": passed[0],
            "definition": formula[0].strip(" .`") if formula else "",
            "package": package,
        })  # fmt: skip
    return table


def committed() -> list[dict[str, str]]:
    """Return the rows that the project holds."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _calls(function: ast.FunctionDef) -> Iterator[tuple[str, list[ast.expr]]]:
    """Yield operations and what is passed to them: by `call_intrin`, or by a helper that two operations share."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or len(node.args) < 2:  # `_Op(NAME)` names alone
            continue
        intrinsic = isinstance(node.func, ast.Attribute) and node.func.attr == "call_intrin"
        named = node.args[1].args[0] if intrinsic and isinstance(node.args[1], ast.Call) else node.args[0]
        if isinstance(named, ast.Constant) and (intrinsic or isinstance(node.func, ast.Name)):
            yield str(named.value).removeprefix("tl.simd."), node.args[2 if intrinsic else 1 :]


if __name__ == "__main__":
    with TABLE.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows())

"""Which sources a proof is about: those that compute and choose, found by their imports; comments do not count."""

from __future__ import annotations

import ast
import hashlib
import sys
from pathlib import Path

import pytest

from castsim.evidence.verification import source_digests, sources
from castsim.evidence.verification.sources import digest_of, stripped

SAMPLE = '''"""Docstring."""

import one  # a comment
from two import three


def increment(value: int) -> int:
    """Return more.

    Much more.
    """

    # This is why.
    text = "# no comment"  # but this is
    return value + 1, text


LIMIT = 3
"""What it means."""
'''


def test_what_cannot_change_a_bit_does_not_count() -> None:
    bare = [
        "import one", "from two import three", "def increment(value: int) -> int:", '    text = "# no comment"',
        "    return value + 1, text", "LIMIT = 3",
    ]  # fmt: skip
    assert stripped(SAMPLE) == "\n".join(bare)


@pytest.mark.parametrize(
    ("old", "new"), [("value + 1", "value - 1"), ("LIMIT = 3", "LIMIT = 4"), ("# no comment", "# a comment")]
)
def test_everything_else_counts(old: str, new: str) -> None:
    assert stripped(SAMPLE.replace(old, new)) != stripped(SAMPLE)


@pytest.mark.parametrize("path", sorted(sources.PACKAGES["castsim"].joinpath("numerics").rglob("*.py")), ids=str)
def test_what_remains_is_the_same_program(path: Path) -> None:
    """Apart from docstrings, stripping changes no syntax tree."""

    class Docless(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
            is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            return None if is_text else node

    source = path.read_text()
    wanted = Docless().visit(ast.parse(source))
    for node in ast.walk(wanted):  # a body that was a docstring only would be empty and is not valid on its own
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.body:
            pytest.skip("has a class or function that is a docstring only")
    assert ast.dump(ast.parse(stripped(source))) == ast.dump(wanted)


def test_the_files_are_those_that_computing_a_cast_imports() -> None:
    """Every module of the numerics that is loaded by its tiers is in the list, the boundary to users is not."""
    names = set(source_digests(oracle=False))
    for module in ("rounding", "pack", "unpack", "specials", "cast", "blocks", "policy", "tables", "tiers", "e8m0"):
        assert f"castsim/numerics/{module}.py" in names
    assert {"castsim/isa/formats.py", "castsim/isa/modes.py"} <= names
    assert {f"castsim/evidence/verification/{module}.py" for module in ("structured", "comparison")} <= names
    for stranger in (
        "castsim/numerics/strings.py",
        "castsim/numerics/arrays.py",
        "castsim/isa/errors.py",
        "castsim/isa/pto/lexer.py",
    ):
        assert stranger not in names
    compiled = sources.PACKAGES["castsim"] / "numerics" / "compiled"
    loaded = {path for path in compiled.glob("*.py") if f"castsim.numerics.compiled.{path.stem}" in sys.modules}
    assert {f"castsim/numerics/compiled/{path.name}" for path in loaded} <= names


def test_the_oracle_counts_where_it_takes_part() -> None:
    more = set(source_digests(oracle=True)) - set(source_digests(oracle=False))
    assert more >= {"tests/oracle.py", "tests/oracle_array.py", "tests/oracle_formats.py", "tests/oracle_scalar.py"}
    assert all(name.startswith("tests/oracle") for name in more)


def test_one_digest_for_all() -> None:
    files = {"b": "2" * 64, "a": "1" * 64}
    text = f"{'1' * 64}  a\n{'2' * 64}  b\n"  # the lines that sha256sum prints
    assert digest_of(files) == hashlib.sha256(text.encode()).hexdigest()

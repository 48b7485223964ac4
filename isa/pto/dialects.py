"""Dialects of PTO programs that languages add: the folder that reads, prints and lowers the operations of each."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from castsim.isa.errors import ReadError

LOGICAL = "vmi"
"""The dialect of logical registers, with operations named `pto.vmi.NAME`."""

NAMES = {LOGICAL: "logical registers (pto.vmi)"}
"""What each dialect is, by the prefix of its operations after `pto.`."""

DIALECTS: dict[str, str] = {
    LOGICAL: "castsim.languages.vmi",
}
"""The folder of each installed dialect.

Its module `operations` has `NAMES`, `read_operation` and `operation_text`; its module `lowering` has `lower_function`,
which replaces the operations of a function by micro operations.
"""


def dialect_of(name: str) -> str | None:
    """Return the dialect of an operation `pto.DIALECT.NAME`; None if it belongs to none."""
    prefix, dialect, *rest = name.split(".", 2) if name.count(".") > 1 else (name, "")
    return dialect if rest and prefix == "pto" and dialect in NAMES else None


def dialect_module(dialect: str, module: str) -> ModuleType:
    """Return a module of a dialect's folder, which is loaded on first use.

    Raises:
        ReadError: this installation lacks the dialect.
    """
    if dialect not in DIALECTS:
        raise ReadError(f"this castsim was installed without {NAMES[dialect]}")
    return import_module(f"{DIALECTS[dialect]}.{module}")


def dialect_names() -> tuple[str, ...]:
    """Return the names of all operations of the installed dialects."""
    return tuple(name for dialect in DIALECTS for name in dialect_module(dialect, "operations").NAMES)

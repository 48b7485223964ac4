"""Dialects of PTO programs that languages add: the folder that reads, prints and lowers the operations of each."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from castsim.isa.errors import NOWHERE, ReadError, Span

LOGICAL = "vmi"
"""The dialect of logical registers, with operations named `pto.vmi.NAME`."""

NAMES = {LOGICAL: "logical registers (pto.vmi)"}
"""What each dialect is, by the prefix of its operations after `pto.`."""

DIALECTS: dict[str, str] = {
    LOGICAL: "castsim.languages.vmi",
}
"""The folder of each installed dialect.

Its module `types` has `TYPES` and their `READERS`, `operations` has `NAMES`, `read_operation` and `operation_text`;
`lowering` has `lower_function`, which replaces the operations of a function by micro operations.
"""


def dialect_of(name: str) -> str | None:
    """Return the dialect of an operation or type `pto.DIALECT.NAME`; None if it belongs to none."""
    prefix, dialect, *rest = name.split(".", 2) if name.count(".") > 1 else (name, "")
    return dialect if rest and prefix == "pto" and dialect in NAMES else None


def dialect_module(dialect: str, module: str, span: Span = NOWHERE) -> ModuleType:
    """Return a module of a dialect's folder, which is loaded on first use; `span` is what needs it.

    Raises:
        ReadError: this installation lacks the dialect.
    """
    if dialect not in DIALECTS:
        raise ReadError(f"this castsim was installed without {NAMES[dialect]}", span=span)
    return import_module(f"{DIALECTS[dialect]}.{module}")


def dialect_names() -> tuple[str, ...]:
    """Return the names of all operations of the installed dialects."""
    return tuple(name for dialect in DIALECTS for name in dialect_module(dialect, "operations").NAMES)


def dialect_types() -> tuple[str, ...]:
    """Return the types of the installed dialects."""
    return tuple(name for dialect in DIALECTS for name in dialect_module(dialect, "types").TYPES)

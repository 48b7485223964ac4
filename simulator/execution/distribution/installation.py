"""What makes two installations give the same results: their version and their source files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import castsim
from castsim.isa.errors import EngineError

_PACKAGES = ("castsim", "castsim.isa", "castsim.targets")
_SUFFIXES = (".py", ".toml", ".csv", ".json")
"""Of sources, tables, and records of what was tried on all codes: verdicts call proven what these hold."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation: its version, the SHA-256 of its sources, tables and records, and that of what else decides.

    `beside` is what a task's function of that name returns: the digest of the oracle, which lies with the tests; ''
    if there is no such function.
    """

    version: str
    sources: str
    beside: str = ""


def installation(beside: Callable[[], str] | None = None) -> Installation:
    """Return what this installation is."""
    return Installation(castsim.__version__, sources_digest(), "" if beside is None else beside())


def refuse_another(wanted: Installation, here: Installation, worker: str, what: str) -> None:
    """Refuse a worker whose installation is not the one that began the work, which is called `what`.

    Raises:
        EngineError: they differ; says in what.
    """
    for name, own, other in (
        ("version", wanted.version, here.version),
        ("source files", wanted.sources, here.sources),
        ("oracle", wanted.beside, here.beside),
    ):
        if own != other:
            raise EngineError(
                f"worker {worker} has another castsim: its {name} ({_short(other)}) are not those of the {what} "
                f"({_short(own)})"
            )


@cache
def sources_digest() -> str:
    """Return the SHA-256 of the source files, tables and records, whose paths count from the packages."""
    found: dict[str, Path] = {}
    for package in _PACKAGES:
        root = Path(str(files(package)))
        for path in root.rglob("*"):
            if path.suffix in _SUFFIXES:
                found[f"{package}/{path.relative_to(root).as_posix()}"] = path
    return digest_of(*(part for name in sorted(found) for part in (name.encode(), found[name].read_bytes())))


def digest_of(*parts: bytes) -> str:
    """Return one SHA-256 over parts, of which none runs into the next."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def _short(text: str) -> str:
    return text[:12] or "none"

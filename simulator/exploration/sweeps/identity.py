"""What makes two installations give the same rows: version, source files, facts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import castsim
from castsim.isa.errors import EngineError
from castsim.targets import Target, load_target

_PACKAGES = ("castsim", "castsim.isa", "castsim.targets")
_SUFFIXES = (".py", ".toml", ".csv")


@dataclass(frozen=True, slots=True)
class Identity:
    """An installation: its version, the SHA-256 of its source files, and those of the facts of targets by name."""

    version: str
    sources: str
    facts: Mapping[str, str]

    @property
    def facts_digest(self) -> str:
        """One SHA-256 over those of all targets."""
        return _digest(*(part.encode() for pair in sorted(self.facts.items()) for part in pair))


def identity(targets: Mapping[str, Target]) -> Identity:
    """Return the identity of this installation, with targets by the names that a sweep gives them."""
    return Identity(castsim.__version__, _sources(), {name: facts_digest(each) for name, each in targets.items()})


def facts_digest(target: Target) -> str:
    """Return the SHA-256 of all that a target's description says."""
    return _digest(_canonical(target.model_dump()).encode())


def _canonical(value: object) -> str:
    """Return a value in one form: sets and tables have no order."""
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_canonical(key)}:{_canonical(each)}" for key, each in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted(map(_canonical, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return repr(str(value) if isinstance(value, str) else value)


def refuse_another(wanted: Identity, shipped: Mapping[str, str]) -> None:
    """Refuse to work here for a sweep that another installation has begun.

    `shipped` names the shipped target for each name of the sweep that is one.

    Raises:
        EngineError: version, sources or facts differ; says which.
    """
    differs = (
        "version" if wanted.version != castsim.__version__
        else "facts" if any(wanted.facts[name] != _shipped_digest(each) for name, each in shipped.items())
        else "source files" if wanted.sources != _sources()
        else ""
    )  # fmt: skip
    if differs:
        here, there = (
            (castsim.__version__, wanted.version)
            if differs == "version"
            else (_sources()[:12], wanted.sources[:12])
            if differs == "source files"
            else ("other digests", wanted.facts_digest[:12])
        )
        raise EngineError(
            f"this worker has another castsim: its {differs} ({here}) are not those of the sweep ({there})"
        )


@cache
def _shipped_digest(name: str) -> str:
    return facts_digest(load_target(name))


@cache
def _sources() -> str:
    """Return the SHA-256 of the source files and tables, whose paths count from the packages."""
    found: dict[str, Path] = {}
    for package in _PACKAGES:
        root = Path(str(files(package)))
        for path in root.rglob("*"):
            if path.suffix in _SUFFIXES:
                found[f"{package}/{path.relative_to(root).as_posix()}"] = path
    return _digest(*(part for name in sorted(found) for part in (name.encode(), found[name].read_bytes())))


def _digest(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()

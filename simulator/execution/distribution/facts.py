"""What a target's description says, as one digest."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.execution.distribution.installation import digest_of
from castsim.targets import Target


def facts_digest(target: Target) -> str:
    """Return the SHA-256 of all that a target's description says."""
    return digest_of(_canonical(target.model_dump()).encode())


def _canonical(value: object) -> str:
    """Return a value in one form: sets and tables have no order."""
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_canonical(key)}:{_canonical(each)}" for key, each in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted(map(_canonical, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return repr(str(value) if isinstance(value, str) else value)

"""Who computed what: the worker's name, and the versions and digest of what it computed with."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np

import castsim
from castsim.execution.distribution.installation import sources_digest

LOCAL_NAME = "local"
"""The name of this machine's processes."""


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where a result comes from: a worker of a cluster by its name, or `local`; versions; the digest of its sources."""

    worker: str
    castsim: str
    python: str
    numpy: str
    sources_sha256: str


@cache
def origin(worker: str = LOCAL_NAME) -> Origin:
    """Return the origin of what is computed in this process."""
    return Origin(worker, castsim.__version__, platform.python_version(), np.__version__, sources_digest())


def origin_of(held: Mapping[str, object]) -> Origin:
    """Return the origin that a document describes.

    Raises:
        KeyError: it lacks a part.
    """
    return Origin(*(str(held[name]) for name in Origin.__dataclass_fields__))


class Origins:
    """Distinct origins in the order of their first mention, each known by its place in the list."""

    def __init__(self, held: Iterable[Origin] = ()) -> None:
        self._places: dict[Origin, int] = {}
        for each in held:
            self.place(each)

    def place(self, one: Origin) -> int:
        """Return the place of an origin, which is added if it is new."""
        return self._places.setdefault(one, len(self._places))

    def documents(self) -> list[dict[str, str]]:
        """Return all as JSON."""
        return [asdict(one) for one in self._places]

"""The result that a command hands back for delivery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

SCHEMA_VERSION = 1
"""Version of the shape of all JSON documents; the first key of each."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished command: its JSON document without the version, its text (made only if printed), its exit code.

    A document with a `schema_version` of its own has another meaning than that of the first version.

    `text` gets the width of the terminal in characters, as does `summary`, which replaces it where no more than one
    screen is wanted; None: the beginning and the end of `text`. `delivered` is called once all of it is written.
    """

    document: Mapping[str, Any]
    text: Callable[[int], RenderableType]
    code: int = 0
    summary: Callable[[int], RenderableType] | None = None
    delivered: Callable[[], None] | None = None

"""A task as it is handed to whoever carries out a piece of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from castsim.execution.distribution.installation import Installation
from castsim.execution.distribution.origins import Origin

Piece = TypeVar("Piece")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Task(Generic[Piece, Result]):
    """What is done with every piece: `compute`, on installations that are this one.

    `name` is what messages call it: `sweep`, `verification`. `compute` and pieces are pickled: a function of a module,
    or a partial of one. `beside` returns a digest of what results depend on besides castsim itself.
    """

    name: str
    compute: Callable[[Piece], Result]
    installation: Installation
    beside: Callable[[], str] | None = None


class Done(NamedTuple, Generic[Piece, Result]):
    """A piece, what came of it, and where that comes from."""

    piece: Piece
    result: Result
    origin: Origin

"""Laying a derived description over its base: what it changes needs a source and a status of its own.

A source says where the numbers of its table are from. It says nothing of a number that another description puts in
their place, so a table that changes one states both anew; notes and comparisons with published cycles that belonged to
the old numbers go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from castsim.isa.errors import Span, TargetDataError
from castsim.targets.schema import Fact

_NEEDED = ("source", "status")
_ABOUT = frozenset(Fact.model_fields)
FACT = "_fact"
"""Ending of the key under which source and status of a table kept as CSV stand."""

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Owner:
    """The innermost table around a key that has a source, and what the derived description says in it."""

    path: Keys
    change: Mapping[str, Any]


class Overlay:
    """Lays descriptions over each other; `unsaid` are the changed facts whose tables do not say where they are from."""

    def __init__(self) -> None:
        self.unsaid: list[TargetDataError] = []

    def merged(
        self, base: Mapping[str, Any], change: Mapping[str, Any], place: Callable[[Keys], Span | None]
    ) -> dict[str, Any]:
        """Return `base` with `change` laid over it: tables merge key by key, everything else is replaced.

        Args:
            base: the whole of what the base says.
            change: what the derived description says.
            place: where a key of that stands.
        """
        return _overlaid(base, change, (), None, lambda owner, path: self._check(owner, path, place))[0]

    def _check(self, owner: _Owner, path: Keys, place: Callable[[Keys], Span | None]) -> None:
        missing = [name for name in _NEEDED if name not in owner.change]
        if missing:
            message = (
                f"{'.'.join(path)} is changed without saying where it comes from: write {' and '.join(missing)} into "
                f"[{'.'.join(owner.path)}] as well; those of the base are of its own number"
            )
            self.unsaid.append(TargetDataError(message, span=place(path)))


def _overlaid(
    base: Mapping[str, Any],
    change: Mapping[str, Any],
    path: Keys,
    owner: _Owner | None,
    check: Callable[[_Owner, Keys], None],
) -> tuple[dict[str, Any], bool]:
    """Return the merged table, and whether a fact of it has changed."""
    if "source" in base:
        owner = _Owner(path, change)
    merged, changed = dict(base), False
    for key, value in change.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[key], inner = _overlaid(below, value, (*path, key), owner, check)
            changed |= inner
            continue
        merged[key] = value
        if key in _ABOUT or (key in base and _same(below, value)):
            continue
        changed = True
        if not path and f"{key}{FACT}" in base:
            check(_Owner((key,), change.get(f"{key}{FACT}", {})), (key,))
        elif owner is not None:
            check(owner, (*path, key))
    if not path:
        _forget_csv(base, change, merged)
    elif changed and "source" in base:
        _forget(merged, change)
    return merged, changed


def _forget_csv(base: Mapping[str, Any], change: Mapping[str, Any], merged: dict[str, Any]) -> None:
    for key, fact in change.items():
        if key.endswith(FACT) and not _same(base.get(key.removesuffix(FACT)), change.get(key.removesuffix(FACT))):
            _forget(merged[key], fact)


def _forget(merged: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Drop what was said of the numbers of the base, unless it is said anew."""
    for said in ("note", "evidence"):
        if said not in change:
            merged.pop(said, None)
    if "validated" not in change and isinstance(merged.get("validated"), bool):
        merged["validated"] = False


def _same(one: object, other: object) -> bool:
    """Whether two values are one: a truth value is not a number."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other

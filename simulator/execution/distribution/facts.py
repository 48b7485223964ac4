"""What a target's description says, as one digest, and targets that are handed to others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from castsim.execution.distribution.installation import digest_of
from castsim.targets import Target, load_target, target_names


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


_KNOWN: dict[str, Target] = {}


@dataclass(frozen=True, slots=True)
class HandedTargets:
    """Targets for workers elsewhere: a shipped one they load by its name, one of a file they are given."""

    files: Mapping[str, Target] = field(default_factory=dict)
    _known: dict[str, Target] = field(default_factory=dict, init=False, repr=False, compare=False)

    def get(self, name: str) -> Target | None:
        """Return the target of a file, None for one to be loaded.

        It is the same object for the same facts, by which what was found out about a target is known.
        """
        own = self.files.get(name)
        if own is None:
            return None
        if name not in self._known:  # a digest takes as long as many of the pieces that ask for the target
            self._known[name] = _KNOWN.setdefault(facts_digest(own), own)
        return self._known[name]


def handed_targets(names: Iterable[str]) -> HandedTargets:
    """Return targets by their names or paths.

    Raises:
        ReadError, TargetDataError: one cannot be read.
    """
    shipped = target_names()
    return HandedTargets({name: load_target(name) for name in names if name not in shipped})

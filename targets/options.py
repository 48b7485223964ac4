"""Changing the options of a target, and noting which of them a run reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from castsim.isa.errors import ReadError
from castsim.targets.schema import Option, TargetHeader
from castsim.targets.transfers import with_cores

CORES = "cores"
"""The name by which the number of cores at work is set among options."""

_Target = TypeVar("_Target", bound=TargetHeader)


def with_options(target: _Target, values: Mapping[str, int | str]) -> _Target:
    """Return the target with other values for some of its options; the target itself stays as it is.

    A number may come as text. `cores` says how many cores work at once, as an option would (`with_cores`).

    Raises:
        ReadError: no such option, or a value that it cannot have; the legal ones are listed.
        IllegalError: cores, and nothing is known of those of the target.
    """
    if CORES in values:
        target = with_cores(target, values[CORES])
    options = target.options.copy()
    for name, value in values.items():
        if name == CORES:
            continue
        if name not in options:
            raise ReadError(f"{target.name} has no option '{name}'", legal=options)
        options[name] = _set(name, options[name], value)
    return target.model_copy(update={"options": options})


def _set(name: str, option: Option, value: int | str) -> Option:
    found = next((legal for legal in option.legal if str(legal) == str(value)), None)
    if found is None:
        raise ReadError(f"option {name} cannot be '{value}'", legal=map(str, option.legal))
    return option.model_copy(update={"value": found})


class _Watched(dict[str, Option]):
    """The options of a target; `read` collects the names of those that are looked up."""

    def __init__(self, options: Mapping[str, Option], read: set[str]) -> None:
        super().__init__(options)
        self.read = read

    def copy(self) -> _Watched:
        """Return a copy that goes on noting."""
        return _Watched(self, self.read)

    def __getitem__(self, name: str) -> Option:
        self.read.add(name)
        return super().__getitem__(name)


def unwatched(target: _Target) -> _Target:
    """Return a copy of the target whose options are looked up without anybody's notice."""
    return target.model_copy(update={"options": dict(target.options)})


def watched(target: _Target, read: set[str]) -> _Target:
    """Return a copy of the target that adds to `read` the name of every option that is looked up."""
    return target.model_copy(update={"options": _Watched(target.options, read)})

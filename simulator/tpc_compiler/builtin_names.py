"""The builtins of TPC-C by name: casts and special functions; nothing of this reads a program or computes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.machines.vliw import targets_running, tpc_target
from castsim.targets.loader import Target, load_target
from castsim.targets.tpc_compiler import BuiltinRow, SpecialFunction, all_builtins, builtins_of, library_functions
from castsim.targets.vliw import VliwTarget

_PREFIXES = ("", "__builtin_", "__builtin_cast_")
"""The beginnings of names that may be left out."""
_NEAR, _SIMILARITY = 5, 0.5


def find_builtin(name: str, target: VliwTarget) -> BuiltinRow:
    """Return a cast builtin of a target; `__builtin_cast_` or `__builtin_` may be left out of its name.

    Raises:
        ReadError: no generation has it; names the nearest ones.
        IllegalError: only other generations have it, or it is a special function.
    """
    spellings = [prefix + name for prefix in _PREFIXES]
    for row in builtins_of(target):
        if row.builtin in spellings:
            return row
    for special in library_functions():
        if special.builtin in spellings:
            what = f"{special.builtin}, {special.signature}"
            raise IllegalError(f"{what}, is no cast", legal=(f"castsim builtin {special.builtin}",))
    raise _missing(name, spellings, target)


def is_cast(name: str, target: VliwTarget) -> bool:
    """Whether a name is that of a cast builtin of a target."""
    spellings = [prefix + name for prefix in _PREFIXES]
    return any(row.builtin in spellings for row in builtins_of(target))


def builtin_target(target: str | Path | Target) -> VliwTarget:
    """Return a target that has builtins.

    Raises:
        ReadError, TargetDataError: as `castsim.targets.load_target`.
        IllegalError: it has none.
    """
    found = load_target(target) if isinstance(target, str | Path) else target
    return tpc_target(found, f"{found.name} has no builtins: they belong to TPC-C")


def generations() -> Iterator[str]:
    """Yield the names of the shipped targets that have builtins."""
    yield from targets_running("tpc")


def _missing(name: str, spellings: list[str], target: VliwTarget) -> CastsimError:
    having = [row.generation for row in all_builtins() if row.builtin in spellings]
    if having:
        return IllegalError(f"{target.name} has no builtin '{name}'; those that have it are listed", legal=having)
    every = dict.fromkeys(row.builtin for row in (*builtins_of(target), *all_builtins()))
    every |= dict.fromkeys(special.builtin for special in library_functions())
    shortest = {_bare(each): each for each in every}
    bare = _bare(name)
    near = difflib.get_close_matches(bare, shortest, _NEAR, _SIMILARITY)
    legal = [shortest[each] for each in near] or [row.builtin for row in builtins_of(target)]
    return ReadError(f"unknown builtin '{name}'", legal=legal)


def _bare(name: str) -> str:
    """Return a name without what may be left out."""
    bare = name.removeprefix("__builtin_").removeprefix("cast_")
    return bare.removeprefix("v_").removeprefix("s_").removesuffix("_f32")


_UNITS, _TYPE = ("v_", "s_"), "_f32"


def find_function(name: str, target: VliwTarget) -> SpecialFunction | None:
    """Return a special function; `__builtin_`, the unit and the end of a name may be left out where that is unique.

    None: no function is called so.

    Raises:
        ReadError: several functions begin so.
        IllegalError: other generations have it.
    """
    rows = library_functions()
    found = [row for row in rows if name in _spellings(row)]
    found = found or [row for row in rows if _without_unit(row).startswith(f"{name}_")]
    if not found:
        return None
    here = [row for row in found if any(each in row.generations for each in target.architectures)]
    if not here:
        having = dict.fromkeys(generation for row in found for generation in row.generations)
        raise IllegalError(f"{target.name} has no builtin '{name}'; those that have it are listed", legal=having)
    if name in (each for row in here for each in _spellings(row)):  # one of the table of builtins, not its twin
        here = [row for row in here if row.published] or here
    if len(here) > 1:
        raise ReadError(f"several builtins are called '{name}'", legal=[row.builtin for row in here])
    return here[0]


def _without_unit(row: SpecialFunction) -> str:
    return row.name[2:] if row.name.startswith(_UNITS) else row.name


def _spellings(row: SpecialFunction) -> tuple[str, ...]:
    return row.builtin, row.name, _without_unit(row), _without_unit(row).removesuffix(_TYPE)

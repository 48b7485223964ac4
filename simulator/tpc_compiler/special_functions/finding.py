"""Finding special functions by their names, long or short."""

from __future__ import annotations

from castsim.isa.errors import IllegalError, ReadError
from castsim.targets.tpc_special_functions import SpecialFunction, library_functions
from castsim.targets.vliw import VliwTarget

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
    found = found or [row for row in rows if _bare(row).startswith(f"{name}_")]
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


def _bare(row: SpecialFunction) -> str:
    return row.name[2:] if row.name.startswith(_UNITS) else row.name


def _spellings(row: SpecialFunction) -> tuple[str, ...]:
    return row.builtin, row.name, _bare(row), _bare(row).removesuffix(_TYPE)

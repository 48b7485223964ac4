"""Virtual registers: how a text names them, and the numbers beyond the files that stand for them until allocation.

`%v.x`, `%s.x`, `%i.x`, `%ad.x`, `%vp.x` and `%sp.x` are registers of a file; `%d.x` and `%a.x` are a pair and a quad of
V, `%z.x` a pair of S, whose single registers are `%v.x.0`, `%v.x.1` and so on. One name of one file is one register or
group: `%d.x` and `%v.x.0` begin at the same place. Grammar: docs/reference/tpc.md section 7.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from castsim.isa.errors import CastsimError, ReadError, Span
from castsim.isa.tpc import Dialect
from castsim.isa.tpc.program import GROUPED, File, Register

FIRST = 1000
"""The number of the first virtual register; no file is so large."""
STRIDE = 4
"""Numbers of a virtual register: those of the largest group."""
_MOST = 999_996
"""The reader takes numbers of up to six digits."""

NAME = re.compile(r"%(vp|sp|ad|[vsidaz])\.([A-Za-z0-9_]+)(?:\.([0-3]))?", re.IGNORECASE)
"""A virtual register in a text."""


def has_virtual_registers(text: str) -> bool:
    """Whether an assembly text names virtual registers, so that it has to be scheduled before it can run."""
    return NAME.search(text) is not None


SPELLINGS = ("%v.NAME", "%s.NAME", "%i.NAME", "%ad.NAME", "%vp.NAME", "%sp.NAME", "%d.NAME", "%a.NAME", "%z.NAME")

_PLACEHOLDER = re.compile(rf"\b(VP|SP|AD|[VDASZI])(\d{{{len(str(FIRST))},6}})\b")
_RANGE = re.compile(rf"\b(VP|SP|AD|[VDASZI])0 \.\. {_MOST - 1}\b")
"""The registers of a widened file, as messages list them."""
_GROUPS = {file: [group for group, (whole, _) in GROUPED.items() if whole is file] for file in (File.V, File.S)}


@dataclass(frozen=True, slots=True)
class Unit:
    """A virtual register or group: its file, and its number among those of the file."""

    file: File
    number: int

    @property
    def base(self) -> int:
        """The number that stands for its first register."""
        return FIRST + STRIDE * self.number


def unit_of(register: Register) -> Unit | None:
    """Return the virtual register that a register stands for, None for a real one."""
    if register.index < FIRST:
        return None
    return Unit(GROUPED.get(register.file, (register.file, 1))[0], (register.index - FIRST) // STRIDE)


@lru_cache(maxsize=1 << 16)
def unit_of_cell(name: str) -> Unit | None:
    """Return the virtual register that a register cell, `V1004`, belongs to; None for a real one."""
    match = _PLACEHOLDER.fullmatch(name)
    return None if match is None else unit_of(Register(File(match[1]), int(match[2])))


@dataclass(slots=True)
class Names:
    """The virtual registers of a text. `sizes` are the registers that each needs, 1, 2 or 4."""

    units: dict[tuple[File, str], Unit] = field(default_factory=dict)
    shown: dict[Unit, str] = field(default_factory=dict)
    sizes: dict[Unit, int] = field(default_factory=dict)
    counts: dict[File, int] = field(default_factory=dict)
    places: dict[tuple[int, Unit], Span] = field(default_factory=dict)
    """Where the instruction of a line names a virtual register."""

    def placeholder(self, text: str, span: Span) -> str:
        """Return the register that stands for a virtual one in the text, `V1004` for `%v.x`.

        Raises:
            ReadError: no name of a virtual register; a member of a file that has no groups.
        """
        match = NAME.fullmatch(text)
        if match is None:
            raise ReadError(f"'{text[:40]}' names no virtual register", span=span, legal=SPELLINGS)
        file = File(match[1].upper())
        whole, size = GROUPED.get(file, (file, 1))
        member = int(match[3] or 0)
        if match[3] is not None and (size > 1 or whole not in _GROUPS):
            message = f"'{text[:40]}': only the registers of a group have numbers, in the file of single ones"
            raise ReadError(message, span=span, legal=("%v.NAME.0 .. %v.NAME.3", "%s.NAME.0", "%s.NAME.1"))
        unit = self.unit(whole, match[2])
        self.need(unit, max(size, member + 1), span)
        return f"{file}{unit.base + member}"

    def unit(self, file: File, name: str) -> Unit:
        """Return the virtual register of a name, a new one if there is none."""
        found = self.units.get((file, name))
        if found is None:
            found = self.units[file, name] = self.fresh(file, name)
        return found

    def fresh(self, file: File, name: str) -> Unit:
        """Return a new virtual register that no text names; messages call it `name`."""
        found = Unit(file, self.counts.get(file, 0))
        self.counts[file] = found.number + 1
        self.shown[found] = name
        self.sizes[found] = 1
        return found

    def renamed(self, unit: Unit) -> Unit:
        """Return a new virtual register for another value of one."""
        found = self.fresh(unit.file, self.shown[unit])
        self.sizes[found] = self.sizes[unit]
        return found

    def need(self, unit: Unit, registers: int, span: Span | None = None) -> None:
        """Record how many registers a unit stands for: 1, 2 or 4.

        Raises:
            ReadError: there are more virtual registers than numbers.
        """
        size = 1 if registers == 1 else 2 if registers == 2 else STRIDE
        self.sizes[unit] = max(self.sizes[unit], size)
        if unit.base > _MOST - STRIDE:
            raise ReadError("too many virtual registers", span=span)

    def spelling(self, unit: Unit) -> str:
        """Return a virtual register as a text names it: `%v.x`, or `%d.x` for a pair."""
        size = self.sizes[unit]
        group = next((each for each in _GROUPS.get(unit.file, ()) if GROUPED[each][1] == size), unit.file)
        return f"%{group.value.lower()}.{self.shown[unit]}"

    def named(self, error: CastsimError, dialect: Dialect) -> CastsimError:
        """Return an error that speaks of virtual registers by their names."""
        error.legal = tuple(
            _RANGE.sub(lambda found: f"{found[1]}0 .. {dialect.registers[found[1]] - 1}", each) for each in error.legal
        )
        error.message = _PLACEHOLDER.sub(lambda found: self._name(found, dialect), error.message)
        error.legal = tuple(_PLACEHOLDER.sub(lambda found: self._name(found, dialect), each) for each in error.legal)
        return error

    def _name(self, found: re.Match[str], dialect: Dialect) -> str:
        register = Register(File(found[1]), int(found[2]))
        whole, size = GROUPED.get(register.file, (register.file, 1))
        unit = unit_of(register)
        if unit not in self.shown:
            return f"{register.file}{dialect.registers[whole] - size}"
        member = (register.index - FIRST) % STRIDE
        return f"%{register.file.value.lower()}.{self.shown[unit]}{f'.{member}' if member else ''}"


def widened(dialect: Dialect) -> Dialect:
    """Return a dialect whose files have room for virtual registers."""
    return replace(dialect, registers=dict.fromkeys(dialect.registers, _MOST))

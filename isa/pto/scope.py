"""The visible values, their types, and those of them that are known numbers.

Names in a region may not repeat a name visible around it, and are forgotten at its end; a name belongs to one value
(docs/reference/pto.md section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from castsim.isa.errors import ReadError
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.pto.program import Type
from castsim.isa.pto.spelling import closest


class FollowUpError(ReadError):
    """A use of a value whose definition could not be read: an error only because of that one."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A value: its type and where its name was written; its number, or a view's extents, where the text gives them."""

    type: Type
    start: int
    constant: int | None = None
    extents: tuple[int | None, ...] | None = None


@dataclass(slots=True)
class Scope:
    """The values of one function that are visible at the point reached."""

    source: PtoSource
    _visible: dict[str, Definition] = field(default_factory=dict)
    _groups: dict[str, int] = field(default_factory=dict)
    _regions: list[list[str]] = field(default_factory=lambda: [[]])
    _forgotten: set[str] = field(default_factory=set)
    """Names that statements should have defined that could not be read."""
    _around: list[tuple[int, dict[str, Definition], dict[str, int]]] = field(default_factory=list)
    """What is visible around each isolated region, with the number of regions that it makes."""

    def enter(self) -> None:
        """Begin a region."""
        self._regions.append([])

    def leave(self) -> None:
        """End the innermost region and forget its values."""
        if self._around and self._around[-1][0] == len(self._regions):
            _, self._visible, self._groups = self._around.pop()
            self._regions.pop()
            return
        for name in self._regions.pop():
            self._visible.pop(name, None)
            self._groups.pop(name, None)

    @property
    def regions(self) -> int:
        """The number of regions around the point reached."""
        return len(self._regions)

    def leave_to(self, regions: int) -> None:
        """Leave regions until so many are left."""
        while len(self._regions) > regions:
            self.leave()

    def forget(self, name: str) -> None:
        """Take a name that is not visible for one whose definition cannot be read."""
        if name not in self._visible and name not in self._groups:
            self._forgotten.add(name)

    def enter_isolated(self) -> None:
        """Begin a region that sees nothing around it."""
        self._regions.append([])
        self._around.append((len(self._regions), self._visible, self._groups))
        self._visible, self._groups = {}, {}

    def define(self, name: str, kind: Type, start: int, constant: int | None = None) -> None:
        """Make a value visible.

        Raises:
            ReadError: the name is taken; the place of its first definition is given.
        """
        earlier = self._visible.get(name)
        if earlier is not None or name in self._groups:
            where = f", defined at line {self.source.span(earlier.start).line}" if earlier else ""
            raise self.source.error(f"redefinition of %{name}{where}", start, len(name) + 1)
        self._visible[name] = Definition(kind, start, constant)
        self._regions[-1].append(name)

    def note_extents(self, name: str, extents: tuple[int | None, ...]) -> None:
        """Record what is known of the extents of a view."""
        self._visible[name] = replace(self._visible[name], extents=extents)

    def define_group(self, base: str, kinds: tuple[Type, ...], start: int) -> tuple[str, ...]:
        """Make the results `%base:N` visible and return their names, `base#0` and so on."""
        if base in self._visible or base in self._groups:
            raise self.source.error(f"redefinition of %{base}", start, len(base) + 1)
        names = tuple(f"{base}#{number}" for number in range(len(kinds)))
        for name, kind in zip(names, kinds, strict=True):
            self.define(name, kind, start)
        self._groups[base] = len(kinds)
        self._regions[-1].append(base)
        return names

    def named(self, token: str) -> str | None:
        """Return the name of the visible value that a token spells out, None if it needs a closer look."""
        name = token[1:]
        return name if name in self._visible and token[0] == "%" else None

    def types_of(self, tokens: Sequence[str]) -> tuple[Type, ...] | None:
        """Return the types of the visible values that tokens spell out, None if one needs a closer look."""
        found = []
        for token in tokens:
            defined = self._visible.get(token[1:])
            if defined is None or token[0] != "%":
                return None
            found.append(defined.type)
        return tuple(found)

    def are(self, tokens: Sequence[str], kinds: Sequence[Type]) -> bool:
        """Whether tokens spell out visible values of these types, in this order."""
        for token, kind in zip(tokens, kinds, strict=True):
            defined = self._visible.get(token[1:])
            if defined is None or token[0] != "%" or (defined.type is not kind and defined.type != kind):
                return False
        return True

    def resolve(self, written: str) -> str:
        """Return the name that a use means: `%r#0` is `%r` for a single value, `%r` is `%r#0` for a group."""
        base, sign, number = written.partition("#")
        if sign:
            return base if base in self._visible and int(number[:9]) == 0 else written
        return f"{base}#0" if base in self._groups else written

    def find(self, name: str, start: int) -> Definition:
        """Return the definition of a name.

        Raises:
            FollowUpError: its definition could not be read, or it has been told of.
            ReadError: nothing visible has this name; the nearest names are listed.
        """
        found = self._visible.get(name)
        if found is None:
            if name.partition("#")[0] in self._forgotten:
                raise FollowUpError(f"the definition of %{name} cannot be read", span=self.source.span(start))
            self._forgotten.add(name)  # one error for each name
            near = closest(name, self._visible, everything_up_to=4)
            legal = (f"%{candidate}" for candidate in near)
            raise self.source.error(f"%{name} is not defined here", start, len(name) + 1, legal)
        return found

"""The head of an operation: its results, its name and its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from castsim.isa.errors import Span
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Operation, Type
from castsim.isa.pto.reader import PtoReader


@dataclass(frozen=True, slots=True)
class ResultItem:
    """One item left of the equals sign: `%r`, or `%r:3` for three results."""

    base: str
    count: int
    index: int


@dataclass(slots=True)
class Statement:
    """An operation whose name has been read: `index` is the token of the name."""

    name: str
    index: int
    span: Span
    results: tuple[ResultItem, ...]

    @property
    def operation(self) -> str:
        """The name without its dialect: `tadd` of `pto.tadd`."""
        return self.name.partition(".")[2]

    def no_result(self, reader: PtoReader) -> None:
        """Reject results."""
        if self.results:
            raise reader.error(f"{self.name} has no result", self.results[0].index)

    def define_one(self, reader: PtoReader, kind: Type, constant: int | None = None) -> str:
        """Make the one result visible and return its name; reject any other number of results."""
        return self.define(reader, (kind,), constant)[0]

    def define(self, reader: PtoReader, kinds: tuple[Type, ...], constant: int | None = None) -> tuple[str, ...]:
        """Make the results visible and return their names; reject any number but that of the types."""
        if kinds and not self.results and self.name.startswith("scf."):
            # The values of a region may go unused; a node names them all the same.
            return tuple(self._unused(reader, kind, number) for number, kind in enumerate(kinds))
        count = sum(result.count for result in self.results)
        if count != len(kinds):
            index = self.results[0].index if self.results else self.index
            raise reader.error(f"{self.name} has {len(kinds)} result{'s' * (len(kinds) != 1)}, {count} named", index)
        names: list[str] = []
        for result in self.results:
            part = kinds[len(names) : len(names) + result.count]
            if result.count == 1:
                reader.define(result.base, part[0], result.index, constant)
                names.append(result.base)
            else:
                names.extend(reader.scope.define_group(result.base, part, reader.starts[result.index]))
        return tuple(names)

    def _unused(self, reader: PtoReader, kind: Type, number: int) -> str:
        name = f"_unused_{self.index}_{number}"
        reader.define(name, kind, self.index)
        return name


Handler = Callable[[PtoReader, Statement], Operation]


def read_results(reader: PtoReader) -> tuple[ResultItem, ...]:
    """Read `%a, %b:2 =` if it stands here."""
    if reader.kinds[reader.position] is not TokenKind.VALUE:
        return ()
    results = []
    while True:
        index = reader.position
        base, colon, count = reader.next_of(TokenKind.VALUE, "a result such as %x")[1:].partition(":")
        if "#" in base:
            raise reader.error(f"a result is defined as %name or %name:COUNT, found '{reader.texts[index]}'", index)
        if colon and not (count.isdecimal() and len(count) < 4 and int(count) > 0):
            raise reader.error(f"a result count is 1 to 999, found '{count[:20]}'", index)
        results.append(ResultItem(base, int(count) if colon else 1, index))
        if not reader.take(","):
            break
    reader.expect("=")
    return tuple(results)

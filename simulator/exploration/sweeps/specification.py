"""The specification of a sweep: `[sweep]`, `[grid]` and `[[exclude]]`, read from TOML or taken from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from castsim.exploration.sweeps.axes import read_axis
from castsim.exploration.sweeps.grid import DEFAULT, Axis, Exclusion, Grid, Setting
from castsim.isa.errors import ReadError, Span, TargetDataError
from castsim.isa.expressions import Expression
from castsim.isa.reading import is_file, read_bytes
from castsim.targets.toml_text import places_of, read_toml

MOST_POINTS = 1_000_000_000
"""Combinations of all values, those that are left out too."""
MOST_EXCLUSIONS = 1000

Keys = tuple[str | int, ...]
Place = Callable[[Keys], Span | None]


class Kind(StrEnum):
    """What a point is."""

    CAST = "cast"
    """A cast of one tile, alone."""
    PROGRAM = "program"
    """A run of a program."""


class Mode(StrEnum):
    """Where the cycles of a point come from."""

    ESTIMATE = "estimate"
    """A closed form, where there is one; casts only."""
    SIMULATE = "simulate"
    """An engine."""


CAST_AXES = ("src", "dst", "rows", "cols", "row_stride", "rounding", "saturation", "target")
"""The choices of casts, in the order of the columns."""
PROGRAM_AXES = ("program", "target")
"""Those of programs; `args.NAME` and `option.NAME` come behind them."""
PREFIXES = ("args", "option")
_NEEDED = {Kind.CAST: ("src", "dst", "rows", "cols", "target"), Kind.PROGRAM: ("program",)}


@dataclass(frozen=True, slots=True)
class Specification:
    """What is to be swept; `folder` is where relative paths begin, None: the working folder only."""

    kind: Kind
    mode: Mode
    grid: Grid
    places: Mapping[str, Span | None]
    folder: Path | None = None

    def values(self, name: str) -> Sequence[Setting]:
        """Return the values of an axis; none if the grid does not have it."""
        return next((axis.values for axis in self.grid.axes if axis.name == name), ())

    def path(self, text: str) -> Path:
        """Return the file that a value names: beside the specification if it is there, else from the working folder."""
        beside = None if self.folder is None else self.folder / text
        return beside if beside is not None and is_file(beside) else Path(text)


def read_specification(given: str | Path | Mapping[str, object]) -> Specification:
    """Return a specification: the path of a TOML file, or the same as dictionaries and lists.

    Raises:
        ReadError: it cannot be read; a key that there is not, a value that cannot be; names file, line and column.
    """
    if isinstance(given, Mapping):
        return _Reader(lambda _: None).read(given, None)
    path = Path(given)
    read_bytes(path, "specification")  # refuses what is missing or too large
    try:
        data = read_toml(path)
    except TargetDataError as error:
        message = error.message.replace("a description of", "a specification of").replace(
            "cannot be a fact", "is wrong"
        )
        raise ReadError(message, span=error.span, legal=error.legal) from None
    place = places_of(path)
    return _Reader(lambda keys: place(keys) or Span(str(path), 1, 1)).read(data, path.parent)


class _Reader:
    """Reads a specification; `place` tells where a key stands."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def read(self, data: Mapping[str, object], folder: Path | None) -> Specification:
        """Return the whole."""
        self._known((), data, ("sweep", "grid", "exclude"))
        head = self._table(data, "sweep", ('[sweep] kind = "cast"',))
        self._known(("sweep",), head, ("kind", "mode"))
        kind = Kind(self._word(head, "kind", tuple(Kind)))
        mode = Mode(self._word(head, "mode", tuple(Mode)))
        if kind is Kind.PROGRAM and mode is Mode.ESTIMATE:
            self._refuse(("sweep", "mode"), "sweep.mode: programs have no closed form", (f'mode = "{Mode.SIMULATE}"',))
        axes, places = self._axes(self._table(data, "grid", ("[grid]",)), kind)
        exclusions = self._exclusions(data.get("exclude", []), axes)
        grid = Grid(tuple(axes), tuple(exclusions))
        if grid.combinations > MOST_POINTS:
            self._refuse(("grid",), f"{grid.combinations} combinations are more than {MOST_POINTS}", ("fewer values",))
        return Specification(kind, mode, grid, places, folder)

    def _axes(self, table: Mapping[str, object], kind: Kind) -> tuple[list[Axis], dict[str, Span | None]]:
        names = CAST_AXES if kind is Kind.CAST else PROGRAM_AXES
        prefixes = () if kind is Kind.CAST else PREFIXES
        legal = (*names, *(f"{prefix}.NAME" for prefix in prefixes))
        axes: list[Axis] = []
        places: dict[str, Span | None] = {}
        for key, value in table.items():
            found: list[tuple[tuple[str, ...], object]]
            if key in prefixes and isinstance(value, Mapping):
                found = [((key, inner), each) for inner, each in value.items()]
            elif key in names or (key.partition(".")[0] in prefixes and "." in key):
                found = [((key,), value)]
            else:
                self._refuse(("grid", key), f'grid.{key}: unknown key for kind = "{kind}"', legal)
            for keys, each in found:
                name = ".".join(keys)
                places[name] = self._place(("grid", *keys))
                axes.append(Axis(name, read_axis(name, each, places[name])))
        given = [axis.name for axis in axes]
        for name in _NEEDED[kind]:
            if name not in given:
                self._refuse(("grid",), f"grid.{name} is missing", (f"{name} = [...]",))
        return axes, places

    def _exclusions(self, given: object, axes: list[Axis]) -> list[Exclusion]:
        if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
            self._refuse(("exclude",), "exclude is not a list of tables", ('[[exclude]] where = "rows*cols > 65536"',))
        if len(given) > MOST_EXCLUSIONS:
            self._refuse(("exclude",), f"more than {MOST_EXCLUSIONS} tables [[exclude]]", ())
        return [self._exclusion(number, table, axes) for number, table in enumerate(given)]

    def _exclusion(self, number: int, table: Mapping[str, object], axes: list[Axis]) -> Exclusion:
        names = tuple(axis.name for axis in axes)
        legal = ("where", *names)
        if not table:
            self._refuse(("exclude", number), "[[exclude]] says nothing", legal)
        values: dict[str, frozenset[Setting]] = {}
        condition = None
        for key, value in table.items():
            span = self._place(("exclude", number, key))
            if key == "where":
                condition = self._condition(value, span, names)
                continue
            nested = value.items() if key in PREFIXES and isinstance(value, Mapping) else [(None, value)]
            for inner, each in nested:
                name = key if inner is None else f"{key}.{inner}"
                if name not in names:
                    self._refuse(("exclude", number, key), f"exclude.{name}: the grid has no such key", legal)
                values[name] = frozenset(read_axis(name, each, span))
        return Exclusion(values, condition)

    def _condition(self, text: object, span: Span | None, names: tuple[str, ...]) -> Expression:
        if not isinstance(text, str):
            raise ReadError("exclude.where is not a text", span=span, legal=('where = "rows*cols > 65536"',))
        try:
            found = Expression(text, span or Span("<exclude>", 1, 1, text), dotted=True)
        except ReadError as error:
            raise ReadError(f"exclude.where: {error.message}", span=span, legal=error.legal) from None
        for name in found.names:
            if name not in names:
                raise ReadError(f"exclude.where: the grid has no '{name}'", span=span, legal=names)
        if not found.names:
            raise ReadError(f"exclude.where: '{text}' names no key of the grid", span=span, legal=names)
        return found

    def _known(self, keys: Keys, table: Mapping[str, object], legal: tuple[str, ...]) -> None:
        for key in table:
            if key not in legal:
                self._refuse((*keys, key), f"{'.'.join(map(str, (*keys, key)))}: unknown key", legal)

    def _table(self, data: Mapping[str, object], name: str, legal: tuple[str, ...]) -> Mapping[str, object]:
        found = data.get(name)
        if not isinstance(found, Mapping):
            what = f"the table [{name}] is missing" if found is None else f"{name} is not a table"
            self._refuse((name,), what, legal)
        return found

    def _word(self, head: Mapping[str, object], key: str, legal: tuple[str, ...]) -> str:
        found = head.get(key)
        if found is None:
            self._refuse(("sweep",), f"sweep.{key} is missing", legal)
        if not isinstance(found, str) or found not in legal:
            self._refuse(("sweep", key), f"sweep.{key}: {found!r:.80} is not among what it can be", legal)
        return found

    def _refuse(self, keys: Keys, message: str, legal: tuple[str, ...]) -> NoReturn:
        raise ReadError(message, span=self._place(keys), legal=legal)


__all__ = [
    "CAST_AXES", "DEFAULT", "MOST_POINTS", "PREFIXES", "PROGRAM_AXES", "Kind", "Mode", "Specification",
    "read_specification",
]  # fmt: skip

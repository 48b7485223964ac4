"""The specification of a sweep: `[sweep]`, `[grid]` and `[[exclude]]`, from TOML or from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError, SourceText, Span, TargetDataError
from castsim.isa.formats import Saturation, format_named
from castsim.isa.reading import is_file, read_bytes
from castsim.isa.value_expressions import Expression, Value, mode_named, read_value, read_values
from castsim.reports.documents import CommandDocument, Keys, record, says
from castsim.targets.csv_tables import places_of, read_toml

if TYPE_CHECKING:
    from numpy.typing import NDArray


# The points of a sweep by their number: nothing is expanded before it is needed.

Setting = int | float | str
"""A value of an axis."""

DEFAULT = "default"
"""The value of an axis that leaves the choice to the target, or to the program; its column is null."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A choice with its distinct values."""

    name: str
    values: Sequence[Setting]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A rule that leaves out points whose named axes all have listed values and meet the condition, if there is one."""

    values: Mapping[str, frozenset[Setting]]
    condition: Expression | None

    @property
    def names(self) -> tuple[str, ...]:
        """The axes that the rule uses."""
        return tuple(dict.fromkeys((*self.values, *(self.condition.names if self.condition else ()))))

    def holds(self, point: Mapping[str, Setting]) -> bool:
        """Return whether the rule leaves out a point.

        Raises:
            ReadError: the condition has no value there, for example after a division by zero.
        """
        if any(point[name] not in legal for name, legal in self.values.items()):
            return False
        if self.condition is None:
            return True
        values: dict[str, Value] = {name: value for name, value in point.items() if not isinstance(value, float)}
        try:
            return bool(self.condition.value(values))
        except ReadError as error:
            raise ReadError(f"exclude.where: {error.message}", span=error.span, legal=error.legal) from None


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of values; combinations are counted from 0, the last axis varying fastest."""

    axes: tuple[Axis, ...]
    exclusions: tuple[Exclusion, ...] = ()

    @property
    def combinations(self) -> int:
        """Number of combinations of all values, including excluded ones."""
        return prod(len(axis.values) for axis in self.axes)

    def places(self, numbers: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Return for each axis the index of its value in combinations."""
        indices, left = {}, numbers
        for axis in reversed(self.axes):
            left, indices[axis.name] = np.divmod(left, len(axis.values))
        return {axis.name: indices[axis.name] for axis in self.axes}

    def kept(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers of the combinations in a range that are not excluded.

        Raises:
            ReadError: see `Exclusion.holds`.
        """
        numbers = np.arange(start, stop, dtype=np.int64)
        for exclusion in self.exclusions:
            numbers = numbers[~self._excluded(exclusion, numbers)]
        return numbers

    def _excluded(self, exclusion: Exclusion, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        axes = [axis for axis in self.axes if axis.name in exclusion.names]
        places = self.places(numbers)
        columns = zip(*(places[axis.name].tolist() for axis in axes), strict=True)
        verdicts: dict[tuple[int, ...], bool] = {}
        excluded = np.zeros(len(numbers), np.bool_)
        for row, at in enumerate(columns):
            if at not in verdicts:
                verdicts[at] = exclusion.holds({axis.name: axis.values[n] for axis, n in zip(axes, at, strict=True)})
            excluded[row] = verdicts[at]
        return excluded


# The values of one key of a grid: one value, a list, or a range.

MOST_VALUES = 10_000_000
"""Maximum number of values of one key."""
LARGEST_EXTENT = 1 << 28
"""Largest row count, column count and stride of a cast: bytes of a tile stay within 63 bits."""

EXTENTS = ("rows", "cols", "row_stride")
"""KeyPath of casts that are numbers of elements."""
_RANGES = ("8", "[8, 16]", '"8..64"', '"8..64:8"', '"8..64*2"', "{ from = 8, to = 64, step = 8 }")
_WORDS = ('"word"', '["one", "two"]')
_RANGE_KEYS = ("from", "to", "step", "times")


def is_argument(name: str) -> bool:
    """Return whether a key is `args.NAME`."""
    return name.startswith("args.")


def is_option(name: str) -> bool:
    """Return whether a key is `option.NAME`."""
    return name.startswith("option.")


def bare(name: str) -> str:
    """Return NAME of `args.NAME` or `option.NAME`."""
    return name.partition(".")[2]


def read_axis(name: str, given: object, span: Span | None, table: str = "grid") -> Sequence[Setting]:
    """Return the distinct values of a key, in order; `span` is its position, `table` its table.

    Raises:
        ReadError: a value or range is malformed, there are none or too many, or a format or mode does not exist.
    """
    try:
        return _axis(name, given)
    except ReadError as error:
        raise ReadError(f"{table}.{name}: {error.message}", span=span, legal=error.legal) from None


def _axis(name: str, given: object) -> Sequence[Setting]:
    values: Sequence[Setting]
    if isinstance(given, Mapping):
        values = _range(name, given)
    else:
        items = given if isinstance(given, list | tuple | range) else [given]
        if len(items) > MOST_VALUES:
            _refuse_count(len(items))
        unique: dict[Setting, Setting] = {}
        for item in items:
            for value in _range(name, item) if isinstance(item, Mapping) else _values(name, item):
                unique.setdefault(meaning(name, value), value)
            if len(unique) > MOST_VALUES:
                _refuse_count(len(unique))
        values = tuple(unique.values())
        _refuse_inexact(name, values)
    if not values:
        raise ReadError("the list of values is empty", legal=_legal(name))
    return values


def _values(name: str, item: object) -> Sequence[Setting]:
    """Return the values of one item of a list."""
    if isinstance(item, Decimal | float) and is_argument(name) and isfinite(item):
        return (float(item),)
    if isinstance(item, int) and not isinstance(item, bool):
        if not _has_numbers(name):
            raise ReadError(f"{item} is not a word", legal=_WORDS)
        _refuse_long(name, (item,))
        return (item,)
    if not isinstance(item, str) or not item:
        raise ReadError(f"{shown(item)} is not a value", legal=_legal(name))
    if (name in EXTENTS and not (name == "row_stride" and item == DEFAULT)) or (is_argument(name) and ".." in item):
        return _typed_range(name, item)
    return (_typed_argument(item),) if is_argument(name) else (item,)


def _typed_argument(text: str) -> int | str:
    """Return an argument that is written as text: digits are a number, as in `--arg NAME=16`."""
    try:
        return read_value(text, Span("", 1, 1))
    except ReadError:  # whether a program takes such a text, its run tells
        return text


def _typed_range(name: str, text: str) -> Sequence[Setting]:
    try:
        values = read_values(SourceText("", text), 0, len(text))
    except ReadError as error:  # without its place, which is one in the text
        raise ReadError(error.message, legal=_RANGES) from None
    for value in values:
        if isinstance(value, str):
            raise ReadError(f"'{value}' is not an integer", legal=_RANGES)
    return values


def _range(name: str, given: Mapping[str, object]) -> Sequence[Setting]:
    """Return the values of `{ from = 8, to = 64, step = 8 }`, including the end if a step reaches it."""
    if not _has_numbers(name):
        raise ReadError("only numbers can be given as ranges", legal=_WORDS)
    for key, value in given.items():
        if key not in _RANGE_KEYS:
            raise ReadError(f"unknown key '{key}' of a range", legal=_RANGE_KEYS)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ReadError(f"'{key}', {shown(value)}, is not an integer", legal=_RANGES)
    numbers = {key: value for key, value in given.items() if isinstance(value, int)}
    missing = [key for key in ("from", "to") if key not in numbers]
    if missing:
        raise ReadError(f"the range has no '{missing[0]}'", legal=_RANGES)
    _refuse_long(name, numbers.values())
    first, last = numbers["from"], numbers["to"]
    if "step" in numbers and "times" in numbers:
        raise ReadError("the range has both 'step' and 'times'", legal=_RANGES)
    if "times" in numbers:
        times = numbers["times"]
        if times < 2 or first < 1:
            raise ReadError("the range never reaches its end", legal=_RANGES)
        values = []
        while first <= last:
            values.append(first)
            first *= times
        return _checked(name, tuple(values))
    step = numbers.get("step", 1)
    if step < 1:
        raise ReadError("the range never reaches its end", legal=_RANGES)
    count = (last - first) // step + 1  # a range may have more than Python counts
    if count > MOST_VALUES:
        _refuse_count(count)
    return _checked(name, range(first, last + 1, step))


def _checked(name: str, values: Sequence[int]) -> Sequence[int]:
    if not values:
        raise ReadError("the range is empty: its end is below its start", legal=_RANGES)
    for value in (values[0], values[-1]):
        meaning(name, value)
    return values


def meaning(name: str, value: Setting) -> Setting:
    """Return the meaning of a key's value, which is equal for two spellings of one format, mode or number.

    Raises:
        ReadError: the value is not legal for this key.
    """
    if name in EXTENTS:
        if isinstance(value, int) and not -LARGEST_EXTENT <= value <= LARGEST_EXTENT:
            raise ReadError(f"{value} is too large", legal=(f"up to {LARGEST_EXTENT}",))
        return value
    try:
        if name in ("src", "dst"):
            return format_named(str(value)).name
        if name == "saturation" and value != DEFAULT:
            return str(mode_named(Saturation, str(value), "saturation"))
        if name == "rounding":  # which modes there are, the target says
            return str(value).lower()
    except ReadError as error:
        legal = (*error.legal, DEFAULT) if name == "saturation" else error.legal
        raise ReadError(error.message, legal=legal) from None
    return str(value) if is_option(name) else value


def shown(item: object) -> str:
    """Return a value nearly as in TOML, for messages."""
    if isinstance(item, bool):
        return str(item).lower()
    return f"{item!r:.80}" if isinstance(item, str | list | dict) else f"{item!s:.80}"


def _has_numbers(name: str) -> bool:
    return name in EXTENTS or is_argument(name) or is_option(name)


def _legal(name: str) -> tuple[str, ...]:
    return _RANGES if name in EXTENTS or is_argument(name) else _WORDS


def _refuse_long(name: str, numbers: Iterable[int]) -> None:
    """Reject numbers that no column of integers can represent."""
    for number in numbers:
        if not -(1 << 63) <= number < 1 << 63:
            raise ReadError("an integer does not fit into 64 bits", legal=_legal(name))


def _refuse_inexact(name: str, values: Sequence[Setting]) -> None:
    """Reject integers beside fractions if their common column, of doubles, would round them."""
    if any(isinstance(value, float) for value in values):
        for value in values:
            if isinstance(value, int) and int(float(value)) != value:
                raise ReadError(
                    f"{value} is too large to be mixed with fractions",
                    legal=("integers only", f"up to {1 << 53}"),
                )  # fmt: skip


def _refuse_count(count: int) -> NoReturn:
    raise ReadError(f"{count} values are more than {MOST_VALUES}", legal=("fewer values",))


MOST_POINTS = 1_000_000_000
"""Maximum number of combinations of all values, including excluded ones."""
MOST_EXCLUSIONS = 1000

KeyPath = tuple[str | int, ...]
Place = Callable[[KeyPath], Span | None]


class PointKind(StrEnum):
    """The kind of a point."""

    CAST = "cast"
    """A cast of one tile, alone."""
    PROGRAM = "program"
    """A run of a program."""


class CycleSource(StrEnum):
    """The source of a point's cycles."""

    ESTIMATE = "estimate"
    """A closed form, if there is one; casts only."""
    SIMULATE = "simulate"
    """An engine."""


CAST_AXES = ("src", "dst", *EXTENTS, "rounding", "saturation", "target")
"""The choices of casts, in the order of the columns."""
PROGRAM_AXES = ("program", "target")
"""The choices of programs; `args.NAME` and `option.NAME` follow them."""
PREFIXES = ("args", "option")
_NEEDED = {PointKind.CAST: ("src", "dst", "rows", "cols", "target"), PointKind.PROGRAM: ("program",)}


@dataclass(frozen=True, slots=True)
class SweepSpecification:
    """The grid of a sweep; relative paths start at `folder`, None: the working folder only."""

    kind: PointKind
    mode: CycleSource
    grid: Grid
    places: Mapping[str, Span | None]
    folder: Path | None = None

    def values(self, name: str) -> Sequence[Setting]:
        """Return the values of an axis; empty if the grid lacks it."""
        return next((axis.values for axis in self.grid.axes if axis.name == name), ())

    def files(self) -> dict[str, Path]:
        """Return the files of programs and targets, by their names in messages."""
        named = {f"the program '{name}'": name for name in map(str, self.values("program"))}
        named |= {f"the target '{name}'": name for name in map(str, self.values("target")) if is_target_file(name)}
        return {what: self.path(name) for what, name in named.items()}

    def path(self, text: str) -> Path:
        """Return the file that a value names: beside the specification if it exists, else from the working folder."""
        beside = None if self.folder is None else self.folder / text
        return beside if beside is not None and is_file(beside) else Path(text)


def read_specification(given: str | Path | Mapping[str, object]) -> SweepSpecification:
    """Return a specification: the path of a TOML file, or the same as dictionaries and lists.

    Raises:
        ReadError: it cannot be read, or a key or value is not legal; the message names file, line and column.
    """
    if isinstance(given, Mapping):
        return _SpecificationReader(lambda _: None).read(given, None)
    path = Path(given)
    read_bytes(path, "specification")  # refuses what is missing or too large
    try:
        data = read_toml(path)
    except TargetDataError as error:
        message = error.message.replace("a description of", "a specification of").replace(
            "cannot be a fact", "is wrong"
        )
        raise ReadError(message, span=error.span, legal=error.legal) from None
    span_of, beginning = places_of(path), Span(str(path), 1, 1)
    return _SpecificationReader(lambda keys: span_of(keys) or beginning).read(data, path.parent)


def is_target_file(name: str) -> bool:
    """Return whether the name of a target is a file name."""
    return Path(name).suffix == ".toml"


class _SpecificationReader:
    """Reader of a specification; `span_of` returns the position of a key."""

    def __init__(self, span_of: Place) -> None:
        self._place = span_of

    def read(self, data: Mapping[str, object], folder: Path | None) -> SweepSpecification:
        """Return the whole specification."""
        self._known((), data, ("sweep", "grid", "exclude"))
        head = self._table(data, "sweep", ('[sweep] kind = "cast"',))
        self._known(("sweep",), head, ("kind", "mode"))
        kind = PointKind(self._word(head, "kind", tuple(PointKind)))
        mode = CycleSource(self._word(head, "mode", tuple(CycleSource)))
        if kind is PointKind.PROGRAM and mode is CycleSource.ESTIMATE:
            self._refuse(
                ("sweep", "mode"), "sweep.mode: programs can only be simulated", (f'mode = "{CycleSource.SIMULATE}"',)
            )
        axes, places = self._axes(self._table(data, "grid", ("[grid]",)), kind)
        exclusions = self._exclusions(data.get("exclude", []), axes)
        grid = Grid(tuple(axes), tuple(exclusions))
        if grid.combinations > MOST_POINTS:
            self._refuse(("grid",), f"{grid.combinations} combinations are more than {MOST_POINTS}", ("fewer values",))
        return SweepSpecification(kind, mode, grid, places, folder)

    def _axes(self, table: Mapping[str, object], kind: PointKind) -> tuple[list[Axis], dict[str, Span | None]]:
        names = CAST_AXES if kind is PointKind.CAST else PROGRAM_AXES
        prefixes = () if kind is PointKind.CAST else PREFIXES
        legal = (*names, *(f"{prefix}.NAME" for prefix in prefixes))
        axes: list[Axis] = []
        places: dict[str, Span | None] = {}
        for key, value in table.items():
            if key not in names and key.partition(".")[0] not in prefixes:
                self._refuse(("grid", key), f'grid.{key}: unknown key for kind = "{kind}"', legal)
            for keys, setting in _named(key, value):
                name = ".".join(keys)
                if name.rpartition(".")[2] == "" or name in prefixes:
                    self._refuse(("grid", *keys), f"grid.{name}: missing name after the point", legal)
                if name in places:
                    self._refuse(("grid", *keys), f"grid.{name} is given twice", ())
                places[name] = self._place(("grid", *keys))
                axes.append(Axis(name, read_axis(name, setting, places[name])))
        given = [axis.name for axis in axes]
        for name in _NEEDED[kind]:
            if name not in given:
                self._refuse(("grid",), f"grid.{name} is missing", (f"{name} = [...]",))
        return axes, places

    def _exclusions(self, given: object, axes: list[Axis]) -> list[Exclusion]:
        if not isinstance(given, list) or not all(isinstance(entry, Mapping) for entry in given):
            self._refuse(("exclude",), "exclude is not a list of tables", ('[[exclude]] where = "rows*cols > 65536"',))
        if len(given) > MOST_EXCLUSIONS:
            self._refuse(("exclude",), f"more than {MOST_EXCLUSIONS} tables [[exclude]]", ())
        return [self._exclusion(number, table, axes) for number, table in enumerate(given)]

    def _exclusion(self, number: int, table: Mapping[str, object], axes: list[Axis]) -> Exclusion:
        axis_of = {axis.name: axis for axis in axes}
        legal = ("where", *axis_of)
        if not table:
            self._refuse(("exclude", number), "[[exclude]] is empty", legal)
        values: dict[str, frozenset[Setting]] = {}
        condition = None
        for key, value in table.items():
            if key == "where":
                condition = self._condition(value, self._place(("exclude", number, key)), axis_of)
                continue
            for inner, setting in _named(key, value):
                keys: KeyPath = ("exclude", number, *inner)
                name = ".".join(inner)
                if name not in axis_of:
                    self._refuse(keys, f"exclude.{name}: the grid has no such key", legal)
                if name in values:
                    self._refuse(keys, f"exclude.{name} is given twice", ())
                values[name] = _as_spelt(axis_of[name], read_axis(name, setting, self._place(keys), "exclude"))
        return Exclusion(values, condition)

    def _condition(self, text: object, span: Span | None, axes: Mapping[str, Axis]) -> Expression:
        if not isinstance(text, str):
            raise ReadError("exclude.where must be a string", span=span, legal=('where = "rows*cols > 65536"',))
        try:
            expression = Expression(text, span or Span("<exclude>", 1, 1, text), dotted=True)
        except ReadError as error:
            raise ReadError(f"exclude.where: {error.message}", span=span, legal=error.legal) from None
        for name in expression.names:
            if name not in axes:
                raise ReadError(f"exclude.where: the grid has no '{name}'", span=span, legal=tuple(axes))
            fraction = next((value for value in axes[name].values if isinstance(value, float)), None)
            if fraction is not None:
                raise ReadError(
                    f"exclude.where: {name} has fractions, such as {fraction}; conditions take only integers and words",
                    span=span, legal=(f'[[exclude]] "{name}" = {fraction}',),
                )  # fmt: skip
        if not expression.names:
            raise ReadError(f"exclude.where: '{text}' does not use a key of the grid", span=span, legal=tuple(axes))
        return expression

    def _known(self, keys: KeyPath, table: Mapping[str, object], legal: tuple[str, ...]) -> None:
        for key in table:
            if key not in legal:
                self._refuse((*keys, key), f"{'.'.join(map(str, (*keys, key)))}: unknown key", legal)

    def _table(self, data: Mapping[str, object], name: str, legal: tuple[str, ...]) -> Mapping[str, object]:
        table = data.get(name)
        if not isinstance(table, Mapping):
            what = f"the table [{name}] is missing" if table is None else f"{name} is not a table"
            self._refuse((name,), what, legal)
        return table

    def _word(self, head: Mapping[str, object], key: str, legal: tuple[str, ...]) -> str:
        word = head.get(key)
        if word is None:
            self._refuse(("sweep",), f"sweep.{key} is missing", legal)
        if not isinstance(word, str) or word not in legal:
            self._refuse(("sweep", key), f"sweep.{key}: unknown {key} {shown(word)}", legal)
        return word

    def _refuse(self, keys: KeyPath, message: str, legal: tuple[str, ...]) -> NoReturn:
        raise ReadError(message, span=self._place(keys), legal=legal)


def _named(key: str, value: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the keys on the way to each value: `args` and `option` may be tables, or dotted keys."""
    if key in PREFIXES and isinstance(value, Mapping):
        yield from (((key, inner), setting) for inner, setting in value.items())
    else:
        yield (key,), value


def _as_spelt(axis: Axis, excluded: Sequence[Setting]) -> frozenset[Setting]:
    """Return the excluded values of an axis in the grid's spelling: `f32` excludes `float32` too."""
    if isinstance(axis.values, range):
        return frozenset(excluded)
    wanted = {meaning(axis.name, value) for value in excluded}
    return frozenset(value for value in axis.values if meaning(axis.name, value) in wanted)


# What a drawing of the results states.


@record
class Crossing(Keys):
    """Two routes, the first faster below `x`, the second from `x` on."""

    what: str = says("The common part of both routes, such as the type pair.")
    below: str = says("The faster route below the crossing.")
    above: str = says("The faster route from the crossing on.")
    x: float = says("Elements of a cast; of programs, the value of the argument that the plots are over.")


@record
class SweepDrawn(CommandDocument, name="sweep-report"):
    """The results of a sweep, drawn."""

    report: str = says("The Parquet file.")
    html: str = says("The page.")
    rows: int = says("Rows of the results.")
    failed: int = says("Number of failed rows.")
    crossings: tuple[Crossing, ...] = says("Crossings at which another of two routes becomes faster.")

"""Loader of targets, and of the known errors of their simulated cycles: intervals by kind, and measured operations.

Intervals are a record of `castsim accuracy --record`, which simulates every shipped measurement; nothing is simulated
here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from castsim.isa.dataclass import dataclass, fields
from castsim.isa.errors import IllegalError, ReadError, Span, TargetDataError, arguments_checked, closest
from castsim.isa.formats import Format, format_named
from castsim.isa.reading import is_file
from castsim.targets import validated
from castsim.targets.csv_tables import SHIPPED, CsvRows, TableFile, place_of, read_toml
from castsim.targets.description import Fact, Lineage, SourceKind, TargetHeader, TargetKind
from castsim.targets.validated import BaseModel, can_validate, checked

# Spellings of formats in tables of measurements that `castsim.isa.formats` does not take: those of C++ and of
# packed pairs.

_ENDINGS = ("_t", "x2")
"""Endings that C++ adds to a type's name, including the one for two elements per byte."""

_STEMS = {
    "float8_e4m3": "e4m3fn",
    "float4_e2m1": "e2m1",
    "float4_e1m2": "e1m2",
    "f4e2m1": "e2m1",
    "f4e1m2": "e1m2",
    "hif4": "e1m2",
    "int4b": "i4",
}


def format_of(text: str) -> Format:
    """Return the format of any table's spelling.

    Raises:
        ReadError: the format does not exist; the message lists the legal names.
    """
    name = text.strip().lower().replace("-", "_")
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    name = name.removesuffix("_")
    return format_named(_STEMS.get(name, name))


# Laying a derived description over its base: what it changes needs a source and a status of its own.
#
# A source says where the numbers of its table are from. It says nothing of a number that another description puts in
# their place, so a table that changes one states both anew; notes and comparisons with published cycles that belonged
# to the old numbers go.

_NEEDED = ("source", "status")
_ABOUT = frozenset(Fact.model_fields)
FACT = "_fact"
"""Suffix of the key with source and status of a table stored as CSV."""

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Owner:
    """The innermost table around a key that has a source, and its contents in the derived description."""

    path: Keys
    change: Mapping[str, Any]


class Overlay:
    """Merger of descriptions; `unsaid` are the changed facts whose tables do not state a source."""

    def __init__(self) -> None:
        self.unsaid: list[TargetDataError] = []

    def merged(
        self, base: Mapping[str, Any], change: Mapping[str, Any], span_of: Callable[[Keys], Span | None]
    ) -> dict[str, Any]:
        """Return `base` with `change` laid over it: tables merge key by key, everything else is replaced.

        Args:
            base: the complete base description.
            change: the derived description.
            place: function that returns the position of a key in it.
        """
        return _overlaid(base, change, (), None, lambda owner, path: self._check(owner, path, span_of))[0]

    def _check(self, owner: _Owner, path: Keys, span_of: Callable[[Keys], Span | None]) -> None:
        missing = [name for name in _NEEDED if name not in owner.change]
        if missing:
            message = (
                f"{'.'.join(path)} is changed without a source: write {' and '.join(missing)} into "
                f"[{'.'.join(owner.path)}] as well; those of the base belong to its own number"
            )
            self.unsaid.append(TargetDataError(message, span=span_of(path)))


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
        merged.pop("kept", None)
        if "legal" not in base and (kept := list(_kept(base, change))):  # an option is one value
            merged["kept"] = kept
    return merged, changed


def _kept(base: Mapping[str, Any], change: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the values of a changed table that stay as they are, by their source: it is not that of the change."""
    groups = [*base.get("kept", ())]
    elsewhere = {name for group in groups for name in group["names"]}
    own = [
        name for name, value in base.items()
        if name not in _ABOUT | elsewhere | {"validated"} and not isinstance(value, dict)
    ]  # fmt: skip
    about = {key: base[key] for key in ("source", "status", "evidence") if key in base}
    for group in (about | {"names": own}, *groups):
        names = [name for name in group["names"] if name not in change or _same(base[name], change[name])]
        if names and any(group.get(key) != change.get(key) for key in _NEEDED):
            yield group | {"names": names}


def _forget_csv(base: Mapping[str, Any], change: Mapping[str, Any], merged: dict[str, Any]) -> None:
    for key, fact in change.items():
        if key.endswith(FACT) and not _same(base.get(key.removesuffix(FACT)), change.get(key.removesuffix(FACT))):
            _forget(merged[key], fact)


def _forget(merged: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Remove remarks on the numbers of the base, unless they are stated again."""
    for key in ("note", "evidence"):
        if key not in change:
            merged.pop(key, None)
    if "validated" not in change and isinstance(merged.get("validated"), bool):
        merged["validated"] = False


def _same(value: object, other: object) -> bool:
    """Return whether two values are equal: a boolean is not equal to a number."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


# Reading target descriptions: TOML files with inheritance and CSV tables, validated as a whole.

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from castsim.targets.specification import Specification
    from castsim.targets.strided_repeat import StridedRepeatTarget
    from castsim.targets.vector_function import VectorFunctionTarget
    from castsim.targets.vliw import VliwTarget

    Target = StridedRepeatTarget | VectorFunctionTarget | VliwTarget
    """Any loaded target; one class per mechanism."""

    TileTarget = StridedRepeatTarget | VectorFunctionTarget
    """Targets whose programs work on tiles."""
else:  # the classes of a mechanism are loaded with the first target of it
    Target = TileTarget = TargetHeader

_MECHANISMS = {
    "strided-repeat": ("castsim.targets.strided_repeat", "StridedRepeatTarget"),
    "vector-function": ("castsim.targets.vector_function", "VectorFunctionTarget"),
    "vliw": ("castsim.targets.vliw", "VliwTarget"),
}
"""Module and class of each mechanism."""
_KIND = re.compile(r'^kind *= *"(\w+)"', re.MULTILINE)
_MOST_BASES = 16
"""Maximum number of descriptions that build on each other; the shipped ones have up to five."""
_MOST_KEYS = 64
"""Maximum number of keys of a table in an error; the largest one has 54."""


def target_names() -> tuple[str, ...]:
    """Return the names of the shipped targets, sorted, without specifications, which cannot run anything."""
    return tuple(name for name, kind in _shipped() if kind == TargetKind.CHIP)


def specification_names() -> tuple[str, ...]:
    """Return the names of the shipped specifications, sorted."""
    return tuple(name for name, kind in _shipped() if kind == TargetKind.SPECIFICATION)


@arguments_checked
def load_target(name: str | Path | Target) -> Target:
    """Load a shipped target by name, or a user-written one by path (a name that ends in `.toml`).

    Args:
        name: a name from `castsim targets`, or the path of a TOML file. A target is returned unchanged.

    Returns:
        The target; functions that take a target accept it in place of its name.

    Raises:
        ReadError: the target or file does not exist; the message lists the shipped ones.
        IllegalError: the name is that of a specification.
        TargetDataError: malformed TOML, unknown key, missing source, contradiction; the error names file and key.
    """
    if isinstance(name, TargetHeader):
        return name
    path = _user_file(name, "target", target_names())
    if path is not None:
        return _load(path)  # each time anew: the file, its base or its tables may have changed
    text = str(name).lower()
    if text in specification_names():
        raise _not_runnable(text)
    if text not in target_names():
        raise ReadError(f"unknown target '{name}'", legal=(*target_names(), "PATH.toml"))
    return _load_shipped(text)


def described(name: str | Path) -> dict[str, Any]:
    """Return the complete description of a target, inherited parts included; CSV tables as `TableFile`.

    Raises:
        ReadError, TargetDataError: see `load_target`.
    """
    path = _user_file(name, "target", target_names())
    return _merged(path or SHIPPED / f"{str(name).lower()}.toml", (), Overlay())


def load_specification(name: str | Path) -> Specification:
    """Load a shipped specification by name, or a user-written one by path (a name that ends in `.toml`).

    Raises:
        ReadError: the specification or file does not exist; the message lists the shipped ones.
        TargetDataError: see `load_target`; also for the description of a chip.
    """
    path = _user_file(name, "specification", specification_names())
    if path is not None:
        return _load_specification(path)
    text = str(name).lower()
    if text not in specification_names():
        raise ReadError(f"unknown specification '{name}'", legal=(*specification_names(), "PATH.toml"))
    return _load_shipped_specification(text)


def is_specification(name: str | Path) -> bool:
    """Return whether a name or path is that of a specification; False if it does not exist."""
    path = Path(name) if str(name).endswith(".toml") else None
    if path is None:
        return str(name).lower() in specification_names()
    return is_file(path) and read_toml(path).get("kind") == TargetKind.SPECIFICATION


def _user_file(name: str | Path, what: str, legal: tuple[str, ...]) -> Path | None:
    """Return the file that a path means, None if it is a name."""
    text = str(name)
    if not text.endswith(".toml"):
        return None
    path = Path(text)
    if not is_file(path):
        fault = "is a folder" if path.is_dir() else "does not exist"
        raise ReadError(f"{what} file '{text}' {fault}", legal=legal)
    if not can_validate():
        raise ReadError(f"'{text}' cannot be checked here: only the shipped ones can be used", legal=legal)
    return path.resolve()


def _not_runnable(name: str) -> IllegalError:
    return IllegalError(
        f"{name} is a specification, not a chip: it defines the results of casts and cannot run programs",
        legal=target_names(),
    )


@cache
def _shipped() -> tuple[tuple[str, str], ...]:
    """Return name and kind of every shipped description, sorted; the kind is on a separate line of the file."""
    targets = []
    for path in sorted(SHIPPED.glob("*.toml")):
        kind = _KIND.search(path.read_text(encoding="utf-8"))
        targets.append((path.stem, kind[1] if kind else TargetKind.CHIP.value))
    return tuple(targets)


def target_for_architecture(architecture: str) -> Target | None:
    """Return the shipped target that programs request as `architecture`, None if there is none."""
    return next((target for target in map(load_target, target_names()) if architecture in target.architectures), None)


@cache
def _load_shipped(name: str) -> Target:
    target: Target | None = checked(name)
    return target or _load(SHIPPED / f"{name}.toml")


@cache
def _load_shipped_specification(name: str) -> Specification:
    specification: Specification | None = checked(name)
    return specification or _load_specification(SHIPPED / f"{name}.toml")


def _load_specification(path: Path) -> Specification:
    from castsim.targets.specification import Specification  # noqa: PLC0415 - programs run without specifications

    data, overlay = _described(path)
    if data.get("kind") != TargetKind.SPECIFICATION:
        raise TargetDataError(f"{path}describes a chip, not a specification")
    try:
        specification = Specification.model_validate(data)
    except validated.ValidationError as error:
        raise _refusal(path, error, data, Specification) from None
    _check_said(overlay)
    return specification


def _load(path: Path) -> Target:
    data, overlay = _described(path)
    if data.get("kind") == TargetKind.SPECIFICATION:
        raise _not_runnable(path.name)
    mechanism = data.get("mechanism")
    if mechanism is None:
        fault = "does not describe a target: mechanism or base is missing"
        raise TargetDataError(f"{path}: {fault}", legal=[f'mechanism = "{choice}"' for choice in _MECHANISMS])
    if not isinstance(mechanism, str) or mechanism not in _MECHANISMS:
        raise TargetDataError(f"{path}: unknown mechanism {mechanism!r}", legal=_MECHANISMS)
    model = _model_of(mechanism)
    try:
        target = model.model_validate(data, context={"shipped": path.parent == SHIPPED})
    except validated.ValidationError as error:
        raise _refusal(path, error, data, model) from None
    _check_said(overlay)
    if path.parent != SHIPPED:
        lineage = _lineage_of(target, path)
        target._lineage = None if lineage == Lineage(target.name, frozenset()) else lineage
    return target


# What a description shares with the shipped one that it builds on or is a copy of: equal facts keep what was measured.

_ROW_KEYS = ("mnemonic", "src", "dst", "variant")
"""Columns that can identify the row of a table."""


_NAMES = ("name", "title")
"""Keys of a description that are no facts."""


def _lineage_of(target: Target, path: Path) -> Lineage | None:
    """Return the lineage of a description: of several shipped ones of its mechanism the base, or the closest."""
    base = _shipped_base(path)
    names = [base] if base is not None else [name for name in target_names() if _mechanism_of(name) == target.mechanism]
    lineages = [Lineage(name, frozenset(_differences(target, load_target(name), ()))) for name in names]
    return min(lineages, key=lambda lineage: len(lineage.changed), default=None)


def _shipped_base(path: Path) -> str | None:
    """Return the first shipped description that another one builds on, None if there is none."""
    while path.parent != SHIPPED:
        base = read_toml(path).get("base")
        if base is None:
            return None
        path = (path.parent / base if base.endswith(".toml") else SHIPPED / f"{base}.toml").resolve()
    return path.stem


def _mechanism_of(name: str) -> object:
    return _merged(SHIPPED / f"{name}.toml", (), Overlay()).get("mechanism")


def _differences(value: object, other: object, path: Keys) -> Iterator[str]:
    """Yield the paths of numbers, texts and rows of a table that differ from another one."""
    if isinstance(value, BaseModel) and type(value) is type(other):
        for name in type(value).model_fields:
            if name not in _ABOUT and (path or name not in _NAMES):
                yield from _differences(getattr(value, name), getattr(other, name), (*path, name))
    elif isinstance(value, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys((*value, *other)):
            yield from _differences(value.get(key), other.get(key), (*path, str(key)))
    elif (rows := _by_row(value)) and (others := _by_row(other)):
        yield from _differences(rows, others, path)
    elif not _same(value, other):
        yield ".".join(path)


def _by_row(table: object) -> dict[str, object]:
    """Return the rows of a table by name; empty if it is not a table, or two rows have one name."""
    if not (isinstance(table, tuple) and table and all(isinstance(row, BaseModel) for row in table)):
        return {}
    keys = [[str(value) for name in _ROW_KEYS if (value := getattr(row, name, None)) is not None] for row in table]
    rows = {".".join(key): row for key, row in zip(keys, table, strict=True)}
    return rows if len(rows) == len(table) else {}


def _model_of(mechanism: str) -> type[Target]:
    module, name = _MECHANISMS[mechanism]
    model: type[Target] = getattr(import_module(module), name)
    return model


def _described(path: Path) -> tuple[dict[str, Any], Overlay]:
    """Return the complete contents of a description with inherited parts, including the rows of tables."""
    overlay = Overlay()
    merged = _merged(path, (), overlay)
    return {key: value.rows() if isinstance(value, TableFile) else value for key, value in merged.items()}, overlay


def _check_said(overlay: Overlay) -> None:
    """Reject changed facts without a source."""
    if overlay.unsaid:
        first, *others = overlay.unsaid
        first.further = tuple(others)
        raise first


def _merged(path: Path, seen: tuple[Path, ...], overlay: Overlay) -> dict[str, Any]:
    """Read a file, note its CSV tables and lay it over the file that its `base` names."""
    if path in seen:
        through = " -> ".join(ancestor.name for ancestor in seen)
        raise TargetDataError(
            f"{path.name}: base leads to itself through {through}", span=place_of(seen[-1], ("base",))
        )
    if len(seen) == _MOST_BASES:
        raise TargetDataError(f"more than {_MOST_BASES} descriptions are bases", span=place_of(seen[-1], ("base",)))
    data = read_toml(path)
    for name, table in list(data.items()):  # the rows of a top-level table may stand in a CSV file
        if isinstance(table, dict) and "table" in table:
            data[f"{name}{FACT}"] = {key: value for key, value in table.items() if key != "table"}
            data[name] = TableFile(path, name, table["table"])
    timing = data.get("timing")
    vector = timing.get("vector") if isinstance(timing, dict) else None
    if isinstance(timing, dict) and isinstance(vector, dict) and "table" in vector:  # single rows may stand beside it
        table = TableFile(path, "timing.vector", vector.pop("table")).keyed()
        timing["vector"] = {**table, **vector}
    base = data.pop("base", None)
    if base is None:
        return data
    if not isinstance(base, str) or "\0" in base:
        raise TargetDataError(
            f"base must be a target name or a file, not {base!r:.80}", span=place_of(path, ("base",)),
            legal=(*target_names(), "PATH.toml"),
        )  # fmt: skip
    base_path = (path.parent / base if base.endswith(".toml") else SHIPPED / f"{base}.toml").resolve()
    if not is_file(base_path):
        raise TargetDataError(
            f"{path.name}: base '{base}' does not exist", span=place_of(path, ("base",)), legal=target_names()
        )
    return overlay.merged(_merged(base_path, (*seen, path), overlay), data, lambda keys: place_of(path, keys))


def _refusal(
    path: Path, error: validated.ValidationError, data: Mapping[str, Any], model: type[BaseModel]
) -> TargetDataError:
    """Describe errors as file, key and reason, each at the place of its key; the first one carries the others.

    Rows of CSV files are named by file and line. An error in inherited contents has no position in the file itself.
    """
    errors = []
    for finding in error.errors(include_url=False, include_input=False):
        reason = finding["msg"].removeprefix("Value error, ")
        kind = {"extra_forbidden": "unknown key", "missing": "missing"}.get(finding["type"], reason)
        head, *keys = finding["loc"] or ("",)
        span = place_of(path, (str(head).removesuffix(FACT), *keys))
        legal = _legal_keys(model, finding["loc"]) if finding["type"] == "extra_forbidden" else ()
        errors.append(TargetDataError(f"{_place(path, finding, data)}: {kind}", span=span, legal=legal))
    first, *others = errors
    first.further = tuple(others)
    return first


def _legal_keys(model: type[BaseModel], path: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the keys nearest to the last one of a path, among its siblings; all of them if none is near."""
    *above, wrong = path
    kinds: list[object] = [model]
    for part in above:
        kinds = [inner for kind in kinds for inner in _held(kind, part)]
    names = [name for kind in kinds for alternative in _alternatives(kind) for name in _fields(alternative)]
    written = [name for name in names if not name.endswith(FACT)] + ["base"] * (not above)
    return closest(str(wrong), written, everything_up_to=_MOST_KEYS)


def _held(kind: object, part: int | str) -> Iterator[object]:
    """Yield the possible types of the value at one key, or list index, of a type."""
    for alternative in _alternatives(kind):
        if fields := _fields(alternative):
            if part in fields:
                yield fields[str(part)].annotation
        elif arguments := get_args(alternative):
            yield arguments[0] if isinstance(part, int) else arguments[-1]


def _alternatives(kind: object) -> Iterator[object]:
    """Yield the alternatives of a type."""
    if get_origin(kind) is Annotated:
        yield from _alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for argument in get_args(kind):
            yield from _alternatives(argument)
    else:
        yield kind


def _fields(kind: object) -> Mapping[str, Any]:
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _place(path: Path, finding: ErrorDetails, data: Mapping[str, Any]) -> str:
    """Return the place of a finding: a line and column of a CSV file, or a key of the description."""
    context = finding.get("ctx", {})
    table, row, *keys = (context["table"], context["row"]) if "row" in context else (*finding["loc"], None, None)[:3]
    rows = data.get(str(table))
    if isinstance(rows, CsvRows) and isinstance(row, int) and 0 <= row < len(rows):
        return ": ".join([f"{rows.file}:{rows.lines[row]}", *(str(key) for key in keys if key is not None)])
    return f"{path.name}: {'.'.join(str(part) for part in finding['loc']) or 'the whole file'}"


INTERVALS = "residual_intervals.csv"
"""The file of `Residuals`."""

POOLED = "any"
"""All rows of a target, for kinds with too few rows of their own."""

_KINDS: Mapping[str, Any] = {"int": int, "float": float, "str": str}

CAST, LOAD, STORE, SCOPE = "cast", "load", "store", "vector function"
"""Kinds of operations in addition to those of tile operations (`castsim.isa.pto.vector_operations.Kind`)."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """Errors of a kind of operation on a target, over `rows` held-out published rows.

    `refitted` of them are fitted rows, each predicted by facts fitted without its operation (for casts, its kernel). A
    residual is (measured - simulated) / simulated; mean, median and maximum are of absolute residuals, in percent. In
    `low` to `high` percent of the simulated cycles contain `share` percent of all rows that are left out while the
    range is determined: one operation, one width, one source at a time, of which at least `held` percent were inside.
    """

    target: str
    kind: str
    rows: int
    refitted: int
    mean: float
    median: float
    maximum: float
    share: int
    low: float
    high: float
    held: float

    def around(self, cycles: float) -> tuple[float, float]:
        """Return the range of cycles around simulated ones."""
        return cycles * (1 + self.low / 100), cycles * (1 + self.high / 100)


@dataclass(frozen=True, slots=True)
class MeasuredOperation:
    """An operation on element types with measured cycles; `unfitted` tells that some are held out."""

    source_kind: SourceKind
    unfitted: bool


def residuals_of(target: str, kind: str, *, pooled: bool = True) -> Residuals | None:
    """Return the residuals of a kind of operation, or with `pooled` of all; None if too few rows were measured."""
    own = _intervals().get(target, {})
    return own.get(kind) or (own.get(POOLED) if pooled else None)


def intervals(target: str) -> tuple[Residuals, ...]:
    """Return the residuals of all kinds of operations of a target."""
    return tuple(_intervals().get(target, {}).values())


def measured_operation(target: str, operation: str, src: str, dst: str) -> MeasuredOperation | None:
    """Return the origin of an operation's measured cycles, the strongest source; None if there are none.

    Without formats, for a transfer, which moves bytes, the formats do not matter.
    """
    return _operations(target).get((operation, src, dst)) if target in target_names() else None


def read_intervals(path: Path) -> list[Residuals]:
    """Return the rows of a record."""
    read: Mapping[str, Any] = {field.name: _KINDS[str(field.type)] for field in fields(Residuals)}
    with path.open(encoding="utf-8", newline="") as file:
        return [Residuals(**{name: read[name](text) for name, text in row.items()}) for row in csv.DictReader(file)]


@lru_cache(1)
def _intervals() -> Mapping[str, Mapping[str, Residuals]]:
    residuals: dict[str, dict[str, Residuals]] = {}
    for row in read_intervals(SHIPPED / INTERVALS):
        residuals.setdefault(row.target, {})[row.kind] = row
    return residuals


@lru_cache
def _operations(name: str) -> Mapping[tuple[str, str, str], MeasuredOperation]:
    """Return the measured operations of a target by mnemonic and formats, from rows about the duration of programs."""
    target, order = load_target(name), list(SourceKind)
    rows: dict[tuple[str, str, str], dict[SourceKind, bool]] = {}
    for table in target.measurements:
        with (SHIPPED / table.file).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if "program" in row or "addresses" in row or not target.times_programs(row.get("convention") or None):
                    continue
                src, dst = (format_of(row.get("dtype") or row[column]).name for column in ("src", "dst"))
                operation, kind = (row.get("op") or "tcvt").lower(), SourceKind(row["source_kind"])
                for key in ((operation, src, dst), (operation, "", "")):
                    own = rows.setdefault(key, {})
                    own[kind] = own.get(kind, False) or row["fitted"] == "no"
    return {
        key: MeasuredOperation(kind, own[kind]) for key, own in rows.items() for kind in [min(own, key=order.index)]
    }

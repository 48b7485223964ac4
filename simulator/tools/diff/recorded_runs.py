"""The JSON that `castsim run --json` wrote, read back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from castsim.isa.errors import ReadError, Span
from castsim.reports.documents import Keys, keys_of
from castsim.reports.launches import Launches, LaunchLine
from castsim.reports.run_cycles import Pipe
from castsim.reports.run_findings import Run
from castsim.reports.sections.kernel import Kernel, KernelLine


def recorded_run(data: bytes, file: str) -> RecordedObject:
    """Return the run in a document; files that it names are not opened.

    Raises:
        ReadError: not JSON, not the result of a run, or another version.
    """
    return _run(read_object(data, file), file)


def parsed_json(data: bytes) -> Any:
    """Return the value of a JSON text; ValueError also for NaN, Infinity and numbers too large for a double."""
    return json.loads(data, parse_float=_finite, parse_constant=_finite)


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise ValueError(f"{text} is not a number that JSON results have")
    return number


def read_object(data: bytes, file: str) -> Mapping[str, Any]:
    """Return the JSON object in a file.

    Raises:
        ReadError: the file is not a JSON object.
    """
    try:
        document = parsed_json(data)
    except json.JSONDecodeError as error:
        line = error.doc.split("\n")[error.lineno - 1]
        raise ReadError(
            f"not JSON: {error.msg}", span=Span(file, error.lineno, error.colno, line), legal=_LEGAL
        ) from None
    except (ValueError, RecursionError):  # no encoding of JSON, a number of too many digits, nested too deeply
        raise ReadError(f"'{file}' is not readable JSON", legal=_LEGAL) from None
    if not isinstance(document, dict):
        raise ReadError(f"result '{file}': not what `castsim run --json` writes", legal=_LEGAL)
    return document


_LEGAL = ("castsim run PROGRAM --json FILE",)


def _run(content: Mapping[str, Any], file: str) -> RecordedObject:
    """Return the part of a document that the comparison needs.

    Raises:
        ReadError: the document is not that of a run.
    """
    for key, what in (("traceEvents", "a trace"), ("errors", "a run that failed"), ("entries", "a run of all entries")):
        if key in content:
            raise ReadError(f"result '{file}': is {what}, not the result of a run", legal=_LEGAL)
    if "total_cycles" not in content or "program" not in content or "instructions" not in content:
        raise ReadError(f"result '{file}': not what `castsim run --json` writes", legal=_LEGAL)
    version, own = content.get("schema_version"), Run.VERSION
    if version != own or isinstance(version, bool):
        raise ReadError(
            f"result '{file}': has schema_version {json.dumps(version)[:40]}; this castsim reads {own}",
            legal=_LEGAL,
        )
    try:
        return _object(Run, content, "")
    except ReadError as error:
        raise ReadError(f"result '{file}': {error.message}", legal=_LEGAL) from None


# The values of a document, checked by the declaration of its keys.

RecordedObject: TypeAlias = Any
"""The keys of an object that a comparison reads, as attributes; None if they are absent."""

_READ: Mapping[type[Keys], tuple[str, ...]] = {
    Run: (
        *("program", "entry", "target", "total_cycles", "seconds", "pipes", "instructions", "launches", "kernel"),
        *("outputs", "outputs_not_computed"),
    ),
    Pipe: ("causes",),
    Launches: ("lines",),
    LaunchLine: ("line", "op", "cycles", "causes"),
    Kernel: ("lines",),
    KernelLine: ("line", "op", "cycles", "causes"),
}
"""The keys that are read; of other objects all are."""


def _object(form: type[Keys], content: object, place: str) -> RecordedObject:
    if not isinstance(content, Mapping):
        raise ReadError(f"{place}Input should be an object")
    values = SimpleNamespace()
    keys = keys_of(form)
    for name in _READ.get(form, keys):
        meaning, hint, _ = keys[name]
        if name not in content and not meaning.optional:
            raise ReadError(f"{place}{name}: Field required")
        value = _value(hint, content[name], f"{place}{name}") if name in content else None
        setattr(values, name, value)
    return values


def _value(hint: Any, value: Any, place: str) -> Any:
    """Return a value of the type that a key declares; counts have an upper limit, because computations must end.

    Raises:
        ReadError: it has another type.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _value(arguments[0], value, place)
    if origin in (Union, UnionType):
        return None if value is None else _value(arguments[0], value, place)
    if origin in (list, Sequence) and isinstance(value, list):
        return [_value(arguments[0], item, f"{place}.{number}") for number, item in enumerate(value)]
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {key: _value(arguments[1], item, f"{place}.{key}") for key, item in value.items()}
    if origin is None and issubclass(hint, Keys):
        return _object(hint, value, f"{place}.")
    numbers = {int: (int,), float: (int, float)}
    fits = isinstance(value, str) if hint not in numbers else type(value) in numbers[hint] and 0 <= value < _BEYOND
    if not fits or origin is not None:
        raise ReadError(f"{place}: Input should be a valid {_KINDS.get(origin or hint, 'string')}")
    return value


_BEYOND = 1 << 63
_KINDS = {int: "count", float: "number", list: "list", Sequence: "list", dict: "object", Mapping: "object"}

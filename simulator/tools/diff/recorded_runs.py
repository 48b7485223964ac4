"""The JSON that `castsim run --json` wrote, read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from castsim.isa.errors import ReadError, Span
from castsim.reports.run_findings import Run

if TYPE_CHECKING:
    from castsim.tools.diff.recorded import RecordedRun


def recorded_run(data: bytes, file: str) -> RecordedRun:
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


def _run(content: Mapping[str, Any], file: str) -> RecordedRun:
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
    from castsim.tools.diff.recorded import read_run  # noqa: PLC0415 - needs pydantic, which a browser lacks

    try:
        return read_run(content)
    except ReadError as error:
        raise ReadError(f"result '{file}': {error.message}", legal=_LEGAL) from None

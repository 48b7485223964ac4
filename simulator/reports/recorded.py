"""The JSON that `castsim run --json` wrote, read back as a side of a comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from castsim.execution.npy import digest, read_array
from castsim.exploration.differences.sides import LineCost, LineSpan, Side, SideOutput, by_line
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, ReadError, Span
from castsim.isa.formats import Format, format_named
from castsim.numerics import codes_from_array
from castsim.reports.documents import VERSIONS, identifier
from castsim.reports.schemas.recorded import RecordedOutput, RecordedRun, read_run
from castsim.timing import Cause

_CAUSES = {identifier(cause): cause for cause in Cause}


def is_document(data: bytes, file: str) -> bool:
    """Whether a file is JSON, not a program: by its suffix, else by how it begins."""
    suffix = Path(file).suffix
    return suffix == ".json" or (suffix not in (".pto", ".tpc", ".s") and data.lstrip()[:1] == b"{")


def recorded_side(data: bytes, file: str, *, values: bool) -> Side:
    """Return the run of a document as a side, with its outputs if `values`.

    Elements of outputs are known where the files that the run wrote are still there and unchanged, else their digests.

    Raises:
        ReadError: no JSON, no result of a run, or one of another version; outputs of which not all was computed.
    """
    found = _run(_object(data, file), file)
    if found.outputs_not_computed and values:
        name = found.outputs_not_computed[0].name
        raise ReadError(f"result '{file}': not all elements of output '{name}' were computed")
    instructions = found.instructions or []
    return Side(
        file=file,
        entry=found.entry,
        target=found.target,
        cycles=found.total_cycles,
        seconds=found.seconds,
        pipes={name: _causes(pipe.causes, file) for name, pipe in (found.pipes or {}).items()},
        lines=_costs(found, file),
        source=None,
        executed=by_line((each.line, each.op) for each in instructions),
        outputs=tuple(_output(each, file) for each in found.outputs) if values else (),
        recorded=tuple(
            LineSpan(each.line, each.op, each.pipe, each.start_cycle, each.end_cycle, each.executions)
            for each in instructions
        ),
    )


def _object(data: bytes, file: str) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except RecursionError:
        raise ReadError(f"result '{file}': nested too deeply", legal=_LEGAL) from None
    except json.JSONDecodeError as error:
        line = error.doc.split("\n")[error.lineno - 1]
        raise ReadError(
            f"not JSON: {error.msg}", span=Span(file, error.lineno, error.colno, line), legal=_LEGAL
        ) from None
    except ValueError:  # neither UTF-8 nor another encoding of JSON, or a number of too many digits
        raise ReadError(f"result '{file}' is not JSON", legal=_LEGAL) from None
    if not isinstance(found, dict):
        raise ReadError(f"result '{file}': not what `castsim run --json` writes", legal=_LEGAL)
    return found


_LEGAL = ("castsim run PROGRAM --json FILE",)


def _run(found: Mapping[str, Any], file: str) -> RecordedRun:
    """Return what is needed of a document.

    Raises:
        ReadError: it is another one.
    """
    for key, what in (("traceEvents", "a trace"), ("errors", "a run that failed"), ("entries", "a run of all entries")):
        if key in found:
            raise ReadError(f"result '{file}': is {what}, not the result of a run", legal=_LEGAL)
    if "total_cycles" not in found or "program" not in found or "instructions" not in found:
        raise ReadError(f"result '{file}': not what `castsim run --json` writes", legal=_LEGAL)
    version, own = found.get("schema_version"), VERSIONS["run"]
    if version != own or isinstance(version, bool):
        raise ReadError(
            f"result '{file}': has schema_version {json.dumps(version)[:40]}, and this castsim compares {own}",
            legal=_LEGAL,
        )
    try:
        return read_run(found)
    except ReadError as error:
        raise ReadError(f"result '{file}': {error.message}", legal=_LEGAL) from None


def _costs(found: RecordedRun, file: str) -> dict[int, LineCost]:
    cycles: dict[int, int | None] = {}
    for each in found.instructions or ():
        before = cycles.get(each.line, 0)
        # Where one entry stands for many executions, their lengths are not all known.
        known = before is not None and each.executions == 1
        cycles[each.line] = (before or 0) + each.end_cycle - each.start_cycle if known else None
    causes: dict[int, dict[Cause, int]] = {}
    for line in found.kernel.lines if found.kernel else ():
        if line.line is not None:
            causes[line.line] = _causes(line.causes, file)
    costs = {line: LineCost(spent, causes.get(line)) for line, spent in cycles.items()}
    for launches in found.launches:
        for line in launches.lines:
            if line.line is not None:
                costs.setdefault(line.line, LineCost(line.cycles, _causes(line.causes, file)))
    return costs


def _causes(found: Mapping[str, int], file: str) -> dict[Cause, int]:
    strange = next((name for name in found if name not in _CAUSES), None)
    if strange is not None:
        raise ReadError(f"result '{file}': unknown cause of cycles '{strange[:40]}'", legal=_CAUSES)
    return {_CAUSES[name]: cycles for name, cycles in found.items()}


def _output(found: RecordedOutput, file: str) -> SideOutput:
    try:
        fmt = format_named(found.format)
    except CastsimError as error:
        raise ReadError(f"result '{file}': output '{found.name}': {error.message}", legal=error.legal) from None
    shape = tuple(found.shape)
    return SideOutput(found.name, fmt, shape, found.sha256, _codes(found, fmt, shape))


def _codes(found: RecordedOutput, fmt: Format, shape: tuple[int, ...]) -> Codes | None:
    """Return the elements of an output, None if its file is gone or holds something else now."""
    if found.file is None:
        return None
    try:
        array = read_array(Path(found.file), found.name)
        known = array.shape == shape and digest(array) == found.sha256
        return codes_from_array(array, fmt) if known else None
    except CastsimError:
        return None

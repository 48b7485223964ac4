"""`castsim.diff`: programs and results of runs, compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from castsim.execution.input_data import digest, read_array
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.execution.synchronisation.race_findings import REPORT, STOP
from castsim.execution.timing import Cause
from castsim.exploration.differences import (
    ComparisonError,
    Difference,
    LineSpan,
    ProgramSide,
    SideOutput,
    SourceLineCost,
    by_line,
    difference,
    side_of,
)
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, EngineError, ReadError, Span
from castsim.isa.formats import Format, format_named
from castsim.isa.reading import Source, read_bytes, source_from
from castsim.numerics import codes_from_array
from castsim.reports.documents import VERSIONS, identifier
from castsim.reports.schemas.recorded import RecordedOutput, RecordedRun, read_run
from castsim.running import MAX_CYCLES, LoadedProgram, Result, load, run_loaded
from castsim.running.loaded import LoadRequest
from castsim.targets import Target
from castsim.targets.description import with_options

if TYPE_CHECKING:
    from castsim.tpc_compiler.tpc_c.launching import LaunchRequest


# The JSON that `castsim run --json` wrote, read back as a side of a comparison.

_CAUSES = {identifier(cause): cause for cause in Cause}


def is_document(data: bytes, file: str) -> bool:
    """Whether a file is JSON, not a program: by its suffix, else by how it begins."""
    suffix = Path(file).suffix
    return suffix == ".json" or (suffix not in (".pto", ".tpc", ".s") and data.lstrip()[:1] == b"{")


def recorded_side(data: bytes, file: str, *, values: bool) -> ProgramSide:
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
    return ProgramSide(
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


def _costs(found: RecordedRun, file: str) -> dict[int, SourceLineCost]:
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
    costs = {line: SourceLineCost(spent, causes.get(line)) for line, spent in cycles.items()}
    for launches in found.launches:
        for line in launches.lines:
            if line.line is not None:
                costs.setdefault(line.line, SourceLineCost(line.cycles, _causes(line.causes, file)))
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


_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class SideRequest:
    """What is to be compared, and how it is run if it is a program.

    `inherited` are options of the other side, which this one takes too, except those that its target does not have.
    """

    program: str | Path | Result | Source
    target: str | Path | Target | None = None
    entry: str | None = None
    options: Mapping[str, int | str] = field(default_factory=dict)
    inherited: Mapping[str, int | str] = field(default_factory=dict)
    inputs: Mapping[str, Codes | str] = field(default_factory=dict)
    args: Mapping[str, int | float] = field(default_factory=dict)
    opaque: Mapping[str, int] = field(default_factory=dict)
    timing_only: bool = False
    max_cycles: int = MAX_CYCLES
    limits: Limits = DEFAULT_LIMITS
    launch: LaunchRequest | None = None
    """Tensors, index space and engines of a kernel in C."""

    @property
    def about_program(self) -> bool:
        """Whether anything is said of how a program is to be run."""
        said = (self.target, self.entry, self.options, self.inherited, self.inputs, self.args, self.opaque)
        return any(each is not None and each != {} for each in said)

    def differs_from(self, other: SideRequest) -> bool:
        """Whether anything is said of this side that is not said of the other."""
        return (self.target, self.entry) != (other.target, other.entry) or self.options not in ({}, other.options)

    def prepared(self, target: Target) -> Target:
        """Return the target with the options set.

        Raises:
            ReadError: an option that it does not have, or a value that an option cannot have.
        """
        known = {name: value for name, value in self.inherited.items() if name in target.options}
        return with_options(target, {**known, **self.options})


@dataclass(frozen=True, slots=True)
class _Opened:
    """A program that was loaded, with its text, or a side that is complete."""

    request: SideRequest
    loaded: LoadedProgram | None
    text: str
    side: ProgramSide | None


def diff(
    a: str | Path | Result,
    b: str | Path | Result | None = None,
    *,
    target: str | Path | Target | None = None,
    target_b: str | Path | Target | None = None,
    entry: str | None = None,
    entry_b: str | None = None,
    options: Mapping[str, int | str] | None = None,
    options_b: Mapping[str, int | str] | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    opaque: Mapping[str, int] | None = None,
    timing_only: bool = False,
    max_cycles: int = MAX_CYCLES,
    max_walk: int | None = None,
) -> Difference:
    """Compare two runs: cycles in all, by pipe and by line, outputs bit by bit.

    Args:
        a: path of a program (`.pto`, `.tpc`, a binary) or of what `castsim run --json` wrote, or a result of `run`.
        b: the same; None takes the program `a` again, on another target or with other options.
        target, entry, options: of both; `options` that the target of `b` does not have are left out for it.
        target_b, entry_b, options_b: of `b` alone.
        inputs: arrays by argument name, or what `--in` takes; each goes to the sides that have such an argument.
        args, opaque, max_cycles, max_walk: as in `castsim.run`.
        timing_only: compute no values, and compare cycles alone; no inputs are needed.

    Returns:
        `equal`, `cycles_a`, `cycles_b`, `slowdown_percent`, the `lines` that differ (with their cycles), the `pipes`
        that differ (cycles by cause), and `outputs`: how many elements differ, the first ten with index and bits.

    Raises:
        ComparisonError: a side is refused or fails (its own error is the cause), or lacks what the other one has.
        ReadError: an input that neither program takes; nothing that could differ.
    """
    if b is None and target_b is None and not options_b and entry_b is None:
        raise ReadError(
            "only one program, and nothing to compare it with", legal=("--target-b T", "--option-b NAME=VALUE")
        )
    both = (inputs or {}, args or {}, opaque or {}, timing_only, max_cycles, Limits(max_walk=max_walk))
    return diff_sides(
        SideRequest(a, target, entry, options or {}, {}, *both),
        SideRequest(
            a if b is None else b, target if target_b is None else target_b, entry if entry_b is None else entry_b,
            options_b or {}, options or {}, *both,
        ),
    )  # fmt: skip


def diff_sides(a: SideRequest, b: SideRequest, stage: Callable[[str], None] = lambda _: None) -> Difference:
    """Compare two sides; `stage` hears what is being done.

    Raises:
        ComparisonError, ReadError: as `diff`.
    """
    content = {str(each.program): _content(each) for each in (a, b) if not isinstance(each.program, Result | Source)}
    first = _open(a, content, "side A")
    if first.loaded is None:  # nobody has read the options that both were given
        b = replace(b, options={**b.inherited, **b.options}, inherited={})
    second = _open(b, content, "side B")
    _check_takers(a, b, first, second)
    programs = [each.loaded for each in (first, second) if each.loaded is not None]
    _check_inputs({**a.inputs, **b.inputs}, programs)
    return difference(_ran(first, "side A", stage), _ran(second, "side B", stage))


def _check_takers(a: SideRequest, b: SideRequest, first: _Opened, second: _Opened) -> None:
    """Reject what is said of a program where there is only the result of one.

    Raises:
        ReadError: as said.
    """
    if first.loaded is None and second.loaded is None and (a.about_program or b.about_program):
        raise ReadError("targets, options, entries, inputs and arguments are for programs; both sides are results")
    if second.loaded is None and b.differs_from(a):
        raise ReadError("a target, an option or an entry of B is for a program; B is a result")


def _content(request: SideRequest) -> bytes:
    return read_bytes(str(request.program), "program or result")


def _open(request: SideRequest, content: Mapping[str, bytes], who: str) -> _Opened:
    if isinstance(request.program, Result):
        found = request.program
        return _Opened(request, None, "", _side(found, found.loaded.source, values=not request.timing_only))
    if isinstance(request.program, Source):
        recorded = request.program
        return _named(who, lambda: _loaded(request, recorded))
    data, file = content[str(request.program)], _file(request.program)
    if is_document(data, file):
        return _Opened(request, None, "", recorded_side(data, file, values=not request.timing_only))
    prefers = LoadRequest(request.target).prefers_assembly
    return _named(who, lambda: _loaded(request, source_from(data, Path(file), prefers)))


def _file(program: str | Path) -> str:
    return "/dev/stdin" if str(program) == "-" else str(program)


def _loaded(request: SideRequest, source: Source) -> _Opened:
    loaded = load(
        source, request.target, request.entry, request.args, prepare=request.prepared, opaque=request.opaque,
        limits=request.limits, launch=request.launch,
    )  # fmt: skip
    return _Opened(request, loaded, source.text, None)


def _check_inputs(inputs: Iterable[str], programs: Iterable[LoadedProgram]) -> None:
    known = list(dict.fromkeys(name for program in programs for name in program.arguments))
    for name in inputs:
        if name not in known:
            raise ReadError(f"no program that is compared has a tensor argument '{name}'", legal=known)


def _ran(opened: _Opened, who: str, stage: Callable[[str], None]) -> ProgramSide:
    """Run the program of a side, if it is one that was not run yet."""
    request, loaded = opened.request, opened.loaded
    if loaded is None:
        assert opened.side is not None
        return opened.side
    inputs = {name: value for name, value in request.inputs.items() if name in loaded.arguments}
    result = _named(
        who,
        lambda: run_loaded(
            loaded, inputs, timing_only=request.timing_only, max_cycles=request.max_cycles, stage=stage,
            limits=request.limits, races=STOP if isinstance(request.program, str | Path) else REPORT,
        ),
    )  # fmt: skip
    return _side(result, opened.text, values=not request.timing_only)


def _side(result: Result, text: str, *, values: bool) -> ProgramSide:
    """Return a run as a side, with its outputs if `values`.

    Raises:
        ComparisonError: not all of an output is computed.
    """
    for name in result.partial if values else ():
        raise ComparisonError(
            f"output '{name}' of {result.loaded.file} is not computed in full: it depends on opaque operations",
            legal=("--timing-only",),
        )
    return side_of(result, text, values=values)


def _named(who: str, do: Callable[[], _Made]) -> _Made:
    """Do something for a side; an error says for which one.

    Raises:
        ComparisonError: it failed.
    """
    try:
        return do()
    except (CastsimError, EngineError) as error:
        legal = error.legal if isinstance(error, CastsimError) else ()
        found = ComparisonError(f"{error.message} ({who})", span=error.span, legal=legal)
        found.further = getattr(error, "further", ())
        raise found from error
    except MemoryError as error:
        raise ComparisonError(f"not enough memory ({who})") from error

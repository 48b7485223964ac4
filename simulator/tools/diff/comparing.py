"""`castsim.diff`: comparison of programs and of results of runs, which are read back from their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin

from castsim.execution.input_data import digest, read_array
from castsim.execution.run_limits import DEFAULT_LIMITS, MAX_CYCLES, Limits
from castsim.execution.timing import Cause
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError, ReadError, Span, arguments_checked
from castsim.isa.formats import Codes, Format, format_named
from castsim.isa.reading import Source, read_bytes, source_from
from castsim.numerics.codec import codes_from_array
from castsim.reports.documents import Keys, identifier, keys_of
from castsim.reports.launches import Launches, LaunchLine
from castsim.reports.run_cycles import Pipe
from castsim.reports.run_findings import Run
from castsim.reports.sections.kernel import Kernel, KernelLine
from castsim.running.loaded import LoadedProgram, LoadRequest
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, run_loaded
from castsim.running.synchronisation.race_findings import REPORT, STOP
from castsim.targets.description import with_options
from castsim.targets.loader import Target
from castsim.tools.diff.differences import (
    ComparedSide,
    ComparisonError,
    Difference,
    LineSpan,
    SideOutput,
    SourceLineCost,
    by_line,
    difference,
    side_of,
)

if TYPE_CHECKING:
    from castsim.running.loaded import LaunchRequest


# The JSON that `castsim run --json` wrote, read back.


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


# A result of a run as a side of a comparison.

_CAUSES = {identifier(cause): cause for cause in Cause}


def is_document(data: bytes, file: str) -> bool:
    """Return whether a file is JSON rather than a program, by its suffix or else by its beginning."""
    suffix = Path(file).suffix
    return suffix == ".json" or (suffix not in (".pto", ".tpc", ".s") and data.lstrip()[:1] == b"{")


def recorded_side(data: bytes, file: str, *, values: bool) -> ComparedSide:
    """Return the run of a document as a side, with its outputs if `values`.

    Elements of outputs are compared if the run's files still exist unchanged; otherwise only their digests.

    Raises:
        ReadError: not JSON, not the result of a run, another version, or an output that is not fully computed.
    """
    recorded = recorded_run(data, file)
    if recorded.outputs_not_computed and values:
        name = recorded.outputs_not_computed[0].name
        raise ReadError(f"result '{file}': output '{name}' was not computed in full")
    instructions = recorded.instructions or []
    return ComparedSide(
        file=file,
        entry=recorded.entry,
        target=recorded.target,
        cycles=recorded.total_cycles,
        seconds=recorded.seconds,
        pipes={name: _causes(pipe.causes, file) for name, pipe in (recorded.pipes or {}).items()},
        lines=_costs(recorded, file),
        source=None,
        executed=by_line((instruction.line, instruction.op) for instruction in instructions),
        outputs=tuple(_output(output, file) for output in recorded.outputs) if values else (),
        recorded=tuple(
            LineSpan(
                instruction.line,
                instruction.op,
                instruction.pipe,
                instruction.start_cycle,
                instruction.end_cycle,
                instruction.executions or 1,
            )
            for instruction in instructions
        ),
    )


def _costs(recorded: RecordedObject, file: str) -> dict[int, SourceLineCost]:
    cycles: dict[int, int | None] = {}
    for instruction in recorded.instructions or ():
        before = cycles.get(instruction.line, 0)
        # Where one entry stands for many executions, their lengths are not all known.
        is_known = before is not None and instruction.executions in (None, 1)
        cycles[instruction.line] = (before or 0) + instruction.end_cycle - instruction.start_cycle if is_known else None
    causes: dict[int, dict[Cause, int]] = {}
    for line in recorded.kernel.lines if recorded.kernel else ():
        if line.line is not None:
            causes[line.line] = _causes(line.causes, file)
    costs = {line: SourceLineCost(spent, causes.get(line)) for line, spent in cycles.items()}
    for launches in recorded.launches or ():
        for line in launches.lines:
            if line.line is not None:
                costs.setdefault(line.line, SourceLineCost(line.cycles, _causes(line.causes, file)))
    return costs


def _causes(recorded: Mapping[str, int], file: str) -> dict[Cause, int]:
    strange = next((name for name in recorded if name not in _CAUSES), None)
    if strange is not None:
        raise ReadError(f"result '{file}': unknown cause of cycles '{strange[:40]}'", legal=_CAUSES)
    return {_CAUSES[name]: cycles for name, cycles in recorded.items()}


def _output(output: RecordedObject, file: str) -> SideOutput:
    try:
        fmt = format_named(output.format)
    except CastsimError as error:
        raise ReadError(f"result '{file}': output '{output.name}': {error.message}", legal=error.legal) from None
    shape = tuple(output.shape)
    return SideOutput(output.name, fmt, shape, output.sha256, _codes(output, fmt, shape))


def _codes(output: RecordedObject, fmt: Format, shape: tuple[int, ...]) -> Codes | None:
    """Return the elements of an output, None if its file is gone or has changed."""
    if output.file is None:
        return None
    try:
        array = read_array(Path(output.file), output.name)
        is_recorded = array.shape == shape and digest(array) == output.sha256
        return codes_from_array(array, fmt) if is_recorded else None
    except CastsimError:
        return None


_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class SideRequest:
    """A side to compare, and how to run it if it is a program.

    `inherited` are options of the other side, which apply here too unless this target lacks them.
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
        """Whether any option about running a program is set."""
        given_values = (self.target, self.entry, self.options, self.inherited, self.inputs, self.args, self.opaque)
        return any(given_value is not None and given_value != {} for given_value in given_values)

    def differs_from(self, other: SideRequest) -> bool:
        """Return whether any option distinguishes this side from the other."""
        return (self.target, self.entry) != (other.target, other.entry) or self.options not in ({}, other.options)

    def prepared(self, target: Target) -> Target:
        """Return the target with the options set.

        Raises:
            ReadError: the target lacks an option, or a value is not legal.
        """
        known_options = {name: value for name, value in self.inherited.items() if name in target.options}
        return with_options(target, {**known_options, **self.options})


@dataclass(frozen=True, slots=True)
class _Opened:
    """A loaded program with its text, or a finished side."""

    request: SideRequest
    loaded: LoadedProgram | None
    text: str
    side: ComparedSide | None


@arguments_checked
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
        a: path of a program (`.pto`, `.tpc`, a binary) or of a `castsim run --json` document, or a result of `run`.
        b: the same; None runs program `a` again, on another target or with other options.
        target, entry, options: for both sides; `options` that the target of `b` lacks are dropped for it.
        target_b, entry_b, options_b: for `b` alone.
        inputs: arrays by argument name, or values of `--in`; each goes to the sides that have such an argument.
        args, opaque, max_cycles, max_walk: see `castsim.run`.
        timing_only: compute no values, and compare cycles only; inputs are not needed.

    Returns:
        `equal`, `cycles_a`, `cycles_b`, `slowdown_percent`, the `lines` that differ (with their cycles), the `pipes`
        that differ (cycles by cause), and `outputs`: how many elements differ, the first ten with index and bits.

    Raises:
        ComparisonError: a side is refused or fails (its own error is the cause), or lacks data that the other has.
        ReadError: neither program takes an input, or both sides are necessarily the same.
    """
    if b is None and target_b is None and not options_b and entry_b is None:
        raise ReadError("the second program is missing", legal=("--target-b T", "--option-b NAME=VALUE"))
    both = (inputs or {}, args or {}, opaque or {}, timing_only, max_cycles, Limits(max_walk=max_walk))
    return diff_sides(
        SideRequest(a, target, entry, options or {}, {}, *both),
        SideRequest(
            a if b is None else b, target if target_b is None else target_b, entry if entry_b is None else entry_b,
            options_b or {}, options or {}, *both,
        ),
    )  # fmt: skip


def diff_sides(a: SideRequest, b: SideRequest, stage: Callable[[str], None] = lambda _: None) -> Difference:
    """Compare two sides; `stage` receives the current stage.

    Raises:
        ComparisonError, ReadError: see `diff`.
    """
    content = {
        str(request.program): _content(request)
        for request in (a, b)
        if not isinstance(request.program, Result | Source)
    }
    first = _open(a, content, "side A")
    if first.loaded is None:  # nobody has read the options that both were given
        b = replace(b, options={**b.inherited, **b.options}, inherited={})
    second = _open(b, content, "side B")
    _check_takers(a, b, first, second)
    programs = [opened.loaded for opened in (first, second) if opened.loaded is not None]
    _check_inputs({**a.inputs, **b.inputs}, programs)
    return difference(_ran(first, "side A", stage), _ran(second, "side B", stage))


def _check_takers(a: SideRequest, b: SideRequest, first: _Opened, second: _Opened) -> None:
    """Reject options about programs if a side is only a result.

    Raises:
        ReadError: such an option was given.
    """
    if first.loaded is None and second.loaded is None and (a.about_program or b.about_program):
        raise ReadError("both sides are results; targets, options, entries, inputs and arguments are for programs")
    if second.loaded is None and b.differs_from(a):
        raise ReadError("B is a result; a target, option or entry applies only to a program")


def _content(request: SideRequest) -> bytes:
    return read_bytes(str(request.program), "program or result")


def _open(request: SideRequest, content: Mapping[str, bytes], who: str) -> _Opened:
    if isinstance(request.program, Result):
        program = request.program
        return _Opened(request, None, "", _side(program, program.loaded.source, values=not request.timing_only))
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
    names = list(dict.fromkeys(name for program in programs for name in program.arguments))
    for name in inputs:
        if name not in names:
            raise ReadError(f"neither program has a tensor argument '{name}'", legal=names)


def _ran(opened: _Opened, who: str, stage: Callable[[str], None]) -> ComparedSide:
    """Run the program of a side that was not run yet."""
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


def _side(result: Result, text: str, *, values: bool) -> ComparedSide:
    """Return a run as a side, with its outputs if `values`.

    Raises:
        ComparisonError: an output is not fully computed.
    """
    for name in result.partial if values else ():
        raise ComparisonError(
            f"output '{name}' of {result.loaded.file} is incomplete: it depends on opaque operations",
            legal=("--timing-only",),
        )
    return side_of(result, text, values=values)


def _named(who: str, do: Callable[[], _Made]) -> _Made:
    """Call a function for a side; errors name the side.

    Raises:
        ComparisonError: the call failed.
    """
    try:
        return do()
    except (CastsimError, EngineError) as error:
        legal = error.legal if isinstance(error, CastsimError) else ()
        named_error = ComparisonError(f"{error.message} ({who})", span=error.span, legal=legal)
        named_error.further = getattr(error, "further", ())
        raise named_error from error
    except MemoryError as error:
        raise ComparisonError(f"not enough memory ({who})") from error

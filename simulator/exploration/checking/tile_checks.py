"""What is wrong with a `.pto` program, of tiles or of vector instructions: syntax, legality, order.

Every function that can be run is walked for its target without values, also what could be read of one with statements
that cannot be. A statement that is refused is left out, with those that need what it defines, and the walk repeated for
what comes behind. Scalar arguments without a value are
tried with several, and what is refused with all of these is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from castsim.execution.entry_and_target import entries
from castsim.execution.interpreter.arguments import core_numbers
from castsim.execution.synchronisation.race_findings import REPORT
from castsim.execution.synchronisation.race_findings import RaceFinding as OrderFinding
from castsim.exploration.checking.check_finding import Finding, Severity, of_errors, of_warnings, placed
from castsim.isa.errors import CastsimError, EngineError, IllegalError, LimitError, RaceError, ReadError, Span
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import REGION_FIELDS, Condition, Operation, Return, Yield, nodes
from castsim.isa.pto.pto_parser import calls, inlined, parse
from castsim.isa.pto.statement_reader import FollowUpError
from castsim.isa.pto.vector_operations import ALIASES
from castsim.isa.sources import Source
from castsim.isa.warning_text import WarningKind, WarningText
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import Walking, reads_elements, target_of, walking_of_function
from castsim.targets import Target

# A function without the statement that an error is about, so that what else is wrong with it can be found.


def without(function: pto.Function, place: Span) -> pto.Function | None:
    """Return a function without the statement at a place and those that use what it defines.

    None if there is no such statement, or the function cannot do without it.
    """
    body = function.body or ()
    at = (place.line, place.column)
    before = [node for node in nodes(body) if node.span.file == place.file and _start(node) <= at]
    if not before:
        return None
    removed: set[int] = {id(max(before, key=_start))}
    names: set[str] = set()
    while True:
        found = [node for node in nodes(body) if id(node) in removed or not names.isdisjoint(_names(node))]
        if any(isinstance(node, Return | Yield | Condition) for node in found):
            return None
        defined = {name for node in found for name in _defined(node)}
        if defined <= names and {id(node) for node in found} <= removed:
            return replace(function, body=_kept(body, removed))
        names |= defined
        removed |= {id(node) for node in found}


def _start(node: Operation) -> tuple[int, int]:
    return node.span.line, node.span.column


def _names(node: Operation) -> set[str]:
    """Return every text that a statement holds outside of its regions; names of values are among them."""
    found: set[str] = set()
    for each in fields(node):
        held = getattr(node, each.name)
        if isinstance(held, str):
            found.add(held)
        elif isinstance(held, tuple) and each.name not in REGION_FIELDS:
            found |= {one for one in held if isinstance(one, str)}
    return found


def _defined(node: Operation) -> set[str]:
    """Return the names that a statement makes visible behind itself."""
    if isinstance(node, pto.Tcvt):
        return {node.dst} if node.defines_dst else set()
    if isinstance(node, pto.ScalarAccess):
        return {node.value} if node.reads else set()
    if isinstance(node, pto.TileOperation):
        return set(node.outputs) if node.mnemonic in ALIASES else set()
    found = set(getattr(node, "results", ()))
    result = getattr(node, "result", None)
    return found | ({result} if isinstance(result, str) else set())


def _kept(body: Sequence[Operation], removed: set[int]) -> tuple[Operation, ...]:
    found = []
    for node in body:
        if id(node) in removed:
            continue
        changed = {region: _kept(getattr(node, region), removed) for region in REGION_FIELDS if hasattr(node, region)}
        found.append(replace(node, **changed) if changed else node)  # type: ignore[arg-type]  # regions of a node
    return tuple(found)


TRIED = (1, 2, 16)
"""Values that a scalar argument without one is tried with."""

_MOST = 50
"""Statements of a function that are left out before its walks end."""

_UNTOLD = (WarningKind.DEFAULT_READ, WarningKind.LEFT_OUT, WarningKind.UNTIMED)
"""Warnings about a run, not about the program."""

_FLOATS = ("f16", "bf16", "f32", "f64")

Error = CastsimError | EngineError


def tile_findings(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield what is wrong with a program, in no order."""
    try:
        parsed = parse(source.text, source.file, max_statements=request.limits.max_statements, go_past_refused=True)
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    for refused in parsed.refused:
        yield from of_errors(refused.error, source.file)
    yield from of_warnings(parsed.warnings, source.file)
    parsed, partial = _with_rests(parsed)
    chosen = entries(parsed)
    if not chosen:
        if not parsed.refused and not partial:
            yield from of_errors(ReadError("no function to run", legal=("func.func @NAME(...) { ... }",)), source.file)
        return
    try:
        target = target_of(parsed, source, replace(request, entry=chosen[0].name))
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    for function in chosen:
        whole = function.name not in partial
        yield from _function_findings(parsed, function, source, target, request, whole=whole)


def _with_rests(parsed: pto.Program) -> tuple[pto.Program, frozenset[str]]:
    """Return a program with what could be read of its refused functions, and the names of those that are not whole.

    A function that calls one that is not whole is not whole either.
    """
    rests = {one.name: one.rest for one in parsed.refused if one.rest is not None}
    functions = sorted((*parsed.functions, *rests.values()), key=lambda one: (one.span.line, one.span.column))
    refused = tuple(one for one in parsed.refused if one.rest is None)
    partial: frozenset[str] = frozenset()
    more = frozenset(rests)
    while more - partial:
        partial |= more
        more = frozenset(one.name for one in functions if any(call.callee in partial for call in calls(one.body or ())))
    return replace(parsed, functions=tuple(functions), refused=refused), partial


@dataclass(frozen=True, slots=True)
class _FunctionWalks:
    """What walks of a function have found: refusals, and of the last walk warnings and what breaks the order."""

    errors: tuple[Error, ...]
    warnings: tuple[WarningText, ...] = ()
    races: tuple[OrderFinding, ...] = ()
    limit: LimitError | None = None
    """Where a walk was given up."""


def _function_findings(
    parsed: pto.Program, function: pto.Function, source: Source, target: Target, request: LoadRequest, *, whole: bool
) -> Iterator[Finding]:
    try:
        flat = inlined(parsed, function)
    except CastsimError as error:
        if all(error is not refused.error for refused in parsed.refused):
            yield from of_errors(error, source.file)
        return
    unknown = {
        one.name: one.type.name
        for one in function.arguments
        if isinstance(one.type, pto.ScalarType) and one.name not in request.args
    }
    missing = [name for name, kind in unknown.items() if kind not in _FLOATS]  # these decide no bounds
    guesses = [dict.fromkeys(unknown, value) for value in (TRIED if missing else TRIED[:1])]
    found = [
        _walked(
            parsed, flat, source, target, replace(request, args=_given(function, request.args) | guess), whole=whole
        )
        for guess in guesses
    ]
    for refusal in found[0].errors:
        if all(_has(one.errors, refusal) for one in found[1:]):
            yield from of_errors(refusal, source.file)
    untold = (*_UNTOLD, WarningKind.UNDEFINED) if missing else _UNTOLD
    yield from of_warnings((one for one in found[0].warnings if one.kind not in untold), source.file)
    for race in found[0].races if not missing else ():
        yield placed(Severity.ERROR, str(race.kind), race.message, race.spans[-1], source.file, race.missing, (), 1)
    if found[0].limit is not None:
        limit = found[0].limit
        yield placed(Severity.WARNING, limit.kind, f"not checked further: {limit.message}", limit.span, source.file)
    if missing and whole:
        names = ", ".join(f"%{name}" for name in missing)
        text = f"@{function.name}: order and bounds depend on {names}, which have no value"
        cure = " ".join(f"--arg {name}=VALUE" for name in missing)
        yield placed(Severity.NOTE, "not checked", text, function.span, source.file, cure)


def _given(function: pto.Function, args: Mapping[str, int | float]) -> dict[str, int | float]:
    """Return the values given for arguments that a function has."""
    names = {one.name for one in function.arguments} | core_numbers(function)
    return {name: value for name, value in args.items() if name.partition("[")[0] in names}


def _has(errors: tuple[Error, ...], wanted: Error) -> bool:
    return any((one.message, one.span) == (wanted.message, wanted.span) for one in errors)


def _walked(
    parsed: pto.Program, function: pto.Function, source: Source, target: Target, request: LoadRequest, *, whole: bool
) -> _FunctionWalks:
    """Walk a function, and again without each statement that is refused.

    Order is judged only of a `whole` one that nothing is refused of.
    """
    errors: list[Error] = []
    left: pto.Function | None = function
    walks = 0
    while left is not None and walks < _MOST:
        walks += 1
        certain = True
        try:
            walking = walking_of_function(parsed, left, source, target, request)
            if isinstance(walking, Walking):
                certain = not reads_elements(walking)
            program = walking.program() if isinstance(walking, Walking) else walking
            issued = program.issue({}, RunOptions(values=False, races=REPORT, limits=request.limits))
        except LimitError as error:
            return _FunctionWalks(tuple(errors), limit=error)
        except (CastsimError, EngineError) as error:
            if _has(tuple(errors), error):
                break
            follows = isinstance(error, FollowUpError) or (not whole and isinstance(error, RaceError | EngineError))
            if (certain or isinstance(error, IllegalError)) and not follows:
                errors.append(error)
            left = None if error.span is None else without(left, error.span)
        else:
            warnings, races = issued.loaded.executed.warnings if certain else (), issued.races or ()
            if errors or not certain or not whole:  # what was left out may have been what gives bytes their values
                warnings, races = tuple(one for one in warnings if one.kind is not WarningKind.UNDEFINED), ()
            return _FunctionWalks(tuple(errors), warnings, races)
    return _FunctionWalks(tuple(errors))

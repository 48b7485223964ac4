"""Checks of programs, target descriptions and graphs without running them: all errors in one pass.

found = check("kernel.pto")
found = check_text("kernel.pto", text, target="a5")
found[0].severity, found[0].line, found[0].column, found[0].message
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from castsim.execution.input_data import entries
from castsim.execution.interpreter.arguments import core_numbers, in_buffer
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.dataclass import dataclass, fields, replace
from castsim.isa.errors import (
    CastsimError,
    EngineError,
    IllegalError,
    LimitError,
    RaceError,
    ReadError,
    Severity,
    Span,
    WarningKind,
    WarningText,
    arguments_checked,
)
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import REGION_FIELDS, Condition, Operation, Return, Yield, nodes
from castsim.isa.pto.pto_parser import calls, inlined, parse
from castsim.isa.pto.statement_reader import FollowUpError
from castsim.isa.pto.vector_operations import ALIASES
from castsim.isa.reading import ASSEMBLY_SUFFIXES, STDIN, Language, Source, read_bytes, source_of
from castsim.isa.tpc.parser import has_virtual_registers
from castsim.isa.tpc.parser import parse as parse_assembly
from castsim.isa.tpc.program import Immediate, TensorDeclaration, TpcProgram
from castsim.machines.vliw import chosen_target
from castsim.machines.vliw.findings import LintFinding
from castsim.reports.documents import Keys, TextOrNull, apart, record, says
from castsim.reports.schemas.keys import Column, Line
from castsim.running.languages import GRAPH, SCHEDULER, C, language_module
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import Walking, reads_elements, target_of, walking_of_function
from castsim.running.synchronisation.race_findings import REPORT
from castsim.running.synchronisation.race_findings import RaceFinding as OrderFinding
from castsim.targets.csv_tables import read_toml
from castsim.targets.description import with_options
from castsim.targets.loader import Target, is_specification, load_specification, load_target
from castsim.tools.tpc_lint.lint_checking import breaches
from castsim.tools.tpc_lint.lint_flow import Flow, notices


@dataclass(frozen=True, slots=True)
class FolderWalk:
    """The files to check, in order, and the files of folders whose kind cannot be checked."""

    files: tuple[str, ...]
    skipped: tuple[str, ...]


def files_of(paths: Iterable[str]) -> FolderWalk:
    """Return the distinct files that paths name: files as they are, folders with everything in them, by name.

    Hidden files and folders, and links to folders, are skipped.

    Raises:
        ReadError: a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise ReadError(f"cannot read folder '{error.filename}': {error.strerror}")

    files: dict[str, None] = {}
    skipped: list[str] = []
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            files[path] = None
            continue
        for folder, inner, names in os.walk(path, onerror=refuse):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            for name in sorted(name for name in names if not name.startswith(".")):
                file = os.path.join(folder, name)  # noqa: PTH118 - keeps the folder as it was typed
                if _is_checkable(Path(file)):
                    files[file] = None
                else:
                    skipped.append(file)
    return FolderWalk(tuple(files), tuple(skipped))


def _is_checkable(path: Path) -> bool:
    """Return whether a file in a folder is of a checked kind; of TOML files, only descriptions of targets are."""
    if path.suffix.lower() not in _SUFFIXES or not (path.is_file() or path.is_symlink()):
        return False
    if path.suffix.lower() != ".toml":
        return True
    try:
        return not {"base", "kind"}.isdisjoint(read_toml(path))
    except CastsimError:
        return True


@record
class Finding(Keys, title="FindingEntry"):
    """An error, warning or note about a file."""

    severity: Severity = says("Severity of the finding.")
    kind: str = says("Its kind.")
    message: str = says("The finding in words.")
    file: str = says("The file.")
    line: Line | None = says("Line, from 1; null if it is about the whole file.", default=None)
    column: Column | None = says("Column in code points, from 1; null as `line`.", default=None)
    end_column: Column | None = says(
        "Column after the last character; null if it is about the whole file.", default=None
    )
    help: TextOrNull = says("How to mend it; null if more than one way is possible.", default="")
    legal: tuple[str, ...] = says("Valid alternatives.", default=())
    exit_code: int = apart(default=0)
    """That of `castsim check`: 0, 1 refused, 2 malformed."""
    span: Span | None = apart(default=None)
    """The position with its source line, for display."""

    def __repr__(self) -> str:
        location = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"<Finding {self.severity} {location}: {self.message[:60]}>"


def of_error(error: CastsimError | EngineError, file: str) -> Finding:
    """Return the finding of an error in a file."""
    legal = error.values if isinstance(error, CastsimError) else ()
    cure = " or ".join(error.cures) if isinstance(error, CastsimError) else ""
    message = error.message.replace(f" ({error.span})", "") if error.span else error.message
    return placed(Severity.ERROR, error.kind, message, error.span, file, cure, legal, error.exit_code)


def of_errors(error: CastsimError | EngineError, file: str) -> list[Finding]:
    """Return the findings of an error and its further errors."""
    further = error.further if isinstance(error, CastsimError) else ()
    return [of_error(refusal, file) for refusal in (error, *further)]


def of_warnings(warnings: Iterable[WarningText], file: str) -> list[Finding]:
    """Return the findings of warnings."""
    return [
        placed(
            Severity.WARNING,
            warning.kind.value,
            warning.text,
            warning.place if isinstance(warning.place, Span) else None,
            file,
        )
        for warning in warnings
    ]


def placed(
    severity: Severity,
    kind: str,
    message: str,
    span: Span | None,
    file: str,
    cure: str = "",
    legal: tuple[str, ...] = (),
    exit_code: int = 0,
) -> Finding:
    """Return a finding at a position; without one it is about the whole file."""
    if span is None:
        return Finding(severity, kind, message, file, help=cure, legal=legal, exit_code=exit_code)
    end = span.column + span.length
    return Finding(severity, kind, message, span.file, span.line, span.column, end, cure, legal, exit_code, span)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return distinct findings in the order of the text, those about whole files first."""
    return tuple(
        sorted(dict.fromkeys(findings), key=lambda finding: (finding.file, finding.line or 0, finding.column or 0))
    )


# What is wrong with TPC assembly: syntax, what the generation lacks, and what the linter finds.


def assembly_findings(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield the findings in a program, in no order; one with virtual registers is scheduled first."""
    text, most = source.text, request.limits.max_statements
    try:
        target = chosen_target(text, source.file, request.target, request.prepare)
        if has_virtual_registers(text):
            language_module(SCHEDULER).schedule(text, source.file, target, most)
            return
        program = parse_assembly(text, target.dialect, source.file, most)
        flow = Flow(program, target)
        findings, noticed = breaches(flow), notices(flow)
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    yield from _undeclared_tensors(program, source.file)
    for finding in findings:
        yield _finding(finding, Severity.ERROR if finding.certain else Severity.WARNING, source.file)
    for notice in noticed:
        yield _finding(notice, Severity.NOTE, source.file)


def _undeclared_tensors(program: TpcProgram, file: str) -> Iterator[Finding]:
    """Yield tensors that a program uses without declaring them, if it declares any: a run would stop there."""
    tensors = {
        declaration.number: declaration.name
        for declaration in program.declarations
        if isinstance(declaration, TensorDeclaration)
    }
    legal = tuple(f"{number} ({name})" for number, name in tensors.items())
    for bundle in program.bundles if tensors else ():
        for instruction in filter(None, bundle.slots):
            number = instruction.operand("tensor")
            if isinstance(number, Immediate) and number.value not in tensors:
                message = f"tensor {number.value} is not declared"
                yield placed(Severity.ERROR, "tensor", message, instruction.span, file, legal=legal, exit_code=1)


def _finding(finding: LintFinding, severity: Severity, file: str) -> Finding:
    return placed(
        severity, finding.rule, finding.message, finding.span, file, exit_code=int(severity is Severity.ERROR)
    )


# Which language a file is in, and who checks that.

_MODELS = "onnx"
LANGUAGES = ("pto", "tpc", "c", "toml", "mlir", _MODELS)
"""Languages of files; their suffixes, and `.s` for assembly."""

_FROM_FILES = ("toml", _MODELS)
"""Languages whose files may need others beside them, tables and constants, so a text alone is not enough."""

_FROM_TEXT = tuple(name for name in LANGUAGES if name not in _FROM_FILES)

_SUFFIXES = {**dict.fromkeys(ASSEMBLY_SUFFIXES, "tpc"), **{f".{name}": name for name in LANGUAGES}}


@arguments_checked
def check(
    path: str | Path,
    *,
    target: str | Path | Target | None = None,
    args: Mapping[str, int | float] | None = None,
    language: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    options: Mapping[str, int | str] | None = None,
    defines: Mapping[str, str] | None = None,
    folders: Sequence[str | Path] = (),
) -> tuple[Finding, ...]:
    """Return all findings in a file, in the order of its text.

    Args:
        path: a `.pto`, `.tpc`, `.s`, `.toml`, `.mlir` or `.onnx` file; `-` reads standard input.
        target: name or path of a target description, or a target; by default the one that the program names.
        args: values of scalar arguments of `.pto` kernels.
        language: one of `LANGUAGES`, for files whose suffix does not show it.
        limits: maximum amount of work in a walk.
        options: target options of programs, such as `toolchain`.
        defines: macros of a kernel in C, texts by name.
        folders: folders of its headers, in addition to its own.

    Returns:
        Findings; an unreadable file is a finding too.

    Raises:
        ReadError: the target or language is unknown, or the file's target lacks an option.
    """
    request = _request(target, args, limits, defines, folders)
    refused: list[ReadError] = []

    def with_chosen(plain: Target) -> Target:
        try:
            return with_options(plain, options or {})
        except ReadError as error:
            refused.append(error)
            raise

    request = replace(request, prepare=with_chosen) if options else request
    file = "<stdin>" if str(path) == STDIN else str(path)
    try:
        spoken = _language(file, language)
        if spoken in _FROM_FILES:
            if file != str(path):
                raise ReadError(f"{spoken} cannot be read from standard input", legal=_FROM_TEXT)
            return in_order(_of_graph(Path(path), None, request) if spoken == _MODELS else _of_target(Path(path)))
        findings = in_order(_findings(file, _text(path, file), spoken, request))
    except CastsimError as error:
        findings = (of_error(error, file),)
    if refused:  # the option is wrong, not the file
        raise refused[0]
    return findings


@arguments_checked
def check_text(
    name: str,
    text: str,
    *,
    target: str | Path | Target | None = None,
    args: Mapping[str, int | float] | None = None,
    language: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    defines: Mapping[str, str] | None = None,
    folders: Sequence[str | Path] = (),
) -> tuple[Finding, ...]:
    """Return all findings in a text; `name` is its name in messages, with a suffix that shows the language.

    Args:
        name: the name or path of a file; it need not exist.
        text: content of the file.
        target: see `check`, as for all following arguments.
        args: values of scalar arguments of `.pto` kernels.
        language: one of `LANGUAGES`, for names whose suffix does not show it.
        limits: maximum amount of work in a walk.
        defines: see `check`.
        folders: folders of headers.

    Returns:
        Findings, as `check` returns them.

    Raises:
        ReadError: the target or language is unknown.
    """
    request = _request(target, args, limits, defines, folders)
    spoken = _language(name, language)
    if spoken in _FROM_FILES:
        raise ReadError(f"{spoken} must be checked as a file, with `check`", legal=_FROM_TEXT)
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return in_order(_findings(name, plain, spoken, request))


def _request(
    target: str | Path | Target | None,
    args: Mapping[str, int | float] | None,
    limits: Limits,
    defines: Mapping[str, str] | None,
    folders: Sequence[str | Path],
) -> LoadRequest:
    request = LoadRequest(None if target is None else load_target(target), args=args or {}, limits=limits)
    if not defines and not folders:
        return request
    from castsim.running.loaded import LaunchRequest  # noqa: PLC0415 - loads the compiler of C

    return replace(request, launch=LaunchRequest(defines=defines or {}, folders=tuple(map(Path, folders))))


def _language(file: str, given: str | None) -> str | None:
    """Return the language of a file; None if the text decides it."""
    if given is not None and given not in LANGUAGES:
        raise ReadError(f"unknown language '{given}'", legal=LANGUAGES)
    suffix = Path(file).suffix.lower()
    language = given or _SUFFIXES.get(suffix)
    if language is None and suffix:
        raise ReadError(f"'{file}' is not in a language that can be checked", legal=[*_SUFFIXES])
    return language


def _text(path: str | Path, file: str) -> str:
    data = read_bytes(path, "file")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ReadError(f"'{file}': byte {error.start} is not UTF-8 text") from None


def _findings(file: str, text: str, language: str | None, request: LoadRequest) -> Iterator[Finding]:
    if language == "mlir":
        yield from _of_graph(Path(file), text, request)
    elif (source := _source(file, text, language, request)).language is Language.TILES:
        yield from tile_findings(source, request)
    elif source.language is Language.KERNEL:
        yield from language_module(C).findings_of(source, request)
    else:
        yield from assembly_findings(source, request)


def _source(file: str, text: str, language: str | None, request: LoadRequest) -> Source:
    if language is None:
        return source_of(text, file, request.prefers_assembly)
    return Source(file, Language(language), text)


def _of_target(path: Path) -> Iterator[Finding]:
    try:
        (load_specification if is_specification(path) else load_target)(path)
    except CastsimError as error:
        yield from of_errors(error, str(path))


def _of_graph(path: Path, text: str | None, request: LoadRequest) -> Iterable[Finding]:
    findings: Iterable[Finding] = language_module(GRAPH).findings_of(path, text, request)
    return findings


# What is wrong with a `.pto` program, of tiles or of vector instructions: syntax, legality, order.
#
# Every function that can be run is walked for its target without values, also what could be read of one with statements
# that cannot be. A statement that is refused is left out, with those that need what it defines, and the walk repeated
# for what comes behind. Scalar arguments without a value are tried with several, and what is refused with all of these
# is told.


def without(function: pto.Function, location: Span) -> pto.Function | None:
    """Return a function without the statement at a position and its users.

    None if there is no such statement, or the function needs it.
    """
    body = function.body or ()
    at = (location.line, location.column)
    before = [node for node in nodes(body) if node.span.file == location.file and _start(node) <= at]
    if not before:
        return None
    removed: set[int] = {id(max(before, key=_start))}
    names: set[str] = set()
    while True:
        users = [node for node in nodes(body) if id(node) in removed or not names.isdisjoint(_names(node))]
        if any(isinstance(node, Return | Yield | Condition) for node in users):
            return None
        defined = {name for node in users for name in _defined(node)}
        if defined <= names and {id(node) for node in users} <= removed:
            return replace(function, body=_kept(body, removed))
        names |= defined
        removed |= {id(node) for node in users}


def _start(node: Operation) -> tuple[int, int]:
    return node.span.line, node.span.column


def _names(node: Operation) -> set[str]:
    """Return every text in a statement outside its regions, including names of values."""
    names: set[str] = set()
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, str):
            names.add(value)
        elif isinstance(value, tuple) and field.name not in REGION_FIELDS:
            names |= {member for member in value if isinstance(member, str)}
    return names


def _defined(node: Operation) -> set[str]:
    """Return the names that a statement defines for later statements."""
    if isinstance(node, pto.Tcvt):
        return {node.dst} if node.defines_dst else set()
    if isinstance(node, pto.ScalarAccess):
        return {node.value} if node.reads else set()
    if isinstance(node, pto.TileOperation):
        return set(node.outputs) if node.mnemonic in ALIASES else set()
    names = set(getattr(node, "results", ()))
    result = getattr(node, "result", None)
    return names | ({result} if isinstance(result, str) else set())


def _kept(body: Sequence[Operation], removed: set[int]) -> tuple[Operation, ...]:
    remaining = []
    for node in body:
        if id(node) in removed:
            continue
        changed = {region: _kept(getattr(node, region), removed) for region in REGION_FIELDS if hasattr(node, region)}
        remaining.append(replace(node, **changed) if changed else node)  # type: ignore[arg-type]  # regions of a node
    return tuple(remaining)


TRIED = (1, 2, 16)
"""Values that are tried for a scalar argument without a value."""

_MOST = 50
"""Maximum number of statements of a function that are removed before its walks end."""

_UNTOLD = (WarningKind.DEFAULT_READ, WarningKind.LEFT_OUT, WarningKind.UNTIMED)
"""Warnings about a run, not about the program."""

_FLOATS = ("f16", "bf16", "f32", "f64")

Error = CastsimError | EngineError


def tile_findings(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield the findings in a program, in no order."""
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
    """Return a program with the readable parts of its refused functions, and the names of incomplete functions.

    A function that calls an incomplete one is incomplete too.
    """
    rests = {refusal.name: refusal.rest for refusal in parsed.refused if refusal.rest is not None}
    functions = sorted(
        (*parsed.functions, *rests.values()), key=lambda function: (function.span.line, function.span.column)
    )
    refused = tuple(refusal for refusal in parsed.refused if refusal.rest is None)
    partial: frozenset[str] = frozenset()
    more = frozenset(rests)
    while more - partial:
        partial |= more
        more = frozenset(
            declaration.name
            for declaration in functions
            if any(call.callee in partial for call in calls(declaration.body or ()))
        )
    return replace(parsed, functions=tuple(functions), refused=refused), partial


@dataclass(frozen=True, slots=True)
class _FunctionWalks:
    """Results of the walks of a function: refusals, and from the last walk, warnings and violations of order."""

    errors: tuple[Error, ...]
    warnings: tuple[WarningText, ...] = ()
    races: tuple[OrderFinding, ...] = ()
    limit: LimitError | None = None
    """Position at which a walk was given up."""


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
        argument.name: argument.type.name
        for argument in function.arguments
        if isinstance(argument.type, pto.ScalarType) and argument.name not in request.args
    }
    missing = [name for name, kind in unknown.items() if kind not in _FLOATS]  # these decide no bounds
    pointers = [
        argument.name
        for argument in function.arguments
        if in_buffer(argument.type) and argument.name not in request.args
    ]
    guesses = [
        dict.fromkeys(pointers, 0) | dict.fromkeys(unknown, value) for value in (TRIED if missing else TRIED[:1])
    ]
    attempts = [
        _walked(
            parsed, flat, source, target, replace(request, args=_given(function, request.args) | guess), whole=whole
        )
        for guess in guesses
    ]
    for refusal in attempts[0].errors:
        if all(_has(attempt.errors, refusal) for attempt in attempts[1:]):
            yield from of_errors(refusal, source.file)
    untold = (*_UNTOLD, WarningKind.UNDEFINED) if missing else _UNTOLD
    yield from of_warnings((warning for warning in attempts[0].warnings if warning.kind not in untold), source.file)
    for race in attempts[0].races if not missing else ():
        yield placed(Severity.ERROR, str(race.kind), race.message, race.spans[-1], source.file, race.missing, (), 1)
    if attempts[0].limit is not None:
        limit = attempts[0].limit
        yield placed(Severity.WARNING, limit.kind, f"not checked further: {limit.message}", limit.span, source.file)
    for name in pointers:
        text = f"@{function.name}: %{name} is taken as the first byte of the buffer"
        yield placed(Severity.NOTE, "not checked", text, function.span, source.file, f"--arg {name}=ADDRESS")
    if missing and whole:
        names = ", ".join(f"%{name}" for name in missing)
        text = f"@{function.name}: order and bounds depend on {names}; no value was given"
        cure = " ".join(f"--arg {name}=VALUE" for name in missing)
        yield placed(Severity.NOTE, "not checked", text, function.span, source.file, cure)


def _given(function: pto.Function, args: Mapping[str, int | float]) -> dict[str, int | float]:
    """Return the given values of a function's arguments."""
    names = {argument.name for argument in function.arguments} | core_numbers(function)
    return {name: value for name, value in args.items() if name.partition("[")[0] in names}


def _has(errors: tuple[Error, ...], wanted: Error) -> bool:
    return any((refusal.message, refusal.span) == (wanted.message, wanted.span) for refusal in errors)


def _walked(
    parsed: pto.Program, function: pto.Function, source: Source, target: Target, request: LoadRequest, *, whole: bool
) -> _FunctionWalks:
    """Walk a function, and again without each refused statement.

    Order is judged only for a `whole` function without refusals.
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
                warnings, races = (
                    tuple(warning for warning in warnings if warning.kind is not WarningKind.UNDEFINED),
                    (),
                )
            return _FunctionWalks(tuple(errors), warnings, races)
    return _FunctionWalks(tuple(errors))

"""What is wrong with TPC assembly: syntax, what the generation lacks, and what the linter finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.exploration.checking.check_finding import Finding, Severity, in_order, of_error, of_errors, placed
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.reading import STDIN, read_bytes
from castsim.isa.sources import ASSEMBLY_SUFFIXES, Language, Source, source_of
from castsim.isa.tpc import parse
from castsim.isa.tpc.program import Immediate, TensorDeclaration, TpcProgram
from castsim.machines.vliw.lint_checking import breaches
from castsim.machines.vliw.lint_flow import Flow, LintFinding, notices
from castsim.machines.vliw.program_sources import chosen_target
from castsim.running.loaded import LoadRequest
from castsim.targets import Target
from castsim.tpc_compiler.scheduling import schedule
from castsim.tpc_compiler.virtual_registers import has_virtual_registers


def assembly_findings(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield what is wrong with a program, in no order; one of virtual registers is scheduled first."""
    text, most = source.text, request.limits.max_statements
    try:
        target = chosen_target(text, source.file, request.target, request.prepare)
        if has_virtual_registers(text):
            schedule(text, source.file, target, most)
            return
        program = parse(text, target.dialect, source.file, most)
        flow = Flow(program, target)
        found, noticed = breaches(flow), notices(flow)
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    yield from _undeclared_tensors(program, source.file)
    for one in found:
        yield _finding(one, Severity.ERROR if one.certain else Severity.WARNING, source.file)
    for one in noticed:
        yield _finding(one, Severity.NOTE, source.file)


def _undeclared_tensors(program: TpcProgram, file: str) -> Iterator[Finding]:
    """Yield tensors that a program uses without declaring them, if it declares any: a run would stop there."""
    known = {each.number: each.name for each in program.declarations if isinstance(each, TensorDeclaration)}
    legal = tuple(f"{number} ({name})" for number, name in known.items())
    for bundle in program.bundles if known else ():
        for each in filter(None, bundle.slots):
            number = each.operand("tensor")
            if isinstance(number, Immediate) and number.value not in known:
                message = f"tensor {number.value} is not declared"
                yield placed(Severity.ERROR, "tensor", message, each.span, file, legal=legal, exit_code=1)


def _finding(found: LintFinding, severity: Severity, file: str) -> Finding:
    return placed(severity, found.rule, found.message, found.span, file, exit_code=int(severity is Severity.ERROR))


# Which language a file is in, and who checks that.

_MODELS = "onnx"
LANGUAGES = ("pto", "tpc", "c", "toml", "mlir", _MODELS)
"""What files may be written in; their suffixes, and `.s` for assembly."""

_FROM_FILES = ("toml", _MODELS)
"""Languages of files that others may lie beside, tables and constants, so that a text alone says too little."""

_FROM_TEXT = tuple(name for name in LANGUAGES if name not in _FROM_FILES)

_SUFFIXES = {**dict.fromkeys(ASSEMBLY_SUFFIXES, "tpc"), **{f".{name}": name for name in LANGUAGES}}


def check(
    path: str | Path,
    *,
    target: str | Path | Target | None = None,
    args: Mapping[str, int | float] | None = None,
    language: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[Finding, ...]:
    """Return all that is wrong with a file, in the order of its text.

    Args:
        path: a `.pto`, `.tpc`, `.s`, `.toml`, `.mlir` or `.onnx` file; `-` reads standard input.
        target: name or path of a target description, or a target; by default the one that the program names.
        args: values of scalar arguments of `.pto` kernels.
        language: one of `LANGUAGES`, for files whose suffix does not tell.
        limits: how much is walked.

    Returns:
        Findings; that a file cannot be read is one as well.

    Raises:
        ReadError: an unknown target or language.
    """
    request = _request(target, args, limits)
    file = "<stdin>" if str(path) == STDIN else str(path)
    try:
        spoken = _language(file, language)
        if spoken in _FROM_FILES:
            if file != str(path):
                raise ReadError(f"{spoken} is not read from standard input", legal=_FROM_TEXT)
            return in_order(_of_graph(Path(path), None, request) if spoken == _MODELS else _of_target(Path(path)))
        text = _text(path, file)
        return in_order(_findings(file, text, spoken, request))
    except CastsimError as error:
        return (of_error(error, file),)


def check_text(
    name: str,
    text: str,
    *,
    target: str | Path | Target | None = None,
    args: Mapping[str, int | float] | None = None,
    language: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[Finding, ...]:
    """Return all that is wrong with a text; `name` is what messages call it, its suffix tells the language.

    Args:
        name: the name or path of a file; it need not exist.
        text: what the file would hold.
        target: as for `check`, like all that follow.
        args: values of scalar arguments of `.pto` kernels.
        language: one of `LANGUAGES`, for names whose suffix does not tell.
        limits: how much is walked.

    Returns:
        Findings, as `check` returns them.

    Raises:
        ReadError: an unknown target or language.
    """
    request = _request(target, args, limits)
    spoken = _language(name, language)
    if spoken in _FROM_FILES:
        raise ReadError(f"{spoken} is checked in its file: `check`", legal=_FROM_TEXT)
    return in_order(_findings(name, text.replace("\r\n", "\n").replace("\r", "\n"), spoken, request))


def _request(target: str | Path | Target | None, args: Mapping[str, int | float] | None, limits: Limits) -> LoadRequest:
    if isinstance(target, str | Path):
        from castsim.targets import load_target  # noqa: PLC0415 - only where one is named

        target = load_target(target)
    return LoadRequest(target, args=args or {}, limits=limits)


def _language(file: str, given: str | None) -> str | None:
    """Return the language of a file; None if its text tells."""
    if given is not None and given not in LANGUAGES:
        raise ReadError(f"unknown language '{given}'", legal=LANGUAGES)
    suffix = Path(file).suffix.lower()
    found = given or _SUFFIXES.get(suffix)
    if found is None and suffix:
        raise ReadError(f"'{file}' is not in a language that can be checked", legal=[*_SUFFIXES])
    return found


def _text(path: str | Path, file: str) -> str:
    data = read_bytes(path, "file")
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ReadError(f"'{file}': byte {error.start} is not UTF-8 text") from None


def _findings(file: str, text: str, language: str | None, request: LoadRequest) -> Iterator[Finding]:
    if language == "mlir":
        yield from _of_graph(Path(file), text, request)
    elif (source := _source(file, text, language, request)).language is Language.TILES:
        from castsim.exploration.checking.tile_checks import tile_findings  # noqa: PLC0415 - only the language in use is loaded

        yield from tile_findings(source, request)
    elif source.language is Language.KERNEL:
        yield from _kernel_findings(source, request)
    else:
        yield from assembly_findings(source, request)


def _kernel_findings(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield what is wrong with a kernel; what cannot run and is C all the same is a warning."""
    from castsim.running.c_kernels import compiled_kernel  # noqa: PLC0415 - only the language in use is loaded
    from castsim.tpc_compiler.tpc_c.launching import LaunchRequest, sequential  # noqa: PLC0415 - as above

    try:
        compiled = compiled_kernel(source, request)
        sequential(compiled, LaunchRequest(), {})
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    for each in compiled.blocked:
        found = of_error(each, source.file)
        yield placed(Severity.WARNING, "not run", found.message, each.span, source.file, legal=found.legal)
    for text, span in compiled.notes.items():
        yield placed(Severity.NOTE, "kernel", text, span, source.file)


def _source(file: str, text: str, language: str | None, request: LoadRequest) -> Source:
    if language is None:
        return source_of(text, file, request.prefers_assembly)
    return Source(file, Language(language), text)


def _of_target(path: Path) -> Iterator[Finding]:
    from castsim.targets import is_specification, load_specification, load_target  # noqa: PLC0415 - as above

    try:
        (load_specification if is_specification(path) else load_target)(path)
    except CastsimError as error:
        yield from of_errors(error, str(path))


def _of_graph(path: Path, text: str | None, request: LoadRequest) -> Iterator[Finding]:
    """Yield what is wrong with a graph, TOSA text or without any an ONNX model, and what the target refuses of it."""
    from castsim.lowering.graphs.graph_execution import read_graph, refusals  # noqa: PLC0415 - as above
    from castsim.lowering.graphs.tosa_reader import read_tosa  # noqa: PLC0415 - as above

    file = str(path)
    try:
        graph = read_graph(path) if text is None else read_tosa(text, path)
        target = request.target
        if target is not None and not isinstance(target, str | Path):  # `_request` has loaded it
            for node, error in refusals(graph, target):
                placed = error if error.span is not None or node.span is None else error.at(node.span)
                found = of_error(placed, file)
                yield (
                    found if found.span is not None else replace(found, message=f"node '{node.name}': {found.message}")
                )
    except CastsimError as error:
        yield from of_errors(error, file)

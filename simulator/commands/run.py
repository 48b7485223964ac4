"""The command `run`: run a program: cycles, the limiting pipe, why pipes wait, outputs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from castsim.commands.command_line import parser_of
from castsim.commands.kernels import KernelOptions, launch_of, refuse_tilelang, run_config_of
from castsim.commands.option_parsers import (
    assignments,
    level_of,
    machine_number,
    options_as,
    output_folder,
    refuse,
    refuse_given,
)
from castsim.commands.outcome import CommandOutcome, error_entry, plain, stacked, tell, write_program
from castsim.commands.run_views import RunOutputs, check_views, timeline_of, timeline_text, write_run_page, write_views
from castsim.engines import ENGINES
from castsim.execution.input_data import BACKEND, TOOLCHAIN, entries
from castsim.execution.run_limits import stale_mode
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, EngineError, IllegalError, ReadError
from castsim.isa.reading import CPP_SUFFIXES, TILE_SUFFIX, Language, Source, read_source
from castsim.reports.progress import run_progress
from castsim.reports.sections import FULL, RUN, further_reports
from castsim.running.languages import CPP, FRAGMENT, FRAGMENT_NAME, GRAPH, Fragment, language_module, language_of
from castsim.running.loaded import LoadedProgram
from castsim.running.program_runs import RunConfig
from castsim.running.synchronisation.race_findings import IGNORE, REPORT, STOP, refusal
from castsim.targets.description import watched
from castsim.targets.loader import Target, load_target

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.machines.vliw.findings import LintFinding
    from castsim.reports.cycle_evidence import Sensitivity
    from castsim.reports.lifted_limits import LiftedLimit
    from castsim.reports.schemas.keys import Entry
    from castsim.reports.views.timeline import Timeline
    from castsim.running.program_runs import Result


# The command line: the program, the run and the outputs that it asks for.


def execute(options: Namespace) -> CommandOutcome:
    """Simulate the program.

    Raises:
        CastsimError, EngineError: see `castsim.run`; also for a wrong option.
    """
    fragment = fragment_of(options)
    program: str = options.program if fragment is None else FRAGMENT_NAME
    if language_of(program) == GRAPH:
        return _run_graph(options)
    words = (program,) if fragment is None else ("-e", options.execute)
    inputs = ("--timing-only",) if options.timing_only else [word for text in options.inputs for word in ("--in", text)]
    kernel = options_as(KernelOptions, options)
    outputs = options_as(RunOutputs, options, command=command_words(options, words), input_words=tuple(inputs))
    config = _config_of(options, program, kernel)
    if fragment is None:
        return run_program(config, kernel, outputs)
    with fragment.placed():
        return run_program(replace(config, source=fragment.source), kernel, outputs)


def fragment_of(options: Namespace) -> Fragment | None:
    """Return the fragment from the command line, None for a file.

    Raises:
        ReadError: neither or both were given, there is no target, or the fragment cannot be read.
    """
    if options.execute is None:
        if options.program is None:
            raise ReadError("nothing to run", legal=("PROGRAM", "-e TEXT"))
        return None
    if options.program is not None:
        raise ReadError(
            f"-e runs a fragment instead of '{options.program}'; give only one of them", legal=("PROGRAM", "-e TEXT")
        )
    if options.target is None:
        raise ReadError("a fragment does not declare a target", legal=("--target T",))
    if options.all_entries or options.entry is not None:
        raise ReadError("--entry and --all-entries apply only to .pto files; a fragment has one entry")
    fragment: Fragment = language_module(FRAGMENT).whole(options.execute, load_target(options.target))
    return fragment


_OF_GRAPHS = frozenset((
    "program", "target", "inputs", "args", "out", "summary", "html", "engine", "options", "json", "quiet", "max_walk",
    "max_statements", "max_elements", "max_file_bytes", "max_memory",
))  # fmt: skip
"""Options of `castsim run` that apply to a graph."""


def _run_graph(options: Namespace) -> CommandOutcome:
    """Run a graph.

    Raises:
        ReadError: an option does not apply to a graph, or no target is named.
    """
    if options.target is None:
        raise ReadError("a graph does not declare a target", legal=("--target T",))
    parser = parser_of("run")
    for name, value in vars(options).items():
        if name not in _OF_GRAPHS and value != parser.get_default(name):
            raise ReadError(
                f"--{name.replace('_', '-')} applies to programs; write those of this graph with "
                "`castsim graph --emit DIR` and run them"
            )
    outcome: CommandOutcome = language_module(GRAPH).execute(options)
    return outcome


def _config_of(options: Namespace, program: str, kernel: KernelOptions) -> RunConfig:
    config = run_config_of(options, program)
    return replace(
        config,
        sync=options.sync,
        races=options.races,
        stale_reads=options.stale_reads,
        skip=not options.no_skip,
        toolchain=options.toolchain,
        backend=options.backend,
        machine=None if options.machine is None else machine_number(options.machine),
        level=level_of(options.level),
        launch=launch_of(kernel, config.inputs, program),
        unsafe_scratch=options.unsafe_scratch,
        parameters=assignments("--tile", options.tile),
    )


_PROGRAM_OPTIONS = {
    "target": "--target", "entry": "--entry", "args": "--arg", "options": "--option",
    "toolchain": f"--{TOOLCHAIN}", "block": "--block", "sub": "--sub", "folders": "--include", "macros": "--define",
    "tensors": "--tensor", "index_space": "--index-space", "accumulators": "--accumulators", "tpcs": "--tpcs",
}  # fmt: skip
"""Options that name the program and its data, which `castsim advise` also takes."""


def command_words(options: Namespace, program: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments that name the program and its target, as typed."""
    words = [*program]
    for name, option in _PROGRAM_OPTIONS.items():
        given = getattr(options, name, None)
        for value in given if isinstance(given, list) else [given]:
            words += [] if value is None else [option, str(value)]
    return tuple(words)


# A run, whatever asked for it.


def run_program(config: RunConfig, kernel: KernelOptions, outputs: RunOutputs) -> CommandOutcome:
    """Run a program in any language but that of graphs, and report the result.

    Raises:
        CastsimError, EngineError: see `castsim.run`; also for a wrong option.
    """
    language = language_of(config.program)
    if language != CPP:
        refuse(kernel.core_choice, config.program, CPP_SUFFIXES)
    if language is not None:
        outcome: CommandOutcome = language_module(language).execute_run(config, kernel, outputs, run_source)
        return outcome
    refuse_tilelang(kernel, config.program)
    if kernel.all_blocks:
        raise ReadError("--all-blocks applies only to C++ kernels")
    return run_source(config, outputs)


def run_source(
    config: RunConfig, outputs: RunOutputs, see: Callable[[Result], Result] = lambda result: result
) -> CommandOutcome:
    """Run a program that castsim reads itself, and report what `see` returns for the result."""
    _check(config, outputs)
    check_views(config.program, outputs)
    if outputs.emit_sync is not None and (outputs.all_entries or config.is_recorded):
        legal = (
            ("--entry F",) if outputs.all_entries else ("castsim record", "castsim run --emit-sync with its .pto file")
        )
        raise ReadError("--emit-sync saves one function of a .pto file", legal=legal)
    if outputs.all_entries:
        return _run_entries(config, outputs)
    read: set[str] = set()
    loaded = config.load(lambda target: watched(target, read))
    further = check_report(outputs.report, loaded.target)
    _check_language(config, outputs, loaded)
    findings = _lint(loaded) if outputs.lint else None
    limits: tuple[str, ...] = ()
    if outputs.what_if is not None:
        from castsim.reports.lifted_limits import limits_asked_for  # noqa: PLC0415 - few runs lift limits

        limits = limits_asked_for(loaded.target, [name.strip() for name in outputs.what_if.split(",")])
    folder = output_folder(outputs.out)
    if config.races is None:
        config = replace(config, races=REPORT if outputs.html is not None or config.is_recorded else STOP)
    result, lifted, timeline, weights = _simulate(config, outputs, loaded, limits)
    result = see(result)
    written = [] if timeline is None else write_views(outputs, result, timeline)
    if outputs.emit_sync is not None:
        from castsim.running.program_edits import with_inserted_flags  # noqa: PLC0415 - few runs save it

        synchronised = with_inserted_flags(result.loaded)
        write_program(Path(outputs.emit_sync), synchronised)
        again = "" if "_flag[" in synchronised else "; it has no flags: run it with --sync program"
        written.append(f"emit-sync: program with flags and barriers written to {outputs.emit_sync}{again}")
    files: Mapping[str, Path] = {}
    if folder is not None:
        from castsim.reports.run_report import write_outputs  # noqa: PLC0415 - only with --out

        files = write_outputs(result, folder, partial=outputs.partial)
    errors = _errors(result, partial=outputs.partial)
    code = int(bool(errors) or any(finding.certain for finding in findings or ()))
    if outputs.quiet and outputs.json is None and outputs.html is None:  # nobody reads the report
        return CommandOutcome({}, lambda _: "", code, delivered=lambda: _tell(errors))
    from castsim.reports.run_findings import run_document, run_text  # noqa: PLC0415 - as said
    from castsim.reports.run_report import RunReport  # noqa: PLC0415 - as said

    rested_on = [f"options.{name}" for name in sorted(read)]
    report = replace(
        RunReport.of(result, files, rested_on, weights),
        findings=findings, show_synchronisation=outputs.show_sync, gains=lifted, further=further,
        list_facts=outputs.facts, command=outputs.command, inputs=outputs.input_words,
        changeable=_is_changeable(config),
    )  # fmt: skip
    document = run_document(report)
    written += write_run_page(config, outputs, report, document)

    def text(width: int) -> RenderableType:
        shown = run_text(report, width, full=outputs.report == FULL)
        return stacked(shown, *timeline_text(outputs, result, timeline, written, width))

    if errors:
        document["errors"] = [error_entry(error) for error in errors]
    return CommandOutcome(document, text, code, delivered=lambda: _tell(errors))


def _check(config: RunConfig, outputs: RunOutputs) -> None:
    """Reject options that contradict each other.

    Raises:
        ReadError: they do.
    """
    if config.engine is not None and config.engine not in ENGINES:
        raise ReadError(f"engine '{config.engine}' is not available", legal=ENGINES)
    if not config.skip and config.engine == "event":
        raise ReadError("--no-skip applies only to engine 'fast'; engine 'event' never skips")
    if config.timing_only and outputs.partial:
        raise ReadError("--timing-only computes no values, so --partial has nothing to write")
    if config.timing_only and outputs.out is not None:
        raise ReadError("--timing-only computes no values, so --out has nothing to write")
    if outputs.what_if is not None and config.is_read_once:
        source_name = "standard input" if config.program == "-" else f"'{config.program}'"
        raise ReadError(
            f"--what-if reads the program several times; {source_name} can be read only once", legal=("FILE",)
        )


def check_report(name: str, target: Target) -> tuple[str, ...]:
    """Return the sections that the requested report adds to those of every run.

    Raises:
        ReadError: the report does not exist, or does not apply to this target.
    """
    if name in (RUN, FULL):
        return ()
    legal = (RUN, FULL, *further_reports())
    if name not in legal:
        raise ReadError(f"unknown report '{name}'", legal=legal)
    from castsim.reports.run_findings import section  # noqa: PLC0415 - the report of a run needs none of the others

    reason = section(name).refusal(target)
    if reason is not None:
        raise ReadError(reason, legal=(RUN,))
    return (name,)


def _is_changeable(config: RunConfig) -> bool:
    """Return whether `castsim advise` accepts the program: a text file, and only options that it has."""
    given = (config.declare, config.machine, config.backend, config.level)
    is_text = config.program.endswith((TILE_SUFFIX, ".tpc", ".c", *CPP_SUFFIXES))
    return is_text and not config.parameters and not config.opaque and given == (None,) * len(given)


def _errors(result: Result, *, partial: bool) -> list[CastsimError | EngineError]:
    """Return the errors of a finished run: races, and outputs that are not computed unless `partial`."""
    errors: list[CastsimError | EngineError] = [refusal(result.races)] if result.races else []
    for name, partial_output in result.partial.items() if not partial else ():
        missing = int(np.count_nonzero(~partial_output.computed))
        message = f"output {name}: {missing} of {partial_output.computed.size} elements depend on opaque operations"
        errors.append(IllegalError(f"{message} and were not computed", legal=("--partial", "--timing-only")))
    return errors


def _tell(errors: Sequence[CastsimError | EngineError]) -> None:
    for error in errors:
        tell(f"error: {error.render()}")


_DRAWN = "random:0"
"""The inputs of a fragment that are not given."""


def _simulate(
    config: RunConfig, outputs: RunOutputs, loaded: LoadedProgram, limits: tuple[str, ...]
) -> tuple[Result, tuple[LiftedLimit, ...], Timeline | None, tuple[Sensitivity, ...] | None]:
    """Run the program, and once more with each limit lifted; also return the data of views and the weights of facts."""
    if config.source is not None and not config.is_recorded and not config.timing_only:
        drawn = {name: _DRAWN for name, use in loaded.arguments.items() if use.needs_input}
        config = replace(config, inputs={**drawn, **config.inputs})
    with run_progress(outputs.quiet, outputs.json, loaded.tree) as progress:
        stage = progress.stage if progress else (lambda _: None)
        result = config.run(loaded, progress, stage)
        stage("views")
        timeline = timeline_of(outputs, result, config.engine, progress)
        weights = None
        if not result.untimed and not config.is_read_once and (outputs.facts or outputs.json or outputs.html):
            from castsim.reports.cycle_evidence import weights_of  # noqa: PLC0415 - few runs are timed again

            weights = weights_of(result, loaded.target, requested=outputs.facts)
        if not limits:
            return result, (), timeline, weights
        from castsim.reports.lifted_limits import gains  # noqa: PLC0415 - few runs lift limits

        again = replace(config, timing_only=True, races=IGNORE)
        lifted = gains(
            loaded.target, limits, result.timing, lambda lift: again.run(config.load(lift), progress, stage).timing,
            result.loaded.latencies(result.timing),
        )  # fmt: skip
    return result, lifted, timeline, weights


def _check_language(config: RunConfig, outputs: RunOutputs, loaded: LoadedProgram) -> None:
    """Reject options that do not apply to the program's language.

    Raises:
        ReadError: such an option was given.
    """
    given = {"sync": config.sync, "show-sync": outputs.show_sync, "emit-sync": outputs.emit_sync}
    if loaded.untimed:
        views = {"timeline": outputs.timeline, "trace": outputs.trace, "what-if": outputs.what_if,
                 "report": outputs.report, "engine": config.engine}  # fmt: skip
        refuse_given({**views, **given}, f"has nothing to show: {loaded.untimed}", usual=(RUN, FULL, "insert"))
    if loaded.language == Language.TILES.value:
        if stale_mode(config.stale_reads) != "report":
            raise ReadError("--stale-reads applies only to assembly; tile programs have no registers")
        return
    given |= {"races": config.races, "unsafe-scratch": config.unsafe_scratch, TOOLCHAIN: config.toolchain,
              BACKEND: config.backend}  # fmt: skip
    why = f"applies only to tile programs; {config.program} is assembly"
    refuse_given(given, why, usual=("insert", STOP, IGNORE))


def _lint(loaded: LoadedProgram) -> tuple[LintFinding, ...]:
    """Check the issue rules of an assembly program.

    Raises:
        ReadError: the program is not assembly.
    """
    findings = loaded.lint()
    if findings is None:
        raise ReadError("--lint applies only to assembly; tile programs have no issue rules")
    return findings


# `--all-entries`: every function of a file by itself, and a table of what came of it.


def _run_entries(config: RunConfig, outputs: RunOutputs) -> CommandOutcome:
    """Run every function of a tile program that no other function calls; the exit code is 1 if any fails.

    Nothing is written to files.

    Raises:
        ReadError: the file is not a tile program or cannot be read, or an option applies to a single function.
    """
    given = {"entry": config.entry, "out": outputs.out, "timeline": outputs.timeline, "trace": outputs.trace,
             "html": outputs.html, "what-if": outputs.what_if, "show-sync": outputs.show_sync}  # fmt: skip
    refuse_given(given, "applies to one function; --all-entries runs several")
    path = config.path
    if path.suffix != TILE_SUFFIX:
        raise ReadError(f"'{path}' is not a tile program", legal=(f"a {TILE_SUFFIX} file",))
    source = read_source(path, lambda: False)
    functions = list(_entries_of(config, source))
    if not functions:
        raise ReadError(f"{path}: no function to run")
    from castsim.reports.schemas.keys import AllEntries  # noqa: PLC0415 - few runs have several entries

    failed = sum(function.error is not None for function in functions)
    document = AllEntries(source.file, functions, failed).as_json()
    return CommandOutcome(document, lambda _: _entries_text(functions, failed), code=1 if failed else 0)


def _entries_of(config: RunConfig, source: Source) -> Iterator[Entry]:
    """Run every function of a tile program that no other function calls; values that a function lacks are ignored."""
    from castsim.isa.pto.pto_parser import parse  # noqa: PLC0415 - assembly needs none
    from castsim.reports.schemas.keys import Entry  # noqa: PLC0415 - few runs have several entries

    program = parse(source.text, source.file, go_past_refused=True)
    refused = {refused_function.name: refused_function.error for refused_function in program.refused}
    functions = {function.name: function for function in entries(program)}
    for name in (*functions, *refused):
        if name in refused:
            yield Entry(name, None, _first_line(refused[name]))
            continue
        arguments = {argument.name for argument in functions[name].arguments}
        args = {argument: value for argument, value in config.args.items() if argument in arguments}
        inputs = {argument: value for argument, value in config.inputs.items() if argument in arguments}
        own = replace(config, entry=name, args=args, inputs=inputs)
        try:
            result = own.run(own.load())
            yield Entry(name, None if result.untimed else result.cycles, None)
        except (CastsimError, EngineError) as error:
            yield Entry(name, None, _first_line(error))


def _first_line(error: Exception) -> str:
    """Return an error without its source lines."""
    return str(error).partition("\n")[0]


def _entries_text(functions: Sequence[Entry], failed: int) -> RenderableType:
    width = max(len(function.entry) for function in functions) + 1
    rows = []
    for function in functions:
        unmodelled = "no cycles: not modelled for vector instructions"
        shown = unmodelled if function.cycles is None else f"{function.cycles} cycles"
        shown = shown if function.error is None else f"failed: {function.error}"
        rows.append(f"@{function.entry}".ljust(width) + f"  {shown}")
    return plain("\n".join([*rows, "", f"{len(functions)} functions, {failed} failed"]), no_wrap=False)

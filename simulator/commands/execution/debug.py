"""The execution of `castsim debug`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from rich.console import Group

from castsim.commands.execution.cpp_kernels import recording_of, refuse_elsewhere, without_arguments
from castsim.commands.execution.debug_console import Console
from castsim.commands.execution.kernel_launch import launch_of as kernel_launch
from castsim.commands.option_parsers import GRAPHS, LAST_PORT, assignments, integer_from, run_limits_of, scalar
from castsim.commands.outcome import Outcome
from castsim.editor.debugging.server import serve, serve_port
from castsim.isa.errors import ReadError
from castsim.isa.sources import CPP_SUFFIXES
from castsim.running.stepping.launch import Launch


def execute(options: Namespace) -> Outcome:
    """Step through the program as commands say, or serve an editor.

    Raises:
        CastsimError, EngineError: as `castsim.running.run`, and for what was typed.
    """
    if options.dap:
        return _serve(options)
    if options.port is not None:
        raise ReadError("--port is for --dap", legal=("--dap --port N",))
    if options.program is None:
        raise ReadError("castsim debug needs a program", legal=("castsim debug PROGRAM", "castsim debug --dap"))
    refuse_elsewhere(options, options.program)
    stepper = launch_of(options).stepper()
    console = Console(stepper, silent=options.quiet or options.json == "-")
    document = console.run()
    return Outcome(document, lambda _: Group(), code=2 if console.failed else 0)


def launch_of(options: Namespace) -> Launch:
    """Return what is to be run.

    Raises:
        ReadError: what was typed.
    """
    program = options.program
    if program == "-":
        raise ReadError("standard input is used for the commands; name a file for the program", legal=("PROGRAM.pto",))
    if program.endswith(GRAPHS):
        raise ReadError(
            f"'{program}' is a graph, which has no operations to step through", legal=("a .pto file", "a .tpc file")
        )
    source = None
    if program.endswith(CPP_SUFFIXES):
        source = recording_of(options).source
        options = without_arguments(options)
    return Launch(
        program,
        options.target,
        options.entry,
        assignments("--in", options.inputs),
        {name: scalar(name, text) for name, text in assignments("--arg", options.args).items()},
        assignments("--option", options.options),
        options.engine,
        run_limits_of(options),
        None if options.declare is None else Path(options.declare),
        source,
        kernel_launch(options),
    )


def _serve(options: Namespace) -> Outcome:
    given = None if options.program is None else launch_of(options)
    if options.port is None:
        serve(given, scalar)
    else:
        port = integer_from("--port", options.port, least=0)
        if port > LAST_PORT:
            raise ReadError(f"--port {port}: no port", legal=(f"0 .. {LAST_PORT}",))
        serve_port(port, given, scalar)
    return Outcome({}, lambda _: Group())

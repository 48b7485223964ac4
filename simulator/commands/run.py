"""An input is FILE.npy, random:SEED or zeros. Without --out nothing is written. The declarations of a binary stand in a
file of their own: --declare FILE, which may be its source, or the .decl file beside it.

examples:
  castsim run kernel.pto --in x=x.npy --out results
  castsim run kernel.pto --in x=random:1 --arg rows=128 --json -
  castsim run kernel.pto --timing-only --option vector_head=always
  castsim run kernel.tpc --in x=random:1 --lint
  castsim run kernel.bin --declare kernel.tpc --in x=random:1
  castsim run kernel.pto --timing-only --timeline --window 100:180
  castsim run kernel.pto --timing-only --report kernel --show-sync
  castsim run kernel.pto --timing-only --trace kernel.json
  castsim run kernel.pto --timing-only --what-if all
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from simulator.commands.run_kernel import check_report, kernel_entry, kernel_sections
from simulator.commands.run_views import (
    check_views,
    declare_views,
    timeline_of,
    timeline_text,
    write_views,
)
from simulator.commands.run_what_if import check_what_if, declare_what_if, lift_limits, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from simulator.commands.outcome import Outcome
    from simulator.running import Loaded, Result
    from simulator.timing import Listener
    from simulator.views.timeline import Timeline
    from simulator.vliw.assembled import Assembled
    from simulator.vliw.lint import Finding
    from simulator.what_if import Gain
    from targets import Target

SUMMARY = "simulate a program: cycles, utilisation, why pipes wait, outputs"

GRAPHS = (".onnx", ".mlir", ".tosa")
"""Suffixes of graphs, which `castsim graph` runs."""

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)", re.ASCII)


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `run`."""
    add = parser.add_argument
    add(
        "program",
        metavar="PROGRAM",
        help="a .pto, .tpc, .onnx or .mlir file, a TPC binary or ELF file; - reads standard input",
    )
    add("--target", metavar="T", help="name or path of a target description; default: the one the program names")
    add("--entry", metavar="F", help="function to run; default: the entry, or the only one")
    add("--in", metavar="NAME=...", dest="inputs", action="append", default=[], help="input of argument NAME")
    add("--arg", metavar="NAME=VALUE", dest="args", action="append", default=[], help="value of a scalar argument")
    add("--out", metavar="DIR", help="write every output to DIR/NAME.npy")
    add("--engine", metavar="E", help="fast (default), or event: the reference, with the same cycles")
    add("--no-skip", action="store_true", help="execute every trip of every loop: fast engine, walk of a .tpc")
    add("--timing-only", action="store_true", help="compute no values; needs no inputs")
    add("--max-cycles", metavar="N", help="give up after N cycles")
    add("--sync", metavar="S", default="insert", help="programs without flags: insert flags (default) or interlock")
    add("--show-sync", action="store_true", help="list the program with the flags and barriers that were inserted")
    add("--races", metavar="R", default="stop", help="stop at races (default), report them and run, or ignore them")
    add("--report", metavar="R", default="run", help="run (default), or kernel: also overlap and buffers over time")
    declare_views(parser)
    declare_what_if(parser)
    add("--unsafe-scratch", action="store_true", help="let a cast write past a tmp tile that is too small")
    add("--lint", action="store_true", help="assembly: also check the issue rules; findings give exit code 1")
    add(
        "--pipeline", metavar="P", default="checked", help="assembly: report stale reads (checked, default) or hardware"
    )
    add(
        "--declare", metavar="FILE", help="binary: file with its // castsim: declarations; default: the .decl beside it"
    )
    add("--machine", metavar="N", help="binary: accept this ELF machine number too")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")


def execute(options: Namespace) -> Outcome:
    """Simulate the program.

    Raises:
        CastsimError, EngineError: as `simulator.running.run`, and for what was typed.
    """
    if options.program.endswith(GRAPHS):
        from simulator.commands.graph import execute_run  # noqa: PLC0415

        return execute_run(options)
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.engines import ENGINES  # noqa: PLC0415
    from simulator.reports.run import RunReport, run_document  # noqa: PLC0415

    _check_options(options, ENGINES)
    check_views(options)
    check_what_if(options)
    loaded, read = _load(options)
    check_report(options, loaded.target)
    _check_language(options, loaded)
    findings = _lint(loaded) if options.lint else None
    limits = names_of(options, loaded.target)
    folder = output_folder(options.out)
    result, gains, timeline = _simulate(options, loaded, limits)
    told = [] if timeline is None else write_views(options, result, timeline)
    files = _write(result, folder)
    rested_on = [f"options.{name}" for name in sorted(read)]
    report = RunReport.of(result, files, rested_on, findings, show_synchronisation=options.show_sync, gains=gains)

    def text(width: int) -> Any:
        from rich.console import Group  # noqa: PLC0415 - rich, only if printed

        from simulator.reports.run_text import run_text  # noqa: PLC0415 - as above

        shown = [run_text(report, width), *kernel_sections(options, result, width)]
        return Group(*shown, *([] if timeline is None else timeline_text(options, timeline, told, width)))

    document = run_document(report) | kernel_entry(options, result)
    return Outcome(document, text, code=1 if findings or result.races else 0)


def _simulate(
    options: Namespace, loaded: Loaded | Assembled, limits: tuple[str, ...]
) -> tuple[Result, tuple[Gain, ...], Timeline | None]:
    """Run the program, and once more with each limit lifted; also return what the views show."""
    from simulator.reports.progress import following  # noqa: PLC0415
    from simulator.running import MAX_CYCLES, Loaded, run_loaded  # noqa: PLC0415

    inputs = assignments("--in", options.inputs)
    limit = MAX_CYCLES if options.max_cycles is None else _positive(options.max_cycles)
    with following(loaded.tree if isinstance(loaded, Loaded) else None) as progress:

        def simulated(program: Loaded | Assembled, observer: Listener | None) -> Result:
            return run_loaded(
                program,
                inputs,
                engine=options.engine,
                timing_only=options.timing_only,
                max_cycles=limit,
                observer=observer,
                stage=progress.stage if progress else lambda _: None,
                pipeline=options.pipeline,
                races=options.races,
                skip=not options.no_skip,
            )

        result = simulated(loaded, progress)
        if progress is not None:
            progress.stage("views")
        timeline = timeline_of(options, result, progress)
        gains = lift_limits(
            limits,
            loaded.target,
            result.cycles,
            lambda lift: _load(options, lift)[0],
            lambda program: simulated(program, progress).cycles,
        )
    return result, gains, timeline


def assignments(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Split `NAME=VALUE` texts given by a repeatable option.

    Raises:
        ReadError: no `=`, an empty name or value, a name given twice.
    """
    from isa.errors import ReadError  # noqa: PLC0415

    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("%")
        if not equals or not name or not value:
            raise ReadError(f"{option} {text}: not of the form NAME=VALUE")
        if name in found:
            raise ReadError(f"{option} {name}=... is given twice")
        found[name] = value
    return found


def scalar(name: str, text: str) -> int | float:
    """Return an integer (decimal or hexadecimal) or a float.

    Raises:
        ReadError: the text is neither.
    """
    from isa.errors import ReadError  # noqa: PLC0415

    if _INTEGER.fullmatch(text):
        return int(text, 16 if "x" in text.lower() else 10)
    try:
        if "_" in text or not text.isascii():  # which Python takes
            raise ValueError
        return float(text)
    except ValueError:
        raise ReadError(f"--arg {name}={text}: not a number", legal=("12", "-3", "0x10", "1.5")) from None


def _check_options(options: Namespace, engines: Sequence[str]) -> None:
    from isa.errors import ReadError  # noqa: PLC0415

    if options.engine is not None and options.engine not in engines:
        raise ReadError(f"engine '{options.engine}' is not available", legal=engines)
    if options.no_skip and options.engine == "event":
        raise ReadError("--no-skip is about the fast engine; engine 'event' skips nothing")
    if options.timing_only and options.out is not None:
        raise ReadError("--timing-only computes no values, so --out would have nothing to write")
    assignments("--in", options.inputs)
    if options.max_cycles is not None:
        _positive(options.max_cycles)


def _check_language(options: Namespace, loaded: Loaded | Assembled) -> None:
    """Refuse options that the language of the program gives no meaning.

    Raises:
        ReadError: one was given.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.running import Loaded  # noqa: PLC0415

    if isinstance(loaded, Loaded):
        if options.pipeline == "hardware":
            raise ReadError("--pipeline is about registers of assembly; tile programs have none")
        return
    given = {
        "--sync": options.sync != "insert",
        "--show-sync": options.show_sync,
        "--races": options.races == "report",
        "--unsafe-scratch": options.unsafe_scratch,
    }
    for option, was_given in given.items():
        if was_given:
            raise ReadError(f"{option} is about tile programs; {options.program} is assembly")


def _lint(loaded: Loaded | Assembled) -> tuple[Finding, ...]:
    """Check the issue rules of an assembly program.

    Raises:
        ReadError: it is none.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.running import Loaded  # noqa: PLC0415
    from simulator.vliw.lint import lint  # noqa: PLC0415

    if isinstance(loaded, Loaded):
        raise ReadError("--lint checks assembly; tile programs have no issue rules")
    return lint(loaded.program, loaded.target)


def _load(
    options: Namespace, lift: Callable[[Target], Target] = lambda target: target
) -> tuple[Loaded | Assembled, set[str]]:
    """Read, walk and lower the program; also return the set in which the target options that it reads gather.

    `lift` changes the target once its options are set.
    """
    from pathlib import Path  # noqa: PLC0415

    from simulator.commands.disasm import machine_number  # noqa: PLC0415
    from simulator.mechanisms import lowerer_of  # noqa: PLC0415
    from simulator.running import load  # noqa: PLC0415
    from targets.options import watched, with_options  # noqa: PLC0415

    path = Path("/dev/stdin" if options.program == "-" else options.program)
    scalars = {name: scalar(name, text) for name, text in assignments("--arg", options.args).items()}
    changes = assignments("--option", options.options)
    read: set[str] = set()
    loaded = load(
        path,
        options.target,
        options.entry,
        scalars,
        prepare=lambda target: watched(lift(with_options(target, changes)), read),
        make_lowerer=lambda target: lowerer_of(target, unsafe_scratch=options.unsafe_scratch),
        sync=options.sync,
        declare=None if options.declare is None else Path(options.declare),
        machine=None if options.machine is None else machine_number(options.machine),
        opaque=options.timing_only,
    )
    return loaded, read


def _positive(text: str) -> int:
    from isa.errors import ReadError  # noqa: PLC0415

    if not (text.isascii() and text.isdecimal()) or int(text) == 0:
        raise ReadError(f"--max-cycles {text.strip()}: not a positive integer")
    return int(text)


def output_folder(name: str | None) -> Path | None:
    """Make the folder for outputs now, so that a long run does not end with nowhere to write."""
    from pathlib import Path  # noqa: PLC0415

    from isa.errors import ReadError  # noqa: PLC0415

    if name is None:
        return None
    if not name:
        raise ReadError("--out names no folder", legal=("--out .", "--out DIR"))
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReadError(f"--out {name}: {error.strerror or error}") from None
    return folder


def _write(result: Result, folder: Path | None) -> Mapping[str, Path]:
    from simulator.inputs import write_array  # noqa: PLC0415

    if folder is None:
        return {}
    files = {name: folder / f"{name}.npy" for name in result.outputs}
    for name, path in files.items():
        write_array(path, result.outputs[name])
    return files

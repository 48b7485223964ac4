"""The command `debug`: step through a program, forwards and backwards."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from castsim.commands.kernels import KernelOptions, launch_of, refuse_elsewhere, run_config_of
from castsim.commands.option_parsers import LAST_PORT, integer_from, options_as, scalar
from castsim.commands.outcome import CommandOutcome, tell
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, EngineError, ReadError, escaped
from castsim.running.languages import CPP, GRAPH, language_module, language_of
from castsim.running.program_runs import RunConfig
from castsim.tools.debugger.debug_adapter import serve, serve_port
from castsim.tools.debugger.stepper import Stepper, stepper_of
from castsim.tools.debugger.stepping import (
    Debug,
    Stop,
    element_lines,
    operation_text,
    pipe_lines,
    source_lines,
    stop_line,
)
from castsim.tools.debugger.stops import Breakpoint, parse_selection

if TYPE_CHECKING:
    from castsim.running.loaded import LaunchRequest


# The commands of `castsim debug`, typed or read from standard input.

PROMPT = "(castsim) "
_LONGEST_NUMBER = 18
"""Maximum number of digits of a line or a cycle."""
_SHORT = {
    "s": "step", "n": "next", "c": "continue", "rs": "reverse-step", "rn": "reverse-next", "rc": "reverse-continue",
    "b": "break", "p": "print", "w": "where", "q": "quit", "h": "help", "d": "delete", "i": "info", "l": "list",
}  # fmt: skip
"""Short forms of commands."""

_HELP = """\
step [N]               execute one operation, or N
next                   execute a line with all its trips; of a loop or section, all of its body
continue               go on to the next breakpoint, or to the end
reverse-step [N], reverse-next, reverse-continue
                       the same backwards
break LINE [if CONDITION], break cycle N, break if CONDITION
                       CONDITION: dst[3,7] is nan, dst[0:4,0] >= 448, pipe V is waiting, cycle > 500
delete N               take a breakpoint away; without N all
info breakpoints|pipes|names
print NAME[0:2,3] [as FORMAT]
where, list, help, quit
the first letters do: s n c rs rn rc b d i p w l h q"""


class Console:
    """Console that reads commands and executes them on a stepper; `silent` prints nothing but errors.

    `failed` counts the commands that failed.
    """

    def __init__(self, stepper: Stepper, *, silent: bool = False) -> None:
        self.stepper = stepper
        self.failed = 0
        self._silent = silent
        self._stops: list[Stop] = []
        self._interactive = sys.stdin is not None and sys.stdin.isatty()
        self._excerpts = self._interactive and sys.stdout.isatty()
        self._source = _text_of(stepper.trace.file) if self._excerpts else ""
        self._commands: dict[str, Callable[[str], bool | None]] = {
            "step": lambda rest: self._repeat(rest, stepper.step),
            "next": lambda rest: self._move(rest, stepper.next),
            "continue": lambda rest: self._run(rest, stepper.run),
            "reverse-step": lambda rest: self._repeat(rest, stepper.reverse_step),
            "reverse-next": lambda rest: self._move(rest, stepper.reverse_next),
            "reverse-continue": lambda rest: self._run(rest, stepper.reverse_run),
            "break": self._break,
            "delete": self._delete,
            "info": self._info,
            "print": self._print,
            "where": self._where,
            "list": self._list,
            "help": self._help,
            "quit": self._quit,
        }

    def run(self) -> Debug:
        """Execute commands until one ends the session or the input ends; return the stops."""
        self._stopped()
        for text in self._lines():
            if self._carry_out(text.strip()):
                break
        loaded = self.stepper.trace.result.loaded
        steps = len(self.stepper.lines)
        return Debug(loaded.file, loaded.entry, loaded.target.name, steps, self._stops, self.failed)

    def _lines(self) -> Iterator[str]:
        if not self._interactive:
            try:
                yield from sys.stdin or ()
            except (OSError, UnicodeDecodeError) as error:
                raise ReadError(f"standard input cannot be read: {error}", legal=("commands, one per line",)) from None
            return
        import readline  # noqa: F401, PLC0415 - history and editing of lines, only where somebody types

        last = ""
        while True:
            try:
                text = input(PROMPT)
            except EOFError:
                print()
                return
            last = text if text.strip() else last
            yield last

    def _carry_out(self, text: str) -> bool:
        """Execute one command; return whether it ends the session."""
        if not text or text.startswith("#"):
            return False
        word, _, rest = text.partition(" ")
        name = _SHORT.get(word, word)
        try:
            if name not in self._commands:
                raise ReadError(f"unknown command '{word[:40]}'", legal=self._commands)
            return bool(self._commands[name](rest.strip()))
        except (CastsimError, EngineError) as error:
            self.failed += 1
            sys.stdout.flush()
            tell(f"error: {error.render()}")
        return False

    # ---------------------------------------------------------------------------------------------------------- moves

    def _repeat(self, rest: str, move: Callable[[], None]) -> None:
        count = _number(rest, "a number of operations") if rest else 1
        for _ in range(min(count, len(self.stepper.lines))):
            move()
        self._stopped()

    def _move(self, rest: str, move: Callable[[], None]) -> None:
        _nothing(rest)
        move()
        self._stopped()

    def _run(self, rest: str, run: Callable[[], Breakpoint | None]) -> None:
        _nothing(rest)
        hit = run()
        if hit is not None:
            self._say(f"breakpoint {hit.number}: {hit.text}")
        self._stopped()

    def _stopped(self) -> None:
        cycle = self.stepper.cycle if self.stepper.trace.timed else None
        self._stops.append(Stop(self.stepper.line, cycle, self.stepper.ended))
        self._say(stop_line(self.stepper))
        if self.stepper.ended:
            self._say("the program has ended")
        elif self._excerpts:
            self._list("")

    # ---------------------------------------------------------------------------------------------------- breakpoints

    def _break(self, rest: str) -> None:
        """Set a breakpoint; stops name its number, and `info breakpoints` lists it."""
        stepper = self.stepper
        word, _, more = rest.partition(" ")
        if word == "cycle":
            stepper.break_at_cycle(_number(more.strip(), "a cycle"))
        elif word == "if":
            stepper.break_if(more.strip())
        else:
            line, _, condition = rest.partition(" if ")
            location = line.strip().removeprefix(f"{stepper.trace.file}:")
            stepper.break_at_line(_number(location, "a line"), condition.strip() or None)

    def _delete(self, rest: str) -> None:
        breakpoints = self.stepper.breakpoints.held
        if not rest:
            breakpoints.clear()
            return
        number = _number(rest, "the number of a breakpoint")
        if breakpoints.pop(number, None) is None:
            raise ReadError(f"unknown breakpoint {number}", legal=map(str, breakpoints))

    # ----------------------------------------------------------------------------------------------------------- looks

    def _info(self, rest: str) -> None:
        topics: dict[str, Callable[[], Iterable[str]]] = {
            "breakpoints": lambda: (
                f"breakpoint {e.number}: {e.text}, {e.hits} stops" for e in self.stepper.breakpoints
            ),
            "pipes": lambda: pipe_lines(self.stepper),
            "names": self._names,
        }
        topic = next((topic_name for topic_name in topics if rest and topic_name.startswith(rest)), None)
        if topic is None:
            raise ReadError(f"info '{rest}': unknown topic", legal=topics)
        for line in topics[topic]():
            self._say(line)

    def _names(self) -> Iterator[str]:
        trace = self.stepper.trace
        for symbol in trace.symbols.all(self.stepper.position, trace.registers):
            yield f"{symbol.name}: {symbol.kind} {symbol.format} [{', '.join(map(str, symbol.shape))}]"

    def _print(self, rest: str) -> None:
        for line in element_lines(self.stepper, parse_selection(rest)):
            self._say(line)

    def _where(self, rest: str) -> None:
        _nothing(rest)
        self._say(stop_line(self.stepper))
        self._say(operation_text(self.stepper))

    def _list(self, rest: str) -> None:
        _nothing(rest)
        text = self._source or _text_of(self.stepper.trace.file)
        marks = frozenset(stop.line for stop in self.stepper.breakpoints if stop.line is not None)
        for line in source_lines(text, self.stepper.line, marks):
            self._say(line)

    def _help(self, rest: str) -> None:
        del rest
        self._say(_HELP)

    def _quit(self, rest: str) -> bool:
        _nothing(rest)
        return True

    def _say(self, text: str) -> None:
        if self._silent or sys.stdout is None:
            return
        encoding = sys.stdout.encoding or "utf-8"
        print(escaped(text).encode(encoding, "backslashreplace").decode(encoding), flush=True)


def _text_of(file: str) -> str:
    """Return the text of a program; empty if the file is gone or is not text."""
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return ""


def _nothing(rest: str) -> None:
    if rest:
        raise ReadError(f"unexpected word '{rest[:40]}'")


def _number(text: str, what: str) -> int:
    if not re.fullmatch(rf"\d{{1,{_LONGEST_NUMBER}}}", text, re.ASCII):
        raise ReadError(f"'{text[:40]}' is not {what}", legal=("1", "20"))
    return int(text)


def execute(options: Namespace) -> CommandOutcome:
    """Step through the program by commands, or serve an editor.

    Raises:
        CastsimError, EngineError: see `castsim.run`; also for a wrong option.
    """
    if options.dap:
        config = None
        if options.program is not None:
            config = launched(run_config_of(options, options.program), options_as(KernelOptions, options))
        return _serve(config, options.port)
    if options.port is not None:
        raise ReadError("--port requires --dap", legal=("--dap --port N",))
    if options.program is None:
        raise ReadError("castsim debug needs a program", legal=("castsim debug PROGRAM", "castsim debug --dap"))
    config, kernel = run_config_of(options, options.program), options_as(KernelOptions, options)
    refuse_elsewhere(kernel, config.program)
    console = Console(stepper_of(launched(config, kernel)), silent=options.quiet or options.json == "-")
    document = console.run().as_json()
    return CommandOutcome(document, lambda _: Group(), code=2 if console.failed else 0)


def launched(config: RunConfig, kernel: KernelOptions) -> RunConfig:
    """Return the run to step through: of a kernel in C++, its recording.

    Raises:
        ReadError: an option is wrong, or the program cannot be stepped through.
    """
    program = config.program
    if program == "-":
        raise ReadError("standard input carries the commands; give the program as a file", legal=("PROGRAM.pto",))
    if language_of(program) == GRAPH:
        raise ReadError(f"'{program}' is a graph; debug steps through programs", legal=("a .pto file", "a .tpc file"))
    if language_of(program) == CPP:
        kernels = language_module(CPP)
        recording = kernels.recording_of(config, kernel)
        config = kernels.settled(config, recording, recording.inputs)
    return replace(config, launch=launch_of(kernel, config.inputs, program))


def kernel_of(program: str, inputs: Mapping[str, object], given: Mapping[str, Sequence[str]]) -> LaunchRequest | None:
    """Return the launch of a kernel in C from an editor's launch request, by name; None for other programs.

    Raises:
        ReadError: an attribute cannot be read, or does not apply to this program.
    """
    last = {key: ",".join(given[key]) or None for key in ("index-space", "tpcs", "accumulators")}
    kernel = KernelOptions(
        tuple(given["tensor"]), last["index-space"], last["tpcs"], last["accumulators"], tuple(given["define"]),
        tuple(given["include"]),
    )  # fmt: skip
    return launch_of(kernel, inputs, program)


def _serve(config: RunConfig | None, port: str | None) -> CommandOutcome:
    if port is None:
        serve(config, scalar, kernel_of)
    else:
        number = integer_from("--port", port, least=0)
        if number > LAST_PORT:
            raise ReadError(f"--port {number}: not a port number", legal=(f"0 .. {LAST_PORT}",))
        serve_port(number, config, scalar, kernel_of)
    return CommandOutcome({}, lambda _: Group())

"""The Debug Adapter Protocol for one editor, over standard input and output or over a local port."""

from __future__ import annotations

import json
import os
import socket
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError, ReadError, escaped
from castsim.reports.documents import Document, Json
from castsim.running.program_runs import RunConfig
from castsim.tools.debugger.stepper import Stepper, stepper_of
from castsim.tools.debugger.stepping import element_value, line_text, operation_text, stop_line
from castsim.tools.debugger.stops import Breakpoint, ProgramName, Selection, parse_selection

# Messages of the Debug Adapter Protocol: JSON with a header that says how long it is.
#
# Source: Debug Adapter Protocol, "Base Protocol".

_LONGEST_MESSAGE = 16 << 20
"""Maximum number of bytes of a message."""
_LONGEST_HEADER = 4096
_LENGTH = "content-length"


@dataclass(slots=True)
class Channel:
    """Messages from and to a client, numbered in the order in which they are sent."""

    source: BinaryIO
    sink: BinaryIO
    _sent: int = field(default=0)

    def receive(self) -> Mapping[str, Json] | None:
        """Return the next message, None at the end of the stream.

        Raises:
            ReadError: the input is not a message.
        """
        size = self._header()
        if size is None:
            return None
        data = self.source.read(size)
        if len(data) < size:
            return None
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            raise ReadError("the client sent a message that is not JSON") from None
        if not isinstance(message, dict):
            raise ReadError("the client sent a message that is not a JSON object")
        return message

    def send(self, kind: str, **content: Json) -> None:
        """Send a message of a type, with its other keys."""
        self._sent += 1
        data = json.dumps({"seq": self._sent, "type": kind, **content}, allow_nan=False).encode()
        self.sink.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.sink.flush()

    def _header(self) -> int | None:
        size: int | None = None
        while True:
            line = self.source.readline(_LONGEST_HEADER)
            if not line:
                return None
            if line in (b"\r\n", b"\n"):
                if size is not None:
                    return size
                continue
            name, colon, value = line.decode("ascii", "replace").partition(":")
            if not colon:
                raise ReadError("the client sent a message without a header", legal=("Content-Length: N",))
            if name.strip().lower() == _LENGTH:
                digits = value.strip()
                if not digits.isascii() or not digits.isdecimal() or len(digits) > 9 or int(digits) > _LONGEST_MESSAGE:
                    raise ReadError(
                        f"the client announced a message of '{digits[:20]}' bytes", legal=(f"up to {_LONGEST_MESSAGE}",)
                    )
                size = int(digits)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a request, with checks of their types."""

    given: Mapping[str, Json]

    def text(self, key: str) -> str | None:
        """Return a text, None if it is missing or empty. Raises ReadError for anything else."""
        value = self.given.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise ReadError(f"'{key}' must be a string")
        return value

    def number(self, key: str, default: int = 0) -> int:
        """Return an integer from 0 on. Raises ReadError for anything else."""
        value = self.given.get(key, default)
        if not isinstance(value, int) or value < 0:
            raise ReadError(f"'{key}' must be 0 or a positive integer")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a truth value. Raises ReadError for anything else."""
        value = self.given.get(key, default)
        if not isinstance(value, bool):
            raise ReadError(f"'{key}' must be true or false")
        return value

    def table(self, key: str) -> Arguments:
        """Return an object, an empty one if it is missing. Raises ReadError for anything else."""
        value = self.given.get(key) or {}
        if not isinstance(value, dict):
            raise ReadError(f"'{key}' must be an object")
        return Arguments(value)

    def pairs(self, key: str) -> dict[str, str]:
        """Return texts by name: an object, or `NAME=VALUE` as on the command line, alone or in a list.

        Raises:
            ReadError: the argument is anything else.
        """
        value = self.given.get(key) or {}
        if isinstance(value, dict) and all(isinstance(item, str | int | float) for item in value.values()):
            return {name: str(item) for name, item in value.items()}
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(pair, str) and "=" in pair for pair in texts):
            raise ReadError(f"'{key}' must be an object of strings", legal=('{"NAME": "VALUE"}', '["NAME=VALUE"]'))
        return {name.strip(): text for name, _, text in (str(pair).partition("=") for pair in texts)}

    def tables(self, key: str) -> list[Arguments]:
        """Return a list of objects, an empty one if it is missing. Raises ReadError for anything else."""
        value = self.given.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ReadError(f"'{key}' must be a list of objects")
        return [Arguments(item) for item in value]


if TYPE_CHECKING:
    from castsim.running.loaded import LaunchRequest

# What an editor shows of a stopped program: scopes, and below them names, rows and elements, page by page.

_SCOPES = {"Tiles": ("tile",), "Tensors": ("tensor",), "Registers": ("register",), "Memory": ("pointer", "memory")}
_PIPES, _LOCALS = "Pipes", "Locals"
_MOST_BYTES = 1 << 20
"""Maximum number of bytes of memory in one answer."""
MOST_SHOWN = 1000
"""Maximum number of variables in one answer unless the request names a number."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The elements of a name below some first indices; `shape` is the remaining shape."""

    name: str
    before: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(slots=True)
class Variables:
    """References to values that an editor can expand; they are valid until the program moves."""

    stepper: Stepper
    _held: list[str | _Rows] = field(default_factory=list)

    def forget(self) -> None:
        """Forget all references, because the program has moved."""
        self._held = []

    def scopes(self) -> list[Document]:
        """Return the scopes of the only frame."""
        kinds = {variable.kind for variable in self._names()}
        shown = [_LOCALS] if self.stepper.scalars() else []
        shown += [name for name, own in _SCOPES.items() if kinds.intersection(own)]
        if self.stepper.trace.timed:
            shown.append(_PIPES)
        return [{"name": name, "variablesReference": self._refer(name), "expensive": name == _PIPES} for name in shown]

    def below(self, reference: int, start: int, count: int) -> list[Document]:
        """Return the variables of a reference: `count` of them from `start`; 0 means a page.

        Raises:
            ReadError: the reference does not exist, or no longer.
        """
        if not 1 <= reference <= len(self._held):
            raise ReadError(f"unknown reference {reference}: the program may have moved on")
        variable = self._held[reference - 1]
        end = start + (count or MOST_SHOWN)
        if isinstance(variable, _Rows):
            return self._elements(variable, start, min(end, variable.shape[0]))
        return list(islice(self._scope(variable), start, end))

    def result(self, selection: Selection) -> Document:
        """Return the answer to an expression: an element, or something to expand. Raises the stepper's errors."""
        name = next((variable for variable in self._names() if variable.name == selection.name), None)
        if name is not None and not selection.index and selection.format is None and name.shape:
            return {"result": _summary(name), "variablesReference": self._refer(_Rows(name.name, (), name.shape)),
                    "indexedVariables": name.shape[0]}  # fmt: skip
        lines = [
            f"{list(element.place)} {element_value(element)}" for element in self.stepper.elements(selection).shown()
        ]
        text = "\n".join(lines) if len(lines) != 1 else lines[0].partition("] ")[2]
        return {"result": text, "variablesReference": 0}

    def _names(self) -> Iterator[ProgramName]:
        trace = self.stepper.trace
        return trace.symbols.all(self.stepper.position, trace.registers)

    def _scope(self, scope: str) -> Iterator[Document]:
        if scope == _PIPES:
            for pipe, cause in self.stepper.pipes.all(self.stepper.cycle).items():
                yield {"name": pipe, "value": cause.value, "variablesReference": 0}
            return
        if scope == _LOCALS:
            for name, value in self.stepper.scalars().items():
                yield {"name": f"%{escaped(name)}", "value": str(value), "variablesReference": 0,
                       "evaluateName": f"%{name}"}  # fmt: skip
            return
        for variable in self._names():
            if variable.kind not in _SCOPES[scope]:
                continue
            own: Document = {"name": escaped(variable.name), "type": variable.format, "evaluateName": variable.name}
            if variable.kind != "register":
                own["memoryReference"] = variable.name
            if variable.shape:
                reference = self._refer(_Rows(variable.name, (), variable.shape))
                yield {**own, "value": _summary(variable), "variablesReference": reference,
                       "indexedVariables": variable.shape[0]}  # fmt: skip
            else:
                yield {**own, "value": self._value(Selection(variable.name)), "variablesReference": 0}

    def _elements(self, rows: _Rows, start: int, end: int) -> list[Document]:
        if start >= end:
            return []
        if len(rows.shape) > 1:
            return [self._row(rows, number) for number in range(start, end)]
        selection = Selection(rows.name, (*rows.before, slice(start, end)))
        return [
            {"name": f"[{element.place[-1]}]", "value": element_value(element), "variablesReference": 0,
             "evaluateName": _expression(rows.name, element.place)}
            for element in self.stepper.elements(selection).shown()
        ]  # fmt: skip

    def _row(self, rows: _Rows, number: int) -> Document:
        below = _Rows(rows.name, (*rows.before, number), rows.shape[1:])
        return {
            "name": f"[{number}]", "value": f"[{', '.join(map(str, below.shape))}]",
            "variablesReference": self._refer(below), "indexedVariables": below.shape[0],
            "evaluateName": _expression(rows.name, below.before),
        }  # fmt: skip

    def _value(self, selection: Selection) -> str:
        try:
            return ", ".join(map(element_value, self.stepper.elements(selection).shown()))
        except CastsimError as error:
            return error.message

    def _refer(self, what: str | _Rows) -> int:
        self._held.append(what)
        return len(self._held)


def _summary(name: ProgramName) -> str:
    return f"{name.format} [{', '.join(map(str, name.shape))}]"


def _expression(name: str, index: tuple[int, ...]) -> str:
    return f"{name}[{','.join(map(str, index))}]"


Move = Callable[[], object]
Kernel = Callable[[str, Mapping[str, object], Mapping[str, Sequence[str]]], "LaunchRequest | None"]
KERNEL_KEYS = ("tensor", "define")
"""Attributes of a launch that map names to texts; `include`, `index-space`, `tpcs` and `accumulators` are texts."""


# One session of an editor with a program: its requests and the events that follow them.
#
# Source: Debug Adapter Protocol, "Specification". Everything runs in one thread: a move ends before the next request is
# read.

THREAD = 1
"""The only thread that there is."""
_FRAME = 1
_CAPABILITIES = (
    "supportsConfigurationDoneRequest", "supportsStepBack", "supportsConditionalBreakpoints",
    "supportsFunctionBreakpoints", "supportsEvaluateForHovers", "supportsTerminateRequest", "supportTerminateDebuggee",
    "supportsReadMemoryRequest",
)  # fmt: skip


@dataclass(slots=True)
class _Asked:
    """Breakpoints of a file that an editor set before the program was loaded."""

    file: str
    wanted: list[Arguments]
    answered: list[int]


@dataclass(slots=True)
class Session:
    """A session that answers requests one by one.

    `number` reads the value of a scalar argument, given its name and text; `launch` supplies what a launch request
    omits.
    """

    channel: Channel
    number: Callable[[str, str], int | float]
    launch: RunConfig | None = None
    kernel: Kernel | None = None
    """Function that reads a launch's attributes for a kernel in C, by name."""
    stepper: Stepper | None = None
    variables: Variables | None = None
    _first: int = 1
    """The number of the first line, as the editor counts."""
    _configured: bool = False
    _begun: bool = False
    _stop_on_entry: bool | None = None
    _stop_at_end: bool = False
    _asked: dict[str, _Asked] = field(default_factory=dict)
    _functions: list[int] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)
    """The editor's numbers of breakpoints, by the stepper's numbers."""
    _next_number: int = 1
    _after: list[Callable[[], None]] = field(default_factory=list)
    """Action to run once a request has its answer."""
    _over: bool = False

    def run(self) -> None:
        """Answer until the editor ends the session.

        Raises:
            ReadError: the client sends something that is not a message.
        """
        while not self._over:
            message = self.channel.receive()
            if message is None:
                return
            if message.get("type") == "request":
                self._answer(message)

    def _answer(self, message: Mapping[str, Json]) -> None:
        command = message.get("command")
        reply: dict[str, Json] = {"request_seq": message.get("seq", 0), "command": command}
        given = message.get("arguments")
        self._after = []
        try:
            handle = self._handlers().get(command if isinstance(command, str) else "")
            if handle is None:
                raise ReadError(f"the request '{escaped(str(command))[:40]}' is not supported")
            response = handle(Arguments(given if isinstance(given, dict) else {}))
        except (CastsimError, EngineError) as error:
            shown = error.render().replace("{", "(").replace("}", ")")
            body: Document = {"error": {"id": 1, "format": shown, "showUser": True}}
            self.channel.send("response", success=False, message=error.message, body=body, **reply)
            if command == "launch":
                self._event("terminated")
            return
        self.channel.send("response", success=True, body=response, **reply)
        for action in self._after:
            action()

    def _handlers(self) -> Mapping[str, Callable[[Arguments], Document]]:
        return {
            "initialize": self._initialize,
            "launch": self._launch,
            "attach": self._launch,
            "setBreakpoints": self._set_breakpoints,
            "setFunctionBreakpoints": self._set_function_breakpoints,
            "setExceptionBreakpoints": lambda _: {"breakpoints": []},
            "configurationDone": self._configuration_done,
            "threads": lambda _: {"threads": [{"id": THREAD, "name": self._name()}]},
            "stackTrace": self._stack_trace,
            "scopes": lambda _: {"scopes": [*self._shown().scopes()]},
            "variables": self._variables,
            "evaluate": self._evaluate,
            "readMemory": self._read_memory,
            **dict.fromkeys(("setVariable", "setExpression", "writeMemory"), _change_nothing),
            "next": lambda _: self._move(self._program().step_over),
            "stepIn": lambda _: self._move(self._program().step),
            "stepOut": lambda _: self._run(self._program().step_out, "step"),
            "stepBack": lambda _: self._move(self._program().reverse_step),
            "continue": lambda _: self._run(self._program().run),
            "reverseContinue": lambda _: self._run(self._program().reverse_run),
            "pause": self._pause,
            "disconnect": self._end,
            "terminate": self._terminate,
        }

    # ---------------------------------------------------------------------------------------------------------- begin

    def _initialize(self, given: Arguments) -> Document:
        self._first = 1 if given.flag("linesStartAt1", default=True) else 0
        self._after.append(lambda: self._event("initialized"))
        return dict.fromkeys(_CAPABILITIES, True)

    def _launch(self, given: Arguments) -> Document:
        launch = self.launch or RunConfig("")
        program = given.text("program")
        launch = replace(
            launch,
            program=program or launch.program,
            target=given.text("target") or launch.target,
            entry=given.text("entry") or launch.entry,
            engine=given.text("engine") or launch.engine,
            inputs={**launch.inputs, **given.pairs("in")},
            args={**launch.args, **{name: self.number(name, text) for name, text in given.pairs("arg").items()}},
            options={**launch.options, **given.pairs("option")},
        )
        if self.kernel is not None and launch.program:
            texts = {key: _words(given, key) for key in ("include", "index-space", "tpcs", "accumulators")}
            named = {key: [f"{name}={text}" for name, text in given.pairs(key).items()] for key in KERNEL_KEYS}
            asked = self.kernel(launch.program, launch.inputs, {**texts, **named})
            launch = replace(launch, launch=asked or launch.launch)
        if not launch.program:
            raise ReadError("a launch needs a 'program'", legal=("the path of a .pto or .tpc file",))
        if "stopOnEntry" in given.given:
            self._stop_on_entry = given.flag("stopOnEntry")
        self._stop_at_end = given.flag("stopAtEnd")
        self.stepper = stepper_of(launch)
        self.variables = Variables(self.stepper)
        self._after += [self._place_asked, self._begin]
        return {}

    def _configuration_done(self, _: Arguments) -> Document:
        self._configured = True
        self._after.append(self._begin)
        return {}

    def _begin(self) -> None:
        """Start once the program is loaded and the editor has sent its configuration."""
        if self._begun or not self._configured or self.stepper is None:
            return
        self._begun = True
        breakpoints = self.stepper.breakpoints
        entry = not breakpoints.held if self._stop_on_entry is None else self._stop_on_entry
        if entry:
            self._stopped("entry", None)
        elif hit := self._at_start():
            self._stopped("breakpoint", hit)
        else:
            self._stopped("breakpoint", self.stepper.run())

    def _at_start(self) -> Breakpoint | None:
        """Return the breakpoint at the first operation."""
        assert self.stepper is not None
        for stop in self.stepper.breakpoints:
            here = stop.step == 0 or (stop.line is not None and stop.line == self.stepper.line)
            alone = stop.line is None and stop.step is None
            if (here or alone) and (stop.condition is None or stop.condition.holds(self.stepper)):
                return stop
        return None

    def _end(self, _: Arguments) -> Document:
        self._over = True
        return {}

    def _terminate(self, _: Arguments) -> Document:
        self._after.append(lambda: self._event("terminated"))
        return {}

    # ---------------------------------------------------------------------------------------------------- breakpoints

    def _set_breakpoints(self, given: Arguments) -> Document:
        source = given.table("source")
        file = source.text("path") or source.text("name") or ""
        wanted = given.tables("breakpoints")
        if not wanted:
            wanted = [Arguments({"line": line}) for line in _lines(given)]
        old = self._asked.pop(file, None)
        if old is not None:
            self._take_away(old.answered)
        asked = self._asked[file] = _Asked(file, wanted, [])
        return {"breakpoints": [self._place(asked, wanted_stop) for wanted_stop in wanted]}

    def _place(self, asked: _Asked, wanted: Arguments, number: int | None = None) -> Document:
        """Return a breakpoint of the editor, set if the program is loaded."""
        if number is None:
            number, self._next_number = self._next_number, self._next_number + 1
            asked.answered.append(number)
        line = wanted.number("line") + 1 - self._first
        answer: Document = {"id": number, "verified": False, "line": line - 1 + self._first}
        if self.stepper is None:
            return {**answer, "message": "not placed before the program is loaded"}
        if not _same_file(asked.file, self.stepper.trace.file):
            return {**answer, "message": "not the program that is run"}
        try:
            breakpoint_set = self.stepper.break_at_line(line, wanted.text("condition"))
        except CastsimError as error:
            return {**answer, "message": error.message}
        self._numbers[breakpoint_set.number] = number
        return {**answer, "verified": True, "line": (breakpoint_set.line or 1) - 1 + self._first}

    def _place_asked(self) -> None:
        """Set the breakpoints requested before the program was loaded, and notify the editor."""
        for asked in self._asked.values():
            for wanted, number in zip(asked.wanted, asked.answered, strict=True):
                self._event("breakpoint", reason="changed", breakpoint=self._place(asked, wanted, number))

    def _set_function_breakpoints(self, given: Arguments) -> Document:
        """Read `cycle N` and `if CONDITION` in place of function names."""
        self._take_away(self._functions)
        self._functions = []
        answers: list[Json] = []
        for wanted in given.tables("breakpoints"):
            number, self._next_number = self._next_number, self._next_number + 1
            name = wanted.text("name") or ""
            try:
                added = self._place_function(name)
            except CastsimError as error:
                answers.append({"id": number, "verified": False, "message": error.message})
                continue
            self._functions.append(number)
            self._numbers[added.number] = number
            answers.append({"id": number, "verified": True})
        return {"breakpoints": answers}

    def _place_function(self, name: str) -> Breakpoint:
        word, _, rest = name.partition(" ")
        if word == "cycle" and rest.strip().isdecimal() and rest.isascii():
            return self._program().break_at_cycle(int(rest.strip()[:18]))
        return self._program().break_if(rest if word == "if" else name)

    def _take_away(self, numbers: list[int]) -> None:
        if self.stepper is None:
            return
        for own in [own for own, number in self._numbers.items() if number in numbers]:
            self.stepper.breakpoints.held.pop(own, None)
            del self._numbers[own]

    # ---------------------------------------------------------------------------------------------------------- moves

    def _move(self, move: Callable[[], None]) -> Document:
        move()
        self._after.append(lambda: self._stopped("step", None))
        return {}

    def _run(self, run: Callable[[], Breakpoint | None], without: str = "breakpoint") -> Document:
        """Run, and report why the program stopped; `without` is the reason if no breakpoint was hit."""
        hit = run()
        self._after.append(lambda: self._stopped("breakpoint" if hit else without, hit))
        return {"allThreadsContinued": True}

    def _pause(self, _: Arguments) -> Document:
        self._program()
        self._after.append(lambda: self._stopped("pause", None))
        return {}

    def _stopped(self, reason: str, hit: Breakpoint | None) -> None:
        """Report that the program has stopped, or has ended."""
        stepper = self._program()
        self._shown().forget()
        if stepper.ended and not self._stop_at_end:
            self._event("output", category="console", output=f"{escaped(stop_line(stepper))}\n")
            self._event("exited", exitCode=0)
            self._event("terminated")
            return
        if reason == "breakpoint" and hit is None:
            reason = "entry" if not stepper.position else "pause"
        numbers = [] if hit is None else [self._numbers.get(hit.number, 0)]
        self._event(
            "stopped", reason=reason, threadId=THREAD, allThreadsStopped=True, hitBreakpointIds=numbers,
            description=f"line {stepper.line}, {operation_text(stepper)}",
        )  # fmt: skip

    # ----------------------------------------------------------------------------------------------------------- looks

    def _stack_trace(self, _: Arguments) -> Document:
        stepper = self._program()
        file = stepper.trace.file
        path = str(Path(file).resolve())
        frame: Document = {
            "id": _FRAME, "name": escaped(line_text(stepper)), "line": stepper.line - 1 + self._first,
            "column": self._first, "source": {"name": escaped(Path(file).name), "path": path},
        }  # fmt: skip
        return {"stackFrames": [frame], "totalFrames": 1}

    def _variables(self, given: Arguments) -> Document:
        variables = self._shown().below(
            given.number("variablesReference"), given.number("start"), given.number("count")
        )
        return {"variables": [*variables]}

    def _evaluate(self, given: Arguments) -> Document:
        """Return elements, or whether a condition holds."""
        text = (given.text("expression") or "").strip().removeprefix("print ")
        scalars = self._program().scalars()
        if text.startswith("%") and text[1:] in scalars:
            return {"result": str(scalars[text[1:]]), "variablesReference": 0}
        try:
            return self._shown().result(parse_selection(text))
        except ReadError as error:
            try:
                holds = self._program().condition(text).holds(self._program())
            except ReadError:
                raise error from None
            return {"result": str(holds).lower(), "variablesReference": 0}

    def _read_memory(self, given: Arguments) -> Document:
        """Return the bytes of a named memory; none beyond its end."""
        name, count = given.text("memoryReference") or "", min(given.number("count"), _MOST_BYTES)
        offset = given.given.get("offset", 0)
        if not isinstance(offset, int):
            raise ReadError("'offset' is not a number")
        start, data = self._program().bytes_of(name, offset, count)
        return {
            "address": f"{max(0, start + offset):#x}", "data": b64encode(data).decode(),
            "unreadableBytes": count - len(data),
        }  # fmt: skip

    def _name(self) -> str:
        if self.stepper is None:
            return "no program"
        loaded = self.stepper.trace.result.loaded
        return escaped(f"{loaded.entry} on {loaded.target.name}")

    def _program(self) -> Stepper:
        if self.stepper is None:
            raise ReadError("no program has been launched")
        return self.stepper

    def _shown(self) -> Variables:
        if self.variables is None:
            raise ReadError("no program has been launched")
        return self.variables

    def _event(self, name: str, **body: Json) -> None:
        self.channel.send("event", event=name, body=body)


def _words(given: Arguments, key: str) -> list[str]:
    """Return an attribute that may be a text, a number or a list of them. Raises ReadError for anything else."""
    value = given.given.get(key)
    items = value if isinstance(value, list) else [] if value in (None, "") else [value]
    if not all(isinstance(item, str | int) for item in items):
        raise ReadError(f"'{key}' must be a string or a list of strings")
    return [str(item) for item in items]


def _change_nothing(_: Arguments) -> Document:
    raise ReadError("cannot change values of a recorded run; launch it again with other inputs", legal=("in", "arg"))


def _same_file(asked: str, file: str) -> bool:
    return asked in ("", file) or Path(asked).resolve() == Path(file).resolve()


def _lines(given: Arguments) -> list[int]:
    """Return the lines of breakpoints as older clients send them."""
    lines = given.given.get("lines")
    return [line for line in lines if isinstance(line, int)] if isinstance(lines, list) else []


_HOST = "127.0.0.1"

Number = Callable[[str, str], int | float]


def serve(launch: RunConfig | None, number: Number, kernel: Kernel | None = None) -> None:
    """Serve the editor that has started this process; see `Session` for the parameters.

    Raises:
        ReadError: the editor sends something that is not a message.
    """
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    with sink:
        Session(Channel(sys.stdin.buffer, sink), number, launch, kernel).run()


def serve_port(port: int, launch: RunConfig | None, number: Number, kernel: Kernel | None = None) -> None:
    """Wait for one editor at a port (0: any free port), and serve it.

    Raises:
        ReadError: the port is taken, or the editor sends something that is not a message.
    """
    with socket.socket() as waiting:
        waiting.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            waiting.bind((_HOST, port))
        except OSError as error:
            raise ReadError(f"--port {port}: {error.strerror or error}", legal=("--port 0",)) from None
        waiting.listen(1)
        print(f"listening on {_HOST}:{waiting.getsockname()[1]}", file=sys.stderr, flush=True)
        taken, _ = waiting.accept()
    with taken, taken.makefile("rb") as source, taken.makefile("wb") as sink:
        Session(Channel(source, sink), number, launch, kernel).run()

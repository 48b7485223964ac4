"""Open texts, their findings and cycles, and the order in which they are checked.

An edit is answered at once with the findings of its own lines. When typing pauses, another process checks the whole
text, then times it; a long check ends early if its text has changed.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, NamedTuple

from castsim.execution.input_data import entries
from castsim.execution.interpreter.arguments import core_numbers
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError, WarningKind
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse
from castsim.isa.reading import Language, Source
from castsim.running.program_loading import DataDependentProgram, load
from castsim.running.program_runs import SourceLine, run_loaded, source_lines
from castsim.running.synchronisation.race_findings import IGNORE
from castsim.tools.check.checking import Finding, check_text, of_error
from castsim.tools.editor.program_slice import EditedText, Settings, change, quick_findings

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess


# Cycles of the lines of a program, from a run without values.

_MOST_CYCLES = 10**9


class CheckedLine(NamedTuple):
    """Cost of a line, counted from 1: cycles that its pipe spends on all executions, working and waiting.

    A named tuple, because 10,000 of them come from the other process in a tenth of a dataclass's time.
    """

    line: int
    cycles: int
    executions: int
    about: str

    @property
    def label(self) -> str:
        """The text shown beside the line."""
        times = f"{self.executions:,} x, " if self.executions > 1 else ""
        return f"{times}{self.cycles:,} cycle{'s' * (self.cycles != 1)}"


def line_cycles(text: EditedText, settings: Settings) -> tuple[CheckedLine, ...]:
    """Return the cycles of a program's lines; empty for functions that lack an argument or are refused."""
    try:
        timed = list(_timed(text, settings))
    except (CastsimError, EngineError):
        return ()
    by_line: dict[int, list[SourceLine]] = {}
    for source_line in timed:
        by_line.setdefault(source_line.span.line, []).append(source_line)
    # The slots of a bundle run at the same time, statements that share a line one after the other.
    total = max if text.language == "tpc" else sum
    return tuple(
        CheckedLine(
            line,
            total(executed_line.pipe_cycles for executed_line in instructions),
            max(executed_line.executions for executed_line in instructions),
            _about(instructions),
        )
        for line, instructions in sorted(by_line.items())
    )


def _timed(text: EditedText, settings: Settings) -> Iterator[SourceLine]:
    request = settings.request()
    source = Source(text.name, Language(text.language), text.text)
    if source.language is Language.ASSEMBLY:
        yield from _lines(source, settings, None)
        return
    if source.language is not Language.TILES:
        return  # sizes and index space of a kernel in C stand in no text
    for function in entries(parse(text.text, text.name)):
        scalars = {argument.name for argument in function.arguments if isinstance(argument.type, pto.ScalarType)}
        if scalars <= request.args.keys():
            taken = scalars | core_numbers(function)
            given = {name: value for name, value in settings.args.items() if name in taken}
            yield from _lines(source, replace(settings, args=given), function.name)


def _lines(source: Source, settings: Settings, entry: str | None) -> Iterator[SourceLine]:
    request = settings.request()
    try:
        loaded = load(source, request.target, entry, request.args)
        if isinstance(loaded, DataDependentProgram):
            return  # its path rests on what memory holds
        result = run_loaded(
            loaded, {}, timing_only=True, max_cycles=_MOST_CYCLES, races=IGNORE, stale_reads=IGNORE
        )  # fmt: skip
    except (CastsimError, EngineError):
        return
    guessed = any(warning.kind is WarningKind.DEFAULT_READ for warning in result.loaded.executed.warnings)
    if not result.untimed and not guessed:
        yield from source_lines(result.loaded.tree, result.timing)


def _about(executed_lines: list[SourceLine]) -> str:
    return "\n".join(
        f"{source_line.text}: {source_line.executions:,} execution{'s' * (source_line.executions != 1)} on "
        f"{source_line.pipe}, cycles {source_line.first_start:,} to {source_line.last_end:,}; "
        f"{source_line.pipe_cycles:,} of its pipe, work and waiting, {source_line.cycles:,} from start to end of each, "
        "added up"
        for source_line in executed_lines
    )


# The process that checks whole texts, so that the editor is answered meanwhile; it can be ended at any time.


@dataclass(frozen=True, slots=True)
class Job:
    """A text to check or, with `cycles`, to time."""

    text: EditedText
    settings: Settings
    cycles: bool = False


@dataclass(frozen=True, slots=True)
class CheckerResult:
    """Result of a job; `failure` describes a defect in castsim."""

    findings: tuple[Finding, ...] = ()
    cycles: tuple[CheckedLine, ...] = ()
    failure: str = ""


def work(connection: Connection) -> None:
    """Do jobs as they arrive until the connection closes; the text being typed takes precedence."""
    if hasattr(os, "nice"):
        os.nice(10)
    while True:
        try:
            job: Job = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        connection.send(done(job))


def done(job: Job) -> CheckerResult:
    """Execute one job and return its result."""
    text, settings = job.text, job.settings
    try:
        if job.cycles:
            return CheckerResult(cycles=line_cycles(text, settings))
        findings = check_text(
            text.name, text.text, target=settings.target, args=settings.args, language=text.language,
            defines=settings.defines, folders=settings.folders,
        )  # fmt: skip
    except CastsimError as error:
        return CheckerResult((of_error(error, text.name),))
    except Exception as error:  # the editor goes on without findings
        return CheckerResult(failure=f"{type(error).__name__}: {error}")
    return CheckerResult(tuple(replace(finding, span=None) for finding in findings))


class Worker:
    """The other process, as seen from here; it starts with the first job, and again after it was ended."""

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    def do(self, job: Job) -> CheckerResult | None:
        """Execute a job and wait for its result; None if the process was ended meanwhile."""
        if self._process is None or self._connection is None:
            context = get_context("spawn")
            connection, other = context.Pipe()
            process = context.Process(target=work, args=(other,), daemon=True)
            process.start()  # before `end` sees it: one that was not started cannot be ended
            other.close()
            self._process, self._connection = process, connection
        connection = self._connection
        try:
            connection.send(job)
            result: CheckerResult = connection.recv()
        except (EOFError, OSError):
            if self._connection is connection:  # nobody has ended it: it has died
                self.end()
            return None
        return result

    def end(self) -> None:
        """End the process immediately."""
        process, self._process, self._connection = self._process, None, None
        if process is not None:
            process.kill()
            process.join()


PAUSE, PAUSE_PER_LINE = 0.05, 0.00004
"""Seconds without an edit before a whole text is checked, and additional seconds per line."""

PATIENCE = 2.0
"""Seconds for which a check continues although its text has changed: a new process would take as long to start."""

_LOOK = 0.1
"""Seconds between two looks at a running check."""


@dataclass
class Open:
    """An open text: its last version, the findings shown, cycles of the last version that was timed."""

    text: EditedText
    findings: tuple[Finding, ...] = ()
    cycles: tuple[CheckedLine, ...] = ()
    edited: float = 0.0
    checked: asyncio.Event = field(default_factory=asyncio.Event)
    """Event that is set while the last version has been checked and timed."""


class Checker:
    """Checker of the open texts, in one event loop.

    `publish` shows findings, `timed` receives new cycles, `failed` receives defects.
    """

    def __init__(
        self, publish: Callable[[Open], None], timed: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        self.settings = Settings()
        self.texts: dict[str, Open] = {}
        self._publish, self._timed, self._failed = publish, timed, failed
        self._wanted: asyncio.Queue[str] = asyncio.Queue()
        self._worker = Worker()
        self._task: asyncio.Task[None] | None = None

    def open(self, uri: str, text: EditedText) -> None:
        """Add a text, and check it."""
        self.texts[uri] = Open(text)
        self._want(uri)

    def edit(self, uri: str, text: EditedText) -> None:
        """Store a new version, publish the findings of its changed lines, and have it checked."""
        document = self.texts.get(uri)
        if document is None:
            self.open(uri, text)
            return
        changed = change(document.text.lines, text.lines)
        document.text, document.edited = text, time.monotonic()
        if changed is not None:
            document.checked.clear()
            try:
                document.findings = quick_findings(text, changed, document.findings, self.settings)
            except CastsimError:  # the target cannot be read, which the whole check tells
                document.findings = ()
            document.cycles = ()
        self._publish(document)
        self._want(uri)

    def close(self, uri: str) -> None:
        """Remove a text."""
        self.texts.pop(uri, None)

    def end(self) -> None:
        """End the other process; nothing is checked any more."""
        if self._task is not None:
            self._task.cancel()
        self._worker.end()

    async def whole(self, uri: str) -> Open | None:
        """Return an open text when its last version has been checked and timed; None if it is not open."""
        document = self.texts.get(uri)
        if document is not None:
            await document.checked.wait()
        return document

    # ------------------------------------------------------------------------------------------------ in the background

    def _want(self, uri: str) -> None:
        self._wanted.put_nowait(uri)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            uri = await self._wanted.get()
            document = self.texts.get(uri)
            if document is not None and not document.checked.is_set():
                await self._pause(document)
                await self._check(uri, document)

    async def _pause(self, document: Open) -> None:
        pause = PAUSE + PAUSE_PER_LINE * len(document.text.lines)
        while (left := document.edited + pause - time.monotonic()) > 0:
            await asyncio.sleep(left)

    async def _check(self, uri: str, document: Open) -> None:
        text = document.text
        result = await self._done(Job(text, self.settings), document)
        if document.text is not text:
            return  # the edit that has come meanwhile is in the queue
        if result is None:
            document.checked.set()
            if self.texts.get(uri) is document:
                self._failed(f"castsim could not check {text.name}: the checking process died")
            return
        if result.failure:
            self._failed(f"castsim could not check {text.name}: {result.failure}")
        else:
            document.findings = result.findings
            if self.texts.get(uri) is document:
                self._publish(document)
        timed = await self._done(Job(text, self.settings, cycles=True), document)
        if document.text is text:
            document.cycles = () if timed is None else timed.cycles
            document.checked.set()
            self._timed()

    async def _done(self, job: Job, document: Open) -> CheckerResult | None:
        """Return the result of a job; None if it was ended because its text has changed or is closed."""
        started = time.monotonic()
        waiting = asyncio.get_running_loop().run_in_executor(None, self._worker.do, job)
        while not waiting.done():
            try:
                await asyncio.wait({waiting}, timeout=_LOOK)
            except asyncio.CancelledError:  # the session is over
                self._worker.end()
                raise
            stale = document.text is not job.text or document not in self.texts.values()
            if not waiting.done() and stale and time.monotonic() - started > PATIENCE:
                self._worker.end()
        return waiting.result()

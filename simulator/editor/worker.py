"""The process that checks whole texts, so that the editor is answered meanwhile; it can be ended at any time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from castsim.checking import Finding, check_text
from castsim.checking.finding import of_error
from castsim.editor.cycles import LineCycles, line_cycles
from castsim.editor.document import Settings, Text
from castsim.isa.errors import CastsimError

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess


@dataclass(frozen=True, slots=True)
class Job:
    """A text to be checked, or, with `cycles`, to be timed."""

    text: Text
    settings: Settings
    cycles: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What a job gave; `failure` tells of a defect of castsim."""

    findings: tuple[Finding, ...] = ()
    cycles: tuple[LineCycles, ...] = ()
    failure: str = ""


def work(connection: Connection) -> None:
    """Do jobs as they come, until the other end is closed."""
    while True:
        try:
            job: Job = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        connection.send(done(job))


def done(job: Job) -> Done:
    """Do one job."""
    text, settings = job.text, job.settings
    try:
        if job.cycles:
            return Done(cycles=line_cycles(text, settings))
        found = check_text(
            text.name, text.text, target=settings.target, args=settings.args, language=text.language
        )  # fmt: skip
    except CastsimError as error:
        return Done((of_error(error, text.name),))
    except Exception as error:  # the editor goes on without findings
        return Done(failure=f"{type(error).__name__}: {error}")
    return Done(tuple(replace(one, span=None) for one in found))


class Worker:
    """The other process, as seen from here; it is started when the first job is given, and after it was ended."""

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    def do(self, job: Job) -> Done | None:
        """Have a job done and wait for that; None if the process was ended meanwhile."""
        if self._process is None or self._connection is None:
            context = get_context("spawn")
            self._connection, other = context.Pipe()
            self._process = context.Process(target=work, args=(other,), daemon=True)
            self._process.start()
            other.close()
        connection = self._connection
        try:
            connection.send(job)
            found: Done = connection.recv()
        except (EOFError, OSError):
            if self._connection is connection:  # nobody has ended it: it has died
                self.end()
            return None
        return found

    def end(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process, self._connection = self._process, None, None
        if process is not None:
            process.kill()
            process.join()

"""Which texts are open, what is known of them, and the order in which they are checked.

An edit is answered at once with what its own lines show. When typing pauses, another process checks the whole text,
then times it; a check whose text has changed meanwhile is ended if it takes long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from castsim.checking import Finding
from castsim.editor.cycles import LineCycles
from castsim.editor.document import Settings, Text
from castsim.editor.quick import change, quick_findings
from castsim.editor.worker import Done, Job, Worker
from castsim.isa.errors import CastsimError

PAUSE, PAUSE_PER_LINE = 0.05, 0.00004
"""Seconds without an edit before a text is checked as a whole, and more of them for every line."""

PATIENCE = 2.0
"""Seconds for which a check goes on although its text has changed: its process would take as long to start again."""

_LOOK = 0.1
"""Seconds after which a running check is looked at."""


@dataclass
class Open:
    """An open text: its last version, findings as they are shown, cycles of the last version that was timed."""

    text: Text
    findings: tuple[Finding, ...] = ()
    cycles: tuple[LineCycles, ...] = ()
    edited: float = 0.0
    checked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the last version has been checked and timed."""


class Checker:
    """Keeps what is known of the open texts, in one event loop.

    `publish` shows findings, `timed` hears of new cycles, `failed` of defects.
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

    def open(self, uri: str, text: Text) -> None:
        """Take note of a text, and check it."""
        self.texts[uri] = Open(text)
        self._want(uri)

    def edit(self, uri: str, text: Text) -> None:
        """Take note of a new version, publish what its changed lines show, and have it checked."""
        known = self.texts.get(uri)
        if known is None:
            self.open(uri, text)
            return
        changed = change(known.text.lines, text.lines)
        known.text, known.edited = text, time.monotonic()
        if changed is not None:
            known.checked.clear()
            try:
                known.findings = quick_findings(text, changed, known.findings, self.settings)
            except CastsimError:  # the target cannot be read, which the whole check tells
                known.findings = ()
            known.cycles = ()
        self._publish(known)
        self._want(uri)

    def close(self, uri: str) -> None:
        """Forget a text."""
        self.texts.pop(uri, None)

    def end(self) -> None:
        """End the other process, and check nothing from now on."""
        if self._task is not None:
            self._task.cancel()
        self._worker.end()

    async def whole(self, uri: str) -> Open | None:
        """Return an open text when its last version has been checked and timed; None if it is not open."""
        known = self.texts.get(uri)
        if known is not None:
            await known.checked.wait()
        return known

    # ------------------------------------------------------------------------------------------------ in the background

    def _want(self, uri: str) -> None:
        self._wanted.put_nowait(uri)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            uri = await self._wanted.get()
            known = self.texts.get(uri)
            if known is not None and not known.checked.is_set():
                await self._pause(known)
                await self._check(uri, known)

    async def _pause(self, known: Open) -> None:
        pause = PAUSE + PAUSE_PER_LINE * len(known.text.lines)
        while (left := known.edited + pause - time.monotonic()) > 0:
            await asyncio.sleep(left)

    async def _check(self, uri: str, known: Open) -> None:
        text = known.text
        found = await self._done(Job(text, self.settings), known)
        if known.text is not text:
            return  # the edit that has come meanwhile is in the queue
        if found is None:
            known.checked.set()
            if self.texts.get(uri) is known:
                self._failed(f"castsim could not check {text.name}: the process that did so has died")
            return
        if found.failure:
            self._failed(f"castsim could not check {text.name}: {found.failure}")
        else:
            known.findings = found.findings
            if self.texts.get(uri) is known:
                self._publish(known)
        timed = await self._done(Job(text, self.settings, cycles=True), known)
        if known.text is text:
            known.cycles = () if timed is None else timed.cycles
            known.checked.set()
            self._timed()

    async def _done(self, job: Job, known: Open) -> Done | None:
        """Return what a job gives; None if it was ended because its text has changed or is closed."""
        started = time.monotonic()
        waiting = asyncio.get_running_loop().run_in_executor(None, self._worker.do, job)
        while not waiting.done():
            try:
                await asyncio.wait({waiting}, timeout=_LOOK)
            except asyncio.CancelledError:  # the session is over
                self._worker.end()
                raise
            stale = known.text is not job.text or known not in self.texts.values()
            if not waiting.done() and stale and time.monotonic() - started > PATIENCE:
                self._worker.end()
        return waiting.result()

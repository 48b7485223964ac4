"""Options of `castsim run` that show a run cycle by cycle, and the run's page with the changes that were tried."""

from __future__ import annotations

import os
import signal
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from castsim.commands.feature import RUN_BLOCKS, shipped_features
from castsim.commands.outcome import SCHEMA_VERSION, STDOUT, CommandOutcome, write_file
from castsim.engines import observe
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import ReadError
from castsim.reports.sections import RUN
from castsim.reports.views.recording import SegmentRecorder, Window

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.execution.timing import Listener
    from castsim.reports.documents import Document
    from castsim.reports.pages.blocks import Page
    from castsim.reports.run_report import RunReport
    from castsim.reports.views.timeline import Timeline
    from castsim.running.program_runs import Result, RunConfig


# `--html FILE` and `--ledger FILE` of commands: the names of files checked before, the page written after.
#
# From its ledger a second start of a command goes on.


def check_page(html: str | None, others: Mapping[str, str | None]) -> None:
    """Reject a page whose name is unusable, or that of another file, before any work is done.

    `others` are the other files that the command reads and writes, by option or argument.

    Raises:
        ReadError: the page cannot be written, or the name is taken.
    """
    if html is not None:
        check_file("--html", html)
        refuse_same("--html", html, others)


def refuse_same(option: str, file: str, others: Mapping[str, str | None]) -> None:
    """Reject an option's file that is also named elsewhere.

    `others` are the other files, by option or argument; None means not given.

    Raises:
        ReadError: the file is named elsewhere.
    """
    path = os.path.realpath(file)
    for name, other in others.items():
        if other not in (None, STDOUT) and os.path.realpath(other) == path and not _is_device(path):
            raise ReadError(f"{name} and {option} name the same file, '{file}'", legal=(f"{option} FILE",))


def check_file(option: str, text: str) -> None:
    """Reject the name of a file that cannot be created.

    Raises:
        ReadError: it is standard output or a folder, its folder is missing, or it is a dangling link.
    """
    if text == STDOUT:
        raise ReadError(f"{option} needs a file: standard output carries the report", legal=(f"{option} FILE",))
    path = Path(os.path.realpath(text))
    if path.is_symlink():
        raise ReadError(f"{option} {text}: cannot be written: symbolic links form a loop")
    if path.is_dir() or text.endswith("/"):
        raise ReadError(f"{option} {text}: cannot be written: it is a folder")
    if not path.parent.is_dir():
        raise ReadError(f"{option} {text}: cannot be written: no such folder: {Path(text).parent}")


def write_page(file: str, page: Page, option: str = "--html") -> None:
    """Write a page to an option's file, completely or not at all.

    Raises:
        ReadError: the file cannot be written.
    """
    from castsim.reports.pages.blocks import page_html  # noqa: PLC0415 - html and resources, 15 ms, and few ask for a page

    data = page_html(page).encode("utf-8", "backslashreplace")
    write_file(Path(file), data, f"{option} {file}: cannot be written")


def write_page_of(html: str | None, module: str, *result: object) -> None:
    """Write the page of a result if requested: what `page_of` of a module returns, which is imported only then.

    Raises:
        ReadError: the file cannot be written.
    """
    if html is not None:
        write_page(html, import_module(module).page_of(*result))


def answer_page(document: Mapping[str, Any]) -> Page | None:
    """Return the page of a look-up's document, recognised by its keys and version; None for other documents."""
    from castsim.reports.documents import FORMS, keys_of  # noqa: PLC0415 - all of them for a page
    from castsim.reports.pages.answer_pages import PAGES  # noqa: PLC0415 - as above

    for feature in shipped_features():
        if feature.pages:
            for module in (
                *feature.pages,
                *(document_reference.partition(":")[0] for document_reference in feature.documents),
            ):
                import_module(module)
    for name, page in PAGES.items():
        keys = {meaning.key or key: meaning.optional for key, (meaning, _, _) in keys_of(FORMS[name]).items()}
        needed = {key for key, is_optional in keys.items() if not is_optional}
        if needed <= {*document} <= {*keys} and document["schema_version"] == FORMS[name].VERSION:
            return page(document)
    return None


def paged(name: str, options: Namespace, execute: Callable[[Namespace], CommandOutcome]) -> CommandOutcome:
    """Execute a command, and write the page of its report.

    Raises:
        ReadError: the page cannot be written, or the report has another format.
        CastsimError, EngineError: raised by the command.
    """
    words = [name]
    named: dict[str, str | None] = {}
    for key, value in vars(options).items():
        texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
        if key not in ("html", "json"):
            named |= dict.fromkeys((f"--{key.replace('_', '-')}",), texts[0] if texts else None)
        if key in ("file", "files", "what", "program", "diff"):
            words += texts
    check_page(options.html, {"--json": options.json, **named})
    if getattr(options, "format", "text") != "text":
        raise ReadError("--html works only with --format text", legal=("--format text",))
    outcome = execute(options)
    page = answer_page({"schema_version": SCHEMA_VERSION, **outcome.document})
    assert page is not None
    write_page(options.html, page)
    return replace(outcome, text=lambda width: with_note(outcome.text(width), options.html))


def with_note(report: RenderableType, html: str | None, *notes: str) -> RenderableType:
    """Return a report that ends with a line about its page, if there is one."""
    lines = [*notes] if html is None else [*notes, f"html: written to {html}"]
    if not lines:
        return report
    from castsim.reports.terminal import noted  # noqa: PLC0415 - rich, only if printed

    for line in lines:
        report = noted(report, line)
    return report


def _is_device(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)  # noqa: PTH110, PTH113 - beside realpath


# The ledger of a long command.


def ledger_of(ledger: str | None, others: Mapping[str, str | None]) -> Path | None:
    """Return the ledger named by an option.

    `others` are the other files that the command reads and writes, by option.

    Raises:
        ReadError: the ledger cannot be created, or is another of the files.
    """
    if ledger is None:
        return None
    check_file("--ledger", ledger)
    refuse_same("--ledger", ledger, others)
    return Path(ledger)


def removal(ledger: Path | None) -> Callable[[], None] | None:
    """Return the action that removes a ledger after the results are written."""
    if ledger is None:
        return None

    def remove() -> None:
        with suppress(OSError):
            ledger.unlink()

    return remove


@contextmanager
def resume_hint(ledger: Path | str | None) -> Iterator[None]:
    """Make SIGTERM end the block as Ctrl-C does, with a hint on how to continue.

    Raises:
        KeyboardInterrupt: either signal arrived; the hint is its argument.
    """
    try:
        with _terminated_is_interrupted():
            yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(*(() if ledger is None else (f"the same command continues from {ledger}",))) from None


@contextmanager
def _terminated_is_interrupted() -> Iterator[None]:
    """Convert SIGTERM to KeyboardInterrupt; for the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_SCALED = 80
"""Number of cycles from which the text view shows several per column, unless a window is requested."""


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """What `castsim run` writes and shows of a run, as typed."""

    html: str | None = None
    json: str | None = None
    out: str | None = None
    trace: str | None = None
    emit_sync: str | None = None
    timeline: bool = False
    window: str | None = None
    report: str = RUN
    what_if: str | None = None
    facts: bool = False
    lint: bool = False
    show_sync: bool = False
    partial: bool = False
    quiet: bool = False
    all_entries: bool = False
    """Whether every function is run, and a table of all is printed."""
    command: tuple[str, ...] = ()
    """The arguments that name the program and its target, as typed."""
    input_words: tuple[str, ...] = ()
    """The arguments that name the inputs, as typed."""

    @property
    def is_observed(self) -> bool:
        """Whether the run must be observed in detail."""
        return self.timeline or self.trace is not None

    @property
    def cycles(self) -> Window:
        """The requested window.

        Raises:
            ReadError: the text is not a window.
        """
        return Window() if self.window is None else Window.parse(self.window.strip())


def check_views(program: str, outputs: RunOutputs) -> None:
    """Reject views that cannot be shown or written, before anything is simulated.

    Raises:
        ReadError: a window is empty or has no view, or a file cannot be created or is named twice.
    """
    if outputs.window is not None and not outputs.is_observed and outputs.html is None:
        legal = ("--timeline", "--trace FILE", "--html FILE")
        raise ReadError("--window has nothing to show", legal=legal)
    _ = outputs.cycles
    files = {os.path.realpath(program): "PROGRAM"}
    written = {"--json": outputs.json, "--trace": outputs.trace, "--html": outputs.html,
               "--emit-sync": outputs.emit_sync}  # fmt: skip
    for name, text in written.items():
        if text is None or (name == "--json" and text == STDOUT):
            continue
        path = Path(text)
        if name != "--json":
            check_file(name, text)
        if path.is_file() or not path.exists():  # a device takes more than one
            other = files.setdefault(os.path.realpath(path), name)
            if other != name:
                raise ReadError(f"{other} and {name} name the same file, '{text}'")


def timeline_of(outputs: RunOutputs, result: Result, engine: str | None, listener: Listener | None) -> Timeline | None:
    """Return the recording of the window, None if no view was requested; `listener` receives the progress.

    The recording comes from a separate run that ends with the window; all other data comes from the main result.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    if not outputs.is_observed or (outputs.trace is None and _is_scaled(outputs, result)):
        return None
    from castsim.reports.views.timeline import make_timeline  # noqa: PLC0415 - few runs need it

    loaded = result.loaded
    start, end = outputs.cycles.within(result.cycles)
    window = Window(start, end)
    recorder = SegmentRecorder(window, listener)
    recorder.issued = observe(loaded.tree, loaded.target, recorder, engine=engine)
    return make_timeline(loaded.title, loaded.tree, result.timing, recorder, window)


def _is_scaled(outputs: RunOutputs, result: Result) -> bool:
    """Return whether the text view shows the whole run with several cycles in a column."""
    return outputs.window is None and result.cycles > _SCALED


def write_views(outputs: RunOutputs, result: Result, timeline: Timeline) -> list[str]:
    """Write the requested trace, completely or not at all; return a sentence about it.

    Raises:
        ReadError: the trace cannot be written.
    """
    if outputs.trace is None:
        return []
    from castsim.files import whole_file  # noqa: PLC0415 - as above
    from castsim.reports.launches import launch_slices  # noqa: PLC0415 - as above
    from castsim.reports.views import perfetto  # noqa: PLC0415 - as above
    from castsim.reports.views.timeline import dependences  # noqa: PLC0415 - as above

    tree, target = result.loaded.tree, result.loaded.target
    sizes = {name: memory.capacity_bytes for name, memory in target.memories.items()}
    amounts = perfetto.counters(tree, result.timing, timeline, sizes)
    inside = launch_slices(tree, result.timing, target)
    try:
        with whole_file(Path(outputs.trace)) as file:
            for piece in perfetto.perfetto_text(timeline, dependences(tree, timeline), amounts, target.name, inside):
                file.write(piece.encode())
    except OSError as error:
        raise ReadError(f"--trace {outputs.trace}: {error.strerror or error}") from None
    cut = "" if timeline.cut is None else ", cut there because there was too much to keep; choose a --window"
    shown = f"cycles {timeline.start} .. {timeline.end - 1}" if timeline.end > timeline.start else "no cycles"
    return [f"trace: {shown} written to {outputs.trace}{cut}"]


def timeline_text(
    outputs: RunOutputs, result: Result, timeline: Timeline | None, notes: list[str], width: int
) -> Iterator[RenderableType]:
    """Yield the names of the written files, and the text view of the run."""

    from rich.text import Text  # noqa: PLC0415 - only if printed

    yield from (Text(line) for line in notes)
    if not outputs.timeline:
        return
    from castsim.reports.views.timeline import pipeline_lines, scaled_lines  # noqa: PLC0415 - as above

    if _is_scaled(outputs, result):
        lines = scaled_lines(result.loaded.tree, result.timing, width)
    else:
        assert timeline is not None
        lines = pipeline_lines(timeline, width)
    yield Text()
    yield Text("\n".join(lines), no_wrap=True, overflow="ignore")


def write_run_page(config: RunConfig, outputs: RunOutputs, report: RunReport, document: Document) -> list[str]:
    """Write the page if requested, completely or not at all; return a sentence about it.

    Raises:
        ReadError: the page cannot be written, or the window reaches beyond the run.
    """
    if outputs.html is None:
        return []
    from castsim.reports.pages.grammars import page_grammar  # noqa: PLC0415 - takes a while, and few ask for a page
    from castsim.reports.pages.run_page import run_page  # noqa: PLC0415 - as above

    result = report.result
    grammar = page_grammar("pto" if result.loaded.target.has_tiles else "tpc")
    more = [block for module in RUN_BLOCKS for block in import_module(module).blocks_of_run(config, result)]
    window = None if outputs.window is None else outputs.cycles
    write_page(outputs.html, run_page(report, document, window, more, grammar))
    return [f"html: written to {outputs.html}"]

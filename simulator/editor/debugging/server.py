"""Serving one editor over standard input and output, or over a port of this machine."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable

from castsim.editor.debugging.messages import Channel
from castsim.editor.debugging.session import Session
from castsim.isa.errors import ReadError
from castsim.running.stepping.launch import Launch

_HOST = "127.0.0.1"

Number = Callable[[str, str], int | float]


def serve(launch: Launch | None, number: Number) -> None:
    """Serve the editor that has started this process; see `Session` for the parameters.

    Raises:
        ReadError: it sends something that is no message.
    """
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    with sink:
        Session(Channel(sys.stdin.buffer, sink), number, launch).run()


def serve_port(port: int, launch: Launch | None, number: Number) -> None:
    """Wait for one editor at a port, 0 for any that is free, and serve it.

    Raises:
        ReadError: the port is taken; something that is no message comes.
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
        Session(Channel(source, sink), number, launch).run()

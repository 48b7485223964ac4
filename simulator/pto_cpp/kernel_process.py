"""The child process in which a kernel runs once: its limits, what it sends, what it is answered."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from castsim.isa.errors import EngineError, LimitError, ReadError

SECONDS = 20
"""Processor time of a kernel; a recording takes milliseconds."""

SILENT_SECONDS = 60
"""Time without a word from a kernel after which it is ended."""

_MEMORY = 2 << 30
_FILES = 1 << 26

Answer = Callable[[str], bytes]
"""Returns the bytes that a question (a line that begins with `q` or `p`) is answered with."""


def recorded_lines(program: Path, words: Sequence[str], answer: Answer, most: int) -> Iterator[str]:
    """Run a compiled kernel and yield what it sends, line by line.

    Raises:
        LimitError: it does not end, or sends more than `most` lines.
        EngineError: it ends otherwise than by returning.
        ReadError: it cannot be started.
    """
    sent, answers = os.pipe(), os.pipe()
    # The shell sets the limits: a function between fork and exec is not safe in a process of several threads.
    limits = f"ulimit -t {SECONDS}; ulimit -d {_MEMORY >> 10}; ulimit -f {_FILES >> 9}; ulimit -c 0; exec"
    command = ["/bin/sh", "-c", f'{limits} "$0" "$@"', str(program), str(sent[1]), str(answers[0]), *words]
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, stderr=nothing, pass_fds=(sent[1], answers[0]),
            cwd=program.parent, start_new_session=True, env={"LC_ALL": "C"}
        )  # fmt: skip
    except OSError as error:
        for end in (*sent, *answers):
            os.close(end)
        raise ReadError(f"cannot start the compiled kernel: {error.strerror or error}") from None
    os.close(sent[1])
    os.close(answers[0])
    ended = False
    try:
        for count, line in enumerate(_lines(sent[0])):
            if line[0] in "qp":
                _write_all(answers[1], answer(line))
            if count >= most:
                raise LimitError(
                    f"the kernel issues more than {most} operations", legal=(f"--max-statements {10 * most}",)
                )
            ended = ended or line[0] in "zE"
            yield line
        code = child.wait()
        if not ended:
            raise _unended(code)
    finally:
        os.close(sent[0])
        os.close(answers[1])
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _lines(end: int) -> Iterator[str]:
    """Yield whole lines until the other end is closed.

    Raises:
        LimitError: nothing comes for too long.
    """
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(end, selectors.EVENT_READ)
        last = time.monotonic()
        while True:
            if not selector.select(max(0.0, last + SILENT_SECONDS - time.monotonic())):
                raise LimitError(f"the kernel has done nothing for {SILENT_SECONDS} s and is ended")
            piece = os.read(end, 1 << 16)
            if not piece:
                return
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace")
            last = time.monotonic()


def _write_all(end: int, data: bytes) -> None:
    while data:
        data = data[os.write(end, data) :]


def _unended(code: int) -> LimitError | EngineError:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return LimitError(f"the kernel does not end within {SECONDS} s of processor time")
    how = f"is ended by {signal.Signals(-code).name}" if code < 0 else f"ends with code {code}"
    return EngineError(f"the kernel {how} on the host before it returns")

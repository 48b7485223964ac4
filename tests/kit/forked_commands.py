"""Commands as processes of their own, for the price of a fork: a server imports what they need, once.

A command that is started afresh spends more than half a second on imports. Where a process of its own is needed only to
measure it and to keep what it breaks away from the tests, a fork of a process that has done nothing else will do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kit.paths import ROOT

SERVER = """
import gc, json, os, resource, sys, traceback
from importlib import import_module

for name in sys.argv[1:]:
    try:
        import_module(name)
    except ImportError:  # of an extra: the command itself says so
        pass
from castsim.__main__ import main


def command(argv, heard, seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + seconds // 2))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    file = os.open(heard, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv[1:] = argv
    code = 1
    try:
        code = main()
        sys.stdout.flush()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


gc.freeze()
requests, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
for line in requests:
    child = os.fork()
    if not child:
        command(**json.loads(line))
    _, status, used = os.wait4(child, 0)
    taken = [os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]
    print(json.dumps(taken), file=answers, flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit code (negative: the signal), processor time, largest memory, what it said."""

    code: int
    seconds: float
    bytes: int
    text: str


class Commands:
    """A process that runs commands of castsim, each in a fork of its own, in the root folder."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER, *modules],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, encoding="utf-8",
        )  # fmt: skip

    def run(self, argv: Sequence[str], heard: Path, cpu_seconds: int) -> Ended:
        """Run a command; it is killed when it takes more processor time, and what it prints goes to `heard`."""
        server = self._server
        assert server.stdin is not None and server.stdout is not None
        print(json.dumps({"argv": argv, "heard": str(heard), "seconds": cpu_seconds}), file=server.stdin, flush=True)
        code, seconds, size = json.loads(server.stdout.readline())
        return Ended(code, seconds, size, heard.read_bytes().decode())  # UTF-8, whatever the command was given

    def end(self) -> None:
        """End the process."""
        self._server.communicate()
        assert self._server.returncode == 0


@contextmanager
def forked_commands(modules: Sequence[str]) -> Iterator[Commands]:
    """Commands that find these modules imported."""
    commands = Commands(modules)
    try:
        yield commands
    finally:
        commands.end()

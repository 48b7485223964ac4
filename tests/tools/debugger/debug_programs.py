"""The sample programs as `castsim debug` runs them, what its memories really hold, and a client of its protocol."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from kit.sample_arguments import command
from numpy.typing import NDArray

from castsim.commands import command_line
from castsim.commands.kernels import KernelOptions, run_config_of
from castsim.commands.option_parsers import options_as
from castsim.running.program_runs import RunConfig
from castsim.tools.debugger import stepper as traces
from castsim.tools.debugger.command import launched
from castsim.tools.debugger.step_recording import Reach, StepRecording
from castsim.tools.debugger.stepper import Stepper, stepper_of

_KEPT = ("--in", "--arg", "--option", "--target", "--entry")


def debug_words(path: Path) -> list[str]:
    """The command line of `castsim debug` for a sample program, from the command that heads its expected report."""
    words = command(path)
    words = words[words.index("run") + 1 :] if "run" in words else words
    found = [str(path)]
    for option, value in pairwise(words):
        if option in _KEPT:
            found += [option, value]
    return found


def launch(path: Path, *more: str) -> RunConfig:
    _, options = command_line.parse(["debug", *debug_words(path), *more])
    return launched(run_config_of(options, options.program), options_as(KernelOptions, options))


def digest(memories: Mapping[str, NDArray[np.uint8]], registers: Mapping[str, object] | None = None) -> str:
    """A digest of all bytes, and of the values of registers."""
    found = hashlib.sha256()
    for name, memory in sorted(memories.items()):
        found.update(name.encode())
        found.update(np.ascontiguousarray(memory))
    for name, value in sorted((registers or {}).items()):
        found.update(name.encode())
        if value is None:
            continue
        for part in (value, getattr(value, "data", None), getattr(value, "bits", None)):
            plain = isinstance(part, int | tuple)
            found.update(repr(part).encode() if plain else part.tobytes() if isinstance(part, np.ndarray) else b"")
    return found.hexdigest()


class Digesting(StepRecording):
    """A recording that also digests the memories of the machine itself before every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.digests: list[str] = []

    def begin(self, reach: Sequence[Reach]) -> None:
        super().begin(reach)
        self.digests.append(digest(self._live))


def digested(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Stepper, list[str]]:
    """A program, and what its memories held before each operation that has a change in the journal."""
    kept: list[Digesting] = []

    def made() -> Digesting:
        kept.append(Digesting())
        return kept[0]

    monkeypatch.setattr(traces, "StepRecording", made)
    return stepper_of(launch(path)), kept[0].digests


# ---------------------------------------------- a client of the Debug Adapter Protocol, written after its specification


@dataclass
class Client:
    """Sends requests and reads what comes; events are kept until somebody waits for them."""

    sink: BinaryIO
    source: BinaryIO
    seq: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def send(self, command: str, **arguments: Any) -> int:
        self.seq += 1
        message = {"seq": self.seq, "type": "request", "command": command, "arguments": arguments}
        data = json.dumps(message).encode()
        self.sink.write(f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        self.sink.flush()
        return self.seq

    def read(self) -> dict[str, Any]:
        size = None
        while (line := self.source.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(": ")
            if name == "Content-Length":
                size = int(value)
        assert size is not None, "the adapter is gone"
        found: dict[str, Any] = json.loads(self.source.read(size))
        return found

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the whole response."""
        number = self.send(command, **arguments)
        while True:
            found = self.read()
            if found["type"] == "event":
                self.events.append(found)
            elif found["request_seq"] == number:
                assert found["command"] == command
                return found

    def body(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request that must succeed, and return the body of its response."""
        found = self.ask(command, **arguments)
        assert found["success"], found
        return found.get("body", {})

    def event(self, *names: str) -> dict[str, Any]:
        """Return the next event of any of these names; those before it are dropped."""
        while True:
            while self.events:
                found = self.events.pop(0)
                if found["event"] in names:
                    return found
            self.events.append(self.read())

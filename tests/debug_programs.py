"""The sample programs as `castsim debug` runs them, and what its memories really hold on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sample_arguments import command

from castsim.commands import command_line
from castsim.commands.debug import launch_of
from castsim.running import stepper as traces
from castsim.running.step_recording import Reach, StepRecording
from castsim.running.stepper import SteppedLaunch, Stepper

PROGRAMS = Path(__file__).parents[1] / "programs"
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


def launch(path: Path, *more: str) -> SteppedLaunch:
    _, options = command_line.parse(["debug", *debug_words(path), *more])
    return launch_of(options)


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
    return launch(path).stepper(), kept[0].digests

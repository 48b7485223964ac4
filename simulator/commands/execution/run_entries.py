"""`castsim run FILE.pto --all-entries`: every function of a file by itself, and a table of what came of it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from castsim.commands.outcome import Outcome
from castsim.execution.entry_and_target import entries
from castsim.isa.errors import CastsimError, EngineError, ReadError
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse
from castsim.isa.sources import TILE_SUFFIX, read_source

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from castsim.running import Result

Run = Callable[[Namespace], "Result"]
"""Runs the function that the options name."""


@dataclass(frozen=True, slots=True)
class EntryOutcome:
    """A function, and its cycles, None if they are not modelled, or why it cannot be run."""

    name: str
    cycles: int | None
    error: str | None

    def document(self) -> dict[str, str | int | None]:
        """Return it as JSON."""
        return {"entry": self.name, "cycles": self.cycles, "error": self.error}


def run_entries(options: Namespace, path: Path, run: Run) -> Outcome:
    """Run every function of a tile program that no other one calls; the exit code is 1 if any fails.

    Values for arguments that a function lacks are not for it. Nothing is written to files.

    Raises:
        ReadError: the file is no tile program or cannot be read; an option that is about one function.
    """
    for option, given in (
        ("--entry", options.entry),
        ("--out", options.out),
        ("--timeline", options.timeline),
        ("--trace", options.trace),
        ("--kanata", options.kanata),
        ("--html", options.html),
        ("--what-if", options.what_if),
        ("--show-sync", options.show_sync),
    ):
        if given:
            raise ReadError(f"{option} is about one function; --all-entries runs several")
    if path.suffix != TILE_SUFFIX:
        raise ReadError(f"'{path}' is not a tile program", legal=(f"a {TILE_SUFFIX} file",))
    source = read_source(path, lambda: False)
    program = parse(source.text, source.file, go_past_refused=True)
    found = tuple(_outcomes(options, program, run))
    if not found:
        raise ReadError(f"{path}: no function to run")
    failed = sum(one.error is not None for one in found)
    document = {"program": source.file, "entries": [one.document() for one in found], "failed": failed}
    return Outcome(document, lambda _: _text(found, failed), code=1 if failed else 0)


def _outcomes(options: Namespace, program: pto.Program, run: Run) -> Iterator[EntryOutcome]:
    refused = {one.name: one.error for one in program.refused}
    functions = {function.name: function for function in entries(program)}
    for name in (*functions, *refused):
        if name in refused:
            yield EntryOutcome(name, None, _one_line(refused[name]))
            continue
        known = {argument.name for argument in functions[name].arguments}
        changed = Namespace(**vars(options))
        changed.entry = name
        for kind in ("args", "inputs"):
            given = [text for text in getattr(options, kind) if text.partition("=")[0] in known]
            setattr(changed, kind, given)
        try:
            result = run(changed)
            yield EntryOutcome(name, None if result.untimed else result.cycles, None)
        except (CastsimError, EngineError) as error:
            yield EntryOutcome(name, None, _one_line(error))


def _one_line(error: Exception) -> str:
    """Return an error without the source lines that it shows."""
    return str(error).partition("\n")[0]


def _text(found: tuple[EntryOutcome, ...], failed: int) -> RenderableType:
    from rich.text import Text  # noqa: PLC0415 - rich, only if printed

    width = max(len(one.name) for one in found) + 1
    rows = [f"{'@' + one.name:{width}}  {_shown(one)}" for one in found]
    total = f"{len(found)} functions, {failed} failed"
    return Text("\n".join([*rows, "", total]))


def _shown(one: EntryOutcome) -> str:
    if one.error is not None:
        return f"failed: {one.error}"
    return "no cycles: not modelled for vector instructions" if one.cycles is None else f"{one.cycles} cycles"

"""Reports on a search of tile shapes and choices, as JSON and as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import grouped
from castsim.reports.schemas.keys import Name
from castsim.reports.terminal import composed, indented, table
from castsim.tools.tune.candidates import ChoiceKind, TuningRow
from castsim.tools.tune.studies import Tuning

_KINDS = {ChoiceKind.TILE: "tile", ChoiceKind.ARGUMENT: "arg", ChoiceKind.OPTION: "option"}


class TuningAxis(Keys):
    """A choice with its values."""

    name: str = says("Its name.")
    kind: str = says("Kind of the choice: tile, arg, option or target.")
    values: list[int | float | str] = says("The possible values.")


class TuningDifference(Keys):
    """A point whose outputs differ from those of the best point."""

    choices: dict[Name, int | float | str] = says("The value of each choice.", lambda pair: dict(pair[0].choices))
    outputs: list[str] = says("The names of the outputs that differ.", lambda pair: pair[1])


class Tune(CommandDocument, name="tune"):
    """The tile shapes and choices of a kernel, ranked."""

    program: str = says("The program.", "study.source.file")
    space: list[TuningAxis] = says("The choices.", "study.space.axes")
    conditions: list[str] = says(of=lambda found: [each.text for each in found.study.space.conditions])
    """The conditions on combinations of choices."""
    combinations: int = says("Combinations of all values.", "study.space.combinations")
    left_out: int = says("Number of combinations excluded by a condition.")
    points: int = says("Number of remaining combinations.", lambda found: len(found.rows))
    simulated: int = says("Number of points with cycles.", lambda found: len(found.simulated))
    refused: int = says("Number of points that fail.", lambda found: len(found.misfits))
    best_is_proven: bool = says(of=lambda found: found.best is not None and not found.faster_possible)
    """Whether no other point can have fewer cycles."""
    pareto_is_proven: bool = says(of=lambda found: found.best is not None and not found.unsettled)
    """Whether no other point can be on the front."""
    best: TuningRow | None = says("The point with fewest cycles; null if all fail.")
    command: str | None = says("The command that runs it; null if all fail.")
    outputs_equal: bool | None = says(of=lambda found: not found.differing if found.study.inputs else None)
    """Whether all simulated points give the same bits; null if no inputs were given."""
    differing: list[TuningDifference] = says("Points whose outputs differ.")
    rows: list[TuningRow]
    """All points: simulated ones by cycles, then the others by lower bounds, then those that do not run."""


def tuning_document(tuning: Tuning) -> Document:
    """Return all results, rows in the order of the ranking."""
    return Tune.of(tuning, command=None if tuning.best is None else command_of(tuning, tuning.best))


def command_of(tuning: Tuning, row: TuningRow) -> str:
    """Return the command that runs a point."""

    study = tuning.study
    words = ["castsim", "run", study.source.file]
    for kind, option in _KINDS.items():
        words += [word for name, value in study.chosen(row.choices, kind).items()
                  for word in (f"--{option}", f"{name}={value}")]  # fmt: skip
    words += [word for name, given in study.args.items() for word in ("--arg", f"{name}={given}")]
    words += [word for name, given in study.options.items() for word in ("--option", f"{name}={given}")]
    target = next(iter(study.chosen(row.choices, ChoiceKind.TARGET).values()), study.target)
    if target is not None:
        words += ["--target", str(target) if isinstance(target, str | Path | int | float) else target.name]
    words += ["--entry", study.entry] if study.entry else []
    words += ["--sync", study.sync] if study.sync != "insert" else []
    given = [
        word for name, value in study.inputs.items() if isinstance(value, str) for word in ("--in", f"{name}={value}")
    ]
    return shlex.join([*words, *(given or ["--timing-only"])])


# The outcome of a search of tile shapes and choices for people: the answer, the ranking, what is left open.

_SHOWN = 20
"""Rows of a table."""


@composed
def tuning_text(tuning: Tuning, width: int) -> Iterator[RenderableType]:
    """Yield the report; a `*` marks the points that no other point beats in both cycles and bytes."""
    del width
    answer, *settled = answer_lines(tuning)
    yield Text(answer)
    if tuning.best is not None:
        command, *settled = settled
        yield Text(f"  {command}", no_wrap=True, overflow="ignore")  # to be copied
    yield Text("")
    if tuning.best is not None:
        yield from (indented(_ranking(tuning)), Text(""), Text(_legend(tuning)))
    yield from map(Text, settled)
    if tuning.waiting:
        yield from (Text(""), indented(_waiting(tuning)))
    if tuning.misfits:
        yield from (Text(""), indented(_misfits(tuning)))


def answer_lines(tuning: Tuning) -> list[str]:
    """Return the answer, the command that runs the best point if there is one, and what is proven and compared."""
    command = [] if tuning.best is None else [command_of(tuning, tuning.best)]
    return [_tuned(tuning), *command, *(line for line in (*_proof(tuning), *_outputs(tuning)) if line)]


def _tuned(tuning: Tuning) -> str:
    best = tuning.best
    if best is None:
        return f"None of the {len(tuning.rows):,} points of {tuning.study.source.file} runs."
    per = "" if best.cycles_per_element is None else f" ({best.cycles_per_element:.4f} cycles per element)"
    used = "" if best.buffer_bytes is None else f", {grouped(best.buffer_bytes)} bytes of buffer"
    return f"Best: {choices_text(best)}: {_known(best.cycles)} cycles{per}{used}"


def choices_text(row: TuningRow) -> str:
    """Return the choices of a row in one line."""
    return ", ".join(f"{name}={value}" for name, value in row.choices.items())


def _ranking(tuning: Tuning) -> RenderableType:
    names = [axis.name for axis in tuning.study.space.axes]
    numbers = (">cycles", ">at least", ">per element", ">buffer bytes")
    rows = table(">rank", *names, *numbers, "bound by", "front")
    for rank, row in enumerate(tuning.simulated, 1):
        if rank > _SHOWN and not row.pareto:
            continue
        rows.add_row(
            str(rank), *(str(row.choices[name]) for name in names), _known(row.cycles), _known(row.at_least or None),
            "-" if row.cycles_per_element is None else f"{row.cycles_per_element:.4f}", _known(row.buffer_bytes),
            row.bound_by or "-", "*" if row.pareto else "",
        )  # fmt: skip
    return rows


def _legend(tuning: Tuning) -> str:
    more = len(tuning.simulated) - _SHOWN
    rest = f" {more:,} slower points that are not on the front: --json has them." if more > 0 else ""
    return f"*: Pareto-optimal among the simulated points in cycles and bytes.{rest}"


def _proof(tuning: Tuning) -> Sequence[str]:
    """Return a sentence about what the search has proven and what remains open."""
    points, done = len(tuning.rows), len(tuning.simulated)
    left = f" --where excludes {tuning.left_out:,} combinations." if tuning.left_out else ""
    lines = [f"{points:,} points, {done:,} simulated, {len(tuning.misfits):,} do not run.{left}"]
    if not tuning.waiting or tuning.best is None:
        return lines
    faster, open_ = len(tuning.faster_possible), len(tuning.unsettled)
    if faster:
        lines.append(
            f"Not settled: the lower bounds of {faster:,} points that were not simulated leave room for fewer cycles; "
            "simulate them with --simulate all or a larger K."
        )
    elif open_:
        lines.append(
            f"Proven best: all other points take at least as many cycles. {open_:,} of them might be on the front."
        )
    else:
        lines.append("Proven by lower bounds: no other point has fewer cycles or is on the front.")
    return lines


def _outputs(tuning: Tuning) -> Sequence[str]:
    if tuning.best is None:
        return ()
    if not tuning.study.inputs:
        return ("Outputs were not compared: pass inputs with --in.",)
    if not tuning.differing:
        return ("Outputs: the same bits at all simulated points.",)
    lines = [f"Outputs differ from those of the best at {len(tuning.differing):,} simulated points:"]
    lines += [f"  {choices_text(row)}: {', '.join(names)}" for row, names in tuning.differing[:_SHOWN]]
    return lines


def _waiting(tuning: Tuning) -> RenderableType:
    waiting = tuning.waiting[:_SHOWN]
    rows = ((choices_text(row), _known(row.at_least or None), _known(row.buffer_bytes)) for row in waiting)
    return table("not simulated", ">at least", ">buffer bytes", rows=rows)


def _misfits(tuning: Tuning) -> RenderableType:
    return table("does not run", "reason", rows=((choices_text(row), row.reason) for row in tuning.misfits[:_SHOWN]))


def _known(value: int | None) -> str:
    return "-" if value is None else grouped(value)

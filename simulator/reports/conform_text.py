"""A conformance matrix as a table for the terminal, and as a page in Markdown."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.planning import PlanKind
from castsim.planning.conformance import Matrix
from castsim.planning.lowering_answers.answer import options_text, setting_text
from castsim.reports.conform import cast_text, cell_text
from castsim.reports.specification import specification_words
from castsim.reports.terminal import indented, table

LEGEND_LINES = (
    "native: one instruction.",
    "`saturation ON`, `rounding TRUNC` and the like: one instruction with these modes.",
    "Several instructions: a chain, with its modes.",
    "copy: no bit changes.",
    "with options NAME=VALUE: conforms if `castsim run` is given these options of the target, which a program or its "
    "launcher can set; or native with options: with these, one instruction does it instead of the chain.",
    "The number is the cost of the whole program, loads and stores included, in simulated cycles per element.",
    "(within tolerance): conforms, but does not always give the nearest result.",
    "~: the verdict rests on samples; `castsim lower` and --prove try all 32-bit codes.",
    "no: none found in chains of up to four steps, with or without options, which proves nothing of longer ones; shown "
    "are a value on which the closest chain fails, what it becomes, and the correct result.",
    "impossible: the target has no elements of that width.",
)
LEGEND = " ".join(LEGEND_LINES)


def conform_text(found: Matrix) -> RenderableType:
    """Return the matrix for the terminal: a line per cell, cast by cast."""
    rows = table("cast", "target", "answer")
    for number, cast in enumerate(found.casts):
        for place, entry in enumerate(found.row(number)):
            rows.add_row(cast_text(cast, entry) if place == 0 else "", entry.cell.target, cell_text(entry))
    return Group(Text(_head(found)), indented(rows), Text(""), *map(Text, _notes(found)), Text(""), _totals(found))


def conform_summary(found: Matrix) -> RenderableType:
    """Return how many casts each target does in which way."""
    return Group(Text(_head(found)), _totals(found), Text("without --summary: every cast on every target", style="dim"))


def _head(found: Matrix) -> str:
    options = f" with {setting_text(found.options)}" if found.options else ""
    return f"Casts of {specification_words(f'{found.spec.name}@{found.version}')} on the targets{options}"


def _notes(found: Matrix) -> tuple[str, ...]:
    """Return the notes on the table: the legend, and the parts of the specification that are not in it."""
    if found.spec.rescale is None:
        return (LEGEND,)
    return LEGEND, f"RESCALE of {found.spec.name} is not in the table: it is not a cast; `castsim graph` runs it."


def _totals(found: Matrix) -> RenderableType:
    rows = table("target", *(kind.value for kind in PlanKind), numbers=tuple(kind.value for kind in PlanKind))
    for target in found.targets:
        rows.add_row(target, *(str(_count(found, target, kind)) for kind in PlanKind))
    return indented(rows)


def _command(found: Matrix) -> str:
    options = f" {options_text(found.options)}" if found.options else ""
    return f"castsim conform --spec {found.spec.name}@{found.version}{options} --markdown"


def _count(found: Matrix, target: str, kind: PlanKind) -> int:
    return sum(entry.kind is kind for entry in found.entries if entry.cell.target == target)


def markdown_text(found: Matrix) -> RenderableType:
    """Return the page for the terminal, as it stands."""
    return Text(conform_markdown(found).rstrip("\n"), no_wrap=True)


def conform_markdown(found: Matrix) -> str:
    """Return the matrix as a page."""
    lines = [
        f"# {_head(found)}: conformance",
        "",
        f"Written by `{_command(found)}`; a test keeps it current.",
        "",
        *(line for note in _notes(found) for line in (note, "")),
        f"| target | {' | '.join(kind.value for kind in PlanKind)} |",
        f"|---|{'---:|' * len(PlanKind)}",
        *(
            f"| {target} | {' | '.join(str(_count(found, target, kind)) for kind in PlanKind)} |"
            for target in found.targets
        ),
        "",
        f"| cast | {' | '.join(found.targets)} |",
        f"|---|{'---|' * len(found.targets)}",
    ]
    for number, cast in enumerate(found.casts):
        entries = found.row(number)
        cells = " | ".join(cell_text(entry) for entry in entries)
        lines.append(f"| {cast_text(cast, entries[0])} | {cells} |")
    return "\n".join(lines) + "\n"

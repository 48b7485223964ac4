"""Inside of the launches of a program of vector instructions: the cycles of every line."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.machines.mechanisms import Launches, LaunchLine
from castsim.reports.documents import Document, json_of
from castsim.reports.launches import written_launches
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented, table

_LEGEND = "cycles: of the launch, each counted once; waits for: the longest wait of an execution, beside other work"


def _data(report: RunReport) -> Document:
    loaded = report.result.loaded
    found = () if report.result.untimed else written_launches(loaded.tree, loaded.target)
    return {"launches": json_of(found)} if found else {}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    loaded = report.result.loaded
    for launches in written_launches(loaded.tree, loaded.target):
        times = f"{launches.executions} launch{'es' * (launches.executions != 1)}"
        yield Text(f"inside line {launches.line}: {times}, {launches.cycles} cycles")
        yield launch_table(launches)
        yield indented(Text(_LEGEND, style="dim"))
        yield Text()


def launch_table(launches: Launches, numbered: str = "line") -> Table:
    """Return the lines of launches as a table; `numbered` is what they are called."""
    numbers = (numbered, "times", "cycles")
    made = table(numbered, "instruction", "times", "cycles", "by cause", "waits for", numbers=numbers)
    for line in launches.lines:
        causes = ", ".join(f"{cause} {cycles}" for cause, cycles in line.causes.items())
        number = "" if line.number is None else str(line.number)
        made.add_row(number, line.text, str(line.executions), str(line.cycles), causes, _waits(line, numbered))
    return made


def _waits(line: LaunchLine, numbered: str) -> str:
    """Return the longest wait of a line in words, empty if it waits for nothing."""
    if not line.waits:
        return ""
    most = line.waits[0]
    behind = "" if most.number is None else f" of {numbered} {most.number}"
    return f"{most.cause}{behind}, {most.cycles / max(1, line.executions):.1f} each"


SECTION = ReportSection(_text, _data, of_time=True)

"""Progress bars on standard error, all in one style, with titles shown literally."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from castsim.isa.errors import escaped


class Words(ProgressColumn):
    """The description of a task, or one of its fields, without markup and control characters."""

    def __init__(self, field: str | None = None) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._field = field

    def render(self, task: Task) -> Text:
        """Return the words."""
        words = task.description if self._field is None else str(task.fields[self._field])
        return Text(escaped(words).replace("\n", " "))


class Rate(ProgressColumn):
    """Work per second, counted from the start of this bar."""

    def __init__(self, counted: str) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._counted = counted

    def render(self, task: Task) -> Text:
        """Return the rate in words."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {self._counted}/s")


def rate_and_time_left(counted: str) -> tuple[ProgressColumn, ...]:
    """Return columns with the finished and total work, its rate, and the remaining time."""
    return MofNCompleteColumn(), Rate(counted), TextColumn("left"), TimeRemainingColumn()


def bars(*behind: ProgressColumn) -> Progress:
    """Return bars that vanish when done; `behind` are further columns."""
    columns = (Words(), BarColumn(), *(behind or (TimeElapsedColumn(),)))
    return Progress(*columns, console=Console(stderr=True), transient=True)

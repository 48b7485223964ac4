"""The options that decide results of a program, as its text leaves them open: the assembler's version, the back end."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.execution.entry_and_target import Choice
from castsim.reports.documents import Document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented

_SHOWN = 12
"""Lines that one effect names."""


def _data(report: RunReport) -> Document:
    """Return each choice with its legal values and with what follows from it, by lines; nothing if there are none."""
    options, found = report.result.loaded.target.options, _effects(report)
    return (
        {
            "choices": [
                {
                    "option": choice.option,
                    "value": choice.value,
                    "legal": [str(value) for value in options[choice.option].legal],
                    "effect": choice.effect,
                    "lines": list(lines),
                }
                for choice, lines in found.items()
            ]
        }
        if found
        else {}
    )


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    found = _effects(report)
    if not found:
        return
    yield Text("results depend on")
    options = report.result.loaded.target.options
    for option in dict.fromkeys(choice.option for choice in found):
        own = {choice: lines for choice, lines in found.items() if choice.option == option}
        value = next(iter(own)).value
        others = ", ".join(str(each) for each in options[option].legal if str(each) != value)
        yield indented(Text(f"{option} = {value} (also {others}: --{option})"))
        for choice, lines in own.items():
            yield indented(indented(Text(f"{_places(lines)}: {choice.effect}")))


def _effects(report: RunReport) -> dict[Choice, tuple[int, ...]]:
    """Return every choice with the lines of the source where it counts, in the order of the walk."""
    found: dict[Choice, dict[int, None]] = {}
    for choice, span in report.result.loaded.executed.choices:
        found.setdefault(choice, {})[span.line] = None
    return {choice: tuple(sorted(lines)) for choice, lines in found.items()}


def _places(lines: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:_SHOWN]))
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"line{'s' if len(lines) > 1 else ''} {shown}{more}"


SECTION = ReportSection(_text, _data)

"""Windows of the view as text: its rows are those to which something happens in them."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from test_views_windows import NAMES, drawn, parsed, sample, spans

from castsim.reports.views.recording import Window
from castsim.reports.views.timeline import Timeline, pipeline_lines

ROW = re.compile(r"\[(\d+)\] ")


def letters(view: Timeline) -> tuple[dict[int, str], str]:
    """The cells of every row, of a view as wide as it needs, and what is said above."""
    length = view.end - view.start
    lines = list(pipeline_lines(view, 400 + length))
    ruler = next(line for line in lines if re.fullmatch(r" *[0-9]+", line) and len(line.strip()) == length)
    margin = len(ruler) - length
    rows = {int(found[1]): line[margin : margin + length] for line in lines if (found := ROW.match(line))}
    return rows, "\n".join(lines[: lines.index(ruler)])


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_to_which_something_happens(name: str) -> None:
    run = sample(name)
    for window in drawn(name):
        length = (window.end or 0) - window.start
        if length < 20 or length > 2000:
            continue
        rows, said = letters(run.view(window))
        wide = Window(max(0, window.start - 300), min(run.timing.total, (window.end or 0) + 300))
        around, _ = letters(run.view(wide))
        offset = window.start - wide.start
        parts = {number: cells[offset : offset + length] for number, cells in around.items()}
        acting = {number: cells for number, cells in parts.items() if re.search("[DeER]|=-", cells)}
        assert rows == acting
        # Every operation that is there all the time, and nothing but waits, is counted.
        counts = {where: int(count) for count, where in re.findall(r"(\d+) (in a queue|to retire)", said)}
        assert all(count > 0 for count in counts.values())
        waiting = Counter(
            "in a queue" if operation.end >= (window.end or 0) else "to retire"
            for operation in run.view(window).rows
            if operation.index not in rows
        )
        assert counts == waiting


def test_conversions_with_store_barriers_execute() -> None:
    """Barriers between the stores of a conversion are its own work, not a wait of the pipe."""
    run = sample("a5_f32_to_e4m3fn_padded.pto")
    conversion = next(each for each in run.timing.operations if each.pipe == "V" and each.name.startswith("f32 ->"))
    assert "store barrier" in map(str, conversion.causes)
    rows, _ = letters(run.view(Window(conversion.start, conversion.end + 1)))
    assert rows[conversion.index] == "e" * (conversion.end - conversion.start - 1) + "ER"
    events = run.document(run.view(Window(0, run.timing.total)))
    # Its control writes come before, so the instruction begins no later than it.
    assert any(begin <= conversion.start and end == conversion.end for begin, end in spans(events).values())
    _, _, found, _ = parsed(run.log(run.view(Window(0, run.timing.total))))
    assert ("0", "Ex", conversion.start, conversion.end) in found[conversion.index].stages

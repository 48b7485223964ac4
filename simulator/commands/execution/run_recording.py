"""Recording a run cycle by cycle for `castsim run`, and the files of what was recorded."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.execution.run_views import SHOWN, window_of
from castsim.engines import observe
from castsim.files import whole_file
from castsim.isa.errors import ReadError
from castsim.reports.views.perfetto import counters, kanata_lines, perfetto_text
from castsim.reports.views.recording import Recorder, Window
from castsim.reports.views.timeline import Timeline, dependences, make_timeline
from castsim.running.program_runs import launch_slices

if TYPE_CHECKING:
    from castsim.running import Result
    from castsim.timing import Listener


def recorded(options: Namespace, result: Result, listener: Listener | None) -> Timeline:
    """Return the recording of the window; `listener` receives the progress.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    loaded = result.loaded
    window = window_of(options)
    start, end = window.within(result.cycles)
    if options.window is None and options.trace is None and options.kanata is None:
        end = min(end, SHOWN)
    window = Window(start, end)
    recorder = Recorder(window, listener)
    recorder.issued = observe(loaded.tree, loaded.target, recorder, engine=options.engine)
    return make_timeline(f"{loaded.file} @{loaded.entry}", loaded.tree, result.timing, recorder, window)


def written(options: Namespace, result: Result, timeline: Timeline) -> list[str]:
    """Write the files asked for, each whole or not at all; return a sentence for each.

    Raises:
        ReadError: one cannot be written.
    """
    notes: list[str] = []
    loaded = result.loaded
    found = dependences(loaded.tree, timeline)
    target = loaded.target
    for name, text in (("trace", options.trace), ("kanata", options.kanata)):
        if text is None:
            continue
        if name == "trace":
            sizes = {each: memory.capacity_bytes for each, memory in target.memories.items()}
            amounts = counters(loaded.tree, result.timing, timeline, sizes)
            inside = launch_slices(loaded.tree, result.timing, target)
            data = perfetto_text(timeline, found, amounts, target.name, inside)
        else:
            data = (f"{line}\n" for line in kanata_lines(timeline, found))
        try:
            with whole_file(Path(text)) as file:
                for piece in data:
                    file.write(piece.encode())
        except OSError as error:
            raise ReadError(f"--{name} {text}: {error.strerror or error}") from None
        cut = "" if timeline.cut is None else ", cut there because there was too much to keep; choose a --window"
        shown = f"cycles {timeline.start} .. {timeline.end - 1}" if timeline.end > timeline.start else "no cycles"
        notes.append(f"{name}: {shown} written to {text}{cut}")
    return notes

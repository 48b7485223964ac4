"""The output arrays: formats, shapes, digests, and where they were written."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document, json_of
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented


def _data(report: RunReport) -> Document:
    return {"outputs": json_of(report.outputs)}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    if not report.outputs:
        yield Text("outputs: none computed" if report.result.loaded.arguments else "outputs: none")
        return
    for output in report.outputs:
        shape = " x ".join(map(str, output.shape))
        yield Text(f"output {output.name}: {output.format} [{shape}], sha256 {output.sha256}")
        if output.file is not None:
            yield indented(Text(f"written to {output.file}"))
    if all(output.file is None for output in report.outputs):
        yield indented(Text("not written; --out DIR writes DIR/NAME.npy"))


SECTION = ReportSection(_text, _data, options=("--out",))

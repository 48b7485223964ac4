"""The output arrays: formats, shapes, digests, and where they were written."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document, json_of
from castsim.reports.run_report import PartialOutput, RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented


def _data(report: RunReport) -> Document:
    partial = {"outputs_not_computed": json_of(report.partial)} if report.partial else {}
    undefined = {"outputs_undefined": json_of(report.undefined)} if report.undefined else {}
    printed = {"printed": list(report.result.loaded.printed)} if report.result.loaded.printed else {}
    return {"outputs": json_of(report.outputs), **partial, **undefined, **printed}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for line in report.result.loaded.printed:
        yield Text.assemble(("printed: ", "bold"), line)
    if not report.outputs and not report.partial:
        yield Text("outputs: none computed" if report.result.loaded.arguments else "outputs: none")
        return
    for output in report.outputs:
        shape = " x ".join(map(str, output.shape))
        yield Text(f"output {output.name}: {output.format} [{shape}], sha256 {output.sha256}")
        if output.file is not None:
            yield indented(Text(f"written to {output.file}"))
    if report.outputs and all(output.file is None for output in report.outputs):
        yield indented(Text("not written; --out DIR writes DIR/NAME.npy"))
    for undefined in report.undefined:
        first = ", ".join(map(str, undefined.first))
        text = f"output {undefined.name}: {undefined.elements} elements rest on bytes that nothing wrote, the first at"
        yield Text(f"{text} [{first}]", style="yellow")
        if undefined.mask_file is not None:
            yield indented(Text(f"{undefined.mask_file} marks them"))
    for partial in report.partial:
        yield from _partial(partial)


def _partial(output: PartialOutput) -> Iterator[RenderableType]:
    shape, first = " x ".join(map(str, output.shape)), ", ".join(map(str, output.first))
    text = f"output {output.name}: {output.format} [{shape}], {output.elements} of {prod(output.shape)} elements are"
    yield Text(f"{text} not computed, the first at [{first}]: they depend on opaque operations", style="bold red")
    if output.file is None:
        yield indented(Text("not written; --out DIR --partial writes it, and which elements are computed"))
    else:
        yield indented(Text(f"written to {output.file}, with 0 for these; {output.computed_file} marks them"))


SECTION = ReportSection(_text, _data, options=("--out", "--partial"))

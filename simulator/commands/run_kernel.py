"""The option of `castsim run` that reports on a whole kernel."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from simulator.running import Result
    from targets import Target

REPORTS = ("run", "kernel")
"""What `--report` takes."""


def check_report(options: Namespace, target: Target) -> None:
    """Refuse an unknown report, and the kernel's for a program without tiles.

    Raises:
        ReadError: either of these.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from targets.dataflow import DataflowTarget  # noqa: PLC0415

    if options.report not in REPORTS:
        raise ReadError(f"unknown report '{options.report}'", legal=REPORTS)
    if options.report == "kernel" and not isinstance(target, DataflowTarget):
        raise ReadError("--report kernel is about pipes and tile buffers, which assembly does not have", legal=("run",))


def kernel_entry(options: Namespace, result: Result) -> dict[str, Any]:
    """Return what the report adds to the JSON: `kernel`, or nothing if it was not asked for."""
    if options.report != "kernel":
        return {}
    from simulator.reports.kernel import kernel_document, kernel_report  # noqa: PLC0415

    return {"kernel": kernel_document(kernel_report(result))}


def kernel_sections(options: Namespace, result: Result, width: int) -> Iterator[RenderableType]:
    """Yield what the report adds to the text."""
    if options.report == "kernel":
        from simulator.reports.kernel import kernel_report  # noqa: PLC0415
        from simulator.reports.kernel_text import kernel_text  # noqa: PLC0415

        yield from kernel_text(kernel_report(result), width)

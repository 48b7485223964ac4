"""The reports that `castsim run` can add to its own."""

from __future__ import annotations

from argparse import Namespace

from castsim.isa.errors import ReadError
from castsim.reports.run import section
from castsim.reports.sections import RUN, further_reports
from castsim.targets import Target


def check_report(options: Namespace, target: Target) -> tuple[str, ...]:
    """Return the sections that the report asked for adds to that of every run.

    Raises:
        ReadError: there is no such report, or it has nothing to show of this target.
    """
    if options.report == RUN:
        return ()
    legal = (RUN, *further_reports())
    if options.report not in legal:
        raise ReadError(f"unknown report '{options.report}'", legal=legal)
    reason = section(options.report).refusal(target)
    if reason is not None:
        raise ReadError(reason, legal=(RUN,))
    return (options.report,)

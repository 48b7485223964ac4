"""The command `formats`: list the number formats: widths, limits, special values, names, targets."""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.outcome import CommandOutcome, answer
from castsim.reports.pages.answer_pages import formats_page
from castsim.reports.pairs import FormatsList, formats


def execute(options: Namespace) -> CommandOutcome:
    """List number formats.

    Raises:
        ReadError: the format does not exist.
    """
    return answer(formats_page, FormatsList.of(formats=formats(*options.names)))

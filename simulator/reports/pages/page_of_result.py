"""The page of whatever a command found."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.evidence.accuracy import Accuracy
from castsim.evidence.accuracy.cross_validation import CrossValidation
from castsim.exploration.differences.comparison import Difference
from castsim.exploration.tuning import Tuning
from castsim.planning.conformance import Matrix
from castsim.planning.lowering_answers import Answer
from castsim.reports.pages.accuracy_page import accuracy_page, cross_validation_page
from castsim.reports.pages.blocks import Page
from castsim.reports.pages.conform_page import conform_page
from castsim.reports.pages.diff_page import diff_page
from castsim.reports.pages.lower_page import lower_page
from castsim.reports.pages.tune_page import tune_page

Found = Answer | Matrix | Sequence[Accuracy] | CrossValidation | Tuning | Difference
"""What has a page, beside runs and graphs."""


def page_of(found: Found, out: str | None = None) -> Page:
    """Return the page; `out` is the file that the program of an answer was written to."""
    match found:
        case Answer():
            return lower_page(found, out)
        case Matrix():
            return conform_page(found)
        case CrossValidation():
            return cross_validation_page(found)
        case Tuning():
            return tune_page(found)
        case Difference():
            return diff_page(found)
        case _:
            return accuracy_page(found)

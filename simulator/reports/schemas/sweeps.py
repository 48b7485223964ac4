"""The document of `castsim sweep`."""

from __future__ import annotations

from typing import ClassVar

from castsim.reports.schemas.keys import Form, Keys, Sha256


class Crossing(Keys):
    """Two routes of which one is faster below, and the other from `x` on."""

    what: str
    """What both do, such as the type pair."""
    below: str
    """The route that is faster below."""
    above: str
    """The route that is faster from there on."""
    x: float
    """Elements of a cast; of programs, the value of the argument that the plots are over."""


class SweepDrawn(Form):
    """The results of a sweep, drawn."""

    NAME: ClassVar[str] = "sweep-report"

    report: str
    """The Parquet file."""
    html: str
    """The page."""
    rows: int
    """Rows of the results."""
    failed: int
    """Those that failed."""
    crossings: list[Crossing]
    """Where another of two routes becomes the faster one."""


class SweepResults(Form):
    """A finished sweep; its rows stand in the Parquet file."""

    NAME: ClassVar[str] = "sweep"

    out: str
    """The Parquet file."""
    ledger: str
    """The file that holds what is done, and from which the same command goes on."""
    rows: int
    """Rows of the results: points that are not excluded."""
    failed: int
    """Those that failed."""
    chunks: int
    """Chunks into which the points were divided."""
    resumed_chunks: int
    """Those that an earlier start had done."""
    version: str
    """The version of castsim."""
    facts_digest: Sha256
    """Digest of the facts of all targets of the sweep."""

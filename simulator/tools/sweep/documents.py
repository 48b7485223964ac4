"""The JSON documents of sweeps."""

from __future__ import annotations

from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Sha256,
)


class Crossing(Keys):
    """Two routes, the first faster below `x`, the second from `x` on."""

    what: str = says("The common part of both routes, such as the type pair.")
    below: str = says("The faster route below the crossing.")
    above: str = says("The faster route from the crossing on.")
    x: float = says("Elements of a cast; of programs, the value of the argument that the plots are over.")


class SweepDrawn(CommandDocument, name="sweep-report"):
    """The results of a sweep, drawn."""

    report: str = says("The Parquet file.")
    html: str = says("The page.")
    rows: int = says("Rows of the results.")
    failed: int = says("Number of failed rows.")
    crossings: list[Crossing] = says("Crossings at which another of two routes becomes faster.")


class SweepResults(CommandDocument, name="sweep"):
    """A finished sweep; its rows are in the Parquet file."""

    out: str = says("The Parquet file.")
    ledger: str = says("The ledger of finished work, from which the same command resumes.")
    rows: int = says("Rows of the results: points that are not excluded.")
    failed: int = says("Number of failed rows.")
    chunks: int = says("Number of chunks of points.")
    resumed_chunks: int = says("Number of chunks finished by an earlier start.")
    version: str = says("The version of castsim.")
    facts_digest: Sha256 = says("Digest of the facts of all targets of the sweep.")

"""Independent pieces of work, carried out by processes of this machine or by the workers of a Dask cluster.

A `Task` is a function and the installation whose results are wanted; `distributed` carries out its pieces, `resumed`
keeps what is done in a `Ledger` besides, so that a second start goes on. Whoever computes, the results are the same;
only their order differs, and the `Origin` that each is handed over with.
"""

from castsim.execution.distribution.distributing import (
    ALONE,
    MOST_WORKERS,
    Computed,
    Group,
    HandedTargets,
    Keeping,
    Ledger,
    LedgerLabels,
    Workers,
    about_installation,
    digest,
    distributed,
    facts_digest,
    handed_targets,
    here,
    resumed,
)
from castsim.execution.distribution.origins import Done, Installation, Origin, Origins, Task, installation, origin

__all__ = [
    "ALONE",
    "MOST_WORKERS",
    "Computed",
    "Done",
    "Group",
    "HandedTargets",
    "Installation",
    "Keeping",
    "Ledger",
    "LedgerLabels",
    "Origin",
    "Origins",
    "Task",
    "Workers",
    "about_installation",
    "digest",
    "distributed",
    "facts_digest",
    "handed_targets",
    "here",
    "installation",
    "origin",
    "resumed",
]  # fmt: skip

"""Synchronisation of programs that have none: the flags and barriers that the vendor's tool inserts.

`insert` takes a function and returns one with flags and barriers. The rules are those of PTOAS with
--enable-insert-sync (docs/reference/pto.md section 5). They depend on the text alone: no trip count, condition or
scalar takes part, so a program has the same flags whatever it is run with.
"""

from castsim.synchronisation.flags.insertion import (
    Insert,
    Note,
    Place,
    Plan,
    Synchronised,
    insert,
    insert_barriers,
    noted,
)

__all__ = [
    "BARRIERS",
    "INSERT",
    "INTERLOCK",
    "MODES",
    "PROGRAM",
    "Insert",
    "Note",
    "Place",
    "Plan",
    "Synchronised",
    "insert",
    "insert_barriers",
    "noted",
]

INSERT = "insert"
"""Mode in which programs without flags get those that the vendor's tool inserts."""

BARRIERS = "barriers"
"""Mode in which they get a barrier on all pipes before every operation, another way of the vendor's tool."""

INTERLOCK = "interlock"
"""Mode in which instructions wait for each other's bytes without any flags, as if hardware saw to it.

The engines take all bytes from the first to the last of an access.
"""

PROGRAM = "program"
"""Mode in which a program keeps what it has, also if that is barriers alone; one without any is interlocked."""

MODES = (INSERT, INTERLOCK, BARRIERS, PROGRAM)
"""What to do about programs without flags; programs with flags are taken at their word in all."""

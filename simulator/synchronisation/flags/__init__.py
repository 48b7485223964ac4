"""Synchronisation of programs that have none: the flags and barriers that the vendor's tool inserts.

`insert` takes a tree and returns one with flags and barriers; loops stay loops. The rules are those observed of PTOAS
with --enable-insert-sync (docs/reference/pto.md section 5): a flag between dependent instructions of different pipes,
in loops also from the last user of a buffer to the next trip, and a barrier on all pipes at the end. Which instructions
of the vector pipe need a barrier is a fact of the target. What the tool does beyond that is not published; the choices
made here are stated where they are made (`planning`, `events`).
"""

from castsim.synchronisation.flags.insertion import Note, Place, Synchronised, insert

__all__ = ["INTERLOCK", "MODES", "Note", "Place", "Synchronised", "insert"]

INTERLOCK = "interlock"
"""Mode in which instructions wait for each other's bytes without any flags, as if hardware saw to it.

The engines then take all bytes from the first to the last of an access; insertion looks at rows one by one.
"""

MODES = ("insert", INTERLOCK)
"""The treatment of programs without flags; programs with flags are left as they are in both."""

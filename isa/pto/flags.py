"""Flags and barriers between pipes (docs/reference/pto.md section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from castsim.isa.located import Located
from castsim.isa.pto.names import Pipe


@dataclass(frozen=True, slots=True)
class SetFlag(Located):
    """`pto.set_flag[src, dst, id]`: signals once everything issued before it on `src` has finished.

    `inserted` tells one that the text does not have; so do those of waits and barriers. `number` is the value that
    holds the id in `pto.set_flag_dyn[src, dst, %n]`, as in waits; `event` is then -1.
    """

    src: Pipe
    dst: Pipe
    event: int
    number: str | None = None
    inserted: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WaitFlag(Located):
    """`pto.wait_flag[src, dst, id]`: holds `dst` until the matching signal arrives, and consumes it."""

    src: Pipe
    dst: Pipe
    event: int
    number: str | None = None
    inserted: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Barrier(Located):
    """`pto.barrier <PIPE>`: later instructions of the pipe wait until all earlier ones retired."""

    pipe: Pipe
    inserted: bool = field(default=False, compare=False, repr=False)

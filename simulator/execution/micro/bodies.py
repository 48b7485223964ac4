"""Programs of vector instructions as published tables name them: a body, how often it runs, in how many loops."""

from __future__ import annotations

from dataclasses import dataclass

LOAD, STORE = "vlds", "vsts"


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a body: `mnemonic`, the register that it makes ('' for a store), those it reads.

    `buffer` names the memory of a load or store.
    """

    mnemonic: str
    result: str
    sources: tuple[str, ...]
    buffer: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """`loops` loops after each other, a barrier `between` them ('' for none), of `trips` executions of `steps`.

    The compiler has put `unroll` executions into a trip of the hardware's loop; their instructions alternate. Lanes
    have `width` bits.
    """

    loops: int
    trips: int
    unroll: int
    steps: tuple[Step, ...]
    width: int = 32
    between: str = ""

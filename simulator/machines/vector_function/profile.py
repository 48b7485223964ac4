"""What an engine needs to know of a loop nest: counts and the chain of a trip, no values.

Source of what matters: docs/reference/a5.md section 6.2 (rules 1 to 9 of the published cycles).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from castsim.machines.vector_function.operations import (
    Bitwise,
    Compute,
    Convert,
    CountDown,
    Gather,
    Interleave,
    Load,
    MemoryBarrier,
    Nest,
    RegisterOperation,
    SetAll,
    Spread,
    Store,
    TripSelect,
    VectorFunction,
)
from castsim.targets.register_text import Mode, distribution_of


@dataclass(frozen=True, slots=True)
class NestProfile:
    """One loop nest as an engine sees it.

    `rows` x `trips` executions of the trip; `row_loop` says whether the row loop exists at all. `chain` are the
    mnemonics on the longest path from a load to a store, `issued` all mnemonics of a trip with their number, without
    predicates that do not change from row to row (2D with one inner trip). `barrier`: a barrier between stores stands
    before each store. `branch`: the trip holds a scalar select that does not fold away. `unpacks`: the load unpacks.
    `half_bytes`: an address counts half bytes (4-bit tiles). `source_bytes` is what a row reads, tails included.
    """

    rows: int
    trips: int
    row_loop: bool
    loads: int
    stores: int
    chain: tuple[str, ...]
    issued: Mapping[str, int]
    barrier: bool
    branch: bool
    unpacks: bool
    half_bytes: bool
    source_bytes: int


def profile(function: VectorFunction, nest: Nest) -> NestProfile:
    """Return the profile of one nest of a function (of `nests` or of `timed`)."""
    loads = [operation for operation in nest.trip if isinstance(operation, Load)]
    invariant = nest.row_loop and nest.trips == 1
    source_bits = nest.source_trip * 8 // nest.elements
    return NestProfile(
        rows=nest.rows,
        trips=nest.trips,
        row_loop=nest.row_loop,
        loads=len(loads),
        stores=sum(isinstance(operation, Store) for operation in nest.trip),
        chain=_longest_chain(nest.trip),
        issued=_issued(nest.trip, without_predicates=invariant),
        barrier=any(isinstance(operation, MemoryBarrier) for operation in nest.trip),
        branch=nest.trips > 1 and any(isinstance(operation, TripSelect) for operation in nest.trip),
        unpacks=any(distribution_of(operation.distribution).mode is Mode.UNPK for operation in loads),
        half_bytes=4 in (function.source_format.bits, function.destination_format.bits),
        source_bytes=-(-nest.count * source_bits // 8),
    )


def mnemonic(operation: RegisterOperation) -> str:
    """Return the instruction's name without widths and modes."""
    match operation:
        case Bitwise() | Compute():
            return operation.mnemonic
        case Convert():
            return "vtrc" if operation.integral else "vcvt"
        case _:
            return _MNEMONICS[type(operation).__name__]


_MNEMONICS = {
    "Load": "vlds",
    "Store": "vsts",
    "Duplicate": "vdup",
    "Ascend": "vci",
    "Multiply": "vmuls",
    "Interleave": "vintlv",
    "Gather": "vselr",
    "SetAll": "pset",
    "CountDown": "plt",
    "Spread": "punpack",
    "TripSelect": "select",
    "MemoryBarrier": "mem_bar",
}


def _issued(trip: tuple[RegisterOperation, ...], *, without_predicates: bool) -> Mapping[str, int]:
    hoisted = (CountDown, SetAll, Spread, TripSelect)
    return Counter(mnemonic(item) for item in trip if not (without_predicates and isinstance(item, hoisted)))


def _longest_chain(trip: tuple[RegisterOperation, ...]) -> tuple[str, ...]:
    """Follow registers from the loads; predicates and constants are ready before."""
    reached: dict[str, tuple[str, ...]] = {}
    longest: tuple[str, ...] = ()
    for operation in trip:
        match operation:
            case Load():
                reached.update(dict.fromkeys(operation.results, ()))
            case Store():
                longest = max(longest, reached.get(operation.source, ()), key=len)
            case Convert(result, source) | Gather(result, source):
                if source in reached:
                    reached[result] = (*reached[source], mnemonic(operation))
            case Compute(_, results, sources, _):
                paths = [reached[name] for name in sources if name in reached]
                if paths:
                    reached.update(dict.fromkeys(results, (*max(paths, key=len), mnemonic(operation))))
            case Bitwise(_, result, sources):
                paths = [reached[name] for name in sources if name in reached]
                if paths:
                    reached[result] = (*max(paths, key=len), mnemonic(operation))
            case Interleave(results, sources):
                paths = [reached[name] for name in sources if name in reached]
                if paths:
                    reached.update(dict.fromkeys(results, (*max(paths, key=len), mnemonic(operation))))
            case _:
                pass
    return longest

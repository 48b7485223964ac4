"""What transfers take, and how many cores share the memory that they come from and go to.

Facts: docs/reference/a2a3.md section 6.3, docs/reference/a5.md section 8.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, TypeVar

from pydantic import Field, model_validator

from castsim.isa.errors import IllegalError, ReadError
from castsim.targets.schema import Count, Cycles, Fact, Table, TargetHeader
from castsim.targets.what_if import with_facts

Rate = Annotated[Decimal, Field(gt=0, decimal_places=2)]

_Target = TypeVar("_Target", bound=TargetHeader)


class TransferTiming(Fact):
    """One direction of transfers: `startup_cycles` per transfer instruction, then `bytes_per_cycle`.

    The bytes of one instruction take at least `descriptor_cycles`. Rows that do not lie one behind the other move in
    whole transactions of `transaction_bytes`; shorter ones at half the rate (None: like adjacent rows). If `overlaps`,
    successive instructions wait for memory together, and only their bytes follow each other.

    Where n cores work, a transfer ends no earlier than one of `shared_startup_cycles` (None: the same) and an nth of
    `shared_bytes_per_cycle` would; None: what they share is no limit.
    """

    startup_cycles: Cycles
    bytes_per_cycle: Rate
    descriptor_cycles: Annotated[Cycles, Field(repr=False)] = 0
    transaction_bytes: Annotated[Count | None, Field(repr=False)] = None
    overlaps: Annotated[bool, Field(repr=False)] = False
    shared_startup_cycles: Annotated[Cycles | None, Field(repr=False)] = None
    shared_bytes_per_cycle: Annotated[Rate | None, Field(repr=False)] = None

    @model_validator(mode="after")
    def _startup_is_one(self) -> TransferTiming:
        if self.overlaps and self.shared_startup_cycles is not None:
            raise ValueError("transfers that overlap have one start-up, so no shared_startup_cycles")
        return self


class TransferPair(Table):
    """Both directions."""

    load: TransferTiming
    store: TransferTiming


class Cores(Fact):
    """The vector cores of a chip, of which `at_work` transfer at once."""

    count: Count
    at_work: Annotated[Count, Field(repr=False)] = 1

    @model_validator(mode="after")
    def _are_there(self) -> Cores:
        if self.at_work > self.count:
            raise ValueError(f"at_work {self.at_work} exceeds count {self.count}")
        return self


class KernelLaunch(Fact):
    """What a whole kernel takes beyond its pipes: launch and end."""

    cycles: Cycles


def with_cores(target: _Target, cores: int | str) -> _Target:
    """Return the target with so many of its cores at work; a number may come as text.

    Raises:
        ReadError: not a whole number from 1 on, or more than the chip has.
        IllegalError: nothing is known of what the target's cores share.
    """
    held = getattr(target, "cores", None)
    if held is None:
        raise IllegalError(f"nothing is known of what the cores of {target.name} share", legal=("no --cores",))
    text = str(cores)
    legal = (f"1 to {held.count}",)
    if isinstance(cores, bool) or not (text.isascii() and text.isdigit() and text.strip("0") and len(text) < 10):
        raise ReadError(f"'{cores}' is not a number of cores", legal=legal)
    if int(text) > held.count:
        raise ReadError(f"{target.name} has {held.count} cores, not {int(text)}", legal=legal)
    return with_facts(target, {"cores.at_work": int(text)})

"""Changing the options of a target, and noting which of them a run reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from castsim.isa.errors import IllegalError, ReadError, TargetDataError
from castsim.targets.description import Count, Cycles, Fact, Option, Table, TargetHeader

# Editing single facts of a loaded description, and the limits that a description names for lifting.
#
# A limit is lifted by editing facts, so a run with it lifted is a run on a description with those facts edited, and
# nothing else.

ANY = "*"
"""In a path: every key of a table."""

_Target = TypeVar("_Target", bound=TargetHeader)


def limits_of(target: TargetHeader) -> Mapping[str, str]:
    """Return the limits that a target names for lifting, and what each is, in the order of the description."""
    return {name: limit.title for name, limit in target.what_if.items()}


def lifted(target: _Target, name: str) -> _Target:
    """Return the target with one limit lifted.

    Raises:
        ReadError: the target names no such limit; those that it names are listed.
        TargetDataError: the description would set a fact to what it cannot be.
    """
    if name not in target.what_if:
        raise ReadError(f"{target.name} knows no what-if '{name}'", legal=target.what_if)
    return with_facts(target, target.what_if[name].set)


def with_facts(target: _Target, facts: Mapping[str, object]) -> _Target:
    """Return the target with facts edited; `timing.vector.*.tail_cycles` names one in every row of a table.

    Raises:
        TargetDataError: no such fact, or a value that it cannot have.
    """
    for path, value in facts.items():
        try:
            target = _edited(target, path.split("."), value)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise TargetDataError(f"{target.name}: {path} cannot be {value}: {reason}") from None
        except (AttributeError, KeyError):
            raise TargetDataError(f"{target.name} has no fact '{path}'") from None
    return target


def with_values(target: _Target, facts: Mapping[str, Decimal | int]) -> _Target:
    """Return the target with numbers edited, each of a kind that its fact can have: nothing is checked again."""
    for path, value in facts.items():
        target = _replaced(target, path.split("."), value)
    return target


def _replaced(held: Any, path: Sequence[str], value: Decimal | int) -> Any:
    if not path:
        return value
    name, *rest = path
    if isinstance(held, BaseModel):
        return held.model_copy(update={name: _replaced(getattr(held, name), rest, value)})
    return {**held, name: _replaced(held[name], rest, value)}


def _edited(held: Any, path: Sequence[str], value: object) -> Any:
    """Return a table, or what a table holds, with the fact at `path` below it edited.

    Raises:
        AttributeError, KeyError: there is none.
        pydantic.ValidationError: a value that the fact cannot have.
    """
    if not path:
        return Decimal(value) if isinstance(held, Decimal) and isinstance(value, int) else value
    name, *rest = path
    if isinstance(held, BaseModel):
        changed = _edited(getattr(held, name), rest, value)
        return type(held).model_validate({**_fields(held), name: changed})
    if not isinstance(held, Mapping):
        raise KeyError(name)
    names = list(held) if name == ANY else [name]
    return {**held, **{each: _edited(held[each], rest, value) for each in names}}


def _fields(table: BaseModel) -> dict[str, Any]:
    return {name: getattr(table, name) for name in type(table).model_fields}


# What transfers take, and how many cores share the memory that they come from and go to.
#
# Facts: docs/reference/a2a3.md section 6.3, docs/reference/a5.md section 8.

Rate = Annotated[Decimal, Field(gt=0, decimal_places=2)]


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
    """What a whole kernel takes beyond its pipes: launch and end.

    `cycles_of` is that of kernels with operations of a kind, written with underscores.
    """

    cycles: Cycles
    cycles_of: dict[str, Cycles] = Field(default_factory=dict)

    def of(self, kinds: Iterable[str]) -> int:
        """Return the cycles of a kernel with operations of such kinds."""
        known = (self.cycles_of.get(kind.replace(" ", "_")) for kind in kinds)
        return int(max((cycles for cycles in known if cycles is not None), default=self.cycles))


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


CORES = "cores"
"""The name by which the number of cores at work is set among options."""


def with_options(target: _Target, values: Mapping[str, int | str]) -> _Target:
    """Return the target with other values for some of its options; the target itself stays as it is.

    A number may come as text. `cores` says how many cores work at once, as an option would (`with_cores`).

    Raises:
        ReadError: no such option, or a value that it cannot have; the legal ones are listed.
        IllegalError: cores, and nothing is known of those of the target.
    """
    if CORES in values:
        target = with_cores(target, values[CORES])
    options = target.options.copy()
    for name, value in values.items():
        if name == CORES:
            continue
        if name not in options:
            raise ReadError(f"{target.name} has no option '{name}'", legal=options)
        options[name] = _set(name, options[name], value)
    return target.model_copy(update={"options": options})


def _set(name: str, option: Option, value: int | str) -> Option:
    found = next((legal for legal in option.legal if str(legal) == str(value)), None)
    if found is None:
        raise ReadError(f"option {name} cannot be '{value}'", legal=map(str, option.legal))
    return option.model_copy(update={"value": found})


class _Watched(dict[str, Option]):
    """The options of a target; `read` collects the names of those that are looked up."""

    def __init__(self, options: Mapping[str, Option], read: set[str]) -> None:
        super().__init__(options)
        self.read = read

    def copy(self) -> _Watched:
        """Return a copy that goes on noting."""
        return _Watched(self, self.read)

    def __getitem__(self, name: str) -> Option:
        self.read.add(name)
        return super().__getitem__(name)


def unwatched(target: _Target) -> _Target:
    """Return a copy of the target whose options are looked up without anybody's notice."""
    return target.model_copy(update={"options": dict(target.options)})


def watched(target: _Target, read: set[str]) -> _Target:
    """Return a copy of the target that adds to `read` the name of every option that is looked up."""
    return target.model_copy(update={"options": _Watched(target.options, read)})

"""The names of a program and where what they name lies, operation by operation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Format
from castsim.machines.vector_function.lanes import Mask
from castsim.machines.vector_function.lanes import Register as VectorRegister
from castsim.running.stepping.journal import Bytes
from castsim.running.stepping.places import UNKNOWN, Place, dense, packed_bits

REGISTER = "register"
"""The memory that the bytes of a register stand in while it is looked at."""


class Shown(NamedTuple):
    """One element: its place, which is an index, its code and format; `known` is False for one that is not computed."""

    place: tuple[int, ...]
    code: int
    format: Format
    known: bool = True


class Named(NamedTuple):
    """A name of a program: `kind` is `tile`, `tensor`, `register`, `pointer` or `memory`."""

    name: str
    kind: str
    format: str
    shape: tuple[int, ...]


@dataclass(slots=True)
class Symbols:
    """Places by name: `fixed` ones, those that operations `mention`, each from some step on, and registers.

    `formats` has the formats of registers. Where a tile lies is what the last operation so far to name it said, before
    the first of them what that will say.
    """

    fixed: dict[str, Place] = field(default_factory=dict)
    raw: dict[str, Place] = field(default_factory=dict)
    """Whole memories as bytes."""
    formats: dict[str, Format] = field(default_factory=dict)
    _steps: dict[str, list[int]] = field(default_factory=dict)
    _places: dict[str, list[Place]] = field(default_factory=dict)
    _kinds: dict[str, str] = field(default_factory=dict)

    def mention(self, name: str, kind: str, step: int, place: Place) -> None:
        """Note that an operation names something that lies at a place."""
        places = self._places.setdefault(name, [])
        if not places or places[-1] != place:
            places.append(place)
            self._steps.setdefault(name, []).append(step)
            self._kinds[name] = kind

    def at(self, name: str, step: int) -> Place | None:
        """Return the place of what is no register when a step is about to be executed, None if there is none."""
        if name in self._places:
            return self._places[name][max(0, bisect_right(self._steps[name], step) - 1)]
        return self.fixed.get(name) or (self.raw.get(name) if name not in self.formats else None)

    def all(self, step: int, registers: Mapping[str, object]) -> Iterator[Named]:
        """Yield everything that has a name, tensors first."""
        for name, place in self.fixed.items():
            if name not in self._places:
                yield Named(name, "tensor", place.format.name, place.shape)
        for name in self._places:
            place = self._places[name][max(0, bisect_right(self._steps[name], step) - 1)]
            yield Named(name, self._kinds[name], place.format.name, place.shape)
        for name, fmt in self.formats.items():
            if registers.get(name) is not None:
                found = _register(registers[name], fmt)
                yield Named(name, "register", found[0].format.name, found[0].shape)
        for name, place in self.raw.items():
            yield Named(name, "memory", place.format.name, place.shape)

    def names(self) -> list[str]:
        """Return all names."""
        return list(dict.fromkeys((*self.fixed, *self._places, *self.formats, *self.raw)))


@dataclass(frozen=True, slots=True)
class Selection:
    """Some elements of what has a name: `index` may be shorter than there are dimensions, `format` None for its own."""

    name: str
    index: tuple[slice | int, ...] = ()
    format: Format | None = None


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements that a selection stands for at some step: where they are, and in which memories."""

    place: Place
    whole: Place
    index: tuple[slice | int, ...]
    memories: Mapping[str, Bytes]

    def codes(self) -> NDArray[np.unsignedinteger]:
        """Return their codes, flat."""
        return self.place.codes(self.memories)

    def known(self) -> NDArray[np.bool_]:
        """Return which of them are computed, flat."""
        marks = f"{UNKNOWN}{self.place.space}"
        if marks not in self.memories:
            return np.ones(self.place.size, np.bool_)
        known: NDArray[np.bool_] = replace(self.place, space=marks).codes(self.memories) == 0
        return known

    def shown(self) -> Iterator[Shown]:
        """Yield them with their indices."""
        _, indices = self.whole.part(self.index)
        for index, code, known in zip(indices, self.codes(), self.known(), strict=True):
            yield Shown(index, int(code) & ((1 << self.place.format.bits) - 1), self.place.format, bool(known))


def selected(
    selection: Selection,
    symbols: Symbols,
    step: int,
    memories: Mapping[str, Bytes],
    registers: Mapping[str, object],
) -> Elements:
    """Return the elements that a selection stands for when a step is about to be executed.

    Raises:
        ReadError: nothing has the name, or no value yet; an index or a format that it cannot have.
    """
    name = selection.name
    whole = symbols.at(name, step)
    if whole is None:
        held = registers.get(name)
        if name not in symbols.formats:
            raise ReadError(f"nothing is called '{name}'", legal=symbols.names())
        if held is None:
            raise ReadError(f"register '{name}' has no value yet")
        whole, data = _register(held, symbols.formats[name])
        memories = {REGISTER: data}
    if selection.format is not None:
        whole = whole.read_as(selection.format)
    if len(selection.index) > len(whole.shape):
        raise ReadError(f"'{name}' has {len(whole.shape)} dimensions, not {len(selection.index)}", legal=_legal(whole))
    try:
        taken = tuple(range(size)[each] for each, size in zip(selection.index, whole.shape, strict=False))
    except IndexError:
        raise ReadError(f"'{name}' has no such element", legal=_legal(whole)) from None
    sizes = [len(each) if isinstance(each, range) else 1 for each in taken] + list(whole.shape[len(taken) :])
    check_size(name, sizes)
    place, _ = whole.part(selection.index) if 0 not in sizes else (replace(whole, shape=tuple(sizes)), [])
    return Elements(place, whole, selection.index, memories)


MOST_SHOWN = 1 << 16
"""Elements that are looked at in one go."""


def check_size(name: str, sizes: Sequence[int]) -> None:
    """Refuse more elements than anybody reads.

    Raises:
        ReadError: as said.
    """
    count = int(np.prod(sizes, dtype=object)) if len(sizes) else 1
    if count > MOST_SHOWN:
        raise ReadError(f"{count} elements of '{name}' are too many to look at", legal=(f"up to {MOST_SHOWN}",))


def _legal(place: Place) -> tuple[str, ...]:
    return tuple(f"0 .. {extent - 1}" for extent in place.shape) or ("no index",)


def _register(held: object, fmt: Format) -> tuple[Place, Bytes]:
    """Return the elements of a register, and its bytes."""
    boolean = FORMATS["bool"]
    if isinstance(held, VectorRegister):
        held = held.data
    if isinstance(held, Mask):
        lanes = held.lanes(packed_bits(fmt))
        return dense(REGISTER, 0, lanes.shape, boolean), np.ascontiguousarray(lanes).view(np.uint8)
    if isinstance(held, np.ndarray):
        if held.dtype == np.bool_:
            return dense(REGISTER, 0, held.shape, boolean), held.view(np.uint8)
        data: Bytes = np.ascontiguousarray(held).view(np.uint8)
        return dense(REGISTER, 0, (data.size * 8 // packed_bits(fmt),), fmt), data
    numbers = held if isinstance(held, tuple) else (held,)
    size = packed_bits(fmt) // 8
    mask = (1 << packed_bits(fmt)) - 1
    data = np.frombuffer(b"".join((int(each) & mask).to_bytes(size, "little") for each in numbers), np.uint8)
    return dense(REGISTER, 0, (len(numbers),) if isinstance(held, tuple) else (), fmt), data

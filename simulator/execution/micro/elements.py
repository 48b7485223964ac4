"""Single elements of memory that the scalar unit of a micro program reads and writes.

Source: docs/reference/micro.md section 1.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from castsim.execution.micro.memory import MicroMemory
from castsim.execution.micro.pointers import Pointer
from castsim.isa.errors import Span, TileError


@dataclass(slots=True)
class Elements:
    """What one walk reads, as codes in program order.

    A walk without values takes those that an earlier walk found (`known`), and 0 beyond them. `arguments` are those
    that were read, each with the first place that did.
    """

    known: Sequence[int] = ()
    read: list[int] = field(default_factory=list)
    arguments: dict[str, Span] = field(default_factory=dict)

    def load(self, place: Pointer, span: Span, memory: MicroMemory | None) -> int:
        """Return the code of an element."""
        if place.argument is not None:
            self.arguments.setdefault(place.argument, span)
        if memory is not None:
            held = memory.buffer if place.argument is None else memory.arguments[place.argument]
            code = int.from_bytes(held[_bytes(place, held.size)].tobytes(), "little")
        else:
            number = len(self.read)
            code = self.known[number] if number < len(self.known) else 0
        self.read.append(code)
        return code


def store(place: Pointer, code: bytes, memory: MicroMemory) -> None:
    """Write the code of an element, whose bytes are defined from then on."""
    held = memory.buffer if place.argument is None else memory.arguments[place.argument]
    reached = _bytes(place, held.size)
    held[reached] = list(code)
    if place.argument is None:
        memory.defined[reached] = True
    else:
        memory.marks(place.argument)[reached] = False
        memory.stores(place.argument)[reached] = True


def check_place(place: Pointer, capacity: int) -> None:
    """Refuse an element in front of its argument, or outside the buffer.

    Raises:
        TileError: it is.
    """
    end = place.address + place.size
    if place.argument is None and not 0 <= place.address <= capacity - place.size:
        raise TileError(f"bytes {place.address} .. {end - 1} lie outside the buffer, which has {capacity}")
    if place.address < 0:
        raise TileError(f"an element {-place.address} bytes before %{place.argument}")


def _bytes(place: Pointer, size: int) -> slice:
    end = place.address + place.size
    if not 0 <= place.address < end <= size:
        raise TileError(f"an element reaches bytes {place.address} .. {end - 1} of {size}")
    return slice(place.address, end)

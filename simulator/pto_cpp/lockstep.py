"""Values while a kernel runs: what it reads of tiles and of global memory is what castsim computes up to there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from castsim.execution.inputs import empty_memory
from castsim.execution.interpreter import execute
from castsim.execution.interpreter.lowerer import Lowerer
from castsim.isa import pto
from castsim.isa.errors import ReadError, TileError
from castsim.isa.pto.packed import element_format
from castsim.machines.mechanisms import compute_of
from castsim.pto_cpp.program_making import Maker, SentTile
from castsim.targets import TileTarget

PAGE = 4096
"""Bytes of global memory that are asked for at once; as in the header."""


@dataclass(slots=True)
class Lockstep:
    """The buffer and global memory as far as the kernel has come.

    `given` are the bytes of the inputs by position; `asked` tells whether the kernel has read anything of them.
    """

    target: TileTarget
    lowerer: Lowerer
    maker: Callable[[], Maker]
    given: Mapping[int, NDArray[np.uint8]]
    pending: list[str] = field(default_factory=list)
    asked: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    _buffer: NDArray[np.uint8] | None = None
    _memory: dict[str, NDArray[np.uint8]] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Take in what the kernel has done."""
        self.pending.append(line)
        kind, _, *rest = line.split(" ")
        if kind == "o" and rest[0] == "tstore":
            self.stored.add(int(rest[1].split(",")[1]))
        elif kind == "w":
            self.stored.add(int(rest[0]))

    def answer(self, line: str) -> bytes:
        """Return what a question is answered with: `y` and bytes, or `n` where nothing is known.

        Raises:
            ReadError: an element that no input gives. CastsimError: what the kernel does up to there is refused.
        """
        kind, place, *rest = line.split(" ")
        return self._element(place, *rest) if kind == "q" else self._page(place, *rest)

    def _element(self, place: str, tile: str, number: str) -> bytes:
        sent = SentTile.of(tile)
        self._advance()
        fmt = element_format(sent.type.element)
        size = fmt.storage_bits // 8
        start = sent.address + int(number) * size
        buffer = self._bytes_of_buffer()
        if sent.address < 0 or not 0 <= start <= buffer.size - size:
            raise TileError(
                f"GetValue({number}): byte {start} of a buffer of {buffer.size}", span=self.maker().span_of(place)
            )
        return b"y" + buffer[start : start + size].tobytes().ljust(8, b"\0")

    def _page(self, place: str, buffer: str, start: str, offset: str, way: str) -> bytes:
        position, first = int(buffer), int(start)
        maker = self.maker()
        name = maker.names[position]
        if position not in self.given and position not in self.stored:
            if way == "w":
                return b"n"
            fmt = maker.elements.get(position)
            size = 1 if fmt is None else element_format(fmt).storage_bits // 8
            unit = "byte" if fmt is None else "element"
            raise ReadError(
                f"the kernel reads {unit} {int(offset) // size} of {name}: no input given",
                span=maker.span_of(place), legal=(f"--in {name}=FILE.npy",)
            )  # fmt: skip
        self.asked.add(position)
        if position in self.stored:
            self._advance()
        held = self._memory.get(name)
        if held is None:
            held = self.given[position]
        if way == "r" and not 0 <= int(offset) < held.size:
            raise TileError(
                f"reads byte {offset} of {name}, which has {held.size}: outside the tensor",
                span=maker.span_of(place), legal=(f"--in {name}=FILE.npy of more elements",)
            )  # fmt: skip
        page = np.zeros(PAGE, np.uint8)
        part = held[max(first, 0) : max(first + PAGE, 0)]
        page[max(-first, 0) : max(-first, 0) + part.size] = part
        return b"y" + page.tobytes()

    def _advance(self) -> None:
        """Compute what is pending."""
        maker = self.maker()
        for line in self.pending:
            if line[0] not in "qp":
                maker.take(line)
        self.pending.clear()
        used = sorted(maker.elements)
        function = maker.function("kernel", used)
        executed = execute(pto.Program((function,)), function, self.lowerer, {})
        for name, use in executed.arguments.items():
            position = maker.names.index(name)
            held = self._memory.get(name, self.given.get(position, np.zeros(0, np.uint8)))
            room = empty_memory(use)
            if held.size < room.size or name not in self._memory:
                room = np.zeros(max(room.size, held.size), np.uint8)
                room[: held.size] = held
                self._memory[name] = room
        compute_of(self.target)(executed.tree, self._bytes_of_buffer(), self._memory)

    def _bytes_of_buffer(self) -> NDArray[np.uint8]:
        if self._buffer is None:
            self._buffer = np.zeros(self.target.memories["ub"].capacity_bytes, np.uint8)
        return self._buffer

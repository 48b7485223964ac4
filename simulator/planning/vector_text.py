"""Chains as assembly of the vector unit, elements in linear order.

All steps work on lane 0 of slots as wide as the widest format of the chain: UNPACK and moves of dual groups bring the
elements there, PACK brings them back. Formats of 4 bits exist at the ends only, in registers whose two halves of the
elements interleave; then the order of the output is that of `Assembly.order`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.errors import IllegalError
from isa.formats import FORMATS, Format
from simulator.compiled_casts.lanes import gather, spread
from simulator.emission import Sequence, Value, schedule
from simulator.planning.assembly import Assembly, machine_formats
from simulator.planning.steps import Chain, Step, VectorForm
from targets.vliw import VliwTarget

Order = NDArray[Any]

_NIBBLE, _BYTE = 4, 8


def vector_assembly(chain: Chain, src: Format, dst: Format, target: VliwTarget, elements: int) -> Assembly:
    """Return the program of a chain for at least `elements` elements.

    Raises:
        IllegalError: a 4-bit format within the chain.
    """
    first, last = machine_formats(chain, src, dst, target)
    steps = tuple(step for step in chain if step.is_instruction)
    emitter = _Emitter(target, first, last, steps)
    kernel = schedule(emitter.sequence(), target)
    size = kernel.ports[0].elements
    tiles = -(-elements // size)
    text = kernel.text(tiles)
    shown = " -> ".join([src.name, *(step.dst.name for step in chain)]) if chain else f"{src.name}, copied"
    remark = "" if emitter.linear else "; elements of the output in another order, see the chain's 4-bit conversion"
    order = None if emitter.linear else np.concatenate([emitter.order + tile * size for tile in range(tiles)])
    return Assembly(
        target=target,
        text=f"// {shown}{remark}\n{text}",
        suffix=".tpc",
        elements=size * tiles,
        source=first,
        destination=last,
        order=order,
        scratch_bytes=0,
        buffer_bytes=0,
        registers=_registers(text),
    )


@dataclass
class _Emitter:
    """Writes the sequence of a chain; `order` is that of the output's elements after `sequence`."""

    target: VliwTarget
    first: Format
    last: Format
    steps: tuple[Step, ...]
    order: Order = field(default_factory=lambda: np.zeros(0, np.intp))

    @property
    def linear(self) -> bool:
        """Whether every element keeps its place."""
        return bool((self.order == np.arange(self.order.size)).all())

    def sequence(self) -> Sequence:
        """Return the instructions, input and output named `src` and `dst`."""
        sequence = Sequence()
        widths = self._slot_widths()
        slot = max(widths, default=_BYTE)
        wide = 2 if self.first.bits == _NIBBLE else 1
        narrow = 2 if self.last.bits == _NIBBLE else 1
        start, end = widths[0] if widths else slot, widths[-1] if widths else slot
        outgoing, incoming = slot // start, slot // end
        count = max(1, incoming * narrow // (outgoing * wide))
        held = list(sequence.input("src", self.first.name, count))
        lanes = self.target.registers.vector_bytes * 8
        orders = [np.arange(lanes // self.first.bits) + k * (lanes // self.first.bits) for k in range(count)]
        steps = list(self.steps)
        if wide == 2 and steps:
            held, orders = self._from_nibbles(sequence, steps.pop(0), held, orders)
        closing = steps.pop() if narrow == 2 and steps else None
        held = [part for value in held for part in spread(sequence, value, start, outgoing, self.target)]
        orders = [part for order in orders for part in np.split(order, outgoing)]
        for step in steps:
            held = [issue_step(sequence, step, value, self.target) for value in held]
        groups = [held[at : at + incoming] for at in range(0, len(held), incoming)]
        held = [gather(sequence, group, end, self.target) for group in groups]
        orders = [np.concatenate(orders[at : at + incoming]) for at in range(0, len(orders), incoming)]
        if closing is not None:
            held, orders = self._to_nibbles(sequence, closing, held, orders)
        self.order = np.concatenate(orders)
        sequence.output("dst", self.last.name, *held)
        return sequence

    def _slot_widths(self) -> list[int]:
        """Return the widths of all formats in slots: 4-bit ones at the ends stand as bytes.

        Raises:
            IllegalError: a 4-bit format elsewhere.
        """
        bits = [step.src.bits for step in self.steps] + [self.last.bits]
        if not self.steps:
            bits = [max(self.first.bits, _BYTE)]
        if any(width < _BYTE for width in bits[1:-1]):
            raise IllegalError(f"{self.target.name}: a chain through 4-bit registers has no program here")
        return [max(width, _BYTE) for width in bits]

    def _from_nibbles(
        self, sequence: Sequence, step: Step, held: list[Value], orders: list[Order]
    ) -> tuple[list[Value], list[Order]]:
        """Turn registers of nibbles into two of bytes each, even elements before odd ones."""
        found: list[Value] = []
        for value in held:
            pair = sequence.vector(2)
            sequence.vpu(_head(_form(step), all_lanes=True), pair, value)
            found += pair.parts
        return found, [part for order in orders for part in (order[0::2], order[1::2])]

    def _to_nibbles(
        self, sequence: Sequence, step: Step, held: list[Value], orders: list[Order]
    ) -> tuple[list[Value], list[Order]]:
        """Turn two registers of bytes into one of nibbles, their elements in turn."""
        found, kept = [], []
        form = _form(step)
        for at in range(0, len(held), 2):
            pair, result = sequence.vector(2), sequence.vector()
            for part, value in zip(pair.parts, held[at : at + 2], strict=True):
                sequence.vpu("or.i8", part, value, value)
            sequence.vpu(_head(form, all_lanes=True), result, pair, *_operands(sequence, form, pair))
            found.append(result)
            kept.append(np.stack(orders[at : at + 2], axis=1).reshape(-1))
        return found, kept


def issue_step(sequence: Sequence, step: Step, value: Value, target: VliwTarget) -> Value:
    """Append a step on elements in lane 0 of their slots; return its result.

    Raises:
        IllegalError: a conversion that fills all lanes of a register from several others.
    """
    form = _form(step)
    if step.src.bits < step.dst.bits and form.lane_sel_max is None:
        ratio = step.dst.bits // step.src.bits
        group = sequence.vector(ratio)  # lane 0 of every slot goes to the first register
        sequence.vpu(_head(form, all_lanes=True), group, value)
        return group[0]
    if step.src.bits > step.dst.bits and form.lane_sel_max is None:
        raise IllegalError(f"{target.name}: {step.name} needs all lanes of several registers")
    result = sequence.vector()
    sequence.vpu(_head(form), result, value, *_operands(sequence, form, value))
    return result


def _head(form: VectorForm, *, all_lanes: bool = False) -> str:
    words = [form.mnemonic, *form.switches]
    if all_lanes and form.lanes_chosen:
        words.append("all_lanes")
    if form.rounding is not None:
        words.append(form.rounding)
    return " ".join(words)


def _form(step: Step) -> VectorForm:
    form = step.forms[0]
    assert isinstance(form, VectorForm)
    return form


def _operands(sequence: Sequence, form: VectorForm, value: Value) -> list[Value | int]:
    """Return the operands behind the first source; `@` stands for it, `=CODE` for a vector of that code."""
    element = form.mnemonic.rpartition(".")[2]
    found: list[Value | int] = []
    for text in form.operands:
        if text.startswith("="):
            found.append(sequence.broadcast(int(text[1:], 16), f"i{FORMATS[element].bits}"))
        else:
            found.append(value if text == "@" else int(text, 16))
    return found


def _registers(text: str) -> int:
    """Return how many vector registers a program names."""
    sizes = {"V": 1, "D": 2, "A": 4}
    named = re.findall(r"\b([VDA])(\d+)\b", text)
    return len({int(index) + k for file, index in named for k in range(sizes[file])})

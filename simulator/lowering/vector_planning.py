"""Builtins of a vector unit as steps, and chains of its instructions as assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format, format_named
from castsim.lowering.catalogue import Assembly, Catalogue, Steps, arithmetic_of, by_source, casts_of, machine_formats
from castsim.lowering.steps import (
    BuiltinForm,
    Chain,
    ConstantArithmetic,
    Constants,
    LoweringStep,
    VectorForm,
    digest_of_facts,
)
from castsim.lowering.vector_steps import vector_arithmetic, vector_casts
from castsim.numerics import code_dtype, codes_from_array
from castsim.targets.tpc_compiler import Recipe, builtins_of
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtin_sequences import gather, read_signature, spread, widened_half
from castsim.tpc_compiler.code_generation import Sequence, SequenceRegister, schedule


def builtin_casts(target: VliwTarget) -> Iterator[LoweringStep]:
    """Yield the builtins whose sources are narrow codes in wide lanes."""
    for row in builtins_of(target):
        if row.recipe is not Recipe.HALF_IN_WIDE_LANES:
            continue
        signature = read_signature(row, target)
        assert signature.source.held is not None
        src, dst = format_named(signature.source.held), format_named(signature.result.format)
        run = _Called(target, row.builtin)
        facts = digest_of_facts(target.model_dump(mode="json", include={"special_values", "configuration"}))
        primitive = ConstantArithmetic(f"{target.name} {row.builtin}", src, run, facts=facts)
        yield LoweringStep(src, dst, (primitive,), (BuiltinForm(row.builtin),), row.builtin)


@dataclass(frozen=True)
class _Called:
    """A builtin as a table of what it gives for all codes of its narrow source."""

    target: VliwTarget
    name: str

    def __call__(self, codes: Codes) -> Codes:
        found: Codes = _table(_Key(self.target, self.name)).take(codes)
        return found


@dataclass(frozen=True)
class _Key:
    target: VliwTarget
    name: str

    def __hash__(self) -> int:
        return hash((id(self.target), self.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.target is other.target and self.name == other.name


@cache
def _table(key: _Key) -> Codes:
    from castsim.tpc_compiler.builtin_calls import builtin, emitted  # noqa: PLC0415 - most casts call none

    signature = emitted(key.name, key.target).built.signature
    assert signature.source.held is not None
    fmt = format_named(signature.source.format)
    codes = np.arange(1 << format_named(signature.source.held).bits, dtype=code_dtype(fmt))
    result = builtin(key.name, key.target, codes).outputs["y"]
    found: Codes = codes_from_array(result, format_named(signature.result.format)).reshape(-1)
    return found


# Chains as assembly of the vector unit, elements in linear order.
#
# All steps work on lane 0 of slots as wide as the widest format of the chain: UNPACK and moves of dual groups bring the
# elements there, PACK brings them back. Formats of 4 bits exist at the ends only: their conversions part even
# elements from odd ones, which moves between bytes and slots of 16 bits undo.

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
    return Assembly(
        target=target,
        text=f"// {shown}\n{text}",
        suffix=".tpc",
        elements=size * tiles,
        source=first,
        destination=last,
        scratch_bytes=0,
        buffer_bytes=0,
        registers=_registers(text),
    )


@dataclass
class _Emitter:
    """Writes the sequence of a chain."""

    target: VliwTarget
    first: Format
    last: Format
    steps: tuple[LoweringStep, ...]

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
        steps = list(self.steps)
        if wide == 2 and steps:
            held = self._from_nibbles(sequence, steps.pop(0), held)
        closing = steps.pop() if narrow == 2 and steps else None
        held = [part for value in held for part in spread(sequence, value, start, outgoing, self.target)]
        for step in steps:
            held = [issue_step(sequence, step, value, self.target) for value in held]
        held = [gather(sequence, held[at : at + incoming], end, self.target) for at in range(0, len(held), incoming)]
        if closing is not None:
            held = self._to_nibbles(sequence, closing, held)
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
        self, sequence: Sequence, step: LoweringStep, held: list[SequenceRegister]
    ) -> list[SequenceRegister]:
        """Turn registers of nibbles into two of bytes each.

        The conversion gives even elements in one register and odd ones in another; in slots of 16 bits they meet.
        """
        found: list[SequenceRegister] = []
        for value in held:
            pair = sequence.vector(2)
            sequence.vpu(_head(_form(step), all_lanes=True), pair, value)
            even, odd = (spread(sequence, part, _BYTE, 2, self.target) for part in pair.parts)
            for lower, upper in zip(even, odd, strict=True):
                result = sequence.vector()
                sequence.vpu(f"shl.i{2 * _BYTE}", result, upper, _BYTE)
                sequence.vpu(f"or.i{2 * _BYTE}", result, result, lower)
                found.append(result)
        return found

    def _to_nibbles(
        self, sequence: Sequence, step: LoweringStep, held: list[SequenceRegister]
    ) -> list[SequenceRegister]:
        """Turn two registers of bytes into one of nibbles, of which it takes the even ones first."""
        found, form = [], _form(step)
        for at in range(0, len(held), 2):
            pair, result = sequence.vector(2), sequence.vector()
            odd = [sequence.vector() for _ in (0, 1)]
            for part, value in zip(odd, held[at : at + 2], strict=True):
                sequence.vpu(f"shr.i{2 * _BYTE}", part, value, _BYTE)
            for part, values in zip(pair.parts, (held[at : at + 2], odd), strict=True):
                chosen = gather(sequence, values, _BYTE, self.target)
                sequence.vpu(f"or.i{_BYTE}", part, chosen, chosen)
            sequence.vpu(_head(form, all_lanes=True), result, pair, *_operands(sequence, form, pair))
            found.append(result)
        return found


def issue_step(sequence: Sequence, step: LoweringStep, value: SequenceRegister, target: VliwTarget) -> SequenceRegister:
    """Append a step on elements in lane 0 of their slots; return its result.

    Raises:
        IllegalError: a conversion that fills all lanes of a register from several others.
    """
    if isinstance(step.forms[0], BuiltinForm):
        clean = sequence.vector()
        sequence.vpu(f"and.u{step.dst.bits}", clean, value, (1 << step.src.bits) - 1)
        return widened_half(sequence, clean)
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


def _form(step: LoweringStep) -> VectorForm:
    form = step.forms[0]
    assert isinstance(form, VectorForm)
    return form


def _operands(sequence: Sequence, form: VectorForm, value: SequenceRegister) -> list[SequenceRegister | int]:
    """Return the operands behind the first source; `@` stands for it, `=CODE` for a vector of that code."""
    element = form.mnemonic.rpartition(".")[2]
    found: list[SequenceRegister | int] = []
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


# How chains of a vector unit's instructions are planned: see `castsim.lowering.catalogue.Planning`.


def casts(target: VliwTarget) -> Catalogue:
    """Return all casts, and the rereads among all formats."""
    return Catalogue.of(_casts(target), FORMATS.values(), rereads_inside=True)


def catalogue(target: VliwTarget, constants: Constants) -> Catalogue:
    """Return the casts, and the arithmetic with these constants."""
    found = casts_of(target, lambda: by_source(_casts(target)))
    work = arithmetic(target, constants)
    steps = {source: (*found.get(source, ()), *work.get(source, ())) for source in (*found, *work)}
    ends = [(step.src, step.dst) for listed in steps.values() for step in listed]
    return Catalogue.made_later(steps, ends, (constants.src, constants.dst), rereads_inside=True)


def _casts(target: VliwTarget) -> Iterator[LoweringStep]:
    yield from vector_casts(target)
    yield from builtin_casts(target)


def arithmetic(target: VliwTarget, constants: Constants) -> Steps:
    """Return the arithmetic with these constants."""
    return arithmetic_of(target, constants, partial(vector_arithmetic, target))


def assembly(chain: Chain, src: Format, dst: Format, target: VliwTarget, rows: int, cols: int) -> Assembly:
    """Return the program over all elements of a tensor, whose shape does not matter."""
    return vector_assembly(chain, src, dst, target, rows * cols)

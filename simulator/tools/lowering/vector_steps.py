"""The vector unit of a VLIW chip as steps: conversions in every fixed mode, and arithmetic with constants.

Values of conversions come from `castsim.machines.vliw.semantics.convert`, those of arithmetic from the prepared
instruction itself, run on a register made as wide as the array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache, partial

import numpy as np

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Rounding, format_named
from castsim.isa.tpc.forms import TARGET_SPELLINGS
from castsim.isa.tpc.parser import parse
from castsim.machines.vliw.semantics import PreparedInstruction, prepare
from castsim.machines.vliw.semantics.convert import integer_policy, policy_of, same_format_policy
from castsim.machines.vliw.semantics.operands import CONVERT_ROUND, ROUND, OperandValues, State
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import codes_from_array, value_of
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.tpc_compiler import Recipe, builtins_of
from castsim.targets.vliw import RoundingMode, RoundingModes, VliwTarget
from castsim.tools.lowering.catalogue import (
    Assembly,
    Catalogue,
    Steps,
    arithmetic_of,
    by_source,
    casts_of,
    machine_formats,
)
from castsim.tools.lowering.steps import (
    BuiltinForm,
    Chain,
    ConstantArithmetic,
    Constants,
    FormatCast,
    Integral,
    LoweringStep,
    VectorForm,
    digest_of_facts,
)
from castsim.tools.tpc_compiler.builtin_sequences import gather, read_signature, spread, widened_half
from castsim.tools.tpc_compiler.code_generation import Sequence, SequenceRegister, schedule

_SPELT = TARGET_SPELLINGS
"""Word of `target_type=` by format name."""


def vector_casts(target: VliwTarget) -> Iterator[LoweringStep]:
    """Yield one step per conversion of the vector unit, fixed rounding mode and switch that changes values."""
    reset = target.configuration.get(CONVERT_ROUND, target.configuration[ROUND]).reset
    for row in target.converts:
        if row.unit != "vpu":
            continue
        src, dst = FORMATS[row.src], FORMATS[row.dst]
        for clip in (False, True) if "clip_fp" in row.switches else (False,):
            for word, mode in _modes(target.convert_rounding, src, dst):
                policy = policy_of(src, dst, mode, clip, target)
                switches = (f"target_type={_SPELT[dst.name]}", *(("clip_fp",) if clip else ()))
                form = VectorForm(
                    f"convert.{src.name}",
                    switches,
                    lane_sel_max=row.lane_sel_max,
                    all_lanes="all_lanes" in row.lanes,
                    rounding=word,
                    default_rounding=mode.code == reset or nothing_to_round(src, dst),
                )
                yield LoweringStep(
                    src, dst, (FormatCast(src, dst, policy),), (form,), f"convert {src.name} -> {dst.name}"
                )
    yield from _integer_casts(target)
    yield from _integral(target)


def vector_arithmetic(target: VliwTarget, constants: Constants) -> Iterator[LoweringStep]:
    """Yield arithmetic that may correct a conversion: bounds, offsets, masks, shifts, and zero in place of NaN."""
    for name in target.elements.formats:
        fmt = FORMATS[name]
        if fmt.bits < 8 or fmt.bits > 32:
            continue
        for bound in constants.bounds(fmt):
            for mnemonic in ("max", "min"):
                yield from _operation(target, fmt, mnemonic, bound, monotone=True)
        if isinstance(constants.dst, IntFormat) and constants.dst.boolean:
            yield from _truth(target, fmt)
        if isinstance(fmt, FloatFormat):
            yield from _nan_to_zero(target, fmt)
            for offset in constants.offsets_of_floats(fmt):
                yield from _operation(target, fmt, "add", offset, monotone=True)  # rounded, not wrapped
        if not isinstance(fmt, IntFormat):
            continue
        for offset in constants.offsets(fmt):
            yield from _operation(target, fmt, "add", offset)
        for mask in constants.masks(fmt):
            yield from _operation(target, fmt, "and", mask)
        for amount in constants.shifts(fmt):
            yield from _operation(target, fmt, "shl", amount)
            yield from _operation(target, fmt, "shr", amount)
            yield from _operation(target, fmt, "ash", (1 << 32) - amount, monotone=True)


def _modes(modes: RoundingModes, src: Format, dst: Format) -> list[tuple[str, RoundingMode]]:
    """Return the deterministic modes, only one if nothing is rounded."""
    candidates = [
        (word, mode)
        for word, mode in modes.modes.items()
        if mode.rounding not in (None, Rounding.STOCHASTIC) and mode.subnormal_rounding is None
    ]
    return candidates[:1] if nothing_to_round(src, dst) else candidates


def nothing_to_round(src: Format, dst: Format) -> bool:
    """Return whether the destination contains every number of the source within its range."""
    if isinstance(src, IntFormat):
        return isinstance(dst, IntFormat) or (isinstance(dst, FloatFormat) and _holds_integers(src, dst))
    if not isinstance(src, FloatFormat) or not isinstance(dst, FloatFormat):
        return False
    lowest = [fmt.min_exponent - fmt.fraction_bits for fmt in (src, dst)]
    return dst.fraction_bits >= src.fraction_bits and lowest[1] <= lowest[0] and dst.min_exponent <= src.min_exponent


def _holds_integers(src: IntFormat, dst: FloatFormat) -> bool:
    top_exponent = (dst.max_finite_code >> dst.fraction_bits) - dst.bias
    return src.bits - src.signed <= dst.fraction_bits + 1 and src.bits - src.signed <= top_exponent


def _integer_casts(target: VliwTarget) -> Iterator[LoweringStep]:
    mode = next(mode for mode in target.integer_rounding.modes.values() if mode.rounding is Rounding.RINT)
    word = next(word for word, other in target.integer_rounding.modes.items() if other is mode)
    for row in target.integer_converts:
        if row.unit != "vpu":
            continue
        src, dst = FORMATS[row.src], FORMATS[row.dst]
        widths = [other.dst for other in target.integer_converts if other.mnemonic == row.mnemonic]
        form = VectorForm(
            row.mnemonic,
            (f"to_{dst.bits}",) if len(set(widths)) > 1 else (),
            ("0x0",),
            lane_sel_max=row.lane_sel_max,
            all_lanes="all_lanes" in row.lanes,
            rounding=word,
            lanes_chosen=dst.bits >= 8,
        )
        policy = integer_policy(mode)
        yield LoweringStep(
            src, dst, (FormatCast(src, dst, policy),), (form,), f"{row.mnemonic} {src.name} -> {dst.name}"
        )


def _integral(target: VliwTarget) -> Iterator[LoweringStep]:
    for name in target.elements.formats:
        fmt = FORMATS[name]
        if not isinstance(fmt, FloatFormat) or not _parses(target, f"nearbyint.{name} rhne V1, V0"):
            continue
        for word, mode in target.convert_rounding.modes.items():
            if mode.rounding in (None, Rounding.STOCHASTIC) or mode.subnormal_rounding is not None:
                continue
            policy = same_format_policy(fmt, mode.rounding)
            form = VectorForm(f"nearbyint.{name}", rounding=word, default_rounding=mode.rounding is Rounding.RINT)
            yield LoweringStep(fmt, fmt, (Integral(fmt, policy),), (form,), f"nearbyint {name}")


def _operation(
    target: VliwTarget, fmt: Format, mnemonic: str, constant: int, *, monotone: bool = False
) -> Iterator[LoweringStep]:
    text = f"{constant:#x}"
    form = VectorForm(f"{mnemonic}.{fmt.name}", (), (text,))
    name = f"{mnemonic}.{fmt.name} {_shown(constant, fmt, mnemonic)}"
    yield from _prepared(target, fmt, form, name, monotone, constant)


def _nan_to_zero(target: VliwTarget, fmt: Format) -> Iterator[LoweringStep]:
    form = VectorForm(f"sel_eq.{fmt.name}", (), ("@", "@", "0x0"))
    yield from _prepared(target, fmt, form, f"sel_eq.{fmt.name} x == x ? x : 0", monotone=False)


def _truth(target: VliwTarget, fmt: Format) -> Iterator[LoweringStep]:
    unit = np.array([1], np.uint8)
    code = int(convert_codes(unit, FORMATS["u8"], fmt, abstract_policy(FORMATS["u8"], fmt))[0])
    form = VectorForm(f"sel_neq.{fmt.name}", (), ("0x0", f"={code:#x}", "=0x0"))
    yield from _prepared(target, fmt, form, f"sel_neq.{fmt.name} x != 0 ? 1 : 0", monotone=False, constant=code)


def _prepared(
    target: VliwTarget, fmt: Format, form: VectorForm, name: str, monotone: bool, constant: int | None = None
) -> Iterator[LoweringStep]:
    """Yield the step if the generation has the instruction."""
    vectors = [int(text[1:], 16) for text in form.operands if text.startswith("=")]
    names = iter(range(2, 2 + len(vectors)))
    spelt = ["V0" if text == "@" else f"V{next(names)}" if text.startswith("=") else text for text in form.operands]
    text = f"{form.mnemonic} V1, V0, {', '.join(spelt)}"
    if _parses(target, text):
        run = WideInstruction(target, text, fmt, tuple(vectors))
        primitive = ConstantArithmetic(f"{target.name} {text}", fmt, run, monotone, constant, _facts(target))
        yield LoweringStep(fmt, fmt, (primitive,), (form,), name)


def _parses(target: VliwTarget, text: str) -> bool:
    try:
        _prepare(target, text)
    except CastsimError:
        return False
    return True


def _prepare(target: VliwTarget, text: str) -> PreparedInstruction:
    instruction = parse(f"nop; nop; {text}; nop\n", target.dialect, "<plan>").bundles[0].vpu
    assert instruction is not None
    return prepare(instruction, target)


def _shown(constant: int, fmt: Format, mnemonic: str) -> str:
    """Return a constant as a number."""
    if mnemonic in ("shl", "shr"):
        return str(constant)
    if mnemonic == "ash":
        return str(constant - (1 << 32))
    if mnemonic == "add" and isinstance(fmt, FloatFormat):
        return f"{value_of(constant, fmt)}"
    if mnemonic == "and" or isinstance(fmt, FloatFormat):
        return f"{constant:#x}"
    top = 1 << (fmt.bits - 1)
    signed = isinstance(fmt, IntFormat) and fmt.signed
    return str((constant & (2 * top - 1) ^ top) - top if signed else constant)


ARITHMETIC_OPTIONS = ("arithmetic_subnormals", "immediate_and_mask", "min_max_nan")
"""Options that decide the results of elementwise arithmetic, comparison and selection."""


def _facts(target: VliwTarget) -> str:
    """Return the digest of everything that decides the values of arithmetic, one for all instructions of a target."""
    options = {name: target.option(name) for name in ARITHMETIC_OPTIONS if name in target.options}
    return digest_of_facts({**_values_at_reset(target), "options": options})


def _values_at_reset(target: VliwTarget) -> dict[str, object]:
    """Return the tables of the target that values depend on."""
    return {"special_values": target.special_values, "configuration": target.configuration}


@dataclass(frozen=True)
class WideInstruction:
    """An instruction run on arrays of any size: V0 is as wide as need be, V2 and on hold `vectors` in every lane.

    A second array, of the same format and size, is V2.
    """

    target: VliwTarget
    text: str
    fmt: Format
    vectors: tuple[int, ...] = ()
    prepared: Callable[[int], PreparedInstruction] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prepared", cache(self._prepare))

    def __call__(self, codes: Codes, *others: Codes) -> Codes:
        """Return the result for each element of the arrays."""
        size = max(self.target.registers.vector_bytes, 1 << (max(codes.nbytes, 1) - 1).bit_length())
        prepared = self.prepared(size)
        held = {2 + k: np.full(size // codes.itemsize, code, codes.dtype).view(np.uint8)
                for k, code in enumerate(self.vectors)}  # fmt: skip
        for number, array in zip((0, 2), (codes, *others), strict=False):
            held[number] = np.zeros(size, np.uint8)
            held[number][: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        sources = {role: held[group[0].index] for role, group in prepared.registers.items() if role != "dest"}
        found = prepared(OperandValues(sources, np.zeros(size, np.uint8)), _STATE).result
        assert isinstance(found, np.ndarray)
        result = found.view(np.uint8)[: codes.nbytes].view(code_dtype(self.fmt))
        return result.reshape(codes.shape)

    def _prepare(self, size: int) -> PreparedInstruction:
        registers = self.target.registers.model_copy(update={"vector_bytes": size})
        return _prepare(self.target.model_copy(update={"registers": registers}), self.text)


_STATE = State({}, np.ones(64, np.uint32), 1)
"""Configuration registers at reset; nothing here uses random words."""


# Builtins of a vector unit as steps, and chains of its instructions as assembly.


def builtin_casts(target: VliwTarget) -> Iterator[LoweringStep]:
    """Yield the builtins whose sources are narrow codes in wide lanes."""
    for row in builtins_of(target):
        if row.recipe is not Recipe.HALF_IN_WIDE_LANES:
            continue
        signature = read_signature(row, target)
        assert signature.source.held is not None
        src, dst = format_named(signature.source.held), format_named(signature.result.format)
        run = _Called(target, row.builtin)
        facts = digest_of_facts(_values_at_reset(target))
        primitive = ConstantArithmetic(f"{target.name} {row.builtin}", src, run, facts=facts)
        yield LoweringStep(src, dst, (primitive,), (BuiltinForm(row.builtin),), row.builtin)


@dataclass(frozen=True)
class _Called:
    """A builtin as a table of its results for all codes of its narrow source."""

    target: VliwTarget
    name: str

    def __call__(self, codes: Codes) -> Codes:
        results: Codes = _table(_Key(self.target, self.name)).take(codes)
        return results


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
    from castsim.tools.tpc_compiler.builtin_calls import builtin, emitted  # noqa: PLC0415 - most casts call none

    signature = emitted(key.name, key.target).built.signature
    assert signature.source.held is not None
    fmt = format_named(signature.source.format)
    codes = np.arange(1 << format_named(signature.source.held).bits, dtype=code_dtype(fmt))
    result = builtin(key.name, key.target, codes).outputs["y"]
    entries: Codes = codes_from_array(result, format_named(signature.result.format)).reshape(-1)
    return entries


# Chains as assembly of the vector unit, elements in linear order.
#
# All steps work on lane 0 of slots as wide as the widest format of the chain: UNPACK and moves of dual groups bring the
# elements there, PACK brings them back. Formats of 4 bits exist at the ends only: their conversions part even
# elements from odd ones, which moves between bytes and slots of 16 bits undo.

_NIBBLE, _BYTE = 4, 8


def vector_assembly(chain: Chain, src: Format, dst: Format, target: VliwTarget, elements: int) -> Assembly:
    """Return the program of a chain for at least `elements` elements.

    Raises:
        IllegalError: the chain has an inner 4-bit format.
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
        registers = list(sequence.input("src", self.first.name, count))
        steps = list(self.steps)
        if wide == 2 and steps:
            registers = self._from_nibbles(sequence, steps.pop(0), registers)
        closing = steps.pop() if narrow == 2 and steps else None
        registers = [part for value in registers for part in spread(sequence, value, start, outgoing, self.target)]
        for step in steps:
            registers = [issue_step(sequence, step, value, self.target) for value in registers]
        registers = [
            gather(sequence, registers[at : at + incoming], end, self.target)
            for at in range(0, len(registers), incoming)
        ]
        if closing is not None:
            registers = self._to_nibbles(sequence, closing, registers)
        sequence.output("dst", self.last.name, *registers)
        return sequence

    def _slot_widths(self) -> list[int]:
        """Return the widths of all formats in slots: 4-bit ones at the ends are bytes.

        Raises:
            IllegalError: a 4-bit format is elsewhere.
        """
        bits = [step.src.bits for step in self.steps] + [self.last.bits]
        if not self.steps:
            bits = [max(self.first.bits, _BYTE)]
        if any(width < _BYTE for width in bits[1:-1]):
            raise IllegalError(f"{self.target.name}: cannot write a program for a chain through 4-bit registers")
        return [max(width, _BYTE) for width in bits]

    def _from_nibbles(
        self, sequence: Sequence, step: LoweringStep, registers: list[SequenceRegister]
    ) -> list[SequenceRegister]:
        """Convert a register of nibbles to two registers of bytes.

        The conversion gives even elements in one register and odd ones in another; in slots of 16 bits they meet.
        """
        results: list[SequenceRegister] = []
        for value in registers:
            pair = sequence.vector(2)
            sequence.vpu(_head(_form(step), all_lanes=True), pair, value)
            even, odd = (spread(sequence, part, _BYTE, 2, self.target) for part in pair.parts)
            for lower, upper in zip(even, odd, strict=True):
                result = sequence.vector()
                sequence.vpu(f"shl.i{2 * _BYTE}", result, upper, _BYTE)
                sequence.vpu(f"or.i{2 * _BYTE}", result, result, lower)
                results.append(result)
        return results

    def _to_nibbles(
        self, sequence: Sequence, step: LoweringStep, registers: list[SequenceRegister]
    ) -> list[SequenceRegister]:
        """Convert two registers of bytes to one of nibbles, even elements first."""
        results, form = [], _form(step)
        for at in range(0, len(registers), 2):
            pair, result = sequence.vector(2), sequence.vector()
            odd = [sequence.vector() for _ in (0, 1)]
            for part, value in zip(odd, registers[at : at + 2], strict=True):
                sequence.vpu(f"shr.i{2 * _BYTE}", part, value, _BYTE)
            for part, values in zip(pair.parts, (registers[at : at + 2], odd), strict=True):
                chosen = gather(sequence, values, _BYTE, self.target)
                sequence.vpu(f"or.i{_BYTE}", part, chosen, chosen)
            sequence.vpu(_head(form, all_lanes=True), result, pair, *_operands(sequence, form, pair))
            results.append(result)
        return results


def issue_step(sequence: Sequence, step: LoweringStep, value: SequenceRegister, target: VliwTarget) -> SequenceRegister:
    """Append a step on elements in lane 0 of their slots; return its result.

    Raises:
        IllegalError: a conversion fills all lanes of a register from several others.
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
    """Return the operands after the first source; `@` is that source, `=CODE` a vector of that code."""
    element = form.mnemonic.rpartition(".")[2]
    operands: list[SequenceRegister | int] = []
    for text in form.operands:
        if text.startswith("="):
            operands.append(sequence.broadcast(int(text[1:], 16), f"i{FORMATS[element].bits}"))
        else:
            operands.append(value if text == "@" else int(text, 16))
    return operands


def _registers(text: str) -> int:
    """Return how many vector registers a program names."""
    sizes = {"V": 1, "D": 2, "A": 4}
    named = re.findall(r"\b([VDA])(\d+)\b", text)
    return len({int(index) + k for file, index in named for k in range(sizes[file])})


# How chains of a vector unit's instructions are planned: see `castsim.tools.lowering.catalogue.Planning`.


def casts(target: VliwTarget) -> Catalogue:
    """Return all casts, and the rereads among all formats."""
    return Catalogue.of(_casts(target), FORMATS.values(), rereads_inside=True)


def behaviours(target: VliwTarget) -> Mapping[tuple[str, str], Hashable]:
    """Return the effects of the conversions of each pair."""
    steps_of: dict[tuple[str, str], set[LoweringStep]] = {}
    for step in (step for steps in casts_of(target, lambda: by_source(_casts(target))).values() for step in steps):
        if not isinstance(step.forms[0], BuiltinForm):
            steps_of.setdefault((step.src.name, step.dst.name), set()).add(step)
    return {pair: frozenset(steps) for pair, steps in steps_of.items()}


def catalogue(target: VliwTarget, constants: Constants) -> Catalogue:
    """Return the casts, and the arithmetic with these constants."""
    conversions = casts_of(target, lambda: by_source(_casts(target)))
    work = arithmetic(target, constants)
    steps = {source: (*conversions.get(source, ()), *work.get(source, ())) for source in (*conversions, *work)}
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

"""The vector unit of a VLIW chip as steps: conversions in every fixed mode, and arithmetic with constants.

Values of conversions come from `castsim.machines.vliw.semantics.convert`, those of arithmetic from the prepared
instruction itself, run on a register made as wide as the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Rounding
from castsim.isa.tpc import parse
from castsim.isa.tpc.forms import TARGET_SPELLINGS
from castsim.lowering.steps import (
    ConstantArithmetic,
    Constants,
    FormatCast,
    Integral,
    LoweringStep,
    VectorForm,
    digest_of_facts,
)
from castsim.machines.vliw.semantics import OperandValues, PreparedInstruction, State, prepare
from castsim.machines.vliw.semantics.convert import integer_policy, policy_of, same_format_policy
from castsim.machines.vliw.semantics.operands import CONVERT_ROUND, ROUND
from castsim.numerics import abstract_policy, code_dtype, convert_codes, value_of
from castsim.targets.vliw import RoundingMode, RoundingModes, VliwTarget

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
    """Yield arithmetic that may repair a conversion: bounds, offsets, masks, shifts, and zero in place of NaN."""
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
    """Return the deterministic modes, one alone where nothing is rounded."""
    found = [
        (word, mode)
        for word, mode in modes.modes.items()
        if mode.rounding not in (None, Rounding.STOCHASTIC) and mode.subnormal_rounding is None
    ]
    return found[:1] if nothing_to_round(src, dst) else found


def nothing_to_round(src: Format, dst: Format) -> bool:
    """Whether every number of the source within the range of the destination is one of its numbers."""
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
    one = np.array([1], np.uint8)
    code = int(convert_codes(one, FORMATS["u8"], fmt, abstract_policy(FORMATS["u8"], fmt))[0])
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
        run = _Wide(target, text, fmt, tuple(vectors))
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
"""Options that decide what element-wise arithmetic, comparison and selection give."""


def _facts(target: VliwTarget) -> str:
    """Return the digest of what the values of arithmetic rest on, the same for all instructions of a target."""
    facts = target.model_dump(mode="json", include={"special_values", "configuration"})
    options = {name: target.option(name) for name in ARITHMETIC_OPTIONS if name in target.options}
    return digest_of_facts({**facts, "options": options})


@dataclass(frozen=True)
class _Wide:
    """An instruction run on arrays of any size: V0 is as wide as need be, V2 and on hold `vectors` in every lane."""

    target: VliwTarget
    text: str
    fmt: Format
    vectors: tuple[int, ...] = ()
    prepared: Callable[[int], PreparedInstruction] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prepared", cache(self._prepare))

    def __call__(self, codes: Codes) -> Codes:
        flat = np.ascontiguousarray(codes.reshape(-1))
        size = max(self.target.registers.vector_bytes, 1 << (max(flat.nbytes, 1) - 1).bit_length())
        register = np.zeros(size, np.uint8)
        register[: flat.nbytes] = flat.view(np.uint8)
        prepared = self.prepared(size)
        held = {0: register}
        held |= {
            2 + k: np.full(size // flat.itemsize, code, flat.dtype).view(np.uint8)
            for k, code in enumerate(self.vectors)
        }
        sources = {role: held[group[0].index] for role, group in prepared.registers.items() if role != "dest"}
        found = prepared(OperandValues(sources, np.zeros_like(register)), _STATE).result
        assert isinstance(found, np.ndarray)
        result = found.view(np.uint8)[: flat.nbytes].view(code_dtype(self.fmt))
        return result.reshape(codes.shape)

    def _prepare(self, size: int) -> PreparedInstruction:
        registers = self.target.registers.model_copy(update={"vector_bytes": size})
        return _prepare(self.target.model_copy(update={"registers": registers}), self.text)


_STATE = State({}, np.ones(64, np.uint32), 1)
"""Configuration registers at reset; nothing here draws random words."""

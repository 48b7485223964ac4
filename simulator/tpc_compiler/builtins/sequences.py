"""Cast builtins as sequences of instructions: value steps from the table, lane movements from the recipes."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError, TargetDataError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc import Slot
from castsim.targets.tpc_builtins import BuiltinRow, Recipe, StepText, builtin_rounding
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtins.reordering import reorder
from castsim.tpc_compiler.builtins.signature import Signature, read_signature
from castsim.tpc_compiler.code_generation import EmittedInstruction, Sequence, Value

INPUT, OUTPUT = "x", "y"
"""Names of the arrays of a builtin."""

_MODE = "MODE"
_FROM_REGISTER = "csr"
_SIGN, _EXPONENT, _SHIFT = 0x8000, 0x0F800000, 13
"""f16 in the low half of a 32-bit lane: its sign, its exponent moved to where f32 has one, and how far that is."""
_REBIAS = (127 - 15) << 23
_ONE_EXPONENT, _SMALLEST_NORMAL, _WIDE_SIGN = 1 << 23, (127 - 14) << 23, 1 << 31


@dataclass(frozen=True, slots=True)
class Built:
    """A builtin as a sequence; `setup` writes the rounding register first, if a mode was asked for."""

    row: BuiltinRow
    signature: Signature
    sequence: Sequence
    setup: tuple[EmittedInstruction, ...]
    rounding: str


def build(row: BuiltinRow, target: VliwTarget, rounding: str | None = None) -> Built:
    """Return the sequence of a builtin.

    `rounding` is the build option of the helpers where they have one, else what the rounding register holds; None
    leaves both as they are.

    Raises:
        IllegalError: a mode that the builtins of the target cannot be given.
    """
    signature = read_signature(row, target)
    sequence = Sequence()
    fact = builtin_rounding(target)
    if fact is None:
        raise TargetDataError(f"{row.builtin}: the builtins of {row.generation} have no rounding")
    mode, setup = fact.mode, tuple[EmittedInstruction, ...]()
    if rounding is not None and fact.mode == _FROM_REGISTER:
        setup = _rounding_register(sequence, target, rounding)
    elif rounding is not None:
        if rounding not in (fact.mode, *fact.build_options):
            message = f"the builtins of {target.name} cannot be built for {rounding}"
            raise IllegalError(message, legal=(fact.mode, *fact.build_options))
        mode = rounding
    group = signature.source.registers if row.recipe is Recipe.ALL_LANES and signature.source.registers > 1 else 1
    sources = sequence.input(INPUT, signature.source.format, signature.source.registers, group)
    if signature.scalar is not None:
        sequence.scalar(*signature.scalar)
    word = "" if mode == target.convert_rounding.default else mode
    results = _Writer(row, signature, sequence, word).results(sources)
    sequence.output(OUTPUT, signature.result.format, *results)
    return Built(row, signature, sequence, setup, mode if rounding is None else rounding)


def _rounding_register(sequence: Sequence, target: VliwTarget, rounding: str) -> tuple[EmittedInstruction, ...]:
    """Return the instructions that write a mode to the register from which CONVERT takes it."""
    modes = {name: row for name, row in target.convert_rounding.modes.items() if row.rounding is not None}
    if rounding not in modes:
        raise IllegalError(f"{target.name} has no rounding mode '{rounding}'", legal=modes)
    name = "convert_round" if "convert_round" in target.configuration else "round"
    address = target.configuration[name].address
    if address is None:
        raise IllegalError(f"{target.name}: no source gives the address of its rounding register")
    code = sequence.register()
    return (
        EmittedInstruction(Slot.SPU, "mov.i32", (code, modes[rounding].code)),
        EmittedInstruction(Slot.STORE, "st_l mmio", (address, code)),
    )


@dataclass(frozen=True, slots=True)
class _Writer:
    """Appends the instructions of one builtin; `mode` is the rounding word, empty where it is not written."""

    row: BuiltinRow
    signature: Signature
    sequence: Sequence
    mode: str

    def results(self, sources: tuple[Value, ...]) -> tuple[Value, ...]:
        """Append everything; return the result registers."""
        row = self.row
        if row.recipe is Recipe.HALF_IN_WIDE_LANES:
            return (widened_half(self.sequence, sources[0]),)
        if row.recipe is Recipe.ALL_LANES:
            return self._all_lanes(sources)
        ready = tuple(self._steps(row.before, source) for source in sources)
        formats = (self.signature.source.format, self.signature.result.format)
        narrow = min(formats, key=lambda name: FORMATS[name].bits)
        moved = reorder(self.sequence, row.recipe, narrow, ready)
        return tuple(self._steps(row.after, register) for register in moved)

    def _all_lanes(self, sources: tuple[Value, ...]) -> tuple[Value, ...]:
        """Append one conversion of all lanes, from or to a pair or quad."""
        source = sources[0]
        if self.row.before:
            prepared = self.sequence.vector(self.signature.source.registers)
            for part, place in zip(source.parts, prepared.parts, strict=True):
                self._steps(self.row.before, part, place)
            source = prepared
        result = self.sequence.vector(self.signature.result.registers)
        (step,) = self.row.joint
        self._step(step, result, source)
        if not self.row.after:
            return (result,)
        return tuple(self._steps(self.row.after, part) for part in result.parts)

    def _steps(self, steps: tuple[StepText, ...], source: Value, last: Value | None = None) -> Value:
        """Append steps on a register; the last result goes to `last` if given."""
        for number, step in enumerate(steps, start=1):
            result = last if last is not None and number == len(steps) else self.sequence.vector()
            self._step(step, result, source)
            source = result
        return source

    def _step(self, step: StepText, result: Value, source: Value) -> None:
        head = " ".join(filter(None, (self.mode if word == _MODE else word for word in step.head.split())))
        self.sequence.vpu(head, result, source, *(() if step.operand is None else (self._operand(step.operand),)))

    def _operand(self, text: str) -> Value | int:
        named = {scalar.name: scalar.value for scalar in self.sequence.scalars}
        if text in named:
            return named[text]
        try:
            return int(text, 0)
        except ValueError:
            raise TargetDataError(f"{self.row.builtin}: '{text}' is not an operand", legal=named or ("0x0",)) from None


def widened_half(sequence: Sequence, source: Value) -> Value:
    """Append f16 to f32 for halves that stand in 32-bit lanes: exact, NaN payloads and signs kept.

    Exponents are rebiased by an addition, once more for infinity and NaN; a subnormal gets the exponent of the smallest
    normal number and an implicit one, and loses it again by a subtraction.
    """

    def unary(head: str, value: Value, operand: int) -> Value:
        result = sequence.vector()
        sequence.vpu(head, result, value, operand)
        return result

    def equal(value: Value, number: int) -> Value:
        found = sequence.mask()
        sequence.vpu("cmp_eq.u32", found, value, number)
        return found

    sign = unary("and.u32", source, _SIGN)
    magnitude = unary("and.u32", source, ~_SIGN)
    moved = unary("shl.u32", magnitude, _SHIFT)
    exponent = unary("and.u32", moved, _EXPONENT)
    result = unary("add.u32", moved, _REBIAS)
    special = equal(exponent, _EXPONENT)
    sequence.vpu("add.u32", result, result, _REBIAS, where=special)
    subnormal = equal(exponent, 0)
    sequence.vpu("add.u32", result, result, _ONE_EXPONENT, where=subnormal)
    sequence.vpu("sub.f32", result, result, _SMALLEST_NORMAL, where=subnormal)
    negative = equal(sign, _SIGN)
    sequence.vpu("or.u32", result, result, _WIDE_SIGN, where=negative)
    return result

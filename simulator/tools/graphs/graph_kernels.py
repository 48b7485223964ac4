"""Elementwise kernels before they become text: instructions on values with a format but no location.

kernel = Kernel()
x = kernel.input("x", "f32")
kernel.output("y", kernel.convert(kernel.combine("mul", x, constant), chain))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes, Format, IntFormat, Rounding, format_named
from castsim.machines.registry import MachinePart
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import decode_to_float64
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.loader import Target
from castsim.tools.lowering.catalogue import PLANNING, Catalogue, catalogue_of, search
from castsim.tools.lowering.demand import MOST_STEPS, CastRequest, Demand, settle
from castsim.tools.lowering.lowering_answers import Answer, Setting, answer
from castsim.tools.lowering.samples import all_codes, distinct, telling_codes
from castsim.tools.lowering.steps import Chain, FormatCast, Integral, LoweringStep, RereadForm, run_chain


@dataclass(frozen=True, slots=True)
class KernelValue:
    """The result of an instruction, or an input: every element of a tile."""

    number: int
    format: Format


@dataclass(frozen=True, slots=True)
class KernelPort:
    """A named input or output; `format` is its declared format, of the tensor's width."""

    name: str
    format: Format
    value: KernelValue


@dataclass(frozen=True, slots=True)
class Converted:
    """A step of a planned chain: a cast, an operation with a constant, or a reread."""

    result: KernelValue
    source: KernelValue
    step: LoweringStep


@dataclass(frozen=True, slots=True)
class Combined:
    """`add`, `sub`, `mul`, `div`, `max`, `min` of two values of one format, or `shl` of integers.

    The second is a value, or the code of a constant; for `shl` the constant is the number of bits. With `backwards` the
    constant is the first operand.
    """

    result: KernelValue
    function: str
    first: KernelValue
    second: KernelValue | int
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class KeptValue:
    """`bounded` where `tested` is a number, `origin` where it is NaN: a self-comparison, and a selection.

    The selection treats elements as those of the format `view`.
    """

    result: KernelValue
    bounded: KernelValue
    origin: KernelValue
    tested: KernelValue
    view: Format


Instruction = Converted | Combined | KeptValue


class NodeKernel:
    """Instructions in order, with their inputs and outputs. `title` is the program's heading."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.inputs: list[KernelPort] = []
        self.outputs: list[KernelPort] = []
        self.instructions: list[Instruction] = []
        self._count = 0

    def input(self, name: str, fmt: Format | str) -> KernelValue:
        """Return the value of a new input."""
        value = self._new(format_named(fmt) if isinstance(fmt, str) else fmt)
        self.inputs.append(KernelPort(name, value.format, value))
        return value

    def output(self, name: str, value: KernelValue) -> None:
        """Name a result. Its trailing rereads are left out, because its declaration replaces them."""
        while self.instructions and self._only_rereads_to(value):
            last = self.instructions.pop()
            assert isinstance(last, Converted)
            value = last.source
        self.outputs.append(KernelPort(name, value.format, value))

    def convert(self, value: KernelValue, chain: Chain) -> KernelValue:
        """Apply a chain to a value. Rereads of an input become its declaration."""
        steps = list(chain)
        while steps and isinstance(steps[0].forms[0], RereadForm) and self._is_untouched_input(value):
            value = self._redeclared(value, steps.pop(0).dst)
        for step in steps:
            result = self._new(step.dst)
            self.instructions.append(Converted(result, value, step))
            value = result
        return value

    def combine(
        self, function: str, first: KernelValue, second: KernelValue | int, *, backwards: bool = False
    ) -> KernelValue:
        """Apply a function of two operands; see `Combined`."""
        result = self._new(first.format)
        self.instructions.append(Combined(result, function, first, second, backwards))
        return result

    def keep_nan(self, bounded: KernelValue, origin: KernelValue, tested: KernelValue, view: Format) -> KernelValue:
        """Restore NaN of `origin` in a value computed from it; see `KeptValue`."""
        result = self._new(origin.format)
        self.instructions.append(KeptValue(result, bounded, origin, tested, view))
        return result

    @property
    def chain(self) -> Chain | None:
        """The steps, if the kernel is one chain from its only input to its only output; None otherwise."""
        if len(self.inputs) != 1 or len(self.outputs) != 1:
            return None
        steps, at = [], self.inputs[0].value
        for instruction in self.instructions:
            if not isinstance(instruction, Converted) or instruction.source != at:
                return None
            steps.append(instruction.step)
            at = instruction.result
        return tuple(steps) if at == self.outputs[0].value else None

    def formats(self) -> Iterable[Format]:
        """Yield the formats of all values."""
        yield from (port.value.format for port in self.inputs)
        yield from (instruction.result.format for instruction in self.instructions)

    def last_uses(self) -> dict[int, int]:
        """Return the index of the last instruction that reads each value; outputs live to the end."""
        uses = {port.value.number: -1 for port in self.inputs}
        for index, instruction in enumerate(self.instructions):
            uses[instruction.result.number] = index
            for operand in operands(instruction):
                uses[operand.number] = index
        for port in self.outputs:
            uses[port.value.number] = len(self.instructions)
        return uses

    def _new(self, fmt: Format) -> KernelValue:
        self._count += 1
        return KernelValue(self._count - 1, fmt)

    def _is_untouched_input(self, value: KernelValue) -> bool:
        read = any(value in operands(instruction) for instruction in self.instructions)
        return not read and any(port.value == value for port in self.inputs)

    def _redeclared(self, value: KernelValue, fmt: Format) -> KernelValue:
        redeclared = replace(value, format=fmt)
        self.inputs = [
            replace(port, format=fmt, value=redeclared) if port.value == value else port for port in self.inputs
        ]
        return redeclared

    def _only_rereads_to(self, value: KernelValue) -> bool:
        last = self.instructions[-1]
        return last.result == value and isinstance(last, Converted) and isinstance(last.step.forms[0], RereadForm)


def operands(instruction: Instruction) -> tuple[KernelValue, ...]:
    """Return the values that an instruction reads."""
    if isinstance(instruction, Converted):
        return (instruction.source,)
    if isinstance(instruction, KeptValue):
        return instruction.bounded, instruction.origin, instruction.tested
    second = instruction.second
    return (instruction.first, second) if isinstance(second, KernelValue) else (instruction.first,)


# The text of a kernel for a target, and what its arguments are; who writes it, by mechanism.


@dataclass(frozen=True, slots=True)
class NodeText:
    """A kernel as text for a target.

    Arguments have the names of the kernel's ports, with their formats by name in `inputs` and `outputs`. `elements` is
    the size of each, in whole tiles; `tiles` the number of loop trips.
    """

    target: Target
    text: str
    suffix: str
    inputs: Mapping[str, Format]
    outputs: Mapping[str, Format]
    elements: int
    tiles: int


class Writing(Protocol):
    """The operations available to kernels on the targets of a mechanism, and their text; `target` has the mechanism."""

    NIBBLES_AS_BYTES: bool
    """Whether 4-bit integers are converted to bytes before any computation."""

    def has(self, target: Target, function: str, fmt: Format, *, constant: bool) -> bool:
        """See `castsim.tools.graphs.graph_kernels.Chip.has`."""
        ...

    def clamps(self, target: Target, functions: tuple[str, ...], fmt: Format) -> bool:
        """Return whether one of the functions clamps its results in a format, and converts NaN to 0."""
        ...

    def program(self, kernel: NodeKernel, target: Target, elements: int) -> NodeText:
        """Return the program of a kernel for at least `elements` elements.

        Raises:
            IllegalError, TileError: the target has no program for it.
        """
        ...

    def outputs(self, kernel: NodeKernel, target: Target, inputs: Mapping[str, Codes]) -> dict[str, Codes] | None:
        """Return a kernel's outputs by its instructions on whole arrays; None if running its program is as quick."""
        ...


WRITING: MachinePart[Writing] = MachinePart(
    "program of graphs",
    {
        "strided-repeat": "castsim.tools.graphs.tile_program",
        "vector-function": "castsim.tools.graphs.tile_program",
        "vliw": "castsim.tools.graphs.vector_program",
    },
)


# The services of a target for graph kernels: planned casts, conversions proven on a small domain, arithmetic.

F32 = FORMATS["f32"]
_RANDOM = 48
_TRIED = 1 << 8


@dataclass
class Chip:
    """A target with its cached plans and conversions; `given` are options that stay unchanged.

    `refuted` tells whether answers name the closest chain without further options.
    """

    target: Target
    progress: ProgressCallback = lambda *_: None
    given: Setting = ()
    refuted: bool = True
    _answers: dict[tuple[Any, ...], Answer] = field(default_factory=dict)
    _chains: dict[tuple[Any, ...], Chain | None] = field(default_factory=dict)

    def planned(
        self, src: Format, dst: Format, spec: str, version: str | None, attributes: dict[str, str | int]
    ) -> Answer:
        """Plan a cast of a specification, if necessary with options that software sets, like `castsim lower`.

        Raises:
            ReadError, IllegalError: see `castsim.tools.lowering.lowering_answers.answer`.
        """
        key = (src.name, dst.name, spec, version, *sorted(attributes.items()))
        if key not in self._answers:
            request = CastRequest(src.name, dst.name, self.target, spec=spec, version=version, attributes=attributes)
            self._answers[key] = answer(
                request, self.progress, options=dict(self.given), explain=False, alternatives=False,
                refuted=self.refuted,
            )  # fmt: skip
        return self._answers[key]

    def lacks(self, fmt: Format) -> bool:
        """Return whether no instruction reads or writes elements of a format."""
        return not self._casts.holds(fmt)

    def integers(self, src: Format, dst: Format, low: int, high: int) -> Chain | None:
        """Return the shortest chain that is exact on the integers from `low` to `high`; None if there is none.

        It is tried on all of them or, if there are more than 2**17, on those that distinguish chains.
        """
        key = ("integers", src.name, dst.name, low, high)
        if key not in self._chains:
            self._chains[key] = self._exact(src, dst, _integer_codes(src, low, high))
        return self._chains[key]

    def numbers(self, src: Format, dst: Format) -> Chain | None:
        """Return the shortest chain that rounds all numbers within the range of `dst` to nearest, ties to even.

        A chain that keeps NaN takes precedence, if there is one.
        Sources of up to 16 bits are tried on all their codes, others on those that distinguish chains.
        """
        key = ("numbers", src.name, dst.name)
        if key not in self._chains:
            codes = all_codes(src)
            codes = telling_codes(src, (dst,), _RANDOM) if codes is None else codes
            self._chains[key] = self._exact(src, dst, _within(codes, src, dst))
        return self._chains[key]

    def integral(self, rounding: Rounding) -> Chain:
        """Return a chain that rounds f32 to integral numbers, at least those below 2**31.

        Raises:
            IllegalError: the target has no such rounding of f32.
        """
        for step in self._steps(F32, F32):
            (first, *rest) = step.primitives
            if not rest and isinstance(first, Integral) and first.policy.rounding is rounding:
                return (step,)
        back = self.integers(FORMATS["i32"], F32, -(1 << 24), 1 << 24)
        for step in self._steps(F32, FORMATS["i32"]):
            (first, *rest) = step.primitives
            if not rest and back and isinstance(first, FormatCast) and first.policy.rounding is rounding:
                return (step, *back)
        raise IllegalError(f"{self.target.name} cannot round f32 to integers with {rounding}")

    def reread(self, src: Format, dst: Format) -> Chain:
        """Return the step that reads codes as those of another format."""
        if src == dst:
            return ()
        step = next((step for step in self._casts.rereads_of(src) if step.dst == dst), None)
        if step is None:
            raise IllegalError(f"no instruction reads {src.name} as {dst.name}")
        return (step,)

    def has(self, function: str, fmt: Format, *, constant: bool = False) -> bool:
        """Return whether an instruction exists for `add`, `div`, ... on a format, with two values or with a constant.

        A product of integers in a vector unit is wider than its operands, and so excluded.
        """
        return self.writing.has(self.target, function, fmt, constant=constant)

    @property
    def writing(self) -> Writing:
        """Return the mechanism's writer of kernels."""
        return WRITING.of(self.target)

    def nan_loss(self, fmt: Format) -> str:
        """Return how maximum and minimum of NaN and a number lose the NaN in a format; '' if they keep it.

        A vector unit keeps its second operand unless the first exceeds it, so it keeps NaN of the second.
        """
        target = self.target
        if "maximum_of_nan" in target.options and target.option("maximum_of_nan") == "number":
            return f"maximum and minimum of {target.name} prefer the number to NaN (option maximum_of_nan)"
        if self.writing.clamps(target, ("max", "min"), fmt):
            return f"{target.name} clamps every result of {fmt.name}, and NaN becomes 0 (option ctrl)"
        return ""

    def narrowing_loses_nan(self, fmt: Format) -> bool:
        """Return whether the cast from f32 to a float format turns NaN into a number."""
        chain = self.numbers(F32, fmt)
        if chain is None or fmt == F32:
            return False
        nan = np.array([0x7FC00000], code_dtype(F32))
        return not np.isnan(decode_to_float64(run_chain(chain, nan), fmt)).all()

    def selected_as(self, fmt: Format) -> Format | None:
        """Return the format for selecting elements: their own, else integers of their width; None if neither works."""
        names = (fmt.name, f"i{fmt.bits}")
        return next((FORMATS[name] for name in names if name in FORMATS and self.has("sel", FORMATS[name])), None)

    def _steps(self, src: Format, dst: Format) -> list[LoweringStep]:
        return [step for step in self._casts.from_format(src) if step.dst == dst]

    def _exact(self, src: Format, dst: Format, codes: Codes) -> Chain | None:
        """Return the shortest chain that is right on codes: only casts if possible, otherwise with constants."""
        demand = settle(
            CastRequest(
                src.name,
                dst.name,
                self.target,
                rounding=(None if isinstance(src, IntFormat) and isinstance(dst, IntFormat) else "rint"),
            )
        )
        for catalogue in (self._casts, catalogue_of(self.target, src, dst)):
            chain = _exact_of(catalogue, demand, codes) if catalogue.leads(src, dst, MOST_STEPS) else None
            if chain is not None:
                return chain
        return None

    @cached_property
    def _casts(self) -> Catalogue:
        return PLANNING.of(self.target).casts(self.target)


def _exact_of(catalogue: Catalogue, demand: Demand, codes: Codes) -> Chain | None:
    """Return the shortest chain that is right on codes: searched on some, tried on all, searched again on failure."""
    tried = codes[distinct(np.linspace(0, codes.size - 1, min(codes.size, _TRIED)).astype(np.intp))]
    while True:
        chain = min(search(catalogue, demand, tried, MOST_STEPS), key=_effort, default=None)
        if chain is None:
            return None
        wrong = codes[~demand.satisfied(codes, run_chain(chain, codes))]
        if not wrong.size:
            return chain
        tried = distinct(np.concatenate((tried, wrong[:: max(1, wrong.size // _TRIED)])))


def _effort(chain: Chain) -> tuple[int, int]:
    """Return the sort key among chains of equal length: few options, narrow formats."""
    options = sum(len(step.forms[0].options) for step in chain)
    return options, sum(max(step.src.bits, step.dst.bits) for step in chain)


def _integer_codes(fmt: Format, low: int, high: int) -> Codes:
    if high - low < 1 << 17:
        values = np.arange(low, high + 1, dtype=np.int64)
    else:
        powers = [sign * (1 << k) + d for k in range(33) for sign in (1, -1) for d in (-1, 0, 1)]
        spread = np.linspace(low, high, 1 << 10).astype(np.int64)
        values = distinct(np.concatenate((np.array(powers, np.int64), spread, [low, high])))
        values = values[(low <= values) & (values <= high)]
    if isinstance(fmt, IntFormat):
        codes: Codes = values.astype(np.uint64).astype(code_dtype(fmt)) & code_dtype(fmt).type((1 << fmt.bits) - 1)
        return codes
    assert fmt == F32
    return values.astype(np.float32).view(np.uint32)


def _within(codes: Codes, src: Format, dst: Format) -> Codes:
    """Return the codes of numbers that do not overflow."""
    numbers = np.isfinite(decode_to_float64(codes, src))
    if isinstance(dst, IntFormat):
        return codes[numbers]
    results = convert_codes(codes, src, dst, abstract_policy(src, dst))
    return codes[numbers & np.isfinite(decode_to_float64(results, dst))]

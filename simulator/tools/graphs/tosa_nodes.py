"""Execution of TOSA operators, and the sets of results that the specification accepts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Codes, Format, IntFormat, Rounding
from castsim.numerics.blocks import code_dtype
from castsim.running.acceptance import AcceptanceSets, acceptance
from castsim.targets.loader import load_specification
from castsim.targets.specification import RescaleRules
from castsim.tools.graphs.graph_kernels import KernelValue, NodeKernel
from castsim.tools.graphs.kernel_runner import GraphKernelRunner, clamped, f32
from castsim.tools.graphs.model import Graph, GraphNode, GraphTensor
from castsim.tools.graphs.tosa_operators import (
    DOUBLE_ROUND,
    INEXACT_ROUND,
    SINGLE_ROUND,
    GraphValidity,
    Rescale,
    operand_violations,
    read_as,
    rescale,
)
from castsim.tools.lowering.demand import Verdict
from castsim.tools.lowering.lowering_answers import Answer
from castsim.tools.lowering.planner import Plan, route_for
from castsim.tools.lowering.steps import Chain

# Casts of a specification in a graph: planned, and run whether or not a chain satisfies the specification.


def converted(
    runner: GraphKernelRunner,
    x: GraphTensor,
    dst: Format,
    spec: str,
    version: str | None,
    attributes: dict[str, str | int],
) -> tuple[GraphTensor, Answer]:
    """Run the planned chain of a cast, or the chain with the fewest failing values if none satisfies the demand.

    Integers of less than a byte that the target lacks are cast as bytes with one element each.

    Raises:
        ReadError: a version, attribute or value is unknown.
        IllegalError: the specification lacks the cast, or the destination is unreachable.
    """
    source, fmt = runner.unpacked(x.codes, x.format) if runner.chip.lacks(x.format) else (x.codes, x.format)
    stored = runner.computed_as(dst) if runner.chip.lacks(dst) else dst
    if stored != dst and not isinstance(fmt, IntFormat):  # which formats of 4 and 2 bits round to nearest
        spec, version, attributes = "exact", None, {"rounding": "rint"}
    answered = runner.chip.planned(fmt, stored, spec, version, attributes)
    plan = answered.plan
    if plan.verdict is Verdict.DIFFERS and not plan.chain:
        raise IllegalError(f"{runner.chip.target.name}: {plan.kind.value}: {plan.reason}")
    src, chain = plan.demand.src, closest_chain(runner, plan, source)
    title = f"cast {fmt.name} -> {stored.name}, {plan.demand.label}"
    codes = runner.through(title, source, src, chain, stored, answered)
    return GraphTensor(dst, runner.packed(codes, stored, dst)), answered


def closest_chain(runner: GraphKernelRunner, plan: Plan, codes: Codes) -> Chain:
    """Return the chain of a plan or, if none satisfies the demand, the closest one for these codes, with a remark."""
    if plan.verdict is not Verdict.DIFFERS:
        return plan.chain
    chain = route_for(plan, codes)
    runner.remark(
        f"no chain found as {plan.demand.label} asks; of the closest ones, the one with the fewest wrong results on "
        f"this input is run: {', '.join(step.label for step in chain if step.is_instruction)}"
    )
    return chain


# TOSA RESCALE on machines without 64-bit integers: exact f32 arithmetic on limbs of 11 bits.
#
# The input and the multiplier are sums of limbs times powers of 2**11; products of limbs, sums of up to three of them
# and a carry stay below 2**24, where f32 holds every integer. The rounding term is one more limb, the shift a division
# by a power of two that rounds down, limb by limb. INEXACT_ROUND takes one product in f32 instead.

_LIMB = 11
_RADIX = 1 << _LIMB
_LIMBS = 6
"""Limbs of a product of 63 bits and of its rounding term."""
_I32 = FORMATS["i32"]


def rescaled(runner: GraphKernelRunner, operator: Rescale, x: GraphTensor, rules: RescaleRules) -> GraphTensor:
    """Execute RESCALE by programs, one per pair of multiplier and shift.

    Raises:
        IllegalError: the target lacks an operation, or the input has 48 bits.
    """
    src = read_as(operator.src, operator.input_unsigned)
    dst = read_as(operator.dst, operator.output_unsigned)
    if src.bits > 32:
        raise IllegalError(f"no target supports {src.bits}-bit elements")
    codes = x.codes.astype(code_dtype(src))
    pairs = list(zip(operator.multiplier, operator.shift, strict=True))
    if not operator.per_channel:
        result = _scaled(runner, operator, rules, pairs[0], codes.reshape(-1), src, dst)
        return GraphTensor(dst, result.reshape(codes.shape))
    result = np.zeros(codes.shape, code_dtype(dst))
    for pair in dict.fromkeys(pairs):
        channels = [channel for channel, other in enumerate(pairs) if other == pair]
        part = codes[..., channels]
        part_result = _scaled(runner, operator, rules, pair, part.reshape(-1), src, dst)
        result[..., channels] = part_result.reshape(part.shape)
    if len(set(pairs)) > 1:
        runner.remark("per channel: one program for all channels of equal multiplier and shift, gathered before it")
    return GraphTensor(dst, result)


def _scaled(
    runner: GraphKernelRunner,
    operator: Rescale,
    rules: RescaleRules,
    pair: tuple[int, int],
    codes: Codes,
    src: IntFormat,
    dst: IntFormat,
) -> Codes:
    single = replace(operator, multiplier=(pair[0],), shift=(pair[1],), per_channel=False)
    title = f"RESCALE {operator.src} -> {operator.dst}, multiplier {pair[0]}, shift {pair[1]}, {operator.rounding_mode}"
    kernel, value = runner.unary(title, src)
    writer = _RescaleWriter(runner, kernel, single, rules, src, dst)
    result = writer.approximate(value) if operator.rounding_mode == INEXACT_ROUND else writer.exact(value)
    return runner.finish(kernel, result, codes, dst)


@dataclass
class _RescaleWriter:
    """Writer of a RESCALE's instructions into a kernel."""

    runner: GraphKernelRunner
    kernel: NodeKernel
    operator: Rescale
    rules: RescaleRules
    src: IntFormat
    dst: IntFormat

    def __post_init__(self) -> None:
        self.multiplier, self.shift = self.operator.multiplier[0], self.operator.shift[0]

    def approximate(self, value: KernelValue) -> KernelValue:
        """Return the input less its zero point, times the scale in f32, rounded to nearest, as the output."""
        number = self._number(value)
        scaled = self.kernel.combine("mul", number, f32(self.multiplier * 2.0**-self.shift))
        if self.dst == _I32:
            return self.runner.rounded(self.kernel, scaled, _I32)
        return self._placed(self.kernel.convert(self._bounded(scaled), self.runner.chip.integral(Rounding.RINT)))

    def exact(self, value: KernelValue) -> KernelValue:
        """Return the result of SINGLE_ROUND or DOUBLE_ROUND as the output."""
        factors = self._input_limbs(value)
        multiplier = [self.multiplier >> (_LIMB * limb) & (_RADIX - 1) for limb in range(3)]
        totals: list[KernelValue | None] = [None] * (_LIMBS + 1)
        for position, factor in enumerate(factors):
            for other, constant in enumerate(multiplier):
                if constant:
                    self._add(totals, position + other, self.kernel.combine("mul", factor, f32(constant)))
        position, bit = divmod(self.shift - 1, _LIMB)
        self._add_constant(totals, position, 1 << bit, factors[0])
        if self.operator.rounding_mode == DOUBLE_ROUND and self.shift > self.rules.double_round_above_shift:
            position, bit = divmod(self.rules.double_round_bit, _LIMB)
            self._add(totals, position, self._sign_term(value, bit))
        return self._shifted(totals, factors[0])

    # --------------------------------------------------------------------------------------------------------- input

    def _number(self, value: KernelValue) -> KernelValue:
        number = self.runner.widened(self.kernel, value)
        zero_point = self.operator.input_zp
        return self.kernel.combine("add", number, f32(-zero_point)) if zero_point else number

    def _input_limbs(self, value: KernelValue) -> list[KernelValue]:
        """Return the limbs of the input less its zero point, the lowest first; all but the last within a radix."""
        kernel = self.kernel
        if self.src != _I32:
            number = self._number(value)
            if self.src.bits == 8:
                return [number]
            high = self._floor(number, _LIMB)
            return [self._less(number, high, _RADIX), high]
        # f32 has no room for 32 bits: the upper part is rounded to nearest, and what is left is found in integers.
        upper = kernel.combine("mul", self.runner.widened(kernel, value), f32(2.0 ** (-2 * _LIMB)))
        upper = kernel.convert(upper, self.runner.chip.integral(Rounding.RINT))
        whole = self.runner.narrowed(kernel, upper, _I32, -(1 << 10), 1 << 10)
        rest = kernel.combine("sub", value, kernel.combine("shl", whole, 2 * _LIMB))
        low = self.runner.widened(kernel, rest)
        middle = self._floor(low, _LIMB)
        return [self._less(low, middle, _RADIX), middle, upper]

    def _sign_term(self, value: KernelValue, bit: int) -> KernelValue:
        """Return 2**bit with the sign of the input; zero counts as positive."""
        doubled = self.kernel.combine("mul", self._number(value), f32(2.0))
        sign = clamped(self.kernel, self.kernel.combine("add", doubled, f32(1.0)), -1.0, 1.0)
        return self.kernel.combine("mul", sign, f32(1 << bit))

    # -------------------------------------------------------------------------------------------------------- limbs

    def _add(self, totals: list[KernelValue | None], limb: int, term: KernelValue) -> None:
        total = totals[limb]
        totals[limb] = term if total is None else self.kernel.combine("add", total, term)

    def _add_constant(self, totals: list[KernelValue | None], limb: int, constant: int, like: KernelValue) -> None:
        total = totals[limb] or self.kernel.combine("mul", like, f32(0.0))
        totals[limb] = self.kernel.combine("add", total, f32(constant))

    def _floor(self, value: KernelValue, bits: int) -> KernelValue:
        """Return a value divided by 2**bits, rounded down."""
        scaled = self.kernel.combine("mul", value, f32(2.0**-bits)) if bits else value
        return self.kernel.convert(scaled, self.runner.chip.integral(Rounding.FLOOR)) if bits else scaled

    def _less(self, value: KernelValue, quotient: KernelValue, divisor: int) -> KernelValue:
        return self.kernel.combine("add", value, self.kernel.combine("mul", quotient, f32(-divisor)))

    def _shifted(self, totals: list[KernelValue | None], like: KernelValue) -> KernelValue:
        """Divide the sum of limbs by 2**shift, rounding down, and return it as the output."""
        whole_limbs, bits = divmod(self.shift, _LIMB)
        for lower in range(whole_limbs):
            total = totals[lower]
            if total is not None:
                self._add(totals, lower + 1, self._floor(total, _LIMB))
        # Limbs from here on are within a radix, but for the last, which takes the sign.
        top = max((at for at, limb_total in enumerate(totals) if limb_total is not None), default=whole_limbs)
        for at in range(whole_limbs, min(whole_limbs + 1, top - 1) + 1):
            total = totals[at]
            if total is not None:
                carry = self._floor(total, _LIMB)
                totals[at] = self._less(total, carry, _RADIX)
                self._add(totals, at + 1, carry)
        zero = self.kernel.combine("mul", like, f32(0.0))
        lowest = totals[whole_limbs]
        low = zero if lowest is None else self._floor(lowest, bits)
        beyond = whole_limbs + 1
        following = totals[beyond] if beyond < top else None
        if following is not None:
            low = self.kernel.combine("add", low, self.kernel.combine("mul", following, f32(1 << (_LIMB - bits))))
            beyond += 1
        high: KernelValue | None = None
        for at in reversed(range(beyond, top + 1)):
            total = totals[at]
            if high is not None:
                high = self.kernel.combine("mul", high, f32(_RADIX))
            if total is not None:
                high = total if high is None else self.kernel.combine("add", high, total)
        return self._joined(low, high, (beyond - whole_limbs) * _LIMB - bits)

    # -------------------------------------------------------------------------------------------------------- output

    def _joined(self, low: KernelValue, high: KernelValue | None, bits: int) -> KernelValue:
        """Return low + high * 2**bits as the output: exact where it lies within, and beyond its ends beyond."""
        kernel = self.kernel
        if self.dst != _I32:
            total = low if high is None else kernel.combine("add", low, kernel.combine("mul", high, f32(1 << bits)))
            return self._placed(self._bounded(total))
        lower = self.runner.narrowed(kernel, low, _I32, -(1 << 24), 1 << 24)
        if high is None:
            return lower
        upper = self.runner.narrowed(kernel, high, _I32, -(1 << 24), 1 << 24)
        return kernel.combine("add", lower, kernel.combine("shl", upper, bits))

    def _bounded(self, value: KernelValue) -> KernelValue:
        zero_point = self.operator.output_zp
        return clamped(self.kernel, value, self.dst.minimum - zero_point, self.dst.maximum - zero_point)

    def _placed(self, value: KernelValue) -> KernelValue:
        """Add the zero point to an integer within its bounds and return it as the output."""
        zero_point = self.operator.output_zp
        if zero_point:
            value = self.kernel.combine("add", value, f32(zero_point))
        return self.runner.narrowed(self.kernel, value, self.dst, self.dst.minimum, self.dst.maximum)


def run_tosa_node(
    runner: GraphKernelRunner, graph: Graph, node: GraphNode, inputs: Sequence[GraphTensor | None]
) -> tuple[list[GraphTensor], Answer | None, AcceptanceSets | None]:
    """Run one node by programs; return its output, the lowering's answer for a cast, and the accepted results.

    Raises:
        ReadError, IllegalError, TileError: the node cannot be run; the message says why.
    """
    x = inputs[0]
    assert x is not None
    if node.op == "tosa.identity":
        return [x], None, None
    if node.op == "tosa.reshape":
        return [_reshaped(node, x, inputs)], None, None
    if node.op == "tosa.rescale":
        return _rescaled(runner, graph, node, x, inputs)
    attributes: dict[str, str | int] = {"input_unsigned": 1} if node.attributes.get("input_unsigned") else {}
    dst = node.results[0][0]
    result, cast_answer = converted(runner, x, dst, graph.spec, graph.version, attributes)
    demand = cast_answer.plan.demand
    return [result], cast_answer, acceptance(demand.cast, demand.src, dst, x.codes)


def rescale_of(graph: Graph, node: GraphNode) -> Rescale:
    """Return the RESCALE operator of a `tosa.rescale`.

    Raises:
        ReadError: a zero point is not a single number.
        IllegalError: a multiplier, shift or zero point is not a constant.
    """
    given = node.attributes
    src, dst = _source_name(graph, node), node.results[0][0].name
    mode = given.get("rounding_mode", DOUBLE_ROUND if given.get("double_round") else SINGLE_ROUND)
    unsigned = {name: bool(given.get(f"{name}_unsigned", False)) for name in ("input", "output")}
    return Rescale(
        src=src,
        dst=dst,
        multiplier=tuple(_operand(graph, node, 1, "multiplier")),
        shift=tuple(_operand(graph, node, 2, "shift")),
        scale32=given["scale32"],
        rounding_mode=mode,
        per_channel=given["per_channel"],
        input_zp=_zero_point(graph, node, 3, "input_zp", src, unsigned["input"]),
        output_zp=_zero_point(graph, node, 4, "output_zp", dst, unsigned["output"]),
        input_unsigned=unsigned["input"],
        output_unsigned=unsigned["output"],
    )


def check_rescale(graph: Graph, node: GraphNode, operator: Rescale) -> None:
    """Reject a RESCALE that is illegal for all data.

    Raises:
        ReadError: an operand type cannot represent a multiplier, shift or zero point.
        IllegalError: the specification forbids it.
    """
    extents = [extent or 1 for extent in node.results[0][1]]
    shape = [*[1] * (len(extents) - 1), *extents[-1:]]  # channels are last, other extents have no rule
    src = read_as(operator.src, operator.input_unsigned)
    outcome = rescale(operator, np.zeros(shape, code_dtype(src)), graph.spec)
    if outcome.outcome is GraphValidity.ERROR:
        raise IllegalError(f"RESCALE is illegal: {'; '.join(outcome.reasons)}")


def _rescaled(
    runner: GraphKernelRunner, graph: Graph, node: GraphNode, x: GraphTensor, inputs: Sequence[GraphTensor | None]
) -> tuple[list[GraphTensor], None, AcceptanceSets | None]:
    operator = rescale_of(graph, node)
    demanded = rescale(operator, x.codes, graph.spec)
    rules = load_specification(graph.spec).rescale
    assert rules is not None  # without, the operator has been refused
    check_rescale(graph, node, operator)
    if demanded.outcome is GraphValidity.UNPREDICTABLE:
        runner.remark(f"unpredictable: {'; '.join(demanded.reasons)}; every result is accepted")
        if operand_violations(operator, rules):
            raise IllegalError(f"RESCALE is unpredictable: {'; '.join(demanded.reasons)}")
    result = rescaled(runner, operator, x, rules)
    declared = node.results[0][0]
    return [GraphTensor(declared, result.codes)], None, demanded.sets


def _reshaped(node: GraphNode, x: GraphTensor, inputs: Sequence[GraphTensor | None]) -> GraphTensor:
    shape = inputs[1] if len(inputs) > 1 else None
    wanted: list[int] = node.attributes["new_shape"] if shape is None else shape.array.reshape(-1).tolist()
    try:
        return GraphTensor(x.format, x.codes.reshape(wanted))
    except ValueError:
        raise IllegalError(f"a tensor of shape {list(x.shape)} cannot be reshaped to {wanted}") from None


def _source_name(graph: Graph, node: GraphNode) -> str:
    name = node.inputs[0]
    for port in graph.inputs:
        if port.name == name:
            return port.format.name
    for other in graph.nodes:
        if name in other.outputs:
            return other.results[0][0].name
    return graph.constants[str(name)].format.name


def _operand(graph: Graph, node: GraphNode, index: int, name: str) -> list[int]:
    """Return the integers of an operand or, in older text, of an attribute."""
    if len(node.inputs) > index:
        tensor = graph.constants.get(str(node.inputs[index]))
        if tensor is None:
            raise IllegalError(f"{name} %{node.inputs[index]} is not a constant; only constants are supported")
        return [int(value) for value in tensor.array.reshape(-1).tolist()]
    value = node.attributes[name]
    return value if isinstance(value, list) else [value]


def _zero_point(graph: Graph, node: GraphNode, index: int, name: str, kind: str, unsigned: bool) -> int:
    values = _operand(graph, node, index, name)
    if len(values) != 1:
        raise ReadError(f"{name} must be a single number, not {len(values)}", span=node.span)
    return values[0] & ((1 << FORMATS[kind].bits) - 1) if unsigned else values[0]

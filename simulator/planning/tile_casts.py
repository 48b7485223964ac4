"""The tile casts of a chip as steps: every type pair with every rounding, saturation and scratch that a text can name.

Values come from the same plans as the machines': `simulator.strided.plan` and its scratch sequences, or the steps
traced through the kernels of `simulator.vector_function`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isa.errors import Span
from isa.formats import Format, IntFormat, format_named
from isa.modes import Saturation
from isa.pto.program import RoundMode, TileType
from simulator.planning.primitives import And, Convert, Integral, Primitive, Scaled
from simulator.planning.steps import Step, TileCastForm
from simulator.tiles import Tile, TileCast
from simulator.tree import Block, Lowered, operations
from targets.strided_repeat import StridedRepeatTarget
from targets.vector_function import VectorFunctionTarget

Primitives = tuple[Primitive, ...]

_HERE = Span("<plan>", 1, 1)
_SOURCE, _SCRATCH, _DESTINATION = 0, 1 << 20, 1 << 21
_SATURATIONS = (None, Saturation.ON, Saturation.OFF)


def tile_casts(target: StridedRepeatTarget | VectorFunctionTarget, source: str | None = None) -> Iterator[Step]:
    """Yield one step per type pair and behaviour, from `source` alone where it is named."""
    for rule in target.casts:
        if source not in (None, rule.src):
            continue
        src, dst = format_named(rule.src), format_named(rule.dst)
        modes = [None, *(RoundMode[mode.name] for mode in rule.suffixes)]
        found: dict[Primitives, list[TileCastForm]] = {}
        traced: dict[tuple[object, ...], Primitives] = {}
        for form in _forms(target, rule.src, rule.dst, modes):
            if isinstance(target, VectorFunctionTarget):
                primitives = _function_primitives(target, src, dst, form, traced)
            else:
                primitives = _strided_primitives(target, src, dst, form)
            found.setdefault(primitives, []).append(form)
        for primitives, forms in found.items():
            plainest = tuple(sorted(forms, key=lambda form: len(form.options)))
            yield Step(src, dst, primitives, plainest, f"tcvt {src.name} -> {dst.name}")


def _forms(
    target: StridedRepeatTarget | VectorFunctionTarget, src: str, dst: str, modes: Iterable[RoundMode | None]
) -> Iterator[TileCastForm]:
    scratches = [False]
    if isinstance(target, StridedRepeatTarget) and target.scratch_sequence(src, dst) is not None:
        scratches.append(True)
    for scratch in scratches:
        for saturation in _SATURATIONS:
            for mode in modes:
                yield TileCastForm(mode, saturation, scratch)


def _strided_primitives(target: StridedRepeatTarget, src: Format, dst: Format, form: TileCastForm) -> Primitives:
    # Only the mechanism in use is loaded.
    from simulator.strided.plan import plan_cast  # noqa: PLC0415
    from simulator.strided.sequences import Call, emit_call  # noqa: PLC0415

    plan = plan_cast(target, src, dst, form.rounding, form.saturation, scratch=form.scratch)
    if plan.sequence is None:
        return (_of_action(plan.action, src, dst),)
    sequence = Lowered(0, Block(tuple(emit_call(target, plan, Call(1, _DESTINATION, _SOURCE, 0, 0, 1), _SCRATCH))))
    return _through_scratch(sequence)


def _through_scratch(sequence: Lowered) -> Primitives:
    """Return what becomes of an element on its way through a scratch sequence."""
    from simulator.strided.operations import BitwiseAnd, Duplicate, VectorOperation  # noqa: PLC0415

    held: dict[int, Primitives] = {_SOURCE: ()}
    constants: dict[int, int] = {}
    for operation in operations(sequence, None):
        if not isinstance(operation, VectorOperation):
            continue
        place, action = operation.destination.address, operation.action
        sources = [source.address for source in operation.sources]
        if isinstance(action, Duplicate):
            constants[place] = action.value
            continue
        if isinstance(action, BitwiseAnd):
            value, mask = sources
            held[place] = (*held[value], And(constants[mask]))
        else:
            step = _of_action(action, operation.sources[0].format, operation.destination.format)
            held[place] = (*held[sources[0]], step)
        constants.pop(place, None)
    return held[_DESTINATION]


def _of_action(action: object, src: Format, dst: Format) -> Primitive:
    from simulator.numerics import scale_of  # noqa: PLC0415
    from simulator.strided import operations as strided  # noqa: PLC0415
    from simulator.strided.values import SCALE_FORMAT  # noqa: PLC0415

    match action:
        case strided.Convert(policy):
            return Convert(src, dst, policy)
        case strided.RoundToIntegral(policy):
            return Integral(dst, policy)
        case strided.ScaledConvert(scale, policy):
            assert isinstance(src, IntFormat)
            return Scaled(src, dst, scale_of(scale, SCALE_FORMAT), policy)
    raise TypeError(f"{action} converts nothing")


def _function_primitives(
    target: VectorFunctionTarget,
    src: Format,
    dst: Format,
    form: TileCastForm,
    traced: dict[tuple[object, ...], Primitives],
) -> Primitives:
    """Return the steps of a kernel; what a form does not change is traced once."""
    from simulator.vector_function.plan import plan_cast  # noqa: PLC0415

    plan = plan_cast(target, src, dst, form.rounding, form.saturation, contiguous=True, scratch=False)
    key = plan.variant, plan.rounding, plan.saturation, plan.ctrl
    if key not in traced:
        traced[key] = _traced(target, src, dst, form)
    return traced[key]


def _traced(target: VectorFunctionTarget, src: Format, dst: Format, form: TileCastForm) -> Primitives:
    from simulator.vector_function.lowering import lower_cast  # noqa: PLC0415
    from simulator.vector_function.trace import ConvertStep, IntegralStep, MaskStep, trace_nest  # noqa: PLC0415

    size = target.registers.register_bytes
    source = _row("src", src, 0, size)
    cast = TileCast(source, _row("dst", dst, source.end, size), None, form.rounding, form.saturation, _HERE)
    function = lower_cast(target, cast).function
    chain = trace_nest(function, function.nests[-1])
    assert chain is not None  # tests trace every variant of every pair
    found: list[Primitive] = []
    for step in chain:
        match step:
            case ConvertStep(before, after, policy):
                found.append(Convert(before, after, policy))
            case IntegralStep(fmt, policy):
                found.append(Integral(fmt, policy))
            case MaskStep(mask):
                found.append(And(mask))
    return tuple(found)


def _row(name: str, fmt: Format, address: int, cols: int) -> Tile:
    """One full row of whole trips of every kernel."""
    bits = fmt.bits if fmt.bits == 4 else fmt.storage_bits
    return Tile(name, fmt, TileType("vec", fmt.name, 1, cols, 1, cols), address, 1, cols, bits)

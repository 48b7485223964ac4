"""The lane unit: it executes the vector instructions of micro programs and of tile functions on registers of bytes.

Source: docs/reference/micro.md sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.interpreter.scalar_values import FLOATS, bits_of
from castsim.execution.interpreter.vector_unit import (
    Followed,
    MicroMemory,
    SeparateRunsError,
    Value,
    VectorIssue,
)
from castsim.execution.outcomes import CastBatch, CastPlace, CastTally, Judge, Listener, heard_by
from castsim.execution.tree import Instruction, Lowered
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes, Format, Overflow, Rounding, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import OPAQUE, ROWS
from castsim.isa.pto.micro_words import Conversion, conversion
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    AlignType,
    MaskType,
    MicroOperation,
    PairFormat,
    PointerType,
    ScalarType,
    VectorType,
    element_format,
)
from castsim.machines.program_recorder import execute_tile, no_strided
from castsim.machines.vector_function import loads_stores as access
from castsim.machines.vector_function.lane_operations import OPERATIONS, execute, squeezed_bytes
from castsim.machines.vector_function.vector_registers import (
    Operands,
    PredicateRegister,
    VectorRegister,
    convert,
    every_lane,
    mask_of,
    masked,
    register_of,
    truncate,
)
from castsim.numerics.policy import Policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.vector_function import VectorFunctionTarget

# What the conversions of vector instructions did to their numbers: lanes that are active and hold something known.


@dataclass(slots=True)
class ConversionCounts:
    """Counts of conversions by line; those of one line and pair are added for all parts of a register."""

    tally: CastTally
    _batches: dict[tuple[int, int], CastBatch] = field(default_factory=dict)

    def of(self, node: MicroOperation, pair: Conversion, control: int) -> Callable[[Policy, Codes, Codes], None]:
        """Return a listener for the policy and the codes of an execution, before and after."""

        def hear(policy: Policy, before: Codes, after: Codes) -> None:
            key = id(node), control  # instructions of a program live as long as its run; one CTRL is one policy
            if key not in self._batches:
                name = f"{node.mnemonic} {pair.src} -> {pair.dst}"
                formats, wraps = (format_named(pair.src), format_named(pair.dst)), policy.overflow is Overflow.WRAP
                judge = Judge(*formats, policy.rounding, wraps)
                self._batches[key] = self.tally.batch(CastPlace(node.span.line, name, pair.src, pair.dst), judge)
            self._batches[key].add(before, after)

        return hear

    def listener(self, node: MicroOperation, operands: Operands) -> Listener:
        """Return a listener for saturating instructions, in active lanes with known values."""

        def hear(judge: Judge, before: Codes, after: Codes, converts: bool) -> None:
            active = operands.masks[-1].lanes(operands.width)
            for register in operands.registers:
                active = active & register.defined_lanes(operands.width)
            if before.shape == active.shape:
                before, after = before[active], after[active]
            self.tally.count(node.span.line, node.mnemonic, judge, before, after, converts=converts)

        return hear


_NO_FORMAT = FORMATS["u8"]
"""The placeholder element of instructions that only use masks."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The state of an unaligned store: the number of bytes stored after its base."""

    stored: int = 0


@dataclass(slots=True)
class LaneUnit(Followed):
    """Executor of instructions on `memory`'s buffer; see `castsim.execution.interpreter.vector_unit.VectorUnit`."""

    memory: MicroMemory
    target: VectorFunctionTarget
    conversions: ConversionCounts | None = None
    counted: int = 0
    """Number of bytes that the last `vsqz` kept: the register AR."""
    _plans: dict[int, tuple[Operands, tuple[str, ...]]] = field(default_factory=dict)

    def execute(self, issue: VectorIssue) -> tuple[Value, ...]:
        """Execute an instruction.

        Raises:
            IllegalError: the instruction is not modelled. TileError: it reaches beyond the buffer.
        """
        run = _OWN.get(issue.node.mnemonic, LaneUnit._on_registers)
        return run(self, issue) if not self.memory.runs or _for_all(issue) else self._run_by_run(run, issue)

    def _run_by_run(self, run: _Run, issue: VectorIssue) -> tuple[Value, ...]:
        """Execute an instruction on the registers of each run.

        Raises:
            SeparateRunsError: it accesses memory, or more than the data of its results differs between runs.
        """
        if issue.address is not None:
            raise SeparateRunsError
        results = [run(self, _of_run(issue, number)) for number in range(self.memory.runs)]
        return tuple(_stacked(values) for values in zip(*results, strict=True))

    def strided(self, node: pto.StridedStatement, operands: tuple[Value, ...], control: int) -> int:
        """Refuse an instruction of A2/A3."""
        raise no_strided(self.target, node)

    def tile(self, node: pto.Operation, lowered: Lowered, instruction: Instruction) -> None:
        """Execute a tile operation; the bytes that it writes become defined."""
        del node
        if self.memory.runs:
            raise SeparateRunsError
        tally = None if self.conversions is None else self.conversions.tally
        execute_tile(self.target, self.memory, lowered, instruction, tally)

    def _on_registers(self, issue: VectorIssue) -> tuple[Value, ...]:
        node = issue.node
        plan = self._plans.get(id(node))
        if plan is None:
            plan = self._plans[id(node)] = _planned(node, self.target)
        given, (plain, kinds) = issue.operands, plan
        scalars = [operand.value for operand in given if isinstance(operand, DependentScalar)]
        operands = Operands(
            plain.name, plain.element, plain.result, plain.width, plain.target,
            tuple(operand for operand in given if isinstance(operand, VectorRegister)),
            tuple(operand for operand in given if isinstance(operand, PredicateRegister)) or plain.masks,
            tuple(_code(value, kinds[index]) if kinds else int(value) for index, value in enumerate(scalars)),
            plain.words, issue.control,
        )  # fmt: skip
        if node.mnemonic == "vsqz":
            self.counted = squeezed_bytes(operands.masks[0], operands.width)
        if self.conversions is None:
            results = execute(operands)
        else:
            with heard_by(self.conversions.listener(node, operands)):
                results = execute(operands)
        return tuple(result_value for result_value in results if not isinstance(result_value, int))


def _planned(node: MicroOperation, target: VectorFunctionTarget) -> tuple[Operands, tuple[str, ...]]:
    """Return the operands of an instruction of the text before any has a value, and the types of its scalars.

    Its masks are those of an unmasked instruction: all lanes. Lines of kernels state types of results only; their
    scalars are integers.
    """
    name = node.mnemonic
    row = ROWS[name]
    plain = row.family or name
    if plain not in OPERATIONS:
        raise IllegalError(f"the values of pto.{name} are not modelled", legal=sorted(OPERATIONS))
    sources = [kind for kind in node.operand_types if isinstance(kind, VectorType)]
    results = [kind for kind in node.result_types if isinstance(kind, VectorType)]
    element = _element(sources or results)
    result = _element(results) if results else element
    masks = [kind for kind in (*node.operand_types, *node.result_types) if isinstance(kind, MaskType)]
    width = row.width or (masks[0].bits if masks else min(32, element.storage_bits))
    words = tuple(word for key, word in node.attributes if key != "number")
    kinds = tuple(kind.name for kind in node.operand_types if isinstance(kind, ScalarType))
    return Operands(plain, element, result, width, target, masks=(every_lane(width),), words=words), kinds


def _code(value: float, kind: str) -> int:
    """Return a scalar operand as functions of lanes take it: the code of a float, an integer unchanged."""
    return bits_of(value, kind) if kind in FLOATS else int(value)


def _element(kinds: list[VectorType]) -> Format:
    """Return the format of the elements of a register; a pair of 16-bit floats moves as one number."""
    if not kinds:
        return _NO_FORMAT
    fmt = element_format(kinds[0].element)
    return FORMATS[f"u{fmt.bits}"] if isinstance(fmt, PairFormat) else fmt


# Instructions on registers of several runs.

_LANE_BY_LANE = frozenset(
    ("vabs", "vadd", "vadds", "vsub", "vmul", "vmuls", "vdiv", "vmax", "vmaxs", "vmin", "vmins", "vsqrt", "vbitcast",
     "vcmax", "vcmin", "vcadd")
)  # fmt: skip
"""Instructions that compute all runs at once, as all do whose operands are the same in all runs."""


def _for_all(issue: VectorIssue) -> bool:
    """Return whether an instruction computes all runs at once."""
    if issue.node.mnemonic in _LANE_BY_LANE or issue.node.mnemonic in ("vlds", "vldsx2", "vsts", "vstsx2"):
        return True
    if issue.node.mnemonic == "vcvt":
        return all(element_format(kind.element).bits > 4 for kind in _vector_types(issue))
    return issue.address is None and all(register.data.ndim == 1 for register in _registers(issue))


def _of_run(issue: VectorIssue, number: int) -> VectorIssue:
    """Return an instruction with the operands of one run."""
    operands = (
        VectorRegister(operand.data[number], operand.defined)
        if isinstance(operand, VectorRegister) and operand.data.ndim > 1
        else operand
        for operand in issue.operands
    )
    return replace(issue, operands=tuple(operands))


def _stacked(results: Sequence[Value]) -> Value:
    """Return one result for those of all runs.

    Raises:
        SeparateRunsError: more than the data of registers differs.
    """
    first = results[0]
    if isinstance(first, VectorRegister):
        registers = [value for value in results if isinstance(value, VectorRegister)]
        if all(np.array_equal(register.defined, first.defined) for register in registers):
            return VectorRegister(np.stack([register.data for register in registers]), first.defined)
    elif isinstance(first, PredicateRegister):
        masks = [value for value in results if isinstance(value, PredicateRegister)]
        if all(np.array_equal(mask.bits, first.bits) for mask in masks) and all(
            np.array_equal(mask.defined, first.defined) for mask in masks
        ):
            return first
    elif all(value == first for value in results):
        return first
    raise SeparateRunsError


# ------------------------------------------------------------------------------------------------- own ways to run


def _registers(issue: VectorIssue) -> list[VectorRegister]:
    return [operand for operand in issue.operands if isinstance(operand, VectorRegister)]


def _mask(issue: VectorIssue) -> PredicateRegister:
    return next(operand for operand in issue.operands if isinstance(operand, PredicateRegister))


def _address(issue: VectorIssue) -> int:
    assert issue.address is not None
    return issue.address


def _stride(issue: VectorIssue) -> int:
    """Return the first number of a block access."""
    return int(next(operand.value for operand in issue.operands if isinstance(operand, DependentScalar)))


def _vector_types(issue: VectorIssue) -> list[VectorType]:
    kinds = (*issue.node.operand_types, *issue.node.result_types)
    return [kind for kind in kinds if isinstance(kind, VectorType)]


def _load(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    count = 2 if issue.node.mnemonic == "vldsx2" else 1
    return access.load(unit.memory, _address(issue), access.distribution_name(issue.node), count)


def _store(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    mode = access.distribution_name(issue.node)
    access.store(_registers(issue), unit.memory, _address(issue), mode, _mask(issue))
    return ()


def _load_blocks(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    return (access.load_blocks(unit.memory, _address(issue), _stride(issue), _mask(issue)),)


def _store_blocks(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    access.store_blocks(_registers(issue)[0], unit.memory, _address(issue), _stride(issue), _mask(issue))
    return ()


def _load_mask(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    return (access.load_predicate(unit.memory, _address(issue), issue.node.word("dist") or "NORM"),)


def _store_mask(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    access.store_predicate(_mask(issue), unit.memory, _address(issue), issue.node.word("dist") or "NORM")
    return ()


def _gather(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    width, index = lane_bits(_vector_types(issue)[0].element), _registers(issue)[0]
    mask = _lanes_taken(issue, width)
    return (access.gather(unit.memory, _address(issue), index, width, _pointed_bits(issue), mask),)


def _gather_blocks(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    offsets, mask = _registers(issue)[0], _lanes_taken(issue, REGISTER_BITS // access.BLOCKS)
    return (access.gather_blocks(unit.memory, _address(issue), offsets, mask),)


def _scatter(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    (value, index), bits = _registers(issue)[:2], _pointed_bits(issue)
    access.scatter(value, unit.memory, _address(issue), index, bits, _lanes_taken(issue, bits))
    return ()


def _pointed_bits(issue: VectorIssue) -> int:
    """Return the bits of the elements that the pointer of an instruction points to."""
    return lane_bits(next(kind for kind in issue.node.operand_types if isinstance(kind, PointerType)).element)


def _lanes_taken(issue: VectorIssue, width: int) -> PredicateRegister:
    """Return the mask of an instruction: its operand, or the given number of leading active lanes."""
    mask = next((operand for operand in issue.operands if isinstance(operand, PredicateRegister)), None)
    if mask is not None:
        return mask
    return mask_of(np.arange(REGISTER_BITS // width) < _stride(issue), width)


def _convert(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    source, result = _vector_types(issue)[:2]
    rounding, saturation = issue.node.word("rnd"), issue.node.word("sat")
    return _converted(
        unit, issue, _registers(issue)[0], conversion(source.element, result.element), rounding, saturation
    )


def _converted(
    unit: LaneUnit,
    issue: VectorIssue,
    source: VectorRegister,
    pair: Conversion,
    rounding: str | None,
    saturation: str | None,
) -> tuple[Value, ...]:
    seen = None if unit.conversions is None else unit.conversions.of(issue.node, pair, issue.control)
    part, mask = issue.node.word("part"), _mask(issue)
    result = convert(source, pair, part, mask, rounding, saturation, target=unit.target, ctrl=issue.control, seen=seen)
    return (result,)


def _scale_and_convert(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    """`vmulscvt`: x * s as f16 in the even or odd lanes, rounded by option `scaled_conversion_rounding`; `rnd` R and
    `sat` NOSAT unless stated."""
    source, rounding, saturation = _registers(issue)[0], issue.node.word("rnd"), issue.node.word("sat")
    scalar = next(operand for operand in issue.operands if isinstance(operand, DependentScalar))
    factor = np.array(bits_of(scalar.value, "f32"), "<u4").view("<f4")
    with np.errstate(all="ignore"):
        exact = source.lanes(32).view("<f4").astype(np.float64) * factor
    exact[np.isnan(exact)] = np.nan  # without a sign, as products of vmuls
    # A product rounded to odd keeps enough for the second rounding to be that of the exact product.
    first = Rounding.ODD if unit.target.option("scaled_conversion_rounding") == "once" else Rounding.RINT
    policy = Policy(rounding=first, overflow=Overflow.SPECIAL)
    product = convert_codes(exact.view("<u8"), format_named("f64"), format_named("f32"), policy)
    register = register_of(product, source.defined_lanes(32))
    return _converted(unit, issue, register, conversion("f32", "f16"), rounding or "R", saturation or "NOSAT")


def _truncate(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    rounding = issue.node.word("rnd")
    assert rounding is not None
    source, mask, element = _registers(issue)[0], _mask(issue), _vector_types(issue)[0].element
    result = truncate(source, element, mask, rounding)
    if unit.conversions is not None:
        fmt = format_named(element)
        active = mask.lanes(fmt.bits) & source.defined_lanes(fmt.bits)
        before, after = source.lanes(fmt.bits)[active], result.lanes(fmt.bits)[active]
        tally, judge = unit.conversions.tally, Judge(fmt, fmt, Rounding.RINT)
        tally.count(issue.node.span.line, issue.node.mnemonic, judge, before, after, converts=True)
    return (result,)


def _move(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    del unit
    source = _registers(issue)[0]
    mask = next((operand for operand in issue.operands if isinstance(operand, PredicateRegister)), None)
    if mask is None:
        return (source,)
    width = min(64, lane_bits(_vector_types(issue)[0].element))
    return (masked(source.lanes(width), source.defined_lanes(width), mask),)


def _align(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    del unit
    return tuple(Alignment() for kind in issue.node.result_types if isinstance(kind, AlignType))


def _load_unaligned(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    register = access.load_unaligned(unit.memory, _address(issue))
    return (register, Alignment())


def _store_unaligned(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    """Store the number of elements of an operand (`vstus`), or the number of bytes in AR (`vstur`)."""
    state = next(operand for operand in issue.operands if isinstance(operand, Alignment))
    by_register = issue.node.mnemonic == "vstur"
    count = unit.counted if by_register else _stride(issue) * _pointed_bits(issue) // 8
    start = _address(issue) + (state.stored if by_register or not issue.updates else 0)
    access.store_unaligned(_registers(issue)[0], unit.memory, start, count)
    moves = issue.node.word("mode") != "NO_POST_UPDATE"
    return (Alignment(state.stored + (count if moves else 0)),)


def _clear_counted(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    del issue
    unit.counted = 0
    return ()


def _opaque(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    del unit
    raise IllegalError(
        f"pto.{issue.node.mnemonic}: no source documents what it writes, so its values are unknown",
        legal=("--timing-only",),
    )


def _nothing(unit: LaneUnit, issue: VectorIssue) -> tuple[Value, ...]:
    del unit, issue
    return ()


_Run = Callable[[LaneUnit, VectorIssue], tuple[Value, ...]]
_OWN: Mapping[str, _Run] = {
    **dict.fromkeys(("vlds", "vldsx2"), _load),
    **dict.fromkeys(("vsts", "vstsx2"), _store),
    **dict.fromkeys(("plds", "pldi"), _load_mask),
    **dict.fromkeys(("psts", "psti"), _store_mask),
    "vsldb": _load_blocks,
    "vsstb": _store_blocks,
    **dict.fromkeys(("vgather2", "vgather2_bc"), _gather),
    "vgatherb": _gather_blocks,
    "vscatter": _scatter,
    "vcvt": _convert,
    "vmulscvt": _scale_and_convert,
    "vtrc": _truncate,
    "vmov": _move,
    **dict.fromkeys(("vldas", "init_align"), _align),
    "vldus": _load_unaligned,
    **dict.fromkeys(("vstus", "vstur"), _store_unaligned),
    **dict.fromkeys(("vstas", "vstar", "mem_bar"), _nothing),
    "sprclr": _clear_counted,
    **dict.fromkeys(OPAQUE, _opaque),
}
"""Instructions that are no rows of `OPERATIONS`."""

"""From kernel text to register operations: formats, policies and lane widths filled in for one cast."""

from __future__ import annotations

from collections.abc import Iterable

from castsim.isa.formats import format_named
from castsim.machines.vector_function.operations import (
    Ascend,
    Bitwise,
    Convert,
    CountDown,
    Duplicate,
    Gather,
    Interleave,
    Load,
    MemoryBarrier,
    Multiply,
    RegisterOperation,
    SetAll,
    Spread,
    Store,
    TripSelect,
)
from castsim.machines.vector_function.plan import CastPlan, step_policy
from castsim.targets.register_text import PARTS, RegisterInstruction
from castsim.targets.vector_function import KernelText, VectorFunctionTarget


def bind_all(
    target: VectorFunctionTarget, plan: CastPlan, kernel: KernelText, lines: Iterable[RegisterInstruction]
) -> tuple[RegisterOperation, ...]:
    """Return the operations of some lines of a kernel."""
    return tuple(_bind(target, plan, kernel, line) for line in lines)


def _bind(
    target: VectorFunctionTarget, plan: CastPlan, kernel: KernelText, line: RegisterInstruction
) -> RegisterOperation:
    operands = line.operands
    match line.mnemonic:
        case "vlds":
            return Load(line.results, operands[0])
        case "vsts":
            return Store(operands[1], operands[2], operands[0], int(operands[3]) if len(operands) > 3 else 0)
        case "vcvt" | "vtrc":
            return _bind_convert(target, plan, line)
        case "vor" | "vand":
            first, second, predicate = operands
            width = _lane_width(kernel, predicate)
            return Bitwise(line.mnemonic, line.results[0], (first, second), predicate, width)
        case "vselr":
            return Gather(line.results[0], operands[0], operands[1])
        case "punpack":
            return Spread(line.results[0], operands[0])
        case "select":
            return TripSelect(line.results[0], int(operands[0]), operands[1])
        case "mem_bar":
            return MemoryBarrier(operands[0])
        case _:
            return _bind_wide(target, line, line.width or 0)


def _bind_wide(target: VectorFunctionTarget, line: RegisterInstruction, width: int) -> RegisterOperation:
    """Bind an instruction that states its lane width."""
    operands = line.operands
    result = line.results[0]
    match line.mnemonic:
        case "vdup":
            return Duplicate(result, width, int(operands[0]))
        case "vci":
            return Ascend(result, width, int(operands[0]))
        case "vmuls":
            return Multiply(result, operands[0], width, int(operands[1]))
        case "vintlv":
            return Interleave((result, line.results[1]), (operands[0], operands[1]), width)
        case "pset":
            return SetAll(result, width)
        case _:
            lanes = target.registers.register_bytes * 8 // width
            if operands[0].isdecimal():
                return CountDown(result, width, min(int(operands[0]), lanes), None)
            return CountDown(result, width, int(operands[2]) if len(operands) > 1 else lanes, operands[0])


def _bind_convert(target: VectorFunctionTarget, plan: CastPlan, line: RegisterInstruction) -> Convert:
    source, predicate, *rest = line.operands
    part = rest.pop(0) if rest and rest[0] in PARTS else None
    src, dst = (format_named(name) for name in rest) if rest else (plan.src, plan.dst)
    policy = step_policy(target, plan, src, dst)
    return Convert(line.results[0], source, predicate, part, src, dst, policy, integral=line.mnemonic == "vtrc")


def _lane_width(kernel: KernelText, predicate: str) -> int:
    """Return the lane width in which a predicate was made."""
    made = [line.width for line in (*kernel.setup, *kernel.row, *kernel.trip) if predicate in line.results]
    return made[0] or 8

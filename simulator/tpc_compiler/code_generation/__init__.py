"""Sequences of TPC instructions made into programs that run: registers, latencies, loads, stores, values, counts.

sequence = Sequence()
(x,) = sequence.input("x", "f32")
y = sequence.vector()
sequence.vpu("convert.f32 target_type=int32 rhne", y, x)
sequence.output("y", "i32", y)
kernel = schedule(sequence, target)      # kernel.text(4) is assembly for four tiles
found = execute(kernel, {"x": codes})    # found.outputs["y"], found.vector_operations, found.stale_reads
"""

from castsim.tpc_compiler.code_generation.execution import KernelResult, execute, issue
from castsim.tpc_compiler.code_generation.kernel import ScheduledKernel
from castsim.tpc_compiler.code_generation.scheduling import schedule
from castsim.tpc_compiler.code_generation.sequence import (
    EmittedInstruction,
    ScalarArgument,
    Sequence,
    SequencePort,
    Value,
)

__all__ = [
    "EmittedInstruction",
    "KernelResult",
    "ScalarArgument",
    "ScheduledKernel",
    "Sequence",
    "SequencePort",
    "Value",
    "execute",
    "issue",
    "schedule",
]

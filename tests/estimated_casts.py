"""What estimates of casts are held against."""

from __future__ import annotations

from castsim.estimating import Estimate, timed_alone
from castsim.estimating.cast_estimates import CastShape, OperandPlacement, TileCastRequest
from castsim.machines.mechanisms import lowerer_of
from castsim.targets.dataflow import DataflowTarget


def simulated(target: DataflowTarget, request: TileCastRequest, shape: CastShape) -> Estimate:
    """The reference: the cast placed, lowered, simulated."""
    lowerer = lowerer_of(target)
    return timed_alone(target, lowerer.cast(OperandPlacement.of(target, lowerer, request).cast(lowerer, shape)), "cast")

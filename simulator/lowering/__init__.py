"""Planning casts: the chain of a target's instructions that gives what a specification asks for, proven or refuted.

found = plan(CastRequest("f16", "i8", "a5", spec="tosa"))
found.verdict, found.chain, found.cost.cycles_per_element, found.text, found.counterexample
"""

from castsim.lowering.catalogue import (
    Assembly,
    Catalogue,
    ProgramCost,
    assembly_of,
    catalogue_of,
    cost_of,
)
from castsim.lowering.demand import CastRequest, Counterexample, Demand, Required, TracedValue, Verdict, settle
from castsim.lowering.planner import Plan, PlanKind, Refuted, plan, plan_through, plan_with
from castsim.lowering.proof import Evidence, Judgement, Method, judge
from castsim.lowering.steps import Chain, LoweringStep, run_chain

__all__ = [
    "Assembly",
    "CastRequest",
    "Catalogue",
    "Chain",
    "Counterexample",
    "Demand",
    "Evidence",
    "Judgement",
    "LoweringStep",
    "Method",
    "Plan",
    "PlanKind",
    "ProgramCost",
    "Refuted",
    "Required",
    "TracedValue",
    "Verdict",
    "assembly_of",
    "catalogue_of",
    "cost_of",
    "judge",
    "plan",
    "plan_through",
    "plan_with",
    "run_chain",
    "settle",
]

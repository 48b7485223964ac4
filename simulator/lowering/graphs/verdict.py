"""The verdicts on a node: stronger than that a run met no difference only where something proves more."""

from __future__ import annotations

from enum import StrEnum

from castsim.lowering import Method, Plan, Verdict


class NodeVerdict(StrEnum):
    """The verdict on a node."""

    PROVEN = "proven"
    """Its cast is proven for every code of the source, by an argument."""
    TRIED = "exhaustively tried"
    """Every code of its inputs was tried."""
    UNCHANGED = "no data changes"
    """It moves no element from one code to another."""
    NO_MISMATCH = "no mismatch on this input"
    """The run met no difference; nothing is said of other inputs."""
    DIFFERS = "differs"
    """There is a counterexample: in the run, or in the proof or the trial of all codes."""
    NOT_JUDGED = "not judged"
    """It ran, and nothing says whether it is right."""
    NOT_RUN = "not run"
    """It could not be run."""

    @property
    def certain(self) -> bool:
        """Whether no input can give a wrong result."""
        return self in (NodeVerdict.PROVEN, NodeVerdict.TRIED, NodeVerdict.UNCHANGED)


def verdict_of_plan(plan: Plan) -> NodeVerdict:
    """Return the verdict on a node that follows from the proof of its lowered cast."""
    if plan.verdict is Verdict.DIFFERS:
        return NodeVerdict.DIFFERS
    if plan.evidence is None or not plan.evidence.proves:
        return NodeVerdict.NO_MISMATCH
    return NodeVerdict.TRIED if plan.evidence.method is Method.EXHAUSTIVE else NodeVerdict.PROVEN

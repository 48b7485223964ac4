"""The results of a graph and of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.graphs.comparison import OutputComparison
from castsim.graphs.kernel_runner import KernelRun
from castsim.graphs.model import Graph, GraphNode, GraphTensor
from castsim.graphs.verdict import NodeVerdict, verdict_of_plan
from castsim.planning import Plan
from castsim.planning.lowering_answers import Answer
from castsim.targets import Target


@dataclass(frozen=True, slots=True)
class NodeRun:
    """The result of a node.

    `answer` is that of the lowering, for a cast; `comparisons` judge the outputs of this run, `trial` those for every
    combination of codes that the node may read, where these are few (see `all_operands`). `refusal` says why it could
    not be run, of itself or because of a node that it reads from.
    """

    node: GraphNode
    shapes: tuple[tuple[int, ...], ...]
    stages: tuple[KernelRun, ...]
    remarks: tuple[str, ...]
    answer: Answer | None
    comparisons: tuple[OutputComparison, ...]
    refusal: str | None = None
    unjudged: str | None = None
    """The reason why the node ran but could not be judged."""
    trial: tuple[OutputComparison, ...] = ()

    @property
    def cycles(self) -> int:
        """Cycles of all its programs, one after the other."""
        return sum(stage.cycles for stage in self.stages)

    @property
    def plan(self) -> Plan | None:
        """The chain of a cast and its proof; None for other nodes."""
        return None if self.answer is None else self.answer.plan

    @property
    def agrees(self) -> bool:
        """Whether no element of this run is wrong: of a cast by its specification, of others by the reference."""
        judged = self.comparisons[-1:] if self.plan is not None else self.comparisons
        ran = self.refusal is None and self.unjudged is None
        return ran and not any(found.wrong for found in judged)

    @property
    def verdict(self) -> NodeVerdict:
        """The verdict on the node: for a cast by its proof, for others by the trial of all codes, else by the run.

        A wrong element refutes whatever else there is.
        """
        if self.refusal is not None:
            return NodeVerdict.NOT_RUN
        if self.unjudged is not None:
            return NodeVerdict.NOT_JUDGED
        if not self.agrees or any(found.wrong for found in self.trial):
            return NodeVerdict.DIFFERS
        if self.plan is not None:
            return verdict_of_plan(self.plan)
        if self.trial:
            return NodeVerdict.TRIED
        return NodeVerdict.NO_MISMATCH if self.stages else NodeVerdict.UNCHANGED

    @property
    def passes(self) -> bool:
        """Whether an element differs from the reference and is not wrong: what comes after it may differ too."""
        return self.agrees and any(found.wrong or found.passed for found in self.comparisons)


@dataclass(frozen=True, slots=True, repr=False)
class GraphRun:
    """A graph that ran: its nodes, the tensors of its outputs, and these against the reference of the whole graph."""

    graph: Graph
    target: Target
    nodes: tuple[NodeRun, ...]
    outputs: Mapping[str, GraphTensor]
    comparisons: tuple[OutputComparison, ...]
    unjudged: str | None = None
    """The reason why the outputs are not compared with the reference of the whole graph."""

    def __repr__(self) -> str:
        verdict = "conforms" if self.conforms else "does not conform"
        shown = f"{len(self.nodes)} nodes, {self.cycles} cycles, {verdict}"
        return f"<GraphRun {self.graph.file} on {self.target.name}: {shown}>"

    @property
    def cycles(self) -> int:
        """Cycles of all programs, one after the other."""
        return sum(node.cycles for node in self.nodes)

    @property
    def conforms(self) -> bool:
        """Whether every node is proven or exhaustively tried, and the outputs of this run do not contradict that."""
        return all(node.verdict.certain for node in self.nodes) and self.explained

    @property
    def agrees(self) -> bool:
        """Whether every node ran and no element of this run is wrong, which says nothing of other inputs."""
        return all(node.agrees for node in self.nodes) and self.explained

    @property
    def explained(self) -> bool:
        """Whether the nodes explain the outputs.

        An output that differs from the reference of the whole graph is explained if a node before it has an element
        that differs and is not wrong. Without one, the nodes and the whole contradict each other.
        """
        return not any(found.wrong and not found.because for found in self.comparisons)

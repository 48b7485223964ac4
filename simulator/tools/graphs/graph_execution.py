"""Execution of a graph on a target, node by node, with each compared to its expected results for the same inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from castsim.execution.input_data import random_codes, read_input, seed_of
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span, TileError, legal_text
from castsim.isa.formats import Codes, Format
from castsim.isa.reading import CPP_SUFFIXES, TILE_SUFFIX, read_text
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import codes_from_strings
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.running.acceptance import AcceptanceSets, acceptance, is_nan, specified_cast
from castsim.targets.loader import Target
from castsim.tools.graphs.graph_kernels import F32, WRITING, Chip, NodeKernel
from castsim.tools.graphs.kernel_runner import (
    GraphKernelRunner,
    KernelRun,
    Mask,
    NodeVerdict,
    OutputComparison,
    against_reference,
    against_sets,
    verdict_of_plan,
)
from castsim.tools.graphs.model import TEXT, Graph, GraphInput, GraphLanguage, GraphNode, GraphTensor, texts
from castsim.tools.graphs.model import judged as judged_by_version
from castsim.tools.graphs.onnx_nodes import (
    placed_operands,
    reference_outputs,
    reference_run,
    run_onnx_node,
    undefined_elements,
)
from castsim.tools.graphs.onnx_reader import read_onnx
from castsim.tools.graphs.tosa_nodes import check_rescale, rescale_of, run_tosa_node
from castsim.tools.graphs.tosa_operators import Rescale
from castsim.tools.graphs.tosa_reader import read_tosa
from castsim.tools.lowering.lowering_answers import Answer, changed, setting_of
from castsim.tools.lowering.planner import Plan
from castsim.tools.lowering.samples import all_codes, distinct

if TYPE_CHECKING:
    from castsim.running.loaded import LoadedProgram


# The results of a graph and of its nodes.


@dataclass(frozen=True, slots=True)
class NodeRun:
    """The result of a node.

    `answer` is that of the lowering, for a cast; `comparisons` judge the outputs of this run, `trial` those for every
    combination of possible input codes, if there are few (see `all_operands`). `refusal` is the reason why it was
    not run, which may be a node that it reads from.
    """

    node: GraphNode
    shapes: tuple[tuple[int, ...], ...]
    stages: tuple[KernelRun, ...]
    remarks: tuple[str, ...]
    answer: Answer | None
    comparisons: tuple[OutputComparison, ...]
    refusal: str | None = None
    unjudged: str | None = None
    """The reason why the node ran but was not judged."""
    trial: tuple[OutputComparison, ...] = ()

    @property
    def cycles(self) -> int:
        """Cycles of all its programs in sequence."""
        return sum(stage.cycles for stage in self.stages)

    @property
    def plan(self) -> Plan | None:
        """The chain of a cast and its proof; None for other nodes."""
        return None if self.answer is None else self.answer.plan

    @property
    def agrees(self) -> bool:
        """Whether no element of this run is wrong: for a cast by its specification, for others by the reference."""
        judged = self.comparisons[-1:] if self.plan is not None else self.comparisons
        ran = self.refusal is None and self.unjudged is None
        return ran and not any(comparison.wrong for comparison in judged)

    @property
    def verdict(self) -> NodeVerdict:
        """The verdict on the node: for a cast by its proof, for others by the trial of all codes, otherwise by the run.

        A wrong element refutes any other evidence.
        """
        if self.refusal is not None:
            return NodeVerdict.NOT_RUN
        if self.unjudged is not None:
            return NodeVerdict.NOT_JUDGED
        if not self.agrees or any(comparison.wrong for comparison in self.trial):
            return NodeVerdict.DIFFERS
        if self.plan is not None:
            return verdict_of_plan(self.plan)
        if self.trial:
            return NodeVerdict.TRIED
        return NodeVerdict.NO_MISMATCH if self.stages or self.node.op in ("Cast", "CastLike") else NodeVerdict.UNCHANGED

    @property
    def passes(self) -> bool:
        """Whether an element differs from the reference without being wrong: later nodes may then differ too."""
        return self.agrees and any(comparison.wrong or comparison.passed for comparison in self.comparisons)


@dataclass(frozen=True, slots=True, repr=False)
class GraphRun:
    """A graph that ran: its nodes, its output tensors, and their comparison with the reference of the whole graph."""

    graph: Graph
    target: Target
    nodes: tuple[NodeRun, ...]
    outputs: Mapping[str, GraphTensor]
    comparisons: tuple[OutputComparison, ...]
    unjudged: str | None = None
    """The reason why the outputs were not compared with the reference of the whole graph."""

    def __repr__(self) -> str:
        verdict = "conforms" if self.conforms else "does not conform"
        shown = f"{len(self.nodes)} nodes, {self.cycles} cycles, {verdict}"
        return f"<GraphRun {self.graph.file} on {self.target.name}: {shown}>"

    @property
    def cycles(self) -> int:
        """Cycles of all programs in sequence."""
        return sum(node.cycles for node in self.nodes)

    @property
    def conforms(self) -> bool:
        """Whether every node is proven or exhaustively tried, and the outputs of this run agree."""
        return all(node.verdict.certain for node in self.nodes) and self.explained

    @property
    def refuted(self) -> bool:
        """Whether anything contradicts a node: an element of this run, a proof, a trial, or a refusal."""
        refuting = (NodeVerdict.DIFFERS, NodeVerdict.NOT_RUN)
        return any(node.verdict in refuting for node in self.nodes) or not self.explained

    @property
    def judged(self) -> tuple[OutputComparison, ...]:
        """The comparisons that judge the outputs: of the whole graph, otherwise of the nodes that compute them."""
        last = [
            comparison
            for node in self.nodes
            for comparison in node.comparisons
            if comparison.output in self.graph.outputs
        ]
        return self.comparisons or tuple({comparison.output: comparison for comparison in last}.values())

    @property
    def agrees(self) -> bool:
        """Whether every node ran and no element of this run is wrong, which says nothing about other inputs."""
        return all(node.agrees for node in self.nodes) and self.explained

    @property
    def explained(self) -> bool:
        """Whether the nodes explain the outputs.

        An output that differs from the reference of the whole graph is explained if an earlier node has an element
        that differs without being wrong. Without one, the nodes and the whole contradict each other.
        """
        return not any(comparison.wrong and not comparison.because for comparison in self.comparisons)


# Trying a node on every code of its inputs, where these are few: what it reads in a run is one input of many.
#
# Operators are element-wise here, and their programs are those of the run, over more elements. Constants keep their
# values; what is computed at run time ranges over all codes of its format.

LARGEST = 1 << 20
"""Maximum number of elements in a trial: those of two 8-bit operands, or of 16 bits with some constants."""

_PAIRS = ("Add", "Sub", "Mul", "Div", "Min", "Max")
_ALONE = ("Clip", "Round", "QuantizeLinear", "DequantizeLinear")
_WITH_SCALES = ("QuantizeLinear", "DequantizeLinear")


def all_operands(graph: Graph, node: GraphNode, given: Sequence[GraphTensor | None]) -> list[GraphTensor | None] | None:
    """Return operands with every combination of possible input codes of a node; None if there are too many.

    Also None for operators that are not elementwise, and if a scale or bound is computed at run time.
    """
    x = given[0]
    if x is None:
        return None
    if graph.language is GraphLanguage.TOSA:
        return _channels(x, given, rescale_of(graph, node)) if node.op == "tosa.rescale" else None
    if node.op in _PAIRS and len(given) == 2:
        return _pairs(graph, node, given)
    constant = all(name is None or name in graph.constants for name in node.inputs[1:])
    if node.op not in _ALONE or not constant:
        return None
    return _scaled(node, x, given) if node.op in _WITH_SCALES else _alone(x, given)


def _alone(x: GraphTensor, given: Sequence[GraphTensor | None]) -> list[GraphTensor | None] | None:
    """Return all codes of the first operand in one dimension, and the others."""
    codes = all_codes(x.format)
    return None if codes is None else [GraphTensor(x.format, codes), *given[1:]]


def _pairs(graph: Graph, node: GraphNode, given: Sequence[GraphTensor | None]) -> list[GraphTensor | None] | None:
    """Return all pairs of codes of two operands; a constant of one element stays unchanged."""
    first, second = given
    if first is None or second is None:
        return None
    operands = [(tensor, name in graph.constants) for tensor, name in zip((first, second), node.inputs, strict=True)]
    if node.inputs[0] == node.inputs[1]:
        codes = all_codes(first.format)
        return None if codes is None else [GraphTensor(first.format, codes)] * 2
    if any(constant and tensor.codes.size == 1 for tensor, constant in operands):
        ranging = [tensor.codes.reshape(()) if constant else all_codes(tensor.format) for tensor, constant in operands]
    else:
        sides = [distinct(tensor.codes) if constant else all_codes(tensor.format) for tensor, constant in operands]
        if sides[0] is None or sides[1] is None or sides[0].size * sides[1].size > LARGEST:
            return None
        ranging = [np.repeat(sides[0], sides[1].size), np.tile(sides[1], sides[0].size)]
    if ranging[0] is None or ranging[1] is None:
        return None
    return [GraphTensor(first.format, ranging[0]), GraphTensor(second.format, ranging[1])]


def _scaled(node: GraphNode, x: GraphTensor, given: Sequence[GraphTensor | None]) -> list[GraphTensor | None] | None:
    """Return all codes once, or once for every scale along an axis."""
    scale = given[1]
    if scale is None or node.attributes.get("block_size"):
        return None
    if scale.codes.size == 1:
        return _alone(x, given)
    rank, codes = len(x.shape), all_codes(x.format)
    axis = node.attributes.get("axis", 1)
    position = axis + rank if axis < 0 else axis
    if codes is None or rank < 2 or not 0 <= position < rank or codes.size * scale.codes.size > LARGEST:
        return None
    free = 0 if position else 1
    shape = [codes.size if k == free else scale.codes.size if k == position else 1 for k in range(rank)]
    aligned = codes.reshape([-1 if k == free else 1 for k in range(rank)])
    return [GraphTensor(x.format, np.ascontiguousarray(np.broadcast_to(aligned, shape))), *given[1:]]


def _channels(
    x: GraphTensor, given: Sequence[GraphTensor | None], operator: Rescale
) -> list[GraphTensor | None] | None:
    """Return all codes in every channel for which a RESCALE has multipliers, the last dimension."""
    codes, count = all_codes(x.format), len(operator.multiplier) if operator.per_channel else 1
    if codes is None or codes.size * count > LARGEST:
        return None
    every = np.ascontiguousarray(np.broadcast_to(codes[:, np.newaxis], (codes.size, count)))
    return [GraphTensor(x.format, every), *given[1:]]


MOST_ELEMENTS = 1 << 25
"""Default limit on the elements of a tensor: 128 MiB of f32, and a node needs several tensors."""


def read_graph(path: Path, version: str | None = None) -> Graph:
    """Read an ONNX model (`.onnx`) or TOSA text (any other suffix); `version` is TOSA's.

    Raises:
        ReadError: it cannot be read, or is a program; the error has the position, if there is one.
        IllegalError: a node is not supported; the message names it.
    """
    if path.suffix == ".onnx":
        if version is not None:
            raise ReadError("an .onnx file already declares its opset")
        return read_onnx(path)
    if path.suffix in (TILE_SUFFIX, ".tpc", ".c", *CPP_SUFFIXES):
        message = f"castsim graph takes an ONNX model or TOSA text; '{path}' is a program"
        raise ReadError(message, legal=(f"castsim run {path}",))
    return read_tosa(read_text(path, "graph"), path, version)


def make_tensors(
    graph: Graph,
    given: Mapping[str, str | Codes],
    sizes: Mapping[str, int | float],
    most_elements: int = MOST_ELEMENTS,
) -> dict[str, GraphTensor]:
    """Return the inputs of a graph: arrays, files, `random:SEED` or `zeros`; `sizes` are extents by name.

    Raises:
        ReadError: an input is unknown, missing or misshapen, or a dynamic extent is missing.
        IllegalError: an input has more than `most_elements` elements.
    """
    names = [port.name for port in graph.inputs]
    for name in given:
        if name not in names:
            raise ReadError(f"the graph has no input '{name}'", legal=names)
    dynamic = {extent for port in graph.inputs for extent in port.shape if isinstance(extent, str)}
    for name in sizes:
        if name not in dynamic:
            raise ReadError(f"the graph has no dynamic extent '{name}'", legal=sorted(dynamic))
    missing = [name for name in names if name not in given]
    if missing:
        raise ReadError(
            f"no input given for {', '.join(missing)}",
            legal=[f"--in {quote(name)}=FILE.npy|random:SEED|zeros" for name in missing],
        )
    generators: dict[str, np.random.Generator] = {}
    return {port.name: _tensor(port, given[port.name], sizes, generators, most_elements) for port in graph.inputs}


def run_graph(
    graph: Graph,
    target: Target,
    inputs: Mapping[str, GraphTensor],
    progress: ProgressCallback = lambda *_: None,
    engine: str | None = None,
    options: Mapping[str, int | str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    most_elements: int = MOST_ELEMENTS,
    *,
    refuted: bool = True,
) -> GraphRun:
    """Run every node on the target, and compare; nodes and outputs of more than `most_elements` elements are refused.

    Given target options stay unchanged; a cast that needs others, which software sets, runs with
    those that `castsim.tools.lowering.lowering_answers.answer` chooses. Without `refuted` the closest chain
    without them is not sought.

    Casts are compared with the sets of their specification, ONNX nodes also with onnx's reference evaluator, for the
    inputs that the preceding simulated nodes computed. Outputs of an ONNX graph are also compared with the evaluator's
    for the whole graph. A proof by the lowering or a trial of all codes covers what a single run cannot show.

    Raises:
        ReadError: an option does not exist, or its value is not legal; the specification does not define a node.
    """
    setting = setting_of(target, options or {})
    target = changed(target, dict(setting))
    chip = Chip(target, progress, setting, refuted)
    values: dict[str, GraphTensor] = {**graph.constants, **inputs}
    done: list[NodeRun] = []
    unsettled: dict[str, Mask] = {}
    timed: dict[str, tuple[LoadedProgram, int]] = {}
    for number, node in enumerate(graph.nodes):
        progress(f"{node.name} ({node.op})", number, len(graph.nodes))
        lacking = [name for name in node.inputs if name is not None and name not in values]
        if lacking:
            done.append(_behind(node, lacking, done))
            continue
        given = [None if name is None else values[name] for name in node.inputs]
        check_size(f"node '{node.name}'", _elements(given), most_elements, node.span)
        runner = GraphKernelRunner(chip, node.name.lstrip("%"), engine, limits, timed=timed)
        run, outputs = _run_node(runner, graph, node, given)
        done.append(run)
        values |= dict(zip(node.outputs, outputs, strict=False))
        for name, tensor in zip(node.outputs, outputs, strict=False):
            unsettled[name] = _unsettled(
                run, name, tensor.shape, [unsettled.get(str(operand)) for operand in node.inputs]
            )
    ran = all(node_run.refusal is None for node_run in done)
    results = {name: values[name] for name in graph.outputs if name in values}
    for name, tensor in results.items():
        check_size(f"output '{name}'", math.prod(tensor.shape), most_elements)
    whole: tuple[OutputComparison, ...] = ()
    unjudged = None
    if graph.language is GraphLanguage.ONNX and ran:
        try:
            whole = _whole(graph, inputs, results, done, unsettled)
        except IllegalError as error:
            unjudged = error.message
    return GraphRun(graph, target, tuple(done), results, whole, unjudged)


_ELEMENTWISE = ("Cast", "CastLike", "Identity", "Reshape", *_ALONE)


def _unsettled(run: NodeRun, output: str, shape: tuple[int, ...], operands: Sequence[Mask | None]) -> Mask:
    """Return which output elements the reference of the whole graph leaves open.

    These are elements of the node itself with several right results, and elements computed from such elements.
    """
    unsettled = np.zeros(shape, np.bool_)
    comparisons = [comparison for comparison in run.comparisons if comparison.output == output]
    for comparison in comparisons:
        unsettled |= (comparison.open | ~comparison.right) & comparisons[-1].right
    for number, mask in enumerate(operands):
        if mask is None or not mask.any():
            continue
        if run.node.op in _PAIRS:
            unsettled |= np.broadcast_to(mask, shape)
        elif number == 0 and run.node.op in _ELEMENTWISE:
            unsettled |= mask.reshape(shape)
        else:
            unsettled[...] = True
    return unsettled


def _behind(node: GraphNode, lacking: Sequence[str], done: Sequence[NodeRun]) -> NodeRun:
    """Return a node that was not run because of nodes before it: those that were refused themselves are named."""
    makers = [run.node.name for run in done if not set(run.node.outputs).isdisjoint(lacking)]
    refusal = f"it reads {', '.join(dict.fromkeys(lacking))} of {', '.join(makers)}, not run"
    return NodeRun(node, (), (), (), None, (), refusal)


def _elements(tensors: Sequence[GraphTensor | None]) -> int:
    """Return the number of elements of the largest operand, or of all broadcast together."""
    shapes = [tensor.shape for tensor in tensors if tensor is not None]
    with suppress(ValueError):  # operands of shapes that do not fit, such as the data and the shape of a Reshape
        shapes.append(np.broadcast_shapes(*shapes))
    return max((math.prod(shape) for shape in shapes), default=0)


def check_size(what: str, elements: int, most: int, span: Span | None = None) -> None:
    """Reject a tensor that needs more memory than a simulation should use.

    Raises:
        IllegalError: the tensor is too large.
    """
    if elements > most:
        message = f"{what} has {elements} elements, over the limit of {most}"
        raise IllegalError(message, span=span, legal=(f"--max-elements {elements}",))


def _run_node(
    runner: GraphKernelRunner, graph: Graph, node: GraphNode, given: Sequence[GraphTensor | None]
) -> tuple[NodeRun, Sequence[GraphTensor]]:
    try:
        outputs, cast_answer, comparisons, unjudged = _judged(runner, graph, node, given)
        run = NodeRun(
            node, tuple(tensor.shape for tensor in outputs), tuple(runner.stages), tuple(runner.remarks), cast_answer,
            tuple(comparisons), unjudged=unjudged,
        )  # fmt: skip
        return replace(run, trial=_tried(runner, graph, run, given)), outputs
    except ReadError as error:
        raise (error if node.span is None else error.at(node.span)) from None
    except CastsimError as error:
        refusal = error.message
        if error.legal and not isinstance(error, TileError):
            refusal += f" (legal: {legal_text(error.legal, error.message)})"
        return NodeRun(node, (), tuple(runner.stages), tuple(runner.remarks), None, (), refusal), ()


def _tried(
    runner: GraphKernelRunner, graph: Graph, run: NodeRun, given: Sequence[GraphTensor | None]
) -> tuple[OutputComparison, ...]:
    """Run a node without other evidence over every possible input code; empty if that is impossible."""
    if run.verdict is not NodeVerdict.NO_MISMATCH or run.plan is not None:
        return ()
    operands = all_operands(graph, run.node, given)
    if operands is None:
        return ()
    try:
        _, _, comparisons, unjudged = _judged(
            GraphKernelRunner(runner.chip, runner.name, runner.engine, timeless=True), graph, run.node, operands
        )
    except CastsimError:
        return ()  # an older version of the operator, which does not take these shapes
    return () if unjudged is not None else tuple(comparisons)


def _judged(
    runner: GraphKernelRunner, graph: Graph, node: GraphNode, given: Sequence[GraphTensor | None]
) -> tuple[list[GraphTensor], Answer | None, list[OutputComparison], str | None]:
    """Run a node; return its outputs, the lowering's answer, comparisons, and why there are none if there should be."""
    if graph.language is GraphLanguage.TOSA:
        outputs, cast_answer, sets = run_tosa_node(runner, graph, node, given)
        if sets is None:
            return outputs, cast_answer, [], None
        as_sets = GraphTensor(sets.dst, outputs[0].codes)  # whose format may be the unsigned one of the result's
        label = f"{graph.spec}@{graph.version}"
        return outputs, cast_answer, [against_sets(node.outputs[0], as_sets, sets, list(given[:1]), label)], None
    operands = placed_operands(graph, node, given)
    outputs, cast_answer = run_onnx_node(runner, graph, node, operands)
    sets = None
    if cast_answer is not None and operands[0] is not None:
        chosen = {name: node.attributes[name] for name in ("saturate", "round_mode") if name in node.attributes}
        src, dst = operands[0].format, outputs[0].format
        cast = specified_cast(graph.spec, src, dst, version=graph.version, attributes=chosen)
        sets = acceptance(cast, src, dst, operands[0].codes)
    comparisons, unjudged = _against_evaluator(runner, graph, node, operands, outputs, sets)
    if sets is not None:
        comparisons.append(against_sets(node.outputs[0], outputs[0], sets, operands[:1], cast.label))
        unjudged = None
    return outputs, cast_answer, comparisons, unjudged


def _against_evaluator(
    runner: GraphKernelRunner,
    graph: Graph,
    node: GraphNode,
    operands: list[GraphTensor | None],
    outputs: list[GraphTensor],
    sets: AcceptanceSets | None,
) -> tuple[list[OutputComparison], str | None]:
    """Compare the outputs with the reference evaluator's, or return its objection to the node."""
    try:
        expected = reference_outputs(graph, node, [None if tensor is None else tensor.array for tensor in operands])
    except IllegalError as error:
        runner.remark(error.message)
        return [], error.message
    remark = judged_by_version(graph, node).remark
    if remark is not None:
        runner.remark(remark)
    comparisons = []
    for name, result, right in zip(node.outputs, outputs, expected, strict=False):
        if result.format is TEXT:
            unequal = _unlike(operands[0], result, right)
            return [], f"its text of element {unequal} is another number than the evaluator's" if unequal else None
        undefined = undefined_elements(node, operands, result) if sets is None else sets.anything
        comparisons.append(
            against_reference(
                name, result, GraphTensor.of(right, result.format), operands, undefined, either_zero=node.op == "Clip"
            )
        )
    return comparisons, None


def _unlike(source: GraphTensor | None, result: GraphTensor, right: Codes) -> list[int]:
    """Return the index of the first text that is not that of the evaluator, nor leads to the same number."""
    if source is None or source.format is TEXT:
        unequal = result.codes != texts(right)
    else:
        ours, theirs = (codes_from_strings(tensor, source.format) for tensor in (result.codes, texts(right)))
        unequal = (ours != theirs) & ~(is_nan(ours, source.format) & is_nan(theirs, source.format))
    return [int(coordinate) for coordinate in np.argwhere(unequal)[0]] if unequal.any() else []


def _whole(
    graph: Graph,
    inputs: Mapping[str, GraphTensor],
    results: Mapping[str, GraphTensor],
    done: Sequence[NodeRun],
    unsettled: Mapping[str, Mask],
) -> tuple[OutputComparison, ...]:
    expected = reference_run(graph, dict(inputs))
    comparisons = []
    for name, result in results.items():
        if result.format is TEXT:
            continue  # judged by its node: texts of one number may differ
        right = expected[name]
        comparison = against_reference(
            name, result, GraphTensor.of(right, result.format), [],
            unsettled.get(name, np.zeros(result.shape, np.bool_)), against="reference evaluator's for the whole graph",
        )  # fmt: skip
        comparisons.append(replace(comparison, because=_passing(name, done) if comparison.wrong else ()))
    return tuple(comparisons)


def _passing(output: str, done: Sequence[NodeRun]) -> tuple[str, ...]:
    """Return the nodes behind an output that contain elements which differ from the reference without being wrong."""
    needed, names = {output}, []
    for run in reversed(done):
        if needed.isdisjoint(run.node.outputs):
            continue
        needed |= {name for name in run.node.inputs if name is not None}
        if run.passes:
            names.append(run.node.name)
    return tuple(reversed(names))


def _tensor(
    port: GraphInput,
    given: str | Codes,
    sizes: Mapping[str, int | float],
    generators: dict[str, np.random.Generator],
    most: int,
) -> GraphTensor:
    if not isinstance(given, str):
        return _fitting(port, np.asarray(given), sizes, most)
    if port.format is TEXT and (given == "zeros" or given.startswith("random:")):
        raise ReadError(f"input '{port.name}' holds strings", legal=(f"--in {quote(port.name)}=FILE.npy",))
    if given != "zeros" and not given.startswith("random:"):
        return _fitting(port, read_input(given, port.name), sizes, most)
    shape = tuple(_extent(port, extent, sizes) for extent in port.shape)
    check_size(f"input '{port.name}'", math.prod(shape), most)
    if given == "zeros":
        return GraphTensor(port.format, np.zeros(shape, code_dtype(port.format)))
    generator = generators.setdefault(given, np.random.default_rng(seed_of(port.name, given)))
    return GraphTensor(port.format, random_codes(generator, port.format, shape))


def _fitting(port: GraphInput, array: Codes, sizes: Mapping[str, int | float], most: int) -> GraphTensor:
    wanted = tuple(sizes.get(extent) if isinstance(extent, str) else extent for extent in port.shape)
    fits = len(wanted) == array.ndim and all(
        extent in (None, size) for extent, size in zip(wanted, array.shape, strict=True)
    )
    if not fits:
        shown = "x".join("?" if extent is None else str(extent) for extent in wanted) or "a scalar"
        raise ReadError(f"input '{port.name}' has shape {list(array.shape)}; the graph needs {shown}")
    check_size(f"input '{port.name}'", array.size, most)
    try:
        return GraphTensor.of(np.array(array), port.format)  # a mapped file may change while the graph runs
    except ReadError as error:
        raise ReadError(f"input '{port.name}': {error.message}", legal=error.legal) from None


def _extent(port: GraphInput, extent: int | str, sizes: Mapping[str, int | float]) -> int:
    size = sizes.get(extent) if isinstance(extent, str) else extent
    if not isinstance(size, int) or size < 0:
        raise ReadError(
            f"input '{port.name}': extent '{extent}' is dynamic; set it, or give the input as a file",
            legal=(f"--arg {extent}=32",),
        )
    return size


# What a target refuses of a graph, without running it: programs are written for every node, and none is simulated.

_MOST_ELEMENTS = 1 << 20
"""Maximum number of elements of operands; larger nodes are left to `castsim graph`, because the checks take seconds."""
_ONE = np.array([1.0], np.float32).view(np.uint32)


@dataclass
class _NodeWriter(GraphKernelRunner):
    """Writer of a node's programs without running them: every result is 1, a legal divisor that every format has."""

    def run(self, kernel: NodeKernel, inputs: Mapping[str, Codes], answered: Answer | None = None) -> dict[str, Codes]:
        size = next(iter(inputs.values())).size
        target = self.chip.target if answered is None else answered.plan.target
        WRITING.of(target).program(kernel, target, max(size, 1))
        return {port.name: _ones(port.format, (size,)) for port in kernel.outputs}


def refusals(graph: Graph, target: Target) -> Iterator[tuple[GraphNode, CastsimError]]:
    """Yield the nodes that a target cannot run, each with the reason; nodes that depend on them are not checked.

    Inputs are tensors of ones, their dynamic extents 1. Nodes whose legality depends on the values of an input (the
    shape of a Reshape, for example) and nodes of more than 2**20 elements are left out, with all nodes that read them.
    """
    chip = Chip(target)
    values: dict[str, GraphTensor] = {**graph.constants}
    for port in graph.inputs:
        shape = tuple(extent if isinstance(extent, int) else 1 for extent in port.shape)
        if math.prod(shape) <= _MOST_ELEMENTS:
            values[port.name] = GraphTensor(port.format, _ones(port.format, shape))
    for node in graph.nodes:
        if any(name is not None and name not in values for name in node.inputs):
            continue
        given = [None if name is None else values[name] for name in node.inputs]
        if any(tensor is not None and tensor.codes.size > _MOST_ELEMENTS for tensor in given):
            continue
        try:
            writer = _NodeWriter(chip, node.name)
            if graph.language is GraphLanguage.TOSA:
                outputs = run_tosa_node(writer, graph, node, given)[0]
            else:
                outputs = run_onnx_node(writer, graph, node, placed_operands(graph, node, given))[0]
        except CastsimError as error:
            if node.op not in ("Reshape", "tosa.reshape") or node.inputs[-1] in graph.constants:
                yield node, error
            continue
        values |= dict(zip(node.outputs, outputs, strict=False))


def illegal_nodes(graph: Graph) -> Iterator[tuple[GraphNode, CastsimError]]:
    """Yield the casts and RESCALE nodes that the specification forbids, each with the reason: no target runs them."""
    formats = {port.name: port.format for port in graph.inputs}
    formats |= {name: tensor.format for name, tensor in graph.constants.items()}
    for node in graph.nodes:
        formats |= {name: fmt for name, (fmt, _) in zip(node.outputs, node.results, strict=False)}
        src = formats.get(str(node.inputs[0])) if node.inputs else None
        try:
            if node.op == "tosa.cast" and src is not None:
                chosen = {"input_unsigned": 1} if node.attributes.get("input_unsigned") else {}
                specified_cast(graph.spec, src, node.results[0][0], version=graph.version, attributes=chosen)
            elif node.op == "tosa.rescale":
                check_rescale(graph, node, rescale_of(graph, node))
        except CastsimError as error:
            yield node, error


def _ones(fmt: Format, shape: tuple[int, ...]) -> Codes:
    if fmt is TEXT:
        return np.broadcast_to(np.array("1"), shape)
    try:
        unit = convert_codes(_ONE, F32, fmt, abstract_policy(F32, fmt)).astype(code_dtype(fmt))
    except IllegalError:  # a format that no number is converted to
        unit = np.ones(1, code_dtype(fmt))
    return np.broadcast_to(unit, shape)

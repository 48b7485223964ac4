"""Running a graph on a target: node by node, each compared with what it should give for the same inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from castsim.execution.inputs import random_codes, read_input, seed_of
from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.graphs import onnx_nodes
from castsim.graphs.chip import Chip
from castsim.graphs.comparison import OutputComparison, against_reference, against_sets
from castsim.graphs.kernel_runner import KernelRunner
from castsim.graphs.model import Graph, GraphInput, GraphLanguage, GraphNode, GraphTensor
from castsim.graphs.onnx_reader import read_onnx
from castsim.graphs.onnx_versions import judged as judged_by_version
from castsim.graphs.outcome import GraphRun, NodeRun
from castsim.graphs.tosa_nodes import run_tosa_node
from castsim.graphs.tosa_reader import read_tosa
from castsim.graphs.trial import all_operands
from castsim.graphs.verdict import NodeVerdict
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span, TileError
from castsim.isa.reading import read_text
from castsim.numerics import code_dtype
from castsim.planning.lowering_answers import Answer, changed, setting_of
from castsim.specifications import AcceptanceSets, acceptance
from castsim.targets import Target
from castsim.timing import ProgressCallback

if TYPE_CHECKING:
    from castsim.running import LoadedProgram

MOST_ELEMENTS = 1 << 25
"""Default limit on the elements of a tensor: 128 MiB of f32, of which a node holds several."""


def read_graph(path: Path, version: str | None = None) -> Graph:
    """Read an ONNX model (`.onnx`) or TOSA text (any other suffix); `version` is TOSA's.

    Raises:
        ReadError: it cannot be read, with the place where there is one.
        IllegalError: a node that is not supported, named.
    """
    if path.suffix == ".onnx":
        if version is not None:
            raise ReadError("an .onnx file names its opset itself")
        return read_onnx(path)
    return read_tosa(read_text(path, "graph"), path, version)


def make_tensors(
    graph: Graph,
    given: Mapping[str, str | Codes],
    sizes: Mapping[str, int | float],
    most_elements: int = MOST_ELEMENTS,
) -> dict[str, GraphTensor]:
    """Return the inputs of a graph: arrays, files, `random:SEED` or `zeros`; `sizes` are extents by name.

    Raises:
        ReadError: an unknown, missing or misshapen input, or a dynamic extent that is not given.
        IllegalError: an input of over `most_elements` elements.
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
            legal=[f"--in {name}=FILE.npy|random:SEED|zeros" for name in missing],
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
) -> GraphRun:
    """Run every node on the target, and compare; nodes and outputs of over `most_elements` elements are refused.

    Options of the target that are given stay as they are; a cast that needs others, which software sets, runs with
    those that `castsim.planning.lowering_answers.answer` finds.

    Casts are compared with the sets of their specification, ONNX nodes also with onnx's reference evaluator, for the
    inputs that the simulated nodes before them gave. The outputs of an ONNX graph are compared with the evaluator's for
    the whole graph as well. What one run cannot tell is asked of the lowering's proof, and of a trial of all codes.

    Raises:
        ReadError: no such option, or a value that it cannot have; a node that the specification does not define.
    """
    held = setting_of(target, options or {})
    target = changed(target, dict(held))
    chip = Chip(target, progress, held)
    values: dict[str, GraphTensor] = {**graph.constants, **inputs}
    done: list[NodeRun] = []
    timed: dict[str, tuple[LoadedProgram, int]] = {}
    for place, node in enumerate(graph.nodes):
        progress(f"{node.name} ({node.op})", place, len(graph.nodes))
        lacking = [name for name in node.inputs if name is not None and name not in values]
        if lacking:
            done.append(_behind(node, lacking, done))
            continue
        given = [None if name is None else values[name] for name in node.inputs]
        check_size(f"node '{node.name}'", _elements(given), most_elements, node.span)
        runner = KernelRunner(chip, node.name.lstrip("%"), engine, limits, timed=timed)
        found, outputs = _run_node(runner, graph, node, given)
        done.append(found)
        values |= dict(zip(node.outputs, outputs, strict=False))
    ran = all(one.refusal is None for one in done)
    results = {name: values[name] for name in graph.outputs if name in values}
    for name, tensor in results.items():
        check_size(f"output '{name}'", math.prod(tensor.shape), most_elements)
    whole: tuple[OutputComparison, ...] = ()
    unjudged = None
    if graph.language is GraphLanguage.ONNX and ran:
        try:
            whole = _whole(graph, inputs, results, done)
        except IllegalError as error:
            unjudged = error.message
    return GraphRun(graph, target, tuple(done), results, whole, unjudged)


def _behind(node: GraphNode, lacking: Sequence[str], done: Sequence[NodeRun]) -> NodeRun:
    """Return a node that was not run because of nodes before it: those that were refused themselves are named."""
    makers = [one.node.name for one in done if not set(one.node.outputs).isdisjoint(lacking)]
    refusal = f"it reads {', '.join(dict.fromkeys(lacking))} of {', '.join(makers)}, not run"
    return NodeRun(node, (), (), (), None, (), refusal)


def _elements(tensors: Sequence[GraphTensor | None]) -> int:
    """Return the elements of the largest operand, or of all broadcast to each other."""
    shapes = [tensor.shape for tensor in tensors if tensor is not None]
    with suppress(ValueError):  # operands of shapes that do not fit, such as the data and the shape of a Reshape
        shapes.append(np.broadcast_shapes(*shapes))
    return max((math.prod(shape) for shape in shapes), default=0)


def check_size(what: str, elements: int, most: int, span: Span | None = None) -> None:
    """Reject a tensor that takes more memory than a simulation should.

    Raises:
        IllegalError: as said.
    """
    if elements > most:
        message = f"{what} has {elements} elements, over the limit of {most}"
        raise IllegalError(message, span=span, legal=(f"--max-elements {elements}",))


def _run_node(
    runner: KernelRunner, graph: Graph, node: GraphNode, given: Sequence[GraphTensor | None]
) -> tuple[NodeRun, Sequence[GraphTensor]]:
    try:
        outputs, found, comparisons, unjudged = _judged(runner, graph, node, given)
        run = NodeRun(
            node, tuple(tensor.shape for tensor in outputs), tuple(runner.stages), tuple(runner.remarks), found,
            tuple(comparisons), unjudged=unjudged,
        )  # fmt: skip
        return replace(run, trial=_tried(runner, graph, run, given)), outputs
    except ReadError as error:
        raise _placed(error, node) from None
    except CastsimError as error:
        refusal = error.message if isinstance(error, TileError) or not error.legal else _with_legal(error)
        return NodeRun(node, (), tuple(runner.stages), tuple(runner.remarks), None, (), refusal), ()


def _tried(
    runner: KernelRunner, graph: Graph, run: NodeRun, given: Sequence[GraphTensor | None]
) -> tuple[OutputComparison, ...]:
    """Run a node that only the run speaks for over every code it may read; nothing where that cannot be done."""
    if run.verdict is not NodeVerdict.NO_MISMATCH or run.plan is not None:
        return ()
    operands = all_operands(graph, run.node, given)
    if operands is None:
        return ()
    try:
        _, _, comparisons, unjudged = _judged(
            KernelRunner(runner.chip, runner.name, runner.engine), graph, run.node, operands
        )
    except CastsimError:
        return ()  # an older version of the operator, which does not take these shapes
    return () if unjudged is not None else tuple(comparisons)


def _placed(error: CastsimError, node: GraphNode) -> CastsimError:
    return error if node.span is None else error.at(node.span)


def _with_legal(error: CastsimError) -> str:
    return f"{error.message} (legal: {', '.join(error.legal)})"


def _judged(
    runner: KernelRunner, graph: Graph, node: GraphNode, given: Sequence[GraphTensor | None]
) -> tuple[list[GraphTensor], Answer | None, list[OutputComparison], str | None]:
    """Run a node; return its outputs, the lowering's answer, comparisons, and why there are none if there should be."""
    if graph.language is GraphLanguage.TOSA:
        outputs, found, sets = run_tosa_node(runner, graph, node, given)
        label = f"{graph.spec}@{graph.version}"
        judged = [] if sets is None else [_against(node.outputs[0], outputs[0], sets, list(given[:1]), label)]
        return outputs, found, judged, None
    operands = onnx_nodes.placed_operands(graph, node, given)
    outputs, found = onnx_nodes.run_onnx_node(runner, graph, node, operands)
    sets = None
    if found is not None and operands[0] is not None:
        sets = acceptance(found.plan.demand.cast, operands[0].format, outputs[0].format, operands[0].codes)
    comparisons, unjudged = _against_evaluator(runner, graph, node, operands, outputs, sets)
    if sets is not None and found is not None:
        comparisons.append(against_sets(node.outputs[0], outputs[0], sets, operands[:1], found.plan.demand.label))
        unjudged = None
    return outputs, found, comparisons, unjudged


def _against_evaluator(
    runner: KernelRunner,
    graph: Graph,
    node: GraphNode,
    operands: list[GraphTensor | None],
    outputs: list[GraphTensor],
    sets: AcceptanceSets | None,
) -> tuple[list[OutputComparison], str | None]:
    """Compare the outputs with the reference evaluator's, or return what it says against the node."""
    try:
        expected = onnx_nodes.reference_outputs(
            graph, node, [None if each is None else each.array for each in operands]
        )
    except IllegalError as error:
        runner.remark(error.message)
        return [], error.message
    remark = judged_by_version(graph, node).remark
    if remark is not None:
        runner.remark(remark)
    comparisons = []
    for name, result, right in zip(node.outputs, outputs, expected, strict=False):
        undefined = onnx_nodes.undefined_elements(node, operands, result) if sets is None else sets.anything
        comparisons.append(
            against_reference(
                name, result, GraphTensor.of(right, result.format), operands, undefined, either_zero=node.op == "Clip"
            )
        )
    return comparisons, None


def _against(
    name: str, result: GraphTensor, sets: Any, sources: list[GraphTensor | None], label: str
) -> OutputComparison:
    """Compare with sets whose format may be the unsigned one of the result's."""
    as_sets = GraphTensor(sets.dst, result.codes)
    return against_sets(name, as_sets, sets, sources, label)


def _whole(
    graph: Graph, inputs: Mapping[str, GraphTensor], results: Mapping[str, GraphTensor], done: Sequence[NodeRun]
) -> tuple[OutputComparison, ...]:
    expected = onnx_nodes.reference_run(graph, dict(inputs))
    found = []
    for name, result in results.items():
        right = expected[name]
        comparison = against_reference(
            name, result, GraphTensor.of(right, result.format), [], np.zeros(result.shape, np.bool_),
            against="reference evaluator's for the whole graph",
        )  # fmt: skip
        found.append(replace(comparison, because=_passing(name, done) if comparison.wrong else ()))
    return tuple(found)


def _passing(output: str, done: Sequence[NodeRun]) -> tuple[str, ...]:
    """Return the nodes that an output depends on and that pass elements which differ from the reference."""
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
        extent in (None, found) for extent, found in zip(wanted, array.shape, strict=True)
    )
    if not fits:
        shown = "x".join("?" if extent is None else str(extent) for extent in wanted) or "a scalar"
        raise ReadError(f"input '{port.name}' has shape {list(array.shape)}; the graph wants {shown}")
    check_size(f"input '{port.name}'", array.size, most)
    try:
        return GraphTensor.of(np.array(array), port.format)  # a mapped file may change while the graph runs
    except ReadError as error:
        raise ReadError(f"input '{port.name}': {error.message}", legal=error.legal) from None


def _extent(port: GraphInput, extent: int | str, sizes: Mapping[str, int | float]) -> int:
    found = sizes.get(extent) if isinstance(extent, str) else extent
    if not isinstance(found, int) or found < 0:
        raise ReadError(
            f"input '{port.name}': extent '{extent}' is dynamic; give it, or the input as a file",
            legal=(f"--arg {extent}=32",),
        )
    return found

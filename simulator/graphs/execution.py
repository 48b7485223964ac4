"""Running a graph on a target: node by node, each compared with what it should give for the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.errors import CastsimError, IllegalError, ReadError, TileError
from simulator.graphs.bench import Bench, Stage
from simulator.graphs.chip import Chip, Heard
from simulator.graphs.comparison import Comparison, against_reference, against_sets
from simulator.graphs.model import Graph, Input, Language, Node, Tensor
from simulator.inputs import random_codes, read_array, seed_of
from simulator.numerics import code_dtype
from simulator.planning import Plan
from simulator.specifications import AcceptanceSets, acceptance
from targets import Target


@dataclass(frozen=True, slots=True)
class NodeRun:
    """What became of a node.

    `plan` belongs to a cast; `comparisons` judge its outputs. `refusal` says why it could not be run: then nothing
    behind it was either.
    """

    node: Node
    shapes: tuple[tuple[int, ...], ...]
    stages: tuple[Stage, ...]
    remarks: tuple[str, ...]
    plan: Plan | None
    comparisons: tuple[Comparison, ...]
    refusal: str | None = None
    unjudged: str | None = None
    """Why nothing says whether it is right, though it ran."""

    @property
    def cycles(self) -> int:
        """Cycles of all its programs, one after the other."""
        return sum(stage.cycles for stage in self.stages)

    @property
    def conforms(self) -> bool:
        """Whether no element of it is wrong: of a cast by its specification, of others by the reference."""
        judged = self.comparisons[-1:] if self.plan is not None else self.comparisons
        ran = self.refusal is None and self.unjudged is None
        return ran and not any(found.wrong for found in judged)

    @property
    def passes(self) -> bool:
        """Whether an element differs from the reference and conforms: what comes after it may differ too."""
        return self.conforms and any(found.wrong or found.passed for found in self.comparisons)


@dataclass(frozen=True, slots=True)
class GraphRun:
    """A graph that ran: its nodes, the tensors of its outputs, and these against the reference of the whole graph."""

    graph: Graph
    target: Target
    nodes: tuple[NodeRun, ...]
    outputs: Mapping[str, Tensor]
    comparisons: tuple[Comparison, ...]
    unjudged: str | None = None
    """Why the outputs are not compared with the reference of the whole graph."""

    @property
    def cycles(self) -> int:
        """Cycles of all programs, one after the other."""
        return sum(node.cycles for node in self.nodes)

    @property
    def conforms(self) -> bool:
        """Whether every node ran and none has a wrong element, and whether that explains the outputs.

        An output that differs from the reference of the whole graph is explained if a node before it has an element
        that differs and conforms. Without one, the nodes and the whole contradict each other.
        """
        return all(node.conforms for node in self.nodes) and not any(
            found.wrong and not found.because for found in self.comparisons
        )


def read_graph(path: Path, version: str | None = None) -> Graph:
    """Read an ONNX model (`.onnx`) or TOSA text (any other suffix); `version` is TOSA's.

    Raises:
        ReadError: it cannot be read, with the place where there is one.
        IllegalError: a node that is not supported, named.
    """
    if path.suffix == ".onnx":
        from simulator.graphs.onnx_reader import read_onnx  # noqa: PLC0415 - the extra

        if version is not None:
            raise ReadError("an .onnx file names its opset itself")
        return read_onnx(path)
    from simulator.graphs.tosa_reader import read_tosa  # noqa: PLC0415 - the language in use

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ReadError(f"graph '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise ReadError(f"graph '{path}': is no UTF-8 text") from None
    return read_tosa(text, path, version)


def make_tensors(
    graph: Graph, given: Mapping[str, str | NDArray[Any]], sizes: Mapping[str, int | float]
) -> dict[str, Tensor]:
    """Return the inputs of a graph: arrays, files, `random:SEED` or `zeros`; `sizes` are extents by name.

    Raises:
        ReadError: an unknown, missing or misshapen input, or a dynamic extent that nobody gives.
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
    return {port.name: _tensor(port, given[port.name], sizes, generators) for port in graph.inputs}


def run_graph(
    graph: Graph,
    target: Target,
    inputs: Mapping[str, Tensor],
    heard: Heard = lambda *_: None,
    engine: str | None = None,
) -> GraphRun:
    """Run every node on the target, and compare.

    Casts are compared with the sets of their specification, ONNX nodes also with onnx's reference evaluator, for the
    inputs that the simulated nodes before them gave. The outputs of an ONNX graph are compared with the evaluator's for
    the whole graph as well.
    """
    chip = Chip(target, heard)
    values: dict[str, Tensor] = {**graph.constants, **inputs}
    done: list[NodeRun] = []
    for place, node in enumerate(graph.nodes):
        heard(f"{node.name} ({node.op})", place, len(graph.nodes))
        given = [None if name is None else values[name] for name in node.inputs]
        found, outputs = _run_node(Bench(chip, node.name.lstrip("%"), engine), graph, node, given)
        done.append(found)
        if found.refusal is not None:
            break
        values |= dict(zip(node.outputs, outputs, strict=False))
    ran = not done or done[-1].refusal is None
    results = {name: values[name] for name in graph.outputs} if ran else {}
    whole: tuple[Comparison, ...] = ()
    unjudged = None
    if graph.language is Language.ONNX and ran:
        try:
            whole = _whole(graph, inputs, results, done)
        except IllegalError as error:
            unjudged = error.message
    return GraphRun(graph, target, tuple(done), results, whole, unjudged)


def _run_node(
    bench: Bench, graph: Graph, node: Node, given: Sequence[Tensor | None]
) -> tuple[NodeRun, Sequence[Tensor]]:
    try:
        outputs, found, comparisons, unjudged = _judged(bench, graph, node, given)
    except ReadError as error:
        raise _placed(error, node) from None
    except CastsimError as error:
        refusal = error.message if isinstance(error, TileError) or not error.legal else _with_legal(error)
        return NodeRun(node, (), tuple(bench.stages), tuple(bench.remarks), None, (), refusal), ()
    shapes = tuple(tensor.shape for tensor in outputs)
    run = NodeRun(node, shapes, tuple(bench.stages), tuple(bench.remarks), found, tuple(comparisons), unjudged=unjudged)
    return run, outputs


def _placed(error: CastsimError, node: Node) -> CastsimError:
    return error if node.span is None else error.at(node.span)


def _with_legal(error: CastsimError) -> str:
    return f"{error.message} (legal: {', '.join(error.legal)})"


def _judged(
    bench: Bench, graph: Graph, node: Node, given: Sequence[Tensor | None]
) -> tuple[list[Tensor], Plan | None, list[Comparison], str | None]:
    """Run a node; return its outputs, its plan, its comparisons, and why there are none if there should be."""
    if graph.language is Language.TOSA:
        from simulator.graphs.tosa_nodes import run_tosa_node  # noqa: PLC0415 - the language in use

        outputs, found, sets = run_tosa_node(bench, graph, node, given)
        label = f"{graph.spec}@{graph.version}"
        judged = [] if sets is None else [_against(node.outputs[0], outputs[0], sets, list(given[:1]), label)]
        return outputs, found, judged, None
    from simulator.graphs.onnx_nodes import placed_operands, run_onnx_node  # noqa: PLC0415 - the language in use

    operands = placed_operands(graph, node, given)
    outputs, found = run_onnx_node(bench, graph, node, operands)
    sets = None
    if found is not None and operands[0] is not None:
        sets = acceptance(found.demand.cast, operands[0].format, outputs[0].format, operands[0].codes)
    comparisons, unjudged = _against_evaluator(bench, graph, node, operands, outputs, sets)
    if sets is not None and found is not None:
        comparisons.append(against_sets(node.outputs[0], outputs[0], sets, operands[:1], found.demand.label))
        unjudged = None
    return outputs, found, comparisons, unjudged


def _against_evaluator(
    bench: Bench,
    graph: Graph,
    node: Node,
    operands: list[Tensor | None],
    outputs: list[Tensor],
    sets: AcceptanceSets | None,
) -> tuple[list[Comparison], str | None]:
    """Compare the outputs with the reference evaluator's, or return what it says against the node."""
    from simulator.graphs.onnx_nodes import reference_outputs, undefined_elements  # noqa: PLC0415 - the extra
    from simulator.graphs.onnx_versions import judged  # noqa: PLC0415 - as above

    try:
        expected = reference_outputs(graph, node, [None if each is None else each.array for each in operands])
    except IllegalError as error:
        bench.remark(error.message)
        return [], error.message
    remark = judged(graph, node).remark
    if remark is not None:
        bench.remark(remark)
    comparisons = []
    for name, result, right in zip(node.outputs, outputs, expected, strict=False):
        undefined = undefined_elements(node, operands, result) if sets is None else sets.anything
        comparisons.append(
            against_reference(
                name, result, Tensor.of(right, result.format), operands, undefined, either_zero=node.op == "Clip"
            )
        )
    return comparisons, None


def _against(name: str, result: Tensor, sets: Any, sources: list[Tensor | None], label: str) -> Comparison:
    """Compare with sets whose format may be the unsigned one of the result's."""
    as_sets = Tensor(sets.dst, result.codes)
    return against_sets(name, as_sets, sets, sources, label)


def _whole(
    graph: Graph, inputs: Mapping[str, Tensor], results: Mapping[str, Tensor], done: Sequence[NodeRun]
) -> tuple[Comparison, ...]:
    from simulator.graphs.onnx_nodes import reference_run  # noqa: PLC0415 - the extra

    expected = reference_run(graph, dict(inputs))
    found = []
    for (name, result), right in zip(results.items(), expected, strict=True):
        comparison = against_reference(
            name, result, Tensor.of(right, result.format), [], np.zeros(result.shape, np.bool_),
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
    port: Input,
    given: str | NDArray[Any],
    sizes: Mapping[str, int | float],
    generators: dict[str, np.random.Generator],
) -> Tensor:
    if not isinstance(given, str):
        return _fitting(port, np.asarray(given), sizes)
    if given != "zeros" and not given.startswith("random:"):
        return _fitting(port, np.array(read_array(Path(given), port.name)), sizes)
    shape = tuple(_extent(port, extent, sizes) for extent in port.shape)
    if given == "zeros":
        return Tensor(port.format, np.zeros(shape, code_dtype(port.format)))
    generator = generators.setdefault(given, np.random.default_rng(seed_of(port.name, given)))
    return Tensor(port.format, random_codes(generator, port.format, shape))


def _fitting(port: Input, array: NDArray[Any], sizes: Mapping[str, int | float]) -> Tensor:
    wanted = tuple(sizes.get(extent) if isinstance(extent, str) else extent for extent in port.shape)
    fits = len(wanted) == array.ndim and all(
        extent in (None, found) for extent, found in zip(wanted, array.shape, strict=True)
    )
    if not fits:
        shown = "x".join("?" if extent is None else str(extent) for extent in wanted) or "a scalar"
        raise ReadError(f"input '{port.name}' has shape {list(array.shape)}; the graph wants {shown}")
    try:
        return Tensor.of(array, port.format)
    except ReadError as error:
        raise ReadError(f"input '{port.name}': {error.message}", legal=error.legal) from None


def _extent(port: Input, extent: int | str, sizes: Mapping[str, int | float]) -> int:
    found = sizes.get(extent) if isinstance(extent, str) else extent
    if not isinstance(found, int) or found < 0:
        raise ReadError(
            f"input '{port.name}': extent '{extent}' is dynamic; give it, or the input as a file",
            legal=(f"--arg {extent}=N",),
        )
    return found

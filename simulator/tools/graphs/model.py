"""Graphs of operators on tensors, independent of their language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, ReadError, Span
from castsim.isa.formats import Codes, Format
from castsim.numerics.codec import array_from_codes, codes_from_array

Dimension = int | str
"""An extent, or the name of a dynamic one."""


class GraphLanguage(Enum):
    """The language of a graph."""

    ONNX = "ONNX model"
    TOSA = "TOSA text"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Stand-in format of tensors of text; their codes are an array of str."""

    name: str = "string"


TEXT: Any = TextFormat()
"""The text format: chips lack text, so a cast from or to it is computed before or after the program."""


@dataclass(frozen=True, slots=True)
class GraphTensor:
    """A value: codes of a format in the tensor's shape."""

    format: Format
    codes: Codes

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, slowest first."""
        return self.codes.shape

    @property
    def array(self) -> Codes:
        """The numbers in their native dtype, or codes if neither NumPy nor ml_dtypes has one."""
        return self.codes if self.format is TEXT else array_from_codes(self.codes, self.format)

    @classmethod
    def of(cls, array: Codes, fmt: Format) -> GraphTensor:
        """Return the tensor of an array of native dtype or codes; for text, of str or bytes in UTF-8.

        Raises:
            ReadError: the array has other elements.
        """
        plain = np.asarray(array)
        if fmt is TEXT:
            return cls(fmt, texts(plain))
        return cls(fmt, codes_from_array(plain, fmt).reshape(plain.shape))


def texts(array: Codes) -> Codes:
    """Return an array of str from one of str, of bytes in UTF-8 or of objects of either.

    Raises:
        ReadError: the array has other elements.
    """
    strings = [
        item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in array.reshape(-1).tolist()
    ]
    if any(not isinstance(item, str) for item in strings) or (not strings and array.dtype.kind not in "USOT"):
        raise ReadError(f"strings need an array of strings, not {array.dtype}", legal=("str", "bytes", "object"))
    return np.array(strings, np.str_).reshape(array.shape)


@dataclass(frozen=True, slots=True)
class GraphInput:
    """An argument of a graph."""

    name: str
    format: Format
    shape: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operator. `inputs` are names of values, None for an omitted one; `span` is its position in a text.

    `results` are the formats and shapes that the text declares, empty if it does not. `native` is the reader's
    own object: the node in its library.
    """

    name: str
    op: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    span: Span | None = None
    results: tuple[tuple[Format, tuple[int | None, ...]], ...] = ()
    native: Any = None


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which each one reads results of earlier ones.

    `spec` is the specification of its casts, `version` its version; for `native` see `GraphNode`.
    """

    file: str
    name: str
    language: GraphLanguage
    spec: str
    version: str
    inputs: tuple[GraphInput, ...]
    constants: Mapping[str, GraphTensor]
    nodes: tuple[GraphNode, ...]
    outputs: tuple[str, ...]
    native: Any = None


# Nodes of older opsets: what was different then, and the newer node that means the same.
#
# The reference evaluator lacks some old versions (Cast-1 with a name for `to`, Reshape-1, DequantizeLinear below 19,
# Clip-1) and takes others for newer ones (the broadcasting of Add, Sub, Mul and Div below 7). Such a node is judged as
# one of a newer version. Source: operator schemas of onnx 1.23.2, all versions.

Shape = tuple[int, ...]

_BROADCASTING = 7
"""First opset in which Add, Sub, Mul and Div broadcast like NumPy."""
_BROADCAST = ("Add", "Sub", "Mul", "Div")
_PER_AXIS = 13
"""First opset in which QuantizeLinear and DequantizeLinear take a scale for every index of an axis."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A node as the evaluator understands it: `opset` is that of its version, `arrays` are additional inputs.

    `remark` names the version if it is another one.
    """

    native: Any
    opset: int
    arrays: Mapping[str, Codes] = field(default_factory=dict)
    remark: str | None = None


def operand_shapes(graph: Graph, node: GraphNode, shapes: Sequence[Shape | None]) -> list[Shape | None]:
    """Return the shapes of a node's operands for current operators.

    Only the second one of Add, Sub, Mul and Div below opset 7 differs: it has extents of 1 where it is repeated.

    Raises:
        IllegalError: the node's own version does not accept the shapes.
    """
    operands, opset = list(shapes), int(graph.version)
    if node.op in _BROADCAST and opset < _BROADCASTING and operands[0] is not None and operands[1] is not None:
        operands[1] = _repeated(node, operands[0], operands[1])
    scale = operands[1] if len(operands) > 1 else None
    if node.op in ("QuantizeLinear", "DequantizeLinear") and opset < _PER_AXIS and scale not in (None, (), (1,)):
        raise IllegalError(f"{node.op} of opset {opset} takes one scale, not {list(scale or ())}", legal=("a scalar",))
    return operands


def bounds_of_version(graph: Graph, node: GraphNode) -> dict[str, float]:
    """Return the bounds that a Clip below opset 11 has as attributes, including its version's defaults."""
    given = {name: node.attributes[name] for name in ("min", "max") if name in node.attributes}
    defaults = {
        name: attribute.default_value.f
        for name, attribute in _schema(graph, node).attributes.items()
        if name in ("min", "max") and attribute.default_value.name
    }
    return defaults | given


def judged(graph: Graph, node: GraphNode) -> Judged:
    """Return the node to judge: itself, or one of the first newer version with the same meaning.

    Raises:
        IllegalError: the node lacks something that its version requires.
    """
    opset, since = int(graph.version), _schema(graph, node).since_version
    attributes = {key: value for key, value in node.attributes.items() if key != "consumed_inputs"}
    arrays: dict[str, Codes] = {}
    newer = None
    match node.op:
        case "Cast" if since == 1:
            newer, attributes = 6, {"to": _element(attributes["to"])}
        case "Reshape" if since == 1:
            arrays = {_spare(node, "shape"): np.array(shape_of_version(node), np.int64)}
            newer, attributes = 5, {}
        case "DequantizeLinear" if since < 19:
            newer = 19
        case "Add" | "Sub" | "Mul" | "Div" if since < _BROADCASTING and node.attributes:
            newer, attributes = _BROADCASTING, {}
        case "Clip" if since == 1:
            # Without a bound there is none; version 6 has the largest f32 then.
            newer, attributes = 6, {"min": -np.inf, "max": np.inf} | bounds_of_version(graph, node)
    if newer is None:
        return Judged(node.native, opset)
    remark = (
        f"judged as {node.op} of opset {newer}, which means the same here: the reference evaluator does not support "
        f"{node.op} of opset {since}"
    )
    return Judged(_made(node, attributes, list(arrays)), newer, arrays, remark)


def shape_of_version(node: GraphNode) -> list[int]:
    """Return the shape that a Reshape of opset 1 has as an attribute.

    Raises:
        IllegalError: the node has no shape.
    """
    if "shape" not in node.attributes:
        raise IllegalError("Reshape of opset 1 takes no shape input", legal=("attribute shape",))
    return list(node.attributes["shape"])


def _repeated(node: GraphNode, first: Shape, second: Shape) -> Shape:
    """Return the second shape with trailing extents of 1, as required by "limited broadcasting"."""
    attributes = node.attributes
    allowed = attributes.get("broadcast", 0)
    if allowed not in (0, 1):
        raise IllegalError(f"broadcast={allowed}", legal=("broadcast=0", "broadcast=1"))
    if first == second:
        return second
    if not allowed:
        raise IllegalError(
            f"shapes {list(first)} and {list(second)} differ: before opset {_BROADCASTING} {node.op} broadcasts its "
            "second operand only with broadcast=1",
            legal=(str(list(first)),),
        )
    behind = len(first) - len(second)
    if behind >= 0 and all(extent == 1 for extent in second):
        return (1,) * len(first)
    axis = attributes.get("axis", behind)
    if not 0 <= axis <= behind or first[axis : axis + len(second)] != second:
        raise IllegalError(
            f"with axis={axis} shape {list(second)} is not part of {list(first)}; before opset {_BROADCASTING} "
            f"{node.op} broadcasts only matching parts and single elements"
        )
    return (*second, *(1,) * (behind - axis))


def _onnx() -> Any:
    import onnx  # noqa: PLC0415 - the extra

    return onnx


def _schema(graph: Graph, node: GraphNode) -> Any:
    return _onnx().defs.get_schema(node.op, int(graph.version), "")


def _element(name: str) -> int:
    return int(_onnx().TensorProto.DataType.Value(name))


def _spare(node: GraphNode, name: str) -> str:
    """Return a name that no input of a node has."""
    return name if name not in node.inputs else _spare(node, f"{name}_")


def _made(node: GraphNode, attributes: Mapping[str, Any], further: list[str]) -> Any:
    inputs = [name or "" for name in node.inputs]
    return _onnx().helper.make_node(node.op, [*inputs, *further], list(node.outputs), node.name, **attributes)

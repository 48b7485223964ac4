"""Reader of `.onnx` files: the graph, its constants and its opset. The library onnx is the extra of that name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import numpy as np

from castsim.isa.errors import IllegalError, ReadError, missing_package
from castsim.isa.formats import FORMATS, Format
from castsim.isa.reading import MAX_MODEL_BYTES, check_size, read_bytes
from castsim.tools.graphs.model import TEXT, Dimension, Graph, GraphInput, GraphLanguage, GraphNode, GraphTensor

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

OPERATORS = (
    "Cast",
    "CastLike",
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "Clip",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Min",
    "Max",
    "Round",
    "ReduceMin",
    "ReduceMax",
    "Identity",
    "Reshape",
    "Constant",
)
"""Supported operators; `Constant` becomes a value of the graph."""

_ELEMENTS = {
    "FLOAT": "f32", "DOUBLE": "f64", "FLOAT16": "f16", "BFLOAT16": "bf16",
    "FLOAT8E4M3FN": "e4m3fn", "FLOAT8E4M3FNUZ": "e4m3fnuz", "FLOAT8E5M2": "e5m2", "FLOAT8E5M2FNUZ": "e5m2fnuz",
    "FLOAT8E8M0": "e8m0", "FLOAT4E2M1": "e2m1", "FLOAT6E2M3": "e2m3", "FLOAT6E3M2": "e3m2", "BOOL": "bool",
    "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64", "INT4": "i4", "INT2": "i2",
    "UINT8": "u8", "UINT16": "u16", "UINT32": "u32", "UINT64": "u64", "UINT4": "u4", "UINT2": "u2",
}  # fmt: skip
_DOMAINS = ("", "ai.onnx")
_TEXT = "STRING"
_OF_TEXTS = ("Cast", "CastLike", "Constant")
"""Operators that read or write text."""
_TEXTS_SINCE = 9
"""First opset in which Cast does."""


def library() -> ModuleType:
    """Return the module `onnx`.

    Raises:
        ReadError: the library is not installed.
    """
    try:
        import onnx  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise missing_package("an ONNX model", "onnx", "onnx") from None
    return onnx


def read_onnx(path: Path) -> Graph:
    """Read a model.

    Raises:
        ReadError: the file is missing, not a model, or refused by onnx's checker; onnx lacks the opset; an element
            type has no format.
        IllegalError: a node is not supported; the message names it.
    """
    onnx = library()
    model = _loaded(path, onnx)
    opset = _opset(path, model, onnx)
    _check_operators(path, model)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
        raise ReadError(f"{path}: {_first_line(error)}") from None
    graph = model.graph
    _check_elements(path, graph, onnx, _OF_TEXTS if opset >= _TEXTS_SINCE else ())
    if graph.sparse_initializer:
        raise ReadError(f"graph '{path}': sparse constants are not supported")
    constants = {tensor.name: _tensor(path, tensor, onnx) for tensor in graph.initializer}
    nodes = []
    for number, node in enumerate(graph.node):
        if node.op_type == "Constant":
            constants[node.output[0]] = _constant(path, node, onnx)
        else:
            nodes.append(_node(node, number, onnx))
    return Graph(
        file=str(path),
        name=graph.name or path.stem,
        language=GraphLanguage.ONNX,
        spec="onnx",
        version=str(opset),
        inputs=tuple(_input(path, value_info, onnx) for value_info in graph.input if value_info.name not in constants),
        constants=constants,
        nodes=tuple(nodes),
        outputs=tuple(dict.fromkeys(output.name for output in graph.output)),
        native=model,
    )


def format_of(number: int, what: str, onnx: ModuleType) -> Format:
    """Return the format of an element type, `TEXT` for STRING.

    Raises:
        ReadError: the type is unknown.
        IllegalError: the type is neither a number nor text, such as COMPLEX64.
    """
    data_types = onnx.TensorProto.DataType
    name = data_types.Name(number) if number in data_types.values() else str(number)
    if name == _TEXT:
        return TEXT  # type: ignore[no-any-return]
    if name not in _ELEMENTS:
        kind = IllegalError if name in data_types.keys() and name != "UNDEFINED" else ReadError  # noqa: SIM118 - no mapping
        raise kind(f"{what}: castsim has no format for element type {name}", legal=_ELEMENTS)
    return FORMATS[_ELEMENTS[name]]


def label_of(node: NodeProto, number: int) -> str:
    """Return the label of a node: its name, otherwise its operator and index."""
    return str(node.name) or f"{node.op_type}_{number}"


def _loaded(path: Path, onnx: ModuleType) -> ModelProto:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - comes with onnx

    data = read_bytes(path, "graph", default=MAX_MODEL_BYTES)
    try:
        model: ModelProto = onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise ReadError(f"graph '{path}' is not an ONNX model: {_first_line(error)}") from None
    if not data or not model.HasField("graph"):
        raise ReadError(f"graph '{path}' is not an ONNX model: it has no graph")
    _check_text(path, model)
    _check_external_data(path, model, onnx)
    try:
        with catch_warnings():
            simplefilter("ignore")  # of keys beside the known ones, which nothing reads
            onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ReadError(f"graph '{path}': {_first_line(error)}") from None
    return model


def _check_text(path: Path, message: Message) -> None:
    """Reject names that are not text, which protobuf returns as bytes.

    Raises:
        ReadError: a name is not text.
    """
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            for part in (value,) if isinstance(value, str | bytes) else value:
                if isinstance(part, bytes):
                    raise ReadError(f"graph '{path}' is not an ONNX model: its {field.name} {part[:40]!r} is not UTF-8")
        elif field.type == field.TYPE_MESSAGE:
            for item in (value,) if hasattr(value, "ListFields") else value:
                _check_text(path, item)


def _check_external_data(path: Path, model: ModelProto, onnx: ModuleType) -> None:
    """Reject external constants that together exceed the maximum size of a model.

    Raises:
        ReadError: they are too large.
    """
    total = 0
    for tensor in model.graph.initializer:
        if not onnx.external_data_helper.uses_external_data(tensor):
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        length = entries.get("length", "")
        file = path.parent / entries.get("location", "")
        with suppress(OSError, ValueError):  # no such file: onnx says so
            total += int(length) if length.isdecimal() and len(length) < 20 else file.stat().st_size
    check_size(total, f"the constants beside graph '{path}'", default=MAX_MODEL_BYTES)


def _opset(path: Path, model: ModelProto, onnx: ModuleType) -> int:
    versions = [opset.version for opset in model.opset_import if opset.domain in _DOMAINS]
    latest = onnx.defs.onnx_opset_version()
    if len(versions) != 1 or not 1 <= versions[0] <= latest:
        shown = ", ".join(map(str, versions)) or "none"
        raise ReadError(f"graph '{path}': unknown opset of ai.onnx: {shown}", legal=(f"1 to {latest}",))
    return int(versions[0])


def _check_operators(path: Path, model: ModelProto) -> None:
    """Reject unsupported operators, and parts that only the body of a function may contain."""
    own = {(function.domain, function.name) for function in model.functions}
    for number, node in enumerate(model.graph.node):
        if (node.domain, node.op_type) in own:
            raise IllegalError(
                f"{path}: node '{label_of(node, number)}' calls {node.op_type}; functions of a model are not supported",
                legal=OPERATORS,
            )
        if node.domain not in _DOMAINS or node.op_type not in OPERATORS:
            domain = f"{node.domain}." if node.domain not in _DOMAINS else ""
            raise IllegalError(
                f"{path}: node '{label_of(node, number)}': operator {domain}{node.op_type} is not supported",
                legal=OPERATORS,
            )
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                raise ReadError(
                    f"{path}: node '{label_of(node, number)}': attribute '{attribute.name}' refers to attribute "
                    f"'{attribute.ref_attr_name}' of a function, but the graph is not a function"
                )


def _check_elements(path: Path, graph: GraphProto, onnx: ModuleType, of_texts: Sequence[str]) -> None:
    """Reject the first node that meets elements that are neither numbers nor, for some operators, texts."""
    data_types = onnx.TensorProto.DataType
    kinds = {value_info.name: value_info.type.tensor_type.elem_type for value_info in graph.input}
    kinds |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    for number, node in enumerate(graph.node):
        met = [kinds[name] for name in node.input if name in kinds]
        names = [data_types.Name(kind) for kind in met if kind in data_types.values()]
        names += [name for attribute in node.attribute for name in _element_names(node, attribute, onnx)]
        legal = {*_ELEMENTS, "UNDEFINED"} | ({_TEXT} if node.op_type in of_texts else set())
        strange = [name for name in names if name in set(data_types.keys()) - legal]
        if strange:
            raise IllegalError(
                f"{path}: node '{label_of(node, number)}': operator {node.op_type} with elements of type {strange[0]} "
                "is not supported",
                legal=_ELEMENTS,
            )


def _element_names(node: NodeProto, attribute: AttributeProto, onnx: ModuleType) -> list[str]:
    """Return the element type that an attribute names or holds; Cast of opset 1 has it as a word."""
    data_types = onnx.TensorProto.DataType
    if node.op_type == "Constant" and attribute.name in ("value_string", "value_strings"):
        return ["STRING"]
    if node.op_type == "Cast" and attribute.name == "to" and attribute.s:
        return [attribute.s.decode(errors="replace")]
    number = attribute.i if node.op_type == "Cast" and attribute.name == "to" else attribute.t.data_type
    return [data_types.Name(number)] if number in data_types.values() else []


def _input(path: Path, value: ValueInfoProto, onnx: ModuleType) -> GraphInput:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise ReadError(f"graph '{path}': input '{value.name}' is not a tensor of known rank")
    shape: list[Dimension] = []
    for axis, dim in enumerate(kind.shape.dim):
        shape.append(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or f"{value.name}.{axis}")
    return GraphInput(value.name, format_of(kind.elem_type, f"input '{value.name}'", onnx), tuple(shape))


def _tensor(path: Path, proto: TensorProto, onnx: ModuleType) -> GraphTensor:
    fmt = format_of(proto.data_type, f"constant '{proto.name}'", onnx)
    try:
        array = onnx.numpy_helper.to_array(proto)
        return GraphTensor.of(array, fmt)
    except (ValueError, TypeError) as error:
        raise ReadError(f"graph '{path}': constant '{proto.name}': {_first_line(error)}") from None


def _constant(path: Path, node: NodeProto, onnx: ModuleType) -> GraphTensor:
    attribute = node.attribute[0]
    if attribute.name == "value":
        return _tensor(path, attribute.t, onnx)
    value = onnx.helper.get_attribute_value(attribute)
    dtypes: dict[str, tuple[type[np.generic], str]] = {
        "value_float": (np.float32, "f32"), "value_floats": (np.float32, "f32"),
        "value_int": (np.int64, "i64"), "value_ints": (np.int64, "i64"),
    }  # fmt: skip
    if attribute.name in ("value_string", "value_strings"):
        return GraphTensor.of(np.array(value, np.object_), TEXT)
    if attribute.name not in dtypes:
        raise ReadError(
            f"graph '{path}': castsim does not support a Constant given by {attribute.name}", legal=("value", *dtypes)
        )
    dtype, name = dtypes[attribute.name]
    return GraphTensor.of(np.array(value, dtype), FORMATS[name])


def _node(node: NodeProto, number: int, onnx: ModuleType) -> GraphNode:
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    plain = {
        key: value.decode(errors="replace") if isinstance(value, bytes) else value for key, value in attributes.items()
    }
    return GraphNode(
        name=label_of(node, number),
        op=node.op_type,
        inputs=tuple(name or None for name in node.input),
        outputs=tuple(node.output),
        attributes=plain,
        native=node,
    )


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__

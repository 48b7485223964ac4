"""Graphs of operators on tensors, whatever language they were written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.errors import Span
from castsim.isa.formats import Format
from castsim.numerics import array_from_codes, codes_from_array

Dimension = int | str
"""An extent, or the name of one that is chosen when the graph is run."""


class GraphLanguage(Enum):
    """The language of a graph."""

    ONNX = "ONNX model"
    TOSA = "TOSA text"


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
        """The numbers in their native dtype, or codes where neither NumPy nor ml_dtypes has one."""
        return array_from_codes(self.codes, self.format)

    @classmethod
    def of(cls, array: Codes, fmt: Format) -> GraphTensor:
        """Take an array of the format's native dtype or of its codes."""
        plain = np.asarray(array)
        return cls(fmt, codes_from_array(plain, fmt).reshape(plain.shape))


@dataclass(frozen=True, slots=True)
class GraphInput:
    """An argument of a graph."""

    name: str
    format: Format
    shape: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operator. `inputs` are names of values, None for one left out; `span` says where in a text it is.

    `results` are the formats and shapes that the text declares, empty where it does not. `native` is what the reader
    keeps for itself: the node as its own library has it.
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
    """Nodes in an order in which each reads what others before it have computed.

    `spec` is the specification that its casts follow, `version` its version; `native` as for `GraphNode`.
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

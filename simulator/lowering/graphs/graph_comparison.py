"""Judging the results of a node: element by element against the reference, or against what a specification accepts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import Format, IntFormat
from castsim.lowering.graphs.model import GraphTensor
from castsim.lowering.specifications import AcceptanceSets
from castsim.lowering.specifications.rescale import is_nan
from castsim.numerics import value_of

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WrongElement:
    """The first element that is not as it should be; `sources` are the elements it came from, with their formats."""

    index: tuple[int, ...]
    sources: tuple[tuple[Format, int], ...]
    format: Format
    result: int
    expected: int | None
    """A code that would be right, None where a set would be."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """The number of wrong elements of an output.

    `against` says what they were compared with, `undefined` how many it leaves open: those are never wrong.
    """

    output: str
    against: str
    elements: int
    undefined: int
    wrong: int
    witness: WrongElement | None
    sets: bool = False
    """Whether they were compared with sets of a specification, `against` being its label."""
    passed: int = 0
    """The number that differ from the reference and are not wrong: left open, or a zero or NaN that is as good."""
    because: tuple[str, ...] = ()
    """Of a whole graph: the nodes before the output with such elements, which may be why it differs."""


def against_reference(
    output: str,
    result: GraphTensor,
    expected: GraphTensor,
    sources: list[GraphTensor | None],
    undefined: Mask,
    *,
    either_zero: bool = False,
    against: str = "reference evaluator",
) -> OutputComparison:
    """Compare bits; every NaN is as good as every other, with `either_zero` so are zeros of both signs."""
    fmt = result.format
    nan = is_nan(result.codes, fmt) & is_nan(expected.codes, fmt)
    equal = (result.codes == expected.codes) | nan
    right = equal | undefined
    if either_zero and not isinstance(fmt, IntFormat):
        numbers = [tensor.array.astype(np.float64) for tensor in (result, expected)]
        right |= (numbers[0] == 0) & (numbers[1] == 0)
    found = _comparison(output, against, result, right, undefined, sources, expected)
    return replace(found, passed=int((right & ~equal).sum()))


def against_sets(
    output: str, result: GraphTensor, sets: AcceptanceSets, sources: list[GraphTensor | None], against: str
) -> OutputComparison:
    """Compare with the sets of a specification; a witness names the accepted code where there is one only."""
    right = sets.contains(result.codes)
    single = GraphTensor(result.format, np.where(sets.single, sets.lowest, 0)) if sets.single.any() else None
    found = _comparison(output, against, result, right, sets.anything, sources, single)
    witness = found.witness
    if witness is not None and not sets.single[witness.index]:
        witness = replace(witness, expected=None)
    return replace(found, witness=witness, sets=True)


def number_of(code: int, fmt: Format) -> str:
    """Return a code as the shortest number that distinguishes it from others."""
    value = value_of(code, fmt)
    if isinstance(value, float):
        return "-0" if value == 0 else str(value)
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


def _comparison(
    output: str,
    against: str,
    result: GraphTensor,
    right: Mask,
    undefined: Mask,
    sources: list[GraphTensor | None],
    expected: GraphTensor | None,
) -> OutputComparison:
    wrong = int((~right).sum())
    witness = None
    if wrong:
        index = tuple(int(place) for place in np.unravel_index(int(np.argmin(right.reshape(-1))), right.shape))
        found = [
            (tensor.format, int(np.broadcast_to(tensor.codes, right.shape)[index]))
            for tensor in sources
            if tensor is not None and _fits(tensor.shape, right.shape)
        ]
        code = None if expected is None else int(expected.codes[index])
        witness = WrongElement(index, tuple(found), result.format, int(result.codes[index]), code)
    return OutputComparison(output, against, right.size, int(undefined.sum()), wrong, witness)


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False

"""Values through a compiled cast, beside those of the other account of its chain and of LLVM IR's own definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Format
from castsim.isa.tpc.conversion_forms import RANDOM_ROUNDINGS
from castsim.numerics import code_dtype
from castsim.targets.tpc_compiler import ChainReading
from castsim.tpc_compiler.compiled_casts.building import RESULT, Order
from castsim.tpc_compiler.compiled_casts.compiling import CompiledCast, SourceForm, prepared
from castsim.tpc_compiler.compiled_casts.ir import (
    DifferingInput,
    Opcode,
    defined,
    differs,
    inputs_of,
    opcodes,
    witness_of,
)
from castsim.tpc_compiler.compiled_casts.vector_types import bits_of

LANGUAGE = "LLVM IR"
_SCALAR_TRIALS = 400


@dataclass(frozen=True, slots=True)
class Column:
    """Results of one account: for every input a row of codes (one, save in reinterpretations).

    `poison` marks inputs for which the account allows any result.
    """

    label: str
    codes: Codes
    poison: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Difference:
    """That an account gives other values than the cast: the input that shows it best, and both results."""

    label: str
    witness: DifferingInput


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """A cast with the results for some inputs, per account, and where accounts differ at all.

    `other` is the cast by the other reading, if its path differs. `vector_operations` and `bundles` are those of one
    vector. `instructions` are the casts of LLVM IR that the form `ir` stands for.
    """

    cast: CompiledCast
    other: CompiledCast | None
    columns: tuple[Column, ...]
    differences: tuple[Difference, ...]
    vector_operations: int
    bundles: int
    instructions: tuple[Opcode, ...]


def source_format(cast: CompiledCast) -> Format:
    """Return the format of the program's input: of a predicate, unsigned integers of the result's width."""
    element = cast.src.element
    return FORMATS[f"u{bits_of(cast.dst.element)}" if element == "i1" else element]


def compare(cast: CompiledCast, codes: Sequence[int]) -> ResultComparison:
    """Run a cast on codes and set the other accounts beside it.

    Raises:
        ReadError: too few narrow elements for a reinterpretation as wide ones.
        IllegalError: the target refuses an instruction.
    """
    fmt = source_format(cast)
    given = np.array(codes, code_dtype(fmt))
    other = _other(cast)
    casts = [cast] if other is None else [cast, other]
    columns = [Column(each.reading.value, _results(each, given), _nowhere(given)) for each in casts if given.size]
    instructions = opcodes(cast.src.element, cast.dst.element) if cast.form is SourceForm.IR else ()
    if instructions and given.size:
        found, poison = defined(given, cast.src.element, cast.dst.element)
        columns.append(Column(LANGUAGE, found.reshape(-1, 1), poison))
    some = given if given.size else np.zeros(1, code_dtype(fmt))
    counted = cast.run(some[:1] if cast.order is Order.SCALAR else some, checked=False)
    return ResultComparison(
        cast=cast,
        other=other,
        columns=tuple(columns),
        differences=tuple(_differences(cast, other, bool(instructions))),
        vector_operations=counted.vector_operations,
        bundles=len(cast.kernel.body),
        instructions=instructions,
    )


def _nowhere(codes: Codes) -> NDArray[np.bool_]:
    return np.zeros(codes.shape, np.bool_)


def _other(cast: CompiledCast) -> CompiledCast | None:
    """Return the cast by the other reading where that goes another way."""
    if cast.form in (SourceForm.REINTERPRET, SourceForm.IR) or cast.order is Order.SCALAR or cast.src.element == "i1":
        return None
    reading = ChainReading.DOCUMENT if cast.reading is ChainReading.COMPILER else ChainReading.COMPILER
    rounding = cast.mode if cast.form is SourceForm.AS else None
    found = prepared(
        cast.src, cast.dst, cast.target, form=cast.form, rounding=rounding, reading=reading, order=cast.order
    )
    return None if found.path.hops == cast.path.hops else found


def _results(cast: CompiledCast, codes: Codes) -> Codes:
    """Return a row of result codes per input; lanes of other orders are brought back to the inputs."""
    before, after = bits_of(source_format(cast).name), bits_of(cast.dst.element)
    if cast.form is SourceForm.REINTERPRET:
        if codes.size * before % after:
            raise ReadError(
                f"{codes.size} elements of {cast.src.element} are not a whole number of {cast.dst.element}",
                legal=(f"a multiple of {after // before} values",),
            )
        return cast.values(codes).reshape(-1, max(1, before // after))
    if cast.order is Order.LINEAR:
        return cast.values(codes).reshape(-1, 1)
    every = np.concatenate([cast.run(codes_at, checked=False).outputs[RESULT] for codes_at in _tiles(cast, codes)])
    return every[:, 0].reshape(-1, 1)


def _tiles(cast: CompiledCast, codes: Codes) -> Iterator[Codes]:
    """Yield vectors with one input in element 0, whose result stands in element 0 in every order."""
    count = cast.src.elements or 1
    for code in codes:
        yield np.full(count, code, codes.dtype)


def _differences(cast: CompiledCast, other: CompiledCast | None, in_ir: bool) -> Iterator[Difference]:
    """Look for inputs on which the accounts differ; random rounding differs from itself and is left out."""
    if cast.order not in (Order.LINEAR, Order.SCALAR) or cast.mode in RANDOM_ROUNDINGS or not (in_ir or other):
        return
    typed = source_format(cast).name
    inputs = inputs_of(typed)
    if cast.order is Order.SCALAR:  # a program for each
        inputs = inputs[:: -(-inputs.size // _SCALAR_TRIALS)]
    ours = cast.values(inputs)
    if in_ir:
        found, poison = defined(inputs, cast.src.element, cast.dst.element)
        different = differs(ours, found, poison, cast.dst.element)
        witness = witness_of(inputs, ours, found, different, typed)
        if witness is not None:
            yield Difference(LANGUAGE, witness)
    if other is not None:
        theirs = other.values(inputs)
        witness = witness_of(inputs, ours, theirs, ours != theirs, typed)
        if witness is not None:
            yield Difference(other.reading.value, witness)

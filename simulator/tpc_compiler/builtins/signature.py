"""Signatures of builtins: `short128 (int64, int64, int)` is one register of i16 from two of i32 and a number."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from castsim.isa.errors import TargetDataError
from castsim.isa.formats import format_named
from castsim.targets.tpc_builtins import BuiltinRow, Recipe
from castsim.targets.vliw import VliwTarget

_SIGNATURE = re.compile(r"(?P<result>\w+) \((?P<arguments>[^)]*)\)")
_VECTOR = re.compile(r"[a-z]+(?P<elements>\d+)(?P<pair>_pair_t)?")
_BYTE_BITS = 8
_SCALARS = {"int": ("shift", "i32"), "float": ("scale", "f32")}
"""The purpose of a cast builtin's scalar argument, and its format, by its type."""
_HELD = {Recipe.HALF_IN_WIDE_LANES: "f16"}


@dataclass(frozen=True, slots=True)
class Vectors:
    """Registers with elements of one format."""

    format: str
    registers: int
    lanes: int
    """Elements of one register."""
    held: str | None = None
    """A narrower format whose codes are in the low bits of the elements, the bits above being 0; None: elements fill
    their lanes."""

    @property
    def elements(self) -> int:
        """Elements altogether."""
        return self.registers * self.lanes


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments and result of a cast builtin; `scalar` is name and format of its number, if it takes one.

    All sources have one format, so that they are one array: first all elements of the first register, and so on.
    """

    text: str
    source: Vectors
    result: Vectors
    scalar: tuple[str, str] | None


def read_signature(row: BuiltinRow, target: VliwTarget) -> Signature:
    """Read the signature of a cast builtin.

    Raises:
        TargetDataError: it is none.
    """
    match = _SIGNATURE.fullmatch(row.signature)
    arguments = [] if match is None else [argument.strip() for argument in match["arguments"].split(",")]
    scalars = [_SCALARS[argument] for argument in arguments if argument in _SCALARS]
    vectors = [argument for argument in arguments if argument not in _SCALARS]
    if match is None or not vectors or len(scalars) > 1:
        raise TargetDataError(f"{row.builtin}: '{row.signature}' is not a signature of a cast")
    return Signature(
        text=row.signature,
        source=replace(_vectors(row, vectors, row.source, target), held=_HELD.get(row.recipe)),
        result=_vectors(row, [match["result"]], row.result, target),
        scalar=scalars[0] if scalars else None,
    )


def _vectors(row: BuiltinRow, types: list[str], fmt: str, target: VliwTarget) -> Vectors:
    elements = 0
    for name in types:
        match = _VECTOR.fullmatch(name)
        if match is None:
            raise TargetDataError(f"{row.builtin}: '{name}' is not a vector type")
        elements += int(match["elements"]) * (2 if match["pair"] else 1)
    lanes = target.registers.vector_bytes * _BYTE_BITS // format_named(fmt).bits
    return Vectors(fmt, elements // lanes, lanes)

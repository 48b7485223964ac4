"""Stores that read, change and write memory: the word that says how, and what becomes of the elements.

Source: docs/reference/tpc.md section 7.1 (tensor access): type, operation, where the type is taken from, and whether
the store merges at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, Span
from castsim.isa.formats import FORMATS, Format
from castsim.numerics import abstract_policy, convert_codes

Codes = NDArray[np.unsignedinteger]
_TYPES = ("i8", "i16", "i32", "u8", "u16", "u32", "bf16", "f32", "f16", "f8_152")
_OPERATIONS = ("add", "sub", "min", "max")
_FROM_DESCRIPTOR = 1
_SINGLE = FORMATS["f32"]
_COMPUTED: Mapping[str, Callable[..., NDArray[np.generic]]] = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Merge:
    """What a store does with what memory holds: memory = memory OPERATION value, in a format."""

    operation: str
    format: Format

    def __call__(self, old: Codes, new: Codes) -> Codes:
        """Return the elements after the store; f32 sums round once, to nearest even."""
        computed = _COMPUTED[self.operation]
        if self.format.name.startswith(("i", "u")):
            kind = np.dtype(f"{self.format.name[0]}{self.format.bits // 8}")
            return np.asarray(computed(old.view(kind), new.view(kind))).view(old.dtype)
        with np.errstate(all="ignore"):
            found = computed(self._wide(old), self._wide(new)).astype(np.float32).view(np.uint32)
        if self.format.name == "f32":
            return np.asarray(found, old.dtype)
        policy = abstract_policy(_SINGLE, self.format)
        return np.asarray(convert_codes(found, _SINGLE, self.format, policy), old.dtype)

    def _wide(self, codes: Codes) -> NDArray[np.float32]:
        if self.format.name == "f32":
            return np.ascontiguousarray(codes, np.uint32).view(np.float32)
        policy = abstract_policy(self.format, _SINGLE)
        return np.asarray(convert_codes(codes, self.format, _SINGLE, policy), np.uint32).view(np.float32)


def merge_of(word: int, held: Format, flag: int, span: Span) -> Merge:
    """Return what a word asks for; `held` is the format of the tensor, `flag` the bit that makes the store merge.

    Raises:
        IllegalError: an operation or type that no source describes, or another type than the tensor has.
    """
    kind, operation, location = word & 15, (word & ((1 << min(flag, 7)) - 1)) >> 4, word >> 7 & 1
    if not word >> flag & 1:
        message = f"a store with the word {word:#x}, whose bit {flag} is clear, is not documented"
        raise IllegalError(message, span=span, legal=("MkRMW(type, op, e_rmw_atomic, e_tnsr_dt_srf)",))
    if operation >= len(_OPERATIONS):
        raise IllegalError(f"operation {operation} of a merging store is not documented", span=span, legal=_OPERATIONS)
    if kind >= len(_TYPES):
        raise IllegalError(f"type {kind} of a merging store is not documented", span=span, legal=_TYPES)
    wanted = held if location == _FROM_DESCRIPTOR else FORMATS[_TYPES[kind]]
    if wanted.bits != held.bits:
        message = f"a merging store of {wanted.name} to a tensor of {held.name}"
        raise IllegalError(message, span=span, legal=(f"{held.name}",))
    return Merge(_OPERATIONS[operation], wanted)

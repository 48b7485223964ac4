"""The functions that read and write words of tensor descriptors (docs/reference/tpc.md section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import pack, unpack

from castsim.engines import simulate
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.tpc import Slot
from castsim.machines.vliw.assembled import assemble, execute
from castsim.targets.tpc_special_functions import SpecialFunction, descriptors_of
from castsim.targets.vliw import VliwTarget
from castsim.timing import Timing
from castsim.tpc_compiler.code_generation import ScheduledKernel, Sequence, schedule

_TYPES = {"int": (32, True), "short": (16, True), "ushort": (16, False), "char": (8, True), "uchar": (8, False)}
"""Bits of a pad value's type, and whether it is signed."""

_PAD, _DIMENSIONS, _STRIDE = 8, 0x10, 4
_DIMENSION_COUNT = 5
_MAX_BUNDLES = 10**6


@dataclass(frozen=True, slots=True)
class DescriptorCall:
    """A call with numbers for its arguments: the address, the word that is stored, and the program.

    `result` is what a function returns of the word that the descriptor holds; None: it returns nothing, or no word was
    given.
    """

    row: SpecialFunction
    target: VliwTarget
    address: int
    stored: int | None
    result: int | float | None
    kernel: ScheduledKernel
    timing: Timing

    def text(self) -> str:
        """Return the assembly, which `castsim run` takes."""
        return f"// {self.row.builtin}: {self.row.signature}\n{self.kernel.text()}"


def arguments_of(row: SpecialFunction) -> tuple[str, ...]:
    """Return the names of a function's arguments; a reading one takes the word that is read, if it is known."""
    stride = row.name.endswith("dim_stride")
    places = ("tensor", "dimension") if stride else ("tensor",)
    return (*places, "value" if row.name.startswith("set_") else "word")


def descriptor_call(row: SpecialFunction, target: VliwTarget, given: Mapping[str, int | float]) -> DescriptorCall:
    """Return a call.

    Raises:
        ReadError: an argument that is missing, unknown or out of its range.
        IllegalError: no source says where the target has its descriptors.
    """
    place = descriptors_of(target)
    if place is None:
        raise IllegalError(f"no source says where {target.name} has the descriptors of its tensors")
    names = arguments_of(row)
    for name in given:
        if name not in names:
            raise ReadError(f"{row.builtin} has no argument '{name}'", legal=names)
    missing = [name for name in names if name != "word" and name not in given]
    if missing:
        raise ReadError(f"{row.builtin} takes {', '.join(missing)}", legal=[f"--arg {name}=NUMBER" for name in missing])
    tensor = _within("tensor", given["tensor"], target.tensors.limit)
    address = place.base + place.descriptor_bytes * tensor + _PAD
    if "dimension" in names:
        dimension = _within("dimension", given["dimension"], _DIMENSION_COUNT)
        address += _DIMENSIONS - _PAD + place.dimension_bytes * dimension + _STRIDE
    stored = _word(row, given["value"]) if "value" in names else None
    kernel = schedule(_sequence(address, stored), target, name=row.builtin)
    tree = execute(
        assemble(f"// castsim: tensor {tensor} described in i8 [1]\n{kernel.text()}", f"<{row.builtin}>", target, {}),
        {},
        values=False,
        checked=True,
        max_bundles=_MAX_BUNDLES,
    ).tree
    result = _returned(row, int(given["word"])) if "word" in given else None
    return DescriptorCall(row, target, address, stored, result, kernel, simulate(tree, target))


def _within(name: str, number: int | float, limit: int) -> int:
    if not isinstance(number, int) or not 0 <= number < limit:
        raise ReadError(f"{name}={number}", legal=(f"0 .. {limit - 1}",))
    return number


def _sequence(address: int, stored: int | None) -> Sequence:
    sequence = Sequence()
    word = sequence.register()
    if stored is None:
        sequence.add(Slot.LOAD, "ld_l mmio", word, address)
    else:
        sequence.spu("mov.i32", word, stored)
        sequence.add(Slot.STORE, "st_l mmio", address, word)
    return sequence


def _type(row: SpecialFunction) -> str:
    return row.name.rpartition("_")[2]


def _word(row: SpecialFunction, value: int | float) -> int:
    """Return the word that is stored: a narrow pad value in every part of it."""
    kind = _type(row)
    if kind == "float":
        return int(unpack("<I", pack("<f", float(value)))[0])
    bits, signed = _TYPES.get(kind, (32, False))
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << bits) - 1 if not signed else (1 << (bits - 1)) - 1
    if not isinstance(value, int) or not low <= value <= high:
        raise ReadError(f"value={value} is not of the type of {row.builtin}", legal=(f"{low} .. {high}",))
    part = value & ((1 << bits) - 1)
    return sum(part << place for place in range(0, 32, bits))


def _returned(row: SpecialFunction, word: int) -> int | float:
    """Return the low bits of a word in the type of the result."""
    kind = _type(row)
    if not 0 <= word < 1 << 32:
        raise ReadError(f"word={word}", legal=("0 .. 0xffffffff",))
    if kind == "float":
        return float(unpack("<f", pack("<I", word))[0])
    bits, signed = _TYPES.get(kind, (32, False))
    code = word & ((1 << bits) - 1)
    return code - (1 << bits) if signed and code >> (bits - 1) else code

"""Sequential instructions with virtual registers, each with its place in the C source, and the values in them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span
from castsim.isa.formats import format_named
from castsim.numerics import abstract_policy, codes_from_array, convert_codes
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.tpc_c.source import Parsed
from castsim.tpc_compiler.tpc_c.types import (
    GENERATIONS,
    VOID,
    CType,
    Group,
    Index,
    Mask,
    Pointer,
    Scalar,
    Vector,
    first_generation,
)

_FILES = {Vector: "v", Mask: "vp", Index: "i"}
WORD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Value:
    """A value: in a register by its name in the text, or known (`const`). A `temp` is held by nothing else."""

    type: CType
    text: str = ""
    const: int | float | None = None
    temp: bool = False

    @property
    def known(self) -> bool:
        """Whether it is known when the kernel is compiled."""
        return self.const is not None


VOID_VALUE = Value(VOID)


@dataclass(frozen=True, slots=True)
class CodeLine:
    """An instruction or a label of the text, and its place in C."""

    text: str
    span: Span

    @property
    def is_label(self) -> bool:
        """Whether it is a label."""
        return self.text.endswith(":")


class Emitter:
    """Writes instructions for one target; `here` is the place in C that they come from."""

    def __init__(self, parsed: Parsed, target: VliwTarget) -> None:
        self.parsed = parsed
        self.target = target
        self.generation = next(g for g in reversed(GENERATIONS) if g in (target.name, *target.architectures))
        self.lines: list[CodeLine] = []
        self.here: Any = None
        self.notes: dict[str, Span] = {}
        self._count = 0

    # --------------------------------------------------------------------------------------------------- errors

    def span(self, node: Any = None) -> Span:
        """Return the place of a node, or of what is being compiled."""
        return self.parsed.span(self.here if node is None else node)

    def refused(self, message: str, *legal: str, node: Any = None) -> IllegalError:
        """Return (not raise) the refusal of what the target or the language does not have."""
        return IllegalError(message, span=self.span(node), legal=legal)

    def wrong(self, message: str, *legal: str, node: Any = None) -> ReadError:
        """Return (not raise) an error of the source."""
        return ReadError(message, span=self.span(node), legal=legal)

    def note(self, text: str) -> None:
        """Say something once about how the kernel was read."""
        self.notes.setdefault(text, self.span())

    def since(self, generation: str) -> bool:
        """Whether the target is of a generation or a later one."""
        return GENERATIONS.index(self.generation) >= GENERATIONS.index(generation)

    def check_type(self, kind: CType) -> None:
        """Reject a type that the generation lacks."""
        first = first_generation(kind)
        if not self.since(first):
            raise self.refused(f"{kind} is not available on {self.generation}; from {first} on")

    # ------------------------------------------------------------------------------------------------ instructions

    def emit(self, text: str, predicate: str = "") -> None:
        """Write an instruction."""
        self.lines.append(CodeLine(f"{text}, {predicate}" if predicate else text, self.span()))

    def label(self) -> str:
        """Return a new label."""
        self._count += 1
        return f"L{self._count}"

    def place(self, label: str) -> None:
        """Write a label."""
        self.lines.append(CodeLine(f"{label}:", self.span()))

    def name(self, stem: str = "t") -> str:
        """Return a new name of a register."""
        self._count += 1
        return f"{stem}_{self._count}"

    def register(self, kind: CType, stem: str = "t") -> str:
        """Return a new register for a type, as the text names it."""
        if isinstance(kind, Group):
            return f"%{'d' if len(kind.members) == 2 else 'a'}.{self.name(stem)}"
        if isinstance(kind, Pointer):
            return f"%{'ad' if kind.space == 'global' else 's'}.{self.name(stem)}"
        if isinstance(kind, Scalar):
            return f"%{'sp' if kind.name == 'bool' else 's'}.{self.name(stem)}"
        return f"%{_FILES[type(kind)]}.{self.name(stem)}"

    def temp(self, kind: CType) -> Value:
        """Return a value in a new register."""
        return Value(kind, self.register(kind), temp=True)

    def dest(self, kind: CType, into: str | None) -> Value:
        """Return where a result goes: the register that is wanted if it is of the right file, else a new one."""
        if into is None or self.register(kind).partition(".")[0] != into.partition(".")[0]:
            return self.temp(kind)
        return Value(kind, into)

    # -------------------------------------------------------------------------------------------------- constants

    def bits(self, number: float, kind: Scalar) -> int:
        """Return the bits of a number in a type."""
        if kind.name == "bool":
            return int(bool(number))
        if not kind.is_float:
            return int(number) & ((1 << kind.bits) - 1)
        value = np.array([number], np.float32)
        if kind.name == "f32":
            return int(value.view(np.uint32)[0])
        single, narrow = format_named("f32"), format_named(kind.name)
        codes = codes_from_array(value, single)
        return int(convert_codes(codes, single, narrow, abstract_policy(single, narrow))[0])

    def immediate(self, value: Value, kind: Scalar) -> str:
        """Return a known value as an immediate of 32 bits."""
        assert value.const is not None
        code = self.bits(value.const, kind)
        if kind.signed and code >> (kind.bits - 1):
            code |= WORD & ~((1 << kind.bits) - 1)
        return hex(code)

    def const(self, number: float, kind: Scalar) -> Value:
        """Return a known value, wrapped or rounded to its type."""
        if kind.is_float:
            number = float(np.float32(number)) if kind.name == "f32" else self._rounded(number, kind)
            return Value(kind, const=number)
        if kind.name == "bool":
            return Value(kind, const=int(bool(number)))
        code = int(number) & ((1 << kind.bits) - 1)
        if kind.signed and code >> (kind.bits - 1):
            code -= 1 << kind.bits
        return Value(kind, const=code)

    def _rounded(self, number: float, kind: Scalar) -> float:
        narrow, single = format_named(kind.name), format_named("f32")
        codes = np.array([self.bits(number, kind)], np.uint16 if kind.bits > 8 else np.uint8)
        wide = np.asarray(convert_codes(codes, narrow, single, abstract_policy(narrow, single)), np.uint32)
        return float(wide.view(np.float32)[0])

    def from_bits(self, code: int, kind: Scalar) -> Value:
        """Return the value that bits stand for."""
        if kind.name == "f32":
            return Value(kind, const=struct.unpack("<f", struct.pack("<I", code & WORD))[0])
        if kind.is_float:
            raise self.refused(f"bits cannot be taken for a known {kind}")
        return self.const(code, kind)


def member_text(value: Value, index: int) -> str:
    """Return the register of a member of an aggregate."""
    return f"%v.{value.text.partition('.')[2]}.{index}"


def base_of(text: str) -> str:
    """Return what names the register or group that a text belongs to: `%v.x.0` and `%d.x` belong together."""
    parts = text.lstrip("!").split(".")
    if len(parts) < 2:
        return text
    file = {"%d": "%v", "%a": "%v", "%z": "%s"}.get(parts[0], parts[0])
    return f"{file}.{parts[1]}"


__all__ = [
    "VOID_VALUE",
    "WORD",
    "CastsimError",
    "CodeLine",
    "Emitter",
    "Value",
    "base_of",
    "member_text",
]  # fmt: skip

"""Programs of logical registers: a body between an input buffer and an output buffer, run on bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from castsim.isa.pto.program import Program
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.reading import Language, Source
from castsim.machines.vector_function.micro_unit import lower_function
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import load_tiles

Bytes = NDArray[np.uint8]
SPELLED = {
    "f32": "f32", "f16": "f16", "bf16": "bf16", "e4m3fn": "f8E4M3FN", "e5m2": "f8E5M2", "hif8": "!pto.hif8",
    "e1m2": "!pto.f4E1M2x2", "e2m1": "!pto.f4E2M1x2", "bf16_pair": "!pto.bf16x2",
    **{f"i{n}": f"si{n}" for n in (8, 16, 32, 64)}, **{f"u{n}": f"ui{n}" for n in (8, 16, 32, 64)},
}  # fmt: skip
OUTPUT = 131072
"""Byte of the buffer where the output begins; the input begins at 0."""
_GM, _UB = "!pto.ptr<ui8, gm>", "!pto.ptr<ui8, ub>"


def bits(element: str) -> int:
    """Bits of an element in memory."""
    return {"f32": 32, "bf16_pair": 32, "f16": 16, "bf16": 16}.get(
        element, int(element[1:]) if element[0] in "iu" else 8
    )


def reg(lanes: int, element: str) -> str:
    """The type of a logical register."""
    return f"!pto.vmi.vreg<{lanes}x{SPELLED[element]}>"


def mask(lanes: int) -> str:
    """The type of a logical mask."""
    return f"!pto.vmi.mask<{lanes}xpred>"


def ptr(element: str) -> str:
    """The type of a pointer into the buffer."""
    return f"!pto.ptr<{SPELLED[element]}, ub>"


class Body:
    """Text of a vecscope, with pointers and constants before it."""

    def __init__(self, arguments: str = "") -> None:
        self.arguments, self.before, self.inside = arguments, list[str](), list[str]()
        self._number = 0

    def fresh(self) -> str:
        self._number += 1
        return f"%t{self._number}"

    def constant(self, value: float | str, kind: str = "index") -> str:
        name = self.fresh()
        self.before.append(f"{name} = arith.constant {value} : {kind}")
        return name

    def pointer(self, byte: int, element: str) -> str:
        """A pointer to a byte of the buffer."""
        name = self.fresh()
        self.before.append(f"{name} = pto.castptr {self.constant(byte, 'i64')} : i64 -> {ptr(element)}")
        return name

    def line(self, text: str) -> None:
        self.inside.append(text)

    def make(self, text: str) -> str:
        """A statement with one result, which is returned."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def load(self, lanes: int, element: str, byte: int = 0, offset: int = 0, words: str = "") -> str:
        where = f"{self.pointer(byte, element)}[{self.constant(offset)}]"
        return self.make(f"pto.vmi.vload {where}{words} : {ptr(element)} -> {reg(lanes, element)}")

    def store(self, value: str, lanes: int, element: str, byte: int = OUTPUT, offset: int = 0, m: str = "") -> None:
        where = f"{self.pointer(byte, element)}[{self.constant(offset)}]"
        more, kind = (f", {m}", f", {mask(lanes)}") if m else ("", "")
        self.line(f"pto.vmi.vstore {value}, {where}{more} : {reg(lanes, element)}, {ptr(element)}{kind}")

    def text(self, given: int, taken: int) -> str:
        """The program that loads so many bytes of %x and of %y, and stores those of %y."""
        more = f", {self.arguments}" if self.arguments else ""
        zero, one = "arith.constant 0 : i64", "arith.constant 1 : i64"
        head = [
            f"%zero = {zero}", f"%one = {one}", f"%given = arith.constant {given} : i64",
            f"%taken = arith.constant {taken} : i64", f"%far = arith.constant {OUTPUT} : i64",
            f"%ux = pto.castptr %zero : i64 -> {_UB}", f"%uy = pto.castptr %far : i64 -> {_UB}",
            _in("x", "given"), _in("y", "taken"),
            'pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]', 'pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]',
        ]  # fmt: skip
        tail = [
            'pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]', 'pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]',
            f"pto.mte_ub_gm %uy, %y, %taken nburst(%one, %taken, %taken) : {_UB}, {_GM}, i64, i64, i64, i64",
            "pto.barrier #pto.pipe<PIPE_ALL>", "return",
        ]  # fmt: skip
        lines = [*head, *self.before, "pto.vecscope {", *self.inside, "}", *tail]
        inner = "\n".join(lines)
        return (
            'module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {\n'
            f"func.func @f(%x: {_GM}, %y: {_GM}{more}) attributes {{pto.kernel}} {{\n{inner}\n}}\n}}\n"
        )


def _in(name: str, size: str) -> str:
    kinds = f"{_GM}, {_UB}, i64, i64, i64, i64, i64"
    return f"pto.mte_gm_ub %{name}, %u{name}, %zero, %{size} nburst(%one, %{size}, %{size}) : {kinds}"


def as_bytes(codes: NDArray[np.generic]) -> Bytes:
    """The bytes of an array."""
    return np.frombuffer(codes.tobytes(), np.uint8)


def blank(size: int) -> Bytes:
    """An output that nothing has been stored to."""
    return np.full(size, 0xA5, np.uint8)


def run_text(
    text: str, x: Bytes, y: Bytes, args: Mapping[str, int | float] | None = None, *, warns: bool = False
) -> Bytes:  # fmt: skip
    """What a program leaves in %y; nothing of it may be undefined."""
    loaded = load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5", args=args or {}))
    issued = loaded.issue({"x": x, "y": y}, RunOptions())
    said = [each for each in issued.loaded.executed.warnings if each.kind == "undefined"]
    assert warns or not said, said
    return np.asarray(issued.outputs["y"])


def lowered(text: str) -> Program:
    """The program with its operations on logical registers lowered; it prints and reads as itself."""
    program = parse(text)
    assert parse(print_program(program)) == program
    found = replace(program, functions=tuple(lower_function(each) for each in program.functions))
    assert parse(print_program(found)) == found
    return found


def run_body(body: Body, x: Bytes, size: int, args: Mapping[str, int | float] | None = None) -> Bytes:
    """What a body leaves in `size` bytes of output, 0xA5 before; its text and its lowered text read as themselves."""
    given = np.zeros(-(-x.size // 32) * 32, np.uint8)
    given[: x.size] = x
    text = body.text(given.size, size)
    lowered(text)
    return run_text(text, given, blank(size), args)

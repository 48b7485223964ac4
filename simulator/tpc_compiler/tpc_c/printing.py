"""What a kernel prints: the values that a run moves into the registers of printf, and the lines that they make."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

import numpy as np

from castsim.isa.formats import format_named
from castsim.isa.tpc import Register, TpcProgram
from castsim.machines.vliw.lint_flow import LintFinding
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.registers import Held
from castsim.numerics import abstract_policy, convert_codes
from castsim.tpc_compiler.tpc_c.expressions import PRINTED, PRINTED_VECTOR, Print
from castsim.tpc_compiler.tpc_c.types import INT, Scalar

MOST_LINES = 10_000
"""Lines that are kept; more are counted."""
_Place = tuple[int | None, int | None]


class Printing:
    """Hears of every bundle before it is issued, and takes what the one before has moved to be printed."""

    def __init__(self, prints: Mapping[_Place, Print], program: TpcProgram, file: str) -> None:
        self._file = file
        self._prints = prints
        self._found: list[tuple[_Place, Held]] = []
        self._vectors: dict[_Place, deque[Held]] = defaultdict(deque)
        self._last: tuple[VliwCore, int] | None = None
        self._moves: dict[int, list[tuple[_Place, Register]]] = {}
        for number, bundle in enumerate(program.bundles if prints else ()):
            for each in bundle.slots:
                dest = None if each is None or each.mnemonic != "mov" else each.operand("dest")
                place = (None, None) if each is None else (each.span.line, each.span.column)
                if isinstance(dest, Register) and str(dest) in (PRINTED, PRINTED_VECTOR) and place in prints:
                    self._moves.setdefault(number, []).append((place, dest))

    def bundle(self, machine: VliwCore, index: int) -> None:
        """Take note that a bundle is about to be issued."""
        self._take()
        self._last = (machine, index) if index in self._moves else None

    def lines(self) -> tuple[str, ...]:
        """Return what was printed, `kernel.c:12: text`, in order; without a line break the next call goes on."""
        self._take()
        found: list[str] = []
        open_ = False
        for count, (place, value) in enumerate(self._found):
            if len(found) == MOST_LINES and not open_:
                return (*found, f"{len(self._found) - count} more calls of printf")
            text = self._text(place, value)
            for piece in text.splitlines(keepends=True):
                if open_:
                    found[-1] += piece.rstrip("\n")
                else:
                    found.append(f"{self._file}:{place[0]}: {piece.rstrip(chr(10))}")
                open_ = not piece.endswith("\n")
        return tuple(found)

    def _take(self) -> None:
        if self._last is None:
            return
        machine, index = self._last
        self._last = None
        for place, register in self._moves[index]:
            (cell,) = machine.registers.cells(register)
            if isinstance(cell.newest, np.ndarray):
                self._vectors[place].append(cell.newest)
            else:
                self._found.append((place, cell.newest))

    def _text(self, place: _Place, value: Held) -> str:
        call = self._prints[place]
        assert isinstance(value, int)
        shown: tuple[int | float, ...] = ()
        if call.element:
            assert call.kind is not None
            lanes = np.asarray(self._vectors[place].popleft()).view(f"<u{call.kind.bits // 8}")
            shown = (_number(int(lanes[value % lanes.size]), call.kind),)
        elif call.kind is not None:
            shown = (_number(value, call.kind),)
        return re.sub(r"(%[-+ #0]*\d*(?:\.\d+)?)(?:hh|ll|h|l)", r"\1", call.format) % shown


def without_prints(findings: Iterable[LintFinding], prints: Mapping[_Place, Print]) -> tuple[LintFinding, ...]:
    """Return findings without those about values that are moved to be printed."""
    return tuple(
        each for each in findings if each.rule != "unread result" or (each.span.line, each.span.column) not in prints
    )


def _number(code: int, kind: Scalar) -> int | float:
    """Return the number that the low bits of a word are in a type."""
    kind = INT if kind.name == "bool" else kind
    code &= (1 << kind.bits) - 1
    if kind.is_float:
        narrow, single = format_named(kind.name), format_named("f32")
        codes = np.array([code], f"u{kind.bits // 8}")
        if kind.name != "f32":
            codes = np.asarray(convert_codes(codes, narrow, single, abstract_policy(narrow, single)))
        return float(codes.astype(np.uint32).view(np.float32)[0])
    return code - (1 << kind.bits) if kind.signed and code >> (kind.bits - 1) else code

"""What an editor shows of a stopped program: scopes, and below them names, rows and elements, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.escaping import escaped
from castsim.reports.documents import Document
from castsim.reports.stepping import element_value
from castsim.running.stepping.stepper import Stepper
from castsim.running.stepping.symbols import Named, Selection

_SCOPES = {"Tiles": ("tile",), "Tensors": ("tensor",), "Registers": ("register",), "Memory": ("pointer", "memory")}
_PIPES = "Pipes"
MOST_SHOWN = 1000
"""Variables that one request gets unless it asks for so many."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The elements of a name below some first indices; `shape` is what they leave."""

    name: str
    before: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(slots=True)
class Variables:
    """References to what can be opened; they hold until the program moves."""

    stepper: Stepper
    _held: list[str | _Rows] = field(default_factory=list)

    def forget(self) -> None:
        """The program has moved."""
        self._held = []

    def scopes(self) -> list[Document]:
        """Return the scopes of the one frame that there is."""
        kinds = {each.kind for each in self._names()}
        shown = [name for name, own in _SCOPES.items() if kinds.intersection(own)]
        if self.stepper.trace.timed:
            shown.append(_PIPES)
        return [{"name": name, "variablesReference": self._refer(name), "expensive": name == _PIPES} for name in shown]

    def below(self, reference: int, start: int, count: int) -> list[Document]:
        """Return what a reference opens: `count` of it from `start` on, 0 for a page.

        Raises:
            ReadError: there is no such reference, or no longer.
        """
        if not 1 <= reference <= len(self._held):
            raise ReadError(f"there is nothing with the reference {reference}: the program may have moved")
        held = self._held[reference - 1]
        end = start + (count or MOST_SHOWN)
        if isinstance(held, _Rows):
            return self._elements(held, start, min(end, held.shape[0]))
        return list(islice(self._scope(held), start, end))

    def result(self, selection: Selection) -> Document:
        """Return the answer to an expression: an element, or something that can be opened. Errors as the stepper's."""
        name = next((each for each in self._names() if each.name == selection.name), None)
        if name is not None and not selection.index and selection.format is None and name.shape:
            return {"result": _summary(name), "variablesReference": self._refer(_Rows(name.name, (), name.shape)),
                    "indexedVariables": name.shape[0]}  # fmt: skip
        lines = [f"{list(each.place)} {element_value(each)}" for each in self.stepper.elements(selection).shown()]
        text = "\n".join(lines) if len(lines) != 1 else lines[0].partition("] ")[2]
        return {"result": text, "variablesReference": 0}

    def _names(self) -> Iterator[Named]:
        trace = self.stepper.trace
        return trace.symbols.all(self.stepper.position, trace.registers)

    def _scope(self, scope: str) -> Iterator[Document]:
        if scope == _PIPES:
            for pipe, cause in self.stepper.pipes.all(self.stepper.cycle).items():
                yield {"name": pipe, "value": cause.value, "variablesReference": 0}
            return
        for each in self._names():
            if each.kind not in _SCOPES[scope]:
                continue
            own: Document = {"name": escaped(each.name), "type": each.format, "evaluateName": each.name}
            if each.shape:
                reference = self._refer(_Rows(each.name, (), each.shape))
                yield {**own, "value": _summary(each), "variablesReference": reference,
                       "indexedVariables": each.shape[0]}  # fmt: skip
            else:
                yield {**own, "value": self._value(Selection(each.name)), "variablesReference": 0}

    def _elements(self, rows: _Rows, start: int, end: int) -> list[Document]:
        if start >= end:
            return []
        if len(rows.shape) > 1:
            return [self._row(rows, number) for number in range(start, end)]
        selection = Selection(rows.name, (*rows.before, slice(start, end)))
        return [
            {"name": f"[{each.place[-1]}]", "value": element_value(each), "variablesReference": 0,
             "evaluateName": _expression(rows.name, each.place)}
            for each in self.stepper.elements(selection).shown()
        ]  # fmt: skip

    def _row(self, rows: _Rows, number: int) -> Document:
        below = _Rows(rows.name, (*rows.before, number), rows.shape[1:])
        return {
            "name": f"[{number}]", "value": f"[{', '.join(map(str, below.shape))}]",
            "variablesReference": self._refer(below), "indexedVariables": below.shape[0],
            "evaluateName": _expression(rows.name, below.before),
        }  # fmt: skip

    def _value(self, selection: Selection) -> str:
        try:
            return ", ".join(map(element_value, self.stepper.elements(selection).shown()))
        except CastsimError as error:
            return error.message

    def _refer(self, what: str | _Rows) -> int:
        self._held.append(what)
        return len(self._held)


def _summary(name: Named) -> str:
    return f"{name.format} [{', '.join(map(str, name.shape))}]"


def _expression(name: str, index: tuple[int, ...]) -> str:
    return f"{name}[{','.join(map(str, index))}]"


Move = Callable[[], object]

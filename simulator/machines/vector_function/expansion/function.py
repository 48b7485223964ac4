"""One vector function as a vecscope: setup, then loop nests, with counters carried from trip to trip."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.formats import Format
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import PointerType
from castsim.machines.vector_function.expansion.conversions import Attributes
from castsim.machines.vector_function.expansion.registers import Place, Registers, pointed
from castsim.machines.vector_function.expansion.writer import Writer
from castsim.machines.vector_function.operations import CountDown, Load, Nest, Store, VectorFunction


@dataclass(frozen=True, slots=True)
class _Side:
    """A pointer of the function and how far it moves, in its elements: from row to row, and from trip to trip."""

    pointer: str
    element: str
    size: int
    row: int
    trip: int


@dataclass(frozen=True, slots=True)
class FunctionWriter:
    """Writes vector functions."""

    out: Writer
    attributes: Attributes

    def write(self, function: VectorFunction, addresses: tuple[str, ...], ctrl: int) -> None:
        """Write a vecscope; `addresses` are values (i64) of the function's addresses, `ctrl` is CTRL meanwhile.

        Raises:
            IllegalError: an operation that no vector instruction does.
        """
        formats = (function.destination_format, *[function.source_format] * (len(addresses) - 1))
        pointers = [self._pointer(address, fmt) for address, fmt in zip(addresses, formats, strict=True)]
        self.out.open("pto.vecscope {")
        registers = Registers(self.out, self.attributes, ctrl)
        for operation in function.setup:
            registers.step(operation)
        for nest in function.nests:
            if nest.runs:
                self._nest(function, nest, pointers, registers)
        self.out.close()

    def _pointer(self, address: str, fmt: Format) -> str:
        kind = format_type(PointerType(fmt.name, "ub"))
        return self.out.define("ub", f"pto.castptr {address} : i64 -> {kind}")

    def _nest(self, function: VectorFunction, nest: Nest, pointers: list[str], outer: Registers) -> None:
        """Write a loop nest; registers that its row makes are seen by its trips."""
        row, inside = "", outer.inner()
        if nest.row_loop:
            row = self.out.fresh("row")
            zero, one = self.out.constant(0), self.out.constant(1)
            self.out.open(f"scf.for {row} = {zero} to {self.out.constant(nest.rows)} step {one} {{")
        for name, start in nest.counters.items():
            inside.scalars[name] = self.out.constant(start, "i32")
        for operation in nest.row:
            inside.step(operation)
        self._trips(function, nest, pointers, inside, row)
        if nest.row_loop:
            self.out.close()

    def _trips(
        self, function: VectorFunction, nest: Nest, pointers: list[str], outer: Registers, row: str
    ) -> None:  # fmt: skip
        """Write the inner loop. Its variable counts elements of the destination, if all sides move alike, or trips."""
        sides = _sides(function, nest, pointers)
        carried = [name for name in nest.counters if _counts(nest, name)]
        alike = {side.trip for side in sides.values()}
        step = alike.pop() if len(alike) == 1 else 1
        out, variable = self.out, self.out.fresh("i")
        head = f"scf.for {variable} = {out.constant(0)} to {out.constant(nest.trips * step)} step {out.constant(step)}"
        inside = outer.inner()
        if carried:
            inside.scalars.update({name: out.fresh(name) for name in carried})
            passed = ", ".join(f"{inside.scalars[name]} = {outer.scalars[name]}" for name in carried)
            results = ", ".join(out.fresh("end") for _ in carried)
            head = f"{results} = {head} iter_args({passed}) -> ({', '.join(['i32'] * len(carried))})"
        out.open(f"{head} {{")
        if any(type(operation).__name__ == "TripSelect" for operation in nest.trip):
            last = out.constant((nest.trips - 1) * step)
            inside.last = out.define("last", f"arith.cmpi eq, {variable}, {last} : index")
        for operation in nest.trip:
            if isinstance(operation, Load):
                inside.load(operation, self._place(sides[operation], row, variable, step))
            elif isinstance(operation, Store):
                inside.store(operation, self._place(sides[operation], row, variable, step, operation.offset))
            else:
                inside.step(operation)
        if carried:
            values = ", ".join(inside.scalars[name] for name in carried)
            out.line(f"scf.yield {values} : {', '.join(['i32'] * len(carried))}")
        out.close()

    def _place(self, side: _Side, row: str, variable: str, step: int, offset: int = 0) -> Place:
        terms = [(row, side.row)] if row else []
        terms.append((variable, side.trip // step))
        return Place(side.pointer, side.element, self.out.sum(offset // side.size, terms))


def _counts(nest: Nest, name: str) -> bool:
    """Whether trips change a counter."""
    return any(isinstance(operation, CountDown) and operation.counter == name for operation in nest.trip)


def _sides(function: VectorFunction, nest: Nest, pointers: list[str]) -> dict[Load | Store, _Side]:
    """Return what each access of a trip goes by."""
    found: dict[Load | Store, _Side] = {}
    for operation in nest.trip:
        if isinstance(operation, Load):
            row, trip = operation.steps or (nest.source_row, nest.source_trip)
            pointer, fmt = pointers[1 + operation.operand], function.source_format
        elif isinstance(operation, Store):
            row, trip = nest.destination_row, nest.destination_trip
            number = 0 if nest.writes is None else 1 + nest.writes
            pointer, fmt = pointers[number], function.source_format if number else function.destination_format
        else:
            continue
        size = pointed(fmt)
        found[operation] = _Side(pointer, fmt.name, size, row // size, trip // size)
    return found

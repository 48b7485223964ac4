"""One vector function as a vecscope: setup, then loop nests, with counters carried from trip to trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from castsim.isa.formats import format_named
from castsim.machines.vector_function.expansion.computes import check_structure
from castsim.machines.vector_function.expansion.constants import Given
from castsim.machines.vector_function.expansion.conversions import Attributes
from castsim.machines.vector_function.expansion.extents import NestRules
from castsim.machines.vector_function.expansion.nest_writer import NestWriter, accesses
from castsim.machines.vector_function.expansion.nests import (
    WIDE,
    Written,
    element_of,
    needs_barrier,
    pointer_number,
    written,
)
from castsim.machines.vector_function.expansion.registers import Prelude, Registers
from castsim.machines.vector_function.expansion.texts import near, unwritten
from castsim.machines.vector_function.expansion.writer import Writer
from castsim.machines.vector_function.operations import (
    VectorFunction,
)


@dataclass(frozen=True, slots=True)
class FunctionWriter:
    """Writes vector functions."""

    out: Writer
    attributes: Attributes

    def write(
        self,
        function: VectorFunction,
        addresses: tuple[str, ...],
        ctrl: int,
        given: Given | None = None,
        rules: tuple[NestRules, ...] = (),
    ) -> None:
        """Write a vecscope.

        Args:
            function: what is written.
            addresses: values (i64) of its addresses.
            ctrl: CTRL meanwhile.
            given: the vector operation that it does; None if it is a cast.
            rules: how its nests follow extents of run time; empty: they follow none.

        Raises:
            IllegalError: an operation that no vector instruction does.
        """
        if given is not None:
            check_structure(given)
            if given.format.storage_bits == WIDE:
                if rules:
                    raise unwritten("64-bit elements whose extents only the run knows")
                words = format_named("u32")
                function = replace(function, source_format=words, destination_format=words)
        followed = rules or (None,) * len(function.nests)
        nests = [
            (each, rule)
            for nest, rule in zip(function.nests, followed, strict=True)
            if nest.runs
            for each in written(nest, given)
        ]
        pointers = self._pointers(function, [nest for nest, _ in nests], addresses)
        self.out.open("pto.vecscope {")
        prelude = None if given is None else Prelude(self.out.aside())
        start = len(self.out.lines)
        registers = Registers(self.out, self.attributes, ctrl, prelude)
        for operation in function.setup:
            registers.step(operation)
        for number, (nest, rule) in enumerate(nests):
            if number and needs_barrier(given):
                self.out.line('pto.mem_bar "VST_VLD"')
            NestWriter(self.out, function, nest, given, pointers, rule).write(registers)
        if prelude is not None:
            self.out.lines[start:start] = prelude.out.lines
        self.out.close()

    def _pointers(
        self, function: VectorFunction, nests: Sequence[Written], addresses: tuple[str, ...]
    ) -> dict[tuple[int, str], str]:
        """Cast each address to pointers to the elements of its accesses."""
        used = {
            (pointer_number(each.nest, item), element_of(function, each.nest, item)): None
            for each in nests
            for item in accesses(each.nest)
        }
        found = {}
        for number, element in sorted(used, key=lambda key: key[0]):
            found[number, element] = self.out.define("ub", f"pto.castptr {addresses[number]} : i64 -> {near(element)}")
        return found

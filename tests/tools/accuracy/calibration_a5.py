"""Fitting the timing facts of A5 to the published cycles of casts: the event engine is the model.

A candidate is a target with other facts; its error is the mean absolute percentage over the rows of the calibration
table, plus a little of the largest. Coordinate descent over the fitted facts, each on a coarse grid, until no step
helps. `python tests calibration_a5` prints the fit to all rows, and the errors of the rows left out when a type
pair, or all pairs that run the same functions, are left out of the fit.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal

from kit.a5_cases import A5, SPAN, UB, Shape, lowerer, make_cast

from castsim.engines import simulate
from castsim.execution.tree import Block, Instruction, Lowered, Tree
from castsim.targets.loader import SHIPPED
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.tools.accuracy.accuracy_assessment import shape_of
from castsim.tools.accuracy.measured_rows import read_table

# Fact -> step of its grid in cycles. What passes the serial port has one latency, so these move together.
FITTED = {
    ("loops", "turnaround_cycles"): Decimal("0.25"), ("loops", "turnaround_hidden_cycles"): Decimal("0.25"),
    ("loops", "half_byte_row_cycles"): Decimal("0.5"), ("chain", "vcvt"): Decimal("0.5"),
    ("chain", "vintlv"): Decimal("0.5"), ("store_barrier", "cycles"): Decimal("0.25"),
    ("branch", "cycles"): Decimal("0.1"),
}  # fmt: skip
PORT = ("vcvt", "vtrc", "punpack")
FITTED_ELSEWHERE = {
    ("memory_path", "trip_cycles"),
    ("launch", "startup_cycles"),
    ("loops", "setup_cycles"),
    ("loops", "row_loop_cycles"),
}
"""Fitted to other operations: no cast of the table has rows long enough to show the first, and the 303 rows of those
operations start and loop as casts do.
"""

WEIGHT_OF_LARGEST = 0.02

Pair = tuple[str, str]
Facts = dict[tuple[str, str], Decimal]


@dataclass(frozen=True)
class Point:
    """One published row and the number of the function that is simulated for it."""

    pair: Pair
    function: int
    measured: int


def shipped_facts() -> Facts:
    """Return the fitted facts of the target file."""
    timing = A5.timing
    return {
        (table, key): timing.chain.latency_cycles[key] if table == "chain" else getattr(getattr(timing, table), key)
        for table, key in FITTED
    }


def with_facts(facts: Facts) -> VectorFunctionTarget:
    """Return A5 with other facts."""
    tables = {name: getattr(A5.timing, name) for name, _ in facts}
    for (name, key), value in facts.items():
        table = tables[name]
        if name == "chain":
            changed = dict.fromkeys(PORT if key in PORT else (key,), value)
            tables[name] = table.model_copy(update={"latency_cycles": {**table.latency_cycles, **changed}})
        else:
            tables[name] = table.model_copy(update={key: value})
    return A5.model_copy(update={"timing": A5.timing.model_copy(update=tables)})


class Calibration:
    """The rows of the table. Functions that differ in their addresses and formats only are simulated once."""

    def __init__(self) -> None:
        self._trees: list[Tree] = []
        self._known: dict[tuple[int, tuple[Decimal, ...]], int] = {}
        numbers: dict[object, int] = {}
        self.points: list[Point] = []
        for row in read_table(SHIPPED / "a5_measured_casts.csv").rows:
            _, *shape = shape_of(A5, row)
            pair = row.src.name, row.dst.name
            body = lowerer().cast(make_cast(*pair, Shape(*shape), places=(0, UB // 2))).body
            function = next(item for item in body.items if hasattr(item, "timed"))
            bits = (function.source_format.bits, function.destination_format.bits)
            nest = function.timed[-1]
            kinds = tuple(type(item).__name__ for item in nest.trip)
            key = (*bits, kinds, nest.row_loop, nest.rows, nest.trips, nest.count)
            if key not in numbers:
                numbers[key] = len(self._trees)
                tree = Tree(Block((Lowered(0, Block((function,))),)), (Instruction("tcvt", "V", SPAN),), False)
                self._trees.append(tree)
            self.points.append(Point(pair, numbers[key], row.measured_cycles))
        self.pairs = tuple(dict.fromkeys(point.pair for point in self.points))

    def errors(self, facts: Facts, pairs: tuple[Pair, ...] | None = None) -> list[float]:
        """Return the absolute errors in percent, of some pairs or of all."""
        wanted = self.pairs if pairs is None else pairs
        target = with_facts(facts)
        return [
            100 * abs(self._cycles(point.function, facts, target) - point.measured) / point.measured
            for point in self.points
            if point.pair in wanted
        ]

    def fit(self, pairs: tuple[Pair, ...] | None = None) -> Facts:
        """Return the facts that fit the rows of some pairs best, from the shipped ones on."""
        facts = shipped_facts()
        best, improved = self._loss(facts, pairs), True
        while improved:
            improved = False
            for key, grid in FITTED.items():
                for step in (grid, -grid):
                    while (
                        facts[key] + step >= 0
                        and (loss := self._loss({**facts, key: facts[key] + step}, pairs)) < best - 1e-9
                    ):
                        facts, best, improved = {**facts, key: facts[key] + step}, loss, True
        return facts

    def left_out(self, pairs: tuple[Pair, ...]) -> list[float]:
        """Return the errors of some pairs when the facts are fitted to all others."""
        kept = tuple(other for other in self.pairs if other not in pairs)
        return self.errors(self.fit(kept), pairs)

    def twins(self, pair: Pair) -> tuple[Pair, ...]:
        """Return the pairs whose rows are the same simulations as those of `pair`, itself among them."""
        return tuple(other for other in self.pairs if self._functions(other) == self._functions(pair))

    def _functions(self, pair: Pair) -> frozenset[int]:
        return frozenset(point.function for point in self.points if point.pair == pair)

    def _loss(self, facts: Facts, pairs: tuple[Pair, ...] | None) -> float:
        errors = self.errors(facts, pairs)
        return sum(errors) / len(errors) + WEIGHT_OF_LARGEST * max(errors)

    def _cycles(self, function: int, facts: Facts, target: VectorFunctionTarget) -> int:
        key = (function, tuple(facts.values()))
        if key not in self._known:
            timing = simulate(self._trees[function], target, record_operations=False)
            self._known[key] = timing.executions[0].end - timing.executions[0].start
        return self._known[key]


def main() -> None:
    """Print the fits."""
    calibration = Calibration()
    every = calibration.fit()
    errors = calibration.errors(every)
    print(f"all pairs: mean {sum(errors) / len(errors):.2f} %, max {max(errors):.2f} %")
    for (table, key), value in every.items():
        print(f"  {table}.{key} = {value.normalize():f}")
    for pair in calibration.pairs:
        _print_left_out(calibration, (pair,))
    for group in dict.fromkeys(map(calibration.twins, calibration.pairs)):
        _print_left_out(calibration, group)


def _print_left_out(calibration: Calibration, pairs: tuple[Pair, ...]) -> None:
    errors = calibration.left_out(pairs)
    names = ", ".join(" -> ".join(pair) for pair in pairs)
    print(f"without {names}: mean {sum(errors) / len(errors):.2f} %, max {max(errors):.2f} % of the rows left out")


if __name__ == "__main__":
    sys.exit(main())

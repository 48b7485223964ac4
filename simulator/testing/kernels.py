"""Kernels under test: run on inputs, then compared with an oracle, a bound of cycles, and the rules of order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

import castsim
from castsim.execution.input_data import make_inputs
from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.targets import Target
from castsim.testing.casts import Coded, assert_same, coded

Oracle = Callable[..., ArrayLike | Mapping[str, ArrayLike]]
"""A function of the inputs by name that returns an array by the name of each output; of one output, its array."""

MOST_SHOWN = 5
"""Races or stale reads that a message spells out."""


@dataclass(frozen=True, slots=True)
class CheckedKernel:
    """A kernel that has run: `result` is what `castsim.run` returned, `inputs` the arrays that it ran on."""

    result: castsim.Result
    inputs: Mapping[str, Codes]

    @property
    def cycles(self) -> int:
        """Cycles from the first instruction until every pipe is empty."""
        return self.result.cycles

    @property
    def outputs(self) -> Mapping[str, Codes]:
        """Arrays by argument name, of native dtypes, or codes where there are none."""
        return self.result.outputs

    def assert_equal(self, oracle: Oracle, *, any_nan: bool = False) -> None:
        """Assert that the outputs are those of an oracle, bit by bit.

        Args:
            oracle: called with the inputs as keyword arguments, each of the shape that the kernel gives it; returns an
                array, or arrays by the names of outputs, of which only those named are compared.
            any_nan: whether every NaN is as good as every other.

        Raises:
            AssertionError: an element differs, or the oracle's arrays are not those of the kernel.
        """
        __tracebackhide__ = True
        for name, array in self._expected(oracle(**self.inputs)).items():
            fmt = self._format(name)
            what = f"{self._label}: output '{name}'"
            got = coded(self.outputs[name], fmt, what)
            expected = coded(np.asarray(array), fmt, f"{what}, by the oracle")
            beside = {each: coded(given, self._format(each), each) for each, given in self.inputs.items()}
            if got.codes.size == expected.codes.size:  # an oracle need not know of leading axes of 1
                expected = Coded(expected.codes.reshape(got.codes.shape), fmt)
            assert_same(what, got, expected, beside, any_nan=any_nan)

    def assert_cycles(self, at_most: int) -> None:
        """Assert that the kernel takes no more cycles.

        Raises:
            AssertionError: it takes more.
        """
        __tracebackhide__ = True
        if self.cycles <= at_most:
            return
        over = self.cycles - at_most
        cure = "`castsim run --what-if all` shows where they are lost"
        raise AssertionError(f"{self._label}: {self.cycles:,} cycles, {over:,} more than {at_most:,}; {cure}")

    def assert_no_races(self) -> None:
        """Assert that no instruction overtakes another whose result it needs, nor reads a register too early.

        Raises:
            AssertionError: one may; the message says which, and what is missing.
        """
        __tracebackhide__ = True
        found = [f"{each.spans[-1]}: {each.sentence}" for each in self.result.races or ()]
        found += [f"{each.reader.span}: {each.sentence()}" for each in self.result.stale_reads or () if each.stale]
        if not found:
            return
        more = [f"  and {len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
        number = len(found)
        what = "violation{s} of order" if self.result.races else "stale read{s}"
        head = f"{self._label}: {number} {what.format(s='s' * (number != 1))}"
        raise AssertionError("\n".join([head, *(f"  {each}" for each in found[:MOST_SHOWN]), *more]))

    @property
    def _label(self) -> str:
        loaded = self.result.loaded
        return f"{Path(loaded.file).name} on {loaded.target.name}"

    def _format(self, name: str) -> Format:
        return self.result.loaded.arguments[name].format

    def _expected(self, made: ArrayLike | Mapping[str, ArrayLike]) -> Mapping[str, ArrayLike]:
        __tracebackhide__ = True
        names = list(self.outputs)
        if isinstance(made, Mapping):
            unknown = [name for name in made if name not in names]
            if unknown or not made:
                raise AssertionError(f"{self._label}: the oracle returned {unknown}; the outputs are {names}")
            return made
        if len(names) != 1:
            raise AssertionError(f"{self._label}: the oracle returned one array; the outputs are {names}, by name")
        return {names[0]: made}


class KernelRunner:
    """Called with a program and its inputs, runs it and returns a `CheckedKernel`.

    kernel = castsim_kernel("kernel.pto", inputs={"x": "random:1"})
    kernel.assert_equal(lambda x: x.astype(np.float16))
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(
        self,
        program: str | Path,
        *,
        target: str | Path | Target | None = None,
        entry: str | None = None,
        inputs: Mapping[str, Codes | str] | None = None,
        args: Mapping[str, int | float] | None = None,
        declare: str | Path | None = None,
        allow_races: bool = False,
    ) -> CheckedKernel:
        """Run a kernel.

        Args:
            program, target, entry, inputs, args, declare: as for `castsim.run`.
            allow_races: whether a kernel with races or stale reads is returned all the same, instead of failing.

        Raises:
            AssertionError: the kernel has races or stale reads.
            CastsimError: as `castsim.run`.
        """
        __tracebackhide__ = True
        path = Path(program)
        beside = self._folder / path
        if not path.exists() and beside.exists():
            path = beside
        result = castsim.run(path, target, entry, inputs, args, races="report", declare=declare)
        kernel = CheckedKernel(result, _arrays(inputs or {}, result))
        if not allow_races:
            kernel.assert_no_races()
        return kernel


def _arrays(inputs: Mapping[str, Codes | str], result: castsim.Result) -> dict[str, Codes]:
    """Return what a program was given as arrays of the shapes that it gives them, where the sizes agree."""
    uses = result.loaded.arguments
    texts = {name: given for name, given in inputs.items() if isinstance(given, str)}
    made = make_inputs(texts, uses)
    arrays = {name: made[name] if isinstance(given, str) else np.asarray(given) for name, given in inputs.items()}
    return {
        name: array.reshape(uses[name].shape) if array.size == uses[name].elements else array
        for name, array in arrays.items()
    }

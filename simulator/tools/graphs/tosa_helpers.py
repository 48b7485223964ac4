"""The command `tosa`: compute the helper functions of the TOSA specification: scales, look-ups, TABLE."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.commands.outcome import CommandOutcome, plain
from castsim.execution.input_data import read_array
from castsim.isa.errors import ReadError, closest
from castsim.isa.formats import Codes
from castsim.reports.documents import CommandDocument, Keys, record, says
from castsim.targets.loader import Target, load_target
from castsim.tools.graphs import tosa_operators as tosa
from castsim.tools.graphs.vector_program import TableRun, table_on


@record
class TosaResult(Keys):
    """One call of a function."""

    arguments: list[int] = says("Its arguments.")
    result: list[int] = says("Its result; a scale is multiplier and shift.")


@record
class Tosa(CommandDocument, name="tosa"):
    """The results of a helper function of the TOSA specification."""

    function: str = says("Name of the function.")
    results: list[TosaResult] = says("One entry for each call.")


_SCALES = ("apply_scale_32", "apply_scale_16")
_LOOKUPS = ("apply_lookup_s", "TABLE")
FUNCTIONS = ("reciprocal_scale", *_SCALES, *_LOOKUPS)


def execute(options: Namespace) -> CommandOutcome:
    """Compute a function.

    Raises:
        ReadError: the function is unknown, an argument is not an integer or missing, or an option or table is wrong.
        IllegalError: arguments that make the result unpredictable.
    """
    name = options.function
    if name not in FUNCTIONS:
        raise ReadError(f"unknown function '{name[:40]}'", legal=closest(name, FUNCTIONS))
    if options.double_round and name != _SCALES[0]:
        raise ReadError(f"--double-round applies only to {_SCALES[0]}")
    if (options.table is not None) != (name in _LOOKUPS):
        raise ReadError(f"{name} {'needs' if name in _LOOKUPS else 'has no'} --table", legal=_LOOKUPS)
    if options.target is not None and name != _LOOKUPS[1]:
        raise ReadError(f"--target applies only to {_LOOKUPS[1]}")
    values = [_integer(text) for text in options.values]
    table = None if options.table is None else read_array(Path(options.table), "table")
    results = _results(name, values, table, double_round=options.double_round)
    lookup = None if options.target is None else _looked_up(values, table, load_target(options.target))
    if lookup is not None:
        results = [TosaResult([value], [int(result)]) for value, result in zip(values, lookup.results, strict=True)]

    def text(_: int) -> Any:
        lines = [_line(name, call) for call in results]
        cycles = [] if lookup is None else [f"by look-ups of {options.target}: {lookup.cycles} cycles"]
        return plain("\n".join([*lines, *cycles]))

    return CommandOutcome(Tosa(name, results).as_json(), text)


def _looked_up(values: list[int], table: Codes | None, target: Target) -> TableRun:
    assert table is not None
    dtype = np.int8 if table.dtype == np.int8 else np.int16
    return table_on(np.array(values, dtype), table, target)


def _line(name: str, call: TosaResult) -> str:
    first, *shift = call.result
    shown = f"multiplier {first}, shift {shift[0]}" if shift else str(first)
    return f"{name}({', '.join(map(str, call.arguments))}) = {shown}"


def _results(name: str, values: list[int], table: Codes | None, *, double_round: bool) -> list[TosaResult]:
    if name == "reciprocal_scale":
        return [TosaResult([value], list(tosa.reciprocal_scale(value))) for value in values]
    if name in _SCALES:
        if len(values) != 3:
            raise ReadError(f"{name} takes three numbers, not {len(values)}", legal=("VALUE MULTIPLIER SHIFT",))
        scale: Callable[..., int] = getattr(tosa, name)
        return [TosaResult(values, [scale(*values, **({"double_round": True} if double_round else {}))])]
    assert table is not None
    results: NDArray[Any]
    if name == _LOOKUPS[0]:
        results = tosa.apply_lookup_s(table, np.array(values, np.int64))
    else:
        dtype = np.int8 if table.dtype == np.int8 else np.int16
        limits = np.iinfo(dtype)
        outside = [value for value in values if not limits.min <= value <= limits.max]
        if outside:
            raise ReadError(f"{outside[0]} is not an {limits.dtype}", legal=(f"{limits.min} to {limits.max}",))
        results = tosa.table(np.array(values, dtype), table)
    return [TosaResult([value], [int(result)]) for value, result in zip(values, results, strict=True)]


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", text.strip(), re.ASCII):
        raise ReadError(f"'{text[:40]}' is not an integer", legal=("-3", "1073741824"))
    return int(text)

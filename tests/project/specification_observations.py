"""What can be seen of a specification: which casts it has, what they accept, and what RESCALE gives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray
from project.number_observations import Observation, outcome

from castsim.isa.formats import FORMATS, format_named
from castsim.numerics.blocks import code_dtype
from castsim.running.acceptance import acceptance, specified_cast
from castsim.targets.loader import load_specification
from castsim.targets.specification import Specification
from castsim.tools.graphs.tosa_operators import Rescale, rescale

CODES = (
    0, 1, 2, 3, 0x7F, 0x80, 0x1FF, 0x3FF, 0x7FFF, 0x8000, 0x3C01, 0x7BFF, 0x3F800001, 0x40490FDB, 0x477FEFFF,
    0x33000000,
)  # fmt: skip
"""Codes that rounding, overflow and subnormals treat unlike each other, in the low bits of every format."""


def seen(observation: Observation, spec: Specification) -> object:
    """What is seen, or what kind of refusal."""
    found = outcome(observation, spec)
    return found.partition(":")[0] if isinstance(found, str) else found


def legal(version: str | int | None, spec: Specification) -> object:
    """Which casts a version has, by which rule, with which attributes."""
    shipped, found = load_specification(spec.name), []
    names = [
        name for name in FORMATS if name in {n for row in shipped.casts for n in shipped.members((*row.src, *row.dst))}
    ]
    names = names[:: max(1, len(names) // 12)] if shipped.name == "exact" else names
    values = [dict.fromkeys(())] + [
        {name: value} for name, row in shipped.attributes.items() for value in (*row.values, 2)
    ]
    for src, dst, attributes in product(names, names, values[:]):
        found.append(seen(partial(_rule, src, dst, version, attributes), spec))
    return found


def _rule(
    src: str, dst: str, version: str | int | None, attributes: dict[str, str | int], spec: Specification
) -> object:
    cast = specified_cast(spec, src, dst, version=version, attributes=attributes)
    return cast.rule_name, cast.requires, sorted(cast.attributes.items())


def accepted(rule: str, spec: Specification) -> object:
    """What the casts of a rule accept."""
    shipped = load_specification(spec.name)
    row = next(row for row in shipped.casts if row.rule == rule)
    found = []
    for src, dst in shipped.pairs(row):
        codes = np.array([code % (1 << format_named(src).bits) for code in CODES], code_dtype(format_named(src)))
        sets = acceptance(spec, src, dst, codes)
        found += [sets.lowest.tobytes(), sets.highest.tobytes(), sets.further.tobytes(), sets.numbers.tobytes()]
    return found


def rescaled(operator: Rescale, numbers: NDArray[np.int64], spec: Specification) -> object:
    """What RESCALE gives and asks for."""
    fmt = format_named(operator.src)
    done = rescale(operator, (numbers % (1 << fmt.bits)).astype(code_dtype(fmt)), spec)
    kept = None if done.sets is None else (done.sets.lowest.tobytes(), done.sets.highest.tobytes())
    return done.outcome, done.requires, kept


def operators() -> Iterator[Rescale]:
    """Operators at the limits of shift, zero point and rounding."""
    for shift in (1, 2, 3, 30, 31, 32, 33, 61, 62, 63):
        for mode in ("SINGLE_ROUND", "INEXACT_ROUND", "DOUBLE_ROUND", 1, 2, 3):
            yield Rescale("i32", "i32", ((1 << 30) + 12345,), (shift,), rounding_mode=mode)
    for zero_point in (0, 1, 2, 32767, 32768, 32769, 16384):
        yield Rescale("i16", "i8", (1 << 30,), (31,), input_zp=zero_point, input_unsigned=True)


@cache
def observations(name: str) -> tuple[tuple[str, Observation], ...]:
    """Return all observations of a specification with what they are about."""
    spec = load_specification(name)
    versions = (None, *spec.versions.known, *(0, 2, 7, 10, 14, 20, 22, 26, 27, 29, 30))
    found: list[tuple[str, Observation]] = [("legal", partial(legal, version)) for version in versions]
    for rule, held in spec.rules.items():
        if held.accept == "interval":
            found.append((f"rules.{rule}", partial(accepted, rule)))
    if spec.rescale is not None:
        numbers = np.array([0, 1, -1, 7, -7, 12345, -54321, (1 << 31) - 1, -(1 << 31), 1 << 20, 123456789], np.int64)
        found += [("rescale", partial(rescaled, operator, numbers)) for operator in operators()]
        few = np.array([0, 1, -1], np.int64)
        found += [("rescale", partial(rescaled, Rescale("i8", "i8", (1,), (shift,)), few)) for shift in range(1, 64)]
    return tuple((group, partial(seen, observation)) for group, observation in found)


def groups_of(keys: tuple[object, ...]) -> tuple[str, ...]:
    """Return which observations are about a fact."""
    if keys[0] == "rules":
        return (f"rules.{keys[1]}",)
    return ("rescale",) if keys[0] == "rescale" else ("legal",)

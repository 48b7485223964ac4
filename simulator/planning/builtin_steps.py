"""Cast builtins of a vector unit as steps, where they work on elements in slots of the result's width.

Values are those of the program that `castsim builtin` runs, called once on all codes of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.formats import format_named
from castsim.numerics import code_dtype, codes_from_array
from castsim.planning.facts import digest_of_facts
from castsim.planning.primitives import ConstantArithmetic
from castsim.planning.steps import BuiltinForm, LoweringStep
from castsim.targets.tpc_compiler import Recipe, builtins_of
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtin_sequences import read_signature


def builtin_casts(target: VliwTarget) -> Iterator[LoweringStep]:
    """Yield the builtins whose sources are narrow codes in wide lanes."""
    for row in builtins_of(target):
        if row.recipe is not Recipe.HALF_IN_WIDE_LANES:
            continue
        signature = read_signature(row, target)
        assert signature.source.held is not None
        src, dst = format_named(signature.source.held), format_named(signature.result.format)
        run = _Called(target, row.builtin)
        facts = digest_of_facts(target.model_dump(mode="json", include={"special_values", "configuration"}))
        primitive = ConstantArithmetic(f"{target.name} {row.builtin}", src, run, facts=facts)
        yield LoweringStep(src, dst, (primitive,), (BuiltinForm(row.builtin),), row.builtin)


@dataclass(frozen=True)
class _Called:
    """A builtin as a table of what it gives for all codes of its narrow source."""

    target: VliwTarget
    name: str

    def __call__(self, codes: Codes) -> Codes:
        found: Codes = _table(_Key(self.target, self.name)).take(codes)
        return found


@dataclass(frozen=True)
class _Key:
    target: VliwTarget
    name: str

    def __hash__(self) -> int:
        return hash((id(self.target), self.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.target is other.target and self.name == other.name


@cache
def _table(key: _Key) -> Codes:
    from castsim.tpc_compiler.builtin_calls import builtin, emitted  # noqa: PLC0415 - most casts call none

    signature = emitted(key.name, key.target).built.signature
    assert signature.source.held is not None
    fmt = format_named(signature.source.format)
    codes = np.arange(1 << format_named(signature.source.held).bits, dtype=code_dtype(fmt))
    result = builtin(key.name, key.target, codes).outputs["y"]
    found: Codes = codes_from_array(result, format_named(signature.result.format)).reshape(-1)
    return found

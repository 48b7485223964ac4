"""Casts by the fastest suitable tier; all tiers give identical bits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, ReadError, hint
from castsim.isa.formats import Codes, Format, IntFormat, Rounding
from castsim.numerics.blocks import check_codes, check_out, code_dtype, walk
from castsim.numerics.cast import cast_codes, check_random
from castsim.numerics.codec import (
    array_from_codes,
    check_array,
    codes_from_array,
    codes_of_out,
    finish_out,
    is_codes,
    narrow_integer_codes,
    narrow_integer_range,
)
from castsim.numerics.policy import Policy, check_policy
from castsim.numerics.tables import LookupTable, cast_by_table, look_up, table_of, table_size

if TYPE_CHECKING:
    from castsim.numerics.compiled import CompiledLoop

_SMALL_TABLE = 1 << 16
"""Number of entries that take about a millisecond to fill, which pays for any program, whose casts repeat."""

_ENTRIES_PER_ELEMENT = 8
"""A larger table is filled for arrays of at least this fraction of its size."""

_START_SECONDS = 0.2
"""Total seconds in other tiers before numba is imported, which takes 0.3 to 0.6 s: programs that cast little never
wait for it, and programs that cast a lot lose little by having waited."""

_COMPILE_SECONDS = 0.05
"""The limit for one cast after the import: loading a loop takes 0.01 s, compiling one 0.1 to 0.4 s."""

_TABLE_COST = (8e-6, 1.5e-9)
_REFERENCE_COST = (150e-6, 50e-9)
"""Seconds per call and per element, roughly."""

_COMPILED_BLOCK = 1 << 14
"""Elements at a time of arrays that the loops cannot read in place."""


class Tier(StrEnum):
    """An implementation of casts."""

    REFERENCE = "reference"
    """NumPy integers; supports every cast."""
    TABLE = "table"
    """Look-up in tables that the reference fills, without random words, and for few wide sources."""
    COMPILED = "compiled"
    """Machine code for the cast, by the shortest path (numba; without it other tiers are used)."""
    GENERIC = "generic"
    """The reference's steps compiled, with formats and policy at run time and without shortcuts (numba)."""


_COMPILED = Tier.COMPILED


def convert_codes(
    codes: Codes,
    src: Format,
    dst: Format,
    policy: Policy,
    *,
    random: NDArray[np.uint32] | None = None,
    tier: Tier | None = None,
    out: Codes | None = None,
) -> Codes:
    """Convert codes like `cast_codes`, in the given tier or, for None, in the fastest suitable one.

    Extra memory does not grow with the array. Without numba, `Tier.COMPILED` gives the same codes by other tiers, and
    one warning; for stochastic rounding to integers that also moves exact values
    (`Policy.stochastic_guard` False), which has no machine code, it does so silently.

    Raises:
        IllegalError: the tier lacks this cast; see also `cast_codes`.
        ReadError: `Tier.GENERIC` without numba; see also `cast_codes`.
    """
    plan = _LATEST.get(id(policy))
    if plan is None or plan.src is not src or plan.dst is not dst:
        plan = _plan(src, dst, policy)
    loop = plan.loaded
    if (
        # A loop whose arrays need no preparation runs at once: in a small cast every other step counts.
        loop is not None
        and random is None
        and (tier is None or tier is _COMPILED)
        and type(codes) is type(out) is np.ndarray
        and codes.dtype is plan.dtypes[0]
        and out.dtype is plan.dtypes[1]
        and codes.ndim == out.ndim == 1
        and codes.flags.carray
        and out.flags.carray
        and loop.unchecked(codes, out, loop.words, loop.fields)
    ):
        return out
    if tier is Tier.REFERENCE:
        return cast_codes(codes, src, dst, policy, random=random, out=out)
    if tier is Tier.TABLE:
        if random is not None:
            raise IllegalError("random words have no table", legal=(Tier.REFERENCE, Tier.COMPILED, Tier.GENERIC))
        return cast_by_table(codes, src, dst, policy, out=out)
    loop = plan.generic_loop() if tier is Tier.GENERIC else plan.loop(np.size(codes), requested=tier is Tier.COMPILED)
    if loop is not None:
        return _run(loop, codes, src, dst, policy, random, out)
    if random is None and (table := plan.table(np.size(codes))) is not None:
        return look_up(table, codes, src, dst, out=out)
    return cast_codes(codes, src, dst, policy, random=random, out=out)


@dataclass(slots=True)
class _Spending:
    """Estimated seconds that casts took outside the compiled tier."""

    seconds: float = 0.0


@cache
def _spending() -> _Spending:
    """Return the total spent by this process."""
    return _Spending()


@dataclass(slots=True)
class _Plan:
    """The implementation chosen for one cast, and its cost so far."""

    src: Format
    dst: Format
    policy: Policy
    table_entries: int | None
    dtypes: tuple[np.dtype[Any] | None, np.dtype[Any]]
    spent: float = 0.0
    loaded: CompiledLoop | None = None
    filled: LookupTable | None = None

    def table_pays(self, count: int) -> bool:
        """Return whether the table, if there is one, is worth filling for a number of elements."""
        limit = max(_SMALL_TABLE, count * _ENTRIES_PER_ELEMENT)
        return self.table_entries is not None and self.table_entries <= limit

    def table(self, count: int) -> LookupTable | None:
        """Return the table if there is one and it pays, filled on first use."""
        if self.filled is None and self.table_pays(count):
            self.filled = table_of(self.src, self.dst, self.policy)
        return self.filled

    def loop(self, count: int, *, requested: bool) -> CompiledLoop | None:
        """Return the compiled loop if it is there, requested, or will have paid off; None also without numba."""
        if self.loaded is None and self._has_loop() and (requested or self._compiling_pays(count)):
            compiled = _compiled_tier()
            if isinstance(compiled, str):
                hint(f"{compiled}; casts are faster with it: pip install numba")
            else:
                self.loaded = compiled.fastest_loop(self.src, self.dst, self.policy)
        return self.loaded

    def generic_loop(self) -> CompiledLoop:
        """Return the compiled loop of the generic tier."""
        if not self._has_loop():
            raise IllegalError("exact values that move have no compiled cast to integers", legal=(Tier.REFERENCE,))
        compiled = _compiled_tier()
        if isinstance(compiled, str):
            raise ReadError(
                f"tier 'generic' is not available: {compiled}", legal=(Tier.REFERENCE, Tier.TABLE, Tier.COMPILED)
            )
        loop: CompiledLoop = compiled.generic_loop(self.src, self.dst, self.policy)
        return loop

    def _has_loop(self) -> bool:
        """Return whether the compiled tier has the cast: for integers it ignores words if nothing is dropped."""
        moves = self.policy.rounding is Rounding.STOCHASTIC and not self.policy.stochastic_guard
        return not (moves and isinstance(self.dst, IntFormat))

    def _compiling_pays(self, count: int) -> bool:
        per_call, per_element = _TABLE_COST if self.table_pays(count) else _REFERENCE_COST
        cost = per_call + per_element * count
        self.spent += cost
        if _compiled_tier.cache_info().currsize:
            return self.spent > _COMPILE_SECONDS
        spending = _spending()
        spending.seconds += cost
        return spending.seconds > _START_SECONDS


_PLANS_KEPT = 1024
_PLANS: dict[tuple[int, int, int], tuple[_Plan, tuple[object, ...]]] = {}
"""The plans of casts by the identities of their parts: hashing the parts themselves takes longer than a small cast.

The parts are kept with the plan, so that no other object can get their identity.
"""
_LATEST: dict[int, _Plan] = {}
"""The plan last used with each policy, by the policy's identity."""


def _plan(src: Format, dst: Format, policy: Policy) -> _Plan:
    """Return the plan of a cast; for errors see `check_policy`."""
    key = id(src), id(dst), id(policy)
    entry = _PLANS.get(key)
    if entry is None:
        entry = _equal_plan(src, dst, policy), (src, dst, policy)
        if len(_PLANS) >= _PLANS_KEPT:
            _PLANS.clear()
            _LATEST.clear()
    _LATEST[id(policy)] = entry[0]
    _PLANS[key] = entry  # last: no thread that clears both leaves a latest plan whose policy is not kept
    return entry[0]


@lru_cache(maxsize=_PLANS_KEPT)
def _equal_plan(src: Format, dst: Format, policy: Policy) -> _Plan:
    """Return the plan of a cast.

    Raises:
        IllegalError: the policy has no meaning for the pair.
    """
    check_policy(src, dst, policy)
    # A source dtype of None keeps arrays whose values or random words must be checked off the fast path.
    short = src.bits == src.storage_bits and policy.rounding is not Rounding.STOCHASTIC
    dtypes = (code_dtype(src) if short else None, code_dtype(dst))
    return _Plan(src, dst, policy, table_size(src, dst, policy), dtypes)


def why_not_compiled() -> str | None:
    """Return the reason why there is no compiled tier; None if there is one."""
    tier = _compiled_tier()
    return tier if isinstance(tier, str) else None


@cache
def _compiled_tier() -> Any:
    """Return the module of the compiled tier, or the reason why there is none."""
    try:
        from castsim.numerics import compiled  # noqa: PLC0415 - imports numba
    except ImportError as error:
        return f"numba cannot be imported ({error})"
    return compiled


def _run(
    loop: CompiledLoop,
    codes: Codes,
    src: Format,
    dst: Format,
    policy: Policy,
    random: NDArray[np.uint32] | None,
    out: Codes | None,
) -> Codes:
    """Run compiled code over arrays of any layout: in place if it can, else block by block."""
    if random is not None or policy.rounding is Rounding.STOCHASTIC:
        check_random(codes, policy, random)
    codes = check_codes(codes, src)
    if random is None:
        out = check_out(out, codes, dst)
        if _plain(codes) and _plain(out):
            loop.run(out.reshape(-1).view(np.ndarray), codes.reshape(-1))
        else:
            walk(loop.run, out, codes, size=_COMPILED_BLOCK)
        return out
    out = check_out(out, codes, dst, random)
    if _plain(codes) and _plain(out) and _plain(random):
        loop.run(out.reshape(-1).view(np.ndarray), codes.reshape(-1), random.reshape(-1).view(np.ndarray))
    else:
        walk(loop.run, out, codes, random, size=_COMPILED_BLOCK)
    return out


def _plain(array: Codes) -> bool:
    """Return whether the elements are contiguous, in native byte order."""
    flags = array.flags
    return flags.c_contiguous and flags.aligned and array.dtype.isnative


def cast_array(
    array: Codes,
    src: Format,
    dst: Format,
    policy: Policy,
    *,
    random: NDArray[np.uint32] | None = None,
    tier: Tier | None = None,
    out: Codes | None = None,
) -> Codes:
    """Convert an array of numbers or codes of `src`.

    Codes of a float format give codes; all others give the native dtype of `dst`, or codes if it has none.
    `out` may have either dtype of `dst`; it is returned. For errors see `convert_codes` and `codes_from_array`.
    """
    check_array(array, src)
    if array.dtype == np.int8 and array.size > _COPIED_BLOCK and isinstance(src, IntFormat) and src.bits < 8:
        return _cast_values_below_a_byte(array, src, dst, policy, random, tier, out)
    codes = codes_from_array(array, src)
    if out is None:
        result = convert_codes(codes, src, dst, policy, random=random, tier=tier)
        return result if is_codes(array, src) else array_from_codes(result, dst)
    convert_codes(codes, src, dst, policy, random=random, tier=tier, out=codes_of_out(out, dst))
    finish_out(out, dst)
    return out


_COPIED_BLOCK = 1 << 16
"""Elements at a time of values that must be copied to become codes."""


def _cast_values_below_a_byte(
    array: Codes,
    src: IntFormat,
    dst: Format,
    policy: Policy,
    random: NDArray[np.uint32] | None,
    tier: Tier | None,
    out: Codes | None,
) -> Codes:
    """Cast values in int8, which are not codes yet, without copying all of them."""
    check_random(array, policy, random)
    words = () if random is None else (random,)
    target = check_out(None if out is None else codes_of_out(out, dst), array, dst, *words)

    def fill(result: Codes, block: Codes, *drawn: NDArray[np.uint32]) -> None:
        codes = narrow_integer_codes(block, src)
        convert_codes(codes, src, dst, policy, random=drawn[0] if drawn else None, tier=tier, out=result)

    narrow_integer_range(array, src)
    walk(fill, target, array, *words, size=_COPIED_BLOCK)
    if out is None:
        return array_from_codes(target, dst)
    finish_out(out, dst)
    return out

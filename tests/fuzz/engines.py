"""Differential fuzzing: random programs by both engines, casts by all tiers, values by all paths.

`difference(mechanism, number)` makes the program of a number and tells what two ways disagree about; None is as it
should be. A mechanism is a row of `MECHANISMS`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import fast_programs
import numpy as np
import oracle
import sync_random
from bundle_trees import Mix, by_events, fast, random_target, random_tree
from engine_outcome import outcome
from numerics_samples import samples, stored_mask
from test_scope_engines import program as scope_program
from test_scope_engines import same as same_timing

from castsim import run
from castsim.engines import simulate
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import FORMATS
from castsim.isa.modes import Rounding
from castsim.numerics import Policy, Tier, abstract_policy, cast_codes, convert_codes, legal_overflows, legal_roundings
from castsim.targets import load_target
from castsim.targets.vliw import VliwTarget

LIMIT = 10**6
CHIPS = ("goya", "gaudi", "gaudib", "greco", "gaudi2")


def _trees(make: Callable[..., tuple[object, object]], number: int) -> str | None:
    tree, target = make(5 * 10**6 + number, small=number % 20 != 0)
    limit = LIMIT if number % 8 else 300
    event, other = (outcome(tree, target, engine=name, max_cycles=limit) for name in ("event", "fast"))
    return None if event == other else f"event and fast engine: {event!s:.200} {other!s:.200}"


def strided(number: int) -> str | None:
    """Strided-repeat: a tree of instructions, flags, barriers and loops; cycles and causes."""
    return _trees(fast_programs.strided, number)


def functions(number: int) -> str | None:
    """Vector functions, likewise."""
    return _trees(fast_programs.functions, number)


def scopes(number: int) -> str | None:
    """Launches of vector instructions between transfers."""
    tree = scope_program(Random(f"scope {number}"))
    event, other = (simulate(tree, load_target("a5"), engine=name) for name in ("event", "fast"))
    return None if same_timing(event, other) else f"event {event.total}, fast {other.total}"


def bundles(number: int) -> str | None:
    """Bundles of the VLIW in loops, with and without skipping of trips."""
    random = Random(f"bundles {number}")
    mix = Mix(
        random.randint(1, 6), random.choice((2, 5, 9)), random.randint(0, 2), random.choice((2, 7, 12)), random.random()
    )
    chip = load_target(random.choice(CHIPS))
    assert isinstance(chip, VliwTarget)
    tree, target = random_tree(random, mix), random_target(random, chip)
    expected = outcome(tree, target, LIMIT, run=by_events)
    for skip in (True, False):
        found = outcome(tree, target, LIMIT, skip=skip, run=fast)
        if found != expected:
            return f"event and fast engine, skip={skip}: {expected!s:.200} {found!s:.200}"
    return None


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fuzz")


def kernels(number: int) -> str | None:
    """Kernels as texts, with loops and branches: engines, and the values under every synchronisation."""
    random = Random(f"kernel {number}")
    text = sync_random.Maker(number, random.choice((sync_random.SMALL, sync_random.LARGE))).text()
    path = Path(_folder().name) / "k.pto"
    path.write_text(text, encoding="utf-8")
    options = {"args": {"n": random.randint(0, 3), "m": random.randint(0, 3), "c": number & 1, "d": number >> 1 & 1},
               "target": random.choice(("a2a3", "a5"))}  # fmt: skip
    results: dict[str, object] = {}
    for sync in ("insert", "barriers", "interlock"):
        said = {engine: _kernel(path, sync, engine, options) for engine in ("event", "fast")}
        if said["event"][:2] != said["fast"][:2]:
            return f"{sync}: event {said['event'][:2]!s:.200}, fast {said['fast'][:2]!s:.200}"
        results[sync] = said["fast"][2]
    return (
        None
        if len({str(each) for each in results.values()}) == 1
        else f"values differ by synchronisation: {results!s:.300}"
    )


def _kernel(path: Path, sync: str, engine: str, options: dict[str, object]) -> tuple[object, object, object]:
    """Return cycles, causes and outputs of a run, or the refusal three times."""
    try:
        found = run(path, inputs={"p": "random:1", "q": "random:2"}, sync=sync, engine=engine, **options)  # type: ignore[arg-type]
    except CastsimError as error:
        kind = type(error).__name__
        return kind, error.message.split("(")[0] if sync == "insert" else kind, kind
    causes = {name: dict(pipe.causes) for name, pipe in found.pipes.items()}
    values = {name: array.tobytes() for name, array in sorted(found.outputs.items())}
    return found.cycles, causes, values


_NAMES = tuple(FORMATS)


def _cast(number: int) -> tuple[Random, str, str, Policy]:
    random = Random(f"cast {number}")
    src, dst = random.choice(_NAMES), random.choice(_NAMES)
    modes = [mode for mode in legal_roundings(FORMATS[src], FORMATS[dst]) if mode is not Rounding.STOCHASTIC]
    policy = abstract_policy(
        FORMATS[src], FORMATS[dst], random.choice([None, *modes]), random.choice([None, *legal_overflows(FORMATS[dst])])
    )
    return random, src, dst, policy


def _tiers(number: int, tiers: tuple[Tier | None, ...]) -> str | None:
    random, src, dst, policy = _cast(number)
    codes = samples(FORMATS[src], seed=number, count=300)
    if src == "bool":
        codes = np.arange(256, dtype=np.uint8)
    codes = codes[random.randrange(3) :: random.choice((1, 2, 5))]
    expected = cast_codes(codes, FORMATS[src], FORMATS[dst], policy)
    for tier in tiers:
        try:
            found = convert_codes(codes, FORMATS[src], FORMATS[dst], policy, tier=tier)
        except IllegalError:
            continue
        if not np.array_equal(found, expected):
            at = int(np.flatnonzero(found != expected)[0])
            return f"{src} -> {dst} {policy}: {tier} gives {found[at]:#x} for {codes[at]:#x}, not {expected[at]:#x}"
    return None


def casts(number: int) -> str | None:
    """A cast by tables and by the tier that pays off, against the reference."""
    return _tiers(number, (None, Tier.TABLE))


def compiled(number: int) -> str | None:
    """A cast by the kernels of whole families."""
    return _tiers(number, (Tier.GENERIC,))


def exact(number: int) -> str | None:
    """A few codes of a cast in rational arithmetic, which shares nothing with the product."""
    random, src, dst, policy = _cast(number)
    every = samples(FORMATS[src], seed=number, count=100)
    codes = every[random.sample(range(len(every)), min(12, len(every)))]
    found = cast_codes(codes, FORMATS[src], FORMATS[dst], policy)
    for code, got in zip(codes, found, strict=True):
        try:
            expected = oracle.cast(int(code), src, dst, str(policy.rounding), str(policy.overflow))
        except oracle.Refused:  # modes of E8M0 that no specification has
            return None
        if int(got) & stored_mask(FORMATS[dst]) != expected & stored_mask(FORMATS[dst]):
            return f"{src} -> {dst} {policy}: {int(got):#x} for {int(code):#x}, not {expected:#x}"
    return None


MECHANISMS: dict[str, Callable[[int], str | None]] = {
    "strided-repeat": strided,
    "vector-function": functions,
    "vector-scopes": scopes,
    "vliw": bundles,
    "kernels": kernels,
    "casts": casts,
    "casts-compiled": compiled,
    "casts-exact": exact,
}
"""What is compared, by the name of the mechanism."""


def difference(mechanism: str, number: int) -> str | None:
    """Return what differs in the program of a number; None: nothing.

    Args:
        mechanism: a name of `MECHANISMS`.
        number: of the program.
    """
    return MECHANISMS[mechanism](number)

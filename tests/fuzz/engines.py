"""Differential fuzzing: random programs by both engines, casts by all tiers, values by all paths.

`difference(mechanism, number)` makes the program of a number and tells what two ways disagree about; None is as it
should be. A mechanism is a row of `MECHANISMS`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

from core.execution import sync_random
from core.machines.vector_function.test_scope_time import program as scope_program
from core.machines.vector_function.test_scope_time import same as same_timing
from kit import fast_programs
from kit.bundle_trees import Mix, by_events, fast, random_target, random_tree
from kit.engine_outcome import outcome, plain

from castsim.engines import simulate
from castsim.isa.errors import CastsimError
from castsim.isa.reading import source_of
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from fuzz.casts import casts, compiled, exact

LIMIT = 10**6
CHIPS = ("goya", "gaudi", "gaudib", "greco", "gaudi2")


def _trees(make: Callable[..., tuple[object, object]], number: int) -> str | None:
    tree, target = make(5 * 10**6 + number, small=number % 20 != 0)
    limit = LIMIT if number % 8 else 300
    event, other = (outcome(tree, target, engine=name, max_cycles=limit) for name in ("event", "fast"))
    if event != other:
        return f"event and fast engine: {event!s:.200} {other!s:.200}"
    pipes = {} if isinstance(event, str) else event["pipes"]
    short = [name for name, causes in pipes.items() if sum(causes.values()) != event["total"]]
    return f"causes of {', '.join(short)} do not add up to {event['total']}" if short else None


def strided(number: int) -> str | None:
    """Strided-repeat: a tree of instructions, flags, barriers and loops; cycles and causes."""
    return _trees(fast_programs.strided, number)


def functions(number: int) -> str | None:
    return _trees(fast_programs.functions, number)


def scopes(number: int) -> str | None:
    """Launches of vector instructions between transfers."""
    tree, target = scope_program(Random(f"scope {number}")), load_target("a5")
    event, other = (simulate(tree, target, engine=name) for name in ("event", "fast"))
    return None if same_timing(event, other) else f"event {event.total}, fast {other.total}"


def bundles(number: int) -> str | None:
    """Bundles of the VLIW in loops, with and without skipping of trips."""
    random = Random(f"bundles {number}")
    items, trips = ((2, 5, 9), (2, 7, 12)) if number % 8 == 0 else ((2, 3, 5), (2, 4, 7))
    mix = Mix(random.randint(1, 6), random.choice(items), random.randint(0, 2), random.choice(trips), random.random())
    chip = load_target(random.choice(CHIPS))
    assert isinstance(chip, VliwTarget)
    tree, target = random_tree(random, mix), random_target(random, chip)
    expected = outcome(tree, target, LIMIT, run=by_events)
    for skip in (True, False):
        found = outcome(tree, target, LIMIT, skip=skip, run=fast)
        if found != expected:
            return f"event and fast engine, skip={skip}: {expected!s:.200} {found!s:.200}"
    return None


def kernels(number: int) -> str | None:
    """Kernels as texts, with loops and branches: engines, and the values under every synchronisation."""
    random = Random(f"kernel {number}")
    text = sync_random.Maker(number, random.choice((sync_random.SMALL, sync_random.LARGE))).text()
    target = load_target(random.choice(("a2a3", "a5")))
    args = {"n": random.randint(0, 3), "m": random.randint(0, 3), "c": number & 1, "d": number >> 1 & 1}
    source = source_of(text, "k.pto", lambda: False)
    outputs: dict[str, object] = {}
    for sync in ("insert", "barriers", "interlock"):
        try:
            loaded = load(source, target, None, args, sync=sync)
            found = run_loaded(loaded, {"p": "random:1", "q": "random:2"}, engine="fast")
        except CastsimError as error:  # before any engine
            outputs[sync] = type(error).__name__
            continue
        event = run_loaded(loaded, {}, engine="event", timing_only=True)
        one, other = plain(event.timing), plain(found.timing)
        if one != other:
            return f"{sync}: event {one!s:.200}, fast {other!s:.200}"
        outputs[sync] = {name: array.tobytes() for name, array in sorted(found.outputs.items())}
    same = all(each == outputs["insert"] for each in outputs.values())
    return None if same else f"values differ by synchronisation: {outputs!s:.300}"


MECHANISMS: dict[str, Callable[[int], str | None]] = {
    "strided-repeat": strided, "vector-function": functions, "vector-scopes": scopes, "vliw": bundles,
    "kernels": kernels, "casts": casts, "casts-compiled": compiled, "casts-exact": exact,
}  # fmt: skip
"""What is compared, by the name of the mechanism."""


def prepare(mechanism: str) -> None:
    """Compile the fast engine's machine for tiles, so that forks share it: each would compile it anew, for a minute."""
    if mechanism in ("strided-repeat", "vector-function", "kernels"):
        with suppress(ImportError):
            from castsim.engines.fast_dataflow.compiled_machine import compiled_machine  # noqa: PLC0415 - imports numba

            compiled_machine()


def difference(mechanism: str, number: int) -> str | None:
    """Return what differs in the program of a number; None: nothing.

    Args:
        mechanism: a name of `MECHANISMS`.
        number: of the program.
    """
    return MECHANISMS[mechanism](number)

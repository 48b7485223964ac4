"""Random programs of every mechanism in both engines: cycles, causes and records agree, or the words of a refusal do.

`python tests engine_campaign strided --programs 100000` runs those of a mechanism from where its record ends, and
adds what agreed to its record; `--seconds N` stops in between. It prints the seeds that differ.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from core.machines.vliw.test_tpc_time import chips
from kit import fast_programs
from kit.bundle_trees import Mix, by_events, fast, random_row, random_target, random_tree
from kit.engine_outcome import outcome
from kit.scope_works import random_scope

from castsim.machines.vector_function.function_launches import MicroFunction
from castsim.targets.description import with_options
from castsim.targets.loader import load_target

RECORD = Path(__file__).with_name("engine_campaign.json")
A2A3 = load_target("a2a3")
LIMIT = 10**5
"""Cycles after which a program is given up, by both engines."""

Run = Callable[[], Any]


def dataflow(seed: int, make: Callable[[int], Any]) -> tuple[Run, ...]:
    """A tree of pipes: the event engine, and the fast one with and without skipped trips."""
    tree, target = make(seed)
    run = partial(outcome, tree, target, max_cycles=LIMIT)
    return partial(run, engine="event"), partial(run, engine="fast"), partial(run, engine="fast", skip=False)


def scopes(seed: int) -> Any:
    """A tree of micro launches and transfers, and a target."""
    programs = fast_programs.Programs(
        seed, lambda own: MicroFunction("launch", random_scope(own.random), "V"), small=seed % 2 == 0
    )
    return programs.tree(), fast_programs.shared(fast_programs.A5, programs.random)


def memory(seed: int) -> Any:
    """A tree of little but transfers, and a target whose options of global memory are any that it has."""
    programs = fast_programs.Programs(seed, fast_programs.Programs.transfer, small=seed % 2 == 0)
    tree, target = programs.tree(), programs.random.choice((fast_programs.A5, A2A3))
    target = fast_programs.shared(target, programs.random)
    named = [name for name in ("global_memory", "working_set", "transfer_sharing") if name in target.options]
    return tree, with_options(target, {name: programs.random.choice(target.options[name].legal) for name in named})


def bundles(seed: int) -> tuple[Run, ...]:
    """A tree of TPC bundles, or bundles in a row."""
    random = Random(seed)
    share = random.choice((0, 0.3, 0.8))
    mix = Mix(random.randint(1, 6), random.choice((2, 5)), random.randint(0, 2), random.choice((2, 7)), share)
    tree = random_tree(random, mix) if random.random() < 0.8 else random_row(random, Mix(4, 3, trips=3, memory=share))
    run = partial(outcome, tree, random_target(random, random.choice(CHIPS)), LIMIT)
    return partial(run, run=by_events), partial(run, run=fast), partial(run, run=partial(fast, skip=False))


CHIPS = chips()
MECHANISMS: dict[str, Callable[[int], tuple[Run, ...]]] = {
    "strided": partial(dataflow, make=fast_programs.strided),
    "functions": partial(dataflow, make=fast_programs.functions),
    "scopes": partial(dataflow, make=scopes),
    "memory": partial(dataflow, make=memory),
    "bundles": bundles,
}


def agree(name: str, seed: int) -> bool:
    """Whether the engines agree on a program."""
    expected, *others = MECHANISMS[name](seed)
    wanted = expected()
    return all(run() == wanted for run in others)


def main() -> None:
    """Run a campaign."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("mechanism", choices=MECHANISMS)
    parser.add_argument("--programs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    done, began = json.loads(RECORD.read_text(encoding="utf-8")).get(asked.mechanism, 0), time.monotonic()
    seed, differing = done, []
    while seed < asked.programs and time.monotonic() - began < asked.seconds:
        if not agree(asked.mechanism, seed):
            differing.append(seed)
            print(f"{asked.mechanism} {seed} differs", flush=True)
        seed += 1
    print(
        f"{asked.mechanism}: programs {done} to {seed - 1}, {len(differing)} differ, {time.process_time():.0f} s of CPU"
    )
    if not differing:
        record = {**json.loads(RECORD.read_text(encoding="utf-8")), asked.mechanism: seed}
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

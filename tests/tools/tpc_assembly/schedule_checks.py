"""What must hold of a scheduled random text, and a record of how it went.

`python tests schedule_checks FIRST LAST [GENERATION ...]` checks that range of seeds and prints the record.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np
from kit.schedule_programs import GENERATIONS, Inputs, ran, target_of
from tools.tpc_assembly.schedule_mixtures import ROWS, mixture, named, waiting

from castsim.isa.errors import CastsimError
from castsim.isa.tpc.parser import parse
from castsim.machines.vliw.assembled import Ran
from castsim.machines.vliw.findings import StaleReadKind
from castsim.tools.tpc_assembly.scheduling import Scheduled, schedule
from castsim.tools.tpc_lint.lint_checking import lint

NOT_STALE = (StaleReadKind.UNWRITTEN, StaleReadKind.SAME_BUNDLE)
"""What `--stale-reads stop` lets pass: fresh registers, and the old value beside a write, which a bundle means."""


def inputs(seed: int) -> Inputs:
    rng = np.random.default_rng(seed)
    return {
        "x": (rng.standard_normal((ROWS, 64)) * 100).astype(np.float32),
        "y": rng.integers(-1 << 31, 1 << 31, (ROWS, 64)).astype(np.int32),
        "b": rng.integers(-128, 128, (ROWS, 256)).astype(np.int8),
        "h": rng.integers(-(1 << 15), 1 << 15, (ROWS, 128)).astype(np.int16),
        "m": rng.integers(0, 1 << 32, (8, 64), np.uint32),
        "n": rng.integers(0, 1 << 32, (8, 64), np.uint32),
    }


@dataclass
class Record:
    """Programs by method, those refused when executed line by line, and bundles against padded ones."""

    methods: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    unknown: int = 0
    static: list[int] = field(default_factory=lambda: [0, 0])
    executed: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, found: Scheduled) -> None:
        self.methods[found.method] += 1
        self.static[0] += found.length.static
        self.static[1] += found.padding.static
        if found.length.executed is None or found.padding.executed is None:
            self.unknown += 1
        else:
            self.executed[0] += found.length.executed
            self.executed[1] += found.padding.executed

    def text(self) -> str:
        one, two = (
            f"{each[0]} of {each[1]} ({each[0] / max(1, each[1]):.3f})" for each in (self.static, self.executed)
        )
        methods = ", ".join(f"{name} {count}" for name, count in sorted(self.methods.items()))
        return (
            f"{sum(self.methods.values())} programs ({methods}; {self.unknown} of which data decides the length), "
            f"bundles of the text {one}, executed {two}; {len(self.refused)} not legal sequentially"
        )


def hold(
    found: Scheduled, want: Ran, got: Ran, generation: str, seed: int, rules: Set[str] = frozenset(), *, longer: bool
) -> None:
    """Hold a scheduled text against its sequential execution, the linter (but for some rules) and its padded length."""
    for name, expected in want.outputs.items():
        assert np.array_equal(got.outputs[name].view(np.uint8), expected.view(np.uint8)), (seed, name)
    assert [each for each in got.stale_reads if each.kind not in NOT_STALE] == [], seed
    program = parse(found.text, target_of(generation).dialect)
    assert {each.rule for each in lint(program, target_of(generation)) if each.certain} <= rules, seed
    assert found.length.static == len(program.bundles)
    assert longer or found.length.static <= found.padding.static, seed
    if found.length.executed is not None and found.padding.executed is not None:
        assert found.length.executed <= found.padding.executed, seed


def check_mixture(seed: int, generation: str, record: Record, *, longer: bool = False) -> None:
    """Hold one text against its sequential execution, the linter and its padded length."""
    text = mixture(seed, generation)
    try:
        want = ran(waiting(text), generation, seed, inputs)
    except CastsimError as error:
        record.refused.append(str(error))
        return
    found = schedule(named(text), "<random>", target_of(generation), longer=longer)
    hold(found, want, ran(found.text, generation, seed, inputs), generation, seed, {"unread result"}, longer=longer)
    record.add(found)


def main() -> None:
    """Check seeds and say how it went."""
    first, last, *wanted = sys.argv[1:]
    for generation in wanted or GENERATIONS:
        records = Record(), Record()
        for seed in range(int(first), int(last)):
            for longer in (False, True) if seed % 5 == 0 else (False,):
                try:
                    check_mixture(seed, generation, records[longer], longer=longer)
                except (AssertionError, CastsimError) as error:
                    print(f"{generation} {seed} longer={longer}: {type(error).__name__} {str(error)[:300]}", flush=True)
        print(f"{generation}: {records[0].text()}\n{generation}, longer texts: {records[1].text()}", flush=True)


if __name__ == "__main__":
    main()

"""Whether a changed program is clean, gives the same bits, and is faster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from castsim.execution.inputs import check_known
from castsim.exploration.advice.suggestion import Change, Rejection, RunConfig, Suggestion, SuggestionEvidence, diff_of
from castsim.exploration.advice.symbolic_values import same_outputs
from castsim.exploration.advice.trials import bits_equal, given_inputs, trial_inputs
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.sources import Source
from castsim.isa.warning_text import WarningKind
from castsim.machines.mechanisms import tiles_of
from castsim.running import LoadedProgram, Result, computed, run_loaded
from castsim.running.loaded import Loaded
from castsim.running.tiles import TileProgram

REFUSED = (CastsimError, EngineError)
"""How a program is turned down: by what it says, or as it never ends."""

ENOUGH = 1 << 16
"""Elements of every input that boundaries are tried on: all codes of 16 bits."""
MOST_TRIES = 600
ASKED = 6
"""Inputs that are drawn for each that the program as it is takes."""
FOR_PATHS = 12
"""Inputs that a program is tried on at least of which elements decide the path."""

FOR_PROOF = 2
"""Inputs on which also a proven change is tried."""


@dataclass(slots=True)
class Baseline:
    """The program as it is: what every change is held against."""

    source: Source
    setting: RunConfig
    loaded: LoadedProgram
    timed: Result
    trials: list[tuple[Mapping[str, Codes], Mapping[str, Codes]]] = field(default_factory=list)
    """Inputs and outputs of runs; those on which the program itself is refused are left out."""
    _asked: int = 0

    @property
    def cycles(self) -> int:
        """What it takes."""
        return self.timed.cycles

    @property
    def deciding(self) -> frozenset[str]:
        """The arguments of which elements decide the path."""
        return frozenset(read.name for read in self.timed.loaded.executed.decided_by)

    def runs(self, count: int) -> list[tuple[Mapping[str, Codes], Mapping[str, Codes]]]:
        """Return as many trials, or those that there are."""
        while len(self.trials) < count and self._asked < ASKED * count + 1:
            self._try(self._asked)
            self._asked += 1
        return self.trials[:count]

    def tries(self, change: Change) -> int:
        """Return on how many inputs a change is tried: as many as asked for, or as hold enough elements."""
        if not change.recasts:
            return max(self.setting.tries, FOR_PATHS if self.deciding else 0)
        sizes = [prod(use.shape) for use in self.timed.loaded.arguments.values() if use.needs_input]
        return max(self.setting.tries, min(MOST_TRIES, -(-2 * ENOUGH // max(1, min(sizes, default=ENOUGH)))))

    def _try(self, number: int) -> None:
        uses = self.timed.loaded.arguments
        try:
            given = number == 0 and bool(self.setting.inputs)
            inputs = given_inputs(uses, self.setting) if given else {}
            drawn = trial_inputs(number, uses, self.setting, self.deciding)
            inputs = {**drawn, **inputs}
            self.trials.append((inputs, computed(self.loaded, inputs, self.setting.limits)))
        except REFUSED:
            return


def original(source: Source, setting: RunConfig) -> Baseline:
    """Return a program read and timed.

    Raises:
        CastsimError: whatever it is refused for; races among it.
    """
    loaded = setting.loaded(source)
    found = timed(loaded, setting)
    for name in (*setting.inputs, *setting.ranges):
        check_known(name, found.loaded.arguments)
    return Baseline(source, setting, loaded, found)


def timed(loaded: LoadedProgram, setting: RunConfig, engine: str | None = None) -> Result:
    """Return how long a program takes; races and stale reads stop it."""
    assembly = loaded.language != "pto"
    needs = loaded.tree is None and bool(setting.inputs)
    return run_loaded(
        loaded, setting.inputs if needs else {}, engine=engine, timing_only=not needs, max_cycles=setting.max_cycles,
        stale_reads="stop" if assembly else None, limits=setting.limits,
    )  # fmt: skip


def faster(change: Change, before: Baseline) -> tuple[LoadedProgram, int] | Rejection:
    """Return a changed program and its cycles; why not, if it is refused, has races, or is no faster."""
    try:
        loaded = before.setting.loaded(Source(before.source.file, before.source.language, change.text))
        cycles = timed(loaded, before.setting).cycles
    except REFUSED as error:
        return Rejection(change, f"refused: {_first_line(error)}")
    if cycles >= before.cycles:
        return Rejection(change, f"not faster: {cycles:,} cycles")
    warned = [(kind, text) for kind, text in warned_of(loaded) - warned_of(before.loaded) if kind not in change.warns]
    if warned:
        return Rejection(change, f"{cycles:,} cycles, with a new warning: {min(text for _, text in warned).strip()}")
    return loaded, cycles


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


_NAMES = re.compile(r"%[\w$.\-]+|\b\d+\b")
"""What a change may call otherwise: values, and numbers of lines and bytes."""


def warned_of(loaded: LoadedProgram) -> frozenset[tuple[WarningKind, str]]:
    """Return what a program is warned of, wherever and however often; nothing where only a run tells."""
    warnings = loaded.executed.warnings if isinstance(loaded, Loaded) else ()
    return frozenset((each.kind, _NAMES.sub("", each.text)) for each in warnings)


def offer_of(change: Change, before: Baseline) -> Suggestion | Rejection:
    """Return a change as an offer; why not, if it does not hold what an offer promises."""
    found = faster(change, before)
    if isinstance(found, Rejection):
        return found
    loaded, cycles = found
    how = SuggestionEvidence.PROVEN if proven(before, loaded) else SuggestionEvidence.TRIED
    runs = tried(before, loaded, FOR_PROOF if how is SuggestionEvidence.PROVEN else before.tries(change))
    if runs is None:
        return Rejection(change, f"{cycles:,} cycles, other bits on an input that was tried")
    if how is SuggestionEvidence.TRIED and not runs:
        return Rejection(change, f"{cycles:,} cycles, not proven, and the program takes none of the inputs drawn")
    try:
        events = timed(loaded, before.setting, "event").cycles
    except REFUSED as error:
        return Rejection(change, f"refused by the event engine: {_first_line(error)}")
    if events != cycles:
        return Rejection(change, f"{cycles:,} cycles by the fast engine, {events:,} by the event engine")
    if not holds_elsewhere(change, before):
        return Rejection(change, f"{cycles:,} cycles, does not hold for other scalar arguments")
    diff = diff_of(before.source.file, before.source.text, change.text)
    return Suggestion(change, how, runs, before.cycles, cycles, diff)


def holds_elsewhere(change: Change, before: Baseline) -> bool:
    """Whether a change keeps the outputs for other scalar arguments too, where the program itself takes them."""
    for args in other_arguments(before.setting.args):
        setting = replace(before.setting, args=args, inputs={})
        try:
            other = original(before.source, setting)
        except REFUSED:
            continue
        try:
            loaded = setting.loaded(replace(before.source, text=change.text))
            timed(loaded, setting)
        except REFUSED:
            return False
        if not proven(other, loaded) and tried(other, loaded, FOR_PROOF) is None:
            return False
    return True


def other_arguments(args: Mapping[str, int | float]) -> Iterator[dict[str, int | float]]:
    """Yield the arguments with one of them changed a little; single elements stay as they are."""
    for name, value in args.items():
        if "[" in name:
            continue
        near = (value + 1, value - 1) if isinstance(value, int) else (value * 1.5,)
        yield from ({**args, name: other} for other in near if isinstance(value, float) or other >= 0)


def proven(before: Baseline, loaded: LoadedProgram) -> bool:
    """Whether the terms of all outputs are the same."""
    chip = tiles_of(loaded.target)
    one, other = before.loaded, loaded
    if chip is None or not isinstance(one, TileProgram) or not isinstance(other, TileProgram):
        return False
    return same_outputs((one.tree, one.arguments), (other.tree, other.arguments), chip)


def tried(before: Baseline, loaded: LoadedProgram, count: int) -> int | None:
    """Return on how many inputs both programs gave the same bits; None if they differ on one."""
    runs = before.runs(count)
    uses = before.timed.loaded.arguments
    for inputs, outputs in runs:
        try:
            found = computed(loaded, inputs, before.setting.limits)
        except REFUSED:
            return None
        if not bits_equal(outputs, found, uses):
            return None
    return len(runs)

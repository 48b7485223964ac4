"""Checks that a changed program is free of races, gives the same bits, and is faster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from math import prod

import numpy as np

from castsim.execution.input_data import ArgumentUse, check_known, make_inputs, random_codes
from castsim.execution.tree import elements
from castsim.execution.vector_operations.shapes import BUFFER
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError, WarningKind
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, format_named
from castsim.isa.reading import Source
from castsim.machines.mechanisms import tiles_of
from castsim.machines.vector_function.function_launches import MicroFunction
from castsim.machines.vector_function.launched_scope import Scope, TimingKind
from castsim.machines.vector_function.scope_recorder import behind_stores
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import array_from_codes, codes_from_array
from castsim.numerics.policy import abstract_policy
from castsim.running.loaded import Loaded, LoadedProgram, LoadRequest, RunOptions
from castsim.running.micro import MicroProgram
from castsim.running.program_loading import TileProgram
from castsim.running.program_runs import Result, computed, run_loaded
from castsim.targets.description import with_options
from castsim.tools.advise.suggestions import (
    Change,
    ProposedChange,
    RejectedChange,
    SearchConfig,
    SuggestionEvidence,
    diff_of,
)
from castsim.tools.advise.symbolic_values import OutputTerms, same_outputs
from castsim.tools.expand.expansion import expand_source

# Inputs on which two programs are compared: random numbers, random bits, and the numbers at which casts differ.

_WIDE = format_named("f64")
_STEPS = 24
"""Largest exponent of the powers of two whose neighbours and ties are tried."""


def boundary_numbers() -> list[float]:
    """Return numbers at the ends of formats and at rounding ties: powers of two, halves, neighbours, both signs."""
    numbers = [0.0, 0.5, 1.0, 1.5, 2.5, 3.5, 448.0, 464.0, 480.0, 65504.0, 65519.0, 65520.0, 57344.0, 61440.0, 3.4e38]
    for power in (*range(-_STEPS, _STEPS), 31, 32, 53, 63, 64, 127, -126, -149):
        base = 2.0**power
        numbers += [base, base * (1 + 2**-11), base * (1 + 2**-8), base * (1 + 2**-4), base * 1.5, base - 0.5, base - 1]
    numbers += [
        float(value) + part for value in (126, 127, 128, 254, 255, 256, 32767, 32768) for part in (0, 0.49, 0.5)
    ]
    return [*numbers, *(-value for value in numbers)]


def boundary_codes(fmt: Format, generator: np.random.Generator, size: int, number: int) -> Codes:
    """Return `size` codes of a format: all codes of a small one, otherwise boundaries among random bits.

    Each `number` continues where the previous one ended, so several calls cover all boundaries.
    """
    bits = fmt.bits
    if bits <= 16:
        every = np.random.default_rng(bits).permutation(1 << bits).astype(code_dtype(fmt))
        return np.resize(np.roll(every, -number * size), size)
    narrow_codes = generator.integers(0, 1 << bits, size, dtype=np.uint64, endpoint=False) if bits < 64 else None
    drawn = (
        generator.integers(0, 2**64 - 1, size, dtype=np.uint64, endpoint=True) if narrow_codes is None else narrow_codes
    )
    codes = drawn.astype(code_dtype(fmt))
    special = np.random.default_rng(bits).permutation(_special(fmt))
    places = generator.permutation(size)[: (size + 1) // 2]
    codes[places] = np.resize(np.roll(special, -number * places.size), places.size)
    return codes


def _special(fmt: Format) -> Codes:
    if isinstance(fmt, IntFormat):
        ends = [0, 1, 2, -1, -2, fmt.minimum, fmt.maximum, fmt.minimum + 1, fmt.maximum - 1]
        ends += [sign * (2**power + more) for power in range(fmt.bits - 1) for more in (-1, 0, 1) for sign in (1, -1)]
        return np.array([value & ((1 << fmt.bits) - 1) for value in ends], np.uint64).astype(code_dtype(fmt))
    wide = np.array(boundary_numbers(), np.float64).view("<u8")
    codes = cast_codes(wide, _WIDE, fmt, abstract_policy(_WIDE, fmt))
    if not isinstance(fmt, FloatFormat):
        return codes
    extra = [code for code in (fmt.infinity_code, fmt.nan_code, 0, 1, 2) if code is not None]
    extra += [code | fmt.sign_bit for code in extra]
    return np.concatenate([codes, np.array(extra, codes.dtype)])


def ranged_codes(fmt: Format, generator: np.random.Generator, size: int, ends: tuple[float, float]) -> Codes:
    """Return codes of numbers between two ends, both included: uniform over the range, and towards zero."""
    low, high = ends
    even = generator.uniform(low, high, size)
    small = even * np.exp2(-generator.integers(0, _STEPS, size).astype(np.float64))
    halves = np.round(even * 2) / 2
    drawn = np.where(generator.random(size) < 0.4, even, np.where(generator.random(size) < 0.5, small, halves))
    boundaries = np.array([low, high, *(value for value in boundary_numbers() if low <= value <= high)])
    places = generator.permutation(size)[: min(boundaries.size, size)]
    drawn[places] = boundaries[: places.size]
    drawn = np.clip(drawn, low, high)
    if isinstance(fmt, IntFormat):
        values = np.clip(np.trunc(drawn), max(np.ceil(low), fmt.minimum), min(np.floor(high), fmt.maximum))
        return (values.astype(np.int64).astype(np.uint64) & np.uint64((1 << fmt.bits) - 1)).astype(code_dtype(fmt))
    codes = cast_codes(drawn.view("<u8"), _WIDE, fmt, abstract_policy(_WIDE, fmt))
    back = cast_codes(codes, fmt, _WIDE, abstract_policy(fmt, _WIDE)).view("<f8")
    inside = np.asarray(codes)[(back >= low) & (back <= high)]
    return np.resize(inside, size) if inside.size else codes


def trial_inputs(
    number: int, uses: Mapping[str, ArgumentUse], setting: SearchConfig, deciding: frozenset[str] = frozenset()
) -> dict[str, Codes]:
    """Return the inputs of a trial: boundaries and random bits first, then plain random numbers, in turns.

    Inputs whose elements decide the path are small integers, numbers of elements, or zeros.
    """
    generator = np.random.default_rng([20, number])
    arrays: dict[str, Codes] = {}
    for name, use in uses.items():
        if not use.needs_input and name not in setting.inputs:
            continue
        size = prod(use.shape)
        ends = setting.ranges.get(name)
        if name in deciding:
            most = (2, 4, size, 1)[number % 4]
            codes = generator.integers(0, most, size).astype(code_dtype(use.format))
        elif ends is not None:
            codes = ranged_codes(use.format, generator, size, ends)
        elif number % 2 == 0:
            codes = boundary_codes(use.format, generator, size, number // 2)
        else:
            codes = random_codes(generator, use.format, (size,))
        arrays[name] = array_from_codes(codes.reshape(use.shape), use.format)
    return arrays


def bits_equal(first: Mapping[str, Codes], other: Mapping[str, Codes], uses: Mapping[str, ArgumentUse]) -> bool:
    """Return whether two runs gave the same outputs to the bit; their shapes may differ."""
    if first.keys() != other.keys():
        return False
    for name, array in first.items():
        fmt = uses[name].format
        codes, others = codes_from_array(array, fmt).ravel(), codes_from_array(other[name], fmt).ravel()
        if not np.array_equal(codes, others):
            return False
    return True


REFUSED = (CastsimError, EngineError)
"""Exceptions by which a program is refused, including one that never ends."""

ENOUGH = 1 << 16
"""Number of elements of every input for boundaries: all codes of 16 bits."""
MOST_TRIES = 600
ASKED = 6
"""Number of inputs that are drawn for each input that the unchanged program accepts."""
FOR_PATHS = 12
"""Minimum number of inputs for a program whose path depends on elements."""

_CHANGES_KEPT = 64

FOR_PROOF = 2
"""Number of inputs on which a proven change is tried too."""


@dataclass(slots=True)
class Baseline:
    """The unchanged program, to which every change is compared."""

    source: Source
    setting: SearchConfig
    loaded: LoadedProgram
    timed: Result
    trials: list[tuple[Mapping[str, Codes], Mapping[str, Codes]]] = field(default_factory=list)
    """Inputs and outputs of runs, without inputs that the program itself refuses."""
    terms: OutputTerms | None = None
    """The terms of its outputs; None if it has none."""
    _asked: int = 0
    _elsewhere: list[Baseline] | None = None
    _changed: dict[str, tuple[LoadedProgram, Result] | CastsimError | EngineError] = field(default_factory=dict)

    def changed(self, text: str) -> tuple[LoadedProgram, Result]:
        """Return a changed program and its timed run: both are needed again to check what they were made for.

        Raises:
            CastsimError, EngineError: it is refused.
        """
        if text not in self._changed:
            if len(self._changed) >= _CHANGES_KEPT:
                self._changed.pop(next(iter(self._changed)))
            try:
                loaded = self.setting.loaded(replace(self.source, text=text))
                self._changed[text] = loaded, timed(loaded, self.setting)
            except REFUSED as error:
                self._changed[text] = error
        outcome = self._changed[text]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def elsewhere(self) -> list[Baseline]:
        """Return the program with other scalar arguments, as far as it accepts them."""
        if self._elsewhere is None:
            self._elsewhere = []
            for args in other_arguments(self.setting.args):
                with suppress(*REFUSED):
                    self._elsewhere.append(original(self.source, replace(self.setting, args=args, inputs={})))
        return self._elsewhere

    @property
    def cycles(self) -> int:
        """Cycles of the program."""
        return self.timed.cycles

    @property
    def deciding(self) -> frozenset[str]:
        """The arguments whose elements decide the path."""
        return frozenset(read.name for read in self.timed.loaded.executed.decided_by)

    def runs(self, count: int) -> list[tuple[Mapping[str, Codes], Mapping[str, Codes]]]:
        """Return a number of trials, or as many as exist."""
        while len(self.trials) < count and self._asked < ASKED * count + 1:
            self._try(self._asked)
            self._asked += 1
        return self.trials[:count]

    def tries(self, change: ProposedChange) -> int:
        """Return the number of inputs on which a change is tried: as requested, or until they have enough elements."""
        if not change.recasts:
            return max(self.setting.tries, FOR_PATHS if self.deciding else 0)
        sizes = [prod(use.shape) for use in self.timed.loaded.arguments.values() if use.needs_input]
        return max(self.setting.tries, min(MOST_TRIES, -(-2 * ENOUGH // max(1, min(sizes, default=ENOUGH)))))

    def _try(self, number: int) -> None:
        uses = self.timed.loaded.arguments
        try:
            given = self.setting.inputs if number == 0 else {}  # arrays as they are
            named = make_inputs({name: text for name, text in given.items() if isinstance(text, str)}, uses)
            arrays = {name: array for name, array in given.items() if not isinstance(array, str)}
            inputs = {**trial_inputs(number, uses, self.setting, self.deciding), **named, **arrays}
            self.trials.append((inputs, computed(self.loaded, inputs, self.setting.limits)))
        except REFUSED:
            return


def original(source: Source, setting: SearchConfig) -> Baseline:
    """Return a program, read and timed.

    Raises:
        CastsimError: the program is refused, for example for a race.
    """
    loaded = setting.loaded(source)
    run = timed(loaded, setting)
    for name in (*setting.inputs, *setting.ranges):
        check_known(name, run.loaded.arguments)
    return Baseline(source, setting, loaded, run, terms=terms_of(loaded))


def timed(loaded: LoadedProgram, setting: SearchConfig) -> Result:
    """Return the cycles of a program; races and stale reads raise an error."""
    assembly = loaded.language != "pto"
    needs = loaded.tree is None and bool(setting.inputs)
    return run_loaded(
        loaded, setting.inputs if needs else {}, timing_only=not needs,
        stale_reads="stop" if assembly else None, limits=setting.limits,
    )  # fmt: skip


def faster(change: ProposedChange, before: Baseline) -> tuple[LoadedProgram, int] | RejectedChange:
    """Return a changed program and its cycles; otherwise the reason: refused, has races, or is no faster."""
    try:
        loaded, run = before.changed(change.text)
        cycles = run.cycles
    except REFUSED as error:
        return RejectedChange(change, f"refused: {_first_line(error)}")
    if cycles >= before.cycles:
        return RejectedChange(change, f"not faster: {cycles:,} cycles")
    warned = [(kind, text) for kind, text in warned_of(loaded) - warned_of(before.loaded) if kind not in change.warns]
    if warned:
        return RejectedChange(
            change, f"{cycles:,} cycles, with a new warning: {min(text for _, text in warned).strip()}"
        )
    return loaded, cycles


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


_NAMES = re.compile(r"%[\w$.\-]+|\b\d+\b")
"""Pattern of what a change may rename: values, and numbers of lines and bytes."""


def warned_of(loaded: LoadedProgram) -> frozenset[tuple[WarningKind, str]]:
    """Return the distinct warnings of a program, without positions; empty if only a run shows them."""
    warnings = loaded.executed.warnings if isinstance(loaded, Loaded) else ()
    return frozenset((warning.kind, _NAMES.sub("", warning.text)) for warning in warnings)


def offer_of(change: ProposedChange, before: Baseline) -> Change | RejectedChange:
    """Return a change as an offer; otherwise the reason why it is not valid."""
    gain = faster(change, before)
    if isinstance(gain, RejectedChange):
        return gain
    loaded, cycles = gain
    how = SuggestionEvidence.PROVEN if proven(before, loaded) else SuggestionEvidence.TRIED
    runs = tried(before, loaded, FOR_PROOF if how is SuggestionEvidence.PROVEN else before.tries(change))
    if runs is None:
        return RejectedChange(change, f"{cycles:,} cycles, other bits on an input that was tried")
    if how is SuggestionEvidence.TRIED and not runs:
        return RejectedChange(change, f"{cycles:,} cycles, not proven, and the program rejects all random inputs")
    if not holds_elsewhere(change, before):
        return RejectedChange(change, f"{cycles:,} cycles, does not hold for other scalar arguments")
    diff = diff_of(before.source.file, before.source.text, change.text)
    return Change(change, 0, how, runs, before.cycles, cycles, diff)


def holds_elsewhere(change: ProposedChange, before: Baseline) -> bool:
    """Return whether a change also keeps the outputs for other scalar arguments that the program accepts."""
    for other in before.elsewhere():
        try:
            loaded = other.setting.loaded(replace(before.source, text=change.text))
            timed(loaded, other.setting)
        except REFUSED:
            return False
        if not proven(other, loaded) and tried(other, loaded, FOR_PROOF) is None:
            return False
    return True


def other_arguments(args: Mapping[str, int | float]) -> Iterator[dict[str, int | float]]:
    """Yield the arguments with one of them changed a little; single elements stay unchanged."""
    for name, value in args.items():
        if "[" in name:
            continue
        near = (value + 1, value - 1) if isinstance(value, int) else (value * 1.5,)
        yield from ({**args, name: other} for other in near if isinstance(value, float) or other >= 0)


def proven(before: Baseline, loaded: LoadedProgram) -> bool:
    """Return whether the terms of all outputs are equal."""
    after = None if before.terms is None else terms_of(loaded)
    return before.terms is not None and after is not None and same_outputs(before.terms, after)


def terms_of(loaded: LoadedProgram) -> OutputTerms | None:
    """Return the terms of a program's outputs; None if it is not one of tiles alone."""
    chip = tiles_of(loaded.target)
    if chip is None or not isinstance(loaded, TileProgram):
        return None
    return OutputTerms(loaded.tree, loaded.arguments, chip)


def tried(before: Baseline, loaded: LoadedProgram, count: int) -> int | None:
    """Return the number of inputs on which both programs gave the same bits; None if any differs."""
    runs = before.runs(count)
    uses = before.timed.loaded.arguments
    # The first run alone finds out quickly what differs everywhere.
    size = 1 + sum(use.elements * use.format.storage_bits // 8 for use in uses.values())
    ends = [0, *range(1, len(runs), max(1, min(_TOGETHER, _BYTES_TOGETHER // size))), len(runs)]
    for start, end in pairwise(ends):
        part = runs[start:end]
        try:
            results = _outputs(loaded, [inputs for inputs, _ in part], before.setting)
        except REFUSED:
            return None
        if not all(bits_equal(outputs, own, uses) for (_, outputs), own in zip(part, results, strict=True)):
            return None
    return len(runs)


_TOGETHER, _BYTES_TOGETHER = 128, 1 << 27
"""Maximum number of runs that one walk computes, and of bytes of their arguments."""


def _outputs(
    loaded: LoadedProgram, inputs: Sequence[Mapping[str, Codes]], setting: SearchConfig
) -> Iterable[Mapping[str, Codes]]:
    """Return the outputs for each of several inputs."""
    if isinstance(loaded, MicroProgram) and len(inputs) > 1:
        return loaded.outputs_of(inputs, RunOptions(limits=setting.limits))
    return (computed(loaded, each, setting.limits) for each in inputs)


# A tile program as its vector functions, without the barriers that no two stores of theirs need.
#
# The A5 writes a cast of 32-bit elements to bytes group by group, each store behind a store barrier of the library's
# own (`mem_bar VST_VST`). Where every group has bytes of its own, a kernel which is written as vector functions needs
# none. Vector functions are launched one after the other, each behind the accesses of the one before, also in loops
# around them: only stores of one launch are compared with each other, in all of its trips, and its loads with its
# stores, where a load that may overtake a store is a warning of the changed program (docs/reference/micro.md 6.5).

BARRIERS = "vector functions without store barriers"
_BARRIER = re.compile(r'^ *pto\.mem_bar "VST_VST"\n', re.MULTILINE)


def without_store_barriers(before: Baseline) -> Iterator[ProposedChange]:
    """Yield the program as vector instructions, without store barriers; empty if it has none."""
    source, setting = before.source, before.setting
    request = LoadRequest(
        setting.target, setting.entry, setting.args, lambda chosen: with_options(chosen, setting.options),
        limits=setting.limits,
    )  # fmt: skip
    try:
        text = expand_source(source, request)
    except CastsimError:
        return
    changed, count = _BARRIER.subn("", text)
    if not count:
        return
    if _overlap(changed, before):
        return
    title = f"write the function as its vector functions (castsim expand), without {_counted(count)}"
    yield ProposedChange(
        BARRIERS, title, "stores of one function that have bytes of their own need not wait for each other", 1, changed,
        recasts=True,
    )  # fmt: skip


def _overlap(text: str, before: Baseline) -> bool:
    """Return whether accesses of a launch share bytes without a barrier between them; True if unknown."""
    try:
        changed = before.changed(text)[1].loaded
    except REFUSED:
        return True
    if not isinstance(changed, Loaded) or any(
        warning.kind is WarningKind.OVERTAKING for warning in changed.executed.warnings
    ):
        return True
    capacity = changed.target.memories[BUFFER].capacity_bytes
    scopes = {
        id(element.scope): element.scope
        for element in elements(changed.tree.root)
        if isinstance(element, MicroFunction)
    }
    return any(_stores_overlap(scope, capacity) for scope in scopes.values())


def _stores_overlap(scope: Scope, capacity: int) -> bool:
    """Return whether a store of a launch writes bytes of an earlier one without a barrier between them."""
    return any(True for _ in behind_stores(scope, capacity, TimingKind.STORE, ("VST_VST", "VV_ALL")))


def _counted(count: int) -> str:
    return "its store barrier" if count == 1 else f"its {count} store barriers"

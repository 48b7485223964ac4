"""A finished run and the figures derived for its report, and the interface of the report's sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import digest, write_array
from castsim.execution.timing import Limiter, limiter
from castsim.execution.tree import BufferUse, buffer_use
from castsim.files import file_names
from castsim.isa.dataclass import dataclass
from castsim.isa.formats import Codes
from castsim.reports.cycle_evidence import Sensitivity, Trust, trust_of
from castsim.reports.documents import Keys, record, says
from castsim.reports.lifted_limits import LiftedLimit, LineCost, costliest_line, limit_behind, longest_line
from castsim.reports.numbers import doubtful_facts
from castsim.reports.schemas.keys import Elements, FactEntry, Output
from castsim.running.loaded import Loaded, Partial
from castsim.running.program_runs import Result, SourceLine, bookkeeping, inserted, source_lines
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.machines.vliw.findings import LintFinding
    from castsim.machines.vliw.latency_bound import LatencyBound


@record
class PartialOutput(Keys):
    """An output with elements that are not computed."""

    name: str = says("Name of the argument.")
    file: str | None = says("Its `.npy` file; null if it was not written.")
    computed_file: str | None = says(
        "The `.npy` file with a mask of the computed elements; null if it was not written."
    )
    format: str = says("Name of its format.")
    shape: list[Elements] = says("Extent of each dimension.")
    elements: Elements = says("Number of elements that are not computed.")
    first: list[int] = says("Index of the first of these elements.")


@record
class UndefinedOutput(Keys):
    """An output that depends in part on buffer bytes that nothing wrote; they count as 0."""

    name: str = says("Name of the argument.")
    mask_file: str | None = says("The `.npy` mask of undefined elements; null if it was not written.")
    elements: Elements = says("Number of undefined elements.")
    first: list[int] = says("Index of the first undefined element.")


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report on a run: its result and the figures derived from it."""

    result: Result
    seconds: float
    lines: tuple[SourceLine, ...]
    bookkeeping: tuple[int, int]
    inserted: int
    costliest: LineCost | None
    """The line that costs most cycles; None if none costs any."""
    limiter: Limiter | None
    """The bottleneck; None if no pipe worked."""
    limit: str
    """The limit whose removal saves most of the bottleneck's cycles other than work; '' if there is none."""
    latencies: LatencyBound | None
    """The cost of latencies; None for programs that are not bundles."""
    buffers: tuple[BufferUse, ...]
    outputs: tuple[Output, ...]
    partial: tuple[PartialOutput, ...]
    undefined: tuple[UndefinedOutput, ...]
    facts: tuple[FactEntry, ...]
    """The undocumented facts, by weight where it is known."""
    trust: Trust
    findings: tuple[LintFinding, ...] | None = None
    """The findings of the linter; None if it was not run."""
    show_synchronisation: bool = False
    """Whether the text lists the program with the inserted instructions."""
    gains: tuple[LiftedLimit, ...] = ()
    """The gains of lifting limits; empty if not requested."""
    further: tuple[str, ...] = ()
    """Requested sections in addition to those of every report."""
    sensitivities: tuple[Sensitivity, ...] | None = None
    """The weight of each number in these facts, largest first; None if it was not computed."""
    list_facts: bool = False
    """Whether the text lists the undocumented facts."""
    command: tuple[str, ...] = ()
    """The arguments of `castsim run` that name the program and its target, without its inputs."""
    inputs: tuple[str, ...] = ()
    """The arguments that give the inputs; for runs without values, the one that disables values."""
    changeable: bool = False
    """Whether `castsim advise` accepts the same arguments."""
    rows: int = 8
    """Rows of the table of lines in the one-screen report."""
    longest: str = ""
    """The line that occupies a pipe longest, in words; '' if some line costs cycles."""

    @classmethod
    def of(
        cls,
        result: Result,
        files: Mapping[str, Path],
        read: Iterable[str] = (),
        sensitivities: tuple[Sensitivity, ...] | None = None,
    ) -> Self:
        """Return the report without the command's optional parts.

        `files` are the outputs' files, `read` the additional facts that the run used.
        """
        loaded, timing = result.loaded, result.timing
        target = loaded.target
        limit = None if result.untimed else limiter(timing)
        costliest = None if result.untimed else costliest_line(loaded.tree, timing, target)
        return cls(
            result=result,
            seconds=float(Fraction(timing.total, target.frequency.megahertz * 10**6)),
            lines=source_lines(loaded.tree, timing),
            bookkeeping=bookkeeping(loaded.tree, timing),
            inserted=inserted(loaded.tree, timing)[0],
            costliest=costliest,
            longest=longest_line(loaded.tree, timing, target) if limit and costliest is None else "",
            limiter=limit,
            limit=limit_behind(loaded.tree, timing, target, limit.pipe, {limit.cause: limit.cycles}) if limit else "",
            latencies=None if result.untimed else loaded.latencies(timing),
            buffers=buffer_use(loaded.tree, target),
            outputs=tuple(
                output_of(name, array, loaded.arguments[name].format.name, files)
                for name, array in result.outputs.items()
            ),
            partial=tuple(
                partial_of(name, partial, loaded.arguments[name].format.name, files)
                for name, partial in result.partial.items()
            ),
            undefined=tuple(undefined_of(name, marks, files) for name, marks in result.undefined.items()),
            facts=_by_weight(doubtful_facts(target, {*timing.facts, *read, *_more_facts(loaded)}), sensitivities or ()),
            trust=trust_of(target, timing, loaded.tree),
            sensitivities=sensitivities,
        )


def _by_weight(facts: tuple[FactEntry, ...], sensitivities: tuple[Sensitivity, ...]) -> tuple[FactEntry, ...]:
    """Return facts by the weight of their heaviest number; facts without weight keep their order."""

    def weight(fact: FactEntry) -> int:
        return max(
            (sensitivity.weight for sensitivity in sensitivities if sensitivity.fact.startswith(f"{fact.name}.")),
            default=0,
        )

    return tuple(sorted(facts, key=lambda fact: -weight(fact)))


def _more_facts(loaded: Loaded) -> tuple[str, ...]:
    """Return the facts that this run used and no engine reads."""
    return ("frequency",) if loaded.synchronised is None else ("frequency", "synchronisation")


def output_of(name: str, array: Codes, fmt: str, files: Mapping[str, Path]) -> Output:
    """Return an output array; `files` are the outputs' files."""
    return Output(name, str(files[name]) if name in files else None, fmt, [*array.shape], digest(array))


def write_outputs(result: Result, folder: Path, *, partial: bool) -> Mapping[str, Path]:
    """Write the outputs to NAME.npy; with `partial`, also those that are partly computed, and masks of what is.

    For outputs that depend on unwritten memory, also write a mask of those elements.
    """
    arrays = dict(result.outputs)
    for name, output in result.partial.items() if partial else ():
        arrays[name] = np.where(output.computed, output.values, np.zeros((), output.values.dtype))
        arrays[mask_name(name)] = output.computed
    arrays.update({undefined_name(name): marks for name, marks in result.undefined.items()})
    files = {name: folder / f"{plain}.npy" for name, plain in file_names(arrays).items()}
    for name, path in files.items():
        write_array(path, arrays[name])
    return files


def mask_name(name: str) -> str:
    """Return the name of the file for an output's mask of computed elements."""
    return f"{name}.computed"


def partial_of(name: str, partial: Partial, fmt: str, files: Mapping[str, Path]) -> PartialOutput:
    """Return a partly computed output; `files` are the outputs' and masks' files."""
    missing = ~partial.computed
    file, mask = (str(files[key]) if key in files else None for key in (name, mask_name(name)))
    return PartialOutput(
        name, file, mask, fmt, [*partial.values.shape], int(np.count_nonzero(missing)), _first(missing)
    )


def undefined_name(name: str) -> str:
    """Return the name of the file for an output's mask of elements that depend on unwritten memory."""
    return f"{name}.undefined"


def undefined_of(name: str, marks: NDArray[np.bool_], files: Mapping[str, Path]) -> UndefinedOutput:
    """Return an output that depends in part on unwritten memory; `files` are the outputs' and masks' files."""
    mask = undefined_name(name)
    return UndefinedOutput(name, str(files[mask]) if mask in files else None, int(marks.sum()), _first(marks))


def _first(marks: NDArray[np.bool_]) -> list[int]:
    """Return the index of the first marked element."""
    return [int(index) for index in np.unravel_index(int(np.argmax(marks)), marks.shape)]


# The contract of a report section: its text, its options and, for a further report, its keys.

Lines: TypeAlias = "Callable[[RunReport, int], Iterable[RenderableType]]"
"""Function that yields a section's lines for a terminal of some columns."""


def no_refusal(target: Target) -> None:
    """Accept every target."""
    del target


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of a run's report, the constant `SECTION` of a module in `castsim.reports.sections`.

    `text` builds the section of a full report, `brief` its one-screen form (None: it has none). `keys`, which a
    further report adds to the JSON document and its schema, take their values from the run; optional ones may be
    absent. `options` are the `castsim run` options that enable it. Before anything runs, `refusal` gives the reason
    why it does not apply to a target. A section `of_time` is empty, and its keys are null, if no cycles are modelled.
    """

    text: Lines
    keys: type[Keys] = Keys
    options: tuple[str, ...] = ()
    refusal: Callable[[Target], str | None] = no_refusal
    of_time: bool = False
    brief: Lines | None = None

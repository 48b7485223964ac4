"""Programs of vector instructions: walked once for their memory accesses, and once more for their values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import numpy as np

from castsim.execution.input_data import ArgumentUse, check_elements, check_known, filled_memory, from_memory
from castsim.execution.interpreter.arguments import Elements as GivenElements
from castsim.execution.interpreter.arguments import in_buffer
from castsim.execution.interpreter.interpreter import Executed
from castsim.execution.interpreter.lowerer import reads_memory
from castsim.execution.interpreter.memory import put_elements
from castsim.execution.interpreter.micro_interpreter import Walked, argument_format, walk_function
from castsim.execution.interpreter.vector_unit import (
    MicroMemory,
    PathOnly,
    ReadElements,
    RecordingUnit,
    SeparateRunsError,
    VectorUnit,
)
from castsim.execution.outcomes import CastTally
from castsim.execution.run_limits import Limits
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, ReadError, TileError, WarningKind, Warnings, WarningText
from castsim.isa.formats import Codes
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import micro_operations
from castsim.machines.mechanisms import VectorUnits, lowerer_of, vector_units_of
from castsim.running.loaded import (
    ExecutionResult,
    Inputs,
    InTileLanguage,
    Loaded,
    RunOptions,
    WalkedWhenIssued,
    Watch,
    races_of,
)
from castsim.targets.loader import Target

_ROUNDS = 8
"""Maximum number of walks to find sizes that depend on elements."""
_NOT_TOGETHER = (pto.ScalarAccess, pto.External, pto.StridedStatement, pto.Tcvt, pto.TileOperation)
"""Statements of programs that compute one run at a time: they read and write memory beside the vector unit."""


@dataclass(frozen=True, slots=True, repr=False)
class MicroProgram(WalkedWhenIssued, InTileLanguage):
    """A program of vector instructions; see `castsim.running.loaded.LoadedProgram`."""

    file: str
    function: pto.Function
    target: Target
    scalars: Mapping[str, int | float]
    warnings: Warnings
    text: str
    units: VectorUnits
    attributes: tuple[tuple[str, str], ...]
    """Attributes of the module."""
    written: pto.Function
    """The function as in the text, with operations on logical registers."""
    as_written: bool = False
    """Whether instructions wait only where the program makes them wait, even if it has no flags."""
    elements: GivenElements = field(default_factory=dict)
    """Given values of single elements of arguments."""
    recorded: dict[Limits, tuple[Walked, RecordingUnit]] = field(default_factory=dict, compare=False)
    """The recorded walk by limits, shared by all runs of a program whose path no input decides."""

    def __repr__(self) -> str:
        return f"<MicroProgram {self.file} @{self.entry} on {self.target.name}>"

    @property
    def entry(self) -> str:
        """The name of the function."""
        return self.function.name

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The tensor arguments; their used sizes are known only after the walk."""
        return {
            argument.name: ArgumentUse(argument_format(argument.type))
            for argument in self.function.arguments
            if isinstance(argument.type, pto.PointerType) and not in_buffer(argument.type)
        }

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Walk the program for its accesses, find races, then walk it with values.

        Raises:
            RaceError, EngineError: there are races, and they stop the run.
        """
        for name in inputs:
            check_known(name, self.arguments)
        how.stage("path")
        elements = self._elements(inputs, how)
        walked, recorder = self._recorded(how, elements)
        # What is read and nothing wrote is followed byte by byte with the values.
        races = None if recorder.incomplete else races_of(recorder.tree, self.target, how, unwritten=False)[0]
        if not how.values:
            return ExecutionResult(
                self._loaded(walked, recorder, _defaults(elements, {*inputs, *self.elements})), races=races
            )
        check_elements(walked.arguments, how.limits.max_elements)
        how.stage("values")
        casts = CastTally()
        done, memory = self._values(walked, inputs, how, ReadElements(), how.watch, casts)
        if how.watch is not None:
            how.watch.finish()
        outputs: dict[str, Codes] = {
            name: from_memory(memory.arguments[name], use) for name, use in done.arguments.items() if use.stored
        }
        return ExecutionResult(
            self._loaded(done, recorder, _undefined(memory)), outputs, races=races, casts=casts.finish()
        )

    def outputs_of(self, inputs: Sequence[Inputs], how: RunOptions) -> list[dict[str, Codes]]:
        """Return the outputs for each of several inputs; one walk computes all of them where only numbers differ.

        Raises: see `issue`.
        """
        body = self.function.body or ()
        if len(inputs) > 1 and not any(isinstance(node, _NOT_TOGETHER) for node in pto.nodes(body)):
            with suppress(SeparateRunsError):
                return self._together(inputs, how)
        return [dict(self.issue(each, how).outputs) for each in inputs]

    def _together(self, inputs: Sequence[Inputs], how: RunOptions) -> list[dict[str, Codes]]:
        uses = self._recorded(how, ReadElements())[0].arguments
        check_elements(uses, how.limits.max_elements)
        filled = [filled_memory(uses, each) for each in inputs]
        buffer = np.zeros((len(inputs), self.target.memories["ub"].capacity_bytes), np.uint8)
        memory = MicroMemory(buffer, {name: np.stack([each[name] for each in filled]) for name in uses})
        done = self._walk(self.units.unit(memory), how, ReadElements(), memory)
        stored = {name: use for name, use in done.arguments.items() if use.stored}
        return [
            {name: from_memory(memory.arguments[name][run], use) for name, use in stored.items()}
            for run in range(len(inputs))
        ]

    def _recorded(self, how: RunOptions, elements: ReadElements) -> tuple[Walked, RecordingUnit]:
        """Return the walk that finds what the program uses, and its recorder."""
        if how.limits in self.recorded:
            return self.recorded[how.limits]
        recorder = self.units.recorder(as_written=self.as_written)
        recorded = self._walk(recorder, how, ReadElements(elements.read)), recorder
        if not reads_memory(self.function.body or ()):
            self.recorded[how.limits] = recorded
        return recorded

    def _elements(self, inputs: Inputs, how: RunOptions) -> ReadElements:
        """Return the elements that the scalar unit reads: empty if the program has no such instruction.

        Values are computed for it even if the run computes none, with the sizes of arguments that the
        elements known so far require, until no new ones appear.

        Raises:
            ReadError: the sizes keep growing.
        """
        elements = ReadElements()
        if not reads_memory(self.function.body or ()):
            return elements
        for _ in range(_ROUNDS):
            walked = self._walk(PathOnly(), how, ReadElements(elements.read))
            check_elements(walked.arguments, how.limits.max_elements)
            missing = [name for name, use in walked.arguments.items() if use.needs_input and name not in inputs]
            given = inputs if how.values else {**inputs, **dict.fromkeys(missing, "zeros")}
            fresh = ReadElements()
            try:
                self._values(walked, given, how, fresh)
            except TileError:  # an argument is smaller than it will be once these elements are known
                if fresh.read == elements.read:
                    raise
            if fresh.read == elements.read:
                return fresh
            elements = fresh
        raise ReadError(
            f"@{self.entry}: the sizes of its arguments depend on elements that it reads, and {_ROUNDS} attempts "
            "found no consistent sizes", legal=("--in NAME=FILE.npy",),
        )  # fmt: skip

    def _values(
        self, walked: Walked, inputs: Inputs, how: RunOptions, elements: ReadElements, watch: Watch | None = None,
        casts: CastTally | None = None,
    ) -> tuple[Walked, MicroMemory]:  # fmt: skip
        """Walk the program with values; arguments have the sizes that another walk has used."""
        buffer = np.zeros(self.target.memories["ub"].capacity_bytes, np.uint8)
        memory = MicroMemory(
            buffer, filled_memory(walked.arguments, {**dict.fromkeys(self.elements, "zeros"), **inputs})
        )
        for name, given in self.elements.items():
            put_elements(memory.arguments[name], walked.arguments[name], given)
        unit = self.units.unit(memory, casts)
        return self._walk(unit if watch is None else watch.micro(unit, memory), how, elements, memory), memory

    def _walk(
        self, unit: VectorUnit, how: RunOptions, elements: ReadElements, memory: MicroMemory | None = None
    ) -> Walked:
        body, capacity = self.function.body or (), self.target.memories["ub"].capacity_bytes
        control = self.units.control_at_start(saturating=any(node.word("sat") for node in micro_operations(body)))
        tiles = any(isinstance(node, pto.Tcvt | pto.TileOperation) for node in pto.nodes(body))
        return walk_function(
            self.function, self.scalars, unit, capacity, how.limits.computed, control, memory, elements,
            lowerer_of(self.target) if tiles else None,
        )  # fmt: skip

    def _loaded(self, walked: Walked, recorder: RecordingUnit, further: Warnings = ()) -> Loaded:
        warnings = (*self.warnings, *walked.warnings, *recorder.warnings, *further)
        executed = Executed(recorder.tree, walked.arguments, warnings)
        return Loaded(self.file, self.entry, self.target, executed, source=self.text, untimed=recorder.untimed)


def micro_program(
    file: str,
    text: str,
    function: pto.Function,
    target: Target,
    scalars: Mapping[str, int | float],
    parsed: pto.Program,
    *,
    as_written: bool = False,
    elements: GivenElements | None = None,
) -> MicroProgram:
    """Return a function of vector instructions as a program ready to run.

    Raises:
        IllegalError: the target has no such instructions, or the program is for the matrix unit.
    """
    for key, value in (*parsed.attributes, *function.attributes):
        if key == "pto.kernel_kind" and "cube" in value:
            message = f"@{function.name} is for the matrix unit ({value})"
            raise IllegalError(message, span=function.span, legal=("#pto.kernel_kind<vector>",))
    try:
        units = vector_units_of(target)
    except IllegalError as error:
        raise error.at(function.span) from None
    lowered = units.lowered(function)
    return MicroProgram(
        file, lowered, target, scalars, parsed.warnings, text, units, parsed.attributes, function, as_written,
        elements or {},
    )  # fmt: skip


def _defaults(elements: ReadElements, inputs: Collection[str]) -> Warnings:
    """Add notes about elements without a given value."""
    return tuple(
        WarningText(WarningKind.DEFAULT_READ, f"no input for %{name}: its elements are taken as 0", span)
        for name, span in elements.arguments.items()
        if name not in inputs
    )


def _undefined(memory: MicroMemory) -> Warnings:
    """Add notes about outputs with undefined bytes."""
    warnings = []
    for name, marks in memory.undefined.items():
        count = int(np.count_nonzero(marks))
        if count:
            first = int(np.argmax(marks))
            text = (
                f"output {name}: {count} of its {marks.size} bytes are not defined, the first is byte {first}: "
                "they come from lanes or bytes of the buffer that nothing has written"
            )
            warnings.append(WarningText(WarningKind.UNDEFINED, text))
    return tuple(warnings)

"""Programs of vector instructions: walked once for what they use, and once more for their values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from castsim.execution.input_data import ArgumentUse, check_elements, check_known, filled_memory, from_memory
from castsim.execution.interpreter.arguments import Elements as GivenElements
from castsim.execution.interpreter.arguments import in_buffer
from castsim.execution.interpreter.interpreter import Executed
from castsim.execution.interpreter.lowerer import reads_memory
from castsim.execution.interpreter.memory import put_elements
from castsim.execution.interpreter.micro_interpreter import Walked, argument_format, walk_function
from castsim.execution.interpreter.vector_unit import MicroMemory, PathOnly, ReadElements, RecordingUnit, VectorUnit
from castsim.execution.outcomes import CastTally
from castsim.execution.run_limits import Limits
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
"""Walks after which sizes that rest on elements are given up."""


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
    """Those of the module."""
    written: pto.Function
    """The function as the text has it, with operations on logical registers."""
    as_written: bool = False
    """Whether nothing waits that the program does not make wait, even if it has no flags."""
    elements: GivenElements = field(default_factory=dict)
    """Single elements of arguments that were given."""
    recorded: dict[Limits, tuple[Walked, RecordingUnit]] = field(default_factory=dict, compare=False)
    """What the program uses, by limits, where no input decides it: every run of the program has that in common."""

    def __repr__(self) -> str:
        return f"<MicroProgram {self.file} @{self.entry} on {self.target.name}>"

    @property
    def entry(self) -> str:
        """The function that is run."""
        return self.function.name

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The tensor arguments; how much of them is used is known once the program has been walked."""
        return {
            each.name: ArgumentUse(argument_format(each.type))
            for each in self.function.arguments
            if isinstance(each.type, pto.PointerType) and not in_buffer(each.type)
        }

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Walk the program for what it uses, look for races, then walk it with values.

        Raises:
            RaceError, EngineError: there are races, and they stop the run.
        """
        for name in inputs:
            check_known(name, self.arguments)
        how.stage("path")
        found = self._elements(inputs, how)
        walked, recorder = self._recorded(how, found)
        # What is read and nothing wrote is followed byte by byte with the values.
        races = None if recorder.incomplete else races_of(recorder.tree, self.target, how, unwritten=False)[0]
        if not how.values:
            return ExecutionResult(
                self._loaded(walked, recorder, _defaults(found, {*inputs, *self.elements})), races=races
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

    def _recorded(self, how: RunOptions, found: ReadElements) -> tuple[Walked, RecordingUnit]:
        """Return the walk for what the program uses, and what it has recorded."""
        if how.limits in self.recorded:
            return self.recorded[how.limits]
        recorder = self.units.recorder(as_written=self.as_written)
        made = self._walk(recorder, how, ReadElements(found.read)), recorder
        if not reads_memory(self.function.body or ()):
            self.recorded[how.limits] = made
        return made

    def _elements(self, inputs: Inputs, how: RunOptions) -> ReadElements:
        """Return what the scalar unit reads: nothing where the program has no such instruction.

        Values are computed for it, also where the run computes none, with the sizes of arguments that the elements
        known so far ask for; until these find no others.

        Raises:
            ReadError: there is no end of it.
        """
        found = ReadElements()
        if not reads_memory(self.function.body or ()):
            return found
        for _ in range(_ROUNDS):
            walked = self._walk(PathOnly(), how, ReadElements(found.read))
            check_elements(walked.arguments, how.limits.max_elements)
            missing = [name for name, use in walked.arguments.items() if use.needs_input and name not in inputs]
            given = inputs if how.values else {**inputs, **dict.fromkeys(missing, "zeros")}
            fresh = ReadElements()
            try:
                self._values(walked, given, how, fresh)
            except TileError:  # an argument is smaller than it will be once these elements are known
                if fresh.read == found.read:
                    raise
            if fresh.read == found.read:
                return fresh
            found = fresh
        raise ReadError(
            f"@{self.entry}: the sizes of its arguments depend on elements that it reads, and {_ROUNDS} attempts "
            "found no consistent sizes", legal=("--in NAME=FILE.npy",),
        )  # fmt: skip

    def _values(
        self, walked: Walked, inputs: Inputs, how: RunOptions, elements: ReadElements, watch: Watch | None = None,
        casts: CastTally | None = None,
    ) -> tuple[Walked, MicroMemory]:  # fmt: skip
        """Walk the program with values, arguments being as long as another walk has used them."""
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
    """Return a function of vector instructions, ready to run.

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


def _defaults(found: ReadElements, inputs: Collection[str]) -> Warnings:
    """Say which elements nothing gives."""
    return tuple(
        WarningText(WarningKind.DEFAULT_READ, f"no input for %{name}: its elements are taken as 0", span)
        for name, span in found.arguments.items()
        if name not in inputs
    )


def _undefined(memory: MicroMemory) -> Warnings:
    """Say which outputs hold bytes that nothing has defined."""
    found = []
    for name, marks in memory.undefined.items():
        count = int(np.count_nonzero(marks))
        if count:
            first = int(np.argmax(marks))
            text = (
                f"output {name}: {count} of its {marks.size} bytes are not defined, the first is byte {first}: "
                "they come from lanes or bytes of the buffer that nothing has written"
            )
            found.append(WarningText(WarningKind.UNDEFINED, text))
    return tuple(found)

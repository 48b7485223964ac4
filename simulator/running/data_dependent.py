"""Tile programs that read elements of memory: their path is known once their inputs are.

Such a program is walked when it is issued. Inputs that are files or arrays say their size themselves; random ones are
drawn for the sizes that the program asks for, which may rest on what it reads: the walk is repeated until it asks for
what it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from castsim.execution.dataflow.idle import NO_VALUES, Idle
from castsim.execution.dataflow.uncomputed import TaintTracker
from castsim.execution.global_memory import check_elements
from castsim.execution.inputs import check_known, input_bytes, make_inputs, read_input
from castsim.execution.interpreter import ArgumentUse, Memory
from castsim.execution.interpreter.memory import Bytes
from castsim.execution.interpreter.opaque import is_opaque
from castsim.execution.interpreter.structure import reads_memory
from castsim.execution.limits import check_executions
from castsim.execution.tree import Block, Node, Tree
from castsim.isa import pto
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.pto.packed import element_format, held_format
from castsim.isa.pto.regions import nodes
from castsim.isa.sources import Source
from castsim.machines.mechanisms import compute_of
from castsim.running.loaded import ExecutionResult, Inputs, InTileLanguage, RunOptions, WalkedWhenIssued
from castsim.running.request import LoadRequest
from castsim.running.tiles import TileProgram, Walking, walking_of
from castsim.synchronisation.flags import INTERLOCK
from castsim.targets import Target

if TYPE_CHECKING:
    from castsim.running.micro import MicroProgram

_ROUNDS = 8
"""Walks after which sizes that rest on random values are given up."""


@dataclass(frozen=True, slots=True, repr=False)
class DataDependentProgram(WalkedWhenIssued, InTileLanguage):
    """A tile program that reads elements; see `castsim.running.loaded.LoadedProgram`."""

    walking: Walking

    @property
    def file(self) -> str:
        """What messages call it."""
        return self.walking.file

    @property
    def entry(self) -> str:
        """The function that is run."""
        return self.walking.function.name

    @property
    def target(self) -> Target:
        """The target that it is read for."""
        return self.walking.target

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The tensor arguments; how much of them is used is known once the program has been walked."""
        return {
            each.name: ArgumentUse(held_format(element_format(each.type.element))[0])
            for each in self.walking.function.arguments
            if isinstance(each.type, pto.PointerType)
        }

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Walk the program with its inputs, then do as with any other tile program."""
        for name in inputs:
            check_known(name, self.arguments)
        how.stage("path")
        return self.walked(inputs, how).issue(inputs, how)

    def walked(self, inputs: Inputs, how: RunOptions) -> TileProgram:
        """Return the program walked with its inputs.

        Raises:
            ReadError: random inputs decide how many of them there are, without end.
        """
        contents = _Contents(inputs, self.arguments, how)
        for _ in range(_ROUNDS):
            found = self.walking.program(self._memory(contents, how))
            if contents.fits(found.arguments):
                return found
            contents.sized = found.arguments
        raise ReadError(
            f"@{self.entry}: sizes of random inputs depend on their values, and {_ROUNDS} tries found none that agree",
            legal=("--in NAME=FILE.npy",),
        )

    def _opaque(self) -> bool:
        """Whether anything in the program is opaque."""
        named = self.walking.request.opaque
        return any(is_opaque(node, named) for node in nodes(self.walking.function.body or ()))

    def _memory(self, contents: _Contents, how: RunOptions) -> Memory:
        target = self.walking.target
        compute, idle = compute_of(target), Idle(NO_VALUES)
        followed = TaintTracker(np.zeros(target.memories["ub"].capacity_bytes, np.uint8)) if self._opaque() else None

        def settle(nodes: list[Node], buffer: Bytes, arguments: Mapping[str, Bytes]) -> None:
            tree = Tree(Block(tuple(nodes)), (), interlocked=False)
            check_executions(tree, how.limits.computed, "executions whose values the path needs", idle)
            if followed is not None:
                followed.grow(arguments)
            compute(tree, buffer, arguments, follower=followed)

        return Memory(
            contents.bytes_of,
            self.walking.elements,
            frozenset(contents.whole),
            frozenset() if contents.sized else frozenset(contents.drawn),
            settle if how.values else None,
            (lambda *_: None) if followed is None else followed.blamed,
            target.memories["ub"].capacity_bytes,
        )


@dataclass(slots=True)
class _Contents:
    """Inputs as bytes, made when they are asked for; random ones once the arguments are `sized`."""

    inputs: Inputs
    arguments: Mapping[str, ArgumentUse]
    how: RunOptions
    sized: Mapping[str, ArgumentUse] = field(default_factory=dict)
    asked: bool = False
    """Whether a random input has been asked for."""
    _made: dict[str, Bytes] = field(default_factory=dict)
    _drawn: dict[str, Codes] = field(default_factory=dict)

    @property
    def drawn(self) -> dict[str, str]:
        """The inputs whose size is what the program asks for."""
        return {
            name: text
            for name, text in self.inputs.items()
            if isinstance(text, str) and (text == "zeros" or text.startswith("random:"))
        }

    @property
    def whole(self) -> list[str]:
        """The inputs that say their size themselves."""
        return [name for name in self.inputs if name not in self.drawn]

    def bytes_of(self, name: str) -> Bytes | None:
        """Return an input; None if there is none, or not yet."""
        given = self.inputs.get(name)
        if given is None:
            return None
        if isinstance(given, str) and name in self.drawn:
            return self._random(name, given)
        if name not in self._made:
            array = read_input(given, name) if isinstance(given, str) else given
            self._made[name] = input_bytes(array, name, self.arguments[name].format)
        return self._made[name]

    def fits(self, uses: Mapping[str, ArgumentUse]) -> bool:
        """Whether a walk has asked for what it was given."""
        if not self.asked or _sizes(uses) == _sizes(self.sized):
            return True
        self._drawn = {}
        return False

    def _random(self, name: str, text: str) -> Bytes | None:
        if text == "zeros":
            return np.zeros(0, np.uint8)
        self.asked = True
        if not self.sized:
            return None
        if not self._drawn:
            check_elements(self.sized, self.how.limits.max_elements)
            self._drawn = make_inputs(self.drawn, self.sized)
        return input_bytes(self._drawn[name], name, self.arguments[name].format)


def _sizes(uses: Mapping[str, ArgumentUse]) -> dict[str, tuple[int, ...]]:
    return {name: use.shape for name, use in uses.items()}


def reads_elements(walking: Walking) -> bool:
    """Whether the path of a program rests on elements of memory."""
    return reads_memory(walking.function.body or ())


def load_tiles(source: Source, request: LoadRequest) -> TileProgram | DataDependentProgram | MicroProgram:
    """Read a `.pto` program, choose target and entry; walk, lower and synchronise it unless its inputs decide the path.

    Raises:
        ReadError: it cannot be read, has no such entry, or has flags that the request does not allow.
        IllegalError, TileError, ScratchError, LimitError: whatever an instruction is refused for.
    """
    walking = walking_of(source, request)
    if not isinstance(walking, Walking):
        return walking
    body = walking.function.body or ()
    if request.sync == INTERLOCK and any(isinstance(node, pto.ScalarAccess) for node in nodes(body)):
        raise ReadError(
            f"@{walking.function.name} accesses memory on the scalar unit, which needs flags; --sync interlock has none"
        )
    return DataDependentProgram(walking) if reads_elements(walking) else walking.program()

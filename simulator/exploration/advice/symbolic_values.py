"""The term of every byte of buffer and arguments while a tile program is followed from instruction to instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from castsim.execution.byte_sets import run_length
from castsim.execution.dataflow.idle import NO_VALUES, Idle
from castsim.execution.dataflow.operations import BLOCK, ScalarAccess, Transfer
from castsim.execution.dataflow.uncomputed import Unknown
from castsim.execution.dataflow.values import copy_bursts
from castsim.execution.interpreter import ArgumentUse
from castsim.execution.tree import (
    Access,
    Deltas,
    GlobalSpace,
    Lowered,
    Operation,
    Tree,
    accesses,
    instances,
    operations,
)
from castsim.execution.vector_operations.effect import TileEffect
from castsim.exploration.advice.effects import Memory, effect_terms, effect_words
from castsim.exploration.advice.tables import Known, Tables
from castsim.exploration.advice.value_numbering import Fingerprints, applied, gathered, joined, key_of, mixed, spread
from castsim.isa.codes import Codes
from castsim.isa.errors import TileError
from castsim.machines.strided.operations import Duplicate, Stream, VectorOperation
from castsim.machines.strided.values import apply_action
from castsim.machines.strided.whole_tile import NaturalMap
from castsim.machines.vector_function.operations import VectorFunction
from castsim.machines.vector_function.whole_tile import Side, WholeTile, apply_chain
from castsim.targets import TileTarget

MOST_BYTES = 1 << 25
"""Bytes of all arguments of a program that is followed."""


class UnprovenError(Exception):
    """Something whose term is not known."""


class Terms:
    """Terms by one seed; see `castsim.exploration.advice.value_numbering`."""

    def __init__(self, seed: int, target: TileTarget, arguments: Mapping[str, ArgumentUse]) -> None:
        self.seed = seed
        self.buffer: Fingerprints = np.zeros(target.memories["ub"].capacity_bytes, np.uint64)
        self.arguments = {name: self._initial(name, use) for name, use in arguments.items()}
        self.constants = np.array([key_of(seed, "byte", value) for value in range(256)], np.uint64)
        self.tables = Tables(seed)

    def _initial(self, name: str, use: ArgumentUse) -> Fingerprints:
        bits = use.format.bits if use.format.bits in (2, 4) else use.format.storage_bits
        size = (max([use.elements, *use.padded]) * bits + 7) // 8
        return mixed(np.arange(size, dtype=np.uint64) ^ key_of(self.seed, "argument", name))

    def follow(self, tree: Tree) -> None:
        """Take in every instruction that computes something.

        Raises:
            UnprovenError: one whose results are not known, or that reaches bytes that nothing has.
        """
        for lowered, deltas in instances(tree, Idle(NO_VALUES)):
            try:
                self.step(lowered, deltas)
            except (IndexError, ValueError) as error:
                raise UnprovenError(str(error)) from error

    def step(self, lowered: Lowered, deltas: Sequence[Deltas] | None) -> None:
        """Take in one instruction."""
        shortcut = lowered.shortcut
        if isinstance(shortcut, Unknown):
            raise UnprovenError(shortcut.name)
        if isinstance(shortcut, TileEffect):
            effect = shortcut if deltas is None else shortcut.moved(deltas[0])
            if not effect_terms(Memory(self.seed, self.buffer, self.constants), effect):
                self._whole(effect_key(effect), accesses(lowered, deltas))
            return
        if isinstance(shortcut, NaturalMap | WholeTile) and self._cast(shortcut, lowered, deltas):
            return
        for operation in operations(lowered, deltas):
            self._operation(operation, accesses(lowered, deltas))

    # ------------------------------------------------------------------------------------------------------- casts

    def _cast(self, whole: NaturalMap | WholeTile, lowered: Lowered, deltas: Sequence[Deltas] | None) -> bool:
        """Apply what is proven of a cast as a whole, moved by a loop or not; return whether that could be done."""
        if len(lowered.accesses) != 2:
            return False
        moved = (0, 0) if deltas is None else (deltas[0][0], deltas[0][1])
        written, read = accesses(lowered, deltas)
        if moved[0] != moved[1] and written.start < read.end and read.start < written.end:
            return False
        if isinstance(whole, NaturalMap):
            source, destination, filled = _side(whole.source), _side(whole.destination), 0
        else:
            source, destination, filled = whole.source, whole.destination, whole.filled
        how = whole.action if isinstance(whole, NaturalMap) else whole.chain
        start, shape = destination.address + moved[0], (whole.rows, whole.cols)
        terms = self._elements(source, source.address + moved[1], shape)
        self.buffer[start : start + filled] = self.constants[0]
        ends, size = (source.format, destination.format), destination.format.storage_bits // 8

        def step(codes: list[Codes]) -> Codes:
            if isinstance(whole, WholeTile):
                return apply_chain(whole.chain, codes[0])
            return apply_action(whole.action, codes, *ends, codes[0].shape)

        known = self.tables.result(("cast", how), [terms], *ends, step)
        if known is None:
            key = key_of(self.seed, "cast", source.format.name, destination.format.name, how)
            self._store(destination, start, applied(key, [terms], shape))
            return True
        self._store(destination, start, known.terms.reshape(shape))
        if destination.format.bits != 4:
            self.tables.remember(known, joined(spread(known.terms, size)))
        return True

    def _elements(self, side: Side, start: int, shape: tuple[int, int]) -> Fingerprints:
        rows, cols = shape
        if side.format.bits == 4:
            held = self._rows(start, side.pitch, (rows, (cols + 1) // 2, 1))[..., 0]
            return np.stack([mixed(held ^ np.uint64(n)) for n in (1, 2)], -1).reshape(rows, -1)[:, :cols]
        return joined(self._rows(start, side.pitch, (rows, cols, side.format.storage_bits // 8)))

    def _store(self, side: Side, start: int, terms: Fingerprints) -> None:
        rows, cols = terms.shape
        if side.format.bits == 4:
            if cols % 2:
                raise UnprovenError("half a byte is written")
            self._rows(start, side.pitch, (rows, cols // 2, 1))[..., 0] = joined(terms.reshape(rows, -1, 2))
            return
        size = side.format.storage_bits // 8
        self._rows(start, side.pitch, (rows, cols, size))[...] = spread(terms, size)

    def _rows(self, start: int, pitch: int, shape: tuple[int, int, int]) -> Fingerprints:
        """Return a view of rows of elements of so many bytes in the buffer."""
        rows, cols, size = shape
        if start < 0 or start + (rows - 1) * pitch + cols * size > self.buffer.size:
            raise UnprovenError("beyond the buffer")
        return as_strided(self.buffer[start:], shape, (pitch * 8, size * 8, 8), writeable=True)

    # -------------------------------------------------------------------------------------------------- operations

    def _operation(self, operation: Operation, touched: tuple[Access, ...]) -> None:
        if isinstance(operation, Transfer):
            self._transfer(operation)
        elif isinstance(operation, ScalarAccess):
            if operation.code:
                memory = self.buffer if operation.argument is None else self.arguments[operation.argument]
                end = operation.address + len(operation.code)
                memory[operation.address : end] = self.constants[np.frombuffer(operation.code, np.uint8)]
        elif isinstance(operation, VectorOperation):
            self._vector(operation)
        elif isinstance(operation, VectorFunction):
            plain = replace(operation, source=0, destination=0, operands=(0,) * len(operation.operands))
            self._whole(key_of(self.seed, plain), touched)

    def _transfer(self, operation: Transfer) -> None:
        pattern = self.constants[np.frombuffer(operation.pad_pattern, np.uint8)]
        try:
            copy_bursts(operation, self.buffer, self.arguments[operation.argument], pattern)
        except TileError as error:
            raise UnprovenError(str(error)) from error

    def _vector(self, operation: VectorOperation) -> None:
        """Run a strided-repeat instruction, one repeat after the other."""
        lanes = np.flatnonzero([operation.mask >> lane & 1 for lane in range(operation.lanes)])
        formats = [stream.format.name for stream in (*operation.sources, operation.destination)]
        if any(stream.format.bits == 4 for stream in (*operation.sources, operation.destination)):
            raise UnprovenError("elements of half a byte in a sequence of instructions")
        key = key_of(self.seed, "cast" if len(formats) == 2 else "step", *formats, operation.action)
        size = operation.destination.format.storage_bits // 8
        for repeat in range(operation.repeats if lanes.size else 0):
            places = _places(operation.destination, lanes, repeat)
            if isinstance(operation.action, Duplicate):
                code = self.constants[np.frombuffer(operation.action.value.to_bytes(size, "little"), np.uint8)]
                self.buffer[places] = code
                self.tables.constant(joined(code[None, :])[0], operation.action.value)
                continue
            sources = [joined(self.buffer[_places(stream, lanes, repeat)]) for stream in operation.sources]
            known = self._small(operation, sources)
            terms = applied(key, sources, (lanes.size,)) if known is None else known.terms
            self.buffer[places] = spread(terms, size)
            if known is not None:
                self.tables.remember(known, joined(spread(terms, size)))

    def _small(self, operation: VectorOperation, sources: list[Fingerprints]) -> Known | None:
        """Return the results of a repeat as functions of small elements, None if they are not."""
        ends = operation.sources[0].format, operation.destination.format
        if any(stream.format.name != ends[0].name for stream in operation.sources):
            return None

        def step(codes: list[Codes]) -> Codes:
            return apply_action(operation.action, codes, *ends, codes[0].shape)

        return self.tables.result(("step", operation.action), sources, *ends, step)

    def _whole(self, key: np.uint64, touched: tuple[Access, ...]) -> None:
        """Let every byte that is written rest on every byte that is touched."""
        base = min((access.start for access in touched if not isinstance(access.space, GlobalSpace)), default=0)
        meet = any(
            one.write and one is not other and one.start < other.end and other.start < one.end
            for one in touched
            for other in touched
        )
        parts = [np.array([key], np.uint64)]
        for access in touched:
            shape = (access.end - access.start, access.runs, access.start - base if meet else 0)
            parts += [np.array([key_of(self.seed, shape)], np.uint64), self._memory(access)[_offsets(access)]]
        digest = gathered(key, np.concatenate(parts))
        for number, access in enumerate(touched):
            if access.write:
                places = _offsets(access)
                self._memory(access)[places] = mixed(
                    digest ^ key_of(self.seed, number) ^ np.arange(places.size, dtype=np.uint64)
                )

    def _memory(self, access: Access) -> Fingerprints:
        return self.arguments[access.space.argument] if isinstance(access.space, GlobalSpace) else self.buffer


def effect_key(effect: TileEffect) -> np.uint64:
    """Return the fingerprint of an operation on tiles, wherever these lie and whatever they are called."""
    return key_of(0, *effect_words(effect), "whole")


def _side(stream: Stream) -> Side:
    return Side(stream.address, stream.repeat_stride * BLOCK, stream.format)


def _offsets(access: Access) -> np.ndarray:
    found = np.arange(run_length(access))
    for count, distance in reversed(access.runs):
        found = (np.arange(count)[:, None] * distance + found[None, :]).reshape(-1)
    return np.asarray(found + access.start)


def _places(stream: Stream, lanes: np.ndarray, repeat: int) -> np.ndarray:
    """Return the bytes of the active lanes of one repeat, shape (lanes, bytes)."""
    size = stream.format.storage_bits // 8
    inside = lanes * size // BLOCK * stream.block_stride * BLOCK + lanes * size % BLOCK
    return np.asarray(stream.address + repeat * stream.step + inside[:, None] + np.arange(size)[None, :])


def same_outputs(
    before: tuple[Tree, Mapping[str, ArgumentUse]], after: tuple[Tree, Mapping[str, ArgumentUse]], target: TileTarget
) -> bool:
    """Whether two programs store equal terms to the same bytes of their arguments; False also where that is open."""
    bits = sum(use.elements * use.format.storage_bits for use in before[1].values())
    if bits > MOST_BYTES * 8:
        return False
    for seed in (1, 2):
        found = []
        for tree, arguments in (before, after):
            terms = Terms(seed, target, arguments)
            try:
                terms.follow(tree)
            except UnprovenError:
                return False
            found.append(terms.arguments)
        if found[0].keys() != found[1].keys():
            return False
        if not all(np.array_equal(held, found[1][name]) for name, held in found[0].items()):
            return False
    return True

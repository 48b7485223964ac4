"""Terms of every byte of buffer and arguments, as a tile program is followed from instruction to instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.buffer_values import Unknown, copy_bursts
from castsim.execution.input_data import ArgumentUse
from castsim.execution.pipe_operations import BLOCK, NO_VALUES, Idle, ScalarElementAccess, Transfer
from castsim.execution.tree import (
    Access,
    Deltas,
    GlobalSpace,
    Lowered,
    Operation,
    ResolvedTileOp,
    Tile,
    Tree,
    accesses,
    instances,
    operations,
    run_length,
)
from castsim.execution.vector_operations.accesses import work_accesses
from castsim.execution.vector_operations.effect import TileEffect
from castsim.execution.vector_operations.shapes import is_column, vector_operand
from castsim.execution.vector_operations.target_rules import float_route
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import TileError
from castsim.isa.formats import Codes, Format
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.machines.strided.strided_instructions import DuplicateCode, Stream, StridedInstruction
from castsim.machines.strided.values import apply_action, lane_positions
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.machines.vector_function.values import Side, WholeTile, apply_chain
from castsim.numerics.blocks import code_dtype
from castsim.targets.loader import TileTarget

# What every byte of a program's results is made of, as a fingerprint: equal ones mean equal terms.
#
# A term says which cast or operation, with which mode and constants, was applied to which terms, down to the bytes of
# the inputs. Loads, stores and moves carry terms along. Two programs whose outputs have equal terms give equal bits
# for any input, on one and the same path. A fingerprint is a number of 64 bits; a proof compares two of each byte, by
# different seeds.

Fingerprints = NDArray[np.uint64]
"""One number for each byte, element, row or tile."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


_CACHED = 1 << 14
"""Numbers that are mixed at a time: few enough for the processor's cache."""


def mixed(numbers: Fingerprints) -> Fingerprints:
    """Return numbers mixed one by one, a bijection (the finaliser of SplitMix64)."""
    stirred = np.array(numbers, np.uint64, order="C")
    mix(stirred.reshape(-1))
    single: Fingerprints = stirred[()]  # a number stays one
    return single


def mix(flat: Fingerprints) -> None:
    """Mix the numbers of a vector where they are."""
    for start in range(0, flat.size, _CACHED):
        part = flat[start : start + _CACHED]
        part += _MULTIPLIER
        for shift, factor in ((30, _FIRST), (27, _SECOND)):
            part ^= part >> np.uint64(shift)
            part *= factor
        part ^= part >> np.uint64(31)


def key_of(seed: int, *words: object) -> np.uint64:
    """Return the fingerprint of a value's text form."""
    digest = blake2b(repr((seed, words)).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def applied(key: np.uint64, operands: Sequence[Fingerprints], shape: tuple[int, ...]) -> Fingerprints:
    """Return the terms of an operation applied elementwise to operands that broadcast to a shape."""
    terms = np.full(shape, key, np.uint64)
    for operand in operands:
        terms = mixed(terms * _MULTIPLIER ^ operand)
    return terms


def joined(parts: Fingerprints) -> Fingerprints:
    """Return one order-dependent term for each stretch along the last axis."""
    terms = np.full(parts.shape[:-1], _FIRST, np.uint64)
    for index in range(parts.shape[-1]):
        terms = mixed(terms * _MULTIPLIER ^ parts[..., index])
    return terms


def gathered(key: np.uint64, parts: Fingerprints) -> Fingerprints:
    """Return the same as `joined`, for long stretches."""
    places = mixed(np.arange(parts.shape[-1], dtype=np.uint64) + key)
    summed: Fingerprints = mixed(parts ^ places).sum(axis=-1, dtype=np.uint64)
    return mixed(summed ^ key)


def spread(terms: Fingerprints, count: int) -> Fingerprints:
    """Return the terms of the `count` bytes of each element, along a new last axis."""
    places = np.arange(1, count + 1, dtype=np.uint64) * _SECOND
    return mixed(terms[..., None] ^ places)


# The terms of what a vector operation on tiles computes, element by element, row by row, or as bytes that it moves.

_PER_ELEMENT = (
    Kind.ELEMENTWISE, Kind.BROADCAST, Kind.ROW_EXPAND, Kind.ROW_BROADCAST, Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST,
)  # fmt: skip
_PER_ROW = (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT)
_MOVED = (Kind.MOVE, Kind.FILL, Kind.TRANSPOSE, Kind.CONCATENATE, Kind.PATTERN_GATHER)


MOST_BYTES = 1 << 25
"""Maximum number of bytes of all arguments of a program that is followed."""


class UnprovenError(Exception):
    """The term of something is unknown."""


class SymbolicMemory:
    """The terms of the buffer's bytes by one seed, and those of the 256 constants that a byte can hold."""

    def __init__(self, seed: int, capacity: int) -> None:
        self.seed = seed
        self.buffer: Fingerprints = np.zeros(capacity, np.uint64)
        self.constants = np.array([key_of(seed, "byte", value) for value in range(256)], np.uint64)

    def rows(self, start: int, pitch: int, shape: tuple[int, int, int], across: int | None = None) -> Fingerprints:
        """Return a writable view of rows of elements of some bytes, adjacent unless they are `across` bytes apart."""
        rows, cols, size = shape
        across = size if across is None else across
        if start < 0 or start + (rows - 1) * pitch + (cols - 1) * across + size > self.buffer.size:
            raise UnprovenError("beyond the buffer")
        return as_strided(self.buffer[start:], shape, (pitch * 8, across * 8, 8), writeable=True)

    def elements(self, tile: Tile, rows: int, cols: int) -> Fingerprints:
        """Return a writable view of the bytes of a tile's first elements, shape (rows, cols, bytes)."""
        size = tile.element_bits // 8
        down, across = (size, tile.rows * size) if is_column(tile) else (tile.row_pitch, size)
        return self.rows(tile.address, down, (rows, cols, size), across)

    def valid(self, tile: Tile) -> Fingerprints:
        """Return the terms of a tile's valid elements."""
        return joined(self.elements(tile, tile.valid_rows, tile.valid_cols))


def effect_words(effect: TileEffect) -> tuple[object, ...]:
    """Return everything that determines an operation's effect on its elements, wherever they are and however many."""
    work, behaviour = effect.work, effect.behaviour
    in_place = [source.address == work.dst.address for source in work.sources]
    return (
        work.mnemonic, work.dst.format.name, [source.format.name for source in work.sources],
        [(code, fmt.name) for code, fmt in work.scalars], work.mode, work.scalar_first, work.binary, work.descending,
        work.pattern, work.by_columns, work.offset, behaviour.saturates, behaviour.uses_tmp, behaviour.choices,
        behaviour.window is None, in_place if VECTOR_OPERATIONS[work.mnemonic].divides_by_scalar else (),
    )  # fmt: skip


def effect_terms(memory: SymbolicMemory, effect: TileEffect) -> bool:
    """Follow an operation; False if only the bytes that it touches are known."""
    work, behaviour = effect.work, effect.behaviour
    kind = VECTOR_OPERATIONS[work.mnemonic].kind
    if float_route(work, behaviour.facts) is not None or any(
        tile.element_bits < 8 for tile in (work.dst, *work.sources)
    ):
        return False
    if behaviour.window is not None or work.mask is not None or work.counts is not None:
        return False
    if kind in _MOVED:
        _moved(memory, effect)
    elif kind in _PER_ELEMENT:
        _per_element(memory, effect, kind)
    elif kind in _PER_ROW:
        source = work.sources[0]
        key = key_of(memory.seed, *effect_words(effect), source.valid_cols)
        rows = gathered(key, memory.valid(source))
        _spoil_tmp(memory, work, rows)
        _write(memory, work.dst, rows[:, None])
    else:
        return False
    return True


def _per_element(memory: SymbolicMemory, effect: TileEffect, kind: Kind) -> None:
    work = effect.work
    operands = [memory.valid(source) for source in work.sources]
    if kind is Kind.ROW_EXPAND:
        operands = [operands[0][:, :1]]
    elif kind in (Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST):
        operands[-1] = operands[-1][:1]
    elif kind is Kind.ROW_BROADCAST:
        index = vector_operand(work)
        vector = operands[index]
        if not is_column(work.sources[index]):
            operands[index] = vector[:, np.arange(work.dst.valid_cols) % vector.shape[1]]
    if VECTOR_OPERATIONS[work.mnemonic].accumulates:
        operands.append(memory.valid(work.dst))
    shape = (work.dst.valid_rows, work.dst.valid_cols)
    terms = applied(key_of(memory.seed, *effect_words(effect)), operands, shape)
    _spoil_tmp(memory, work, terms)
    _write(memory, work.dst, terms)


def _write(memory: SymbolicMemory, tile: Tile, terms: Fingerprints) -> None:
    view = memory.elements(tile, *terms.shape)
    view[...] = spread(terms, view.shape[-1])


def _spoil_tmp(memory: SymbolicMemory, work: ResolvedTileOp, terms: Fingerprints) -> None:
    """Make the contents of a tmp tile depend on the whole operation."""
    if work.tmp is not None:
        key = key_of(memory.seed, "tmp", work.mnemonic, terms.shape)
        memory.buffer[work.tmp.address : work.tmp.end] = spread(gathered(key, terms.reshape(-1)), work.tmp.size)


def _moved(memory: SymbolicMemory, effect: TileEffect) -> None:
    """Run a move on the numbers of its bytes to get the source of each byte, and the constants."""
    work = effect.work
    touched = work_accesses(work, effect.behaviour)
    base, end = min(access.start for access in touched), max(access.end for access in touched)
    moved = effect.moved([-base] * len(touched))
    size = end - base
    numbers = np.arange(size)
    runs = [np.zeros(size, np.uint8), np.full(size, 255, np.uint8)]
    runs += [(numbers >> shift & 255).astype(np.uint8) for shift in (0, 8, 16)]
    for run in runs:
        moved.apply(run)
    constant = (runs[0] == runs[1]) & np.array(True)
    origin = runs[2].astype(np.int64) | runs[3].astype(np.int64) << 8 | runs[4].astype(np.int64) << 16
    before = memory.buffer[base:end].copy()
    memory.buffer[base:end] = np.where(
        constant, memory.constants[runs[0]], before[np.where(constant, 0, np.minimum(origin, size - 1))]
    )


# Casts of small elements as tables of all their codes, so that different steps with one result have one term.
#
# An element of 16 bits or fewer, and all that casts make of it, is a function of that element alone. Its term is made
# of the whole table of that function and of the term of the element that it began with, whatever steps led there.

MOST_BITS = 16

Step = Callable[[list[Codes]], Codes]
"""Function from the codes of every operand to those of the result."""


@dataclass(frozen=True, slots=True)
class Known:
    """Elements that are functions of others: `table` contains the results, by code, `roots` the terms of the others."""

    terms: Fingerprints
    roots: Fingerprints
    table: Codes


@dataclass(slots=True)
class SymbolicTables:
    """The known functions of elements that casts have produced, by one seed."""

    seed: int
    _known: dict[int, Known] = field(default_factory=dict)
    _constants: dict[int, int] = field(default_factory=dict)
    _made: dict[tuple[object, ...], Codes] = field(default_factory=dict)

    def constant(self, term: np.uint64, code: int) -> None:
        """Store the term of an element that is the same in every run."""
        self._constants[int(term)] = code

    def result(
        self, key: tuple[object, ...], operands: Sequence[Fingerprints], src: Format, dst: Format, step: Step
    ) -> Known | None:
        """Return the result of an operation on elements; None if it is not a function of one small element each.

        `key` names the operation; `operands` are the terms of flat elements, each in the format `src`.
        """
        operands_known = [self._operand(terms.reshape(-1), src) for terms in operands]
        varying = [operand for operand in operands_known if isinstance(operand, Known)]
        if not varying or None in operands_known:
            return None
        roots, size = varying[0].roots, varying[0].table.size
        if any(operand.table.size != size or not np.array_equal(operand.roots, roots) for operand in varying):
            return None
        inner = tuple(
            operand if isinstance(operand, int) else id(operand.table)
            for operand in operands_known
            if operand is not None
        )
        name = (*key, src.name, dst.name, inner)
        if name not in self._made:
            dtype = code_dtype(src)
            codes = [
                np.full(size, operand, dtype) if isinstance(operand, int) else operand.table.astype(dtype)
                for operand in operands_known
                if operand is not None
            ]
            self._made[name] = self._interned(np.asarray(step(codes)))
        table = self._made[name]
        terms = applied(
            key_of(self.seed, "table", blake2b(table.astype(np.uint64).tobytes(), digest_size=16).hexdigest()),
            [roots],
            roots.shape,
        )
        return Known(terms, roots, table)

    def remember(self, tabulated: Known, terms: Fingerprints) -> None:
        """Store the elements' tables by the terms under which they will be read."""
        if terms.size:
            self._known[int(terms.reshape(-1)[0])] = Known(terms.reshape(-1), tabulated.roots, tabulated.table)

    def _operand(self, terms: Fingerprints, src: Format) -> Known | int | None:
        if not terms.size:
            return None
        first = int(terms[0])
        if first in self._constants and bool((terms == terms[0]).all()):
            return self._constants[first]
        candidate = self._known.get(first)
        if candidate is not None and np.array_equal(candidate.terms, terms):
            return candidate
        if src.bits > MOST_BITS:
            return None
        name = ("identity", src.bits)
        if name not in self._made:
            self._made[name] = self._interned(np.arange(1 << src.bits).astype(code_dtype(src)))
        return Known(terms, terms, self._made[name])

    def _interned(self, table: Codes) -> Codes:
        return next(
            (
                known_table
                for known_table in self._made.values()
                if known_table.dtype == table.dtype and np.array_equal(known_table, table)
            ),
            table,
        )


class SeededTerms(SymbolicMemory):
    """Terms by one seed; see `castsim.tools.advise.symbolic_values`."""

    def __init__(self, seed: int, target: TileTarget, arguments: Mapping[str, ArgumentUse]) -> None:
        super().__init__(seed, target.memories["ub"].capacity_bytes)
        self.arguments = {name: self._initial(name, use) for name, use in arguments.items()}
        self.tables = SymbolicTables(seed)

    def _initial(self, name: str, use: ArgumentUse) -> Fingerprints:
        bits = use.format.bits if use.format.bits in (2, 4) else use.format.storage_bits
        size = (max([use.elements, *use.padded]) * bits + 7) // 8
        numbers = np.arange(size, dtype=np.uint64)
        numbers ^= key_of(self.seed, "argument", name)
        mix(numbers)
        return numbers

    def follow(self, tree: Tree) -> None:
        """Follow every instruction that computes something.

        Raises:
            UnprovenError: the results of an instruction are unknown, or it reaches bytes that nothing has.
        """
        for lowered, deltas in instances(tree, Idle(NO_VALUES)):
            try:
                self.step(lowered, deltas)
            except (IndexError, ValueError) as error:
                raise UnprovenError(str(error)) from error

    def step(self, lowered: Lowered, deltas: Sequence[Deltas] | None) -> None:
        """Follow one instruction."""
        shortcut = lowered.shortcut
        if isinstance(shortcut, Unknown):
            raise UnprovenError(shortcut.name)
        if isinstance(shortcut, TileEffect):
            effect = shortcut if deltas is None else shortcut.moved(deltas[0])
            if not effect_terms(self, effect):
                key = key_of(0, *effect_words(effect), "whole")  # wherever its tiles lie
                self._whole(key, accesses(lowered, deltas))
            return
        if isinstance(shortcut, StridedInstruction | WholeTile) and self._cast(shortcut, lowered, deltas):
            return
        for operation in operations(lowered, deltas):
            self._operation(operation, accesses(lowered, deltas))

    # ------------------------------------------------------------------------------------------------------- casts

    def _cast(self, whole: StridedInstruction | WholeTile, lowered: Lowered, deltas: Sequence[Deltas] | None) -> bool:
        """Apply the proven effect of a cast as a whole, moved by a loop or not; return whether that was possible."""
        if len(lowered.accesses) != 2:
            return False
        moved = (0, 0) if deltas is None else (deltas[0][0], deltas[0][1])
        written, read = accesses(lowered, deltas)
        if moved[0] != moved[1] and written.start < read.end and read.start < written.end:
            return False
        if isinstance(whole, StridedInstruction):
            source, destination, filled = _side(whole.sources[0]), _side(whole.destination), 0
            shape = whole.repeats, whole.lanes
        else:
            source, destination, filled = whole.source, whole.destination, whole.filled
            shape = whole.rows, whole.cols
        how = whole.action if isinstance(whole, StridedInstruction) else whole.chain
        start = destination.address + moved[0]
        terms = self._elements(source, source.address + moved[1], shape)
        self.buffer[start : start + filled] = self.constants[0]
        ends, size = (source.format, destination.format), destination.format.storage_bits // 8

        def step(codes: list[Codes]) -> Codes:
            if isinstance(whole, WholeTile):
                return apply_chain(whole.chain, codes[0])
            return apply_action(whole.action, codes, *ends)

        tabulated = self.tables.result(("cast", how), [terms], *ends, step)
        if tabulated is None:
            key = key_of(self.seed, "cast", source.format.name, destination.format.name, how)
            self._store(destination, start, applied(key, [terms], shape))
            return True
        self._store(destination, start, tabulated.terms.reshape(shape))
        if destination.format.bits != 4:
            self.tables.remember(tabulated, joined(spread(tabulated.terms, size)))
        return True

    def _elements(self, side: Side, start: int, shape: tuple[int, int]) -> Fingerprints:
        rows, cols = shape
        if side.format.bits == 4:
            packed = self.rows(start, side.pitch, (rows, (cols + 1) // 2, 1))[..., 0]
            return np.stack([mixed(packed ^ np.uint64(n)) for n in (1, 2)], -1).reshape(rows, -1)[:, :cols]
        return joined(self.rows(start, side.pitch, (rows, cols, side.format.storage_bits // 8)))

    def _store(self, side: Side, start: int, terms: Fingerprints) -> None:
        rows, cols = terms.shape
        if side.format.bits == 4:
            if cols % 2:
                raise UnprovenError("half a byte is written")
            self.rows(start, side.pitch, (rows, cols // 2, 1))[..., 0] = joined(terms.reshape(rows, -1, 2))
            return
        size = side.format.storage_bits // 8
        self.rows(start, side.pitch, (rows, cols, size))[...] = spread(terms, size)

    # -------------------------------------------------------------------------------------------------- operations

    def _operation(self, operation: Operation, touched: tuple[Access, ...]) -> None:
        if isinstance(operation, Transfer):
            self._transfer(operation)
        elif isinstance(operation, ScalarElementAccess):
            if operation.code:
                memory = self.buffer if operation.argument is None else self.arguments[operation.argument]
                end = operation.address + len(operation.code)
                memory[operation.address : end] = self.constants[np.frombuffer(operation.code, np.uint8)]
        elif isinstance(operation, StridedInstruction):
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

    def _vector(self, operation: StridedInstruction) -> None:
        """Follow a strided-repeat instruction, one repeat after the other."""
        lanes = np.flatnonzero([operation.mask >> lane & 1 for lane in range(operation.lanes)])
        formats = [stream.format.name for stream in (*operation.sources, operation.destination)]
        if any(stream.format.bits == 4 for stream in (*operation.sources, operation.destination)):
            raise UnprovenError("elements of half a byte in a sequence of instructions")
        key = key_of(self.seed, "cast" if len(formats) == 2 else "step", *formats, operation.action)
        size = operation.destination.format.storage_bits // 8
        for repeat in range(operation.repeats if lanes.size else 0):
            places = _places(operation.destination, lanes, repeat)
            if isinstance(operation.action, DuplicateCode):
                code = self.constants[np.frombuffer(operation.action.value.to_bytes(size, "little"), np.uint8)]
                self.buffer[places] = code
                self.tables.constant(joined(code[None, :])[0], operation.action.value)
                continue
            sources = [joined(self.buffer[_places(stream, lanes, repeat)]) for stream in operation.sources]
            small = self._small(operation, sources)
            terms = applied(key, sources, (lanes.size,)) if small is None else small.terms
            self.buffer[places] = spread(terms, size)
            if small is not None:
                self.tables.remember(small, joined(spread(terms, size)))

    def _small(self, operation: StridedInstruction, sources: list[Fingerprints]) -> Known | None:
        """Return the results of a repeat as functions of small elements, None if they are not."""
        ends = operation.sources[0].format, operation.destination.format
        if any(stream.format.name != ends[0].name for stream in operation.sources):
            return None

        def step(codes: list[Codes]) -> Codes:
            return apply_action(operation.action, codes, *ends)

        return self.tables.result(("step", operation.action), sources, *ends, step)

    def _whole(self, key: np.uint64, touched: tuple[Access, ...]) -> None:
        """Make every written byte depend on every touched byte."""
        base = min((access.start for access in touched if not isinstance(access.space, GlobalSpace)), default=0)
        meet = any(
            writer.write and writer is not other and writer.start < other.end and other.start < writer.end
            for writer in touched
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


def _side(stream: Stream) -> Side:
    return Side(stream.address, stream.repeat_stride * BLOCK, stream.format)


def _offsets(access: Access) -> np.ndarray:
    offsets = np.arange(run_length(access))
    for count, distance in reversed(access.runs):
        offsets = (np.arange(count)[:, None] * distance + offsets[None, :]).reshape(-1)
    return np.asarray(offsets + access.start)


def _places(stream: Stream, lanes: np.ndarray, repeat: int) -> np.ndarray:
    """Return the bytes of the active lanes of one repeat, shape (lanes, bytes)."""
    return np.asarray(lane_positions(stream, lanes, repeat, 1)[0][:, None] + np.arange(stream.format.storage_bits // 8))


@dataclass(slots=True)
class OutputTerms:
    """The terms that a program stores to the bytes of its arguments, computed once for all comparisons with others."""

    tree: Tree
    arguments: Mapping[str, ArgumentUse]
    target: TileTarget
    _digests: dict[int, Mapping[str, bytes] | None] = field(default_factory=dict)

    def by_seed(self, seed: int) -> Mapping[str, bytes] | None:
        """Return the digest of each output's terms by one seed; None if they are unknown."""
        if seed not in self._digests:
            terms = SeededTerms(seed, self.target, self.arguments)
            try:
                terms.follow(self.tree)
            except UnprovenError:
                self._digests[seed] = None
            else:
                outputs = [name for name, use in self.arguments.items() if use.stored]
                self._digests[seed] = {name: blake2b(terms.arguments[name].data).digest() for name in outputs}
        return self._digests[seed]


def same_outputs(before: OutputTerms, after: OutputTerms) -> bool:
    """Return whether two programs store equal terms to the same bytes of their arguments; False if unknown."""
    bits = sum(use.elements * use.format.storage_bits for use in before.arguments.values())
    if bits > MOST_BYTES * 8:
        return False
    return all((terms := before.by_seed(seed)) is not None and terms == after.by_seed(seed) for seed in (1, 2))

"""Conversion of the operation tree to rows: every distinct operation and instruction once, however often it runs.

Irrelevant data is left out: values, global memory (unless the program both reads and writes it), and
whole turns of the addresses around the banks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from math import gcd, lcm
from typing import Protocol

from castsim.engines.fast_dataflow import state
from castsim.engines.fast_dataflow.execution_rows import MachineMemory
from castsim.engines.fast_dataflow.state import (
    BEGIN,
    CAUSES,
    CHECKPOINT_TOKEN,
    END,
    FENCE,
    FENCE_ALL,
    MEMORY_LATENCY,
    NONE,
    PART,
    SCALAR,
    SCALAR_PIPE,
    SET,
    TRANSFER,
    WAIT,
    WHOLE,
    WIDTH,
)
from castsim.execution.pipe_operations import (
    ALL_PIPES,
    ControlWrite,
    FlagSignal,
    FlagWait,
    PipeBarrier,
    Placeholder,
    ScalarElementAccess,
    ScalarWork,
    Survey,
    Transfer,
    cost_of,
)
from castsim.execution.transfer_timing import SharedMemory, TransferPlan, latency_ahead
from castsim.execution.tree import (
    Access,
    Block,
    Deltas,
    Loop,
    Lowered,
    Node,
    Operation,
    Tree,
    accesses,
    elements,
    width,
)
from castsim.isa.dataclass import dataclass, field
from castsim.targets.dataflow import DataflowTarget

# What a mechanism adds to the fast engine: its operations as rows of numbers, its banks.
#
# A unit is to a vector pipe what `event_pipes.VectorUnit` is in the event engine.


@dataclass(frozen=True, slots=True)
class UnitOperation:
    """An operation of the vector unit: its kind, the number of its row, and the facts behind it."""

    kind: int
    row: int
    facts: tuple[str, ...]


class EncodedUnit(Protocol):
    """The vector unit of one target."""

    def set_up(self, memory: MachineMemory) -> int:
        """Store ports and banks of the buffer in a machine, and the facts behind all operations.

        Returns the number of bytes after which addresses are in the same banks again.
        """

    def check(self, operation: object) -> None:
        """Reject an operation of the vector pipe that the unit cannot execute.

        Raises:
            IllegalError: it belongs to another mechanism, or the target lacks a fact that it needs.
        """

    def encode(self, operation: Operation, addresses: tuple[int, ...], encoder: Encoder) -> UnitOperation:
        """Store the operation, with these addresses, in the tables of the program."""


Key = tuple[str, str, int]
"""Signaller, waiter, event id of a flag."""


@dataclass(slots=True)
class Encoder:
    """The rows of one program on one target; pipes are numbered from the scalar unit on (`pipes`).

    `memory` is the machine at the start of the program. `operations` are those of the rows, by number; `flags`
    and `spaces` are rows too. Addresses repeat after a `turn` of bytes. `most_spans` are those of the longest
    placed function.
    """

    tree: Tree
    survey: Survey
    target: DataflowTarget
    unit: EncodedUnit
    pipes: tuple[str, ...]
    recording: bool
    memory: MachineMemory = field(default_factory=MachineMemory)
    operations: list[Operation] = field(default_factory=list)
    flags: dict[Key, int] = field(default_factory=dict)
    spaces: dict[str, int] = field(default_factory=dict)
    facts: set[str] = field(default_factory=set)
    turn: int = 0
    most_spans: int = 0
    shared: SharedMemory | None = field(init=False)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)
    _known_numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    _lowered: dict[tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shared = SharedMemory.of(self.tree, self.target)
        self.turn = self.unit.set_up(self.memory)
        if self.tree.interlocked:
            self.spaces = {
                space: self.memory.append("spaces", [state.SpaceRow()]) for space in self.survey.followed_spaces()
            }
        self._set_up_pipes()

    def _set_up_pipes(self) -> None:
        memory, m, count = self.memory, self.memory.machine, len(self.pipes)
        m.recording, m.interlocked, m.pipe_count = int(self.recording), int(self.tree.interlocked), count
        for table in ("pipes", "accounts", "progress"):
            memory.take(table, count)
        memory.take("causes", count * WIDTH)
        for pipe, name in zip(m.pipes[1:], self.pipes[1:], strict=True):
            pipe.remaining = self.survey.operations[name]
            pipe.reach = latency_ahead(self.target, name)
            if name == self.target.pipes.store:
                pipe.behind = MEMORY_LATENCY
            m.issuer.remaining += pipe.remaining
        memory.make_room()

    # ---------------------------------------------------------------------------------------------- instructions

    def lowered(self, instruction: int, operations: Sequence[int], accesses: Iterable[Access] = ()) -> int:
        """Return the row of an instruction, or part of one, that issues these operations and touches these bytes."""
        followed = [
            (self.spaces[access.space], access.start, access.end, int(access.write))
            for access in accesses
            if access.space in self.spaces and access.start < access.end
        ]
        key = (instruction, tuple(operations), tuple(followed))
        index = self._lowered.get(key)
        if index is None:
            m = self.memory.machine
            m.most_accesses = max(m.most_accesses, len(followed))
            first = self.memory.append("numbers", operations)
            first_access = self.memory.append("accesses", [state.AccessRow(*fields) for fields in followed])
            row = state.LoweredRow(instruction, first, len(operations), first_access, len(followed))
            index = self._lowered[key] = self.memory.append("lowered", [row])
        return index

    # ------------------------------------------------------------------------------------------------ operations

    def operation(self, operation: Operation, deltas: Deltas | None) -> int:
        """Return the row of an operation of the tree whose addresses have moved by `deltas`."""
        moved = operation.addresses
        if deltas is not None:
            moved = tuple(address + delta for address, delta in zip(moved, deltas, strict=True))
        if isinstance(operation, Transfer):
            moved = moved[:1]  # the other end is in global memory
        elif isinstance(operation, ScalarElementAccess):
            moved = ()  # no port serves it
        moved = tuple(address % self.turn for address in moved)
        key = (id(operation), *moved)
        encoded = self._known.get(key)
        if encoded is None:
            encoded = self._known[key] = self._encode(operation, moved)
        return encoded

    def _encode(self, operation: Operation, addresses: tuple[int, ...]) -> int:
        cost, cause, facts = cost_of(operation, self.target)
        self.facts.update(facts)
        sent = (operation, cost, CAUSES.index(cause))
        match operation:
            case ScalarWork() | ScalarElementAccess():
                return self._add(*sent, SCALAR)
            case ControlWrite(pipe=name) if name == self.pipes[SCALAR_PIPE]:
                return self._add(*sent, SCALAR)
            case Placeholder(pipe=name) if name == self.pipes[SCALAR_PIPE]:
                return self._add(*sent, SCALAR)
            case Placeholder(cycles=cycles):
                nothing = state.TransferRow(0, 0, 1, 1, 0, 0, 0, 0, 0, streaming=cycles, overlaps=0)
                return self._add(*sent, TRANSFER, row=self.memory.append("transfers", [nothing]))
            case FlagSignal():
                return self._add(*sent, SET, flag=self._flag((operation.pipe, operation.waiter, operation.event)))
            case FlagWait():
                return self._add(*sent, WAIT, flag=self._flag((operation.signaller, operation.pipe, operation.event)))
            case PipeBarrier(pipe=name):
                return self._add(
                    *sent, FENCE_ALL if name == ALL_PIPES else SCALAR if name == self.pipes[SCALAR_PIPE] else FENCE
                )
            case Transfer():
                return self._add(*sent, TRANSFER, row=self._transfer(operation, addresses[0]))
        encoded = self.unit.encode(operation, addresses, self)
        self.facts.update(encoded.facts)
        return self._add(*sent, encoded.kind, row=encoded.row)

    def _add(self, operation: Operation, cost: int, cause: int, kind: int, *, flag: int = NONE, row: int = NONE) -> int:
        pipe = SCALAR_PIPE if operation.pipe == ALL_PIPES else self.pipes.index(operation.pipe)
        self.operations.append(operation)
        return self.memory.append("operations", [state.OperationRow(kind, pipe, cost, cause, flag, row)])

    def _flag(self, key: Key) -> int:
        if key not in self.flags:
            from_scalar = int(key[0] == self.pipes[SCALAR_PIPE])
            self.flags[key] = self.memory.append("flags", [state.FlagRow(from_scalar=from_scalar)])
        return self.flags[key]

    def _transfer(self, operation: Transfer, address: int) -> int:
        """Put a transfer into its table."""
        plan = TransferPlan.of(operation, self.target, self.shared)
        self.facts.update(plan.facts)
        row = state.TransferRow(
            ahead=plan.ahead,
            behind=plan.behind,
            rate=plan.rate,
            per=plan.per,
            # A load writes the buffer in the event engine's words: it takes the port of its direction.
            write=int(operation.load),
            address=address,
            pitch=operation.ub_pitch,
            bursts=operation.bursts,
            burst_bytes=operation.burst_bytes,
            streaming=plan.streaming,
            overlaps=int(plan.overlaps),
            blocks=plan.blocks,
            turns=plan.turns,
        )
        return self.memory.append("transfers", [row])

    # ---------------------------------------------------------------------------------------- what units need

    def integers(self, numbers: tuple[int, ...]) -> int:
        """Store integers and return their first index in `numbers`."""
        index = self._known_numbers.get(numbers)
        if index is None:
            index = self._known_numbers[numbers] = self.memory.append("numbers", numbers)
        return index


# The program as a stream of tokens, made as far as the scalar unit needs it; loops may be cut short while they run.
#
# A token asks for a whole instruction, or, where an instruction holds a long loop, for its beginning, some of its
# operations, or its end. Before every trip of a long loop that is worth it the stream stops for a look at the machine.

_PIECE = 4096
"""Tokens that are made at once."""
_FLAT = 64
"""Maximum number of operations of a loop that is unrolled without looking for a steady state."""
_WINDOWS = (8, 64)
"""Number of trips compared with each other: the first ones, and up to so many from every power of four on."""
_SHARE = 2
"""Maximum number of state rows read by a comparison for each operation executed until the next one: reading a row takes
about as long as executing an operation."""
_PROMISE = 64
"""Maximum number of comparisons of a loop made regardless of that, if the rest of the loop is worth them."""
_LOOK = 1024
"""Items of straight-line code that are looked at together for repetition."""
_LONGEST = 256
"""Maximum number of items of a repetition."""
_FEWEST = 4
"""Minimum number of repetitions."""

Moves = Sequence[Deltas] | None


@dataclass(frozen=True, slots=True)
class LoopSteps:
    """The movement from trip to trip of a loop that affects time: `moves` is None if there is none.

    The machine can be in the same state again only after a multiple of `turn` trips, when all addresses lie in the
    same banks. `spaces` is the movement of accesses per trip for each address space; None: not uniform.
    `pipes` are those with work in the loop.
    """

    moves: tuple[Deltas, ...] | None
    turn: int
    spaces: dict[int, int] | None
    pipes: frozenset[str]


@dataclass(slots=True, eq=False)
class Frame:
    """A running loop. It is before trip `trip`; skipped trips are added to it.

    A trip has `size` operations. The larger the state, the rarer are comparisons: every `pace` turns.
    """

    loop: Loop
    size: int
    steps: LoopSteps
    trip: int = 0
    pace: int = 1
    context: object = None

    def is_watched(self) -> bool:
        """Return whether this trip begins with a comparison of the machine."""
        apart = self.steps.turn * self.pace
        if self.steps.spaces is None or self.trip % apart or self.loop.trips - self.trip < 2 * apart:
            return False
        return self.is_in_window()

    def is_worth(self, rows: int) -> bool:
        """Whether this trip still begins with a comparison that has to read some rows; reduce the pace if necessary.

        The total read is limited by the executed operations: it would be wasted on short loops behind full queues.
        """
        share = _SHARE * self.size * self.steps.turn
        ahead = (self.loop.trips - self.trip) // self.steps.turn // _PROMISE
        while rows > share * max(self.pace, ahead):
            self.pace *= 2
        return self.is_watched()

    def is_in_window(self) -> bool:
        """Return whether this trip is one of those whose states are compared completely."""
        number = self.trip // (self.steps.turn * self.pace)
        return number - _window(number) < max(_WINDOWS[0], min(_window(number) // 2, _WINDOWS[1]))

    def opens_window(self) -> bool:
        """Return whether earlier states are no longer compared."""
        number = self.trip // (self.steps.turn * self.pace)
        return number == _window(number)


@dataclass(slots=True)
class Piece:
    """Tokens, the loop to compare after them (None: none), and the loop that they are part of."""

    tokens: list[int]
    frame: Frame | None = None
    inside: Frame | None = None


@dataclass(slots=True)
class TokenStream:
    """The tokens of a program. `skips`: whether to stop for comparisons."""

    encoder: Encoder
    skips: bool
    _pending: list[int] = field(default_factory=list)
    _whole: dict[int, int] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    _steps: dict[int, LoopSteps] = field(default_factory=dict)
    _frames: list[Frame] = field(default_factory=list)
    _made: list[Loop] = field(default_factory=list)

    def pieces(self) -> Iterator[Piece]:
        """Yield the program piece by piece."""
        yield from self._node(self.encoder.tree.root, None)
        yield self._cut()

    def _cut(self, frame: Frame | None = None) -> Piece:
        tokens, self._pending = self._pending, []
        if frame is not None:
            tokens.append(CHECKPOINT_TOKEN)
        return Piece(tokens, frame, self._frames[-1] if self._frames else None)

    # ------------------------------------------------------------------------------------------------ instructions

    def _node(self, node: Node, moves: Moves) -> Iterator[Piece]:
        if isinstance(node, Block):
            if moves is None:
                yield from self._still(node.items)
            else:
                for item, own in _moved(node, moves):
                    yield from self._node(item, own)
        elif isinstance(node, Loop):
            yield from self._loop(node, moves, self._node)
        elif isinstance(node, Lowered):
            yield from self._lowered(node, moves)
        else:
            raise TypeError("an operation outside an instruction")

    def _still(self, items: tuple[Node, ...]) -> Iterator[Piece]:
        """Yield a block that no loop has moved: repetitions as loops, the rest unchanged."""
        first = 0
        while first < len(items):
            period, end = _repetition(items, first) if self.skips else (0, min(first + _PIECE, len(items)))
            if period:
                trips = (end - first) // period
                yield from self._loop(self._folded(items[first : first + period], trips), None, self._node)
                first += trips * period
            else:
                yield from self._as_it_comes(items[first:end])
                first = end

    def _folded(self, items: tuple[Node, ...], trips: int) -> Loop:
        """Return the loop that a straight-line program has unrolled; the caller keeps it, as loops are known by id."""
        body = Block(items)
        loop = Loop(trips, body, tuple((0,) * len(element.addresses) for element in elements(body)))
        self._made.append(loop)
        return loop

    def _as_it_comes(self, items: tuple[Node, ...]) -> Iterator[Piece]:
        """Yield instructions; those encountered before cost one look-up."""
        whole = self._whole
        for first in range(0, len(items), _PIECE):
            part = items[first : first + _PIECE]
            tokens = [whole.get(id(item), _UNKNOWN) for item in part]
            if _UNKNOWN not in tokens:
                self._pending += tokens
            else:
                for item in part:
                    token = whole.get(id(item))
                    if token is None:
                        yield from self._node(item, None)
                    else:
                        self._pending.append(token)
            if len(self._pending) >= _PIECE:
                yield self._cut()

    def _lowered(self, lowered: Lowered, moves: Moves) -> Iterator[Piece]:
        inner = None if moves is None else moves[1:]
        if self._is_short(lowered.body):
            rows: list[int] = []
            self._collect(lowered.body, inner, rows)
            row = self.encoder.lowered(lowered.instruction, rows, accesses(lowered, moves))
            self._pending.append(row << 2 | WHOLE)
            if moves is None:
                self._whole[id(lowered)] = row << 2 | WHOLE
        else:
            row = self.encoder.lowered(lowered.instruction, (), accesses(lowered, moves))
            self._pending.append(row << 2 | BEGIN)
            yield from self._part(lowered.body, inner)
            self._pending.append(row << 2 | END)
        if len(self._pending) >= _PIECE:
            yield self._cut()

    # -------------------------------------------------------------------------------------------------- operations

    def _part(self, node: Node, moves: Moves) -> Iterator[Piece]:
        """Yield the operations of an instruction that holds a long loop."""
        if isinstance(node, Loop) and not self._is_short(node):
            yield from self._loop(node, moves, self._part)
        elif isinstance(node, Block) and not self._is_short(node):
            for item, own in _moved(node, moves):
                yield from self._part(item, own)
        else:
            rows: list[int] = []
            self._collect(node, moves, rows)
            self._pending.append(self.encoder.lowered(NONE, rows) << 2 | PART)
            if len(self._pending) >= _PIECE:
                yield self._cut()

    def _collect(self, node: Node, moves: Moves, rows: list[int]) -> None:
        """Append the rows of all operations of a node, loops unrolled."""
        if isinstance(node, Block):
            for item, own in _moved(node, moves):
                self._collect(item, own, rows)
        elif isinstance(node, Loop):
            steps = self._steps_of(node).moves
            for trip in range(node.trips):
                self._collect(node.body, _advanced(moves, steps, trip), rows)
        elif isinstance(node, Lowered):
            raise TypeError("an instruction cannot contain another one")
        else:
            rows.append(self.encoder.operation(node, None if moves is None else moves[0]))

    def _is_short(self, node: Node) -> bool:
        return self._size(node) <= _FLAT

    def _size(self, node: Node) -> int:
        """Return the number of operations that a node executes."""
        if not isinstance(node, Block | Loop):
            return 1
        size = self._sizes.get(id(node))
        if size is None:
            if isinstance(node, Loop):
                size = node.trips * self._size(node.body)
            else:
                size = sum(self._size(item.body if isinstance(item, Lowered) else item) for item in node.items)
            self._sizes[id(node)] = size
        return size

    # ------------------------------------------------------------------------------------------------------- loops

    def _loop(self, loop: Loop, moves: Moves, walk: Callable[[Node, Moves], Iterator[Piece]]) -> Iterator[Piece]:
        steps = self._steps_of(loop)
        frame = Frame(loop, self._size(loop.body), steps)
        watches = self.skips and loop.trips * frame.size > _FLAT
        if watches:
            yield self._cut()
            self._frames.append(frame)
        while frame.trip < loop.trips:
            if watches and frame.is_watched():
                yield self._cut(frame)
            yield from walk(loop.body, _advanced(moves, steps.moves, frame.trip))
            if len(self._pending) >= _PIECE:
                yield self._cut()
            frame.trip += 1
        if watches:
            yield self._cut()
            self._frames.pop()

    def _steps_of(self, loop: Loop) -> LoopSteps:
        """Return the addresses that move from trip to trip; the rest of the steps counts as none."""
        cached = self._steps.get(id(loop))
        if cached is not None:
            return cached
        turn, bytes_ = 1, self.encoder.turn
        spaces: dict[int, set[int]] = {}
        moves: list[Deltas] = []
        for element, row in zip(elements(loop.body), loop.steps, strict=True):
            if isinstance(element, Lowered):
                kept = []
                for access, step in zip(element.accesses, row, strict=True):
                    space = self.encoder.spaces.get(access.space)
                    kept.append(0 if space is None else step)
                    if space is not None and access.start < access.end:
                        spaces.setdefault(space, set()).add(step)
                moves.append(tuple(kept))
            else:
                # The other end of a transfer is in global memory.
                counted = (row[0], 0) if isinstance(element, Transfer) else row
                moves.append(counted)
                turn = lcm(turn, *(bytes_ // gcd(bytes_, step) for step in counted))
        alike = {space: min(shifts) for space, shifts in spaces.items()} if all(map(_single, spaces.values())) else None
        pipes = frozenset(element.pipe for element in elements(loop.body) if not isinstance(element, Lowered))
        steps = LoopSteps(tuple(moves) if any(map(any, moves)) else None, turn, alike, pipes)
        self._steps[id(loop)] = steps
        return steps


_UNKNOWN = -2


def _window(number: int) -> int:
    """Return where the window begins that a trip may lie in."""
    return 0 if number < 2 * _WINDOWS[0] else 1 << (number.bit_length() - 1 & ~1)


def _repetition(items: tuple[Node, ...], first: int) -> tuple[int, int]:
    """Return the period with which items repeat from `first` on, and its end; otherwise 0 and the next index to try."""
    ahead = items[first : first + _LOOK]
    end = first + len(ahead)
    entry = ahead[0]
    for period in range(1, min(_LONGEST, len(ahead) // _FEWEST) + 1):
        if ahead[period] is entry and ahead[period:] == ahead[:-period]:
            while end < len(items):
                following = items[end : end + _LOOK]
                if following != items[end - period : end - period + len(following)]:
                    break
                end += len(following)
            return period, end
    return 0, end


def _moved(block: Block, moves: Moves) -> Iterator[tuple[Node, Moves]]:
    """Yield the items of a block, each with the moves of its own elements."""
    if moves is None:
        yield from zip(block.items, repeat(None))
        return
    start = 0
    for item in block.items:
        end = start + width(item)
        yield item, moves[start:end]
        start = end


def _single(values: set[int]) -> bool:
    return len(values) == 1


def _advanced(moves: Moves, steps: Moves, trip: int) -> Moves:
    """Add `trip` times the steps to the moves that surrounding loops have gathered."""
    if trip == 0 or steps is None:
        return moves
    if moves is None:
        return [tuple(trip * step for step in row) for row in steps]
    return [
        tuple(before + trip * step for before, step in zip(move, row, strict=True))
        for move, row in zip(moves, steps, strict=True)
    ]

"""When the tiles of a program are in use, and how those that never are at the same time may share bytes.

The vendor's level-2 planner counts live tiles (docs/reference/pto.md section 4); which bytes it gives them is not
published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.interpreter.places import Allocator, slot_bytes
from castsim.isa.pto import program as pto
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.vector_operations import ALIASES
from castsim.isa.warning_text import WarningKind, WarningText

TileNode = pto.AllocTile | pto.AllocTiles | pto.Tcvt
"""What creates tiles: an allocation, or a cast in one of the forms that define their destination."""

Spared = Callable[[pto.Tcvt | pto.TileOperation], str | None]
"""Returns the tmp tile that an operation has and its chip does not touch."""


@dataclass(slots=True)
class Lifetime:
    """Numbers of the first and the last operation of the text that use a tile.

    None: none does. Such a tile is taken to be in use all the time. `needed` says that one uses it for more than
    scratch that the chip does not touch.
    """

    node: TileNode
    depth: int
    first: int | None = None
    last: int | None = None
    needed: bool = False

    @property
    def spare(self) -> bool:
        """Whether its bytes are never touched: it is scratch, and of operations that need none."""
        return self.first is not None and not self.needed

    def use(self, first: int, last: int) -> None:
        """Widen it to hold one more use."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


@dataclass(slots=True)
class _Reader:
    """Numbers the operations of a function and notes which tiles each uses; `loops` are those around, by number."""

    spared: Spared
    lifetimes: list[Lifetime] = field(default_factory=list)
    held: dict[str, tuple[Lifetime, ...]] = field(default_factory=dict)
    loops: list[int] = field(default_factory=list)
    pending: list[tuple[Lifetime, int]] = field(default_factory=list)
    number: int = 0

    def region(self, body: Sequence[pto.Operation]) -> None:
        """Read a region; its names are forgotten at its end."""
        saved = dict(self.held)
        for node in body:
            self.number += 1
            self._operation(node)
        self.held = saved

    def _operation(self, node: pto.Operation) -> None:
        match node:
            case pto.AllocTile() | pto.AllocTiles():
                self._create(node.result, node)
            case pto.Tcvt():
                if node.defines_dst:
                    self._create(node.dst, node)
                self._work(node, (node.src, node.dst, *((node.tmp,) if node.tmp else ())))
            case pto.Subview() | pto.GetTile():
                self.held[node.result] = self.held.get(node.source, ())
            case pto.TileOperation() if node.mnemonic in ALIASES:
                self.held[node.outputs[0]] = self.held.get(node.inputs[0], ())
            case pto.TileOperation():
                self._work(node, (*node.inputs, *node.outputs))
            case pto.ScalarAccess():
                self._use((node.base,))
            case pto.Yield() | pto.Condition():
                self._use(node.values)
            case _:
                self._control(node)

    def _control(self, node: pto.Operation) -> None:
        match node:
            case pto.For():
                self._loop(node, (node.body,))
            case pto.While():
                self._loop(node, (node.before, node.after))
            case pto.If():
                self._branch(node)
            case pto.Section():
                self.region(node.body)

    def _create(self, name: str, node: TileNode) -> None:
        lifetime = Lifetime(node, len(self.loops))
        self.lifetimes.append(lifetime)
        self.held[name] = (lifetime,)

    def _work(self, node: pto.Tcvt | pto.TileOperation, names: Sequence[str]) -> None:
        spared = self.spared(node)
        self._use((name for name in names if name != spared), needed=True)
        self._use((name for name in names if name == spared), needed=False)

    def _use(self, names: Iterable[str], *, needed: bool = True) -> None:
        """A use inside loops that the tile is created outside of lasts as long as the outermost of them."""
        for lifetime in {id(one): one for name in names for one in self.held.get(name, ())}.values():
            lifetime.needed |= needed
            if len(self.loops) > lifetime.depth:
                self.pending.append((lifetime, self.loops[lifetime.depth]))
            else:
                lifetime.use(self.number, self.number)

    def _loop(self, node: pto.For | pto.While, bodies: Sequence[Sequence[pto.Operation]]) -> None:
        start = self.number
        carried = tuple(one for name in node.initial for one in self.held.get(name, ()))
        self._use(node.initial)
        self.loops.append(start)
        for name in (*node.carried, *(node.arguments if isinstance(node, pto.While) else ())):
            self.held[name] = carried
        for body in bodies:
            self.region(body)
        self.loops.pop()
        self.number += 1
        ended = [lifetime for lifetime, loop in self.pending if loop == start]
        self.pending = [(lifetime, loop) for lifetime, loop in self.pending if loop != start]
        for lifetime in ended:
            lifetime.use(start, self.number)
        for name in node.results:
            self.held[name] = (*carried, *ended)

    def _branch(self, node: pto.If) -> None:
        self.region(node.then_body)
        self.region(node.else_body)
        # What a branch yields may be any tile seen so far: results that are tiles keep all of them.
        anything = tuple(self.lifetimes) if any(isinstance(kind, pto.TileType) for kind in node.result_types) else ()
        for name in node.results:
            self.held[name] = anything


def _all_needed(_: pto.Tcvt | pto.TileOperation) -> None:
    """Spare no tile."""


def lifetimes_of(body: Sequence[pto.Operation], spared: Spared = _all_needed) -> tuple[Lifetime, ...]:
    """Return when every tile of a function is in use, in the order in which the text creates them."""
    reader = _Reader(spared)
    reader.region(body)
    return tuple(reader.lifetimes)


def share_bytes(function: pto.Function, allocator: Allocator, lowerer: Lowerer) -> WarningText | None:
    """Let tiles that are never in use together share bytes, if a program fits in no other way; return a warning.

    Scratch that nothing touches takes bytes of others before that, and without a word.
    """

    def size_of(node: TileNode) -> int:
        count, kind = 1, node.dst_type if isinstance(node, pto.Tcvt) else node.type
        if isinstance(kind, pto.MultiTileType):
            count, kind = kind.count, kind.tile
        size = kind.rows * kind.cols * lowerer.element_bits(element_format(kind.element)) // 8
        size = 0 if kind.location != "vec" else slot_bytes(size, allocator.alignment) * (count - 1) + size
        return slot_bytes(size, allocator.alignment)

    lifetimes, capacity = lifetimes_of(function.body or (), lowerer.spared_scratch), allocator.capacity
    if sum(size_of(one.node) for one in lifetimes) <= capacity:
        return None
    needed = [one for one in lifetimes if not one.spare]
    total = sum(size_of(one.node) for one in needed)
    apart = total <= capacity
    addresses, need = shared_addresses(needed, size_of, _always if apart else _together)
    spare = {id(one.node): capacity - size_of(one.node) for one in lifetimes if one.spare}
    if need > capacity or any(address < 0 for address in spare.values()):
        return None
    allocator.placed.update(addresses | spare)
    return None if apart else WarningText(
        WarningKind.SHARED_BYTES,
        f"its tiles take {total} bytes, the buffer has {capacity}: tiles that are never in use together share bytes, "
        f"{need} in all",
    )  # fmt: skip


def shared_addresses(
    lifetimes: Sequence[Lifetime], size_of: Callable[[TileNode], int], together: Callable[[Lifetime, Lifetime], bool]
) -> tuple[dict[int, int], int]:
    """Return an address per tile (by the identity of its node) and the bytes needed in all.

    Tiles are placed in the order of the text, each at the lowest address where it meets no tile that is in use
    `together` with it. Sizes are whole units of the buffer.
    """
    placed: list[tuple[Lifetime, int, int]] = []
    addresses: dict[int, int] = {}
    for lifetime in lifetimes:
        size = size_of(lifetime.node)
        taken = sorted((start, end) for other, start, end in placed if together(lifetime, other))
        address = 0
        for start, end in taken:
            if address + size <= start:
                break
            address = max(address, end)
        addresses[id(lifetime.node)] = address
        placed.append((lifetime, address, address + size))
    return addresses, max((end for _, _, end in placed), default=0)


def _always(_one: Lifetime, _other: Lifetime) -> bool:
    return True


def _together(one: Lifetime, other: Lifetime) -> bool:
    if one.first is None or one.last is None or other.first is None or other.last is None:
        return True
    return one.first <= other.last and other.first <= one.last

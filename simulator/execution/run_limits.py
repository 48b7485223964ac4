"""Limits for reading, walking and computing a program, each with its default and its option.

The modes for the treatment of stale reads are here too.

The engines enforce the limit of cycles; all others apply before any cycle is counted.
"""

from __future__ import annotations

from collections.abc import Callable

from castsim.execution.tree import Block, Loop, Lowered, Node, Tree
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import MAX_STATEMENTS, LimitError, ReadError, Span

MAX_WALK = 200_000
"""Default maximum number of trips and statements in loops of a tile program that are walked one by one."""

MAX_COMPUTED = 1_000_000
"""Default maximum number of executed instructions with values in a tile program, and of walked assembly bundles."""


MAX_CYCLES = 10**10
"""Default maximum number of simulated cycles, far beyond any sensible kernel."""

MAX_ELEMENTS = 1 << 27
"""Maximum number of elements of one argument whose values are computed: 512 MiB of f32."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run; `max_walk` of None takes the defaults for walking and for computing."""

    max_statements: int = MAX_STATEMENTS
    max_walk: int | None = None
    max_elements: int = MAX_ELEMENTS

    @property
    def walk(self) -> int:
        """Limit of walked trips and statements of a tile program."""
        return MAX_WALK if self.max_walk is None else self.max_walk

    @property
    def computed(self) -> int:
        """Limit of executions with values, and of bundles."""
        return MAX_COMPUTED if self.max_walk is None else self.max_walk


DEFAULT_LIMITS = Limits()
"""The default limits."""


def walk_limit(limit: int, what: str, span: Span | None) -> LimitError:
    """Return (do not raise) the error about a program whose walk exceeds a limit; `what` names the counted items."""
    return LimitError(
        f"{what}: more than {limit}, the limit of --max-walk", span=span, legal=("--max-walk N with a larger N",)
    )


def check_executions(
    tree: Tree, limit: int, what: str, idle: Callable[[Node], bool], most_trips: int | None = None
) -> None:
    """Refuse a tree with more instruction executions than a limit; they are summed, not walked.

    Args:
        tree: the issued operations.
        limit: maximum number of executions.
        what: their purpose, for the message.
        idle: predicate for nodes that do not count.
        most_trips: maximum number of trips of a loop that count; None: all.

    Raises:
        LimitError: there are more; the error has the position of the loop with most of them.
    """
    if executions(tree.root, idle, most_trips) <= limit:
        return
    node: Node = tree.root
    found: Node = node
    while isinstance(node, Block | Loop):
        if isinstance(node, Loop):
            found = node
            break
        node = max(node.items, key=lambda item: executions(item, idle, most_trips))
    first = _first(found)
    raise walk_limit(limit, what, None if first is None else tree.instructions[first.instruction].span)


def executions(node: Node, idle: Callable[[Node], bool], most_trips: int | None = None) -> int:
    """Return the number of executions of all instructions in `node` that are not `idle`."""
    if idle(node):
        return 0
    if isinstance(node, Lowered):
        return 1
    if isinstance(node, Loop):
        trips = node.trips if most_trips is None else min(node.trips, most_trips)
        return trips * executions(node.body, idle, most_trips)
    if isinstance(node, Block):
        return sum(executions(item, idle, most_trips) for item in node.items)
    return 0


def _first(node: Node) -> Lowered | None:
    """Return the first instruction in a node: of a loop that the text has, its own."""
    while isinstance(node, Block | Loop):
        items = node.body.items if isinstance(node, Loop) else node.items
        if not items:
            return None
        node = items[0]
    return node if isinstance(node, Lowered) else None


REPORT = "report"
STOP = "stop"
IGNORE = "ignore"
STALE_MODES = (REPORT, STOP, IGNORE)
"""The treatment of stale reads: report them after the run, stop at the first, or ignore them."""


def stale_mode(word: str | None) -> str:
    """Return the mode for stale reads, `report` by default.

    Raises:
        ReadError: the word is unknown.
    """
    if word is not None and word not in STALE_MODES:
        raise ReadError(f"unknown treatment of stale reads '{word}'", legal=STALE_MODES)
    return word or REPORT

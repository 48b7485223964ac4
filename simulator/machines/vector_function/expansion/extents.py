"""Loop nests whose extents only the running program knows: which of their numbers follow which of its values, and how.

The nests of an operation are lowered for many extents. A number of theirs is taken for a rule of one extent only if the
rule gives it for all of them, and nothing else of the nests may change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from castsim.execution.tree import Block, Node
from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.expansion.writer import Writer
from castsim.machines.vector_function.operations import Nest, VectorFunction

Extents = Mapping[str, int]
"""Values for the names of extents."""


@dataclass(frozen=True, slots=True)
class Rule:
    """ceil(value of `name` times / over) - less, at least 0; a constant `less` without a name."""

    name: str | None
    times: int = 1
    over: int = 1
    less: int = 0

    def value(self, extents: Extents) -> int:
        """Return the number for some extents."""
        if self.name is None:
            return self.less
        return max(-(-extents[self.name] * self.times // self.over) - self.less, 0)

    def text(self, out: Writer) -> str:
        """Write what computes it; return a value of type index."""
        if self.name is None:
            return out.constant(self.less)
        found = self.name
        if self.times != 1:
            found = out.define("many", f"arith.muli {found}, {out.constant(self.times)} : index")
        if self.over != 1:
            found = out.define("trips", f"arith.ceildivsi {found}, {out.constant(self.over)} : index")
        if self.less:
            found = out.define("less", f"arith.subi {found}, {out.constant(self.less)} : index")
            found = out.define("left", f"arith.maxsi {found}, {out.constant(0)} : index")
        return found


@dataclass(frozen=True, slots=True)
class NestRules:
    """The numbers of a nest that extents decide."""

    rows: Rule
    trips: Rule
    counters: Mapping[str, Rule]


def samples(most: Extents) -> list[dict[str, int]]:
    """Return extents to look at, up to the greatest; those come last."""
    steps = {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257}
    if len(most) > 1:
        steps = {1, 2, 3, 33, 64, 65, 128, 129}
    choices = [sorted({each for each in steps if each < bound} | {max(1, bound - 1), bound}) for bound in most.values()]
    return [dict(zip(most, values, strict=True)) for values in product(*choices)]


def rules_of(most: Extents, lowered: Callable[[Extents], Block]) -> tuple[Block, tuple[NestRules, ...]]:
    """Return what an operation is lowered to at its greatest extents, and how its nests follow them.

    Raises:
        IllegalError: they follow in no such way.
    """
    found = [(extents, lowered(extents)) for extents in samples(most)]
    last = found[-1][1]
    functions = [(extents, _function(block, last)) for extents, block in found]
    pattern = functions[-1][1]
    for _, function in functions:
        if len(function.nests) != len(pattern.nests) or _fixed(function) != _fixed(pattern):
            raise _unsteady(most)
    rules = []
    for number, nest in enumerate(pattern.nests):
        seen = [(extents, function.nests[number]) for extents, function in functions]
        divisors = (nest.elements, 1, 2, pattern.register_bytes)
        pitches = (1, 2, 4, max(1, nest.destination_row))
        rules.append(
            NestRules(
                _rule([(extents, each.rows) for extents, each in seen], divisors, pitches),
                _rule([(extents, each.trips) for extents, each in seen], divisors, (*pitches, *_row_bytes(pattern))),
                {
                    name: _rule([(extents, each.counters[name]) for extents, each in seen], divisors, pitches)
                    for name in nest.counters
                },
            )
        )
    return last, tuple(rules)


def _row_bytes(function: VectorFunction) -> list[int]:
    return sorted({nest.destination_row for nest in function.nests if nest.destination_row})


def _function(block: Block, pattern: Block) -> VectorFunction:
    """Return the one vector function of a lowered operation, around which all is as in the pattern."""
    items, others = _plain(block), _plain(pattern)
    found = [each for each in items if isinstance(each, VectorFunction)]
    rest = [each for each in items if not isinstance(each, VectorFunction)]
    if len(found) != 1 or rest != [each for each in others if not isinstance(each, VectorFunction)]:
        raise IllegalError("the loops of its vector function do not follow its extents")
    return found[0]


def _plain(block: Block) -> list[Node]:
    return [item for item in block.items if isinstance(item, Node)]


def _fixed(function: VectorFunction) -> tuple[object, ...]:
    """Return what of a function extents must leave alone."""

    def fixed(nest: Nest) -> Nest:
        return replace(nest, rows=1, trips=1, count=1, counters=dict.fromkeys(nest.counters, 0))

    return (*function.addresses, function.setup, *map(fixed, function.nests))


def _rule(seen: Sequence[tuple[Extents, int]], divisors: Sequence[int], factors: Sequence[int]) -> Rule:
    """Return the first rule that gives every number that was seen."""
    extents, last = seen[-1]
    if all(value == last for _, value in seen):
        return Rule(None, less=last)
    for name, over, times in product(extents, divisors, factors):
        plain = Rule(name, times, over)
        less = plain.value(extents) - last
        rule = replace(plain, less=less)
        if less >= 0 and all(rule.value(each) == value for each, value in seen):
            return rule
    raise _unsteady(extents)


def _unsteady(extents: Extents) -> IllegalError:
    names = " and ".join(extents)
    return IllegalError(f"its loops follow {names} in a way that expand does not write", legal=("--arg NAME=VALUE",))

"""What the text of a stopped program tells: which lines its loops and sections have, and its scalars.

A recorded run holds bytes and registers alone. Arguments, constants, index arithmetic and variables of loops are
computed again, up to the operation that the run has stopped at; what comes from memory, or from an operation that is no
scalar arithmetic, is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from castsim.execution.interpreter.arguments import bind_arguments
from castsim.execution.interpreter.rerolling import Loops, Scalar
from castsim.execution.interpreter.scalar_values import constant, evaluate
from castsim.isa.errors import CastsimError
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import nodes
from castsim.isa.pto.pto_parser import inlined, parse
from castsim.machines.vliw.machine import VliwCore
from castsim.running.loaded import Loaded

# Which lines belong to a line of a program: the bodies of its loops and sections.


def regions_of(loaded: Loaded, core: VliwCore | None) -> Mapping[int, int]:
    """Return, by the line that a loop, branch or section begins in, the last line of its body."""
    if core is not None:
        bundles = core.program.bundles
        return {bundles[loop.head].span.line: bundles[loop.end - 1].span.line for loop in core.structure.loops}
    try:
        parsed = parse(loaded.source, loaded.file, go_past_refused=True)
    except CastsimError:  # the text as a whole: only the entry needs to be without errors
        return {}
    found: dict[int, int] = {}
    for function in parsed.functions:
        for node in nodes(function.body or ()):
            inner = [each.span.line for each in _inside(node)]
            if inner:
                found[node.span.line] = max(*inner, found.get(node.span.line, 0))
    return found


def _inside(node: pto.Operation) -> list[pto.Operation]:
    match node:
        case pto.For() | pto.Section():
            return list(nodes(node.body))
        case pto.While():
            return [*nodes(node.before), *nodes(node.after)]
        case pto.If():
            return [*nodes(node.then_body), *nodes(node.else_body)]
    return []


# The scalars of a `.pto` program.

MOST_VISITS = 300_000
"""Operations that are followed; behind them no scalar is known."""

Values = dict[str, Scalar | None]


class _UnknownError(Exception):
    """What decides the path is not known."""


class Scalars:
    """The scalars of one run by line and visit: how often the operations of the line have been reached before."""

    def __init__(self, loaded: Loaded, args: Mapping[str, int | float]) -> None:
        self._function: pto.Function | None = None
        self._arguments: Values = {}
        try:
            parsed = parse(loaded.source, loaded.file, go_past_refused=True)
            self._function = inlined(parsed, next(one for one in parsed.functions if one.name == loaded.entry))
            bound = bind_arguments(self._function, args)
        except (CastsimError, StopIteration):  # assembly, or what only the run could read
            self._function = None
            return
        self._arguments = {name: value for name, value in bound.items() if isinstance(value, Scalar)}
        self._visits = Counter(line for line, _ in islice(self._follow(), MOST_VISITS))

    def at(self, line: int, execution: int, executions: int) -> Mapping[str, int | float]:
        """Return values by name before an execution of a line, counted from 0, of all that there are."""
        visits = 0 if self._function is None else self._visits[line]
        if not visits or executions % visits:
            return {}
        wanted = execution // (executions // visits)
        reached = (values for at, values in islice(self._follow(), MOST_VISITS) if at == line)
        values = next(islice(reached, wanted, None), {})
        return {name: one.value for name, one in values.items() if one is not None and not name.startswith("pto.")}

    def _follow(self) -> Iterator[tuple[int, Values]]:
        """Yield the lines of operations in the order of their execution, with the values before each."""
        assert self._function is not None
        try:
            yield from self._region(self._function.body or (), dict(self._arguments))
        except (_UnknownError, CastsimError):
            return

    def _region(self, body: Sequence[pto.Operation], values: Values) -> Iterator[tuple[int, Values]]:
        for node in body:
            match node:
                case pto.For():
                    yield from self._for(node, values)
                case pto.While():
                    yield from self._while(node, values)
                case pto.If():
                    taken = node.then_body if _number(values, node.condition) else node.else_body
                    yield from self._inner(taken, values, node.results)
                case pto.Section():
                    yield node.span.line, values
                    own = {name: values.get(outer) for name, outer in zip(node.carried, node.initial, strict=True)}
                    yield from self._region(node.body, {**values, **own})
                case _:
                    yield node.span.line, values
                    _execute(node, values)

    def _inner(
        self, body: Sequence[pto.Operation], values: Values, results: Sequence[str]
    ) -> Iterator[tuple[int, Values]]:
        """Follow a region, and hand what it yields on under other names."""
        own = dict(values)
        yield from self._region(body, own)
        values.update(zip(results, _yielded(body, own), strict=False))

    def _for(self, node: pto.For, values: Values) -> Iterator[tuple[int, Values]]:
        lower, upper, step = (_number(values, name) for name in (node.lower, node.upper, node.step))
        carried = [values.get(name) for name in node.initial]
        for count in range(lower, upper, step):
            own = {**values, node.variable: Scalar(count), **dict(zip(node.carried, carried, strict=True))}
            yield node.span.line, own
            yield from self._region(node.body, own)
            carried = _yielded(node.body, own)
        values.update(zip(node.results, carried, strict=False))

    def _while(self, node: pto.While, values: Values) -> Iterator[tuple[int, Values]]:
        carried = [values.get(name) for name in node.initial]
        while True:
            own = {**values, **dict(zip(node.carried, carried, strict=True))}
            yield node.span.line, own
            yield from self._region(node.before, own)
            passed = _yielded(node.before, own)
            last = node.before[-1]
            assert isinstance(last, pto.Condition)
            if not _number(own, last.condition):
                values.update(zip(node.results, passed, strict=False))
                return
            own = {**values, **dict(zip(node.arguments, passed, strict=True))}
            yield from self._region(node.after, own)
            carried = _yielded(node.after, own)


def _number(values: Values, name: str) -> int:
    found = values.get(name)
    if found is None:
        raise _UnknownError
    return int(found.value)


def _yielded(body: Sequence[pto.Operation], values: Values) -> list[Scalar | None]:
    last = body[-1] if body else None
    names = last.values if isinstance(last, pto.Yield | pto.Condition) else ()
    return [values.get(name) for name in names]


def _execute(node: pto.Operation, values: Values) -> None:
    """Compute what an operation gives, where that is a scalar that is known."""
    match node:
        case pto.Constant():
            values[node.result] = Scalar(constant(node.value, node.type.name))
        case pto.Arith() | pto.Compare() | pto.Convert():
            try:
                values[node.result] = evaluate(node, lambda name: _known(values, name), Loops(), lambda *_: True)
            except (_UnknownError, CastsimError):
                values[node.result] = None


def _known(values: Values, name: str) -> Scalar:
    found = values.get(name)
    if found is None:
        raise _UnknownError
    return found

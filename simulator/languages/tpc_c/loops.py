"""Loops of C: hardware loops for the four innermost levels with countable trips, jumps for the others."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from castsim.isa.dataclass import dataclass
from castsim.isa.tpc.program import COMPARISONS
from castsim.languages.tpc_c.code import Value, assigned_in, leaves, member_text, names_of, walked
from castsim.languages.tpc_c.expressions import Expressions, Variable
from castsim.tools.tpc_compiler.c_language import INT, UNSIGNED, Array, Group, Scalar

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_MOST_UNROLLED = 64
SPLIT, ACCUMULATORS = "split", ("source", "split")
_MOST_COUNTED = 100_000
_AT_ONCE = re.compile(r"\b(?:loop_unroll|machine_unroll_count)\s*\(\s*(\d+)\s*\)")
_FLOAT_SUM = re.compile(r"[vs]_(?:f32|bf16|f16|f8|h8)_mac")
_UNROLL = re.compile(r"\bunroll\b\s*\(?\s*(\d+)?")


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """A loop that counts: its variable, whether the loop declares it, start, sign, bound and step as trees."""

    name: str
    declares: bool
    start: Any
    sign: str
    bound: Any
    step: Any
    down: bool
    others: tuple[Any, ...]
    """Other operations after every trip."""


class Loops(Expressions):
    """Compiles loops. `open_loops` are the labels of the enclosing loops: after the body, and after the loop."""

    open_loops: list[tuple[str, str] | None]
    hardware: int
    """Number of enclosing hardware loops."""
    accumulators: str
    """The order in which loops with `loop_unroll` add floats: that of the source, or split."""
    rotations: dict[int, list[list[Value]]]
    """The split sums of the enclosing loops, by their bodies."""

    def statement(self, node: Any, pragmas: list[str] | None = None) -> None:
        """Compile a statement."""
        raise NotImplementedError

    def scoped(self, node: Any) -> None:
        """Compile a statement in a scope of its own."""
        raise NotImplementedError

    def _do_For(self, node: Any, pragmas: list[str]) -> None:  # noqa: N802
        counted = self._counted(node)
        self._unroll_notes(node, counted, pragmas)
        sums = self._split_sums(node, pragmas)
        if sums:
            self.rotations[id(node.stmt)] = sums
        self.scopes.append({})
        if counted is not None and self._unrolled(node, counted, pragmas):
            pass
        elif counted is not None and self._may_count(node, counted):
            self._hardware(node, counted)
        else:
            if node.init is not None:
                self.statement(node.init)
            self._jumping(node.cond, node.stmt, [node.next] if node.next is not None else [])
        self.scopes.pop()
        for split_sums in self.rotations.pop(id(node.stmt), ()):
            self._added(split_sums)

    def _unroll_notes(self, node: Any, counted: CountedLoop | None, pragmas: list[str]) -> None:
        """Record how the vendor's compiler treats a pragma that promises a multiple of a number of trips.

        Source: docs/languages/tpc_c.md, pragmas.
        """
        unrolling = next((match for pragma in pragmas if (match := _AT_ONCE.search(pragma))), None)
        if unrolling is None or int(unrolling[1]) < 2:
            return
        before, self.here = self.here, node
        number = int(unrolling[1])
        numbers = self._numbers(node, counted, _MOST_COUNTED) if counted is not None else None
        if numbers is not None and len(numbers) % number and not any("unaligned" in pragma for pragma in pragmas):
            text = f"#pragma loop_unroll({number}) requires a multiple of {number} trips, not {len(numbers)}"
            self.note(f"{text}: all of them run here, but not in the vendor's compiled code")
        calls = (getattr(item.name, "name", "") for item in walked(node.stmt) if type(item).__name__ == "FuncCall")
        if self.accumulators != SPLIT and any(_FLOAT_SUM.match(str(call)) for call in calls):
            text = f"the vendor's compiler splits the sums of a loop with #pragma loop_unroll({number}) into {number}"
            more = "castsim sums in source order (see --accumulators split), so the last bits can differ"
            self.note(f"{text} that it adds at the end; {more}")
        self.here = before

    def _split_sums(self, node: Any, pragmas: list[str]) -> list[list[Value]]:
        """Return the registers of each sum that `--accumulators split` splits as the vendor's compiler does: the
        accumulators of float MAC that a loop with `loop_unroll(n)` only adds to. The first is the variable itself.
        """
        unrolling = next((match for pragma in pragmas if (match := _AT_ONCE.search(pragma))), None)
        if self.accumulators != SPLIT or unrolling is None or leaves(node.stmt):
            return []
        adding: dict[str, int] = {}
        for item in walked(node.stmt):
            if type(item).__name__ != "Assignment" or item.op != "=" or type(item.rvalue).__name__ != "FuncCall":
                continue
            name, given = getattr(item.lvalue, "name", None), item.rvalue.args.exprs if item.rvalue.args else []
            sums = _FLOAT_SUM.match(str(getattr(item.rvalue.name, "name", ""))) and len(given) > 2
            if sums and isinstance(name, str) and getattr(given[2], "name", None) == name:
                adding[name] = adding.get(name, 0) + 1
        used = [child.name for child in walked(node.stmt) if type(child).__name__ == "ID"]
        split: list[list[Value]] = []
        for name, count in adding.items():
            variable = self.variable(name)
            if variable is None or variable.value is None or variable.value.known or used.count(name) != 2 * count:
                continue
            kind = variable.type
            others = [Value(kind, self.register(kind, name)) for _ in range(int(unrolling[1]) - 1)]
            for value in others:
                self.cleared(value)
            split.append([variable.value, *others])
        return split

    def _rotated(self, sums: list[Value]) -> None:
        """Advance the next trip to the next of the sums."""
        kept = self.temp(sums[0].type)
        self.move(kept.text, sums[0])
        for target, following in pairwise(sums):
            self.move(target.text, following)
        self.move(sums[-1].text, Value(sums[0].type, kept.text))

    def _added(self, sums: list[Value]) -> None:
        """Add the sums, from the last to the first."""
        kind = sums[0].type
        total = sums[-1]
        for part_sum in reversed(sums[:-1]):
            into = part_sum.text if part_sum is sums[0] else self.register(kind)
            result = Value(kind, into)
            parts = range(len(kind.members)) if isinstance(kind, Group) else ()
            for part in parts:
                texts = ", ".join(member_text(value, part) for value in (result, total, part_sum))
                self.emit(f"add.f32 {texts}")
            if not parts:
                self.in_register(self.binary("+", total, part_sum, into), into)
            total = result

    def cleared(self, value: Value) -> None:
        """Put zeros into a register."""
        raise NotImplementedError

    def _do_While(self, node: Any, pragmas: list[str]) -> None:  # noqa: N802
        self._jumping(node.cond, node.stmt, [])

    def _do_DoWhile(self, node: Any, pragmas: list[str]) -> None:  # noqa: N802
        top, behind, end = self.label(), self.label(), self.label()
        self.place(top)
        self._body(node.stmt, (behind, end))
        self.place(behind)
        condition, inverted = self.truth(self.value(node.cond))
        if not condition.known:
            self.emit(f"jmpr {top}", self.predicate_text(condition, inverted=inverted))
        elif condition.const:
            self.emit(f"jmpr {top}")
        self.place(end)

    def _jumping(self, condition: Any, body: Any, behind_trip: list[Any]) -> None:
        """Write a loop of jumps that tests before every trip."""
        top, behind, end = self.label(), self.label(), self.label()
        self.place(top)
        if condition is not None:
            predicate, inverted = self.truth(self.value(condition))
            if not predicate.known:
                self.emit(f"jmpr {end}", self.predicate_text(predicate, inverted=not inverted))
            elif not predicate.const:
                return
        self._body(body, (behind, end))
        self.place(behind)
        for child in behind_trip:
            self.statement(child)
        self.emit(f"jmpr {top}")
        self.place(end)

    def _body(self, node: Any, labels: tuple[str, str] | None) -> None:
        self.open_loops.append(labels)
        self.scoped(node)
        for sums in self.rotations.get(id(node), ()):
            self._rotated(sums)
        self.open_loops.pop()

    # -------------------------------------------------------------------------------------------------------- counting

    def _counted(self, node: Any) -> CountedLoop | None:
        """Return the counting of a loop, None if its head does not determine it."""
        condition = node.cond
        if type(condition).__name__ != "BinaryOp" or condition.op not in _MIRRORED or node.next is None:
            return None
        started = self._started(node.init)
        for left, right, sign in (
            (condition.left, condition.right, condition.op),
            (condition.right, condition.left, _MIRRORED[condition.op]),
        ):
            name = getattr(left, "name", None) if type(left).__name__ == "ID" else None
            if name is None or name not in started:
                continue
            declares, start = started[name]
            nexts = node.next.exprs if type(node.next).__name__ == "ExprList" else [node.next]
            own = [expression for expression in nexts if name in assigned_in(expression)]
            step = _step(own[0], name) if len(own) == 1 else None
            if step is None:
                return None
            others = tuple(expression for expression in nexts if expression is not own[0])
            return CountedLoop(name, declares, start, sign, right, step[0], step[1], others)
        return None

    def _started(self, init: Any) -> dict[str, tuple[bool, Any]]:
        """Return the names that a loop begins with, whether it declares them, and their values."""
        if type(init).__name__ == "DeclList":
            return {
                declaration.name: (True, declaration.init) for declaration in init.decls if declaration.init is not None
            }
        listed = init.exprs if type(init).__name__ == "ExprList" else [init]
        return {
            item.lvalue.name: (False, item.rvalue)
            for item in listed
            if type(item).__name__ == "Assignment" and item.op == "=" and type(item.lvalue).__name__ == "ID"
        }

    def _may_count(self, node: Any, counted: CountedLoop) -> bool:
        """Return whether LOOP can do it: the body leaves its count alone, ends every trip, and the levels suffice."""
        body = assigned_in(node.stmt).union(*map(assigned_in, counted.others))
        read = names_of(counted.bound) | (names_of(counted.step) if counted.step is not None else set())
        limit = self.target.registers.loop_iterators
        if counted.name in body or read & (body | {counted.name}) or leaves(node.stmt):
            return False
        if self.height(node) > limit or self.hardware >= limit:
            return False
        if not all(self.is_pure(expression) for expression in (counted.bound, counted.step) if expression is not None):
            return False  # bound or step rest on memory, which the body may write
        kind = self._type_in(node, counted)
        bound = self._quiet(counted.bound)
        return kind == INT and isinstance(bound.type, Scalar) and not bound.type.is_float and (
            bound.type != UNSIGNED or bound.known)  # fmt: skip

    def _type_in(self, node: Any, counted: CountedLoop) -> object:
        if counted.declares:
            declared = next(declaration for declaration in node.init.decls if declaration.name == counted.name)
            return self.type_of(declared.type)
        variable = self.variable(counted.name)
        return None if variable is None or variable.address is not None else variable.type

    def _hardware(self, node: Any, counted: CountedLoop) -> None:
        """Write a hardware loop; the variable is its iterator."""
        start = self.converted(self.value(counted.start), INT)
        outer = None if counted.declares else self.variable(counted.name)
        self._begin_others(node, counted)
        if outer is not None:
            assert outer.value is not None
            self.in_register(start, outer.value.text)
            start = start if start.known else outer.value
        bound = self.converted(self.value(counted.bound), INT)
        step = self.const(1, INT) if counted.step is None else self.converted(self.value(counted.step), INT)
        if counted.down:
            step = self.unary("-", step)
        end = self.label()
        texts = [self.operand(value) for value in (start, bound, step)]
        self.emit(f"loop {', '.join(texts)}, {counted.sign}, {end}")
        sizes = self.target.registers
        iterator = Value(INT, f"S{sizes.S - sizes.loop_iterators + self.hardware}")
        self.hardware += 1
        self.scopes.append({counted.name: Variable(INT, iterator)})
        count = len(self.lines)
        self._body(node.stmt, None)
        for expression in counted.others:
            self.statement(expression)
        self.scopes.pop()
        self.hardware -= 1
        if outer is not None:
            assert outer.value is not None
            self.emit(f"add.i32 {outer.value.text}, {iterator.text}, {self.operand(step)}")
        if all(line.is_label for line in self.lines[count:]):
            del self.lines[count - 1 :]
            return
        self.place(end)

    def _begin_others(self, node: Any, counted: CountedLoop) -> None:
        """Declare or assign the other variables in the head of a loop."""
        if type(node.init).__name__ == "DeclList":
            for declaration in node.init.decls:
                if declaration.name != counted.name:
                    self.statement(declaration)
        elif type(node.init).__name__ == "ExprList":
            for expression in node.init.exprs:
                if counted.name not in assigned_in(expression):
                    self.statement(expression)

    # ------------------------------------------------------------------------------------------------------- unrolling

    def _unrolled(self, node: Any, counted: CountedLoop, pragmas: list[str]) -> bool:
        """Unroll all trips, if the pragma requests it or registers are chosen by the variable."""
        numbers = self._numbers(node, counted)
        if numbers is None or leaves(node.stmt) or not counted.declares or counted.others:
            return False
        if counted.name in assigned_in(node.stmt):
            return False
        asked = next((match for pragma in pragmas if (match := _UNROLL.search(pragma))), None)
        every = asked is not None and (asked[1] is None or int(asked[1]) >= len(numbers))
        if not every and not self._chooses(node.stmt, counted.name):
            return False
        for number in numbers:
            self.scopes.append({counted.name: Variable(INT, self.const(number, INT), constant=True)})
            self._body(node.stmt, None)
            self.scopes.pop()
        return True

    def _numbers(self, node: Any, counted: CountedLoop, most: int = _MOST_UNROLLED) -> list[int] | None:
        """Return the values of the variable, None if they are unknown or too many."""
        if counted.start is None or not counted.declares:
            return None
        trees = [counted.start, counted.bound, *([counted.step] if counted.step is not None else [])]
        if not all(self.is_pure(tree) for tree in trees):
            return None
        values = [self._quiet(tree) for tree in trees]
        if not all(value.known and isinstance(value.type, Scalar) and not value.type.is_float for value in values):
            return None
        start, bound = (int(value.const or 0) for value in values[:2])
        step = (int(values[2].const or 0) if len(values) > 2 else 1) * (-1 if counted.down else 1)
        counted_values: list[int] = []
        while COMPARISONS[counted.sign](start, bound) and len(counted_values) <= most:
            counted_values.append(start)
            start += step
        self.count_work(len(counted_values))
        return counted_values if len(counted_values) <= most and counted_values else None

    def _chooses(self, body: Any, name: str) -> bool:
        """Return whether a body indexes an array of registers or an int5 by a variable."""
        for item in walked(body):
            if type(item).__name__ != "ArrayRef" or name not in names_of(item.subscript):
                continue
            base = item.name
            while type(base).__name__ == "ArrayRef":
                base = base.name
            variable = self.variable(base.name) if type(base).__name__ == "ID" else None
            if (
                variable is not None
                and variable.address is None
                and not (isinstance(variable.type, Array) and id(variable.node) in self.memory_arrays)
            ):
                return True
        return False

    memory_arrays: frozenset[int] = frozenset()


def _step(node: Any, name: str) -> tuple[Any, bool] | None:
    """Return the step of a variable in an expression (None: one), and whether it is downwards; None if not a step."""
    kind = type(node).__name__
    if kind == "UnaryOp":
        return (None, "--" in node.op)
    if kind != "Assignment":
        return None
    if node.op in ("+=", "-="):
        return (node.rvalue, node.op == "-=")
    right = node.rvalue
    if node.op == "=" and type(right).__name__ == "BinaryOp" and right.op in "+-":
        if getattr(right.left, "name", None) == name:
            return (right.right, right.op == "-")
        if right.op == "+" and getattr(right.right, "name", None) == name:
            return (right.left, False)
    return None

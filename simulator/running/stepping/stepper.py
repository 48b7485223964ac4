"""Moving through a recorded run, from stop to stop, forwards and backwards.

Before every step of a run the program can be stopped: what stands before the step in program order has been executed
altogether, the step and what follows has not. The cycle of the stop is the one in which the step starts; pipes work
beside each other, so that these cycles do not only rise from step to step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from castsim.isa.errors import ReadError
from castsim.running.stepping.breakpoints import Breakpoint, Breakpoints
from castsim.running.stepping.conditions import Condition, parse_condition
from castsim.running.stepping.pipes import PipeStates
from castsim.running.stepping.symbols import Elements, Selection, selected
from castsim.running.stepping.trace import Trace


@dataclass(slots=True)
class Stepper:
    """A recorded run, stopped before step `position`; behind its last step it has ended."""

    trace: Trace
    position: int = 0
    breakpoints: Breakpoints = field(init=False)
    lines: list[int] = field(init=False)
    _positions: dict[int, list[int]] = field(init=False)
    _pipes: PipeStates | None = None

    def __post_init__(self) -> None:
        self.lines = [self.trace.instructions[step.instruction].span.line for step in self.trace.steps]
        self._positions = {}
        for position, line in enumerate(self.lines):
            self._positions.setdefault(line, []).append(position)
        self.breakpoints = Breakpoints(self.lines)

    # ------------------------------------------------------------------------------------------------------- the stop

    @property
    def ended(self) -> bool:
        """Whether every operation has been executed."""
        return self.position == len(self.lines)

    @property
    def line(self) -> int:
        """The line of the operation about to be executed; at the end that of the last."""
        return self.trace.line(self.position)

    @property
    def cycle(self) -> int:
        """The cycle in which the operation about to be executed starts; at the end the cycles of the run."""
        return self.trace.cycle(self.position)

    def elements(self, selection: Selection) -> Elements:
        """Return what a selection stands for now. Errors as `symbols.selected`."""
        trace = self.trace
        return selected(selection, trace.symbols, self.position, trace.memories, trace.registers)

    @property
    def pipes(self) -> PipeStates:
        """What the pipes do, cycle by cycle.

        Raises:
            ReadError: the cycles of the program are not modelled.
        """
        if self._pipes is None:
            self.check_timed()
            loaded = self.trace.result.loaded
            self._pipes = PipeStates(loaded.tree, loaded.target)
        return self._pipes

    def pipe(self, name: str) -> str:
        """Return the cause that a pipe spends the cycle of the stop on."""
        return self.pipes.at(name, self.cycle).value

    def check_timed(self) -> None:
        """Refuse what asks for cycles where there are none.

        Raises:
            ReadError: as said.
        """
        if not self.trace.timed:
            raise ReadError(f"the program has no cycles: {self.trace.result.untimed}")

    # ---------------------------------------------------------------------------------------------------------- moves

    def go_to(self, position: int) -> None:
        """Execute or take back operations until a step is the next."""
        position = max(0, min(position, len(self.lines)))
        while self.position < position:
            self.trace.apply(self.position, back=False)
            self.position += 1
        while self.position > position:
            self.position -= 1
            self.trace.apply(self.position, back=True)

    def step(self) -> None:
        """Execute one operation."""
        self.go_to(self.position + 1)

    def reverse_step(self) -> None:
        """Take one operation back."""
        self.go_to(self.position - 1)

    def next(self) -> None:
        """Execute the rest of a line: all its trips, of a loop or section all of its body; breakpoints are passed."""
        if not self.ended:
            self.go_to(self._last_of_line() + 1)

    def reverse_next(self) -> None:
        """Take a line back, with all its trips: that of the operation before; go to where it was first executed."""
        if self.position:
            line = self.lines[self.position - 1]
            self.go_to(self._positions[line][0])

    def _last_of_line(self) -> int:
        """Return the last execution of the line about to be executed, or of a line in its body."""
        line = self.line
        last = self.trace.regions.get(line, line)
        return max(self._positions[each][-1] for each in self._positions if line <= each <= last)

    def run(self) -> Breakpoint | None:
        """Execute up to the next breakpoint, or to the end; return the breakpoint."""
        return self._run(1)

    def reverse_run(self) -> Breakpoint | None:
        """Take back down to the breakpoint before, or to the start; return the breakpoint."""
        return self._run(-1)

    def _run(self, way: int) -> Breakpoint | None:
        if self.breakpoints.watches:
            return self._watch(way)
        while True:
            found = self._nearest(way)
            self.go_to((len(self.lines) if way > 0 else 0) if found is None else found[0])
            if found is None:
                return None
            hit = self._hit(found[1])
            if hit is not None:
                return hit

    def _nearest(self, way: int) -> tuple[int, list[Breakpoint]] | None:
        """Return the nearest step with breakpoints at a line or step in one direction."""
        best: int | None = None
        where: dict[int, list[Breakpoint]] = {}
        for each in self.breakpoints:
            places = [each.step] if each.step is not None else self._positions.get(each.line or 0, [])
            number = bisect_left(places, self.position + (way > 0)) - (way < 0)
            if 0 <= number < len(places):
                where.setdefault(places[number], []).append(each)
        if where:
            best = min(where) if way > 0 else max(where)
        return None if best is None else (best, where[best])

    def _hit(self, candidates: list[Breakpoint]) -> Breakpoint | None:
        for each in candidates:
            if each.condition is None or each.condition.holds(self):
                each.hits += 1
                return each
        return None

    def _watch(self, way: int) -> Breakpoint | None:
        """Go operation by operation and look at the conditions; a stop is the same from either side."""
        alone = [each for each in self.breakpoints if each.line is None and each.condition is not None]
        others = [each for each in self.breakpoints if each not in alone]

        def state() -> list[bool]:
            return [each.condition is not None and each.condition.holds(self) for each in alone]

        def at_place() -> list[Breakpoint]:
            here = None if self.ended else self.lines[self.position]
            return [e for e in others if e.step == self.position or (e.line is not None and e.line == here)]

        return self._forwards(alone, state, at_place) if way > 0 else self._backwards(alone, state, at_place)

    def _forwards(
        self, alone: list[Breakpoint], state: Callable[[], list[bool]], at_place: Callable[[], list[Breakpoint]]
    ) -> Breakpoint | None:
        before = state()
        while not self.ended:
            self.step()
            now = state()
            new = [each for each, was, holds in zip(alone, before, now, strict=True) if holds and not was]
            before = now
            hit = new[0] if new else self._hit(at_place())
            if hit is not None:
                hit.hits += bool(new)
                return hit
        return None

    def _backwards(
        self, alone: list[Breakpoint], state: Callable[[], list[bool]], at_place: Callable[[], list[Breakpoint]]
    ) -> Breakpoint | None:
        if not self.position:
            return None
        self.reverse_step()
        now = state()
        while self.position:
            hit = self._hit(at_place())
            self.reverse_step()
            before = state()
            new = [each for each, was, holds in zip(alone, before, now, strict=True) if holds and not was]
            if hit is not None or new:
                self.step()
                if hit is None:
                    hit = new[0]
                    hit.hits += 1
                return hit
            now = before
        return None

    # ---------------------------------------------------------------------------------------------------- breakpoints

    def break_at_line(self, line: int, condition: str | None = None) -> Breakpoint:
        """Stop before operations of a line; of one without any, before those of the next line that has some.

        Raises:
            ReadError: no line from there on has any; the condition cannot be read.
        """
        held = None if condition is None else self.condition(condition)
        place = self.line_of(line)
        return self.breakpoints.add(
            f"line {place}" + (f" if {condition}" if condition else ""), line=place, condition=held
        )

    def line_of(self, line: int) -> int:
        """Return the first line from `line` on that has operations.

        Raises:
            ReadError: there is none.
        """
        places = sorted(self._positions)
        number = bisect_left(places, line)
        if line < 1 or number == len(places):
            raise ReadError(
                f"line {line}: no operation there or below",
                legal=(f"{places[0]} .. {places[-1]}",) if places else (),
            )
        return places[number]

    def break_at_cycle(self, cycle: int) -> Breakpoint:
        """Stop before the first operation, in program order, that starts in a cycle or later.

        Raises:
            ReadError: none does, or there are no cycles.
        """
        self.check_timed()
        step = next((p for p, each in enumerate(self.trace.steps) if each.start >= cycle), None)
        if step is None:
            latest = max((each.start for each in self.trace.steps), default=0)
            raise ReadError(f"no operation starts in cycle {cycle} or later", legal=(f"0 .. {latest}",))
        return self.breakpoints.add(f"cycle {cycle}", step=step)

    def break_if(self, text: str) -> Breakpoint:
        """Stop where a condition comes true.

        Raises:
            ReadError: it cannot be read, or is about something that the program does not have.
        """
        return self.breakpoints.add(f"if {text}", condition=self.condition(text))

    def condition(self, text: str) -> Condition:
        """Read a condition, and check what it is about.

        Raises:
            ReadError: as said.
        """
        found = parse_condition(text, tuple(self.trace.result.timing.pipes))
        selection = getattr(found, "selection", None)
        if isinstance(selection, Selection):
            known = self.trace.symbols.names()
            if selection.name not in known:
                raise ReadError(f"nothing is called '{selection.name}'", legal=known)
            if self.trace.registers.get(selection.name) is not None or selection.name not in self.trace.symbols.formats:
                self.elements(selection)
        else:
            self.check_timed()
            found.holds(self)
        return found

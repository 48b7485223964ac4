"""Looking for what the order of a program does not guarantee."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from castsim.execution.dataflow.operations import Barrier, ControlWrite, ScalarWork, SetFlag, WaitFlag
from castsim.execution.tree import Block, Instruction, Lowered, Role, Tree, elements
from castsim.isa.errors import Span
from castsim.synchronisation.races.clocks import Clock, Clocks, Key
from castsim.synchronisation.races.conflicts import Conflicts
from castsim.synchronisation.races.findings import Finding, RaceKind
from castsim.synchronisation.races.unrolling import Instance, unfold
from castsim.synchronisation.races.written import WrittenBytes
from castsim.targets.dataflow import DataflowTarget

Action = SetFlag | WaitFlag | Barrier


def find_races(tree: Tree, target: DataflowTarget, *, unwritten: bool = True) -> tuple[Finding, ...]:
    """Return everything wrong with the order of a program, deadlocks first.

    A tree that is interlocked has no races by its definition; only what nothing wrote is looked for, if that is asked
    for (`unwritten`).
    """
    return _Detector(tree, target, unwritten).run()


@dataclass(frozen=True, slots=True)
class _Profile:
    """The effect of an instruction's operations on the order: actions before and behind its work, control writes."""

    before: tuple[Action, ...]
    works: bool
    behind: tuple[Action, ...]
    early_control: tuple[str, ...]
    late_control: tuple[str, ...]


def _profile(body: Block) -> _Profile:
    before: list[Action] = []
    behind: list[Action] = []
    control: tuple[list[str], list[str]] = ([], [])
    works = False
    for operation in elements(body):
        match operation:
            case SetFlag() | WaitFlag() | Barrier():
                (behind if works else before).append(operation)
            case ControlWrite(register):
                control[works].append(register)
            case ScalarWork() | Lowered():
                pass
            case _:
                works = True
                # Barriers between the steps of an instruction order nothing outside it.
                behind.clear()
    return _Profile(tuple(before), works, tuple(behind), tuple(control[False]), tuple(control[True]))


@dataclass(slots=True)
class _FlagUse:
    """The numbers of sets and waits of a flag in program order, and the places of the last ones."""

    pending: int = 0
    sets: int = 0
    waits: int = 0
    set_at: Span | None = None


@dataclass(slots=True)
class _Detector:
    tree: Tree
    target: DataflowTarget
    unwritten: bool
    findings: dict[tuple[RaceKind, str], Finding] = field(default_factory=dict)
    flags: dict[Key, _FlagUse] = field(default_factory=dict)
    profiles: dict[int, _Profile] = field(default_factory=dict)
    clocks: Clocks = field(init=False)
    conflicts: Conflicts = field(init=False)

    def __post_init__(self) -> None:
        self.clocks = Clocks(self.target.pipes, self._start)
        self.conflicts = Conflicts(self.tree, self.target, self.clocks.numbers)

    def run(self) -> tuple[Finding, ...]:
        capacities = {name: memory.capacity_bytes for name, memory in self.target.memories.items()}
        written = WrittenBytes(capacities, self.tree.instructions)
        known = self.unwritten
        for instance in unfold(self.tree.root, self.tree.instructions):
            # An opaque instruction may have written anything: from there on nothing is known of the bytes.
            known = known and self._instruction(instance).role is not Role.OPAQUE
            if known:
                self._tell(written.execute(instance))
            if not self.tree.interlocked:
                self._issue(instance)
        if not self.tree.interlocked:
            self._close()
        order = list(RaceKind)
        return tuple(sorted(self.findings.values(), key=lambda finding: order.index(finding.kind)))

    # -------------------------------------------------------------------------------------------- program order

    def _issue(self, instance: Instance) -> None:
        body = instance.lowered.body
        profile = self.profiles.get(id(body))
        if profile is None:
            profile = self.profiles[id(body)] = _profile(body)
        self._control(instance, profile.early_control)
        for action in profile.before:
            self._act(instance, action)
        pipe, accesses = self._instruction(instance).pipe, bool(instance.lowered.accesses)
        # What is opaque and touches nothing that is known stands on its pipe for the time alone.
        works = profile.works and (accesses or self._instruction(instance).role is not Role.OPAQUE)
        on_scalars = pipe == self.target.pipes.scalar and accesses
        if (works or on_scalars) and self.clocks.stuck is None:
            self.clocks.work(instance, pipe)
        self._control(instance, profile.late_control)
        for action in profile.behind:
            self._act(instance, action)

    def _act(self, instance: Instance, action: Action) -> None:
        """Count flags in program order, also behind a place that is never reached."""
        if isinstance(action, SetFlag):
            use = self.flags.setdefault((action.pipe, action.waiter, action.event), _FlagUse())
            use.sets += 1
            use.pending += 1
            if use.pending > 1:
                self._tell([self._pending(instance, action, use)])
            use.set_at = self._span(instance)
        elif isinstance(action, WaitFlag):
            use = self.flags.setdefault((action.signaller, action.pipe, action.event), _FlagUse())
            use.waits += 1
            use.pending -= 1
        if self.clocks.stuck is None:
            self.clocks.act(instance, action)

    def _start(self, instance: Instance, pipe: str, known: Clock, count: int) -> None:
        self._tell(self.conflicts.start(instance, pipe, known, count))

    def _control(self, instance: Instance, registers: tuple[str, ...]) -> None:
        """Look whether vector instructions may still run that do not hold the control state themselves."""
        captured = self.target.synchronisation.captured_control
        changed = [register for register in registers if register not in captured]
        vector = self.clocks.pipes[self.target.pipes.vector]
        if not changed or vector not in self.clocks.unfinished() or vector.last is None:
            return
        running, writer = self._instruction(vector.last), self._instruction(instance)
        message = (
            f"{writer.text} ({writer.span}) changes {changed[0]} while {running.text} ({running.span}) "
            f"on {vector.name} may still read it"
        )
        self._tell(
            [Finding(RaceKind.CONTROL, message, (running.span, writer.span), (vector.name,), missing="barrier ALL")]
        )

    # ------------------------------------------------------------------------------------------------- the end

    def _close(self) -> None:
        """Look at what is left when everything was issued."""
        blocked = [(pipe.name, each.instance, each.action) for pipe, each in self.clocks.blocked()]
        if self.clocks.stuck is not None:
            blocked.append((self.clocks.scalar.name, *self.clocks.stuck))
        if blocked:
            self._tell([self._deadlock(blocked)])
        for key, use in self.flags.items():
            if use.sets > use.waits and use.set_at is not None:
                self._tell([_left(key, use.set_at)])
        if not blocked:
            self._tell(self._unfinished())

    def _unfinished(self) -> Iterable[Finding]:
        last = [(pipe.name, self._instruction(pipe.last)) for pipe in self.clocks.unfinished() if pipe.last is not None]
        if last:
            running = ", ".join(f"{each.text} ({each.span}) on {name}" for name, each in last)
            message = f"the function ends while this may still be running: {running}"
            spans = tuple(sorted((each.span for _, each in last), key=lambda span: (span.line, span.column)))
            missing = "barrier ALL at the end of the function"
            yield Finding(RaceKind.UNFINISHED, message, spans, tuple(name for name, _ in last), missing=missing)

    def _deadlock(self, blocked: list[tuple[str, Instance, Action | None]]) -> Finding:
        reasons = []
        for name, instance, action in blocked:
            place = self._span(instance)
            if isinstance(action, WaitFlag):
                flag = f"flag {action.signaller} -> {action.pipe} id {action.event} ({place})"
                reasons.append(f"{name} waits for {flag}, {self._signal(action)}")
            else:
                reasons.append(f"{name} waits for all pipes to drain ({place})")
        spans = tuple(self._span(instance) for _, instance, _ in reversed(blocked))
        return Finding(RaceKind.DEADLOCK, "; ".join(reasons), spans, tuple(name for name, _, _ in blocked))

    def _signal(self, action: WaitFlag) -> str:
        """Describe the fate of a signal that is waited for and never set."""
        use = self.flags[action.signaller, action.pipe, action.event]
        if use.sets >= use.waits:
            return f"set after what {action.signaller} waits for"
        return "which nothing sets again" if use.sets else "which nothing sets"

    def _pending(self, instance: Instance, action: SetFlag, use: _FlagUse) -> Finding:
        here = self._span(instance)
        before = use.set_at or here
        message = (
            f"set_flag {action.pipe} -> {action.waiter} id {action.event} ({here}) comes before anything has waited "
            f"for the previous one ({before})"
        )
        missing = f"wait_flag {action.pipe} -> {action.waiter} id {action.event} between the two, or another id"
        return Finding(RaceKind.PENDING_TWICE, message, (before, here), (action.pipe, action.waiter), missing=missing)

    def _instruction(self, instance: Instance) -> Instruction:
        return self.tree.instructions[instance.lowered.instruction]

    def _span(self, instance: Instance) -> Span:
        return self._instruction(instance).span

    def _tell(self, findings: Iterable[Finding]) -> None:
        """Keep each finding once, however many trips have it."""
        for finding in findings:
            self.findings.setdefault((finding.kind, finding.message), finding)


def _left(key: Key, span: Span) -> Finding:
    signaller, waiter, event = key
    flag = f"{signaller} -> {waiter} id {event}"
    message = f"set_flag {flag} ({span}) is never waited for"
    return Finding(RaceKind.UNMATCHED, message, (span,), (signaller, waiter), missing=f"wait_flag {flag}")

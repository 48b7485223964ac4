"""The pipes of a program without times: what each of them knows to have ended before its next instruction starts.

Every pipe executes in order and counts its instructions. A signal carries the counts that its pipe knew, and that of
the pipe itself, because it is sent only when everything before it has ended; who waits for it knows all that from
then on. The scalar unit issues in program order: what it knows, later instructions of every pipe know. A pipe whose
flag is not there stands still while the others go on, as in the machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from castsim.execution.dataflow.operations import Barrier, SetFlag, WaitFlag
from castsim.execution.dataflow.survey import ALL_PIPES
from castsim.synchronisation.races.unrolling import Instance
from castsim.targets.dataflow import Pipes

Key = tuple[str, str, int]
"""Signaller, waiter, event id."""

Clock = list[int]
"""Per pipe how many of its instructions have ended."""

Start = Callable[[Instance, str, Clock, int], None]
"""Called when an instance starts: its pipe, what that pipe knows, and the count of the instance on it."""


@dataclass(slots=True)
class _Queued:
    """Something in the queue of a pipe: a flag, a barrier, or the work of an instance; and what the issuer knew."""

    action: SetFlag | WaitFlag | Barrier | None
    instance: Instance
    issued: tuple[int, ...]


@dataclass(slots=True)
class _Pipe:
    name: str
    number: int
    known: Clock
    ended: int = 0
    queue: deque[_Queued] = field(default_factory=deque)
    """Not empty only while the first of it waits for a flag."""
    last: Instance | None = None
    """The instance that was started last."""


class Clocks:
    """All pipes; `start` is called for every instance that starts."""

    def __init__(self, pipes: Pipes, start: Start) -> None:
        names = (pipes.scalar, pipes.vector, pipes.load, pipes.store, *pipes.others)
        self.pipes = {name: _Pipe(name, number, [0] * len(names)) for number, name in enumerate(names)}
        self.numbers = {name: pipe.number for name, pipe in self.pipes.items()}
        self.scalar = self.pipes[pipes.scalar]
        self.stuck: tuple[Instance, WaitFlag | Barrier] | None = None
        """The flags that the scalar unit itself waits for and that are never set."""
        self._start = start
        self._signals: dict[Key, deque[Clock]] = {}
        self._waiting: dict[Key, _Pipe] = {}
        self._issuer: tuple[int, ...] = tuple(self.scalar.known)

    def work(self, instance: Instance, name: str) -> None:
        """Issue the work of an instance to a pipe."""
        self._push(self.pipes[name], None, instance)

    def act(self, instance: Instance, action: SetFlag | WaitFlag | Barrier) -> None:
        """Issue a flag or barrier."""
        if action.pipe in (ALL_PIPES, self.scalar.name):
            self._scalar(instance, action)
        else:
            self._push(self.pipes[action.pipe], action, instance)

    def blocked(self) -> list[tuple[_Pipe, _Queued]]:
        """Return the pipes that stand still, with what they wait for, in program order."""
        found = [(pipe, pipe.queue[0]) for pipe in self.pipes.values() if pipe.queue]
        return sorted(found, key=lambda each: each[1].instance.number)

    def unfinished(self) -> list[_Pipe]:
        """Return the pipes that the scalar unit does not know to have ended; of itself it knows."""
        others = (pipe for pipe in self.pipes.values() if pipe is not self.scalar)
        return [pipe for pipe in others if self.scalar.known[pipe.number] < pipe.ended]

    def _scalar(self, instance: Instance, action: SetFlag | WaitFlag | Barrier) -> None:
        """Do what an action of the scalar unit does; all pipes have gone as far as they can."""
        scalar = self.scalar
        if isinstance(action, SetFlag):
            woken = self._signal(scalar, action)
            if woken is not None:
                self._run(woken)
        elif isinstance(action, WaitFlag):
            signals = self._signals.get((action.signaller, action.pipe, action.event))
            if signals:
                _join(scalar.known, signals.popleft())
            else:
                self.stuck = (instance, action)
        elif action.pipe != ALL_PIPES:
            return
        elif self.blocked():
            self.stuck = (instance, action)
        else:
            for pipe in self.pipes.values():
                scalar.known[pipe.number] = pipe.ended
        self._issuer = tuple(scalar.known)

    def _push(self, pipe: _Pipe, action: SetFlag | WaitFlag | Barrier | None, instance: Instance) -> None:
        pipe.queue.append(_Queued(action, instance, self._issuer))
        if len(pipe.queue) == 1:
            self._run(pipe)

    def _run(self, pipe: _Pipe) -> None:
        """Let a pipe go on until it waits; wake those that it signals."""
        ready = [pipe]
        while ready:
            current = ready.pop()
            while current.queue and self._execute(current, current.queue[0], ready):
                current.queue.popleft()

    def _execute(self, pipe: _Pipe, queued: _Queued, ready: list[_Pipe]) -> bool:
        """Execute the head of a queue; return False if it waits for its flag."""
        _join(pipe.known, queued.issued)
        action = queued.action
        if action is None:
            pipe.ended += 1
            pipe.last = queued.instance
            self._start(queued.instance, pipe.name, pipe.known, pipe.ended)
        elif isinstance(action, SetFlag):
            woken = self._signal(pipe, action)
            if woken is not None:
                ready.append(woken)
        elif isinstance(action, WaitFlag):
            key = (action.signaller, action.pipe, action.event)
            signals = self._signals.get(key)
            if not signals:
                self._waiting[key] = pipe
                return False
            _join(pipe.known, signals.popleft())
        else:
            pipe.known[pipe.number] = pipe.ended
        return True

    def _signal(self, pipe: _Pipe, action: SetFlag) -> _Pipe | None:
        """Send a signal; return the pipe that was waiting for it."""
        clock = list(pipe.known)
        clock[pipe.number] = pipe.ended
        key = (action.pipe, action.waiter, action.event)
        self._signals.setdefault(key, deque()).append(clock)
        return self._waiting.pop(key, None)


def _join(known: Clock, other: Clock | tuple[int, ...]) -> None:
    """Take over what another pipe knew."""
    for number, count in enumerate(other):
        known[number] = max(known[number], count)

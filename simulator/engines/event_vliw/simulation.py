"""One simulation: core and global memory put together, run, and reported."""

from __future__ import annotations

from simpy import Environment

from castsim.engines.account import PipeAccount
from castsim.engines.event_vliw.bundle_issue import IssueProcess
from castsim.engines.event_vliw.memory import Port
from castsim.execution.tree import Lowered, Tree, elements
from castsim.isa.errors import EngineError, IllegalError
from castsim.machines.vliw.operations import SLOTS, BundleOperation
from castsim.machines.vliw.timing import MEMORY_FACTS, SEPARATE_PORTS, SHARED_PORT
from castsim.targets.vliw import VliwTarget
from castsim.timing import Cause, Listener, Observer, Timing, Watcher


class VliwSimulation:
    """A run of `tree` on `target`, to be started once with `run`.

    Raises:
        IllegalError: the tree holds operations of another mechanism.
    """

    def __init__(
        self, tree: Tree, target: VliwTarget, observer: Listener | None = None, *, record_operations: bool = True
    ) -> None:
        issued = [element for element in elements(tree.root) if not isinstance(element, Lowered)]
        strange = next((each for each in issued if not isinstance(each, BundleOperation)), None)
        if strange is not None:
            raise IllegalError(f"{target.name} issues bundles; {type(strange).__name__} is not a bundle")
        details = observer if isinstance(observer, Observer) else None
        self._tree = tree
        self._listener = observer
        self._record_operations = record_operations
        self._env = Environment()
        names = SHARED_PORT if target.option("global_ports") == "shared" else SEPARATE_PORTS
        accesses = any(each.loads or each.stores for each in issued if isinstance(each, BundleOperation))
        self._accounts = {name: PipeAccount(name, details) for name in (*SLOTS, *names)}
        interval = target.global_memory.cycles_per_access
        latency = int(target.option("global_latency_cycles"))
        self._ports = ports = [Port(self._env, self._accounts[name], interval, latency) for name in names]
        for port in ports:
            self._env.process(port.serve())
        entries = int(target.option("global_queue_entries"))
        self._core = IssueProcess(self._env, tree, self._accounts, (ports[0], ports[-1]), entries, observer)
        self._core.facts.update(MEMORY_FACTS if accesses else ())

    def run(self, max_cycles: int) -> Timing:
        """Simulate to the end and return cycles and causes.

        Raises:
            EngineError: the end lies beyond `max_cycles`.
        """
        core = self._core
        self._env.process(core.run())
        while self._env.peek() <= max_cycles and not core.finished:
            self._env.step()
        total = core.total()
        if not core.finished or total > max_cycles:
            source = self._tree.instructions[core.current]
            raise EngineError(
                f"cycle limit of {max_cycles} reached at '{source.text}' ({source.span})", span=source.span
            )
        for name, account in self._accounts.items():
            account.charge(Cause.DRAIN if name in SLOTS else Cause.EMPTY, total)
        if self._listener is not None:
            self._listener.progress(total, core.record.operations)
        pipes = {name: account.close() for name, account in self._accounts.items()}
        operations = core.operations() if self._record_operations else ()
        return Timing(total, pipes, core.executions(), operations, frozenset(core.facts))

    def watch(self, watcher: Watcher) -> int:
        """Simulate as far as the watcher listens; return one more than the number of instructions issued."""
        core = self._core
        self._env.process(core.run())
        while not core.finished and not self._heard(watcher.until):
            self._env.step()
        # One bundle may stand still, with its stall told of, beyond the last that was issued.
        for name in SLOTS if core.finished else ():
            self._accounts[name].charge(Cause.DRAIN, core.total())
        for port in self._ports:
            port.pause(core.total() if core.finished or watcher.until is None else watcher.until)
        for account in self._accounts.values():
            account.close()
        return core.record.operations + 1

    def _heard(self, until: int | None) -> bool:
        """Return whether all that happens before `until` has happened, and every slot has accounted for it."""
        return (
            until is not None
            and self._env.peek() > until
            and all(self._accounts[name].cursor >= until for name in SLOTS)
        )

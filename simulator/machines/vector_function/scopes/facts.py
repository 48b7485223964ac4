"""What an instruction of a micro program costs on a target, in ticks (docs/reference/micro.md 6.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from castsim.execution.dataflow.timing import TICKS, ticks
from castsim.machines.vector_function.scopes.scope import Instruction
from castsim.machines.vector_function.timing import FunctionTicks
from castsim.targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True)
class Cost:
    """A compute instruction: when its result returns, and to which port it goes.

    `serial`: how long it holds the first port, 0 if any will do; `held`: cycles for which it holds the port that it
    goes to; `special`: how long the ports of the special functions wait for it, 0 if it is none. `to_store` is the
    time until a store can take its result.
    """

    latency: int
    to_store: int
    serial: int = 0
    special: int = 0
    held: int = 1


@dataclass(slots=True)
class ScopeFacts:
    """The facts of one target, and the costs of the instructions seen so far."""

    target: VectorFunctionTarget
    function: FunctionTicks = field(init=False)
    _costs: dict[tuple[str, int, bool], Cost] = field(default_factory=dict)
    _forwarding: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.function = FunctionTicks.of(self.target)

    def has(self, mnemonic: str, width: int) -> bool:
        """Whether the target has a latency of an instruction."""
        return mnemonic in self.target.timing.chain.latency_cycles or self.target.latency(mnemonic, width) is not None

    def alone(self, instruction: Instruction) -> int | None:
        """Return the cycles for which an access has the port of its kind alone, None if it shares it."""
        cycles = self.target.timing.micro.single_access.cycles
        return cycles.get(instruction.mnemonic, cycles.get(instruction.word.partition("_")[0]))

    def cost(self, instruction: Instruction) -> Cost:
        """Return what a compute instruction costs; the target has its latency."""
        key = instruction.mnemonic, instruction.width, instruction.integers
        known = self._costs.get(key)
        if known is None:
            known = self._costs[key] = self._cost(*key)
        return known

    def forwarded(self, producer: Instruction, consumer: Instruction) -> int:
        """Return the time from the start of an instruction to that of one which computes with its result."""
        key = producer.mnemonic, consumer.mnemonic, producer.width
        known = self._forwarding.get(key)
        if known is None:
            micro = self.target.timing.micro
            pair = micro.forwarding_to.get(consumer.mnemonic)
            stated = None if pair is None else pair.cycles.get(producer.mnemonic)
            if stated is None:
                stated = micro.forwarding.cycles.get(producer.mnemonic)
            known = self.cost(producer).to_store if stated is None else ticks(stated)
            self._forwarding[key] = known
        return known

    def _cost(self, mnemonic: str, width: int, integers: bool) -> Cost:
        timing = self.target.timing
        held = timing.port.occupancy_cycles.get(mnemonic)
        row = self.target.arithmetic.get(mnemonic)
        chain = timing.chain.latency_cycles.get(mnemonic)
        latency = ticks(chain if chain is not None else self._latency(mnemonic, width))
        special = 0
        if held is None and row is not None and row.port == "serial":
            held = row.held
        if held is None and mnemonic in timing.micro.execution.first_port:
            held = Decimal(1)
        if row is not None and row.port == "special":
            special = ticks(timing.special_function.port_cycles["f32" if width >= 32 else "f16"])
        serial = 0 if held is None else max(TICKS, ticks(held))
        several = integers and row is not None and row.integers_held
        return Cost(latency, latency - self.function.forwarding, serial, special, int(several or 1))

    def _latency(self, mnemonic: str, width: int) -> Decimal:
        found = self.target.latency(mnemonic, width)
        assert found is not None  # checked before the run
        return found

"""What may be asked for when a program is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.execution.interpreter import Lowerer
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.sources import Language
from castsim.machines.mechanisms import lowerer_of
from castsim.targets import Target, load_target

if TYPE_CHECKING:
    from castsim.tpc_c.launching import LaunchRequest


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """For which target, from where, and with what a program is loaded.

    `prepare` may alter the chosen target (options), `make_lowerer` how its mechanism lowers. `sync` and `opaque` are
    about tile programs: who synchronises, and how many cycles opaque operations are taken for, by their names.
    `declare` and `machine` are about binaries: the file of their declarations, an ELF machine number to accept.
    """

    target: str | Path | Target | None = None
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    prepare: Callable[[Target], Target] = lambda chosen: chosen
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of
    sync: str = "insert"
    declare: Path | None = None
    machine: int | None = None
    opaque: Mapping[str, int] = field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS
    launch: LaunchRequest | None = None
    """Tensors, index space and engines of a kernel in C."""
    level: int | None = None
    """The placement level that a tile program is held to; None: that of its text."""
    shipped: Callable[[Target], None] = lambda _: None
    """Told of the target as it is before any option is set."""

    def prefers_assembly(self) -> bool:
        """Whether a program whose own text does not tell its language is assembly, as the target runs nothing else."""
        if self.target is None:
            return False
        chosen = load_target(self.target) if isinstance(self.target, str | Path) else self.target
        return chosen.languages == (Language.ASSEMBLY.value,)

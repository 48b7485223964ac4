"""What is to be stepped through, as it was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.engines import ENGINES
from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.isa.errors import ReadError
from castsim.isa.sources import Source
from castsim.running.loading import load
from castsim.running.stepping.stepper import Stepper
from castsim.running.stepping.trace import record
from castsim.targets.options import with_options

if TYPE_CHECKING:
    from castsim.tpc_c.launching import LaunchRequest


@dataclass(frozen=True, slots=True)
class Launch:
    """A program and how it is run: as the options of `castsim run` say."""

    program: str
    target: str | None = None
    entry: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    args: Mapping[str, int | float] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    engine: str | None = None
    limits: Limits = DEFAULT_LIMITS
    declare: Path | None = None
    source: Source | None = None
    """What has been read already: what a kernel in C++ was recorded as."""
    kernel: LaunchRequest | None = None
    """Tensors, index space and engines of a kernel in C."""

    def stepper(self) -> Stepper:
        """Run the program and stop before its first operation.

        Raises:
            CastsimError, EngineError: as `castsim.running.run`.
        """
        if self.engine is not None and self.engine not in ENGINES:
            raise ReadError(f"engine '{self.engine}' is not available", legal=ENGINES)
        loaded = load(
            Path(self.program) if self.source is None else self.source, self.target, self.entry, self.args,
            lambda target: with_options(target, dict(self.options)), declare=self.declare, limits=self.limits,
            launch=self.kernel,
        )  # fmt: skip
        return Stepper(record(loaded, self.inputs, engine=self.engine, limits=self.limits))

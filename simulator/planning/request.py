"""What is asked of the planner: a cast of a specification on a target, and the results that satisfy it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import format_named
from castsim.isa.modes import DETERMINISTIC, Overflow, Rounding
from castsim.numerics import legal_roundings
from castsim.planning.demand import Demand
from castsim.planning.sharing import Shared
from castsim.specifications import specified_cast
from castsim.targets import Specification, Target, load_specification

Mask = NDArray[np.bool_]

MOST_STEPS = 4
"""Instructions of the longest chains that may be asked for."""


@dataclass(frozen=True, slots=True)
class CastRequest:
    """A cast to be planned.

    `spec` is a specification, its name or path, `target` likewise; `version` and `attributes` as for
    `castsim.specifications.specified_cast`. `rounding` asks for results in range rounded by that mode, `saturate` for
    results out of range clamped: an attribute of the specification where it has one with that effect, else a further
    demand beside it. `rows` and `cols` are the extent of the tensor that the assembly converts, `steps` the longest
    chain.
    """

    src: str
    dst: str
    target: str | Path | Target
    spec: str | Path | Specification = "exact"
    version: str | None = None
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    rounding: str | None = None
    saturate: bool = False
    rows: int = 16
    cols: int = 256
    steps: int = MOST_STEPS


def settle(request: CastRequest) -> Demand:
    """Look up the cast and return what satisfies it: one object for all targets.

    Raises:
        ReadError: unknown specification, format, version, attribute or mode.
        IllegalError: the specification does not have the cast, or it is one of text; a mode without meaning for it.
    """
    rounding = request.rounding
    if rounding is not None and rounding not in [mode.value for mode in DETERMINISTIC]:
        raise ReadError(f"unknown rounding mode '{rounding}'", legal=[mode.value for mode in DETERMINISTIC])
    spec = load_specification(request.spec) if isinstance(request.spec, str | Path) else request.spec
    attributes = tuple(sorted((name, str(value)) for name, value in request.attributes.items()))
    key = id(spec), request.src, request.dst, request.version, attributes, rounding, request.saturate
    return _DEMANDS.of(key, lambda: _demand(request, spec), spec)


_DEMANDS: Shared[Demand] = Shared(8)
"""What the last casts ask for; the satisfying results of all codes, which go with them, take some megabytes each."""


def _demand(request: CastRequest, spec: Specification) -> Demand:
    attributes = dict(request.attributes)
    rounding, saturate = request.rounding, request.saturate
    cast = specified_cast(spec, request.src, request.dst, version=request.version, attributes=attributes)
    effects = {attribute.effect: name for name, attribute in cast.spec.attributes.items()}
    if rounding is not None and "rounding" in effects:
        attributes[effects["rounding"]], rounding = rounding, None
    if saturate and "overflow" in effects:
        attributes[effects["overflow"]], saturate = Overflow.SATURATE.value, False
    cast = specified_cast(cast.spec, request.src, request.dst, version=request.version, attributes=attributes)
    if cast.src is None or cast.dst is None:
        raise IllegalError(f"{cast.label}: a cast of text has no codes that a chip could convert")
    mode = None if rounding is None else Rounding(rounding)
    if mode is not None and mode not in legal_roundings(cast.src, cast.dst):
        legal = [legal.value for legal in legal_roundings(cast.src, cast.dst) if legal in DETERMINISTIC]
        raise IllegalError(f"rounding {mode} is not defined for {request.src} -> {request.dst}", legal=legal)
    # A signless source that an attribute reads as unsigned is loaded as the unsigned type of its width.
    return Demand(cast, format_named(cast.src.name), cast.dst, mode, saturate)

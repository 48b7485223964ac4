"""Descriptions of chips: one TOML file each, its schema and the loader; likewise specifications of casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.targets.loader import (
    Target,
    TileTarget,
    is_specification,
    load_specification,
    load_target,
    specification_names,
    target_for_architecture,
    target_names,
)

if TYPE_CHECKING:
    from castsim.targets.specification import Specification

__all__ = [
    "Specification",
    "Target",
    "TileTarget",
    "is_specification",
    "load_specification",
    "load_target",
    "specification_names",
    "target_for_architecture",
    "target_names",
]


def __getattr__(name: str) -> object:
    """Load the class of specifications once it is asked for: programs run without them."""
    if name != "Specification":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from castsim.targets.specification import Specification  # noqa: PLC0415 - as above

    return Specification

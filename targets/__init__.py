"""Descriptions of chips: one TOML file each, its schema and the loader; likewise specifications of casts."""

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

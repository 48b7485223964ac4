"""The results that specifications accept: those of a cast that conform, and TOSA's RESCALE.

`acceptance` gives the conforming results of every element, `accepts` judges results. `rescale` executes TOSA RESCALE.
"""

from castsim.lowering.specifications.acceptance import (
    SpecifiedCast,
    acceptance,
    accepts,
    accepts_text,
    parse_specification,
    specified_cast,
    text_acceptance,
)
from castsim.lowering.specifications.tosa_operators import AcceptanceSets, GraphValidity, Rescale, Rescaled, rescale

__all__ = [
    "AcceptanceSets",
    "GraphValidity",
    "Rescale",
    "Rescaled",
    "SpecifiedCast",
    "acceptance",
    "accepts",
    "accepts_text",
    "parse_specification",
    "rescale",
    "specified_cast",
    "text_acceptance",
]

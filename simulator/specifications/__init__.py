"""The results that specifications accept: those of a cast that conform, and TOSA's RESCALE.

`acceptance` gives the conforming results of every element, `accepts` judges results. `rescale` executes TOSA RESCALE.
"""

from castsim.specifications.acceptance import acceptance, accepts
from castsim.specifications.rescale import GraphValidity, Rescale, Rescaled, rescale
from castsim.specifications.sets import AcceptanceSets
from castsim.specifications.specified import SpecifiedCast, parse_specification, specified_cast
from castsim.specifications.text import accepts_text, text_acceptance

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

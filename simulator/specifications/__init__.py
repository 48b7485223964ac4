"""What specifications accept: the results of a cast that conform, and TOSA's RESCALE.

`acceptance` gives the conforming results of every element, `accepts` judges results. `rescale` executes TOSA RESCALE.
"""

from simulator.specifications.acceptance import acceptance, accepts
from simulator.specifications.rescale import Outcome, Rescale, Rescaled, rescale
from simulator.specifications.sets import AcceptanceSets
from simulator.specifications.specified import SpecifiedCast, parse_specification, specified_cast
from simulator.specifications.text import accepts_text, text_acceptance

__all__ = [
    "AcceptanceSets",
    "Outcome",
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

"""Block quantisation: numbers as narrow elements that share scales.

A block is a run of elements along an axis, a row, a column or a whole tensor; its scale comes from its largest
magnitude by a named rule, and every element is rounded once from the exact quotient of number and scale.
"""

from castsim.quantisation.quantising import BLOCK_FORMATS, BlockFormat, Quantised, block_format, dequantise, quantise
from castsim.quantisation.rules import RULES, ScaleRule

__all__ = [
    "BLOCK_FORMATS",
    "RULES",
    "BlockFormat",
    "Quantised",
    "ScaleRule",
    "block_format",
    "dequantise",
    "quantise",
]

"""What words of programs mean, in a phrase each, where no table of castsim says it at run time.

Source: docs/reference/pto.md sections 3 to 7, docs/reference/formats.md section 6, docs/reference/tpc.md section 2.
"""

from __future__ import annotations

from collections.abc import Mapping

from castsim.isa.modes import Rounding
from castsim.isa.pto.vector_operations import Kind

SHAPES: Mapping[Kind, str] = {
    Kind.MOVE: "copies the elements that both tiles have",
    Kind.FILL: "copies the source and fills what is around it with the pad value",
    Kind.ELEMENTWISE: "works element by element on tiles of equal valid regions",
    Kind.SELECT: "takes each element from one source or the other, by one bit of a mask",
    Kind.BROADCAST: "writes a scalar to every element",
    Kind.COMPARE: "compares element by element and writes one bit for each",
    Kind.ROW_REDUCE: "reduces every row to one element",
    Kind.ROW_EXPAND: "repeats the first element of every row in all its columns",
    Kind.ROW_BROADCAST: "combines every row with the one element, or block, that a vector has for it",
    Kind.COLUMN_REDUCE: "reduces every column to one element",
    Kind.ROW_ARGUMENT: "gives for every row the column of the extreme element",
    Kind.COLUMN_ARGUMENT: "gives for every column the row of the extreme element",
    Kind.COLUMN_EXPAND: "repeats the first row in all rows",
    Kind.COLUMN_BROADCAST: "combines every column with the one element that a vector has for it",
    Kind.RAMP: "writes numbers that ascend or descend from a scalar, in one row",
    Kind.GATHER: "takes the elements that a tile of numbers names",
    Kind.PATTERN_GATHER: "takes every so many-th column, or row",
    Kind.COMPARE_GATHER: "gives the numbers of the columns that compare so with a scalar, and how many they are",
    Kind.SORT: "sorts pairs of an element and its number within groups",
    Kind.MERGE: "merges sorted lists of such pairs",
    Kind.TRANSPOSE: "turns rows into columns",
    Kind.PART: "combines both sources where both are valid, and copies the one that is valid elsewhere",
    Kind.CONCATENATE: "puts the rows of two tiles side by side",
    Kind.QUANTISE: "multiplies every row by its factor, perhaps adds an offset, and rounds to 8 bits",
    Kind.DEQUANTISE: "takes the offset of its row from every integer and multiplies by its scale",
    Kind.BLOCK_QUANTISE: "divides groups of 32 elements by shared powers of two and rounds them to 8 bits",
    Kind.PACK: "keeps the low bytes of every element",
    Kind.BOX: "moves bytes into boxes as the matrix unit reads them: shared exponents, or codes",
    Kind.COUNTED_CONCATENATE: "puts as many elements of the rows of two tiles side by side as two tiles of counts say",
}
"""What an operation of each kind does."""

ROUNDINGS: Mapping[Rounding, str] = {
    Rounding.RINT: "to nearest, ties to even",
    Rounding.ROUND: "to nearest, ties away from zero",
    Rounding.FLOOR: "toward minus infinity",
    Rounding.CEIL: "toward plus infinity",
    Rounding.TRUNC: "toward zero",
    Rounding.ODD: "to odd: an inexact result gets 1 as its last kept bit",
    Rounding.HALF_UP: "to nearest, ties toward plus infinity",
    Rounding.STOCHASTIC: "up with the probability of the dropped part",
    Rounding.HYBRID: "ties away from zero near one, pseudo-stochastic elsewhere",
}
"""What each rounding mode does."""

OTHERS: Mapping[str, str] = {
    "pto.tcvt": "converts every element of a tile to the element type of another",
    "pto.tload": "copies a part of a tensor from global memory to a tile (pipe MTE2)",
    "pto.tstore": "copies a tile to a part of a tensor in global memory (pipe MTE3)",
    "pto.alloc_tile": "reserves a tile in the unified buffer; `addr` places it by hand (level 3)",
    "pto.make_tensor_view": "gives a pointer a shape and strides, both in elements",
    "pto.partition_view": "is the part of a view from `offsets` of `sizes`",
    "pto.set_flag": "signals the second pipe when the first has come here: `[producer, consumer, event]`",
    "pto.wait_flag": "makes the second pipe wait for a flag of the first: `[producer, consumer, event]`",
    "pto.barrier": "makes a pipe, or all, finish what was issued before it begins what comes behind",
    "pto.set_validshape": "gives a tile with dynamic valid extents new ones",
    "pto.subview": "is a part of a tile, in the same bytes",
    "pto.treshape": "gives the bytes of a tile another shape; nothing moves",
    "pto.vecscope": "encloses vector instructions, which run as one vector function",
    "scf.for": "runs its body for every value from the lower bound up to the upper one, that one exclusive",
    "scf.if": "runs one of two blocks",
    "scf.while": "runs its second block as long as the condition of its first holds",
    "scf.yield": "hands values on to the next trip, or out of the block",
    "arith.constant": "is a scalar constant",
    "func.func": "is a function; `pto.entry` marks the one that is run",
    "func.call": "calls another function of the file",
    "return": "ends the function",
}
"""What operations do that are in no table of vector operations."""

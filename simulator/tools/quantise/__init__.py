"""Quantisation of numbers to blocks that share a scale."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _quantise(parser: OptionParser) -> None:
    """Elements are the numbers divided by the scale of their block, each rounded once. FORMAT is a block format,
    mxfp8_e4m3, mxfp8_e5m2, mxfp6_e3m2, mxfp6_e2m3, mxfp4_e2m1, mxint8 (blocks of 32, e8m0 scales) or nvfp4 (16,
    e4m3fn), or the format of the elements (e4m3fn, i8, ...), which then have f32 scales, one for each row. VALUE is
    as for cast.

    --per says what shares a scale: --block elements along --axis (block, group), all along it (token), all but it
    (channel), or everything (tensor); --block 128x128 are tiles of the last axes. --scale floor, ceil, even and
    rceil make powers of two; nearest divides by the largest element. A block that holds NaN has the scale NaN.

    examples:
      castsim quantise f32 mxfp8_e4m3 1000 -3 0.1 457 480 --scale floor
      castsim quantise f32 mxfp4_e2m1 7 -2.5 5 1.25 --scale rceil
      castsim quantise f32 mxfp8_e4m3 --in x.npy --block 32 --scale even --out folder
      castsim quantise f32 i8 --in x.npy --per token
      castsim quantise f32 e4m3fn --in x.npy --block 128x128 --scale-format e8m0
    """
    add = parser.add_argument
    add("src", metavar="SRC", help="float format of the numbers")
    add("dst", metavar="FORMAT", help="block format, or format of the elements")
    add("values", metavar="VALUE", nargs="*", help="number, nan, inf, -inf, or 0x bits; not with --in")
    add("--in", metavar="FILE", dest="input", help="array of numbers or codes (.npy)")
    add("--block", metavar="N", help="elements that share a scale, or sizes along the last axes: 128x128")
    add("--per", metavar="SPAN", help="block, group, token, channel or tensor; default: block if a size is known")
    add("--axis", metavar="N", default="-1", help="axis of blocks, tokens and channels; default: -1, the last")
    add("--scale", metavar="RULE", help="floor, ceil, even, rceil or nearest; default: the format's own")
    add("--scale-format", metavar="F", help="e8m0, f32, e4m3fn, ...; default: the format's own")
    add("--zero-scale", metavar="Z", default="smallest", help="scale of blocks of zeros: smallest (default) or one")
    add("--rounding", metavar="M", help="rounding of the elements; default: rint (HiFloat8: round)")
    add("--out", metavar="DIR", help="write DIR/elements.npy, DIR/scales.npy and, as f32, DIR/values.npy")


FEATURES = (
    Feature(
        "quantise",
        "casts and specifications",
        "quantise numbers to blocks that share a scale: codes, scales, error",
        _quantise,
        "castsim.tools.quantise.command",
        documents=("castsim.tools.quantise.command:Quantise",),
    ),
)

"""Elements are the numbers divided by the scale of their block, each rounded once. FORMAT is a block format,
mxfp8_e4m3, mxfp8_e5m2, mxfp6_e3m2, mxfp6_e2m3, mxfp4_e2m1, mxint8 (blocks of 32, e8m0 scales) or nvfp4 (16, e4m3fn), or
the format of the elements (e4m3fn, i8, ...), which then have f32 scales, one for each row. VALUE is as for cast.

--per says what shares a scale: --block elements along --axis (block, group), all along it (token), all but it
(channel), or everything (tensor); --block 128x128 are tiles of the last axes. --scale floor, ceil, even and rceil make
powers of two; nearest divides by the largest element. A block that holds NaN has the scale NaN.

examples:
  castsim quantise f32 mxfp8_e4m3 1000 -3 0.1 457 480 --scale floor
  castsim quantise f32 mxfp4_e2m1 7 -2.5 5 1.25 --scale rceil
  castsim quantise f32 mxfp8_e4m3 --in x.npy --block 32 --scale even --out folder
  castsim quantise f32 i8 --in x.npy --per token
  castsim quantise f32 e4m3fn --in x.npy --block 128x128 --scale-format e8m0
"""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

import numpy as np

from castsim.commands.cast import read_value
from castsim.commands.outcome import CommandOutcome
from castsim.commands.shared_options import OptionParser
from castsim.execution.input_data import read_array, write_array
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes, Format
from castsim.isa.value_expressions import format_spelled
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes
from castsim.numerics.quantisation import quantise
from castsim.reports.cast_text import SHOWN, quantised_document, quantised_rows, quantised_text


def declare(parser: OptionParser) -> None:
    """Add the arguments of `quantise`."""
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


def execute(options: Namespace) -> CommandOutcome:
    """Quantise the values or the file.

    Raises:
        ReadError: a format, rule or span is unknown, a value is not a number, or a file is not an array.
        IllegalError: a format cannot be that of elements, scales or numbers.
    """
    src = format_spelled(options.src)
    array = _given(options, src)
    made = quantise(
        array,
        src.name,
        options.dst,
        block=_block(options.block),
        per=options.per,
        axis=_integer("--axis", options.axis),
        scale=options.scale,
        scale_format=options.scale_format,
        rounding=options.rounding,
        zero_scale=options.zero_scale,
    )
    files: dict[str, Path] = {}
    if options.out is not None:
        for name, written in (("elements", made.elements), ("scales", made.scales), ("values", made.dequantise())):
            files[name] = Path(options.out) / f"{name}.npy"
            write_array(files[name], written)
    rows = quantised_rows(array, src, made) if np.size(array) <= SHOWN else ()
    document = quantised_document(src, made, rows, files)

    return CommandOutcome(document, lambda _: quantised_text(src, made, rows, files))


def _given(options: Namespace, src: Format) -> Codes:
    """Return the array to quantise.

    Raises:
        ReadError: neither values nor a file were given, or both were.
    """
    if bool(options.values) == (options.input is not None):
        both = "both VALUEs and --in" if options.values else "nothing to quantise"
        raise ReadError(both, legal=("VALUE ...", "--in FILE.npy"))
    if options.input is not None:
        return read_array(Path(options.input), "x")
    codes = [read_value(text.strip(), src).code for text in options.values]
    return array_from_codes(np.array(codes, code_dtype(src)), src)


def _block(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", text, re.ASCII):
        raise ReadError(f"--block '{text[:40]}' is not a block size", legal=("--block 32", "--block 128x128"))
    sizes = tuple(map(int, text.split("x")))
    return sizes if len(sizes) > 1 else sizes[0]


def _integer(option: str, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,4}", text, re.ASCII):
        raise ReadError(f"{option} '{text[:40]}' is not an integer", legal=(f"{option} -1",))
    return int(text)

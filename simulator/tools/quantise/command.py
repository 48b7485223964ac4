"""The command `quantise`: quantise numbers to blocks that share a scale: codes, scales, error."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from castsim.commands.cast import read_value
from castsim.commands.outcome import CommandOutcome
from castsim.execution.input_data import read_array, write_array
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Codes, Format
from castsim.isa.value_expressions import format_spelled
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes, codes_from_array, value_of
from castsim.reports.cast_text import number_text
from castsim.reports.documents import CommandDocument, Keys, apart, derived, record, says
from castsim.reports.numbers import Number, bits_text, json_value
from castsim.reports.schemas.keys import Bits, Elements, Name, Value
from castsim.reports.terminal import composed, table
from castsim.tools.quantise.quantisation import RULES, QuantisationError, Quantised, quantise

_SHOWN = 256
"""Maximum number of elements that are shown individually."""


@record
class QuantisedElement(Keys):
    """One number of the array."""

    src: Format = apart()
    exact: Number = apart()
    """The number."""
    product: Number = apart()
    """Element times scale."""
    input_bits: Bits = says("Its code.")
    number: Value = derived(
        "The number, or `nan`, `inf`, `-inf`.", lambda element: json_value(element.exact, element.src)
    )
    element_bits: Bits = says("The code of the element.")
    scale_bits: Bits = says("The code of its block's scale.")
    value: Value = derived("Element times scale.", lambda element: json_value(element.product, FORMATS["f64"]))


class Quantise(CommandDocument, name="quantise"):
    """An array quantised to elements that share scales."""

    format: str = says("The block format, or the format of the elements.", "format.name")
    source_format: str = says("Format of the numbers.")
    element_format: str = says("Format of the elements.", "format.element")
    scale_format: str = says("Format of the scales.", "format.scale")
    scale_rule: Annotated[str, ("enum", tuple(RULES))] = says(
        "The rule that derives scales from the largest magnitude.", "format.rule"
    )
    shape: list[int] = says("Shape of the array.", "elements.shape")
    block: list[Elements] = says("Size of a block along each axis.", "blocks")
    blocks: int = says("Number of blocks, each with a scale.", "scales.size")
    error: QuantisationError = says("The errors.", "statistics")
    elements: list[QuantisedElement] = says("The elements in C order; empty if there are more than 256.")
    files: dict[Name, str] = says("With `--out`: the files written.")


def execute(options: Namespace) -> CommandOutcome:
    """Quantise the values or the file.

    Raises:
        ReadError: a format, rule or span is unknown, a value is not a number, or a file is not an array.
        IllegalError: a format cannot be that of elements, scales or numbers.
    """
    src = format_spelled(options.src)
    array = _given(options.values, options.input, src)
    quantised = quantise(
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
        for name, written in (
            ("elements", quantised.elements),
            ("scales", quantised.scales),
            ("values", quantised.dequantise()),
        ):
            files[name] = Path(options.out) / f"{name}.npy"
            write_array(files[name], written)
    elements = [*_elements(array, src, quantised)] if np.size(array) <= _SHOWN else []
    document = Quantise.of(quantised, source_format=src, elements=elements, files=files)
    return CommandOutcome(document, lambda _: quantised_text(src, quantised, elements, files))


def _given(values: Sequence[str], file: str | None, src: Format) -> Codes:
    """Return the array to quantise.

    Raises:
        ReadError: neither values nor a file were given, or both were.
    """
    if bool(values) == (file is not None):
        both = "both VALUEs and --in" if values else "nothing to quantise"
        raise ReadError(both, legal=("VALUE ...", "--in FILE.npy"))
    if file is not None:
        return read_array(Path(file), "x")
    codes = [read_value(text.strip(), src).code for text in values]
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


def _elements(array: Codes, src: Format, quantised: Quantised) -> Iterator[QuantisedElement]:
    """Yield the numbers of an array in C order."""
    element, scale, f64 = quantised.format.element, quantised.format.scale, FORMATS["f64"]
    codes = codes_from_array(np.asarray(array), src)
    scales = codes_from_array(quantised.scales, scale)
    elements = codes_from_array(quantised.elements, element)
    values = codes_from_array(np.asarray(quantised.dequantise("f64")), f64)
    for position in np.ndindex(codes.shape):
        block = tuple(index // size for index, size in zip(position, quantised.blocks, strict=True))
        code = int(codes[position])
        yield QuantisedElement(
            src=src,
            exact=value_of(code, src),
            product=value_of(int(values[position]), f64),
            input_bits=bits_text(code, src),
            element_bits=bits_text(int(elements[position]), element),
            scale_bits=bits_text(int(scales[block]), scale),
        )


@composed
def quantised_text(
    src: Format, quantised: Quantised, elements: Sequence[QuantisedElement], files: Mapping[str, Path]
) -> Iterator[RenderableType]:
    """Yield the elements of a small array, and the statistics of the error."""
    chosen, statistics = quantised.format, quantised.statistics
    yield Text(f"{src.name} -> {chosen.name}", style="bold")
    blocks = f"{quantised.scales.size} block{'' if quantised.scales.size == 1 else 's'}"
    size = "x".join(map(str, quantised.blocks)) or "1"
    yield Text(f"{statistics.elements} elements {chosen.element.name} in {blocks} of up to {size}, ", end="")
    yield Text(f"scales {chosen.scale.name} by {chosen.rule}")
    if elements:
        rows = (
            (number_text(row.exact), row.input_bits, row.element_bits, row.scale_bits, number_text(row.product))
            for row in elements
        )
        yield table(">number", ">input bits", ">element", ">scale", ">value", rows=rows)
    noise = "-" if statistics.signal_to_noise_db is None else f"{statistics.signal_to_noise_db:.2f} dB"
    yield Text(f"largest error: {statistics.largest_error:.6g} (relative: {statistics.largest_relative_error:.3g})")
    yield Text(f"root mean square error: {statistics.root_mean_square_error:.6g}, signal to noise: {noise}")
    yield Text(
        f"clamped: {statistics.clamped}, became zero: {statistics.to_zero}, blocks with NaN: {statistics.nan_blocks}"
    )
    if statistics.compared < statistics.elements:
        yield Text(f"errors are of the {statistics.compared} finite numbers outside blocks with NaN", style="dim")
    for name, path in files.items():
        yield Text(f"{name}: {path}")

"""Quantised numbers as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from castsim.isa.dataclass import dataclass
from castsim.isa.formats import FORMATS, Codes, Format
from castsim.numerics.codec import codes_from_array, value_of
from castsim.reports.cast_text import number_text
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import Number, bits_text, json_value
from castsim.reports.schemas.keys import Bits, Elements, Name, Value
from castsim.reports.terminal import composed, table
from castsim.tools.quantise.quantisation import RULES, QuantisationError, Quantised


@dataclass(frozen=True, slots=True)
class QuantisedRow:
    """One number: its code, the codes of its element and block scale, and the value of both together."""

    code: int
    number: Number
    element: int
    scale: int
    value: Number


def quantised_rows(array: Codes, src: Format, quantised: Quantised) -> tuple[QuantisedRow, ...]:
    """Return the numbers of an array in C order."""
    codes = codes_from_array(np.asarray(array), src)
    scales = codes_from_array(quantised.scales, quantised.format.scale)
    elements = codes_from_array(quantised.elements, quantised.format.element)
    values = codes_from_array(np.asarray(quantised.dequantise("f64")), FORMATS["f64"])
    return tuple(
        QuantisedRow(
            int(codes[position]),
            value_of(int(codes[position]), src),
            int(elements[position]),
            int(scales[tuple(index // size for index, size in zip(position, quantised.blocks, strict=True))]),
            value_of(int(values[position]), FORMATS["f64"]),
        )
        for position in np.ndindex(codes.shape)
    )


class QuantisedElement(Keys):
    """One number of the array."""

    input_bits: Bits = says("Its code.")
    number: Value = says("The number, or `nan`, `inf`, `-inf`.")
    element_bits: Bits = says("The code of the element.")
    scale_bits: Bits = says("The code of its block's scale.")
    value: Value = says("Element times scale.")


class Quantise(CommandDocument, name="quantise"):
    """An array quantised to elements that share scales."""

    format: str = says("The block format, or the format of the elements.", "format.name")
    source_format: str = says("Format of the numbers.")
    element_format: str = says("Format of the elements.", "format.element")
    scale_format: str = says("Format of the scales.", "format.scale")
    scale_rule: Annotated[str, ("enum", tuple(RULES))] = says(of="format.rule")
    """The rule that derives scales from the largest magnitude."""
    shape: list[int] = says("Shape of the array.", "elements.shape")
    block: list[Elements] = says("Size of a block along each axis.", "blocks")
    blocks: int = says("Number of blocks, each with a scale.", "scales.size")
    error: QuantisationError = says("The errors.", "statistics")
    elements: list[QuantisedElement] = says("The elements in C order; empty if there are more than 256.")
    files: dict[Name, str] = says("With `--out`: the files written.")


def quantised_document(
    src: Format, quantised: Quantised, rows: Sequence[QuantisedRow], files: Mapping[str, Path]
) -> Document:
    """Return a quantised array as JSON; individual elements only for small arrays."""
    element, scale = quantised.format.element, quantised.format.scale
    elements = [
        QuantisedElement.of(
            input_bits=bits_text(row.code, src),
            number=json_value(row.number, src),
            element_bits=bits_text(row.element, element),
            scale_bits=bits_text(row.scale, scale),
            value=json_value(row.value, FORMATS["f64"]),
        )
        for row in rows
    ]
    return Quantise.of(quantised, source_format=src, elements=elements, files=files)


@composed
def quantised_text(
    src: Format, quantised: Quantised, rows: Sequence[QuantisedRow], files: Mapping[str, Path]
) -> Iterator[RenderableType]:
    """Yield the elements of a small array, and the statistics of the error."""
    chosen, statistics = quantised.format, quantised.statistics
    yield Text(f"{src.name} -> {chosen.name}", style="bold")
    blocks = f"{quantised.scales.size} block{'' if quantised.scales.size == 1 else 's'}"
    size = "x".join(map(str, quantised.blocks)) or "1"
    yield Text(f"{statistics.elements} elements {chosen.element.name} in {blocks} of up to {size}, ", end="")
    yield Text(f"scales {chosen.scale.name} by {chosen.rule}")
    if rows:
        cells = (
            (number_text(row.number), bits_text(row.code, src), bits_text(row.element, chosen.element),
             bits_text(row.scale, chosen.scale), number_text(row.value))
            for row in rows
        )  # fmt: skip
        yield table(">number", ">input bits", ">element", ">scale", ">value", rows=cells)
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

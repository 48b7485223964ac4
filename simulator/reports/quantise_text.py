"""What block quantisation made of an array, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.isa.formats import Format
from castsim.quantisation import Quantised
from castsim.reports.cast_text import number_text
from castsim.reports.numbers import bits_text
from castsim.reports.quantise import QuantisedRow
from castsim.reports.terminal import table


def quantised_text(
    src: Format, made: Quantised, rows: Sequence[QuantisedRow], files: Mapping[str, Path]
) -> RenderableType:
    """Return the elements if they are few, and the statistics of the error."""
    return Group(*_parts(src, made, rows, files))


def _parts(
    src: Format, made: Quantised, rows: Sequence[QuantisedRow], files: Mapping[str, Path]
) -> Iterator[RenderableType]:
    chosen, found = made.format, made.statistics
    yield Text(f"{src.name} -> {chosen.name}", style="bold")
    blocks = f"{made.scales.size} block{'' if made.scales.size == 1 else 's'}"
    size = "x".join(map(str, made.blocks)) or "1"
    yield Text(f"{found.elements} elements {chosen.element.name} in {blocks} of up to {size}, ", end="")
    yield Text(f"scales {chosen.scale.name} by {chosen.rule}")
    if rows:
        numbers = ("number", "input bits", "element", "scale", "value")
        shown = table(*numbers, numbers=numbers)
        for row in rows:
            shown.add_row(
                number_text(row.number),
                bits_text(row.code, src),
                bits_text(row.element, chosen.element),
                bits_text(row.scale, chosen.scale),
                number_text(row.value),
            )
        yield shown
    noise = "-" if found.signal_to_noise_db is None else f"{found.signal_to_noise_db:.2f} dB"
    yield Text(f"largest error: {found.largest_error:.6g} (relative: {found.largest_relative_error:.3g})")
    yield Text(f"root mean square error: {found.root_mean_square_error:.6g}, signal to noise: {noise}")
    yield Text(f"clamped: {found.clamped}, became zero: {found.to_zero}, blocks with NaN: {found.nan_blocks}")
    if found.compared < found.elements:
        yield Text(f"errors are of the {found.compared} finite numbers outside blocks with NaN", style="dim")
    for name, path in files.items():
        yield Text(f"{name}: {path}")

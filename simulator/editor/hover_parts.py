"""Parts that hovers of both languages are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from castsim.editor.conversions import converted
from castsim.isa.errors import CastsimError
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.modes import Saturation
from castsim.machines.target_cast import CastForm
from castsim.targets import Target


@dataclass(slots=True)
class Said:
    """Paragraphs in Markdown; `of_operation` tells whether they are about what the line executes."""

    parts: list[str]
    of_operation: bool = False


def conversion_part(
    src: Format,
    dst: Format,
    target: Target,
    rounding: str | None,
    saturation: Saturation | None,
    *,
    scratch: bool = False,
    form: CastForm | None = None,
) -> str:
    """Return what a target makes of a conversion: whether it has it, modes, a table of special values."""
    try:
        found = converted(src, dst, target, rounding, saturation, scratch=scratch, form=form)
    except CastsimError as error:
        legal = f"\n\nlegal: {', '.join(error.values)}" if error.values else ""
        return f"**{src.name} -> {dst.name}** on {target.name}: {error.message}{legal}"
    rows = "\n".join(f"| {value} | {result} |" for value, result in found.values)
    modes = "\n".join(f"- {mode}" for mode in found.modes)
    return f"**{src.name} -> {dst.name}** on {target.name}\n\n{modes}\n\n| {src.name} | {dst.name} |\n|--|--|\n{rows}"


def format_part(fmt: Format, spelling: str) -> str:
    """Return what a number format is made of."""
    about = f"`{spelling}` is the format {fmt.name}: {fmt.bits} bits"
    if isinstance(fmt, IntFormat):
        return f"{about}, integers {fmt.minimum} to {fmt.maximum}"
    if isinstance(fmt, FloatFormat):
        fields = f"{fmt.exponent_bits} of exponent (bias {fmt.bias}), {fmt.fraction_bits} of fraction"
        specials = [
            word
            for word, there in (("infinities", fmt.has_infinity), ("NaN", fmt.has_nan), ("-0", fmt.has_negative_zero))
            if there
        ]
        return f"{about}, {fields}; has {', '.join(specials) or 'finite numbers only'}"
    return about


def listed(words: Sequence[str]) -> str:
    """Return words as code, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)

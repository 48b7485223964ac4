"""The casts of a target, described alike for every mechanism, and the formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from castsim.isa import formats as rows_of_formats
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat, format_named
from castsim.machines.registry import MachinePart
from castsim.reports.documents import CommandDocument, Keys, record, says
from castsim.targets.description import Status, TargetHeader
from castsim.targets.loader import Target, load_target, target_names


@record
class PairEntry(Keys):
    """A type pair."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    modes: Sequence[str] = says("The rounding modes that take effect; none if there is only one instruction.")
    default: str | None = says("The effective mode if none is given; null if nothing is rounded.")
    fallback: str | None = says("The effective mode if the given one is not available; null if there is none.")
    saturation: str = says()
    """The default, `on` or `off`, if there is a choice; else the effect beyond the range with the options in force:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed` if all numbers are in range."""
    switchable: str = says("The condition under which the other value takes effect.")
    scratch: str | None = says("The sequence through a tmp tile; null if there is none.")


@record
class ModeEntry(Keys):
    """The effect of requesting a rounding mode."""

    requested: str = says("The requested mode; `default` if none is given.")
    in_force: str | None = says("The effective mode; null if nothing is rounded.")
    mnemonic: str = says("The instruction.")
    warning: str | None = says("The warning for a program; null if there is none.")


@record
class SaturationEntry(Keys):
    """The effect of requesting a saturation mode."""

    requested: str = says("The requested mode; `default` if none is given.")
    scratch: bool = says("Whether a tmp tile is given.")
    in_force: str = says("The effective mode, in the words of `saturation` of the pair.")
    warning: str | None = says("The warning for a program; null if there is none.")


@record
class ScratchSequence(Keys):
    """The sequence of instructions through a tmp tile."""

    steps: str = says("Its name.")
    operations: Sequence[str] = says("The operations for one element.")
    status: Status = says("Evidence for the sequence.")
    source: str = says("Source of the sequence.")


@record
class ConfigurationEntry(Keys):
    """A number of the instruction, or a word about it."""

    name: str = says("Name of the parameter.")
    value: object = says("Its value.")


@record
class TargetPair(CommandDocument, PairEntry, name="targets-pair", version=3):
    """One type pair of a target."""

    target: TargetHeader = says("Name of the target.")
    mnemonics: Sequence[ModeEntry] = says("The rounding modes.")
    saturation_modes: Sequence[SaturationEntry] = says("The saturation modes.")
    configuration: Sequence[ConfigurationEntry] = says("The mechanism's own numbers.")
    scratch_sequence: ScratchSequence | None = says("The sequence through a tmp tile; null if there is none.")
    note: str = says("A note; may be empty.")
    status: Status = says("Evidence for the pair.")
    source: str = says("Source of the pair.")


class PairsReport(Protocol):
    """Interface of a mechanism's module; `target` has that mechanism."""

    def rows(self, target: Target) -> tuple[PairEntry, ...]:
        """See `pair_rows`."""
        ...

    def detail(self, target: Target, src: Format, dst: Format) -> TargetPair:
        """See `pair_detail`."""
        ...


PAIRS: MachinePart[PairsReport] = MachinePart(
    "report on the casts",
    {
        "strided-repeat": "castsim.reports.pairs_strided",
        "vector-function": "castsim.reports.pairs_vector_function",
        "vliw": "castsim.reports.pairs_vliw",
    },
)
"""The module that describes the casts of each mechanism."""


def pair_rows(target: Target) -> tuple[PairEntry, ...]:
    """Return every legal pair of a target, in the order of its description."""
    return PAIRS.of(target).rows(target)


def pair_detail(target: Target, src: Format, dst: Format) -> TargetPair:
    """Return one pair in full.

    Raises:
        IllegalError: the target lacks the pair; the message names the available destinations.
    """
    return PAIRS.of(target).detail(target, src, dst)


@record
class FormatEntry(Keys):
    """A number format."""

    name: str = says("The name that castsim prints.")
    kind: str = says("`float`, `tapered float` (its mantissa is shorter in outer binades) or `integer`.")
    bits: int = says("Bits of a code.")
    exponent_bits: int | None = says("Bits of the exponent; null without a fixed width.")
    mantissa_bits: int | None = says("Stored bits of the mantissa; null without a fixed width.")
    bias: int | None = says("Bias of the exponent; null without a fixed exponent.")
    smallest: int | float = says("The most negative finite number, or 0.")
    largest: int | float = says("The largest finite number.")
    smallest_normal: float | None = says("The smallest positive normal number; null for integers.")
    smallest_subnormal: float | None = says("The smallest positive subnormal number; null if there are none.")
    infinities: bool = says("Whether there are infinities.")
    nan: bool = says("Whether there is a NaN.")
    targets: Sequence[str] = says("Shipped targets that cast from or to it.")
    aliases: Sequence[str] = says("Other names that every command accepts.")


class FormatsList(CommandDocument, name="formats"):
    """The number formats."""

    formats: list[FormatEntry] = says("The requested formats, or all.")


def formats(*names: str) -> tuple[FormatEntry, ...]:
    """Return the number formats with these names or aliases, or all of them.

    Args:
        names: names or aliases of formats; without any, all formats.

    Raises:
        ReadError: the format does not exist.
    """
    casting = {
        target: {name for row in pair_rows(load_target(target)) for name in (row.src, row.dst)}
        for target in target_names()
    }
    chosen = map(format_named, names) if names else FORMATS.values()
    return tuple(_format_entry(fmt, casting) for fmt in dict.fromkeys(chosen))


def _format_entry(fmt: Format, casting: Mapping[str, set[str]]) -> FormatEntry:
    from castsim.numerics.codec import value_of  # noqa: PLC0415 - a list of targets needs no NumPy

    name, _, _ = fmt.name.partition("@")  # a bias of its own changes no name
    targets = tuple(target for target, cast in casting.items() if name in cast)
    aliases = tuple(sorted(alias for alias, meant in rows_of_formats._ALIASES.items() if meant == name != alias))
    if isinstance(fmt, IntFormat):
        limits = fmt.minimum, fmt.maximum, None, None
        return FormatEntry(
            fmt.name, "integer", fmt.bits, None, None, None, *limits, infinities=False, nan=False,
            targets=targets, aliases=aliases,
        )  # fmt: skip
    widths: tuple[int | None, int | None, int | None] = (None, None, None)
    if isinstance(fmt, FloatFormat):
        widths = fmt.exponent_bits, fmt.fraction_bits, fmt.bias
        first_normal = 1 << fmt.fraction_bits if fmt.has_zero else 0
    else:  # docs/reference/formats.md section 2: codes 1 to 7 are the subnormal numbers
        first_normal = next(binade.first_code for binade in fmt.binades if binade.first_code > 7)
    largest = float(value_of(fmt.max_finite_code, fmt))
    subnormal = float(value_of(1, fmt)) if fmt.has_zero and first_normal > 1 else None
    return FormatEntry(
        fmt.name, "tapered float" if widths[0] is None else "float", fmt.bits, *widths,
        -largest if fmt.signed else 0, largest, float(value_of(first_normal, fmt)), subnormal,
        fmt.has_infinity, fmt.has_nan, targets, aliases,
    )  # fmt: skip

"""The machine of a target and its parts by mechanism: lowering, values, vector instructions, launches, single casts.

It also defines the request and the result of a single cast, and the names of rounding modes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Protocol, cast

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError, Warnings
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, Overflow, Rounding, Saturation, TaperedFormat
from castsim.isa.pto.program import RoundMode, TileType
from castsim.isa.pto.value_types import element_format
from castsim.machines.registry import MachinePart, loaded
from castsim.numerics.codec import value_of
from castsim.numerics.policy import Policy
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.loader import Target, TileTarget

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castsim.execution.buffer_values import CastCounts, Follower
    from castsim.execution.interpreter.lowerer import Lowerer
    from castsim.execution.interpreter.vector_unit import Body, MicroMemory, RecordingUnit, VectorUnit
    from castsim.execution.outcomes import CastTally
    from castsim.execution.tree import Tree
    from castsim.isa.pto.program import Function

    Bytes = NDArray[np.uint8]


# What a mechanism answers for one of its chips: how instructions are lowered, and what they make of values.
#
# What stands above the machines (engines, estimators, planning, reports) adds its own parts by mechanism, each in its
# room, as a `MachinePart`.


class ComputeValues(Protocol):
    """Function that runs all operations of a tree on the buffer and the global memory, both changed in place."""

    def __call__(
        self,
        tree: Tree,
        buffer: Bytes,
        arguments: Mapping[str, Bytes],
        *,
        shortcuts: bool = True,
        follower: Follower | None = None,
        counts: CastCounts | None = None,
    ) -> None:
        """Run the operations; `shortcuts` False: one by one even if a shortcut for a whole tile is proven equal."""


class VectorUnits(Protocol):
    """The services of a target for programs of vector instructions."""

    def unit(self, memory: MicroMemory, casts: CastTally | None = None) -> VectorUnit:
        """Return a unit that executes instructions on a memory in place; it reports conversions to `casts`."""
        ...

    def recorder(self, *, as_written: bool) -> RecordingUnit:
        """Return a recorder of a program's vector instructions and of everything between them.

        `as_written`: a program without flags does not wait for its bytes.
        """
        ...

    def control_at_start(self, *, saturating: bool) -> int:
        """Return the initial CTRL register of a function; `saturating` ones have conversions with `sat`."""
        ...

    def lowered(self, function: Function) -> Function:
        """Return a function with the operations of dialects replaced by vector instructions.

        Raises:
            IllegalError: an operation has no replacement; the error has its position.
        """
        ...

    def body_cycles(self, body: Body) -> int:
        """Return the cycles of a body of a published table, from launch to end.

        Raises:
            IllegalError: the latency of an instruction is unknown.
        """
        ...


@dataclass(frozen=True, slots=True)
class MechanismParts:
    """The import paths (`module:name`) of the parts of a mechanism's machines; each is loaded on first use.

    `lowerer` (called with a target and `unsafe_scratch`) and `compute` are None if there are no tiles,
    `vector_units` if programs name no vector instructions. `cast_forms`: the forms of a tile cast, the usual one first;
    empty if all casts run the same code.
    """

    element_cast: str
    lowerer: str | None = None
    compute: str | None = None
    vector_units: str | None = None
    cast_forms: tuple[CastForm, ...] = ()


_ROOM = "castsim.machines"
STRIDED_REPEAT = MechanismParts(
    element_cast=f"{_ROOM}.strided.plan:element_cast",
    lowerer=f"{_ROOM}.strided.strided_lowering:StridedLowerer",
    compute=f"{_ROOM}.strided.values:compute",
    vector_units=f"{_ROOM}.strided.statements:StridedUnits",
)
VECTOR_FUNCTION = MechanismParts(
    element_cast=f"{_ROOM}.vector_function.lowering:element_cast",
    lowerer=f"{_ROOM}.vector_function.function_lowering:VectorFunctionLowerer",
    compute=f"{_ROOM}.vector_function.values:compute",
    vector_units=f"{_ROOM}.vector_function.scope_recorder:LaneUnits",
    cast_forms=("1d", "2d"),
)
VLIW = MechanismParts(element_cast=f"{_ROOM}.vliw.semantics:element_cast")

MACHINES: MachinePart[MechanismParts] = MachinePart(
    "machine",
    {
        "strided-repeat": f"{_ROOM}.mechanisms:STRIDED_REPEAT",
        "vector-function": f"{_ROOM}.mechanisms:VECTOR_FUNCTION",
        "vliw": f"{_ROOM}.mechanisms:VLIW",
    },
)
"""The parts of every mechanism."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine model of one target."""

    target: Target

    @property
    def parts(self) -> MechanismParts:
        """The parts of the target's mechanism."""
        return MACHINES.of(self.target)

    def lowerer(self, *, unsafe_scratch: bool = False) -> Lowerer:
        """Return the lowering of tile programs; `unsafe_scratch` accepts tmp tiles that are too small.

        Raises:
            IllegalError: the target has no tile instructions.
        """
        if self.parts.lowerer is None:
            raise no_tiles(self.target)
        return cast("Lowerer", loaded(self.parts.lowerer)(self.target, unsafe_scratch=unsafe_scratch))

    @property
    def compute(self) -> ComputeValues:
        """The function that computes the values of a lowered tile program.

        Raises:
            IllegalError: the target has no tile instructions.
        """
        if self.parts.compute is None:
            raise no_tiles(self.target)
        return cast("ComputeValues", loaded(self.parts.compute))

    @property
    def vector_units(self) -> VectorUnits:
        """The executor of vector instructions.

        Raises:
            IllegalError: programs cannot name the target's instructions.
        """
        if self.parts.vector_units is None:
            message = f"{self.target.name} does not run programs with vector instructions (vecscope)"
            raise IllegalError(message, legal=("--target a5",))
        return cast("VectorUnits", loaded(self.parts.vector_units)(self.target))

    @property
    def cast_forms(self) -> tuple[CastForm, ...]:
        """The forms of a tile cast, the usual one first; empty if all casts run the same code."""
        return self.parts.cast_forms

    def element_cast(self, asked: CastAsked) -> ElementCast:
        """Return the conversion of the elements of any array on the chip.

        Raises:
            ReadError: the rounding mode is unknown.
            IllegalError: the type pair does not exist, or the chip's instructions cannot name the mode.
        """
        return cast("ElementCast", loaded(self.parts.element_cast)(self.target, asked))

    def cast_elements(self, codes: Codes, asked: CastAsked) -> TargetCast:
        """Convert codes of any shape like the chip; errors as in `element_cast`."""
        element_cast = self.element_cast(asked)
        return TargetCast(
            element_cast.run(codes),
            element_cast.rounding,
            element_cast.saturation,
            element_cast.overflow,
            element_cast.warnings,
        )


def machine_of(target: Target) -> Machine:
    """Return the machine model of a target."""
    return Machine(target)


def lowerer_of(target: Target, *, unsafe_scratch: bool = False) -> Lowerer:
    """Return the lowering of the target's tile programs.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    return machine_of(target).lowerer(unsafe_scratch=unsafe_scratch)


def tile_target(target: Target) -> TileTarget:
    """Return the target if its programs work on tiles.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    if not target.has_tiles:
        raise no_tiles(target)
    return target


def tiles_of(target: Target | None) -> TileTarget | None:
    """Return the target if its programs work on tiles, otherwise None."""
    return target if target is not None and target.has_tiles else None


def no_tiles(target: Target) -> IllegalError:
    """Return (do not raise) the error about tile work."""
    languages = ", ".join(f".{language}" for language in target.languages)
    return IllegalError(f"{target.name} has no tile instructions; it runs {languages} programs")


def compute_of(target: Target) -> ComputeValues:
    """Return the function that computes the values of the target's tile programs.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    return machine_of(target).compute


def vector_units_of(target: Target) -> VectorUnits:
    """Return the executor of the target's vector instructions.

    Raises:
        IllegalError: the target has no vector instructions that programs can name.
    """
    return machine_of(target).vector_units


# A cast of loose elements, asked and answered: words of rounding modes, `element_cast` of every mechanism.

CastForm = Literal["1d", "2d"]
"""The code variant of a tile cast: one loop over all elements, or one over rows that are only partly valid.
"""


@dataclass(frozen=True, slots=True)
class CastAsked:
    """A requested cast: a pair of formats and modes; `rounding` is the chip's name, `scratch` tells whether there is a
    tmp tile.

    `form` chooses among the forms of the chip's casts; None: the first.
    """

    src: Format
    dst: Format
    rounding: str | None = None
    saturation: Saturation | None = None
    scratch: bool = False
    form: CastForm | None = None


@dataclass(frozen=True, slots=True)
class ElementCast:
    """What a chip makes of elements, whatever their number: `run` takes codes of any shape through its instructions.

    `policy` is that of the conversion where a single one is all that happens, `integral` that of a rounding to integral
    values of the same format, `wrapping` that of a conversion to an integer of which the low bits are kept. The modes
    are those of `TargetCast`.
    """

    run: Callable[[Codes], Codes]
    rounding: str
    saturation: str
    overflow: Overflow
    warnings: Warnings
    policy: Policy | None = None
    integral: Policy | None = None
    wrapping: Policy | None = None


@dataclass(frozen=True, slots=True)
class TargetCast:
    """Codes that a chip computes, and the modes in force after its fallbacks and overrides.

    `saturation` is in the form of `saturation_in_force`.
    """

    codes: Codes
    rounding: str
    saturation: str
    overflow: Overflow
    warnings: Warnings


def form_of(src: TileType, dst: TileType) -> CastForm:
    """Return the form of a cast between tiles: 1-D if all rows are full by their types, or there is a single row.

    A dynamic valid extent counts as partial, whatever its value.
    """
    full = all(tile.valid_cols == tile.cols for tile in (src, dst))
    return "1d" if full or src.rows == dst.rows == 1 else "2d"


def saturation_in_force(src: Format, dst: Format, overflow: Overflow, switch: Saturation | None) -> str:
    """Return how a cast saturates: `on` or `off` if the switch of the instruction makes a difference.

    Otherwise (`switch` None) the effect on numbers out of range under the target's options: `clamps`, `none: inf`,
    `none: NaN`, `none: low bits`; or `not needed`.
    """
    clamps_infinity = overflow is Overflow.SATURATE and isinstance(dst, FloatFormat | TaperedFormat)
    if _holds(dst, src) and not (clamps_infinity and _has_infinity(src)):
        return "not needed"
    if switch is not None:
        return switch.value
    if overflow is not Overflow.SPECIAL:
        return "clamps" if overflow is Overflow.SATURATE else "none: low bits"
    return "none: inf" if _has_infinity(dst) else "none: NaN"


@lru_cache(maxsize=1024)
def _holds(dst: Format, src: Format) -> bool:
    """Return whether `dst` covers the range of `src`, infinities included."""
    if _has_infinity(src) and not _has_infinity(dst):
        return False
    (low, high), (least, most) = _range(src), _range(dst)
    return least <= low and high <= most


def _has_infinity(fmt: Format) -> bool:
    return not isinstance(fmt, IntFormat) and fmt.has_infinity


def _range(fmt: Format) -> tuple[Fraction, Fraction]:
    if isinstance(fmt, IntFormat):
        return Fraction(fmt.minimum), Fraction(fmt.maximum)
    largest = Fraction(value_of(fmt.max_finite_code, fmt))
    return -largest if fmt.signed else Fraction(0), largest


# Rounding modes of tile instructions by the words that a user types.

DEFAULT_MODE = RoundMode.RINT
"""The rounding mode of a cast that names none (docs/reference/pto.md section 1)."""


def bare_mode(word: str) -> str:
    """Return the name of a rounding mode in capitals, without the `CAST_` of the vendor's headers."""
    return word.upper().removeprefix("CAST_")


def tile_mode(rounding: str | None, chip: str) -> RoundMode | None:
    """Return a mode in the tile instructions' enumeration, None for none.

    Raises:
        ReadError: it is not a rounding mode. IllegalError: tile instructions lack it; the message names `chip`.
    """
    if rounding is None:
        return None
    try:
        return round_mode(rounding)
    except ReadError as error:
        if rounding.lower() in {mode.value for mode in Rounding}:
            raise IllegalError(f"{chip} has no rounding mode {rounding}", legal=error.legal) from None
        raise


def round_mode(rounding: str) -> RoundMode:
    """Return a mode in the tile instructions' enumeration.

    Raises:
        ReadError: it is not one of their rounding modes.
    """
    name = bare_mode(rounding)
    if name not in RoundMode.__members__:
        raise ReadError(f"unknown rounding mode '{rounding}'", legal=[mode.name.lower() for mode in RoundMode])
    return RoundMode[name]


# Saying that a chip does not have a type pair, and what it has instead.

Pair = tuple[str, str]


def lacks_pair(target: DataflowTarget, pairs: Sequence[Pair], src: str, dst: str) -> IllegalError:
    """Return the error about a cast that a chip with tiles lacks, or has only with option `interface_casts`."""
    error = no_such_pair(target.name, pairs, src, dst)
    if target.interface_cast(src, dst) is not None:
        error.legal = (*error.legal, "option interface_casts=accept, as the instruction set's interface has it")
    return error


def no_such_pair(target: str, pairs: Sequence[Pair], src: str, dst: str) -> IllegalError:
    """Return the error about a cast that `target` lacks, with its destinations for the source, and two-step detours."""
    from_source = [other for source, other in pairs if source == src]
    if not from_source:
        sources = dict.fromkeys(source for source, _ in pairs)
        return IllegalError(f"{target} has no cast from {src}; it casts from: {', '.join(sources)}", legal=sources)
    message = f"{target} has no cast {src} -> {dst}; from {src} it has: {', '.join(from_source)}"
    before, after = element_format(src), element_format(dst)
    exact, twice = list[str](), list[str]()
    for name in dict.fromkeys(from_source):
        middle = element_format(name)
        if (name, dst) not in pairs or name == src:
            continue
        if _mode_holds(middle, before):
            exact.append(f"{src} -> {name} -> {dst}")
        elif _mode_holds(middle, after):  # all that the destination may become is still there
            twice.append(f"{src} -> {name} -> {dst}")
    detours = exact or twice
    if detours:
        message += f"; in two steps: {' or '.join(detours)}"
        message += " (the first is exact)" if exact else " (rounds twice)"
    return IllegalError(message, legal=[*(f"{src} -> {other}" for other in from_source), *detours])


def _mode_holds(wide: Format, narrow: Format) -> bool:
    """Return whether one format contains every number of another."""
    if isinstance(wide, IntFormat):
        return isinstance(narrow, IntFormat) and wide.minimum <= narrow.minimum and narrow.maximum <= wide.maximum
    if not isinstance(wide, FloatFormat):
        return False
    top = (wide.max_finite_code >> wide.fraction_bits) - wide.bias
    if isinstance(narrow, IntFormat):
        magnitude = narrow.bits - narrow.signed
        return magnitude <= min(wide.fraction_bits + 1, top + 1) and (wide.signed or not narrow.signed)
    if not isinstance(narrow, FloatFormat) or (narrow.signed and not wide.signed):
        return False
    lowest = [fmt.min_exponent - fmt.fraction_bits for fmt in (wide, narrow)]
    reaches = top >= (narrow.max_finite_code >> narrow.fraction_bits) - narrow.bias
    return wide.fraction_bits >= narrow.fraction_bits and lowest[0] <= lowest[1] and reaches

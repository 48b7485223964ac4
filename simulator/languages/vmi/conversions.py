"""Conversions of logical registers: the instructions that make up a pair, and its attributes.

Pairs that `vcvt` of one register lacks are several steps. They are chosen so that a value is rounded once wherever
instructions exist for it. Source: docs/reference/micro.md section 9.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, IntFormat
from castsim.isa.pto.micro_words import CONVERSIONS, SATURATIONS, plain_word

HELD: Mapping[str, str] = {"bf16_pair": "bf16"}
"""The element that casts use for an element with two values."""
FOUR_BITS = ("e2m1", "e1m2")
_ELEMENTS = tuple(dict.fromkeys((*(src for src, _ in CONVERSIONS), *(dst for _, dst in CONVERSIONS))))


class How(Enum):
    """The kind of a step."""

    CONVERT = "vcvt"
    CLAMP = "clamp to the range, then the low bits"
    LOW = "the low bits"


@dataclass(frozen=True, slots=True)
class RouteStep:
    """One step of a conversion, between formats of registers."""

    how: How
    src: str
    dst: str

    @property
    def roundings(self) -> tuple[str, ...]:
        """The letters of its rounding; empty if it does not round."""
        return CONVERSIONS[self.src, self.dst].roundings if self.how is How.CONVERT else ()

    @property
    def saturates(self) -> bool:
        """Whether SAT and NOSAT differ."""
        if self.how is How.CONVERT:
            return bool(CONVERSIONS[self.src, self.dst].saturations)
        return self.how is How.CLAMP


@dataclass(frozen=True, slots=True)
class ConversionRoute:
    """A conversion as its steps."""

    steps: tuple[RouteStep, ...]

    @property
    def roundings(self) -> tuple[str, ...]:
        """The letters of its rounding: those of the last step that rounds."""
        return next((step.roundings for step in reversed(self.steps) if step.roundings), ())

    @property
    def saturations(self) -> tuple[str, ...]:
        """The words of its saturation; empty if it has no choice."""
        return SATURATIONS if any(step.saturates for step in self.steps) else ()

    def default(self) -> str:
        """Return the default rounding of a conversion: A to hif8, otherwise R."""
        return "R" if "R" in self.roundings else "A"

    def rounding_of(self, step: RouteStep, letter: str) -> str:
        """Return the rounding of a step of a conversion with this letter."""
        return letter if letter in step.roundings and (letter != "H" or step is self.steps[-1]) else "R"


@lru_cache(maxsize=1024)
def route(src: str, dst: str) -> ConversionRoute:
    """Return the conversion steps between elements of logical registers, by names of register elements.

    Raises:
        IllegalError: the conversion does not exist; the message names the destinations of this source.
    """
    steps = _route(src, dst)
    if steps is None:
        raise IllegalError(f"vcvt has no conversion {shown(src)} -> {shown(dst)}{_hint(src, dst)}", legal=_legal(src))
    return ConversionRoute(steps)


def shown(element: str) -> str:
    """Return the name of an element for messages: pairs have their names in types."""
    return {"bf16_pair": "bf16x2", "hif8_pair": "hif8x2", "e2m1": "f4E2M1x2", "e1m2": "f4E1M2x2"}.get(element, element)


def _hint(src: str, dst: str) -> str:
    if (src == "bf16" and dst in FOUR_BITS) or (dst == "bf16" and src in FOUR_BITS):
        return "; an element of 4 bits is a pair, and vinterpret_cast makes pairs (bf16x2)"
    return ""


def _legal(src: str) -> tuple[str, ...]:
    return tuple(shown(dst) for dst in (*_ELEMENTS, "bf16_pair") if _route(src, dst) is not None)


def _route(src: str, dst: str) -> tuple[RouteStep, ...] | None:
    if "bf16_pair" in (src, dst):
        pair = HELD.get(src, src), HELD.get(dst, dst)
        return (RouteStep(How.CONVERT, *pair),) if pair in CONVERSIONS and {*pair} & {*FOUR_BITS} else None
    if src == dst or not {src, dst} <= {*_ELEMENTS} or {src, dst} & {*FOUR_BITS}:
        return None
    if (src, dst) in CONVERSIONS:
        return (RouteStep(How.CONVERT, src, dst),)
    if _is_integer(src):
        return _of_integers(src, dst) if _is_integer(dst) else _to_float(src, dst)
    return _to_integer(src, dst) if _is_integer(dst) else _through(src, "f32", dst)


def _is_integer(name: str) -> bool:
    return isinstance(FORMATS[name], IntFormat)


def _through(src: str, middle: str, dst: str) -> tuple[RouteStep, ...] | None:
    """Return a way by another format, None if there is none."""
    if middle in (src, dst):
        return None
    first, other = _route(src, middle), _route(middle, dst)
    return None if first is None or other is None else (*first, *other)


def _of_integers(src: str, dst: str) -> tuple[RouteStep, ...] | None:
    """Return the steps between integers: the instructions have but some of the pairs."""
    wide, narrow = FORMATS[src].bits, FORMATS[dst].bits
    if wide == 64:
        return _through(src, "i32", dst) if narrow < 32 else None
    if narrow <= wide:
        return (RouteStep(How.CLAMP, src, dst),)
    if src[0] == "u" and dst[0] == "i":  # every value fits: the bits of the unsigned one
        own = f"u{min(narrow, 32)}"
        first = (RouteStep(How.CONVERT, src, own),) if own != src else ()
        last = (RouteStep(How.CONVERT, "i32", "i64"),) if narrow == 64 else ()
        return (*first, RouteStep(How.LOW, own, f"i{min(narrow, 32)}"), *last) if src != "u32" else None
    return _through(src, "i32", "i64") if src[0] == "i" and dst == "i64" else None


def _to_integer(src: str, dst: str) -> tuple[RouteStep, ...] | None:
    """Return the steps from a float to an integer: rounded once, to 32 bits."""
    if (src, "i32") not in CONVERSIONS:
        return _through(src, "f32", dst)
    if dst == "u32":
        return None
    return _through(src, "f32", dst) if dst == "i64" else _through(src, "i32", dst)


def _to_float(src: str, dst: str) -> tuple[RouteStep, ...] | None:
    """Return the steps from an integer to a float: through f32, which represents all of 16 bits."""
    if dst != "f32":
        return _through(src, "f32", dst)
    middle: Mapping[str, str] = {"i8": "f16", "u8": "f16", "u16": "i32"}
    return _through(src, middle[src], dst) if src in middle else None


def check_conversion(src: str, dst: str, attributes: Mapping[str, str]) -> ConversionRoute:
    """Return a conversion, and reject a saturation that is missing or forbidden, and words that the pair lacks.

    Raises:
        IllegalError: a word is wrong; the message lists the legal ones.
    """
    path, named = route(src, dst), f"vcvt {shown(src)} -> {shown(dst)}"
    rounding, saturation = attributes.get("rounding"), attributes.get("saturate")
    if rounding is not None and path.roundings and plain_word(rounding) not in path.roundings:
        raise IllegalError(f"{named} has no rounding = {rounding}", legal=path.roundings)
    if saturation is None and path.saturations:
        raise IllegalError(f"{named} needs saturate", legal=path.saturations)
    if saturation is not None and not path.saturations:
        allowed = f"rounding = {' | '.join(path.roundings)}" if path.roundings else "no attributes"
        raise IllegalError(f"{named} takes no saturate", legal=(allowed,))
    return path

"""The instructions of a compiler's cast on a generation: one hop per instruction or small sequence.

A pair that the vector unit converts goes directly; integers narrow by CONVERT_INT with shift 0, except where CONVERT
covers that family too; everything else is in the table of chains, whose links are found in the same way. Source:
docs/reference/tpc.md section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from castsim.isa.errors import IllegalError
from castsim.targets.schema import Status
from castsim.targets.tpc_compiler import ChainReading, ChainRow, Decomposition, chains
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, VliwTarget
from castsim.tpc_compiler.compiled_casts.vector_types import bits_of, is_float, is_signed

_NARROWEST = 8
"""Casts to fewer bits exist only as CONVERT_INT8 and CONVERT_UINT8, whichever way the others narrow."""


class HopMethod(StrEnum):
    """The method of one hop."""

    CONVERT = "CONVERT"
    NARROW = "CONVERT_INT"
    EXTEND = "zero extension"
    CLAMP = "clamp"
    OFFSET = "CONVERT with offset"
    HALVE = "CONVERT with halving"
    AND = "AND"
    KEEP = "same bits"


@dataclass(frozen=True, slots=True)
class PathHop:
    """One link of a path. `row` is the instruction's row in the target's tables; `through` the signed middle type.

    `shift` and `integer_rounding` are those of CONVERT_INT; the compiler's casts shift by nothing. `word` is the
    rounding of a CONVERT where the compiler has one for this pair, whatever the program says; `mask` the other operand
    of AND.
    """

    means: HopMethod
    src: str
    dst: str
    row: ConvertRow | IntegerConvertRow | None = None
    through: str | None = None
    shift: int = 0
    integer_rounding: str = "rhne"
    word: str | None = None
    mask: int = 0

    @property
    def takes_mode(self) -> bool:
        """Whether a rounding mode has a meaning here: in conversions from or to floats."""
        return self.means in (HopMethod.CONVERT, HopMethod.OFFSET, HopMethod.HALVE) and (
            is_float(self.src) or is_float(self.dst)
        )

    def __str__(self) -> str:
        arrow = "~" if self.means is HopMethod.KEEP else "->"
        return f"{self.src} {arrow} {self.dst} ({self.means})"


@dataclass(frozen=True, slots=True)
class Path:
    """The hops of a cast. `status` and `sources` say how well the choice of the types between is known."""

    src: str
    dst: str
    hops: tuple[PathHop, ...]
    status: Status
    sources: tuple[str, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types on the way, both ends included."""
        return (self.src, *(hop.dst for hop in self.hops))

    @property
    def widest(self) -> int:
        """Bits of the widest type on the way."""
        return max(map(bits_of, self.types))

    def modes(self, target: VliwTarget) -> tuple[str, ...]:
        """Return the rounding modes that the path has: those of CONVERT if it meets a float, else none."""
        return tuple(target.convert_rounding.modes) if any(hop.takes_mode for hop in self.hops) else ()

    def __str__(self) -> str:
        found = self.src
        for hop in self.hops:
            between = f"({hop.through}) " if hop.through else ""
            found += f" {'~' if hop.means is HopMethod.KEEP else '->'} {between}{hop.dst}"
        return found


def path_of(src: str, dst: str, target: VliwTarget, reading: ChainReading = ChainReading.COMPILER) -> Path:
    """Return the path of a cast.

    Raises:
        IllegalError: a type that the generation lacks, or a pair that nothing leads to.
    """
    for element in (src, dst):
        if element not in target.elements.formats:
            raise IllegalError(f"{target.name} has no elements of {element}", legal=target.elements.formats)
    if src == dst:
        return Path(src, dst, (), Status.DOCUMENTED, ())
    found = _path(src, dst, target, reading)
    if found is None:
        legal = [other for other in target.elements.formats if other != src and _path(src, other, target, reading)]
        raise IllegalError(
            f"{target.name} has no way from {src} to {dst}; from {src} it converts to: {', '.join(legal) or 'nothing'}",
            legal=[f"{src} -> {other}" for other in legal],
        )
    return found


def direct_hop(src: str, dst: str, target: VliwTarget, unit: str = "vpu") -> PathHop | None:
    """Return the one instruction that makes a pair, None if there is none; an integer narrows by CONVERT_INT."""
    narrowing = target.integer_convert(_narrowing(src), dst, unit)
    convert = target.convert(src, dst, unit)
    if narrowing is not None and not (convert is not None and _converts_narrow(target)):
        return PathHop(HopMethod.NARROW, src, dst, narrowing)
    return None if convert is None else PathHop(HopMethod.CONVERT, src, dst, convert)


def _narrowing(src: str) -> str:
    if is_float(src):
        return ""
    return f"convert_{'int' if is_signed(src) else 'uint'}{bits_of(src)}"


def _converts_narrow(target: VliwTarget) -> bool:
    """Whether CONVERT makes every narrowing of integers to 8 bits or more that CONVERT_INT makes."""
    rows = [row for row in target.integer_converts if row.unit == "vpu" and bits_of(row.dst) >= _NARROWEST]
    return all(target.convert(row.src, row.dst) is not None for row in rows)


def _path(src: str, dst: str, target: VliwTarget, reading: ChainReading) -> Path | None:
    hop = direct_hop(src, dst, target, "spu" if reading is ChainReading.SCALAR else "vpu")
    if hop is not None:
        return Path(src, dst, (hop,), Status.DOCUMENTED, (f"instruction set of {target.name}",))
    row = _chain(src, dst, reading)
    if row is None or not {name for name, _ in row.steps} <= set(target.elements.formats):
        return None
    hops = _links(row, target, reading)
    if hops is None:
        return None
    assumed = row.status is Status.ASSUMED or any(status is Status.ASSUMED for _, status, _ in hops)
    return Path(
        src,
        dst,
        tuple(hop for found, _, _ in hops for hop in found),
        Status.ASSUMED if assumed else row.status,
        tuple(dict.fromkeys([row.source, *(source for _, _, sources in hops for source in sources)])),
    )


def _chain(src: str, dst: str, reading: ChainReading) -> ChainRow | None:
    """Return the row of a pair: of the reading, else the one that all share, else, for scalars, the vectors'."""
    rows = {row.reading: row for row in chains() if (row.src, row.dst) == (src, dst)}
    found = rows.get(reading) or rows.get(None)
    return found or (rows.get(ChainReading.COMPILER) if reading is ChainReading.SCALAR else None)


_Links = list[tuple[tuple[PathHop, ...], Status, tuple[str, ...]]]
_MEANS = {
    Decomposition.EXTEND: HopMethod.EXTEND,
    Decomposition.CLAMP: HopMethod.CLAMP,
    Decomposition.OFFSET: HopMethod.OFFSET,
    Decomposition.HALVE: HopMethod.HALVE,
}


def _links(row: ChainRow, target: VliwTarget, reading: ChainReading) -> _Links | None:
    """Return the hops of a row of the table of chains, None if one of them does not exist here."""
    if row.how is not Decomposition.CHAIN:
        through = row.steps[1][0] if len(row.steps) > 2 else None
        return [((PathHop(_MEANS[row.how], row.src, row.dst, through=through),), row.status, ())]
    found: _Links = []
    for (before, _), (after, converted) in zip(row.steps, row.steps[1:], strict=False):
        if not converted:
            found.append(((PathHop(HopMethod.KEEP, before, after),), Status.DOCUMENTED, ()))
            continue
        link = _path(before, after, target, reading)
        if link is None:
            return None
        found.append((link.hops, link.status, link.sources if len(link.hops) > 1 else ()))
    return found

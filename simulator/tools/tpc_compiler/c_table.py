"""The table of C-level casts of a generation in the layout of the vendor's document, from the target's tables.

A cell lists the casts of LLVM IR that a pair's one instruction implements, and the instruction: `-C` is CONVERT,
`-C-INT` CONVERT_INT, `N/A` none (the compiler then uses intermediate types). The words are the document's: `fptoi` is
the signed conversion, a change of sign alone counts as `zext`, and a conversion to a narrower type than that of equal
width is written as both steps, `trunc(fptoi)`.
"""

from __future__ import annotations

import re
from enum import StrEnum

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, IntFormat, format_named
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import ChainReading, ChainRow, CType, Decomposition, c_types, chains
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, VliwTarget

# Vector types of TPC-C: `float64` is 64 elements of f32, `short128` 128 of i16; and which casts C makes by itself.

_VECTOR_TYPES_SPELLED = re.compile(r"([a-z]+?)(\d*)", re.ASCII)
_MOST_DIGITS = 6
_FLOAT_LIKE = re.compile(r"(minifloat|minihalf|bfloat|float|half)(\d*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ElementVector:
    """Elements of one format; `elements` None leaves their number open."""

    element: str
    elements: int | None = None

    @property
    def bits(self) -> int:
        """Width of an element."""
        return bits_of(self.element)

    @property
    def name(self) -> str:
        """The C name, `short128`; of a scalar, and without a number of elements, that of the element, `short`."""
        c_name = next((row.name for row in c_types() if row.element == self.element), self.element)
        return f"{c_name}{'' if self.elements in (None, 1) else self.elements}"


def bits_of(element: str) -> int:
    """Return the width of an element type; `i1` is one bit of a vector predicate."""
    return 1 if element == "i1" else FORMATS[element].bits


def is_float(element: str) -> bool:
    """Return whether an element type is floating-point."""
    return "f" in element


def is_signed(element: str) -> bool:
    """Return whether an element type has negative numbers."""
    if element == "i1":
        return False
    fmt = FORMATS[element]
    return not isinstance(fmt, IntFormat) or fmt.signed


def vector_type(text: str) -> ElementVector:
    """Return the type that a text denotes: a C vector type (`bfloat128`) or a format (`bf16`).

    Raises:
        ReadError: the text denotes no type.
        IllegalError: the format has its own exponent bias.
    """
    match = _FLOAT_LIKE.fullmatch(text) or _VECTOR_TYPES_SPELLED.fullmatch(text)
    rows = {row.name: row for row in c_types()}
    if match and match[1] in rows and (match[2] or match[1] not in FORMATS):
        if len(match[2]) > _MOST_DIGITS:
            raise ReadError(f"'{text[:40]}' has more elements than registers of any chip", legal=(f"{match[1]}128",))
        count = int(match[2]) if match[2] else None
        if count == 0:
            raise ReadError(f"'{text}' has no elements", legal=(f"{match[1]}128",))
        return ElementVector(rows[match[1]].element, count)
    if text == "i1":
        return ElementVector(text)
    try:
        name = format_named(text).name
        if name not in FORMATS:
            message = f"'{text}': the exponent bias is in a register of the chip, not part of a TPC-C type"
            raise IllegalError(message, legal=(name.partition("@")[0],))
    except ReadError:
        legal = (*(f"{name}N" for name in rows), "or a format: f32, bf16, i16, ...")
        raise ReadError(f"'{text}' is neither a vector type of TPC-C nor a format", legal=legal) from None
    return ElementVector(name)


def native_elements(element: str, target: VliwTarget) -> int:
    """Return the number of elements in a vector register."""
    return target.registers.vector_bytes * 8 // bits_of(element)


def registers_of(kind: ElementVector, target: VliwTarget) -> int:
    """Return the number of vector registers that a type fills.

    Raises:
        IllegalError: the type does not fill whole registers.
    """
    native = native_elements(kind.element, target)
    assert kind.elements is not None
    if kind.elements < native or kind.elements % native:
        raise IllegalError(
            f"{kind.name}: {kind.elements} elements of {kind.element} do not fill vector registers",
            legal=[f"{native * count} elements" for count in (1, 2, 4)],
        )
    return kind.elements // native


def matched(src: ElementVector, dst: ElementVector, target: VliwTarget) -> tuple[ElementVector, ElementVector]:
    """Give both types of a conversion the same number of elements; by default, one register of the narrower type.

    Raises:
        IllegalError: the types have different numbers of elements, or more than all vector registers hold.
    """
    if src.elements is not None and dst.elements is not None and src.elements != dst.elements:
        raise IllegalError(
            f"conversions keep the number of elements: {src.name} has {src.elements}, {dst.name} {dst.elements}",
            legal=[
                f"{ElementVector(src.element, count).name} -> {ElementVector(dst.element, count).name}"
                for count in (src.elements, dst.elements)
                if all(
                    count >= native_elements(vector.element, target) for vector in (src, dst) if vector.element != "i1"
                )
            ],
        )
    count = src.elements or dst.elements
    if count is None:
        natives = [native_elements(kind.element, target) for kind in (src, dst) if kind.element != "i1"]
        count = max(natives, default=native_elements("i1", target))
    for kind in (src, dst):
        most = native_elements(kind.element, target) * target.registers.V
        if count > most:
            whole = ElementVector(kind.element, native_elements(kind.element, target))
            asked = ElementVector(kind.element, count)
            raise IllegalError(f"{asked.name}: the vector registers hold only {most} elements", legal=(whole.name,))
    return ElementVector(src.element, count), ElementVector(dst.element, count)


def one_register(src: ElementVector, dst: ElementVector, target: VliwTarget) -> tuple[ElementVector, ElementVector]:
    """Give both types of a conversion from one register to one register their numbers of elements.

    A predicate has the number of elements of the other type.

    Raises:
        IllegalError: a type is given with another number of elements.
    """
    vectors = []
    for kind, other in ((src, dst), (dst, src)):
        count = native_elements(other.element if kind.element == "i1" else kind.element, target)
        if kind.elements not in (None, count):
            whole = ElementVector(kind.element, count).name
            message = f"lane order converts one register to one: {kind.name} is not one register"
            raise IllegalError(message, legal=(whole, kind.element))
        vectors.append(ElementVector(kind.element, count))
    return vectors[0], vectors[1]


def promotes(src: str, dst: str) -> bool:
    """Return whether C converts implicitly: the destination is after the source in the order of promotions."""
    ranks = {row.element: row.promotion for row in c_types()}
    return src in ranks and dst in ranks and ranks[src] < ranks[dst]


def promotions_of(src: str) -> tuple[CType, ...]:
    """Return the types to which C promotes implicitly."""
    return tuple(row for row in c_types() if promotes(src, row.element))


# The instructions of a compiler's cast on a generation: one hop per instruction or small sequence.
#
# A pair that the vector unit converts goes directly; integers narrow by CONVERT_INT with shift 0, except where CONVERT
# covers that family too; everything else is in the table of chains, whose links are found in the same way. Source:
# docs/reference/tpc.md section 4.

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
    """One hop of a path. `row` is the instruction's row in the target's tables; `through` the signed middle type.

    `shift` and `integer_rounding` are those of CONVERT_INT; the compiler's casts have shift 0. `word` is the
    rounding of a CONVERT that the compiler fixes, whatever the program requests; `mask` the other operand
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
        """Whether a rounding mode applies: in conversions from or to floats."""
        return self.means in (HopMethod.CONVERT, HopMethod.OFFSET, HopMethod.HALVE) and (
            is_float(self.src) or is_float(self.dst)
        )

    def __str__(self) -> str:
        arrow = "~" if self.means is HopMethod.KEEP else "->"
        return f"{self.src} {arrow} {self.dst} ({self.means})"


@dataclass(frozen=True, slots=True)
class Path:
    """The hops of a cast. `status` and `sources` describe the evidence for the choice of intermediate types."""

    src: str
    dst: str
    hops: tuple[PathHop, ...]
    status: Status
    sources: tuple[str, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types along the path, including both ends."""
        return (self.src, *(hop.dst for hop in self.hops))

    @property
    def widest(self) -> int:
        """Bits of the widest type along the path."""
        return max(map(bits_of, self.types))

    def modes(self, target: VliwTarget) -> tuple[str, ...]:
        """Return the rounding modes of the path: those of CONVERT if it includes a float, else none."""
        return tuple(target.convert_rounding.modes) if any(hop.takes_mode for hop in self.hops) else ()

    def __str__(self) -> str:
        text = self.src
        for hop in self.hops:
            between = f"({hop.through}) " if hop.through else ""
            text += f" {'~' if hop.means is HopMethod.KEEP else '->'} {between}{hop.dst}"
        return text


def path_of(src: str, dst: str, target: VliwTarget, reading: ChainReading = ChainReading.COMPILER) -> Path:
    """Return the path of a cast.

    Raises:
        IllegalError: the generation lacks a type, or no path exists for the pair.
    """
    for element in (src, dst):
        if element not in target.elements.formats:
            raise IllegalError(f"{target.name} has no elements of {element}", legal=target.elements.formats)
    if src == dst:
        return Path(src, dst, (), Status.DOCUMENTED, ())
    path = _path(src, dst, target, reading)
    if path is None:
        legal = [other for other in target.elements.formats if other != src and _path(src, other, target, reading)]
        raise IllegalError(
            f"{target.name} cannot convert {src} to {dst}",
            legal=[f"{src} -> {other}" for other in legal],
        )
    return path


def direct_hop(src: str, dst: str, target: VliwTarget, unit: str = "vpu") -> PathHop | None:
    """Return the one instruction that converts a pair, None if there is none; an integer is narrowed by CONVERT_INT."""
    mnemonic = "" if is_float(src) else f"convert_{'int' if is_signed(src) else 'uint'}{bits_of(src)}"
    narrowing = target.integer_convert(mnemonic, dst, unit)
    convert = target.convert(src, dst, unit)
    if narrowing is not None and not (convert is not None and _converts_narrow(target)):
        return PathHop(HopMethod.NARROW, src, dst, narrowing)
    return None if convert is None else PathHop(HopMethod.CONVERT, src, dst, convert)


def _converts_narrow(target: VliwTarget) -> bool:
    """Return whether CONVERT makes every narrowing of integers to 8 bits or more that CONVERT_INT makes."""
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
        tuple(hop for link_hops, _, _ in hops for hop in link_hops),
        Status.ASSUMED if assumed else row.status,
        tuple(dict.fromkeys([row.source, *(source for _, _, sources in hops for source in sources)])),
    )


def _chain(src: str, dst: str, reading: ChainReading) -> ChainRow | None:
    """Return the row of a pair: that of the reading, else the shared one, else, for scalars, that of vectors."""
    rows = {row.reading: row for row in chains() if (row.src, row.dst) == (src, dst)}
    chain = rows.get(reading) or rows.get(None)
    return chain or (rows.get(ChainReading.COMPILER) if reading is ChainReading.SCALAR else None)


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
    links: _Links = []
    for (before, _), (after, converted) in zip(row.steps, row.steps[1:], strict=False):
        if not converted:
            links.append(((PathHop(HopMethod.KEEP, before, after),), Status.DOCUMENTED, ()))
            continue
        link = _path(before, after, target, reading)
        if link is None:
            return None
        links.append((link.hops, link.status, link.sources if len(link.hops) > 1 else ()))
    return links


NONE = "N/A"
_SUFFIX = {HopMethod.CONVERT: "C", HopMethod.NARROW: "C-INT"}
_WIDTHS = range(8, 33)
_SPELLED = {"f32": "FP32", "bf16": "BF16", "f16": "FP16", "f8_143": "FP8_143", "f8_152": "FP8_152"}


@dataclass(frozen=True, slots=True)
class CompiledCastTable:
    """Cells by pairs of element types, and the paths of the pairs without an instruction."""

    target: VliwTarget
    elements: tuple[str, ...]
    cells: dict[tuple[str, str], str]
    mediated: dict[tuple[str, str], Path]

    def markdown(self) -> str:
        """Return the table as Markdown, with sources as rows and destinations as columns."""
        heads = [spelled(element) for element in self.elements]
        lines = [["From/To", *heads], ["---"] * (len(heads) + 1)]
        lines += [[spelled(src), *(self.cells[src, dst] for dst in self.elements)] for src in self.elements]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cast_table(target: VliwTarget) -> CompiledCastTable:
    """Return the table of a generation."""
    elements = table_elements(target)
    pairs = [(src, dst) for src in elements for dst in elements]
    cells = {pair: cell_of(*pair, target) for pair in pairs}
    mediated = {pair: path_of(*pair, target) for pair in pairs if cells[pair] == NONE and pair[0] != pair[1]}
    return CompiledCastTable(target, elements, cells, mediated)


def table_elements(target: VliwTarget) -> tuple[str, ...]:
    """Return the types of the table: floats, signed, unsigned, each from wide to narrow."""
    elements = [element for element in target.elements.formats if bits_of(element) in _WIDTHS]
    kinds = (is_float, lambda e: not is_float(e) and is_signed(e), lambda e: not is_signed(e))
    return tuple(element for kind in kinds for element in sorted(filter(kind, elements), key=bits_of, reverse=True))


def spelled(element: str) -> str:
    """Return the document's name of a type: FP32, BF16, INT32, UINT8."""
    if element in _SPELLED:
        return _SPELLED[element]
    return f"{'INT' if is_signed(element) else 'UINT'}{bits_of(element)}"


def cell_of(src: str, dst: str, target: VliwTarget) -> str:
    """Return one cell."""
    hop = direct_hop(src, dst, target) if src != dst else None
    return NONE if hop is None else f"{expression(src, dst)}-{_SUFFIX[hop.means]}"


def expression(src: str, dst: str) -> str:
    """Return the casts of LLVM IR from one type to another in the document's words."""
    before, after = bits_of(src), bits_of(dst)
    if is_float(src) and is_float(dst):
        return "fptrunc(fpext)" if before == after else "fpext" if before < after else "fptrunc"
    if is_float(src):
        single = "fptoi" if is_signed(dst) else "fptoui"
        return f"trunc({single})" if after < before else single
    if is_float(dst):
        single, widening = ("sitofp", "sext") if is_signed(src) else ("uitofp", "zext")
        if before == after:
            return single
        return f"{single}({widening})" if before < after else f"fptrunc({single})"
    if after < before:
        return "trunc"
    return "sext" if is_signed(src) and is_signed(dst) else "zext"

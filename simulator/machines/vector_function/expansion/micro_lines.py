"""Lines of micro text: indentation, fresh names, constants at the head of the function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from castsim.isa.errors import IllegalError
from castsim.isa.pto.tile_types import lane_bits
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType, PointerType, VectorType

Terms = Sequence[tuple[str, int]]
"""Loop variables of type index, each with its factor."""


@dataclass(slots=True)
class Writer:
    """Text of one function. Names of values are fresh; a constant is defined once, ahead of everything."""

    lines: list[str] = field(default_factory=list)
    constants: dict[tuple[str, int | str], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    depth: int = 2
    _numbers: dict[str, int] = field(default_factory=dict)

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("  " * self.depth + text)

    def open(self, text: str) -> None:
        """Add a line that begins a region."""
        self.line(text)
        self.depth += 1

    def close(self) -> None:
        """End a region."""
        self.depth -= 1
        self.line("}")

    def fresh(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        while True:
            number = self._numbers.get(stem, 0)
            self._numbers[stem] = number + 1
            name = f"{stem}{number}" if number else stem
            if name not in self.taken:
                self.taken.add(name)
                return f"%{name}"

    def define(self, stem: str, text: str) -> str:
        """Add the definition of a value and return its name."""
        name = self.fresh(stem)
        self.line(f"{name} = {text}")
        return name

    def constant(self, value: int, kind: str = "index") -> str:
        """Return the name of a constant."""
        found = self.constants.get((kind, value))
        if found is None:
            sign = "m" if value < 0 else ""
            suffix = "" if kind == "index" else f"_{kind}"
            found = self.constants[kind, value] = self.fresh(f"c{sign}{abs(value)}{suffix}")
        return found

    def number(self, text: str, kind: str) -> str:
        """Return the name of a constant of a float type; `text` is a decimal number or a bit pattern."""
        found = self.constants.get((kind, text))
        if found is None:
            plain = "".join(each if each.isalnum() else "_" for each in text.replace("-", "m"))
            found = self.constants[kind, text] = self.fresh(f"c{plain}_{kind}")
        return found

    def sum(self, base: int, terms: Terms) -> str:
        """Return the name of a constant plus multiples of loop variables, of type index."""
        found: str | None = None
        for variable, factor in terms:
            if factor == 0:
                continue
            by = variable
            if factor != 1:
                by = self.define("at", f"arith.muli {variable}, {self.constant(factor)} : index")
            found = by if found is None else self.define("at", f"arith.addi {found}, {by} : index")
        if found is None:
            return self.constant(base)
        return found if base == 0 else self.define("at", f"arith.addi {found}, {self.constant(base)} : index")

    def aside(self) -> Writer:
        """Return a writer of lines that are put in later; names and constants are shared."""
        return replace(self, lines=[])

    def head(self) -> list[str]:
        """Return the lines that define the constants."""
        return [f"    {name} = arith.constant {value} : {kind}" for (kind, value), name in self.constants.items()]


# How types are written, and how an operation is refused.


def vector(element: str) -> str:
    """Return the type of a register of such lanes."""
    return format_type(VectorType(REGISTER_BITS // lane_bits(element), element))


def mask(width: int) -> str:
    """Return the type of a predicate for lanes of `width` bits."""
    return format_type(MaskType(width))


_SPELLINGS = {"hif8": "!pto.hif8", "e2m1": "!pto.f4E2M1x2", "e1m2": "!pto.f4E1M2x2"}
"""Elements that the vendor's tools know as types of the dialect alone."""


def near(element: str) -> str:
    """Return the type of a pointer into the buffer."""
    return format_type(PointerType(element, "ub", _SPELLINGS.get(element, "")))


def far(kind: PointerType) -> str:
    """Return the type of an argument's pointer as one into global memory.

    4-bit elements keep their spelling: in the other one, an argument is an array of bytes.
    """
    spelling = _SPELLINGS["hif8"] if kind.element == "hif8" else kind.spelling
    return format_type(PointerType(kind.element, "gm", spelling))


def unwritten(what: str) -> IllegalError:
    """Return the refusal of an operation for what its lowering has."""
    return IllegalError(f"its lowering has {what}, which expand does not write as vector instructions")

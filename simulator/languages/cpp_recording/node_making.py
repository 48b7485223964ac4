"""From what a kernel in C++ sent to nodes of `castsim.isa.pto.program`: what all libraries have in common.

A line is a letter, the place in the kernel, and words: flags and barriers (`f`), elements of global memory that the
scalar unit reads and writes (`p`, `w`), notes (`n`). Others are the business of the library's own maker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, ReadError, Span, TileError, WarningKind, WarningText
from castsim.isa.pto import program as pto
from castsim.isa.pto.types import SCALARS
from castsim.isa.pto.value_types import element_format
from castsim.targets.loader import TileTarget

INDEX = pto.ScalarType("index")
A5 = "a5"
"""The architecture whose kernels are compiled for vector functions; others have strided repeats."""


def padded_bytes(size: int) -> int:
    """Return the bytes of a device's allocation: whole blocks of 32 bytes and one more, as aclrtMalloc documents."""
    return -(-size // 32) * 32 + 32


@dataclass(slots=True)
class NodeMaker:
    """Makes the nodes of one function; what it has defined is used again.

    `elements` are the formats of arguments as far as they are known, by position; `sizes` how many elements those have
    that the user gave; `target` is the chip.
    """

    names: Sequence[str]
    elements: dict[int, str]
    span_of: Callable[[str], Span]
    target: TileTarget
    sizes: Mapping[str, int] = field(default_factory=dict)
    body: list[pto.Operation] = field(default_factory=list)
    warnings: dict[WarningText, None] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """How many elements of each argument are used."""
    defined: dict[object, str] = field(default_factory=dict)
    _issued: dict[tuple[pto.Operation, Span], pto.Operation] = field(default_factory=dict)
    _count: int = 0
    compiled_synchronisation: bool = True
    """Whether what the kernel's compiler adds is added, where the library has a rule for it."""
    entry_mark: str = "pto.entry"
    space: str | None = None
    """The space of pointers to arguments, where the statements name one."""
    span: Span = field(init=False)
    """The place of the line that is taken in."""
    _prefix: str = field(init=False)

    def __post_init__(self) -> None:
        self._prefix = "r"
        while any(name.startswith(self._prefix) and name[len(self._prefix) :].isdecimal() for name in self.names):
            self._prefix += "r"

    def take(self, line: str) -> None:
        """Record one line of the protocol that is not a question.

        Raises:
            CastsimError: castsim cannot follow what it says; carries its place.
        """
        kind, location, *rest = line.split(" ")
        self.span = self.span_of(location)
        if kind == "f":
            self._order(*rest)
        elif kind == "p":
            self._plain_load(int(rest[0]), int(rest[2]), rest[3])
        elif kind == "w":
            self._plain_store(int(rest[0]), int(rest[1]), rest[2])
        elif kind == "n":
            self.warn(WarningKind.OPERATION, " ".join(rest))
        else:
            self.work(kind, rest)

    def work(self, kind: str, rest: list[str]) -> None:
        """Record a line of a kind that only the library has."""
        raise NotImplementedError

    @staticmethod
    def stored(line: str) -> int | None:
        """Return the position of the argument that a line stores to, if it does."""
        raise NotImplementedError

    @staticmethod
    def asked(words: list[str]) -> tuple[int, int, str]:
        """Return address and bytes of the element that a question is for, and what messages call it."""
        raise NotImplementedError

    def function(self, name: str, used: Sequence[int]) -> pto.Function:
        """Return the function of what was taken in; `used` are the positions of the arguments that point to memory."""
        ends = self.body
        if any(isinstance(node, pto.SetFlag | pto.WaitFlag | pto.Barrier) for node in ends):
            ends = [*ends, pto.Barrier(pto.Pipe.ALL)]
        arguments = tuple(
            pto.Argument(self.names[position], self.pointer_type(self.elements[position])) for position in used
        )
        marks = ((pto.RECORDED, ""), (self.entry_mark, ""))
        return pto.Function(name, arguments, (*ends, pto.Return()), marks)

    def _order(self, what: str, first: str, second: str, event: str) -> None:
        if what == "barrier":
            self.append(pto.Barrier, pto.Pipe(first))
        elif not 0 <= int(event) <= 7:
            raise ReadError(f"flag {event}: flags are 0 to 7", span=self.span)
        else:
            make = pto.SetFlag if what == "set" else pto.WaitFlag
            self.append(make, pto.Pipe(first), pto.Pipe(second), int(event))

    def _plain_load(self, buffer: int, offset: int, way: str) -> None:
        """Load the element that the kernel reads first of a page; further ones of the page are not seen."""
        element = self.elements.get(buffer, "")
        size = element_format(element).storage_bits // 8 if element in SCALARS.values() else 0
        if way == "r" and size and offset % size == 0:
            where, base = self.index(offset // size), self.pointer_type(element)
            self.check_end(buffer, offset // size + 1)
            kind = self.scalar_type(element)
            self.append(pto.ScalarAccess, "load_scalar", self.names[buffer], base, where, self.name(), kind)

    def _plain_store(self, buffer: int, offset: int, data: str) -> None:
        """Store the elements of which a byte was changed by an assignment."""
        if buffer not in self.elements:
            raise ReadError(
                f"writes elements of {self.names[buffer]}, whose type is unknown: no transfer or input determines it",
                span=self.span, legal=(f"--in {self.names[buffer]}=zeros.npy",)
            )  # fmt: skip
        element = self.elements[buffer]
        size = element_format(element).storage_bits // 8
        codes = {offset + i: (int(data[3 * i : 3 * i + 2], 16), data[3 * i + 2] == "!") for i in range(len(data) // 3)}
        for start in range(offset // size * size, offset + len(codes), size):
            byte_codes = [codes.get(start + index, (0, False)) for index in range(size)]
            if any(changed for _, changed in byte_codes):
                code = int.from_bytes(bytes(byte for byte, _ in byte_codes), "little")
                signless = element.replace("u", "i") if element[0] == "u" else element
                value = self.code(code, signless)
                where = self.index(start // size)
                kind = self.scalar_type(element)
                self.check_end(buffer, start // size + 1)
                base = self.pointer_type(element)
                self.append(pto.ScalarAccess, "store_scalar", self.names[buffer], base, where, value, kind)

    def check_end(self, buffer: int, end: int) -> None:
        """Note that an argument is used up to an element.

        Raises:
            TileError: the user gave fewer.
        """
        self.ends[buffer] = max(self.ends.get(buffer, 0), end)
        size = self.sizes.get(self.names[buffer])
        if size is not None and end > size:
            raise TileError(
                f"element {end - 1} of {self.names[buffer]}, which has {size}: outside the tensor", span=self.span
            )

    def pointer_type(self, element: str) -> pto.PointerType:
        """Return the type of a pointer to an argument."""
        return pto.PointerType(element, self.space)

    @property
    def a5(self) -> bool:
        """Whether the chip has vector functions, not strided repeats."""
        return A5 in self.target.architectures

    @property
    def capacity(self) -> int:
        """The bytes of the buffer."""
        return self.target.memories["ub"].capacity_bytes

    def scalar_type(self, element: str) -> pto.ScalarType:
        """Return the type of a scalar.

        Raises:
            IllegalError: scalars have no such type.
        """
        if element not in SCALARS.values():
            raise IllegalError(f"castsim does not support scalars of type {element}", span=self.span)
        return pto.ScalarType(element)

    def index(self, value: int) -> str:
        """Return the name of an index."""
        return self.constant(value, INDEX)

    def code(self, code: int, element: str) -> str:
        """Return a constant of a code: a signed number of an integer type, the bits of a float."""
        bits = element_format(element).storage_bits
        code &= (1 << bits) - 1
        if element[0] == "i" and code >> (bits - 1):
            code -= 1 << bits
        return self.constant(code, self.scalar_type(element))

    def constant(self, value: int, kind: pto.ScalarType) -> str:
        """Return the name of a constant."""
        return self.once(("constant", value, kind), lambda name: pto.Constant(name, value, kind, span=self.span))

    def once(self, key: object, make: Callable[[str], pto.Operation]) -> str:
        """Return the name of what a node defines, which is added at its first use."""
        if key not in self.defined:
            name = self.name()
            self.body.append(make(name))
            self.defined[key] = name
        return self.defined[key]

    def name(self) -> str:
        """Return a name that nothing has yet."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def append(self, kind: Callable[..., pto.Operation], *fields: object) -> None:
        """Add a node; what a line does again is one instruction."""
        node = kind(*fields, span=self.span)
        self.body.append(self._issued.setdefault((node, self.span), node))

    def warn(self, kind: WarningKind, text: str) -> None:
        """Warn at the place of the line."""
        self.warnings[WarningText(kind, text, self.span)] = None

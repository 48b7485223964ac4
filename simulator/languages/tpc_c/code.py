"""Sequential instructions with virtual registers, each with its place in the C source, and the values in them; types
of declarations, and properties of a C tree that need no compilation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError, Span
from castsim.isa.formats import format_named
from castsim.languages.tpc_c.source_text import GLOBAL, LOCAL, Parsed
from castsim.numerics.codec import codes_from_array
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_compiler.c_language import (
    GENERATIONS,
    VOID,
    Array,
    CType,
    Group,
    Index,
    Mask,
    Pointer,
    Scalar,
    Struct,
    TensorType,
    Vector,
    Void,
    first_generation,
    type_named,
)

_FILES = {Vector: "v", Mask: "vp", Index: "i"}
WORD = 0xFFFFFFFF
MOST_INSTRUCTIONS = 4_000
"""Maximum number of instructions of a kernel, including all trips of unrolled loops and all inlined functions."""
MOST_ELEMENTS = 4_096
"""Maximum number of elements of an array: the number of words of the largest scalar local memory (Gaudi2)."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value: in a register by its name in the text, or known (`const`). A `temp` has no other holder.

    `free` bits of a vector have no type that a source states: they are accepted as every vector type.
    A structure has `parts`, a pointer to a variable has `target`.
    """

    type: CType
    text: str = ""
    const: int | float | None = None
    temp: bool = False
    free: bool = False
    parts: tuple[Value, ...] = ()
    target: Any = None

    @property
    def known(self) -> bool:
        """Whether it is known at compile time."""
        return self.const is not None


VOID_VALUE = Value(VOID)


@dataclass(frozen=True, slots=True)
class CodeLine:
    """An instruction or a label of the text, and its place in C."""

    text: str
    span: Span

    @property
    def is_label(self) -> bool:
        """Whether it is a label."""
        return self.text.endswith(":")


class Emitter:
    """Writes instructions for one target; `here` is their place in the C source."""

    def __init__(self, parsed: Parsed, target: VliwTarget) -> None:
        self.parsed = parsed
        self.target = target
        self.generation = next(g for g in reversed(GENERATIONS) if g in (target.name, *target.architectures))
        self.lines: list[CodeLine] = []
        self.here: Any = None
        self.notes: dict[str, Span] = {}
        self.absolute = False
        """Whether integers become addresses of local memory, so that any address is possible."""
        self._count = 0
        self._heights: dict[str, int] = {}

    # --------------------------------------------------------------------------------------------------- errors

    def span(self, node: Any = None) -> Span:
        """Return the place of a node, or of the node being compiled."""
        return self.parsed.span(self.here if node is None else node)

    def refused(self, message: str, *legal: str, node: Any = None) -> IllegalError:
        """Return (not raise) the error for a feature that the target or the language lacks."""
        return IllegalError(message, span=self.span(node), legal=legal)

    def wrong(self, message: str, *legal: str, node: Any = None) -> ReadError:
        """Return (not raise) an error of the source."""
        return ReadError(message, span=self.span(node), legal=legal)

    def note(self, text: str) -> None:
        """Record a note on the interpretation of the kernel, once."""
        self.notes.setdefault(text, self.span())

    def since(self, generation: str) -> bool:
        """Return whether the target is of this generation or a later one."""
        return GENERATIONS.index(self.generation) >= GENERATIONS.index(generation)

    def check_type(self, kind: CType) -> None:
        """Reject a type that the generation lacks."""
        first = first_generation(kind)
        if not self.since(first):
            raise self.refused(f"{kind} is not available on {self.generation}; from {first} on")

    # ------------------------------------------------------------------------------------------------ instructions

    def emit(self, text: str, predicate: str = "") -> None:
        """Write an instruction.

        Raises:
            IllegalError: there are too many instructions.
        """
        if len(self.lines) >= MOST_INSTRUCTIONS:
            message = f"the kernel has more than {MOST_INSTRUCTIONS} instructions here, unrolled and with its functions"
            raise self.refused(message, "loops that are not unrolled", "shorter arrays")
        self.lines.append(CodeLine(f"{text}, {predicate}" if predicate else text, self.span()))

    def label(self) -> str:
        """Return a new label."""
        self._count += 1
        return f"L{self._count}"

    def place(self, label: str) -> None:
        """Write a label."""
        self.lines.append(CodeLine(f"{label}:", self.span()))

    def name(self, stem: str = "t") -> str:
        """Return a new name of a register."""
        self._count += 1
        return f"{stem}_{self._count}"

    def register(self, kind: CType, stem: str = "t") -> str:
        """Return a new register for a type, by its name in the text."""
        if isinstance(kind, Group):
            file = "z" if isinstance(kind.members[0], Scalar) else {2: "d", 4: "a"}[len(kind.members)]
            return f"%{file}.{self.name(stem)}"
        if isinstance(kind, Pointer):
            return f"%{'ad' if kind.space == 'global' else 's'}.{self.name(stem)}"
        if isinstance(kind, Scalar):
            return f"%{'sp' if kind.name == 'bool' else 's'}.{self.name(stem)}"
        if type(kind) not in _FILES:
            raise self.wrong(f"a value of type {kind} cannot be held in a register here")
        return f"%{_FILES[type(kind)]}.{self.name(stem)}"

    def temp(self, kind: CType) -> Value:
        """Return a value in a new register."""
        return Value(kind, self.register(kind), temp=True)

    def dest(self, kind: CType, into: str | None) -> Value:
        """Return the register of a result: the preferred one if it is in the right file, else a new one."""
        if into is None or self.register(kind).partition(".")[0] != into.partition(".")[0]:
            return self.temp(kind)
        return Value(kind, into)

    # -------------------------------------------------------------------------------------------------- constants

    def bits(self, number: float, kind: Scalar) -> int:
        """Return the bits of a number in a type."""
        if kind.name == "bool":
            return int(bool(number))
        if not kind.is_float:
            return int(number) & ((1 << kind.bits) - 1)
        with np.errstate(over="ignore"):
            value = np.array([number], np.float32)
        if kind.name == "f32":
            return int(value.view(np.uint32)[0])
        single, narrow = format_named("f32"), format_named(kind.name)
        codes = codes_from_array(value, single)
        return int(convert_codes(codes, single, narrow, abstract_policy(single, narrow))[0])

    def immediate(self, value: Value, kind: Scalar) -> str:
        """Return a known value as an immediate of 32 bits."""
        assert value.const is not None
        code = self.bits(value.const, kind)
        if kind.signed and code >> (kind.bits - 1):
            code |= WORD & ~((1 << kind.bits) - 1)
        return hex(code)

    def const(self, number: float, kind: Scalar) -> Value:
        """Return a known value, wrapped or rounded to its type."""
        return Value(kind, const=number_of(self.bits(number, kind), kind))

    def from_bits(self, code: int, kind: Scalar) -> Value:
        """Return the value with these bits."""
        if kind.is_float and kind.name != "f32":
            raise self.refused(f"cannot reinterpret the bits of a constant {kind}")
        return Value(kind, const=number_of(code, kind)) if kind.is_float else self.const(code, kind)


def number_of(code: int, kind: Scalar) -> int | float:
    """Return the number in the low bits of a word, for a type."""
    code &= (1 << kind.bits) - 1
    if kind.is_float:
        narrow, single = format_named(kind.name), format_named("f32")
        codes = np.array([code], f"u{kind.bits // 8}")
        if kind.name != "f32":
            codes = np.asarray(convert_codes(codes, narrow, single, abstract_policy(narrow, single)))
        return float(codes.astype(np.uint32).view(np.float32)[0])
    return code - (1 << kind.bits) if kind.signed and code >> (kind.bits - 1) else code


def member_text(value: Value, index: int) -> str:
    """Return the register of a member of an aggregate."""
    file, _, name = value.text.partition(".")
    return f"%{'s' if file == '%z' else 'v'}.{name}.{index}"


def base_of(text: str) -> str:
    """Return the name of the register or group that a text belongs to: `%v.x.0` and `%d.x` belong together."""
    parts = text.lstrip("!").split(".")
    if len(parts) < 2:
        return text
    file = {"%d": "%v", "%a": "%v", "%z": "%s"}.get(parts[0], parts[0])
    return f"{file}.{parts[1]}"


# Declarations of C as types, the sizes of types, and what can be said of a tree without compiling it.

_WORDS = {"signed", "unsigned", "int", "long", "short", "char"}
_LOOPS = ("For", "While", "DoWhile")
_SPACES = {LOCAL: "local", GLOBAL: "global"}
SLOT = 256
"""Bytes that a vector or a VP takes in vector local memory."""


class Declared(Emitter):
    """Types by their trees."""

    aliases: dict[str, CType]
    """Types that the kernel names itself."""
    tags: dict[str, Struct]
    """Structures that the kernel names."""

    def constant(self, node: Any, what: str) -> int:
        """Return the value of an expression that has to be a known integer."""
        raise NotImplementedError

    def type_of(self, node: Any, space: str = "") -> CType:
        """Return the type of a declaration or of a name of a type.

        Raises:
            ReadError, IllegalError: TPC-C lacks the type.
        """
        name = type(node).__name__
        if name in ("Typename", "TypeDecl", "Decl"):
            return self.type_of(node.type)
        if name == "PtrDecl":
            if type(node.type).__name__ == "FuncDecl":
                raise self.refused("pointers to functions are not supported", "a call by name", node=node)
            return Pointer(self.type_of(node.type), space_of(node.type))
        if name == "ArrayDecl":
            return self._array_type(node)
        if name == "FuncDecl":
            raise self.refused("a function cannot be declared here", node=node)
        if name == "Union":
            raise self.refused("unions are not supported", "*(int64 *)&x for the same bits", node=node)
        if name == "Struct":
            return self._struct(node)
        if name == "Enum":
            return Scalar("i32")
        return self._by_words(node.names, node)

    def _array_type(self, node: Any) -> Array:
        if node.dim is None:
            raise self.wrong("the size of the array is missing", node=node)
        count = self.constant(node.dim, "the size of an array")
        if count < 1:
            raise self.wrong("an array needs at least one element", node=node.dim)
        return self.array_of(self.type_of(node.type), count, node)

    def array_of(self, of: CType, count: int, node: Any) -> Array:
        """Return an array type.

        Raises:
            IllegalError: the array has too many elements.
        """
        total, inner = count, of
        while isinstance(inner, Array):
            total, inner = total * inner.count, inner.of
        if total > MOST_ELEMENTS:
            raise self.refused(f"an array of {total} elements exceeds the limit of {MOST_ELEMENTS}", node=node)
        return Array(of, count)

    def _struct(self, node: Any) -> Struct:
        """Return a structure, by its members or by the name that has them."""
        if node.decls is None:
            struct = self.tags.get(node.name)
            if struct is None:
                raise self.wrong(
                    f"struct {node.name} is not defined", *(f"struct {tag}" for tag in self.tags), node=node
                )
            return struct
        members: dict[str, CType] = {}
        for member in node.decls:
            if type(member).__name__ != "Decl" or member.name is None or member.bitsize is not None:
                raise self.refused("a structure can only have members with names and types", "float gain;", node=member)
            kind = self.type_of(member.type)
            if member.name in members or isinstance(kind, Void | TensorType):
                raise self.wrong(f"a structure cannot have the member {kind} {member.name} here", node=member)
            members[member.name] = kind
        struct = Struct(f"struct {node.name or '{..}'}", tuple(members.items()))
        if node.name:
            self.tags[node.name] = struct
        return struct

    def _by_words(self, words: list[str], node: Any) -> CType:
        if "double" in words:
            raise self.refused("double is not a type of TPC-C", "float", node=node)
        if len(words) == 1:
            ctype = self.aliases.get(words[0]) or type_named(words[0])
            if ctype is not None:
                self.check_type(ctype)
                return ctype
            if words[0] in ("unsigned", "signed"):
                return Scalar("u32" if words[0] == "unsigned" else "i32")
        elif set(words) <= _WORDS:
            sign = "u" if "unsigned" in words else "i"
            bits = 8 if "char" in words else 16 if "short" in words else 32
            return Scalar(f"{sign}{bits}")
        raise self.wrong(f"{' '.join(words)} is not a type of TPC-C", node=node)

    def size_of(self, kind: CType) -> int:
        """Return the number of bytes of a value."""
        if isinstance(kind, Scalar):
            return max(1, kind.bits // 8)
        if isinstance(kind, Vector):
            return 256
        if isinstance(kind, Group):
            return sum(self.size_of(member) for member in kind.members)
        if isinstance(kind, Mask):
            return 32
        if isinstance(kind, Array):
            return self.size_of(kind.of) * kind.count
        if isinstance(kind, Struct):
            return self._size_of_members(kind)
        return 20 if isinstance(kind, Index) else 4

    def _size_of_members(self, kind: Struct) -> int:
        """Return the number of bytes of a structure: each member at a multiple of its alignment, as in C."""
        total, widest = 0, 1
        for _, member in kind.members:
            inner = member
            while isinstance(inner, Array):
                inner = inner.of
            size = self.size_of(inner)
            align = SLOT if isinstance(inner, Vector | Group) else size if isinstance(inner, Scalar) else 4
            total, widest = -(-total // align) * align + self.size_of(member), max(widest, align)
        return -(-total // widest) * widest

    def slot_size(self, kind: CType) -> int:
        """Return the number of bytes from one value of an array in local memory to the next."""
        if isinstance(kind, Array):
            return self.slot_size(kind.of) * kind.count
        if isinstance(kind, Scalar):
            return 4
        if isinstance(kind, Mask):
            return SLOT
        return self.size_of(kind)

    functions: dict[str, Any]

    def is_pure(self, node: Any) -> bool:
        """Return whether an expression has no side effect, cannot fail, and is cheap enough to evaluate needlessly."""
        for item in walked(node):
            name = type(item).__name__
            if name == "ArrayRef" and not self.in_registers(item):
                return False
            if name == "Assignment" or (name == "UnaryOp" and item.op in ("++", "--", "p++", "p--", "*")):
                return False
            if name == "FuncCall" and not self.is_harmless(item):
                return False
            if name == "BinaryOp" and item.op in ("/", "%"):
                return False
        return True

    def in_registers(self, node: Any) -> bool:
        """Return whether an element is in a register that is already known."""
        raise NotImplementedError

    def is_harmless(self, call: Any) -> bool:
        """Return whether a call only computes, without memory or a function of the kernel."""
        name = getattr(call.name, "name", "")
        return bool(name) and name not in self.functions and not any(
            word in name for word in ("ld_", "st_", "printf", "prefetch", "gen_addr", "aso", "cache", "set_", "lookup")
        )  # fmt: skip

    def height(self, node: Any) -> int:
        """Return the loop nesting depth of a tree, including the functions called in it."""
        inner = [self.height(child) for _, child in node.children()]
        own = 1 if type(node).__name__ in _LOOPS else 0
        if type(node).__name__ == "FuncCall":
            name = getattr(node.name, "name", "")
            if name in self.functions:
                if name not in self._heights:
                    self._heights[name] = 0  # of a recursion
                    self._heights[name] = self.height(self.functions[name].body)
                inner.append(self._heights[name])
        return own + max(inner, default=0)


def space_of(node: Any) -> str:
    """Return the address space in a declaration, the empty text if it has none."""
    words = [*(getattr(node, "quals", None) or [])]
    inner = node
    while inner is not None and type(inner).__name__ in ("Decl", "TypeDecl", "ArrayDecl", "PtrDecl"):
        words += getattr(inner, "quals", None) or []
        if type(inner).__name__ == "PtrDecl" and inner is not node:
            break
        inner = getattr(inner, "type", None)
    return next((space for word, space in _SPACES.items() if word in words), "")


def walked(node: Any) -> Iterator[Any]:
    """Yield a node and all below it."""
    yield node
    for _, child in node.children():
        yield from walked(child)


def assigned_in(node: Any) -> set[str]:
    """Return the names that a tree assigns to, or whose address it takes other than to share bits."""
    names: set[str] = set()
    bits: set[int] = set()
    for item in walked(node):
        name = type(item).__name__
        target = None
        if name == "UnaryOp" and item.op == "*" and type(item.expr).__name__ == "Cast":
            bits.add(id(item.expr.expr))
        if name == "UnaryOp" and item.op == "&" and id(item) not in bits:
            target = item.expr
        elif name == "Assignment":
            target = item.lvalue
        elif name == "UnaryOp" and item.op in ("++", "--", "p++", "p--"):
            target = item.expr
        while target is not None and type(target).__name__ in ("ArrayRef", "StructRef"):
            target = target.name
        if target is not None and type(target).__name__ == "ID":
            names.add(target.name)
    return names


def names_of(node: Any) -> set[str]:
    """Return the names that a tree reads."""
    return {item.name for item in walked(node) if type(item).__name__ == "ID"}


def leaves(node: Any) -> set[str]:
    """Return the ways to leave a loop's body early: break and continue of its own level, return."""
    kinds: set[str] = set()
    for _, child in node.children():
        name = type(child).__name__
        if name in ("Break", "Continue", "Return"):
            kinds.add(name)
        elif name in _LOOPS:
            kinds |= leaves(child) & {"Return"}
        elif name == "Switch":
            kinds |= leaves(child) - {"Break"}
        else:
            kinds |= leaves(child)
    return kinds

"""Declarations of C as types, the sizes of types, and what can be said of a tree without compiling it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from castsim.tpc_compiler.tpc_c.code import Emitter
from castsim.tpc_compiler.tpc_c.source import GLOBAL, LOCAL
from castsim.tpc_compiler.tpc_c.types import (
    Array,
    CType,
    Group,
    Index,
    Mask,
    Pointer,
    Scalar,
    Vector,
    type_named,
)

_WORDS = {"signed", "unsigned", "int", "long", "short", "char"}
_LOOPS = ("For", "While", "DoWhile")
_SPACES = {LOCAL: "local", GLOBAL: "global"}
SLOT = 256
"""Bytes that a vector or a VP takes in vector local memory."""


class Declared(Emitter):
    """Types by their trees."""

    aliases: dict[str, CType]
    """Types that the kernel names itself."""

    def constant(self, node: Any, what: str) -> int:
        """Return the value of an expression that has to be a known integer."""
        raise NotImplementedError

    def type_of(self, node: Any, space: str = "") -> CType:
        """Return the type of a declaration or of a name of a type.

        Raises:
            ReadError, IllegalError: a type that TPC-C does not have.
        """
        name = type(node).__name__
        if name in ("Typename", "TypeDecl", "Decl"):
            return self.type_of(node.type)
        if name == "PtrDecl":
            if type(node.type).__name__ == "FuncDecl":
                raise self.refused("pointers to functions are not supported", "a call by name", node=node)
            return Pointer(self.type_of(node.type), space_of(node.type))
        if name == "ArrayDecl":
            if node.dim is None:
                raise self.wrong("the array needs a size", node=node)
            count = self.constant(node.dim, "the size of an array")
            if count < 1:
                raise self.wrong("an array has one element at least", node=node.dim)
            return Array(self.type_of(node.type), count)
        if name == "FuncDecl":
            raise self.refused("a function cannot be declared here", node=node)
        if name in ("Struct", "Union"):
            raise self.refused(
                f"{name.lower()} types of the kernel's own are not supported", "float64_pair_t", node=node
            )
        if name == "Enum":
            return Scalar("i32")
        return self._by_words(node.names, node)

    def _by_words(self, words: list[str], node: Any) -> CType:
        if "double" in words:
            raise self.refused("double is not a type of TPC-C", "float", node=node)
        if len(words) == 1:
            found = self.aliases.get(words[0]) or type_named(words[0])
            if found is not None:
                self.check_type(found)
                return found
            if words[0] in ("unsigned", "signed"):
                return Scalar("u32" if words[0] == "unsigned" else "i32")
        elif set(words) <= _WORDS:
            sign = "u" if "unsigned" in words else "i"
            bits = 8 if "char" in words else 16 if "short" in words else 32
            return Scalar(f"{sign}{bits}")
        raise self.wrong(f"{' '.join(words)} is not a type of TPC-C", node=node)

    def size_of(self, kind: CType) -> int:
        """Return the bytes of a value."""
        if isinstance(kind, Scalar):
            return max(1, kind.bits // 8)
        if isinstance(kind, Vector):
            return 256
        if isinstance(kind, Group):
            return 256 * len(kind.members)
        if isinstance(kind, Mask):
            return 32
        if isinstance(kind, Array):
            return self.size_of(kind.of) * kind.count
        return 20 if isinstance(kind, Index) else 4

    def slot_size(self, kind: CType) -> int:
        """Return the bytes from one value of an array in local memory to the next."""
        if isinstance(kind, Array):
            return self.slot_size(kind.of) * kind.count
        if isinstance(kind, Scalar):
            return 4
        if isinstance(kind, Mask):
            return SLOT
        return self.size_of(kind)

    functions: dict[str, Any]

    def is_pure(self, node: Any) -> bool:
        """Whether an expression changes nothing, cannot fail, and is cheap enough to be computed in vain."""
        for each in walked(node):
            name = type(each).__name__
            if name == "ArrayRef" and not self.in_registers(each):
                return False
            if name == "Assignment" or (name == "UnaryOp" and each.op in ("++", "--", "p++", "p--", "*")):
                return False
            if name == "FuncCall" and not self.is_harmless(each):
                return False
            if name == "BinaryOp" and each.op in ("/", "%"):
                return False
        return True

    def in_registers(self, node: Any) -> bool:
        """Whether an element is in a register that is known now."""
        raise NotImplementedError

    def is_harmless(self, call: Any) -> bool:
        """Whether a call only computes: no memory, no function of the kernel."""
        name = getattr(call.name, "name", "")
        return bool(name) and name not in self.functions and not any(
            word in name for word in ("ld_", "st_", "printf", "prefetch", "gen_addr", "aso", "cache", "set_", "lookup")
        )  # fmt: skip

    def height(self, node: Any, seen: tuple[str, ...] = ()) -> int:
        """Return how many loops are inside each other in a tree, those of functions called there among them."""
        inner = [self.height(each, seen) for _, each in node.children()]
        own = 1 if type(node).__name__ in _LOOPS else 0
        if type(node).__name__ == "FuncCall":
            name = getattr(node.name, "name", "")
            if name in self.functions and name not in seen:
                inner.append(self.height(self.functions[name].body, (*seen, name)))
        return own + max(inner, default=0)


def space_of(node: Any) -> str:
    """Return the address space that a declaration names, the empty text if it names none."""
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
    for _, each in node.children():
        yield from walked(each)


def assigned_in(node: Any) -> set[str]:
    """Return the names that a tree assigns to, or takes the address of other than to share bits."""
    found: set[str] = set()
    for each in walked(node):
        name = type(each).__name__
        target = None
        if name == "Assignment":
            target = each.lvalue
        elif name == "UnaryOp" and each.op in ("++", "--", "p++", "p--"):
            target = each.expr
        while target is not None and type(target).__name__ in ("ArrayRef", "StructRef"):
            target = target.name
        if target is not None and type(target).__name__ == "ID":
            found.add(target.name)
    return found


def names_of(node: Any) -> set[str]:
    """Return the names that a tree reads."""
    return {each.name for each in walked(node) if type(each).__name__ == "ID"}


def leaves(node: Any) -> set[str]:
    """Return how a loop's body is left early: break and continue of its own level, return."""
    found: set[str] = set()
    for _, each in node.children():
        name = type(each).__name__
        if name in ("Break", "Continue", "Return"):
            found.add(name)
        elif name in _LOOPS:
            found |= leaves(each) & {"Return"}
        elif name == "Switch":
            found |= leaves(each) - {"Break"}
        else:
            found |= leaves(each)
    return found

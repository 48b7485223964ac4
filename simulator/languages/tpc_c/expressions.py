"""Expressions of C: the value of every node of the tree, and the instructions that compute it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import ReadError
from castsim.languages.tpc_c.arithmetic import OPERATORS
from castsim.languages.tpc_c.code import VOID_VALUE, Declared, Value, member_text, names_of
from castsim.languages.tpc_c.library import Library
from castsim.tools.tpc_compiler.c_language import (
    BOOL,
    FLOAT,
    INDEX,
    INT,
    UNSIGNED,
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
    common,
)

_CHARACTERS = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34}
_FORMAT = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|l|ll)?[diouxXfeEgGcs]")
MOST_WORK = 100_000
"""Maximum number of compiled expressions, each counted as often as it is written out, plus counted trips."""
MOST_CALLS = 50
"""Maximum nesting depth of inlined functions."""


@dataclass(slots=True)
class Variable:
    """A name of the program: a register, a known value, an array of registers, or a place in local memory."""

    type: CType
    value: Value | None = None
    parts: list[Variable] = field(default_factory=list)
    address: int | None = None
    constant: bool = False
    node: Any = None


@dataclass(frozen=True, slots=True)
class LValue:
    """An assignable place: a register, a coordinate of an int5, or a word or vector of memory."""

    type: CType
    text: str = ""
    index: tuple[str, int] | None = None
    address: Value | None = None
    constant: str = ""
    variable: Variable | None = None
    """A structure, represented by its members."""


PRINTED, PRINTED_VECTOR = "S26", "V39"
"""The registers for values of printf; the scheduler does not allocate registers that a text names by number."""


@dataclass(frozen=True, slots=True)
class Print:
    """A call of printf: its format, the type of its value (None: no value), and whether that is a vector's element."""

    format: str
    kind: Scalar | None
    element: bool


def text_of(node: Any) -> str:
    """Return the text between the quotes of a string."""
    text: str = node.value[1:-1]
    return text


class NeedsMemoryError(Exception):
    """The index of an array in registers is unknown, so it has to be in local memory. Holds its declaration."""


class Expressions(Library, Declared):
    """Values of expressions. Names are looked up in `scopes`, the innermost last."""

    scopes: list[dict[str, Variable]]
    functions: dict[str, Any]
    calling: list[str]
    printing: bool
    work: int
    """Number of compiled expressions and counted trips."""
    prints: dict[tuple[int | None, int | None], Print]
    """Calls of printf by line and column."""

    # --------------------------------------------------------------------------------------------------------- names

    def variable(self, name: str) -> Variable | None:
        """Return the variable of a name, None if there is none."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def value(self, node: Any, into: str | None = None) -> Value:
        """Return the value of an expression; `into` is a register that may hold it."""
        before, self.here = self.here, node
        self.count_work(1)
        try:
            maker: Callable[[Any, str | None], Value] | None = getattr(self, f"_on_{type(node).__name__}", None)
            if maker is None:
                raise self.wrong(f"{type(node).__name__} is not an expression of TPC-C")
            return maker(node, into)
        finally:
            self.here = before

    def count_work(self, steps: int) -> None:
        """Count work.

        Raises:
            IllegalError: the limit is exceeded.
        """
        self.work += steps
        if self.work > MOST_WORK:
            raise self.refused(f"the kernel takes more than {MOST_WORK} steps to compile", "fewer unrolled loops")

    def constant(self, node: Any, what: str) -> int:
        """Return the value of an expression that has to be a known integer."""
        count = len(self.lines)
        value = self.value(node)
        if not value.known or not isinstance(value.type, Scalar) or value.type.is_float:
            raise self.wrong(f"{what} must be an integer constant", node=node)
        del self.lines[count:]
        return int(value.const or 0)

    def _on_Constant(self, node: Any, into: str | None) -> Value:  # noqa: N802
        if node.type == "string":
            raise self.wrong("strings are allowed only in printf")
        try:
            return self._number_of(node.type, node.value)
        except (
            ValueError,
            TypeError,
            OverflowError,
        ):  # too many digits, a digit that octal numbers lack, two characters
            raise self.wrong(f"{node.value[:40]} is not a C number") from None

    def _number_of(self, kind: str, text: str) -> Value:
        """Return the value of a literal."""
        if kind == "char":
            inner = text[1:-1]
            return Value(INT, const=_CHARACTERS.get(inner[1:], 0) if inner.startswith("\\") else ord(inner))
        if kind in ("float", "double", "long double"):
            digits = text.rstrip("fFlL")
            return self.const(float.fromhex(digits) if digits[:2] in ("0x", "0X") else float(digits), FLOAT)
        digits = text.rstrip("uUlL")
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdecimal()
        number = int(digits, 8 if octal else 0)
        if number >> 32:
            raise self.wrong(f"{text[:40]} has more than 32 bits")
        unsigned = "u" in text.lower() or number >> 31
        return self.const(number, UNSIGNED if unsigned else INT)

    def _on_ID(self, node: Any, into: str | None) -> Value:  # noqa: N802
        variable = self.variable(node.name)
        if variable is None:
            return self._named(node.name)
        if variable.address is not None and not isinstance(variable.type, Array):
            return self.loaded(self._memory(variable), into)
        if isinstance(variable.type, Struct):
            return self._whole(variable)
        if variable.value is None:
            if isinstance(variable.type, Array):
                raise self.wrong(f"{node.name} is an array; use one of its elements", f"{node.name}[0]")
            raise self.wrong(f"{node.name} has no value")
        return variable.value

    def _named(self, name: str) -> Value:
        preloaded = self.named_value(name)
        if preloaded is not None:
            return preloaded
        if name in self.functions or self.is_function(name):
            raise self.refused(f"{name} is a function; pointers to functions are not supported", f"{name}(..)")
        raise self.wrong(f"{name} is not declared")

    # ------------------------------------------------------------------------------------------------------ operators

    def _on_BinaryOp(self, node: Any, into: str | None) -> Value:  # noqa: N802
        if node.op in ("&&", "||"):
            return self._logical(node)
        return self.binary(node.op, self.value(node.left), self.value(node.right), into)

    def _logical(self, node: Any) -> Value:
        word = "and" if node.op == "&&" else "or"
        left = self.converted(self.value(node.left), BOOL)
        if left.known and bool(left.const) != (word == "and"):
            return Value(BOOL, const=int(word == "or"))
        if left.known or self.is_pure(node.right):
            return self.both(left, self.converted(self.value(node.right), BOOL), word)
        result = self.in_register(left, self.register(BOOL))
        end = self.label()
        self.emit(f"jmpr {end}", self.predicate_text(result, inverted=word == "and"))
        self.in_register(self.converted(self.value(node.right), BOOL), result.text)
        self.place(end)
        return result

    def _on_UnaryOp(self, node: Any, into: str | None) -> Value:  # noqa: N802
        sign = node.op
        if sign in ("++", "--", "p++", "p--"):
            return self._stepped(node, into)
        if sign == "*":
            return self._dereferenced(node.expr, into)
        if sign == "&":
            variable = self._variable_at(node.expr)
            if variable is None or any(candidate is variable for candidate in self.scopes[0].values()):
                message = "& is supported only on variables, as an argument or to share bits"
                raise self.refused(message, "f(&x)", "*(int64 *)&x")
            return Value(Pointer(variable.type, "variable"), target=variable)
        if sign == "sizeof":
            kind = self.type_of(node.expr) if type(node.expr).__name__ == "Typename" else self._quiet(node.expr).type
            return Value(UNSIGNED, const=self.size_of(kind))
        if sign not in ("+", "-", "~", "!"):
            raise self.wrong(f"operator {sign} is not known")
        return self.unary(sign, self.value(node.expr), into)

    def _quiet(self, node: Any) -> Value:
        count = len(self.lines)
        value = self.value(node)
        del self.lines[count:]
        return value

    def _stepped(self, node: Any, into: str | None) -> Value:
        target = self.at(node.expr)
        old = self.loaded(target)
        if isinstance(old.type, Index):
            raise self.wrong(f"operator {node.op.removeprefix('p')} does not take int5", "a coordinate, p[1]++")
        if node.op.startswith("p") and self.wants_value:
            kept = self.temp(old.type)
            self.move(kept.text, old)
        else:
            kept = old
        step = self.const(1, INT)
        new = self.binary("+" if "++" in node.op else "-", old, step, target.text or None)
        self.store(target, new)
        return kept if node.op.startswith("p") else self.loaded(target) if target.index is None else new

    wants_value = True
    """Whether the value of the expression being compiled is read."""

    def _dereferenced(self, node: Any, into: str | None) -> Value:
        """`*p`, and `*(TYPE *)&x`, the same bits as another type."""
        if type(node).__name__ == "Cast" and type(node.expr).__name__ == "UnaryOp" and node.expr.op == "&":
            kind = self.type_of(node.to_type)
            value = self.value(node.expr.expr)
            if not isinstance(kind, Pointer):
                raise self.wrong("a pointer type is not allowed here")
            if self.size_of(kind.to) != self.size_of(value.type):
                raise self.wrong(f"{value.type} and {kind.to} have different sizes, so their bits cannot be shared")
            return self.bits_as(value, kind.to)
        return self.loaded(self._pointed(self.value(node)), into)

    def _pointed(self, pointer: Value) -> LValue:
        if pointer.target is not None:
            return self._place_in(pointer.target, "")
        if not isinstance(pointer.type, Pointer):
            raise self.wrong(f"* takes a pointer, not {pointer.type}")
        return LValue(pointer.type.to, address=pointer)

    def on_pointer(self, sign: str, left: Value, right: Value) -> Value:
        """Return a local address, some elements further."""
        pointer, other = (left, right) if isinstance(left.type, Pointer) else (right, left)
        kind = pointer.type
        if (
            not isinstance(kind, Pointer)
            or kind.space != "local"
            or sign not in "+-"
            or other.type not in (INT, UNSIGNED)
        ):
            raise self.wrong(
                f"operator {sign} does not take {left.type} and {right.type}", "gen_addr with other coordinates"
            )
        step = self.binary("*", other, self.const(self.slot_size(kind.to), INT))
        moved = self.binary(sign, Value(INT, pointer.text, pointer.const, pointer.temp), step)
        return Value(kind, moved.text, moved.const, moved.temp)

    def _on_TernaryOp(self, node: Any, into: str | None) -> Value:  # noqa: N802
        condition, inverted = self.truth(self.value(node.cond))
        if condition.known:
            return self.value(node.iftrue if condition.const else node.iffalse, into)
        pure = self.is_pure(node.iftrue) and self.is_pure(node.iffalse)
        value = self._quiet(node.iftrue) if not pure else self.value(node.iftrue)
        alternative = self._quiet(node.iffalse) if not pure else self.value(node.iffalse)
        kind = self._meeting(value, alternative)
        if pure:
            result = self.temp(kind)
            self.in_register(self.converted(alternative, kind), result.text)
            other = self.converted(value, kind)
            self.move(result.text, other, self.predicate_text(condition, inverted=inverted))
            return result
        result = self.dest(kind, into) if isinstance(kind, Pointer) else self.temp(kind)
        other_label, end = self.label(), self.label()
        self.emit(f"jmpr {other_label}", self.predicate_text(condition, inverted=not inverted))
        self.in_register(self.converted(self.value(node.iftrue, result.text), kind), result.text)
        self.emit(f"jmpr {end}")
        self.place(other_label)
        self.in_register(self.converted(self.value(node.iffalse, result.text), kind), result.text)
        self.place(end)
        return result

    def _meeting(self, left: Value, right: Value) -> CType:
        if left.type == right.type:
            return left.type
        if isinstance(left.type, Scalar) and isinstance(right.type, Scalar):
            return common(left.type, right.type)
        if isinstance(left.type, Vector) and isinstance(right.type, Scalar):
            return left.type
        if isinstance(right.type, Vector) and isinstance(left.type, Scalar):
            return right.type
        raise self.wrong(f"the two sides of ?: have different types, {left.type} and {right.type}")

    # ---------------------------------------------------------------------------------------------------- assignments

    def _on_Assignment(self, node: Any, into: str | None) -> Value:  # noqa: N802
        target = self.at(node.lvalue)
        if target.constant:
            raise self.wrong(f"{target.constant} is const and cannot be assigned to")
        wants, self.wants_value = self.wants_value, True
        if node.op == "=":
            value = self.converted(self.value(node.rvalue, target.text or None), target.type, into=target.text or None)
            self.store(target, value)
            self.wants_value = wants
            return value if target.index is not None or target.address is not None else self.loaded(target)
        right = self.value(node.rvalue)
        if target.index is not None and node.op[:-1] in OPERATORS:
            return self._on_dimension(node.op[:-1], target, right)
        old = self.loaded(target)
        new = self.binary(node.op[:-1], old, right, (target.text or None) if self._same(old, right, target) else None)
        value = self.converted(new, target.type, into=target.text or None)
        self.store(target, value)
        self.wants_value = wants
        return value if target.index is not None or target.address is not None else self.loaded(target)

    def _same(self, old: Value, right: Value, target: LValue) -> bool:
        """Return whether the result of a compound assignment has the type of the place and may be computed in it."""
        if isinstance(target.type, Scalar) and isinstance(old.type, Scalar):
            return isinstance(right.type, Scalar) and target.type == common(old.type, right.type)
        return True

    def _on_dimension(self, sign: str, target: LValue, right: Value) -> Value:
        """Compile `p[2] += s`: one instruction on one coordinate."""
        assert target.index is not None
        register, dimension = target.index
        text = self.operand(self.converted(right, INT))
        both = f"{text}, {register}" if sign != "-" else f"{register}, {text}"
        self.emit(f"{OPERATORS[sign]}.i32 b{1 << dimension:05b} {register}, {both}")
        return self.loaded(target) if self.wants_value else Value(INT, const=0)

    def store(self, target: LValue, value: Value) -> None:
        """Store a value of the right type in its place."""
        if target.variable is not None:
            part_values = [self._fixed(part_value) for part_value in self.converted(value, target.type).parts]
            for part, part_value in zip(target.variable.parts, part_values, strict=True):
                self.store(self._place_in(part, ""), part_value)
        elif target.index is not None:
            register, dimension = target.index
            self.emit(f"set_indx {register}, b{1 << dimension:05b}, {self.operand(self.converted(value, INT))}")
        elif target.address is not None:
            self._to_memory(target, self.converted(value, target.type))
        elif value.text != target.text or value.known:
            self.move(target.text, self.converted(value, target.type))

    def loaded(self, source: LValue, into: str | None = None) -> Value:
        """Return the value of a place."""
        if source.variable is not None:
            return self._whole(source.variable)
        if source.index is not None:
            result = self.dest(INT, into)
            self.emit(f"mov_irf_dim {hex(source.index[1])} {result.text}, {source.index[0]}")
            return result
        if source.address is not None:
            return self._from_memory(source, into)
        return Value(source.type, source.text)

    def at(self, node: Any) -> LValue:
        """Return the place that an expression denotes."""
        before, self.here = self.here, node
        try:
            name = type(node).__name__
            if name == "ID":
                return self._place_of(node.name)
            if name == "ArrayRef":
                return self._element(node)
            if name == "StructRef":
                return self._member_place(node)
            if name == "UnaryOp" and node.op == "*":
                return self._pointed(self.value(node.expr))
            if name == "Cast":
                raise self.wrong("a cast cannot be assigned to")
            raise self.wrong("this cannot be assigned to", "a variable", "an element", "a member", "*pointer")
        finally:
            self.here = before

    def _place_of(self, name: str) -> LValue:
        variable = self.variable(name)
        if variable is None:
            self._named(name)
            raise self.wrong(f"{name} cannot be assigned to")
        if isinstance(variable.type, Array):
            raise self.wrong(f"{name} is an array and cannot be assigned to", f"{name}[0]")
        return self._place_in(variable, name)

    def _place_in(self, variable: Variable, name: str) -> LValue:
        """Return the place of a variable; `name` is its name in messages."""
        constant = (name or "it") if variable.constant else ""
        if isinstance(variable.type, Struct):
            return LValue(variable.type, constant=constant, variable=variable)
        if isinstance(variable.type, Array):
            raise self.wrong("this is an array; use one of its elements")
        if variable.address is not None:
            return self._memory(variable)
        return LValue(variable.type, variable.value.text if variable.value is not None else "", constant=constant)

    def _whole(self, variable: Variable) -> Value:
        """Return a structure as a value."""
        parts = []
        for part in variable.parts:
            if isinstance(part.type, Array):
                raise self.refused(f"{variable.type} contains an array and cannot be copied as a whole", "its elements")
            parts.append(self._whole(part) if isinstance(part.type, Struct) else part.value or self.temp(part.type))
        return Value(variable.type, parts=tuple(parts))

    def _fixed(self, value: Value) -> Value:
        """Return a value that stays when the variable that it comes from changes."""
        if value.parts or value.known or value.temp or value.target is not None or not value.text:
            return value
        return self.in_register(value, self.register(value.type))

    def _variable_at(self, node: Any) -> Variable | None:
        """Return the variable that an expression denotes: directly, as a member or element, or through a pointer."""
        name = type(node).__name__
        if name == "ID":
            return self.variable(node.name)
        if name == "UnaryOp" and node.op == "*":
            variable: Variable | None = self.value(node.expr).target
            return variable
        if name == "StructRef":
            base = self.value(node.name).target if node.type == "->" else self._variable_at(node.name)
            if base is None:
                return None
            if isinstance(base.type, Struct):
                names = [field_name for field_name, _ in base.type.members]
                if node.field.name not in names:
                    raise self.wrong(f"{base.type} has no member {node.field.name}", *names)
                part: Variable = base.parts[names.index(node.field.name)]
                return replace(part, constant=part.constant or base.constant)
            if isinstance(base.type, Group) and base.value is not None:
                member = self._group_member(base.value, node.field.name)
                return Variable(member.type, Value(member.type, member.text), constant=base.constant)
        if name == "ArrayRef":
            base = self._variable_at(node.name)
            if base is not None and isinstance(base.type, Array) and base.address is None:
                number = self._index(node.subscript)
                if not number.known:
                    raise self._needs_memory(base)
                return base.parts[self._within(base.type, number, node.subscript)]
        return None

    def _on_ArrayRef(self, node: Any, into: str | None) -> Value:  # noqa: N802
        element = self._element(node)
        if element.text and not element.index:
            return Value(element.type, element.text)
        return self.loaded(element, into)

    def _element(self, node: Any) -> LValue:
        """Return the place of an element of an array or of a coordinate of an int5."""
        base: Any = node
        indices: list[Any] = []
        while type(base).__name__ == "ArrayRef":
            indices.insert(0, base.subscript)
            base = base.name
        variable = self._variable_at(base) if type(base).__name__ in ("ID", "StructRef", "UnaryOp") else None
        name = str(getattr(base, "name", "") if type(base).__name__ == "ID" else "the array")
        if variable is not None and isinstance(variable.type, Array):
            return self._array_element(variable, name, indices)
        if variable is not None and variable.constant and isinstance(variable.type, Index):
            return replace(self._deeper(LValue(INDEX, self._place_in(variable, name).text), indices), constant=name)
        base_value = (
            self.value(base) if variable is None else (variable.value or self.loaded(self._place_in(variable, name)))
        )
        if isinstance(base_value.type, Pointer):
            step = (
                self.on_pointer("+", base_value, self._index(indices[0])) if not self._zero(indices[0]) else base_value
            )
            return self._deeper(LValue(base_value.type.to, address=step), indices[1:])
        return self._deeper(LValue(base_value.type, base_value.text), indices)

    def in_registers(self, node: Any) -> bool:
        """Return whether an element is a coordinate of an int5."""
        variable = self.variable(node.name.name) if type(node.name).__name__ == "ID" else None
        return (
            variable is not None
            and isinstance(variable.type, Index)
            and type(node.subscript).__name__ in ("ID", "Constant")
        )

    def _index(self, node: Any) -> Value:
        """Return the value of an index."""
        number = self.value(node)
        if not isinstance(number.type, Scalar) or number.type.is_float:
            raise self.wrong(f"an index must be an integer, not {number.type}", node=node)
        return self.converted(number, INT)

    def _zero(self, node: Any) -> bool:
        value = self._quiet(node)
        return value.known and not value.const

    def _deeper(self, lvalue: LValue, indices: list[Any]) -> LValue:
        if not indices:
            return lvalue
        if isinstance(lvalue.type, Index):
            number = self._index(indices[0])
            variables = [self.variable(name) for name in names_of(indices[0])]
            if not number.known or not all(variable is None or variable.constant for variable in variables):
                raise self.wrong("the index of an int5 must be a constant", "const int", node=indices[0])
            dimension = int(number.const or 0)
            if not 0 <= dimension < 5:
                raise self.wrong(f"an int5 has no coordinate {dimension}", "0 .. 4", node=indices[0])
            if lvalue.address is not None:
                raise self.wrong("int5 in local memory is not supported")
            return LValue(INT, index=(lvalue.text, dimension))
        if isinstance(lvalue.type, Vector):
            raise self.wrong(f"an element of a vector ({lvalue.type}) can only be printed", "an intrinsic")
        raise self.wrong(f"[] does not take {lvalue.type}")

    def _array_element(self, variable: Variable, name: str, indices: list[Any]) -> LValue:
        offset: Value = self.const(0, INT)
        while indices and isinstance(variable.type, Array):
            number = self._index(indices[0])
            kind = variable.type
            if number.known:
                self._within(kind, number, indices[0], name)
            if variable.address is None:
                if not number.known:
                    raise self._needs_memory(variable)
                variable = variable.parts[int(number.const or 0)]
            else:
                step = self.binary("*", number, self.const(self.slot_size(kind.of), INT))
                offset = self.binary("+", offset, step)
                variable = Variable(kind.of, address=variable.address, constant=variable.constant)
            indices = indices[1:]
        if isinstance(variable.type, Array):
            raise self.wrong(f"{name} is an array of arrays; use a single element")
        constant = name if variable.constant else ""
        if variable.address is None:
            assert variable.value is not None
            if variable.value.known:
                return LValue(variable.type, self.in_register(variable.value).text, constant=constant)
            return self._deeper(LValue(variable.type, variable.value.text, constant=constant), indices)
        address = self.binary("+", offset, self.const(variable.address, INT))
        pointer = Value(Pointer(variable.type, "local"), address.text, address.const, address.temp)
        return self._deeper(LValue(variable.type, address=pointer, constant=constant), indices)

    def _needs_memory(self, variable: Variable) -> Exception:
        """Return (not raise) the error that an array has to be in local memory, where a structure's cannot be."""
        if variable.node is None:
            return self.refused("an array in a structure needs constant indices", "an array of its own")
        return NeedsMemoryError(variable.node)

    def _within(self, kind: Array, number: Value, node: Any, name: str = "the array") -> int:
        """Return a known index of an array."""
        index = int(number.const or 0)
        if not 0 <= index < kind.count:
            message = f"{name} has {kind.count} elements; {index} is out of range"
            raise self.wrong(message, f"0 .. {kind.count - 1}", node=node)
        return index

    def _memory(self, variable: Variable) -> LValue:
        assert variable.address is not None
        return LValue(variable.type, address=Value(Pointer(variable.type, "local"), const=variable.address))

    def _on_StructRef(self, node: Any, into: str | None) -> Value:  # noqa: N802
        member = self._member_place(node)
        return self.loaded(member, into)

    def _member_place(self, node: Any) -> LValue:
        variable = self._variable_at(node)
        if variable is not None:
            return self._place_in(variable, node.field.name)
        if node.type != ".":
            raise self.refused("-> takes the address of a variable, &x", "a member by .v1")
        container = self.value(node.name)
        if isinstance(container.type, Struct):
            names = [field_name for field_name, _ in container.type.members]
            if node.field.name not in names:
                raise self.wrong(f"{container.type} has no member {node.field.name}", *names)
            part = container.parts[names.index(node.field.name)]
            return self._place_in(self.variable_of(part.type, part), node.field.name)
        return self._group_member(container, node.field.name)

    def variable_of(self, kind: CType, value: Value, *, constant: bool = False) -> Variable:
        """Return a variable that is a value."""
        if isinstance(kind, Struct):
            parts = [self.variable_of(part.type, part, constant=constant) for part in value.parts]
            return Variable(kind, parts=parts, constant=constant)
        value_copy = (
            self.in_register(value) if value.known and constant is False and isinstance(kind, Scalar) else value
        )
        return Variable(
            kind, Value(kind, value_copy.text, value_copy.const, target=value_copy.target), constant=constant
        )

    def _group_member(self, group: Value, field: str) -> LValue:
        names = [f"v{number + 1}" for number in range(len(group.type.members))] if isinstance(group.type, Group) else []
        if field not in names:
            raise self.wrong(f"{group.type} has no member {field}", *names)
        assert isinstance(group.type, Group)
        number = names.index(field)
        return LValue(group.type.members[number], member_text(group, number))

    # --------------------------------------------------------------------------------------------------------- memory

    def _from_memory(self, source: LValue, into: str | None) -> Value:
        assert source.address is not None
        kind, pointer = source.type, source.address
        assert isinstance(pointer.type, Pointer)
        if pointer.type.space == "global":
            if not isinstance(kind, Scalar | Vector):
                raise self.wrong(f"{kind} cannot be loaded through a global pointer")
            result = self.dest(kind, into)
            self.emit(f"ld_g {result.text}, {pointer.text}")
            return result
        result = self.temp(kind)
        if isinstance(kind, Group):
            for number in range(len(kind.members)):
                self.emit(f"ld_l_v {member_text(result, number)}, {self._vlm(pointer, 256 * number)}")
            return result
        result = self.dest(kind, into)
        if isinstance(kind, Vector | Mask):
            self.emit(f"ld_l_v {result.text}, {self._vlm(pointer)}")
        elif isinstance(kind, Scalar):
            self.emit(f"ld_l {result.text}, {self.operand(self.bits_as(pointer, UNSIGNED))}")
        else:
            raise self.wrong(f"{kind} cannot be in local memory")
        return result

    def _vlm(self, pointer: Value, offset: int = 0) -> str:
        address = self.bits_as(pointer, UNSIGNED)
        if offset:
            address = self.binary("+", address, self.const(offset, UNSIGNED))
        return self.local_address(address)

    def _to_memory(self, target: LValue, value: Value) -> None:
        assert target.address is not None
        kind, pointer = target.type, target.address
        assert isinstance(pointer.type, Pointer)
        if pointer.type.space == "global":
            if not isinstance(kind, Scalar):
                raise self.wrong(f"{kind} cannot be stored through a global pointer", "v_f32_st_tnsr")
            self.emit(f"st_g {pointer.text}, {self.in_register(value).text}")
        elif isinstance(kind, Group):
            for number in range(len(kind.members)):
                self.emit(f"st_l_v {self._vlm(pointer, 256 * number)}, {member_text(value, number)}")
        elif isinstance(kind, Vector | Mask):
            self.emit(f"st_l_v {self._vlm(pointer)}, {value.text}")
        elif isinstance(kind, Scalar):
            self.emit(f"st_l {self.operand(self.bits_as(pointer, UNSIGNED))}, {self.in_register(value).text}")
        else:
            raise self.wrong(f"{kind} cannot be in local memory")

    # ---------------------------------------------------------------------------------------------- casts and literals

    def _on_Cast(self, node: Any, into: str | None) -> Value:  # noqa: N802
        kind = self.type_of(node.to_type)
        if kind == VOID:
            self.value(node.expr)
            return VOID_VALUE
        value = self.value(node.expr, into if isinstance(kind, Pointer) else None)
        return self.converted(value, kind, explicit=True)

    def _on_CompoundLiteral(self, node: Any, into: str | None) -> Value:  # noqa: N802
        kind = self.type_of(node.type)
        if isinstance(kind, Struct):
            return self._whole(self.declared_part("literal", kind, node.init, constant=False))
        if isinstance(kind, Array | Void | TensorType):
            raise self.refused(f"a literal of type {kind} is not supported", "a variable")
        result = self.temp(kind)
        self.initialised(result, node.init)
        return result

    def declared_part(self, name: str, kind: CType, init: Any, *, constant: bool) -> Variable:
        """Return a new variable in registers with its initialiser, zeros where there is none."""
        raise NotImplementedError

    def initialised(self, target: Value, node: Any) -> None:
        """Fill a register of any type from an initialiser."""
        before, self.here = self.here, node
        kind, text = target.type, target.text
        if type(node).__name__ != "InitList":
            value = self.converted(self.value(node, text), kind, into=text)
            if value.text != text or value.known:
                self.move(text, value)
        elif isinstance(kind, Index):
            self._coordinates(text, node.exprs or [])
        elif isinstance(kind, Group):
            given = self.positions(kind, node)
            for number, member in enumerate(kind.members):
                part = Value(member, member_text(target, number))
                if number in given and (len(given) > 1 or given.get(0) is None):
                    self.initialised(part, given[number])
                else:
                    self._zeroed(part, [given[number]] if number in given else [])
        elif isinstance(kind, Vector | Mask):
            self._zeroed(target, node.exprs)
        elif node.exprs and len(node.exprs) == 1:
            self.initialised(target, node.exprs[0])
        else:
            raise self.wrong(f"{kind} takes exactly one initialiser")
        self.here = before

    def positions(self, kind: Array | Group | Struct, node: Any) -> dict[int, Any]:
        """Return the initialisers in braces by the numbers of the elements that they initialise."""
        if isinstance(kind, Array):
            names, count = [], kind.count
        else:
            names = [field_name for field_name, _ in kind.members] if isinstance(kind, Struct) else (
                [f"v{number + 1}" for number in range(len(kind.members))])  # fmt: skip
            count = len(kind.members)
        initialisers: dict[int, Any] = {}
        number = 0
        for child in node.exprs or []:
            inner = child
            if type(child).__name__ == "NamedInitializer":
                named, inner = child.name[0], child.expr
                member = getattr(named, "name", None) if type(named).__name__ == "ID" else None
                if len(child.name) > 1 or (names and member not in names) or (not names and member is not None):
                    raise self.wrong(f"{kind} has no member of this name", *names, node=child)
                number = (
                    names.index(str(member))
                    if names
                    else self.constant(getattr(named, "expr", named), "the index of an initialiser")
                )
            if not 0 <= number < count:
                what = "elements" if isinstance(kind, Array) else "members"
                raise self.wrong(f"{len(node.exprs)} initialisers for {count} {what}", node=inner)
            initialisers[number] = inner
            number += 1
        return initialisers

    def is_zero(self, node: Any) -> bool:
        """Return whether an expression is the number 0, which initialises aggregates without their own braces."""
        return type(node).__name__ == "Constant" and node.type != "string" and not self.value(node).const

    def _zeroed(self, target: Value, nodes: list[Any] | None) -> None:
        for child in nodes or []:
            inner = child.exprs[0] if type(child).__name__ == "InitList" and child.exprs else child
            value = self._quiet(inner)
            if not value.known or value.const:
                raise self.wrong(f"omit the braces to put one value into all lanes of {target.type}", "{0}", node=child)
        self.move(target.text, self.converted(self.const(0, INT), target.type))

    def _coordinates(self, text: str, nodes: list[Any]) -> None:
        if len(nodes) > 5:
            raise self.wrong("an int5 takes five coordinates", node=nodes[5])
        values = [self.converted(self.value(child), INT) for child in nodes]
        values += [self.const(0, INT)] * (5 - len(values))
        texts = [self.operand(value) for value in values]
        for coordinate in sorted(set(texts), key=texts.index):
            mask = sum(1 << index for index, other in enumerate(texts) if other == coordinate)
            self.emit(f"set_indx {text}, b{mask:05b}, {coordinate}")

    def _on_ExprList(self, node: Any, into: str | None) -> Value:  # noqa: N802
        value = VOID_VALUE
        for child in node.exprs:
            value = self.value(child)
        return value

    # ---------------------------------------------------------------------------------------------------------- calls

    def _on_FuncCall(self, node: Any, into: str | None) -> Value:  # noqa: N802
        if type(node.name).__name__ != "ID":
            raise self.refused("calls through pointers to functions are not supported", "a call by name")
        name, nodes = node.name.name, node.args.exprs if node.args is not None else []
        if name == "printf":
            return self._printf(nodes)
        if self.variable(name) is not None:
            raise self.refused(f"{name} is a variable; calls through pointers to functions are not supported")
        if name in self.functions:
            return self.inlined(name, nodes, into)
        wants, self.wants_value = self.wants_value, True
        arguments = [self.value(child) for child in nodes]
        self.wants_value = wants
        for value, argument_node in zip(arguments, nodes, strict=True):
            if value.type == VOID:
                raise self.wrong("this argument has no value", node=argument_node)
        return self.called(name, arguments, into)

    def inlined(self, name: str, nodes: list[Any], into: str | None) -> Value:
        """Return the result of a function of the kernel, inlined."""
        raise NotImplementedError

    def _printf(self, nodes: list[Any]) -> Value:
        if not nodes or type(nodes[0]).__name__ != "Constant" or nodes[0].type != "string":
            raise self.wrong("the first argument of printf must be a format", 'printf("value %d", x)')
        if len(nodes) > 2:
            raise self.wrong("printf takes at most one value", "one call for each value", node=nodes[2])
        if len(_FORMAT.findall(text_of(nodes[0]))) != len(nodes) - 1:
            raise self.wrong("the format and the values of printf do not match")
        if self.printing:
            text = "printf takes one or two moves in the cycles here; the chip stores its output to a tensor"
            self.note(text)
            span = self.span()
            shown = re.sub(r"\\(.)", lambda match: chr(_CHARACTERS.get(match[1], ord(match[1]))), text_of(nodes[0]))
            self.prints[span.line, span.column] = Print(shown, *self._printed(nodes[1:]))
        return VOID_VALUE

    def _printed(self, nodes: list[Any]) -> tuple[Scalar | None, bool]:
        """Move a printed value to the register that a run observes; return its type and whether it is a vector element.

        A vector moves as a whole, with the number of the element: here alone, an element of a vector is a value.
        """
        if not nodes:
            self.emit(f"mov.i32 {PRINTED}, 0x0")
            return None, False
        (node,) = nodes
        vector = self.value(node.name) if type(node).__name__ == "ArrayRef" and self._of_vector(node.name) else None
        if vector is None:
            value = self.value(node)
            if not isinstance(value.type, Scalar):
                raise self.wrong(f"printf can print a scalar or an element of a vector, not {value.type}", node=node)
            shown = self.converted(value, INT) if value.type == BOOL else value
            self.emit(f"mov.i32 {PRINTED}, {self.operand(shown)}")
            return shown.type if isinstance(shown.type, Scalar) else INT, False
        assert isinstance(vector.type, Vector)
        number = self.converted(self.value(node.subscript), INT)
        self.emit(f"mov {PRINTED_VECTOR}, {vector.text}")
        self.emit(f"mov.i32 {PRINTED}, {self.operand(number)}")
        return vector.type.element, True

    def _of_vector(self, node: Any) -> bool:
        count = len(self.lines)
        try:
            return isinstance(self._quiet(node).type, Vector)
        except ReadError:  # an array of scalars: not a value by itself
            return False
        finally:
            del self.lines[count:]

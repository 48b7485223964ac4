"""A compiled kernel: its instructions, its parameters, and notes from the compilation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, Span
from castsim.languages.tpc_c.code import (
    SLOT,
    VOID_VALUE,
    CodeLine,
    Value,
    assigned_in,
    member_text,
    space_of,
    walked,
)
from castsim.languages.tpc_c.expressions import (
    MOST_CALLS,
    Expressions,
    LValue,
    NeedsMemoryError,
    Print,
    Variable,
)
from castsim.languages.tpc_c.loops import ACCUMULATORS, Loops
from castsim.languages.tpc_c.source_text import Parsed, parsed
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_compiler.c_language import (
    INT,
    TENSOR,
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
    type_named,
)

# Statements: declarations, branches, loops, functions written in place.

_STEPS_OF_CALL = 20
"""Weight of an inlined function in steps, besides those of its body."""
_PRINTF = re.compile(r"tpc_printf\s*\(?\s*(enable|disable)")
_LOCAL_ACCESS = re.compile(r"_(ld|st)_l(_|$)")
"""Part of the name of an intrinsic that takes an address in local memory."""
_IGNORED = re.compile(r"\b(loop_unroll|pipelined|unroll|loop_unroll_divide|machine_unroll_count)\b")


class Statements(Loops, Expressions):
    """Compiles statements. `memory` are the arrays that have to be in local memory, by their declarations."""

    memory: frozenset[int]
    returning: list[tuple[CType, str, str]]
    """For each function being inlined: the type of the result, its register, and the label after it."""
    _used: dict[str, int]
    _assigned: list[set[str]]

    def statement(self, node: Any, pragmas: list[str] | None = None) -> None:
        """Compile a statement."""
        before, self.here = self.here, node
        name = type(node).__name__
        maker: Callable[..., None] | None = getattr(self, f"_do_{name}", None)
        if maker is not None:
            if name in ("For", "While", "DoWhile"):
                maker(node, pragmas or [])
            else:
                maker(node)
        elif name == "EmptyStatement":
            pass
        elif name in ("Goto", "Label"):
            raise self.refused("goto is not supported", "a loop, break, continue, if")
        else:
            wants, self.wants_value = self.wants_value, False
            self.value(node)
            self.wants_value = wants
        self.here = before

    def _do_Compound(self, node: Any) -> None:  # noqa: N802
        self.scopes.append({})
        self._all(node.block_items or [])
        self.scopes.pop()

    def _all(self, nodes: list[Any]) -> None:
        pragmas: list[str] = []
        for child in nodes:
            self.statement(child, pragmas)
            pragmas = [*pragmas, child.string] if type(child).__name__ == "Pragma" else []

    def _do_Pragma(self, node: Any) -> None:  # noqa: N802
        if _PRINTF.search(node.string):
            self.printing = "enable" in node.string
        elif (match := _IGNORED.search(node.string)) is not None:
            self.unrolls = True
            text = f"#pragma {match[1]} lets the program become longer, but its number is ignored"
            self.note(f"{text}: castsim's scheduler pipelines innermost loops without branches and with constant trips")

    # --------------------------------------------------------------------------------------------------- declarations

    def _do_DeclList(self, node: Any) -> None:  # noqa: N802
        for declaration in node.decls:
            self.statement(declaration)

    def _do_Typedef(self, node: Any) -> None:  # noqa: N802
        self.aliases[node.name] = self.type_of(node.type)

    def _do_Decl(self, node: Any) -> None:  # noqa: N802
        if node.name is None:
            if type(node.type).__name__ == "Struct":
                self.type_of(node.type)
            self.enumerated(node.type)
            return
        if type(node.type).__name__ == "FuncDecl":
            return
        if type(node.type).__name__ == "Enum":
            self.enumerated(node.type)
        if node.name in self.scopes[-1]:
            raise self.wrong(f"{node.name} is declared twice here")
        kind = self._declared_type(node)
        constant = "const" in (node.quals or [])
        self.scopes[-1][node.name] = self._declared(node, kind, constant)

    def enumerated(self, node: Any) -> None:
        """Record the constants of an enumeration."""
        if type(node).__name__ != "Enum" or node.values is None:
            return
        number = 0
        for enumerator in node.values.enumerators:
            if enumerator.value is not None:
                number = self.constant(enumerator.value, "the value of an enumerator")
            self.scopes[-1][enumerator.name] = Variable(INT, Value(INT, const=number), constant=True)
            number += 1

    def _declared_type(self, node: Any) -> CType:
        given = node.type
        if type(given).__name__ == "ArrayDecl" and given.dim is None and type(node.init).__name__ == "InitList":
            return self.array_of(self.type_of(given.type), max(1, len(node.init.exprs or [])), node)
        kind = self.type_of(given)
        if isinstance(kind, Void | TensorType):
            raise self.wrong(f"a variable cannot have the type {kind}")
        return kind

    def _declared(self, node: Any, kind: CType, constant: bool) -> Variable:
        space = space_of(node) if not isinstance(kind, Pointer) else ""
        if space == "global":
            raise self.refused("variables in global memory are not supported", "a tensor", "__local__")
        if space == "local" or (isinstance(kind, Array) and id(node) in self.memory):
            return self._in_memory(node, kind, constant)
        if isinstance(kind, Array):
            return self._array(node.name, kind, node.init, constant, node)
        if isinstance(kind, Struct):
            return self.declared_part(node.name, kind, node.init, constant=constant)
        if isinstance(kind, Pointer) and node.init is not None:
            value = self.converted(self.value(node.init, None), kind) if type(node.init).__name__ == "UnaryOp" else None
            if value is not None and value.target is not None:
                raise self.refused("the address of a variable can only be a function argument", "f(&x)")
        assigned = node.name in self._assigned[-1]
        if (
            node.init is not None
            and not assigned
            and isinstance(kind, Scalar | Vector | Index | Mask | Pointer)
            and (type(node.init).__name__ != "InitList")
        ):
            value = self.converted(self.value(node.init), kind)
            if value.known or value.temp:
                return Variable(kind, Value(kind, value.text, value.const), constant=constant)
            value_register = Value(kind, self.register(kind, node.name))
            self.move(value_register.text, value)
            return Variable(kind, value_register, constant=constant)
        value_register = Value(kind, self.register(kind, node.name))
        if node.init is not None:
            self.initialised(value_register, node.init)
        else:
            self.cleared(value_register)
        return Variable(kind, value_register, constant=constant)

    def cleared(self, value: Value) -> None:
        """Give a variable without an initialiser a value: reading it is not a detectable error of C here."""
        kind = value.type
        if isinstance(kind, Index):
            self.emit(f"set_indx {value.text}, b11111, 0x0")
        elif isinstance(kind, Group):
            for number, member in enumerate(kind.members):
                self.cleared(Value(member, member_text(value, number)))
        elif isinstance(kind, Vector):
            self.emit(f"mov.{kind.element.name} {value.text}, 0x0")
        elif isinstance(kind, Mask):
            self.emit(f"mov {value.text}, 0x0")
        elif isinstance(kind, Scalar):
            self.move(value.text, self.const(0, kind))

    def _array(self, name: str, kind: Array, init: Any, constant: bool, node: Any) -> Variable:
        """Return an array whose elements are registers; `node` is its declaration, None inside a structure."""
        given = self._given_parts(kind, init)
        parts = [
            self.declared_part(name, kind.of, given.get(number), constant=constant, node=node)
            for number in range(kind.count)
        ]
        return Variable(kind, parts=parts, constant=constant, node=node)

    def _given_parts(self, kind: Array | Struct, init: Any) -> dict[int, Any]:
        """Return the initialisers of an array or a structure by number."""
        if init is None or self.is_zero(init):
            return {}
        if type(init).__name__ != "InitList":
            what = "an array" if isinstance(kind, Array) else str(kind)
            raise self.wrong(f"{what} needs an initialiser in braces", node=init)
        return self.positions(kind, init)

    def declared_part(self, name: str, kind: CType, init: Any, *, constant: bool, node: Any = None) -> Variable:
        """Return a new variable in registers with its initialiser, zeros where there is none."""
        if isinstance(kind, Array):
            return self._array(name, kind, init, constant, node)
        if isinstance(kind, Struct) and (init is None or type(init).__name__ == "InitList" or self.is_zero(init)):
            given = self._given_parts(kind, init)
            parts = [
                self.declared_part(f"{name}_{member}", member_type, given.get(number), constant=constant)
                for number, (member, member_type) in enumerate(kind.members)
            ]
            return Variable(kind, parts=parts, constant=constant)
        if isinstance(kind, Struct):
            value = self.converted(self.value(init), kind)
            variable = self.declared_part(name, kind, None, constant=constant)
            self.store(LValue(kind, variable=variable), value)
            return variable
        target = Value(kind, self.register(kind, name))
        zero = isinstance(kind, Group | Index) and init is not None and self.is_zero(init)
        if init is None or zero:
            self.cleared(target)
        else:
            self.initialised(target, init)
        return Variable(kind, target, constant=constant)

    def _in_memory(self, node: Any, kind: CType, constant: bool) -> Variable:
        inner = kind
        while isinstance(inner, Array):
            inner = inner.of
        if not isinstance(inner, Scalar | Vector | Group | Mask):
            raise self.refused(f"{inner} cannot be in local memory")
        if isinstance(inner, Scalar) and inner.bits < 32 and isinstance(kind, Array) and space_of(node):
            raise self.refused(f"arrays of {inner} in local memory are not supported", "int", "float")
        memory = "slm" if isinstance(inner, Scalar) else "vlm"
        size = self.slot_size(kind)
        address = self._used.get(memory, 0)
        capacity = self.target.memories[memory].capacity_bytes
        if address + size > capacity:
            message = f"{node.name} takes {size} bytes of {memory.upper()}; {capacity - address} of {capacity} are free"
            raise self.refused(message)
        self._used[memory] = address + (size if memory == "slm" else -(-size // SLOT) * SLOT)
        variable = Variable(kind, address=address, constant=constant, node=node)
        if node.init is not None:
            self._fill(variable, node.init)
        return variable

    def _fill(self, variable: Variable, init: Any) -> None:
        """Store the initialisers of a variable in local memory, zeros where there are none."""
        kind = variable.type
        assert variable.address is not None
        if not isinstance(kind, Array):
            self.store(self._memory(variable), self.converted(self.value(init), kind))
            return
        given = self._given_parts(kind, init)
        for number in range(kind.count):
            part = Variable(kind.of, address=variable.address + number * self.slot_size(kind.of))
            own = given.get(number)
            if isinstance(kind.of, Array):
                self._fill(part, own)
            elif isinstance(kind.of, Group | Mask | Vector) and (own is None or self.is_zero(own)):
                zero = self.temp(kind.of)
                self.cleared(zero)
                self.store(self._memory(part), zero)
            else:
                value = self.value(own) if own is not None else self.const(0, INT)
                self.store(self._memory(part), self.converted(value, kind.of))

    # ------------------------------------------------------------------------------------------------------- branches

    def _do_If(self, node: Any) -> None:  # noqa: N802
        condition, inverted = self.truth(self.value(node.cond))
        if condition.known:
            branch = node.iftrue if condition.const else node.iffalse
            if branch is not None:
                self.scoped(branch)
            return
        other, end = self.label(), self.label()
        self.emit(f"jmpr {other}", self.predicate_text(condition, inverted=not inverted))
        self.scoped(node.iftrue)
        if node.iffalse is not None:
            self.emit(f"jmpr {end}")
        self.place(other)
        if node.iffalse is not None:
            self.scoped(node.iffalse)
            self.place(end)

    def scoped(self, node: Any) -> None:
        """Compile a statement in a scope of its own."""
        self.scopes.append({})
        self.statement(node)
        self.scopes.pop()

    def _do_Switch(self, node: Any) -> None:  # noqa: N802
        raise self.refused("switch is not supported", "if and else")

    def _do_Break(self, node: Any) -> None:  # noqa: N802
        self._leave("break", 1)

    def _do_Continue(self, node: Any) -> None:  # noqa: N802
        self._leave("continue", 0)

    def _leave(self, word: str, which: int) -> None:
        if not self.open_loops or not self.open_loops[-1]:
            raise self.wrong(f"{word} is not inside a loop")
        self.emit(f"jmpr {self.open_loops[-1][which]}")

    # ------------------------------------------------------------------------------------------------------ functions

    def _do_Return(self, node: Any) -> None:  # noqa: N802
        kind, text, end = self.returning[-1]
        if kind == VOID:
            if node.expr is not None:
                raise self.wrong("a function of type void cannot return a value")
        else:
            if node.expr is None:
                raise self.wrong(f"the function returns {kind}")
            value = self.converted(self.value(node.expr, text if isinstance(kind, Pointer) else None), kind)
            self.move(text, value)
        self.emit(f"jmpr {end}")

    def inlined(self, name: str, nodes: list[Any], into: str | None) -> Value:
        """Return the result of a function of the kernel, inlined.

        Raises:
            IllegalError: there is recursion. ReadError: arguments do not fit.
        """
        if name in self.calling:
            chain = " -> ".join([*self.calling[self.calling.index(name) :], name])
            raise self.refused(f"recursion is not supported: {chain}", "a loop")
        if len(self.calling) > MOST_CALLS:
            raise self.refused("functions call each other too deeply")
        function = self.functions[name]
        self.count_work(_STEPS_OF_CALL)
        declared = list(self.parameters(function))
        if len(declared) != len(nodes):
            raise self.wrong(f"{name} takes {len(declared)} arguments, not {len(nodes)}")
        changed = assigned_in(function.body)
        scope: dict[str, Variable] = {}
        for (parameter, kind), node in zip(declared, nodes, strict=True):
            value = self.converted(self.value(node), kind)
            if isinstance(kind, Struct):
                scope[parameter] = self.declared_part(parameter, kind, None, constant=False)
                self.store(LValue(kind, variable=scope[parameter]), value)
                continue
            if value.target is None and (parameter in changed or (value.text == into and into is not None)):
                value = self.in_register(value, self.register(kind, parameter))
            constant = value.target is not None
            scope[parameter] = Variable(
                kind, Value(kind, value.text, value.const, target=value.target), constant=constant
            )
        return self.written(name, function, scope, into)

    def written(self, name: str, function: Any, scope: dict[str, Variable], into: str | None) -> Value:
        """Inline a function whose parameters are those of `scope`."""
        kind = self.result_type(function)
        kept = self.scopes, self.open_loops, self.wants_value
        self.scopes, self.open_loops, self.wants_value = [self.scopes[0], scope], [], True
        self.calling.append(name)
        self._assigned.append(assigned_in(function.body))
        items = function.body.block_items or []
        returns = [item for item in walked(function.body) if type(item).__name__ == "Return"]
        returned = VOID_VALUE
        if kind != VOID and len(returns) == 1 and items and items[-1] is returns[0]:
            self.scopes.append({})
            self._all(items[:-1])
            self.here = returns[0]
            returned = self.converted(self.value(returns[0].expr, into if isinstance(kind, Pointer) else None), kind)
        elif not returns:
            if kind != VOID:
                raise self.wrong(f"{name} must return {kind} but has no return statement", node=function)
            self.statement(function.body)
        elif isinstance(kind, Struct):
            raise self.refused(f"a function that returns {kind} must return only at its end", node=function)
        else:
            end = self.label()
            fresh = VOID_VALUE if kind == VOID else self.temp(kind)
            result = self.dest(kind, into) if isinstance(kind, Pointer) else fresh
            self.returning.append((kind, result.text, end))
            if kind != VOID:
                self.cleared(result)
            self.statement(function.body)
            self.returning.pop()
            self.place(end)
            returned = result
        self._assigned.pop()
        self.calling.pop()
        self.scopes, self.open_loops, self.wants_value = kept
        return returned

    def parameters(self, function: Any) -> Iterator[tuple[str, CType]]:
        """Yield names and types of a function's parameters.

        Raises:
            IllegalError: the number of arguments is variable, or one is a pointer to a function.
        """
        self.here = function
        listed = function.decl.type.args
        names: set[str] = set()
        for parameter in listed.params if listed is not None else []:
            name = type(parameter).__name__
            if name == "EllipsisParam":
                raise self.refused("functions with a variable number of arguments are not supported", node=parameter)
            if name == "ID":
                raise self.wrong(f"the parameter {parameter.name} has no type", node=parameter)
            if type(parameter.type).__name__ == "ArrayDecl":
                raise self.refused("arrays cannot be passed to functions", "single values", node=parameter)
            kind = self.type_of(parameter.type)
            if isinstance(kind, Void):
                continue
            if parameter.name in names:
                raise self.wrong(f"the parameter {parameter.name} is declared twice", node=parameter)
            names |= {parameter.name} if parameter.name else set()
            yield parameter.name or "", kind

    def result_type(self, function: Any) -> CType:
        """Return the type of a function's result."""
        return self.type_of(function.decl.type.type)


MAIN = "main"


@dataclass(frozen=True, slots=True)
class MainParameter:
    """A parameter of main: a tensor by its number, or a scalar by its register."""

    name: str
    type: CType
    number: int
    register: str
    span: Span


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel for one generation: sequential instructions with their places in C.

    `tables` are the look-up tables that it reads: function id and values of an entry; without those in `rounded`, the
    functions that read them are correctly rounded. `notes` describe the interpretation of the kernel.
    `stored` are the tensors that it writes, `blocked` the reason why it cannot run, `prints` calls of printf by line,
    column, `local` the bytes of `vlm` and `slm` for its arrays; None if it accesses others too. `unrolls` is whether a
    pragma requests unrolling or pipelining of loops, which makes a program longer.
    """

    parsed: Parsed
    target: VliwTarget
    parameters: tuple[MainParameter, ...]
    lines: tuple[CodeLine, ...]
    tables: Mapping[str, tuple[int, int]]
    rounded: frozenset[str]
    notes: Mapping[str, Span]
    stored: frozenset[int]
    blocked: tuple[CastsimError, ...]
    prints: Mapping[tuple[int | None, int | None], Print]
    local: Mapping[str, int] | None
    unrolls: bool

    @property
    def tensors(self) -> tuple[MainParameter, ...]:
        """The tensors in the order of their numbers."""
        return tuple(parameter for parameter in self.parameters if isinstance(parameter.type, TensorType))

    @property
    def scalars(self) -> tuple[MainParameter, ...]:
        """The scalars in the order of main."""
        return tuple(parameter for parameter in self.parameters if isinstance(parameter.type, Scalar))


class Compiler(Statements):
    """Compiles one kernel."""

    def __init__(
        self, source: Parsed, target: VliwTarget, memory: frozenset[int], accumulators: str = ACCUMULATORS[0]
    ) -> None:
        super().__init__(source, target)
        self.memory = self.memory_arrays = memory
        self.unrolls = False
        self.aliases, self.tags, self.functions, self.tables, self.rounded = {}, {}, {}, {}, set()
        self.scopes, self.calling, self.returning, self.open_loops = [{}], [], [], []
        self.work = 0
        self.blocked, self.printing, self.prints, self.hardware = [], False, {}, 0
        self._used, self._assigned = {}, [set()]
        self.accumulators, self.rotations = accumulators, {}

    def compiled(self) -> Compiled:
        """Return the kernel."""
        for node in self.parsed.tree.ext:
            if str(getattr(node.coord, "file", "")) == "" or _is_prelude(node):
                continue
            if type(node).__name__ == "FuncDef":
                self.here = node
                if type(node.decl.type).__name__ != "FuncDecl":
                    raise self.wrong(f"{node.decl.name} has a body and no list of parameters", f"{node.decl.name}()")
                if node.decl.name in self.functions:
                    raise self.wrong(f"{node.decl.name} is defined twice")
                self.functions[node.decl.name] = node
        self.here = None
        main = self.functions.get(MAIN)
        if main is None:
            raise self.wrong("the kernel has no function main", "void main(tensor x, tensor y)")
        self._assigned[0] = set().union(*(assigned_in(function_text.body) for function_text in self.functions.values()))
        self._outside()
        parameters = tuple(self._parameters(main))
        if self.result_type(main) != VOID:
            self.note("the result of main is ignored: declare it void")
        scope = {parameter.name: Variable(parameter.type, self._given(parameter)) for parameter in parameters}
        self.written(MAIN, main, scope, None)
        self.here = main
        self.emit("halt")
        lines, blocked = tuple(self.lines), tuple(self.blocked)
        local = None if self.absolute or any(map(_LOCAL_ACCESS.search, self._called())) else dict(self._used)
        self._check_unused()
        return Compiled(
            self.parsed, self.target, parameters, lines, dict(self.tables), frozenset(self.rounded), dict(self.notes),
            _stored(lines), blocked, dict(self.prints), local, self.unrolls,
        )  # fmt: skip

    def _outside(self) -> None:
        """Compile the declarations outside of functions."""
        for node in self.parsed.tree.ext:
            name = type(node).__name__
            if _is_prelude(node) or name == "FuncDef":
                continue
            if name in ("Decl", "Typedef", "Pragma"):
                self.statement(node)
            else:
                raise self.wrong(f"{name} is not allowed outside functions", node=node)

    def _parameters(self, main: Any) -> list[MainParameter]:
        parameters: list[MainParameter] = []
        tensors = scalars = 0
        nodes = list(main.decl.type.args.params if main.decl.type.args else [])
        for (name, kind), node in zip(self.parameters(main), nodes, strict=False):
            if isinstance(kind, TensorType):
                parameters.append(MainParameter(name, TENSOR, tensors, "", self.span(node)))
                tensors += 1
            elif isinstance(kind, Scalar):
                scalar = Scalar("u8") if kind.name == "bool" else kind
                parameters.append(MainParameter(name, scalar, scalars, f"%s.{name}_given", self.span(node)))
                scalars += 1
            else:
                raise self.wrong(f"main takes tensors and scalars, not {kind}", node=node)
        if tensors > self.target.tensors.limit:
            raise self.refused(f"main has {tensors} tensors; {self.target.name} has {self.target.tensors.limit}")
        return parameters

    def _given(self, parameter: MainParameter) -> Value:
        if isinstance(parameter.type, TensorType):
            return Value(TENSOR, const=parameter.number)
        return Value(parameter.type, parameter.register)

    def _called(self) -> set[str]:
        calls = (item for item in walked(self.parsed.tree) if type(item).__name__ == "FuncCall")
        return {getattr(call.name, "name", "") for call in calls}

    def _check_unused(self) -> None:
        """Compile functions without callers, only to find their errors."""
        called = self._called()
        for name, function in self.functions.items():
            if name == MAIN or name in called:
                continue
            scope = {}
            for parameter, kind in self.parameters(function):
                scope[parameter] = self._any(parameter, kind)
            self.written(name, function, scope, None)

    def _any(self, name: str, kind: CType) -> Variable:
        """Return a parameter of a function without callers."""
        if kind == TENSOR:
            return Variable(kind, Value(TENSOR, const=0))
        if isinstance(kind, Pointer) and not kind.space and not isinstance(kind.to, Void | Pointer | TensorType):
            return Variable(kind, Value(kind, target=self.declared_part(name, kind.to, None, constant=False)))
        if isinstance(kind, Struct):
            return self.declared_part(name, kind, None, constant=False)
        return Variable(kind, self.temp(kind))


def _is_prelude(node: Any) -> bool:
    """Return whether a node is one of the type names prepended to the text."""
    return type(node).__name__ == "Typedef" and getattr(node.type.type, "names", None) == ["int"] and (
        type_named(node.name) is not None)  # fmt: skip


def _stored(lines: tuple[CodeLine, ...]) -> frozenset[int]:
    """Return the tensors that instructions store to, by coordinates or by an address made of them."""
    tensors: set[int] = set()
    addresses: dict[str, set[int]] = {}
    for line in lines:
        head, _, rest = line.text.partition(" ")
        words = rest.replace(",", " ").split()
        numbers = [int(word, 16) for word in words if word.startswith("0x")]
        if head.startswith("st_tnsr"):
            tensors.update(numbers[:1])
        elif head == "gen_addr":
            addresses.setdefault(words[0], set()).update(numbers)
        elif head == "mov" and words[0].startswith("%ad."):
            addresses.setdefault(words[0], set()).update(addresses.get(words[1], ()))
        elif head == "st_g":
            tensors |= addresses.get(words[0], set())
    return frozenset(tensors)


def compile_kernel(
    text: str,
    file: str,
    target: VliwTarget,
    defines: Mapping[str, str] | None = None,
    folders: Sequence[Path] = (),
    accumulators: str = ACCUMULATORS[0],
) -> Compiled:
    """Compile a kernel for a target; `accumulators` is one of `castsim.languages.tpc_c.loops.ACCUMULATORS`.

    Raises:
        ReadError: the text is not C, a name is unknown, or types do not fit; the message has the place.
        IllegalError: the generation or castsim lacks a feature that it uses.
    """
    probe = Compiler(Parsed(file, None, {}), target, frozenset())
    source = parsed(text, file, probe.generation, defines or {}, folders)
    memory: frozenset[int] = frozenset()
    work = 0
    while True:
        compiler = Compiler(source, target, memory, accumulators)
        compiler.work = work
        try:
            return compiler.compiled()
        except NeedsMemoryError as needs:
            memory |= {id(needs.args[0])}
            work = compiler.work
        except RecursionError:
            raise compiler.refused("the kernel is nested too deeply") from None

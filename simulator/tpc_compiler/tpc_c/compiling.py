"""A kernel compiled: its instructions, its parameters, and what was found on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.spans import Span
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.tpc_c.code import CodeLine, Value
from castsim.tpc_compiler.tpc_c.declared import assigned_in, walked
from castsim.tpc_compiler.tpc_c.expressions import NeedsMemoryError, Print, Variable
from castsim.tpc_compiler.tpc_c.loops import ACCUMULATORS
from castsim.tpc_compiler.tpc_c.source import Parsed, parsed
from castsim.tpc_compiler.tpc_c.statements import Statements
from castsim.tpc_compiler.tpc_c.types import INDEX, TENSOR, VOID, CType, Index, Scalar, TensorType, Vector, type_named

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

    `tables` are the look-up tables that it reads: function id and values of an entry; without those in `rounded`, what
    reads them is correctly rounded. `notes` say how it was read.
    `stored` are the tensors that it writes, `blocked` why it cannot run, `prints` calls of printf by line and column.
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

    @property
    def tensors(self) -> tuple[MainParameter, ...]:
        """The tensors in the order of their numbers."""
        return tuple(each for each in self.parameters if isinstance(each.type, TensorType))

    @property
    def scalars(self) -> tuple[MainParameter, ...]:
        """The scalars in the order of main."""
        return tuple(each for each in self.parameters if isinstance(each.type, Scalar))


class Compiler(Statements):
    """Compiles one kernel."""

    def __init__(
        self, source: Parsed, target: VliwTarget, memory: frozenset[int], accumulators: str = ACCUMULATORS[0]
    ) -> None:
        super().__init__(source, target)
        self.memory = self.memory_arrays = memory
        self.aliases, self.functions, self.tables, self.rounded = {}, {}, {}, set()
        self.scopes, self.calling, self.returning, self.open_loops = [{}], [], [], []
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
                if node.decl.name in self.functions:
                    raise self.wrong(f"{node.decl.name} is defined twice")
                self.functions[node.decl.name] = node
        self.here = None
        main = self.functions.get(MAIN)
        if main is None:
            raise self.wrong("the kernel has no function main", "void main(tensor x, tensor y)")
        self._assigned[0] = set().union(*(assigned_in(each.body) for each in self.functions.values()))
        self._outside()
        parameters = tuple(self._parameters(main))
        if self.result_type(main) != VOID:
            self.note("main returns nothing to anybody: its type should be void")
        scope = {each.name: Variable(each.type, self._given(each)) for each in parameters}
        self.written(MAIN, main, scope, None)
        self.here = main
        self.emit("halt")
        lines, blocked = tuple(self.lines), tuple(self.blocked)
        self._check_unused()
        return Compiled(
            self.parsed, self.target, parameters, lines, dict(self.tables), frozenset(self.rounded), dict(self.notes),
            _stored(lines), blocked, dict(self.prints),
        )  # fmt: skip

    def _outside(self) -> None:
        """Compile what stands outside of functions."""
        for node in self.parsed.tree.ext:
            name = type(node).__name__
            if _is_prelude(node) or name == "FuncDef":
                continue
            if name in ("Decl", "Typedef", "Pragma"):
                self.statement(node)
            else:
                raise self.wrong(f"{name} cannot stand outside of functions", node=node)

    def _parameters(self, main: Any) -> list[MainParameter]:
        found: list[MainParameter] = []
        tensors = scalars = 0
        nodes = list(main.decl.type.args.params if main.decl.type.args else [])
        for (name, kind), node in zip(self.parameters(main), nodes, strict=False):
            if isinstance(kind, TensorType):
                found.append(MainParameter(name, TENSOR, tensors, "", self.span(node)))
                tensors += 1
            elif isinstance(kind, Scalar):
                held = Scalar("u8") if kind.name == "bool" else kind
                found.append(MainParameter(name, held, scalars, f"%s.{name}_given", self.span(node)))
                scalars += 1
            else:
                raise self.wrong(f"main takes tensors and scalars, not {kind}", node=node)
        if tensors > self.target.tensors.limit:
            raise self.refused(f"main has {tensors} tensors; {self.target.name} has {self.target.tensors.limit}")
        return found

    def _given(self, parameter: MainParameter) -> Value:
        if isinstance(parameter.type, TensorType):
            return Value(TENSOR, const=parameter.number)
        return Value(parameter.type, parameter.register)

    def _check_unused(self) -> None:
        """Compile functions that nothing calls, for their errors alone."""
        called = {
            getattr(each.name, "name", "") for each in walked(self.parsed.tree) if type(each).__name__ == "FuncCall"
        }
        for name, function in self.functions.items():
            if name == MAIN or name in called:
                continue
            scope = {}
            for parameter, kind in self.parameters(function):
                scope[parameter] = Variable(kind, Value(TENSOR, const=0) if kind == TENSOR else self.temp(kind))
            self.written(name, function, scope, None)


def _is_prelude(node: Any) -> bool:
    """Whether a node is one of the names of types that stand before the text."""
    return type(node).__name__ == "Typedef" and getattr(node.type.type, "names", None) == ["int"] and (
        type_named(node.name) is not None)  # fmt: skip


def _stored(lines: tuple[CodeLine, ...]) -> frozenset[int]:
    """Return the tensors that instructions store to, by coordinates or by an address made of them."""
    found: set[int] = set()
    addresses: dict[str, set[int]] = {}
    for line in lines:
        head, _, rest = line.text.partition(" ")
        words = rest.replace(",", " ").split()
        numbers = [int(word, 16) for word in words if word.startswith("0x")]
        if head.startswith("st_tnsr"):
            found.update(numbers[:1])
        elif head == "gen_addr":
            addresses.setdefault(words[0], set()).update(numbers)
        elif head == "mov" and words[0].startswith("%ad."):
            addresses.setdefault(words[0], set()).update(addresses.get(words[1], ()))
        elif head == "st_g":
            found |= addresses.get(words[0], set())
    return frozenset(found)


def compile_kernel(
    text: str,
    file: str,
    target: VliwTarget,
    defines: Mapping[str, str] | None = None,
    folders: Sequence[Path] = (),
    accumulators: str = ACCUMULATORS[0],
) -> Compiled:
    """Compile a kernel for a target; `accumulators` is one of `castsim.tpc_compiler.tpc_c.loops.ACCUMULATORS`.

    Raises:
        ReadError: it is not C, a name is unknown, types do not fit; says where.
        IllegalError: the generation or castsim lacks what it uses.
    """
    probe = Compiler(Parsed(file, None, {}), target, frozenset())
    source = parsed(text, file, probe.generation, defines or {}, folders)
    memory: frozenset[int] = frozenset()
    while True:
        try:
            return Compiler(source, target, memory, accumulators).compiled()
        except NeedsMemoryError as needs:
            memory |= {id(needs.args[0])}
        except RecursionError:
            raise IllegalError("the kernel is nested too deeply", span=Span(file, 1, 1)) from None


__all__ = ["INDEX", "CastsimError", "Compiled", "Compiler", "Index", "MainParameter", "Vector", "compile_kernel"]

"""Statements of lowered TIR, as the control flow, transfers and flags of a micro program.

Loops stay loops: mutable scalars and registers that a loop changes are carried from trip to trip. A loop whose index
chooses among registers is unrolled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from castsim.isa.errors import CastsimError
from castsim.languages.tilelang.registers import VectorTranslator
from castsim.languages.tilelang.scalars import (
    INDEX,
    FunctionText,
    Number,
    Place,
    StatementRegion,
    TextValue,
    bits_of,
    element_of,
    kinds,
    name_of,
    names,
    nodes_of,
    pointer,
    refused,
)
from castsim.languages.tilelang.threads import ALL_CORES, CORES_UNTIMED, OWN_GROUP, UNTIMED, Meeting, SimtLaunch

POINTED = "pointed"
"""Name of the argument for the memory that tables of pointers point to."""
_MOST_COPIES = 4096
"""Trips of a loop that may be written out."""
_NO_EFFECT = frozenset(("tl.device_assert", "tirx.assume", "tl.ascend_threadfence", "tirx.tvm_storage_sync"))
_REGISTERS = ("local", "local.var")
_FLAGS = {"tl.ascend_set_flag": "set_flag", "tl.ascend_wait_flag": "wait_flag"}
_CROSSING = {"tl.ascend_cross_core_set_flag": "arrive", "tl.ascend_cross_core_wait_flag": "wait"}
_HOLDS = {"tl.ascend_get_buf": "get_buf", "tl.ascend_rls_buf": "rls_buf"}


class _NotConstantError(Exception):
    """An index into an array of registers is unknown."""


class _UnsetError(Exception):
    """A mutable scalar or register is read that was not written on every path; it starts as 0."""

    def __init__(self, key: tuple[Any, int]) -> None:
        super().__init__()
        self.key = key


class Walk(VectorTranslator):
    """A walk through one function; its output is the body of the program."""

    def __init__(
        self, parameters: Mapping[Any, TextValue], numbers: Mapping[Any, Number | float], core: int, *,
        fast_math: bool = False, places: Mapping[tuple[str, int], str] | None = None,
        extents: Mapping[str, int] | None = None, meeting: Meeting | None = None,
    ) -> None:  # fmt: skip
        self.text = FunctionText()
        self.globals = dict(parameters)
        self.parameters = {parameter.name[1:] for parameter in parameters.values()}
        self.variables = dict(numbers)
        self.core = core
        self.fast_math = fast_math
        self.cells = {}
        self.kinds_of: dict[Any, str] = {}
        """Type of the elements of mutable buffers, by their data."""
        self.start_at_zero: set[tuple[Any, int]] = set()
        self.functions: list[tuple[Place, int]] = []
        """Each vector function: its place, and its `latency=`, 0 if none is given."""
        self.places = places or {}
        self.extents = dict(extents or {})
        self.meeting = meeting or Meeting(range(1))
        self.tables = False
        """Whether memory is accessed through tables of pointers."""
        self.externals: dict[str, tuple[str, Callable[..., None], str]] = {}
        """Declared functions: the reason for unknown cycles, the function that computes them, their parameter types."""
        self.atomics: dict[str, Any] = {}
        self.leaving: object = None
        """The innermost loop that a value may end: its cells include whether it has been left, and its index."""

    def walk(self, body: Any) -> None:
        """Emit the body; again, with initial values of 0, if a path leaves a scalar or a register without a value."""
        first = dict(self.variables)
        while True:
            self.text, self.cells, self.variables, self.functions = FunctionText(), {}, dict(first), []
            self.externals = {}
            self._buffer()  # which also tells a core without work from a program of tiles
            try:
                self.statement(body)
            except _UnsetError as unset:
                if unset.key in self.start_at_zero:
                    raise refused("a register that is read before it is written", self.text.where) from None
                self.start_at_zero.add(unset.key)
                continue
            except _NotConstantError:
                raise refused("an array of registers with an index that is not constant", self.text.where) from None
            except CastsimError:
                raise
            except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                why = f"castsim cannot follow ({type(error).__name__}: {error})"
                raise refused("TIR that", self.text.where, why) from None
            self.text.line("pto.barrier #pto.pipe<PIPE_ALL>")
            self.text.line("return")
            return

    # ------------------------------------------------------------------------------------------------- statements

    def statement(self, s: Any) -> None:
        """Emit one statement."""
        handler: Callable[[Any], None] | None = getattr(self, f"_on_{type(s).__name__.lower()}", None)
        if handler is None:
            raise refused(f"statement {type(s).__name__}", self.text.where)
        handler(s)

    def _on_seqstmt(self, s: Any) -> None:
        self._sequence(list(s.seq))

    def _sequence(self, statements: Sequence[Any]) -> None:
        """Emit statements; those after one that may leave the innermost loop are conditional on whether it has."""
        for number, statement in enumerate(statements):
            self.statement(statement)
            left = self.cells.get((self.leaving, 0), False)
            if isinstance(left, TextValue) and number + 1 < len(statements) and self._leaves(statement):
                stays = self.pure("arith.xori", left, self.text.named(True))
                self._branch(stays, statements[number + 1 :], ())
                return
            if left is True:
                return

    def _leaves(self, s: Any) -> bool:
        """Return whether a statement may leave the loop around it."""
        kind = type(s).__name__
        if kind == "Evaluate":
            return type(s.value).__name__ == "Call" and name_of(s.value) == "tl.loop_break"
        if kind == "SeqStmt":
            return any(map(self._leaves, s.seq))
        names_of = {"IfThenElse": ("then_case", "else_case"), "SBlockRealize": ("block",)}.get(kind, ("body",))
        inner = (None if kind in ("For", "While") else getattr(s, name, None) for name in names_of)
        return any(child is not None and self._leaves(child) for child in inner)

    def _on_attrstmt(self, s: Any) -> None:
        if s.attr_key == "thread_extent":
            tag = s.node.thread_tag
            if tag != "blockIdx.x":
                raise refused(f"threads ({tag})", self.text.where, "outside of T.SimtVF are not supported")
            self.variables[s.node.var] = self.core
        self.statement(s.body)

    def _on_sblockrealize(self, s: Any) -> None:
        self.statement(s.block)

    def _on_sblock(self, s: Any) -> None:
        if s.name_hint == "SIMT_VF":
            self._threads(s)
            return
        if s.name_hint == "CUBE":
            raise refused("T.Cube", self._first_place(s), "runs on the cube core, which is not modelled")
        for buffer in s.alloc_buffers:
            self._allocate(buffer)
        if s.name_hint != "SIMD_VF":
            self.statement(s.body)
            return
        self.text.at(self._first_place(s))
        latency = s.annotations.get("tl.vf_latency")
        self.functions.append((self.text.place, 0 if latency is None else int(getattr(latency, "value", latency))))
        location = self.text.place
        with self.text.region() as region:
            self.statement(s.body)
        self.text.at(location)
        self.text.enclose("pto.vecscope {", region)

    def _threads(self, s: Any) -> None:
        """Emit the call of a SIMT function, with the scalars that it takes from its context."""
        used: dict[Any, None] = {}
        stores: set[Any] = set()
        for node in nodes_of(s.body):
            kind = type(node).__name__
            if kind == "Var":
                used[node] = None
            elif kind in ("BufferLoad", "BufferStore"):
                used[node.buffer.data] = None
                stores |= {node.buffer.data} if kind == "BufferStore" else set()
            elif kind == "Call" and "atomic" in name_of(node):
                stores.add(node.args[0].args[1])
        self.text.at(self._first_place(s))
        given: dict[Any, Any] = {variable: self.variables[variable] for variable in used if variable in self.variables}
        given |= {key: value for key, value in self.cells.items() if key[0] in used}
        if any(key in stores for key, _ in self.cells):
            raise refused("a scalar of around it that T.SimtVF changes", self.text.where)
        passed = {key: value for key, value in given.items() if isinstance(value, TextValue)}
        arrays = {array: self.globals[array].name[1:] for array in used if array in self.globals}
        if not self.parameters.issuperset(arrays.values()):
            raise refused("a table of pointers in T.SimtVF", self.text.where)
        self.external(
            "simt", tuple(passed.values()), UNTIMED,
            SimtLaunch(s, tuple(passed), {key: value for key, value in given.items() if key not in passed},
                   {array: (name, self.extents.get(name)) for array, name in arrays.items()},
                   frozenset(array for array in arrays if array in stores), self.atomics),
        )  # fmt: skip

    def external(self, name: str, operands: tuple[TextValue, ...], untimed: str, run: Callable[..., None]) -> None:
        """Emit the call of a function without text: the program declares it."""
        callee = f"{name}_{len(self.externals)}"
        self.externals[callee] = untimed, run, kinds(operands)
        self.text.line(f"func.call @{callee}({names(operands)}) : ({kinds(operands)}) -> ()")

    def _first_place(self, s: Any) -> Place:
        """Return the place of a vector function, or else of the first call in a statement."""
        if type(s).__name__ == "SBlock" and "tl.vf_source_index" in s.annotations:
            index = s.annotations["tl.vf_source_index"]
            kind = s.name_hint.lower().replace("_", "")
            if (kind, int(getattr(index, "value", index))) in self.places:
                return self.places[kind, int(getattr(index, "value", index))]
        calls = (node for node in nodes_of(s) if type(node).__name__ == "Call" and node.annotations)
        locations = [str(node.annotations["castsim.place"]) for node in calls if "castsim.place" in node.annotations]
        return min(locations, key=lambda at: int(at.rpartition(":")[2])) if locations else None

    def _on_allocbuffer(self, s: Any) -> None:
        self._allocate(s.buffer)

    def _allocate(self, buffer: Any) -> None:
        scope = str(buffer.scope())
        if scope.startswith("shared.l") or scope in ("wmma.accumulator", "local.fragment"):
            raise refused(f"a buffer in {scope}", self.text.where)
        self.kinds_of[buffer.data] = str(buffer.dtype)
        for key in self.start_at_zero:
            if key[0] is buffer.data or key[0].same_as(buffer.data):
                self.cells[key] = self._zero(str(buffer.dtype))

    def _zero(self, dtype: str) -> Any:
        if "x" not in dtype:
            return 0 if "int" in dtype else False if dtype == "bool" else self.text.constant(0.0, element_of(dtype))
        element = element_of(dtype)
        lanes = element if element[0] in "uif" and element[:2] != "f8" else f"ui{bits_of(element)}"
        every = self.every(min(32, bits_of(lanes)))
        return self.seen_as(self.put("vdup", [self.as_scalar(0, lanes), every], lanes), element)

    def _on_declbuffer(self, s: Any) -> None:
        """Emit nothing: elements of a view are addressed by their offsets."""

    def _on_assertstmt(self, s: Any) -> None:
        """Emit nothing: the host asserts."""

    def _on_bind(self, s: Any) -> None:
        if str(s.var.dtype) == "handle":
            self._bind_pointer(s)
        else:
            self.variables[s.var] = self.value(s.value)

    def _bind_pointer(self, s: Any) -> None:
        """Bind a pointer of a table: a place in the memory of all targets of such tables."""
        if type(s.value).__name__ != "Call" or name_of(s.value) != "tirx.reinterpret":
            raise refused(f"a pointer that is not of a table ({s.var.name})", self.text.where)
        self.tables = True
        offset, kind = self.text.named(self.number(s.value.args[0])), pointer("ui8", "gm")
        self.globals[s.var] = self.text.one(f"pto.addptr %{POINTED}, {offset.name} : {kind} -> {kind}", kind)

    def _on_bufferstore(self, s: Any) -> None:
        if type(s.indices[0]).__name__ != "Ramp":
            self._store_lane(s)
            return
        for self.lane in range(int(s.indices[0].lanes)):
            self._store_lane(s)
        self.lane = 0

    def _store_lane(self, s: Any) -> None:
        if str(s.buffer.scope()) not in _REGISTERS:
            self._store(s)
            return
        key = s.buffer.data, self.place_of(s.indices[0])
        lanes = type(s.indices[0]).__name__ == "Ramp"
        self.cells[key] = self.number(s.value) if lanes else self.value(s.value)

    def _store(self, s: Any) -> None:
        dtype = str(s.buffer.dtype)
        plain = element_of(dtype).lstrip("u") if "int" in dtype else element_of(dtype)
        at = self.pointed(self.base(s.buffer.data), plain, "gm" if s.buffer.data in self.globals else "ub")
        value = self.as_scalar(self.number(s.value), plain)
        offset = self.text.named(self._offset(s))
        self.text.line(f"pto.store_scalar {value.name}, {at.name}[{offset.name}] : {at.kind}, {plain}")

    def _offset(self, access: Any) -> Number:
        if len(access.indices) != 1:
            raise refused("an element with several indices", self.text.where)
        return self.binary("Add", self.number(access.indices[0]), self.number(access.buffer.elem_offset), "int64")

    def base(self, data: Any) -> TextValue:
        """Return the pointer to a buffer's beginning; all of UB is one buffer, laid out by the compiler."""
        if data in self.globals:
            return self.globals[data]
        if data not in self.kinds_of:
            raise refused(f"pointer {data.name}", self.text.where, "has an unknown origin")
        return self._buffer()

    def _buffer(self) -> TextValue:
        kind = pointer("ui8", "ub")
        return self.text.once(f"pto.castptr {self.text.constant(0, 'i64').name} : i64 -> {kind}", kind)

    def loaded(self, e: Any) -> Any:
        """Return a mutable scalar or register, or an element of memory that the scalar unit loads."""
        if str(e.buffer.scope()) in _REGISTERS:
            return self.read((e.buffer.data, self.place_of(e.indices[0])))
        return self.scalar_load(self.base(e.buffer.data), self._offset(e), str(e.buffer.dtype))

    def loads(self, e: Any) -> bool:
        """Return whether the scalar unit loads for an expression."""
        loads = (node for node in nodes_of(e) if type(node).__name__ == "BufferLoad")
        return any(str(node.buffer.scope()) not in _REGISTERS for node in loads)

    def read(self, key: tuple[Any, int]) -> Any:
        """Return a mutable scalar or register."""
        if key not in self.cells:
            raise _UnsetError(key)
        return self.cells[key]

    def place_of(self, index: Any) -> int:
        """Return the number of a register in an array of them."""
        number = self.number(index)
        if isinstance(number, TextValue):
            raise _NotConstantError
        return int(number)

    # ----------------------------------------------------------------------------------------------- control flow

    def _changed(self, *bodies: Any) -> list[tuple[Any, int]]:
        """Return the mutable scalars and registers with a value that some statements may change."""
        data: set[Any] = set()
        for node in nodes_of(*bodies):
            if type(node).__name__ == "BufferStore" and str(node.buffer.scope()) in _REGISTERS:
                data.add(node.buffer.data)
            elif type(node).__name__ == "Call" and name_of(node) == "tirx.tvm_access_ptr":
                data.add(node.args[1])
            elif type(node).__name__ == "Call" and name_of(node) == "tl.loop_break":
                data.add(self.leaving)
        return [key for key in self.cells if key[0] in data]

    def _region(
        self, keys: Sequence[Any], types: Sequence[str], put: Callable[[], None]
    ) -> tuple[StatementRegion, list[TextValue]]:
        """Emit statements to a region; return it with its final cells of the given types.

        Names that it binds and its own cells are removed after it.
        """
        variables, cells = dict(self.variables), set(self.cells)
        with self.text.region() as region:
            put()
            ends = [self._as_kind(self.cells[key], kind) for key, kind in zip(keys, types, strict=True)]
        self.variables = variables
        self.cells = {key: value for key, value in self.cells.items() if key in cells}
        return region, ends

    def _started(self, keys: Sequence[Any], count: int = 1) -> tuple[list[TextValue], ...]:
        """Return cells as values, and their new names in a region."""
        first = [self.text.named(self.cells[key]) for key in keys]
        return first, *([TextValue(self.text.name("k"), value.kind) for value in first] for _ in range(count))

    def _results(
        self, keys: Sequence[Any], regions: Sequence[StatementRegion], ends: Sequence[Sequence[TextValue]]
    ) -> tuple[str, str]:
        """End regions with the values that they yield for cells; return the names of the results and their types."""
        if not keys:
            return "", ""
        results = [TextValue(self.text.name(), value.kind) for value in ends[0]]
        for region, last in zip(regions, ends, strict=True):
            region.lines.append((f"scf.yield {names(last)} : {kinds(last)}", None))
        self.cells.update(zip(keys, results, strict=True))
        return f"{names(results)} = ", f" -> ({kinds(results)})"

    def _on_for(self, s: Any) -> None:
        if s.thread_binding is not None or str(s.kind) in ("1", "ForKind.PARALLEL"):
            raise refused("T.Parallel", self._first_place(s), "outside of T.SimtVF is not supported")
        low, extent = self.number(s.min), self.number(s.extent)
        step = 1 if s.step is None else self.number(s.step)
        if self._leaves(s.body):
            self._loop_that_is_left(s, low, extent, step)
            return
        if not isinstance(extent, TextValue) and extent <= 1:
            if extent == 1:
                self.variables[s.loop_var] = low
                self.statement(s.body)
            return
        cells, variables, kept, count = dict(self.cells), dict(self.variables), len(self.functions), self.text.count
        before = [(len(region.lines), dict(region.known)) for region in self.text.regions]
        try:
            self._loop(s, low, extent, step)
        except _NotConstantError:
            if (
                isinstance(low, TextValue)
                or isinstance(extent, TextValue)
                or isinstance(step, TextValue)
                or extent > _MOST_COPIES
            ):
                raise
            self.cells, self.variables, self.text.count = cells, variables, count
            del self.functions[kept:], self.text.regions[len(before) :]
            for region, (length, values) in zip(self.text.regions, before, strict=True):
                del region.lines[length:]
                region.known = values
            for trip in range(extent):
                self.variables[s.loop_var] = low + trip * step
                self.statement(s.body)

    def _loop(self, s: Any, low: Number, extent: Number, step: Number) -> None:
        high = self.binary("Add", low, self.binary("Mul", extent, step, "int64"), "int64")
        keys = self._changed(s.body)
        first, own = self._started(keys)
        index = TextValue(self.text.name("i"), INDEX)

        def put() -> None:
            self.variables[s.loop_var] = index
            self.cells.update(zip(keys, own, strict=True))
            self.statement(s.body)

        region, last = self._region(keys, [value.kind for value in own], put)
        moving = [n for n in range(len(keys)) if last[n] != own[n]]
        still = {own[n].name: first[n].name for n in range(len(keys)) if last[n] == own[n]}
        self._rename(region, still)
        self.cells.update(zip(keys, first, strict=True))
        start, end, stride = (self.text.named(number).name for number in (low, high, step))
        ends = [TextValue(still.get(last[n].name, last[n].name), last[n].kind) for n in moving]
        results, types = self._results([keys[n] for n in moving], [region], [ends])
        pairs = ", ".join(f"{own[n].name} = {first[n].name}" for n in moving)
        carried = f" iter_args({pairs}){types}" if moving else ""
        self.text.enclose(f"{results}scf.for {index.name} = {start} to {end} step {stride}{carried} {{", region)

    def _as_kind(self, value: Any, kind: str) -> TextValue:
        text_value = self.text.named(value)
        if text_value.kind == kind:
            return text_value
        if kind.startswith("!pto.mask"):
            return self.masked(text_value, int(kind[11:-1]))
        if kind.startswith("!pto.vreg"):
            return self.seen_as(text_value, TextValue("", kind).element)
        return self.as_scalar(text_value, kind)

    @staticmethod
    def _rename(region: StatementRegion, names_of: Mapping[str, str]) -> None:
        if names_of:
            search = re.compile("(?:" + "|".join(map(re.escape, names_of)) + r")\b")
            region.lines[:] = [
                (search.sub(lambda at: names_of[at.group()], line), location) for line, location in region.lines
            ]

    def _on_ifthenelse(self, s: Any) -> None:
        condition = self.number(s.condition)
        if not isinstance(condition, TextValue):
            if condition or s.else_case is not None:
                self.statement(s.then_case if condition else s.else_case)
            return
        self._branch(condition, *([] if case is None else [case] for case in (s.then_case, s.else_case)))

    def _branch(self, condition: TextValue, *cases: Sequence[Any]) -> None:
        """Emit two lists of statements, of which a condition chooses one."""
        keys = self._changed(*cases[0], *cases[1])
        before, types = dict(self.cells), [value.kind for value in self._started(keys, 0)[0]]
        regions, ends = [], []
        for case in cases:
            self.cells = dict(before)
            region, last = self._region(keys, types, partial(self._sequence, case))
            regions.append(region)
            ends.append(last)
        self.cells = before
        moving = [n for n in range(len(keys)) if ends[0][n] != ends[1][n]]
        chosen = [[last[n] for n in moving] for last in ends]
        results, types_of = self._results([keys[n] for n in moving], regions, chosen)
        self.text.choose(f"{results}scf.if {condition.name}{types_of} {{", *regions)

    def _on_while(self, s: Any) -> None:
        around, self.leaving = self.leaving, object()
        if self._leaves(s.body):
            self.cells[self.leaving, 0] = False
        self._while(lambda: self.number(s.condition), lambda: self.statement(s.body), s.body)
        self.cells.pop((self.leaving, 0), None)
        self.leaving = around

    def _loop_that_is_left(self, s: Any, low: Number, extent: Number, step: Number) -> None:
        """Emit a counted loop that a value may end as one that continues while it is not left."""
        high = self.binary("Add", low, self.binary("Mul", extent, step, "int64"), "int64")
        around, self.leaving = self.leaving, object()
        index = self.leaving, 1
        self.cells |= {(self.leaving, 0): False, index: self.text.named(low)}

        def body() -> None:
            self.variables[s.loop_var] = self.cells[index]
            self.statement(s.body)
            self.cells[index] = self.binary("Add", self.variables[s.loop_var], step, "int64")

        self._while(lambda: self.compared("LT", self.cells[index], high, "int64"), body, s.body)
        del self.cells[self.leaving, 0], self.cells[index]
        self.leaving = around

    def _while(self, goes_on: Callable[[], Number], put: Callable[[], None], body: Any) -> None:
        own_keys = [key for key in self.cells if key[0] is self.leaving]
        keys = [*own_keys, *(key for key in self._changed(body) if key not in own_keys)]
        first, own, passed = self._started(keys, 2)
        with self.text.region() as before:
            self.cells.update(zip(keys, own, strict=True))
            condition = self.text.named(goes_on())
            if own_keys:
                stays = self.pure("arith.xori", self.cells[self.leaving, 0], self.text.named(True))
                condition = self.pure("arith.andi", condition, stays)
        before.lines.append((f"scf.condition({condition.name}) {names(own)} : {kinds(own)}", None))
        self.cells.update(zip(keys, passed, strict=True))
        after, last = self._region(keys, [value.kind for value in own], put)
        results, _ = self._results(keys, [after], [last])
        pairs = ", ".join(f"{a.name} = {b.name}" for a, b in zip(own, first, strict=True))
        self.text.enclose(f"{results}scf.while ({pairs}) : ({kinds(own)}) -> ({kinds(own)}) {{", before, "")
        self.text.regions[-1].lines.pop()
        arguments = ", ".join(f"{value.name}: {value.kind}" for value in passed)
        after.lines.insert(0, (f"^bb0({arguments}):", None))
        self.text.enclose("} do {", after)

    # ------------------------------------------------------------------------------------- what is done, not computed

    def _on_evaluate(self, s: Any) -> None:
        call = s.value
        if type(call).__name__ != "Call":
            return
        name = name_of(call)
        if name.startswith("tl.simd."):
            self.operation(call)
            return
        self.text.at(call.annotations.get("castsim.place") if call.annotations else None)
        if name in _NO_EFFECT:
            return
        if name == "tl.loop_break":
            self.cells[self.leaving, 0] = True
        elif name == "tl.ascend_copy_gm_to_ubuf":
            self._transfer_in(call.args)
        elif name == "tl.ascend_copy_ubuf_to_gm":
            args = call.args
            self._transfer("mte_ub_gm", args[:2], args[4], args[3], args[7], args[6])
        elif name in _FLAGS:
            self._flag(_FLAGS[name], *call.args)
        elif name in _HOLDS:
            number, mode = (self.as_scalar(self.number(argument), "i64") for argument in call.args[1:3])
            self.text.line(f'pto.{_HOLDS[name]} "{_pipe(call)}", {number.name}, {mode.name} : i64, i64')
        elif name == "tl.ascend_pipe_barrier":
            self.text.line(f"pto.barrier #pto.pipe<{_pipe(call)}>")
        elif name in _CROSSING:
            self._cross(_CROSSING[name], *call.args)
        else:
            raise refused(f"T.{name.partition('.')[2]}", self.text.where, "has no counterpart in castsim")

    def _cross(self, what: str, mode: Any, pipe: Any, number: Any) -> None:
        """Put a flag between cores."""
        if int(mode) not in (ALL_CORES, OWN_GROUP):
            raise refused(f"a flag of mode {int(mode)}", self.text.where, "is for the cube core, which is not modelled")
        run = partial(getattr(self.meeting, what), self.core, int(mode))
        self.external(what, (self.as_scalar(self.number(number), "i64"),), CORES_UNTIMED, run)

    def _flag(self, what: str, event: Any, number: Any) -> None:
        source, _, destination = str(event.value).partition("_")
        event_number = self.number(number)
        pipes = f'"PIPE_{source}", "PIPE_{destination}"'
        if isinstance(event_number, TextValue):
            self.text.line(f"pto.{what}_dyn[{pipes}, {event_number.name}]")
        else:
            self.text.line(f'pto.{what}[{pipes}, "EVENT_ID{event_number}"]')

    def _transfer(self, what: str, ends: Any, *sizes: Any) -> None:
        """Put a transfer: its pointers have elements of bytes where their own widths differ."""
        elements = [element_of(end.args[0].dtype) for end in ends]
        element = elements[0] if bits_of(elements[0]) == bits_of(elements[1]) else "ui8"
        pointers = [self.moved(end, element) for end in ends][::-1]
        operands = [*pointers, *(self.as_scalar(self.number(size), "i64") for size in sizes)]
        first, rest = names(operands[:-3]), names(operands[-3:])
        self.text.line(f"pto.{what} {first} nburst({rest}) : {kinds(operands)}")

    def _transfer_in(self, args: Any) -> None:
        left, right, pads = (self.number(args[n]) for n in (5, 6, 7))
        if left != 0 or right != 0 or pads not in (0, False):
            raise refused("a copy with padding", self.text.where)
        self._transfer("mte_gm_ub", args[:2], args[8], args[4], args[3], args[9], args[10])


def _pipe(call: Any) -> str:
    return f"PIPE_{str(call.args[0].value).removeprefix('PIPE_')}"

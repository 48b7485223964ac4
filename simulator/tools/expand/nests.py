"""One loop nest of a vector function: rows, trips, and the values carried from trip to trip."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from castsim.execution.tree import Block, Node
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.value_types import AlignType, MicroOperation, Type, VectorType, vector
from castsim.machines.vector_function.function_operations import (
    Nest,
    VectorFunction,
    compute_step,
    computes,
    count_step,
    is_load,
    load_step,
    mnemonic,
    number_of,
    store_step,
    width_of,
    with_words,
)
from castsim.targets.vector_function import DESTINATION
from castsim.tools.expand.computes import Given, accumulated, constant_register, write_compute
from castsim.tools.expand.registers import (
    I32,
    FunctionEmitter,
    NamedRegisters,
    TripAddress,
    buffer_pointer,
    pointed,
    unwritten,
)
from castsim.tools.micro_builder import INDEX, Reg, Use

# Loop nests whose extents only the running program knows: which of their numbers follow which of its values, and how.
#
# The nests of an operation are lowered for many extents. A number of theirs is taken for a rule of one extent only if
# the rule gives it for all of them, and nothing else of the nests may change.

Extents = Mapping[str, int]
"""Values of extents by name."""


@dataclass(frozen=True, slots=True)
class TripCount:
    """Trip count ceil(value of `name` * times / over) - less, at least 0; a constant `less` without a name."""

    name: str | None
    times: int = 1
    over: int = 1
    less: int = 0

    def value(self, extents: Extents) -> int:
        """Return the trip count for some extents."""
        if self.name is None:
            return self.less
        return max(-(-extents[self.name] * self.times // self.over) - self.less, 0)

    def text(self, out: FunctionEmitter) -> str:
        """Write the computation of the trip count; return a value of type index."""
        if self.name is None:
            return out.index(self.less)
        trips = out.times(self.name, self.times)
        if self.over != 1:
            trips = out.arith("ceildivsi", (trips, out.index(self.over)), INDEX, "trips")
        if self.less:
            trips = out.arith("maxsi", (out.plus(trips, -self.less), out.index(0)), INDEX, "left")
        return trips


@dataclass(frozen=True, slots=True)
class NestRules:
    """The parts of a nest that depend on extents."""

    rows: TripCount
    trips: TripCount
    counters: Mapping[str, TripCount]


def samples(most: Extents) -> list[dict[str, int]]:
    """Return sample extents up to the greatest, which come last."""
    steps = {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257}
    if len(most) > 1:
        steps = {1, 2, 3, 33, 64, 65, 128, 129}
    choices = [
        sorted({extent for extent in steps if extent < bound} | {max(1, bound - 1), bound}) for bound in most.values()
    ]
    return [dict(zip(most, values, strict=True)) for values in product(*choices)]


def rules_of(most: Extents, lowered: Callable[[Extents], Block]) -> tuple[Block, tuple[NestRules, ...]]:
    """Return the lowering of an operation at its greatest extents, and the rules by which its nests depend on them.

    Raises:
        IllegalError: the nests do not depend on the extents in this way.
    """
    lowerings = [(extents, lowered(extents)) for extents in samples(most)]
    last = lowerings[-1][1]
    functions = [(extents, _function(block, last)) for extents, block in lowerings]
    pattern = functions[-1][1]
    for _, function in functions:
        if len(function.nests) != len(pattern.nests) or _fixed(function) != _fixed(pattern):
            raise _unsteady(most)
    rules = []
    for number, nest in enumerate(pattern.nests):
        seen = [(extents, function.nests[number]) for extents, function in functions]
        divisors = (nest.elements, 1, 2, pattern.register_bytes)
        pitches = (1, 2, 4, max(1, nest.destination_row))
        rules.append(
            NestRules(
                _rule([(extents, function_nest.rows) for extents, function_nest in seen], divisors, pitches),
                _rule(
                    [(extents, function_nest.trips) for extents, function_nest in seen],
                    divisors,
                    (*pitches, *_row_bytes(pattern)),
                ),
                {
                    name: _rule(
                        [(extents, function_nest.counters[name]) for extents, function_nest in seen], divisors, pitches
                    )
                    for name in nest.counters
                },
            )
        )
    return last, tuple(rules)


def _row_bytes(function: VectorFunction) -> list[int]:
    return sorted({nest.destination_row for nest in function.nests if nest.destination_row})


def _function(block: Block, pattern: Block) -> VectorFunction:
    """Return the single vector function of a lowered operation, which must otherwise equal the pattern."""
    items, others = _plain(block), _plain(pattern)
    functions = [item for item in items if isinstance(item, VectorFunction)]
    rest = [item for item in items if not isinstance(item, VectorFunction)]
    if len(functions) != 1 or rest != [item for item in others if not isinstance(item, VectorFunction)]:
        raise IllegalError("the loops of its vector function do not match its extents")
    return functions[0]


def _plain(block: Block) -> list[Node]:
    return [item for item in block.items if isinstance(item, Node)]


def _fixed(function: VectorFunction) -> tuple[object, ...]:
    """Return the parts of a function that must not depend on extents."""

    def fixed(nest: Nest) -> Nest:
        return replace(nest, rows=1, trips=1, count=1, counters=dict.fromkeys(nest.counters, 0))

    return (*function.addresses, function.setup, *map(fixed, function.nests))


def _rule(seen: Sequence[tuple[Extents, int]], divisors: Sequence[int], factors: Sequence[int]) -> TripCount:
    """Return the first rule that gives every number that was seen."""
    extents, last = seen[-1]
    if all(value == last for _, value in seen):
        return TripCount(None, less=last)
    for name, over, times in product(extents, divisors, factors):
        plain = TripCount(name, times, over)
        less = plain.value(extents) - last
        rule = replace(plain, less=less)
        if less >= 0 and all(rule.value(sample_value) == value for sample_value, value in seen):
            return rule
    raise _unsteady(extents)


def named(extents: Extents) -> str:
    """Return the names of extents as a list for errors."""
    return " and ".join(f"%{name}" for name in extents)


def _unsteady(extents: Extents) -> IllegalError:
    why = f"its loops depend on {named(extents)} in a way that expand cannot write"
    return IllegalError(why, legal=("--arg NAME=VALUE",))


# The loop nests of a function as they are written: what differs from the nests that are timed.
#
# Source: docs/reference/micro.md section 7.

WIDE = 64
"""Bit width of elements that are moved as two words."""

MASK_ELEMENT = "u8"
"""The element of pointers to predicates in memory."""


def written(nest: Nest, given: Given | None) -> tuple[Nest, ...]:
    """Return a nest in the form for writing."""
    if given is None:
        return (nest,)
    if given.structure == "compare":
        keeps = ("spare_mask_bits", "keep") in given.behaviour.choices
        return _comparisons(nest, given.format.storage_bits, keeps=keeps)
    if given.structure == "row_expansion":  # a block is not its first element again and again
        return (replace(nest, row=tuple(_spread(item, given.format.storage_bits) for item in nest.row)),)
    if given.operation.accumulates:
        return (_with_destination(nest),)
    if given.format.storage_bits == WIDE:
        return (_in_words(nest),)
    return (nest,)


def _spread(item: MicroOperation, width: int) -> MicroOperation:
    return with_words(item, dist=f"BRC_B{width}") if is_load(item) else item


def _with_destination(nest: Nest) -> Nest:
    """Add a load of the destination, for an instruction that adds to it."""
    load = load_step(("before",), "NORM", int(DESTINATION), (nest.destination_row, nest.destination_trip))
    return replace(nest, trip=(load, *nest.trip))


def _in_words(nest: Nest) -> Nest:
    """Move elements of 64 bits as two of 32: no predicate has lanes of 64."""
    trip: list[MicroOperation] = []
    for item in nest.trip:
        if mnemonic(item) == "plt":
            trip.append(count_step(item.results[0], 32, 2 * number_of(item, "take"), item.operands[0]))
        elif item.mnemonic == "vsts":
            trip.append(with_words(item, dist="NORM_B32"))
        else:
            trip.append(item)
    return replace(nest, trip=tuple(trip), counters={name: 2 * start for name, start in nest.counters.items()})


def _comparisons(nest: Nest, width: int, *, keeps: bool) -> tuple[Nest, ...]:
    """Return a comparison with possible stores of predicates: of 16 bytes or 32.

    The part of a row beyond them comes first, preserving the existing bits, then all full ones.
    """
    per_step = 256 if width == 8 else 128
    full, rest = nest.count // per_step * per_step, nest.count % per_step
    return (
        *([_comparison(nest, width, full, rest, keeps=keeps)] if rest else []),
        *([_comparison(nest, width, 0, full, keeps=keeps)] if full else []),
    )


def _comparison(nest: Nest, width: int, first: int, count: int, *, keeps: bool) -> Nest:
    """Return the comparison of some columns. 32-bit lanes go two registers a trip, unless there are fewer."""
    counter = next(iter(nest.counters))
    counters = {counter: count}
    per_step = 256 if width == 8 else 128
    registers = 2 if width == 32 and count > nest.elements else 1
    trip, mask = _compared(nest, width, first, registers, counter)
    bits = min(16, width)
    if first or count < per_step:
        old = load_step(("old",), f"MASK_B{bits}", int(DESTINATION), (nest.destination_row, per_step // 8))
        old = with_words(old, offset=first // 8)
        counters["bits"] = count if keeps else -(-count // 8) * 8
        chosen = compute_step("psel", ("kept",), (mask, "old", "taken"), bits)
        trip, mask = [old, *trip, count_step("taken", bits, per_step, "bits"), chosen], "kept"
    store = store_step(mask, "p", f"MASK_B{bits}", first // 8)
    return replace(
        nest, trips=-(-count // per_step), count=count, elements=per_step, counters=counters, trip=(*trip, store),
        destination_trip=per_step // 8,
    )  # fmt: skip


def _compared(nest: Nest, width: int, first: int, registers: int, counter: str) -> tuple[list[MicroOperation], str]:
    """Return the instructions up to a predicate of lanes of 8 or 16 bits, and its name."""
    trip: list[MicroOperation] = []
    loads = [item for item in nest.trip if is_load(item)]
    (compare,) = (item for item in nest.trip if computes(item))
    for number in range(registers):
        for load in loads:
            step = number_of(load, "trip", nest.source_trip)
            tile_load = replace(load, results=tuple(f"{name}{number}" for name in load.results))
            tile_load = with_words(tile_load, row=number_of(load, "row", nest.source_row), trip=registers * step)
            trip.append(with_words(tile_load, offset=first * width // 8 + number * step))
    for number in range(registers):
        sources = tuple(f"{name}{number}" for name in compare.operands)
        trip.append(count_step(f"p{number}", width, nest.elements, counter))
        trip.append(replace(compare, results=(f"q{number}",), operands=sources))
    if width < 32:
        return trip, "q0"
    names = tuple(f"q{number}" for number in range(registers))
    trip.append(compute_step("pdintlv" if registers > 1 else "ppack", ("q",), names, width))
    return trip, "q"


def needs_barrier(given: Given | None) -> bool:
    """Return whether any nest of an operation loads bytes that the previous one has stored."""
    return given is not None and (given.structure == "part" or given.work.binary)


def element_of(function: VectorFunction, nest: Nest, item: MicroOperation) -> str:
    """Return the element type of an access's pointer."""
    if (item.word("dist") or "").startswith("MASK"):
        return MASK_ELEMENT
    of_source = item.operands[0] != DESTINATION if is_load(item) else nest.writes is not None
    return (function.source_format if of_source else function.destination_format).name


def pointer_number(nest: Nest, item: MicroOperation) -> int:
    """Return the index of an access's address in the function."""
    if is_load(item):
        return 1 + int(item.operands[0])
    return 0 if nest.writes is None else 1 + nest.writes


@dataclass(frozen=True, slots=True)
class _Side:
    """A pointer of the function and how far it moves, in its elements: from row to row, and from trip to trip."""

    pointer: str
    element: str
    size: int
    row: int
    trip: int


@dataclass(frozen=True, slots=True)
class _Carried:
    """A value carried from trip to trip: its type, its initial value, and its name inside."""

    key: str
    kind: Type
    start: str
    name: str


def accesses(nest: Nest) -> list[MicroOperation]:
    """Return the loads and stores of a nest."""
    return [item for item in (*nest.row, *nest.trip, *nest.close) if is_access(item)]


def is_access(item: MicroOperation) -> bool:
    """Return whether an instruction loads or stores."""
    return is_load(item) or item.mnemonic == "vsts"


@dataclass(slots=True)
class NestWriter:
    """Writer of one loop nest."""

    out: FunctionEmitter
    function: VectorFunction
    nest: Nest
    given: Given | None
    pointers: dict[tuple[int, str], str]
    rules: NestRules | None = None
    row: str = ""
    """The variable of the row loop."""
    trips: str = ""
    """The trip count of the inner loop, if extents decide it."""
    sides: dict[MicroOperation, _Side] = field(default_factory=dict)

    def write(self, outer: NamedRegisters) -> None:
        """Write the nest; registers of its row are visible in its trips."""
        nest = self.nest
        self._constants(outer)
        for item in accesses(nest):
            self.sides[item] = self._side(item)
        rows, counters = self._bounds()
        inside = outer.inner()
        inside.scalars.update(counters)
        if not nest.row_loop:
            self._row(inside)
            return
        self.row = self.out.fresh("row")
        zero, unit = self.out.index(0), self.out.index(1)
        with self.out.region() as body:
            self._row(inside)
        self.out.add(pto.For(self.row, zero, rows, unit, body.flat()))

    def _row(self, inside: NamedRegisters) -> None:
        """Write the operations of a row."""
        for operation in self.nest.row:
            self._step(operation, inside)
        if self.given is not None and self.given.structure == "fill" and self.nest.close:
            self._unaligned(inside)
        else:
            self._trips(inside)
            self._close(inside)

    def _bounds(self) -> tuple[str, dict[str, str]]:
        """Return the number of rows, and the initial value of each counter."""
        nest, out, rules = self.nest, self.out, self.rules
        used = [name for name in nest.counters if any(_takes(item, name) for item in (*nest.row, *nest.trip))]
        if rules is None:
            starts = {name: out.constant(nest.counters[name], I32) for name in used}
            return (out.index(nest.rows) if nest.row_loop else ""), starts
        starts = {}
        for name in used:
            rule = rules.counters[name]
            if rule.name is None:
                starts[name] = out.constant(rule.less, I32)
            else:
                starts[name] = out.converted("index_cast", rule.text(out), INDEX, I32)
        self.trips = rules.trips.text(out)
        return rules.rows.text(out), starts

    def _end(self, step: int) -> str:
        """Return where the variable of the inner loop ends."""
        if self.rules is None or self.rules.trips.name is None:
            return self.out.index(self.nest.trips * step)
        return self.out.times(self.trips, step)

    def _last(self, step: int) -> str:
        """Return the value of the variable in the last trip."""
        if self.rules is None or self.rules.trips.name is None:
            return self.out.index((self.nest.trips - 1) * step)
        return self.out.plus(self._end(step), -step)

    def _side(self, item: MicroOperation) -> _Side:
        """Return the operand of an access."""
        nest = self.nest
        if is_load(item):
            row, trip = number_of(item, "row", nest.source_row), number_of(item, "trip", nest.source_trip)
        else:
            row, trip = nest.destination_row, nest.destination_trip
        element = element_of(self.function, nest, item)
        size = pointed(format_named(element))
        pointer = self.pointers[pointer_number(nest, item), element]
        return _Side(pointer, element, size, row // size, trip // size)

    def _constants(self, outer: NamedRegisters) -> None:
        """Make the constants of the operation ahead of all loops."""
        given = self.given
        if given is not None and given.structure == "fill":
            outer.registers["pad"] = outer.registers[
                constant_register(outer, "pad", given.pad, self.function.destination_format)
            ]

    # ---------------------------------------------------------------------------------------------------- inner loop

    def _trips(self, outer: NamedRegisters) -> None:
        """Write the inner loop. Its variable counts elements of the destination, if all sides move alike, or trips."""
        out, nest = self.out, self.nest
        moving = {side.trip for item, side in self.sides.items() if item in nest.trip}
        step = moving.pop() if len(moving) == 1 and moving != {0} else 1
        variable = out.fresh("i")
        carried, first = self._carried(outer)
        start, end, by = out.index(first * step), self._end(step), out.index(step)
        inside = outer.inner()
        results = tuple(out.fresh("end") for _ in carried)
        names, kinds = (
            tuple(carried_value.name for carried_value in carried),
            tuple(carried_value.kind for carried_value in carried),
        )
        with out.region() as body:
            for carried_value in carried:
                if carried_value.key in nest.counters:
                    inside.scalars[carried_value.key] = carried_value.name
                elif isinstance(carried_value.kind, VectorType):
                    inside.registers[carried_value.key] = Reg(
                        carried_value.name, carried_value.kind.element, out.place()
                    )
            self._body(inside, {loop_value.key: loop_value.name for loop_value in carried}, variable, step)
            if carried:
                values = (
                    inside.scalars.get(loop_value.key) or self._handed_on(inside, loop_value) for loop_value in carried
                )
                out.add(pto.Yield(tuple(values), kinds))
        initial = tuple(loop_value.start for loop_value in carried)
        home = out.add(pto.For(variable, start, end, by, body.flat(), names, initial, results, kinds))
        for carried_value, result in zip(carried, results, strict=True):
            if isinstance(carried_value.kind, VectorType):
                outer.registers[carried_value.key] = Reg(result, carried_value.kind.element, home)

    def _body(self, inside: NamedRegisters, carried: dict[str, str], variable: str, step: int) -> None:
        """Write the operations of a trip."""
        out, nest = self.out, self.nest
        if any(operation.mnemonic == "select" for operation in nest.trip):
            last = self._last(step)
            inside.last = out.compared("eq", variable, last, "last")
        if self.given is not None and self.given.structure == "ramp":
            inside.position = out.total(0, [(variable, nest.elements // step)])
        for operation in nest.trip:
            if is_access(operation):
                side, offset = self.sides[operation], number_of(operation, "offset")
                address = self._place(side, variable, step, offset, carried.get(_moved(operation)))
                if is_load(operation):
                    inside.scalars[_moved(operation)] = inside.load(operation, address)
                else:
                    inside.store(operation, address)
            else:
                self._step(operation, inside)

    def _handed_on(self, inside: NamedRegisters, carried_value: _Carried) -> str:
        element = inside.registers[carried_value.key].element
        if vector(element) != carried_value.kind:
            raise unwritten(f"a register {carried_value.key} of lanes that change from trip to trip")
        return inside.registers[carried_value.key].name

    def _carried(self, outer: NamedRegisters) -> tuple[list[_Carried], int]:
        """Return the carried values, and the first trip: the second one if accumulations start from the first."""
        nest, out, first = self.nest, self.out, 0
        carried_values = [
            _Carried(name, I32, outer.scalars[name], out.fresh(name))
            for name in nest.counters
            if any(mnemonic(item) == "plt" and name in item.operands for item in nest.trip)
        ]
        for item in nest.trip:
            if computes(item) and item.results[0] in item.operands:
                first |= self._begin(item, outer)
                register = outer.registers[item.results[0]]
                carried_values.append(
                    _Carried(item.results[0], vector(register.element), register.name, out.fresh(item.results[0]))
                )
            elif is_load(item) and nest.post_update:
                side = self.sides[item]
                start = side.pointer
                if self.row and side.row:
                    by = out.times(self.row, side.row)
                    start = out.moved(start, by, buffer_pointer(side.element), "from")
                carried_values.append(_Carried(_moved(item), buffer_pointer(side.element), start, out.fresh("at")))
        return carried_values, first

    def _begin(self, item: MicroOperation, outer: NamedRegisters) -> int:
        """Define the register in which an accumulation starts; return the number of trips that it represents."""
        given, (result,) = self.given, item.results
        assert given is not None
        width = width_of(item)
        if given.operation.function == "add" and width == 16 and self._widens(given):
            width = 32
        key = accumulated(outer, given, result, width)
        if key is not None:
            outer.registers[result] = outer.registers[key]
            return 0
        (load,) = (operation for operation in self.nest.trip if is_load(operation))
        outer.load(replace(load, results=(result,)), self._place(self.sides[load], "", 1, 0, None))
        return 1

    def _widens(self, given: Given) -> bool:
        """Return whether sums have twice the bits of the elements: those of 16-bit integers along a row."""
        return given.structure == "row_reduction" and given.format.name in ("i16", "u16")

    # ----------------------------------------------------------------------------------------------------- its rows

    def _step(self, operation: MicroOperation, registers: NamedRegisters) -> None:
        if is_load(operation):
            registers.load(operation, self._place(self.sides[operation], "", 1, 0, None))
        elif computes(operation) and self.given is not None:
            write_compute(registers, self.given, operation)
        else:
            registers.step(operation)

    def _close(self, inside: NamedRegisters) -> None:
        """Write the statements after the trips of a row."""
        if not self.nest.close:
            return
        inside.governing = ""
        if self.given is not None and self.given.structure == "column_reduction":
            self._count_columns(inside)
        for operation in self.nest.close:
            if operation.mnemonic == "vsts":
                inside.store(operation, self._place(self.sides[operation], "", 1, number_of(operation, "offset"), None))
            else:
                self._step(operation, inside)

    def _count_columns(self, inside: NamedRegisters) -> None:
        """Make the predicate of the columns that a row of registers has."""
        assert self.given is not None
        columns, width = self.given.work.sources[0].valid_cols, self.given.format.storage_bits
        left = self.out.constant(columns, I32)
        if self.row:
            done = self.out.converted("index_cast", self.out.times(self.row, 2048 // width), INDEX, I32)
            left = self.out.arith("subi", (left, done), I32, "left")
        inside.scalars["columns"] = left
        inside.step(count_step("p", width, 2048 // width, "columns"))

    def _unaligned(self, inside: NamedRegisters) -> None:
        """Write consecutive stores of a constant from any byte on, and the flush after them."""
        out, nest = self.out, self.nest
        (store,) = (item for item in nest.trip if item.mnemonic == "vsts")
        side = self.sides[store]
        pointer, align, element = side.pointer, AlignType(), buffer_pointer(side.element)
        if self.row:
            pointer = out.moved(pointer, out.times(self.row, side.row), element, "from")
        (empty,), _ = out.micro("init_align", (), [("state", align)])
        state, left, variable = out.fresh("state"), out.fresh("n"), out.fresh("i")
        results = out.fresh("end"), out.fresh("end")
        (count,) = nest.counters.values()
        bounds = out.index(0), out.index(nest.trips), out.index(1)
        initial = empty, out.constant(count, I32)
        with out.region() as body:
            some = out.arith("minsi", (left, out.constant(nest.elements, I32)), I32, "some")
            uses: list[Use] = [
                (state, align),
                (some, I32),
                inside.use(store.operands[0], side.element),
                (pointer, element),
            ]
            (further,), _ = out.micro("vstus", uses, [("state", align)])
            after = out.arith("subi", (left, some), I32)
            out.add(pto.Yield((further, after), (align, I32)))
        out.add(pto.For(variable, *bounds, body.flat(), (state, left), initial, results, (align, I32)))
        out.micro("vstas", [(results[0], align), (pointer, element), out.scalar(0, I32)])

    def _place(self, side: _Side, variable: str, step: int, offset: int, moved: str | None) -> TripAddress:
        """Return where an access of a trip, or of a row without a variable, is."""
        if moved is not None:
            return TripAddress(moved, side.element, self.out.index(side.trip), moves=True)
        terms = [(self.row, side.row)] if self.row else []
        if variable:
            terms.append((variable, side.trip // step))
        return TripAddress(side.pointer, side.element, self.out.total(offset // side.size, terms))


def _moved(item: MicroOperation) -> str:
    """Return the key under which the pointer of a load is carried."""
    return f"pointer {item.results[0]}" if is_load(item) else ""


def _takes(item: MicroOperation, counter: str) -> bool:
    return mnemonic(item) in ("plt", "select") and counter in item.operands

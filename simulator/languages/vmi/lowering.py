"""Conversion of functions with logical registers to equivalent functions of vector instructions.

Source: docs/reference/micro.md section 9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from castsim.isa.dataclass import dataclass, field, fields, replace
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, IntFormat
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import SCOPES
from castsim.isa.pto.micro_words import CONVERSIONS, plain_word
from castsim.isa.pto.program import REGION_FIELDS
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import (
    BLOCK_BITS,
    REGISTER_BITS,
    DialectOperation,
    MaskType,
    MicroOperation,
    PointerType,
    ScalarType,
    Type,
    vector,
)
from castsim.languages.vmi.conversions import ConversionRoute, How, RouteStep
from castsim.languages.vmi.facts import WIDEST, FunctionFacts
from castsim.languages.vmi.logical_registers import (
    Address,
    Logical,
    LogicalAccesses,
    LogicalMask,
    LogicalRegister,
    pairs_of,
    per_register,
    physical,
    register_count,
    signed,
)
from castsim.languages.vmi.operations import (
    LEGACY,
    LogicalMaskType,
    LogicalVectorType,
    conversion_formats,
    conversion_words,
    group_of,
    leading_lanes,
    logical_operations,
    route_of,
)
from castsim.tools.micro_builder import OperationRun, Pred, Reg, Use

_BLOCKS = REGISTER_BITS // BLOCK_BITS
_COMBINE = {"vcadd": "vadd", "vcmax": "vmax", "vcmin": "vmin"}
_OF_BLOCKS = {"vcadd": "vcgadd", "vcmax": "vcgmax", "vcmin": "vcgmin"}
_LOGIC = ("pand", "por", "pxor", "pnot")
_PURE = frozenset(("vbitcast", "pbitcast", "vbr", "vci", "vshrs", "pset_b8", "pset_b16", "pset_b32"))
"""Instructions that are created before it is known whether they are used."""


def lower_function(function: pto.Function) -> pto.Function:
    """Return the function with vector instructions for every operation on logical registers; itself if it has none.

    Raises:
        IllegalError: an operation has no instructions; the error has its position.
    """
    body = function.body or ()
    if next(logical_operations(body), None) is None:
        return function
    facts = FunctionFacts()
    facts.see(body)
    lowering = VmiLowering(
        {*(argument.name for argument in function.arguments), *_names(body)}, facts.known, facts=facts
    )
    whole = lowering.region(body)
    return replace(function, body=_without_unused((*lowering.head.flat(), *whole)))


def _names(body: Sequence[pto.Operation]) -> Iterator[str]:
    """Yield every text in the nodes of a region: among them all names of values."""
    for node in body:
        for entry_field in fields(node):
            entry = getattr(node, entry_field.name)
            if isinstance(entry, str):
                yield entry
            elif isinstance(entry, tuple) and entry and isinstance(entry[0], str):
                yield from entry
            elif isinstance(entry, tuple) and entry and entry_field.name in REGION_FIELDS:
                yield from _names(entry)


def _without_unused(body: tuple[pto.Operation, ...]) -> tuple[pto.Operation, ...]:
    """Return a function's body without instructions that only compute unused results."""
    while True:
        smaller = _kept(body, Counter(_used(body)))
        if smaller == body:
            return body
        body = smaller


def _kept(body: Sequence[pto.Operation], used: Counter[str]) -> tuple[pto.Operation, ...]:
    kept: list[pto.Operation] = []
    for node in body:
        match node:
            case MicroOperation() if node.mnemonic in _PURE and not any(used[name] for name in node.results):
                continue
            case pto.For() | pto.Section():
                kept.append(replace(node, body=_kept(node.body, used)))
            case pto.If():
                then_body, else_body = (_kept(region, used) for region in (node.then_body, node.else_body))
                kept.append(replace(node, then_body=then_body, else_body=else_body))
            case _:
                kept.append(node)
    return tuple(kept)


def _used(body: Sequence[pto.Operation]) -> Iterator[str]:
    """Yield the names of values that vector instructions, loops and conditions use."""
    for node in body:
        match node:
            case MicroOperation():
                yield from node.operands
            case pto.Yield():
                yield from node.values
            case pto.For() | pto.Section():
                yield from node.initial
                yield from _used(node.body)
            case pto.If():
                yield from _used(node.then_body)
                yield from _used(node.else_body)


@dataclass(slots=True)
class _Given:
    """The operands of an operation by kind."""

    vectors: list[LogicalRegister] = field(default_factory=list)
    masks: list[LogicalMask] = field(default_factory=list)
    scalars: list[Use] = field(default_factory=list)
    pointer: tuple[str, PointerType] | None = None

    @property
    def mask(self) -> LogicalMask | None:
        """The mask, if there is one."""
        return self.masks[-1] if self.masks else None


@dataclass(slots=True)
class VmiLowering(LogicalAccesses):
    """A walk through the regions of a function that replaces every operation on logical registers."""

    facts: FunctionFacts = field(default_factory=FunctionFacts)
    values: dict[str, Logical] = field(default_factory=dict)

    def region(
        self, body: Sequence[pto.Operation], owner: pto.Operation | None = None, role: str = ""
    ) -> tuple[pto.Operation, ...]:
        """Return a region whose yielded values have the containers of the owner's results."""
        run = OperationRun()
        with self.at(run):
            for node in body:
                self.span = node.span
                try:
                    self._step(node, owner, role)
                except CastsimError as error:
                    raise error.at(node.span) from None
        return run.flat()

    def _step(self, node: pto.Operation, owner: pto.Operation | None, role: str) -> None:
        match node:
            case DialectOperation():
                result = self._operation(node)
                if result is not None:
                    self.values[node.results[0]] = result
            case pto.Section():
                self._section(node)
            case pto.For():
                self._loop(node)
            case pto.If():
                self._branch(node)
            case pto.While() if next(logical_operations((node,)), None) is not None:
                raise IllegalError("logical registers in scf.while are not modelled", legal=("scf.for",))
            case pto.Yield() if owner is not None:
                names, kinds = self._flat(owner, role, node.values, node.types)
                self.add(replace(node, values=names, types=kinds))
            case _:
                self.add(node)

    def _section(self, node: pto.Section) -> None:
        if node.kind not in SCOPES:
            self.add(replace(node, body=self.region(node.body)))
            return
        self.begin_scope()
        if node.kind == "strict_vecscope":
            with self.isolated():
                body = self.region(node.body)
                body = (*self.head.flat(), *self.scope.flat(), *body)
        else:
            body = self.region(node.body)
            body = (*self.scope.flat(), *body)
        self.add(replace(node, body=body))

    def _loop(self, node: pto.For) -> None:
        initial, kinds = self._flat(node, "carried", node.initial, node.result_types)
        carried, home = self._fresh(node, "carried", node.carried), OperationRun()
        self._bind(node, "carried", node.carried, carried, home)
        body = self.region(node.body, node, "carried")
        results = self._fresh(node, "carried", node.results)
        inside = replace(node, body=(*home.flat(), *body), carried=_joined(carried), initial=initial)
        self.add(replace(inside, results=_joined(results), result_types=kinds))
        self._bind(node, "carried", node.results, results, self.place())

    def _branch(self, node: pto.If) -> None:
        then_body, else_body = (self.region(body, node, "result") for body in (node.then_body, node.else_body))
        results = self._fresh(node, "result", node.results)
        kinds = tuple(
            kind_text
            for number, kind in enumerate(node.result_types)
            for kind_text in self._kinds(node, "result", number, kind)
        )
        self.add(replace(node, then_body=then_body, else_body=else_body, results=_joined(results), result_types=kinds))
        self._bind(node, "result", node.results, results, self.place())

    # ---------------------------------------------------------------------------------- values that cross regions

    def _kinds(self, node: pto.Operation, role: str, number: int, kind: Type) -> tuple[Type, ...]:
        """Return the types of the registers or masks that a value becomes, its own if it is neither."""
        container = self.facts.container(node, role, number)
        if isinstance(kind, LogicalVectorType):
            return (vector(physical(kind.element)),) * register_count(kind.lanes, container)
        if isinstance(kind, LogicalMaskType):
            return (MaskType(min(32, container)),) * register_count(kind.lanes, container)
        return (kind,)

    def _flat(
        self, node: pto.Operation, role: str, names: Sequence[str], kinds: Sequence[Type]
    ) -> tuple[tuple[str, ...], tuple[Type, ...]]:
        """Return values as registers, in the containers of their destinations."""
        flat: list[str] = []
        types: list[Type] = []
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            container, value = self.facts.container(node, role, number), self.values.get(name)
            types += self._kinds(node, role, number, kind)
            if isinstance(kind, LogicalVectorType) and isinstance(value, LogicalRegister):
                regs = self.within(value, container).regs
                flat += (self.as_element(reg, physical(kind.element)).name for reg in regs)
            elif isinstance(kind, LogicalMaskType) and isinstance(value, LogicalMask):
                flat += (self.as_bits(pred, min(32, container)).name for pred in value.at(container))
            else:
                flat.append(name)
        return tuple(flat), tuple(types)

    def _fresh(self, node: pto.For | pto.If, role: str, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the names of the new values."""
        parts = []
        for number, (name, kind) in enumerate(zip(names, node.result_types, strict=True)):
            logical = isinstance(kind, LogicalVectorType | LogicalMaskType)
            count = len(self._kinds(node, role, number, kind))
            parts.append(tuple(self.fresh("v") for _ in range(count)) if logical else (name,))
        return parts

    def _bind(
        self, node: pto.For | pto.If, role: str, names: Sequence[str], flat: list[tuple[str, ...]], home: OperationRun
    ) -> None:  # fmt: skip
        for number, (name, kind, parts) in enumerate(zip(names, node.result_types, flat, strict=True)):
            container = self.facts.container(node, role, number)
            if isinstance(kind, LogicalVectorType):
                regs = tuple(Reg(part, physical(kind.element), home) for part in parts)
                self.values[name] = LogicalRegister(kind.lanes, kind.element, container, regs, home)
            elif isinstance(kind, LogicalMaskType):
                preds = tuple(Pred(part, min(32, container), home) for part in parts)
                with self.at(home):
                    self.values[name] = self.given_mask(kind.lanes, container, preds)

    # -------------------------------------------------------------------------------------------------- operations

    def _operation(self, node: DialectOperation) -> Logical | None:
        """Create the instructions of one operation; return its result.

        Raises:
            IllegalError: it has no instructions.
        """
        given, container, name = self._sorted(node), self.facts.container(node), node.mnemonic
        kind = node.result_types[0] if node.result_types else None
        if name == "vstore":
            self._store_value(node, given, self._place(node, given))
            return None
        if isinstance(kind, LogicalMaskType):
            return self._made_mask(node, given, kind.lanes, container)
        assert isinstance(kind, LogicalVectorType)
        if name == "vload":
            value = self._load(node, given, kind, container)
            return value if given.mask is None else self._zeroed(value, given.mask)
        if name == "vgather":
            return self._gather(given, kind, self._place(node, given), container)
        if name == "vcvt" or name in LEGACY:
            return self._conversion(node, kind, given.vectors[0], given.mask, container)
        if name == "vinterpret_cast":
            return self._reinterpretation(given.vectors[0], kind, container)
        if name == "vsel":
            return self._selection(node, given.vectors, given.masks[0], container)
        if name == "vci":
            return self._numbered(kind, given.scalars[0], node.word("order") or "ASC", container)
        if name == "vbrc":
            if given.scalars:
                return self._same_scalar(kind, given.scalars[0], container)
            return self._spread_slots(given.vectors[0], kind, container)
        if name in _COMBINE:
            return self._reduction(name, given.vectors[0], given.mask, group_of(node), container)
        return self._arithmetic(node, given, container)

    def _sorted(self, node: DialectOperation) -> _Given:
        given = _Given()
        for name, kind in zip(node.operands, node.operand_types, strict=True):
            value = self.values.get(name)
            match kind:
                case ScalarType():
                    given.scalars.append((name, kind))
                case PointerType():
                    given.pointer = name, kind
                case _ if isinstance(value, LogicalRegister):
                    given.vectors.append(value)
                case _ if isinstance(value, LogicalMask):
                    given.masks.append(value)
        return given

    def _made_mask(self, node: DialectOperation, given: _Given, lanes: int, container: int) -> LogicalMask:
        name, bits = node.mnemonic, min(32, container)
        if name == "pset":
            return self.counting(lanes, "", leading_lanes(node, lanes))
        if name in ("create_mask", "create_group_mask"):
            number = self.known.get(node.operands[0])
            count = node.operands[0] if number is not None else self.as_index(given.scalars[0])
            if name == "create_mask":
                return self.counting(lanes, count, number)
            groups, size = node.count("num_groups"), node.count("group_size")
            assert groups is not None and size is not None
            return self.group_mask(groups, size, count, number)
        if name not in _LOGIC:
            return self._comparison(node, given, container)
        own = 1 if name == "pnot" else 2
        governing, preds = given.masks[own:], []
        for number, governor in enumerate(self.active(governing[0] if governing else None, lanes, container)):
            uses = [self.as_bits(mask.at(container)[number], bits).use for mask in given.masks[:own]]
            preds.append(self.predicate(name, [*uses, self.as_bits(governor, bits).use], bits))
        return self.given_mask(lanes, container, tuple(preds))

    # ------------------------------------------------------------------------------------------------------ memory

    def _place(self, node: DialectOperation, given: _Given) -> Address:
        assert given.pointer is not None
        pointer, kind = given.pointer
        offset = self.as_index(given.scalars[0]) if given.scalars else self.index(0)
        vectors = [
            vector_type
            for vector_type in (*node.operand_types, *node.result_types)
            if isinstance(vector_type, LogicalVectorType)
        ]
        near, far = lane_bits(vectors[-1].element), lane_bits(kind.element)
        narrows = node.mnemonic == "vstore" and far < near and kind.element[0] in "iu"
        width = far if narrows or node.word("dist_mode") == "unpack" else near
        return Address(self, pointer, kind, offset, width, self.facts.accesses[id(node)])

    def _stride(self, node: DialectOperation, given: _Given, contiguous: int) -> tuple[str, int]:
        """Return the stride of rows as an index, and its divisor; rows without a stride are contiguous."""
        if len(given.scalars) < 2:
            return self.index(contiguous), contiguous
        return self.as_index(given.scalars[1]), self.facts.strides[id(node)]

    def _load(self, node: DialectOperation, given: _Given, kind: LogicalVectorType, container: int) -> LogicalRegister:
        address, groups, single = self._place(node, given), node.count("group"), node.word("dist_mode") == "brc"
        if groups is None and len(given.scalars) > 1:
            return self.load_blocks(kind, address, given.scalars[1], container)
        if groups is None:
            return self.load_one(kind, address, container) if single else self.load_row(kind, address, container)
        stride, divisor = self._stride(node, given, (1 if single else kind.lanes // groups) * address.unit)
        if not single:
            return self.load_rows(kind, address, groups, stride, divisor, container)
        if self.known.get(stride) == address.unit and address.width == lane_bits(kind.element):
            slots = self.load_row(LogicalVectorType(groups, kind.element), address, min(32, container))
            return self._spread_slots(slots, kind, container)
        return self.load_slots(kind, address, groups, stride, divisor, container)

    def _gather(self, given: _Given, kind: LogicalVectorType, address: Address, container: int) -> LogicalRegister:
        """Make a gather in lanes that hold both an index and an element."""
        (index,) = given.vectors
        bits = max(16, index.width, address.width)
        index, regs = self.within(index, bits), []
        for reg in index.regs:
            own = self.as_element(reg, f"u{index.width}")
            if index.width < bits:
                own = self.register("vcvt", [own.use, self.whole(16).use], "u32", part="EVEN")
            regs.append(own)
        preds = [self.as_bits(pred, bits).use for pred in self.active(given.mask, kind.lanes, bits)]
        return self.gathered(kind, address.moved(), regs[: register_count(kind.lanes, bits)], preds, bits, container)

    def _store_value(self, node: DialectOperation, given: _Given, address: Address) -> None:
        (value,), groups = given.vectors, node.count("group")
        if address.width < value.width:  # whose low bits are stored
            value = LogicalRegister(value.lanes, f"u{address.width}", value.container, value.regs, value.home)
        if groups is not None:
            stride, divisor = self._stride(node, given, value.lanes // groups * address.unit)
            self.store_rows(value, address, groups, stride, divisor, given.mask)
        elif len(given.scalars) < 2:
            self.store_row(value, address, given.mask)
        elif given.mask is None:
            self.store_blocks(value, address, given.scalars[1])
        else:
            lanes = BLOCK_BITS // value.width
            stride = self.times(self.as_index(given.scalars[1]), lanes * address.unit)
            self.store_rows(value, address, value.lanes // lanes, stride, lanes * address.unit, given.mask)

    # ------------------------------------------------------------------------------------------------ lane by lane

    def _arithmetic(self, node: DialectOperation, given: _Given, container: int) -> LogicalRegister:
        """Make arithmetic of registers, and of registers with a scalar."""
        first, letter = given.vectors[0], node.word("rounding")
        _check_width(node, first)
        sources = [self.within(source, container) for source in given.vectors]
        kinds, bits = [physical(source.element) for source in sources], min(32, first.width)
        if given.mask is None:
            masks = [self.whole(bits)] * register_count(first.lanes, container)
        else:
            masks = [self.as_bits(pred, bits) for pred in given.mask.at(container)]
        regs, words = [], {} if letter is None else {"rnd": letter}
        for number, mask in enumerate(masks):
            uses = [
                self.as_element(operand.regs[number], kind).use for operand, kind in zip(sources, kinds, strict=True)
            ]
            regs.append(self.register(node.mnemonic, [*uses, *given.scalars[:1], mask.use], kinds[0], **words))
        return self.made(first.lanes, first.element, container, regs)

    def _comparison(self, node: DialectOperation, given: _Given, container: int) -> LogicalMask:
        """Make `vcmp` or `vcmps`: no bit beyond the lanes."""
        word, lanes, bits = node.word("cmp_mode"), given.vectors[0].lanes, min(32, given.vectors[0].width)
        assert word is not None
        sources, preds = [self.within(source, container) for source in given.vectors], []
        for number, pred in enumerate(self.active(given.mask, lanes, container)):
            uses = [self.as_element(operand.regs[number], operand.element).use for operand in sources]
            uses += [*given.scalars[:1], self.as_bits(pred, bits).use]
            preds.append(self.predicate(node.mnemonic, uses, bits, cmp=word))
        return self.given_mask(lanes, container, tuple(preds))

    def _selection(
        self, node: DialectOperation, sources: list[LogicalRegister], mask: LogicalMask, container: int
    ) -> LogicalRegister:
        """Make `vsel`."""
        _check_width(node, sources[0])
        first, other = (self.within(source, container) for source in sources)
        parts = zip(first.regs, other.regs, mask.at(container), strict=True)
        return self.made(first.lanes, first.element, container, [self.chosen(*part, first.width) for part in parts])

    def _zeroed(self, value: LogicalRegister, mask: LogicalMask) -> LogicalRegister:
        """Return a register with 0 where the mask has no bit."""
        kind, regs = f"u{value.width}", []
        for reg, pred in zip(value.regs, mask.at(value.container), strict=True):
            use = self.as_element(reg, kind).use
            kept = self.register("vand", [use, use, self.as_bits(pred, value.width).use], kind)
            regs.append(self.as_element(kept, reg.element))
        return self.made(value.lanes, value.element, value.container, regs)

    def _same_scalar(self, kind: LogicalVectorType, scalar: Use, container: int) -> LogicalRegister:
        """Create a `vbrc` of a scalar: one register serves all lanes."""
        if lane_bits(kind.element) == WIDEST:
            raise IllegalError("no instruction copies 64 bits to all lanes", legal=("i32",))
        reg = self.register("vbr", [scalar], physical(kind.element))
        return self.made(kind.lanes, kind.element, container, [reg] * register_count(kind.lanes, container))

    def _numbered(self, kind: LogicalVectorType, scalar: Use, order: str, container: int) -> LogicalRegister:
        """Make `vci`: integers in lanes as wide as their containers, floats in lanes of their own width."""
        floats, (name, lane) = isinstance(FORMATS[kind.element], FloatFormat), scalar
        own = lane_bits(kind.element) if floats else min(32, container)
        assert isinstance(lane, ScalarType)
        verb, narrow, regs = ("add" if order == "ASC" else "sub") + ("f" if floats else "i"), lane, list[Reg]()
        if not floats:
            lane, narrow = ScalarType(f"i{own}"), ScalarType(f"i{lane.name[1:]}")
        for number in range(register_count(kind.lanes, own)):
            first = self.converted("extsi", name, narrow, lane)
            if number:
                lanes = number * per_register(own)
                first = self.arith(verb, (first, self.constant(float(lanes) if floats else lanes, lane)), lane)
            numbers = self.register("vci", [(first, lane)], lane.name, order=order)
            regs.append(self.as_element(numbers, physical(kind.element)))
        return self.as_logical(kind, own, regs, container)

    # ------------------------------------------------------------------------------------------------- conversions

    def _conversion(
        self, node: DialectOperation, kind: LogicalVectorType, source: LogicalRegister, mask: LogicalMask | None,
        container: int,
    ) -> LogicalRegister:  # fmt: skip
        """Create a conversion of one or several steps."""
        route, words = route_of(node), conversion_words(node)
        own, _ = conversion_formats(node)
        value = LogicalRegister(source.lanes, own, source.container, source.regs, source.home)
        if value.container < lane_bits(own):
            value = self.within(value, lane_bits(own))
        if mask is not None and route.steps[0].how is not How.CONVERT:
            value, mask = self._zeroed(value, mask), None
        for step in route.steps:
            value = self._converted(step, route, words, value, mask)
            mask = None
        home, element = self.place(), physical(kind.element)
        regs = tuple(self.as_element(reg, element) for reg in value.regs)
        return self.within(LogicalRegister(value.lanes, kind.element, value.container, regs, home), container)

    def _converted(
        self, step: RouteStep, route: ConversionRoute, words: Mapping[str, str], value: LogicalRegister,
        mask: LogicalMask | None,
    ) -> LogicalRegister:  # fmt: skip
        """Create one step of a conversion."""
        pairs = {step.src, step.dst} & {"e2m1", "e1m2"}
        container = max(lane_bits(step.src), lane_bits(step.dst), value.container, 32 if pairs else 0)
        value = self.within(value, container)
        regs = [self.as_element(reg, step.src) for reg in value.regs]
        if step.how is How.CONVERT:
            pair, given = CONVERSIONS[step.src, step.dst], {}
            if pair.roundings:
                given["rnd"] = route.rounding_of(step, plain_word(words.get("rounding", route.default())))
            if pair.saturations:
                given["sat"] = plain_word(words["saturate"])
            if pair.parts:
                given["part"] = pair.parts[0]
            preds = [self.whole(pair.mask_width)] * len(regs)
            if mask is not None:
                preds = [self.as_bits(pred, pair.mask_width) for pred in mask.at(container)]
            masked = zip(regs, preds, strict=True)
            regs = [self.register("vcvt", [reg.use, pred.use], step.dst, **given) for reg, pred in masked]
        else:
            if step.how is How.CLAMP and words.get("saturate") == "SAT":
                regs = [self._clamped(reg, step.src, step.dst) for reg in regs]
            regs = [self.as_element(reg, step.dst) for reg in regs]
        return self.made(value.lanes, step.dst, container, regs)

    def _clamped(self, reg: Reg, src: str, dst: str) -> Reg:
        """Bring integers into the range of others."""
        near, far = FORMATS[src], FORMATS[dst]
        assert isinstance(near, IntFormat) and isinstance(far, IntFormat)
        kind, mask = ScalarType(f"i{near.bits}"), self.whole(near.bits).use
        if near.maximum > far.maximum:
            reg = self.register("vmins", [reg.use, self.scalar(far.maximum, kind), mask], src)
        if near.minimum < far.minimum:
            reg = self.register("vmaxs", [reg.use, self.scalar(far.minimum, kind), mask], src)
        return reg

    def _reinterpretation(self, source: LogicalRegister, kind: LogicalVectorType, container: int) -> LogicalRegister:
        """Return the same bits as other elements; those of another width are contiguous."""
        width = lane_bits(kind.element)
        if source.width != width:
            source = self.within(source, source.width)
        regs = [self.as_element(reg, physical(kind.element)) for reg in source.regs]
        return self.as_logical(kind, source.container if source.width == width else width, regs, container)

    # -------------------------------------------------------------------------- reductions of groups to slots, and back

    def _reduction(
        self, name: str, source: LogicalRegister, mask: LogicalMask | None, groups: int, container: int
    ) -> LogicalRegister:
        """Make `vcadd`, `vcmax` or `vcmin` of groups."""
        source, size = self.within(source, min(32, source.container)), source.lanes // groups
        span, width = size * source.container, source.container
        preds = self.active(mask, source.lanes, source.container)
        given = None if mask is None else preds
        if span % REGISTER_BITS == 0:
            regs = self._of_registers(name, source, given, groups)
        elif span in (BLOCK_BITS, 2 * BLOCK_BITS, 4 * BLOCK_BITS):
            regs, width = self._of_blocks(name, source, preds, groups, span // BLOCK_BITS), source.width
        elif size & (size - 1) == 0:
            regs = self._of_neighbours(name, source, given, size)
        else:
            regs = self._one_by_one(name, source, preds, groups)
        return self.within(self.made(groups, source.element, width, regs), container)

    def _combined(self, name: str, first: Reg, other: Reg, bits: int) -> Reg:
        return self.register(_COMBINE[name], [first.use, other.use, self.whole(bits).use], first.element)

    def _reduced(self, instruction: str, reg: Reg, pred: Pred, bits: int) -> Reg:
        return self.register(instruction, [reg.use, self.as_bits(pred, bits).use], reg.element)

    def _halves(self, name: str, halves: Sequence[Reg], source: LogicalRegister) -> Reg:
        """Combine the even lanes of two registers with the odd ones."""
        low, high = (self.as_element(half, source.element) for half in halves)
        return self._combined(name, low, high, source.width)

    def _neutral(self, name: str, source: LogicalRegister, preds: tuple[Pred, ...] | None) -> list[Reg]:
        """Return registers whose inactive lanes are neutral; None: all are active."""
        if preds is None:
            return list(source.regs)
        kind = ScalarType(f"i{source.width}" if source.element[0] in "iu" else source.element)
        none = self.register("vbr", [self.scalar(_neutral(name, source.element), kind)], source.element)
        return [self.chosen(reg, none, pred, source.width) for reg, pred in zip(source.regs, preds, strict=True)]

    def _of_registers(
        self, name: str, source: LogicalRegister, preds: tuple[Pred, ...] | None, groups: int
    ) -> list[Reg]:
        """Reduce groups that are whole registers: combine these, then reduce the rest by one instruction each."""
        size = len(source.regs) // groups
        regs = list(source.regs) if size == 1 else self._neutral(name, source, preds)
        slots = []
        for group in range(groups):
            whole, *rest = regs[group * size : (group + 1) * size]
            for other in rest:
                whole = self._combined(name, whole, other, source.width)
            pred = preds[group] if preds is not None and size == 1 else self.every(source.container)
            slots.append(self._reduced(name, whole, pred, source.width))
        return self._placed(slots, 1, groups, source.container)

    def _of_blocks(
        self, name: str, source: LogicalRegister, preds: tuple[Pred, ...], groups: int, blocks: int
    ) -> list[Reg]:  # fmt: skip
        """Reduce groups of one, two or four blocks of 32 bytes; a result has as many lanes as a register has groups."""
        parts = []
        for reg, pred in zip(source.regs, preds, strict=True):
            part = self._reduced(_OF_BLOCKS[name], reg, pred, source.width)
            for _ in range(blocks.bit_length() - 1):
                part = self._halves(name, self.parted(part, part, source.width), source)
            parts.append(part)
        return self._placed(parts, _BLOCKS // blocks, groups, source.width)

    def _placed(self, parts: list[Reg], length: int, lanes: int, container: int) -> list[Reg]:
        """Concatenate the first `length` containers of every register."""

        def moved(part: int, start: int, _: int, whole: Reg | None) -> Reg:
            reg, kind = parts[part], f"u{container}"
            if length > 1 or start == 0:
                reg = self.shifted(reg, -start, container)
            else:
                same = self.register("vdup", [self.as_element(reg, kind).use, self.whole(container).use], kind)
                reg = self.as_element(same, reg.element)
            return self.chosen(reg, whole, self.between(start, start + length, container), container)

        return self.merged(lanes, length, container, moved)

    def _of_neighbours(
        self, name: str, source: LogicalRegister, preds: tuple[Pred, ...] | None, size: int
    ) -> list[Reg]:
        """Reduce neighbours pair by pair."""
        regs = self._neutral(name, source, preds)
        for _ in range(size.bit_length() - 1):
            halves = [self.parted(first, other, source.container) for first, other in pairs_of(regs)]
            regs = [self._halves(name, both, source) for both in halves]
        return regs

    def _one_by_one(self, name: str, source: LogicalRegister, preds: tuple[Pred, ...], groups: int) -> list[Reg]:
        """Reduce every group by separate instructions, for groups that do not fit evenly into registers."""
        lanes, size, slots = per_register(source.container), source.lanes // groups, []
        for first in range(0, groups * size, size):
            last, whole = first + size, None
            for number in range(first // lanes, -(-last // lanes)):
                start = number * lanes
                inside = self.between(max(first - start, 0), min(last - start, lanes), source.container)
                pred = self.logic("pand", preds[number], inside, source.container)
                part = self._reduced(name, source.regs[number], pred, source.width)
                whole = part if whole is None else self._combined(name, whole, part, source.width)
            assert whole is not None
            slots.append(whole)
        return self._placed(slots, 1, groups, source.container)

    def _spread_slots(self, source: LogicalRegister, kind: LogicalVectorType, container: int) -> LogicalRegister:
        """Make `vbrc` of slots: lane i is slot i div the lanes of a group."""
        width = min(32, container)
        source = self.within(source, width)
        lanes, size, regs = per_register(width), kind.lanes // source.lanes, []
        for start in range(0, register_count(kind.lanes, width) * lanes, lanes):
            first, last = start // size, min((start + lanes - 1) // size, source.lanes - 1)
            whole: Reg | None = None
            for position in range(first // lanes, last // lanes + 1):
                index = self._slot_numbers(width, start, size, first - position * lanes)
                part = self.picked(source.regs[position], index, width)
                if whole is not None:
                    part = self.chosen(whole, part, self.first(position * lanes * size - start, width), width)
                whole = part
            assert whole is not None
            regs.append(self.as_element(whole, physical(kind.element)))
        return self.as_logical(kind, width, regs, container)

    def _slot_numbers(self, bits: int, start: int, size: int, first: int) -> Reg:
        """Return the register of the slots of lanes, the slot of lane 0 being number `first`."""
        if size >= per_register(bits) and start % size + per_register(bits) <= size:
            return self.same_number(bits, first)
        numbers, kind = self.group_numbers(bits, start, size), ScalarType(f"i{bits}")
        if first == 0:
            return numbers
        more = self.scalar(signed(first, bits), kind)
        return self.register("vadds", [numbers.use, more, self.whole(bits).use], f"u{bits}")


def _joined(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(name for part in parts for name in part)


def _neutral(name: str, element: str) -> int:
    """Return the neutral element of a sum, maximum or minimum: a number for integers, a bit pattern for floats."""
    fmt = FORMATS[element]
    if isinstance(fmt, IntFormat):
        most = fmt.maximum if fmt.signed else -1
        return {"vcadd": 0, "vcmax": fmt.minimum, "vcmin": most}[name]
    assert isinstance(fmt, FloatFormat)
    infinity, sign = fmt.exponent_mask << fmt.fraction_bits, 1 << fmt.bits - 1
    return {"vcadd": sign, "vcmax": infinity | sign, "vcmin": infinity}[name]


def _check_width(node: DialectOperation, value: LogicalRegister) -> None:
    if value.width == WIDEST:
        raise IllegalError(f"pto.{node.name} cannot use 64-bit elements", span=node.span, legal=("32 bits",))

"""Register operations as vector instructions: every operation that touches no memory, and loads and stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, IntFormat
from castsim.isa.pto.micro.conversions import ROUNDINGS, conversion
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType, PointerType, VectorType
from castsim.machines.vector_function.expansion.conversions import Attributes
from castsim.machines.vector_function.expansion.writer import Writer
from castsim.machines.vector_function.operations import (
    Ascend,
    Bitwise,
    Convert,
    CountDown,
    Duplicate,
    Gather,
    Interleave,
    Load,
    MemoryBarrier,
    Multiply,
    RegisterOperation,
    SetAll,
    Spread,
    Store,
    TripSelect,
)
from castsim.targets.register_text import Mode, distribution_of


@dataclass(frozen=True, slots=True)
class Held:
    """A register: the name of its value, and of what element it is."""

    name: str
    element: str
    finite: bool = False
    """Whether its lanes are known to be finite."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a trip loads or stores: a pointer, and how many of its elements beyond it."""

    pointer: str
    element: str
    offset: str


@dataclass(slots=True)
class Registers:
    """Registers, predicates and counters by their names in the kernel, as values of the text."""

    out: Writer
    attributes: Attributes
    ctrl: int
    registers: dict[str, Held] = field(default_factory=dict)
    predicates: dict[str, tuple[str, int]] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)
    last: str = ""
    """The condition that a trip is the last of its row."""
    _casts: dict[tuple[str, str], str] = field(default_factory=dict)
    _full: dict[int, str] = field(default_factory=dict)

    def inner(self) -> Registers:
        """Return a copy for a region: what it defines is not seen outside."""
        return replace(
            self,
            registers=dict(self.registers),
            predicates=dict(self.predicates),
            scalars=dict(self.scalars),
            _casts=dict(self._casts),
            _full=dict(self._full),
        )

    # --------------------------------------------------------------------------------------------------- memory

    def load(self, operation: Load, place: Place) -> None:
        """Write a load."""
        vector, pointer = _vector(place.element), format_type(PointerType(place.element, "ub"))
        kinds = [vector] * len(operation.results)
        names = [self.out.fresh(name) for name in operation.results]
        head, where = ", ".join(names), f"{place.pointer}[{place.offset}]"
        read = distribution_of(operation.distribution)
        if read.mode is Mode.DINTLV:
            text = f'pto.vldsx2 {where}, "{operation.distribution}" : {pointer}, index'
        elif read.mode in (Mode.NORM, Mode.UNPK, Mode.BRC, Mode.BLK):
            mode = "BRC_BLK" if read.mode is Mode.BLK else operation.distribution
            words = "" if read.mode is Mode.NORM else f' {{dist = "{mode}"}}'
            text = f"pto.vlds {where}{words} : {pointer}"
        else:
            raise _unwritten(f"a load with {operation.distribution}")
        self.out.line(f"{head} = {text} -> {', '.join(kinds)}")
        for name, value in zip(operation.results, names, strict=True):
            self.registers[name] = Held(value, place.element)

    def store(self, operation: Store, place: Place) -> None:
        """Write a store; the register takes the element of the pointer."""
        mode = distribution_of(operation.distribution).mode
        if mode not in (Mode.NORM, Mode.PK, Mode.PK4):
            raise _unwritten(f"a store with {operation.distribution}")
        value = self._as(operation.source, place.element)
        mask, width = self._mask(operation.predicate)
        kinds = f"{_vector(place.element)}, {format_type(PointerType(place.element, 'ub'))}, {_mask(width)}"
        words = f'{{dist = "{operation.distribution}"}}'
        self.out.line(f"pto.vsts {value}, {place.pointer}[{place.offset}], {mask} {words} : {kinds}")

    # ------------------------------------------------------------------------------------------------- registers

    def step(self, operation: RegisterOperation) -> None:
        """Write an operation that touches no memory.

        Raises:
            IllegalError: none of the vector instructions does it.
        """
        match operation:
            case Convert():
                self._convert(operation)
            case Bitwise(mnemonic, result, (one, other), predicate, width):
                element = self._element(one, width)
                mask, bits = self._mask(predicate)
                kind = _vector(element)
                self._define(
                    result, element, f"pto.{mnemonic} {self._as(one, element)}, {self._as(other, element)}, {mask}",
                    f"{kind}, {kind}, {_mask(bits)} -> {kind}",
                )  # fmt: skip
            case Interleave((one, other), (first, second), width):
                element = self._element(first, width)
                kind, names = _vector(element), (self.out.fresh(one), self.out.fresh(other))
                given = f"{self._as(first, element)}, {self._as(second, element)}"
                self.out.line(f"{', '.join(names)} = pto.vintlv {given} : {kind}, {kind} -> {kind}, {kind}")
                self.registers[one], self.registers[other] = (Held(name, element) for name in names)
            case Gather(result, source, index):
                kind = _vector("u8")
                given = f"{self._as(source, 'u8')}, {self._as(index, 'u8')}"
                self._define(result, "u8", f"pto.vselr {given}", f"{kind}, {kind} -> {kind}")
            case Duplicate() | Ascend() | Multiply():
                self._integers(operation)
            case MemoryBarrier(kinds):
                self.out.line(f'pto.mem_bar "{kinds}"')
            case SetAll() | CountDown() | Spread() | TripSelect():
                self._predicate(operation)
            case _:
                raise _unwritten(f"an instruction {getattr(operation, 'mnemonic', type(operation).__name__)}")

    def _convert(self, operation: Convert) -> None:
        source, mask = self._as(operation.source, operation.src.name), self._mask(operation.predicate)[0]
        kind, result = _vector(operation.src.name), operation.dst.name
        width = min(32, operation.src.storage_bits)
        finite = self._register(operation.source).finite
        if operation.integral:
            letter = next(one for one, mode in ROUNDINGS.items() if mode is operation.policy.rounding)
            text = f'pto.vtrc {source}, {mask}, "{letter}"'
        else:
            width = conversion(operation.src.name, result).mask_width
            words = _dictionary(self.attributes.of(operation, self.ctrl, finite=finite))
            text = f"pto.vcvt {source}, {mask}{words}"
        self._define(operation.result, result, text, f"{kind}, {_mask(width)} -> {_vector(result)}")
        if isinstance(operation.src, IntFormat):
            self.registers[operation.result] = replace(self.registers[operation.result], finite=True)

    def _integers(self, operation: Duplicate | Ascend | Multiply) -> None:
        """Write operations on lanes that are integers of a width."""
        element = f"i{operation.width}"
        kind = _vector(element)
        match operation:
            case Duplicate(result, width, value):
                signed = value - (1 << width) if value >> (width - 1) & 1 else value
                text = f"pto.vdup {self.out.constant(signed, element)}, {self._every(width)}"
                self._define(result, element, text, f"{element}, {_mask(width)} -> {kind}")
            case Ascend(result, _, start):
                self._define(
                    result, element, f"pto.vci {self.out.constant(start, element)}", f"{element} -> {kind}"
                )  # fmt: skip
            case Multiply(result, source, width, factor):
                given = f"{self._as(source, element)}, {self.out.constant(factor, element)}, {self._every(width)}"
                self._define(result, element, f"pto.vmuls {given}", f"{kind}, {element}, {_mask(width)} -> {kind}")

    def _define(self, result: str, element: str, text: str, kinds: str) -> None:
        self.registers[result] = Held(self.out.define(result, f"{text} : {kinds}"), element)

    # ------------------------------------------------------------------------------------------------ predicates

    def _predicate(self, operation: SetAll | CountDown | Spread | TripSelect) -> None:
        match operation:
            case SetAll(result, width):
                self.predicates[result] = self._every(width), width
            case CountDown():
                self._count_down(operation)
            case Spread(result, source):
                mask, width = self._mask(source)
                text = f'pto.punpack {mask}, "LOWER" : {_mask(width)} -> {_mask(2 * width)}'
                self.predicates[result] = self.out.define(result, text), 2 * width
            case TripSelect(result, full, tail):
                given = f"{self.last}, {self.scalars[tail]}, {self.out.constant(full, 'i32')}"
                self.scalars[result] = self.out.define(result, f"arith.select {given} : i32")

    def _count_down(self, operation: CountDown) -> None:
        result, width, counter = operation.result, operation.width, operation.counter
        lanes = REGISTER_BITS // width
        if counter is None:
            count = self.out.constant(operation.take, "i32")
        else:
            count = self.scalars[counter]
            if operation.take < lanes:
                least = self.out.constant(operation.take, "i32")
                self.scalars[counter] = self.out.define(counter, f"arith.subi {count}, {least} : i32")
                count = self.out.define(counter, f"arith.minsi {count}, {least} : i32")
        name, left = self.out.fresh(result), self.out.fresh(counter or "left")
        self.out.line(f"{name}, {left} = pto.plt_b{width} {count} : i32 -> {_mask(width)}, i32")
        self.predicates[result] = name, width
        if counter is not None and operation.take >= lanes:
            self.scalars[counter] = left

    def _every(self, width: int) -> str:
        if width not in self._full:
            self._full[width] = self.out.define("every", f'pto.pset_b{width} "PAT_ALL" : {_mask(width)}')
        return self._full[width]

    def _mask(self, name: str) -> tuple[str, int]:
        found = self.predicates.get(name)
        if found is None:
            raise _unwritten(f"the predicate {name}, which nothing makes")
        return found

    # ---------------------------------------------------------------------------------------------------- elements

    def _element(self, name: str, width: int) -> str:
        """Return as what an operation on lanes of `width` bits sees a register."""
        element = self._register(name).element
        return element if lane_bits(element) == width else f"u{width}"

    def _as(self, name: str, element: str) -> str:
        """Return a register whose lanes are of `element`."""
        held = self._register(name)
        if held.element == element:
            return held.name
        key = held.name, element
        if key not in self._casts:
            text = f"pto.vbitcast {held.name} : {_vector(held.element)} -> {_vector(element)}"
            self._casts[key] = self.out.define(name, text)
        return self._casts[key]

    def _register(self, name: str) -> Held:
        found = self.registers.get(name)
        if found is None:
            raise _unwritten(f"a constant in register {name}")
        return found


def _vector(element: str) -> str:
    return format_type(VectorType(REGISTER_BITS // lane_bits(element), element))


def _mask(width: int) -> str:
    return format_type(MaskType(width))


def _dictionary(words: Mapping[str, str]) -> str:
    listed = ", ".join(f'{key} = "{word}"' for key, word in words.items())
    return f" {{{listed}}}" if listed else ""


def _unwritten(what: str) -> IllegalError:
    return IllegalError(f"its lowering has {what}, which expand does not write as vector instructions")


def pointed(fmt: Format) -> int:
    """Return the bytes of an element that a pointer counts."""
    return lane_bits(fmt.name) // 8

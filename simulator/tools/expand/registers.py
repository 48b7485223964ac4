"""The instructions of a kernel with the registers, types and words of a program of vector instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FloatFormat, Format, IntFormat, Overflow, Rounding, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_words import ROUNDINGS, Conversion, conversion
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType, MicroOperation, PointerType, ScalarType, Type, vector
from castsim.machines.vector_function.function_operations import (
    distribution_in,
    mnemonic,
    number_of,
    width_of,
)
from castsim.machines.vector_function.values import step_of
from castsim.machines.vector_function.vector_registers import policy_of
from castsim.numerics.policy import InfinityWrap, Policy
from castsim.targets.description import with_options
from castsim.targets.vector_function import DistributionMode, VectorFunctionTarget
from castsim.tools.micro_builder import INDEX, MicroBuilder, OperationRun, Pred, Reg, Use

# The operations of a function of vector instructions that stand for tile operations, while they are made.

I32, I64 = ScalarType("i32"), ScalarType("i64")


@dataclass(slots=True)
class FunctionEmitter(MicroBuilder):
    """Writer of the operations of one function; `notes` are comments that precede operations.

    `depth` is the number of regions around the current one.
    """

    notes: dict[int, str] = field(default_factory=dict)
    depth: int = 0

    @contextmanager
    def region(self) -> Iterator[OperationRun]:
        """Collect the operations of a region inside the block."""
        self.depth += 1
        with self.at(OperationRun()):
            yield self.current
        self.depth -= 1

    @contextmanager
    def noted(self, text: str) -> Iterator[None]:
        """Put a comment, if any, before the operations that are created inside the block."""
        run = OperationRun()
        with self.at(run):
            yield
        self.current.items.append(run)
        self.notes.update({id(node): text for node in run.flat()[:1] if text})

    def compared(self, predicate: str, left: str, other: str, stem: str) -> str:
        """Create a comparison of indices."""
        name = self.fresh(stem)
        self.add(pto.Compare(name, predicate, (left, other), INDEX))
        return name

    def buffer(self, address: str, element: str) -> str:
        """Create a pointer to elements at a byte address (i64) of the buffer."""
        return self.micro("castptr", [(address, I64)], [("ub", buffer_pointer(element))])[0][0]

    def moved(self, pointer: str, offset: str, kind: PointerType, stem: str) -> str:
        """Create a pointer that is advanced by some elements."""
        name = self.fresh(stem)
        self.add(pto.AddPointer(name, pointer, offset, kind))
        return name

    def total(self, base: int, terms: Sequence[tuple[str, int]]) -> str:
        """Return a number plus loop variables of type index, each multiplied by its factor."""
        total_name: str | None = None
        for variable, factor in terms:
            if factor:
                by = self.times(variable, factor)
                total_name = by if total_name is None else self.sum(total_name, by)
        return self.index(base) if total_name is None else self.plus(total_name, base)


# The types of pointers, and how an operation is refused.


_SPELLINGS = {"hif8": "!pto.hif8", "e2m1": "!pto.f4E2M1x2", "e1m2": "!pto.f4E1M2x2"}
"""Elements that exist only as dialect types in the vendor's tools."""


def buffer_pointer(element: str) -> PointerType:
    """Return the type of a pointer into the buffer."""
    return PointerType(element, "ub", _SPELLINGS.get(element, ""))


def far(kind: PointerType) -> PointerType:
    """Return the type of an argument's pointer as one into global memory.

    4-bit elements keep their spelling: in the other spelling, an argument is an array of bytes.
    """
    return PointerType(kind.element, "gm", _SPELLINGS["hif8"] if kind.element == "hif8" else kind.spelling)


def unwritten(what: str) -> IllegalError:
    """Return the error about an operation whose lowering cannot be written."""
    return IllegalError(f"its lowering has {what}, which expand does not write as vector instructions")


# The attributes of `vcvt` that make of it what a tile cast's conversion does, and the options that it takes for that.
#
# Nothing here knows a pair: what an instruction does is asked of the unit's own rules.

_ADJUSTABLE = ("micro_integer_to_float", "micro_infinity_to_integer")
"""Options for behaviour that instructions leave open and tile casts define."""


class UnsettledError(Exception):
    """An option is needed that changes an instruction already written, so the writing must restart."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__()
        self.options = options


@dataclass(frozen=True, slots=True)
class Found:
    """The attributes of a `vcvt`; `without_infinity` excludes infinite lanes, which must become 0."""

    words: Mapping[str, str]
    without_infinity: bool = False


@dataclass(slots=True)
class Attributes:
    """Finder of conversion attributes that collects the options they need."""

    target: VectorFunctionTarget
    needed: dict[str, str] = field(default_factory=dict)
    _seen: list[_Sought] = field(default_factory=list)

    def of(self, pair: Conversion, policy: Policy, part: str | None, ctrl: int, *, finite: bool) -> Found:
        """Return the attributes of a conversion while CTRL is `ctrl`; `finite`: the lanes are finite.

        Raises:
            IllegalError: no `vcvt` is equivalent, or only with an option that another conversion forbids.
            UnsettledError: one is equivalent with an option that an earlier one was written without.
        """
        wanted = _effective(policy, pair, finite=finite)
        for chosen in _choices(self.target, self.needed):
            target = with_options(self.target, {**self.needed, **chosen})
            for words in _words(pair, policy, part):
                sought = _Sought(pair, words, wanted, ctrl, finite)
                if sought.is_met(target):
                    self._need(chosen)
                    self._seen.append(sought)
                    return Found(words)
        if wanted.overflow is Overflow.WRAP and wanted.infinity_wrap is InfinityWrap.ZERO:
            target = with_options(self.target, self.needed)
            for words in _words(pair, policy, part):
                sought = _Sought(pair, words, replace(wanted, infinity_wrap=InfinityWrap.EXTREME), ctrl, finite)
                if sought.is_met(target):
                    return Found(words, without_infinity=True)
        raise IllegalError(f"no vcvt {pair.src} -> {pair.dst} matches the tile cast: {_shown(policy)}")

    def _need(self, chosen: Mapping[str, str]) -> None:
        self.needed.update(chosen)
        target = with_options(self.target, self.needed)
        if chosen and not all(sought.is_met(target) for sought in self._seen):
            raise UnsettledError(chosen)


@dataclass(frozen=True, slots=True)
class _Sought:
    """An instruction, and its required policy."""

    pair: Conversion
    words: Mapping[str, str]
    policy: Policy
    ctrl: int
    finite: bool

    def is_met(self, target: VectorFunctionTarget) -> bool:
        """Return whether the instruction does so on a target."""
        policy = policy_of(target, self.pair, self.words.get("rnd"), self.words.get("sat"), self.ctrl)
        return _effective(policy, self.pair, finite=self.finite) == self.policy


def _effective(policy: Policy, pair: Conversion, *, finite: bool) -> Policy:
    """Return a policy without settings that have no effect on a pair, such as rounding of an exact cast."""
    src, dst = format_named(pair.src), format_named(pair.dst)
    if not pair.roundings:
        policy = replace(policy, rounding=Rounding.RINT)
    bounded = isinstance(src, IntFormat) or not (src.has_nan or src.has_infinity)
    if isinstance(dst, IntFormat):
        if finite or isinstance(src, IntFormat):
            return Policy(policy.rounding, policy.overflow)
        return policy
    # No integer that has a conversion to floats, and no 4-bit float, is beyond the range of its results.
    return Policy(policy.rounding, Overflow.SPECIAL) if bounded else policy


def _choices(target: VectorFunctionTarget, settled: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield settings of the adjustable options, those with the fewest changes first."""
    free = [name for name in _ADJUSTABLE if name not in settled]
    choices = [
        {name: str(value) for name, value in zip(free, values, strict=True) if value != target.option(name)}
        for values in product(*(target.options[name].legal for name in free))
    ]
    yield from sorted(choices, key=len)


def _words(pair: Conversion, policy: Policy, part: str | None) -> Iterator[dict[str, str]]:
    """Yield the attributes that the pair may have with the rounding of a policy and a part."""
    letters = [letter for letter, mode in ROUNDINGS.items() if mode is policy.rounding]
    for rounding in (
        [rounding_letter for rounding_letter in letters if rounding_letter in pair.roundings]
        if pair.roundings
        else [""]
    ):
        for saturation in reversed(pair.saturations) if pair.saturations else [""]:
            words = {"rnd": rounding, "sat": saturation, "part": part or ""}
            yield {key: word for key, word in words.items() if word}


def _shown(policy: Policy) -> str:
    return f"rounding {policy.rounding.upper()}, overflow {policy.overflow}"


@dataclass(frozen=True, slots=True)
class TripAddress:
    """The address of a trip's load or store: a pointer and an offset in its elements."""

    pointer: str
    element: str
    offset: str
    moves: bool = False
    """Whether the access is at the pointer, which the offset then advances."""

    @property
    def uses(self) -> list[Use]:
        """Pointer and offset."""
        return [(self.pointer, buffer_pointer(self.element)), (self.offset, INDEX)]


@dataclass(slots=True)
class NamedRegisters:
    """Registers, predicates and counters by kernel name, as values of the function."""

    out: FunctionEmitter
    attributes: Attributes
    ctrl: int
    policies: Mapping[tuple[str, str], Policy]
    registers: dict[str, Reg] = field(default_factory=dict)
    predicates: dict[str, Pred] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)
    finite: set[str] = field(default_factory=set)
    """Values whose lanes are known to be finite."""
    last: str = ""
    """The condition that a trip is the last of its row."""
    position: str = ""
    """The ramp's position: the number of the trip's first element, of type index."""
    governing: str = ""
    """The predicate that was created last."""

    def inner(self) -> NamedRegisters:
        """Return a copy for a region, whose definitions are invisible outside."""
        registers, predicates, scalars = dict(self.registers), dict(self.predicates), dict(self.scalars)
        return replace(self, registers=registers, predicates=predicates, scalars=scalars)

    def define(self, result: str, element: str, mnemonic: str, uses: Sequence[Use], **words: str) -> None:
        """Write the definition of a kernel's register."""
        (name,), home = self.out.micro(mnemonic, uses, [(result, vector(element))], **words)
        self.registers[result] = Reg(name, element, home)

    def define_mask(self, result: str, width: int, mnemonic: str, uses: Sequence[Use], **words: str) -> None:
        """Write the definition of a kernel's predicate for lanes of `width` bits."""
        (name,), home = self.out.micro(mnemonic, uses, [(result, MaskType(width))], **words)
        self.predicates[result] = Pred(name, width, home)

    # --------------------------------------------------------------------------------------------------- memory

    def load(self, operation: MicroOperation, address: TripAddress) -> str:
        """Write a load; return the updated pointer, empty if there is none."""
        read, dist = distribution_in(operation), operation.word("dist") or "NORM"
        if read.mode is DistributionMode.MASK:  # of lanes of 32 bits it has half as many as the instruction loads
            loaded = min(16, read.bits or 8)
            self.define_mask(operation.results[0], loaded, "plds", address.uses, dist="NORM" if loaded == 8 else "US")
            return ""
        if read.mode not in _LOADS:
            raise unwritten(f"a load with {dist}")
        mnemonic = "vldsx2" if read.mode is DistributionMode.DINTLV else "vlds"
        mode = "BRC_BLK" if read.mode is DistributionMode.BLK else dist
        words = {} if read.mode is DistributionMode.NORM else {"dist": mode}
        results: list[tuple[str, Type]] = [(name, vector(address.element)) for name in operation.results]
        if address.moves:  # the access is at the pointer itself
            results.append(("at", buffer_pointer(address.element)))
        names, home = self.out.micro(mnemonic, address.uses, results, **words)
        for name, value in zip(operation.results, names, strict=False):
            self.registers[name] = Reg(value, address.element, home)
        return names[-1] if address.moves else ""

    def store(self, operation: MicroOperation, address: TripAddress) -> None:
        """Write a store; the register takes the pointer's element type."""
        source, _, predicate = operation.operands
        read, dist = distribution_in(operation), operation.word("dist") or "NORM"
        if read.mode is DistributionMode.MASK:  # a bit a lane
            mask = self.mask(source)
            self.out.micro("psts", [mask.use, *address.uses], dist="NORM" if mask.bits == 8 else "PK")
            return
        if read.mode not in _STORES:
            raise unwritten(f"a store with {dist}")
        value = self.use(source, address.element)
        governing = self.predicates.get(predicate)
        if governing is None:  # of the last store of a row
            governing = self.out.whole(min(32, lane_bits(address.element)))
        mode = f"1PT_B{read.bits}" if read.mode is DistributionMode.ONEPT else dist
        self.out.micro("vsts", [value, *address.uses, governing.use], dist=mode)

    # ------------------------------------------------------------------------------------------------- registers

    def step(self, operation: MicroOperation) -> None:
        """Write an operation that touches no memory.

        Raises:
            IllegalError: no vector instruction is equivalent.
        """
        match mnemonic(operation):
            case "vcvt" | "vtrc":
                self._convert(operation)
            case "mem_bar":
                self.out.micro("mem_bar", (), barrier=operation.word("barrier") or "")
            case "pset":
                self.governing = operation.results[0]
                self.predicates[self.governing] = self.out.whole(width_of(operation))
            case "plt":
                self._count_down(operation)
            case "select":
                (result,), (tail,) = operation.results, operation.operands
                full = self.out.constant(number_of(operation, "full"), I32)
                self.scalars[result] = self.out.arith("select", (self.last, self.scalars[tail], full), I32, result)
            case _:
                self._compute(operation)

    def _compute(self, operation: MicroOperation) -> None:
        """Write an instruction of a cast's kernel: on bits, or on lanes that are integers of a width."""
        name, width, number = operation.mnemonic, width_of(operation), number_of(operation, "number")
        integer, (result, *_), sources = f"i{width}", operation.results, operation.operands
        match name:
            case "vor" | "vand":
                *registers, predicate = sources
                element, mask = self._element(registers[0], width), self.mask(predicate).use
                self.define(result, element, name, [*(self.use(register, element) for register in registers), mask])
            case "vintlv":
                element = self._element(sources[0], width)
                uses, results = [self.use(source, element) for source in sources], operation.results
                names, home = self.out.micro(name, uses, [(stem, vector(element)) for stem in results])
                self.registers.update(
                    zip(results, (Reg(result_name, element, home) for result_name in names), strict=True)
                )
            case "vselr":
                self.define(result, "u8", name, [self.use(source, "u8") for source in sources])
            case "punpack":
                self.spread(operation)
            case "vdup":
                signed = number - (1 << width) if number >> (width - 1) & 1 else number
                self.define(result, integer, name, [self.integer(signed, integer), self.out.whole(width).use])
            case "vci":
                self.define(result, integer, name, [self.integer(number, integer)])
            case "vmuls":
                value = self.use(sources[0], integer)
                self.define(result, integer, name, [value, self.integer(number, integer), self.out.whole(width).use])
            case _:
                raise unwritten(f"an instruction {name}")

    def spread(self, operation: MicroOperation) -> None:
        """Write the widening of a predicate's lower half to lanes twice as wide."""
        (source,), (result,) = operation.operands, operation.results
        mask = self.mask(source)
        self.define_mask(result, 2 * mask.bits, "punpack", [mask.use], half="LOWER")

    def _convert(self, operation: MicroOperation) -> None:
        step = step_of(operation, self.policies)
        (src, dst), policy = step.formats, step.policy
        (name, predicate), (result,) = operation.operands, operation.results
        source, mask = self.use(name, src.name), self.mask(predicate)
        if operation.mnemonic == "vtrc":
            self.define(result, dst.name, "vtrc", [source, mask.use], rnd=operation.word("rnd") or "")
        else:
            pair, finite = conversion(src.name, dst.name), self.register(name).name in self.finite
            words = self.attributes.of(pair, policy, operation.word("part"), self.ctrl, finite=finite)
            governing = mask.name, MaskType(pair.mask_width)
            if words.without_infinity:
                governing = self._without_infinity(src, source, governing)
            self.define(result, dst.name, "vcvt", [source, governing], **words.words)
        if isinstance(src, IntFormat):
            self.finite.add(self.registers[result].name)

    def _without_infinity(self, fmt: Format, source: Use, mask: tuple[str, MaskType]) -> tuple[str, MaskType]:
        """Return a mask without the lanes that are infinite: they become 0."""
        assert isinstance(fmt, FloatFormat) and fmt.infinity_code is not None
        for code in (fmt.infinity_code, fmt.infinity_code | fmt.sign_bit):
            uses = [source, self.out.scalar(code, ScalarType(fmt.name)), mask]
            mask = self.out.micro("vcmps", uses, [("finite", mask[1])], cmp="ne")[0][0], mask[1]
        return mask

    # ------------------------------------------------------------------------------------------------ predicates

    def _count_down(self, operation: MicroOperation) -> None:
        (result,), width, take = operation.results, width_of(operation), number_of(operation, "take")
        counter, lanes = next(iter(operation.operands), None), REGISTER_BITS // width
        count = self.out.constant(take, I32) if counter is None else self.scalars[counter]
        if counter is not None and take < lanes:
            least = self.out.constant(take, I32)
            self.scalars[counter] = self.out.arith("subi", (count, least), I32, counter)
            count = self.out.arith("minsi", (count, least), I32, counter)
        kinds: list[tuple[str, Type]] = [(result, MaskType(width)), (counter or "left", I32)]
        (name, left), home = self.out.micro(f"plt_b{width}", [(count, I32)], kinds)
        self.predicates[result], self.governing = Pred(name, width, home), result
        if counter is not None and take >= lanes:
            self.scalars[counter] = left

    def mask(self, name: str) -> Pred:
        """Return a predicate."""
        predicate = self.predicates.get(name)
        if predicate is None:
            raise unwritten(f"the predicate {name}, which is never defined")
        return predicate

    # ---------------------------------------------------------------------------------------------------- elements

    def integer(self, value: int, kind: str) -> Use:
        """Return a constant of an integer type."""
        return self.out.scalar(value, ScalarType(kind))

    def use(self, name: str, element: str) -> Use:
        """Return a register as lanes of an element."""
        return self.out.as_element(self.register(name), element).use

    def _element(self, name: str, width: int) -> str:
        """Return the element type of a register in an operation on lanes of `width` bits."""
        element = self.register(name).element
        return element if lane_bits(element) == width else f"u{width}"

    def register(self, name: str) -> Reg:
        """Return the value of a kernel's register."""
        named_register = self.registers.get(name)
        if named_register is None:
            raise unwritten(f"a constant in register {name}")
        return named_register


_LOADS = (
    DistributionMode.NORM,
    DistributionMode.UNPK,
    DistributionMode.BRC,
    DistributionMode.BLK,
    DistributionMode.DINTLV,
)
_STORES = (DistributionMode.NORM, DistributionMode.PK, DistributionMode.PK4, DistributionMode.ONEPT)


def pointed(fmt: Format) -> int:
    """Return the number of bytes that a pointer counts per element."""
    return lane_bits(fmt.name) // 8

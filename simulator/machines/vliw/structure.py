"""The static shape of a program's control flow: hardware loops, their nesting, and where jumps may go.

Meaning of LOOP and the jumps: docs/reference/tpc.md section 7.1, control.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError, Span
from castsim.isa.tpc import (
    Bundle,
    Comparison,
    Directive,
    Immediate,
    LabelUse,
    Register,
    TpcInstruction,
    TpcProgram,
    print_instruction,
)
from castsim.isa.tpc.encoding.assembler import BYTE, COMPRESSED
from castsim.isa.tpc.program import JUMPS, WORD_BITS, File
from castsim.targets.vliw import VliwTarget

_PAIR = 2
"""Program addresses count bytes; the two bundles of a compressed pair fill the room of one.

Source: docs/reference/tpc.md section 8.
"""


@dataclass(frozen=True, slots=True)
class LoopShape:
    """A hardware loop: the bundle of LOOP, first bundle of the body, first bundle behind it, nesting depth."""

    number: int
    head: int
    start: int
    end: int
    depth: int

    def holds(self, bundle: int) -> bool:
        """Whether a bundle belongs to the body."""
        return self.start <= bundle < self.end


class Structure:
    """Loops and jumps of a program, checked.

    `addresses` holds the byte address of every bundle.

    Raises:
        IllegalError: a loop without a body, beyond the program, too deep or crossing another; a jump that leaves the
            program or crosses the border of a loop body; a body that writes its loop's iterator; bytes that are no
            bundle.
    """

    def __init__(self, program: TpcProgram, target: VliwTarget) -> None:
        self.bundles = program.bundles
        self._bundle_bytes = target.encoding.bundle_bytes
        *self.addresses, self._size = _addresses(program, self._bundle_bytes)
        self._at = {address: index for index, address in enumerate((*self.addresses, self._size))}
        self._labels = program.labels
        self._target = target
        heads = [
            (index, bundle.spu)
            for index, bundle in enumerate(self.bundles)
            if bundle.spu is not None and bundle.spu.mnemonic == "loop"
        ]
        ranges = [self._range(index, loop) for index, loop in heads]
        self.loops = tuple(
            LoopShape(number, head, start, end, sum(s <= head < e for s, e in ranges))
            for number, ((head, _), (start, end)) in enumerate(zip(heads, ranges, strict=True))
        )
        self.by_head = {loop.head: loop for loop in self.loops}
        self._check_nesting()
        self.enclosing = tuple(
            tuple(loop.number for loop in sorted(self.loops, key=lambda loop: loop.depth) if loop.holds(index))
            for index in range(len(self.bundles) + 1)
        )
        for loop in self.loops:
            self._check_counters(loop)
        for index, bundle in enumerate(self.bundles):
            if bundle.spu is not None and bundle.spu.mnemonic in JUMPS:
                target_index = self.static_target(index, bundle.spu)
                if target_index is not None:
                    self.check_jump(index, target_index, bundle.spu.span)

    def static_target(self, index: int, jump: TpcInstruction) -> int | None:
        """Return the bundle that a jump goes to, None if a register says so. Errors as `target_of`."""
        operand = jump.operand("src_a")
        if isinstance(operand, LabelUse):
            return self._labels[operand.name]
        return self.target_of(index, jump, operand.signed) if isinstance(operand, Immediate) else None

    def target_of(self, index: int, jump: TpcInstruction, distance: int) -> int:
        """Return the bundle at a byte distance from a jump, or at a byte address of the program.

        Outside the program bundles are counted on as if they had full size.

        Raises:
            IllegalError: no bundle begins there.
        """
        address = distance if jump.mnemonic == "jmpa" else self.addresses[index] + distance
        if address in self._at:
            return self._at[address]
        size = self._bundle_bytes
        if distance % size:
            raise IllegalError(
                f"{jump.mnemonic} to {distance}: not a multiple of the {size} bytes of a bundle", span=jump.span
            )
        if 0 <= address < self._size:
            raise IllegalError(f"{jump.mnemonic} to {distance}: no bundle begins at {address:#x}", span=jump.span)
        return address // size if address < 0 else len(self.bundles) + (address - self._size) // size

    def check_jump(self, index: int, target: int, span: Span) -> None:
        """Reject a jump out of the program or across the border of a loop body.

        Raises:
            IllegalError: says which.
        """
        if not 0 <= target < len(self.bundles):
            raise IllegalError(
                f"the jump leaves the program, to bundle {target}", span=span, legal=(f"0 .. {len(self.bundles) - 1}",)
            )
        if self.enclosing[index] != self.enclosing[target]:
            raise IllegalError(f"the jump to bundle {target} crosses the border of a loop body", span=span)

    def _range(self, index: int, loop: TpcInstruction) -> tuple[int, int]:
        """Return the body of a loop as a range of bundles."""
        start = index + 1 + self._target.loop_rules.delay_bundles
        operand = loop.operand("end")
        if isinstance(operand, LabelUse):
            end = self._labels[operand.name]
        else:  # the encoded form: bytes from LOOP to the last bundle of the body
            assert isinstance(operand, Immediate)
            end = self.target_of(index, loop, operand.signed + self._bundle_bytes)
        if end <= start:
            raise IllegalError(
                f"the body of the loop is empty: it begins in bundle {start} and ends before bundle {end}",
                span=loop.span,
            )
        if end > len(self.bundles):
            raise IllegalError(
                f"the body of the loop ends beyond the program, in bundle {end - 1}",
                span=loop.span,
                legal=(f"up to {len(self.bundles) - 1}",),
            )
        return start, end

    def _check_nesting(self) -> None:
        limit = self._target.registers.loop_iterators
        for loop in self.loops:
            span = self._span(loop.head)
            if loop.depth >= limit:
                raise IllegalError(f"loops are nested {loop.depth + 1} deep; there are {limit} iterators", span=span)
            for other in self.loops:
                inside = other.holds(loop.head)
                if inside and loop.end > other.end:
                    raise IllegalError("the loop ends after the loop around it", span=span)

    def _check_counters(self, loop: LoopShape) -> None:
        """Reject a body that writes the iterator of its loop; LOOP has latched bound and step.

        Source: the vendor's compiler leaves such loops to the hardware (docs/reference/tpc.md section 7.1, control).
        """
        iterator = self.iterator(loop.depth)
        for bundle in self.bundles[loop.start : loop.end]:
            for inner in bundle.slots:
                written = None if inner is None else inner.operand("dest")
                if inner is not None and written == iterator:
                    raise IllegalError(
                        f"{written} is written in the body of the loop that counts by it", span=inner.span
                    )

    def iterator(self, depth: int) -> Register:
        """Return the register that counts the loops of a nesting depth."""
        sizes = self._target.registers
        return Register(File.S, sizes.S - sizes.loop_iterators + depth)

    def _span(self, index: int) -> Span:
        loop = self.bundles[index].spu
        assert loop is not None
        return loop.span


def _addresses(program: TpcProgram, bundle_bytes: int) -> list[int]:
    """Return the byte address of every bundle of so many bytes, and of the end.

    Raises:
        IllegalError: a directive that stands for bytes that are not a bundle.
    """
    found, address, halves = [], 0, 0
    for item in program.items:
        if isinstance(item, Bundle):
            found.append(address)
            address += bundle_bytes // _PAIR if halves else bundle_bytes
            halves = max(0, halves - 1)
        elif isinstance(item, Directive):
            name = item.name.lower()
            if name == BYTE:
                message = f"the bytes at {address:#x} are not a bundle of this generation and cannot run"
                raise IllegalError(message, span=item.span)
            halves = _PAIR if name == COMPRESSED else halves
    return [*found, address]


def holds(sign: Comparison, left: int, right: int) -> bool:
    """Evaluate the condition of a LOOP on signed numbers."""
    match sign.sign:
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case "==":
            return left == right
        case _:
            return left != right


def signed(word: int) -> int:
    """Return 32 bits as a two's complement number."""
    return word - (1 << WORD_BITS) if word >> (WORD_BITS - 1) else word


def begins_loop(bundle: Bundle) -> bool:
    """Whether a bundle holds LOOP, which stands alone."""
    return bundle.spu is not None and bundle.spu.mnemonic == "loop"


def described(bundle: Bundle) -> str:
    """Return the content of a bundle, for tables: `ld_l_v|convert.f32`."""
    if bundle.spu is not None and begins_loop(bundle):
        return print_instruction(bundle.spu)
    return "|".join(name_of(instruction) for instruction in bundle.slots if instruction is not None) or "nop"


def name_of(instruction: TpcInstruction | None) -> str:
    """Return mnemonic and type of an instruction, nothing for an empty slot."""
    if instruction is None:
        return ""
    return instruction.mnemonic if instruction.type is None else f"{instruction.mnemonic}.{instruction.type}"

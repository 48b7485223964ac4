"""From what an AscendC kernel sent to a program of A2/A3 instructions, or of vector functions of the A5.

A line is one instruction, transfer, access or word of control. Facts: docs/languages/ascendc.md.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import ArgumentUse
from castsim.execution.interpreter.lowerer import Budget
from castsim.execution.interpreter.micro_interpreter import MicroInterpreter, argument_format
from castsim.execution.interpreter.vector_unit import BytePointer, MicroMemory, VectorUnit
from castsim.execution.tree import Access, Lowered, common_bytes
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import Span, TileError, WarningKind
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import Pipe
from castsim.isa.pto.strided_statements import STRIDED_ROWS
from castsim.isa.pto.value_types import MicroOperation, StridedStatement, element_format
from castsim.languages.ascendc.calls import Operand, Words, check_elements, conversion
from castsim.languages.ascendc.functions import FunctionWriter
from castsim.languages.cpp_recording.node_making import NodeMaker, padded_bytes
from castsim.languages.cpp_recording.recording import Lockstep
from castsim.languages.cpp_recording.scopes import ScopeMaker
from castsim.machines.mechanisms import vector_units_of
from castsim.machines.program_recorder import ProgramRecorder

_I64, _I32 = pto.ScalarType("i64"), pto.ScalarType("i32")
_WORD = 1 << 64
_WALK = 1 << 40
"""No limit: a recording has its own."""
_ROOM = 1 << 28
"""Bytes that an argument without an input has while the kernel runs; the host gives them as they are used."""
_BUFFER = "ub"
_BYTES = {"i4": "u8", "e2m1": "u8", "e1m2": "u8"}
"""Elements of global memory that are counted in bytes: two of them."""


# Synchronisation that the compiler of AscendC adds: barriers of V, and flags between the scalar unit and other pipes.
#
# Where exactly it adds them is nowhere stated. Assumed: ahead of an instruction that touches bytes of an earlier one of
# a pair of pipes, one of them writing, unless a barrier or flags already order the two: the least that is
# correct. The vendor's page on automatic synchronisation names the pairs (docs/languages/ascendc.md).

COMPILED = frozenset(
    (pair for other in ("V", "MTE2", "MTE3") for pair in (("S", other), (other, "S"))),
) | {("V", "V")}
"""Pairs of pipes, the earlier first, that the compiler synchronises."""

_PIPES = ("S", "V", "MTE2", "MTE3")
_KEPT = 256
"""Accesses after which those are dropped that every pipe knows to be done."""


@dataclass(frozen=True, slots=True)
class _Record:
    pipe: str
    number: int
    access: Access


@dataclass(slots=True)
class Synchroniser:
    """Follows a program and adds what the compiler would; `_known` is how many instructions of each pipe have ended for
    what a pipe does next."""

    count: int = 0
    """Barriers and pairs of flags that were added."""
    _issued: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_PIPES, 0))
    _known: dict[str, dict[str, int]] = field(
        default_factory=lambda: {pipe: dict.fromkeys(_PIPES, 0) for pipe in _PIPES}
    )
    _flags: dict[tuple[str, str, int], deque[dict[str, int]]] = field(default_factory=dict)
    _records: list[_Record] = field(default_factory=list)

    def follow(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> None:
        """Record a flag or a barrier."""
        if isinstance(node, pto.Barrier):
            self._barrier(node.pipe.name)
            return
        source, destination = node.src.name, node.dst.name
        if source not in self._known or destination not in self._known:
            return
        tokens = self._flags.setdefault((source, destination, node.event), deque())
        if isinstance(node, pto.SetFlag):
            tokens.append({**self._known[source], source: self._issued[source]})
        elif tokens:
            self._learn(destination, tokens.popleft())

    def before(self, pipe: str, accesses: tuple[Access, ...], span: Span, adds: bool) -> Iterator[pto.Operation]:
        """Yield what has to stand ahead of an instruction, if it is added at all, and take the instruction in."""
        if adds:
            for other in _PIPES:
                if (other, pipe) in COMPILED and self._meets(other, pipe, accesses):
                    yield from self._ordered(other, pipe, span)
        self._issued[pipe] += 1
        number = self._issued[pipe]
        self._records += (_Record(pipe, number, access) for access in accesses)
        if len(self._records) > _KEPT:
            self._drop()

    def _meets(self, other: str, pipe: str, accesses: tuple[Access, ...]) -> bool:
        done = self._known[pipe][other]
        return any(
            record.pipe == other and record.number > done
            and any(_meet(record.access, access) for access in accesses)
            for record in self._records
        )  # fmt: skip

    def _ordered(self, other: str, pipe: str, span: Span) -> Iterator[pto.Operation]:
        self.count += 1
        if other == pipe:
            node = pto.Barrier(Pipe[pipe], inserted=True, span=span)
            self.follow(node)
            yield node
            return
        taken = {
            event for (source, to, event), tokens in self._flags.items() if (source, to) == (other, pipe) and tokens
        }
        event = next((event for event in reversed(range(8)) if event not in taken), 7)
        for kind in (pto.SetFlag, pto.WaitFlag):
            flag = kind(Pipe[other], Pipe[pipe], event, inserted=True, span=span)
            self.follow(flag)
            yield flag

    def _barrier(self, pipe: str) -> None:
        if pipe == "ALL":
            for clock in self._known.values():
                clock.update(self._issued)
            self._records.clear()
        elif pipe in self._known:
            self._known[pipe][pipe] = self._issued[pipe]

    def _learn(self, pipe: str, token: dict[str, int]) -> None:
        for other, number in token.items():
            self._known[pipe][other] = max(self._known[pipe][other], number)

    def _drop(self) -> None:
        self._records = [
            record
            for record in self._records
            if any(self._known[pipe][record.pipe] < record.number for pipe in _PIPES if (record.pipe, pipe) in COMPILED)
        ]


def _meet(first: Access, other: Access) -> bool:
    if (
        not (first.write or other.write)
        or first.space != other.space
        or first.start >= other.end
        or other.start >= first.end
    ):
        return False
    return common_bytes(first, other) is not None


# Instructions, transfers and accesses as nodes.


@dataclass(slots=True)
class AscendMaker(NodeMaker):
    """Makes the nodes of one function of instructions.

    Each is walked as it is made: the walk checks it, and says which bytes it touches.
    """

    entry_mark: str = "pto.kernel"
    space: str | None = "gm"
    synchroniser: Synchroniser = field(default_factory=Synchroniser)
    _recorder: ProgramRecorder = field(init=False)
    _path: MicroInterpreter = field(init=False)
    _functions: FunctionWriter | None = None
    _scopes: ScopeMaker = field(init=False)
    _library: list[Operand] = field(init=False)
    """Bytes that instructions use beside their operands: the library's own, then those of the compare mask."""

    def __post_init__(self) -> None:
        NodeMaker.__post_init__(self)
        recorder = vector_units_of(self.target).recorder(as_written=True)
        assert isinstance(recorder, ProgramRecorder)
        self._recorder = recorder
        self._library = [Operand("u8", self.capacity - 8192, self.capacity - 8192, self.capacity, 1, 1)]
        self._path = walker(self, self._recorder)
        self._functions = FunctionWriter(self, self.pointer, self._add) if self.a5 else None
        self._scopes = ScopeMaker(self, self._add)

    # ------------------------------------------------------------------------------------------------------- lines

    def take(self, line: str) -> None:
        """Record one line of the protocol that is not a question."""
        if self._scopes.takes(line):
            return
        if line[0] in "pw" and (position := int(line.split(" ")[2])) in self.elements:
            see_argument(self._path, self, position)
        NodeMaker.take(self, line)

    def work(self, kind: str, rest: list[str]) -> None:
        """Record an instruction, a transfer, an access of the scalar unit, or a word of control."""
        if kind == "i":
            self._instruction(rest[0], rest[1], int(rest[2]), Words.of(rest[3:]))
        elif kind == "c":
            self._control(rest[0], int(rest[1], 16), int(rest[2], 16))
        elif kind == "t":
            self._transfer(rest)
        elif kind == "m":
            self._within(rest)
        elif kind in "gv":
            self._element(rest, reads=kind == "g")
        elif kind in "lk":
            self._global(int(rest[0]), int(rest[1]), *rest[2:])

    @staticmethod
    def stored(line: str) -> int | None:
        """Return the position of the argument that a line stores to, if it does."""
        words = line.split(" ")
        if words[0] == "k":
            return int(words[2])
        return int(words[3]) if words[0] == "t" and words[2] == "store" else None

    @staticmethod
    def asked(words: list[str]) -> tuple[int, int, str]:
        """Return address and bytes of what is asked for, and what messages call it."""
        return int(words[0]), int(words[1]), "GetValue"

    def append(self, kind: type[pto.Operation], *fields: object) -> None:  # type: ignore[override]
        """Add a node, and ahead of it what the compiler adds."""
        self._add(kind(*fields, span=self.span))  # type: ignore[arg-type]

    def function(self, name: str, used: Sequence[int]) -> pto.Function:
        """Return the function of what was taken in, which ends when all pipes have."""
        self._scopes.close()
        added = self.synchroniser.count
        if added:
            self.warn(
                WarningKind.OPERATION,
                f"{added} barriers and pairs of flags are added where the compiler would (assumed: the least it has to "
                "add); --auto-sync off leaves them out, --emit-sync FILE shows them",
            )
        written = NodeMaker.function(self, name, used)
        body = written.body or ()
        if len(body) > 2 and body[-3:-1] == (pto.Barrier(pto.Pipe.ALL), pto.Barrier(pto.Pipe.ALL)):
            body = (*body[:-2], body[-1])
        return replace(written, body=body)

    def _add(self, node: pto.Operation, operands: Sequence[Operand] = ()) -> None:
        node = self._issued.setdefault((node, self.span), node)
        before = len(self._recorder.issued)
        self._path.walk((node,))
        if isinstance(node, pto.SetFlag | pto.WaitFlag | pto.Barrier):
            self.synchroniser.follow(node)
        for lowered in self._recorder.issued[before:]:
            if lowered.accesses:
                self._check(lowered, operands)
                pipe = _pipe(lowered)
                added = [*self.synchroniser.before(pipe, lowered.accesses, self.span, self.compiled_synchronisation)]
                self.body += added
        self.body.append(node)

    def _check(self, lowered: Lowered, operands: Sequence[Operand]) -> None:
        """Refuse writes outside of the buffers that the tensors are of; warn of reads, which do no harm by themselves.

        Raises:
            TileError: there are such writes.
        """
        for access in lowered.accesses:
            if access.space != _BUFFER or not operands:
                continue
            near = [operand for operand in operands if operand.low <= access.start < operand.high] or operands
            if not any(operand.low <= access.start and access.end <= operand.high for operand in operands):
                own = near[0]
                what = f"bytes {access.start} .. {access.end - 1}; its buffer has bytes {own.low} .. {own.high - 1}"
                if access.write:
                    legal = ("a smaller count", "a larger InitBuffer")
                    raise TileError(f"writes {what}", span=self.span, legal=legal)
                self.warn(WarningKind.OPERATION, f"reads {what}: what is behind it are other tensors' bytes")

    # ------------------------------------------------------------------------------------------------ instructions

    def _instruction(self, call: str, mnemonic: str, repeats: int, words: Words) -> None:
        operands = words.operands
        for operand in operands:
            if not operand.low <= operand.address < operand.high:
                raise TileError(
                    f"{call}: byte {operand.address} is outside the tensor's buffer, bytes {operand.low} .. "
                    f"{operand.high - 1}", span=self.span
                )  # fmt: skip
        if mnemonic == "cast":
            mnemonic, mode = conversion(words, self.a5, self.span)
            words = replace(words, attributes={"mode": mode} if self.a5 else {})
        if self._functions is not None:
            self._functions.write(call, mnemonic, repeats, words)
            return
        check_elements(call, mnemonic, words, self.span)
        names = [self.pointer(operand.element, operand.address) for operand in operands]
        kinds: list[pto.Type] = [pto.PointerType(operand.element, "ub") for operand in operands]
        for element, code in words.scalars:
            if "N" in STRIDED_ROWS[mnemonic].forms[0]:  # a whole number, whatever the elements
                names.append(self.constant(_signed(code, element), _I32))
                kinds.append(_I32)
            else:
                names.append(self.code(code, element))
                kinds.append(self.scalar_type(element))
        if repeats == 0:
            return
        node = StridedStatement(
            mnemonic, tuple(names), tuple(kinds), attributes=tuple(sorted(words.attributes.items())),
            destinations=STRIDED_ROWS[mnemonic].destinations, repeats=repeats,
            blocks=tuple(tensor.block for tensor in operands), strides=tuple(tensor.repeat for tensor in operands),
            span=self.span,
        )  # fmt: skip
        try:
            self._add(node, (*operands, *self._library))
        except TileError as error:  # which calls an operand by its name in the program
            message = re.sub(r"^%\w+ is", f"{call}: a tensor is", error.message)
            raise TileError(message, span=error.span, legal=error.legal) from None

    def _control(self, what: str, first: int, second: int) -> None:
        if self._functions is not None and what != "ctrl":
            self._functions.control(what, first, second)
            return
        if what in ("count", "norm"):
            self._add(StridedStatement(f"set_mask_{what}", (), (), span=self.span))
        elif what in ("mask", "lanes"):
            words = (first, second) if what == "mask" else (0, first)
            names = tuple(self.constant(word - _WORD if word >= _WORD // 2 else word, _I64) for word in words)
            self._add(StridedStatement("set_vector_mask", names, (_I64, _I64), span=self.span))
        elif what == "deqscale":
            name = self.code(first, "f16")
            self._add(StridedStatement("set_deqscale", (name,), (pto.ScalarType("f16"),), span=self.span))
        elif what == "cmpmask":
            self._library[1:] = [Operand("u8", first, first, first + 32, 1, 1)]
            name = self.pointer("u8", first)
            self._add(StridedStatement("set_cmpmask", (name,), (pto.PointerType("u8", "ub"),), span=self.span))
        else:
            control, updated, bit = self.name(), self.name(), self.constant(first, _I32)
            mnemonic = "sbitset1" if second else "sbitset0"
            self._add(MicroOperation("get_ctrl", (), (), (control,), (_I64,), span=self.span))
            self._add(MicroOperation(mnemonic, (control, bit), (_I64, _I32), (updated,), (_I64,), span=self.span))
            self._add(MicroOperation("set_ctrl", (updated,), (_I64,), span=self.span))

    # --------------------------------------------------------------------------------------- pointers and transfers

    def pointer(self, element: str, address: int) -> str:
        """Return a pointer into the buffer."""
        at = self.constant(address, _I64)
        kind = (pto.PointerType(element, "ub"),)
        return self.once(
            (element, address),
            lambda name: MicroOperation("castptr", (at,), (_I64,), (name,), kind, span=self.span),
        )

    def once(self, key: object, make: object) -> str:
        """Return the name of what a node defines, which is walked at its first use."""
        fresh = key not in self.defined
        name = NodeMaker.once(self, key, make)  # type: ignore[arg-type]
        if fresh:
            self._path.walk((self.body[-1],))
        return name

    def argument(self, position: int, offset: int, element: str) -> tuple[str, pto.PointerType]:
        """Return a pointer to an element of an argument, and its type; an argument has the type of its first use."""
        element = _BYTES.get(element, element)
        own = self.elements.setdefault(position, element)
        own_size = element_format(own).storage_bits // 8
        see_argument(self._path, self, position)
        if offset < 0:
            raise TileError(f"accesses memory {-offset} bytes before {self.names[position]}", span=self.span)
        name, kind = self.names[position], self.pointer_type(own)
        if offset and offset % own_size == 0:
            count = self.index(offset // own_size)
            base, base_kind = name, kind
            name = self.once(
                ("moved", position, offset), lambda at: pto.AddPointer(at, base, count, base_kind, span=self.span)
            )
        elif offset:
            name, kind = self._cast(("bytes", position), name, kind, "u8")
            count, base, base_kind = self.index(offset), name, kind
            name = self.once(
                ("byte", position, offset), lambda at: pto.AddPointer(at, base, count, base_kind, span=self.span)
            )
        if kind.element != element:
            name, kind = self._cast(("seen", position, offset, element), name, kind, element)
        return name, kind

    def _cast(self, key: object, name: str, kind: pto.PointerType, element: str) -> tuple[str, pto.PointerType]:
        result = self.pointer_type(element)
        cast = self.once(key, lambda at: MicroOperation("castptr", (name,), (kind,), (at,), (result,), span=self.span))
        return cast, result

    def check_end(self, position: int, end: int) -> None:
        """Note that an argument is used up to an element; the device's allocations have up to a block of bytes more.

        Raises:
            TileError: the user gave fewer.
        """
        size = self.sizes.get(self.names[position])
        if size is not None and end > size:
            bits = element_format(self.elements[position]).storage_bits
            if end * bits <= padded_bytes(size * bits // 8) * 8:
                text = f"accesses {end - size} elements behind the end of {self.names[position]}, taken as 0"
                self.warn(WarningKind.OPERATION, f"{text}: whole blocks of 32 bytes that the device's memory has")
                self.ends[position] = max(self.ends.get(position, 0), end)
                return
        NodeMaker.check_end(self, position, end)

    def _use(self, position: int, end: int) -> None:
        """Note that an argument is used up to a byte."""
        bits = element_format(self.elements[position]).storage_bits
        self.check_end(position, -(-end * 8 // bits))

    def _transfer(self, rest: list[str]) -> None:
        way, position, offset, element, template, *numbers = rest
        count, length, far, near, left, right, pads = map(int, numbers[:7])
        value, atomic = int(numbers[7], 16), numbers[8]
        attributes: tuple[tuple[str, str], ...] = ()
        if atomic != "-":
            word, element = atomic.split(",")
            attributes = (("atomic", word.upper()),)
        if count == 0 or length == 0:
            return
        if near < 0 or far < 0:
            raise TileError("rows that go backwards are not modelled", span=self.span)
        tensor = Operand.of(f"{template.replace('u,', f'u,{element},')},1,1")
        outside, pointed = self.argument(int(position), int(offset), element)
        self._use(int(position), int(offset) + (count - 1) * far + length)
        local = self.pointer(pointed.element, tensor.address)
        local_kind = pto.PointerType(pointed.element, "ub")
        load = way == "load"
        zero, long, rows = (self.constant(number, _I64) for number in (0, length, count))
        steps = tuple(self.constant(step, _I64) for step in ((far, near) if load else (near, far)))
        ends = [(outside, pointed), (local, local_kind)]
        names = [name for name, _ in (ends if load else reversed(ends))]
        kinds: list[pto.Type] = [kind for _, kind in (ends if load else reversed(ends))]
        constants = [zero, long, rows, *steps] if load else [long, rows, *steps]
        names += constants
        kinds += [_I64] * len(constants)
        groups: tuple[tuple[str, int], ...] = (("nburst", 3),)
        if pads:
            names += [self.code(value, pointed.element), *(self.constant(number, _I64) for number in (left, right))]
            kinds += [self.scalar_type(pointed.element), _I64, _I64]
            groups += (("pad", 3),)
        mnemonic = "mte_gm_ub" if load else "mte_ub_gm"
        self._add(
            MicroOperation(mnemonic, tuple(names), tuple(kinds), (), (), attributes, groups, span=self.span), (tensor,)
        )

    def _within(self, rest: list[str]) -> None:
        element, to, source, *numbers = rest
        count, length, near, far = map(int, numbers)
        if count == 0 or length == 0:
            return
        tensors = [Operand.of(f"{template.replace('u,', f'u,{element},')},1,1") for template in (source, to)]
        names = [self.pointer(element, tensor.address) for tensor in tensors]
        names += [self.constant(number, _I64) for number in (length, count, near, far)]
        kinds = (*(pto.PointerType(element, "ub"),) * 2, *(_I64,) * 4)
        self._add(MicroOperation("mte_ub_ub", tuple(names), kinds, groups=(("nburst", 3),), span=self.span), tensors)

    # ------------------------------------------------------------------------------------------- the scalar unit

    def _element(self, rest: list[str], *, reads: bool) -> None:
        element, address, low, high = rest[0], *map(int, rest[1:4])
        size = element_format(element).storage_bits // 8
        operand = Operand(element, address, low, high, 1, 1)
        if not low <= address <= high - size:
            what = "GetValue" if reads else "SetValue"
            raise TileError(
                f"{what}: byte {address} is outside the tensor's buffer, bytes {low} .. {high - 1}", span=self.span
            )
        kind = self.scalar_type(element)
        value = self.name() if reads else self.code(int(rest[4], 16), element)
        mnemonic = "load_scalar" if reads else "store_scalar"
        base, offset = self.pointer(element, address), self.index(0)
        node = pto.ScalarAccess(
            mnemonic, base, pto.PointerType(element, "ub"), offset, value, kind, span=self.span
        )  # fmt: skip
        self._add(node, (operand,))

    def _global(self, position: int, offset: int, element: str, code: str | None = None) -> None:
        """Load an element of global memory, or store a code."""
        base, kind = self.argument(position, offset, element)
        self._use(position, offset + element_format(element).storage_bits // 8)
        scalar = self.scalar_type(element)
        value = self.name() if code is None else self.code(int(code, 16), element)
        mnemonic = "load_scalar" if code is None else "store_scalar"
        self._add(pto.ScalarAccess(mnemonic, base, kind, self.index(0), value, scalar, span=self.span))


def _pipe(lowered: Lowered) -> str:
    """Return the pipe of what an instruction issues."""
    pipes = [element.pipe for element in lowered.body.items if hasattr(element, "pipe")]
    return pipes[-1] if pipes else "S"


def _signed(code: int, element: str) -> int:
    bits = element_format(element).storage_bits
    return code - (1 << bits) if element[0] == "i" and code >> (bits - 1) else code


# Walks of what has been made: one that checks, one that computes.


def walker(maker: AscendMaker, unit: VectorUnit, memory: MicroMemory | None = None) -> MicroInterpreter:
    """Return a walk of instructions that are given one by one."""
    function = pto.Function("kernel", (), ())
    units = vector_units_of(maker.target)
    return MicroInterpreter(
        budget=Budget(_WALK), function=function, unit=unit, capacity=maker.capacity,
        control=units.control_at_start(saturating=False), memory=memory,
    )  # fmt: skip


def see_argument(walk: MicroInterpreter, maker: NodeMaker, position: int) -> None:
    """Give a walk the pointer of an argument whose type is known."""
    name = maker.names[position]
    if name not in walk.arguments:
        kind = maker.pointer_type(maker.elements[position])
        walk.environment[name] = BytePointer(name, 0, kind.element)
        walk.arguments[name] = ArgumentUse(argument_format(kind))


@dataclass(slots=True)
class InstructionLockstep(Lockstep):
    """Computes instructions as the kernel asks for their values; each once."""

    _walk: MicroInterpreter | None = None
    _done: int = 0

    def advance(self) -> None:
        """Compute what the kernel has done up to here."""
        maker = self.whole
        assert isinstance(maker, AscendMaker)
        walk = self._walk
        if walk is None:
            memory = MicroMemory(np.zeros(maker.capacity, np.uint8), {})
            walk = self._walk = walker(maker, vector_units_of(self.target).unit(memory), memory)
        assert walk.memory is not None
        arguments = walk.memory.arguments
        assert isinstance(arguments, dict)
        for position in maker.elements:
            name = maker.names[position]
            see_argument(walk, maker, position)
            if name not in arguments:
                given = self.given.get(position)
                arguments[name] = np.zeros(_ROOM, np.uint8) if given is None else given.copy()
        done, self._done = self._done, len(maker.body)
        walk.walk(maker.body[done:])

    def buffer(self) -> NDArray[np.uint8]:
        """Return the bytes of the buffer."""
        if self._walk is None:
            self.advance()
        assert self._walk is not None and self._walk.memory is not None
        return self._walk.memory.buffer

    def held(self, name: str) -> NDArray[np.uint8] | None:
        """Return the bytes of an argument that has been computed."""
        if self._walk is None or self._walk.memory is None:
            return None
        return self._walk.memory.arguments.get(name)

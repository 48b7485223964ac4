"""A TPC assembly program as data: registers, instructions, bundles, declarations.

The parser builds these, the printer writes them, the executor and the encoder read them. Every node knows its place in
the source (`span`), which takes no part in equality: two spellings of one instruction are equal objects. Source of
names and ranges: docs/reference/tpc.md sections 1 and 7.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property

from castsim.isa.errors import Located, Span
from castsim.isa.tpc.forms import ROUNDING, Form, Value

WORD_BITS = 32
"""Bits of an S register, of an address of local memory, of a coordinate and of an immediate."""
WORD_BYTES = WORD_BITS // 8
WORD_MASK = (1 << WORD_BITS) - 1

ADDRESS_BITS = 64
"""Bits of an address of global memory, which an AD register holds."""

INDEX_DIMENSIONS = 5
"""Coordinates in an index register, and dimensions of a tensor."""


class Slot(IntEnum):
    """The four instruction slots in the order of the text."""

    LOAD = 0
    SPU = 1
    VPU = 2
    STORE = 3

    __hash__ = int.__hash__  # that of enumerations is written in Python, and slots are keys everywhere


class File(StrEnum):
    """Register files. D and A are pairs and quads of V, Z pairs of S, all named by their first register."""

    V = "V"
    D = "D"
    A = "A"
    S = "S"
    Z = "Z"
    I = "I"  # noqa: E741  the vendor's name
    AD = "AD"
    SP = "SP"
    VP = "VP"

    __hash__ = str.__hash__  # as for slots


PREDICATES = (File.SP, File.VP)
"""Files of predicates."""

GROUPED = {File.D: (File.V, 2), File.A: (File.V, 4), File.Z: (File.S, 2)}
"""Files that name several registers of another: which, and how many."""

VECTOR_GROUPS = {1: File.V, 2: File.D, 4: File.A}
"""The file that names a vector register, or an aligned group of them, by their number."""

VECTOR_FILES = (File.V, File.D, File.A, File.VP)
"""Files of the vector unit's registers."""

JUMPS = ("jmpr", "jmpa")
"""Mnemonics of jumps."""

ENDS_OF_BLOCKS = ("loop", *JUMPS, "halt")
"""Mnemonics that decide what is executed next."""


# -------------------------------------------------------------------------------------------------------- operands


@dataclass(frozen=True, slots=True)
class Register:
    """A numbered register, `V4`."""

    file: File
    index: int

    def __str__(self) -> str:
        return f"{self.file}{self.index}"


@dataclass(frozen=True, slots=True)
class Special:
    """A register with a name instead of a number: `LFSR`, `PC`, `LD_PARTIAL_REG`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Immediate:
    """32 bits; `value` is unsigned."""

    value: int

    @property
    def signed(self) -> int:
        """The same bits as a two's complement number."""
        return self.value - (1 << 32) if self.value >> 31 else self.value


@dataclass(frozen=True, slots=True)
class DimensionMask:
    """The dimensions of an index register that are written, `b00010`; bit 0 is dimension 0."""

    bits: int

    def __str__(self) -> str:
        return f"b{self.bits:05b}"


@dataclass(frozen=True, slots=True)
class LabelUse:
    """A jump target or a loop end by name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class LoopComparison:
    """The condition of a LOOP: `>`, `>=`, `<`, `<=`, `==` or `!=`."""

    sign: str

    def __str__(self) -> str:
        return self.sign


Operand = Register | Special | Immediate | DimensionMask | LabelUse | LoopComparison


@dataclass(frozen=True, slots=True)
class Predicate:
    """The register that decides whether an instruction acts; `inverted` is the `!`."""

    register: Register
    inverted: bool = False

    def __str__(self) -> str:
        return f"{'!' if self.inverted else ''}{self.register}"


# ---------------------------------------------------------------------------------------------------- instructions


@dataclass(frozen=True, slots=True)
class TpcInstruction(Located):
    """One instruction.

    `form` is its row in the instruction table; `operands` stand in the order of `form.operands`; `type` is the type
    suffix as a format name (None: the form has none); `switches` holds every switch of the form that applies, in
    canonical order and with defaults filled in. No predicate means SP0, always true.
    """

    form: Form
    type: str | None
    switches: tuple[tuple[str, Value], ...]
    operands: tuple[Operand, ...]
    predicate: Predicate | None = None

    def at(self, span: Span) -> TpcInstruction:
        """Return the same instruction at another place of the source."""
        return TpcInstruction(self.form, self.type, self.switches, self.operands, self.predicate, span=span)

    @property
    def mnemonic(self) -> str:
        """The canonical name, `mov_dg.all`."""
        return self.form.mnemonic

    def operand(self, role: str) -> Operand | None:
        """Return the operand of a role (`dest`, `src_a`, ..), None if the form has none."""
        for spec, operand in zip(self.form.operands, self.operands, strict=True):
            if spec.role == role:
                return operand
        return None

    def switch(self, name: str) -> Value | None:
        """Return the value of a switch, None if it does not apply here."""
        return next((value for key, value in self.switches if key == name), None)

    @property
    def draws(self) -> bool:
        """Whether its rounding mode draws random numbers."""
        mode = self.switch(ROUNDING)
        return mode is not None and any(mode in each.random for each in self.form.switches if each.name == ROUNDING)


@dataclass(frozen=True, slots=True)
class Bundle(Located):
    """The instructions issued in one cycle; an empty slot (NOP) is None.

    `written` counts the slots that the text spells out, where it says them by their order (None: it does not).
    """

    load: TpcInstruction | None = None
    spu: TpcInstruction | None = None
    vpu: TpcInstruction | None = None
    store: TpcInstruction | None = None
    written: int | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def slots(self) -> tuple[TpcInstruction | None, ...]:
        """The slots in the order of `Slot`."""
        return self.load, self.spu, self.vpu, self.store


@dataclass(frozen=True, slots=True)
class LabelDefinition(Located):
    """`name:`, the address of the bundle that follows."""

    name: str


@dataclass(frozen=True, slots=True)
class Directive(Located):
    """A line that begins with a dot (`.text`, `.globl main`); kept, without meaning here."""

    text: str

    @property
    def name(self) -> str:
        """Its first word."""
        return self.text.split()[0]


# ---------------------------------------------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class TargetDeclaration(Located):
    """`// castsim: target gaudi2`."""

    name: str


@dataclass(frozen=True, slots=True)
class TensorDeclaration(Located):
    """`// castsim: tensor 0 x in f32 [64, 1024]`.

    `shape` counts elements, dimension 0, the fastest, first; one to five dimensions. `format` is a name of
    `castsim.isa.formats`; `direction` is in, out or inout.
    """

    number: int
    name: str
    direction: str
    format: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RegisterDeclaration(Located):
    """`// castsim: reg S0 = 128`, the value at start; an index register takes `[c0, c1, c2, c3, c4]`."""

    register: Register
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VlmDeclaration(Located):
    """`// castsim: vlm 0x100 x f32 [64]`: named data in vector local memory at a byte address.

    An optional direction before the format (in, out, inout) as for tensors; in is assumed.
    """

    address: int
    name: str
    direction: str
    format: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableDeclaration(Located):
    """`// castsim: table gelu 129 f32 [3, 128] = gelu.npy`: a look-up table of the user's.

    `function` is the function id of the look-ups that read it, or under `by_pointer` (`lut_ptr 0`) what the S register
    holds. `shape` is entries, or values of an entry and entries. `content` is a file (.npy or .csv) or numbers; None:
    the run gives them.
    """

    name: str
    by_pointer: bool
    function: int
    format: str
    shape: tuple[int, ...]
    content: str | None

    direction = "in"
    """A program never writes a table."""

    @property
    def entries(self) -> int:
        """Number of entries."""
        return self.shape[-1]

    @property
    def columns(self) -> int:
        """Values of an entry."""
        return self.shape[0] if len(self.shape) > 1 else 1

    @property
    def file(self) -> str | None:
        """The file that holds the values, if one does."""
        text = self.content
        return text if text is not None and text.endswith((".npy", ".csv")) else None


Declaration = TargetDeclaration | TensorDeclaration | RegisterDeclaration | VlmDeclaration | TableDeclaration
Item = Bundle | LabelDefinition | Directive


@dataclass(frozen=True)
class TpcProgram:
    """A whole text: declarations, then bundles, labels and directives in their order."""

    declarations: tuple[Declaration, ...]
    items: tuple[Item, ...]

    @cached_property
    def bundles(self) -> tuple[Bundle, ...]:
        """The bundles alone; their position is their address."""
        return tuple(item for item in self.items if isinstance(item, Bundle))

    @cached_property
    def labels(self) -> dict[str, int]:
        """The number of the bundle each label stands before (the number of bundles, if it stands at the end)."""
        found: dict[str, int] = {}
        index = 0
        for item in self.items:
            if isinstance(item, LabelDefinition):
                found[item.name] = index
            index += isinstance(item, Bundle)
        return found

    @property
    def target(self) -> str | None:
        """The target that the text names, if it does."""
        return next((found.name for found in self.declarations if isinstance(found, TargetDeclaration)), None)

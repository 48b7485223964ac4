"""A TPC assembly program as data: registers, instructions, bundles, declarations; source text, words and operands.

The parser builds these, the printer writes them, the executor and the encoder read them. Every node has its source
position (`span`), which is ignored in comparisons: two spellings of one instruction are equal objects. Source of
names and ranges: docs/reference/tpc.md sections 1 and 7.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum, StrEnum
from fractions import Fraction
from functools import cached_property
from operator import eq, ge, gt, le, lt, ne

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import Located, ReadError, SourceText, Span
from castsim.isa.formats import FORMATS, FloatFormat
from castsim.isa.tpc.forms import ROUNDING, Dialect, Form, OperandSpec, Value

WORD_BITS = 32
"""Bit width of an S register, of an address of local memory, of a coordinate and of an immediate."""
WORD_BYTES = WORD_BITS // 8
WORD_MASK = (1 << WORD_BITS) - 1

ADDRESS_BITS = 64
"""Bit width of an address of global memory, which fits an AD register."""

INDEX_DIMENSIONS = 5
"""Number of coordinates in an index register, and of dimensions of a tensor."""


BYTE, COMPRESSED = ".byte", ".compressed"
"""Directives: bytes that are no bundle; the next two bundles take half the space each."""


class Slot(IntEnum):
    """The four instruction slots in text order."""

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
"""Files whose registers are groups of another file's, with that file and the group size."""

VECTOR_GROUPS = {1: File.V, 2: File.D, 4: File.A}
"""The file that names a vector register, or an aligned group of them, by their number."""

VECTOR_FILES = (File.V, File.D, File.A, File.VP)
"""Files of the vector unit's registers."""

JUMPS = ("jmpr", "jmpa")
"""Mnemonics of jumps."""

ENDS_OF_BLOCKS = ("loop", *JUMPS, "halt")
"""The mnemonics that decide the next instruction."""


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
    """A named register: `LFSR`, `PC`, `LD_PARTIAL_REG`."""

    name: str

    def __str__(self) -> str:
        return self.name


def is_constant(register: Register | Special) -> bool:
    """Return whether writes of it have no effect: SP0 and VP0 are constantly true."""
    return isinstance(register, Register) and register.file in PREDICATES and register.index == 0


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


COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le, "==": eq, "!=": ne}
"""The comparison signs, with their functions of two numbers."""


@dataclass(frozen=True, slots=True)
class LoopComparison:
    """The condition of a LOOP, one of `COMPARISONS`."""

    sign: str

    def __str__(self) -> str:
        return self.sign


Operand = Register | Special | Immediate | DimensionMask | LabelUse | LoopComparison


@dataclass(frozen=True, slots=True)
class Predicate:
    """The register that decides whether an instruction executes; `inverted` is the `!`."""

    register: Register
    inverted: bool = False

    def __str__(self) -> str:
        return f"{'!' if self.inverted else ''}{self.register}"


# ---------------------------------------------------------------------------------------------------- instructions


@dataclass(frozen=True, slots=True)
class TpcInstruction(Located):
    """One instruction.

    `form` is its row in the instruction table; `operands` are in the order of `form.operands`; `type` is the type
    suffix as a format name (None: the form has none); `switches` has every applicable switch of the form, in
    canonical order and with defaults filled in. No predicate means SP0, always true.
    """

    form: Form
    type: str | None
    switches: tuple[tuple[str, Value], ...]
    operands: tuple[Operand, ...]
    predicate: Predicate | None = None

    @property
    def surely_acts(self) -> bool:
        """Whether it always executes: it has no predicate, or one that is constantly true."""
        predicate = self.predicate
        return predicate is None or (is_constant(predicate.register) and not predicate.inverted)

    def at(self, span: Span) -> TpcInstruction:
        """Return the same instruction at another source position."""
        return TpcInstruction(self.form, self.type, self.switches, self.operands, self.predicate, span=span)

    @property
    def mnemonic(self) -> str:
        """The canonical name, `mov_dg.all`."""
        return self.form.mnemonic

    @property
    def specified(self) -> Iterator[tuple[OperandSpec, Operand]]:
        """The operands with their specifications in the form."""
        return zip(self.form.operands, self.operands, strict=True)

    @property
    def registers(self) -> tuple[Register, ...]:
        """The registers of its operands, and its predicate last."""
        operands_registers = (operand for operand in self.operands if isinstance(operand, Register))
        return (*operands_registers, *([self.predicate.register] if self.predicate else []))

    def operand(self, role: str) -> Operand | None:
        """Return the operand of a role (`dest`, `src_a`, ..), None if the form has none."""
        for spec, operand in self.specified:
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
        return mode is not None and any(
            mode in candidate.random for candidate in self.form.switches if candidate.name == ROUNDING
        )


@dataclass(frozen=True, slots=True)
class Bundle(Located):
    """The instructions issued in one cycle; an empty slot (NOP) is None.

    `written` counts the slots of the text, if it states them by order (None: it does not).
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

    @property
    def occupied(self) -> tuple[tuple[Slot, TpcInstruction], ...]:
        """The occupied slots with their instructions."""
        return tuple(
            (slot, instruction) for slot, instruction in zip(Slot, self.slots, strict=True) if instruction is not None
        )


@dataclass(frozen=True, slots=True)
class LabelDefinition(Located):
    """`name:`, the address of the bundle that follows."""

    name: str


@dataclass(frozen=True, slots=True)
class Directive(Located):
    """A line that begins with a dot (`.text`, `.globl main`); preserved without effect."""

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
    """`// castsim: reg S0 = 128`, the initial value; an index register takes `[c0, c1, c2, c3, c4]`."""

    register: Register
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VlmDeclaration(Located):
    """`// castsim: vlm 0x100 x f32 [64]`: named data in vector local memory at a byte address.

    An optional direction precedes the format (in, out, inout) as for tensors; in is the default.
    """

    address: int
    name: str
    direction: str
    format: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableDeclaration(Located):
    """`// castsim: table gelu 129 f32 [3, 128] = gelu.npy`: a user's look-up table.

    `function` is the function id of the look-ups that read it, or with `by_pointer` (`lut_ptr 0`) the contents of the
    S register. `shape` is entries, or values of an entry and entries. `content` is a file (.npy or .csv) or numbers;
    None: the run supplies them.
    """

    name: str
    by_pointer: bool
    function: int
    format: str
    shape: tuple[int, ...]
    content: str | None

    direction = "in"
    """The direction is in, because a program never writes a table."""

    @property
    def entries(self) -> int:
        """Number of entries."""
        return self.shape[-1]

    @property
    def columns(self) -> int:
        """Number of values of an entry."""
        return self.shape[0] if len(self.shape) > 1 else 1

    @property
    def file(self) -> str | None:
        """The file with the values, if there is one."""
        text = self.content
        return text if text is not None and text.endswith((".npy", ".csv")) else None


Declaration = TargetDeclaration | TensorDeclaration | RegisterDeclaration | VlmDeclaration | TableDeclaration
Item = Bundle | LabelDefinition | Directive


@dataclass(frozen=True)
class TpcProgram:
    """A whole text: declarations, then bundles, labels and directives in order."""

    declarations: tuple[Declaration, ...]
    items: tuple[Item, ...]

    @cached_property
    def bundles(self) -> tuple[Bundle, ...]:
        """The bundles alone; their index is their address."""
        return tuple(item for item in self.items if isinstance(item, Bundle))

    @cached_property
    def labels(self) -> dict[str, int]:
        """The index of the bundle after each label (the number of bundles, if it is at the end)."""
        indices: dict[str, int] = {}
        index = 0
        for item in self.items:
            if isinstance(item, LabelDefinition):
                indices[item.name] = index
            index += isinstance(item, Bundle)
        return indices

    @property
    def target(self) -> str | None:
        """The target that the text names, if there is one."""
        return next(
            (declaration.name for declaration in self.declarations if isinstance(declaration, TargetDeclaration)), None
        )


# Lines, comments, words and operands of TPC assembly.
#
# Comments are `//` to the end of the line and `/* */`, which may span lines; they are blanked out, so that every
# column stays what it was. Comments that begin with `castsim:` are declarations and are handed on. Source:
# docs/reference/tpc.md section 7.

_COMMENT = re.compile(r"//(?P<line>[^\n]*)|/\*.*?\*/|(?P<open>/\*)", re.DOTALL)
_DECLARATION = re.compile(r"\s*castsim\s*:", re.IGNORECASE)
_WORD = re.compile(
    r"\s*(?P<text>"
    r"%?[iIuU](?:8|16|32)_-?(?:0?[xX][0-9A-Fa-f]+|\d+)\b"  # a typed immediate: the minus sign belongs to it
    r"|%?(?:[fF](?:32|16)|[bB][fF]16)_[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\b"
    r"|%?[A-Za-z_.$][\w.$]*"
    r"|(?:[-+]\s*)?(?:0[xX][0-9A-Fa-f]+[uU]?|0[bB][01]+[uU]?"
    r"|(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?:[bB][fF]|[fFhH])?|\d+[uU]?)"
    r"|<=|>=|==|!=|[<>=!,]"
    r"|\S)"
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word or sign; `column` counts from 0, `spaced` tells whether white space precedes it."""

    text: str
    line: int
    column: int
    spaced: bool


@dataclass(frozen=True, slots=True)
class Comment:
    """A declaration in a comment: its text after `castsim:`, line and column counted from 0."""

    text: str
    line: int
    column: int


class AssemblySource:
    """A text split into lines, with comments blanked out, which locates any part of it.

    Raises:
        ReadError: a comment is never closed.
    """

    __slots__ = ("_starts", "_text", "comments", "file", "lines")

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._text = SourceText(file, text)
        self.comments: list[Comment] = []
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.lines = _COMMENT.sub(self._blank, text).split("\n")

    def _blank(self, match: re.Match[str]) -> str:
        line = bisect_right(self._starts, match.start()) - 1
        column = match.start() - self._starts[line]
        if match["open"]:
            raise ReadError("missing '*/' at the end of the comment", span=self.span(line, column, 2), legal=("*/",))
        if match["line"] is not None:
            declared = _DECLARATION.match(match["line"])
            if declared:
                self.comments.append(Comment(match["line"][declared.end() :], line, column + 2 + declared.end()))
        return re.sub(r"[^\n]", " ", match.group())

    def span(self, line: int, column: int, length: int = 1) -> Span:
        """Return the position of some characters; line and column count from 0."""
        return Span.within(self._text, self._starts[line] + column, length)

    def error(self, message: str, line: int, column: int, length: int = 1, legal: Iterable[str] = ()) -> ReadError:
        """Return (do not raise) an error about the text at a position."""
        return ReadError(message, span=self.span(line, column, length), legal=legal)

    def words(self, line: int, start: int, end: int) -> list[Word]:
        """Split part of a line into words and signs."""
        tokens = []
        text = self.lines[line]
        position = start
        while match := _WORD.match(text, position, end):
            tokens.append(Word(match["text"], line, match.start("text"), match.start("text") > position))
            position = match.end()
        return tokens

    def word_span(self, word: Word) -> Span:
        """Return the position of a word."""
        return self.span(word.line, word.column, len(word.text))


# Operands from their spelling: registers, immediates in every form, dimension masks.

_REGISTER = re.compile(r"(VP|SP|AD|[VDASZI])(\d{1,6})", re.IGNORECASE)
_MASK = re.compile(r"b([01]{5})", re.IGNORECASE)
_TYPED = re.compile(r"([iu])(8|16|32)_(-?)(0?x[0-9a-f]+|\d+)", re.IGNORECASE)
_TYPED_FLOAT = re.compile(r"(f32|bf16|f16)_(.+)", re.IGNORECASE)
_INTEGER = re.compile(r"([-+]?)\s*(0x[0-9a-f]+|0b[01]+|\d+)(u?)", re.IGNORECASE)
_FLOAT = re.compile(r"([-+]?)\s*((?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?)(bf|f|h)?", re.IGNORECASE)
_FLOAT_SUFFIXES = {"": "f32", "f": "f32", "bf": "bf16", "h": "f16"}
_BINARY, _HEXADECIMAL, _OCTAL = "0b", "0x", "0"
_FARTHEST = 400
"""Powers of ten beyond which every float is infinite or zero."""
_LONGEST = 64  # characters of a number; more is not an immediate, and conversions of endless digits are slow

HARDWARE_CODES = {
    **{0: "PC", 1: "DIV_STEP", 2: "S_CARRY", 3: "V_CARRY", 4: "M0", 5: "M1", 6: "M2", 7: "M3"},
    **{8: "LD_TNSR_ID_REG", 9: "ST_TNSR_ID_REG", 10: "ST_RMW_REG", 11: "LD_PARTIAL_REG", 12: "ST_PARTIAL_REG"},
    13: "ZP_REG",
    **{16 + place: f"SQZ_CNTR{place // 2}_{'HI' if place % 2 else 'LO'}" for place in range(16)},
}
"""Hardware registers by the number that `mov.to_hw_reg` and `mov.from_hw_reg` accept instead of the name."""

SPECIALS = frozenset(
    ["LFSR", "LFSR_NO_CHANGE", "S_LFSR", "S_LFSR_NO_CHANGE", *(f"V_LANE_ID_{bits}" for bits in (32, 16, 8))]
).union(HARDWARE_CODES.values())
"""Named registers. Source: docs/reference/tpc.md section 7.1."""


def read_register(text: str, dialect: Dialect) -> Register | Special | None:
    """Read `V4`, `%V4` or `LFSR`; None if the text names no register.

    Raises:
        ValueError: the file lacks the register number; the message names the legal ones.
    """
    name = text.removeprefix("%")
    if name.upper() in SPECIALS:
        return Special(name.upper())
    match = _REGISTER.fullmatch(name)
    if not match:
        return None
    file, index = File(match[1].upper()), int(match[2])
    whole, step = GROUPED.get(file, (file, 1))
    last = dialect.registers[whole] - step
    if index > last or index % step:
        names = f"{file}0, {file}{step} .. {file}{last}" if step > 1 else f"{file}0 .. {file}{last}"
        raise ValueError(f"unknown register {file}{index}; {dialect.name} has {names}")
    return Register(file, index)


def read_mask(text: str) -> DimensionMask | None:
    """Read `b00010`; None if the text is not a dimension mask."""
    match = _MASK.fullmatch(text)
    return DimensionMask(int(match[1], 2)) if match else None


def read_immediate(text: str) -> Immediate | None:
    """Read a 32-bit immediate.

    Integers: decimal, hexadecimal, binary, octal with a leading 0, with a sign before or a `u` after; typed (`i16_-5`,
    `u32_112`, `i32_x12C`), where a negative one is extended to 32 bits. Floats: f32, and with a suffix (`1.0bf`,
    `1.0h`) or a type (`bf16_1.0`) the code of a narrower format. None if the text is not a number. Source:
    docs/reference/tpc.md section 7.2.

    Raises:
        ValueError: a number does not fit, or a float becomes an inexact subnormal; the message states the
            legal range.
    """
    if len(text) > _LONGEST:
        if text[:1].isdigit() or text[:1] in "+-.":
            raise ValueError(f"an immediate has at most {_LONGEST} characters")
        return None
    bare = text.removeprefix("%")
    if match := _TYPED.fullmatch(bare):
        digits = f"0{match[4]}" if match[4][0] in "xX" else match[4]
        return _integer(match[3], digits, int(match[2]), unsigned=match[1] in "uU")
    if match := _INTEGER.fullmatch(text):
        return _integer(match[1], match[2], WORD_BITS, unsigned=bool(match[3]))
    kind, digits = None, text
    if match := _TYPED_FLOAT.fullmatch(bare):
        kind, digits = match[1].lower(), match[2]
    if match := _FLOAT.fullmatch(digits if kind is None or not digits.lstrip("+-").isdecimal() else f"{digits}.0"):
        name = kind or _FLOAT_SUFFIXES[(match[3] or "").lower()]
        return Immediate(_float_code(match[1] == "-", match[2], name))
    return None


def _integer(sign: str, digits: str, bits: int, *, unsigned: bool) -> Immediate:
    """Return an integer of `bits` bits, extended to a word; `digits` may give another base."""
    prefix = digits[:2].lower()
    try:
        if prefix in (_HEXADECIMAL, _BINARY):
            value = int(digits, 0)
        else:
            value = int(digits, 8 if digits.startswith(_OCTAL) and len(digits) > 1 else 10)
    except ValueError:
        raise ValueError(f"{digits} starts with 0 but is not an octal number") from None
    value = -value if sign == "-" else value
    least = 0 if unsigned else -(1 << (bits - 1))
    if not least <= value < 1 << bits or (unsigned and sign == "-"):
        raise ValueError(f"{value} does not fit in {bits} bits: {least} .. {(1 << bits) - 1}")
    return Immediate(value & WORD_MASK)


def _float_code(negative: bool, text: str, name: str) -> int:
    """Return the code of the float nearest to a decimal, ties to even."""
    fmt = FORMATS[name]
    assert isinstance(fmt, FloatFormat)
    exponent = re.search(r"e([-+]?\d+)", text, re.IGNORECASE)
    if exponent is not None and abs(int(exponent[1])) > _FARTHEST:  # far outside; as a fraction it would be huge
        mantissa = text[: exponent.start()].strip("0.")
        if mantissa:
            raise ValueError(_beyond(text, name, large=int(exponent[1]) > 0))
        text = "0"
    exact = Fraction(text)
    code = _nearest(exact, fmt)
    if code >= fmt.exponent_mask << fmt.fraction_bits:
        raise ValueError(_beyond(text, name, large=True))
    smallest = 1 << fmt.fraction_bits
    unit = Fraction(2) ** (1 - fmt.bias - fmt.fraction_bits)
    if exact > 0 and code < smallest and code * unit != exact:
        raise ValueError(_beyond(text, name, large=False))
    return code | (fmt.sign_bit if negative else 0)


def _nearest(exact: Fraction, fmt: FloatFormat) -> int:
    """Return the code of the nearest float; infinity's or more if it is beyond the largest."""
    if not exact:
        return 0
    power = exact.numerator.bit_length() - exact.denominator.bit_length()
    power -= exact < Fraction(2) ** power
    power = max(power, 1 - fmt.bias)
    steps = round(exact / Fraction(2) ** (power - fmt.fraction_bits))  # to even
    return ((power + fmt.bias - 1) << fmt.fraction_bits) + steps


def _beyond(text: str, name: str, *, large: bool) -> str:
    return f"{text} exceeds the largest {name}" if large else f"{text} is below the smallest normal {name}, and inexact"

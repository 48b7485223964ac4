"""Declared look-up tables and the values of the LOOKUP family; elementary functions if tables are unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, ReadError, Span
from castsim.isa.formats import FORMATS, Codes
from castsim.isa.tpc.forms import Feature
from castsim.isa.tpc.program import WORD_BITS, Declaration, Immediate, TableDeclaration, TpcInstruction, TpcProgram
from castsim.machines.vliw.semantics.operands import (
    Effects,
    OperandValues,
    State,
    Unit,
    Value,
    Vector,
    elements,
    merged,
    vector_of,
)
from castsim.machines.vliw.semantics.special_results import UnstatedError
from castsim.numerics.blocks import code_dtype
from castsim.targets.vliw import VliwTarget

# The look-up tables of a program: which are declared, and what they hold (docs/reference/tpc.md section 5.5).

LOOKUPS = ("lookup", "lookup_c0", "lookup_c1c2", "lookup_1c", "lookup_2c")
"""The mnemonics that read tables."""


@dataclass(frozen=True, slots=True)
class DeclaredTables:
    """The declared tables by `lut_ptr` or not and number; `codes` are their elements by name, shape (entries, values).

    A run without values has no codes. `memory` reads bytes of global memory, from which a program may build tables.
    """

    declared: Mapping[tuple[bool, int], TableDeclaration] = field(default_factory=dict)
    codes: Mapping[str, Codes] = field(default_factory=dict)
    memory: Callable[[int, int, Span], NDArray[np.uint8]] | None = None

    @classmethod
    def of(cls, declarations: Iterable[Declaration], codes: Mapping[str, Codes] | None = None) -> DeclaredTables:
        """Return the tables among declarations; `codes` are elements by name in C order."""
        tables = [declaration for declaration in declarations if isinstance(declaration, TableDeclaration)]
        shaped = {
            declaration.name: (codes or {})[declaration.name].reshape(declaration.entries, declaration.columns)
            for declaration in tables
            if declaration.name in (codes or {})
        }
        return cls({(declaration.by_pointer, declaration.function): declaration for declaration in tables}, shaped)

    def find(self, number: int, *, by_pointer: bool) -> TableDeclaration:
        """Return the table of a function id, or of the id in the S register of `lut_ptr`.

        Raises:
            ReadError: the table is not declared.
        """
        entry = self.declared.get((by_pointer, number))
        if entry is not None:
            return entry
        which = f"lut_ptr {number}" if by_pointer else f"function id {number}"
        some = "lut_ptr " if by_pointer else ""
        entries = sorted(self.declared.items(), key=lambda item: item[0])
        legal = [f"{'lut_ptr ' if pointed else ''}{pointer} ({table.name})" for (pointed, pointer), table in entries]
        raise ReadError(
            f"no table is declared for {which}",
            legal=legal or (f"// castsim: table NAME {some}{number} FORMAT [ENTRIES]",),
        )

    def any(self) -> bool:
        """Return whether a table has values: one of zeros is not known."""
        return any(codes.any() for codes in self.codes.values())


NO_TABLES = DeclaredTables()
"""No declarations: look-ups are read and timed, but not checked."""


def uses_tables(program: TpcProgram) -> bool:
    """Return whether a program has look-ups: their cache occupies most of the local vector memory."""
    return any(
        instruction is not None and instruction.mnemonic in LOOKUPS
        for bundle in program.bundles
        for instruction in bundle.slots
    )


def function_of(instruction: TpcInstruction) -> int | None:
    """Return the function id of a look-up; None if it is in an S register."""
    operand = instruction.operand("function")
    return operand.value if isinstance(operand, Immediate) else None


_HALVED_ENTRIES = 64
"""Entries of the tables of which `upper_half` names the second half."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The meaning of a type word: bits of an entry's value, bits of a lane, and the number of the part that is read."""

    entry_bits: int
    lane_bits: int
    part: int = 0
    parts: int = 1


_BY_WIDTH = {"bv32": _Reading(32, 32), "bv16": _Reading(16, 16)}
_BY_PART = {
    "bv32": _Reading(32, 32),
    **{f"bv16_{name}": _Reading(32, 16, part, 2) for part, name in enumerate(("low", "high"))},
    **{f"bv8_{part}": _Reading(32, 8, part, 4) for part in range(4)},
}
_BYTES = {f"bv8_{part}": _Reading(16, 8, part, 2) for part in range(2)}

_FIRST = {"lookup": (0, 1), "lookup_c0": (0, 1), "lookup_1c": (0, 1), "lookup_c1c2": (1, 2), "lookup_2c": (1, 2)}
"""The first value of a whole entry that a mnemonic reads, and the number of values."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of entries in a tensor: values of an entry, bits of a value, entries of a line, bytes of a line."""

    values: int
    bits: int
    per_line: int
    line_bytes: int


_WHOLE = _Layout(3, 32, 10, 128)
_LAYOUTS = {
    ("lookup", "bv32"): _Layout(1, 32, 1, 4),
    ("lookup_1c", "bv32"): _WHOLE,
    ("lookup_2c", "bv32"): _WHOLE,
    ("lookup_2c", "bv16"): _Layout(2, 16, 1, 4),
}
_MOST_ENTRIES, _TABLE_BYTES = 256, 256
"""Maximum number of entries of a table, and bytes per unit of a table's number."""


@dataclass(frozen=True, slots=True)
class Lookup(Unit):
    """A prepared look-up."""

    tables: DeclaredTables
    reading: _Reading

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the values of the entries that the lanes name.

        Raises:
            ReadError: the table is not declared.
            IllegalError: the table lacks the entries that the look-up reads, or a lane names none of them.
        """
        bound = self._bound(operands, state)
        table = self._table(operands) if bound is None else bound[0]
        indices = operands.sources["src_a"]
        assert isinstance(indices, np.ndarray)
        entries = self._entries(table, indices.view(np.uint8))
        codes = self.tables.codes.get(table.name) if bound is None else bound[1]
        if codes is None:
            raise IllegalError(f"table {table.name} has no values in this run", legal=(f"--in {table.name}=FILE.npy",))
        first, count = columns_of(self.instruction, table)
        registers = [self._placed(codes[:, first + k], entries, k, operands) for k in range(count)]
        result: Value = tuple(registers) if count > 1 else registers[0]
        return Effects(result)

    def _table(self, operands: OperandValues) -> TableDeclaration:
        function = function_of(self.instruction)
        if function is not None:
            return self.tables.find(function, by_pointer=False)
        pointer = operands.sources["src_b"]
        assert isinstance(pointer, int)
        table = self.tables.find(pointer, by_pointer=True)
        check_use(self.instruction, table, self.reading)
        return table

    def _bound(self, operands: OperandValues, state: State) -> tuple[TableDeclaration, Codes] | None:
        """Return the table that a program has made of a tensor; None if it is declared, or no base is set.

        The register holds the number of the table, in units of 256 bytes, above two bits that give the number of
        entries; the
        tables of its group have. Source: docs/reference/tpc.md section 5.5.

        Raises:
            TileError: the table is in no tensor.
            UnstatedError: no source states the layout of its entries there.
        """
        pointer = operands.sources.get("src_b")
        if function_of(self.instruction) is not None or not isinstance(pointer, int) or self.tables.memory is None:
            return None
        entries = _MOST_ENTRIES >> (pointer & 3)
        low, high = (state.configuration.get(f"table_base_{entries}_{half}", 0) for half in ("low", "high"))
        if (True, pointer) in self.tables.declared or not low | high:
            return None
        where = (high << WORD_BITS | low) + _TABLE_BYTES * (pointer >> 2)
        layout = _LAYOUTS.get((self.instruction.mnemonic, str(self.instruction.switch("entries"))))
        if layout is None:
            what = f"{self.instruction.mnemonic} {str(self.instruction.switch('entries')).upper()}"
            message = f"no source documents how entries of {what} are laid out in a tensor"
            raise UnstatedError(message, span=self.instruction.span, legal=("a declared table",))
        lines = -(-entries // layout.per_line)
        data = self.tables.memory(where, lines * layout.line_bytes, self.instruction.span)
        words = data.view(f"<u{layout.bits // 8}").reshape(lines, -1)[:, : layout.per_line * layout.values]
        codes = words.reshape(-1, layout.values)[:entries]
        shape = (layout.values, entries)
        return TableDeclaration(f"{where:#x}", True, pointer, f"u{layout.bits}", shape, None), codes

    def _entries(self, table: TableDeclaration, indices: Vector) -> NDArray[np.int64]:
        """Return the entry of every lane that is read."""
        reading = self.reading
        lanes = indices.view(f"<u{reading.lane_bits // 8}")[reading.part :: reading.parts].astype(np.int64)
        halved = self.instruction.switch("upper_half") == 1
        size = table.entries // 2 if halved else table.entries
        beyond = lanes >= size
        if beyond.any() and self.target.option("lookup_beyond") == "refuse":
            lane = int(np.flatnonzero(beyond)[0])
            index = lane * reading.parts + reading.part
            message = f"lane {index} selects entry {lanes[lane]} of table {table.name}, which has {size} here"
            raise IllegalError(f"{message} (option lookup_beyond)", legal=(f"0 .. {size - 1}",))
        lanes = lanes % size
        return lanes + size if halved else lanes

    def _placed(self, column: Codes, entries: NDArray[np.int64], number: int, operands: OperandValues) -> Vector:
        """Return a register with the values in the lanes that are written."""
        reading = self.reading
        lane = code_dtype(FORMATS[f"u{reading.lane_bits}"])
        values = (column[entries].astype(np.uint64) >> np.uint64(reading.part * reading.lane_bits)).astype(lane)
        if reading.parts == 1:
            return np.ascontiguousarray(values, lane.newbyteorder("<")).view(np.uint8)
        income = operands.income[number] if isinstance(operands.income, tuple) else operands.income
        assert isinstance(income, np.ndarray)
        result: Vector = income.view(np.uint8).copy()
        result.view(lane.newbyteorder("<"))[reading.part :: reading.parts] = values
        return result


def columns_of(instruction: TpcInstruction, table: TableDeclaration) -> tuple[int, int]:
    """Return the first value of an entry that a look-up reads, and how many; a short table is read completely."""
    first, count = _FIRST[instruction.mnemonic]
    return (0 if table.columns == count else first), count


def prepare_lookup(instruction: TpcInstruction, target: VliwTarget, tables: DeclaredTables) -> Lookup:
    """Check a look-up, and its table if the program declares any.

    Raises:
        UnstatedError: no source documents its words.
        IllegalError: the table has other entries.
        ReadError: tables are declared, but not this one.
    """
    reading = _reading(instruction, target)
    if instruction.switch("sbcd") == 1:
        raise UnstatedError("no source documents what sbcd looks up", legal=(f"{instruction.mnemonic} without sbcd",))
    function = function_of(instruction)
    if tables.declared and function is not None:
        check_use(instruction, tables.find(function, by_pointer=False), reading)
    return Lookup(instruction, target, tables, reading)


def _reading(instruction: TpcInstruction, target: VliwTarget) -> _Reading:
    word = str(instruction.switch("entries"))
    if Feature.TYPED_LOOKUP not in target.dialect.features:
        return _BY_PART[word]
    if word in _BY_WIDTH:
        return _BY_WIDTH[word]
    if target.option("lookup_bytes") == "refuse":
        message = f"no source documents what {word.upper()} takes from an entry (option lookup_bytes)"
        raise UnstatedError(message, legal=("BV32", "BV16"))
    return _BYTES[word]


def check_use(instruction: TpcInstruction, table: TableDeclaration, reading: _Reading) -> None:
    """Check a table against a look-up of it.

    Raises:
        IllegalError: values have another width, an entry has too few values, or `upper_half` is used without halves.
    """
    what = f"{instruction.mnemonic} {str(instruction.switch('entries')).upper()}"
    bits = FORMATS[table.format].bits
    location = f"table {table.name} (line {table.span.line})"
    if bits != reading.entry_bits:
        legal = [name for name, fmt in FORMATS.items() if fmt.bits == reading.entry_bits and name in _NATIVE]
        message = f"{what} reads {reading.entry_bits}-bit values, but {location} has {table.format}"
        raise IllegalError(message, legal=legal)
    first, count = _FIRST[instruction.mnemonic]
    whole = (count,) if bits < 32 or instruction.mnemonic == "lookup" else (count, first + count if first else 3)
    if table.columns not in whole:
        legal = [f"[{table.entries}]" if size == 1 else f"[{size}, {table.entries}]" for size in whole]
        message = f"{what} needs {count} values per entry, but {location} has {table.columns}"
        raise IllegalError(message, legal=legal)
    if instruction.switch("upper_half") == 1 and table.entries != _HALVED_ENTRIES:
        message = f"upper_half needs a table of {_HALVED_ENTRIES} entries; {location} has {table.entries}"
        raise IllegalError(message, legal=(f"{instruction.mnemonic} without upper_half",))


_NATIVE = ("f32", "i32", "u32", "bf16", "f16", "i16", "u16")


# Correctly rounded f32 values of elementary functions: what a result is where the vendor's tables are not known.
#
# Nearly all come from f64; where that lies too near to the middle of two f32 numbers, decimal arithmetic decides.

_Words = NDArray[np.uint32]
_NAN = 0x7FFFFFFF
_DOUBT = 2.0**-47
"""Far above the relative error of the f64 functions."""
_DIGITS = 130
"""Enough for the reduction of the largest f32 number by pi, and 90 more."""
_MOST_POWER = 256
"""Powers up to here are computed exactly."""


def _pi() -> Decimal:
    """Return pi by Machin's formula."""
    return 4 * (4 * _atan_small(Decimal(1) / 5) - _atan_small(Decimal(1) / 239))


def _atan_small(x: Decimal) -> Decimal:
    """Return the arc tangent of a small number by its series."""
    total, power, n = x, x, 1
    while abs(power) > Decimal(10) ** -(_DIGITS + 5):
        power *= -x * x
        n += 2
        total += power / n
    return total


def _sin_cos(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return sine and cosine, after the reduction to within pi by whole turns."""
    turn = 2 * _pi()
    r = x - turn * (x / turn).to_integral_value()
    sine, cosine, term, n = Decimal(0), Decimal(0), Decimal(1), 0
    while abs(term) > Decimal(10) ** -_DIGITS or n < 8:
        if n % 2:
            sine += term if n % 4 == 1 else -term
        else:
            cosine += term if n % 4 == 0 else -term
        n += 1
        term *= r / n
    return sine, cosine


def _acos(x: Decimal) -> Decimal:
    """Return the arc cosine: twice the arc tangent of sqrt((1 - x) / (1 + x)), halved to where the series is short."""
    if x == -1:
        return _pi()
    t = ((1 - x) / (1 + x)).sqrt()
    factor = 2
    while t > Decimal("0.1"):
        t = t / (1 + (1 + t * t).sqrt())
        factor *= 2
    return factor * _atan_small(t)


def _tanh(x: Decimal) -> Decimal:
    power = (2 * x).exp()
    return (power - 1) / (power + 1)


def _pow(x: Decimal, y: Decimal) -> Decimal | Fraction:
    if y == y.to_integral_value() and abs(y) <= _MOST_POWER:
        return Fraction(x) ** int(y)
    power = (abs(x).ln() * y).exp()
    return -power if x < 0 and y % 2 else power


_EXACT: Mapping[str, Callable[..., Decimal | Fraction]] = {
    "acos": _acos,
    "asin": lambda x: _pi() / 2 - _acos(x),
    "asinh": lambda x: (abs(x) + (x * x + 1).sqrt()).ln().copy_sign(x),
    "cos": lambda x: _sin_cos(x)[1],
    "div": lambda x, y: Fraction(x) / Fraction(y),
    "exp": lambda x: x.exp(),
    "pow": _pow,
    "pow2": lambda x: _pow(Decimal(2), x),
    "reciprocal": lambda x: 1 / Fraction(x),
    "rsqrt": lambda x: 1 / x.sqrt(),
    "sin": lambda x: _sin_cos(x)[0],
    "sqrt": lambda x: x.sqrt(),
    "tan": lambda x: _sin_cos(x)[0] / _sin_cos(x)[1],
    "tanh": _tanh,
}

_WIDE: Mapping[str, Callable[..., NDArray[np.float64]]] = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "cos": np.cos,
    "div": np.divide,
    "exp": np.exp,
    "pow": np.power,
    "pow2": np.exp2,
    "reciprocal": np.reciprocal,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
KNOWN = tuple(_WIDE)
"""The functions that this module computes."""
BINARY = ("div", "pow")
"""The functions of two operands."""


def computed_by(name: str) -> str:
    """Return the function for a name in the vendor's library: `v_exp_fast_f32` is `exp`."""
    return next(prefix for prefix in KNOWN if name.removeprefix("v_").startswith(f"{prefix}_"))


def rounded(function: str, *given: Codes) -> _Words:
    """Return the codes of the f32 nearest to a function's values, ties to even; operands are codes of f32.

    NaN is 0x7fffffff. Subnormal numbers are preserved.
    """
    numbers = [np.asarray(argument, "<u4").view("<f4").astype(np.float64) for argument in given]
    with np.errstate(all="ignore"):
        values = np.asarray(_WIDE[function](*numbers), np.float64)
        nearest = values.astype("<f4")
        doubtful = (values * (1 - _DOUBT)).astype("<f4") != (values * (1 + _DOUBT)).astype("<f4")
        doubtful |= np.isfinite(values) & (np.abs(values) < 2.0**-1020) & (values != 0)
    words: _Words = nearest.view("<u4").copy()
    words[np.isnan(values)] = _NAN
    for lane in np.flatnonzero(doubtful & np.isfinite(values)):
        words[lane] = _decided(function, tuple(float(argument[lane]) for argument in numbers), nearest[lane])
    return words


def _decided(function: str, given: tuple[float, ...], near: np.float32) -> int:
    """Return the code nearest to a value by decimal arithmetic, starting from a neighbour computed in f64."""
    with localcontext() as context:
        context.prec = _DIGITS
        value = Fraction(_EXACT[function](*map(Decimal, given)))
    with np.errstate(all="ignore"):
        around = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    finite = [candidate for candidate in around if np.isfinite(candidate)]
    distances = [abs(Fraction(float(candidate)) - value) for candidate in finite]
    least = min(distances)
    best = [candidate for candidate, distance in zip(finite, distances, strict=True) if distance == least]
    codes = sorted((int(candidate.view(np.uint32)) for candidate in best), key=lambda code: code & 1)
    return codes[0]


@dataclass(frozen=True, slots=True)
class Rounded(Unit):
    """castsim's own instruction `rounded.f32`, prepared: a library function without its table.

    The result is that of the earlier instructions for a table with values, otherwise the function of the operands,
    correctly rounded.
    """

    tables: DeclaredTables

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the values of all lanes."""
        number = function_of(self.instruction)
        assert number is not None
        table = self.tables.declared.get((False, number))
        codes = None if table is None else self.tables.codes.get(table.name)
        if codes is not None and codes.any():
            return Effects(merged(operands.sources["src_c"], operands))
        fmt = FORMATS["f32"]
        function = str(self.instruction.switch("computes"))
        roles = ("src_a", "src_b") if function in BINARY else ("src_a",)
        words = rounded(function, *(elements(operands.sources[role], fmt) for role in roles))
        return Effects(merged(vector_of(words, fmt), operands))

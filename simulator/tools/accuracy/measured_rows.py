"""Reader of tables of measured cycles: CSV with a header line, columns by name, in any order.

Required: `src` and `dst`, or one `dtype` for both; `rows`, `cols`, `measured_cycles`. Optional: `op` (default: a
cast), `op_params`, `impl_kind`, `valid_rows`, `valid_cols`, `path`, `outer_iters`,
`inner_iters_label`, `peer_predicted_cycles`, `data_quality`, `convention`, `options` (`name=value`, several separated
by `;`), `in_place`, `runtime_valid`, `fitted` (whether a fact of the target was fitted to the row; default:
no) and `source_kind` (source of the cycles); for loads and stores `transfers` and `layout`; for single
instructions `addresses` and `block_stride`; `measured_high` for a published range. All other columns are carried
along. A table with a column `program` measures programs of vector instructions, one with a column `kernel` kernels in
TPC-C on all cores: a file beside the table, its `tensors` (`x=f32[64,2]; y=out:f32[64,2]`), `index_space`. Launches
state `loaded_bytes` and `stored_bytes` of a tile.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from castsim.execution.interpreter.vector_unit import LOAD as BODY_LOAD
from castsim.execution.interpreter.vector_unit import STORE as BODY_STORE
from castsim.execution.interpreter.vector_unit import Body
from castsim.execution.run_limits import MAX_CYCLES
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import CastsimError, ReadError, Span, closest
from castsim.isa.formats import Format
from castsim.isa.pto.micro_words import BARRIERS
from castsim.isa.pto.value_types import MicroOperation
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.isa.reading import read_text
from castsim.targets.description import SourceKind
from castsim.targets.loader import format_of

# Rows that measure programs of vector instructions: a body, and the loops around it.
#
# Columns: `case`, `dtype`, `loops`, `trips`, `unroll`, `measured_cycles`, `between_loops` (a barrier) and `program`,
# in which `r=vmul a b` computes, `a=vlds A` loads from a buffer, `vsts B r` stores to one, `mem_bar VST_VLD` orders
# accesses, and `4 x (a=vadds a)` repeats.

PROGRAM = "program"
"""The column that marks a table of programs rather than tiles."""

SCOPE_COLUMNS = (PROGRAM, "dtype", "trips", "measured_cycles")
"""Columns required for a comparison."""

KERNEL = "kernel"
"""The column that marks a table of kernels rather than tiles, and the operation of its rows."""

KERNEL_COLUMNS = (KERNEL, "dtype", "tensors", "index_space", "measured_cycles")
"""Columns required for a comparison."""

SCOPE = "vecscope"
"""The operation of rows about programs of vector instructions."""

_REPEATED = re.compile(r"(\d{1,5}) x \((.*)\)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,8}")
_STEP = re.compile(r"(?:(?P<result>\w+) *= *)?(?P<mnemonic>[a-z]\w*)(?P<operands>(?: +\w+)*)")


def body_of(text: str, loops: int, trips: int, unroll: int, element: Format, between: str, span: Span) -> Body:
    """Read the program of a row.

    Raises:
        ReadError: the text has an invalid instruction; the error has the position of the cell.
    """
    steps = tuple(step for part in text.split(";") for step in _steps(part.strip(), span))
    return Body(loops, trips, unroll, steps, element.storage_bits, between)


def _steps(text: str, span: Span) -> Iterator[MicroOperation]:
    repeated = _REPEATED.fullmatch(text)
    times, text = (int(repeated[1]), repeated[2]) if repeated else (1, text)
    match = _STEP.fullmatch(text)
    if match is None:
        legal = ("a=vlds A", "r=vmul a b", "vsts B r", "4 x (a=vadds a)", "mem_bar VST_VLD")
        raise ReadError(f"'{text}' is not an instruction of a program", span=span, legal=legal)
    results, mnemonic, operands = (match["result"],), match["mnemonic"], tuple(match["operands"].split())
    if mnemonic in (BODY_LOAD, BODY_STORE) and not operands:
        raise ReadError(f"'{text}' does not name a buffer", span=span)
    words = (("barrier", operands[0]),) if mnemonic == "mem_bar" and operands else ()
    if mnemonic == "mem_bar" and (len(operands) != 1 or operands[0] not in BARRIERS):
        raise ReadError(f"'{text}' does not name a barrier", span=span, legal=BARRIERS)
    for _ in range(times):
        yield MicroOperation(mnemonic, operands, (), results if results[0] else (), attributes=words)


NEEDED = ("src", "dst", "rows", "cols", "measured_cycles")
"""Columns required for a comparison."""

_PREDICTIONS = ("peer_predicted_cycles", "peer_predicted_cycles_at_commit")
_ONE_FORMAT = "dtype"
_CYCLES = "measured_cycles"
_USUAL = "default"
_MEASURED = "measured"
_QUALITIES = (_MEASURED, "measured_dma")
_MOST_DIGITS = 18
"""Maximum number of digits in a cell: far more than any shape or time needs."""
_LAYOUTS = {"": "nd", "nd": "nd", "dn": "dn"}
_ANSWERS = {"": False, "false": False, "true": True}
_FITTED = {"": False, "no": False, "yes": True}
_SOURCES = {"": None, **{str(kind): kind for kind in SourceKind if kind is not SourceKind.ASSUMPTION}}
_Meaning = TypeVar("_Meaning")

CAST = "tcvt"
"""The operation of rows that name none."""

LOAD, STORE = TRANSFERS = ("tload", "tstore")
"""The operations of rows that measure a transfer from or to global memory."""

LAUNCH = "launch"
"""The operation of rows that measure a launch on many cores: `rows` tiles of `cols` numbers on each."""

_OPERATIONS = (CAST, *TRANSFERS, LAUNCH, *VECTOR_OPERATIONS)


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """A kernel in TPC-C, and its launch."""

    path: Path
    tensors: Mapping[str, str]
    index_space: str


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One measured operation. `cells` are the row's own columns and texts, `span` its position in the file.

    `operation` is its mnemonic, `parameters` the table's other remarks on it ('' if all is default), `variant`
    the name of the code variant that ran, if stated; operations other than casts have equal `src` and `dst`.
    Extents in elements; `valid_rows` and `valid_cols` are the whole tile if the table does not say. `path` is `1D`,
    `2D`, or derived from the shape (`contiguous`: full rows, or a single one). `outer_trips` and `inner_trips` are
    the profiled loop trips, None if not stated. `predicted` is the public model's value. `convention`
    names what the cycles count, None if the table does not say; `options` are the target options of the
    measurement; `in_place` rows put the result on the first source; tiles of `runtime_valid` rows leave their valid
    region to run time. A load or store takes `transfers` instructions, each with an equal share of the rows (of the
    columns if `layout` is `dn`).
    A row with `addresses`, of sources and result, measures the first instruction of its operation: `rows` additional
    repeats after as many others, whose sources take blocks `block_stride` apart. `measured_high` ends a range.
    `body` is the program of a row that measures one; its rows are loops and its columns their trips. `kernel` is that
    of a row that measures a kernel. `fitted` rows have
    decided facts of the target and so confirm nothing; `source_kind` is None if the table does not say.
    """

    cells: Mapping[str, str]
    span: Span
    operation: str
    parameters: str
    variant: str | None
    src: Format
    dst: Format
    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    path: str
    outer_trips: int | None
    inner_trips: int | None
    measured_cycles: int
    predicted: int | None
    convention: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    in_place: bool = False
    runtime_valid: bool = False
    transfers: int = 1
    layout: str = "nd"
    body: Body | None = None
    kernel: MeasuredKernel | None = None
    fitted: bool = False
    source_kind: SourceKind | None = None
    tile_bytes: tuple[int, int] = (0, 0)
    """Bytes that a launch loads and stores for each tile."""
    convention_span: Span | None = None
    """The position of the convention."""
    addresses: tuple[int, ...] = ()
    block_stride: int = 1
    measured_high: int | None = None

    @property
    def name(self) -> str:
        """The row's name in the table, '' if it has none."""
        if self.kernel is not None:
            return self.cells.get(KERNEL, "")
        return self.cells.get("case", "") if self.body is not None or self.operation == LAUNCH else ""

    @property
    def label(self) -> str:
        """Operation and parameters in the form that reports use."""
        return f"{self.operation} {self.parameters}".rstrip()


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """The rows of a file that can be compared, and the number of others: not measured, or of unknown operations."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[MeasuredRow, ...]
    skipped: int


def read_table(path: Path) -> MeasuredTable:
    """Read a table.

    Rows of operations that no target has, without a measured value, or whose `data_quality` does not mark them as
    measured, are counted and left out.

    Raises:
        ReadError: the file is unreadable or empty, a column is missing or duplicate, a cell lacks its number or format,
            or nothing was measured. The error names file, line and column.
    """
    lines = read_text(path, "table").splitlines()
    header = _cells(path, lines, 0) if lines else []
    columns = tuple(name.strip() for name in header)
    _check_columns(path, lines, columns)
    rows: list[MeasuredRow] = []
    skipped: list[_TableLine] = []
    for number in range(1, len(lines)):
        if not lines[number].strip():
            continue
        values = _cells(path, lines, number)
        if len(values) != len(columns):
            message = f"{len(values)} cells, the header names {len(columns)} columns"
            raise ReadError(message, span=Span(str(path), number + 1, 1, lines[number]))
        record = _TableLine(path, number + 1, lines[number], columns, values)
        if record.counts():
            rows.append(record.row())
        else:
            skipped.append(record)
    if not rows:
        for record in skipped:
            record.check_operation()
        raise ReadError(f"table '{path}' has no measured operation")
    return MeasuredTable(str(path), columns, tuple(rows), len(skipped))


def _cells(path: Path, lines: Sequence[str], number: int) -> list[str]:
    """Split one line into cells; a cell cannot span lines."""
    try:
        return next(csv.reader([lines[number]], strict=True), [])
    except csv.Error as error:
        raise ReadError(f"malformed CSV: {error}", span=Span(str(path), number + 1, 1, lines[number])) from None


def _check_columns(path: Path, lines: Sequence[str], columns: tuple[str, ...]) -> None:
    if not lines:
        raise ReadError(f"table '{path}' is empty", legal=NEEDED)
    span = Span(str(path), 1, 1, lines[0], max(1, len(lines[0])))
    instead = ("src", "dst") if _ONE_FORMAT in columns else ()
    needed = SCOPE_COLUMNS if PROGRAM in columns else KERNEL_COLUMNS if KERNEL in columns else NEEDED
    missing = [name for name in needed if name not in (*columns, *instead)]
    if missing:
        raise ReadError(f"no column {', '.join(missing)}", span=span, legal=needed)
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ReadError(f"column {', '.join(twice)} appears twice", span=span)


class _TableLine:
    """One line, its cells by column."""

    def __init__(self, path: Path, line: int, text: str, columns: tuple[str, ...], values: list[str]) -> None:
        self._path, self._line, self._text = path, line, text
        self._columns = columns
        self._cells = {name: value.strip() for name, value in zip(columns, values, strict=True)}
        self._values = values

    @property
    def _operation(self) -> str:
        return (self._cells.get("op") or CAST).lower()

    @property
    def _known(self) -> bool:
        return PROGRAM in self._columns or KERNEL in self._columns or self._operation in _OPERATIONS

    def counts(self) -> bool:
        """Return whether it is a measured operation."""
        measured = self._cells.get("data_quality", _MEASURED) in _QUALITIES
        return self._known and measured and bool(self._cells["measured_cycles"])

    def check_operation(self) -> None:
        """Reject an operation that no target has (ReadError, with its position)."""
        if not self._known:
            legal = closest(self._operation, _OPERATIONS)
            raise ReadError(f"unknown operation '{self._operation}'", span=self._span("op"), legal=legal)

    def row(self) -> MeasuredRow:
        """Return the row with every cell read."""
        if PROGRAM in self._columns:
            return self._scope()
        if KERNEL in self._columns:
            return self._kernel()
        rows, cols = self._count("rows"), self._count("cols")
        valid_rows, valid_cols = self._optional("valid_rows") or rows, self._optional("valid_cols") or cols
        for name, valid, extent in (("valid_rows", valid_rows, rows), ("valid_cols", valid_cols, cols)):
            if valid > extent:
                raise ReadError(f"{name} {valid} exceeds {extent}", span=self._span(name))
        source, destination = (_ONE_FORMAT, _ONE_FORMAT) if _ONE_FORMAT in self._columns else ("src", "dst")
        parameters, places = self._cells.get("op_params", ""), self._cells.get("addresses", "")
        if places:
            stride = self._optional("block_stride") or 1
            parameters = places if stride == 1 else f"{places} stride {stride}"
        return MeasuredRow(
            cells=self._cells,
            span=self._span(source),
            operation=self._operation,
            parameters="" if parameters == _USUAL else parameters,
            variant=self._cells.get("impl_kind") or None,
            src=self._format(source),
            dst=self._format(destination),
            rows=rows,
            cols=cols,
            valid_rows=valid_rows,
            valid_cols=valid_cols,
            path=self._path_class(rows, cols, valid_cols),
            outer_trips=self._optional("outer_iters"),
            inner_trips=self._optional("inner_iters_label"),
            measured_cycles=self._cycles(),
            predicted=next(filter(None, map(self._prediction, _PREDICTIONS)), None),
            convention=self._cells.get("convention") or None,
            options=self._options(),
            in_place=self._word("in_place", _ANSWERS),
            runtime_valid=self._word("runtime_valid", _ANSWERS),
            transfers=self._optional("transfers") or 1,
            layout=self._word("layout", _LAYOUTS),
            fitted=self._word("fitted", _FITTED),
            source_kind=self._word("source_kind", _SOURCES),
            tile_bytes=(self._optional("loaded_bytes") or 0, self._optional("stored_bytes") or 0),
            convention_span=self._span("convention"),
            addresses=self._addresses(),
            block_stride=self._optional("block_stride") or 1,
            measured_high=self._optional("measured_high"),
        )

    def _scope(self) -> MeasuredRow:
        """Return a program of vector instructions."""
        element, loops, trips = self._format(_ONE_FORMAT), self._optional("loops") or 1, self._count("trips")
        between, unroll = self._cells.get("between_loops", ""), self._optional("unroll") or 1
        span = self._span(PROGRAM)
        body = body_of(self._cells[PROGRAM], loops, trips, unroll, element, between, span)
        return MeasuredRow(
            cells=self._cells, span=span, operation=SCOPE, parameters="", variant=None, src=element, dst=element,
            rows=loops, cols=trips, valid_rows=loops, valid_cols=trips, path="loops",
            outer_trips=None, inner_trips=None, measured_cycles=self._cycles(),
            predicted=next(filter(None, map(self._prediction, _PREDICTIONS)), None), body=body,
            fitted=self._word("fitted", _FITTED), source_kind=self._word("source_kind", _SOURCES),
        )  # fmt: skip

    def _kernel(self) -> MeasuredRow:
        """Return a kernel, which is checked when it runs, like its launch."""
        element, tensors = self._format(_ONE_FORMAT), {}
        for part in self._cells["tensors"].split(";"):
            name, equals, given = part.partition("=")
            if not equals:
                raise ReadError(f"'{part.strip()}' is not a tensor", span=self._span("tensors"), legal=("x=f32[64,2]",))
            tensors[name.strip()] = given.strip()
        kernel = MeasuredKernel(self._path.parent / self._cells[KERNEL], tensors, self._cells["index_space"])
        return MeasuredRow(
            cells=self._cells, span=self._span(KERNEL), operation=KERNEL, parameters=kernel.path.stem, variant=None,
            src=element, dst=element, rows=1, cols=1, valid_rows=1, valid_cols=1, path="launch", outer_trips=None,
            inner_trips=None, measured_cycles=self._cycles(), predicted=None, kernel=kernel,
            fitted=self._word("fitted", _FITTED), source_kind=self._word("source_kind", _SOURCES),
        )  # fmt: skip

    def _word(self, column: str, meanings: Mapping[str, _Meaning]) -> _Meaning:
        """Return the meaning of a cell's word, in any case; '' if it is missing or empty."""
        text = self._cells.get(column, "").lower()
        if text not in meanings:
            message = f"{column} '{text}' is not a legal value"
            raise ReadError(message, span=self._span(column), legal=filter(None, meanings))
        return meanings[text]

    def _path_class(self, rows: int, cols: int, valid_cols: int) -> str:
        """Return the shape class; the shape decides if the spelling does not begin with one."""
        stated = self._cells.get("path", "").upper()[:2]
        if stated in ("1D", "2D"):
            return stated
        return "1D" if cols == valid_cols or rows == 1 else "2D"

    def _count(self, column: str) -> int:
        text = self._cells[column]
        self._bounded(column, text)
        if not text.isascii() or not text.isdigit() or int(text) == 0:
            message = f"{column} '{text}' is not a positive integer"
            legal = ("whole cycles, without a unit",) if column == _CYCLES else ()
            raise ReadError(message, span=self._span(column), legal=legal)
        return int(text)

    def _options(self) -> dict[str, str]:
        """Return the target options of the measurement."""
        text = self._cells.get("options", "")
        pairs = [pair.partition("=") for pair in text.split(";")] if text else []
        if not all(name and value for name, _, value in pairs):
            raise ReadError(f"options '{text}' must have the form name=value;name=value", span=self._span("options"))
        return {name.strip(): value.strip() for name, _, value in pairs}

    def _addresses(self) -> tuple[int, ...]:
        """Return the addresses of sources and result of an instruction, empty for other rows."""
        texts = self._cells.get("addresses", "").split("/")
        if texts != [""] and not all(_ADDRESS.fullmatch(text) for text in texts):
            legal = ("0x0/0x4100/0x10000",)
            raise ReadError("addresses are hexadecimal, sources first", span=self._span("addresses"), legal=legal)
        return tuple(int(text, 16) for text in texts if text)

    def _cycles(self) -> int:
        """Return the measured cycles: an integer, without a unit, no more than a simulation may take."""
        cycles = self._count(_CYCLES)
        if cycles > MAX_CYCLES:
            message = f"{_CYCLES} {cycles} is more than any simulation may take"
            raise ReadError(message, span=self._span(_CYCLES), legal=(f"1 .. {MAX_CYCLES}",))
        return cycles

    def _optional(self, column: str) -> int | None:
        return self._count(column) if self._cells.get(column) else None

    def _prediction(self, column: str) -> int | None:
        text = self._cells.get(column, "")
        self._bounded(column, text)
        if text and not (text.isascii() and text.isdigit()):
            raise ReadError(f"{column} '{text}' is not an integer", span=self._span(column))
        return int(text) if text else None

    def _bounded(self, column: str, text: str) -> None:
        if len(text) > _MOST_DIGITS:
            raise ReadError(f"{column}: {text[:_MOST_DIGITS]}... is too long for a number", span=self._span(column))

    def _format(self, column: str) -> Format:
        try:
            return format_of(self._cells[column])
        except CastsimError as error:
            raise error.at(self._span(column)) from None

    def _span(self, column: str) -> Span:
        """Return the position of a cell or, without a cell, of the line."""
        if column not in self._columns:
            return Span(str(self._path), self._line, 1, self._text)
        index = self._columns.index(column)
        # Commas inside quotes would shift this: then the line is named from the cell's first occurrence.
        start = sum(len(value) + 1 for value in self._values[:index])
        if '"' in self._text:
            start = max(0, self._text.find(self._values[index]))
        return Span(str(self._path), self._line, start + 1, self._text, max(1, len(self._values[index])))

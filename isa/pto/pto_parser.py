"""Reader of a `.pto` file: the optional module, its functions with inlined calls, and the entry point.

Recursive descent: one function per production, which refuses the wrong token with the legal alternatives.
Grammar: docs/reference/pto.md section 3.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from enum import Enum

from castsim.isa.dataclass import dataclass, field, fields, replace
from castsim.isa.errors import (
    MAX_STATEMENTS,
    CastsimError,
    ErrorList,
    IllegalError,
    LimitError,
    ReadError,
    Span,
    closest,
)
from castsim.isa.pto.control_flow import is_operation, read_any_region, read_region
from castsim.isa.pto.lexer import PtoSource, TokenKind, unknown_character
from castsim.isa.pto.micro_forms import check_scopes
from castsim.isa.pto.program import (
    ENTRY_MARKS,
    RECORDED,
    REGION_FIELDS,
    TARGET_ARCH,
    Argument,
    Call,
    Function,
    Operation,
    Program,
    RefusedFunction,
    Return,
    Type,
    nodes,
)
from castsim.isa.pto.statement_forms import Attributes, read_attributes, sorted_texts
from castsim.isa.pto.statement_reader import CLOSING, FollowUpError, NameScope, PtoReader
from castsim.isa.pto.types import format_type
from castsim.isa.pto.vector_operations import is_known, unknown_operation

# Calls replaced by the bodies of the functions called, so that what follows sees one function without calls.
#
# The values of a body are renamed: one call's tiles are not another's. Operands stand for the callee's arguments, what
# it returns for the results of the call.

_VALUES = frozenset(
    (
        "result", "results", "operand", "operands", "source", "slot", "offset", "offsets", "sizes", "valid", "address",
        "valid_row", "valid_col", "pointer", "shape", "strides", "view", "inputs", "outputs", "dst", "src", "tmp",
        "tile", "rows", "cols", "variable", "lower", "upper", "step", "carried", "initial", "condition", "values",
        "base", "value", "arguments", "number",
    )
)  # fmt: skip
"""Fields of operations that hold names of values, where they hold text."""

_DEEPEST = 64
_MOST = 1_000_000
"""Operations that calls may become: calls within calls multiply."""

Names = Mapping[str, str]


def calls(body: Sequence[Operation]) -> Iterator[Call]:
    """Yield the calls of a region and of the regions in it."""
    yield from (node for node in nodes(body) if isinstance(node, Call))


def inlined(program: Program, function: Function) -> Function:
    """Return the function with all calls inlined; itself if it has none.

    Raises:
        ReadError: the function does not exist, or operands or results have other types.
        IllegalError: a function has no body, or calls itself.
        CastsimError: a function could not be read.
    """
    if next(calls(function.body or ()), None) is None:
        return function
    body = _Inliner(program).body(function.body or (), {}, (function.name,))
    return replace(function, body=body)


@dataclass(slots=True)
class _Inliner:
    program: Program
    count: int = 0
    left: int = _MOST
    functions: dict[str, Function] = field(init=False)

    def __post_init__(self) -> None:
        self.functions = {function.name: function for function in self.program.functions}

    def body(
        self, body: Sequence[Operation], names: Names, active: tuple[str, ...], prefix: str = ""
    ) -> tuple[Operation, ...]:
        """Return a region with its values renamed and its calls replaced; `active` are the functions around it."""
        renamed = dict(names)
        operations: list[Operation] = []
        for node in body:
            self.left -= 1
            if self.left < 0:
                raise LimitError(f"calls make more than {_MOST} operations", span=node.span)
            if isinstance(node, Call):
                operations += self._call(node, renamed, active, prefix)
            else:
                operations.append(self._renamed(node, renamed, active, prefix))
        return tuple(operations)

    def _call(self, node: Call, renamed: dict[str, str], active: tuple[str, ...], prefix: str) -> tuple[Operation, ...]:
        callee = self._callee(node, active)
        self.count += 1
        inner = f"{callee.name}.{self.count}."
        operands = [renamed.get(name, prefix + name) for name in node.operands]
        given = {argument.name: operand for argument, operand in zip(callee.arguments, operands, strict=True)}
        *body, last = self.body(callee.body or (), given, (*active, callee.name), inner)
        assert isinstance(last, Return)
        renamed.update(zip(node.results, last.values, strict=True))
        return tuple(body)

    def _callee(self, node: Call, active: tuple[str, ...]) -> Function:
        """Return the function that is called.

        Raises:
            ReadError, IllegalError: it cannot be.
        """
        for refused in self.program.refused:
            if refused.name == node.callee:
                raise refused.error
        callee = self.functions.get(node.callee)
        if callee is None:
            near = [f"@{name}" for name in closest(node.callee, self.functions)]
            raise ReadError(f"no function @{node.callee}", span=node.span, legal=near)
        if callee.body is None:
            raise IllegalError(f"@{callee.name} is declared without a body, so castsim cannot run it", span=node.span)
        if callee.name not in active and len(active) > _DEEPEST:
            raise IllegalError(f"calls are nested more than {_DEEPEST} levels deep", span=node.span)
        if callee.name in active:
            path = " calls ".join(f"@{name}" for name in (*active, callee.name))
            raise IllegalError(f"calls are recursive: {path}", span=node.span)
        _check_types(
            node.operand_types, tuple(argument.type for argument in callee.arguments), "takes", callee.name, node.span
        )
        _check_types(node.result_types, callee.result_types, "returns", callee.name, node.span)
        return callee

    def _renamed(self, node: Operation, renamed: dict[str, str], active: tuple[str, ...], prefix: str) -> Operation:
        changed: dict[str, object] = {}
        for attribute in fields(node):
            value = getattr(node, attribute.name)
            if attribute.name in REGION_FIELDS:
                changed[attribute.name] = self.body(value, renamed, active, prefix)
            elif attribute.name in _VALUES and isinstance(value, str) and not isinstance(value, Enum):
                changed[attribute.name] = renamed.get(value, prefix + value)
            elif attribute.name in _VALUES and isinstance(value, tuple):
                changed[attribute.name] = tuple(renamed.get(name, prefix + name) for name in value)
        return replace(node, **changed)  # type: ignore[arg-type]


def _check_types(given: Sequence[Type], wanted: Sequence[Type], verb: str, name: str, span: Span) -> None:
    if tuple(given) != tuple(wanted):
        shown = ", ".join(format_type(kind) for kind in wanted) or "nothing"
        raise ReadError(f"@{name} {verb} {shown}", span=span)


# Going on behind a statement that cannot be read, so that all errors of a text are found in one pass.
#
# A statement that fails is left at the next one: at a line, or behind a sign, where one begins. What it should have
# defined is unknown from there on, and statements that use it are left out without a word, as whatever is wrong with
# them may be its fault. The region of a loop or condition whose head fails is read all the same.

_DIALECTS = ("pto.", "scf.", "arith.", "func.", "memref.", "math.", "index.", "cf.", "llvm.", "vector.", "affine.")
_BARE_NAMES = ("return", "call")
_CONTINUING = frozenset(
    (
        "ins", "outs", "attributes", "iter_args", "to", "step", "else", "do", "offsets", "sizes", "shape", "strides",
        "layout", "addr", "valid_row", "valid_col", "nburst", "loop", "pad", "l2_cache_ctl", "loc", "rmode",
    )
)  # fmt: skip
"""Words that continue a statement at the beginning of a line."""
_JOINS = ("else", "do")
"""Words between two regions of one statement."""


class Recovery:
    """The errors of one function, and the resumption after each."""

    def __init__(self, reader: PtoReader, read_region: Callable[[], object]) -> None:
        """`read_region` reads the rest of a region after its opening brace, with any terminator."""
        self.errors = ErrorList()
        self._reader = reader
        self._read_region = read_region

    def fail(self, start: int, before: int, regions: int, depth: int, error: CastsimError) -> None:
        """Record the error of the statement that begins at token `start`, and continue at the next one.

        `before` is the number of failures before the statement: an error after one inside its own region may be a
        consequence and is not reported. `regions` and `depth` are those around the statement.

        Raises:
            CastsimError: reading cannot continue.
        """
        reader = self._reader
        failed_at = reader.position
        inside = reader.failures != before
        reader.failures += 1
        if isinstance(error, LimitError) or reader.hopeless:
            raise error
        reader.scope.leave_to(regions)
        reader.depth = depth
        resumed, brace = self._next(start, failed_at)
        end = resumed if brace is None else brace
        errors = self._told(start, failed_at, end, error)
        if not inside and not all(map(self.errors.add, errors)):
            reader.hopeless = True
            raise error
        self._forget(start, end, whole=brace is not None)
        reader.position = resumed
        if brace is not None:
            self._regions_from(brace)

    def _told(self, start: int, failed_at: int, end: int, error: CastsimError) -> list[CastsimError]:
        """Return the message about a statement: its error, or the characters that begin no token."""
        unknown = self._reader.unknown
        unknown_indices = unknown[bisect_left(unknown, start) : bisect_left(unknown, end)]
        characters: list[CastsimError] = [
            unknown_character(self._reader.source, self._reader.starts[index]) for index in unknown_indices
        ]
        if isinstance(error, FollowUpError) or (unknown_indices and unknown_indices[0] <= failed_at):
            return characters
        return [error, *characters, *self._hidden(start, failed_at, end)]

    def _hidden(self, start: int, failed_at: int, end: int) -> Iterator[CastsimError]:
        """Yield further errors in the line of a refused statement: an unknown operation, undefined names."""
        reader = self._reader
        name = next((index for index in range(start, end) if reader.kinds[index] is TokenKind.WORD), end)
        if name < failed_at and reader.texts[name + 1] in ("ins", "outs"):
            dialect, _, mnemonic = reader.texts[name].partition(".")
            if dialect == "pto" and not is_operation(reader.texts[name]) and not is_known(mnemonic):
                unknown = unknown_operation(mnemonic)
                yield ReadError(unknown.message, span=reader.span(name), legal=unknown.legal)
        line = reader.span(start).line
        for index in range(max(failed_at, name) + 1, end):
            text = reader.texts[index]
            if reader.span(index).line != line:
                return
            if reader.kinds[index] is TokenKind.VALUE and ":" not in text and reader.equals_behind(index) is None:
                try:
                    reader.scope.find(reader.scope.resolve(text[1:]), reader.starts[index])
                except FollowUpError:
                    continue
                except ReadError as error:
                    yield error

    def _forget(self, start: int, end: int, *, whole: bool) -> None:
        """Mark the definitions of a statement as unknown: its results, or all names in a head (`whole`)."""
        reader = self._reader
        for index in range(start, end):
            text = reader.texts[index]
            if text == "=" and not whole:
                return
            if reader.kinds[index] is TokenKind.VALUE:
                reader.scope.forget(text[1:].partition(":")[0].partition("#")[0], reader.starts[start])
            elif not whole and text != ",":
                return

    def _regions_from(self, brace: int) -> None:
        """Read the regions of a statement whose head failed, and the text between and after them."""
        reader = self._reader
        while True:
            reader.position = brace + 1
            if reader.kinds[reader.position] is TokenKind.BLOCK:
                label = reader.position
                while not self._is_fresh(reader.position + 1) and reader.kinds[reader.position] is not TokenKind.END:
                    reader.position += 1
                self._forget(label, reader.position, whole=True)
                reader.position += 1
            regions = reader.scope.regions
            reader.scope.enter()
            self._read_region()
            reader.scope.leave_to(regions)
            behind = reader.position
            if reader.texts[behind] in _JOINS and reader.texts[behind + 1] == "{":
                brace = behind + 1
                continue
            if not self._begins(behind):
                reader.position, _ = self._next(behind, behind, regions=False)
            return

    # ------------------------------------------------------------------------------------------- the next statement

    def _next(self, start: int, failed_at: int, *, regions: bool = True) -> tuple[int, int | None]:
        """Return the token at which reading continues, and the brace of an unread region of the statement."""
        reader = self._reader
        texts, first = reader.texts, max(start + 1, failed_at)
        opened: list[str] = []
        for index in range(start, len(texts)):
            text = texts[index]
            if index >= first and self._ends_before(index, opened):
                return index, None
            if text in CLOSING:
                if regions and text == "{" and index >= failed_at and self._is_fresh(index + 1):
                    return index, index
                opened.append(CLOSING[text])
            elif text in opened:
                while opened.pop() != text:
                    pass
        return len(texts) - 1, None

    def _ends_before(self, index: int, opened: list[str]) -> bool:
        """Return whether a statement with brackets still open cannot reach to a token."""
        reader = self._reader
        text = reader.texts[index]
        if text == "func.func" or reader.kinds[index] is TokenKind.END:
            return True
        if text == "}":
            return not opened or ("}" not in opened and self._is_fresh(index))
        return self._begins(index) and (not opened or self._is_fresh(index))

    def _begins(self, index: int) -> bool:
        """Return whether a statement or the end of a region may begin at a token."""
        reader = self._reader
        kind, text = reader.kinds[index], reader.texts[index]
        if kind is TokenKind.VALUE:
            sign = reader.equals_behind(index)
            return sign is not None and reader.kinds[sign + 1] in (TokenKind.WORD, TokenKind.STRING)
        if kind is TokenKind.STRING:
            return self._is_fresh(index) and reader.texts[index + 1] == "("
        if kind is TokenKind.WORD:
            if self._is_fresh(index):
                return text not in _CONTINUING
            behind = reader.texts[index - 1]
            return (text.startswith(_DIALECTS) or text in _BARE_NAMES) and behind not in ("=", ",", "[", "(")
        return kind is TokenKind.END or text == "}"

    def _is_fresh(self, index: int) -> bool:
        """Return whether a token is the first one of its line."""
        reader = self._reader
        if not 0 < index < len(reader.starts):
            return True
        end = reader.starts[index - 1] + len(reader.texts[index - 1])
        return "\n" in reader.source.text[end : reader.starts[index]]


_TOP_LEVEL = ("module", "func.func")
_RESTARTS = ("func.func", "")
"""The places where reading resumes after a function with unbalanced brackets: the next one, or the end."""
_OF_FUNCTIONS = ("pto.kernel_kind",)
"""The attributes of an inner module that apply only to its functions."""
_VISIBLE = ("public", "nested")
"""Words before a function's name that change nothing here."""


def parse(
    text: str,
    file: str = "<string>",
    *,
    max_statements: int = MAX_STATEMENTS,
    go_past_refused: bool = False,
    only: str | None = None,
) -> Program:
    """Read and check a `.pto` program.

    Args:
        text: the whole file. The module around the functions is optional.
        file: its name, for positions in messages.
        max_statements: maximum number of operations.
        go_past_refused: a function that cannot be read is kept as refused, if the text shows its end.
        only: name of a function; only it and its callees are read, if the text shows the ends of the others.

    Returns:
        The program with every function of the file; `warnings` lists accepted but unusual items.

    Raises:
        ReadError: syntax errors, unknown or unsupported words, undefined or redefined values, or types that disagree.
        TileError: shapes, valid regions or views do not fit together.
        LimitError: there are too many statements.

    The error raised is the first in the text; `further` has the others.
    """
    module = _Module(PtoReader(PtoSource(file, text), max_statements), go_past_refused=go_past_refused, only=only)
    return module.read()


@dataclass(slots=True)
class _Module:
    """The part of a file that has been read."""

    reader: PtoReader
    go_past_refused: bool
    functions: dict[str, Function] = field(default_factory=dict)
    refused: list[RefusedFunction] = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)
    only: str | None = None
    passed: dict[str, int] = field(default_factory=dict)
    """First tokens of functions that were not read, by name."""
    errors: ErrorList = field(default_factory=ErrorList)
    _module_index: int | None = None
    _unbalanced: bool = False
    """Whether brackets are unbalanced, which leaves the end of the module unknown."""
    _seen: int = 0
    """The number of unknown characters inside functions that were refused for them."""

    def read(self) -> Program:
        """Read the whole file.

        Raises:
            CastsimError: something cannot be read; carries the other errors of the file.
        """
        try:
            self._read()
        except LimitError:
            raise
        except CastsimError as error:
            self.errors.add(error)
        self.errors.raise_found()
        reader = self.reader
        module_span = reader.span(self._module_index or 0)
        functions = tuple(self.functions.values())
        chip = self.attributes.get(TARGET_ARCH)
        return Program(
            functions, sorted_texts(self.attributes), reader.warnings, tuple(self.refused),
            None if chip is None else reader.span(chip.value_index), span=module_span,
        )  # fmt: skip

    def _read(self) -> None:
        reader = self.reader
        while reader.kinds[reader.position] is not TokenKind.END:
            index = reader.position
            self._check_characters(index + 1)
            if not reader.at("module"):
                if not self._leave_out():
                    self._function()
                continue
            if self._module_index is not None or self.functions or self.refused or self.passed or len(self.errors):
                raise reader.error("a file must have exactly one module around all of its functions", index)
            self._module_index = index
            self._module()
        self._read_called()

    def _module(self) -> None:
        self._open_module(self.attributes)
        reader = self.reader
        while True:
            self._check_characters(reader.position + 1)
            if reader.take("}"):
                return
            if reader.kinds[reader.position] is TokenKind.END:
                if self._unbalanced:
                    return
                reader.unexpected("a function or '}'", ("func.func", "}"))
            if reader.at("module"):
                self._inner_module()
            elif not self._leave_out():
                self._function()

    def _open_module(self, attributes: Attributes) -> None:
        """Go past `module @name attributes {...} {`, keeping the attributes."""
        reader = self.reader
        reader.expect("module")
        if reader.kinds[reader.position] is TokenKind.SYMBOL:
            reader.position += 1
        if reader.take("attributes"):
            _expect_dictionary(reader, attributes)
        reader.expect("{")

    def _inner_module(self) -> None:
        """Read an inner module, whose functions run on one kind of core: its attributes become theirs.

        Attributes that the outer module lacks and that describe the whole program, the chip, move to the outer module.
        """
        reader, inner = self.reader, Attributes()
        self._open_module(inner)
        for key in [key for key in inner if key not in _OF_FUNCTIONS]:
            self.attributes.setdefault(key, inner.pop(key))
        while not reader.take("}"):
            self._check_characters(reader.position + 1)
            if reader.kinds[reader.position] is TokenKind.END:
                if self._unbalanced:
                    return
                reader.unexpected("a function or '}'", ("func.func", "}"))
            count = len(self.functions)
            if not self._leave_out():
                self._function()
            for name, function in list(self.functions.items())[count:]:
                own = {key for key, _ in function.attributes}
                more = [(key, text) for key, text in sorted_texts(inner) if key not in own]
                self.functions[name] = replace(function, attributes=tuple(sorted((*function.attributes, *more))))

    def _check_characters(self, end: int) -> None:
        """Reject the first unknown character of the tokens before `end`, except in refused functions.

        Raises:
            ReadError: there is one.
        """
        unknown = self.reader.unknown
        if self._seen < len(unknown) and unknown[self._seen] < end:
            raise unknown_character(self.reader.source, self.reader.starts[unknown[self._seen]])

    def _read_called(self) -> None:
        """Read the functions that the read ones call, recursively."""
        called = [call.callee for function in self.functions.values() for call in calls(function.body or ())]
        while called:
            start = self.passed.pop(called.pop(), None)
            if start is None:
                continue
            count = len(self.functions)
            self.reader.position, self._seen = start, bisect_left(self.reader.unknown, start)
            self._function()
            for function in list(self.functions.values())[count:]:
                called += [call.callee for call in calls(function.body or ())]

    def _leave_out(self) -> bool:
        """Skip a function that was not requested, if its end is known."""
        reader, start = self.reader, self.reader.position
        name = _name_of_function(reader, start)
        if self.only is None or name is None or name == self.only or name in self.passed:
            return False
        end = _end_of_function(reader, start)
        if end is None or name in self.functions:
            return False
        self.passed[name] = start
        reader.position, self._seen = end, bisect_left(reader.unknown, end)
        return True

    def _function(self) -> None:
        """Read one function; if it cannot be read, store its errors and skip it.

        Raises:
            LimitError: there are too many statements.
            ReadError: there is no function here.
        """
        reader = self.reader
        start = reader.position
        if not reader.at("func.func"):
            reader.unexpected("a function", closest(reader.texts[start], _TOP_LEVEL))
        recovery = Recovery(reader, lambda: read_any_region(reader))
        reader.recovery, reader.failures, reader.hopeless = recovery, 0, False
        function = None
        try:
            try:
                function = _read_function(reader, self.functions)
            except CastsimError as error:
                recovery.fail(start, 0, 1, 0, error)
        except LimitError:
            raise
        except CastsimError as error:
            recovery.errors.add(error)
        failure = recovery.errors.as_one()
        if failure is not None:
            self._go_past(start, failure, function)
        elif function is not None:
            self.functions[function.name] = function
            self._seen = bisect_left(reader.unknown, reader.position)

    def _go_past(self, start: int, error: CastsimError, rest: Function | None) -> None:
        """Record the function that begins at token `start` as refused, or its errors, and continue after it.

        `rest` is its readable part.
        """
        reader = self.reader
        end, name = _end_of_function(reader, start), _name_of_function(reader, start)
        if self.go_past_refused and end is not None and name is not None:
            marked = not set(ENTRY_MARKS).isdisjoint(reader.texts[start:end])
            self.refused.append(RefusedFunction(name, error, marked, rest))
        elif not self.errors.add(error):  # each further function would be read to the end of the text once more
            self._unbalanced = True
            reader.position = len(reader.texts) - 1
            return
        if end is None:
            self._unbalanced = True
            marks = reader.marks
            end = next(index for index in marks[bisect_right(marks, start) :] if reader.texts[index] in _RESTARTS)
        self._seen = bisect_left(reader.unknown, end)
        reader.position, reader.depth = end, 0


def _end_of_function(reader: PtoReader, start: int) -> int | None:
    """Return the token after a function: where all brackets are closed, and a function, '}' or the end follows.

    None: the brackets do not match, so the end of the function is unknown.
    """
    texts, marks = reader.texts, reader.marks
    opened: list[str] = []
    for number in range(bisect_left(marks, start), len(marks)):
        index = marks[number]
        text = texts[index]
        if not opened and index > start and text in ("func.func", "}", ""):
            return index
        if text == "func.func":
            if index > start:
                return None
        elif text in CLOSING:
            opened.append(CLOSING[text])
        elif text and (not opened or opened.pop() != text):
            return None
    return None


def _name_of_function(reader: PtoReader, start: int) -> str | None:
    """Return the name of the function whose first token is given; None if it has none."""
    if reader.texts[start] != "func.func":
        return None
    index = start + 1 + (reader.texts[start + 1] in ("private", *_VISIBLE))
    return reader.texts[index][1:] if reader.kinds[index] is TokenKind.SYMBOL else None


def _expect_dictionary(reader: PtoReader, attributes: Attributes) -> None:
    if not reader.at("{"):
        reader.unexpected("'{' and attributes", ("{",))
    read_attributes(reader, attributes)


def _read_function(reader: PtoReader, others: Container[str]) -> Function:
    """Read one function; `others` are the names already taken."""
    reader.scope = NameScope(reader.source)
    reader.expect("func.func")
    private = reader.take("private")
    if not private and reader.kinds[reader.position] is TokenKind.WORD and reader.texts[reader.position] in _VISIBLE:
        reader.position += 1
    name_index = reader.position
    name = reader.next_of(TokenKind.SYMBOL, "a function name such as @kernel")[1:]
    if name in others:
        raise reader.error(f"redefinition of function @{name}", name_index)
    reader.expect("(")
    arguments = tuple(reader.listed(lambda: _read_argument(reader), ")"))
    results: tuple[Type, ...] = reader.type_list() if reader.take("->") else ()
    attributes: Attributes = {}
    if reader.take("attributes"):
        _expect_dictionary(reader, attributes)
    body = None
    reader.recorded = RECORDED in attributes
    if reader.at("{"):
        _check_named(reader, arguments)
        body = read_region(reader, Return)
        _check_return(reader, body[-1] if body else None, results, name)
        check_scopes(body)
    elif not private:
        reader.unexpected("'{'; only a private function may lack its body", ("{", "attributes", "func.func private"))
    if results and not attributes.keys().isdisjoint(ENTRY_MARKS):
        raise reader.error(f"entry function @{name} must return nothing", name_index)
    span = reader.span(name_index)
    return Function(name, arguments, body, sorted_texts(attributes), results, span=span)


def _read_argument(reader: PtoReader) -> Argument:
    """Read `%x : type [dict]`, or in a declaration the type alone (the name is then empty)."""
    index = reader.position
    if reader.kinds[index] is not TokenKind.VALUE:
        kind = reader.type()
        return Argument("", kind, sorted_texts(read_attributes(reader)), span=reader.span(index))
    name, _ = reader.new_name()
    reader.expect(":")
    kind = reader.type()
    reader.define(name, kind, index)
    return Argument(name, kind, sorted_texts(read_attributes(reader)), span=reader.span(index))


def _check_named(reader: PtoReader, arguments: tuple[Argument, ...]) -> None:
    for argument in arguments:
        if not argument.name:
            raise ReadError("a function with a body needs names for its arguments", span=argument.span)


def _check_return(reader: PtoReader, last: object, results: tuple[Type, ...], name: str) -> None:
    # The closing brace of the function has just been read.
    index = reader.position - 1
    if not isinstance(last, Return):
        raise reader.error(f"function @{name} does not end with return", index, ("return",))
    if len(last.types) != len(results):
        raise reader.error(f"function @{name} declares {len(results)} results but returns {len(last.types)}", index)
    if last.types != results:
        raise reader.error(f"function @{name} returns types that differ from its declaration", index)

"""Reading a `.pto` file: the optional module, its functions; the entry point of the parser.

Recursive descent by hand: one function per production, refusing at the token that is wrong with what would be right.
Grammar: pto_assembly.md section 3.
"""

from __future__ import annotations

from isa.errors import ReadError
from isa.pto.attributes import Attributes, read_attributes, sorted_texts
from isa.pto.control import read_region
from isa.pto.lexer import Kind, Source
from isa.pto.program import Argument, Function, Program, Return, Type
from isa.pto.reader import Reader
from isa.pto.scope import Scope
from isa.pto.spelling import closest

_TOP_LEVEL = ("module", "func.func")


def parse(text: str, file: str = "<string>") -> Program:
    """Read and check a `.pto` program.

    Args:
        text: the whole file. The module around the functions is optional.
        file: its name, for the places in messages.

    Returns:
        The program with every function of the file; `warnings` lists what was accepted but deserves a look.

    Raises:
        ReadError: syntax, unknown or unsupported words, undefined or redefined values, types that disagree.
        TileError: shapes, valid regions or views that do not fit each other.
    """
    reader = Reader(Source(file, text))
    functions: dict[str, Function] = {}
    attributes: Attributes = {}
    module_index: int | None = None
    while reader.kinds[reader.position] is not Kind.END:
        index = reader.position
        if not reader.at("module"):
            _read_function(reader, functions)
            continue
        if module_index is not None or functions:
            raise reader.error("a file has one module, around all of its functions", index)
        module_index = index
        _read_module(reader, functions, attributes)
    return Program(
        tuple(functions.values()), sorted_texts(attributes), reader.warnings, span=reader.span(module_index or 0)
    )


def _read_module(reader: Reader, functions: dict[str, Function], attributes: Attributes) -> None:
    reader.expect("module")
    if reader.kinds[reader.position] is Kind.SYMBOL:
        reader.position += 1
    if reader.take("attributes"):
        _expect_dictionary(reader, attributes)
    reader.expect("{")
    while not reader.take("}"):
        if reader.kinds[reader.position] is Kind.END:
            reader.unexpected("a function or '}'", ("func.func", "}"))
        _read_function(reader, functions)


def _expect_dictionary(reader: Reader, attributes: Attributes) -> None:
    if not reader.at("{"):
        reader.unexpected("'{' and attributes", ("{",))
    read_attributes(reader, attributes)


def _read_function(reader: Reader, functions: dict[str, Function]) -> None:
    """Read one function and add it to the others."""
    index = reader.position
    if not reader.take("func.func"):
        word = reader.texts[index]
        reader.unexpected("a function", closest(word, _TOP_LEVEL))
    private = reader.take("private")
    name_index = reader.position
    name = reader.next_of(Kind.SYMBOL, "a function name such as @kernel")[1:]
    if name in functions:
        raise reader.error(f"redefinition of function @{name}", name_index)
    reader.scope = Scope(reader.source)
    reader.expect("(")
    arguments = tuple(reader.listed(lambda: _read_argument(reader), ")"))
    results: tuple[Type, ...] = reader.type_list() if reader.take("->") else ()
    attributes: Attributes = {}
    if reader.take("attributes"):
        _expect_dictionary(reader, attributes)
    body = None
    if reader.at("{"):
        _check_named(reader, arguments)
        body = read_region(reader, Return)
        _check_return(reader, body[-1] if body else None, results, name)
    elif not private:
        reader.unexpected("'{'; only a private function may lack its body", ("{", "attributes", "func.func private"))
    if "pto.entry" in attributes and results:
        raise reader.error(f"entry function @{name} must return nothing", name_index)
    span = reader.span(name_index)
    functions[name] = Function(name, arguments, body, sorted_texts(attributes), results, span=span)


def _read_argument(reader: Reader) -> Argument:
    """Read `%x : type [dict]`, or in a declaration the type alone (the name is then empty)."""
    index = reader.position
    if reader.kinds[index] is not Kind.VALUE:
        kind = reader.type()
        return Argument("", kind, sorted_texts(read_attributes(reader)), span=reader.span(index))
    name, _ = reader.new_name()
    reader.expect(":")
    kind = reader.type()
    reader.define(name, kind, index)
    return Argument(name, kind, sorted_texts(read_attributes(reader)), span=reader.span(index))


def _check_named(reader: Reader, arguments: tuple[Argument, ...]) -> None:
    for argument in arguments:
        if not argument.name:
            raise ReadError("the arguments of a function with a body need names", span=argument.span)


def _check_return(reader: Reader, last: object, results: tuple[Type, ...], name: str) -> None:
    # The closing brace of the function has just been read.
    index = reader.position - 1
    if not isinstance(last, Return):
        raise reader.error(f"function @{name} does not end with return", index, ("return",))
    if len(last.types) != len(results):
        raise reader.error(f"function @{name} declares {len(results)} results and returns {len(last.types)}", index)
    if last.types != results:
        raise reader.error(f"function @{name} returns other types than it declares", index)

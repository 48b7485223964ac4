"""The text of a kernel as a tree: preprocessed by pcpp and parsed by pycparser; neither runs anything on the host.

Extensions of C are replaced by C words, of the same length where possible: `volatile` stands for
`__local__`, `restrict` for `__global__`. Headers are read only from the folder of the kernel and those of `-I`, and
texts, expansions and nesting have limits (docs/inputs-outputs.md).
"""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span, missing_package
from castsim.isa.reading import is_file, read_text
from castsim.tools.tpc_compiler.c_language import GENERATIONS, MACROS, constants, names_in, type_names


def _library(name: str) -> Any:
    """Return a library of the extra `c`, None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


_PCPP, _PYCPARSER = _library("pcpp"), _library("pycparser")

MOST_BYTES = 512 << 10
"""Maximum number of characters of a kernel with its headers, each counted as often as it is included."""
MOST_EXPANDED = 100_000
"""Maximum number of tokens that macros may expand to."""
MOST_INCLUDES = 32
"""Maximum nesting depth of headers."""
MOST_NESTED = 100
"""Maximum nesting depth of brackets."""
MOST_DEEP = 300
"""Maximum nesting depth of the tree: operators of a sum, statements."""
MOST_SHIFT = 63

LOCAL, GLOBAL = "volatile", "restrict"
"""The qualifiers that represent the address spaces."""
_OWN = {
    "goya": ("__goya__", "__dali__"), "gaudi": ("__gaudi__",), "gaudib": ("__gaudib__",),
    "greco": ("__greco__", "__goya2__"), "gaudi2": ("__gaudi2__",),
}  # fmt: skip
_INCLUDED = ("tpc-defs.h", "tpc-intrinsics.h", "tpc-special.h", "tpc_kernel_lib_interface.h")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\b(?:__inline__|__forceinline|__extension__)\b")
_SPACES = re.compile(r"\b(?:(__local__|__local)|(__global__|__global)|(volatile|restrict))\b")
_NUMBER = re.compile(r"\b((?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)(bf|BF|h|H)\b")
_ASSEMBLY = re.compile(r"\b(?:__asm__|__asm|asm)\b")
_WIDE = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)([uU]?)[lL]{1,2}([uU]?)\b")
_CONDITION = re.compile(r"passed to evaluator: '(.*)'\)")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A kernel as a tree: `lines` are those of the files by name, for messages."""

    file: str
    tree: Any
    lines: Mapping[str, Sequence[str]]

    def span(self, node: Any) -> Span:
        """Return the place of a node of the tree."""
        position = getattr(node, "coord", node)
        if position is None:
            return _span(self.file, 1, 1, self.lines)
        return _span(str(position.file or self.file), int(position.line or 1), int(position.column or 1), self.lines)


def macros_of(generation: str) -> dict[str, str]:
    """Return the predefined macros of the compiler for a generation."""
    macros = {"__TPC__": "1", "MAX_TENSORS": "16", "MAX_VLM": "81920", "MAX_SLM": "1024"}
    for name in ("gaudi", "greco", "gaudi2"):
        if GENERATIONS.index(generation) >= GENERATIONS.index(name):
            macros[f"__{name}_plus__"] = "1"
    macros |= dict.fromkeys(_OWN[generation], "1")
    location = 8 if macros.get("__gaudi2_plus__") else 6
    macros["RMW_SET"] = str(1 << location)
    # Operations come as numbers or, as RMW_OP_MAX, at their place already.
    macros["MkRMW(dt, op, rmw, at)"] = (
        f"((dt) | (((op) & 15) << 4) | ((op) & 0xf0) | ((at) << 7) | ((rmw) << {location}))"
    )
    return {**macros, **{name: str(number) for name, number in constants().items()}, **MACROS}


def parsed(text: str, file: str, generation: str, defines: Mapping[str, str], folders: Sequence[Path] = ()) -> Parsed:
    """Return the tree of a kernel.

    Raises:
        ReadError: a header is missing, a directive or statement is malformed, or the libraries are not installed.
        IllegalError: there is inline assembly.
    """
    if _PCPP is None or _PYCPARSER is None:
        raise missing_package("a kernel in C", "pcpp" if _PCPP is None else "pycparser", "c")
    lines: dict[str, Sequence[str]] = {file: text.split("\n")}
    reader = _Reader(file, lines, folders)
    output = _preprocessed(reader, text, file, {**macros_of(generation), **defines}, folders, lines)
    _refuse_assembly(output, file, lines)
    output = _ATTRIBUTE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), output)
    output = _SPACES.sub(_qualifier, output)
    output = _WIDE.sub(r"\1\2\3", output)
    output = _NUMBER.sub(lambda m: f"(({'bf16' if m[2].lower() == 'bf' else 'half'}){m[1]}f)", output)
    prelude = "".join(f"typedef int {name};\n" for name in names_in(output))
    _check_brackets(output, file, lines)
    parser = _Parser(lines)
    try:
        tree = parser.parse(f'{prelude}#line 1 "{file}"\n{output}', file)
    except RecursionError:
        raise parser.wrong("the kernel is nested too deeply") from None
    except ReadError:
        raise
    except Exception:  # what the library makes of 1uu
        raise parser.wrong("this is not C") from None
    source = Parsed(file, tree, lines)
    _check_depth(source)
    return source


def _qualifier(match: re.Match[str]) -> str:
    if match[1]:
        return LOCAL.ljust(len(match[1]))
    return GLOBAL.ljust(len(match[2])) if match[2] else " " * len(match[3])


class _Reader(_PCPP.Preprocessor if _PCPP else object):  # type: ignore[misc]  # the library carries no types
    """A preprocessor that keeps pragmas and turns complaints into errors; `lines` gathers those of headers."""

    place: Any = None
    """The token that is being read."""
    expanded = read = 0

    def __init__(self, file: str, lines: dict[str, Sequence[str]], folders: Sequence[Path]) -> None:
        super().__init__()
        self.file, self.lines = file, lines
        self.inside = [folder.resolve() for folder in (Path(file).parent, *folders)]
        self.line_directive = "#line"
        self._evaluate: Any = self.evaluator
        self.evaluator: Any = self._evaluated

    def _evaluated(self, tokens: Any, **names: Any) -> Any:
        words = [token.value for token in tokens if token.value.strip()]
        for sign, count in pairwise(words):
            number = count.rstrip("uUlL")
            if sign == "<<" and not (number.isdecimal() and len(number) < 3 and int(number) <= MOST_SHIFT):
                raise self.at(f"#if shifts by numbers up to {MOST_SHIFT}")
        return self._evaluate(tokens, **names)

    def at(self, message: str, *legal: str) -> ReadError:
        """Return (not raise) an error at the token that is being read."""
        token = self.place
        has_source = token is not None and getattr(token, "source", None)
        return ReadError(message, span=_span(token.source, token.lineno, 1, self.lines) if has_source else
                         _span(self.file, 1, 1, self.lines), legal=legal)  # fmt: skip

    def on_error(self, file: str, line: int, message: str) -> None:
        condition = _CONDITION.search(message)
        text = f"the condition of #if cannot be evaluated: {condition[1]}" if condition else message.strip()
        raise ReadError(text, span=_span(file, line, 1, self.lines))

    def on_directive_unknown(self, directive: Any, toks: Any, ifpassthru: Any, precedingtoks: Any) -> Any:
        if directive.value == "error":
            self.on_error(directive.source, directive.lineno, f"#error {''.join(token.value for token in toks)}")
        return True if directive.value == "warning" else None

    def on_directive_handle(self, directive: Any, toks: Any, ifpassthru: Any, precedingtoks: Any) -> Any:
        self.place = directive
        if directive.value == "pragma":
            raise _PCPP.OutputDirective(_PCPP.Action.IgnoreAndPassThrough)
        if directive.value == "include" and not any(token.value.strip() for token in toks):
            raise self.at("#include does not name a header", '#include "FILE.h"')
        return super().on_directive_handle(directive, toks, ifpassthru, precedingtoks)

    def on_include_not_found(self, is_malformed: bool, is_system: bool, curdir: str, name: str) -> None:
        if name.strip('"<>') in _INCLUDED:
            raise _PCPP.OutputDirective(_PCPP.Action.IgnoreAndRemove)
        message = f"header '{name}' was not found in the folder of the kernel or in a -I folder"
        raise self.at(message, "a file beside the kernel", "-I FOLDER")

    def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
        path = Path(includepath)
        if not is_file(path) or not any(path.resolve().is_relative_to(folder) for folder in self.inside):
            raise FileNotFoundError(includepath)
        if self.include_depth > MOST_INCLUDES:
            raise self.at(f"headers are included more than {MOST_INCLUDES} deep", "an include guard")
        text = read_text(includepath, "header")
        self.count(text)
        self.lines[includepath] = text.split("\n")
        return io.StringIO(text)

    def count(self, text: str) -> None:
        """Count a text, and reject it if it exceeds the limit."""
        self.read += len(text)
        if self.read > MOST_BYTES:
            raise self.at(f"the kernel and its headers have more than {MOST_BYTES} characters")

    def expand_macros(self, tokens: Any, expanding_from: Any = ()) -> Any:
        if expanding_from:
            self._add(len(tokens), tokens)
        return super().expand_macros(tokens, list(expanding_from))

    def macro_expand_args(self, macro: Any, args: Any) -> Any:
        longest = max(map(len, args), default=0)
        if longest * len(macro.patch) > MOST_EXPANDED:
            self._add(MOST_EXPANDED, args[0])
        return super().macro_expand_args(macro, args)

    def _add(self, count: int, tokens: Any) -> None:
        self.expanded += count
        if self.expanded > MOST_EXPANDED:
            self.place = next((token for token in tokens if getattr(token, "source", None)), self.place)
            raise self.at(f"macros expand to more than {MOST_EXPANDED} tokens")

    def evalexpr(self, tokens: Any) -> Any:
        if not tokens:
            raise self.at("#if has no condition")
        return super().evalexpr(tokens)


def _preprocessed(
    reader: Any,
    text: str,
    file: str,
    macros: Mapping[str, str],
    folders: Sequence[Path],
    lines: Mapping[str, Sequence[str]],
) -> str:
    for name, value in macros.items():
        reader.define(f"{name} {value}")
    for folder in (Path(file).parent, *folders):
        reader.add_path(str(folder))
    out = io.StringIO()
    try:
        reader.count(text)
        reader.parse(text, file)
        reader.write(out)
    except CastsimError:
        raise
    except RecursionError:
        raise reader.at("headers or macros are nested too deeply") from None
    except Exception:  # what the library makes of a directive that lacks a part: errors of indices, of attributes
        raise reader.at("the preprocessor cannot read this directive") from None
    return out.getvalue()


def _span(file: str, line: int, column: int, lines: Mapping[str, Sequence[str]]) -> Span:
    source_lines = lines.get(file, ())
    return Span(file, max(line, 1), max(column, 1), source_lines[line - 1] if 0 < line <= len(source_lines) else "")


def _refuse_assembly(text: str, file: str, lines: Mapping[str, Sequence[str]]) -> None:
    number, current = 1, file
    for line in text.split("\n"):
        directive = re.match(r'#line (\d+)(?: "(.*)")?', line)
        if directive:
            number, current = int(directive[1]), directive[2] or current
            continue
        match = _ASSEMBLY.search(line)
        if match and not line.lstrip().startswith("#"):
            message = "inline assembly is not supported in C kernels"
            legal = ("an intrinsic", "a kernel in TPC assembly (.tpc)")
            raise IllegalError(message, span=_span(current, number, match.start() + 1, lines), legal=legal)
        number += 1


_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_NOT_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[^()\[\]{}"\'\n]+')


def _check_brackets(text: str, file: str, lines: Mapping[str, Sequence[str]]) -> None:
    """Reject brackets that are too deep for the parser."""
    depth, number, current = 0, 1, file
    for line in text.split("\n"):
        directive = re.match(r'#line (\d+)(?: "(.*)")?', line)
        if directive:
            number, current = int(directive[1]), directive[2] or current
            continue
        for bracket in re.finditer(r"[()\[\]{}]", _NOT_BRACKETS.sub(lambda match: " " * len(match[0]), line)):
            depth += 1 if bracket[0] in _BRACKETS else -1
            if depth > MOST_NESTED:
                message = f"brackets are nested more than {MOST_NESTED} levels deep"
                raise ReadError(message, span=_span(current, number, bracket.start() + 1, lines))
        number += 1


def _check_depth(kernel: Parsed) -> None:
    """Reject expressions and statements that are too deep for the compiler."""
    waiting = [(kernel.tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MOST_DEEP:
            message = f"expressions or statements are nested more than {MOST_DEEP} levels deep"
            raise ReadError(message, span=kernel.span(node), legal=("several statements",))
        waiting += [(child, depth + 1) for _, child in node.children()]


# What C lacks where a text stops being C.

_SPELLED = {
    "SEMI": "';'", "COLON": "':'", "COMMA": "','", "EQUALS": "'='", "ID": "a name", "WHILE": "'while'",
    "LPAREN": "'('", "RPAREN": "')'", "LBRACKET": "'['", "RBRACKET": "']'", "LBRACE": "'{'", "RBRACE": "'}'",
}  # fmt: skip
_BEGINNINGS = (None, ";", "{", "}", "(", ",", ":", "else", "const", "static", "inline", ")")
_LACKING = {
    "invalid expression": "an expression", "invalid declarator": "a name", "missing type in declaration": "a type",
    "invalid specifier list": "a type", "invalid declaration": "a name",
    "invalid abstract declarator": "')'", "expected identifier": "a name", "invalid struct reference": "a name",
    "invalid function definition": "a type",
}  # fmt: skip
_SHOWN = {
    "comments": "missing '*/' at the end of the comment",
    "illegal character '\"'": "missing '\"' at the end of the string",
    "c23": "attributes in [[ ]] are not supported",
}  # fmt: skip
"""Words in messages of the library, and their replacements."""


class _Parser(_PYCPARSER.CParser if _PYCPARSER else object):  # type: ignore[misc]  # as above
    """A parser whose errors say what is missing in the text."""

    wanted = ""
    """The expected next token, as messages spell it."""

    def __init__(self, lines: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.lines = lines

    def _expect(self, token_type: str) -> Any:
        self.wanted = _SPELLED.get(token_type, f"'{token_type.lower()}'")
        token = super()._expect(token_type)
        self.wanted = ""
        return token

    def _parse_error(self, message: str, position: Any) -> Any:
        text = message.lower()
        stopped = text.startswith("before:") or text == "at end of input"
        if not stopped and text not in _LACKING:
            shown = next((shown for word, shown in _SHOWN.items() if word in text), text)
            if getattr(position, "line", None) is None:
                raise self.wrong(shown)
            raise ReadError(shown, span=_span(position.file, position.line, position.column or 1, self.lines))
        tokens = self._around(back=stopped)
        stranger, token = self._stranger(tokens), tokens[-1]
        if text == "invalid declaration":
            stranger = self._undeclared(token)
        if stranger is not None:
            legal = difflib.get_close_matches(stranger.value, type_names(), 3)
            raise self.wrong(f"unknown type {stranger.value}", *legal, token=stranger)
        where = "at the end of the text" if token is None else f"before '{token.value}'"
        if token is not None and token.value == "else":
            shown = "'else' without 'if'"
        elif token is not None and token.value == "}" and len(self._scope_stack) == 1:
            shown = "'}' closes nothing"
        elif self.wanted:
            shown = f"missing {self.wanted} {where}"
        else:
            shown = f"{_LACKING.get(text, 'a statement')} is missing {where}"
        raise self.wrong(shown, token=token)

    def _around(self, back: bool) -> list[Any]:
        """Return four tokens, the last of them the unexpected one; None for tokens outside of the text."""
        stream = self._tokens
        stream.peek()
        end = stream._index - (1 if back and stream._index else 0)
        return [*[None] * 4, *stream._buffer[: end + 1]][-4:]

    def _stranger(self, tokens: list[Any]) -> Any:
        """Return the token in the place of a type that is not a type, None if there is none."""
        last, before, first, second = tokens
        if second is not None and first is not None and first.value == ")" and last is not None and last.value == "(":
            return self._undeclared(before)  # a cast
        if second is None or second.type not in ("ID", "TIMES"):
            return None
        return self._undeclared(first) if (None if before is None else before.value) in _BEGINNINGS else None

    def _undeclared(self, token: Any) -> Any:
        is_declared = token is None or token.type != "ID" or any(token.value in scope for scope in self._scope_stack)
        return None if is_declared else token

    def wrong(self, message: str, *legal: str, token: Any = None) -> ReadError:
        """Return (not raise) an error at a token, the last token read if it is None."""
        tokens = [lexeme for lexeme in self._tokens._buffer if lexeme is not None]
        token = token or (tokens[-1] if tokens else None)
        if token is None:
            file = next(iter(self.lines))
            return ReadError(message, span=_span(file, 1, 1, self.lines), legal=legal)
        return ReadError(message, span=_span(token.filename, token.lineno, token.column, self.lines), legal=legal)

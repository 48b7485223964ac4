"""The text of a kernel: preprocessed by pcpp, parsed by pycparser; neither runs anything of the host.

What C does not have is put into words that it has, of the same length where there are any: `volatile` stands for
`__local__`, `restrict` for `__global__`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.spans import Span
from castsim.tpc_c.switches import MACROS
from castsim.tpc_c.types import GENERATIONS, names_in

LOCAL, GLOBAL = "volatile", "restrict"
"""The qualifiers that stand for the address spaces."""
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
_PLACE = re.compile(r"^(.*?):(\d+):(?:(\d+):)?\s*(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A kernel as a tree: `lines` are those of the files by name, for messages."""

    file: str
    tree: Any
    lines: Mapping[str, Sequence[str]]

    def span(self, node: Any) -> Span:
        """Return the place of a node of the tree."""
        place = getattr(node, "coord", node)
        if place is None:
            return Span(self.file, 1, 1, self._line(self.file, 1))
        file, line = str(place.file or self.file), int(place.line or 1)
        return Span(file, line, max(1, int(place.column or 1)), self._line(file, line))

    def _line(self, file: str, line: int) -> str:
        held = self.lines.get(file, ())
        return held[line - 1] if 0 < line <= len(held) else ""


def macros_of(generation: str) -> dict[str, str]:
    """Return the macros that the compiler defines for a generation."""
    found = {"__TPC__": "1", "MAX_TENSORS": "16", "MAX_VLM": "81920", "MAX_SLM": "1024"}
    for name in ("gaudi", "greco", "gaudi2"):
        if GENERATIONS.index(generation) >= GENERATIONS.index(name):
            found[f"__{name}_plus__"] = "1"
    found |= dict.fromkeys(_OWN[generation], "1")
    location = 8 if found.get("__gaudi2_plus__") else 6
    found["MkRMW(dt, op, rmw, at)"] = f"((dt) | ((op) << 4) | ((at) << 7) | ((rmw) << {location}))"
    return {**found, **MACROS}


def parsed(text: str, file: str, generation: str, defines: Mapping[str, str], folders: Sequence[Path] = ()) -> Parsed:
    """Return the tree of a kernel.

    Raises:
        ReadError: a missing header, a directive or a statement that cannot be read; the libraries are not installed.
        IllegalError: inline assembly.
    """
    try:
        parsers = import_module("pycparser")
        preprocessor = import_module("pcpp")
    except ImportError:
        message = "kernels in C need the libraries pcpp and pycparser"
        raise ReadError(message, legal=("pip install 'castsim[c]'",)) from None
    lines: dict[str, Sequence[str]] = {file: text.split("\n")}
    output = _preprocessed(preprocessor, text, file, {**macros_of(generation), **defines}, folders, lines)
    _refuse_assembly(output, file, lines)
    output = _ATTRIBUTE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), output)
    output = _SPACES.sub(_qualifier, output)
    output = _WIDE.sub(r"\1\2\3", output)
    output = _NUMBER.sub(lambda m: f"(({'bf16' if m[2].lower() == 'bf' else 'half'}){m[1]}f)", output)
    prelude = "".join(f"typedef int {name};\n" for name in names_in(output))
    try:
        parser = parsers.CParser()
        tree = parser.parse(f'{prelude}#line 1 "{file}"\n{output}', file)
    except parsers.c_parser.ParseError as error:
        raise _parse_error(_placed(str(error), parser), file, lines) from None
    return Parsed(file, tree, lines)


def _qualifier(found: re.Match[str]) -> str:
    if found[1]:
        return LOCAL.ljust(len(found[1]))
    return GLOBAL.ljust(len(found[2])) if found[2] else " " * len(found[3])


def _preprocessed(
    library: Any,
    text: str,
    file: str,
    macros: Mapping[str, str],
    folders: Sequence[Path],
    lines: dict[str, Sequence[str]],
) -> str:
    action, output_directive = library.Action, library.OutputDirective

    class Reader(library.Preprocessor):  # type: ignore[misc]  # the library carries no types
        """Keeps pragmas, and turns complaints into errors."""

        def on_error(self, file: str, line: int, message: str) -> None:
            raise ReadError(message, span=_span(file, line, 1, lines))

        def on_directive_handle(self, directive: Any, toks: Any, ifpassthru: Any, precedingtoks: Any) -> Any:
            if directive.value == "pragma":
                raise output_directive(action.IgnoreAndPassThrough)
            return super().on_directive_handle(directive, toks, ifpassthru, precedingtoks)

        def on_include_not_found(self, is_malformed: bool, is_system: bool, curdir: str, name: str) -> None:
            if name.strip('"<>') in _INCLUDED:
                raise output_directive(action.IgnoreAndRemove)
            at = self.lastdirective
            span = _span(at.source if at else file, at.lineno if at else 1, 1, lines)
            legal = ("a file beside the kernel", "-I FOLDER")
            raise ReadError(f"header '{name}' is not found", span=span, legal=legal)

        def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
            found = super().on_file_open(is_system_include, includepath)
            lines[includepath] = Path(includepath).read_text(encoding="utf-8", errors="replace").split("\n")
            return found

    reader = Reader()
    reader.line_directive = "#line"
    for name, value in macros.items():
        reader.define(f"{name} {value}")
    for folder in (Path(file).parent, *folders):
        reader.add_path(str(folder))
    try:
        reader.parse(text, file)
        out = io.StringIO()
        reader.write(out)
    except ReadError:
        raise
    except RecursionError:
        raise ReadError("headers or macros are nested too deeply", span=_span(file, 1, 1, lines)) from None
    return out.getvalue()


def _span(file: str, line: int, column: int, lines: Mapping[str, Sequence[str]]) -> Span:
    held = lines.get(file, ())
    return Span(file, max(line, 1), max(column, 1), held[line - 1] if 0 < line <= len(held) else "")


def _refuse_assembly(text: str, file: str, lines: Mapping[str, Sequence[str]]) -> None:
    number, current = 1, file
    for line in text.split("\n"):
        directive = re.match(r'#line (\d+)(?: "(.*)")?', line)
        if directive:
            number, current = int(directive[1]), directive[2] or current
            continue
        found = _ASSEMBLY.search(line)
        if found and not line.lstrip().startswith("#"):
            message = "inline assembly is not supported in C kernels"
            legal = ("an intrinsic", "a kernel in TPC assembly (.tpc)")
            raise IllegalError(message, span=_span(current, number, found.start() + 1, lines), legal=legal)
        number += 1


def _placed(message: str, parser: Any) -> str:
    """Return a message of the parser with the place of the token that it stopped at, where it names none."""
    if _PLACE.match(message):
        return message
    tokens = getattr(getattr(parser, "_tokens", None), "_buffer", None)
    if not tokens:
        return message
    last, text = tokens[-1], message.rpartition(": ")[2]
    return f"{last.filename}:{last.lineno}:{last.column}: this is not C, {text.lower()} before '{last.value}'"


def _parse_error(message: str, file: str, lines: Mapping[str, Sequence[str]]) -> ReadError:
    found = _PLACE.match(message)
    if found is None:
        return ReadError(message, span=_span(file, 1, 1, lines))
    text = found[4].strip()
    if text.startswith("before:"):
        text = f"this is not C, before '{text[7:].strip()}'"
    return ReadError(text or "this is not C", span=_span(found[1] or file, int(found[2]), int(found[3] or 1), lines))

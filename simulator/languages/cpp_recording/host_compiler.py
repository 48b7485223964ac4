"""The host's C++ compiler: finding it, compiling a kernel with castsim's header, and source lines of addresses."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import ReadError, SourceText, Span, closest

# The text of a C++ kernel: what the host's compiler does not read, and which functions could be the entry.
#
# This is no parser: it follows brackets, strings and comments, and leaves the meaning to the compiler.

_HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_LAUNCH = re.compile(r"((?:\w+\s*::\s*)*\w+\s*(?:<(?:[^<>;{}()]|\([^()]*\)|<[^<>;{}]*>)*>)?\s*)<<<(.*?)>>>", re.DOTALL)
_NAMESPACE = re.compile(r'(?:inline\s+)?namespace\s*([\w:]*)\s*(?:\[\[[^\]]*\]\]\s*)?$|extern\s*"?\s*"?$')
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\($")
_NO_FUNCTIONS = frozenset(("if", "for", "while", "switch", "return", "sizeof", "catch", "constexpr", "decltype"))
_INSTANTIATION = re.compile(r"(?:^|(?<=[;}]))[ \t\n]*(?:extern\s+)?template\s+(?!<)([^;{}]*);", re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function at the outer level: its name with namespaces, its parameters, and the text before its name.

    `end` is the offset of its closing bracket in the text.
    """

    name: str
    parameters: tuple[str, ...]
    head: str
    end: int

    @property
    def is_template(self) -> bool:
        """Whether it needs template arguments."""
        return "template" in self.head

    @property
    def on_device(self) -> bool:
        """Whether it is compiled for the device."""
        return bool(re.search(r"\b(AICORE|__aicore__|aicore)\b", self.head))


def blanked(text: str) -> str:
    """Return a text of the same length with comments, strings and directives blanked, lines kept."""
    for hidden in (_HIDDEN, _DIRECTIVE):
        text = hidden.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    return text


def for_host(text: str) -> str:
    """Return a kernel's text for the host's compiler, with the same lines.

    A launch becomes a call of the kernel after a word with the requested number of cores; `[aicore]` is removed, as
    are explicit instantiations: the entry is instantiated where it is called, and others take time.
    """
    for instantiation in reversed(list(_INSTANTIATION.finditer(blanked(text)))):
        text = (
            text[: instantiation.start()] + re.sub(r"[^\n]", " ", instantiation.group()) + text[instantiation.end() :]
        )

    def call(match: re.Match[str]) -> str:
        cores = _parts(match[2])[0].strip()
        lines = "\n" * (match.group().count("\n") - match[1].count("\n") - cores.count("\n"))
        return f"::castsim::launched((long long)({cores})), {match[1]}{lines}"

    return _LAUNCH.sub(call, re.sub(r"\[\s*aicore\s*\]", " ", text))


_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^()]*)\)((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)


def with_entries_of_macros(text: str) -> str:
    """Return a kernel's text, in which the macros that define entries are replaced by what they stand for.

    Lines are kept: an entry is in the line of the macro's use.
    """
    for name, parameters, body in _MACRO.findall(text):
        if "__global__" not in body:
            continue
        names = [parameter.strip() for parameter in parameters.split(",")]
        plain = re.sub(r"\\\n", " ", body)

        def entry(use: re.Match[str], plain: str = plain, names: Sequence[str] = names) -> str:
            given = dict(zip(names, map(str.strip, _parts(use[1])), strict=False))
            words = rf"\b({'|'.join(map(re.escape, names))})\b" if any(names) else r"(?!)"
            expansion = re.sub(words, lambda word: given.get(word[1], word[1]), plain)
            return re.sub(r"\s*##\s*", "", expansion) + "\n" * use.group().count("\n")

        text = re.sub(rf"^[ \t]*{name}[ \t]*\(((?:[^()]|\([^()]*\))*)\)", entry, text, flags=re.MULTILINE)
    return text


def candidates(text: str) -> list[Candidate]:
    """Return the functions with a body outside of classes and functions, in order."""
    shown = blanked(text)
    functions: list[Candidate] = []
    spaces: list[str | None] = []
    """The meaning of each open bracket: a namespace (empty if unnamed), or None for anything else."""
    start = 0
    for bracket in re.finditer(r"[{};]", shown):
        mark, at = bracket.group(), bracket.start()
        if mark == "}":
            if spaces:
                spaces.pop()
            if None not in spaces:
                start = at + 1
            continue
        if None in spaces:
            if mark == "{":
                spaces.append(None)
            continue
        head = shown[start:at].strip()
        if mark == ";":
            start = at + 1
            continue
        space = _NAMESPACE.search(head)
        if space is not None and "(" not in head:
            spaces.append(space[1] or "")
            start = at + 1
            continue
        spaces.append(None)
        function = _function(head)
        if function is not None:
            name, parameters, before = function
            qualified = "::".join(filter(None, (*(namespace for namespace in spaces[:-1] if namespace), name)))
            functions.append(Candidate(qualified, parameters, before, _closing(shown, at)))
    return functions


def instantiations(text: str, functions: Sequence[Candidate]) -> list[tuple[str, Candidate]]:
    """Return the explicit instantiations of function templates, in the form of `--entry`, with the templates."""
    instances = []
    for instantiation in _INSTANTIATION.finditer(blanked(text)):
        head = " ".join(instantiation[1].split())
        named = re.search(r"([A-Za-z_][\w:]*)\s*(<.*>)\s*\(", head)
        template = next((candidate for candidate in functions if named and _is_named(candidate, named[1])), None)
        if named and template is not None:
            instances.append((template.name + named[2], template))
    return instances


def _is_named(function: Candidate, name: str) -> bool:
    return function.name == name or function.name.endswith(f"::{name}") or name.endswith(f"::{function.name}")


def entry_of(text: str, asked: str | None, file: str) -> tuple[str, Candidate]:
    """Return the C++ name of the kernel's entry, with template arguments, and its function.

    Raises:
        ReadError: several are possible, or none; the message lists them and the instantiations in the file.
    """
    functions = candidates(text)
    instantiated = instantiations(text, functions)
    if asked is not None:
        plain = re.sub(r"\s*<.*", "", asked.removeprefix("@"), flags=re.DOTALL)
        named = [
            candidate for candidate in functions if candidate.name == plain or candidate.name.endswith(f"::{plain}")
        ]
        if not named:
            legal = closest(plain, [candidate.name for candidate in functions], everything_up_to=_SUGGESTIONS)
            raise ReadError(f"--entry {plain[:80]}: {file} no such function", legal=legal)
        full = named[-1].name + asked.removeprefix("@")[len(plain) :]
        if named[-1].is_template and "<" not in asked:
            own = [name for name, template in instantiated if template is named[-1]]
            legal = _entries(own) or (f"--entry '{plain}<float, 64>', or the like",)
            raise ReadError(f"{file}: {plain} is a template", legal=legal)
        return full, named[-1]
    free = [
        candidate
        for candidate in functions
        if not candidate.is_template and candidate.name != "main" and re.search(r"\bvoid\b", candidate.head)
    ]
    shown = blanked(text)
    uncalled = [
        candidate for candidate in free if len(re.findall(rf"\b{candidate.name.rpartition(':')[2]}\s*\(", shown)) == 1
    ]
    free = [candidate for candidate in free if candidate in uncalled or "__global__" in candidate.head] or free
    args = [candidate for candidate in free if len(candidate.parameters) == 1 and candidate.parameters[0] == "args"]
    for group in (
        [candidate for candidate in free if "__global__" in candidate.head],
        [candidate for candidate in free if candidate.on_device and candidate.parameters and candidate not in args],
        [candidate for candidate in free if candidate.on_device and candidate not in args],
        free,
    ):
        if len(group) == 1:
            return group[0].name, group[0]
        if group:
            raise ReadError(
                f"{file}: {len(group)} functions could be the kernel; choose one with --entry",
                legal=[candidate.name for candidate in group][:_SUGGESTIONS],
            )
    if len(instantiated) == 1:
        return instantiated[0]
    if instantiated:
        raise ReadError(
            f"{file}: no function to run; the file instantiates {len(instantiated)} templates",
            legal=_entries([name for name, _ in instantiated]),
        )
    templates = [f"--entry '{candidate.name}<...>'" for candidate in functions if candidate.is_template][:_SUGGESTIONS]
    raise ReadError(f"{file}: no function to run", legal=templates or ("a function at the outer level",))


_SUGGESTIONS = 5


def _entries(names: Sequence[str]) -> tuple[str, ...]:
    """Return how a command names some of the instantiations."""
    return tuple(f"--entry {shlex.quote(name)}" for name in dict.fromkeys(names))[:_SUGGESTIONS]


def _parts(text: str, brackets: str = "([{)]}") -> list[str]:
    """Return the parts between commas outside of brackets."""
    parts, depth, half = [""], 0, len(brackets) // 2
    for character in text:
        depth += (character in brackets[:half]) - (character in brackets[half:])
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _closing(text: str, opening: int) -> int:
    depth = 0
    for brace in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return opening + brace.start()
    return len(text) - 1


def _function(head: str) -> tuple[str, tuple[str, ...], str] | None:
    """Return name, parameters and the text before the name of a function's head, None if it is not a function."""
    close = head.rfind(")")
    if close < 0 or re.search(r"[=]\s*$", head) or re.match(r"\s*(struct|class|enum|union)\b", head):
        return None
    depth, opening = 0, -1
    for index in range(close, -1, -1):
        depth += (head[index] == ")") - (head[index] == "(")
        if depth == 0:
            opening = index
            break
    named = _FUNCTION.search(head[: opening + 1]) if opening >= 0 else None
    if named is None or named[1] in _NO_FUNCTIONS:
        return None
    return named[1], tuple(_parameters(head[opening + 1 : close])), head[: named.start()]


def _parameters(text: str) -> list[str]:
    names = []
    for number, part in enumerate(_parts(text, "([{<)]}>")):
        plain = re.sub(r"=.*|\[[^\]]*\]", "", part, flags=re.DOTALL).strip()
        words = re.findall(r"[A-Za-z_]\w*", plain)
        if not plain or plain == "void":
            continue
        named = len(words) > 1 and re.search(r"[A-Za-z_]\w*$", plain) and words[-1] not in _TYPES
        names.append(words[-1] if named else f"arg{number}")
    return names


_TYPES = frozenset((
    "int", "unsigned", "long", "short", "char", "float", "double", "bool", "half", "size_t", "const", "volatile",
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))
))  # fmt: skip


COMPILER = "CASTSIM_CXX"
"""Environment variable that names the compiler."""

SECONDS = 300
"""Limit on the time of a compilation."""

HEADERS = Path(__file__).parent / "include"


@dataclass(frozen=True, slots=True)
class Library:
    """The device's library as castsim stands in for it: a folder of headers, of which `main` is the first.

    `names` are the library's own headers, in whose place castsim's stand behind the user's folders, as do all that
    begin with `prefix`. `architectures` are macros of the device's compiler by whether the chip is an A5, `silent` its
    words that say nothing to the host's compiler. A missing name that `own` matches may be one of the library.
    """

    title: str
    headers: Path
    main: str
    names: tuple[str, ...]
    prefix: tuple[str, ...]
    architectures: Mapping[bool, str]
    silent: str
    own: str


_MESSAGE = re.compile(r"^(.*?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$", re.MULTILINE)
_LINKER = re.compile(r"undefined reference to [`']([^`']+)'")
_UNKNOWN = re.compile(
    r"\W(\w+)\W(?: was not declared| has not been declared| does not name| is not a member)"
    r"|(?:undeclared identifier|unknown type name|no template named|no type named|no member named) \W(\w+)\W"
)
_ABSENT = re.compile(r"(?:fatal error: |^)\W?([\w./+-]+)\W*(?:: No such file or directory| file not found)")
_TYPE_OF_BUILD = re.compile(r"DTYPE_\w+")
_FOLDERS = ("", "include", "inc", "common", "utils")
_MOST_HEADERS = 64
_ABOVE = 5
"""Number of folders above a kernel's in which a missing header is searched."""


def local_texts(file: Path, text: str, folders: Sequence[Path] = ()) -> Iterator[tuple[Path, str]]:
    """Yield a kernel's text and those of the headers that it includes and that are beside it or in some folders."""
    seen, waiting = {file.resolve()}, [(file, text)]
    while waiting:
        path, content = waiting.pop(0)
        yield path, content
        for name in INCLUDE.findall(content):
            for folder in (path.parent, file.parent, *folders):
                header = (folder / name).resolve()
                if header not in seen and header.is_file() and len(seen) < _MOST_HEADERS:
                    seen.add(header)
                    waiting.append((header, header.read_text(encoding="utf-8", errors="replace")))


@dataclass(frozen=True, slots=True)
class CppKernel:
    """A C++ kernel to be compiled: `text` is the compiler's input for the file, `entry` a C++ expression."""

    file: Path
    text: str
    entry: str
    names: tuple[str, ...]
    library: Library
    folders: tuple[Path, ...] = ()
    macros: tuple[str, ...] = ()
    a5: bool = False
    slots: str = "{}"
    """The values of the elements of an array of arguments, in C++."""
    places: tuple[str, ...] = ()
    """Names of these places."""
    before: str = ""
    """C++ statements ahead of the call."""
    ahead: str = ""
    """C++ text ahead of the file's."""


def compiler() -> str:
    """Return the path of the compiler: `$CASTSIM_CXX`, `c++`, `g++` or `clang++`.

    Raises:
        ReadError: there is none.
    """
    asked = os.environ.get(COMPILER)
    for name in (asked,) if asked else ("c++", "g++", "clang++"):
        path = shutil.which(name)
        if path is not None:
            return path
    what = f"${COMPILER} names '{asked}', which is not a compiler" if asked else "none is installed"
    raise ReadError(
        f"recording a C++ kernel needs a C++ compiler (g++ 11, clang++ 14 or newer); {what}",
        legal=("castsim run KERNEL.pto",),
    )


def compile_kernel(kernel: CppKernel, folder: Path) -> Path:
    """Compile a kernel in its own folder; return the program.

    Raises:
        ReadError: there is no compiler, or it reports an error; the message has the first one with its place.
    """
    library = kernel.library
    included = [name for name in INCLUDE.findall(kernel.text) if name.startswith(library.prefix) and ".." not in name]
    for name in {*library.names, *included}:
        path = folder / "headers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        own = library.headers / f"castsim_{Path(name).name}"
        path.write_text(f'#pragma once\n#include "{own.name if own.exists() else library.main}"\n')
    main, program = folder / "castsim_main.cpp", folder / "kernel"
    names = ", ".join(f'"{name}"' for name in kernel.names)
    quoted = str(kernel.file).replace("\\", "\\\\").replace('"', '\\"')
    main.write_text(
        f'#include "{library.main}"\n#define main castsim_main_of_the_file\n'
        f'{kernel.ahead}#line 1 "{quoted}"\n{kernel.text}\n#undef main\n#line 1 "castsim_main.cpp"\n'
        f"int main(int count, char **words) {{ {kernel.before}\n"
        f"  return castsim::start(&{kernel.entry}, {{{names}}}, {kernel.slots}, count, words); }}\n",
        encoding="utf-8",
    )
    command = [compiler()]
    command += ["-std=c++20", "-O0", "-g1", "-w", "-fno-pie", "-no-pie", "-fno-omit-frame-pointer"]
    command += [] if "clang" in Path(os.path.realpath(command[0])).name else ["-fpermissive"]
    command += [f"-D{word}=" for word in library.silent.split()]
    command += [f"-D{macro}" for macro in (*library.architectures[kernel.a5].split(), *kernel.macros)]
    command += [
        f"-I{path}" for path in (kernel.file.parent, *kernel.folders, folder / "headers", library.headers, HEADERS)
    ]
    command += ["-o", str(program), str(main)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, cwd=folder)
    except subprocess.TimeoutExpired:
        raise ReadError(f"{kernel.file}: the compiler took more than {SECONDS} s") from None
    except OSError as error:
        raise ReadError(f"cannot start the compiler {command[0]}: {error.strerror or error}") from None
    if done.returncode or not program.exists():
        raise _refusal(kernel, done.stderr.decode("utf-8", "replace"))
    return program


def _refusal(kernel: CppKernel, output: str) -> ReadError:
    """Return the error for a failed compilation: the compiler's first error, at its place."""
    match = _MESSAGE.search(output)
    if match is None:
        lost = _LINKER.search(output)
        what = f"undefined function: {lost[1]}" if lost else (output.strip().splitlines() or ["no message"])[-1]
        return ReadError(f"{kernel.file}: does not compile: {what[:300]}")
    file, line, column, message = match.groups()
    unknown, absent = _UNKNOWN.search(message), _ABSENT.search(message)
    hint = ""
    legal: tuple[str, ...] = ()
    if absent is not None:
        legal = _folders_with(kernel.file, absent[1]) or (f"-I FOLDER, of {absent[1]}",)
    elif unknown is not None:
        name = unknown[1] or unknown[2]
        if re.fullmatch(kernel.library.own, name):
            hint = f"; castsim's header lacks {name}, if that is a name of {kernel.library.title}"
        legal = closest(name, _names_known(kernel.library) - {name}, everything_up_to=0)
        if _TYPE_OF_BUILD.fullmatch(name):
            hint, legal = "; the build of an operator defines it", (f"-D {name}=half",)
    own = (HEADERS, kernel.library.headers)
    if file == "castsim_main.cpp" or Path(file).parent in own:
        requirement = next((f for f in re.finditer(r"^(.*?):(\d+):(\d+):   required from", output, re.MULTILINE)
                      if Path(f[1]).parent not in own), None)  # fmt: skip
        if requirement is None:
            return ReadError(f"{kernel.file}: does not compile: {message[:300]}{hint}", legal=legal)
        file, line, column = requirement[1], requirement[2], requirement[3]
    text = Path(file).read_text(encoding="utf-8-sig", errors="replace") if Path(file).is_file() else ""
    span = line_span(SourceText(file, text), int(line), int(column or 1)) or Span(file, int(line), 1, "")
    return ReadError(f"does not compile: {message[:300]}{hint}", span=span, legal=legal)


def _folders_with(kernel: Path, header: str) -> tuple[str, ...]:
    """Return options that add a folder near a kernel that contains a header."""
    around = [above / name for above in list(kernel.parents)[:_ABOVE] for name in _FOLDERS]
    return tuple(f"-I {shlex.quote(str(folder))}" for folder in around if (folder / header).is_file())[:1]


def _names_known(library: Library) -> set[str]:
    """Return the names that castsim's headers of a library have for kernels."""
    texts = (
        path.read_text(encoding="utf-8")
        for path in (HEADERS / "castsim_device.hpp", *sorted(library.headers.iterdir()))
    )
    words = {word for text in texts for word in re.findall(r"[A-Za-z_]\w+", re.sub(r"//[^\n]*", "", text))}
    return {word for word in words if not word.lower().startswith("castsim")}


def line_span(source: SourceText, line: int, column: int | None = None) -> Span | None:
    """Return a place in a line, or without a column that of its text; None: the text has no such line."""
    starts = [0, *(newline.end() for newline in re.finditer("\n", source.text))]
    if not 0 < line <= len(starts):
        return None
    start = starts[line - 1]
    text = source.text[start : source.line_end(start)]
    if column is not None:
        return Span.within(source, start + min(column - 1, len(text)))
    return Span.within(source, start + len(text) - len(text.lstrip()), max(1, len(text.strip())))


@dataclass(slots=True)
class Lines:
    """Source places of addresses of a compiled kernel, from `addr2line`; the first outside castsim's header."""

    program: Path
    file: Path
    text: str
    headers: tuple[Path, ...] = (HEADERS,)
    _known: dict[str, Span] = field(default_factory=dict)
    _texts: dict[str, SourceText] = field(default_factory=dict)
    _asked: subprocess.Popen[str] | None = None

    def span(self, trail: str) -> Span:
        """Return the place of the first of some addresses, in hexadecimal and separated by commas."""
        if trail not in self._known:
            self._known[trail] = self._span(trail.split(","))
        return self._known[trail]

    def close(self) -> None:
        """End the tool."""
        if self._asked is not None:
            assert self._asked.stdin is not None and self._asked.stdout is not None
            self._asked.stdin.close()
            self._asked.stdout.close()
            self._asked.wait()
            self._asked = None

    def _span(self, addresses: Sequence[str]) -> Span:
        for address in addresses:
            file, _, line = self._ask(address).partition(":")
            number = re.match(r"\d+", line)
            if (
                number is None
                or Path(file).parent in self.headers
                or (file != str(self.file) and not Path(file).is_file())
            ):
                continue
            span = line_span(self._source(file), int(number[0]))
            if span is not None:
                return span
        return Span.within(self._source(str(self.file)), 0)

    def _source(self, file: str) -> SourceText:
        if file not in self._texts:
            own = file == str(self.file)
            text = self.text if own else Path(file).read_text(encoding="utf-8-sig", errors="replace")
            self._texts[file] = SourceText(file, text)
        return self._texts[file]

    def _ask(self, address: str) -> str:
        if self._asked is None:
            tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
            if tool is None:
                return ""
            self._asked = subprocess.Popen(
                [tool, "-e", str(self.program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._asked.stdin is not None and self._asked.stdout is not None
        self._asked.stdin.write(f"0x{address}\n")
        self._asked.stdin.flush()
        return self._asked.stdout.readline().strip().partition(" (")[0]

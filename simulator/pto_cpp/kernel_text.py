"""The text of a C++ kernel: what the host's compiler does not read, and which functions could be the entry.

This is no parser: it follows brackets, strings and comments, and leaves the meaning to the compiler.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from castsim.isa.errors import ReadError

_HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_LAUNCH = re.compile(r"((?:\w+\s*::\s*)*\w+\s*(?:<(?:[^<>;{}()]|\([^()]*\)|<[^<>;{}]*>)*>)?\s*)<<<(.*?)>>>", re.DOTALL)
_NAMESPACE = re.compile(r'(?:inline\s+)?namespace\s*([\w:]*)\s*(?:\[\[[^\]]*\]\]\s*)?$|extern\s*"?\s*"?$')
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\($")
_NO_FUNCTIONS = frozenset(("if", "for", "while", "switch", "return", "sizeof", "catch", "constexpr", "decltype"))
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function at the outer level: its name with namespaces, its parameters, what stands before its name.

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
    def marked(self) -> bool:
        """Whether it is a kernel by its own words."""
        return "__global__" in self.head

    @property
    def takes_memory(self) -> bool:
        """Whether it is a function of the device with global memory among its parameters."""
        return self.on_device and bool(self.parameters)

    @property
    def on_device(self) -> bool:
        """Whether it is compiled for the device."""
        return bool(re.search(r"\b(AICORE|__aicore__|aicore)\b", self.head))


def blanked(text: str) -> str:
    """Return a text of the same length with comments, strings and directives as blanks, lines kept."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found.group())

    return _DIRECTIVE.sub(blank, _HIDDEN.sub(blank, text))


def included(text: str) -> list[str]:
    """Return the headers that a text includes, as it names them."""
    return _INCLUDE.findall(text)


def for_host(text: str) -> str:
    """Return a kernel's text as the host's compiler takes it, line by line the same.

    A launch becomes a call of the kernel that first says how many cores were asked for; `[aicore]` is left out.
    """

    def call(found: re.Match[str]) -> str:
        cores = _first_argument(found[2])
        lines = "\n" * (found.group().count("\n") - found[1].count("\n") - cores.count("\n"))
        return f"(::castsim::launched((long long)({cores})), {found[1]}){lines}"

    return _LAUNCH.sub(call, re.sub(r"\[\s*aicore\s*\]", " ", text))


def continued(text: str) -> str:
    """Return a text whose statements behind the last function stand at the end of that function.

    So documents write examples: the second goes on where the first ended.
    """
    found = candidates(text)
    shown = blanked(text)
    if not found:
        if re.search(r"^\s*T[A-Z]\w*\s*\([^{};]*\)\s*;", shown, re.MULTILINE):
            return f"void example() {{ {text}\n}}"
        return text
    end = found[-1].end
    rest = shown[end + 1 :]
    if re.search(r"(?:^|[;}])\s*T[A-Z]\w*\s*\([^{};]*\)\s*;", rest) is None:
        return text
    return f"{text[:end]} {text[end + 1 :]}\n}}"


def candidates(text: str) -> list[Candidate]:
    """Return the functions with a body that stand outside of classes and functions, in their order."""
    shown = blanked(text)
    found: list[Candidate] = []
    spaces: list[str | None] = []
    """What each open bracket is: a namespace (empty if it names none), or None, something else."""
    start = 0
    for place in re.finditer(r"[{};]", shown):
        mark, at = place.group(), place.start()
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
            qualified = "::".join(filter(None, (*(each for each in spaces[:-1] if each), name)))
            found.append(Candidate(qualified, parameters, before, _closing(shown, at)))
    return found


def entry_of(found: list[Candidate], asked: str | None, file: str) -> tuple[str, Candidate | None]:
    """Return what the kernel's entry is called in C++, with template arguments, and the function it is.

    Raises:
        ReadError: several could be meant, or none; the message lists them.
    """
    if asked is not None:
        plain = re.sub(r"\s*<.*", "", asked.removeprefix("@"), flags=re.DOTALL)
        named = [one for one in found if one.name == plain or one.name.endswith(f"::{plain}")]
        if not named:
            raise ReadError(f"--entry {plain[:80]}: {file} has no such function", legal=[one.name for one in found])
        full = named[-1].name + asked.removeprefix("@")[len(plain) :]
        if named[-1].is_template and "<" not in asked:
            raise ReadError(f"{file}: {plain} is a template", legal=(f"--entry '{plain}<float, 64>', or the like",))
        return full, named[-1]
    free = [one for one in found if not one.is_template and one.name != "main"]
    args = [one for one in free if len(one.parameters) == 1 and one.parameters[0] == "args"]
    for group in (
        [one for one in free if one.marked],
        [one for one in free if one.takes_memory and one not in args],
        [one for one in free if one.on_device and one not in args],
        free,
    ):
        if len(group) == 1:
            return group[0].name, group[0]
        if group:
            raise ReadError(
                f"{file}: {len(group)} functions could be the kernel; name one by --entry",
                legal=[one.name for one in found if one.name != "main"],
            )
    templates = [f"--entry '{one.name}<...>'" for one in found]
    raise ReadError(f"{file}: no function to run", legal=templates or ("a function at the outer level",))


def _first_argument(text: str) -> str:
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            return text[:place].strip()
    return text.strip()


def _closing(text: str, opening: int) -> int:
    depth = 0
    for place in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if place.group() == "{" else -1
        if depth == 0:
            return opening + place.start()
    return len(text) - 1


def _function(head: str) -> tuple[str, tuple[str, ...], str] | None:
    """Return name, parameters and what stands before of a function's head, None if it is none."""
    close = head.rfind(")")
    if close < 0 or re.search(r"[=]\s*$", head) or re.match(r"\s*(struct|class|enum|union)\b", head):
        return None
    depth, opening = 0, -1
    for place in range(close, -1, -1):
        depth += (head[place] == ")") - (head[place] == "(")
        if depth == 0:
            opening = place
            break
    named = _FUNCTION.search(head[: opening + 1]) if opening >= 0 else None
    if named is None or named[1] in _NO_FUNCTIONS:
        return None
    return named[1], tuple(_parameters(head[opening + 1 : close])), head[: named.start()]


def _parameters(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    names = []
    for number, part in enumerate(parts):
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

"""Small faults written into product code, one at a time, and which test sees each.

    python tests mutation --record RECORD.json             # 60 sites in each of five rooms
    python tests mutation --record RECORD.json --again     # those that were caught, with the tests as they are now

The second command also works on a later tree: it finds a fault by the text of its line, and reports `gone` if that line
no longer exists.

A fault is a comparison, an arithmetic operator, an `and`, a `not`, a number or a truth value that is another one. The
sites are drawn by seed. The tests of the room run until one fails, first those whose files name the module; a fault
that none sees within the time lives. The tree is written to while it runs: use a copy that nobody else uses.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kit.paths import ROOT

ROOMS = {
    "isa": ("isa", ("core/isa", "core/execution")),
    "numerics": ("simulator/numerics", ("core/numerics",)),
    "execution": ("simulator/execution", ("core/execution", "core/running")),
    "machines": ("simulator/machines", ("core/machines", "core/engines")),
    "tools": ("simulator/tools", ("tools",)),
}
"""The folder of each room, and the folders of its tests."""

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "+", ast.LShift: ">>", ast.RShift: "<<",
    ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """A fault: the text between two byte offsets of a file is replaced.

    `code` is its line with the fault in it, and `number` counts the faults before it in the file that read alike.
    """

    file: str
    line: int
    start: int
    end: int
    text: str
    code: str
    number: int


def other_operator(node: ast.AST) -> tuple[ast.expr, ast.expr, str] | None:
    """Both operands of an expression, and another operator for it; None if it has none."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in COMPARISONS:
            return left, right, COMPARISONS[type(operator)]
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            return left, right, OPERATORS[type(operator)]
        case ast.BoolOp(op=operator, values=[left, right]):
            return left, right, "or" if isinstance(operator, ast.And) else "and"
    return None


def mutations(path: Path) -> Iterator[Mutation]:
    """Every fault of a file's functions."""
    source = path.read_bytes()
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]

    def offsets(node: Any) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    alike: Counter[str] = Counter()
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    nodes = {id(node): node for function in functions for part in function.body for node in ast.walk(part)}
    for node in nodes.values():
        if operation := other_operator(node):
            left, right, word = operation
            start, end, text = offsets(left)[1], offsets(right)[0], f" {word} "
            if set(source[start:end]) & set(b"()"):
                continue  # an operand in brackets
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start, end, text = offsets(node)[0], offsets(node.operand)[0], ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            (start, end), value = offsets(node), node.value
            text = str(not value if isinstance(value, bool) else value + 1)
        else:
            continue
        begin, close = source.rfind(b"\n", 0, start) + 1, source.find(b"\n", end)
        code = (source[begin:start] + text.encode() + source[end:close]).decode().strip()
        line = source.count(b"\n", 0, start) + 1
        yield Mutation(str(path.relative_to(ROOT)), line, start, end, text, code, alike[code])
        alike[code] += 1


def again(entry: dict[str, Any]) -> Mutation | None:
    """The fault of an entry in the file as it is now; None if its line is gone."""
    path = ROOT / entry["file"]
    now = mutations(path) if path.exists() else iter(())
    return next((own for own in now if (own.code, own.number) == (entry["code"], entry["number"])), None)


def drawn(room: str, number: int) -> list[Mutation]:
    """That many faults of a room, from as many files as it has, none of which keeps the file from being compiled."""
    random = Random(f"{room} 1")
    by_file = [list(mutations(path)) for path in sorted((ROOT / ROOMS[room][0]).rglob("*.py"))]
    weights = [len(sites) for sites in by_file]
    chosen: dict[tuple[str, int], Mutation] = {}
    while len(chosen) < number:
        mutation = random.choice(random.choices(by_file, weights)[0])
        with contextlib.suppress(SyntaxError):
            compile(mutated(mutation), mutation.file, "exec")
            chosen.setdefault((mutation.file, mutation.start), mutation)
    return sorted(chosen.values(), key=lambda mutation: (mutation.file, mutation.start))


def mutated(mutation: Mutation) -> bytes:
    """The source of the file with the fault."""
    source = (ROOT / mutation.file).read_bytes()
    return source[: mutation.start] + mutation.text.encode() + source[mutation.end :]


def test_files(room: str, module: str, most: int | None) -> list[str]:
    """The files of tests of a room, those that name the module first."""
    folders = [ROOT / "tests" / folder for folder in ROOMS[room][1]]
    parts = Path(module).with_suffix("").parts
    if room == "tools":
        folders = [own for own in (ROOT / "tests/tools" / parts[2],) if own.exists()] or folders
    files = [path for folder in folders for path in sorted(folder.rglob("test_*.py"))]
    names = (f"{parts[-2]}.{parts[-1]} import", f"import {parts[-1]}", parts[-1], parts[-2])

    def rank(path: Path) -> int:
        text = path.read_text(encoding="utf-8")
        return next((number for number, name in enumerate(names) if name in text), len(names))

    return [str(path) for path in sorted(files, key=rank)][:most]


class FirstFailure:
    """A plugin of pytest that keeps the test that failed first."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


def catcher(files: Sequence[str], seconds: int) -> str | None:
    """The first test of these files that fails, in a process of its own; None if none does within the seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        sys.dont_write_bytecode = True
        plugin = FirstFailure()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                code = pytest.main(["-x", "-p", "no:cacheprovider", "-p", "no:xdist", *files], plugins=[plugin])
            os.write(writing, (plugin.test or ("" if code == 0 else f"exit code {int(code)}")).encode()[:4000])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        test = answer.read().decode()
    _, status = os.waitpid(child, 0)
    return test or ("ended by a signal" if os.WIFSIGNALED(status) and os.WTERMSIG(status) != 24 else None)


@contextlib.contextmanager
def written(mutation: Mutation) -> Iterator[None]:
    """Have the fault in the file."""
    path = ROOT / mutation.file
    before, times = path.read_bytes(), path.stat()
    path.write_bytes(mutated(mutation))
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def main() -> None:
    """Draw faults and try them, or try again those that were caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--again", action="store_true", help="those that the record says were caught")
    parser.add_argument("--rooms", nargs="*", default=list(ROOMS), choices=ROOMS)
    parser.add_argument("--sites", type=int, default=60, help="in each room")
    parser.add_argument("--seconds", type=int, default=60, help="of processor time for one fault")
    parser.add_argument("--files", type=int, help="of tests at most, those that name the module first")
    asked = parser.parse_args()
    entries: list[dict[str, Any]] = json.loads(asked.record.read_text()) if asked.record.exists() else []
    tried = {(entry["file"], entry["start"]) for entry in entries}
    if asked.again:
        work = [entry for entry in entries if entry["caught"] and "again" not in entry]
    else:
        work = [
            {"room": room, **asdict(mutation)}
            for room in asked.rooms
            for mutation in drawn(room, asked.sites)
            if (mutation.file, mutation.start) not in tried
        ]
    for entry in work:
        began = time.monotonic()
        mutation = again(entry)
        if mutation is None:
            test: str | None = "gone"
        else:
            with written(mutation):
                test = catcher(test_files(entry["room"], mutation.file, asked.files), asked.seconds)
        entry["again" if asked.again else "caught"] = test
        if not asked.again:
            entries.append(entry)
        print(f"{entry['file']}:{entry['line']} {test} ({time.monotonic() - began:.0f} s)", flush=True)
        asked.record.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

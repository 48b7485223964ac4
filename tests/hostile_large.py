"""Hostile programs that are too large to keep: made from a program that runs, `programs/f32_to_f16.pto`."""

from __future__ import annotations

from collections.abc import Callable


def _parts(base: str) -> tuple[str, str, str]:
    """The text before the first load, the text from there, and the line of the cast."""
    cut = base.index("    pto.tload")
    rest = base[cut:]
    return base[:cut], rest, next(line for line in rest.split("\n") if "tcvt" in line)


def _many_constants(base: str) -> str:
    head, rest, _ = _parts(base)
    return head + "".join(f"    %k{i} = arith.constant {i} : index\n" for i in range(10**6)) + rest


def _many_casts(base: str) -> str:
    cast = _parts(base)[2]
    return base.replace(cast, "\n".join([cast] * 10**5))


def _deep_branches(base: str) -> str:
    head, rest, _ = _parts(base)
    return head + "    scf.if %b {\n" * 10_000 + rest


def _deep_loops(base: str) -> str:
    head, rest, _ = _parts(base)
    loops = "".join(f"    scf.for %i{k} = %c0 to %n step %c1 {{\n" for k in range(10_000))
    return head + "    %n = arith.constant 2 : index\n" + loops + "    }\n" * 10_000 + rest


def _long_line(base: str) -> str:
    return base.replace("    return", "    bad " + "x" * 10**7)


def _many_arguments(base: str) -> str:
    more = "".join(f", %a{i}: !pto.ptr<f16>" for i in range(100_000))
    return base.replace("%dst: !pto.ptr<f16>", "%dst: !pto.ptr<f16>" + more)


def _many_functions(_: str) -> str:
    return "module {\n" + "".join(f"func.func @f{i}() {{ return }}\n" for i in range(100_000)) + "}\n"


LARGE: dict[str, Callable[[str], str]] = {
    "lines.pto": _many_constants, "tcvt1e5.pto": _many_casts, "deep10000.pto": _deep_branches,
    "deepfor.pto": _deep_loops, "longline.pto": _long_line, "args100000.pto": _many_arguments,
    "funcs.pto": _many_functions,
}  # fmt: skip
"""How each is made from the text of the program, by file name."""

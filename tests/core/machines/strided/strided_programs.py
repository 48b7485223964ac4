"""Programs of `pto.strided` statements, made for tests: a buffer in, statements, the buffer out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from castsim import run
from castsim.isa.pto.types import element_spelling

SIZE = 1 << 16
"""Bytes of the buffer that go in and out."""


def program(body: str) -> str:
    """Return a program that loads the first bytes of the buffer, runs `body`, and stores them.

    `%pNAME` such as `%f32_512` are pointers: element and byte address. `%cN` are 64-bit constants.
    """
    words = sorted(set(re.findall(r"%\w+", body)))
    lines = []
    for word in words:
        name = word[1:]
        if name[0] == "c" and name[1:].lstrip("m").isdecimal():
            value = name[1:].replace("m", "-")
            lines.append(f"{word} = arith.constant {value} : i64")
        elif "_" in name:
            element, _, address = name.rpartition("_")
            lines.append(f"%at_{name} = arith.constant {address} : i64")
            lines.append(f"{word} = pto.castptr %at_{name} : i64 -> !pto.ptr<{element_spelling(element)}, ub>")
    made = "\n    ".join([*lines, body])
    return f"""
module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @k(%x: !pto.ptr<ui8, gm>, %y: !pto.ptr<ui8, gm>) attributes {{pto.kernel}} {{
    %first = arith.constant 0 : i64
    %size = arith.constant {SIZE} : i64
    %once = arith.constant 1 : i64
    %whole = pto.castptr %first : i64 -> !pto.ptr<ui8, ub>
    pto.mte_gm_ub %x, %whole, %first, %size nburst(%once, %size, %size) : !pto.ptr<ui8, gm>, !pto.ptr<ui8, ub>, i64, i64, i64, i64, i64
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    {made}
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.mte_ub_gm %whole, %y, %size nburst(%once, %size, %size) : !pto.ptr<ui8, ub>, !pto.ptr<ui8, gm>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }}
}}
"""  # noqa: E501


def pointer(element: str, address: int) -> tuple[str, str]:
    """Return the name and the type of a pointer that `program` defines."""
    return f"%{element}_{address}", f"!pto.ptr<{element_spelling(element)}, ub>"


def statement(
    name: str,
    dst: tuple[str, int] | list[tuple[str, int]] | None,
    *sources: tuple[str, int] | str,
    more: str = "",
) -> str:
    """Return the text of a statement; pointers are (element, address), scalars are `%name : type`."""
    given = [pointer(*each) if isinstance(each, tuple) else tuple(each.split(" : ")) for each in sources]
    text = f"pto.strided.{name}"
    if given:
        text += f" ins({', '.join(name for name, _ in given)} : {', '.join(kind for _, kind in given)})"
    made = [pointer(*each) for each in (dst if isinstance(dst, list) else [dst] if dst else [])]
    if made:
        text += f" outs({', '.join(name for name, _ in made)} : {', '.join(kind for _, kind in made)})"
    return f"{text} {more}".rstrip()


def executed(tmp_path: Path, body: str, buffer: np.ndarray, **options: object) -> np.ndarray:
    """Return the bytes of the buffer after a body."""
    file = tmp_path / "k.pto"
    file.write_text(program(body))
    given = np.zeros(SIZE, np.uint8)
    raw = np.ascontiguousarray(buffer).view(np.uint8).reshape(-1)
    given[: raw.size] = raw
    found = run(file, inputs={"x": given}, **options)
    return found.outputs["y"]


def counted(count: int, body: str) -> str:
    """Return a body in count mode, between its switches."""
    return (
        f"pto.strided.set_mask_count\npto.strided.set_vector_mask ins(%c0, %c{count} : i64, i64)\n{body}\n"
        "pto.strided.set_mask_norm\npto.strided.set_vector_mask ins(%cm1, %cm1 : i64, i64)"
    )

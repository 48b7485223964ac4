"""A kernel with its inserted flags written out, and the same without one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from castsim.execution.synchronisation.flags import insert
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.machines.mechanisms import lowerer_of
from castsim.targets import load_target

_ORDERS = ("pto.set_flag", "pto.wait_flag", "pto.barrier")


def written_out(path: Path, target: str) -> list[str]:
    """The lines of a program with the flags and barriers that are inserted into it."""
    chip = load_target(target)
    parsed = parse(path.read_text(), path.name)
    (function,) = parsed.functions
    made = insert(function, lowerer_of(chip), chip).function
    return print_program(replace(parsed, functions=(made,))).splitlines(keepends=True)


def orders(lines: list[str]) -> list[int]:
    """The numbers of the lines with a flag or barrier."""
    return [number for number, line in enumerate(lines) if line.strip().startswith(_ORDERS)]

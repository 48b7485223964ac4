"""Dialects, printed lines and published tables that the TPC tests share."""

from __future__ import annotations

import csv
import re
from functools import lru_cache

from kit.paths import VECTORS

from castsim.isa.tpc.forms import Dialect
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import TpcProgram
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget

GENERATIONS = ("goya", "gaudi", "gaudib", "greco", "gaudi2")


def target(name: str) -> VliwTarget:
    found = load_target(name)
    assert isinstance(found, VliwTarget)
    return found


def dialect(name: str) -> Dialect:
    return target(name).dialect


def program(text: str, name: str = "gaudi2") -> TpcProgram:
    return parse(text, dialect(name))


@lru_cache(maxsize=8)
def table(name: str) -> tuple[dict[str, str], ...]:
    with (VECTORS / name).open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def plain(text: str) -> str:
    """Take away what README_tpc.md calls not significant: white space, and the space form of MOV_DG."""
    return re.sub(r"\bmov_dg (all|pack|unpack)\b", r"mov_dg.\1", " ".join(text.split())).rstrip("; ")


def phrases(text: str) -> list[str]:
    """What semicolons separate, without white space around it."""
    return [each.strip() for each in text.split(";")]


def greco_schedule() -> list[str]:
    """The schedule of docs/reference/tpc.md section 6.4: sign extension of 256 i16 from VLM 0x0 to i32 at VLM 0x400."""
    rows = table("tpc_kernel_schedules_dev.csv")
    found = (row["instructions_with_registers"].replace(" | ", " ; ") for row in rows if row["gen"] == "greco")
    return [f"{{ {each} }}\n" for each in found]

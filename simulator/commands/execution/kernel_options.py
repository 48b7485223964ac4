"""Options of kernels in C and C++: who takes them, headers and macros."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from castsim.isa.errors import ReadError

LAUNCH = {"--tensor": "tensors", "--index-space": "index_space", "--tpcs": "tpcs", "--accumulators": "accumulators"}
HEADERS = {"--define": "macros", "--include": "folders"}
CORE = {"--block": "block", "--sub": "sub"}
"""Options of kernels in C, of kernels in C and C++, and of those in C++, with their names in a namespace."""

TILELANG = re.compile(r"(.+\.py)(?::(\w*))?")
"""A kernel of TileLang: a Python file and a function of it."""


def is_tilelang(program: str | None) -> bool:
    """Whether a program that was named is a kernel of TileLang."""
    return program is not None and TILELANG.fullmatch(program) is not None


def refuse_tilelang(options: Namespace, program: str | None) -> None:
    """Reject options of kernels of TileLang for another program.

    Raises:
        ReadError: one was given.
    """
    for option, given in (("--core", options.core is not None), ("--unscheduled", options.unscheduled)):
        if given:
            raise ReadError(f"{option}: {program} is no kernel of TileLang", legal=("KERNEL.py:FUNCTION",))


def refuse(options: Namespace, named: Mapping[str, str], program: str | None, suffixes: Sequence[str]) -> None:
    """Reject options that only kernels in other languages take.

    Raises:
        ReadError: one was given.
    """
    for option, name in named.items():
        value = getattr(options, name, None)
        if value:
            shown = value if isinstance(value, str) else " ".join(value)
            told = f"{option} {shown}: {program} is no kernel that takes it"
            raise ReadError(told, legal=[f"*{each}" for each in suffixes])


def headers_of(options: Namespace) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the folders of headers and the macros that options give.

    Raises:
        ReadError: no folder; no name of a macro.
    """
    for folder in options.folders:
        if not Path(folder).is_dir():
            raise ReadError(f"--include {folder}: no folder", legal=("--include FOLDER",))
    for macro in options.macros:
        if not macro.partition("=")[0].isidentifier():
            raise ReadError(f"--define {macro}: not of the form NAME or NAME=VALUE", legal=("--define NAME=VALUE",))
    return tuple(map(Path, options.folders)), tuple(options.macros)

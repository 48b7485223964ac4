"""Kernels in C++ as `run`, `record`, `advise`, `diff` and `debug` take them: named on their line, and executed.

Nothing else compiles or executes one.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from castsim.commands.execution.kernel_options import CORE, HEADERS, headers_of, refuse
from castsim.commands.option_parsers import assignments, run_limits_of, scalar
from castsim.execution.limits import Limits
from castsim.isa.errors import ReadError
from castsim.isa.sources import CPP_SUFFIXES, KERNEL_SUFFIX, Language, Source
from castsim.targets import Target
from castsim.targets.options import with_options

if TYPE_CHECKING:
    from castsim.pto_cpp import Recording, Request

_CORE = re.compile(r"(\d{1,6})(?:/(\d{1,6}))?")


def is_cpp(program: str | None) -> bool:
    """Whether a program that was named is a kernel in C++."""
    return program is not None and program.endswith(CPP_SUFFIXES)


def refuse_elsewhere(options: Namespace, *programs: str | None) -> None:
    """Reject options of kernels in C++ where no program is one.

    Raises:
        ReadError: one was given.
    """
    if not any(map(is_cpp, programs)):
        in_c = any(str(each or "").endswith(KERNEL_SUFFIX) for each in programs)
        refuse(options, CORE if in_c else CORE | HEADERS, programs[0], CPP_SUFFIXES)


def request_of(options: Namespace, program: str, limits: Limits | None = None) -> Request:
    """Return what is to be recorded.

    Raises:
        ReadError: what was typed.
    """
    changes = assignments("--option", options.options)
    block, blocks = _core("--block", options.block)
    sub, subs = _core("--sub", options.sub)
    found: Request = _recorder().Request(
        Path(program), options.entry,
        {name: scalar(name, text) for name, text in assignments("--arg", options.args).items()},
        assignments("--in", options.inputs), options.target, lambda target: with_options(target, changes), block,
        blocks, sub, subs or 1, *headers_of(options),
        run_limits_of(options) if limits is None else limits,
    )  # fmt: skip
    return found


def recording_of(options: Namespace, limits: Limits | None = None) -> Recording:
    """Compile and execute the kernel that a command names, on the core that it asks for."""
    return _recorded(request_of(options, options.program, limits))


def side_of(
    options: Namespace,
    program: str,
    entry: str | None,
    target: str | Path | Target | None,
    prepare: Callable[[Target], Target],
) -> Source:
    """Compile and execute the kernel that is one side of a comparison."""
    return _recorded(replace(request_of(options, program), entry=entry, target=target, prepare=prepare)).source


def _recorded(request: Request) -> Recording:
    found: list[Recording] = _recorder().record(request)
    return found[0]


def _recorder() -> ModuleType:
    """Return the recorder, which is loaded once a kernel in C++ is named."""
    return import_module("castsim.pto_cpp")


def as_text(recording: Recording) -> Source:
    """Return a recording as a program in text, for those who change it."""
    return Source(f"{recording.request.file.stem}.pto", Language.TILES, recording.pto_text())


def without_arguments(options: Namespace) -> Namespace:
    """Return the options of a command for a kernel that has been recorded: its entry and scalars are settled."""
    return Namespace(**{**vars(options), "entry": None, "args": []})


def _core(option: str, text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 0, None
    found = _CORE.fullmatch(text.strip())
    if found is None or (found[2] is not None and int(found[1]) >= int(found[2])):
        raise ReadError(f"{option} {text[:40]}: not a core", legal=(f"{option} 0", f"{option} 3/8"))
    return int(found[1]), None if found[2] is None else int(found[2])

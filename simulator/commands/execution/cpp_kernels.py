"""Kernels in C++ as `run`, `record`, `advise`, `diff` and `debug` take them: named on their line, and executed.

Nothing else compiles or executes one.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments, run_limits_of, scalar
from castsim.execution.run_limits import Limits
from castsim.isa.errors import ReadError
from castsim.isa.sources import CPP_SUFFIXES, KERNEL_SUFFIX, Language, Source
from castsim.targets import Target
from castsim.targets.options import with_options

if TYPE_CHECKING:
    from castsim.pto_cpp import Recording, Request
    from castsim.tpc_c.launching import LaunchRequest


# Options of kernels in C and C++: who takes them, headers and macros.

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
    core = None if options.core is None else f"--core {options.core[:40]}"
    for option in (core, "--unscheduled" if options.unscheduled else None):
        if option is not None:
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


# The launch of a kernel in C, as options give it.


def launch_of(options: Namespace, *programs: str | None) -> LaunchRequest | None:
    """Return the launch that options describe; None where none of the programs (default: that of options) is a kernel.

    Raises:
        ReadError: an option that cannot be read, or that is given for another program.
    """
    named = programs or (options.program,)
    if any(is_kernel(each) for each in named):
        found: LaunchRequest = _compiler().launch_asked(options)
        return found
    refuse(options, LAUNCH, named[0], (KERNEL_SUFFIX,))
    if not any(str(each or "").endswith(CPP_SUFFIXES) for each in named):
        refuse(options, HEADERS, named[0], (KERNEL_SUFFIX, *CPP_SUFFIXES))
    return None


def is_kernel(program: str | None) -> bool:
    """Whether a program that was named is a kernel in C."""
    return str(program or "").endswith(KERNEL_SUFFIX)


def bundles_of(options: Namespace, launch: LaunchRequest, arguments: Mapping[str, int | float]) -> Source:
    """Return the bundles of a kernel on its first engine as a program in assembly.

    Raises:
        ReadError, IllegalError: as `castsim.running.c_kernels.load_kernel`.
    """
    found: Source = _compiler().bundles_asked(options, launch, arguments)
    return found


def _compiler() -> ModuleType:
    """Return the commands' part that loads the compiler, which is loaded once a kernel is named."""
    return import_module("castsim.commands.execution.kernels_in_c")


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

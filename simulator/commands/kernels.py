"""Programs as commands name them: the run that options describe, and what applies to kernels in C and C++ only."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castsim.commands.option_parsers import assignments, limits_of, opaque_cycles, positive, refuse, scalars
from castsim.execution.run_limits import MAX_CYCLES
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError
from castsim.isa.reading import CPP_SUFFIXES, KERNEL_SUFFIX, Language, Source, read_source
from castsim.running.languages import C, language_module
from castsim.running.loaded import LaunchRequest, LoadRequest

if TYPE_CHECKING:
    from castsim.running.program_runs import RunConfig


def run_config_of(options: Namespace, program: str) -> RunConfig:
    """Return the run that the options of a command describe; options that the command lacks have their defaults.

    Raises:
        ReadError: a text is no assignment, number or limit.
    """
    from castsim.running.program_runs import RunConfig  # noqa: PLC0415 - many commands look only at the names of kernels

    given = vars(options).get
    max_cycles, declare = given("max_cycles"), given("declare")
    return RunConfig(
        program,
        options.target,
        options.entry,
        scalars(options.args),
        assignments("--in", options.inputs),
        assignments("--option", options.options),
        engine=given("engine"),
        timing_only=given("timing_only", False),
        max_cycles=MAX_CYCLES if max_cycles is None else positive("--max-cycles", max_cycles),
        limits=limits_of(given("max_walk"), given("max_statements"), given("max_elements")),
        opaque=opaque_cycles(given("opaque", [])),
        declare=None if declare is None else Path(declare),
    )


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """The options of kernels in other languages, as typed: only the language of a program can read them."""

    tensors: tuple[str, ...] = ()
    index_space: str | None = None
    tpcs: str | None = None
    accumulators: str | None = None
    macros: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    block: str | None = None
    sub: str | None = None
    auto_sync: str | None = None
    tiling: str | None = None
    tiling_struct: str | None = None
    all_blocks: bool = False
    core: str | None = None
    unscheduled: bool = False

    @property
    def launch(self) -> dict[str, str | tuple[str, ...] | None]:
        """The options of the launch of a kernel in C."""
        return {"--tensor": self.tensors, "--index-space": self.index_space, "--tpcs": self.tpcs,
                "--accumulators": self.accumulators}  # fmt: skip

    @property
    def headers(self) -> dict[str, str | tuple[str, ...] | None]:
        """The options of the compiler of a kernel in C or C++."""
        return {"--define": self.macros, "--include": self.folders}

    @property
    def ascendc(self) -> dict[str, str | tuple[str, ...] | None]:
        """The options of kernels in AscendC."""
        return {"--auto-sync": self.auto_sync, "--tiling": self.tiling, "--tiling-struct": self.tiling_struct}

    @property
    def core_choice(self) -> dict[str, str | tuple[str, ...] | None]:
        """The options of kernels in C++."""
        return {"--block": self.block, "--sub": self.sub, **self.ascendc}

    def header_folders(self) -> tuple[Path, ...]:
        """Return the folders of headers.

        Raises:
            ReadError: a folder does not exist, or a macro's name is malformed.
        """
        for folder in self.folders:
            if not Path(folder).is_dir():
                raise ReadError(f"--include {folder}: no such folder", legal=("--include FOLDER",))
        for macro in self.macros:
            if not macro.partition("=")[0].isidentifier():
                raise ReadError(f"--define {macro}: expected NAME or NAME=VALUE", legal=("--define NAME=VALUE",))
        return tuple(map(Path, self.folders))

    def macro_texts(self) -> dict[str, str]:
        """Return the texts of macros by name; a macro without a text is 1.

        Raises:
            ReadError: see `header_folders`.
        """
        self.header_folders()
        parts = (macro.partition("=") for macro in self.macros)
        return {name: text if given else "1" for name, given, text in parts}


def launch_of(kernel: KernelOptions, inputs: Mapping[str, object], *programs: str | None) -> LaunchRequest | None:
    """Return the launch of a kernel in C; None if no program is one.

    Raises:
        ReadError: an option cannot be read, or applies to other programs.
    """
    if not any(is_kernel(program) for program in programs):
        refuse(kernel.launch, programs[0], (KERNEL_SUFFIX,))
        if not any(map(is_cpp, programs)):
            refuse(kernel.headers, programs[0], (KERNEL_SUFFIX, *CPP_SUFFIXES))
        return None
    launch: LaunchRequest = language_module(C).launch_request(
        assignments("--tensor", kernel.tensors), kernel.index_space,
        positive("--tpcs", kernel.tpcs) if kernel.tpcs else 1, kernel.accumulators, inputs,
        kernel.macro_texts(), kernel.header_folders(),
    )  # fmt: skip
    return launch


def is_kernel(program: str | None) -> bool:
    """Return whether the named program is a kernel in C."""
    return str(program or "").endswith(KERNEL_SUFFIX)


def is_cpp(program: str | None) -> bool:
    """Return whether the named program is a kernel in C++."""
    return str(program or "").endswith(CPP_SUFFIXES)


def compiled_of(path: str, target: str | None, kernel: KernelOptions) -> tuple[Source, Any]:
    """Return a kernel in C, compiled for a target."""
    source = read_source(Path(path), lambda: False)
    launch = LaunchRequest(defines=kernel.macro_texts(), folders=kernel.header_folders())
    return source, language_module(C).compiled_kernel(source, LoadRequest(target, launch=launch))


def bundles_of(config: RunConfig) -> Source:
    """Return the bundles of a kernel in C on its first engine as an assembly program.

    Raises:
        ReadError, IllegalError: the kernel cannot be compiled.
    """
    from castsim.isa.tpc.parser import print_program  # noqa: PLC0415 - few commands name a kernel

    request = LoadRequest(config.target, None, config.args, config.prepared, launch=config.launch)
    loaded = language_module(C).load_kernel(read_source(config.path, lambda: False), request)
    return Source(f"{loaded.entry}.tpc", Language.ASSEMBLY, print_program(loaded.launch.engines[0]))


def refuse_elsewhere(kernel: KernelOptions, *programs: str | None) -> None:
    """Reject options of kernels in C++ if no program is one.

    Raises:
        ReadError: such an option was given.
    """
    if not any(map(is_cpp, programs)):
        in_c = any(map(is_kernel, programs))
        refuse(kernel.core_choice if in_c else kernel.core_choice | kernel.headers, programs[0], CPP_SUFFIXES)


def refuse_tilelang(kernel: KernelOptions, program: str | None) -> None:
    """Reject options of TileLang kernels for other programs.

    Raises:
        ReadError: such an option was given.
    """
    core = None if kernel.core is None else f"--core {kernel.core[:40]}"
    for option in (core, "--unscheduled" if kernel.unscheduled else None):
        if option is not None:
            raise ReadError(f"{option}: {program} is not a TileLang kernel", legal=("KERNEL.py:FUNCTION",))

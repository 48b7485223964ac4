"""Options that several commands share, one row each: spelling, placeholder and help.

Numbers in the help repeat those of the modules that define them, because a help may not import these.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any, NamedTuple


class SharedOption(NamedTuple):
    """An option of several commands; `{}` in its help is replaced by a command's own text, or else by `usual`."""

    spelling: str
    metavar: str | None
    help: str
    usual: str = ""
    more: dict[str, Any] = {}  # noqa: RUF012 - nothing changes it


class OptionParser(ArgumentParser):
    """Parser of a command, as `declare` fills it."""

    def take(self, *names: str, **words: str) -> None:
        """Add shared options, by their names in `SHARED`; then the options whose help text is given."""
        for name in names:
            for option in SHARED[name]:
                self._add_shared(option, option.usual)
        for name, word in words.items():
            for option in SHARED[name]:
                self._add_shared(option, word)

    def _add_shared(self, option: SharedOption, word: str) -> None:
        more = dict(option.more)
        if more.get("action") in ("append", "extend"):
            more.setdefault("default", [])
        if option.metavar is not None:
            more["metavar"] = option.metavar
        self.add_argument(*option.spelling.split(), help=option.help.format(word), **more)


def _cores(text: str) -> str:
    """Return `--cores` as a target option."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is not a number of cores\n  legal: 1, 2, ...")
    return f"cores={text}"


TOOLCHAINS = ("older", "2026-05", "2026-07", "2026-08")
"""Assemblers of tile programs, as `--toolchain` names them."""


def _toolchain(text: str) -> str:
    """Return `--toolchain` as a target option."""
    if text not in TOOLCHAINS:
        raise ArgumentTypeError(f"'{text}' is not an assembler\n  legal: {', '.join(TOOLCHAINS)}")
    return f"toolchain={text}"


def _several(dest: str) -> dict[str, Any]:
    """Return argparse settings for an option that may be given several times; all its values form one list."""
    return {"dest": dest, "action": "append"}


_FLAG = {"action": "store_true"}
_TARGET = "name or path of a target description"
_ENGINES = SharedOption("--engine", "E", "fast (default) or event, the reference; both count the same cycles")
_HEADERS = (
    SharedOption("-I --include", "DIR", "a folder with headers of a kernel in C or C++", more=_several("folders")),
    SharedOption("-D --define", "NAME[=VALUE]", "a macro for a kernel in C or C++", more=_several("macros")),
)
_STATEMENTS = SharedOption("--max-statements", "N", "read up to N statements or bundles; default: 200000")
_WALK = SharedOption(
    "--max-walk",
    "N",
    "follow up to N loop trips and statements (default 200000), compute up to N executions (default 1000000)",
)
_ELEMENTS = SharedOption("--max-elements", "N", "compute tensors of up to N elements; default: {}", "134217728")
_SCHEDULER = SharedOption(
    "--scheduler", "ADDRESS", "compute on the workers of a Dask scheduler, such as tcp://host:8786"
)

SHARED: dict[str, tuple[SharedOption, ...]] = {
    "target": (SharedOption("--target", "T", _TARGET + "; default: {}", "the one the program names"),),
    "required_target": (SharedOption("--target", "T", _TARGET, more={"required": True}),),
    "targets": (SharedOption("--target", "T", "{}", more={"nargs": "+", "action": "extend"}),),
    "entry": (SharedOption("--entry", "F", "function to {}; default: the entry, or the only one", "run"),),
    "inputs": (SharedOption("--in", "NAME=...", "{}", "input of argument NAME", _several("inputs")),),
    "arguments": (SharedOption("--arg", "NAME=VALUE", "{}", "value of a scalar argument", _several("args")),),
    "target_options": (SharedOption("--option", "NAME=VALUE", "{}", "set a target option", _several("options")),),
    "toolchain": (
        SharedOption(
            "--toolchain",
            "V",
            "assembler of a tile program: older (default), 2026-05, 2026-07 or 2026-08",
            more={**_several("options"), "default": None, "type": _toolchain},
        ),
    ),
    "cores": (
        SharedOption(
            "--cores",
            "N",
            "number of cores that share global memory; default: 1",
            # A target option like the others; without a default of its own.
            more={**_several("options"), "default": None, "type": _cores},
        ),
    ),
    "kernel": (
        SharedOption("--block", "N", "core that a C++ kernel runs on, from 0; N/M means core N of M"),
        SharedOption("--sub", "N/M", "vector unit N of M that a C++ kernel runs on"),
        SharedOption("--auto-sync", "S", "barriers that the compiler of an AscendC kernel adds: on (default) or off"),
        SharedOption(
            "--tiling", "FILE", "fields of an AscendC kernel's tiling structure (JSON); --arg tiling.F=V sets one"
        ),
        SharedOption("--tiling-struct", "NAME", "tiling structure of an AscendC kernel, where several could be meant"),
        *_HEADERS,
    ),
    "headers": _HEADERS,
    "tilelang": (
        SharedOption(
            "--core", "N", "core that a TileLang kernel runs on, from 0; default of run: all, reporting the slowest"
        ),
        SharedOption("--unscheduled", None, "keep the source order of a TileLang kernel", more=_FLAG),
    ),
    "c_launch": (
        SharedOption(
            "--tensor",
            "NAME=TENSOR",
            "tensor of a .c kernel: f32[64,1024], fastest size first; out:f32[64,1024] for outputs",
            more=_several("tensors"),
        ),
        SharedOption("--index-space", "A,B", "size of the index space of a .c kernel, one to five numbers"),
        SharedOption(
            "--accumulators",
            "A",
            "order of sums in .c loops with loop_unroll: source (default), or split like the vendor",
        ),
        SharedOption("--tpcs", "N", "number of TPCs that share the index space of a .c kernel; default: 1"),
    ),
    "opaque": (
        SharedOption(
            "--opaque",
            "OP=N",
            "cycles of an operation that is not modelled, such as tmatmul=400; its results stay unknown",
            more=_several("opaque"),
        ),
    ),
    "engine": (_ENGINES,),
    "max_cycles": (SharedOption("--max-cycles", "N", "stop after N cycles"),),
    "page": (SharedOption("--html", "FILE", "write the report as one HTML file"),),
    "output_folder": (SharedOption("--out", "DIR", "write every output to DIR/NAME.npy"),),
    "statements": (_STATEMENTS,),
    "walk": (_WALK, _STATEMENTS),
    "elements": (_ELEMENTS,),
    "run_limits": (_WALK, _STATEMENTS, _ELEMENTS),
    "workers": (SharedOption("--workers", "N", "number of processes; default: 1"), _SCHEDULER),
    "scheduler": (_SCHEDULER,),
    "ledger": (SharedOption("--ledger", "FILE", "save {} in FILE, and continue from it; removed at the end"),),
}
"""The options by their names for `OptionParser.take`; options that belong together share a name."""

"""The languages of programs that castsim's core does not read itself: which module runs a file, by its suffix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import CastsimError, ReadError, Span
from castsim.isa.reading import CPP_SUFFIXES, Source

GRAPHS = (".onnx", ".mlir", ".tosa")
"""Suffixes of graphs, which `castsim graph` runs."""

C, CPP, FRAGMENT, GRAPH, TILELANG = "kernels in C", "kernels in C++", "fragments", "graphs", "TileLang kernels"
BINARY, LINTER, SCHEDULER = "TPC binaries", "the linter of TPC assembly", "the scheduler of TPC assembly"

_MODULES = {
    BINARY: "castsim.tools.tpc_binary.binary_programs",
    C: "castsim.languages.tpc_c.kernels",
    CPP: "castsim.languages.cpp_recording.kernels",
    FRAGMENT: "castsim.languages.fragments",
    GRAPH: "castsim.tools.graphs.command",
    LINTER: "castsim.tools.tpc_lint.lint_checking",
    SCHEDULER: "castsim.tools.tpc_assembly.scheduling",
    TILELANG: "castsim.languages.tilelang.command",
}
"""The module of each language: its `execute_run(config, kernel, outputs, run)` is what `castsim run` does.

Kernels in C and binaries load as program text does, and `whole` completes a fragment. Of the tools of assembly, `lint`
returns broken issue rules, and `schedule` checks named registers.
"""

TILELANG_FORM = re.compile(r"(.+\.py)(?::(\w*))?")
"""Form of a TileLang kernel: a Python file and one of its functions."""


def language_of(program: str | None) -> str | None:
    """Return the language of a program that `castsim run` leaves to it, by its name; None for all others."""
    if program is None:
        return None
    if program.endswith(CPP_SUFFIXES):
        return CPP
    if program.endswith(GRAPHS):
        return GRAPH
    return TILELANG if TILELANG_FORM.fullmatch(program) else None


def language_module(language: str) -> ModuleType:
    """Return the module of a language.

    Raises:
        ReadError: this installation lacks it.
    """
    if language not in _MODULES:
        raise ReadError(f"this castsim was installed without {language}")
    return import_module(_MODULES[language])


FRAGMENT_NAME = "<fragment>"
"""Name of a fragment in messages."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A completed fragment; `statements` are the positions of its statements, by line of the program."""

    source: Source
    statements: dict[int, Span] = field(default_factory=dict)

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Give errors of the whole program their position in the fragment."""
        try:
            yield
        except CastsimError as error:
            for one in (error, *error.further):
                if self.statements and one.span is not None and one.span.file == FRAGMENT_NAME:
                    one.span = self.statements.get(one.span.line, next(iter(self.statements.values())))
            raise

"""Features: what a command declares of itself, and the table of those that castsim ships."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from castsim.commands.shared_options import OptionParser


class Feature(NamedTuple):
    """A command of castsim: its name, options, execution and documents.

    `declare` adds the options; its docstring ends the help. `module` has `execute(options)` or another `function`, and
    is imported only for that. `documents` are the classes of its JSON documents, as `module:Class`. A feature lies in a
    folder of its own, whose `FEATURES` hold it, and may use the core and other features.
    """

    name: str
    group: str
    summary: str
    declare: Callable[[OptionParser], None]
    module: str
    documents: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    """The modules that make pages of its JSON documents; empty if its pages need more than the document, or none."""
    start: str = ""
    """An example for newcomers; empty if they need the command later."""
    function: str = "execute"
    """The function of the module that executes it."""
    needs: tuple[str, str] | None = None
    """The package that its module imports, and the extra that installs it."""
    interactive: bool = False
    """Whether it waits for a person; a progress bar would only show waiting time."""

    @property
    def text(self) -> str:
        """The end of the help, '' where Python leaves docstrings out."""
        first, *rest = (self.declare.__doc__ or "").splitlines() or [""]
        margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
        return "\n".join([first, *(line[margin:] for line in rest)]).rstrip()


GROUPS = ("run and look", "casts and specifications", "improve", "TPC tools", "evidence", "editors and scripts")
"""The groups of the help, in its order."""

COMMANDS = {
    "run": "castsim.commands.declared_commands",
    "view": "castsim.tools.traces",
    "debug": "castsim.tools.debugger",
    "check": "castsim.tools.check",
    "diff": "castsim.tools.diff",
    "record": "castsim.languages.cpp_recording",
    "graph": "castsim.tools.graphs",
    "expand": "castsim.tools.expand",
    "cast": "castsim.commands.declared_commands",
    "estimate": "castsim.tools.estimate",
    "formats": "castsim.commands.declared_commands",
    "targets": "castsim.commands.declared_commands",
    "lower": "castsim.tools.lowering",
    "conform": "castsim.tools.lowering",
    "compare": "castsim.tools.compare",
    "quantise": "castsim.tools.quantise",
    "scratch": "castsim.commands.declared_commands",
    "tosa": "castsim.tools.graphs",
    "advise": "castsim.tools.advise",
    "tune": "castsim.tools.tune",
    "sweep": "castsim.tools.sweep",
    "builtin": "castsim.tools.builtins",
    "compiled": "castsim.tools.compiled",
    "lint": "castsim.tools.tpc_assembly",
    "latency": "castsim.tools.tpc_assembly",
    "schedule": "castsim.tools.tpc_assembly",
    "unswizzle": "castsim.tools.tpc_assembly",
    "asm": "castsim.tools.tpc_assembly",
    "disasm": "castsim.tools.tpc_assembly",
    "accuracy": "castsim.tools.accuracy",
    "verify": "castsim.tools.verify",
    "calibrate": "castsim.tools.calibrate",
    "lsp": "castsim.tools.editor",
    "completion": "castsim.tools.reference",
    "manual": "castsim.tools.reference",
    "schema": "castsim.tools.reference",
}
"""The module of each command that castsim ships, in the order of the help; a start reads the names only."""

RUN_BLOCKS: tuple[str, ...] = ("castsim.tools.advise.page",)
"""The modules whose `blocks_of_run` adds blocks to the summary on the page of a run."""

ENTRY_POINTS = "castsim.features"
"""The group of entry points by which other packages add commands: the name of each is the command's."""


def feature_of(name: str) -> Feature | None:
    """Return the feature of a command, of castsim or of an installed package; None if there is none.

    Raises:
        CastsimError: the package of the command cannot be imported, or gives no feature of that name.
    """
    if name in COMMANDS:
        return next(feature for feature in _features_in(COMMANDS[name]) if feature.name == name)
    return _of_packages(name)


def shipped_features() -> tuple[Feature, ...]:
    """Return the features that castsim ships, in the order of the help."""
    return tuple(
        next(feature for feature in _features_in(home) if feature.name == name) for name, home in COMMANDS.items()
    )


def _features_in(module: str) -> tuple[Feature, ...]:
    features: tuple[Feature, ...] = import_module(module).FEATURES
    return features


def _of_packages(name: str) -> Feature | None:
    from importlib.metadata import entry_points  # noqa: PLC0415 - only for names that castsim does not ship

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        from castsim.isa.errors import CastsimError  # noqa: PLC0415 - as above

        try:
            feature = entry.load()
        except Exception as error:  # whatever another package raises
            raise CastsimError(
                f"the command '{name}' of the package {_package(entry)} cannot be loaded: {error}"
            ) from error
        if not isinstance(feature, Feature) or feature.name != name:
            raise CastsimError(
                f"the command '{name}' of the package {_package(entry)} is not a Feature named {name}: {entry.value}"
            )
        return feature
    return None


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module

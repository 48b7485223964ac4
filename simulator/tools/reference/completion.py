"""The command `completion`: print the script that completes commands and options in a shell."""

from __future__ import annotations

from argparse import Action, Namespace
from collections.abc import Callable, Sequence

import shtab

from castsim.commands.command_line import whole_parser
from castsim.commands.outcome import CommandOutcome, plain
from castsim.engines import ENGINES
from castsim.execution.run_limits import STALE_MODES
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Overflow, Rounding, Saturation
from castsim.numerics.tiers import Tier
from castsim.reports.documents import CommandDocument, says
from castsim.reports.sections import FULL, RUN, further_reports
from castsim.running.synchronisation.flags import MODES as SYNCHRONISATION
from castsim.running.synchronisation.race_findings import MODES as RACES
from castsim.targets.loader import specification_names, target_names


class Completion(CommandDocument, name="completion"):
    """The output of `castsim completion`."""

    shell: str = says("Name of the shell.")
    script: str = says("The script that completes commands in it.")


SHELLS = ("bash", "zsh", "tcsh", "fish")
"""Shells that have a completion script."""


# The words that options and arguments take, for those who list them: completion, and nothing that judges input.

Words = Callable[[], Sequence[str]]

_TIERS = ("default", *(tier.value for tier in Tier))

_EVERYWHERE: dict[str, Words] = {
    "target": target_names,
    "spec": specification_names,
    "src": lambda: tuple(FORMATS),
    "dst": lambda: tuple(FORMATS),
    "pair": lambda: tuple(FORMATS),
    "engine": lambda: ENGINES,
    "overflow": lambda: [each.value for each in Overflow],
    "saturation": lambda: [each.value for each in Saturation],
    "accumulators": lambda: ("source", "split"),
}
"""Completions by the argument's name in the parser."""

_OF_ONE: dict[str, Words] = {
    "run level": lambda: ("1", "2", "3"),
    "run sync": lambda: SYNCHRONISATION,
    "run races": lambda: RACES,
    "run stale_reads": lambda: STALE_MODES,
    "run toolchain": lambda: ("older", "2026-05", "2026-07", "2026-08"),
    "run backend": lambda: ("library", "vpto"),
    "run report": lambda: (RUN, FULL, *further_reports()),
    "cast target": lambda: ("all", "abstract", *target_names()),
    "cast rounding": lambda: [each.value for each in Rounding],
    "verify rounding": lambda: [each.value for each in Rounding],
    "verify tier": lambda: _TIERS,
    "verify against": lambda: (*_TIERS, "oracle"),
    "lower via": lambda: tuple(FORMATS),
    "check format": lambda: ("text", "json", "github", "sarif"),
    "check language": lambda: ("pto", "tpc", "c", "toml", "mlir", "onnx"),
    "targets what": lambda: (*target_names(), *specification_names()),
    "targets diff": target_names,
    "completion shell": lambda: SHELLS,
    "compiled form": lambda: ("as", "implicit", "explicit", "reinterpret", "convert_to", "ir"),
    "compiled reading": lambda: ("compiler", "document", "scalar"),
    "compiled order": lambda: ("linear", "swizzle", "lane", "scalar"),
    "compiled rounding": lambda: tuple(
        f"SW_{word}" for word in ("RHNE", "RZ", "RU", "RD", "SR", "CSR", "RHAZ", "SR_RNE")
    ),
}
"""Completions by command and argument name; they take precedence over those of all commands."""


def words_of(command: str, action: Action) -> Sequence[str]:
    """Return the legal words of a command's argument; empty if it takes anything that no list can contain."""
    words = _OF_ONE.get(f"{command} {action.dest}") or _EVERYWHERE.get(action.dest)
    return () if words is None else words()


def execute(options: Namespace) -> CommandOutcome:
    """Return the script of a shell.

    Raises:
        ReadError: the shell has no script.
    """
    if options.shell not in SHELLS:
        raise ReadError(f"no completion script for shell '{options.shell}'", legal=SHELLS)
    main, commands = whole_parser()
    for action in main._actions:
        _teach("", action)
    for name, parser in commands.items():
        for action in parser._actions:
            _teach(name, action)
    script = shtab.complete(main, options.shell)
    return CommandOutcome({"shell": options.shell, "script": script}, lambda _: plain(script))


def _teach(command: str, action: Action) -> None:
    """Attach completions to an argument."""
    words = words_of(command, action)
    if words:
        action.choices = list(words)
    elif isinstance(action.metavar, str) and action.metavar.startswith("DIR"):
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # what shtab looks for
    elif action.dest in _FILES or (isinstance(action.metavar, str) and action.metavar.startswith("FILE")):
        action.complete = shtab.FILE  # type: ignore[attr-defined]  # as above


_FILES = ("program", "file", "files", "what")
"""Arguments that are files although their help does not say so; `what` of `scratch` may be one."""

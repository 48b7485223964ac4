"""The execution of `castsim builtin`."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import Outcome
from castsim.isa.errors import ReadError
from castsim.reports.targets import listed
from castsim.targets.options import with_options
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtins.lookup import builtin_target, generations, is_cast
from castsim.tpc_compiler.special_functions.finding import find_function


def execute(options: Namespace) -> Outcome:
    """Emit a builtin, call it if there is an input, or list them.

    Raises:
        ReadError: unknown builtin or target, a bad input or number.
        IllegalError: the target lacks it, or its values are not documented or not modelled.
    """
    if options.name is None:
        for option in ("emit", "inputs", "args", "out", "rounding", "options"):
            if getattr(options, option):
                shown = {"inputs": "in", "args": "arg", "options": "option"}.get(option, option)
                raise ReadError(f"--{shown} needs the NAME of a builtin")
        return _list(options.target)
    if options.target is None:
        raise ReadError("name the generation by --target", legal=[target.name for target in _targets(None)])
    chosen = with_options(builtin_target(options.target), assignments("--option", options.options))
    function = None if is_cast(options.name, chosen) else find_function(options.name, chosen)
    if function is not None:
        from castsim.commands.execution.builtin_function import emit_or_call_function  # noqa: PLC0415 - as below

        return emit_or_call_function(options, chosen, function)
    from castsim.commands.execution.builtin_call import emit_or_call  # noqa: PLC0415 - a list needs no machine

    return emit_or_call(options, chosen)


def _list(target: str | None) -> Outcome:
    targets = _targets(target)

    def text(_: int) -> Any:
        from castsim.reports.targets import builtin_list  # noqa: PLC0415 - rich, only if printed

        return builtin_list(targets)

    return Outcome({"targets": [{"name": each.name, **listed(each)} for each in targets]}, text)


def _targets(name: str | None) -> list[VliwTarget]:
    return [builtin_target(each) for each in ((name,) if name is not None else generations())]

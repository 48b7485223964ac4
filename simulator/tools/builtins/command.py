"""The command `builtin`: show the TPC-C builtins: assembly, cost, lane order, values."""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.option_parsers import assignments, given_of, refuse_given
from castsim.commands.outcome import CommandOutcome, answer
from castsim.isa.errors import ReadError
from castsim.reports.pages.answer_pages import builtin_list_page
from castsim.reports.targets import BuiltinList
from castsim.targets.description import with_options
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_compiler.builtin_sequences import builtin_target, find_function, generations, is_cast


def execute(options: Namespace) -> CommandOutcome:
    """Print a builtin's assembly, call it on an input, or list all builtins.

    Raises:
        ReadError: the builtin or target is unknown, or an input or number is invalid.
        IllegalError: the target lacks it, or its values are not documented or not modelled.
    """
    if options.name is None:
        given = given_of(options, "emit", "in", "arg", "out", "rounding", "option")
        refuse_given(given, "needs the name of a builtin")
        return _list(options.target)
    if options.target is None:
        raise ReadError("choose the generation", legal=[f"--target {target.name}" for target in _targets(None)])
    from castsim.tools.builtins import builtin_call  # noqa: PLC0415 - a list needs no machine

    chosen = with_options(builtin_target(options.target), assignments("--option", options.options))
    function = None if is_cast(options.name, chosen) else find_function(options.name, chosen)
    request = builtin_call.BuiltinRequest(
        options.name, chosen, options.rounding, assignments("--in", options.inputs), assignments("--arg", options.args),
        options.emit, options.out,
    )  # fmt: skip
    if function is not None:
        return builtin_call.emit_or_call_function(request, function)
    return builtin_call.emit_or_call(request)


def _list(target: str | None) -> CommandOutcome:
    return answer(builtin_list_page, BuiltinList.of(targets=_targets(target)))


def _targets(name: str | None) -> list[VliwTarget]:
    return [builtin_target(generation) for generation in ((name,) if name is not None else generations())]

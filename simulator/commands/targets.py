"""NAME is a shipped target or specification, or the path of a description (a name ending in .toml).

examples:
  castsim targets
  castsim targets a2a3
  castsim targets my.toml f32 f16
  castsim targets --diff a2a3 a5
  castsim targets --template a5 > chip.toml
  castsim targets tosa f32 e4m3fn
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from castsim.commands.outcome import CommandOutcome, stacked
from castsim.commands.shared_options import OptionParser
from castsim.isa.errors import ReadError
from castsim.isa.value_expressions import format_spelled
from castsim.reports import conform
from castsim.reports.pairs import pair_detail
from castsim.reports.targets import (
    TargetsList,
    diff_document,
    diff_text,
    list_text,
    pair_document,
    pair_text,
    target_document,
    target_text,
    targets_diff,
)
from castsim.targets import is_specification, load_specification, load_target, specification_names, target_names


def declare(parser: OptionParser) -> None:
    """Add the arguments of `targets`."""
    what = "a target or specification, and one of its type pairs"
    parser.add_argument("what", metavar="NAME SRC DST", nargs="*", help=what)
    what = "compare the conversions of two targets side by side"
    parser.add_argument("--diff", metavar=("A", "B"), nargs=2, help=what)
    parser.add_argument("--template", metavar="T", help="print the description of a target, to start another from")
    parser.take("page")


def execute(options: Namespace) -> CommandOutcome:
    """Look up targets.

    Raises:
        ReadError, TargetDataError: unknown target or format, bad description.
        IllegalError: the target does not have the pair.
    """
    if options.diff:
        if options.what or options.template:
            raise ReadError("--diff compares two targets and takes nothing else", legal=("targets --diff A B",))
        return _diff(*options.diff)
    if options.template:
        if options.what:
            raise ReadError("--template prints a target and takes nothing else", legal=("targets --template T",))
        return _template(options.template)
    match options.what:
        case []:
            return _list()
        case [name, *pair] if len(pair) in (0, 2) and is_specification(name):
            return _specification(name, *pair)
        case [name]:
            return _one(name)
        case [name, src, dst]:
            return _pair(name, src, dst)
        case _:
            raise ReadError(
                f"targets takes nothing, a name, or a name and two formats; not {len(options.what)} arguments",
                legal=("targets", "targets NAME", "targets NAME SRC DST"),
            )


def _list() -> CommandOutcome:
    targets = [load_target(name) for name in target_names()]
    specifications = [load_specification(name) for name in specification_names()]

    return CommandOutcome(
        TargetsList.of(targets=targets, specifications=specifications),
        lambda _: stacked(conform.list_text(specifications), "", list_text(targets)),
    )


def _specification(name: str, *pair: str) -> CommandOutcome:
    spec = load_specification(name)
    document = conform.pair_document(spec, *pair) if pair else conform.specification_document(spec)

    return CommandOutcome(
        document, lambda _: conform.pair_text(spec, *pair) if pair else conform.specification_text(spec)
    )


def _one(name: str) -> CommandOutcome:
    target = load_target(name)

    return CommandOutcome(target_document(target), lambda _: target_text(target))


def _template(name: str) -> CommandOutcome:
    def text(_: int) -> Any:
        from castsim.reports.target_template import template_text  # noqa: PLC0415 - rich, only if printed

        return template_text(name)

    return CommandOutcome(target_document(load_target(name)), text)


def _pair(name: str, src: str, dst: str) -> CommandOutcome:
    target = load_target(name)
    detail = pair_detail(target, format_spelled(src), format_spelled(dst))

    return CommandOutcome(pair_document(target, detail), lambda _: pair_text(target, detail))


def _diff(first: str, second: str) -> CommandOutcome:
    diff = targets_diff(load_target(first), load_target(second))
    return CommandOutcome(diff_document(diff), lambda _: diff_text(diff))

"""The commands `targets` and `formats`: look up targets, specifications and number formats."""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.outcome import CommandOutcome, answer, plain
from castsim.isa.errors import ReadError
from castsim.isa.value_expressions import format_spelled
from castsim.reports.pages.answer_pages import (
    formats_page,
    specification_page,
    specification_pair_page,
    target_page,
    target_pair_page,
    targets_diff_page,
    targets_list_page,
)
from castsim.reports.pairs import FormatsList, formats, pair_detail
from castsim.reports.target_template import template
from castsim.reports.targets import (
    SpecificationDescription,
    TargetDescription,
    TargetsList,
    specification_pair_document,
    targets_diff,
)
from castsim.targets.loader import (
    is_specification,
    load_specification,
    load_target,
    specification_names,
    target_names,
)


def execute(options: Namespace) -> CommandOutcome:
    """Look up targets.

    Raises:
        ReadError, TargetDataError: a target or format is unknown, or a description is invalid.
        IllegalError: the target does not have the pair.
    """
    if options.diff:
        if options.what or options.template:
            raise ReadError("--diff takes two targets and nothing else", legal=("targets --diff A B",))
        return _diff(*options.diff)
    if options.template:
        if options.what:
            raise ReadError("--template takes one target and nothing else", legal=("targets --template T",))
        return _template(options.template)
    match options.what:
        case []:
            return _list()
        case [name, *pair] if len(pair) in (0, 2) and is_specification(name):
            return _specification(name, *pair)
        case [name]:
            return answer(target_page, TargetDescription.of(load_target(name)))
        case [name, src, dst]:
            return _pair(name, src, dst)
        case _:
            raise ReadError(
                f"expected no argument, a name, or a name and two formats, not {len(options.what)} arguments",
                legal=("targets", "targets NAME", "targets NAME SRC DST"),
            )


def execute_formats(options: Namespace) -> CommandOutcome:
    """List number formats.

    Raises:
        ReadError: the format does not exist.
    """
    return answer(formats_page, FormatsList.of(formats=formats(*options.names)))


def _list() -> CommandOutcome:
    targets = [load_target(name) for name in target_names()]
    specifications = [load_specification(name) for name in specification_names()]
    return answer(targets_list_page, TargetsList.of(targets=targets, specifications=specifications))


def _specification(name: str, *pair: str) -> CommandOutcome:
    spec = load_specification(name)
    if pair:
        return answer(specification_pair_page, specification_pair_document(spec, *pair))
    return answer(specification_page, SpecificationDescription.of(spec))


def _template(name: str) -> CommandOutcome:
    return CommandOutcome(TargetDescription.of(load_target(name)), lambda _: plain(template(name)))


def _pair(name: str, src: str, dst: str) -> CommandOutcome:
    pair = pair_detail(load_target(name), format_spelled(src), format_spelled(dst))
    return answer(target_pair_page, pair.as_json())


def _diff(first: str, second: str) -> CommandOutcome:
    return answer(targets_diff_page, targets_diff(load_target(first), load_target(second)))

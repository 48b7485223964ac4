"""NAME is a shipped target or specification, or the path of a description (anything that ends in .toml).

examples:
  castsim targets
  castsim targets a2a3
  castsim targets my.toml f32 f16
  castsim targets --diff a2a3 a5
  castsim targets tosa f32 e4m3fn
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.commands.outcome import Outcome

SUMMARY = "list targets and specifications; the casts, facts and options of one; one type pair in full"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `targets`."""
    parser.add_argument(
        "what", metavar="NAME SRC DST", nargs="*", help="a target or specification; and a type pair of it"
    )
    parser.add_argument("--diff", metavar=("A", "B"), nargs=2, help="which conversions two targets have, side by side")


def execute(options: Namespace) -> Outcome:
    """Look up targets.

    Raises:
        ReadError, TargetDataError: unknown target or format, bad description.
        IllegalError: the target does not have the pair.
    """
    from isa.errors import ReadError  # noqa: PLC0415

    if options.diff:
        if options.what:
            raise ReadError("--diff compares two targets and takes nothing else", legal=("targets --diff A B",))
        return _diff(*options.diff)
    match options.what:
        case []:
            return _list()
        case [name, *pair] if len(pair) in (0, 2) and _is_specification(name):
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


def _list() -> Outcome:
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports import specification  # noqa: PLC0415
    from simulator.reports.targets import list_document  # noqa: PLC0415
    from targets import load_specification, load_target, specification_names, target_names  # noqa: PLC0415

    targets = [load_target(name) for name in target_names()]
    specifications = [load_specification(name) for name in specification_names()]

    def text(_: int) -> Any:
        from rich.console import Group  # noqa: PLC0415 - rich, only if printed

        from simulator.reports import specification_text  # noqa: PLC0415
        from simulator.reports.targets_text import list_text  # noqa: PLC0415

        return Group(specification_text.list_text(specifications), "", list_text(targets))

    headers = [specification.header(spec) for spec in specifications]
    return Outcome({**list_document(targets), "specifications": headers}, text)


def _is_specification(name: str) -> bool:
    from targets import is_specification  # noqa: PLC0415

    return is_specification(name)


def _specification(name: str, *pair: str) -> Outcome:
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports import specification  # noqa: PLC0415
    from targets import load_specification  # noqa: PLC0415

    spec = load_specification(name)
    document = specification.pair_document(spec, *pair) if pair else specification.specification_document(spec)

    def text(_: int) -> Any:
        from simulator.reports import specification_text as texts  # noqa: PLC0415 - rich, only if printed

        return texts.pair_text(spec, *pair) if pair else texts.specification_text(spec)

    return Outcome(document, text)


def _one(name: str) -> Outcome:
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.targets import target_document  # noqa: PLC0415
    from targets import load_target  # noqa: PLC0415

    target = load_target(name)

    def text(_: int) -> Any:
        from simulator.reports.targets_text import target_text  # noqa: PLC0415 - rich, only if printed

        return target_text(target)

    return Outcome(target_document(target), text)


def _pair(name: str, src: str, dst: str) -> Outcome:
    from isa.formats import format_named  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.pairs import pair_detail  # noqa: PLC0415
    from simulator.reports.targets import pair_document  # noqa: PLC0415
    from targets import load_target  # noqa: PLC0415

    target = load_target(name)
    detail = pair_detail(target, format_named(src), format_named(dst))

    def text(_: int) -> Any:
        from simulator.reports.targets_text import pair_text  # noqa: PLC0415 - rich, only if printed

        return pair_text(target, detail)

    return Outcome(pair_document(target, detail), text)


def _diff(first: str, second: str) -> Outcome:
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.targets_diff import diff_document, diff_text, targets_diff  # noqa: PLC0415
    from targets import load_target  # noqa: PLC0415

    diff = targets_diff(load_target(first), load_target(second))
    return Outcome(diff_document(diff), lambda _: diff_text(diff))

"""Searches chains of up to three of the target's instructions that give what a specification asks of a cast, proves the
best one on every code of SRC where that can be done, and writes it as a program that `castsim run` executes. If there
is none, the chain that fails least is shown with the smallest value on which it fails and every value on its way, and
the exit code is 1. --spec is NAME@VERSION:ATTRIBUTE=VALUE:..., exact (default), tosa, onnx or a path. --rounding and
--saturate ask for more than a specification does. --via judges the chain through other formats, each with the rounding
mode of the instruction that leads there if one is given; the destination may stand at the end.

--option sets an option of the target, as in `castsim run`. Options that a program or its launcher sets, such as mode
bits (`castsim targets T` says which), are also searched, one at a time, then in pairs, where nothing conforms without:
single instructions first, then chains. What conforms without further options goes before what needs them; if that is a
chain, a line tells of the single instruction with options, if there is one. --via and options that stand for doubtful
points of the hardware are taken as they are.

examples:
  castsim lower f16 i8 --spec tosa --target a5
  castsim lower f32 u16 --spec onnx --saturate --target gaudi --out f32_to_u16.tpc
  castsim lower i32 bf16 --spec tosa --target a5 --json -
  castsim lower f16 i8 --spec tosa --target greco --via bf16:rhne i8:rhne
  castsim lower f32 bf16 --spec tosa --target a5 --option ctrl_48_at_start=1
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.answering import Answer
    from simulator.commands.outcome import Outcome
    from simulator.planning import CastRequest

SUMMARY = "a specification's cast on a target: by which instructions, proven, at what cost, as a program"

_LONGEST = 3
"""Instructions of the longest chain that the search follows."""


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `lower`."""
    add = parser.add_argument
    add("src", metavar="SRC", help="format of the source")
    add("dst", metavar="DST", help="format of the results")
    add("--target", metavar="T", required=True, help="name or path of a target")
    add("--spec", metavar="S", default="exact", help="specification: exact (default), tosa, onnx, or a path")
    add("--rounding", metavar="M", help="how results in range are to be rounded")
    add("--saturate", action="store_true", help="results out of range are to be clamped")
    add("--via", metavar="F[:M]", nargs="+", help="judge the chain through these formats")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")
    add("--rows", metavar="R", default="16", help="rows of the tensor that the program converts; default: 16")
    add("--cols", metavar="C", default="256", help="its columns; default: 256")
    add("--steps", metavar="N", default="3", help="longest chain, 1 to 3 instructions; default: 3")
    add("--out", metavar="FILE", help="write the program; - prints it alone")


def execute(options: Namespace) -> Outcome:
    """Plan the cast.

    Raises:
        ReadError: what was typed, options of the target among it; a file that cannot be written.
        IllegalError: the specification does not have the cast; demands that contradict it; no such chain.
        TileError: no program holds a tensor of that shape.
    """
    from simulator.commands.delivery import STDOUT  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.planning import Verdict  # noqa: PLC0415
    from simulator.reports.lower import answer_document  # noqa: PLC0415

    found = _answered(options, _request(options))
    if options.out not in (None, STDOUT) and found.text is not None:
        _write(Path(options.out), found.text)

    def text(_: int) -> Any:
        if options.out == STDOUT and found.text is not None:
            from rich.text import Text  # noqa: PLC0415 - only if printed

            return Text(found.text.rstrip("\n"), no_wrap=True)
        from simulator.reports.lower_text import lower_text  # noqa: PLC0415 - rich, only if printed

        return lower_text(found, options.out)

    return Outcome(answer_document(found, options.out), text, code=1 if found.plan.verdict is Verdict.DIFFERS else 0)


def _request(options: Namespace) -> CastRequest:
    from simulator.planning import CastRequest  # noqa: PLC0415
    from simulator.specifications import parse_specification  # noqa: PLC0415

    spec, version, attributes = parse_specification(options.spec)
    return CastRequest(
        src=options.src.strip(),
        dst=options.dst.strip(),
        target=options.target,
        spec=spec,
        version=version,
        attributes=attributes,
        rounding=options.rounding,
        saturate=options.saturate,
        rows=_number("--rows", options.rows),
        cols=_number("--cols", options.cols),
        steps=_steps(options.steps),
    )


def _answered(options: Namespace, request: CastRequest) -> Answer:
    from simulator.answering import answer, answer_through  # noqa: PLC0415
    from simulator.commands.lower_shape import planned  # noqa: PLC0415
    from simulator.commands.run import assignments  # noqa: PLC0415
    from simulator.reports.stages import watching  # noqa: PLC0415

    values = assignments("--option", options.options)
    with watching(quiet=options.quiet) as heard:
        if options.via:
            return planned(request, lambda one: answer_through(one, options.via, heard, options=values))
        return planned(request, lambda one: answer(one, heard, options=values))


def _number(option: str, text: str) -> int:
    from isa.errors import ReadError  # noqa: PLC0415

    if not text.strip().isdecimal() or int(text) < 1:
        raise ReadError(f"{option} {text.strip()}: not an integer of at least 1")
    return int(text)


def _steps(text: str) -> int:
    from isa.errors import ReadError  # noqa: PLC0415

    steps = _number("--steps", text)
    if steps > _LONGEST:
        raise ReadError(
            f"--steps {steps}: chains have up to {_LONGEST} instructions; every further one multiplies what is "
            "searched by all casts of the target",
            legal=[str(number + 1) for number in range(_LONGEST)],
        )
    return steps


def _write(path: Path, text: str) -> None:
    from isa.errors import ReadError  # noqa: PLC0415

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ReadError(f"cannot write program '{path}': {error.strerror or error}") from None

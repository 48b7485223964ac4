"""R, C and S take a number or, with --sweep, a range FIRST:LAST[:STEP]. Without --row-stride rows follow each other at
the next whole block. A program instead of two formats: the smallest tmp tile of each of its casts, and what all takes.
A sweep has up to 1000000 shapes; from 10000 on it says how many.

examples:
  castsim scratch f32 i16 --rows 4 --cols 200 --row-stride 256
  castsim scratch f16 i8 --rows 8 --cols 160 --audit
  castsim scratch f32 i16 --rows 0:300:50 --cols 0:256 --row-stride 8:512:8 --sweep
  castsim scratch kernel.pto --arg rows=128
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.commands.outcome import Outcome
    from simulator.strided.audit import ScratchAuditor

SUMMARY = "how large a tmp tile a cast needs: the formula, and the bytes really touched"

_LARGEST = 1_000_000
"""Beyond all tiles, and small enough for any shape up to it to be looked at in a second."""
_RANGE = re.compile(r"(\d+)(?::(\d+)(?::(\d+))?)?", re.ASCII)


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `scratch`."""
    add = parser.add_argument
    add("what", metavar="SRC DST | PROGRAM", nargs="+", help="source and destination format, or a .pto file")
    add("--rows", metavar="R", help="valid rows")
    add("--cols", metavar="C", help="valid columns")
    add("--row-stride", metavar="S", help="row stride of the source tile in elements")
    add("--rounding", metavar="M", help="rounding mode of the cast")
    add("--target", metavar="T", help="name or path of a target (default a2a3, or the one the program names)")
    add("--entry", metavar="F", help="function of the program")
    add("--arg", metavar="NAME=VALUE", dest="args", action="append", default=[], help="scalar argument of the program")
    add("--audit", action="store_true", help="compare with the bytes that the operations of a run touch")
    add("--sweep", action="store_true", help="audit every shape of the ranges; list where formula and extent differ")


def execute(options: Namespace) -> Outcome:
    """Compute, audit or sweep a pair, or look at a program.

    Raises:
        ReadError: what was typed: unknown format, target or mode, no number or range, a bad program.
        IllegalError: a pair that the target lacks or that uses no scratch.
    """
    from isa.errors import ReadError  # noqa: PLC0415

    match options.what:
        case [program] if program.endswith(".pto"):
            for option in ("rows", "cols", "row_stride", "rounding", "audit", "sweep"):
                if getattr(options, option):
                    raise ReadError(f"--{option.replace('_', '-')} is for two formats; a program says it itself")
            return _program(options, program)
        case [src, dst]:
            if options.rows is None or options.cols is None:
                raise ReadError("--rows and --cols say how large the tile is")
            for option, given in (("entry", options.entry), ("arg", options.args)):
                if given:
                    raise ReadError(f"--{option} is for a program; two formats have none", legal=("X.pto",))
            return _pair(options, src, dst)
        case _:
            raise ReadError("scratch takes two formats or one .pto file", legal=("SRC DST --rows R --cols C", "X.pto"))


def _program(options: Namespace, program: str) -> Outcome:
    from pathlib import Path  # noqa: PLC0415

    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.commands.run import assignments, scalar  # noqa: PLC0415
    from simulator.reports.program_scratch import program_document, program_scratch, program_text  # noqa: PLC0415

    scalars = {name: scalar(name, text) for name, text in assignments("--arg", options.args).items()}
    found = program_scratch(Path(program), options.target, options.entry, scalars)
    return Outcome(program_document(found), lambda _: program_text(found), 0 if found.suffices else 1)


def _pair(options: Namespace, src: str, dst: str) -> Outcome:
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.scratch import audit_text, single_document, sweep_document, sweep_text  # noqa: PLC0415
    from simulator.reports.sweeping import sweep  # noqa: PLC0415

    auditor = _auditor(options, src, dst)
    rows, cols = numbers("--rows", options.rows), numbers("--cols", options.cols)
    strides = None if options.row_stride is None else numbers("--row-stride", options.row_stride)
    if options.sweep:
        found = sweep(auditor, rows, cols, strides, quiet=options.quiet)
        return Outcome(sweep_document(found), lambda _: sweep_text(found), 0 if found.explained else 1)
    if any(len(values) != 1 for values in (rows, cols, strides or range(1))):
        raise ReadError("a range needs --sweep")
    stride = auditor.packed_stride(cols[0]) if strides is None else strides[0]
    if stride < cols[0]:
        raise ReadError(f"--row-stride {stride} is less than --cols {cols[0]}")
    audit = auditor.audit(rows[0], cols[0], stride)
    failed = options.audit and not audit.explained

    def text(_: int) -> Any:
        return audit_text(auditor, audit, touched=options.audit)

    return Outcome(single_document(auditor, audit, touched=options.audit), text, 1 if failed else 0)


def numbers(option: str, text: str) -> range:
    """Return the numbers that `N` or `FIRST:LAST[:STEP]` names; LAST is included.

    Raises:
        ReadError: another form, a step of 0, or a range that runs backwards.
    """
    from isa.errors import ReadError  # noqa: PLC0415

    match = _RANGE.fullmatch(text)
    if match is None:
        raise ReadError(f"{option} {text}: no number and no range", legal=("128", "0:256", "0:256:8"))
    first, last, step = match[1], match[2] or match[1], match[3] or "1"
    if int(last) > _LARGEST:
        raise ReadError(f"{option} {text}: no tile is that large", legal=(f"0 to {_LARGEST}",))
    if int(step) == 0 or int(last) < int(first):
        raise ReadError(
            f"{option} {text}: the range is empty", legal=("FIRST:LAST:STEP with FIRST <= LAST, STEP >= 1",)
        )
    return range(int(first), int(last) + 1, int(step))


def _auditor(options: Namespace, src: str, dst: str) -> ScratchAuditor:
    from isa.errors import IllegalError, ReadError  # noqa: PLC0415
    from isa.pto.program import RoundMode  # noqa: PLC0415
    from simulator.strided.audit import ScratchAuditor  # noqa: PLC0415
    from targets import load_target, target_names  # noqa: PLC0415
    from targets.strided_repeat import StridedRepeatTarget  # noqa: PLC0415

    mode = None
    if options.rounding is not None:
        name = options.rounding.upper()
        if name not in RoundMode.__members__:
            raise ReadError(f"unknown rounding mode '{options.rounding}'", legal=[m.name.lower() for m in RoundMode])
        mode = RoundMode[name]
    target = load_target(options.target or "a2a3")
    if not isinstance(target, StridedRepeatTarget):
        having = [name for name in target_names() if isinstance(load_target(name), StridedRepeatTarget)]
        raise IllegalError(f"casts on {target.name} use no scratch tile", legal=[f"--target {name}" for name in having])
    return ScratchAuditor(target, src, dst, mode)

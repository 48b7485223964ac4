"""The command `scratch`: show how large a tmp tile a cast needs, and which bytes it touches."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from castsim.commands.option_parsers import given_of, limits_of, refuse_given, scalars
from castsim.commands.outcome import CommandOutcome, answer
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.audit import ScratchAuditor
from castsim.reports.scratch import (
    every_document,
    every_page,
    program_page,
    program_scratch,
    scratch_page,
    single_document,
    sweep,
    sweep_page,
)
from castsim.targets.loader import load_target, target_names
from castsim.targets.strided_repeat import StridedRepeatTarget

_LARGEST = 1_000_000
"""Sentinel tile size: larger than any tile, and small enough to check any shape up to it in a second."""


ALL = "all"
"""Name of all casts that use scratch."""

_RANGE = re.compile(r"(\d+)(?::(\d+)(?::(\d+))?)?", re.ASCII)


def execute(options: Namespace) -> CommandOutcome:
    """Compute, audit or sweep a pair, or examine a program.

    Raises:
        ReadError: a format, target or mode is unknown, a text is not a number or range, or the program is invalid.
        IllegalError: the target lacks the pair, or the pair uses no scratch.
    """
    match options.what:
        case [program] if program.endswith(".pto"):
            given = given_of(options, "rows", "cols", "row-stride", "rounding", "audit", "sweep")
            refuse_given(given, "applies to two formats; a program has its own")
            limits = limits_of(options.max_walk, options.max_statements)
            scratch = program_scratch(Path(program), options.target, options.entry, scalars(options.args), limits)
            return answer(program_page, scratch.as_json(), 0 if scratch.suffices else 1)
        case [word] if word.lower() == ALL:
            names = ("rounding", "audit", "sweep", "entry", "arg", "max-walk", "max-statements")
            refuse_given(given_of(options, *names), "does not apply to all casts at once")
            return _all(_Shape(options.rows, options.cols, options.row_stride), _target(options.target))
        case [src, dst]:
            shape = _Shape(options.rows, options.cols, options.row_stride)
            of_program = given_of(options, "entry", "arg", "max-walk", "max-statements")
            refuse_given(of_program, "applies only to a program", legal=("X.pto",))
            auditor = ScratchAuditor(_target(options.target), src, dst, _mode(options.rounding))
            if options.sweep:
                swept = sweep(auditor, shape.rows, shape.cols, shape.strides, quiet=options.quiet)
                return answer(sweep_page, swept.as_json(), 0 if swept.explained else 1)
            return _pair(shape, auditor, audited=options.audit)
        case _:
            raise ReadError(
                "scratch takes two formats or one .pto file",
                legal=("SRC DST --rows R --cols C", "all --rows R --cols C", "X.pto"),
            )


class _Shape:
    """The shapes of tiles that options give, as ranges of numbers."""

    def __init__(self, rows: str | None, cols: str | None, row_stride: str | None) -> None:
        if rows is None or cols is None:
            raise ReadError("the size of the tile is missing", legal=("--rows R --cols C",))
        self.rows, self.cols = numbers("--rows", rows), numbers("--cols", cols)
        self.strides = None if row_stride is None else numbers("--row-stride", row_stride)

    def single(self, otherwise: str) -> tuple[int, int, int | None]:
        """Return rows, columns and row stride of the only shape.

        Raises:
            ReadError: there are several shapes; the message is `otherwise`.
        """
        if any(len(values) != 1 for values in (self.rows, self.cols, self.strides or range(1))):
            raise ReadError(otherwise)
        return self.rows[0], self.cols[0], None if self.strides is None else self.strides[0]


def _pair(shape: _Shape, auditor: ScratchAuditor, *, audited: bool) -> CommandOutcome:
    rows, cols, row_stride = shape.single("a range needs --sweep")
    stride = auditor.packed_stride(cols) if row_stride is None else row_stride
    if stride < cols:
        raise ReadError(f"--row-stride {stride} is less than --cols {cols}")
    audit = auditor.audit(rows, cols, stride)
    failed = audited and not audit.explained
    return answer(scratch_page, single_document(auditor, audit, touched=audited), 1 if failed else 0)


def _all(shape: _Shape, target: StridedRepeatTarget) -> CommandOutcome:
    """Return the scratch that serves every cast of a shape: the documents' tmpSizeAllBytes."""
    rows, cols, row_stride = shape.single("a range needs two formats and --sweep")
    auditors = [ScratchAuditor(target, rule.src, rule.dst) for rule in target.sequences_in_force]
    widest = max(auditor.packed_stride(cols) for auditor in auditors)
    audits = [auditor.audit(rows, cols, widest if row_stride is None else row_stride) for auditor in auditors]
    return answer(every_page, every_document(list(zip(auditors, audits, strict=True))))


def numbers(option: str, text: str) -> range:
    """Return the numbers that `N` or `FIRST:LAST[:STEP]` names; LAST is included.

    Raises:
        ReadError: the text is malformed, the step is 0, or the range runs backwards.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ReadError(f"{option} {text}: neither a number nor a range", legal=("128", "0:256", "0:256:8"))
    first, last, step = match[1], match[2] or match[1], match[3] or "1"
    if int(last) > _LARGEST:
        raise ReadError(f"{option} {text}: larger than any tile", legal=(f"0 to {_LARGEST}",))
    if int(step) == 0 or int(last) < int(first):
        raise ReadError(
            f"{option} {text}: the range is empty", legal=("FIRST:LAST:STEP with FIRST <= LAST, STEP >= 1",)
        )
    return range(int(first), int(last) + 1, int(step))


def _mode(rounding: str | None) -> RoundMode | None:
    if rounding is None:
        return None
    if rounding.upper() not in RoundMode.__members__:
        raise ReadError(f"unknown rounding mode '{rounding}'", legal=[mode.name.lower() for mode in RoundMode])
    return RoundMode[rounding.upper()]


def _target(name: str | None) -> StridedRepeatTarget:
    target = load_target(name or "a2a3")
    if not target.casts_use_scratch:
        having = [name for name in target_names() if load_target(name).casts_use_scratch]
        raise IllegalError(f"casts on {target.name} use no scratch tile", legal=[f"--target {name}" for name in having])
    return target

"""The command `scratch`: show how large a tmp tile a cast needs, and which bytes it touches."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from castsim.commands.option_parsers import limits_of, refuse_given, scalars_of
from castsim.commands.outcome import CommandOutcome, answer
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.audit import ScratchAuditor
from castsim.reports.scratch import (
    ProgramScratch,
    every_document,
    every_page,
    program_page,
    program_scratch,
    scratch_page,
    single_document,
    sweep,
    sweep_document,
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
            names = ("rows", "cols", "row-stride", "rounding", "audit", "sweep")
            refuse_given(options, names, "applies to two formats; a program has its own")
            return _program(options, program)
        case [word] if word.lower() == ALL:
            return _all(options)
        case [src, dst]:
            if options.rows is None or options.cols is None:
                raise ReadError("the size of the tile is missing", legal=("--rows R --cols C",))
            of_program = ("entry", "arg", "max-walk", "max-statements")
            refuse_given(options, of_program, "applies only to a program", legal=("X.pto",))
            return _pair(options, src, dst)
        case _:
            raise ReadError(
                "scratch takes two formats or one .pto file",
                legal=("SRC DST --rows R --cols C", "all --rows R --cols C", "X.pto"),
            )


def _program(options: Namespace, program: str) -> CommandOutcome:
    scratch = program_scratch(Path(program), options.target, options.entry, scalars_of(options), limits_of(options))
    return answer(program_page, ProgramScratch.of(scratch), 0 if scratch.suffices else 1)


def _pair(options: Namespace, src: str, dst: str) -> CommandOutcome:
    auditor = _auditor(options, src, dst)
    rows, cols = numbers("--rows", options.rows), numbers("--cols", options.cols)
    strides = None if options.row_stride is None else numbers("--row-stride", options.row_stride)
    if options.sweep:
        swept = sweep(auditor, rows, cols, strides, quiet=options.quiet)
        return answer(sweep_page, sweep_document(swept), 0 if swept.explained else 1)
    if any(len(values) != 1 for values in (rows, cols, strides or range(1))):
        raise ReadError("a range needs --sweep")
    stride = auditor.packed_stride(cols[0]) if strides is None else strides[0]
    if stride < cols[0]:
        raise ReadError(f"--row-stride {stride} is less than --cols {cols[0]}")
    audit = auditor.audit(rows[0], cols[0], stride)
    failed = options.audit and not audit.explained

    return answer(scratch_page, single_document(auditor, audit, touched=options.audit), 1 if failed else 0)


def _all(options: Namespace) -> CommandOutcome:
    """Return the scratch that serves every cast of a shape: the documents' tmpSizeAllBytes."""
    names = ("rounding", "audit", "sweep", "entry", "arg", "max-walk", "max-statements")
    refuse_given(options, names, "does not apply to all casts at once")
    if options.rows is None or options.cols is None:
        raise ReadError("the size of the tile is missing", legal=("--rows R --cols C",))
    target = _target(options)
    given = numbers("--rows", options.rows), numbers("--cols", options.cols)
    strides = given[1] if options.row_stride is None else numbers("--row-stride", options.row_stride)
    if any(len(values) != 1 for values in (*given, strides)):
        raise ReadError("a range needs two formats and --sweep")
    rows, cols = given[0][0], given[1][0]
    auditors = [ScratchAuditor(target, rule.src, rule.dst) for rule in target.sequences_in_force]
    widest = max(auditor.packed_stride(cols) for auditor in auditors)
    audits = [auditor.audit(rows, cols, widest if options.row_stride is None else strides[0]) for auditor in auditors]
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


def _auditor(options: Namespace, src: str, dst: str) -> ScratchAuditor:
    mode = None
    if options.rounding is not None:
        name = options.rounding.upper()
        if name not in RoundMode.__members__:
            raise ReadError(f"unknown rounding mode '{options.rounding}'", legal=[m.name.lower() for m in RoundMode])
        mode = RoundMode[name]
    return ScratchAuditor(_target(options), src, dst, mode)


def _target(options: Namespace) -> StridedRepeatTarget:
    target = load_target(options.target or "a2a3")
    if not target.casts_use_scratch:
        having = [name for name in target_names() if load_target(name).casts_use_scratch]
        raise IllegalError(f"casts on {target.name} use no scratch tile", legal=[f"--target {name}" for name in having])
    return target

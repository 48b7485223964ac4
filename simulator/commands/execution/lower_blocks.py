"""The execution of `castsim lower` to a block format: operation, chain, cost, or why not."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments, integer_from
from castsim.commands.outcome import Outcome
from castsim.commands.output import STDOUT, write_program
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FloatFormat, format_named
from castsim.quantisation import BlockFormat
from castsim.reports.lower import block_lowering_document
from castsim.reports.lower_text import block_lowering_text, program_text
from castsim.running.block_lowering import lower_blocks
from castsim.targets import load_target
from castsim.targets.options import with_options

if TYPE_CHECKING:
    from rich.console import RenderableType

_SOURCES = ("f32", "f16", "bf16")


def execute(options: Namespace, wanted: BlockFormat) -> Outcome:
    """Answer for a block format.

    Raises:
        ReadError: what was typed; options that are for casts of elements. IllegalError: a source without exponents.
    """
    for name, value in (("--via", options.via), ("--spec", options.spec), ("--rounding", options.rounding)):
        if value is not None:
            raise ReadError(f"{name} is for casts of elements; {wanted.name} is a block format")
    src = format_named(options.src)
    if not isinstance(src, FloatFormat) or src.name not in _SOURCES:
        raise IllegalError(f"{src.name} is not quantised to blocks on a chip", legal=_SOURCES)
    target = with_options(load_target(options.target), assignments("--option", options.options))
    rows, cols = integer_from("--rows", options.rows), integer_from("--cols", options.cols)
    found = lower_blocks(src, wanted, target, rows, cols)
    program = found.ways[0].program if found.ways else None
    if program is not None and options.out not in (None, STDOUT):
        write_program(Path(options.out), program)

    def text(_: int) -> RenderableType:
        if options.out == STDOUT and program is not None:
            return program_text(program)
        return block_lowering_text(found, options.out)

    return Outcome(block_lowering_document(found, options.out), text, code=0 if found.ways else 1)

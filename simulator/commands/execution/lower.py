"""The execution of `castsim lower`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.execution.page_files import check_page, with_note, write_page_of
from castsim.commands.execution.workers import refuse_workers
from castsim.commands.option_parsers import assignments, integer_from
from castsim.commands.outcome import Outcome
from castsim.commands.output import STDOUT, write_program
from castsim.isa.errors import IllegalError, ReadError, TileError
from castsim.isa.sources import ASSEMBLY_SUFFIXES, TILE_SUFFIX
from castsim.isa.spellings import format_spelled
from castsim.planning import CastRequest, Verdict, assembly_of, cost_of
from castsim.planning.lowering_answers import Answer, answer, answer_through
from castsim.planning.request import MOST_STEPS
from castsim.quantisation import BLOCK_FORMATS, BlockFormat, block_format
from castsim.reports.documents import VERSIONS
from castsim.reports.lower import answer_document
from castsim.reports.progress import stage_progress
from castsim.specifications import parse_specification
from castsim.targets import load_target

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.planning.lowering_answers import Answer


# The shape of the tensor that `castsim lower` writes a program for: which shapes the program can have, and why not.
#
# A program of tiles holds the whole tensor in the buffer, in lines of whole blocks; a program of a vector unit loops
# over
# it. A shape that does not go is refused in the words of the command line: its user never saw the text that does not
# fit.

LARGEST = 1 << 26
"""Elements of the largest tensor: its conversion is simulated to the end, for several chains, to find the fastest."""


_USUAL = (16, 256)
"""Rows and columns on which a chain is looked for to say what would go; the defaults of the command."""


_WIDEST_BLOCK = 1 << 10
"""Elements up to which columns are tried as the size of a block."""


def planned(request: CastRequest, make: Callable[[CastRequest], Answer]) -> Answer:
    """Return the answer to a request.

    Raises:
        ReadError: more elements than are simulated.
        TileError: the target holds no program of this shape; names --rows and --cols and what goes.
        CastsimError: as `make`.
    """
    target = load_target(request.target)
    if not target.has_tiles:
        _check_elements(request.rows, request.cols)
    try:
        return make(request)
    except TileError as error:
        raise TileError(
            f"--rows {request.rows} --cols {request.cols}: no program for {target.name} converts a tile of this "
            f"shape: {error.message}",
            legal=_going(request, make),
        ) from None


def _check_elements(rows: int, cols: int) -> None:
    if rows * cols > LARGEST:
        most = {"rows": LARGEST // cols, "cols": LARGEST // rows}
        raise ReadError(
            f"--rows {rows} --cols {cols}: more than {LARGEST} elements, which would all be simulated",
            legal=[f"--{name} up to {number}" for name, number in most.items() if number],
        )


def _going(request: CastRequest, make: Callable[[CastRequest], Answer]) -> tuple[str, ...]:
    """Return the column counts that run and the rows with them, by trying the chain found for the usual shape."""
    rows, cols = _USUAL
    try:
        found = make(replace(request, rows=rows, cols=cols)).plan
    except TileError:
        return ()

    def goes(rows: int, cols: int) -> bool:
        try:
            cost_of(assembly_of(found.chain, found.demand.src, found.demand.dst, found.target, rows, cols))
        except (TileError, IllegalError):
            return False
        return True

    block = next((size for size in _powers() if goes(1, size)), None)
    if block is None:
        return ()
    widest = block * _most(lambda count: goes(1, count * block))
    cols = min(-(-request.cols // block) * block, widest)
    return (
        f"--cols: a multiple of {block} up to {widest}",
        f"--rows with --cols {cols}: up to {_most(lambda count: goes(count, cols))}",
    )


def _powers() -> list[int]:
    return [1 << place for place in range(_WIDEST_BLOCK.bit_length())]


def _most(goes: Callable[[int], bool]) -> int:
    """Return the largest number that goes; 1 does, and nothing does beyond a number that does not."""
    low, high = 1, 2
    while goes(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if goes(middle) else (low, middle)
    return low


_LONGEST = MOST_STEPS
"""Instructions of the longest chain that the search follows."""


def execute(options: Namespace) -> Outcome:
    """Plan the cast.

    Raises:
        ReadError: what was typed, options of the target among it; a file that cannot be written.
        IllegalError: the specification does not have the cast; demands that contradict it; no such chain.
        TileError: no program holds a tensor of that shape.
    """
    blocks = block_format_of(options.dst)
    every = options.src is None and options.spec is not None
    if every or blocks is not None:
        from castsim.commands.execution import lower_blocks, lower_matrix  # noqa: PLC0415 - other answers' reports

        return (
            lower_matrix.execute(options, **_extent(options))
            if blocks is None
            else lower_blocks.execute(options, blocks)
        )
    if options.dst is None:
        raise ReadError(
            "lower takes SRC and DST, or --spec without them",
            legal=("lower SRC DST --target T", "lower --spec S --target T"),
        )
    refuse_workers(options, "one cast is planned by one process; all casts of --spec, without SRC and DST, by several")
    check_page(options, {"--out": options.out})
    _check_suffix(options)
    found = _answered(options, _request(options))
    if options.out not in (None, STDOUT) and found.text is not None:
        write_program(Path(options.out), found.text)

    write_page_of(found, options, options.out)

    def text(_: int) -> RenderableType:
        from castsim.reports.lower_text import lower_text, program_text  # noqa: PLC0415 - rich, only if printed

        if options.out == STDOUT and found.text is not None:
            return program_text(found.text)
        return with_note(lower_text(found, options.out), options)

    document = {"schema_version": VERSIONS["lower"], **answer_document(found, options.out)}
    return Outcome(document, text, code=1 if found.plan.verdict is Verdict.DIFFERS else 0)


def block_format_of(text: str | None) -> BlockFormat | None:
    """Return the block format that a destination names, None where it names an element format or nothing."""
    if text is None:
        return None
    try:
        found = block_format(text)
    except (ReadError, IllegalError):
        return None
    return found if found.name in BLOCK_FORMATS else None


def _check_suffix(options: Namespace) -> None:
    """Reject the name of a file that would be read as a program of the other language.

    Raises:
        ReadError: it is one; no such target.
        IllegalError: a specification in place of a target.
    """
    suffix = "" if options.out is None else Path(options.out).suffix
    if suffix not in (TILE_SUFFIX, *ASSEMBLY_SUFFIXES):
        return
    target = load_target(options.target)
    own = (TILE_SUFFIX,) if target.has_tiles else ASSEMBLY_SUFFIXES
    if suffix not in own:
        message = f"--out {options.out}: programs for {target.name} are {own[0]} files"
        raise ReadError(message, legal=(f"--out FILE{own[0]}",))


def _request(options: Namespace) -> CastRequest:
    spec, version, attributes = parse_specification(options.spec or "exact")
    return CastRequest(
        src=format_spelled(options.src).name,
        dst=format_spelled(options.dst).name,
        target=options.target,
        spec=spec,
        version=version,
        attributes=attributes,
        rounding=options.rounding,
        saturate=options.saturate,
        **_extent(options),
    )


def _extent(options: Namespace) -> dict[str, int]:
    rows, cols = integer_from("--rows", options.rows), integer_from("--cols", options.cols)
    return {"rows": rows, "cols": cols, "steps": _steps(options.steps)}


def _answered(options: Namespace, request: CastRequest) -> Answer:
    values = assignments("--option", options.options)
    with stage_progress(quiet=options.quiet) as progress:
        if options.via:
            return planned(request, lambda one: answer_through(one, options.via, progress, options=values))
        return planned(request, lambda one: answer(one, progress, options=values))


def _steps(text: str) -> int:
    steps = integer_from("--steps", text)
    if steps > _LONGEST:
        raise ReadError(
            f"--steps {steps}: chains have up to {_LONGEST} instructions; each further one multiplies the "
            "search by the number of casts of the target",
            legal=[str(number + 1) for number in range(_LONGEST)],
        )
    return steps

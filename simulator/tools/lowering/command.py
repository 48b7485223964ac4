"""The command `lower`: find the instructions for a specification's cast: proof, cost, program."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments, given_of, integer_from, options_as, output_folder
from castsim.commands.outcome import STDOUT, CommandOutcome, plain, write_program
from castsim.commands.run_views import (
    check_page,
    ledger_of,
    removal,
    resume_hint,
    with_note,
    write_page_of,
)  # fmt: skip
from castsim.files import file_names
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, ReadError, TileError
from castsim.isa.formats import FloatFormat, format_named
from castsim.isa.reading import ASSEMBLY_SUFFIXES, TILE_SUFFIX
from castsim.isa.value_expressions import format_spelled
from castsim.reports.progress import stage_progress
from castsim.running.acceptance import parse_specification
from castsim.targets.description import with_options
from castsim.targets.loader import load_target
from castsim.tools.distribution.distributing import refuse_workers, workers_of
from castsim.tools.lowering.catalogue import assembly_of, cost_of
from castsim.tools.lowering.demand import MOST_STEPS, CastRequest, Verdict
from castsim.tools.lowering.lowering_answers import Answer, answer, answer_through
from castsim.tools.lowering.report import answer_document
from castsim.tools.quantise.quantisation import BLOCK_FORMATS, BlockFormat, block_format

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.execution.timing import ProgressCallback
    from castsim.tools.lowering.conformance import LoweredMatrix


# The shape of the tensor that `castsim lower` writes a program for: which shapes the program can have, and why not.
#
# A program of tiles holds the whole tensor in the buffer, in lines of whole blocks; a program of a vector unit loops
# over it. A shape that does not go is refused in the words of the command line: its user never saw the text that does
# not fit.

LARGEST = 1 << 26
"""Maximum number of elements of a tensor: its conversion is simulated completely for several chains."""


_USUAL = (16, 256)
"""Default rows and columns, for which a chain is sought to suggest a shape that runs."""


_WIDEST_BLOCK = 1 << 10
"""Maximum number of elements of a block size that is tried as the number of columns."""


def _check_elements(rows: int, cols: int) -> None:
    if rows * cols > LARGEST:
        most = {"rows": LARGEST // cols, "cols": LARGEST // rows}
        raise ReadError(
            f"--rows {rows} --cols {cols}: more than {LARGEST} elements; castsim simulates each of them",
            legal=[f"--{name} up to {number}" for name, number in most.items() if number],
        )


def _going(request: CastRequest, make: Callable[[CastRequest], Answer]) -> tuple[str, ...]:
    """Return column counts that run, with the row counts for each, by trying the chain for the default shape."""
    rows, cols = _USUAL
    try:
        plan = make(replace(request, rows=rows, cols=cols)).plan
    except TileError:
        return ()

    def goes(rows: int, cols: int) -> bool:
        try:
            cost_of(assembly_of(plan.chain, plan.demand.src, plan.demand.dst, plan.target, rows, cols))
        except (TileError, IllegalError):
            return False
        return True

    powers = [1 << exponent for exponent in range(_WIDEST_BLOCK.bit_length())]
    block = next((size for size in powers if goes(1, size)), None)
    if block is None:
        return ()
    widest = block * _most(lambda count: goes(1, count * block))
    cols = min(-(-request.cols // block) * block, widest)
    return (
        f"--cols: a multiple of {block} up to {widest}",
        f"--rows with --cols {cols}: up to {_most(lambda count: goes(count, cols))}",
    )


def _most(goes: Callable[[int], bool]) -> int:
    """Return the largest number that runs; 1 runs, and nothing runs above a number that does not."""
    low, high = 1, 2
    while goes(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if goes(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class LowerOptions:
    """The options of `castsim lower`, as typed."""

    target: str
    src: str | None = None
    dst: str | None = None
    spec: str | None = None
    rounding: str | None = None
    saturate: bool = False
    via: tuple[str, ...] | None = None
    options: tuple[str, ...] = ()
    rows: str = ""
    cols: str = ""
    steps: str = ""
    out: str | None = None
    html: str | None = None
    json: str | None = None
    quiet: bool = False
    workers: str | None = None
    scheduler: str | None = None
    ledger: str | None = None


def execute(options: Namespace) -> CommandOutcome:
    """Plan the cast.

    Raises:
        ReadError: an option or a target's option is wrong, or a file cannot be written.
        IllegalError: the specification lacks the cast, a demand contradicts it, or the chain does not exist.
        TileError: no program holds a tensor of that shape.
    """
    asked = options_as(LowerOptions, options)
    blocks = block_format_of(asked.dst)
    if blocks is not None:
        return _to_blocks(asked, blocks)
    if asked.src is None and asked.spec is not None:
        return _lower_matrix(asked, asked.spec, **_extent(asked.rows, asked.cols, asked.steps))
    if options.dst is None:
        raise ReadError(
            "lower takes SRC and DST, or --spec without them",
            legal=("lower SRC DST --target T", "lower --spec S --target T"),
        )
    given = given_of(options, "workers", "scheduler", "ledger")
    refuse_workers(given, "several processes need all casts of --spec; leave out SRC and DST")
    check_page(options.html, {"--json": options.json, "--out": options.out})
    _check_suffix(options.out, options.target)
    values, request = assignments("--option", options.options), _request(asked)
    with stage_progress(options.quiet, options.json) as progress:
        cast_answer = _answered(request, options.via, values, progress)
    if options.out not in (None, STDOUT) and cast_answer.text is not None:
        write_program(Path(options.out), cast_answer.text)

    write_page_of(options.html, "castsim.tools.lowering.page", cast_answer, options.out)

    def text(_: int) -> RenderableType:
        from castsim.tools.lowering.report import lower_text  # noqa: PLC0415 - rich, only if printed

        if options.out == STDOUT and cast_answer.text is not None:
            return plain(cast_answer.text.rstrip("\n"))
        return with_note(lower_text(cast_answer, options.out), options.html)

    document = answer_document(cast_answer, options.out)
    return CommandOutcome(document, text, code=1 if cast_answer.plan.verdict is Verdict.DIFFERS else 0)


def block_format_of(text: str | None) -> BlockFormat | None:
    """Return the block format that a destination names; None if it names an element format or nothing."""
    if text is None:
        return None
    try:
        block_fmt = block_format(text)
    except (ReadError, IllegalError):
        return None
    return block_fmt if block_fmt.name in BLOCK_FORMATS else None


def _check_suffix(out: str | None, name: str) -> None:
    """Reject an output file whose suffix is that of the other language.

    Raises:
        ReadError: the suffix does not fit, or the target does not exist.
        IllegalError: the target is a specification.
    """
    suffix = "" if out is None else Path(out).suffix
    if suffix not in (TILE_SUFFIX, *ASSEMBLY_SUFFIXES):
        return
    target = load_target(name)
    own = (TILE_SUFFIX,) if target.has_tiles else ASSEMBLY_SUFFIXES
    if suffix not in own:
        message = f"--out {out}: programs for {target.name} are {own[0]} files"
        raise ReadError(message, legal=(f"--out FILE{own[0]}",))


def _request(options: LowerOptions) -> CastRequest:
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
        **_extent(options.rows, options.cols, options.steps),
    )


def _extent(rows: str, cols: str, most_steps: str) -> dict[str, int]:
    extent = {"rows": integer_from("--rows", rows), "cols": integer_from("--cols", cols)}
    steps = integer_from("--steps", most_steps)
    if steps > MOST_STEPS:
        raise ReadError(
            f"--steps {steps}: chains have up to {MOST_STEPS} instructions; each further step multiplies the "
            "search by the number of casts of the target",
            legal=[str(number + 1) for number in range(MOST_STEPS)],
        )
    return {**extent, "steps": steps}


def _answered(
    request: CastRequest, via: Sequence[str] | None, values: Mapping[str, str], progress: ProgressCallback
) -> Answer:
    """Return the answer to a request.

    Raises:
        ReadError: the shape has more elements than can be simulated.
        TileError: no program of the target fits this shape; the message names --rows, --cols and values that run.
    """

    def make(cast_request: CastRequest) -> Answer:
        if via:
            return answer_through(cast_request, via, progress, options=values)
        return answer(cast_request, progress, options=values)

    target = load_target(request.target)
    if not target.has_tiles:
        _check_elements(request.rows, request.cols)
    try:
        return make(request)
    except TileError as error:
        raise TileError(
            f"--rows {request.rows} --cols {request.cols}: no program for {target.name} can convert a tile of this "
            f"shape: {error.message}",
            legal=_going(request, make),
        ) from None


_SOURCES = ("f32", "f16", "bf16")


def _to_blocks(options: LowerOptions, wanted: BlockFormat) -> CommandOutcome:
    """Return the answer for a block format.

    Raises:
        ReadError: an option is wrong or applies to element casts only. IllegalError: the source has no exponent.
    """
    from castsim.tools.lowering.block_lowering import LoweredBlocks, lower_blocks  # noqa: PLC0415 - as above
    from castsim.tools.lowering.report import block_lowering_text  # noqa: PLC0415 - as above

    for name, value in (("--via", options.via), ("--spec", options.spec), ("--rounding", options.rounding)):
        if value is not None:
            raise ReadError(f"{name} applies to casts of elements; {wanted.name} is a block format")
    assert options.src is not None  # as DST is given
    src = format_named(options.src)
    if not isinstance(src, FloatFormat) or src.name not in _SOURCES:
        raise IllegalError(f"{src.name} cannot be quantised to blocks on a chip", legal=_SOURCES)
    target = with_options(load_target(options.target), assignments("--option", options.options))
    rows, cols = integer_from("--rows", options.rows), integer_from("--cols", options.cols)
    lowering = lower_blocks(src, wanted, target, rows, cols)
    program = lowering.ways[0].program if lowering.ways else None
    if program is not None and options.out not in (None, STDOUT):
        write_program(Path(options.out), program)

    def text(_: int) -> RenderableType:
        if options.out == STDOUT and program is not None:
            return plain(program.rstrip("\n"))
        return block_lowering_text(lowering, options.out)

    document = LoweredBlocks.of(lowering, file=options.out if lowering.ways else None)
    return CommandOutcome(document, text, code=0 if lowering.ways else 1)


# `castsim lower` without a cast: all casts of a specification, each with its program.


def _lower_matrix(options: LowerOptions, name: str, *, rows: int, cols: int, steps: int) -> CommandOutcome:
    """Lower the casts of a specification, for tensors of `rows` x `cols` elements, by chains of up to `steps`.

    Raises:
        ReadError: an option, the ledger or the scheduler is wrong, or a file cannot be written.
        IllegalError: the specification has no casts.
        TileError: no program holds a tensor of that shape.
        EngineError: a worker runs another version or dies.
    """
    from castsim.tools.lowering.conform import lowered_matrix_document, matrix_report  # noqa: PLC0415 - as above
    from castsim.tools.lowering.conformance import Extent, lower_all  # noqa: PLC0415 - a single cast needs no matrix

    _check_matrix(options)
    spec, version, attributes = parse_specification(name)
    if attributes:
        raise ReadError("the matrix covers all attributes; give only the specification and its version")
    workers = workers_of(options.workers, options.scheduler)
    ledger = ledger_of(options.ledger, {"--json": options.json, "--html": options.html})
    folder = output_folder(options.out)
    values = assignments("--option", options.options)
    with resume_hint(ledger), stage_progress(options.quiet, options.json) as progress:
        lowered_cells = lower_all(
            spec, options.target, version=version, options=values, extent=Extent(rows, cols, steps),
            workers=workers, ledger=ledger, progress=progress,
        )  # fmt: skip
    files = [None] * len(lowered_cells.cells) if folder is None else _write_programs(lowered_cells, folder)
    write_page_of(options.html, "castsim.tools.lowering.page", lowered_cells.matrix)

    notes = [] if folder is None else [f"{sum(map(bool, files))} programs written to {folder}"]

    def text(_: int, *, summary: bool = False) -> RenderableType:
        return matrix_report(lowered_cells.matrix, options.html, *notes, summary=summary)

    differs = any(lowered.entry.verdict is Verdict.DIFFERS for lowered in lowered_cells.cells)
    document = lowered_matrix_document(lowered_cells, files)
    return CommandOutcome(document, text, int(differs), partial(text, summary=True), removal(ledger))


def _check_matrix(options: LowerOptions) -> None:
    given = {"--via": options.via, "--rounding": options.rounding, "--saturate": options.saturate}
    for name, value in given.items():
        if value:
            raise ReadError(f"{name} applies to one cast, not to a specification", legal=("lower SRC DST ...",))
    if options.out == STDOUT:
        raise ReadError("--out -: needs a folder, because each cast becomes a file", legal=("--out DIR",))
    check_page(options.html, {"--json": options.json, "--out": options.out})


def _write_programs(lowered_cells: LoweredMatrix, folder: Path) -> list[str | None]:
    """Write each program to a file of the folder; return their paths, None for cells without one."""
    words = [
        "_".join((cell.src, cell.dst, *(word for pair in cell.attributes for word in pair)))
        for cell in (lowered.entry.cell for lowered in lowered_cells.cells)
    ]
    names = file_names(words)
    paths = [
        None if lowered.program is None else folder / f"{names[word]}{lowered.suffix}"
        for lowered, word in zip(lowered_cells.cells, words, strict=True)
    ]
    for lowered, path in zip(lowered_cells.cells, paths, strict=True):
        if path is not None and lowered.program is not None:
            write_program(path, lowered.program)
    return [None if path is None else str(path) for path in paths]

"""Scratch sizes as JSON: one shape, all casts of a shape, a sweep of shapes, the casts of a program."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format
from castsim.machines.strided.audit import ScratchAudit, ScratchAuditor
from castsim.reports.documents import CommandDocument, Document, Keys, apart, derived, record, says
from castsim.reports.pages.answer_pages import (
    Columns,
    Entry,
    Sections,
    counted,
    page_of_document,
    same,
    sentence,
    summary_section,
    table_section,
)
from castsim.reports.schemas.keys import Bytes, Elements, Line
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from castsim.machines.strided.strided_lowering import CastScratch, StridedLowerer

# Auditing scratch sizes over ranges of shapes, with a progress bar.

SHOWN = 5
"""Maximum number of example shapes kept per reason."""

MOST = 1_000_000
"""Maximum number of shapes of a sweep: some minutes, if they have few rows."""

_MANY = 10_000
"""Number of shapes above which their number is announced, because they take seconds."""


def sweep(
    auditor: ScratchAuditor, rows: range, cols: range, strides: range | None, *, quiet: bool = False
) -> ScratchSweep:
    """Audit every shape whose columns fit its row stride; a stride must be whole blocks of the source.

    Large sweeps are announced on standard error, with a bar on a terminal, unless `quiet`.

    Raises:
        IllegalError: the sweep has more than `MOST` shapes.
    """
    count = shape_count(auditor, rows, cols, strides)
    if count > MOST:
        raise IllegalError(
            f"the ranges have {count} shapes: {len(rows)} rows, {len(cols)} columns"
            + ("" if strides is None else f", {len(strides)} row strides"),
            legal=(f"up to {MOST} shapes; a larger step, such as FIRST:LAST:{-(-count // MOST)}, makes fewer",),
        )
    equal, smaller, explained = 0, 0, True
    reasons: Counter[str] = Counter()
    examples: dict[str, list[ScratchAudit]] = {}
    for rows_, cols_, stride in _watched(shapes(auditor, rows, cols, strides), count, quiet=quiet):
        audit = auditor.audit(rows_, cols_, stride)
        equal += not audit.reasons
        smaller += audit.need.total < audit.exact
        explained &= audit.explained
        for reason in audit.reasons:
            reasons[reason] += 1
            if reasons[reason] <= SHOWN:
                examples.setdefault(reason, []).append(audit)
    differences = tuple(SweepDifference(reason, number, examples[reason]) for reason, number in reasons.most_common())
    return ScratchSweep(
        auditor.target, auditor.src, auditor.dst, count, equal, smaller, explained=explained, differences=differences
    )


def shapes(auditor: ScratchAuditor, rows: range, cols: range, strides: range | None) -> Iterator[tuple[int, int, int]]:
    """Yield (rows, cols, stride) of a sweep; without strides, each number of columns has the packed one."""
    for col in cols:
        fitting = [auditor.packed_stride(col)] if strides is None else [s for s in strides if auditor.takes(col, s)]
        for stride in fitting:
            for row in rows:
                yield row, col, stride


def shape_count(auditor: ScratchAuditor, rows: range, cols: range, strides: range | None) -> int:
    """Return the number of shapes that `shapes` yields, without generating them."""
    if strides is None:
        return len(rows) * len(cols)
    whole = [stride for stride in strides if auditor.takes(0, stride)]
    return len(rows) * sum(len(whole) - bisect_left(whole, col) for col in cols)


def _watched(items: Iterator[tuple[int, int, int]], count: int, *, quiet: bool) -> Iterable[tuple[int, int, int]]:
    """Announce large sweeps; show a bar on a terminal."""
    if quiet or count < _MANY:
        return items
    if not sys.stderr.isatty():
        print(f"{count} shapes to audit", file=sys.stderr)
        return items
    return _with_bar(items, count)


def _with_bar(items: Iterator[tuple[int, int, int]], count: int) -> Iterator[tuple[int, int, int]]:
    from castsim.reports.bars import bars  # noqa: PLC0415 - only a watched sweep pays for rich

    with bars() as shown:
        yield from shown.track(items, total=count, description=f"{count} shapes")


class ScratchTerm(Keys):
    """A term of the sizing formula."""

    name: str = says("Meaning of the term.", lambda term: term[0])
    bytes_: Bytes = says("Size of the term.", lambda term: term[1], key="bytes")


class Shape(Keys):
    """A shape, and the results of the sizing formula."""

    rows: int = says("Rows.")
    cols: Elements = says("Columns.")
    row_stride_elements: Elements = says("Distance from row to row.", "row_stride")
    formula_bytes: Bytes = says("Bytes of the tmp tile by the formula.", "need.total")


class TouchedShape(Shape):
    """A shape, the results of the sizing formula, and the bytes that the operations touch."""

    touched_bytes: Bytes = says("Bytes up to the last one that the operations access.", "exact")
    touched_bytes_in_blocks: Bytes = says("These bytes, rounded up to whole blocks.", "in_blocks")
    agrees: bool = says("Whether the formula gives this number.")
    reasons: list[str] = says("Reasons for the difference.")


class Scratch(CommandDocument, Shape, name="scratch"):
    """Scratch of a cast of one shape."""

    target: str = says("Name of the target.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    terms: list[ScratchTerm] = says("The terms of the formula, of which the largest determines the size.", "need.terms")
    touched_bytes: Bytes = says(optional=True)
    """Bytes up to the last one that the operations touch; with `--audit`."""
    touched_bytes_in_blocks: Bytes = says("With `--audit`: the accessed bytes in whole blocks.", optional=True)
    agrees: bool = says("With `--audit`: whether the formula gives this number.", optional=True)
    reasons: list[str] = says("With `--audit`: the reasons for the difference.", optional=True)


class PairScratch(Keys):
    """Scratch that one cast needs."""

    src: str = says("Name of the source format.", lambda cast: cast[0].src)
    dst: str = says("Name of the destination format.", lambda cast: cast[0].dst)
    formula_bytes: Bytes = says("Bytes of the tmp tile by the formula.", lambda cast: cast[1].need.total)


class EveryScratch(CommandDocument, Shape, name="scratch-all"):
    """The scratch that serves every cast of one shape; with `all`."""

    target: str = says("Name of the target.")
    casts: list[PairScratch] = says("The casts that use scratch; the largest determines the size.")


@record
class SweepDifference(Keys):
    """Shapes that differ for one reason."""

    reason: str = says("The reason.")
    shapes: int = says("Number of shapes.")
    audits: Sequence[ScratchAudit] = apart()
    examples: Sequence[TouchedShape] = derived("Examples of the shapes.", "audits")


@record
class ScratchSweep(CommandDocument, name="scratch-sweep"):
    """The scratch of a cast over ranges of shapes; with `--sweep`."""

    target: Target = says("Name of the target.")
    src: Format = says("Name of the source format.")
    dst: Format = says("Name of the destination format.")
    shapes: int = says("Number of shapes.")
    equal_to_the_byte: int = says("Number of shapes for which the formula is exact to the byte.")
    formula_smaller: int = says("Number of shapes for which it is smaller than the accessed bytes.")
    explained: bool = says("Whether every difference has a known reason.")
    differences: Sequence[SweepDifference] = says("The shapes that differ, by reason.")


def single_document(auditor: ScratchAuditor, audit: ScratchAudit, *, touched: bool) -> Document:
    """Return the JSON of one shape, on request with the bytes that the operations touch."""
    more = {
        "touched_bytes": audit.exact,
        "touched_bytes_in_blocks": audit.in_blocks,
        "agrees": audit.agrees,
        "reasons": audit.reasons,
    }
    return Scratch.of(audit, target=auditor.target, src=auditor.src, dst=auditor.dst, **(more if touched else {}))


Audits = Sequence[tuple[ScratchAuditor, ScratchAudit]]
"""The casts of one target that use scratch, and the scratch that each needs for one shape."""


def every_document(audits: Audits) -> Document:
    """Return the JSON of all casts of one shape: the scratch of each, and the size that serves them all."""
    auditor, audit = audits[0]
    most = max(shape_audit.need.total for _, shape_audit in audits)
    return EveryScratch.of(audit, target=auditor.target, formula_bytes=most, casts=audits)


# The scratch of a whole program: the smallest tmp tile each cast can do with, and whether all fits the buffer.


@record
class ScratchUse(Keys):
    """A cast with a tmp tile."""

    line: Line = says("Line of the source.")
    src: Format = says("Name of the source format.")
    dst: Format = says("Name of the destination format.")
    rows: int = says("Number of rows of the cast.")
    cols: Elements = says("Number of columns of the cast.")
    row_stride_elements: Elements = says("Distance from row to row of the source.")
    tmp: str = says("Name of the tmp tile.")
    given_bytes: Bytes = says("Size of the tmp tile.")
    needed_bytes: Bytes = says("The required size for the cast.")


@record
class ProgramScratch(CommandDocument, name="scratch-program"):
    """The scratch of a program.

    The smallest tmp tiles are those that the most demanding cast of each needs, while the sizes of other tiles stay
    the same; tiles at overlapping fixed addresses count once.
    """

    file: str = says("The file.", key="program")
    target: Target = says("Name of the target.")
    casts: tuple[ScratchUse, ...] = says("The casts with tmp tiles.")
    occupied_bytes: Bytes = says("Bytes of the buffer for tiles.")
    minimal_bytes: Bytes = says("Bytes of the buffer for tiles with the smallest tmp tiles.")
    capacity_bytes: Bytes = says("Size of the buffer.")
    suffices: bool = derived(
        "Whether every tmp tile is large enough.",
        lambda own: all(cast.needed_bytes <= cast.given_bytes for cast in own.casts),
    )
    fits: bool = derived(
        "Whether everything fits the buffer with the smallest tmp tiles.",
        lambda own: own.minimal_bytes <= own.capacity_bytes,
    )


def program_scratch(
    path: Path,
    target: str | None,
    entry: str | None,
    scalars: Mapping[str, int | float],
    limits: Limits = DEFAULT_LIMITS,
) -> ProgramScratch:
    """Walk a program without rejecting small tmp tiles.

    Raises:
        IllegalError: the target's casts use no scratch; otherwise see `castsim.running.program_loading.load_program`.
    """
    from castsim.machines.strided.strided_lowering import StridedLowerer  # noqa: PLC0415 - a pair of formats walks no program
    from castsim.running.program_loading import load_program  # noqa: PLC0415 - as above

    lowerers: list[StridedLowerer] = []

    def make(chosen: Target) -> StridedLowerer:
        if not chosen.casts_use_scratch:
            raise IllegalError(f"casts on {chosen.name} use no scratch tile")
        lowerers.append(StridedLowerer(chosen, unsafe_scratch=True))
        return lowerers[0]

    loaded = load_program(path, target, entry, scalars, make_lowerer=make, limits=limits)
    lowerer = lowerers[0]
    _, capacity, _ = lowerer.buffer()
    needs: dict[tuple[str, int], int] = {}
    for use in lowerer.scratch_uses:
        key = (use.tmp.name, use.tmp.address)
        needs[key] = max(needs.get(key, 0), use.need.total)
    spans = [(tile.address, tile.end) for tile in lowerer.tiles.values()]
    others = [(tile.address, tile.end) for key, tile in lowerer.tiles.items() if key not in needs]
    casts = tuple(map(_scratch_use, lowerer.scratch_uses))
    minimal = _covered(others) + sum(needs.values())
    return ProgramScratch(loaded.file, loaded.target, casts, _covered(spans), minimal, capacity)


def _scratch_use(use: CastScratch) -> ScratchUse:
    src, dst = use.cast.src, use.cast.dst
    return ScratchUse(
        use.cast.span.line, src.format, dst.format, dst.valid_rows, dst.valid_cols, src.cols,
        use.tmp.name, use.tmp.size, use.need.total,
    )  # fmt: skip


def _covered(spans: list[tuple[int, int]]) -> int:
    """Return the number of bytes in the union of the spans."""
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


# The pages of these documents, of which text reports are made too.


def _shape(document: Entry) -> str:
    return "{rows:,} x {cols:,} elements (row stride {row_stride_elements:,})".format_map(document)


@page_of_document(
    "scratch",
    "Scratch of {src} -> {dst} on {target}",
    "castsim scratch {src} {dst} --rows {rows} --cols {cols} --target {target}",
)
def scratch_page(document: Entry) -> Sections:
    """Yield the sections on one cast of one shape."""
    size, cast = document["formula_bytes"], "{src} -> {dst}".format_map(document)
    touched = ""
    if "agrees" in document:
        reasons = f": {'; '.join(document['reasons'])}" if document["reasons"] else ""
        verdict = "agrees with" if document["agrees"] else "differs from"
        touched = (
            f"The operations touch {document['touched_bytes']:,} bytes, {document['touched_bytes_in_blocks']:,} in "
            f"whole blocks; the formula {verdict} that{reasons}."
        )
    yield summary_section(
        f"{cast} of {_shape(document)} on {document['target']} needs a tmp tile of {size:,} bytes.",
        "This holds with saturation off; otherwise the cast uses no tmp tile.",
        touched,
        "With 0 rows nothing is issued, and `castsim run` needs no tmp tile." * (not document["rows"]),
    )
    terms = [*document["terms"], {"name": "the tmp tile needs the largest", "bytes": size}]
    yield table_section("Terms", terms, {"term": "name", "bytes": "bytes"})


@page_of_document(
    "scratch-all",
    "Scratch of all casts on {target}",
    "castsim scratch all --rows {rows} --cols {cols} --target {target}",
)
def every_page(document: Entry) -> Sections:
    """Yield the sections on all casts of one shape."""
    size = f"A tmp tile of {document['formula_bytes']:,} bytes"
    yield summary_section(
        f"{size} serves every cast of {_shape(document)} on {document['target']}.",
        "The documents call this size tmpSizeAllBytes. Casts use a tmp tile only with saturation off.",
    )
    yield table_section("Casts", document["casts"], {"cast": "{src} -> {dst}", "bytes": "formula_bytes"})


@page_of_document("scratch-sweep", "Scratch of {src} -> {dst} on {target}", "castsim scratch --sweep")
def sweep_page(document: Entry) -> Sections:
    """Yield the sections on a sweep of shapes."""
    columns = {"rows": "rows", "columns": "cols", "row stride": "row_stride_elements", "formula": "formula_bytes",
               "touched in blocks": "touched_bytes_in_blocks", "touched": "touched_bytes"}  # fmt: skip
    yield summary_section(
        "For {src} -> {dst} on {target}, the formula gives exactly the touched bytes for {equal_to_the_byte:,} of "
        "{counted} and too few for {formula_smaller:,}.".format(
            **document, counted=counted(document["shapes"], "shape")
        ),
        "Every difference has a known reason."
        if document["explained"]
        else "Some differences have no known reason: castsim or the formula is wrong.",
        alarm=not document["explained"],
    )
    for difference in document["differences"]:
        reason, shapes = difference["reason"], counted(difference["shapes"], "shape")
        caption = f"{sentence(reason)} Examples of {shapes}; sizes in bytes."
        yield table_section(reason, difference["examples"], columns, caption)


@page_of_document("scratch-program", "Scratch of {stem}", "castsim scratch {program}")
def program_page(document: Entry) -> Sections:
    """Yield the sections on the casts of a program."""
    file, casts = PurePath(document["program"]).name, document["casts"]
    missing = sum(cast["given_bytes"] < cast["needed_bytes"] for cast in casts)
    if not casts:
        answer = f"No cast of {file} is given a tmp tile."
    elif missing:
        verb = "is" if missing == 1 else "are"
        answer = f"{counted(missing, 'cast')} of {file} {verb} given too small a tmp tile."
    else:
        answer = f"Every tmp tile of {file} is large enough."
    excess = document["minimal_bytes"] - document["capacity_bytes"]
    verdict = "fits" if document["fits"] else f"does not fit: {excess:,} bytes too many"
    yield summary_section(
        answer,
        "On {target} the tiles take {occupied_bytes:,} bytes, or {minimal_bytes:,} with the smallest tmp tiles; that "
        "{verdict} (the buffer has {capacity_bytes:,} bytes).".format(**document, verdict=verdict),
        alarm=missing > 0 or not document["fits"],
    )
    columns: Columns = {
        **same("line"), "cast": "{src} -> {dst}", "shape": "{rows} x {cols}", "row stride": "row_stride_elements",
        "tmp tile": "tmp", "has, bytes": "given_bytes", "needs, bytes": "needed_bytes",
        "spare, bytes": lambda cast: cast["given_bytes"] - cast["needed_bytes"],
    }  # fmt: skip
    yield table_section("Casts with a tmp tile", casts, columns)

"""Changes that save cycles, on pages: the page of advice, and the best changes of a run on the page of that run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from castsim.execution.run_limits import MAX_CYCLES
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.reading import Language, Source
from castsim.reports.numbers import grouped
from castsim.reports.pages.answer_pages import (
    Columns,
    Entry,
    Sections,
    counted,
    entry_table,
    folded_table,
    page_of_document,
    same,
    sentence,
    summary_section,
    titled_section,
)
from castsim.reports.pages.blocks import (
    Block,
    Folded,
    Line,
    Listing,
    Text,
)
from castsim.running.program_runs import Result, RunConfig
from castsim.tools.advise.advice_search import Advice, advice_on
from castsim.tools.advise.equivalence import original
from castsim.tools.advise.suggestions import SearchConfig


@page_of_document("advise", "Advice on {stem}", "castsim advise {file}")
def advise_page(document: Entry) -> Sections:
    """Yield the sections on advice: the best change, all offered changes as diffs, rejected changes."""
    file, cycles, offers = PurePath(document["file"]).name, document["cycles"], document["offers"]
    takes = f"{file} takes {cycles:,} cycles on {document['target']}"
    if offers:
        best = offers[0]
        answer = (
            f"{best['title'][:1].upper()}{best['title'][1:]}: {cycles:,} -> {best['cycles']:,} cycles, "
            f"{best['gained_percent']:.1f} % fewer."
        )
        takes += f"; {counted(len(offers), 'change')} would save some. Apply one with `castsim advise --apply NUMBER`"
    else:
        tried = counted(document["looked_at"], "change")
        answer = f"No change saves cycles and keeps the outputs; castsim tried {tried}."
    late = "The time was over before all changes were tried; give more with `--seconds N`."
    written = "Change {applied} was written to {output}.".format_map(document) if document["output"] else ""
    yield summary_section(answer, f"{takes}.", written, late if document["unfinished"] else "")
    columns: Columns = {
        "change": "number", **same("line", "cycles"), "saved cycles": "gained",
        "saved %": lambda offer: round(offer["gained_percent"], 1), "outputs are equal": "how", "what": "title",
    }  # fmt: skip
    if offers:
        diffs = [
            Folded(f"Change {offer['number']}: {offer['title']}", (Text((Line(sentence(offer["reason"])),)),
                   Listing(f"change {offer['number']}", offer["diff"].rstrip("\n"))))
            for offer in offers
        ]  # fmt: skip
        yield titled_section("Changes", entry_table(offers, columns, sources=1), *diffs)
    if document["rejected"]:
        table = entry_table(document["rejected"], {"rejected change": "title", **same("line"), "reason": "why"})
        yield titled_section("Rejected", folded_table("Changes that were rejected", table))


# The best changes of a run, on the page of that run.


def blocks_of_run(config: RunConfig, result: Result) -> Sequence[Block]:
    """Return what the page of a run says of changes."""
    advice = advice_of(config, result)
    return () if advice is None else tuple(_offers(advice))


_MOST_OFFERS = 3


def _offers(advice: Advice | str) -> Iterator[Block]:
    """Yield the best changes that were tried, each with its diff; otherwise why there is none or why none was tried."""
    if isinstance(advice, str):
        yield Text((Line(advice, "dim"),))
        return
    for offer in advice.offers[:_MOST_OFFERS]:
        fewer = 100 * offer.gained / offer.cycles_before
        gain = f"{grouped(offer.cycles)} cycles ({fewer:.1f} % fewer, {offer.evidence})"
        yield Folded(f"{gain}: {offer.change.title}", (Listing(offer.change.reason, offer.diff.rstrip("\n")),))
    if not advice.offers:
        tried = f"None of the {advice.looked_at} changes tried" if advice.looked_at else "No known change"
        more = " `castsim advise` tries more." if advice.unfinished else ""
        yield Text((Line(f"{tried} saves cycles with the same outputs.{more}", "dim"),))


_ADVICE_SECONDS = 1.0
"""Processor time in seconds for proposing changes to a run that is shown, and again for checking them."""

_MOST_ADVISED, _MOST_CHANGED_LINES = 20_000, 1000
"""Maximum executions and lines of a program that is also changed: each change is read and run again."""


def advice_of(config: RunConfig, result: Result) -> Advice | str | None:
    """Return the changes that save cycles of a run, or a sentence with the reason why none was tried.

    None if the run itself is in doubt.
    """
    if result.untimed or result.races or result.stale_reads:
        return None

    loaded = result.loaded
    changing = {
        "sync": config.sync != "insert", "opaque": bool(config.opaque), "declare": config.declare is not None,
        "machine": config.machine is not None, "unsafe-scratch": config.unsafe_scratch,
        "max-cycles": config.max_cycles != MAX_CYCLES,
    }  # fmt: skip
    given = [name for name, is_given in changing.items() if is_given]
    if config.is_recorded or config.launch is not None or not loaded.source:
        return "Run `castsim advise` to try changes." if loaded.source else "A binary has no text to change."
    if given:
        return f"Changes are not tried on a run with --{given[0]}."
    if len(result.timing.executions) > _MOST_ADVISED or loaded.source.count("\n") > _MOST_CHANGED_LINES:
        return "The program is long: run `castsim advise` to try changes."
    setting = SearchConfig(
        loaded.target, loaded.entry if loaded.target.has_tiles else None, config.args, config.inputs,
        seconds=_ADVICE_SECONDS, limits=config.limits,
    )  # fmt: skip
    language = Language.TILES if loaded.target.has_tiles else Language.ASSEMBLY
    try:
        return advice_on(original(Source(loaded.file, language, loaded.source), setting))
    except (CastsimError, EngineError) as error:
        return f"castsim advise rejects the program: {str(error).partition(chr(10))[0]}"

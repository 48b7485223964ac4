"""The page of advice: changes that save cycles."""

from __future__ import annotations

from pathlib import PurePath

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
    Folded,
    Line,
    Listing,
    Text,
)


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

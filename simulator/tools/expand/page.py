"""The document of an expanded program, and its page."""

from __future__ import annotations

import re
from pathlib import PurePath

from castsim.reports.documents import CommandDocument, says
from castsim.reports.pages.answer_pages import (
    Entry,
    Sections,
    counted,
    page_of_document,
    same,
    summary_section,
    table_section,
    titled_section,
)
from castsim.reports.pages.blocks import Listing


class Expanded(CommandDocument, name="expand"):
    """A program of tile operations rewritten as vector instructions."""

    file: str = says("The program.")
    out: str | None = says("The output file of the text; null if none was written.")
    program: str = says("The text.")


_ORIGIN = re.compile(r"\s*// (.+), line (\d+)")
_OPTION = re.compile(r"// castsim: option (\S+?)=(.*)")
_VECTOR = re.compile(r"pto\.v(?!ecscope)\w+")


@page_of_document("expand", "{stem}, expanded", "castsim expand {file}")
def expanded_page(document: Entry) -> Sections:
    """Yield the sections on an expanded program: its text, and the lines of each operation of the source."""
    program = document["program"].rstrip("\n")
    lines = program.split("\n")
    scopes, vector = program.count("pto.vecscope"), len(_VECTOR.findall(program))
    yield summary_section(
        f"{PurePath(document['file']).name} expands to {counted(len(lines), 'line')} with "
        f"{counted(vector, 'vector instruction')} in {counted(scopes, 'vector scope')}.",
        "The expanded program takes the same `--in` and `--arg` and gives the same bytes.",
        f"It was written to {document['out']}." if document["out"] else "",
    )
    yield titled_section("Program", Listing("", program))
    origins = [
        {"operation of the source": match[1], "line of the source": int(match[2]), "line of the result": number}
        for number, line in enumerate(lines, 1)
        if (match := _ORIGIN.fullmatch(line))
    ]
    yield table_section(
        "Operations", origins, same("operation of the source", "line of the source", "line of the result")
    )
    options = [{"option": match[1], "value": match[2]} for line in lines if (match := _OPTION.fullmatch(line))]
    yield table_section("Options that it needs", options, same("option", "value"))

"""A page as one file: template, style, scripts, library and data in it; it asks for nothing else.

Data stand in the file as JSON, in which no character can end the element that holds it; scripts put texts into the
page as text. A policy in the file forbids everything that would load something.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files

from castsim.isa.errors import escaped
from castsim.reports.documents import Json, identifier
from castsim.reports.pages.blocks import Page, compact, section_document, shown
from castsim.reports.pages.plain_html import page_body
from castsim.reports.pipes import CAUSE_COLOURS

_SCRIPTS = (
    "page.js",
    "tables.js",
    "charts.js",
    "inflate.js",
    "lanes_data.js",
    "lanes.js",
    "choosing.js",
    "conformance.js",
    "measurements.js",
    "tuning.js",
    "diagram.js",
    "changes.js",
    "start.js",
)
"""The scripts of a page in the order in which they run, behind the library."""

_LIBRARY = "vendor/echarts.min.js"
_MARKING = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_PLACE = re.compile(r"@@(\w+)@@")


def page_html(page: Page) -> str:
    """Return a page as the text of an HTML file."""
    parts = {
        "TITLE": escape(escaped(f"{page.title} - castsim"), quote=True),
        "BODY": page_body(page),
        "STYLE": asset("page.css"),
        "LIBRARY": asset(_LIBRARY),
        "SCRIPT": "\n".join(asset(name) for name in _SCRIPTS),
        "DATA": json_for_html(_document(page)),
    }
    return _PLACE.sub(lambda match: parts[match[1]], asset("page.html"))


def json_for_html(value: Json) -> str:
    """Return a value as JSON that can stand in an element of a page."""
    text = compact(shown(value))
    return text.translate(_MARKING).encode("utf-8", "backslashreplace").decode()


@cache
def asset(name: str) -> str:
    """Return the text of a file beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _document(page: Page) -> Json:
    return {
        "kind": page.kind,
        "title": page.title,
        "subtitle": page.subtitle,
        "tones": {identifier(cause): [light, dark] for cause, (light, dark, _) in CAUSE_COLOURS.items()},
        "sections": [section_document(section) for section in page.sections],
        "result": page.result,
    }

"""Writes the generated parts of the pages in `docs/` anew: `python tests generated_pages`.

So are the data files beside them, `docs/reference/*.csv`. What stands between the lines `<!-- generated: NAME -->` and
`<!-- end of NAME -->` is made from the tables of `isa/` and `targets/`, from docstrings, from the parsers of the
commands and from the records in `docs/measured`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kit.paths import ROOT
from makers.page_parts import FILES, MADE

DOCS = ROOT / "docs"
GENERATED = re.compile(r"^<!-- generated: ([\w-]+) -->\n(?:.*?^<!-- end of \1 -->\n)?", re.MULTILINE | re.DOTALL)


def pages() -> Iterator[Path]:
    """Yield the pages that have generated parts."""
    return (path for path in sorted(DOCS.rglob("*.md")) if GENERATED.search(path.read_text(encoding="utf-8")))


def filled(text: str) -> str:
    """Return a page's text with its generated parts as they are now."""
    return GENERATED.sub(
        lambda match: f"<!-- generated: {match[1]} -->\n\n{MADE[match[1]]().strip()}\n\n<!-- end of {match[1]} -->\n",
        text,
    )


if __name__ == "__main__":
    for path in pages():
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    for name, made in FILES.items():
        (DOCS / "reference" / name).write_text(made(), encoding="utf-8")

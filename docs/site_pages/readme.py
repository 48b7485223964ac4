"""Sections of the README, which the site shows as they stand there, with links that hold on the site."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def section(heading: str) -> str:
    """Return the text below a heading of the README.

    Raises:
        LookupError: the README has no such heading; its text then belongs on the page that asks for it.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"README.md has no section '{heading}': write its text on the page of the site instead")
    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", _linked, found[1].strip()) + "\n"


def _linked(match: re.Match[str]) -> str:
    """Return a link to a page of the site as one that holds there, a link to any other file as its text."""
    text, target = match[1], match[2]
    if target.startswith("docs/") and target.endswith(".md"):
        return f"[{text.removeprefix('docs/')}]({target.removeprefix('docs/')})"
    return text if "://" not in target else match[0]

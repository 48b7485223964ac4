"""Writes docs/reference/json.md from the models of the documents: `python tests/json_page.py`."""

from __future__ import annotations

from pathlib import Path

from castsim.reports.schemas.page import page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "json.md"

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Citations of the reference: every page and section that code, data, tests or texts cite exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")}

_BREAK = r"(?:[ \t]|\n[ \t]*(?:#|//)?[ \t]*)+"
_CITED = re.compile(
    rf"docs/reference/(?P<page>\w+\.md)(?:,?{_BREAK}sections?(?P<numbers>{_BREAK}\d+(?:\.\d+)*"
    rf"(?:(?:,? and|,? to|,){_BREAK}\d+(?:\.\d+)*(?![\w%]))*))?"
)
_ELSEWHERE = re.compile(rf"(?<![\w/.-])\w+\.md`?,?(?:{_BREAK}sections?)?{_BREAK}\d")


def headings(text: str) -> set[str]:
    return set(re.findall(r"^#{2,4} (\d+(?:\.\d+)*)[. ]", text, re.MULTILINE))


def texts() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    kinds = {".py", ".toml", ".csv", ".md", ".pto", ".tpc", ".expected", ".txt", ".mlir"}
    return [ROOT / name for name in listed.stdout.splitlines() if Path(name).suffix in kinds]


def citations(text: str) -> list[tuple[str, list[str]]]:
    found = [(match["page"], re.findall(r"\d+(?:\.\d+)*", match["numbers"] or "")) for match in _CITED.finditer(text)]
    return [(page, numbers) for page, numbers in found]


def test_a_citation_is_understood() -> None:
    sample = "see docs/reference/a5.md sections 6.2,\n    # 6.3 and 9; docs/reference/tpc.md, section 2.2"
    assert citations(sample) == [("a5.md", ["6.2", "6.3", "9"]), ("tpc.md", ["2.2"])]
    assert headings("## 1. Machine\n### 1.1 Modes\n") == {"1", "1.1"}


def test_every_citation_leads_somewhere() -> None:
    sections = {name: headings(text) for name, text in PAGES.items()}
    followed = 0
    for path in texts():
        for page, numbers in citations(path.read_text(encoding="utf-8")):
            assert page in PAGES, f"{path.relative_to(ROOT)} cites {page}"
            missing = set(numbers) - sections[page]
            assert not missing, f"{path.relative_to(ROOT)} cites sections {sorted(missing)} of {page}"
            followed += 1
    assert followed > 200  # the search itself works


def test_no_section_is_cited_of_a_page_that_the_repository_lacks() -> None:
    """A section of a page without its folder would lead nowhere."""
    for path in texts():
        found = _ELSEWHERE.search(path.read_text(encoding="utf-8"))
        assert found is None or path == Path(__file__), f"{path.relative_to(ROOT)}: {found and found.group()}"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_between_pages_hold(page: str) -> None:
    for target in re.findall(r"\]\(([\w./-]+\.md)\)", PAGES[page]):
        assert (ROOT / "docs" / "reference" / target).is_file(), f"{page} links to {target}"

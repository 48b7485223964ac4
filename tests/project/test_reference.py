"""Citations of the reference: every page and section that code, data, tests or texts cite exists."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from kit.paths import ROOT

PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")}

_BREAK = r"(?:[ \t]|\n[ \t]*(?:#|//)?[ \t]*)+"
_CITED = re.compile(
    rf"docs/reference/(?P<page>\w+\.md)(?:,?{_BREAK}sections?(?P<numbers>{_BREAK}\d+(?:\.\d+)*"
    rf"(?:(?:,? and|,? to|,){_BREAK}\d+(?:\.\d+)*(?![\w%]))*))?"
)


_ELSEWHERE = re.compile(rf"(?<![\w/.-])\w+\.md`?,?(?:{_BREAK}sections?)?{_BREAK}\d")


def headings(text: str) -> set[str]:
    return set(re.findall(r"^#{2,4} (\d+(?:\.\d+)*)[. ]", text, re.MULTILINE))


def files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines()]


def texts() -> list[Path]:
    kinds = {".py", ".toml", ".csv", ".md", ".pto", ".tpc", ".expected", ".txt", ".mlir"}
    return [path for path in files() if path.suffix in kinds and path.is_file()]


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


_CODE = re.compile(r"^```.*?^```$|``[^`\n]+``|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the repository's host and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in plain}


def test_every_link_between_files_leads_somewhere() -> None:
    followed, dead = 0, []
    for path in (path for path in files() if path.suffix in (".md", ".ipynb")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        for target, anchor in _LINK.findall(_CODE.sub("", text)):
            page = path.parent / target if target else path
            holds = page.exists() and (not anchor or anchor in anchors(page))
            dead += [] if holds else [f"{path.relative_to(ROOT)}: {target}#{anchor}"]
            followed += 1
    assert followed > 100  # the search itself works
    assert dead == []


_PAGE = re.compile(
    r"(?<![\w/.-])docs/(?:reference/|how-to/|measured/|tutorial/|editors/)?[\w.-]+\.(?:md|json|yml|ipynb)\b"
)


def test_every_page_that_is_named_by_its_path_exists() -> None:
    elsewhere = {"docs/PTO-micro-Instruction-SPEC.md"}  # of the vendor
    for path in texts():
        named = {*_PAGE.findall(path.read_text(encoding="utf-8"))} - elsewhere
        assert not [name for name in named if not (ROOT / name).exists()], path.relative_to(ROOT)

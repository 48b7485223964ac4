"""What the site's build adds to the files of `pages/`: the pages beside that folder, and text made of tables.

A line `<!-- generated: NAME -->` of a page becomes the text that `site_pages` makes under that name, at every build, so
it is never older than the tables.
"""

from __future__ import annotations

import html
import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from site_pages import MADE, notebook

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OPTIONAL = {"reference/json.md": "Reference", "pytest-plugin.md": "How to", "editors/README.md": "How to"}
"""Pages that join the site, under these headings, where they exist."""
TABLES = re.compile(r"benchmark.*|conformance-.*|real-kernels|json")
"""Pages of long tables, which the search puts behind those that explain."""

_MARK = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)
_BARRED = re.compile(r"`([^`\n]*\\\|[^`\n]*)`")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_startup(command: str, dirty: bool) -> None:
    """Lay out castsim's folders under its import name, before the plugin that reads them looks for them."""
    _lay_out(ROOT / "build" / "site-sources" / "castsim")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages that may be absent into the navigation."""
    for name, heading in OPTIONAL.items():
        if (DOCS / name).is_file():
            next(part[heading] for part in config.nav if isinstance(part, dict) and heading in part).append(name)
    return config


def _lay_out(package: Path) -> None:
    """Copy the three folders to where their import name says; links would be followed back."""
    shutil.rmtree(package, ignore_errors=True)
    only_code = shutil.ignore_patterns("__pycache__", "*.json", "*.csv")
    shutil.copytree(ROOT / "simulator", package, ignore=only_code)
    for name in ("isa", "targets"):
        shutil.copytree(ROOT / name, package / name, ignore=only_code)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages beside `pages/`, which keep their places because code and tests cite them, and the notebooks."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the tests of links need no MkDocs

    for path in outside_pages():
        name = path.relative_to(DOCS).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for path in sorted((DOCS / "pages").rglob("*.ipynb")):
        text, pictures = notebook.page(path)
        place = path.relative_to(DOCS / "pages")
        files.append(File.generated(config, place.with_suffix(".md").as_posix(), content=text))
        for name, picture in pictures.items():
            files.append(File.generated(config, (place.parent / name).as_posix(), content=picture))
    return files


def outside_pages() -> list[Path]:
    """Return the pages of the site that are not in `pages/`."""
    return sorted((*DOCS.glob("*.md"), *DOCS.glob("reference/*.md"), *DOCS.glob("editors/README.md")))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what is generated; links to files of the repository that are not on the site become plain text.

    Links to notebooks lead to their pages.
    """
    filled = _MARK.sub(lambda match: MADE[match[1]](), markdown)
    uri = page.file.src_uri
    page.meta["search"] = {"boost": 0.1 if TABLES.fullmatch(PurePosixPath(uri).stem) else 4 if _explains(uri) else 1}

    def linked(match: re.Match[str]) -> str:
        target = os.path.normpath(PurePosixPath(uri).parent / match[3])
        if target.endswith(".ipynb") and Path(target).stem != Path(uri).stem:
            return match[0].replace(".ipynb", ".md")  # to its page; that has the file itself
        on_site = files.get_file_from_path(PurePosixPath(target).as_posix()) is not None
        return match[0] if on_site or not (DOCS / target).exists() else match[2]

    lines = (_BARRED.sub(_code, line) if line.startswith("|") else line for line in filled.split("\n"))
    return _LINK.sub(linked, "\n".join(lines))


def _explains(uri: str) -> bool:
    """Return whether a page is written for readers who do not yet know the word that they look up."""
    return uri == "glossary.md" or uri.startswith(("how-to/", "tutorial/"))


def _code(match: re.Match[str]) -> str:
    """Return code of a table's cell with its bars; in backticks their backslashes would be seen."""
    text = html.escape(match[1].replace("\\|", "|"), quote=False)
    return f"<code>{text.replace('|', '&#124;')}</code>"

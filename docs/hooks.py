"""What the site's build adds to the pages: notebooks, pages of the root folder, options of commands, search ranks."""

from __future__ import annotations

import base64
import csv
import html
import json
import re
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parent
ROOT_PAGES = {"contributing.md": "CONTRIBUTING.md", "changes.md": "CHANGELOG.md"}
"""Pages of the site by the files of the root folder that they show."""
BOOSTS = {
    r"(glossary|accuracy|playground)\.md|(how-to|tutorial|casts)/.*": 4,
    r"(limits|models|inputs-outputs)\.md": 2,
    r"(a5-saturation|launch-overhead|jupyter|uninstall)\.md": 1.5,
    r"(index|api)\.md": 0.4,
    r"(seeds|columns|changes|contributing)\.md": 0.1,
}
"""How much a match counts in the search: pages that answer more, tables, history and lists of links less."""
OPTIONS = "<!-- every option of every command -->"
"""Where the site's page of the command line lists the options."""

_BARRED = re.compile(r"`([^`\n]*\\\|[^`\n]*)`")
_URIS = {name: uri for uri, name in ROOT_PAGES.items()}
_ROOT_PAGE = re.compile(r"\]\(((?:\.\./)*)\.\./(CONTRIBUTING\.md|CHANGELOG\.md)\)")
_TABLE = re.compile(r"^<!-- table: ([\w.-]+) -->$", re.MULTILINE)
_NOTEBOOK = re.compile(r"(\]\([^)\s]+)\.ipynb\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, and say that there is no playground: docs/playground/build.py adds it."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - linters need no MkDocs

    files.append(File.generated(config, "playground/manifest.js", content="const PLAYGROUND_BUILT = null;\n"))

    for uri, name in ROOT_PAGES.items():
        text = (DOCS.parent / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, uri, content=text))
    for path in sorted(DOCS.rglob("*.ipynb")):
        text, pictures = _notebook(path)
        place = path.relative_to(DOCS)
        files.append(File.generated(config, place.with_suffix(".md").as_posix(), content=text))
        for name, picture in pictures.items():
            files.append(File.generated(config, (place.parent / name).as_posix(), content=picture))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to notebooks to their pages, and take backslashes out of the code of tables."""
    uri = page.file.src_uri
    page.meta["search"] = {"boost": next((boost for pages, boost in BOOSTS.items() if re.fullmatch(pages, uri)), 1)}
    markdown = _ROOT_PAGE.sub(lambda link: f"]({link[1]}{_URIS[link[2]]})", markdown)
    markdown = markdown.replace(OPTIONS, options(), 1) if OPTIONS in markdown else markdown
    markdown = _TABLE.sub(lambda mark: _csv_tables(DOCS / mark[1]), markdown)
    lines = [_BARRED.sub(_code, line) if line.startswith("|") else line for line in markdown.split("\n")]
    own = Path(uri).with_suffix(".ipynb").name  # its page has a link to the file itself
    return _NOTEBOOK.sub(lambda link: link[0] if link[0].endswith(f"({own})") else f"{link[1]}.md)", "\n".join(lines))


def _csv_tables(path: Path) -> str:
    """Return a CSV file as a table; of three columns and more, a heading and a table for each value of the first."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    grouped = groupby(rows, key=itemgetter(0)) if len(head) > 2 else [("", rows)]
    columns = head[1:] if len(head) > 2 else head
    lines = []
    for title, group in grouped:
        lines += [f"\n## {title}\n"] if title else []
        lines += [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
        lines += [f"| {' | '.join(row[-len(columns) :])} |" for row in group]
    return "\n".join(lines)


def options() -> str:
    """Return a section per command: what it does, and its arguments and options, with anchors and meanings."""
    from castsim.commands.feature import shipped_features  # noqa: PLC0415
    from castsim.commands.shared_options import OptionParser  # noqa: PLC0415 - only this page needs castsim

    lines = []
    for feature in shipped_features():
        command, summary = feature.name, feature.summary
        parser = OptionParser(prog=f"castsim {command}", add_help=False)
        feature.declare(parser)
        lines += ["", f"## castsim {command}", "", f"{html.escape(summary[:1].upper() + summary[1:])}.", "", "<dl>"]
        for action in parser._actions:
            name = action.option_strings[-1] if action.option_strings else str(action.dest)
            text = html.escape((action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%"))
            text = f"{text[:1].upper()}{text[1:]}."
            lines += [
                f'<dt id="{command}-{name.strip("-")}"><code>{html.escape(_spelling(action))}</code></dt>',
                f"<dd>{text}</dd>",
            ]
        lines.append("</dl>")
    return "\n".join(lines)


def _spelling(action: argparse.Action) -> str:
    """Return an argument or option with its value as help writes it."""
    metavar = action.metavar or (action.dest if not action.option_strings else action.dest.upper())
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    return ", ".join(f"{o} {value}" if action.nargs != 0 else o for o in action.option_strings) or value


def _code(match: re.Match[str]) -> str:
    """Return code of a table's cell with its bars; in backticks their backslashes would be seen."""
    text = html.escape(match[1].replace("\\|", "|"), quote=False)
    return f"<code>{text.replace('|', '&#124;')}</code>"


def _notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, outputs as they are stored, and its pictures by the names of their files."""
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            found = {form: "".join(text) for form, text in output.get("data", {"text": output.get("text", "")}).items()}
            if "image/png" in found:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(found["image/png"])
                parts.append(f"![{_words(source)}]({name})")
            elif "text/html" in found:
                parts.append(f'<div class="output">{_in_one_piece(found["text/html"])}</div>')
            else:
                words = found.get("text/plain", found.get("text", "")).rstrip("\n")
                parts.append(f"```text\n{words}\n```")
    return "\n\n".join(parts) + "\n", pictures


def _words(source: str) -> str:
    """Return what a picture is called: the last line of the cell that drew it."""
    return re.sub(r"[\[\]`]", "", source.rstrip().rpartition("\n")[2])


def _in_one_piece(text: str) -> str:
    """Return HTML without line ends, behind which Markdown would go on; those of a program are written as such."""
    kept = re.sub(r"<pre.*?</pre>", lambda match: match[0].replace("\n", "&#10;"), text, flags=re.DOTALL)
    return kept.replace("\n", "")

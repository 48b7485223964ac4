"""Executes the notebook of the tutorial and writes it with its outputs: `python tests notebook_page`.

A test executes it again and compares: words and numbers of the outputs as they stand there, pictures by being there.
"""

from __future__ import annotations

import re
import sys
import tempfile
from html.parser import HTMLParser

import nbformat
from kit.paths import ROOT
from nbclient import NotebookClient

NOTEBOOK = ROOT / "docs/tutorial/notebook.ipynb"
SHOWN = ("image/png", "text/html", "text/plain")
"""Forms of an output, the best in front; only that is kept."""


class _Words(HTMLParser):
    """The words of HTML, without those that are style or drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("style", "svg"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.words += data.split()


def words_of(html: str) -> list[str]:
    """Return the words that a browser shows of HTML, those of drawings apart."""
    parser = _Words()
    parser.feed(html)
    return parser.words


def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook executed in an empty folder; an error in a cell is raised."""
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}})
        found = client.execute()
    for cell in found.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [_kept(output) for output in cell.outputs]
    found.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return found


def _kept(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if "data" in output:
        best = next(form for form in SHOWN if form in output.data)
        output.data = {best: re.sub(r"<style.*?</style>\s*", "", output.data[best], flags=re.DOTALL)}
        output.metadata = {}
    return output


def read() -> nbformat.NotebookNode:
    """Return the notebook as it is stored."""
    return nbformat.read(NOTEBOOK, as_version=4)


if __name__ == "__main__":
    sys.exit(nbformat.write(executed(read()), NOTEBOOK))

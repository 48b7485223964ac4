"""Notebooks as pages: text as it is, cells as code, outputs as they are stored, pictures in files of their own."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path


def page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by the names of their files beside the page."""
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


def _in_one_piece(html: str) -> str:
    """Return HTML without line ends, behind which Markdown would go on; those of a program are written as such."""
    kept = re.sub(r"<pre.*?</pre>", lambda match: match[0].replace("\n", "&#10;"), html, flags=re.DOTALL)
    return kept.replace("\n", "")

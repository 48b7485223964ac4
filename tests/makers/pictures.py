"""Draws the pictures of README and site anew: `python tests pictures`; the page of a run needs Debian's Chromium."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from html import escape
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any

from kit.paths import ROOT

ASSETS = ROOT / "docs" / "assets"
RUN = ("run", "programs/f32_to_f16_pipelined.pto", "--in", "src=random:0", "--html")
"""The command of the README whose page is shown."""
SIZE = (1280, 680)
KEYWORD = b"Description"
"""Of the text in a PNG file: what the run printed first, so that a test sees when the picture is of another run."""

GROUPS = {
    ("a2a3", True, False): "A2/A3: {} casts, not fitted",
    ("a2a3", False, False): "A2/A3: {} operations, not fitted",
    ("a2a3", False, True): "A2/A3: {} operations and loads, fitted",
    ("a5", True, True): "A5: {} casts, fitted",
    ("a5", False, True): "A5: {} other kernels, fitted",
}
"""What rows of a target are called, casts or not, fitted or not."""
STYLE = """
rect.paper { fill: #fff; } text { fill: #1b2433; font: 14px system-ui, sans-serif; } .quiet { fill: #5b6472; }
.castsim { fill: #00796b; } .public { fill: #b0651d; } line { stroke: #c9ced6; }
@media (prefers-color-scheme: dark) { rect.paper { fill: #171b22; } text { fill: #e6e9ee; } .quiet { fill: #a2abb8; }
.castsim { fill: #3fb5a3; } .public { fill: #dd9a55; } line { stroke: #3a4250; } }
"""


def accuracy_chart(document: Mapping[str, Any]) -> str:
    """Return the mean errors of castsim and of the public models on the same rows of its accuracy, as SVG."""
    found: defaultdict[tuple[str, bool, bool], list[tuple[float, float]]] = defaultdict(list)
    for row in document["rows"]:
        if (public := row["public_model_error_percent"]) is not None:
            key = row["target"], row["operation"] == "tcvt", row["fitted"]
            found[key].append((abs(row["error_percent"]), abs(public)))
    assert found.keys() == GROUPS.keys()
    return _bars(
        [(name.format(len(found[key])), *map(fmean, zip(*found[key], strict=True))) for key, name in GROUPS.items()]
    )


def _bars(rows: Sequence[tuple[str, float, float]]) -> str:
    left, top, step, scale = 300, 64, 46, 380 / max(max(ours, public) for _, ours, public in rows)
    height = top + step * len(rows) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}" role="img">',
        "<title>Mean error of cycles, castsim beside the public models, on the same published rows</title>",
        f'<style>{STYLE}</style><rect class="paper" width="760" height="{height}" rx="8"/>',
        '<text x="16" y="28">Mean error of cycles on published rows</text>',
        '<rect class="castsim" x="16" y="40" width="12" height="12"/><text class="quiet" x="34" y="51">castsim</text>',
        '<rect class="public" x="104" y="40" width="12" height="12"/>'
        '<text class="quiet" x="122" y="51">public model, same rows</text>',
        f'<line x1="{left}" x2="{left}" y1="{top}" y2="{height - 12}"/>',
    ]
    for number, (name, *errors) in enumerate(rows):
        y = top + step * number + 6
        lines.append(f'<text x="{left - 10}" y="{y + 21}" text-anchor="end">{escape(name)}</text>')
        for kind, error, at in zip(("castsim", "public"), errors, (y, y + 17), strict=True):
            width = max(error * scale, 1)
            lines.append(f'<rect class="{kind}" x="{left}" y="{at}" width="{width:.1f}" height="14"/>')
            lines.append(
                f'<text class="quiet" x="{left + width + 6:.1f}" y="{at + 12}">{error:.{1 + (error < 1)}f} %</text>'
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


def said_first(page: Path) -> str:
    """Write the page of the run, and return what the report says first of its time: the two lines of the page's top."""
    from castsim.__main__ import main  # noqa: PLC0415 - what reads a picture needs none of it

    with redirect_stdout(StringIO()) as said:
        assert main([*RUN, str(page)]) == 0
    lines = said.getvalue().splitlines()
    return "\n".join(line for line in lines if " cycles = " in line or " limits (" in line)


def described(png: bytes, text: str) -> bytes:
    """Return a PNG file with a text behind its header."""
    body = b"tEXt" + KEYWORD + b"\0" + text.encode("latin-1")
    chunk = (len(body) - 4).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)
    return png[:33] + chunk + png[33:]


def description(png: bytes) -> str:
    """Return the text that `described` put there."""
    assert png[37:49] == b"tEXt" + KEYWORD[:8]
    return png[37 + 5 + len(KEYWORD) : 41 + int.from_bytes(png[33:37])].decode("latin-1")


def photograph(page: Path, size: tuple[int, int], out: Path) -> None:
    """Write a picture of a page."""
    window = f"--window-size={size[0]},{size[1]}"
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--hide-scrollbars",
        window,
        f"--screenshot={out}",
        page.as_uri(),
    ]
    subprocess.run(command, check=True, capture_output=True)


def accuracy_document() -> Any:
    """Return what `castsim accuracy --json` says of the shipped tables."""
    import json  # noqa: PLC0415 - as above

    from castsim.__main__ import main  # noqa: PLC0415 - as above

    with redirect_stdout(StringIO()) as said:
        assert main(["accuracy", "--json", "-"]) == 0
    return json.loads(said.getvalue())


if __name__ == "__main__":
    (ASSETS / "accuracy.svg").write_text(accuracy_chart(accuracy_document()), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        page, picture = Path(folder, "page.html"), Path(folder, "page.png")
        text = said_first(page)
        photograph(page, SIZE, picture)
        (ASSETS / "run-page.png").write_bytes(described(picture.read_bytes(), text))
    sys.stdout.write(f"{ASSETS}: accuracy.svg, run-page.png\n")

"""The documentation site, built once by the README's line for all tests that look at it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r"<!-- setup: docs -->\n```console\n.* && \.venv/bin/python (-m mkdocs .*)\n```")
WAIT_SECONDS = 300


def built_site(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site; workers of one run share it, and the first that asks builds it."""
    root = factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder, said = root / "site", root / "site.said"
    try:
        folder.mkdir()
    except FileExistsError:
        end = time.monotonic() + WAIT_SECONDS
        while not said.exists() and time.monotonic() < end:
            time.sleep(0.2)
    else:
        line = LINE.search((ROOT / "README.md").read_text(encoding="utf-8"))
        assert line, "the README has a line that builds the site"
        command = [sys.executable, *shlex.split(line[1]), "-q", "-d", folder]
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        partial = root / "site.partial"
        partial.write_text(built.stderr if built.returncode else "")
        partial.rename(said)
    assert not said.read_text(), said.read_text()
    return folder

"""The documentation site, built strictly once for all tests that look at it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

CONFIGURATION = Path(__file__).resolve().parent.parent / "docs" / "mkdocs.yml"
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
        command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-f", CONFIGURATION, "-d", folder]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        partial = root / "site.partial"
        partial.write_text(built.stderr if built.returncode else "")
        partial.rename(said)
    assert not said.read_text(), said.read_text()
    return folder

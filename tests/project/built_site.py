"""The documentation site and its playground, each built once for all tests that look at it."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.paths import ROOT

LINE = re.compile(r"<!-- setup: docs -->\n```console\n.* && \.venv/bin/python (-m mkdocs .*)\n```")
WAIT_SECONDS = 300


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], str]) -> tuple[Path, str]:
    """Return a folder and what `build` says of it; workers of one run share it, and the first that asks builds it."""
    root = factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder, said = root / name, root / f"{name}.said"
    try:
        folder.mkdir()
    except FileExistsError:
        end = time.monotonic() + WAIT_SECONDS
        while not said.exists() and time.monotonic() < end:
            time.sleep(0.2)
    else:
        partial = root / f"{name}.partial"
        partial.write_text(build(folder))
        partial.rename(said)
    return folder, said.read_text()


def built_site(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, which the README's line builds."""

    def build(folder: Path) -> str:
        line = LINE.search((ROOT / "README.md").read_text(encoding="utf-8"))
        assert line, "the README has a line that builds the site"
        command = [sys.executable, *shlex.split(line[1]), "-q", "-d", folder]
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return built.stderr if built.returncode else ""

    folder, complaint = built_once(factory, "site", build)
    assert not complaint, complaint
    return folder


def build_of_playground() -> Any:
    spec = importlib.util.spec_from_file_location("playground_build", ROOT / "docs" / "playground" / "build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built_playground(factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the folder `playground` of a site; skip where a part cannot be had."""
    folder, missing = built_once(factory, "playground", lambda folder: build_of_playground().build(folder, None))
    if missing:
        pytest.skip(f"the playground cannot be built: {missing}")
    return folder


def site_with_playground(factory: pytest.TempPathFactory) -> Path:
    """Return the site with the playground; skip where a part cannot be had."""
    folder = factory.mktemp("with_playground")
    shutil.copytree(built_site(factory), folder, dirs_exist_ok=True)
    shutil.copytree(built_playground(factory) / "playground", folder / "playground", dirs_exist_ok=True)
    return folder

"""Where compiled code is looked for is where numba says that it keeps it; numba itself is asked in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from castsim.engines.fast_dataflow import driving

ROOT = Path(__file__).parent.parent

ASK = """
from numba.core.caching import CompileResultCacheImpl
from castsim.engines.fast_dataflow.compiling import _machine
found = CompileResultCacheImpl(_machine(0))
print(found.locator.get_cache_path())
print(found.filename_base)
"""

TELL = """
import sys
from castsim.engines.fast_dataflow.driving import _is_kept
print(_is_kept(), "numba" in sys.modules)
"""


def told(text: str, **environment: str) -> list[str]:
    """What a new process prints."""
    changed = {**{name: value for name, value in os.environ.items() if "NUMBA" not in name}, **environment}
    made = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, env=changed, capture_output=True, text=True, check=True
    )
    return made.stdout.split("\n")[:-1]


def put(folder: Path, name: str, age: float = -60) -> Path:
    """Leave what numba would; `age` counts seconds from the youngest source back."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.1.nbc"
    file.touch()
    sources = max(each.stat().st_mtime for each in driving.sources())
    os.utime(file, (sources - age, sources - age))
    return file


def test_code_kept_where_the_user_wants_it_is_found_without_numba(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    folder, name = told(ASK, NUMBA_CACHE_DIR=str(tmp_path))
    assert Path(folder).is_relative_to(tmp_path)
    assert told(TELL, NUMBA_CACHE_DIR=str(tmp_path)) == ["False False"]
    file = put(Path(folder), name)
    assert told(TELL, NUMBA_CACHE_DIR=str(tmp_path)) == ["True False"]
    put(Path(folder), name, age=60)
    assert told(TELL, NUMBA_CACHE_DIR=str(tmp_path)) == ["False False"]
    file.rename(file.with_name(file.name.replace(f".py{sys.version_info[0]}", ".py2")))
    assert told(TELL, NUMBA_CACHE_DIR=str(tmp_path)) == ["False False"]


def test_code_kept_among_the_caches_of_the_user_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the package belongs to somebody else; the superuser may write everywhere, so writing is refused here."""
    pytest.importorskip("numba")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    places = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    folder, name = told(ASK, NUMBA_CACHE_LOCATOR_CLASSES="UserWideCacheLocator", **places)
    monkeypatch.delitem(sys.modules, "numba.core.config", raising=False)
    package = Path(driving.__file__).parent
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not Path(path).is_relative_to(package) and access(path, mode))
    looked_for = driving._is_kept.__wrapped__
    assert not looked_for()
    put(Path(folder), name)
    assert looked_for()


def test_the_first_folder_that_can_be_written_to_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where folders should be is none of them, and numba goes on to the next place."""
    monkeypatch.delitem(sys.modules, "numba.core.config", raising=False)
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked))
    in_tree = Path(driving.__file__).parent / "__pycache__"
    first, second, _ = driving._folders(Path(driving.__file__).parent)
    assert (first.parent, second) == (blocked, in_tree)
    assert not driving._is_writable(first)
    assert driving._is_writable(tmp_path / "not" / "yet" / "there")


@pytest.mark.skipif("CASTSIM_THOROUGH" not in os.environ, reason="it compiles: set CASTSIM_THOROUGH=1")
def test_what_one_process_compiles_the_next_one_finds(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    told(
        "from castsim.engines.fast_dataflow.compiling import compiled_machine as c; c()",
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    assert told(TELL, NUMBA_CACHE_DIR=str(tmp_path)) == ["True False"]

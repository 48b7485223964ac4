"""Checked descriptions that are kept: equal to those just checked, never in the way, unfit once a file changes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import platformdirs
import pytest

from castsim.targets import kept, loader
from castsim.targets.schema import TargetHeader


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "folder" / "a2a3.0.checked"
    monkeypatch.setattr(kept, "_place", lambda name: found)
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    return found


def _checked() -> TargetHeader:
    return loader._load(loader.SHIPPED / "a2a3.toml")


def _never() -> TargetHeader:
    raise AssertionError("checked again")


@pytest.mark.parametrize("name", ["a2a3", "a5", "gaudi2"])
def test_what_is_kept_is_what_was_checked(name: str, place: Path) -> None:
    fresh = loader._load(loader.SHIPPED / f"{name}.toml")
    kept.kept(name, lambda: fresh)
    again = kept.kept(name, _never)
    assert again is not fresh
    assert again == fresh
    assert again.model_dump() == fresh.model_dump()
    assert [path.name for path in place.parent.iterdir()] == [place.name]


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x05"])
def test_a_broken_file_is_checked_again_and_replaced(content: bytes, place: Path) -> None:
    place.parent.mkdir()
    place.write_bytes(content)
    fresh = kept.kept("a2a3", _checked)
    assert kept.kept("a2a3", _never) == fresh


def test_the_oldest_go_and_others_stay(place: Path) -> None:
    place.parent.mkdir()
    others = ["a2a3.txt", "a2a3x.1.checked"]
    for number in range(1, 12):
        (place.parent / f"a2a3.{number}.checked").touch()
        os.utime(place.parent / f"a2a3.{number}.checked", (number, number))
    for name in others:
        (place.parent / name).touch()
    kept.kept("a2a3", _checked)
    newest = [f"a2a3.{number}.checked" for number in range(5, 12)]
    assert {path.name for path in place.parent.iterdir()} == {place.name, *newest, *others}


@pytest.mark.skipif(sys.platform == "win32", reason="files there have no such modes")
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_can_write_is_not_read(mode: int, place: Path) -> None:
    kept.kept("a2a3", _checked)
    place.chmod(mode)
    with pytest.raises(AssertionError, match="checked again"):
        kept.kept("a2a3", _never)


def test_nothing_is_kept_beside_the_modules() -> None:
    place = kept._place("a2a3")
    assert kept.SHIPPED not in place.parents
    assert place.parent == Path(platformdirs.user_cache_dir("castsim", appauthor=False))


def test_a_folder_that_cannot_be_made_is_no_error(place: Path) -> None:
    place.parent.touch()  # a file of that name
    assert kept.kept("a2a3", _checked).name == "a2a3"


def test_nothing_is_written_where_python_must_not(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    kept.kept("a2a3", _checked)
    assert not place.exists()


def test_the_name_changes_with_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "SHIPPED", tmp_path)
    names = set()
    for content in ("a = 1", "a = 2"):
        (tmp_path / "a.toml").write_text(content, encoding="utf-8")
        names.add(kept._digest.__wrapped__())
    assert len(names) == 2

"""Checked descriptions that are kept: equal to those just checked, never in the way, unfit once a file changes."""

from __future__ import annotations

from pathlib import Path

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


def test_former_versions_go_and_others_stay(place: Path) -> None:
    place.parent.mkdir()
    for name in ("a2a3.1.checked", "a2a3.cpython-311.pyc", "a2a3x.1.checked"):
        (place.parent / name).touch()
    kept.kept("a2a3", _checked)
    assert {path.name for path in place.parent.iterdir()} == {place.name, "a2a3.cpython-311.pyc", "a2a3x.1.checked"}


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

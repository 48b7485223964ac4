"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def nobody_says_how_wide_a_report_is() -> Iterator[None]:
    """Take COLUMNS away, which a shell may export and workers of pytest-xdist are given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Under `-m smoke` leave alone all modules that have no such test: importing them takes longer than the rest."""
    if config.option.markexpr != "smoke" or collection_path.suffix != ".py":
        return None
    return True if "pytest.mark.smoke" not in collection_path.read_text(encoding="utf-8") else None

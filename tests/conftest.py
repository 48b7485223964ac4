"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def nobody_says_how_wide_a_report_is() -> Iterator[None]:
    """Take COLUMNS away, which a shell may export and workers of pytest-xdist are given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield

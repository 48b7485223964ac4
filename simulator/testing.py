"""The pytest plugin: fixtures `castsim_cast` and `castsim_kernel`.

pytest loads this module in every run of an environment with castsim, so it imports only pytest: the modules of a
fixture are imported when a test requests it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from castsim.running.assertions import CastChecker, KernelRunner


@pytest.fixture
def castsim_cast() -> CastChecker:
    """Convert values as a chip does, and compare them: see `castsim.running.assertions.CastChecker`."""
    from castsim.running.assertions import CastChecker  # noqa: PLC0415 - runs without such tests must not wait for NumPy

    return CastChecker()


@pytest.fixture
def castsim_kernel(request: pytest.FixtureRequest) -> KernelRunner:
    """Run a kernel, and compare outputs, cycles and order: see `castsim.running.assertions.KernelRunner`.

    A relative path that does not exist in the current folder is resolved beside the file of the test.
    """
    from castsim.running.assertions import KernelRunner  # noqa: PLC0415 - as above

    return KernelRunner(request.path.parent)

"""Bounds on work that do not depend on the machine: calls of functions, where seconds would."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Fail, then and there, once the block makes more calls than this: of Python functions, generators and builtins."""
    made = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")
        if made > calls:
            sys.setprofile(None)
            raise AssertionError(f"more than {calls} calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)

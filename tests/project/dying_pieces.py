"""Pieces of work whose process dies; in a file of their own, which the processes load quickly."""

from __future__ import annotations

import os
from pathlib import Path


def once(flag: Path, piece: int) -> int:
    """Return the square; the process dies, the first time that a piece is a 3."""
    if piece == 3 and not flag.exists():
        flag.touch()
        os._exit(1)
    return piece * piece


def never(_: int) -> int:
    os._exit(1)

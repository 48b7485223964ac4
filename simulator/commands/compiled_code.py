"""Where the commands of an installed castsim keep compiled code."""

from __future__ import annotations

import os

import platformdirs


def keep_among_caches() -> None:
    """Let numba keep machine code among the user's caches, unless NUMBA_CACHE_DIR says where.

    By itself it does so beside the modules. pip would leave that behind, and a folder without modules would stand in
    the way of a later installation from a checkout.
    """
    folder = platformdirs.user_cache_path("castsim", appauthor=False) / "compiled"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))

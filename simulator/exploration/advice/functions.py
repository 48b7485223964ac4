"""A tile program as its vector functions, without the barriers that no two stores of theirs need.

The A5 writes a cast of 32-bit elements to bytes group by group, each store behind a store barrier of the library's own
(`mem_bar VST_VST`). Every group has bytes of its own, so that a kernel which is written as vector functions needs none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from castsim.exploration.advice.change import Change, Setting
from castsim.isa.errors import CastsimError
from castsim.isa.sources import Source
from castsim.running.expanding import expand_source
from castsim.running.request import LoadRequest
from castsim.targets.options import with_options

KIND = "vector functions without store barriers"
_BARRIER = re.compile(r'^ *pto\.mem_bar "VST_VST"\n', re.MULTILINE)


def changes(source: Source, setting: Setting) -> Iterator[Change]:
    """Yield the program as vector instructions, without store barriers; nothing where it has none."""
    request = LoadRequest(
        setting.target, setting.entry, setting.args, lambda chosen: with_options(chosen, setting.options),
        limits=setting.limits,
    )  # fmt: skip
    try:
        text = expand_source(source, request)
    except CastsimError:
        return
    changed, count = _BARRIER.subn("", text)
    if not count:
        return
    title = f"write the function as its vector functions (castsim expand), without {_counted(count)}"
    yield Change(
        KIND, title, "stores of one function that have bytes of their own need not wait for each other", 1, changed,
        recasts=True,
    )  # fmt: skip


def _counted(count: int) -> str:
    return "its store barrier" if count == 1 else f"its {count} store barriers"

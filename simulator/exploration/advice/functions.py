"""A tile program as its vector functions, without the barriers that no two stores of theirs need.

The A5 writes a cast of 32-bit elements to bytes group by group, each store behind a store barrier of the library's own
(`mem_bar VST_VST`). Where every group has bytes of its own, a kernel which is written as vector functions needs none.
Vector functions are launched one after the other, each behind the accesses of the one before, also in loops around
them: only stores of one launch are compared with each other, in all of its trips, and its loads with its stores, where
a load that may overtake a store is a warning of the changed program (docs/reference/micro.md 6.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from castsim.execution.tree import elements
from castsim.execution.vector_operations.shapes import BUFFER
from castsim.exploration.advice.checking import REFUSED, timed
from castsim.exploration.advice.suggestion import Change, RunConfig
from castsim.isa.errors import CastsimError
from castsim.isa.sources import Source
from castsim.isa.warning_text import WarningKind
from castsim.machines.vector_function.scopes.hazards import overlapping_stores
from castsim.machines.vector_function.scopes.operation import MicroFunction
from castsim.running.expanding import expand_source
from castsim.running.loaded import Loaded
from castsim.running.request import LoadRequest
from castsim.targets.options import with_options

KIND = "vector functions without store barriers"
_BARRIER = re.compile(r'^ *pto\.mem_bar "VST_VST"\n', re.MULTILINE)


def changes(source: Source, setting: RunConfig) -> Iterator[Change]:
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
    if _overlap(Source(source.file, source.language, changed), setting):
        return
    title = f"write the function as its vector functions (castsim expand), without {_counted(count)}"
    yield Change(
        KIND, title, "stores of one function that have bytes of their own need not wait for each other", 1, changed,
        recasts=True,
    )  # fmt: skip


def _overlap(source: Source, setting: RunConfig) -> bool:
    """Whether accesses of a launch share bytes without a barrier between; True as well where that is not known."""
    try:
        found = timed(setting.loaded(source), setting).loaded
    except REFUSED:
        return True
    if not isinstance(found, Loaded) or any(one.kind is WarningKind.OVERTAKING for one in found.executed.warnings):
        return True
    capacity = found.target.memories[BUFFER].capacity_bytes
    scopes = {id(each.scope): each.scope for each in elements(found.tree.root) if isinstance(each, MicroFunction)}
    return any(overlapping_stores(scope, capacity) for scope in scopes.values())


def _counted(count: int) -> str:
    return "its store barrier" if count == 1 else f"its {count} store barriers"

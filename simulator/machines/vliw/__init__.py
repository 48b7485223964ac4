"""The VLIW machine: one bundle per cycle, four slots, an exposed pipeline.

Source: docs/reference/tpc.md sections 1, 6 and 7.

This module also chooses the target: the requested one, or the one that the text declares.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.reading import Language
from castsim.targets.loader import Target, load_target, target_names

if TYPE_CHECKING:
    from castsim.isa.errors import Span
    from castsim.isa.tpc.program import TargetDeclaration
    from castsim.targets.vliw import VliwTarget


def chosen_target(
    text: str,
    file: str,
    target: str | Path | Target | None,
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
) -> VliwTarget:
    """Return the requested target, otherwise the one that the text declares.

    Raises:
        ReadError: neither names one, or the target does not exist.
        IllegalError: it does not run assembly. Errors about a target that the text declares have the position of the
            declaration.
    """
    from castsim.isa.tpc.parser import target_declared_in  # noqa: PLC0415 - tells what is assembly without reading it

    span = None
    if target is None:
        declared = target_declared_in(text, file)
        if declared is None:
            raise ReadError(
                f"{file} does not declare a target",
                legal=("--target NAME", "// castsim: target NAME"),
            )
        target, span = _declared_target(declared), declared.span
    chosen = prepare(load_target(target) if isinstance(target, str | Path) else target)
    return tpc_target(chosen, f"{chosen.name} does not run .{Language.ASSEMBLY.value} programs", span)


def _declared_target(declared: TargetDeclaration) -> Target:
    try:
        return load_target(declared.name)
    except (ReadError, IllegalError) as error:
        raise error.at(declared.span) from None


def tpc_target(target: Target, refusal: str, span: Span | None = None) -> VliwTarget:
    """Return the target if it runs assembly; `span` is the position that names it in a text.

    Raises:
        IllegalError: it does not, in the words of `refusal`; the message lists the targets that do.
    """
    tpc = assembly_target(target)
    if tpc is not None:
        return tpc
    names = targets_running(Language.ASSEMBLY.value)
    raise IllegalError(refusal, span=span, legal=names if span else [f"--target {name}" for name in names])


def assembly_target(target: Target | None) -> VliwTarget | None:
    """Return the target if it runs assembly, otherwise None."""
    if target is None or target.has_tiles:
        return None
    from castsim.targets.vliw import VliwTarget  # noqa: PLC0415 - who runs tiles asks only for `targets_running`

    return target if isinstance(target, VliwTarget) else None


def targets_running(language: str) -> tuple[str, ...]:
    """Return the names of the shipped targets that run a language: `pto` or `tpc`."""
    return tuple(name for name in target_names() if language in load_target(name).languages)

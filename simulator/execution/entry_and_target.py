"""Which target, function, assembler version and back end of a `.pto` program are run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from castsim.isa.errors import ReadError, Span, WarningKind, Warnings, WarningText
from castsim.isa.pto import program as pto
from castsim.targets import Target, load_target, target_for_architecture, target_names

DEFAULT_ARCHITECTURE = "a3"
"""What a `.pto` file without a target attribute is for (docs/reference/pto.md section 3.2)."""

_MOST_SHOWN = 12  # functions that an error lists
_LISTED = 1000  # functions that a misspelt name is compared with, and characters of it


def choose_target(architecture: str | None, given: str | Path | Target | None, place: Span | None = None) -> Target:
    """Return the target that was given, else the one that a `.pto` program asks for, at `place` of its text.

    Raises:
        ReadError, TargetDataError: it cannot be read; no shipped target answers to what the program names.
    """
    if isinstance(given, str | Path):
        return load_target(given)
    if given is not None:
        return given
    found = target_for_architecture(architecture or DEFAULT_ARCHITECTURE)
    if found is None:
        raise ReadError(
            f"the program is for '{architecture}', which no shipped target simulates; choose a target with --target",
            span=place,
            legal=tuple(
                name
                for target in map(load_target, target_names())
                if "pto" in target.languages
                for name in target.architectures
            ),
        )
    return found


def choose_entry(parsed: pto.Program, path: Path, entry: str | None) -> tuple[pto.Function, Warnings]:
    """Return the function to run, and warnings of functions that could not be read and are not asked for.

    Raises:
        ReadError: there is none, or more than one.
        CastsimError: the function asked for could not be read; without a name, one that could as well be meant.
    """
    functions = {function.name: function for function in parsed.functions if function.body is not None}
    candidates = entries(parsed)
    if entry is not None:
        name = entry.removeprefix("@")
        for one in parsed.refused:
            if one.name == name:
                raise one.error
        if name not in functions:
            names = [*functions, *(one.name for one in parsed.refused)]
            near = difflib.get_close_matches(name[:_LISTED], names[:_LISTED], 3) or names
            raise ReadError(f"{path}: no function @{name}", legal=_shown(near))
        return functions[name], ()
    if parsed.refused and (
        len(candidates) != 1
        or (not any(function.is_entry for function in candidates) and any(one.is_entry for one in parsed.refused))
    ):
        raise parsed.refused[0].error
    if len(candidates) != 1:
        if not candidates:
            raise ReadError(f"{path}: no function to run", legal=("func.func @NAME(...) { ... }",))
        what = f"{len(candidates)} functions to run; name one by --entry"
        raise ReadError(f"{path}: {what}", legal=_shown([f.name for f in candidates]))
    return candidates[0], tuple(
        WarningText(
            WarningKind.LEFT_OUT,
            f"function @{one.name} cannot be read and is left out: {one.error.message}",
            str(one.error.span),
        )
        for one in parsed.refused
    )


def entries(parsed: pto.Program) -> list[pto.Function]:
    """Return the functions that can be meant without a name.

    Those marked as entries; without any those that nobody calls, of these the ones marked as for a core.
    """
    from castsim.isa.pto.pto_parser import calls  # noqa: PLC0415 - casts of numbers need only the options below

    functions = [function for function in parsed.functions if function.body is not None]
    marked = [function for function in functions if function.is_entry]
    called = {call.callee for function in functions for call in calls(function.body or ())}
    free = [function for function in functions if function.name not in called]
    return marked or [function for function in free if function.is_for_core] or free


def _shown(names: Sequence[str]) -> list[str]:
    """Return what an error lists of names of functions: of very many, the first."""
    more = len(names) - _MOST_SHOWN
    return [*(f"@{name}" for name in names[:_MOST_SHOWN]), *([f"and {more} more"] if more > 0 else [])]


# Choices that decide what a program computes and that its text leaves open: versions of the assembler, back ends.

TOOLCHAIN = "toolchain"
"""The option that says which assembler a program goes through."""

OLDEST = "older"
"""The toolchain that leaves everything to the library."""

PASS_OFF = ("2026-05", "2026-07")
"""Toolchains that hand saturation OFF to the library where tcvt names none (docs/reference/pto.md section 1.2)."""

MAKE_SCRATCH = ("2026-07",)
"""Toolchains that give operations the tmp tiles that they need (docs/reference/pto.md section 1.3)."""

IMPLICIT_TMP = "implicit tmp "
"""The beginning of the names of such tiles, which no text can spell."""

BACKEND = "backend"
"""The option that says whether casts are calls of the C++ library or instructions of the micro back end."""

MICRO = "vpto"
"""The back end whose instructions say themselves whether they saturate (docs/reference/a5.md section 4.2)."""


@dataclass(frozen=True, slots=True)
class ProgramChoice:
    """An option on which something in a program rests: its value, and what follows from that where."""

    option: str
    value: str
    effect: str

"""One thing that a check has found: how bad it is, what it is, where it is, and what would be legal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from castsim.isa.errors import CastsimError, EngineError, Span
from castsim.isa.warning_text import WarningText


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a file, or worth a look.

    `line` and `column` count from 1, columns in code points; `end_column` is the one behind the last character. All
    three are None where the finding is about the whole file. `legal` lists legal values, `help` names a cure;
    `exit_code` is what `castsim check` returns for it: 0, 1 refused, 2 malformed.
    """

    severity: Severity
    """error, warning or note."""
    kind: str
    """What sort of rule it breaks, such as race or stale read."""
    message: str
    """What is wrong, in a sentence."""
    file: str
    """The name of the file, or of the text."""
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    help: str = ""
    legal: tuple[str, ...] = ()
    exit_code: int = 0
    span: Span | None = None
    """The place with its source line, for those who show it."""

    def __repr__(self) -> str:
        place = ":".join(str(each) for each in (self.file, self.line, self.column) if each is not None)
        return f"<Finding {self.severity} {place}: {self.message[:60]}>"


def of_error(error: CastsimError | EngineError, file: str) -> Finding:
    """Return the finding that an error of a file is."""
    legal = error.values if isinstance(error, CastsimError) else ()
    cure = " or ".join(error.cures) if isinstance(error, CastsimError) else ""
    message = error.message.replace(f" ({error.span})", "") if error.span else error.message
    return placed(Severity.ERROR, error.kind, message, error.span, file, cure, legal, error.exit_code)


def of_errors(error: CastsimError | EngineError, file: str) -> list[Finding]:
    """Return the findings that an error with its further ones is."""
    further = error.further if isinstance(error, CastsimError) else ()
    return [of_error(one, file) for one in (error, *further)]


def of_warnings(warnings: Iterable[WarningText], file: str) -> list[Finding]:
    """Return the findings that warnings are."""
    return [
        placed(
            Severity.WARNING,
            one.kind.value,
            one.text,
            one.place if isinstance(one.place, Span) else None,
            file,
        )
        for one in warnings
    ]


def placed(
    severity: Severity,
    kind: str,
    message: str,
    span: Span | None,
    file: str,
    cure: str = "",
    legal: tuple[str, ...] = (),
    exit_code: int = 0,
) -> Finding:
    """Return a finding at a place; without one it is about the whole file."""
    if span is None:
        return Finding(severity, kind, message, file, help=cure, legal=legal, exit_code=exit_code)
    end = span.column + span.length
    return Finding(severity, kind, message, span.file, span.line, span.column, end, cure, legal, exit_code, span)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without repetitions in the order of the text, those about whole files first."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: (one.file, one.line or 0, one.column or 0)))

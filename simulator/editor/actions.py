"""Repairs of findings: the legal chain of casts, the flag that a race lacks, the word that was meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from castsim.checking import Finding
from castsim.editor.chains import chain_repairs
from castsim.editor.document import Settings, Text
from castsim.editor.flags import flag_repairs
from castsim.editor.repair import Edit, Repair

_TOKEN = re.compile(r"[%!#@]?[\w.$-]+")
_MOST = 4


def repairs(text: Text, finding: Finding, findings: Sequence[Finding], settings: Settings) -> list[Repair]:
    """Return what may be done about a finding of a text, `findings` being all of it; nothing is changed.

    Raises:
        CastsimError: what a repair rests on cannot be read.
    """
    found = _words(text, finding)
    if text.language == "pto":
        found += chain_repairs(text, finding, settings)
        found += flag_repairs(text, finding, findings, settings)
    return found


def _words(text: Text, finding: Finding) -> list[Repair]:
    """Return replacements of a word by the legal ones, where these are words."""
    if finding.line is None or finding.column is None or finding.end_column is None:
        return []
    written = text.lines[finding.line - 1][finding.column - 1 : finding.end_column - 1]
    legal = [word for word in finding.legal if _TOKEN.fullmatch(word) and word != written]
    if not _TOKEN.fullmatch(written) or len(legal) != len(finding.legal) or not 0 < len(legal) <= _MOST:
        return []
    return [
        Repair(f"Write {word}", (Edit(finding.line, finding.column, finding.end_column, word),), len(legal) == 1)
        for word in legal
    ]

"""The target of a text, also of one that cannot be read as a whole."""

from __future__ import annotations

import re

from castsim.commands.editor.document import EditedText, Settings
from castsim.execution.entry_and_target import choose_target
from castsim.isa.errors import CastsimError
from castsim.machines.vliw.program_sources import chosen_target
from castsim.targets import Target

_ARCHITECTURE = re.compile(r'pto\.target_arch\s*=\s*"([^"\n]*)"')


def target_of_text(text: EditedText, settings: Settings) -> Target | None:
    """Return the target that is asked for, else the one that a text names; None if it cannot be told."""
    try:
        asked = settings.request().target
        if text.language == "pto":
            named = _ARCHITECTURE.search(text.text)
            return choose_target(named and named[1], asked)
        return chosen_target(text.text, text.name, asked)
    except CastsimError:
        return None

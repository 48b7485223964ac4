"""Whether output is coloured: by the conventions of the environment, else by the stream."""

from __future__ import annotations

import os
from typing import TextIO


def is_coloured(stream: TextIO) -> bool:
    """Whether text for a stream is coloured.

    NO_COLOR, if not empty, says no (no-color.org) and is stronger than the rest. FORCE_COLOR or CLICOLOR_FORCE, if
    neither empty nor 0, say yes also for a pipe; CLICOLOR=0 says no (bixense.com/clicolors). Else a terminal is.
    """
    set_ = {name: os.environ.get(name, "") for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
    if set_["NO_COLOR"]:
        return False
    if any(set_[name] not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("CLICOLOR") != "0" and os.environ.get("TERM") != "dumb"

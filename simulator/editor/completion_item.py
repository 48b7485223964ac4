"""One thing that may stand where the cursor is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Sort = Literal["operation", "type", "mode", "register", "value", "word"]


@dataclass(frozen=True, slots=True)
class CompletionItem:
    """A text to insert, what it is, a few words beside it, and more of them in Markdown."""

    text: str
    kind: Sort
    detail: str = ""
    about: str = ""

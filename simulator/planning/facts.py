"""What the values of an instruction rest on, as a digest: two targets with one digest give the same results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

_PROSE = frozenset({"source", "status", "informational", "note"})
"""Keys of a table that say where its facts are from; no result depends on them."""


def digest_of_facts(document: Mapping[str, object]) -> str:
    """Return the SHA-256 of facts that JSON can hold, but for what says where they are from."""
    text = json.dumps(_without_prose(document), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _without_prose(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _without_prose(held) for key, held in value.items() if key not in _PROSE}
    return [_without_prose(held) for held in value] if isinstance(value, list | tuple) else value

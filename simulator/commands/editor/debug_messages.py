"""Messages of the Debug Adapter Protocol: JSON with a header that says how long it is.

Source: Debug Adapter Protocol, "Base Protocol".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from castsim.isa.errors import ReadError
from castsim.reports.documents import Document, Json

_MOST_BYTES = 16 << 20
"""Bytes of a message."""
_LONGEST_HEADER = 4096
_LENGTH = "content-length"


@dataclass(slots=True)
class Channel:
    """Messages from and to a client, numbered in the order in which they are sent."""

    source: BinaryIO
    sink: BinaryIO
    _sent: int = field(default=0)

    def receive(self) -> Mapping[str, Json] | None:
        """Return the next message, None at the end of the stream.

        Raises:
            ReadError: something that is no message.
        """
        size = self._header()
        if size is None:
            return None
        data = self.source.read(size)
        if len(data) < size:
            return None
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            raise ReadError("a message of the client is not JSON") from None
        if not isinstance(found, dict):
            raise ReadError("a message of the client is not a JSON object")
        return found

    def send(self, kind: str, **content: Json) -> None:
        """Send a message of a type, with its further keys."""
        self._sent += 1
        data = json.dumps({"seq": self._sent, "type": kind, **content}, allow_nan=False).encode()
        self.sink.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.sink.flush()

    def _header(self) -> int | None:
        size: int | None = None
        while True:
            line = self.source.readline(_LONGEST_HEADER)
            if not line:
                return None
            if line in (b"\r\n", b"\n"):
                if size is not None:
                    return size
                continue
            name, colon, value = line.decode("ascii", "replace").partition(":")
            if not colon:
                raise ReadError("a message of the client has no header", legal=("Content-Length: N",))
            if name.strip().lower() == _LENGTH:
                digits = value.strip()
                if not digits.isascii() or not digits.isdecimal() or len(digits) > 9 or int(digits) > _MOST_BYTES:
                    raise ReadError(f"a message of '{digits[:20]}' bytes", legal=(f"up to {_MOST_BYTES}",))
                size = int(digits)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a request, read with the kinds that they must have."""

    given: Mapping[str, Json]

    def text(self, key: str) -> str | None:
        """Return a text, None if it is missing or empty. Raises ReadError for anything else."""
        value = self.given.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise ReadError(f"'{key}' is no text")
        return value

    def number(self, key: str, default: int = 0) -> int:
        """Return an integer from 0 on. Raises ReadError for anything else."""
        value = self.given.get(key, default)
        if not isinstance(value, int) or value < 0:
            raise ReadError(f"'{key}' is not a number from 0 up")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a truth value. Raises ReadError for anything else."""
        value = self.given.get(key, default)
        if not isinstance(value, bool):
            raise ReadError(f"'{key}' is neither true nor false")
        return value

    def table(self, key: str) -> Arguments:
        """Return an object, an empty one if it is missing. Raises ReadError for anything else."""
        value = self.given.get(key) or {}
        if not isinstance(value, dict):
            raise ReadError(f"'{key}' is no object")
        return Arguments(value)

    def pairs(self, key: str) -> dict[str, str]:
        """Return texts by name: an object, or `NAME=VALUE` as on the command line, one or a list of them.

        Raises:
            ReadError: it is anything else.
        """
        value = self.given.get(key) or {}
        if isinstance(value, dict) and all(isinstance(each, str | int | float) for each in value.values()):
            return {name: str(each) for name, each in value.items()}
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) and "=" in each for each in texts):
            raise ReadError(f"'{key}' is no object of texts", legal=('{"NAME": "VALUE"}', '["NAME=VALUE"]'))
        return {name.strip(): text for name, _, text in (str(each).partition("=") for each in texts)}

    def tables(self, key: str) -> list[Arguments]:
        """Return a list of objects, an empty one if it is missing. Raises ReadError for anything else."""
        value = self.given.get(key) or []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise ReadError(f"'{key}' is no list of objects")
        return [Arguments(each) for each in value]


__all__ = ["Arguments", "Channel", "Document"]

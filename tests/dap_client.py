"""A client of the Debug Adapter Protocol for tests: written after its specification, from nothing of castsim."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, BinaryIO


@dataclass
class Client:
    """Sends requests and reads what comes; events are kept until somebody waits for them."""

    sink: BinaryIO
    source: BinaryIO
    seq: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def send(self, command: str, **arguments: Any) -> int:
        self.seq += 1
        message = {"seq": self.seq, "type": "request", "command": command, "arguments": arguments}
        data = json.dumps(message).encode()
        self.sink.write(f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        self.sink.flush()
        return self.seq

    def read(self) -> dict[str, Any]:
        size = None
        while (line := self.source.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(": ")
            if name == "Content-Length":
                size = int(value)
        assert size is not None, "the adapter is gone"
        found: dict[str, Any] = json.loads(self.source.read(size))
        return found

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the whole response."""
        number = self.send(command, **arguments)
        while True:
            found = self.read()
            if found["type"] == "event":
                self.events.append(found)
            elif found["request_seq"] == number:
                assert found["command"] == command
                return found

    def body(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request that must succeed, and return the body of its response."""
        found = self.ask(command, **arguments)
        assert found["success"], found
        return found.get("body", {})

    def event(self, *names: str) -> dict[str, Any]:
        """Return the next event of any of these names; those before it are dropped."""
        while True:
            while self.events:
                found = self.events.pop(0)
                if found["event"] in names:
                    return found
            self.events.append(self.read())

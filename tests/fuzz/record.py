"""The record of a campaign: inputs tried, coverage reached, findings, programs compared. It is resumed from."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from castsim import __version__
from castsim.files import whole_file
from fuzz.rounds import Coverage, Tally

KIND = "castsim fuzz record"


def _reader_entry() -> dict[str, Any]:
    return {"inputs": 0, "read": 0, "rounds": 0, "seconds": 0.0, "longest_seconds": 0.0, "guided_inputs": 0}


@dataclass
class Record:
    """What all campaigns so far have come to."""

    seed: int = 0
    readers: dict[str, dict[str, Any]] = field(default_factory=dict)
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path, seed: int) -> Record:
        """Read a record; an empty one if there is none yet."""
        if not path.exists():
            return cls(seed)
        held = json.loads(path.read_text(encoding="utf-8"))
        assert held["kind"] == KIND, path
        return cls(held["seed"], held["readers"], held["engines"], held["findings"])

    def save(self, path: Path) -> None:
        total = sum(one["inputs"] + one["guided_inputs"] for one in self.readers.values())
        document = {
            "kind": KIND, "version": __version__, "python": platform.python_version(), "seed": self.seed,
            "inputs": total, "programs": sum(one["programs"] for one in self.engines.values()),
            "readers": dict(sorted(self.readers.items())), "engines": dict(sorted(self.engines.items())),
            "findings": self.findings,
        }  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write((json.dumps(document, indent=1) + "\n").encode())

    def reader(self, name: str) -> dict[str, Any]:
        return self.readers.setdefault(name, _reader_entry())

    def engine(self, name: str) -> dict[str, Any]:
        return self.engines.setdefault(name, {"programs": 0, "differences": 0, "seconds": 0.0})

    def merge(self, other: Record) -> None:
        """Take over what another campaign came to.

        Inputs follow from the seed, so those of two readers add up only if their seeds differ. Programs are numbered:
        of a mechanism the longer campaign counts.
        """
        assert other.seed != self.seed or not other.readers, "the same seed makes the same inputs again"
        for name, one in other.readers.items():
            entry = self.reader(name)
            for key, value in one.items():
                added = key in {"inputs", "read", "rounds", "seconds", "guided_inputs"}
                entry[key] = round(entry.get(key, 0) + value, 1) if added else max(entry.get(key, 0), value)
        for name, one in other.engines.items():
            if one["programs"] > self.engine(name)["programs"]:
                self.engines[name] = one
        self.findings += [one for one in other.findings if one not in self.findings]

    def repeat(self, other: Record) -> None:
        """Enter what a campaign found on engines that have changed since, beside what stood of the mechanism."""
        for name, one in other.engines.items():
            if one["programs"] and name in self.engines and one != self.engines[name]:
                self.engines[name]["again"] = {key: one[key] for key in ("programs", "differences", "seconds")}

    def add(self, name: str, tally: Tally, coverage: Coverage, memory: int) -> None:
        """Add a round of a reader; `memory` is what it took at most, in bytes."""
        entry = self.reader(name)
        entry["inputs"] += tally.inputs
        entry["read"] += tally.read
        entry["rounds"] += 1
        entry["seconds"] = round(entry["seconds"] + tally.seconds, 1)
        entry["longest_seconds"] = round(max(entry["longest_seconds"], tally.longest), 3)
        entry["peak_bytes"] = max(entry.get("peak_bytes", 0), memory)
        entry |= coverage.totals()
        known = {(one["reader"], one["kind"], one["detail"]) for one in self.findings}
        self.findings += [
            {"reader": name, "kind": one.kind, "detail": one.detail, "file": f"{name}-{one.name}"}
            for one in tally.found
            if (name, one.kind, one.detail) not in known
        ]

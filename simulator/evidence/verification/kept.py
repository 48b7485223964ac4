"""What the records of verifications share: a JSON file that is written whole, and with what they were worked on."""

from __future__ import annotations

import json
import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self

from castsim import __version__
from castsim.evidence.verification.oracle import oracle_folder
from castsim.evidence.verification.sources import digest_of, file_digest
from castsim.execution.distribution.origins import Origins, ResultOrigin, origin_of
from castsim.files import whole_file
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.reading import read_text

SCHEMA_VERSION = 1

HASH_RULE = (
    "SHA-256 of each file without comments, docstrings, blank lines and the places of our modules; of the list of all "
    "these, in total"
)


class KeptRecord(ABC):
    """A record that is kept in a file. `KIND` tells the files apart; `runs`: when, and with which versions of what."""

    __slots__ = ()

    KIND: ClassVar[str]
    runs: list[dict[str, Any]]

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the record as JSON."""

    @classmethod
    @abstractmethod
    def of_document(cls, held: Mapping[str, Any]) -> Self:
        """Return the record that a document describes.

        Raises:
            ReadError, ValueError, KeyError, TypeError, AttributeError: it describes none.
        """

    def note_run(self) -> None:
        """Record that work goes on now, with these versions."""
        self.runs.append({"date": today(), **versions()})

    def save(self, path: Path) -> None:
        """Write the record atomically: after a crash the file is the old or the new one.

        Raises:
            ReadError: it cannot be written.
        """
        text = self.text()
        try:
            with whole_file(path, synchronised=True) as file:
                file.write(text.encode())
        except OSError as error:
            raise ReadError(f"cannot write record '{path}': {error.strerror or error}") from None

    def text(self) -> str:
        """Return the record as its file holds it."""
        return json.dumps(self.document(), indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record.

        Raises:
            ReadError: it is missing or no such record.
        """
        try:
            held = json.loads(read_text(path, "record"))
            if held.get("kind") != cls.KIND or held.get("schema_version") != SCHEMA_VERSION:
                raise ReadError(f"'{path}' is not a {cls.KIND}")
            return cls.of_document(held)
        except CastsimError:
            raise
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise ReadError(f"record '{path}' cannot be read: {error}") from None


def versions() -> dict[str, str | None]:
    """Return the versions of everything that takes part; None for what is not installed."""
    found: dict[str, str | None] = {"castsim": __version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "llvmlite"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


@cache
def oracle_digest() -> str:
    """Return the SHA-256 of the oracle's files; '' where castsim is installed without it."""
    folder = oracle_folder()
    paths = [] if folder is None else sorted(folder.glob("oracle*.py"))
    return digest_of({path.name: file_digest(path) for path in paths}) if paths else ""


def workers_document(origins: Origins) -> dict[str, list[dict[str, str]]]:
    """Return who computed, under the key that all records have it under; entries name them by their places there."""
    return {"workers": origins.documents()}


def read_workers(held: Mapping[str, Sequence[Mapping[str, object]]]) -> list[ResultOrigin]:
    """Return who computed; nobody in records from before that was kept.

    Raises:
        KeyError, TypeError, AttributeError: what is there are no workers.
    """
    return [origin_of(each) for each in held.get("workers", ())]


def tally_document(computed_by: Mapping[ResultOrigin, int], origins: Origins) -> list[dict[str, int]]:
    """Return how many codes each worker has tried, workers by their places among `origins`."""
    return [{"worker": origins.place(by), "codes": codes} for by, codes in computed_by.items()]


def read_tally(
    part: Mapping[str, Sequence[Mapping[str, int]]], workers: Sequence[ResultOrigin]
) -> dict[ResultOrigin, int]:
    """Return how many codes each worker has tried; nothing in records from before that was kept.

    Raises:
        KeyError, IndexError, TypeError, ValueError: it is not told in that form.
    """
    return {workers[each["worker"]]: int(each["codes"]) for each in part.get("computed_by", ())}


def changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the files whose digests are no longer the same."""
    return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def sources_document(files: Mapping[str, str]) -> dict[str, Any]:
    """Return the digests of sources as JSON, and what they are digests of."""
    return {"rule": HASH_RULE, "sha256": digest_of(files), "files": dict(files)}


def today() -> str:
    """Return the date."""
    return datetime.now(UTC).date().isoformat()

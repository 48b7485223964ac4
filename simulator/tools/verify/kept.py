"""Records of verifications: JSON files that are written completely or not at all, with their sources and versions."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import platform
import tokenize
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self

import castsim
import castsim.isa
import castsim.targets
from castsim import __version__
from castsim.files import whole_file
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.reading import read_text
from castsim.reports.documents import CommandDocument
from castsim.tools.distribution.origins import Origins, ResultOrigin, origin_of
from castsim.tools.verify.comparison import oracle_folder

# The source files that a proof is about, and their digests.
#
# A proof concerns the modules that compute casts and those that choose the inputs and compare. They are found by
# following imports, also those inside functions, from the modules that start it all. A digest leaves out what cannot
# change a bit: comments, docstrings, blank lines, and imports that only annotations use.

PACKAGES = {
    "castsim.isa": Path(castsim.isa.__file__).resolve().parent,
    "castsim.targets": Path(castsim.targets.__file__).resolve().parent,
    "castsim": Path(castsim.__file__).resolve().parent,
}
"""Package folders, the longest name first: a checkout has three folders side by side, an installation one.

Modules of any other name are third-party, and their sources are not part of a proof.
"""

PROVEN = ("castsim.numerics.tiers", "castsim.tools.verify.comparison")
"""Modules at which the search for imports starts."""

_OWN = frozenset({"castsim", "simulator", "isa", "targets"})
"""The current package name, and the three former folder names in imports."""

BITLESS = frozenset({"castsim.isa.errors", "castsim"})
"""Modules that only define errors or the version: they decide neither results nor which codes are tried."""


def source_digests(*, oracle: bool) -> dict[str, str]:
    """Return the SHA-256 of every source file of a proof by its path; with `oracle`, also the oracle's files.

    Paths are those of the modules (`castsim/isa/formats.py`), wherever castsim is installed; the oracle's begin with
    `tests/`.
    """
    starts = list(PROVEN)
    folder = oracle_folder() if oracle else None
    if folder is not None:
        starts.append("oracle")
    return _digests(_files(starts, folder))


SUBSTITUTED = (
    "castsim.tools.lowering.samples",
    "castsim.tools.lowering.tile_casts",
    "castsim.tools.lowering.vector_steps",
)
"""Modules at which the search for imports starts for proofs of substitutions for instructions."""

LEFT_OUT = (
    *("castsim.isa.pto.", "castsim.isa.tpc.", "castsim.targets"),
    *("castsim.execution.", "castsim.execution.tree", "castsim.execution.tree"),
    "castsim.machines.vliw.semantics.moves",
)
"""Prefixes of modules that decide no result: they read text or describe targets, and the proof's entry contains
what it uses of them; or they implement other instructions than arithmetic with a constant."""

_SAYING_WHAT = frozenset({"castsim.isa.pto.vector_operations"})
"""Exceptions among those modules, which decide what an instruction does."""


def substitution_digests() -> dict[str, str]:
    """Return the SHA-256 of every source file that decides whether a substitute equals its instruction."""

    def left_out(module: str) -> bool:
        return module.startswith(LEFT_OUT) and module not in _SAYING_WHAT

    return _digests(_files(list(SUBSTITUTED), None, left_out))


def _digests(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: file_digest(files[name]) for name in sorted(files)}


def digest_of(files: Mapping[str, str]) -> str:
    """Return one SHA-256 over paths and digests."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a source file without the parts that decide no bit (`HASH_RULE`)."""
    return _text_digest(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def _text_digest(source: str) -> str:
    taken, rows = own_imports(source)
    rows |= imports_for_annotations(source)
    return hashlib.sha256("\n".join([*taken, stripped(source, rows)]).encode()).hexdigest()


def stripped(source: str, rows: Collection[int] = ()) -> str:
    """Return source text without comments, docstrings, trailing blanks and empty lines, and the `rows`."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    kept = (line for row, line in enumerate(lines, 1) if row not in rows)
    return "\n".join(line.rstrip() for line in kept if line.strip())


def own_imports(source: str) -> tuple[list[str], set[int]]:
    """Return the names that a source imports from castsim's modules, and the lines of these imports.

    A module is identified by its last name: one that moves to another folder decides the same bits. The list
    of files gives the modules.
    """
    taken, rows = [], set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in _OWN:
            module = node.module.rpartition(".")[2]
            taken += [f"{module}: {alias.name} {alias.asname or ''}".rstrip() for alias in node.names]
            rows |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sorted(taken), rows


def imports_for_annotations(source: str) -> set[int]:
    """Return the lines of imports that decide no bit: from modules with only types, or only for type checkers."""
    rows: set[int] = set()
    for node in ast.parse(source).body:
        types = isinstance(node, ast.ImportFrom) and node.module in ("typing", "numpy.typing")
        if types or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            rows |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return rows


def _files(
    starts: list[str], tests: Path | None, left_out: Callable[[str], bool] = BITLESS.__contains__
) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name in paths or name in BITLESS or left_out(name):
            continue
        path = _path_of(name, tests)
        if path is None:
            continue
        paths[name] = path
        waiting.extend(_imported(path, tests))
    return {_shown(name, path): path for name, path in paths.items()}


def _shown(module: str, path: Path) -> str:
    """Return the path of a module's file below its import folder."""
    name = module.replace(".", "/")
    name += "/__init__.py" if path.name == "__init__.py" else ".py"
    return name if name.startswith("castsim/") else f"tests/{name}"


def _path_of(module: str, tests: Path | None) -> Path | None:
    """Return the file of a castsim module, None for any other."""
    base = None if tests is None else tests.joinpath(*module.split("."))
    for package, folder in PACKAGES.items():
        if module == package or module.startswith(f"{package}."):
            base = folder.joinpath(*module.split(".")[package.count(".") + 1 :])
            break
    if base is None:
        return None
    paths = (base.with_name(f"{base.name}.py"), base / "__init__.py")
    return next((path for path in paths if path.is_file()), None)


def _imported(path: Path, tests: Path | None) -> Iterator[str]:
    """Yield the modules that a file names in its imports; for a package, the modules that define its names."""
    for module, name in _imports(path.read_text(encoding="utf-8")):
        yield module if name is None else _home_of(module, name, tests)


def _home_of(module: str, name: str, tests: Path | None) -> str:
    """Return the module that defines a name, following packages that re-export it."""
    if _path_of(f"{module}.{name}", tests) is not None:
        return f"{module}.{name}"
    path = _path_of(module, tests)
    if path is not None and path.name == "__init__.py":
        for origin, handed_on in _imports(path.read_text(encoding="utf-8")):
            if handed_on == name and origin != module:
                return _home_of(origin, name, tests)
    return module


@lru_cache(maxsize=256)
def _imports(source: str) -> tuple[tuple[str, str | None], ...]:
    """Return the (module, name) of everything imported, also inside functions; an entire module has no name."""
    imports: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imports += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports += [(node.module, alias.name) for alias in node.names]
    return tuple(imports)


# The records.

SCHEMA_VERSION = 1

HASH_RULE = (
    "SHA-256 of each file without comments, docstrings, blank lines, imports for annotations alone and the places of "
    "our modules; of the list of all these, in total"
)


class KeptRecord(ABC):
    """A record that is stored in a file. `KIND` identifies the files; `runs`: dates and versions of all runs."""

    __slots__ = ()

    KIND: ClassVar[str]
    FORM: ClassVar[type[CommandDocument]]
    """The keys of its document."""

    runs: list[dict[str, Any]]

    def document(self) -> dict[str, Any]:
        """Return the record as JSON."""
        origins = Origins()
        results = self.results(origins)
        return {
            **self.FORM.of(self, kind=self.KIND, workers=origins.documents(), **results),
            "schema_version": SCHEMA_VERSION,  # of the record, not of the command's document
        }

    @abstractmethod
    def results(self, origins: Origins) -> dict[str, Any]:
        """Return keys that are no attributes; results name workers by their index in `origins`."""

    @classmethod
    @abstractmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Return the record that a document describes.

        Raises:
            ReadError, ValueError, KeyError, TypeError, AttributeError: the document is not a record.
        """

    def note_run(self) -> None:
        """Record the start of a run with these versions."""
        self.runs.append({"date": today(), **versions()})

    def save(self, path: Path) -> None:
        """Write the record atomically: after a crash the file is the old or the new one.

        Raises:
            ReadError: the file cannot be written.
        """
        text = self.text()
        try:
            with whole_file(path, synchronised=True) as file:
                file.write(text.encode())
        except OSError as error:
            raise ReadError(f"cannot write record '{path}': {error.strerror or error}") from None

    def text(self) -> str:
        """Return the record in the form of its file."""
        return json.dumps(self.document(), indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record.

        Raises:
            ReadError: the file is missing or is not such a record.
        """
        try:
            document = json.loads(read_text(path, "record"))
            if document.get("kind") != cls.KIND or document.get("schema_version") != SCHEMA_VERSION:
                raise ReadError(f"'{path}' is not a {cls.KIND}")
            return cls.of_document(document)
        except CastsimError:
            raise
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise ReadError(f"record '{path}' cannot be read: {error}") from None


def versions() -> dict[str, str | None]:
    """Return the versions of all packages involved; None for packages that are not installed."""
    version_of: dict[str, str | None] = {"castsim": __version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "llvmlite"):
        try:
            version_of[package] = version(package)
        except PackageNotFoundError:
            version_of[package] = None
    return version_of


@cache
def oracle_digest() -> str:
    """Return the SHA-256 of the oracle's files; '' if castsim is installed without them."""
    folder = oracle_folder()
    paths = [] if folder is None else sorted(folder.glob("oracle*.py"))
    return digest_of({path.name: file_digest(path) for path in paths}) if paths else ""


def read_workers(document: Mapping[str, Sequence[Mapping[str, object]]]) -> list[ResultOrigin]:
    """Return the workers of a record; empty for records older than that field.

    Raises:
        KeyError, TypeError, AttributeError: the value is not a list of workers.
    """
    return [origin_of(worker) for worker in document.get("workers", ())]


def tally_document(computed_by: Mapping[ResultOrigin, int], origins: Origins) -> list[dict[str, int]]:
    """Return the number of codes that each worker has tried, workers by their index in `origins`."""
    return [{"worker": origins.place(by), "codes": codes} for by, codes in computed_by.items()]


def read_tally(
    part: Mapping[str, Sequence[Mapping[str, int]]], workers: Sequence[ResultOrigin]
) -> dict[ResultOrigin, int]:
    """Return the number of codes that each worker has tried; empty for records older than that field.

    Raises:
        KeyError, IndexError, TypeError, ValueError: the value has another form.
    """
    return {workers[share["worker"]]: int(share["codes"]) for share in part.get("computed_by", ())}


def changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the files whose digests have changed."""
    return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def sources_document(files: Mapping[str, str]) -> dict[str, Any]:
    """Return the digests of sources as JSON, with a description of the digests."""
    return {"rule": HASH_RULE, "sha256": digest_of(files), "files": dict(files)}


def today() -> str:
    """Return today's date."""
    return datetime.now(UTC).date().isoformat()

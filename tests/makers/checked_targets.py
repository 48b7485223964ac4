"""What `targets/checked` keeps: `python tests checked_targets` validates the shipped descriptions and writes it.

Each description, and each table of the TPC compiler, is read in a process of its own, which notes what files it reads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import castsim.tools.tpc_compiler.c_language  # noqa: F401 - declares tables
from castsim.targets import tpc_compiler, validated
from castsim.targets.loader import load_specification, load_target, specification_names, target_names


def names() -> tuple[str, ...]:
    """Return the names of what is kept."""
    return (*target_names(), *specification_names(), *_tables())


def _tables() -> dict[str, Any]:
    tables = validated.tables_below(tpc_compiler.CsvTable)
    return {table.__name__: table for table in tables if "csv_file" in vars(table)}


def validated_anew(name: str) -> bytes:
    """Return the file of a description that is read and validated now; for a process of its own."""
    folder, read = validated.CHECKED.parent, set[str]()

    def note(event: str, about: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(about[0], str) and Path(about[0]).parent == folder:
            read.add(Path(about[0]).name)

    validated.CHECKED = folder / "nothing"
    sys.addaudithook(note)
    if name in target_names():
        content: Any = load_target(name)
    elif name in specification_names():
        content = load_specification(name)
    else:
        content = tpc_compiler.csv_rows(_tables()[name])
    others = {f"{each}.toml" for each in (*target_names(), *specification_names())}  # read for their kind alone
    return validated.to_keep(content, read - (others - {f"{each}.toml" for each in (name, *_bases(name))}))


def _bases(name: str) -> Iterator[str]:
    """Yield the names of the descriptions on which one builds."""
    path = validated.CHECKED.parent / f"{name}.toml"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line in lines:
        if line.startswith("base = "):
            base = line.split('"')[1]
            yield base
            yield from _bases(base)


def files() -> dict[str, bytes]:
    """Return every file by its name."""
    os.environ["PYTHONHASHSEED"] = "0"  # the order of sets
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return dict(zip(names(), pool.map(validated_anew, names(), chunksize=1), strict=True))


def main() -> int:
    """Write the files."""
    validated.CHECKED.mkdir(exist_ok=True)
    for name, content in files().items():
        (validated.CHECKED / f"{name}.pickle").write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A calibration as a target description: derived from the target, only what was fitted, each with its source."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from castsim.evidence.calibration.fitting import Calibration, Fitted
from castsim.files import whole_file
from castsim.isa.errors import ReadError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def derived_description(found: Calibration, base: str | Path, out: Path) -> str:
    """Return the text of the derived description at `out`; `base` is the target as the user named it.

    Numbers of one table of facts share its source, which then says what of it is not fitted.
    """
    text = str(base)
    if text.endswith(".toml"):
        text = Path(os.path.relpath(Path(text).resolve(), out.resolve().parent)).as_posix()
    lines = [f"base = {_quoted(text)}", f"name = {_quoted(out.stem)}"]
    owners: dict[tuple[str, ...], list[Fitted]] = {}
    for each in found.parameters:
        owners.setdefault(_owner(found.target, each.path), []).append(each)
    for owner, fitted in owners.items():
        lines += ["", f"[{_key(owner)}]"]
        lines += [f"{_key(each.path.split('.')[len(owner) :])} = {each.value:f}" for each in fitted]
        lines += [f"source = {_quoted(_source(found, owner, fitted))}", 'status = "fitted"']
    return "\n".join(lines) + "\n"


def write_description(text: str, out: Path) -> None:
    """Write a description completely or not at all; one that is there stays.

    Raises:
        ReadError: there is such a file, or it cannot be written.
    """
    check_out(out)
    try:
        with whole_file(out) as file:
            file.write(text.encode())
    except OSError as error:
        raise ReadError(f"cannot write target '{out}': {error.strerror or error}") from None


def check_out(out: Path) -> None:
    """Refuse a name that is no description's, or that is taken (ReadError)."""
    if out.suffix != ".toml":
        raise ReadError(f"--out {out}: a target description is a .toml file", legal=("--out my_chip.toml",))
    if os.path.lexists(out):
        raise ReadError(f"--out {out}: exists already, and is not overwritten; name another file")


def _source(found: Calibration, owner: tuple[str, ...], fitted: list[Fitted]) -> str:
    parts = []
    for each in fitted:
        error = "" if each.standard_error is None else f" +- {each.standard_error:.2g}"
        bound = " (at its bound)" if each.at_bound else ""
        parts.append(f"{'.'.join(each.path.split('.')[len(owner) :])} {each.value:f}{error}{bound}")
    residual = found.deviation(found.after)
    rows = len(found.table.rows)
    text = f"least squares to {rows} rows of {Path(found.table.file).name}, residual {residual:.2f} % rms: "
    base = _table(found.target, owner)
    return f"{text}{', '.join(parts)}; the rest of this table as in the base: {base.source}"


def _owner(target: Any, path: str) -> tuple[str, ...]:
    """Return the innermost table around a number that has a source."""
    keys = tuple(path.split("."))
    return next(keys[:end] for end in range(len(keys) - 1, 0, -1) if hasattr(_table(target, keys[:end]), "source"))


def _table(held: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        held = held[key] if isinstance(held, dict) else getattr(held, key)
    return held


def _key(keys: tuple[str, ...] | list[str]) -> str:
    return ".".join(key if _BARE.fullmatch(key) else _quoted(key) for key in keys)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

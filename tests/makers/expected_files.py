"""The form of the `.expected` files beside the sample programs, the same for every language.

A derivation of the cycles, which is arithmetic on named facts; the outputs' digests by the test oracle; the report.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Mapping, Sequence

import numpy as np
from kit.paths import PROGRAMS, ROOT

SEED = 0


def sections(name: str) -> dict[str, list[str]]:
    """Return the parts of an `.expected` file by the first word of their headings."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in (PROGRAMS / f"{name}.expected").read_text().splitlines():
        if line.startswith("== "):
            current = found.setdefault(line.strip("= ").split(",")[0].split()[0], [])
        else:
            current.append(line)
    return found


def derivation(name: str) -> list[str]:
    """Return the lines of a derivation, comments included."""
    return [line for line in sections(name)["cycles"] if line.strip()]


def evaluated(name: str, facts: Mapping[str, object]) -> int:
    """Evaluate a derivation with named facts; its last value is `total`."""
    values = dict(facts)
    for line in derivation(name):
        if not line.startswith("#"):
            target, expression = line.split("#")[0].split("=", 1)
            values[target.strip()] = eval(expression, {"__builtins__": {}}, values)
    total = values["total"]
    assert isinstance(total, int)
    return total


def digest(codes: np.ndarray) -> str:
    """Return the SHA-256 of an array's bytes, little endian, C order."""
    return hashlib.sha256(np.ascontiguousarray(codes).astype(codes.dtype.newbyteorder("<")).tobytes()).hexdigest()


def printed(words: Sequence[str]) -> list[str]:
    """Return the text that castsim prints for a command line, 100 columns wide, without colour."""
    from castsim.__main__ import main  # noqa: PLC0415 - the rest of this module must not need the product

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.chdir(ROOT):
        status = main(list(words))
    assert status == 0
    return out.getvalue().rstrip("\n").splitlines()


def reported(words: Sequence[str]) -> list[str]:
    """Return the full report of a run, which has every figure that the `.expected` files hold."""
    return printed([*words, "--report", "full"])


def write(name: str, words: Sequence[str], target: str, total: int, digests: Mapping[str, str]) -> None:
    """Rewrite digests and report of one file, keeping its derivation.

    Refuses if the report does not give the derived total.
    """
    lines = reported(words)
    if not any(f": {total:,} cycles = " in line for line in lines):
        raise SystemExit(f"{name}: the derivation gives {total} cycles, the report does not")
    text = [
        f"castsim {' '.join(words)}",
        "",
        f"== cycles, by hand from the facts of targets/{target}.toml ==",
        *derivation(name),
        "",
        "== outputs, digests by the test oracle ==",
        *(f"{output} sha256 {found}" for output, found in digests.items()),
        "",
        "== report, with --report full ==",
        *lines,
    ]
    (PROGRAMS / f"{name}.expected").write_text("\n".join(text) + "\n")

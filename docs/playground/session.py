"""What the playground's worker calls: commands of castsim in a browser."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from pathlib import Path

import numpy as np

sys.modules["numba"] = None  # type: ignore[assignment]  # it has no browser wheel; castsim does without

from castsim.__main__ import main  # noqa: E402 - after numba
from castsim.isa.formats import Format  # noqa: E402
from castsim.numerics import codec  # noqa: E402
from castsim.tools.advise import page  # noqa: E402

NO_ADVICE = "the playground's run tries no changes; use castsim advise"


def native_dtype(fmt: Format) -> np.dtype[np.generic] | None:
    """Return NumPy's dtype of a format's numbers; ml_dtypes, which has the others, has no browser wheel."""
    return np.dtype(fmt.dtype) if fmt.dtype is not None and hasattr(np, fmt.dtype) else None


os.environ["COLUMNS"] = "80"  # as wide as the page shows without a scroll bar
codec.native_dtype = native_dtype
page.advice_of = lambda *_, **__: NO_ADVICE


def execute(line: str, name: str, program: str) -> tuple[int, str, str]:
    """Execute a command line beside a program's file; return the exit code, what was printed, and the report's page.

    A `run` without `--html` gets one. The page is empty where none was written.
    """
    words, page = shlex.split(line), Path("report.html")
    if program:
        Path(name).write_text(program, encoding="utf-8")
    page.unlink(missing_ok=True)
    if words[:1] == ["run"] and "--html" not in words:
        words += ["--html", str(page)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main(words)
    return code, printed.getvalue(), page.read_text(encoding="utf-8") if page.exists() else ""

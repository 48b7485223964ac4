"""What the playground's worker calls: commands of castsim in a browser, with the stand-in where NumPy is missing."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from pathlib import Path

sys.modules["numba"] = None  # type: ignore[assignment]  # has no browser wheel; castsim does without
try:
    import numpy  # noqa: F401
except ImportError:
    import standin

    standin.install()
    ASKED = standin.ASKED
else:
    ASKED = []

NO_ADVICE = "the playground tries no changes; castsim advise does"


def execute(line: str, name: str, program: str) -> tuple[int, str, str]:
    """Execute a command line beside a program's file; return the exit code, what was printed, and the report's page.

    A `run` without `--html` gets one. The page is empty where none was written, or where it would need NumPy.
    """
    from castsim.__main__ import main  # noqa: PLC0415 - after the stand-in
    from castsim.commands import run_views  # noqa: PLC0415 - the same

    run_views.advice_of = lambda *_, **__: NO_ADVICE
    words, page = shlex.split(line), Path("report.html")
    Path(name).write_text(program, encoding="utf-8")
    page.unlink(missing_ok=True)
    added = ["--html", str(page)] if words[:1] == ["run"] and "--html" not in words else []
    for further in (added, []):  # the report alone where only its page needs NumPy
        said = io.StringIO()
        ASKED.clear()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main([*words, *further])
        if not (ASKED and code and further):
            break
    if ASKED and code:
        return code, f"error: this needs NumPy ({ASKED[0]}), which this site lacks", ""
    return code, said.getvalue(), page.read_text(encoding="utf-8") if page.exists() else ""

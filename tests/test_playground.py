"""The playground: castsim without NumPy, without numba, with indices of 32 bits; under Pyodide where it was built.

What the stand-in for NumPy computes is what NumPy computes, to the letter of report and page.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from castsim.__main__ import main
from castsim.commands import run_views

ROOT = Path(__file__).resolve().parent.parent
PLAYGROUND = ROOT / "docs" / "playground"
BUILT = ROOT / "build" / "site" / "playground"
F16, TPC = "f32_to_f16.pto", "tpc_f32_i16_quantise_greco.tpc"
REQUESTS = [
    ("check P", F16),
    ("run P --timing-only", F16),
    ("cast f32 e4m3fn 464 nan 0.3 -1e9 --target a5", F16),
    ("check P", TPC),
    ("run P --timing-only", TPC),
    ("run P --timing-only", "kernels/rms_norm_a2a3.pto --arg eps=1e-6"),
    ("run P --in src=zeros", F16),
    ("cast f32 f16 65520 1e-8 nan --target a2a3 --rounding rint odd", F16),
    ("cast hif8 f16 1.5 nan", F16),
]
"""Commands, of programs and further words behind their names."""
IN_NODE = REQUESTS[:5]


def requests(chosen: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return the lines, names and texts that a session is given."""
    found = []
    for line, given in chosen:
        sample, *more = given.split()
        name = f"program{Path(sample).suffix}"
        text = (ROOT / "programs" / sample).read_text(encoding="utf-8")
        found.append((" ".join([line.replace("P", name), *more]), name, text))
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[list[object]]:
    """What the commands give with NumPy, each with its page."""
    found: list[list[object]] = []
    with contextlib.chdir(tmp_path_factory.mktemp("expected")), pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_views, "advice_of", lambda *_, **__: "the playground tries no changes; castsim advise does")
        for line, name, text in requests(REQUESTS):
            Path(name).write_text(text, encoding="utf-8")
            page = Path("report.html")
            page.unlink(missing_ok=True)
            words = shlex.split(line)
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                code = main([*words, "--html", str(page)] if words[0] == "run" else words)
            found.append([code, said.getvalue(), page.read_text(encoding="utf-8") if page.exists() else ""])
    return found


def agree(found: list[list[object]], wanted: list[list[object]]) -> None:
    for (line, _), got, right in zip(REQUESTS, found, wanted, strict=False):
        lines = str(right[1]).splitlines(keepends=True)
        plain = not got[2] and "zeros" in line  # charts of values need NumPy: no page, which the last line names
        assert got == ([right[0], "".join(lines[:-1]), ""] if plain else right), line


WITHOUT_NUMPY = """
import json, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "ml_dtypes"):
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import session
print(json.dumps([session.execute(*request) for request in json.load(sys.stdin)]))
"""
INDICES_OF_32_BITS = """
import json, sys
import numpy as np
def short(function):
    def call(*given, **options):
        found = function(*given, **options)
        asked = "dtype" in options or len(given) > 1 and function is not np.arange
        parts = found if isinstance(found, tuple) else (found,)
        made = tuple(part.astype(np.int32) if part.dtype == np.int64 and not asked else part for part in parts)
        return made if isinstance(found, tuple) else made[0]
    return call
for name in ("arange", "flatnonzero", "nonzero", "argsort", "searchsorted", "lexsort", "indices", "argwhere"):
    setattr(np, name, short(getattr(np, name)))
np.intp = np.int_ = np.int32
sys.modules["numba"] = None
import session
print(json.dumps([session.execute(*request) for request in json.load(sys.stdin)]))
"""
"""As on wasm32: what counts or indexes, and says no type, has 32 bits."""


@pytest.mark.parametrize("code", [WITHOUT_NUMPY, INDICES_OF_32_BITS], ids=["no-numpy", "indices-of-32-bits"])
def test_commands_give_the_same_as_with_numpy_and_numba(
    code: str, tmp_path: Path, expected: list[list[object]]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(requests(REQUESTS)), cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(PLAYGROUND)},
    )  # fmt: skip
    agree(json.loads(done.stdout), expected)


def test_what_the_stand_in_cannot_do_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMPY],
        input=json.dumps(requests([("run P --in src=random:0", F16)])), cwd=tmp_path, capture_output=True, text=True,
        check=True, env={**os.environ, "PYTHONPATH": str(PLAYGROUND)},
    )  # fmt: skip
    [[code, said, page]] = json.loads(done.stdout)
    assert (code, page) == (1, "")
    assert said == "error: this needs NumPy (numpy.random.default_rng), which this site lacks"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.skipif(
    not (BUILT / "session.py.js").is_file(), reason="`python docs/playground/build.py` builds the playground"
)
def test_under_pyodide_in_node(tmp_path: Path, expected: list[list[object]]) -> None:
    (tmp_path / "requests.json").write_text(json.dumps(requests(IN_NODE)))
    script = Path(__file__).with_name("playground_node.mjs")
    done = subprocess.run(
        ["node", script, BUILT, tmp_path / "requests.json"], capture_output=True, text=True, check=True, timeout=300
    )
    found = json.loads(done.stdout.splitlines()[-1])
    agree(found["results"], expected)
    assert all("wasm32" in wheel for wheel in found["missing"])

"""The pytest plugin: its fixtures in a run of their own, what failures say, what loading it costs, its page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from kit.paths import PROGRAMS, ROOT

import castsim

pytest_plugins = ["pytester"]

PAGE = (ROOT / "docs" / "pytest-plugin.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
TOLD = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
PLUGIN = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]["pytest11"]
HEAVY = ("numpy", "rich", "pydantic", "simpy", "ml_dtypes", "numba", "castsim.running", "castsim.running.assertions")


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a folder for tests, in an environment that has castsim's entry points as an installation has them."""
    info = pytester.mkdir("site") / "castsim-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: castsim\nVersion: 0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in PLUGIN.items())
    (info / "entry_points.txt").write_text(f"[pytest11]\n{lines}")
    monkeypatch.setenv("PYTHONPATH", str(info.parent), prepend=os.pathsep)
    for name in ("f32_to_f16.pto", "tpc_f32_i32_pipelined_stale_goya.tpc"):
        shutil.copy(PROGRAMS / name, pytester.path)
    return pytester


def failure(folder: pytest.Pytester, text: str, only: str = "") -> str:
    """Return what pytest says when it runs one failing test."""
    folder.makepyfile(text)
    done = folder.runpytest_subprocess("-q", "-k", only)
    done.assert_outcomes(failed=1)
    return complaint(done.outlines)


def complaint(lines: list[str]) -> str:
    """Return what pytest prints of a failing test, without its mark for errors."""
    return "\n".join(line.removeprefix("E   ").strip() for line in lines if line.startswith("E   "))


def test_the_entry_point_is_a_plugin() -> None:
    (entry,) = (EntryPoint(name, value, "pytest11") for name, value in PLUGIN.items())
    assert {"castsim_cast", "castsim_kernel"} <= set(vars(entry.load()))


def test_the_examples_of_the_page_pass(folder: pytest.Pytester) -> None:
    folder.makepyfile(**{f"test_example_{number}": text for number, text in enumerate(EXAMPLES)})
    folder.runpytest_subprocess("-q").assert_outcomes(passed=4)


def test_a_failure_reads_as_the_page_says(folder: pytest.Pytester) -> None:
    text = EXAMPLES[0].replace("src.astype(np.float16)", "np.clip(src, -65504, 65504).astype(np.float16)")
    told = failure(folder, text, only="test_large_numbers")
    assert told.startswith(TOLD[0].replace("\n  ", "\n").rstrip("\n"))
    assert told.endswith("and 80 more")


KERNEL = "castsim_kernel('f32_to_f16.pto', inputs={'src': 'zeros'})"
FAILURES = [
    (
        f"{KERNEL}.assert_cycles(at_most=10)",
        "f32_to_f16.pto on a2a3: {cycles} cycles, {over} more than 10; `castsim run --what-if all`",
    ),
    (f"{KERNEL}.assert_equal(lambda src: {{'out': src}})", "the oracle returned ['out']; the outputs are ['dst']"),
    (f"{KERNEL}.assert_equal(lambda src: src)", "output 'dst', by the oracle: "),
    (
        f"{KERNEL}.assert_equal(lambda src: src.astype('float16')[:3])",
        "output 'dst' has shape [4, 64], expected [3, 64]",
    ),
    (
        "castsim_kernel('unflagged.pto', inputs={'src': 'zeros'})",
        "unflagged.pto on a2a3: 2 violations of order\nunflagged.pto:18:5: race: tstore",
    ),
    (
        "castsim_kernel('tpc_f32_i32_pipelined_stale_goya.tpc', inputs={'x': 'random:1'})",
        "tpc_f32_i32_pipelined_stale_goya.tpc on goya: 24 stale reads\n",
    ),
    ("castsim_cast([0.5, 2.5], 'f32', 'i8').assert_values([0, 3])", "differs in 1 of 2 elements (i8)\nindex  got"),
    ("castsim_cast([2.5], 'f32', 'i8').assert_values([3])", "[0]    0x02 2  0x03 3    0x40200000 2.5"),
    ("castsim_cast([1], 'f32', 'f16').assert_values([0.1])", "expected 0.1, which f16 cannot represent"),
    ("castsim_cast([0], 'f32', 'f16').assert_values([-0.0])", "0x0000 0.0  0x8000 -0.0"),
    ("castsim_cast([1], 'e4m3fn', 'e2m1').assert_bits([3])", "0x2 1.0  0x3 1.5   0x38 1.0"),
    ("castsim_cast([300], 'i8', 'f16')", "i8 cannot represent all of [300]"),
    ("castsim_cast([1, 2], 'f32', 'f16').assert_values([1])", "has shape [2], expected [1]"),
]
"""What a test does, and what its failure says; `{cycles}` are those of a run, `{over}` what they are beyond 10."""


def test_what_failures_say(folder: pytest.Pytester) -> None:
    """All in one run of pytest."""
    text = Path("f32_to_f16.pto").read_text().splitlines()
    load = next(index for index, line in enumerate(text) if "pto.tload" in line)
    flags = [f"    pto.{what}_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]" for what in ("set", "wait")]
    Path("unflagged.pto").write_text("\n".join([*text[: load + 1], *flags, *text[load + 1 :]]))
    tests = (f"def test_{n}(castsim_cast, castsim_kernel):\n    {test}\n" for n, (test, _) in enumerate(FAILURES))
    folder.makepyfile("\n".join(tests))
    done = folder.runpytest_subprocess("-q")
    done.assert_outcomes(failed=len(FAILURES))
    told: list[list[str]] = []
    for line in done.outlines:
        if re.fullmatch(r"_+ test_\d+ _+", line):
            told.append([])
        elif told:
            told[-1].append(line)
    cycles = castsim.run("f32_to_f16.pto", timing_only=True).cycles
    for (test, message), lines in zip(FAILURES, told, strict=True):
        assert message.format(cycles=cycles, over=cycles - 10) in complaint(lines), test


def test_races_may_be_let_through_and_told_later(folder: pytest.Pytester) -> None:
    folder.makepyfile("""
        import pytest

        def test_it(castsim_kernel):
            kernel = castsim_kernel(
                "tpc_f32_i32_pipelined_stale_goya.tpc", inputs={"x": "random:1"}, allow_races=True
            )
            with pytest.raises(AssertionError, match="stale reads"):
                kernel.assert_no_races()
    """)
    folder.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_any_nan_is_as_good_as_another_only_where_that_is_said(folder: pytest.Pytester) -> None:
    folder.makepyfile("""
        import numpy as np
        import pytest

        def test_it(castsim_cast):
            cast = castsim_cast([float("nan"), 1.0], "f32", "f16")
            negative = lambda x: np.array([0xFE00, 0x3C00], np.uint16)
            cast.assert_equal(negative, any_nan=True)
            with pytest.raises(AssertionError, match="1 of 2"):
                cast.assert_equal(negative)
            with pytest.raises(AssertionError, match="1 of 2"):
                cast.assert_equal(lambda x: np.array([0x3C00, 0x3C00], np.uint16), any_nan=True)
    """)
    folder.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_a_program_is_found_beside_the_test(folder: pytest.Pytester) -> None:
    below = folder.mkdir("kernels")
    shutil.move(folder.path / "f32_to_f16.pto", below)
    (below / "test_it.py").write_text(
        "def test_it(castsim_kernel):\n    castsim_kernel('f32_to_f16.pto', inputs={'src': 'zeros'})\n"
    )
    folder.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_loading_the_plugin_imports_nothing_heavy(folder: pytest.Pytester) -> None:
    folder.makeconftest(f"""
        import sys

        def pytest_sessionfinish(session):
            assert session.config.pluginmanager.get_plugin("castsim") is not None
            print("heavy:", [name for name in {HEAVY!r} if name in sys.modules])
    """)
    folder.makepyfile("def test_it(): pass\ndef test_other(castsim_kernel): pass\n")
    done = folder.runpytest_subprocess("--collect-only", "-q", "-s")
    assert "heavy: []" in done.stdout.str()


def test_what_loading_the_plugin_imports_beside_pytest() -> None:
    """Only its own module and the two packages above it."""
    script = (
        "import sys, pytest; before = set(sys.modules); import castsim.testing; "
        "print(*sorted(set(sys.modules) - before - set(sys.builtin_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    added = {name for name in done.stdout.split() if not name.startswith("__editable__")}
    assert added - {"__future__"} == {"castsim", "castsim.testing"}

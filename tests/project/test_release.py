"""What is released: a wheel with everything that castsim reads at run time, and sources that can be tested."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from kit.paths import PROGRAMS, ROOT

import castsim

FOLDERS = {"simulator": "castsim", "isa": "castsim/isa", "targets": "castsim/targets"}
"""Folders of the tree and where the wheel has them."""


def run(*command: str | Path, cwd: Path) -> str:
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables["XDG_CACHE_HOME"] = str(cwd)
    found = subprocess.run(
        [str(each) for each in command], cwd=cwd, capture_output=True, text=True, check=False,
        env={**variables, "PYTHONPATH": ""},
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def tracked(*places: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", *places], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout: what belongs to the release is what git tracks")
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sources, both built from a copy of what git tracks."""
    place = tmp_path_factory.mktemp("release")
    for name in tracked():
        copy = place / "tree" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    # The wheel is made from the unpacked sources: so they are complete.
    run(sys.executable, "-m", "build", "--no-isolation", "-o", place / "dist", ".", cwd=place / "tree")
    return place / "dist"


def wheel_names(built: Path) -> set[str]:
    (wheel,) = built.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_has_all_that_the_three_folders_have_and_no_tests(built: Path) -> None:
    wanted = set()
    for name in tracked(*FOLDERS):
        top, _, rest = name.partition("/")
        wanted.add(f"{FOLDERS[top]}/{rest}")
    found = wheel_names(built)
    assert {name for name in found if name.startswith("castsim/")} == wanted
    others = {name.split("/")[0] for name in found} - {"castsim", "simulator"}
    assert {re.sub(r"^castsim-[\d.]+\.", "", name) for name in others} == {"dist-info", "data"}
    assert any(name.endswith("share/man/man1/castsim.1") for name in found)


def test_the_sources_have_all_that_git_tracks(built: Path) -> None:
    (sources,) = built.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        names = {each.name.partition("/")[2] for each in archive.getmembers() if each.isfile()}
    needed = {name for name in tracked() if Path(name).name != ".gitignore"}
    assert needed <= names, sorted(needed - names)[:5]


def test_the_metadata_is_well_formed(built: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()), cwd=built)


def test_versions_agree(built: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == castsim.__version__
    assert {re.findall(r"castsim-([\d.]+\d)", each.name)[0] for each in built.iterdir()} == {castsim.__version__}


def test_the_wheel_installs_without_network_and_runs_outside_the_tree(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    shared = Path(sysconfig.get_path("purelib")).resolve()
    borrowed = tmp_path / "shared"  # what castsim needs, without any castsim
    borrowed.mkdir()
    for root in (shared, *(Path(each) for each in sys.path if each.endswith("site-packages"))):
        for each in root.iterdir():
            if "castsim" not in each.name and not each.name.endswith(".pth") and not (borrowed / each.name).exists():
                (borrowed / each.name).symlink_to(each)
    (site / "shared.pth").write_text(f"{borrowed}\n")
    (wheel,) = built.glob("*.whl")
    run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel, cwd=tmp_path)
    command = tmp_path / "venv" / "bin" / "castsim"
    assert run(command, "-V", cwd=tmp_path) == f"castsim {castsim.__version__}\n"
    program = PROGRAMS / "f32_to_f16.pto"
    assert "cycles" in run(command, "run", program, "--timing-only", cwd=tmp_path)
    assert "480" in run(command, "cast", "f32", "e4m3fn", "480", cwd=tmp_path)
    assert Path(run(python, "-c", "import castsim; print(castsim.__file__)", cwd=tmp_path)).is_relative_to(site)
    proof = "verify f16 i8 --rounding rint --overflow saturate --tier compiled --against reference"
    run(command, *proof.split(), cwd=tmp_path)
    # A folder without modules would stand in the way of an installation from a checkout: nothing may be left.
    run(python, "-m", "pip", "uninstall", "-q", "-y", "castsim", cwd=tmp_path)
    assert not (site / "castsim").exists()

"""A new user does the ten tasks of `new_user.py` in a fresh environment without extras and in one with all.

Here an environment holds links to the packages that are installed; CASTSIM_THOROUGH=1 lets pip install them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from kit.paths import ROOT
from packaging.requirements import Requirement
from project import new_user

THOROUGH = "CASTSIM_THOROUGH" in os.environ
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - {"test"})
SCRIPT = "#!{python}\nimport sys\nfrom castsim.__main__ import main\nsys.exit(main())\n"


def environment(folder: Path, extras: bool) -> Path:
    """Make an environment with castsim in it and return the folder of its programs."""
    pip = [] if THOROUGH else ["--without-pip"]
    subprocess.run([sys.executable, "-m", "venv", *pip, folder], check=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    if THOROUGH:
        wanted = f"{ROOT}[{','.join(EXTRAS)}]" if extras else str(ROOT)
        subprocess.run([programs / "pip", "install", "-q", wanted], check=True)
        return programs
    site = next((folder / "lib").glob("python*")) / "site-packages"
    if extras:
        every = {str(Path(str(each.locate_file(""))).resolve()) for each in metadata.distributions()}
        (site / "shared.pth").write_text("\n".join(sorted(every)))
    else:
        for name in needed(PROJECT["dependencies"], set()):
            link(metadata.distribution(name), site)
    lay_out(site / "castsim")
    (programs / "castsim").write_text(SCRIPT.format(python=programs / "python"))
    (programs / "castsim").chmod(0o755)
    return programs


def needed(requirements: list[str], known: set[str]) -> set[str]:
    """Return the names of distributions that requirements without extras ask for, and those that these ask for."""
    for each in map(Requirement, requirements):
        if each.name not in known and (each.marker is None or each.marker.evaluate({"extra": ""})):
            known.add(each.name)
            needed(metadata.requires(each.name) or [], known)
    return known


def link(found: metadata.Distribution, site: Path) -> None:
    """Link the modules and the metadata of a distribution."""
    for name in {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}:
        (site / name).symlink_to(Path(str(found.locate_file(name))).resolve())


def lay_out(package: Path) -> None:
    """Lay the three folders out as an installation does."""
    package.mkdir()
    for path in (*(ROOT / "simulator").iterdir(), ROOT / "isa", ROOT / "targets"):
        (package / path.name).symlink_to(path)


@pytest.fixture(scope="module", params=["without extras", "with all extras"])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bool]:
    extras = request.param == "with all extras"
    if extras and not THOROUGH and not all(map(find_spec, ("numba", "onnx", "pygls"))):
        pytest.skip("needs the extras `fast`, `onnx` and `lsp`")
    return environment(tmp_path_factory.mktemp("user") / "env", extras), extras


@pytest.mark.parametrize("task", new_user.TASKS, ids=lambda task: task.__name__)
def test_a_new_user_does_the_task(programs: tuple[Path, bool], task: object, tmp_path: Path) -> None:
    assert callable(task)
    task(new_user.Desk(tmp_path, *programs))


def test_the_environment_without_extras_has_none(tmp_path: Path) -> None:
    names = {Requirement(each).name for extra in EXTRAS for each in PROJECT["optional-dependencies"][extra]}
    assert not needed(PROJECT["dependencies"], set()) & names
    assert len(new_user.TASKS) == 10

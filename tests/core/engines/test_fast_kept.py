"""Compiled code is kept where nobody else can put anything; what another user put anywhere is never loaded.

numba unpickles what it keeps. The traps below are pickles that make a file when they are read; they are laid, and
castsim is run, under user ids of their own, which takes the superuser.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kit.paths import ROOT

from castsim.files import folder_of

VICTIM, ATTACKER = 54321, 54322
"""User ids that no user of a machine has."""

COMPILE = """
import sys, warnings
warnings.simplefilter("ignore")
from castsim.engines.fast_dataflow.tile_simulation import _is_kept
known = _is_kept()
from castsim.__main__ import main
sys.exit(main("verify f16 e4m3fn --tier compiled --samples 4 --rounding rint --overflow saturate --quiet".split()))
"""

READING = ("--clear-groups", "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
"""Beside their rights users may read everything, here."""

needs_superuser = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only the superuser can be other users",
)


class Trap:
    """A pickle of it makes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.open, (str(self.mark), os.O_CREAT | os.O_WRONLY, 0o666)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can look into."""
    folder = Path(tempfile.mkdtemp(prefix="castsim-users-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def run(script: str, user: int, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a user without a home but for what is given; Python itself may lie in a home of the superuser."""
    kept = {name: text for name, text in os.environ.items() if name in ("PATH", "VIRTUAL_ENV", "LANG")}
    return subprocess.run(
        ["setpriv", f"--reuid={user}", f"--regid={user}", *READING, sys.executable, "-B", "-c", script],
        cwd=cwd, env={**kept, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, text=True, check=False,
        timeout=500,
    )  # fmt: skip


def folder(path: Path, user: int, mode: int = 0o700) -> Path:
    path.mkdir(mode=mode)
    path.chmod(mode)
    os.chown(path, user, user)
    return path


def trapped(kept: Path, mark: Path, owner: int) -> None:
    """Put traps in the place of all that numba keeps in a folder, and give all of it to a user."""
    files = [path for path in kept.rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(pickle.dumps(Trap(mark)))
    for path in (kept, *kept.rglob("*")):
        os.chown(path, owner, owner)


def of_another(kept: Path, mark: Path, _: Path) -> Path:
    trapped(kept, mark, ATTACKER)
    for path in (kept, *kept.rglob("*")):
        path.chmod(0o777)
    return kept


def link_to_another(kept: Path, mark: Path, place: Path) -> Path:
    link = folder(place / "links", VICTIM) / "cache"
    link.symlink_to(of_another(kept, mark, place))
    os.lchown(link, VICTIM, VICTIM)
    return link


def link_of_another(kept: Path, mark: Path, place: Path) -> Path:
    """In a sticky folder, as /tmp, to files that belong to the victim, who unpacked them from somewhere."""
    trapped(kept, mark, VICTIM)
    link = folder(place / "shared", 0, 0o1777) / "cache"
    link.symlink_to(kept)
    os.lchown(link, ATTACKER, ATTACKER)
    return link


def below_another(kept: Path, mark: Path, place: Path) -> Path:
    trapped(kept, mark, VICTIM)
    return Path(shutil.move(kept, folder(place / "theirs", ATTACKER, 0o755) / "cache"))


def below_what_all_write(kept: Path, mark: Path, place: Path) -> Path:
    trapped(kept, mark, VICTIM)
    return Path(shutil.move(kept, folder(place / "open", VICTIM, 0o777) / "cache"))


def writable_by_all(kept: Path, mark: Path, _: Path) -> Path:
    trapped(kept, mark, VICTIM)
    for path in kept.rglob("*"):
        path.chmod(0o777)
    return kept


def files_of_another(kept: Path, mark: Path, _: Path) -> Path:
    trapped(kept, mark, VICTIM)
    for path in kept.rglob("*.nb?"):
        os.chown(path, ATTACKER, ATTACKER)
        path.chmod(0o644)
    return kept


def linked_files(kept: Path, mark: Path, place: Path) -> Path:
    trapped(kept, mark, VICTIM)
    aside = folder(place / "aside", VICTIM, 0o755)
    for path in list(kept.rglob("*.nb?")):
        path.symlink_to(shutil.move(path, aside / path.name))
        os.lchown(path, VICTIM, VICTIM)
    return kept


WAYS = (of_another, link_to_another, link_of_another, below_another, below_what_all_write, writable_by_all,
        files_of_another, linked_files)  # fmt: skip


@pytest.fixture
def kept(place: Path) -> Path:
    """What castsim keeps for the victim, in a folder that the victim named."""
    pytest.importorskip("numba")
    found = folder(place / "kept", VICTIM)
    ran = run(COMPILE, VICTIM, place, NUMBA_CACHE_DIR=str(found))
    assert ran.returncode == 0, ran.stderr
    assert list(found.rglob("*.nbi"))
    return found


@needs_superuser
@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_another_user_can_have_written_is_loaded(
    way: Callable[[Path, Path, Path], Path], kept: Path, place: Path
) -> None:
    mark = folder(place / "marks", VICTIM, 0o777) / "loaded"
    ran = run(COMPILE, VICTIM, place, NUMBA_CACHE_DIR=str(way(kept, mark, place)))
    assert ran.returncode == 0, ran.stderr
    assert not mark.exists()


@needs_superuser
def test_the_superuser_loads_nothing_of_others_either(kept: Path, place: Path) -> None:
    mark = place / "loaded"
    ran = run(COMPILE, 0, place, NUMBA_CACHE_DIR=str(of_another(kept, mark, place)))
    assert ran.returncode == 0, ran.stderr
    assert not mark.exists()


@needs_superuser
def test_a_trap_in_a_folder_of_ones_own_goes_off(kept: Path, place: Path) -> None:
    """Otherwise the tests above would show nothing."""
    mark = folder(place / "marks", VICTIM, 0o777) / "loaded"
    trapped(kept, mark, VICTIM)
    run(COMPILE, VICTIM, place, NUMBA_CACHE_DIR=str(kept))
    assert mark.exists()


@needs_superuser
def test_without_a_home_nothing_is_kept_and_nothing_fails(place: Path) -> None:
    """`~` would be the name of a folder of whoever may write where castsim is started."""
    here = folder(place / "here", VICTIM)
    ran = run(COMPILE, VICTIM, here)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(here.iterdir()) == []


@needs_superuser
def test_a_home_that_cannot_be_written_to_is_no_error(place: Path) -> None:
    home = folder(place / "home", 0, 0o755)
    ran = run(COMPILE, VICTIM, place, HOME=str(home))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(home.iterdir()) == []


@needs_superuser
def test_descriptions_are_read_from_what_is_installed_alone(place: Path) -> None:
    home = folder(place / "home", VICTIM)
    script = "import sys; sys.dont_write_bytecode = False; from castsim.__main__ import main; main(['targets', 'a2a3'])"
    ran = run(script, VICTIM, place, HOME=str(home), PYTHONPYCACHEPREFIX=str(home / "bytecode"))
    assert ran.returncode == 0, ran.stderr
    assert {path.name for path in home.iterdir()} <= {"bytecode"}


LOOK = """
import sys
from castsim.engines.fast_dataflow.tile_simulation import _is_kept
print(_is_kept(), "numba" in sys.modules)
"""


@pytest.mark.skipif("CASTSIM_THOROUGH" not in os.environ, reason="it compiles: set CASTSIM_THOROUGH=1")
def test_what_one_process_compiles_the_next_one_finds(tmp_path: Path) -> None:
    """Without importing numba, which takes longer than most runs."""
    pytest.importorskip("numba")
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    make = "from castsim.engines.fast_dataflow.compiled_machine import compiled_machine as c; c()"
    found = [
        subprocess.run([sys.executable, "-c", each], cwd=ROOT, env=variables, capture_output=True, check=True).stdout
        for each in (LOOK, make, LOOK)
    ]
    assert [found[0], found[2]] == [b"False False\n", b"True False\n"]


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is looked at there")
def test_a_file_that_goes_while_the_folder_is_looked_at_does_not_make_it_unsafe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that compiles at the same time writes its code under a name of its own and renames it."""
    base = Path(tempfile.mkdtemp(dir=tmp_path))  # of mode 0700, whatever the umask
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(base))
    own = folder_of(ROOT)
    assert own is not None
    own.mkdir(mode=0o700)
    (own / "unfinished").touch()
    listed = os.scandir

    def scandir(path: Path) -> list[os.DirEntry[str]]:
        entries = list(listed(path))
        (own / "unfinished").unlink()
        return entries

    monkeypatch.setattr(os, "scandir", scandir)
    assert folder_of(ROOT) == own
    assert not (own / "unfinished").exists()


def test_where_users_cannot_be_told_apart_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in WebAssembly, whose Python lacks the call."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delattr(os, "geteuid", raising=False)
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert folder_of(ROOT) is None

"""What a machine does to a command: kills, signals, full disks, closed pipes, a home that cannot be written, company.

Each test runs the command as a process. A longer campaign of kills is `python tests kill_campaign`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from campaigns.kill_campaign import CASES, killed, partial, slowly
from kit.paths import PROGRAMS, ROOT

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
PROGRAM = str(PROGRAMS / "f32_to_f16.pto")
RUN = ("run", PROGRAM, "--in", "src=random:1")
PYTHON = (sys.executable, "-m", "castsim")


def castsim(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PYTHON, *words], capture_output=True, text=True, check=False, cwd=ROOT, timeout=60, **options
    )


@pytest.mark.parametrize("name", list(CASES) if THOROUGH else ["run --out", "verify --resume"])
def test_a_killed_command_leaves_whole_files(name: str, tmp_path: Path) -> None:
    done = killed(name, 20 if THOROUGH else 2, 1, tmp_path)
    assert done.kills


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_while_a_file_is_written_leaves_none(number: int, code: int, tmp_path: Path) -> None:
    words = slowly(20, *RUN, "--json", str(tmp_path / "run.json"), "--quiet")
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    end = time.monotonic() + 60
    while not partial(tmp_path) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in err
    assert not (tmp_path / "run.json").exists()
    assert number != signal.SIGINT or not partial(tmp_path)


@pytest.mark.parametrize("option", ["--json", "--trace"])
def test_a_full_disk_leaves_what_was_there(option: str, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: writing fails in the middle."""
    path = tmp_path / "old.json"
    path.write_text("old")
    limited = (
        "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); sys.argv[0] = 'castsim';"
        "sys.dont_write_bytecode = True; runpy.run_module('castsim', run_name='__main__')"
    )
    words = ["run", str(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto"), "--timing-only", option, str(path)]
    done = subprocess.run(
        [sys.executable, "-c", limited, *words, "--quiet"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["old.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_device_is_told() -> None:
    done = castsim(*RUN, "--quiet", "--json", "/dev/full")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("words", [(*RUN, "--json", "-"), ("targets", "a5"), ("manual",)])
def test_a_reader_that_goes_away_ends_the_command_in_silence(words: tuple[str, ...]) -> None:
    process = subprocess.Popen([*PYTHON, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def test_a_home_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    """Neither a missing home nor one that is a file, which root cannot write into either."""
    file = tmp_path / "home"
    file.write_text("")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "NUMBA_"))}
    for home in (str(file), "/nonexistent"):
        done = castsim(*RUN, env={**kept, "HOME": home, "TMPDIR": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""


def test_runs_at_the_same_time_into_one_folder_do_not_mix(tmp_path: Path) -> None:
    words = ["--out", str(tmp_path / "out"), "--json", str(tmp_path / "run.json"), "--quiet"]
    running = [
        subprocess.Popen([*PYTHON, "run", PROGRAM, "--in", f"src=random:{seed}", *words], cwd=ROOT)
        for seed in (1, 1, 2)
    ]
    assert [each.wait(timeout=120) for each in running] == [0, 0, 0]
    found = np.load(tmp_path / "out" / "dst.npy")
    alone = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        assert castsim("run", PROGRAM, "--in", f"src=random:{seed}", "--out", str(folder), "--quiet").returncode == 0
        alone.append(np.load(folder / "dst.npy"))
    assert any(np.array_equal(found, each) for each in alone)
    assert json.loads((tmp_path / "run.json").read_text())["schema_version"]
    assert not partial(tmp_path)


# ------------------------------------------------------------------------------------------------------ --max-memory

WIDE = """func.func @wide(%p: !pto.ptr<f32>) attributes {pto.entry} {
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%rows = arith.constant 4 : index
%cols = arith.constant 64 : index
%far = arith.constant 20000000 : index
%v = pto.make_tensor_view %p, shape = [%rows, %cols], strides = [%far, %c1] : !pto.tensor_view<4x64xf32>
%q = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<4x64xf32> ->
  !pto.partition_tensor_view<4x64xf32>
%t = pto.alloc_tile : !pto.tile_buf<vec, 4x64xf32>
pto.tload ins(%q : !pto.partition_tensor_view<4x64xf32>) outs(%t : !pto.tile_buf<vec, 4x64xf32>)
return
}
"""
"""An argument of 60,000,064 elements, 229 MiB."""


def test_memory_beyond_the_limit_is_refused_with_the_option(tmp_path: Path) -> None:
    path = tmp_path / "wide.pto"
    path.write_text(WIDE)
    words = ("run", str(path), "--target", "a2a3", "--in", "p=random:1", "--races", "ignore", "--max-memory")
    done = castsim(*words, "200M")
    assert done.returncode == 1, done.stderr
    assert "the run needs more than 209715200 bytes of memory, the limit of --max-memory" in done.stderr
    assert "help: --max-memory N with a larger N" in done.stderr
    assert "Traceback" not in done.stderr
    document = castsim(*words, "200M", "--json", "-")
    assert json.loads(document.stdout)["errors"][0]["kind"] == "over a limit"


@pytest.mark.parametrize("text", ["12", "x", "", "-1", "4T", "1e9", "9" * 30])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    done = castsim("targets", "--max-memory", text)
    assert done.returncode == 2
    assert "--max-memory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_limit_that_suffices_changes_nothing() -> None:
    plain, limited = castsim(*RUN), castsim("--max-memory", "2G", *RUN)
    assert (plain.stdout, plain.returncode) == (limited.stdout, limited.returncode)

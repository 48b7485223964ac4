"""Every command that writes, as a process, on a machine that gives it trouble: signals, full disks, readers that go
away, folders that cannot be written, company. `tests/project/test_kills.py` has what is special to runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
from campaigns.kill_campaign import CASES, killed, partial
from kit.paths import PROGRAMS, ROOT

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
F16, TUNED = str(PROGRAMS / "f32_to_f16.pto"), str(PROGRAMS / "tuning" / "f32_to_bf16_tiles.pto")
SWEEP = str(PROGRAMS / "sweeps" / "f32_to_bf16_shapes.toml")

COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", F16, "--in", "src=random:1", "--out", "{}/out"),
    "sweep": ("sweep", SWEEP, "--out", "{}/rows.parquet", "--workers", "1"),
    "verify": ("verify", "f16", "f32", "--tier", "table", "--workers", "1", "--record", "{}/record.json"),
    "conform": ("conform", "--spec", "tosa", "--target", "a2a3", "--src", "i8", "--dst", "i16"),
    "lower": ("lower", "f16", "f32", "--target", "a2a3", "--out", "{}/lowered.pto"),
    "tune": ("tune", TUNED, "--resume", "{}/tune.ledger"),
    "advise": ("advise", F16),
    "diff": ("diff", F16, F16, "--in", "src=random:1"),
    "accuracy": ("accuracy", "--target", "a5", "--data", "{}/measured.csv"),
}
"""A short use of each; `{}` is the folder that it writes into."""


def words(name: str, folder: Path, *more: str) -> list[str]:
    if name == "accuracy":
        (folder / "measured.csv").write_text("src,dst,rows,cols,measured_cycles\nf32,f16,16,64,99\n")
    return [sys.executable, "-m", "castsim", *(each.format(folder) for each in (*COMMANDS[name], *more))]


def done(
    name: str, folder: Path, *more: str, stdout: int | IO[str] = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    argv = words(name, folder, *more)
    return subprocess.run(argv, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT, timeout=120)


def few(*names: str, of: Mapping[str, object] = COMMANDS) -> list[object]:
    """Return all commands; but for the named ones only in thorough runs."""
    skip = pytest.mark.skipif(not THOROUGH, reason="CASTSIM_THOROUGH=1 has all commands")
    return [pytest.param(name, marks=() if name in names else skip) for name in of]


@pytest.mark.parametrize("name", list(CASES) if THOROUGH else ["run --out", "verify --resume"])
def test_a_killed_command_leaves_whole_files(name: str, tmp_path: Path) -> None:
    assert killed(name, 20 if THOROUGH else 2, 1, tmp_path).kills


PAUSED = """
import sys, time
from pathlib import Path
from castsim.__main__ import main
def later(path, target, usual=Path.replace):
    time.sleep(20)
    return usual(path, target)
Path.replace = later
sys.exit(main())
"""
"""The command line, which rests before a file gets its final name: a signal comes then."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", few("lower"))
def test_a_signal_while_a_file_is_written_leaves_none(name: str, number: int, tmp_path: Path) -> None:
    argv = words(name, tmp_path, "--json", "{}/result.json")
    process = subprocess.Popen([sys.executable, "-c", PAUSED, *argv[3:]], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    end = time.monotonic() + 60
    while not partial(tmp_path) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert process.returncode in ((130,) if number == signal.SIGINT else (130, -signal.SIGTERM))
    assert "Traceback" not in told
    assert not [each for each in tmp_path.rglob("*") if each.suffix in (".json", ".parquet", ".pto", ".npy")]
    assert number != signal.SIGINT or not partial(tmp_path)


LONG: dict[str, tuple[str, ...]] = {
    "run": ("run", F16, "--in", "src=random:1", "--what-if", "all"),
    "lower": ("lower", "f32", "i8", "--target", "a2a3"),
    "conform": ("conform", "--spec", "tosa", "--target", "a2a3", "a5", "--workers", "2"),
    "verify": ("verify", "f32", "f16", "--workers", "2"),
    "advise": ("advise", F16),
    "advise a kernel": ("advise", str(PROGRAMS / "kernels" / "quantise_rows_fp8_a5.pto")),
    "sweep": ("sweep", SWEEP, "--out", "{}/rows.parquet", "--workers", "2"),
    "tune": ("tune", TUNED),
}
"""Commands that take seconds, some with processes of their own."""

BEGUN = """
import sys, castsim
print("begun", flush=True)
from castsim.__main__ import main
sys.exit(main())
"""
"""The command line, which says when Python itself, whose start prints a traceback, is past."""


SOON = """
import sys
from castsim.reports import progress
progress.BAR_DELAY_SECONDS = 0.2
from castsim.__main__ import main
sys.exit(main())
"""
"""The command line, whose bar does not wait for a second."""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="the system has no groups of processes")
@pytest.mark.parametrize("seconds", [0.1, 0.5, 2.5])
@pytest.mark.parametrize("name", few("conform", "advise a kernel", of=LONG))
def test_ctrl_c_is_told_in_one_line(name: str, seconds: float, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", BEGUN, *(each.format(tmp_path) for each in LONG[name])]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, told = process.communicate(timeout=60)
    last = [line for line in told.splitlines() if not line.startswith("trying ")]
    assert process.returncode == 130, told
    assert [line.partition(";")[0] for line in last] == ["interrupted"]


@pytest.mark.parametrize("more", [(), ("--quiet",), ("--json", "-")])
@pytest.mark.parametrize("name", ["advise", "lower"])
def test_a_long_command_shows_progress_on_a_terminal(name: str, more: tuple[str, ...], tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-c", SOON, *(each.format(tmp_path) for each in LONG[name]), *more]
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=theirs, cwd=ROOT, env=os.environ | {"TERM": "xterm"}
    )
    os.close(theirs)
    told = bytearray()
    with suppress(OSError):  # Linux says so that nobody writes any more
        while part := os.read(ours, 1 << 16):
            told += part
    os.close(ours)
    assert process.wait(120) in (0, 1)
    assert (b"0:00:0" in told) == (not more), bytes(told)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("name", few("accuracy"))
def test_a_full_device_is_told(name: str, tmp_path: Path) -> None:
    found = done(name, tmp_path, "--json", "/dev/full", "--quiet")
    assert found.returncode == 2, found.stderr
    assert "No space left on device" in found.stderr
    assert "Traceback" not in found.stderr
    with Path("/dev/full").open("w") as full:
        found = done(name, tmp_path, stdout=full)
    assert found.returncode == 2, found.stderr
    assert "Traceback" not in found.stderr


LIMITED = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sys.argv[0] = "castsim"
sys.dont_write_bytecode = True
runpy.run_module("castsim", run_name="__main__")
"""
"""A limit on the size of files stands for a disk that is full: writing fails in the middle."""


@pytest.mark.parametrize("name", few("run", "sweep", "tune"))
def test_a_disk_that_fills_up_leaves_what_was_there(name: str, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    result.write_text("old")
    argv = words(name, tmp_path, "--json", str(result), "--quiet")
    found = subprocess.run(
        [sys.executable, "-c", LIMITED, *argv[3:]], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert found.returncode == 2, found.stderr
    assert "File too large" in found.stderr
    assert "Traceback" not in found.stderr
    assert result.read_text() == "old"
    assert not partial(tmp_path)


@pytest.mark.parametrize("name", few("lower", "conform"))
def test_a_reader_that_goes_away_ends_the_command_in_silence(name: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        words(name, tmp_path, "--json", "-"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) in (0, 1)
    assert b"Traceback" not in told and b"Broken pipe" not in told


@pytest.mark.parametrize("name", few("verify", "advise"))
def test_nothing_else_need_be_written(name: str, tmp_path: Path) -> None:
    """Neither the home, nor the folder for temporary files, nor the working folder, which is gone."""
    file = tmp_path / "home"
    file.write_text("")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "NUMBA_"))}
    gone = tmp_path / "gone"
    gone.mkdir()
    inner = (
        f"import os, sys, runpy; os.rmdir({str(gone)!r}); sys.argv[0] = 'castsim';"
        "runpy.run_module('castsim', run_name='__main__')"
    )
    argv = words(name, tmp_path)
    found = subprocess.run(
        [sys.executable, "-c", inner, *argv[3:]], capture_output=True, text=True, check=False, cwd=gone, timeout=120,
        env={**kept, "HOME": str(file), "TMPDIR": str(file), "PYTHONPATH": os.pathsep.join(sys.path[1:])},
    )  # fmt: skip
    assert found.returncode in (0, 1), found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("name", few("diff"))
def test_at_the_same_time_into_one_folder(name: str, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    argv = words(name, tmp_path, "--json", str(result), "--quiet")
    running = [subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    told = [each.communicate(timeout=120)[1] for each in running]
    codes = [each.returncode for each in running]
    assert not any("Traceback" in each for each in told), told
    assert 0 in codes or 1 in codes
    assert all(code in (0, 1) or "another" in text for code, text in zip(codes, told, strict=True)), told
    assert json.loads(result.read_text())["schema_version"]
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


def limited(*argv: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "castsim", *argv)
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)


def test_memory_beyond_the_limit_is_refused_with_the_option(tmp_path: Path) -> None:
    path = tmp_path / "wide.pto"
    path.write_text(WIDE)
    words = ("run", str(path), "--target", "a2a3", "--in", "p=random:1", "--races", "ignore", "--max-memory")
    done = limited(*words, "200M")
    assert done.returncode == 1, done.stderr
    assert "the run needs more than 209715200 bytes of memory, the limit of --max-memory" in done.stderr
    assert "help: --max-memory N with a larger N" in done.stderr
    assert "Traceback" not in done.stderr
    document = limited(*words, "200M", "--json", "-")
    assert json.loads(document.stdout)["errors"][0]["kind"] == "over a limit"
    assert limited(*words, "2G").returncode == 0


@pytest.mark.parametrize("text", ["12", "x", "", "-1", "4T", "1e9", "9" * 30])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    done = limited("targets", "--max-memory", text)
    assert done.returncode == 2
    assert "--max-memory" in done.stderr
    assert "Traceback" not in done.stderr

"""Commands killed at random moments: what lies under a final name afterwards is whole, and no record is lost.

    python tests kill_campaign --kills 100 --record docs/measured/kills.json

Half of the kills come at a random moment of the run, half as soon as a file is being written. `CASES` holds a row for
every way to write a file; a new one is a row.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from kit.paths import PROGRAMS, ROOT

from castsim.files import PARTIAL
from castsim.tools.verify.running import VerificationRecord

KIND = "castsim kill record"
PROGRAM = str(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto")
INPUT = "src=random:1"

_SLOWLY = """
import sys, time
from pathlib import Path
from castsim.__main__ import main
from castsim.tools.verify import running
running.SAVE_SECONDS = 0.05
def later(path, target, usual=Path.replace):
    time.sleep(PAUSE)
    return usual(path, target)
Path.replace = later
if "sweep" in sys.argv:
    from castsim.tools.distribution import distributing as ledger
    from castsim.tools.sweep import points as work
    def halves(self, data, usual=ledger.Ledger._write):
        usual(self, data[:len(data) // 2])
        time.sleep(0.05)
        usual(self, data[len(data) // 2:])
    ledger.Ledger._write = halves
    work.ESTIMATED_CHUNK = 256
sys.exit(main())
"""


def slowly(pause: float, *words: str) -> list[str]:
    """Return the command line with a pause, in seconds, between the end of writing a file and its final name.

    Kills and signals shall fall into it. There is a short one in the middle of what is appended to the ledger of a
    sweep; both records are written more often than usual.
    """
    return [sys.executable, "-c", _SLOWLY.replace("PAUSE", str(pause)), *words]


_HALTING = """
import sys, time
from castsim.__main__ import main
from castsim.tools.distribution.distributing import Ledger
def rest(self, number, results, usual=Ledger.add):
    usual(self, number, results)
    if len(self.pieces) >= PIECES:
        time.sleep(60)
Ledger.add = rest
sys.exit(main())
"""


def halting(pieces: int, *words: str) -> list[str]:
    """Return the command line that rests as soon as its ledger holds so many pieces: it cannot end before a signal."""
    return [sys.executable, "-c", _HALTING.replace("PIECES", str(pieces)), *words]


@dataclass(frozen=True, slots=True)
class Case:
    """A command that writes into the folder `{}`; `check` raises unless what lies there is whole.

    `check` returns how much has been kept, which never falls from one kill to the next where the command `resumes`;
    once such a command has come to its end, it begins anew. `files` lie in the folder, `longest` is how many seconds
    the first of them may run.
    """

    words: tuple[str, ...]
    check: Callable[[Path], int]
    resumes: bool = False
    again: tuple[str, ...] = ()
    """Words that are added once something has been kept."""
    files: Mapping[str, str] = field(default_factory=dict)
    longest: float = 1.0


def whole_json(folder: Path) -> int:
    """Check documents: each is JSON with what belongs into it."""
    for path in folder.glob("*.json"):
        held = json.loads(path.read_text(encoding="utf-8"))
        assert "schema_version" in held or "traceEvents" in held, path
    return 0


def whole_arrays(folder: Path) -> int:
    """Check outputs: each is a whole `.npy` file."""
    for path in folder.glob("out/*.npy"):
        array = np.load(path)
        assert path.stat().st_size >= array.nbytes > 0
    return 0


def whole_page(folder: Path) -> int:
    """Check pages: each has its end."""
    for path in folder.glob("*.html"):
        assert path.read_text(encoding="utf-8").rstrip().endswith("</html>"), path
    return 0


def whole_record(folder: Path) -> int:
    """Check the record of a proof, and return the codes that it counts."""
    path = folder / "record.json"
    if not path.exists():
        return 0
    return sum(one.checked for one in VerificationRecord.load(path).progress)


def whole_ledger(folder: Path) -> int:
    """Return how many rows of the ledger of a search are whole."""
    return pieces_kept(folder / "tune.ledger")[0]


_CHUNK = struct.Struct("<4sQQ16s")


def pieces_kept(path: Path) -> tuple[int, bool]:
    """Return how many pieces of a ledger are whole, and whether one behind them is cut off."""
    data = path.read_bytes() if path.exists() else b""
    place, found = data.find(b"\n") + 1, 0
    while place and place + _CHUNK.size <= len(data):
        mark, _, length, _ = _CHUNK.unpack_from(data, place)
        assert mark == b"\nCHK", f"{path}: byte {place}"
        if place + _CHUNK.size + length > len(data):
            break
        place += _CHUNK.size + length
        found += 1
    return found, place < len(data)


def whole_rows(folder: Path) -> int:
    """Check the results of a sweep: all rows or no file; return how many chunks its ledger keeps."""
    path = folder / "rows.parquet"
    if path.exists():
        import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

        assert pq.read_table(path).num_rows == int((folder / "rows").read_text())
    return pieces_kept(folder / "rows.parquet.ledger")[0]


_SWEEP = """\
[sweep]
kind = "cast"
mode = "{}"
[grid]
src = ["f32", "f16"]
dst = ["i32", "bf16"]
target = ["a2a3", "a5"]
rows = "1..{}"
cols = "16..{}:16"
"""


def _sweep(mode: str, rows: int, cols: int, workers: int) -> Case:
    files = {"sweep.toml": _SWEEP.format(mode, rows, 16 * cols), "rows": str(2 * 2 * 2 * rows * cols)}
    words = ("sweep", "{}/sweep.toml", "--out", "{}/rows.parquet", "--workers", str(workers))
    return Case(words, whole_rows, resumes=True, files=files, longest=5.0)


_VERIFY = ("verify", "f32", "f16", "--tier", "table", "--against", "reference", "--rounding", "rint", "--overflow",
           "special", "--samples", str(1 << 31), "--workers", "1", "--record", "{}/record.json")  # fmt: skip

CASES: dict[str, Case] = {
    "run --out": Case(("run", PROGRAM, "--in", INPUT, "--out", "{}/out"), whole_arrays),
    "run --json": Case(("run", PROGRAM, "--in", INPUT, "--json", "{}/run.json"), whole_json),
    "run --trace": Case(("run", PROGRAM, "--timing-only", "--trace", "{}/trace.json"), whole_json),
    "run --html": Case(("run", PROGRAM, "--in", INPUT, "--html", "{}/run.html"), whole_page),
    "verify --resume": Case(_VERIFY, whole_record, resumes=True, again=("--resume",)),
    "sweep, estimated": _sweep("estimate", 64, 40, 1),
    "sweep, simulated": _sweep("simulate", 8, 8, 2),
    "tune --resume": Case(
        ("tune", str(PROGRAMS / "tuning" / "f32_to_bf16_tiles.pto"), "--resume", "{}/tune.ledger",
         "--simulate", "all"), whole_ledger, resumes=True,
    ),
}  # fmt: skip
"""Ways to write files, by the command and its option."""


@dataclass(slots=True)
class Kills:
    """What the kills of a case came to: `writing`, those while a file was being written."""

    kills: int = 0
    finished: int = 0
    writing: int = 0
    kept: int = 0


def killed(name: str, kills: int, seed: int, folder: Path) -> Kills:
    """Kill a command so often.

    Args:
        name: of `CASES`.
        kills: how often; runs that come to their end before count as `finished` only.
        seed: of the moments.
        folder: where it writes; empty.

    Raises:
        AssertionError, ValueError: a file is half written, or what was kept is lost.
    """
    case, rng, done, longest = CASES[name], Random(f"{seed} {name}"), Kills(), CASES[name].longest
    _place(case, folder)
    argv = slowly(0.03, *(word.format(folder) for word in case.words), "--quiet")
    while done.kills < kills:
        more = case.again if any(folder.glob("record.json")) else ()
        process = subprocess.Popen(
            [*argv, *more],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun = time.monotonic()
        _wait(process, folder, None if rng.random() < 0.5 else rng.random() * longest)
        alive = process.poll() is None
        with_partial = being_written(folder)
        os.killpg(process.pid, signal.SIGKILL) if alive else None
        told = process.communicate()[1]
        assert "Traceback" not in told, told
        longest = longest if alive else max(0.2, time.monotonic() - begun)
        kept = case.check(folder)
        assert not case.resumes or kept >= done.kept, f"{name}: {kept} after {done.kept}"
        done.kept = max(done.kept, kept)
        done.kills += alive
        done.finished += not alive
        done.writing += alive and with_partial
        if case.resumes and not alive:
            done.kept = 0
        _tidy(folder, everything=not alive if case.resumes else rng.random() < 0.5)
        _place(case, folder)
        if done.finished > 3 * kills:
            break
    return done


def _wait(process: subprocess.Popen[str], folder: Path, seconds: float | None) -> None:
    """Wait for so long, or until a file is being written, or until the end."""
    end = time.monotonic() + (20 if seconds is None else seconds)
    while process.poll() is None and time.monotonic() < end:
        if seconds is None and being_written(folder):
            return
        time.sleep(0.001)


def partial(folder: Path) -> list[Path]:
    """Return the files that are being written, or were."""
    return list(folder.rglob(f".*{PARTIAL}"))


def being_written(folder: Path) -> bool:
    """Whether a file is being written, or the ledger of a sweep."""
    return bool(partial(folder)) or pieces_kept(folder / "rows.parquet.ledger")[1]


def _place(case: Case, folder: Path) -> None:
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _tidy(folder: Path, *, everything: bool) -> None:
    """Remove what killed writers left; what was written, too, or not: both must go well."""
    for path in partial(folder):
        path.unlink(missing_ok=True)
    for path in folder.rglob("*"):
        if everything and path.is_file():
            path.unlink()


def main() -> None:
    """Kill all cases and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--record", type=Path, default=ROOT / "docs" / "measured" / "kills.json")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    held = json.loads(options.record.read_text(encoding="utf-8")) if options.record.exists() else {"cases": {}}
    for name in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            done = killed(name, options.kills, options.seed, Path(folder))
        held["cases"][name] = {"kills": done.kills, "while_writing": done.writing, "finished_before": done.finished,
                               "half_files": 0, "lost_records": 0}  # fmt: skip
        print(name, held["cases"][name], flush=True)
        options.record.write_text(json.dumps({"kind": KIND, "seed": options.seed, **held}, indent=1) + "\n")


if __name__ == "__main__":
    main()

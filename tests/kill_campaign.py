"""Commands killed at random moments: what lies under a final name afterwards is whole, and no record is lost.

    python tests/kill_campaign.py --kills 100 --record docs/kills.json

Half of the kills come at a random moment of the run, half as soon as a file is being written. `CASES` holds a row for
every way to write a file; a new one is a row.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from castsim.evidence.verification.record import VerificationRecord
from castsim.files import PARTIAL

KIND = "castsim kill record"
ROOT = Path(__file__).resolve().parent.parent
PROGRAM = str(ROOT / "programs" / "a5_f32_to_e4m3fn_padded.pto")
INPUT = "src=random:1"

SLOWLY = """
import sys, time
from pathlib import Path
from castsim.__main__ import main
from castsim.evidence.verification import running
running.SAVE_SECONDS = 0.05
def later(path, target, usual=Path.replace):
    time.sleep(0.03)
    return usual(path, target)
Path.replace = later
sys.exit(main())
"""
"""The command line, with a pause between the end of writing a file and its final name, so that kills fall into it; the
record of a proof is written more often than every few seconds."""


@dataclass(frozen=True, slots=True)
class Case:
    """A command that writes into the folder `{}`; `check` raises unless what lies there is whole.

    `check` returns how much has been kept, which never falls from one kill to the next where the command `resumes`.
    """

    words: tuple[str, ...]
    check: Callable[[Path], int]
    resumes: bool = False
    again: tuple[str, ...] = ()
    """Words that are added once something has been kept."""


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


def whole_log(folder: Path) -> int:
    """Check Kanata logs: a head, and a line break at the end."""
    for path in folder.glob("*.kanata"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("Kanata\t"), path
        assert text.endswith("\n"), path
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
    """Return how many lines of the ledger of a search are whole: one that was cut off stays, and is not counted."""
    path = folder / "tune.ledger"
    if not path.exists():
        return 0
    found = 0
    for line in path.read_bytes().split(b"\n"):
        with suppress(ValueError):
            found += isinstance(json.loads(line), dict)
    return found


_VERIFY = ("verify", "f32", "f16", "--tier", "table", "--against", "reference", "--rounding", "rint", "--overflow",
           "special", "--samples", str(1 << 31), "--workers", "1", "--record", "{}/record.json")  # fmt: skip

CASES: dict[str, Case] = {
    "run --out": Case(("run", PROGRAM, "--in", INPUT, "--out", "{}/out"), whole_arrays),
    "run --json": Case(("run", PROGRAM, "--in", INPUT, "--json", "{}/run.json"), whole_json),
    "run --trace": Case(("run", PROGRAM, "--timing-only", "--trace", "{}/trace.json"), whole_json),
    "run --html": Case(("run", PROGRAM, "--in", INPUT, "--html", "{}/run.html"), whole_page),
    "run --kanata": Case(("run", PROGRAM, "--timing-only", "--kanata", "{}/run.kanata"), whole_log),
    "verify --resume": Case(_VERIFY, whole_record, resumes=True, again=("--resume",)),
    "tune --resume": Case(
        ("tune", str(ROOT / "programs" / "tuning" / "f32_to_bf16_tiles.pto"), "--resume", "{}/tune.ledger",
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
        kills: how often; runs that end before do not count, but as `finished`.
        seed: of the moments.
        folder: where it writes; empty.

    Raises:
        AssertionError, ValueError: a file is half written, or what was kept is lost.
    """
    case, rng, done, longest = CASES[name], Random(f"{seed} {name}"), Kills(), 1.0
    argv = [sys.executable, "-c", SLOWLY, *(word.format(folder) for word in case.words), "--quiet"]
    while done.kills < kills:
        more = case.again if any(folder.glob("record.json")) else ()
        process = subprocess.Popen(
            [*argv, *more], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        begun = time.monotonic()
        _wait(process, folder, None if rng.random() < 0.5 else rng.random() * longest)
        alive = process.poll() is None
        with_partial = bool(partial(folder))
        os.killpg(process.pid, signal.SIGKILL) if alive else None
        process.wait()
        longest = longest if alive else max(0.2, time.monotonic() - begun)
        kept = case.check(folder)
        assert not case.resumes or kept >= done.kept, f"{name}: {kept} after {done.kept}"
        done.kept = max(done.kept, kept)
        done.kills += alive
        done.finished += not alive
        done.writing += alive and with_partial
        _tidy(folder, everything=not case.resumes and rng.random() < 0.5)
        if done.finished > 3 * kills:
            break
    return done


def _wait(process: subprocess.Popen[bytes], folder: Path, seconds: float | None) -> None:
    """Wait for so long, or until a file is being written, or until the end."""
    end = time.monotonic() + (20 if seconds is None else seconds)
    while process.poll() is None and time.monotonic() < end:
        if seconds is None and partial(folder):
            return
        time.sleep(0.001)


def partial(folder: Path) -> list[Path]:
    """Return the files that are being written, or were."""
    return list(folder.rglob(f".*{PARTIAL}"))


def _tidy(folder: Path, *, everything: bool) -> None:
    """Remove what killed writers left, and what was written in half of the cases: both must go well."""
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
    parser.add_argument("--record", type=Path, default=ROOT / "docs" / "kills.json")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    held = json.loads(options.record.read_text(encoding="utf-8")) if options.record.exists() else {"cases": {}}
    for name in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            done = killed(name, options.kills, options.seed, Path(folder))
        held["cases"][name] = {"kills": done.kills, "while_writing": done.writing, "finished_before": done.finished,
                               "half_files": 0, "lost_records": 0}  # fmt: skip
        print(name, held["cases"][name], flush=True)
        options.record.write_text(
            json.dumps({"kind": "castsim kill record", "seed": options.seed, **held}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()

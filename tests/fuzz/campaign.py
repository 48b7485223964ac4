"""A fuzz campaign: rounds of every reader and mechanism in turn, each in a process of its own.

    python -m tests.fuzz --inputs 1000000 --programs 100000 --record docs/measured/fuzz.json
    python -m tests.fuzz --minutes 30 --readers tile tpc
    python -m tests.fuzz --guided tile --minutes 10
    python -m tests.fuzz --merge build/other.json
    python -m tests.fuzz --merge build/other.json --again

It resumes from its record, and from the folder of its state: inputs that reached new lines, lines reached. Findings are
written to `tests/fuzz/regressions/READER-DIGEST`. Ctrl-C ends it after the round.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from castsim.isa.errors import CastsimError
from fuzz import engines, seeds
from fuzz.judging import DefectError, judge
from fuzz.readers import READERS
from fuzz.record import Record
from fuzz.rounds import Coverage, Found, Round, Tally

MEMORY = 1 << 30
"""Bytes that a round may take beyond what its process begins with."""

_GRACE = 60.0
"""Seconds of processor time beyond a round when its process is killed: something does not let itself be interrupted."""

_ASLEEP = 10
"""Times those seconds when it is killed whatever it used: on a loaded machine a round waits for its turn."""

MANY = 1000
"""Programs left from which on it pays to compile an engine first."""


def main() -> int:
    """Run a campaign; exit code 1 if it found anything."""
    options = _parser().parse_args()
    record = Record.load(options.record, options.seed)
    before = len(record.findings)
    if options.merge:
        for path in options.merge:
            (record.repeat if options.again else record.merge)(Record.load(path, options.seed))
        record.save(options.record)
    elif options.guided:
        from fuzz.guided import guide  # noqa: PLC0415 - needs atheris

        for name in options.guided:
            guide(name, record, options.minutes * 60 / len(options.guided), options.state)
            record.save(options.record)
    else:
        Campaign(record, options).run()
    print(f"{sum(one['inputs'] for one in record.readers.values())} inputs, {len(record.findings)} findings in all")
    return int(len(record.findings) > before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add = parser.add_argument
    add("--inputs", type=int, default=1_000_000, help="end when the record counts so many inputs of all readers")
    add("--programs", type=int, default=100_000, help="compare up to so many programs of every mechanism")
    add("--minutes", type=float, default=60.0, help="end after so many minutes")
    add("--slice", type=float, default=10.0, help="seconds of a round")
    add("--seed", type=int, default=21, help="seed of a new record")
    add("--record", type=Path, default=seeds.ROOT / "docs" / "measured" / "fuzz.json", help="the record")
    add("--state", type=Path, default=seeds.ROOT / "build" / "fuzz", help="folder of what is kept between campaigns")
    add("--readers", nargs="*", default=list(READERS), choices=list(READERS), help="readers; default: all")
    add("--engines", nargs="*", default=list(engines.MECHANISMS), choices=list(engines.MECHANISMS), help="mechanisms")
    add("--guided", nargs="*", choices=list(READERS), help="guide these readers by coverage instead (needs atheris)")
    add("--merge", nargs="+", type=Path, metavar="RECORD", help="only add what campaigns with other records came to")
    add("--again", action="store_true", help="with --merge: enter programs beside those of earlier engines")
    return parser


class Campaign:
    """Takes turns."""

    def __init__(self, record: Record, options: argparse.Namespace) -> None:
        self.record = record
        self.options = options
        self.end = time.monotonic() + 60 * options.minutes
        self.coverage = {name: Coverage(READERS[name].modules) for name in options.readers}
        self.kept: dict[str, list[bytes]] = {name: [] for name in options.readers}
        for name in options.readers:
            self._remember(name)
            with suppress(CastsimError, DefectError):  # imports once what every round would import anew
                judge(READERS[name].read, READERS[name].seeds()[-1])
        for name in options.engines:
            compared(name, 0)

    def run(self) -> None:
        """Take turns until the counts are reached, the time is over or Ctrl-C comes."""
        try:
            while time.monotonic() < self.end and (turns := self._turns()):
                for turn, name in turns:
                    if time.monotonic() >= self.end:
                        break
                    turn(name)
                    self.record.save(self.options.record)
        except KeyboardInterrupt:
            print("interrupted: the record is complete up to the round before")

    def _turns(self) -> list[tuple[Callable[[str], None], str]]:
        total = sum(one["inputs"] for one in self.record.readers.values())
        readers = self.options.readers if total < self.options.inputs else []
        left = [name for name in self.options.engines if self.record.engine(name)["programs"] < self.options.programs]
        return [*((self.read, name) for name in readers), *((self.compare, name) for name in left)]

    def read(self, name: str) -> None:
        entry = self.record.reader(name)
        seed = f"{self.record.seed} {name} {entry['rounds']}"
        held = (
            Path(f"/dev/shm/fuzz-{os.getpid()}.input")
            if Path("/dev/shm").is_dir()
            else _state(self.options.state, name, "input")
        )

        def work() -> tuple[Tally, Coverage, int]:
            coverage = self.coverage[name]
            one = _Noting(READERS[name], seed, coverage, self.kept[name], held)
            tally = one.run(10**9, self.options.slice)
            return tally, coverage, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

        found = in_process(work, self.options.slice + _GRACE)
        if found is None:
            data = held.read_bytes() if held.exists() else b""
            tally = Tally(inputs=1, found=[Found("process ended", "killed, or by a signal", data)])
            memory = 0
        else:
            tally, self.coverage[name], memory = found
        self.kept[name] += tally.kept
        known = {(one["reader"], one["kind"], one["detail"]) for one in self.record.findings}
        self.record.add(name, tally, self.coverage[name], memory)
        for one in tally.found:
            if (name, one.kind, one.detail) in known:
                continue
            (seeds.REGRESSIONS / f"{name}-{one.name}").write_bytes(one.data)
            print(f"{name}: {one.kind}: {one.detail}", flush=True)
        _state(self.options.state, name, "pickle").write_bytes(
            pickle.dumps((self.kept[name], self.coverage[name].lines, self.coverage[name].edges))
        )

    def compare(self, name: str) -> None:
        entry = self.record.engine(name)
        first, limit = entry["programs"], self.options.programs

        def work() -> tuple[int, list[str]]:
            begun, number, found = time.monotonic(), first, []
            while number < limit and time.monotonic() - begun < self.options.slice:
                said = compared(name, number)
                if said is not None:
                    found.append(f"program {number}: {said}")
                number += 1
            return number - first, found

        if limit - first > MANY:
            engines.prepare(name)
        begun = time.monotonic()
        done, found = in_process(work, self.options.slice + _GRACE) or (1, [f"program {first}..: the process ended"])
        entry["programs"] += done
        entry["differences"] += len(found)
        entry["seconds"] = round(entry["seconds"] + time.monotonic() - begun, 1)
        for one in found[:3]:
            print(f"{name}: {one}", flush=True)
            self.record.findings.append({"reader": name, "kind": "difference", "detail": one, "file": ""})

    def _remember(self, name: str) -> None:
        path = _state(self.options.state, name, "pickle")
        if path.exists():
            kept, lines, edges = pickle.loads(path.read_bytes())
            self.kept[name] = kept
            self.coverage[name].lines, self.coverage[name].edges = lines, edges


def compared(name: str, number: int) -> str | None:
    """Return what differs in a program; what is raised on the way differs too."""
    try:
        return engines.difference(name, number)
    except Exception as error:
        return f"{type(error).__name__}: {error!s:.200}"


class _Noting(Round):
    """Notes each input before it is tried, so that one that ends the process is known."""

    def __init__(self, *given: Any) -> None:
        *others, path = given
        super().__init__(*others)
        self.path: Path = path

    def one(self) -> bytes:
        data = super().one()
        self.path.write_bytes(data)
        return data


def _state(folder: Path, name: str, suffix: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.{suffix}"


def in_process(work: Callable[[], Any], seconds: float) -> Any:
    """Return what `work` returns, from a process of its own in limited memory; None if that ends or takes longer.

    Args:
        work: what to do.
        seconds: of processor time.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(work, reading, writing, math.ceil(seconds))
    os.close(writing)
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, seconds * _ASLEEP)
    try:
        with os.fdopen(reading, "rb") as pipe:
            data = pipe.read()
    except KeyboardInterrupt:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def _child(work: Callable[[], Any], reading: int, writing: int, seconds: int) -> None:
    """Work, tell, and end without what the parent would do at its end."""
    code = 1
    try:
        os.close(reading)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        data = pickle.dumps(work())
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)
        code = 0
    except BaseException as error:
        print(f"round ended: {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(code)

"""How long `castsim conform` takes, with what requests share and without.

`python tests/benchmarks/conformance.py --spec onnx --target a5 --records FILE` runs the matrix in processes of their
own and adds a line of JSON per run to FILE; with `--checkout NAME=FOLDER` it is the code of another checkout that runs.
`--page FILE` writes the medians of all records, as docs/measured/conform.json. CPU seconds of all threads count,
start-up included: those of the clock depend on what else the machine does. Of caches only numba's is on the disk:
`--cold` begins with none.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.measured_record import table, write

from benchmarks.timing import ended

SHARED, UNSHARED = "shared", "nothing shared"
_RUN = """
import contextlib
from castsim.__main__ import main
from castsim.tools.lowering import sharing
with sharing.unshared() if {unshared} else contextlib.nullcontext():
    raise SystemExit(main({arguments!r}))
"""


def run(arguments: list[str], code: str, folder: Path | None, cache: Path) -> float:
    """Return the CPU seconds of one matrix."""
    command = [sys.executable, "-c", _RUN.format(unshared=code == UNSHARED, arguments=arguments)]
    variables = {"NUMBA_CACHE_DIR": str(cache)}
    if folder is not None:
        variables["PYTHONPATH"] = str(folder)
        command = [sys.executable, "-m", "castsim", *arguments]
    done = ended(command, **variables)
    if done.code:
        raise SystemExit(done.err)
    return done.seconds


def page(records: Path) -> str:
    """Return the page of all records."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for line in records.read_text(encoding="utf-8").splitlines():
        held = json.loads(line)
        found.setdefault((held["asked"], held["code"], held["cache"]), []).append(held["cpu"])
    rows = ((*key, len(times), f"{median(times):.1f}") for key, times in sorted(found.items()))
    return f"""# How long `castsim conform` takes

Written by `python tests/benchmarks/conformance.py --page`: CPU seconds of the process with all its threads,
start-up included; the median if there are several runs. *commit* rows measure the code of that commit; *shared* is the
present code; *nothing shared* is the present code with every request computed from scratch. numba's cache holds
compiled code on disk; *cold* means that it was empty.

{table("castsim conform | code | numba's cache | runs | CPU s", rows)}"""


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", default="onnx")
    parser.add_argument("--target", nargs="*", default=[])
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--unshared", action="store_true")
    parser.add_argument("--checkout", metavar="NAME=FOLDER")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.page is not None:
        write(options.page, page(options.records))
        return
    targets = ["--target", *options.target] if options.target else []
    arguments = ["conform", "--spec", options.spec, *targets, "--quiet"]
    name, _, folder = (options.checkout or "").partition("=")
    code = name or (UNSHARED if options.unshared else SHARED)
    with TemporaryDirectory() as cache, options.records.open("a", encoding="utf-8") as records:
        kept = Path(cache) if options.cold else Path(os.environ.get("NUMBA_CACHE_DIR", Path.home() / ".cache/numba"))
        for turn in range(options.times):
            seconds = run(arguments, code, Path(folder) if folder else None, kept / str(turn) if options.cold else kept)
            asked = " ".join(arguments[1:-1])
            held = {"asked": asked, "code": code, "cache": "cold" if options.cold else "warm", "cpu": seconds}
            records.write(json.dumps(held) + "\n")
            records.flush()


if __name__ == "__main__":
    main()

"""Coverage-guided fuzzing by atheris, where it is installed: `python -m tests.fuzz --guided tile`.

libFuzzer never returns, so each reader gets a process of its own; the product is instrumented as it is imported.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from fuzz.record import Record
from fuzz.seeds import REGRESSIONS, ROOT

_PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import atheris
with atheris.instrument_imports(include=["castsim"], enable_loader_override=False):
    import castsim.isa.pto.pto_parser, castsim.isa.pto.pto_printer, castsim.isa.tpc.parser
    import castsim.tools.graphs.tosa_reader
    import castsim.tools.tpc_binary.assembler, castsim.execution.input_data, castsim.targets.loader
    import castsim.languages.fragments
    from fuzz.readers import READERS
from fuzz.judging import judge, DefectError
reader = READERS[{name!r}]

def one(data):
    try:
        judge(reader.read, data, placed=reader.placed, seconds=30)
    except DefectError as defect:
        print("DEFECT", defect, flush=True)
        raise

atheris.Setup([sys.argv[0], *sys.argv[1:]], one)
atheris.Fuzz()
"""


def guide(name: str, record: Record, seconds: float, state: Path) -> None:
    """Let libFuzzer work on a reader for some time; what it kept stays in the folder of the state."""
    from fuzz.readers import READERS  # noqa: PLC0415 - the parent of a process that imports it anew

    corpus = state / f"guided-{name}"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(READERS[name].seeds()):
        (corpus / f"seed{number}").write_bytes(data)
    found = subprocess.run(
        [
            sys.executable, "-c", _PROGRAM.format(tests=str(ROOT / "tests"), name=name), str(corpus),
            f"-max_total_time={max(1, int(seconds))}", "-rss_limit_mb=2048", "-max_len=16384", f"-seed={record.seed}",
            "-timeout=40", "-print_final_stats=1", f"-artifact_prefix={state}/crash-{name}-",
        ],
        capture_output=True, text=True, errors="replace", check=False, cwd=ROOT,
    )  # fmt: skip
    said = found.stderr + found.stdout
    inputs = re.search(r"number_of_executed_units: (\d+)", said)
    reached = re.findall(r"cov: (\d+) ft: (\d+)", said)
    entry = record.reader(name)
    entry["guided_inputs"] += int(inputs[1]) if inputs else 0
    if reached:
        entry["guided_edges"] = max(entry.get("guided_edges", 0), int(reached[-1][0]))
    defect = re.search(r"^DEFECT (.*)$", said, re.MULTILINE)
    for path in sorted(state.glob(f"crash-{name}-*")):
        kept = f"{name}-guided{path.name.rsplit('-', 1)[1][:12]}"
        (REGRESSIONS / kept).write_bytes(path.read_bytes())
        path.unlink()
        detail = defect[1] if defect else said[-300:]
        record.findings.append({"reader": name, "kind": "guided", "detail": detail, "file": kept})
    if found.returncode and not defect and not inputs:
        print(said[-1000:])

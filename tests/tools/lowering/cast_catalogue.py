"""Writes `simulator/tools/lowering/records`: what casts of tiles do, and the cycles of lowered programs.

`python tests cast_catalogue` traces all casts and simulates all programs of `castsim conform` again, in two minutes;
`python tests cast_catalogue casts` only the casts, in seconds.
"""

from __future__ import annotations

import json
import sys

from castsim.targets.loader import Target, load_target, target_names
from castsim.tools.lowering import catalogue
from castsim.tools.lowering.conformance import conform
from castsim.tools.lowering.lowering_answers import changed, searched_settings
from castsim.tools.lowering.sharing import RECORDS, forget, program_key, record_of_casts, record_of_cycles
from castsim.tools.lowering.tile_casts import FUNCTIONS, STRIDED

PLANNING = {"a2a3": STRIDED, "a5": FUNCTIONS}


def record(name: str) -> str:
    """Return the record of a shipped target, a line per setting, with all casts traced."""
    target, planning = load_target(name), PLANNING[name]

    def traced(chip: Target) -> dict[tuple[str, str], object]:
        return {(rule.src, rule.dst): planning.traced(chip, rule) for rule in chip.casts}

    settings = [(), *searched_settings(target)]
    casts = {setting: traced(changed(target, dict(setting))) for setting in settings}
    found = record_of_casts(target, planning.sources, casts)
    lines = (f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def simulated(name: str, spec: str, **casts: str) -> dict[str, int]:
    """Return the cycles of the programs that `castsim conform` times for a target, by key, all simulated now."""
    programs: dict[str, int] = {}

    def noted(assembly: catalogue.Assembly) -> int:
        key = program_key(assembly.target, catalogue.timed_text(assembly.text))
        return programs.setdefault(key, simulate(assembly))

    simulate, recorded = catalogue.simulated_cycles, catalogue.recorded_cycles
    forget()
    try:
        catalogue.simulated_cycles, catalogue.recorded_cycles = noted, lambda _: {}
        conform(spec, [name], **casts)
    finally:
        catalogue.simulated_cycles, catalogue.recorded_cycles = simulate, recorded
        forget()
    return programs


def cycles(name: str) -> str:
    """Return the record of the cycles of a shipped target's programs, a line per number of cycles."""
    programs = {key: count for spec in ("tosa", "onnx") for key, count in simulated(name, spec).items()}
    return json.dumps(record_of_cycles(load_target(name), programs), indent=0) + "\n"


def main(kinds: list[str]) -> None:
    """Write the records of some kinds, `casts` and `cycles`; without any, of all."""
    written = {"casts": (record, PLANNING), "cycles": (cycles, target_names())}
    for kind in kinds or written:
        write, names = written[kind]
        for name in names:
            (RECORDS / f"{kind}_{name}.json").write_text(write(name), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

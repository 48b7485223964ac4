"""Writes `simulator/tools/lowering/records/casts_TARGET.json`: what every tile cast of the shipped targets does.

`python tests cast_catalogue` traces all casts again, which takes seconds.
"""

from __future__ import annotations

import json

from castsim.targets.loader import Target, load_target
from castsim.tools.lowering.lowering_answers import changed, searched_settings
from castsim.tools.lowering.sharing import RECORDS, record_of_casts
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


if __name__ == "__main__":
    for name in PLANNING:
        (RECORDS / f"casts_{name}.json").write_text(record(name), encoding="utf-8")

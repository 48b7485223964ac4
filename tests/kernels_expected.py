"""The `.expected` files beside the sample kernels: cycles of the pipes by hand, digests of the model, the report.

The derivation is arithmetic on named facts of the target, evaluated here without the product. What it states of pipes
is exact (`load_pipe`, `store_pipe`, `fill`, `trips`) or a lower bound (`vector`, `total_at_least`): how far the pipes
of a loop overlap is what the simulation is for. `python tests/kernels_expected.py` refreshes digests and reports, and
refuses if the report contradicts the derivation.
"""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from expected_files import PROGRAMS, ROOT, derivation, digest, printed, sections
from expected_reports import vector_rows
from kernels_model import ARGUMENTS, FILES, KERNELS, bf16_ties_to_even

SHAPES = {
    "scores": ("f32", (64, 500)),
    "src": ("bf16", None),
    "gamma": ("f32", (1, 2048)),
    "k": ("f32", (32, 1024)),
    "cos": ("f32", (32, 64)),
    "sin": ("f32", (32, 64)),
}
INPUTS = {
    "softmax_prepare": ("scores",),
    "rms_norm": ("src", "gamma"),
    "rotary_cache": ("k", "cos", "sin"),
    "quantise_rows_i8": ("src",),
    "quantise_rows_fp8": ("src",),
}


def inputs(name: str) -> dict[str, np.ndarray]:
    """What `--in NAME=random:N` makes: input N uniform in [-100, 100), rounded to its type."""
    found = {}
    for seed, argument in enumerate(INPUTS[name]):
        element, shape = SHAPES[argument]
        shape = shape or ((32, 2048) if name == "rms_norm" else (64, 1024))
        values = np.random.default_rng(seed).uniform(-100, 100, shape)
        found[argument] = bf16_ties_to_even(values) if element == "bf16" else values.astype(np.float32)
    return found


def words(target: str, name: str) -> list[str]:
    given = [f"{argument}=random:{seed}" for seed, argument in enumerate(INPUTS[name])]
    scalars = [f"{argument}={value}" for argument, value in ARGUMENTS.get(name, {}).items()]
    return [
        "run",
        f"programs/{FILES[target][name]}.pto",
        *(word for pair in given for word in ("--in", pair)),
        *(word for pair in scalars for word in ("--arg", pair)),
    ]


def digests(target: str, name: str) -> dict[str, str]:
    made = KERNELS[name](inputs(name), target, *ARGUMENTS.get(name, {}).values())
    return {output: digest(codes(values)) for output, values in sorted(made.items())}


def codes(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(f"<u{values.dtype.itemsize}")


def facts(target: str) -> dict[str, object]:
    """Facts of the shipped target file by the names that derivations use, read as plain TOML."""
    timing = tomllib.loads((ROOT / "targets" / f"{target}.toml").read_text(), parse_float=Fraction)["timing"]
    found: dict[str, object] = {"load": _transfer(timing["load"]), "store": _transfer(timing["store"])}
    if "vector" in timing:
        found |= {name: math.floor(Fraction(row["repeat_cycles"])) for name, row in vector_rows().items()}
    else:
        found["startup"] = timing["launch"]["startup_cycles"]
    return found


def _transfer(row: dict[str, Fraction]) -> Callable[[int], int]:
    rate, least = Fraction(row["bytes_per_cycle"]), row.get("descriptor_cycles", 0)

    def cycles(size: int) -> int:
        last = math.floor((-(-size // 32) - 1) * 32 / rate)  # the cycle of the last block, which needs it whole
        return row["startup_cycles"] + max(least, math.floor(size / rate + Fraction(1, 2)), last + 1)

    return cycles


def derived(target: str, file: str) -> dict[str, int]:
    """Evaluate the derivation of a file; the names of the facts are not among the results.

    `streams_load_pipe` and `streams_store_pipe` are what is left of those pipes without start-ups, which overlap.
    """
    known = facts(target)
    timing = tomllib.loads((ROOT / "targets" / f"{target}.toml").read_text(), parse_float=Fraction)["timing"]
    bare = {name: _transfer({**timing[name], "startup_cycles": 0}) for name in ("load", "store")}
    streams = _evaluated(known | bare, file)
    overlap = {f"streams_{name}_pipe": streams[f"{name}_pipe"] for name in bare if timing[name].get("overlaps")}
    return _evaluated(known, file) | overlap


def _evaluated(known: dict[str, object], file: str) -> dict[str, int]:
    values = dict(known)
    for line in derivation(file):
        if not line.startswith("#"):
            name, expression = line.split("#")[0].split("=", 1)
            values[name.strip()] = eval(expression, {"__builtins__": {}}, values)
    return {name: value for name, value in values.items() if name not in known and isinstance(value, int)}


def contradictions(values: dict[str, int], document: dict) -> list[str]:
    """What a report (as JSON) says against a derivation."""
    causes = {pipe: found["causes"] for pipe, found in document["pipes"].items()}
    transfers = {
        "load_pipe": causes["MTE2"]["busy"] + causes["MTE2"]["memory_latency"],
        "store_pipe": causes["MTE3"]["busy"] + causes["MTE3"]["memory_latency"],
    }
    overlapping = {name: cycles for name, cycles in transfers.items() if f"streams_{name}" in values}
    exact = {
        **{name: cycles for name, cycles in transfers.items() if name not in overlapping},
        "streams_load_pipe": causes["MTE2"]["busy"],
        "streams_store_pipe": causes["MTE3"]["busy"],
        "fill": causes["V"].get("fill", 0),
        "trips": causes["V"]["busy"],
    }
    least = {"vector": causes["V"]["busy"], "total_at_least": document["total_cycles"]}
    wrong = [
        f"{name}: {values[name]}, not {exact[name]}" for name in exact if values.get(name, exact[name]) != exact[name]
    ]
    wrong += [f"{name}: {values[name]} > {least[name]}" for name in least if values.get(name, 0) > least[name]]
    return wrong + [f"{name}: {values[name]} < {most}" for name, most in overlapping.items() if values[name] < most]


def refresh(target: str, name: str) -> None:
    """Rewrite digests and report of one file, keeping its derivation."""
    file, line = FILES[target][name], words(target, name)
    found = json.loads("\n".join(printed([*line, "--json", "-", "--quiet"])))
    wrong = contradictions(derived(target, file), found)
    if wrong:
        raise SystemExit(f"{file}: {wrong}")
    text = [
        f"castsim {' '.join(line)}",
        "",
        f"== cycles, by hand from the facts of targets/{target}.toml ==",
        *derivation(file),
        "",
        "== outputs, digests by the NumPy model of the formulas ==",
        *(f"{output} sha256 {value}" for output, value in digests(target, name).items()),
        "",
        "== report ==",
        *printed(line),
    ]
    (PROGRAMS / f"{file}.expected").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    for chip, kernels in FILES.items():
        for each, file in kernels.items():
            refresh(chip, each)
            print(f"refreshed {file}: {sections(file)['report'][2]}")

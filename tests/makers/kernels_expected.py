"""The `.expected` files beside the sample kernels: cycles of the pipes by hand, digests of the model, the report.

The derivation is arithmetic on named facts of the target, evaluated here without the product. What it states of pipes
is exact (`load_pipe`, `store_pipe`, `fill`), a lower bound (`vector`, `total_at_least`) or an upper bound (`trips`: one
cycle each, some of which wait): how far the pipes of a loop overlap is what the simulation is for. `python
tests/makers/kernels_expected.py` refreshes digests and reports, and refuses if the report contradicts the derivation.

The model is what the kernels must put out: their formulas in NumPy, step by step in float32, and their casts. The order
of sums is that of `work_model`; everything else is plain NumPy. Casts: f32 to bf16 rounds ties away by adding half of
the dropped field to the magnitude, f32 to f16 is NumPy's, f16 to int8 rounds ties to even and clamps, f32 to e4m3fn is
that of ml_dtypes.
"""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Callable, Mapping
from fractions import Fraction

import ml_dtypes
import numpy as np
from kit.work_model import Model
from makers.expected_files import PROGRAMS, ROOT, derivation, digest, printed, reported, sections
from makers.expected_reports import vector_rows

Arrays = Mapping[str, np.ndarray]
F32 = np.float32


def widened(codes: np.ndarray) -> np.ndarray:
    return (codes.astype(np.uint32) << 16).view(F32)


def bf16_ties_away(values: np.ndarray) -> np.ndarray:
    """bf16 codes of finite numbers far from overflow."""
    assert np.all(np.abs(values) < 1e30)
    return ((values.view(np.uint32).astype(np.uint64) + 0x8000) >> 16).astype(np.uint16)


def bf16_ties_to_even(values: np.ndarray) -> np.ndarray:
    """bf16 codes of float64 numbers, by ml_dtypes from float32; such numbers are not ties of a second rounding."""
    return values.astype(F32).astype(ml_dtypes.bfloat16).view(np.uint16)


def exponential(values: np.ndarray) -> np.ndarray:
    return np.exp(values.astype(np.float64)).astype(F32)


def softmax_prepare(inputs: Arrays, target: str, scale: float) -> Arrays:
    scores = np.full((64, 512), -np.inf, F32)
    scores[:, :500] = inputs["scores"] * F32(scale)
    largest = scores.max(axis=1)
    p = bf16_ties_away(exponential(scores - largest[:, None]))
    model = Model("f32", target)
    return {"p": p, "row_max": largest[None], "row_sum": model.row_reduction("add", widened(p))[None]}


def rms_norm(inputs: Arrays, target: str, eps: float) -> Arrays:
    x, model = widened(inputs["src"]), Model("f32", target)
    total = np.zeros(32, F32)
    for start in range(0, 2048, 256):
        chunk = x[:, start : start + 256]
        total = total + model.row_reduction("add", chunk * chunk)
    inverse = F32(1) / np.sqrt(total * F32(1 / 2048) + F32(eps))
    return {"y": bf16_ties_away(x * inverse[:, None] * inputs["gamma"])}


def rotary_cache(inputs: Arrays, target: str, position: int) -> Arrays:
    k = inputs["k"].reshape(32, 8, 2, 64)
    cos, sin = inputs["cos"][:, None], inputs["sin"][:, None]
    low, high = k[:, :, 0], k[:, :, 1]
    turned = np.stack((low * cos - high * sin, high * cos + low * sin), axis=2).reshape(32, 1024)
    cache = inputs["cache"].copy() if "cache" in inputs else np.zeros((256, 1024), np.uint16)
    cache[position : position + 32] = bf16_ties_away(np.ascontiguousarray(turned))
    return {"cache": cache}


def _scaled_rows(inputs: Arrays, top: float) -> tuple[np.ndarray, np.ndarray]:
    x = widened(inputs["src"])
    scales = np.maximum(np.abs(x).max(axis=1), F32(1e-12)) / F32(top)
    return np.clip(x * (F32(1) / scales)[:, None], F32(-top), F32(top)), scales[None]


def quantise_rows_i8(inputs: Arrays, target: str) -> Arrays:
    scaled, scales = _scaled_rows(inputs, 127)
    rounded = np.rint(scaled.astype(np.float16).astype(np.float64))
    return {"q_out": np.clip(rounded, -128, 127).astype(np.int8), "scales": scales}


def quantise_rows_fp8(inputs: Arrays, target: str) -> Arrays:
    scaled, scales = _scaled_rows(inputs, 448)
    return {"q_out": scaled.astype(ml_dtypes.float8_e4m3fn).view(np.uint8), "scales": scales}


KERNELS: dict[str, Callable[..., Arrays]] = {
    "softmax_prepare": softmax_prepare, "rms_norm": rms_norm, "rotary_cache": rotary_cache,
    "quantise_rows_i8": quantise_rows_i8, "quantise_rows_fp8": quantise_rows_fp8,
}  # fmt: skip
ARGUMENTS: dict[str, dict[str, float]] = {
    "softmax_prepare": {"scale": 0.125},
    "rms_norm": {"eps": 1e-6},
    "rotary_cache": {"position": 40},
}
FILES = {
    "a2a3": {name: f"kernels/{name}_a2a3" for name in KERNELS if name != "quantise_rows_fp8"},
    "a5": {name: f"kernels/{name}_a5" for name in KERNELS},
}
"""Target -> kernel -> program file, without its ending."""


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
    }
    least = {"vector": causes["V"]["busy"], "total_at_least": document["total_cycles"]}
    wrong = [
        f"{name}: {values[name]}, not {exact[name]}" for name in exact if values.get(name, exact[name]) != exact[name]
    ]
    wrong += [f"{name}: {values[name]} > {least[name]}" for name in least if values.get(name, 0) > least[name]]
    most = {**overlapping, "trips": causes["V"]["busy"]}
    return wrong + [
        f"{name}: {values[name]} < {most[name]}" for name in most if values.get(name, most[name]) < most[name]
    ]


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
        "== report, with --report full ==",
        *reported(line),
    ]
    (PROGRAMS / f"{file}.expected").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    for chip, kernels in FILES.items():
        for each, file in kernels.items():
            refresh(chip, each)
            print(f"refreshed {file}: {sections(file)['report'][0]}")

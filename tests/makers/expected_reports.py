"""The `.expected` files beside the sample programs: a derivation of the cycles, the outputs' digests, the report.

The derivation is arithmetic on named facts of the target and is evaluated here without the product; the digests are
those of the test oracle. `python tests expected_reports` refreshes digests and reports after a change of the
report's form; it never touches a derivation, and refuses if a derivation disagrees with the simulation.
"""

from __future__ import annotations

import csv
import math
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import oracle
from makers import programs_oracle
from makers.expected_files import PROGRAMS, ROOT, SEED, digest, evaluated, reported, sections, write


@dataclass
class Expected:
    """One `.expected` file, taken apart."""

    digests: dict[str, str]
    report: list[str]


def names() -> list[str]:
    """Return the tile programs that have an expected report."""
    return sorted(path.stem for path in PROGRAMS.glob("*.expected") if not path.with_suffix(".tpc").exists())


def read(name: str) -> Expected:
    """Read one file."""
    found = sections(name)
    digests = {line.split()[0]: line.split()[2] for line in found.get("outputs", []) if line.strip()}
    return Expected(digests, found.get("report", []))


def target_of(name: str) -> str:
    """Return the target for which a program is written."""
    architecture = (PROGRAMS / f"{name}.pto").read_text().split('pto.target_arch = "')[1].split('"')[0]
    return {"a3": "a2a3"}.get(architecture, architecture)


def derived_total(name: str) -> int:
    """Evaluate a derivation with the facts of the shipped target file."""
    return evaluated(name, derivation_facts(target_of(name)))


def derivation_facts(target: str) -> dict[str, object]:
    """What derivations may name, of the shipped target file, read here as plain TOML."""
    facts = tomllib.loads((ROOT / "targets" / f"{target}.toml").read_text(), parse_float=Fraction)["timing"]
    scalar = facts["scalar"]
    return {
        "issue": scalar["issue_cycles"],
        "control": scalar["control_write_cycles"],
        "sync": scalar["synchronisation_cycles"],
        "arithmetic": scalar["arithmetic_cycles"],
        "turnaround": scalar["loop_turnaround_cycles"],
        "load": lambda size: _transfer(facts["load"], size),
        "store": lambda size: _transfer(facts["store"], size),
        **(_strided_facts(facts) if target == "a2a3" else _function_facts(facts)),
    }


def _strided_facts(facts: dict) -> dict[str, object]:
    """Of every instruction the cycles of so many repeats (`vand(4)`), and those of its intervals alone (`vand_busy`).

    Of a cast also those that it loses where its tiles share banks (`vconv_f162s8_lost`, see `_lost`).

    `drain` follows what is waited for, `mask` what a change of the mask follows.
    """
    pipe = facts["vector_pipe"]
    found: dict[str, object] = {"drain": pipe["tail_cycles"], "mask": pipe["mask_change_cycles"] - 1}
    for name, row in vector_rows().items():
        numbers = {key: float(row[key]) if row[key] != "-" else 0.0 for key in ("fill_cycles", "decay_repeats")}
        startup, slope = Fraction(row["startup_cycles"]), Fraction(row["repeat_cycles"])
        alone = partial(_alone, float(startup), float(slope), numbers["fill_cycles"], numbers["decay_repeats"])
        busy = partial(_busy, slope)
        delay = partial(_delay, alone, busy, startup, pipe["tail_cycles"])
        found |= {name: alone, f"{name}_busy": busy, f"{name}_lost": partial(_lost, delay, busy)}
    return found


def vector_rows() -> dict[str, dict[str, str]]:
    """The rows of the timing table of vector instructions, as they stand there."""
    with (ROOT / "targets" / "a2a3_vector_timing.csv").open(newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def _alone(startup: float, slope: float, fill: float, decay: float, repeats: int) -> int:
    curve = fill * math.exp(-repeats / decay) if fill else 0.0
    return math.floor(startup + slope * repeats + curve + 0.5)


def _busy(slope: Fraction, repeats: int) -> int:
    return math.floor(slope * repeats)


def _lost(
    delay: Callable[[int], int],
    busy: Callable[[int], int],
    calls: Sequence[int],
    source: tuple[int, int],
    destination: tuple[int, int],
    read: tuple[int, int],
    write: tuple[int, int],
) -> int:
    """Return the cycles that the reads of a cast lose to its writes in the same 64 KiB of the buffer.

    Address bits 8:5 are the group, 17:16 the bank in it, which is not read and written in one cycle
    (docs/reference/a2a3.md section 8). Who asks first goes first, in the same cycle the earlier repeat. `calls` are
    repeats, a cycle each, and what `busy` has more lies behind the last one; results of a repeat are written in the
    last of the `delay` cycles behind it. `source` and `destination` are the first byte and the bytes from call to call,
    `read` and `write` the blocks of a repeat and the bytes from repeat to repeat.
    """
    reading, writing = dict[object, int](), dict[object, int]()  # by bank: the first cycle free of the other direction
    waiting: list[tuple[int, int]] = []  # when results ask, their first byte

    def passed(cycle: int, first: int, blocks: int, own: dict[object, int], other: dict[object, int]) -> int:
        last = cycle
        for block in range(first // 32, first // 32 + blocks):
            bank = block % 16, block // 2048
            at = max(cycle, own.get(bank, 0))
            other[bank] = at + 1
            last = max(last, at)
        return last

    start = lost = 0
    for number, repeats in enumerate(calls):
        for repeat in range(repeats):
            while waiting and waiting[0][0] <= start:
                asked, first = waiting.pop(0)
                passed(asked, first, write[0], writing, reading)
            end = passed(start, source[0] + number * source[1] + repeat * read[1], read[0], reading, writing) + 1
            lost += end - start - 1
            start = end + (busy(repeats) - repeats if repeat + 1 == repeats else 0)
            to = destination[0] + number * destination[1] + repeat * write[1]
            waiting.append((start + delay(repeats) - 1, to))
    return lost


def _delay(alone: Callable[[int], int], busy: Callable[[int], int], startup: Fraction, drain: int, repeats: int) -> int:
    """Return the cycles behind the last repeat: the first one begins in the last cycle of the startup."""
    return alone(repeats) + drain - max(0, math.floor(startup + Fraction(1, 2)) - 1) - busy(repeats)


def _function_facts(facts: dict) -> dict[str, object]:
    """Facts of vector functions; `vcvt` and the like: from the start of one to that of an instruction that uses it."""
    chain, loops, head = facts["chain"], facts["loops"], facts["unpack_head"]
    forwarding = chain["forwarding_cycles"]
    return {
        "startup": facts["launch"]["startup_cycles"],
        "drain": facts["launch"]["drain_cycles"],
        "loop": loops["setup_cycles"],
        "rows": loops["row_loop_cycles"],
        "next_row": loops["turnaround_cycles"],
        "hidden": loops["turnaround_hidden_cycles"],
        "half_bytes": loops["half_byte_row_cycles"],
        "vlds": facts["access"]["load_cycles"] - forwarding,
        "vsts": facts["access"]["store_cycles"],
        **{name: latency - forwarding for name, latency in chain["latency_cycles"].items()},
        "barrier": facts["store_barrier"]["cycles"],
        "branch": facts["branch"]["cycles"],
        "path": facts["memory_path"]["trip_cycles"],
        "head_first": head["waits"] * facts["store_barrier"]["cycles"],
        "head_second": (head["waits"] - 1) * facts["store_barrier"]["cycles"],
        "rounded": lambda exact: math.floor(Fraction(exact) + Fraction(1, 2)),
        "max": max,
    }


def _transfer(row: dict[str, Fraction], size: int) -> int:
    rate = Fraction(row["bytes_per_cycle"])
    last = math.floor((-(-size // 32) - 1) * 32 / rate)  # the cycle of the last block, which needs it whole
    stream = max(math.floor(size / rate + Fraction(1, 2)), last + 1)
    return row["startup_cycles"] + max(row.get("descriptor_cycles", 0), stream)


def source_codes(name: str) -> np.ndarray:
    """Return the program's input for `--in src=random:0`, made by the rule in the README."""
    src, shape = _source(name)
    generator = np.random.default_rng(SEED)
    if src in ("i32", "i64"):
        bits = int(src[1:])
        limits = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return (
            generator.integers(*limits, shape, dtype=np.int64, endpoint=True)
            .astype(f"i{bits // 8}")
            .view(f"u{bits // 8}")
        )
    uniform = generator.uniform(-100, 100, shape)
    if src == "bf16":
        return oracle.cast_array(uniform.view(np.uint64), "f64", "bf16", "rint", "saturate").astype(np.uint16)
    return uniform.astype(np.float32).view(np.uint32) if src == "f32" else uniform.astype(np.float16).view(np.uint16)


def _source(name: str) -> tuple[str, tuple[int, ...]]:
    """Read format and shape of the view on %src off the program text."""
    text = (PROGRAMS / f"{name}.pto").read_text()
    line = next(line for line in text.splitlines() if "make_tensor_view %src" in line)
    operands = line.split("shape = [")[1].split("]")[0].replace("%", "").split(", ")
    extents = []
    for operand in operands:
        constant = next(other for other in text.splitlines() if f"%{operand} = arith.constant" in other)
        extents.append(int(constant.split("constant ")[1].split(" ")[0]))
    return programs_oracle.source_format(name), tuple(extents)


def oracle_digests(name: str) -> dict[str, str]:
    """Return the digest of each output by the test oracle."""
    return {output: digest(codes) for output, codes in programs_oracle.outputs(name, source_codes(name)).items()}


def arguments(name: str) -> list[str]:
    """Return the command line of a program's report."""
    return ["run", f"programs/{name}.pto", "--in", f"src=random:{SEED}"]


def report(name: str) -> list[str]:
    """Return the text that castsim prints for the program."""
    return reported(arguments(name))


def refresh(name: str) -> None:
    """Rewrite digests and report of one file, keeping its derivation."""
    write(name, arguments(name), target_of(name), derived_total(name), oracle_digests(name))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    for each in sys.argv[1:] or names():
        refresh(each)
        print(f"refreshed {each}")

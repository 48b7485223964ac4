"""The `.expected` files beside the TPC sample programs: a derivation of the cycles, the output's digest, the report.

The derivation is arithmetic on named facts and is evaluated here without the product; the digests are those of the
test oracle. `python tests tpc_expected_reports` refreshes digests and reports after a change of the report's form;
it never touches a derivation, and refuses if a derivation disagrees with the simulation.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from typing import Any

from kit import tpc_programs_oracle
from makers.expected_files import PROGRAMS, ROOT, SEED, digest, evaluated, reported, write


def names() -> list[str]:
    """Return the TPC sample programs."""
    return sorted(path.stem for path in PROGRAMS.glob("*.tpc"))


def target_of(name: str) -> str:
    """Return the generation that a program is for: the last word of its name."""
    return name.rpartition("_")[2]


def described(target: str) -> dict[str, Any]:
    """Return a target description with what it inherits, read here as plain TOML."""
    own = tomllib.loads((ROOT / "targets" / f"{target}.toml").read_text())
    return merged(described(own["base"]), own) if "base" in own else own


def merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for key, value in own.items():
        found[key] = merged(base[key], value) if isinstance(value, dict) and key in base else value
    return found


def store_effect(facts: dict[str, Any], mnemonic: str) -> int:
    """Return the cycles from the issue of a store until it has its data: the stage of the entry port, and one."""
    ports = {row["name"]: row["stage"] for row in rows(facts["entry_ports"]["table"])}
    wanted = ("store", mnemonic, "src_c", "V")
    (port,) = (
        row["entry_port"]
        for row in rows(facts["stages"]["table"])
        if (row["slot"], row["mnemonic"], row["operand"], row["register_file"]) == wanted
    )
    return int(ports[port].removeprefix("e")) + 1


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the targets, read here as plain CSV."""
    with (ROOT / "targets" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def derived_total(name: str) -> int:
    """Evaluate a derivation with the facts of the target's files."""
    facts = described(target_of(name))
    values: dict[str, object] = {
        "access": facts["global_memory"]["cycles_per_access"],
        "bubbles": facts["options"]["taken_jump_cycles"]["value"],
        "tensor_store": store_effect(facts, "st_tnsr"),
        "local_store": store_effect(facts, "st_l_v"),
        "delay": facts["loop_rules"]["delay_bundles"],
        "max": max,
    }
    return evaluated(name, values)


def oracle_digests(name: str) -> dict[str, str]:
    """Return the digest of each output by the test oracle."""
    return {output: digest(codes) for output, codes in tpc_programs_oracle.outputs(name, SEED).items()}


def arguments(name: str) -> list[str]:
    """Return the command line of a program's report."""
    given = [("--in", f"{source}=random:{SEED}") for source, _, _ in tpc_programs_oracle.INPUTS[name]]
    return ["run", f"programs/{name}.tpc", *(word for pair in given for word in pair)]


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

"""A tile operation nobody knew, run from a copy of the tree that has its rows: prints what the copy makes of it."""

from __future__ import annotations

import json
import sys

import numpy as np
from kit.strided_works import listing, tile, work
from kit.work_programs import NATIVE, Spot, computed, program, statement, target

import castsim
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.tools.estimate.operation_estimates import estimate_tile_operation

VALID = (5, 60)
NUMBERS = [-np.inf, -7.5, -0.0, 0.0, 0.25, 3.0, 5.99, 6.0, 6.01, 1e4, np.inf, np.nan]
WHOLE = [-(2**31), -7, -1, 0, 1, 5, 6, 7, 2**31 - 1]


def values(element: str, chip: str, mnemonic: str) -> list[str]:
    """Codes of the valid region after the operation, row by row; every other byte must be what it was."""
    a, d = Spot("a", element, 5, 64, 0, VALID), Spot("d", element, 6, 64, 8192, VALID)
    before = np.random.default_rng(1).integers(0, 256, 1 << 16, dtype=np.uint8)
    given = np.resize(np.array(WHOLE if element[0] == "i" else NUMBERS, NATIVE[element]), VALID)
    a.put(before, given)
    text = program(statement(mnemonic, [a], d), [a, d])
    parsed = parse(text, "k.pto")
    assert parse(print_program(parsed), "k.pto").functions[0].body[-2].mnemonic == mnemonic
    after = computed(text, target(chip), before)
    found = d.get(after, *VALID)
    d.put(before, found)
    assert np.array_equal(before, after), "a byte outside the destination changed"
    return [row.tobytes().hex() for row in found]


def main(mnemonic: str) -> None:
    """Print where castsim is from, values, instructions and cycles as JSON."""
    elements, chips = ("f32", "f16", "i32"), ("a2a3", "a5")
    made = work(mnemonic, tile("f32", 4, 64, 8192), tile("f32", 4, 64, 0))
    cycles = {name: [estimate_tile_operation(name, "f32", 4, 64, target=chip).cycles for chip in chips]
              for name in (mnemonic, "tmaxs", "tmins")}  # fmt: skip
    print(json.dumps({
        "castsim": castsim.__file__,
        "values": {f"{chip} {element}": values(element, chip, mnemonic) for chip in chips for element in elements},
        "listing": listing(made),
        "cycles": cycles,
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])

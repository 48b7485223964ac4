"""Small TPC programs at the limits of the rules of issue, and of the distances that the stages do not give."""

from __future__ import annotations

from collections.abc import Iterator

from core.machines.vliw import test_tpc_lint as linted
from kit.tpc_machine import END, nops
from kit.tpc_text import target

NOP = nops(1)


def lint_texts(name: str) -> Iterator[str]:
    """Clean and broken programs of the rules of the linter, and pairs of bundles at all distances."""
    for owner, clean, compliant, broken in linted.CASES.values():
        if owner == name or (name in ("gaudi", "greco") and owner in ("gaudi", "greco")):
            yield clean
            yield clean.replace(compliant, broken, 1)
    pairs = [
        (linted.LOW, linted.HIGH), (linted.MAPPED, "nop; nop; mul.f32 V0, V1, V2; nop"),
        (linted.MAPPED, "ld_tnsr V0, 0x0, I1; nop; nop; nop"), (linted.JUMPING, "nop; halt; halt; nop"),
        (linted.JUMPING, "nop; convert.f32 target_type=int32 S4, S5; nop; nop"),
        ("nop; convert.f32 target_type=int32 S4, S5; nop; nop", linted.JUMPING),
        ("nop; nop; mul.f32 V0, V1, V2; nop", "nop; nop; mov V0, V4; nop"),
        ("nop; nop; mov V0, LFSR; nop", "nop; nop; mov V1, LFSR; nop"),
        ("nop; nop; nop; st_tnsr 0x1, I0, V1", "ld_tnsr V0, 0x0, I1; nop; nop; nop"),
    ]  # fmt: skip
    for first, second in pairs:
        for distance in range(1, 7):
            yield f"{linted.TENSORS}{first}\n{nops(distance - 1)}{second}\n{nops(9)}L:\n{END}"
    for bundles in range(4, 9):
        yield linted.loop(nops(bundles))
        yield linted.loop(nops(8), before=nops(bundles - 1))
        yield linted.loop(f"nop; nop; add.i32 V0, V1, S{LAST}; nop\n{nops(bundles)}")
        for reader in (f"nop; nop; add.i32 V0, V1, S{LAST}; nop", f"mov.i32 S4, S{LAST}; nop; nop; nop"):
            yield linted.loop(nops(8), before=f"{nops(9)}{reader}\n{nops(bundles - 2)}")
    for after in range(1, 9):
        yield linted.loop(f"nop; jmpr Skip, SP1; nop; nop\n{nops(5)}Skip:\n{nops(after)}")
        yield linted.loop(f"nop; jmpr Skip, SP1; nop; nop\n{NOP}Skip:\n{nops(after)}")
    for after in range(6):
        yield f"nop; nop; nop; st_l 0x0, S1\n{nops(after)}nop; halt; halt; nop\n"
    for values in (("0x1000",), ("0x1000", "0x2000"), ("0x1000", "0x2000", "0x3000")):
        slots = [f"mov.i32 S{k}, {value}" for k, value in enumerate(values)] + ["nop"] * (3 - len(values))
        yield f"{slots[0]}; {slots[1]}; nop; nop\n{END}"


LAST = 32
"""Number of the S register that counts the outermost loop."""


def early_texts(name: str) -> Iterator[str]:
    """Pairs of bundles at all distances whose second may not yet see the first."""
    head = "// castsim: tensor 0 x in f32 [64, 4]\n// castsim: tensor 1 y out f32 [64, 4]\n// castsim: reg SP1 = 1\n"
    head += "// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg S1 = 3\n"
    vlm = "S0, 0x0" if name == "goya" else "0x0"
    stored = f"nop; nop; nop; st_tnsr 0x1, I0, V0\n{END}"
    stochastic = "nop; nop; convert.f32 lane_sel=0 target_type=int16 sr V0, V1; nop"
    if name != "goya":
        stochastic = stochastic.replace("f32 lane_sel=0 target_type=int16", "f32 target_type=int32")
    pairs = [
        (stochastic, "nop; nop; mov V0, LFSR; nop"),
        ("nop; nop; mov V0, V1; nop", "nop; nop; mov V0, V2, SP1; nop"),
        ("ld_l SP1, 0x0; nop; nop; nop", "nop; mov SP1, S2; nop; nop"),
        (f"nop; nop; nop; st_l mmio {rounding_register(name):#x}, S1", CONVERT),
        (f"nop; nop; nop; st_l mmio {polynomial_register(name):#x}, S1", "nop; nop; mov V0, LFSR; nop"),
        ("nop; nop; mov LFSR, V1; nop", "nop; nop; mov V0, LFSR; nop"),
        ("nop; mov.i32 S27, S1; nop; nop", "ld_tnsr V0, S27, I0; nop; nop; nop"),
        ("nop; mov.i32 S30, S1; nop; nop", "ld_tnsr partial V0, 0x0, I0; nop; nop; nop"),
        (f"ld_l_v V0, {vlm}; nop; nop; nop", "nop; nop; nop; st_tnsr 0x1, I0, V0"),
    ]
    for first, second in pairs:
        for distance in range(1, 9):
            yield f"{head}{nops(2)}{first}\n{nops(distance - 1)}{second}\n{nops(9)}{stored}"


CONVERT = "nop; nop; convert.f32 target_type=int32 V0, V1; nop"


def rounding_register(name: str) -> int:
    return target(name).configuration["round"].address or 0


def polynomial_register(name: str) -> int:
    return target(name).configuration["vector_lfsr_polynomial"].address or 0x538

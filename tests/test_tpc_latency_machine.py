"""The machine at the published distances that no stages give: fresh there, stale and reported one bundle earlier.

What the consumer leaves is compared with the same program at a large distance (fresh) and without the producer (old).
test_tpc_pairs.py does the same with distances of stages.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import pytest
from test_tpc_latency import SPECIAL
from tpc_text import GENERATIONS, dialect, table, target

from castsim.isa.tpc import Bundle, Register, TensorDeclaration, TpcProgram, parse
from castsim.isa.tpc.program import Declaration, File
from castsim.machines.vliw.findings import StaleRead, StaleReadKind
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.memories import GlobalMemory

FAR = 20
"""More than any latency: the largest stage is e13."""

SETUP = (
    "// castsim: reg S11 = 1\n// castsim: reg S12 = 0x107\n// castsim: reg I2 = [64, 0, 0, 0, 0]\nnop; nop; nop; nop\n"
)
"""S12 is a range of 8 lanes from lane 1."""
BEHIND = (Bundle(),) * 3


@lru_cache(maxsize=4096)
def bundles(text: str, generation: str) -> tuple[Bundle, ...]:
    return parse(text, dialect(generation)).bundles


@cache
def declarations(generation: str) -> tuple[Declaration, ...]:
    return parse(SETUP, dialect(generation)).declarations


class Run:
    """A finished run: what the consumer left, and what was found."""

    def __init__(self, generation: str, items: tuple[Bundle, ...]) -> None:
        chip = target(generation)
        rng = np.random.default_rng(0)
        tensor = TensorDeclaration(0, "x", "inout", "f32", (256, 2))
        codes = rng.uniform(-100, 100, 512).astype(np.float32).view(np.uint32)
        declared = declarations(generation)
        machine = VliwCore(TpcProgram(declared, items), chip, GlobalMemory((tensor,), {"x": codes}, chip.tensors.limit))
        vectors = {
            8: rng.uniform(-100, 100, 64).astype(np.float32),
            9: rng.integers(-30000, 30000, 64, dtype=np.int32),
            10: np.full(64, 3.5, np.float32),
            16: np.zeros(64, np.int32),
        }
        for index, data in vectors.items():
            machine.registers.cells(Register(File.V, index))[0].set(data.view(np.uint8))
        for name in ("S0", "S30", "I3", "VP1"):
            cell = machine.registers._cells[name]
            cell.set(cell.settled)
        machine.local.vlm.store(0, rng.integers(0, 256, 4096, dtype=np.uint8))
        machine.local.slm.store(0x40, np.array([0x200, 1], "<u4").view(np.uint8))
        machine.run(1000)
        self.machine = machine
        self.stale: tuple[StaleRead, ...] = machine.findings.all()
        self.tensor = codes

    def left(self, *but: str) -> tuple[object, ...]:
        """Everything that the program can see, without the registers that the producer writes."""
        cells = {name: cell.newest for name, cell in self.machine.registers._cells.items() if name not in but}
        shown = {name: v.tobytes() if isinstance(v, np.ndarray) else v for name, v in cells.items()}
        return shown, self.machine.local.vlm.bytes.tobytes(), self.tensor.tobytes()


SLOTS = ("load", "spu", "vpu", "store")


def joined(one: Bundle, two: Bundle) -> Bundle | None:
    """Both in one bundle, None if they need the same slot."""
    both = {slot: (getattr(one, slot), getattr(two, slot)) for slot in SLOTS}
    if any(a is not None and b is not None for a, b in both.values()):
        return None
    return Bundle(**{slot: a or b for slot, (a, b) in both.items()})


def at_distance(producer: Bundle, consumer: Bundle, distance: int, behind: tuple[Bundle, ...]) -> tuple[Bundle, ...]:
    if distance == 0:
        both = joined(producer, consumer)
        assert both is not None
        return (both, *behind)
    return (producer, *(Bundle() for _ in range(distance - 1)), consumer, *behind)


def special_rows() -> list[tuple[str, str, int]]:
    rows = [row for row in table("tpc_latency.csv") if row["consumer"] in SPECIAL]
    return [(row["gen"], row["consumer"], int(row["latency_cycles"])) for row in rows]


LANES = " single_lane"
CASES = {  # producer, consumer, the registers to compare
    "next writer of the same V (income/WAW order)": (
        "mov V16, V8; nop; nop; nop",
        "nop; nop; pack.i16 source_group=0 element_stride=2 V16, V9; nop",
    ),
    "CONVERT lane_sel=b (a != b) same destination": (
        "nop; nop; convert.f32 lane_sel=0 target_type=int16 rhne V16, V8; nop",
        "nop; nop; convert.f32 lane_sel=1 target_type=int16 rhne V16, V10; nop",
    ),
    "PACK group_source=b same destination": (
        "nop; nop; pack.i16 source_group=0 element_stride=2 V16, V8; nop",
        "nop; nop; pack.i16 source_group=1 element_stride=2 V16, V9; nop",
    ),
    "MOV_DG dst dual group b same destination": (
        "nop; nop; mov_dg src=1 dst=0 wr_lg=0x1 wr_ug=0x1 V16, V8, 0xffffffff; nop",
        "nop; nop; mov_dg src=1 dst=3 wr_lg=0x1 wr_ug=0x1 V16, V9, 0xffffffff; nop",
    ),
    "CONVERT with rounding CSR": (
        "nop; nop; nop; st_l mmio {round}, S11",
        "nop; nop; convert.f32 target_type=int32 V16, V8; nop",
    ),
    "instruction using SR": (
        "nop; nop; mov LFSR, V8; nop",
        "nop; nop; convert_int32 lane_sel=0{lanes} sr to_16 V16, V9, 0xfffffffb; nop",
    ),
    "LD_TNSR / ST_TNSR using tensor-size modifiers": (
        "nop; mov.i32 S30, S12; nop; nop",
        "ld_tnsr V16, 0x0, I3, S30; nop; nop; nop",
    ),
}


@pytest.mark.parametrize(("generation", "case", "needed"), [row for row in special_rows() if row[1] in CASES])
def test_special_distances(generation: str, case: str, needed: int) -> None:
    chip = target(generation)
    register = chip.configuration.get("convert_round", chip.configuration["round"])
    lanes = LANES if generation in ("greco", "gaudi2") else ""
    producer, consumer = (
        bundles(text.format(round=hex(register.address or 0), lanes=lanes), generation)[0] for text in CASES[case]
    )
    but = ("S30",)

    def run(*items: Bundle) -> Run:
        return Run(generation, (*items, *BEHIND))

    fresh = run(producer, *(Bundle() for _ in range(FAR)), consumer)
    old = run(consumer).left(*but)
    assert fresh.left(*but) != old
    at = run(*at_distance(producer, consumer, max(needed, 1), ()))
    assert at.left(*but) == fresh.left(*but)
    assert not [f for f in at.stale if f.kind is not StaleReadKind.UNWRITTEN]
    if needed > 1 or (needed == 1 and joined(producer, consumer) is not None):
        early = run(*at_distance(producer, consumer, needed - 1, ()))
        (found,) = [f for f in early.stale if f.kind is not StaleReadKind.UNWRITTEN]
        assert (found.distance, found.needed, found.missing) == (needed - 1, needed, 1)
        if needed > 1:
            assert early.left(*but) == old


@pytest.mark.parametrize(
    ("load", "write", "register"),
    [
        ("ld_l SP1, 0x44; nop; nop; nop", "nop; mov SP1, 0x0; nop; nop", "SP1"),
        ("ld_l_v VP1, {address}; nop; nop; nop", "nop; nop; mov VP1, 0x0; nop", "VP1"),
    ],
)
@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_write_of_a_predicate_can_be_overtaken_by_an_earlier_load(
    generation: str, load: str, write: str, register: str
) -> None:
    needed = next(
        n for g, consumer, n in special_rows() if (g, consumer) == (generation, "SPU/VPU write to same SP or VP")
    )
    address = "S0, 0x200" if generation == "goya" else "0x200"
    (one,), (two,) = bundles(load.format(address=address), generation), bundles(write, generation)
    for distance, overtaken in ((needed, False), (needed - 1, True)):
        done = Run(generation, at_distance(one, two, distance, BEHIND))
        last = done.machine.registers._cells[register].newest
        assert bool(np.any(last)) is overtaken
        assert [f.kind for f in done.stale] == ([StaleReadKind.OVERTAKEN] if overtaken else [])


def test_a_masked_store_of_gaudi2_sees_the_mask_of_its_own_bundle() -> None:
    """docs/reference/tpc.md section 6.1: ST_L_V under a VP, where the rule gives 0."""
    compare, store = "nop; nop; cmp_grt.f32 VP1, V8, V10; nop", "nop; nop; nop; st_l_v S0, V9, VP1"
    (one,), (two,) = bundles(compare, "gaudi2"), bundles(store, "gaudi2")
    together = Run("gaudi2", at_distance(one, two, 0, ()))
    apart = Run("gaudi2", at_distance(one, two, FAR, ()))
    assert together.left() == apart.left()
    assert not together.stale

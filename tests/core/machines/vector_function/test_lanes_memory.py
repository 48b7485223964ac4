"""Loads and stores of registers and predicates against the naive model: every distribution, mask and address."""

from __future__ import annotations

import numpy as np
import pytest
from kit import lanes_model as model

from castsim.execution.interpreter.vector_unit import MicroMemory
from castsim.isa.errors import IllegalError, TileError
from castsim.machines.vector_function import loads_stores
from castsim.machines.vector_function.loads_stores import DOUBLE_LOADS, LOADS, SINGLE_LOADS, SINGLE_STORES, STORES
from castsim.machines.vector_function.vector_registers import PredicateRegister, VectorRegister, every_lane

RNG = np.random.default_rng(17)
MEMORY = RNG.integers(0, 256, 4096, np.uint8)
NONE = PredicateRegister(np.zeros(256, np.bool_))


def ram(buffer: np.ndarray, defined: np.ndarray | None = None) -> MicroMemory:
    """A memory of these bytes, all of them defined if nothing else is said."""
    memory = MicroMemory(buffer, {})
    memory.defined = np.ones(buffer.size, np.bool_) if defined is None else defined
    return memory


def noise() -> np.ndarray:
    return RNG.integers(0, 256, 256, np.uint8)


def count_of(dist: str) -> int:
    return len(LOADS[dist].places)


def test_the_modes_are_the_sheets() -> None:
    assert set(LOADS) == set(model.READS)
    assert set(DOUBLE_LOADS) == {"DINTLV_B8", "DINTLV_B16", "DINTLV_B32", "BDINTLV"}
    assert set(SINGLE_LOADS) | set(DOUBLE_LOADS) == set(LOADS)
    assert set(loads_stores.DOUBLE_STORES) == {"INTLV_B8", "INTLV_B16", "INTLV_B32"}
    assert set(SINGLE_STORES) == {
        *(f"{mode}_B{width}" for mode in ("NORM", "1PT") for width in (8, 16, 32)),
        *("PK_B16", "PK_B32", "PK_B64", "PK4_B32"),
    }
    assert {name: each.size for name, each in LOADS.items()} == model.READS


@pytest.mark.parametrize("dist", model.READS)
def test_loads_of_bytes_that_nothing_wrote(dist: str) -> None:
    """A byte is defined if it was, or if it is the zero of an unpacked lane: the same map on the marks says so."""
    marks = RNG.integers(0, 2, 4096).astype(np.uint8)
    got = loads_stores.load(ram(MEMORY, marks.astype(np.bool_)), 64, dist, registers=count_of(dist))
    unknown = model.loaded(dist, (1 - marks).tobytes(), 64)
    assert [(~each.defined).astype(np.uint8).tobytes() for each in got] == list(unknown)


@pytest.mark.parametrize("dist", STORES)
@pytest.mark.parametrize("address", [0, 32, 1024])
def test_stores(dist: str, address: int) -> None:
    mode = STORES[dist]
    sources = [noise() for _ in range(mode.registers)]
    marks = [RNG.integers(0, 2, 256).astype(np.uint8) for _ in sources]
    for mask in model.masks(mode.width, address):
        if dist == "PK_B64":
            mask = [bit if k % 8 == 0 else 1 for k, bit in enumerate(mask)]  # noqa: PLW2901 - b32 bits 2i + 1 say nothing
        memory, defined = MEMORY.copy(), np.zeros(4096, np.bool_)
        registers = [
            VectorRegister(data.copy(), mark.astype(np.bool_)) for data, mark in zip(sources, marks, strict=True)
        ]
        loads_stores.store(registers, ram(memory, defined), address, dist, model.predicate(mask))
        want, known = MEMORY.copy(), np.zeros(4096, np.bool_)
        for place, byte in model.stored(dist, [each.tobytes() for each in sources], mask).items():
            want[address + place] = byte
        for place, mark in model.stored(dist, [each.tobytes() for each in marks], mask).items():
            known[address + place] = bool(mark)
        assert (memory == want).all() and (defined == known).all()


def test_a_store_under_an_unknown_bit_leaves_memory_undefined() -> None:
    memory, defined = MEMORY.copy(), np.ones(4096, np.bool_)
    mask = PredicateRegister(np.zeros(256, np.bool_), np.arange(256) != 8)
    loads_stores.store([VectorRegister(noise())], ram(memory, defined), 64, "NORM_B32", mask)
    assert (memory == MEMORY).all()
    assert np.flatnonzero(~defined).tolist() == [72, 73, 74, 75]


def test_nothing_is_written_beyond_what_lanes_write() -> None:
    memory = np.zeros(128, np.uint8)
    few = model.predicate([int(k < 64) for k in range(256)])
    loads_stores.store([VectorRegister(np.full(256, 7, np.uint8))], ram(memory), 64, "NORM_B8", few)
    assert memory[:64].max() == 0 and memory[64:].min() == 7
    loads_stores.store([VectorRegister(noise())], ram(memory), 96, "NORM_B8", NONE)
    with pytest.raises(TileError, match=r"accesses bytes 96 \.\. 159 of a memory of 128"):
        loads_stores.store([VectorRegister(noise())], ram(memory), 96, "NORM_B8", few)


@pytest.mark.parametrize("stride", [1, 3, 0, -1])
def test_blocks(stride: int) -> None:
    """Block k lies k * stride blocks beyond the address; one without predicate bit is zero, or not written."""
    bits = [int(k // 32 in (0, 2, 5, 7) and k % 4 == 0) for k in range(256)]
    bits[64] = 0  # block 2 still has others
    mask, address = model.predicate(bits), 1024
    got = loads_stores.load_blocks(ram(MEMORY), address, stride, mask)
    want = b""
    for k in range(8):
        start = address + 32 * k * stride
        want += MEMORY[start : start + 32].tobytes() if k in (0, 2, 5, 7) else bytes(32)
    assert got.data.tobytes() == want
    memory, expected, source = MEMORY.copy(), MEMORY.copy(), noise()
    for k in (0, 2, 5, 7):
        start = address + 32 * k * stride
        expected[start : start + 32] = source[32 * k : 32 * k + 32]
    loads_stores.store_blocks(VectorRegister(source), ram(memory), address, stride, mask)
    assert (memory == expected).all()


def test_blocks_at_the_edges() -> None:
    first = model.predicate([int(k == 0) for k in range(256)])
    assert loads_stores.load_blocks(ram(MEMORY), 4064, 9, first).data[:32].tobytes() == MEMORY[4064:].tobytes()
    assert not loads_stores.load_blocks(ram(MEMORY), 4064, 9, NONE).data.any()
    with pytest.raises(TileError, match="block load"):
        loads_stores.load_blocks(ram(MEMORY), 4064, 1, every_lane(8))
    with pytest.raises(TileError, match="block store"):
        loads_stores.store_blocks(VectorRegister(noise()), ram(MEMORY.copy()), 0, -1, every_lane(8))
    defined = np.ones(4096, np.bool_)
    defined[40] = False
    unread = ~loads_stores.load_blocks(ram(MEMORY, defined), 0, 1, every_lane(8)).defined
    assert np.flatnonzero(unread).tolist() == [40]


@pytest.mark.parametrize("address", [0, 1, 31, 1001])
def test_unaligned(address: int) -> None:
    assert loads_stores.load_unaligned(ram(MEMORY), address).data.tobytes() == MEMORY[address : address + 256].tobytes()
    for count in (0, 1, 31, 200, 256):
        memory, want, source = MEMORY.copy(), MEMORY.copy(), noise()
        want[address : address + count] = source[:count]
        loads_stores.store_unaligned(VectorRegister(source), ram(memory), address, count)
        assert (memory == want).all()
    with pytest.raises(IllegalError, match="257 bytes"):
        loads_stores.store_unaligned(VectorRegister(noise()), ram(MEMORY.copy()), 0, 257)
    with pytest.raises(TileError, match="unaligned load"):
        loads_stores.load_unaligned(ram(MEMORY), 3841)


def test_predicates_in_memory() -> None:
    """An image holds bit k of the predicate as bit k mod 8 of byte k div 8."""
    image = MEMORY[64:96]
    bits = [int(image[k // 8]) >> (k % 8) & 1 for k in range(256)]
    assert loads_stores.load_predicate(ram(MEMORY), 64).bits.tolist() == list(map(bool, bits))
    memory = np.zeros(128, np.uint8)
    loads_stores.store_predicate(model.predicate(bits), ram(memory), 64)
    assert (memory[64:96] == image).all() and not memory[:64].any() and not memory[96:].any()
    loads_stores.store_predicate(model.predicate(bits), ram(memory), 0, "PK")
    assert [int(memory[k // 8]) >> (k % 8) & 1 for k in range(128)] == bits[::2]
    twice = loads_stores.load_predicate(ram(MEMORY), 64, "US").bits.astype(int).tolist()
    assert twice == [bits[k // 2] for k in range(256)]
    wide = [int(MEMORY[64 + k // 8]) >> (k % 8) & 1 for k in range(512)]
    assert loads_stores.load_predicate(ram(MEMORY), 64, "DS").bits.astype(int).tolist() == wide[::2]
    with pytest.raises(IllegalError, match="plds has no distribution PK"):
        loads_stores.load_predicate(ram(MEMORY), 64, "PK")
    with pytest.raises(IllegalError, match="psts has no distribution US"):
        loads_stores.store_predicate(NONE, ram(MEMORY.copy()), 64, "US")
    with pytest.raises(TileError, match="not aligned"):
        loads_stores.load_predicate(ram(MEMORY), 8)
    defined = np.ones(4096, np.bool_)
    defined[65] = False
    loaded = loads_stores.load_predicate(ram(MEMORY, defined), 64)
    assert np.flatnonzero(~loaded.defined).tolist() == list(range(8, 16))
    loads_stores.store_predicate(loaded, ram(memory := MEMORY.copy(), defined), 128)
    assert not defined[129] and defined[128] and memory.size == 4096


def test_gathered_blocks() -> None:
    """Eight blocks of 32 bytes where offsets in bytes say; one without predicate bit is 0 and may lie anywhere."""
    table = np.array([64, 0, 32, 0, 960, 5, 1 << 30, 96, *range(56)], "<u4")
    wanted = (0, 1, 2, 4, 7)
    mask = model.predicate([int(k // 32 in wanted and k % 32 == 12) for k in range(256)])
    index = VectorRegister(table.view(np.uint8).copy())
    got = loads_stores.gather_blocks(ram(MEMORY), 1024, index, mask)
    starts = [1024 + int(table[k]) if k in wanted else None for k in range(8)]
    assert got.data.tobytes() == b"".join(bytes(32) if at is None else MEMORY[at : at + 32].tobytes() for at in starts)
    assert got.defined.all()
    defined = np.ones(4096, np.bool_)
    defined[1030] = False  # block 1 reads it
    hole = VectorRegister(index.data.copy(), np.arange(256) != 8)  # the offset of block 2
    found = loads_stores.gather_blocks(ram(MEMORY, defined), 1024, hole, mask)
    assert np.flatnonzero(~found.defined).tolist() == [38, *range(64, 96)]
    with pytest.raises(TileError, match="byte 1029 is not aligned"):
        loads_stores.gather_blocks(ram(MEMORY), 1024, index, every_lane(8))
    with pytest.raises(TileError, match="byte 16 is not aligned"):
        loads_stores.gather_blocks(ram(MEMORY), 16, index, NONE)


@pytest.mark.parametrize(("dist", "address", "legal"), [
    ("NORM", 16, 32), ("DINTLV_B32", 8, 32), ("BRC_B32", 2, 4), ("BRC_B16", 1, 2), ("BRC_BLK", 16, 32),
    ("UNPK_B16", 8, 16), ("US_B8", 4, 16), ("DS_B16", 16, 32), ("BDINTLV", 16, 32),
])  # fmt: skip
def test_misaligned_loads(dist: str, address: int, legal: int) -> None:
    with pytest.raises(TileError, match=f"a load {dist} at byte {address} is not aligned") as refused:
        loads_stores.load(ram(MEMORY), address, dist, registers=count_of(dist))
    assert refused.value.legal == (f"multiples of {legal} bytes",)


def test_accesses_that_are_refused() -> None:
    with pytest.raises(TileError, match=r"accesses bytes 3872 \.\. 4127 of a memory of 4096") as beyond:
        loads_stores.load(ram(MEMORY), 3872, "NORM")
    assert beyond.value.legal == ("addresses 0 to 3840",)
    assert loads_stores.load(ram(MEMORY), 4095, "BRC_B8")[0].data[0] == MEMORY[4095]
    with pytest.raises(TileError, match="a store 1PT_B32 at byte 2 is not aligned"):
        loads_stores.store([VectorRegister(noise())], ram(MEMORY.copy()), 2, "1PT_B32", NONE)
    with pytest.raises(IllegalError, match="vlds has no distribution DINTLV_B8") as single:
        loads_stores.load(ram(MEMORY), 0, "DINTLV_B8")
    assert single.value.legal == SINGLE_LOADS
    with pytest.raises(IllegalError, match="vldsx2 has no distribution NORM"):
        loads_stores.load(ram(MEMORY), 0, "NORM", registers=2)
    with pytest.raises(IllegalError, match="vsts has no distribution NORM") as store:
        loads_stores.store([VectorRegister(noise())], ram(MEMORY.copy()), 0, "NORM", NONE)
    assert store.value.legal == SINGLE_STORES
    with pytest.raises(IllegalError, match="the chip does not support distribution MRG4CHN_B8"):
        loads_stores.store([VectorRegister(noise())], ram(MEMORY.copy()), 0, "MRG4CHN_B8", NONE)

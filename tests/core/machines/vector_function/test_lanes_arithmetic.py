"""Registers, loads and stores where the programs of `test_micro_models` say nothing: options, holes, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracle
import pytest
from core.machines.vector_function import lanes_elements as el
from kit import boundaries
from kit import lanes_model as model

from castsim.execution.interpreter.vector_unit import MicroMemory
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.pto.micro_forms import ROWS
from castsim.machines.vector_function import loads_stores
from castsim.machines.vector_function.lane_operations import execute, squeezed_bytes
from castsim.machines.vector_function.loads_stores import LOADS, SINGLE_LOADS, SINGLE_STORES, STORES
from castsim.machines.vector_function.vector_registers import (
    Operands,
    PredicateRegister,
    Value,
    VectorRegister,
    documented_target,
    every_lane,
)
from castsim.targets.description import with_options

A5 = documented_target()
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32")
FLOATS = ("f16", "bf16", "f32")
NUMBERS = (*INTEGERS, *FLOATS)


def codes(name: str, seed: int) -> list[int]:
    """A register of edges, small numbers and random patterns, in an order of its own."""
    bits, rng = model.bits_of(name), np.random.default_rng(seed)
    count = 2048 // bits
    if bits == 8 and name not in oracle.INTS:
        return rng.permutation(256).tolist()
    edges = boundaries.own_edges(name)
    if name in oracle.INTS:
        edges += [value & ((1 << bits) - 1) for value in range(-3, 4)]
        pool = [*edges, *rng.integers(0, 1 << bits, count).tolist()]
    else:
        ordinary = [el.rounded(Fraction(x), name) for x in rng.normal(0, 3, count).tolist()]
        pool = [*edges, *ordinary, *rng.integers(0, 1 << bits, count // 2).tolist()]
    return rng.permutation(np.array(pool, np.uint64))[:count].tolist()


def register(values: list[int], name: str) -> VectorRegister:
    size = model.bits_of(name) // 8
    return model.register(b"".join(value.to_bytes(size, "little") for value in values))


def lanes_of(value: Value, name: str) -> list[int]:
    assert isinstance(value, VectorRegister)
    return value.lanes(model.bits_of(name)).tolist()


def types(op: str) -> list[str]:
    """The formats of an instruction's elements; a pair is no format."""
    return [name for name in ROWS[op].elements if name in FORMATS]


def run(
    op: str, name: str, *sources: list[int], mask: list[int] | None = None, masks: tuple[PredicateRegister, ...] = (),
    scalars: tuple[int, ...] = (), words: tuple[str, ...] = (), result: str | None = None, **options: str,
) -> tuple[Value, ...]:  # fmt: skip
    made = (*masks, *(() if mask is None else (model.predicate(mask),)))
    registers = tuple(register(each, name) for each in sources)
    fmt = format_named(name)
    width = min(32, model.bits_of(name))
    return execute(Operands(op, fmt, format_named(result or name), width, with_options(A5, options),
                            registers, made, scalars, words))  # fmt: skip


def active(mask: list[int], name: str) -> list[int]:
    return mask[:: model.bits_of(name) // 8]


@pytest.mark.parametrize(("op", "name"), [(op, name) for op in ("vshl", "vshr") for name in types(op)])
def test_shifts_by_the_width_or_more(op: str, name: str) -> None:
    bits, a = model.bits_of(name), codes(name, 9)
    function, full = op[1:], model.masks(bits, 0)[0]
    for amount in (bits, bits + 3, 200, -1, -32768):
        (got,) = run(f"{op}s", name, a, mask=full, scalars=(amount,))
        gone = [el.shift(function, x, bits, name) if function == "shr" else 0 for x in a]
        assert lanes_of(got, name) == gone
        assert isinstance(got, VectorRegister) and not got.defined.any()
        (got,) = run(f"{op}s", name, a, mask=full, scalars=(amount,), shift_beyond_width="modulo")
        assert lanes_of(got, name) == [el.shift(function, x, amount % bits, name) for x in a]
    (got,) = run(op, name, a, [bits if k == 3 else 1 for k in range(len(a))], mask=full)
    assert isinstance(got, VectorRegister)
    assert np.flatnonzero(~got.defined_lanes(bits)).tolist() == [3]


@pytest.mark.parametrize("name", types("vaxpy"))
def test_a_product_and_its_sum_may_each_be_rounded(name: str) -> None:
    a, b = codes(name, 13), codes(name, 14)
    full, scalar = model.masks(model.bits_of(name), 0)[0], codes(name, 16)[5]
    twice = [el.add(y, el.mul(x, scalar, name), name) for x, y in zip(a, b, strict=True)]
    got = run("vaxpy", name, a, b, mask=full, scalars=(scalar,), axpy_rounding="twice")
    assert lanes_of(got[0], name) == twice


@pytest.mark.parametrize("name", ["i32", "u32"])
@pytest.mark.parametrize("sense", ["borrow", "no_borrow"])
def test_carries(name: str, sense: str) -> None:
    a, b = codes(name, 31), codes(name, 32)
    b[::4] = a[::4]
    carried = [k % 3 == 0 for k in range(64)]
    carry_in = model.predicate([int(k % 4 == 0 and carried[k // 4]) for k in range(256)])
    for mask in model.masks(32, 9):
        seen = list(map(bool, active(mask, name)))
        for op, sign in (("vaddc", 1), ("vsubc", -1), ("vaddcs", 1), ("vsubcs", -1)):
            with_carry = op.endswith("s")
            masks = (carry_in,) if with_carry else ()
            total, carry = run(op, name, a, b, masks=masks, mask=mask, micro_subtraction_carry=sense)
            flips = sign < 0 and sense == "no_borrow"
            taken = [(c != flips) if with_carry else False for c in carried]
            exact = [x + sign * (y + c) for x, y, c in zip(a, b, taken, strict=True)]
            assert lanes_of(total, name) == [e & 0xFFFFFFFF if m else 0 for e, m in zip(exact, seen, strict=True)]
            over = [((not 0 <= e <= 0xFFFFFFFF) != flips) and m for e, m in zip(exact, seen, strict=True)]
            assert isinstance(carry, PredicateRegister) and carry.lanes(32).tolist() == over


@pytest.mark.parametrize("op", ["vadd", "vmax", "vor", "vsel", "vmula", "vcmp", "vaddc", "vmull", "vprelu"])
def test_lanes_that_are_not_defined_spread_to_their_own(op: str) -> None:
    name = "i32" if "i32" in types(op) else "f32"
    fmt, form = format_named(name), ROWS[op].forms[0].partition(">")[0]
    hole = VectorRegister(np.zeros(256, np.uint8), np.arange(256) != 21)  # lane 5
    whole = VectorRegister(np.zeros(256, np.uint8))
    count = form.count("V")
    words = ("lt",) if "cmp" in form else ()
    for place in range(count):
        sources = tuple(hole if k == place else whole for k in range(count))
        for bits, hidden in ((np.ones(256, np.bool_), False), (np.arange(256) != 20, True)):
            found = execute(Operands(op, fmt, fmt, 32, A5, sources, (PredicateRegister(bits),), (), words))
            for each in found:
                assert isinstance(each, VectorRegister | PredicateRegister)
                want = [5] if not hidden and (op != "vsel" or place == 0) else []
                want = [5] if op == "vsel" and hidden and place == 1 else want
                assert np.flatnonzero(~each.defined_lanes(32)).tolist() == want, (op, place, hidden)
        doubt = PredicateRegister(np.ones(256, np.bool_), np.arange(256) != 28)
        for each in execute(Operands(op, fmt, fmt, 32, A5, (whole,) * count, (doubt,), (), words)):
            assert isinstance(each, VectorRegister | PredicateRegister)
            assert np.flatnonzero(~each.defined_lanes(32)).tolist() == [7]


@pytest.mark.parametrize(
    ("name", "given", "want"),
    [
        ("f16", 0xFBFF, 0xFC00), ("f16", 0x7BFF, 0x7C00), ("f16", 0, 0), ("f16", 0x8000, 0x8000),
        ("f16", 0x7C00, 0x7C00), ("f32", 0xFF7FFFFF, 0xFF800000), ("f32", 0x7F7FFFFF, 0x7F800000),
        ("f32", 0x80000000, 0x80000000), ("f32", 0xFF800000, 0xFF800000),
    ],
)  # fmt: skip
def test_documented_sums_of_pairs(name: str, given: int, want: int) -> None:
    """The vendor's table of special values for a sum of pairs on the A5, saturation off."""
    count = 2048 // model.bits_of(name)
    (got,) = run("vcpadd", name, [given] * count, mask=model.masks(model.bits_of(name), 0)[0])
    assert lanes_of(got, name)[: count // 2] == [want] * (count // 2)


def test_what_is_not_defined_in_moves() -> None:
    """A number beyond the lanes; the halves that a pack keeps; whatever stands behind a doubtful bit."""
    for name in types("vselr"):
        bits = model.bits_of(name)
        if bits > 8:
            lanes = 2048 // bits
            (got,) = run("vselr", name, codes(name, 3), [lanes if k == 2 else 0 for k in range(lanes)])
            assert isinstance(got, VectorRegister) and np.flatnonzero(~got.defined_lanes(bits)).tolist() == [2]
    for name in types("vpack"):
        bits, fmt, half = model.bits_of(name), format_named(name), format_named(f"u{model.bits_of(name) // 2}")
        hole = np.arange(256) != bits // 8 + bits // 16  # the upper half of lane 1, which is not kept
        for defined, want in ((hole, []), (np.arange(256) != bits // 8, [1])):
            source = (VectorRegister(np.zeros(256, np.uint8), defined),)
            (got,) = execute(Operands("vpack", fmt, half, 8, A5, source, words=("LOWER",)))
            assert isinstance(got, VectorRegister) and np.flatnonzero(~got.defined_lanes(bits // 2)).tolist() == want
    for name in types("vsqz"):
        bits, fmt, source = model.bits_of(name), format_named(name), register(codes(name, 8), name)
        unknown = PredicateRegister(np.ones(256, np.bool_), np.arange(256) != 2 * bits // 8)
        (got,) = execute(Operands("vsqz", fmt, fmt, bits, A5, (source,), (unknown,)))
        assert isinstance(got, VectorRegister) and not got.defined.any()
        if name in types("vusqz"):
            (got,) = execute(Operands("vusqz", fmt, fmt, bits, A5, (source,), (unknown,)))
            assert isinstance(got, VectorRegister)
            assert got.defined_lanes(bits).tolist() == [i < 3 for i in range(2048 // bits)]
        for mask in model.masks(bits, 4):
            assert squeezed_bytes(model.predicate(mask), bits) == sum(active(mask, name)) * bits // 8


@pytest.mark.parametrize(
    ("op", "name", "words", "scalars", "message"),
    [
        ("vdup", "i16", ("MIDDLE",), (), "does not take position MIDDLE"),
        ("vci", "i16", ("UP",), (0,), "does not take order UP"),
        ("vsunpack", "i16", (), (2,), "no half 2"),
        ("vcmp", "i8", ("ult",), (), "unknown comparison ult"),
    ],
)
def test_words_that_an_instruction_does_not_know(
    op: str, name: str, words: tuple[str, ...], scalars: tuple[int, ...], message: str
) -> None:
    registers = {"vdup": 1, "vci": 0, "vsunpack": 1, "vcmp": 2}[op]
    with pytest.raises(IllegalError, match=message) as refused:
        run(
            op, name, *[codes(name, 4)] * registers, words=words, scalars=scalars,
            mask=model.masks(model.bits_of(name), 0)[0] if op in ("vdup", "vcmp") else None,
            result="i32" if op == "vsunpack" else name,
        )  # fmt: skip
    assert refused.value.legal


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


def test_a_subtraction_carries_where_nothing_was_borrowed() -> None:
    # The newest page of the ISA: dst = a - b - (1 - carry), and the carry is 1 if nothing was borrowed.
    _, carry = run("vsubc", "u32", [5] * 64, [*[3] * 32, *[7] * 32], mask=[True] * 256)
    assert isinstance(carry, PredicateRegister) and carry.lanes(32).tolist() == [True] * 32 + [False] * 32


def test_extremes_with_nan_are_defined() -> None:
    full = model.masks(32, 0)[0]
    a = [el.rounded(Fraction(1), "f32")] * 64
    b = [oracle.fmt("f32").nan if k == 9 else a[0] for k in range(64)]
    for op in ("vmax", "vmin"):
        for pair in ((a, b), (b, a)):
            (got,) = run(op, "f32", *pair, mask=full)
            assert isinstance(got, VectorRegister) and got.defined_lanes(32).all()
            assert lanes_of(got, "f32")[9] == oracle.fmt("f32").nan
            (got,) = run(op, "f32", *pair, mask=full, maximum_of_nan="number")
            assert lanes_of(got, "f32")[9] == a[0]


@pytest.mark.parametrize(("name", "clamps"), [("f16", True), ("bf16", False), ("f32", False)])
def test_results_that_ctrl_clamps(name: str, clamps: bool) -> None:
    """f16 results of arithmetic while CTRL[60] is 1 and CTRL[48] is 0 (docs/reference/pto.md section 7.1)."""
    row, fmt = oracle.fmt(name), format_named(name)
    top, full = row.inf - 1, model.predicate(model.masks(model.bits_of(name), 0)[0])
    lanes = 2048 // row.bits
    source = register([(top, row.inf | row.sign_code, row.nan, 0)[k % 4] for k in range(lanes)], name)
    for ctrl, holds in ((0, False), (1 << 60, clamps), (1 << 60 | 1 << 48, False), (1 << 59, False)):
        (got,) = execute(Operands("vadd", fmt, fmt, 32, A5, (source, source), (full,), ctrl=ctrl))
        want = [top, top | row.sign_code, 0, 0] if holds else [row.inf, row.inf | row.sign_code, row.nan, 0]
        assert lanes_of(got, name)[:4] == want
        (got,) = execute(Operands("vcadd", fmt, fmt, 32, A5, (register([top] * lanes, name),), (full,), ctrl=ctrl))
        assert lanes_of(got, name)[0] == (top if holds else row.inf)


def test_formats_that_an_instruction_does_not_take() -> None:
    full = model.masks(8, 0)[0]
    with pytest.raises(IllegalError, match="vadd does not take hif8") as refused:
        run("vadd", "hif8", [0] * 256, [0] * 256, mask=full)
    assert refused.value.legal == ROWS["vadd"].elements


@pytest.mark.parametrize(("dist", "address", "legal"), [
    ("NORM", 16, 32), ("DINTLV_B32", 8, 32), ("BRC_B32", 2, 4), ("BRC_B16", 1, 2), ("BRC_BLK", 16, 32),
    ("UNPK_B16", 8, 16), ("US_B8", 4, 16), ("DS_B16", 16, 32), ("BDINTLV", 16, 32),
])  # fmt: skip
def test_misaligned_loads(dist: str, address: int, legal: int) -> None:
    with pytest.raises(TileError, match=f"a load {dist} at byte {address} is not aligned") as refused:
        loads_stores.load(ram(MEMORY), address, dist, registers=count_of(dist))
    assert refused.value.legal == (f"multiples of {legal} bytes",)

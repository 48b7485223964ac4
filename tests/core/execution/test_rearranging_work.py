"""tci, tgather, ttrans and tconcat against NumPy: every type, both targets, whole buffers; what they issue and refuse.

Expected values are NumPy's on the elements (docs/reference/pto.md section 7.7), cycles the published ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from kit.strided_works import TARGET, cycles, tile, work
from kit.work_programs import (
    NATIVE,
    Spot,
    computed,
    expect,
    noise,
    program,
    ran,
    statement,
    synchronised,
    target,
    walked,
)

from castsim.isa.errors import CastsimError
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.running.synchronisation.race_detector import find_races
from castsim.running.synchronisation.race_findings import RaceKind
from castsim.tools.estimate.operation_estimates import estimate_tile_operation

TARGETS = ("a2a3", "a5")
MOVED = ("i8", "i16", "i32", "f16", "bf16", "f32")
S = ("s", "i32")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["i32", "i16"])
@pytest.mark.parametrize("cols", [8, 63, 64, 200])
@pytest.mark.parametrize("tmp", [False, True])
@pytest.mark.parametrize("down", [False, True])
def test_ramps(name: str, element: str, cols: int, tmp: bool, down: bool) -> None:
    start = 32760 if element == "i16" else 2**31 - 5
    d, t = Spot("d", element, 1, 256, 0, (1, cols)), Spot("t", "f32", 1, 448, 2048)
    ins = [("s", element), *([t] if tmp else [])]
    text = program(
        statement("tci", ins, d) + (" {descending = true}" if down else ""), [d, t], {"s": (str(start), element)}
    )
    values = [start - j if down else start + j for j in range(cols)]
    if down and tmp and name == "a2a3":
        values = [-(start + j) for j in range(cols)]
        assert any("negates" in str(warning) for warning in walked(text, target(name)).warnings)
    bits = 8 * d.size
    wrapped = [(value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for value in values]
    expect(text, name, noise(target(name)), d, np.array([wrapped], NATIVE[element]))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("element", "width"), [("f32", 32), ("i32", 32), ("f16", 32), ("i16", 32)])
@pytest.mark.parametrize("shape", [(1, 16), (16, 64), (5, 208)])
def test_gathers(name: str, element: str, width: int, shape: tuple[int, int]) -> None:
    """Numbers count over the physical storage of the source."""
    rows, cols = shape
    s = Spot("s", element, 17, 48, 0)
    i, t = Spot("i", f"i{width}", rows, cols, 8192), Spot("t", f"i{width}", rows, cols, 40960)
    d = Spot("d", element, rows, cols, 65536)
    before, chosen = noise(target(name)), np.random.default_rng(rows).integers(0, 17 * 48, shape).astype("<i4")
    i.put(before, chosen)
    text = program(statement("tgather", [s, i, t], d), [s, i, t, d])
    expect(text, name, before, d, s.get(before, 17, 48).reshape(-1)[chosen])


@pytest.mark.parametrize(("element", "width"), [("i8", 16), ("bf16", 16), ("f16", 16)])
def test_gathers_by_short_numbers(element: str, width: int) -> None:
    s, i, d = Spot("s", element, 16, 64, 0), Spot("i", f"i{width}", 4, 64, 8192), Spot("d", element, 4, 64, 16384)
    before, chosen = noise(target("a5")), np.random.default_rng(1).integers(0, 1024, (4, 64)).astype("<i2")
    i.put(before, chosen)
    expect(program(statement("tgather", [s, i], d), [s, i, d]), "a5", before, d, s.get(before).reshape(-1)[chosen])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("number", [-1, 64, 2**31 - 1])
def test_a_number_outside_the_tile_is_refused_where_it_is_used(name: str, number: int) -> None:
    s, i, t, d = (
        Spot(n, k, 1, 64, at)
        for n, k, at in zip("sitd", ("f32", "i32", "i32", "f32"), range(0, 4096, 1024), strict=True)
    )
    before, chosen = noise(target(name)), np.zeros((1, 64), "<i4")
    chosen[0, 7] = number
    i.put(before, chosen)
    with pytest.raises(
        CastsimError, match=rf"element \(0, 7\) of %i is {number}, but %s has elements 0 .. 63"
    ) as caught:
        computed(program(statement("tgather", [s, i, t], d), [s, i, t, d]), target(name), before)
    assert caught.value.span is not None


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", MOVED)
@pytest.mark.parametrize("valid", [(32, 32), (32, 64), (64, 32), (10, 33), (33, 7), (1, 64)])
def test_transpositions(name: str, element: str, valid: tuple[int, int]) -> None:
    s, t = Spot("s", element, 64, 64, 0, valid), Spot("t", element, 64, 64, 16384)
    d = Spot("d", element, 64, 64, 32768, (1, 1))
    before = noise(target(name))
    text = program(statement("ttrans", [s, t], d), [s, t, d])
    found, wanted = ran(text, name, before), before.copy()
    d.put(wanted, s.get(before).T)
    if name == "a2a3":  # up to the next block behind each row nothing is claimed
        length = -(-valid[0] * d.size // 32) * 32
        for row in range(valid[1]):
            start = d.place(row, valid[0])
            found[start : d.place(row, 0) + length] = wanted[start : d.place(row, 0) + length]
        whole = valid[0] * d.size % 32 == 0
        warned = any("whole blocks" in str(warning) for warning in walked(text, target(name)).warnings)
        assert warned != whole
    assert np.array_equal(found, wanted)


def test_a_transposition_in_place_goes_through_tmp() -> None:
    s, t = Spot("s", "f32", 16, 16, 0), Spot("t", "f32", 16, 16, 4096)
    before = noise(target("a2a3"))
    expect(program(statement("ttrans", [s, t], s), [s, t]), "a2a3", before, s, s.get(before).T)
    with pytest.raises(CastsimError, match="cannot run in place"):
        walked(program(statement("ttrans", [s, t], s), [s, t]), target("a5"))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", MOVED)
@pytest.mark.parametrize("widths", [(64, 64), (32, 20), (37, 5), (1, 31), (0, 40), (40, 0)])
def test_concatenations(name: str, element: str, widths: tuple[int, int]) -> None:
    """On A2/A3 whole blocks: behind the last column the bytes of the second source, if that begins at a block."""
    one, two = Spot("a", element, 7, 64, 0, (5, widths[0])), Spot("b", element, 6, 64, 8192, (5, widths[1]))
    d = Spot("d", element, 8, 192, 16384, (5, sum(widths)))
    before = noise(target(name))
    values = np.concatenate([one.get(before), two.get(before)], axis=1)
    text = program(statement("tconcat", [one, two], d), [one, two, d])
    found, wanted = ran(text, name, before), before.copy()
    block = 32 // d.size
    if name == "a2a3":
        wide = -(-widths[0] // block) * block
        d.put(wanted, one.get(before, 5, wide))
        if widths[0] % block == 0:
            wide = -(-widths[1] // block) * block
            Spot("e", element, 8, 192, d.address + widths[0] * d.size).put(wanted, two.get(before, 5, wide))
    d.put(wanted, values)
    assert np.array_equal(found, wanted)


def test_cycles_of_gathers_are_the_measured_ones() -> None:
    """46.6 cycles for each further row of f32, measured on 910B3."""

    def rows(count: int) -> int:
        spots = [tile(e, count, 64, at) for e, at in (("f32", 0), ("f32", 65536), ("i32", 131072), ("i32", 163840))]
        dst, src, places, tmp = spots
        return cycles(TARGET, work("tgather", dst, src, places, tmp=tmp))

    assert (rows(33) - rows(1)) / 32 == pytest.approx(46.6, abs=0.5)


def test_cycles_of_a_transposition_are_near_the_measured_ones() -> None:
    """501 cycles measured for 128 x 128 of f32."""
    made = work("ttrans", tile("f32", 128, 128, 65536), tile("f32", 128, 128, 0), tmp=tile("f32", 128, 128, 131072))
    assert cycles(TARGET, made) == pytest.approx(501, rel=0.05)


@pytest.mark.parametrize("name", TARGETS)
def test_a_ramp_without_tmp_is_work_of_the_scalar_unit(name: str) -> None:
    """A store and a turnaround per element; who reads it on the vector pipe is made to wait."""
    d, x = Spot("d", "i32", 1, 64, 0), Spot("x", "i32", 1, 64, 1024)
    text = program("\n".join([statement("tci", [S], d), statement("tadd", [d, d], x)]), [d, x], {"s": ("0", "i32")})
    tree = walked(text, target(name)).tree
    assert [each.pipe for each in tree.instructions if each.mnemonic in ("tci", "tadd")] == ["S", "V"]
    inserted = synchronised(text, target(name)).tree
    assert {"set_flag S -> V id 0", "wait_flag S -> V id 0"} <= {each.text for each in inserted.instructions}
    assert not [finding for finding in find_races(inserted, target(name)) if finding.kind is not RaceKind.UNWRITTEN]
    assert VECTOR_OPERATIONS["tci"].scalar_unit
    short, long = (estimate_tile_operation("tci", "i32", 1, cols, target=name).cycles for cols in (64, 128))
    assert long - short == 2 * 64


F, G = Spot("f", "f32", 8, 64, 0), Spot("g", "f32", 8, 32, 4096)
N, H = Spot("i", "i32", 8, 64, 8192), Spot("h", "i16", 8, 64, 16384)
D, R = Spot("d", "f32", 8, 64, 24576), Spot("r", "i32", 1, 64, 32768)
C = Spot("c", "f32", 8, 64, 36864, (8, 60))
EVERY = [F, G, N, H, D, R, C]


@pytest.mark.parametrize(
    ("operation", "name", "message"),
    [
        (statement("tci", [S], N), "a2a3", "must have one row of more than one element, not 8 x 64"),
        (statement("tci", [("v", "i16")], R), "a5", "the scalar is i16, not i32"),
        (statement("tci", [("x", "f32")], Spot("f", "f32", 8, 64, 0)), "a5", "does not take f32"),
        (statement("tci", [S, Spot("h", "i16", 8, 64, 16384)], R), "a2a3", "its elements of 32 bits"),
        (statement("tci", [S, R], Spot("r", "i32", 1, 64, 32768)), "a2a3", "has 256 bytes, tci needs 768"),
        (statement("tci", [S], R) + " {descending = 1 : i32}", "a5", "descending must be true or false"),
        (statement("tadd", [F, F], D) + " {descending = true}", "a5", "no attribute 'descending'"),
        (statement("tgather", [F, N], D), "a2a3", "needs a tmp tile of the type and valid region of %i"),
        (statement("tgather", [F, H, H], D), "a2a3", "%h holds i16"),
        (statement("tgather", [F, H], D), "a5", "%h holds i16"),
        (statement("tgather", [F, N, F], D), "a2a3", "tmp tile of the type and valid region"),
        (statement("tgather", [F, N, N], C), "a2a3", "all columns of %c must be valid, 60 of 64"),
        (statement("tgather", [D, N], D), "a5", "cannot run in place"),
        (statement("tgather", [F, R], D), "a5", "valid region of %r is 1 x 64"),
        (statement("ttrans", [F], G), "a5", "become 64 x 8, %g has 8 x 32"),
        (statement("ttrans", [N], D), "a5", "%d is f32, not i32"),
        (statement("tconcat", [F, F], D), "a2a3", "64 and 64 columns of %f and %f do not fit into the 64 of %d"),
        (statement("tconcat", [G, Spot("g", "f32", 8, 32, 4096)], C), "a5", "do not make the 60 of %c"),
        (statement("tconcat", [G, R], D), "a5", "%r is i32"),
        (statement("tpartmax", [F, Spot("d", "f32", 8, 64, 24576)], N), "a5", "is i32"),
    ],
)  # fmt: skip
def test_refusals(operation: str, name: str, message: str) -> None:
    scalars = {"s": ("0", "i32"), "v": ("0", "i16"), "x": ("0.0", "f32")}
    with pytest.raises(CastsimError) as caught:
        walked(program(operation, EVERY, scalars), target(name))
    assert message in str(caught.value), caught.value
    assert caught.value.span is not None

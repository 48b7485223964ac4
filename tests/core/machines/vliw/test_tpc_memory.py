"""Memory of the TPC machine: tensors, elements by address, local memories, stores that merge."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kit.tpc_machine import END, chip, nops, ran
from kit.tpc_text import GENERATIONS

from castsim.isa.errors import IllegalError
from castsim.machines.vliw.assembled import assemble, execute
from castsim.machines.vliw.findings import StaleReadKind
from castsim.tools.tpc_assembly.scheduling import schedule


def tensors(kind: str, shape: str, out: str = "", **registers: str | int) -> str:
    """Declare x, y and registers; an index register by its first coordinates."""
    text = f"// castsim: tensor 0 x in {kind} [{shape}]\n// castsim: tensor 1 y out {kind} [{out or shape}]\n"
    for name, value in registers.items():
        whole = f"[{', '.join([*str(value).split(), *'0000'][:5])}]" if name[0] == "I" else value
        text += f"// castsim: reg {name} = {whole}\n"
    return text


# --------------------------------------------------------------------------------------------------------- tensors


def copy(*, load: str = "ld_tnsr V0, 0x0, I0", store: str = "st_tnsr 0x1, I1, V0", before: str = "") -> str:
    return f"{before}{load}; nop; nop; nop\n{nops(3)}nop; nop; nop; {store}\n{END}"


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("first", [-70, -64, -3, 0, 5, 40, 99, 100, 2**31 - 1, -(2**31)])
def test_lanes_outside_a_tensor_load_zero_and_are_not_stored(generation: str, first: int) -> None:
    text = tensors("f32", "100", I0=first, I1=10) + copy()
    x = np.arange(1, 101, dtype=np.float32)
    expected = np.zeros(100, np.float32)
    for lane in range(64):
        if 0 <= 10 + lane < 100 and 0 <= first + lane < 100:
            expected[10 + lane] = x[first + lane]
    np.testing.assert_array_equal(ran(text, generation, {"x": x}).outputs["y"], expected)


@pytest.mark.parametrize("coordinate", [(0, 3, 0, 0, 0), (0, -1, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 0, -1)])
def test_rows_outside_a_tensor_are_outside_in_every_lane(coordinate: tuple[int, ...]) -> None:
    place, x = " ".join(map(str, coordinate)), np.ones((3, 64), np.float32)
    for places in ({"I0": place, "I1": 0}, {"I0": 0, "I1": place}):  # loaded and stored
        text = tensors("f32", "64, 3", **places) + copy()
        assert not ran(text, inputs={"x": x}).outputs["y"].any()


def test_dimensions_beyond_the_first_are_rows_of_the_array() -> None:
    text = tensors("i32", "64, 2, 3", I0="0 1 2", I1="0 0 1") + copy()
    x = np.arange(384, dtype=np.int32).reshape(3, 2, 64)
    expected = np.zeros_like(x)
    expected[1, 0] = x[2, 1]
    np.testing.assert_array_equal(ran(text, inputs={"x": x}).outputs["y"], expected)


@pytest.mark.parametrize(("kind", "lanes"), [("u8", 256), ("i16", 128), ("f32", 64), ("i64", 32), ("u4", 512)])
def test_a_vector_holds_as_many_elements_as_fit(kind: str, lanes: int) -> None:
    text = tensors(kind, f"{lanes + 8}", I0=0, I1=0) + copy()
    found = ran(text, inputs={"x": "random:3"}).outputs["y"].astype(np.int64)
    again = ran(text.replace("st_tnsr", "st_tnsr_low"), inputs={"x": "random:3"}).outputs["y"].astype(np.int64)
    assert found[:lanes].any()
    assert not found[lanes:].any()
    np.testing.assert_array_equal(again[: lanes // 2], found[: lanes // 2])
    assert not again[lanes // 2 :].any()


def test_halves_and_ranges_keep_the_rest_of_the_register() -> None:
    text = tensors("i32", "64", "64, 4", I0=8, S1=0x507, **{f"I{k + 1}": f"0 {k}" for k in range(4)})
    x = np.arange(100, 164, dtype=np.int32)
    loads = ["ld_tnsr_low V0, 0x0, I0", "ld_tnsr_high V1, 0x0, I0", "ld_tnsr partial V2, 0x0, I0, LD_PARTIAL_REG"]
    loads.append("ld_tnsr_high partial V3, 0x0, I0, LD_PARTIAL_REG")
    text += "mov LD_PARTIAL_REG, S1; nop; nop; nop\n" + nops(7)
    text += "".join(f"nop; nop; mov.i32 V{k}, 0xffffffff; nop\n" for k in range(4)) + nops(4)
    text += "".join(f"{load}; nop; nop; nop\n" for load in loads) + nops(4)
    text += "".join(f"nop; nop; nop; st_tnsr 0x1, I{k + 1}, V{k}\n" for k in range(4)) + END
    expected = np.full((4, 64), -1, np.int32)
    expected[0, :32] = expected[1, 32:] = x[8:40]
    expected[2, 5:13] = x[8:16]  # 8 lanes from lane 5
    expected[3, 37:45] = x[8:16]  # the same within the upper half
    found = ran(text, "gaudi2", {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], expected)
    assert found.stale_reads == ()


def test_a_partial_store_writes_its_lanes_and_nothing_else() -> None:
    text = tensors("i32", "64", S31=0x1003, I0=0, I1=20).replace(" out ", " inout ")
    text += copy(store="st_tnsr partial 0x1, I1, V0, S31")
    x, y = np.arange(64, dtype=np.int32), np.full(64, -1, np.int32)
    expected = y.copy()
    expected[20:24] = x[16:20]
    np.testing.assert_array_equal(ran(text, "gaudi", {"x": x, "y": y}).outputs["y"], expected)


def test_tensor_numbers_from_registers() -> None:
    x = np.arange(64, dtype=np.int32)
    text = tensors("i32", "64", S27=0, S28=1, I0=0) + copy(load="ld_tnsr V0, S27, I0", store="st_tnsr S28, I0, V0")
    np.testing.assert_array_equal(ran(text, "gaudi", {"x": x}).outputs["y"], x)


def test_vector_predicates_mask_loads_by_byte_and_stores_by_element() -> None:
    text = tensors("i32", "64", I0=0)
    text += "nop; nop; mov.i32 V1, 0x7; nop\n"  # V1 starts at 7 in every lane
    text += f"nop; nop; mov VP1, 0xfffffff0; nop\n{nops(4)}"  # lane 0 of every eight is off
    text += f"ld_tnsr V1, 0x0, I0, VP1; nop; nop; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x1, I0, V1, !VP1\n{END}"
    x = np.arange(100, 164, dtype=np.int32)
    loaded = np.where(np.arange(64) % 8 == 0, 7, x)
    expected = np.where(np.arange(64) % 8 == 0, loaded, 0)
    np.testing.assert_array_equal(ran(text, "gaudi2", {"x": x}).outputs["y"], expected)


def test_predicates_as_data_are_one_bit_per_byte_element() -> None:
    text = tensors("u8", "256", I0=0) + copy(load="ld_tnsr VP1, 0x0, I0", store="st_tnsr 0x1, I0, VP1")
    x = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(ran(text, inputs={"x": x}).outputs["y"], x & 1)
    wide = text.replace(" u8 ", " u32 ").replace("[256]", "[64]")
    x32 = np.arange(64, dtype=np.uint32)
    target = chip("gaudi2", mask_of_wide_elements="one_bit_per_element")
    np.testing.assert_array_equal(ran(wide, target, {"x": x32}).outputs["y"], x32 & 1)


def test_direct_accesses_take_a_plain_address() -> None:
    text = tensors("f16", "300", I0=20, S4=0, S5=2)  # tensor 1 begins at 2 * 2**32
    text += f"gen_addr dt=int8 AD1, 0x0, I0; nop; nop; nop\n{nops(7)}nop; mov Z2, AD1; nop; nop\n{nops(7)}"
    text += copy(load="ld_tnsr direct V0, S2, S3", store="st_tnsr direct S4, S5, V0")
    x = np.arange(300, dtype=np.float16)
    found = ran(text, "gaudi2", {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], np.concatenate([x[20:148], np.zeros(172, np.float16)]))


# ------------------------------------------------------------------------------------------ elements and local memory


def test_elements_by_address() -> None:
    text = tensors("i16", "64, 2", "64", I0="3 1", I1=5)
    text += f"gen_addr AD1, 0x0, I0; nop; nop; gen_addr AD2, 0x1, I1\n{nops(7)}ld_g S1, AD1; nop; nop; nop\n"
    text += f"ld_g V2, AD1; nop; nop; nop\n{nops(6)}nop; nop; nop; st_g AD2, S1\n"
    text += "nop; nop; nop; st_l_v 0x0, V2\n// castsim: vlm 0x0 v out i16 [128]\n" + END
    x = np.arange(-64, 64, dtype=np.int16).reshape(2, 64)
    found = ran(text, "gaudi", {"x": x})
    assert found.outputs["y"][5] == x[1, 3]
    assert np.count_nonzero(found.outputs["y"]) == 1
    assert (found.outputs["v"] == x[1, 3]).all()  # all lanes
    assert found.stale_reads == ()


def test_an_element_into_an_index_register() -> None:
    text = "// castsim: tensor 0 x in i32 [8]\n// castsim: tensor 1 y out i32 [64, 9]\n"
    text += "// castsim: reg I0 = [2, 0, 0, 0, 0]\n// castsim: reg I1 = [0, 0, 0, 0, 0]\n"
    text += f"gen_addr dt=int8 AD1, 0x0, I0; nop; mov.i32 V0, 0x1; nop\n{nops(7)}"
    text += f"ld_g b00010 I1, AD1; nop; nop; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x1, I1, V0\n{END}"
    y = ran(text, "greco", {"x": np.full(8, 4, np.int32)}).outputs["y"]
    assert y[4].all()
    assert np.count_nonzero(y) == 64


def test_scalar_memory_and_predicates_in_it() -> None:
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += "nop; mov.i32 S1, 0x1234; nop; nop\nnop; mov SP1, 0x1; nop; nop\n" + nops(6)
    text += "nop; nop; nop; st_l 0x8, S1\nnop; nop; nop; st_l 0xc, SP1\nld_l S2, 0x8; nop; nop; nop\n"
    text += f"ld_l SP2, 0xc; nop; nop; nop\n{nops(4)}"
    text += f"nop; mov.i32 S3, S2, SP2; nop; nop\n{nops(4)}nop; nop; mov.i32 V0, S3; nop\n{nops(4)}"
    found = ran(f"{text}nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}", "goya")
    assert found.stale_reads == ()
    assert found.outputs["y"][0] == 0x1234


def test_vector_memory_in_halves_and_as_masks() -> None:
    head = "// castsim: vlm 0x0 x u8 [256]\n// castsim: vlm 0x100 y out u8 [512]\n"
    text = "ld_l_v_low V0, 0x0; nop; nop; nop\nld_l_v_high V1, 0x0; nop; nop; nop\n" + nops(6)
    text += "nop; nop; nop; st_l_v_low 0x100, V0\nnop; nop; nop; st_l_v_high 0x200, V1\n" + END
    x = np.arange(1, 257).astype(np.uint8)
    y = ran(head + text, "gaudi", {"x": x}).outputs["y"]
    np.testing.assert_array_equal(y[:128], x[:128])
    np.testing.assert_array_equal(y[384:], x[128:])
    assert not y[128:384].any()
    text = f"ld_l_v VP1, 0x20; nop; nop; nop\n{nops(7)}nop; nop; nop; st_l_v 0x100, VP1\n{END}"
    y = ran(head + text, "gaudi", {"x": x}).outputs["y"]
    np.testing.assert_array_equal(y[:32], x[32:64])  # 256 bits are 32 bytes


def test_goya_adds_two_address_parts() -> None:
    head = "// castsim: vlm 0x300 x i32 [64]\n// castsim: vlm 0x0 y out i32 [64]\n// castsim: reg S1 = 0x100\n"
    text = f"ld_l_v V0, S1, 0x200; nop; nop; nop\n{nops(6)}nop; nop; nop; st_l_v S1, 0xffffff00, V0\n{END}"
    x = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(ran(head + text, "goya", {"x": x}).outputs["y"], x)  # the sum is of 32 bits


def test_masked_store_of_gaudi2() -> None:
    head = "// castsim: vlm 0x0 x u8 [256]\n// castsim: vlm 0x100 y inout u8 [256]\n"
    text = f"ld_l_v V0, 0x0; nop; mov VP1, 0xff; nop\n{nops(4)}nop; nop; nop; st_l_v 0x100, V0, VP1\n{END}"
    x, y = np.arange(256).astype(np.uint8), np.full(256, 9, np.uint8)
    expected = np.where(np.arange(256) % 32 < 8, x, y)
    np.testing.assert_array_equal(ran(head + text, "gaudi2", {"x": x, "y": y}).outputs["y"], expected)


# tpc-defs.h by the facts page: type | op << 4 | location << 7 | rmw << 8 (gaudi2) or << 6 (before).
TYPES = {"i8": 0, "i16": 1, "i32": 2, "u8": 3, "u16": 4, "u32": 5, "bf16": 6, "f32": 7}
NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
         "bf16": ml_dtypes.bfloat16, "f32": np.float32}  # fmt: skip
OPERATIONS = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
FLAG = {"gaudi": 6, "gaudi2": 8}


def left(text: str, name: str, **inputs: np.ndarray) -> np.ndarray:
    """Schedule a text of one instruction a line, run it and return y."""
    program = assemble(schedule(text, "t.tpc", chip(name)).text, "t.tpc", chip(name), {})
    found = execute(program, inputs, values=True, checked=True, max_bundles=10**6)
    assert not [each for each in found.stale_reads if each.kind is not StaleReadKind.SAME_BUNDLE]
    return np.asarray(found.outputs["y"])


def stored(name: str, kind: str, word: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    where = "S29" if name == "gaudi" else "ST_RMW_REG"
    move = f"mov.i32 S29, {hex(word)}" if name == "gaudi" else f"mov.i32 %s.w, {hex(word)}\nmov {where}, %s.w"
    text = f"// castsim: target {name}\n// castsim: tensor 0 x in {kind} [{len(x)}]\n"
    text += f"// castsim: tensor 1 y inout {kind} [{len(x)}]\n// castsim: reg %i.c = [0, 0, 0, 0, 0]\n"
    store = f"st_tnsr rmw_sel 0x1, %i.c, %v.x, {where}\n"
    return left(f"{text}{move}\nld_tnsr %v.x, 0x0, %i.c\n{store}{store}halt\n", name, x=x, y=y)


@pytest.mark.parametrize("target", FLAG)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_memory_becomes_memory_and_value_joined_twice(target: str, operation: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    lanes = 256 // np.dtype(NUMPY[kind]).itemsize - 3
    x, y = ((rng.integers(-90, 90, lanes) / (1 if kind[0] in "iu" else 4)).astype(NUMPY[kind]) for _ in range(2))
    word = TYPES[kind] | list(OPERATIONS).index(operation) << 4 | 1 << FLAG[target]
    with np.errstate(over="ignore"):
        once = OPERATIONS[operation](y, x)
        want = OPERATIONS[operation](once, x)
    found = stored(target, kind, word, x, y)
    assert np.array_equal(found.view(np.uint8), want.astype(NUMPY[kind]).view(np.uint8))


def test_another_type_and_an_unknown_operation_are_refused() -> None:
    x = np.zeros(8, np.float32)
    with pytest.raises(IllegalError, match="a merging store of i8 to a tensor of f32"):
        stored("gaudi2", "f32", 1 << 8, x, x)
    with pytest.raises(IllegalError, match="operation 4"):
        stored("gaudi2", "f32", 7 | 4 << 4 | 1 << 8, x, x)


# ----------------------------------------------------------------------- descriptors in memory, loops that end together


# docs/reference/tpc.md section 3.1: base + size * tensor + 0x10 + e * dimension, the stride 4 behind.
PLACES = {
    "goya": (0x400, 0x4C, 0xC), "gaudi": (0x400, 0x38, 8), "gaudib": (0x400, 0x38, 8), "greco": (0, 0x38, 8),
    "gaudi2": (0, 0x50, 8),
}  # fmt: skip
DESCRIBED = """// castsim: target {name}
// castsim: tensor 0 x in f32 [64, 3, 5]
// castsim: tensor 1 y out i32 [64, 4]
// castsim: reg %i.c = [0, 0, 0, 0, 0]
"""


@pytest.mark.parametrize("name", PLACES)
def test_sizes_and_strides_are_read_where_the_compiler_reads_them(name: str) -> None:
    base, size, step = PLACES[name]
    offsets = [0x10, 0x10 + step, 0x10 + 2 * step, 0x10 + 2 * step + 4]
    lines = []
    for row, offset in enumerate(offsets):
        lines += [f"ld_l mmio %s.w, {hex(base + offset)}", "mov.i32 %v.w, %s.w", f"set_indx %i.c, b00010, {row}"]
        lines += ["st_tnsr 0x1, %i.c, %v.w"]
    text = DESCRIBED.format(name=name) + "\n".join([*lines, "halt\n"])
    found = left(text, name, x=np.zeros((5, 3, 64), np.float32))
    assert found[:, 0].tolist() == [64, 3, 5, 64 * 3]
    second = text.replace(hex(base + 0x10), hex(base + size + 0x10))
    assert left(second, name, x=np.zeros((5, 3, 64), np.float32))[0, 0] == 64


@pytest.mark.parametrize("word", ["0xf0", "0x9998"])
def test_a_word_that_is_not_modelled_is_refused_with_its_address(word: str) -> None:
    load = f"ld_l mmio %s.w, {word}\nmov.i32 %v.w, %s.w\nst_tnsr 0x1, %i.c, %v.w\nhalt\n"
    text = DESCRIBED.format(name="gaudi2") + load
    with pytest.raises(IllegalError, match=word):
        left(text, "gaudi2", x=np.zeros((5, 3, 64), np.float32))


@pytest.mark.parametrize("name", ["gaudi", "gaudi2"])
def test_a_body_may_overwrite_the_bound_and_jump_over_the_loop_that_ends_it(name: str) -> None:
    base, _, step = PLACES[name]
    text = DESCRIBED.format(name=name) + (
        f"ld_l mmio %s.n, {hex(base + 0x10 + step)}\nmov.i32 %v.t, 0x0\n"
        "loop 0, %s.n, 1, <, End\n"
        "mov.i32 %s.n, 0x0\n"
        "cmp_eq.i32 %sp.p, S32, 0x1\n"
        "jmpr Over, %sp.p\n"
        "loop 0, 5, 1, <, Inner\nadd.i32 %v.t, %v.t, 0x1\nInner:\n"
        "Over:\nEnd:\nst_tnsr 0x1, %i.c, %v.t\n"
        "mov.i32 %v.t, %s.n\nset_indx %i.c, b00010, 1\nst_tnsr 0x1, %i.c, %v.t\nhalt\n"
    )
    found = left(text, name, x=np.zeros((5, 3, 64), np.float32))
    assert found[0, 0] == 10  # three trips, the middle one jumps over
    assert found[1, 0] == 0

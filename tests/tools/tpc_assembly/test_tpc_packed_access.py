"""Packed stores and unpacked loads against an index model written out element by element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from kit.tpc_machine import END, nops, ran
from kit.tpc_text import GENERATIONS, dialect, plain, program, table, target

from castsim.engines import simulate
from castsim.isa.errors import IllegalError
from castsim.isa.tpc.parser import canonical_text
from castsim.tools.tpc_assembly.asm import encoded_target
from castsim.tools.tpc_binary.assembler import assemble, disassemble
from castsim.tools.tpc_binary.encoding_tables import encoding_of

BITS = 2048
RNG = np.random.default_rng(31)


@dataclass(frozen=True)
class Width:
    """A word of widths: wide and narrow bits, and the value of its field (docs/reference/tpc.md section 2.6)."""

    wide: int
    narrow: int
    code: int

    @property
    def count(self) -> int:
        return BITS // self.narrow

    def lane(self, element: int) -> int:
        """The register element of a memory element: with element = m*k + i, r*i + k."""
        ratio = self.wide // self.narrow
        k, i = divmod(element, self.count // ratio)
        return ratio * i + k


WIDTHS = (Width(32, 16, 0), Width(16, 8, 1), Width(32, 8, 2), Width(8, 4, 3))
TYPED = ("greco", "gaudi2")
UNTYPED = ("gaudi", "gaudib")
PACKS = [(g, w) for g in TYPED for w in WIDTHS] + [(g, WIDTHS[0]) for g in UNTYPED]
UNPACKS = [(g, w) for g in TYPED for w in WIDTHS]
TYPES = {16: "u16", 8: "u8", 4: "u4"}


def pack_words(generation: str, width: Width) -> str:
    word = f"PCK_{width.wide}_TO_{width.narrow} " if generation in TYPED and width.code else ""
    return f"{word}pack"


def unpack_words(width: Width) -> str:
    return f"UNPCK_{width.narrow}_TO_{width.wide} unpack" if width.code else "unpack"


def id_of(value: object) -> str:
    return f"{value.wide}_{value.narrow}" if isinstance(value, Width) else str(value)


def numbers(width: Width, count: int) -> np.ndarray:
    return RNG.integers(1, 1 << width.narrow, count).astype(np.uint16 if width.narrow == 16 else np.uint8)


def kernel(width: Width, load: str, store: str, first: tuple[int, int], sizes: tuple[int, int]) -> str:
    """One vector from x through V0 to y; `first` are the coordinates of load and store, `sizes` of the tensors."""
    kind = TYPES[width.narrow]
    return (
        f"// castsim: tensor 0 x in {kind} [{sizes[0]}]\n// castsim: tensor 1 y out {kind} [{sizes[1]}]\n"
        f"// castsim: reg I0 = [{first[0]}, 0, 0, 0, 0]\n// castsim: reg I1 = [{first[1]}, 0, 0, 0, 0]\n"
        f"{load} V0, 0x0, I0; nop; nop; nop\n{nops(3)}nop; nop; nop; {store} 0x1, I1, V0\n{END}"
    )


STARTS = (0, 5, -3, -1000, 40)
"""Coordinates of a first element: whole accesses, and such that lie before, across and behind the ends."""
ACCESSES = [("store", *each) for each in PACKS] + [("load", *each) for each in UNPACKS]
MASKED = [each for each in ACCESSES if each[0] == "load" or each[1] == "gaudi2"]
"""Only Gaudi2 stores under a vector predicate."""


@pytest.mark.parametrize(("access", "generation", "width"), ACCESSES, ids=id_of)
@pytest.mark.parametrize("start", STARTS)
def test_packed_store_and_unpacked_load(access: str, generation: str, width: Width, start: int) -> None:
    size = width.count + 20
    x, expected = numbers(width, size), np.zeros(size, np.uint16 if width.narrow == 16 else np.uint8)
    inside = [each for each in range(width.count) if 0 <= start + each < size]
    lanes = [width.lane(each) for each in inside]
    if access == "store":
        x = x[: width.count]
        text = kernel(width, "ld_tnsr", f"st_tnsr {pack_words(generation, width)}", (0, start), (width.count, size))
        expected[[start + each for each in inside]] = x[lanes]
    else:
        text = kernel(width, f"ld_tnsr {unpack_words(width)}", "st_tnsr", (start, 0), (size, width.count))
        expected = expected[: width.count]
        expected[lanes] = x[[start + each for each in inside]]
    np.testing.assert_array_equal(ran(text, generation, {"x": x}).outputs["y"], expected)


def masked(width: Width, load: str, store: str) -> str:
    """V0 begins as all ones, VP1 is every third byte, both accesses run under it where they name it."""
    kind = TYPES[width.narrow]
    return (
        f"// castsim: tensor 0 x in {kind} [{width.count}]\n// castsim: tensor 1 y out {kind} [{width.count}]\n"
        "// castsim: tensor 2 m in u8 [256]\n"
        f"ld_tnsr V1, 0x2, I0; nop; mov.i32 V0, 0xffffffff; nop\n{nops(4)}nop; nop; cmp_neq.u8 VP1, V1, 0x0; nop\n"
        f"{nops(7)}{load}; nop; nop; nop\n{nops(4)}nop; nop; nop; {store}\n{END}"
    )


@pytest.mark.parametrize(("access", "generation", "width"), MASKED, ids=id_of)
@pytest.mark.parametrize("polarity", ["", "!"])
def test_accesses_under_a_mask_of_the_register(access: str, generation: str, width: Width, polarity: str) -> None:
    """A load is masked byte by byte, so whole elements are."""
    size = max(1, width.narrow // 8) if access == "load" else 1
    x, m = numbers(width, width.count), np.repeat(RNG.integers(0, 2, 256 // size), size).astype(np.uint8)
    load, store = "ld_tnsr V0, 0x0, I0", "st_tnsr 0x1, I0, V0"
    if access == "load":
        load = f"ld_tnsr {unpack_words(width)} V0, 0x0, I0, {polarity}VP1"
    else:
        store = f"st_tnsr {pack_words(generation, width)} 0x1, I0, V0, {polarity}VP1"
    expected = np.full(width.count, (1 << width.narrow) - 1 if access == "load" else 0, x.dtype)
    for element in range(width.count):
        lane = width.lane(element)
        if m[lane * width.narrow // 8] != (polarity == "!"):
            expected[lane if access == "load" else element] = x[element if access == "load" else lane]
    found = ran(masked(width, load, store), generation, {"x": x, "m": m}).outputs["y"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("width", WIDTHS, ids=id_of)
def test_plain_addresses(width: Width) -> None:
    x, kind = numbers(width, width.count), TYPES[width.narrow]
    if width.narrow < 8:
        return  # plain addresses do not reach elements of half a byte
    text = (
        f"// castsim: tensor 0 x in {kind} [{width.count}]\n// castsim: tensor 1 y out {kind} [{width.count}]\n"
        "// castsim: reg S1 = 0x1\n// castsim: reg S2 = 0x2\n"
        f"ld_tnsr {{load}} V0, S0, S1; nop; nop; nop\n{nops(3)}nop; nop; nop; st_tnsr {{store}} S0, S2, V0\n{END}"
    )
    order = [width.lane(element) for element in range(width.count)]
    packed = text.format(load="direct", store=f"{pack_words('gaudi2', width)} direct")
    np.testing.assert_array_equal(ran(packed, "gaudi2", {"x": x}).outputs["y"], x[order])
    unpacked = text.format(load=f"{unpack_words(width)} direct", store="direct")
    np.testing.assert_array_equal(ran(unpacked, "gaudi2", {"x": x}).outputs["y"], x[np.argsort(order)])


@pytest.mark.parametrize(("access", "generation", "width"), ACCESSES, ids=id_of)
@pytest.mark.parametrize("half", ["", "_low", "_high"])
def test_packed_accesses_as_text_and_bits(access: str, generation: str, width: Width, half: str) -> None:
    if access == "store":
        words, form, switch = pack_words(generation, width), "nop; nop; nop; st_tnsr{}{} 0x1, I3, V2", 1 << 2
    else:
        words, form, switch = unpack_words(width), "ld_tnsr{}{} V16, 0x0, I5; nop; nop; nop", 1 << 4
    text, encoding = form.format(half, f" {words}"), encoding_of(target(generation))
    old = text.replace(words, " ".join(reversed(words.split())))
    for written in (text, old, text.lower().replace(" v", " V").replace(" i", " I")):
        assert plain(canonical_text(written, dialect(generation))) == plain(text)
    plainly, code = (assemble(program(each, generation), encoding).code for each in (form.format(half, ""), text))
    assert [plain(line.text) for line in disassemble(code, encoding).lines] == [plain(text)]
    assert switches(code, plainly, generation, access) == switch | width.code << (4 if access == "store" else 1)


def switches(code: bytes, plainly: bytes, generation: str, slot: str) -> int:
    """The bits of the switch field that differ from the plain access, by the published positions."""
    layout = "gen12_256" if generation in UNTYPED else "gen34_256"
    rows = [r for r in table("tpc_encoding_fields.csv") if r["layout"] == layout and r["slot"] == slot]
    differing = int.from_bytes(code, "little") ^ int.from_bytes(plainly, "little")
    found = 0
    for row in rows:
        if row["field"].startswith("switches"):
            low = int(row["field"].partition("[")[2].rstrip("]").partition(":")[2] or 0)
            start, size = int(row["start_bit"]), int(row["size_bits"])
            found |= (differing >> start & (1 << size) - 1) << low
            differing &= ~(((1 << size) - 1) << start)
    assert differing == 0
    return found


def test_generations_without_the_form_refuse_it() -> None:
    for generation, text in (
        ("goya", "nop; nop; nop; st_tnsr pack 0x1, I0, V0"),
        ("gaudi", "nop; nop; nop; st_tnsr PCK_16_TO_8 pack 0x1, I0, V0"),
        ("gaudib", "ld_tnsr unpack V0, 0x0, I0; nop; nop; nop"),
        ("goya", "ld_tnsr unpack V0, 0x0, I0; nop; nop; nop"),
    ):
        with pytest.raises(IllegalError, match=rf"{generation} has no switch \w+ on (st|ld)_tnsr") as refusal:
            program(text, generation)
        assert refusal.value.span is not None


HEAD = "// castsim: tensor 0 x in {0} [600]\n// castsim: tensor 1 y out {0} [600]\n// castsim: reg S1 = 0x7\n"
SETTING = f"mov LD_PARTIAL_REG, S1; nop; nop; nop\nnop; mov ST_PARTIAL_REG, S1; nop; nop\n{nops(8)}"


@pytest.mark.parametrize(
    "line",
    [
        *(f"ld_tnsr{load}; nop; nop; nop" for load in (
            "_low unpack V0, 0x0, I0", "_high unpack V0, 0x0, I0", " partial unpack V0, 0x0, I0, LD_PARTIAL_REG")),
        *(f"nop; nop; nop; st_tnsr{store}" for store in (
            "_low pack 0x1, I0, V0", "_high pack 0x1, I0, V0", " partial pack 0x1, I0, V0, ST_PARTIAL_REG",
            " pack 0x1, I0, VP1")),
    ],
)  # fmt: skip
def test_what_is_open_is_refused_but_has_a_time(line: str) -> None:
    text = f"{HEAD.format('u16')}{SETTING}{line}\n{END}"
    with pytest.raises(IllegalError, match=r"which elements (un)?pack moves with .* is not documented") as refusal:
        ran(text, "greco", {"x": "zeros"})
    assert refusal.value.legal
    assert ran(text, "greco", values=False).tree


@pytest.mark.parametrize(("kind", "legal"), [("f32", "u16"), ("i8", "bf16")])
def test_the_tensor_holds_the_narrow_elements(kind: str, legal: str) -> None:
    for line in ("ld_tnsr unpack V0, 0x0, I0; nop; nop; nop", "nop; nop; nop; st_tnsr pack 0x1, I0, V0"):
        with pytest.raises(IllegalError, match=f"32.*16|16.*32.*are {kind}") as refusal:
            ran(f"{HEAD.format(kind)}{line}\n{END}", "greco", {"x": "zeros"})
        assert refusal.value.legal == ("a tensor of 16-bit elements",)
        assert ran(f"{HEAD.format(legal)}{line}\n{END}", "greco", {"x": "zeros"}).outputs


@pytest.mark.parametrize("generation", GENERATIONS[1:])
def test_the_time_is_that_of_the_plain_access(generation: str) -> None:
    width = WIDTHS[0]
    chip, _ = encoded_target(generation)
    times = set()
    for load in ("", *([unpack_words(width)] if generation in TYPED else [])):
        for store in ("", pack_words(generation, width)):
            text = kernel(width, f"ld_tnsr {load}", f"st_tnsr {store}", (0, 0), (128, 128))
            found = ran(text, generation, values=False)
            times.add(simulate(found.tree, chip).total)
    assert len(times) == 1

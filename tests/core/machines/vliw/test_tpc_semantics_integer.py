"""CONVERT_INT*: every published row, mode, lane and kind of shift operand against the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from kit.tpc_semantics_cases import POLYNOMIAL, instruction, prepared, run, samples, state, vector
from kit.tpc_text import GENERATIONS, table, target
from oracle_formats import fmt
from oracle_tpc import convert_int, convert_lanes, element, stepped

from castsim.isa.errors import IllegalError, ReadError
from castsim.machines.vliw.semantics import prepare
from castsim.machines.vliw.semantics.operands import OperandValues
from castsim.targets.description import with_options

ROWS = table("tpc_convert_int_pairs.csv")
RNG = np.random.default_rng(24)
WORDS = [0, 0xFFFFFFFF, *(int(word) for word in RNG.integers(0, 1 << 32, 62))]
MASK = RNG.integers(0, 2, 256).astype(bool)
INCOME = RNG.integers(0, 256, 256).astype(np.uint8)
SHIFT_BYTES = np.array([0, 0, *range(0, -41, -1), -127, -128, 1, 2, 5, 31, 127], np.int8)
OLD = ("goya", "gaudi", "gaudib")


def name_of(row: dict[str, str]) -> str:
    return "-".join((row["gen"], row["unit"], row["src"], row["dst"]))


def lanes(row: dict[str, str]) -> list[int | None]:
    single = list(range(int(row["lane_sel_max"]) + 1)) if row["lane_sel_max"] else []
    return [*single, *([None] if "all_lanes" in row["num_lanes_options"] else [])]


def text(row: dict[str, str], lane: int | None, mode: str, shift: str) -> str:
    width = f"to_{fmt(row['dst']).bits}" if "32" in row["mnemonic"] else ""
    group = {1: "V", 2: "D", 4: "A"}[fmt(row["src"]).bits // fmt(row["dst"]).bits if lane is None else 1]
    chosen = "" if "8" in row["mnemonic"] else "all_lanes" if lane is None else f"lane_sel={lane}"
    return f"{row['mnemonic'].lower()} {chosen} {mode.lower()} {width} V1, {group}4, {shift}"


def values(row: dict[str, str], lane: int | None, start: int) -> list[np.ndarray]:
    bits = fmt(row["src"]).bits
    count = bits // fmt(row["dst"]).bits if lane is None else 1
    chosen = np.take(np.array(samples(row["src"])), range(start, start + count * 2048 // bits), mode="wrap")
    return [vector(part, bits) for part in chosen.reshape(count, -1)]


def shift_vector(bits: int) -> np.ndarray:
    """Shifts as elements of 8, 16 or 32 bits; wide ones hold numbers that no byte has."""
    numbers = SHIFT_BYTES.astype(np.int64) if bits == 8 else np.append(SHIFT_BYTES.astype(np.int64), [-300, 300])
    return vector(numbers % (1 << bits), bits)


def signed(code: int, bits: int) -> int:
    return code - (1 << bits) if code >> (bits - 1) else code


def shift_rule(row: dict[str, str], lane: int | None, shifts: np.ndarray) -> Callable[[int, int], int]:
    """Return the shift of (source element, destination element): docs/reference/tpc.md section 2.4."""
    raw = [shifts.tobytes()]
    value_bits, result_bits = fmt(row["src"]).bits, fmt(row["dst"]).bits
    if row["gen"] in OLD:
        return lambda place, where: signed(element(raw, place * value_bits // 8, 8), 8)
    if result_bits == 4:  # the table gives bytes to all_lanes, which are as wide as the values
        return lambda place, where: signed(element(raw, place, 8), 8)
    if lane is None:
        return lambda place, where: signed(element(raw, where, result_bits), result_bits)
    return lambda place, where: signed(element(raw, place, value_bits), value_bits)


def check(
    row: dict[str, str], lane: int | None, mode: str, start: int, mask: np.ndarray | None, shift: int | str
) -> None:
    """Compare one instruction with the lane model. `shift`: a number (immediate), or S or V for a register."""
    read = values(row, lane, start)
    sources: dict[str, object] = {"src_a": read[0] if len(read) == 1 else tuple(read)}
    rule: Callable[[int, int], int]
    if shift == "V":
        shifts = shift_vector(8 if row["gen"] in OLD else fmt(row["dst" if lane is None else "src"]).bits or 8)
        sources["src_b"] = shifts
        rule = shift_rule(row, lane, shifts)
        written = "V9"
    elif shift == "S":
        sources["src_b"] = 0xFFFFFFFB  # -5, also as a byte
        rule, written = (lambda place, where: -5), "S9"
    else:
        assert isinstance(shift, int)
        number = shift
        rule, written = (lambda place, where: number), str(shift)
    machine = state(words=WORDS)
    found = prepared(text(row, lane, mode, written), row["gen"])
    effects = found(OperandValues(sources, INCOME, True if mask is None else mask), machine)  # type: ignore[arg-type]

    def one(code: int, number: int, place: int, where: int, register: int) -> int:
        word = WORDS[number % 64] if mode == "SR" else None
        return convert_int(code, row["src"], row["dst"], rule(place, where), mode, word)

    bits = fmt(row["src"]).bits, fmt(row["dst"]).bits
    memory = [one.tobytes() for one in read]
    expected = convert_lanes(memory, [INCOME.tobytes()], bits, lane, None if mask is None else mask.tolist(), one)
    assert effects.result.tobytes() == expected[0], text(row, lane, mode, written)
    assert (effects.vector_lfsr is not None) == (mode == "SR")
    if mode == "SR":
        assert effects.vector_lfsr.tolist() == stepped(WORDS, POLYNOMIAL)


@pytest.mark.parametrize("row", [row for row in ROWS if row["unit"] == "vpu"], ids=name_of)
def test_vector(row: dict[str, str]) -> None:
    for lane in lanes(row):
        for mode in row["rounding_modes"].split(";"):
            for shift in (0, -1, -3, "S"):
                check(row, lane, mode, 0 if lane is None else 64 * lane, None, shift)
            if fmt(row["dst"]).bits > 4:
                check(row, lane, mode, 32, MASK, "V")
        check(row, lane, "RHNE", 64, MASK, -2)
        check(row, lane, "RHNE", 128, ~MASK, 3)


@pytest.mark.parametrize("row", [row for row in ROWS if row["unit"] == "spu"], ids=name_of)
def test_scalar(row: dict[str, str]) -> None:
    for mode in row["rounding_modes"].split(";"):
        random = 0x12345678 if mode == "SR" else None
        width = f"to_{fmt(row['dst']).bits}" if "32" in row["mnemonic"] else ""
        head = f"{row['mnemonic'].lower()} {mode.lower()} {width}"
        by_register = prepared(f"{head} S1, S2, S3", row["gen"], "spu")
        for code in samples(row["src"])[::3]:
            for shift in (0, -1, -7, -40, 2):
                expected = convert_int(code, row["src"], row["dst"], shift, mode, random)
                machine = state(scalar=0x12345678)
                effects = by_register(OperandValues({"src_a": code, "src_b": shift & 0xFFFFFFFF}, 0), machine)
                assert effects.result == expected, (head, hex(code), shift)
                assert (effects.scalar_lfsr is None) == (random is None)
        immediate = prepared(f"{head} S1, S2, -4", row["gen"], "spu")
        assert immediate(OperandValues({"src_a": 0x5A}, 0), state(scalar=0x12345678)).result == convert_int(
            0x5A, row["src"], row["dst"], -4, mode, random
        )


def test_doubtful_shifts_are_remarked_or_refused() -> None:
    line = "convert_int32 lane_sel=0 rhne to_16 V1, V2, 3"
    arguments = {"income": INCOME, "src_a": vector(5, 32)}
    got = run(line, "goya", **arguments)
    assert got.result.view("<u2")[0] == 40
    assert "above 0" in got.remarks[0]
    strict = with_options(target("goya"), {"positive_shift": "refuse"})
    with pytest.raises(IllegalError, match="above 0"):
        run(line, "goya", chip=strict, **arguments)
    # A lane that the predicate leaves out does not count.
    shifts = vector([3, 0], 32)
    by_vector = "convert_int32 lane_sel=0 rhne to_16 V1, V2, V3"
    every_other = np.arange(256) % 8 >= 4
    assert not run(by_vector, "greco", **arguments, src_b=shifts, predicate=every_other).remarks
    assert run(by_vector, "greco", **arguments, src_b=shifts, predicate=~every_other).remarks
    # Bytes of a lane that differ.
    assert run(by_vector, "goya", **arguments, src_b=vector(0xFF, 32)).result.view("<u2")[0] == 2
    strict = with_options(target("goya"), {"vector_shift_byte": "refuse"})
    with pytest.raises(IllegalError, match="which byte"):
        run(by_vector, "goya", chip=strict, **arguments, src_b=vector(0xFF, 32))
    assert run(by_vector, "goya", chip=strict, **arguments, src_b=vector(0xFFFFFFFF, 32)).result.view("<u2")[0] == 2


def test_what_the_table_lacks_is_refused() -> None:
    for generation in GENERATIONS:
        chip = target(generation)
        good = instruction("convert_int32 lane_sel=0 rhne to_16 V1, V2, 0", generation)
        strict = with_options(chip, {"lane_beyond_pair": "refuse"})
        for lane in (2, 3):
            switches = tuple((key, lane if key == "lane_sel" else value) for key, value in good.switches)
            (notice,) = prepare(replace(good, switches=switches), chip).notices
            assert notice.kind == "lane beyond the pair"
            with pytest.raises(IllegalError, match=f"no lane_sel={lane}") as refusal:
                prepare(replace(good, switches=switches), strict)
            assert refusal.value.legal == ("lane_sel=0", "lane_sel=1")
        for word in {"rz", "rhaz", "csr", "sr_rne"} - set(chip.integer_rounding.modes):
            switches = tuple((key, word if key == "rounding" else value) for key, value in good.switches)
            with pytest.raises(IllegalError, match=f"no rounding mode {word}"):
                prepare(replace(good, switches=switches), chip)
        switches = tuple((key, "to_4" if key == "width" else value) for key, value in good.switches)
        with pytest.raises(IllegalError, match="no convert_int32 to_4") as refusal:
            prepare(replace(good, switches=switches), chip)
        assert set(refusal.value.legal) == {"to_8", "to_16"}
    for line, match in (
        ("convert_int32 all_lanes rhne to_16 V1, V3, 0", "must be the first"),
        ("convert_int32 all_lanes rhne to_16 V1, A4, 0", "has 4"),
        ("convert_int32 all_lanes rhne to_16 D2, D4, 0", "has 2"),
        ("convert_int32 all_lanes rhne to_16 V1, D4, D6", "has 2"),
        ("convert_int32 single_lane rhne to_16 V1, D4, 0", "has 2"),
    ):
        with pytest.raises(IllegalError, match=match):
            prepare(instruction(line, "greco"), target("greco"))
    with pytest.raises((IllegalError, ReadError)):
        instruction("convert_int8 rhne V1, D2, 0", "gaudi")


def test_the_scalar_shift_is_a_byte_at_first_and_a_word_later() -> None:
    """255 is -1 where eight bits count (docs/reference/tpc.md section 2.4)."""
    for generation, expected in (("goya", 50), ("gaudib", 50), ("greco", 127), ("gaudi2", 127)):
        got = run("convert_int32 rhne to_8 S1, S2, S3", generation, slot="spu", income=0, src_a=100, src_b=255)
        assert got.result == expected

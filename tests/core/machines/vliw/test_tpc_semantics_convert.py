"""Every published conversion and rounding in every mode and form against the oracle; everything else is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from kit.tpc_bundles import encoding
from kit.tpc_semantics_cases import POLYNOMIAL, SPELLED, instruction, prepared, run, samples, state, vector
from kit.tpc_text import GENERATIONS, table, target
from oracle_formats import FLOATS, fmt
from oracle_tpc import convert, convert_lanes, nearby, stepped

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.tpc.parser import parse, print_program
from castsim.machines.vliw.semantics import prepare
from castsim.machines.vliw.semantics.operands import OperandValues, State
from castsim.targets.description import with_options
from castsim.tools.tpc_binary.bundle_encoding import decode_bundle, encode_bundle

ROWS = table("tpc_convert_pairs.csv")
COMPILER_ROWS = table("tpc_convert_compiler_only.csv")
VECTOR_ROWS = [row for row in ROWS if row["unit"] == "vpu"]
SCALAR_ROWS = [row for row in ROWS if row["unit"] == "spu"]
RNG = np.random.default_rng(2025)
WORDS = [0, 0xFFFFFFFF, 1, 0x80000000, *(int(word) for word in RNG.integers(0, 1 << 32, 60))]
MASK = RNG.integers(0, 2, 256).astype(bool)
INCOME = RNG.integers(0, 256, (4, 256)).astype(np.uint8)


def name_of(row: dict[str, str]) -> str:
    return f"{row['gen']}-{row['src']}-{row['dst']}"


def modes(row: dict[str, str]) -> list[str]:
    return row["rounding_modes"].split(";")


@dataclass(frozen=True)
class Form:
    """One way to write a conversion: its switches, the lane (None: all), registers of the equal-width forms."""

    switches: str
    lane: int | None = 0
    registers: int = 1


def forms(row: dict[str, str]) -> Iterator[Form]:
    if not row["num_lanes_options"]:
        yield Form("")
    if "single_lane" in row["num_lanes_options"]:
        for lane in range(int(row["lane_sel_max"]) + 1):
            yield Form(f"lane_sel={lane}", lane)
    if "all_lanes" in row["num_lanes_options"]:
        yield Form("all_lanes", None)
    for switch in ("x2", "x4"):
        if switch in row["switches"].split(";"):
            yield Form(switch, registers=int(switch[1]))


def counts(row: dict[str, str], form: Form) -> tuple[int, int]:
    """Registers read and written."""
    bits = fmt(row["src"]).bits, fmt(row["dst"]).bits
    if bits[0] == bits[1]:
        return form.registers, form.registers
    group = max(bits) // min(bits) if form.lane is None else 1
    return (group, 1) if bits[0] > bits[1] else (1, group)


def operand(first: int, count: int) -> str:
    return f"{ {1: 'V', 2: 'D', 4: 'A'}[count] }{first}".replace(" ", "")


def text(row: dict[str, str], form: Form, mode: str, clip: bool = False) -> str:
    sources, destinations = counts(row, form)
    return (
        f"convert.{row['src']} {form.switches} target_type={SPELLED[row['dst']]} {mode.lower()} "
        f"{'clip_fp' if clip else ''} {operand(8, destinations)}, {operand(16, sources)}"
    )


def registers(name: str, count: int, start: int) -> list[np.ndarray]:
    bits = fmt(name).bits
    lanes = 2048 // bits
    chosen = np.take(np.array(samples(name), np.uint64), range(start, start + lanes * count), mode="wrap")
    if bits == 4:
        pairs = chosen.astype(np.uint8).reshape(-1, 2)
        chosen, bits = (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint64), 8
    return [vector(part, bits) for part in chosen.reshape(count, -1)]


def grouped(parts: list[np.ndarray]) -> object:
    return parts[0] if len(parts) == 1 else tuple(parts)


def check(
    row: dict[str, str], form: Form, written: str, meant: str, machine: State, start: int, *,
    mask: np.ndarray | None = None, clip: bool = False, bias: int = 7,
) -> None:  # fmt: skip
    """Run one instruction and the lane model; `meant` is the mode that `written` comes to."""
    sources, destinations = counts(row, form)
    read, income = registers(row["src"], sources, start), list(INCOME[:destinations])
    words = [int(word) for word in machine.vector_lfsr]
    is_random = meant in ("SR", "SR_RNE")

    def one(code: int, number: int, place: int, where: int, register: int) -> int:
        random = words[number % 64] if is_random else None
        return convert(code, row["src"], row["dst"], meant, random, clip=clip, bias=bias)

    bits = fmt(row["src"]).bits, fmt(row["dst"]).bits
    expected = convert_lanes(
        [register.tobytes() for register in read],
        [register.tobytes() for register in income],
        bits,
        form.lane,
        None if mask is None else mask.tolist(),
        one,
    )
    found = prepared(text(row, form, written, clip), row["gen"])
    effects = found(OperandValues({"src_a": grouped(read)}, grouped(income), True if mask is None else mask), machine)
    got = effects.result if isinstance(effects.result, tuple) else (effects.result,)
    assert [register.tobytes() for register in got] == expected, (text(row, form, written, clip), meant)
    assert (effects.vector_lfsr is not None) == is_random
    if is_random:
        assert effects.vector_lfsr.tolist() == stepped(words, POLYNOMIAL)


@pytest.mark.parametrize("row", VECTOR_ROWS, ids=name_of)
def test_vector_conversion(row: dict[str, str]) -> None:
    chip = target(row["gen"])
    register = "convert_round" if "convert_round" in chip.configuration else "round"
    for index, form in enumerate(forms(row)):
        lanes = counts(row, form)[0] * 2048 // fmt(row["src"]).bits
        for mode in modes(row):
            machine, meant = state(words=WORDS), mode
            if mode == "CSR":
                code = chip.convert_rounding.modes["ru"].code
                machine, meant = state({register: code}, WORDS), "RU"
            # All samples in the first form; random modes, where the oracle computes every lane anew, take half of them.
            step = lanes if meant not in ("SR", "SR_RNE") else max(lanes, 128)
            for start in range(0, 256, step) if index == 0 else (64 * index,):
                check(row, form, mode, meant, machine, start)
        check(row, form, "RHNE", "RHNE", state(), 32, mask=MASK)
        check(row, form, "CSR", "RHNE", state(), 96, mask=~MASK)  # the register resets to nearest
        if "clip_fp" in row["switches"]:
            for mode in ("RHNE", "RU", "SR"):
                check(row, form, mode, mode, state(words=WORDS), 0, clip=True)
            check(row, form, "RZ", "RZ", state(), 64, clip=True, mask=MASK)


@pytest.mark.parametrize("row", SCALAR_ROWS, ids=name_of)
def test_scalar_conversion(row: dict[str, str]) -> None:
    word, income = 0x9E3779B9, 0xA5A5A5A5
    values = samples(row["src"]) if row["src"] != "i64" else (0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1)
    for index, mode in enumerate(modes(row)):
        meant = "RHNE" if mode == "CSR" else mode
        random = word if meant in ("SR", "SR_RNE") else None
        line = f"convert.{row['src']} target_type={SPELLED[row['dst']]} {mode.lower()} S2, S4"
        found = prepared(line, row["gen"], "spu")
        machine = state(scalar=word)
        for code in values[index % 4 :: 4]:
            upper = 0xDEADBEEF << fmt(row["src"]).bits & 0xFFFFFFFF if row["src"] != "i64" else 0
            effects = found(OperandValues({"src_a": code | upper}, income), machine)
            assert effects.result == convert(code, row["src"], row["dst"], meant, random), (line, hex(code))
            assert effects.scalar_lfsr == (None if random is None else stepped([word], POLYNOMIAL)[0])
            assert effects.vector_lfsr is None


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_code_of_the_rounding_register(generation: str) -> None:
    """CSR takes the mode whose code the register holds; a code that is no mode is refused."""
    chip = target(generation)
    register = "convert_round" if "convert_round" in chip.configuration else "round"
    row = next(row for row in VECTOR_ROWS if (row["gen"], row["src"], row["dst"]) == (generation, "f32", "i16"))
    for code in range(8):
        word = next((w.upper() for w, mode in chip.convert_rounding.modes.items() if mode.code == code), None)
        machine = state({register: code, "round": code}, WORDS)
        if word in (None, "CSR"):
            with pytest.raises(IllegalError, match="not a rounding mode") as refusal:
                check(row, Form(""), "CSR", "RHNE", machine, 0)
            assert any("(rhne)" in legal for legal in refusal.value.legal)
        else:
            check(row, Form(""), "CSR", word, machine, 64)


@pytest.mark.parametrize("bias", [0, 3, 11, 15])
def test_the_bias_register_moves_f8_143(bias: int) -> None:
    machine = state({"f8_143_bias": bias}, WORDS)
    for row in VECTOR_ROWS:
        if row["gen"] == "gaudi2" and "f8_143" in (row["src"], row["dst"]):
            form = list(forms(row))[-1]
            for mode in ("RHNE", "RD", "SR", "SR_RNE"):
                check(row, form, mode, mode, machine, 0, bias=bias)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_nearbyint(generation: str) -> None:
    chip = target(generation)
    for name in (name for name in chip.elements.formats if name in FLOATS):
        bits = fmt(name).bits
        for word, mode in chip.convert_rounding.modes.items():
            meant = "RHNE" if mode.rounding is None else word.upper()
            random = meant in ("SR", "SR_RNE")
            for start in range(0, 256, 2048 // bits):
                (read,) = registers(name, 1, start)
                got = run(f"nearbyint.{name} {word} V1, V2", generation, income=INCOME[0], src_a=read,
                          machine=state(words=WORDS), predicate=MASK)  # fmt: skip
                given = np.frombuffer(read.tobytes(), f"<u{bits // 8}").tolist()
                expected = vector([nearby(code, name, meant, WORDS[i % 64] if random else None)
                                   for i, code in enumerate(given)], bits)  # fmt: skip
                first_bytes = np.repeat(MASK[:: bits // 8], bits // 8)
                assert np.array_equal(got.result, np.where(first_bytes, expected, INCOME[0])), (name, word)
            for code in samples(name)[::5]:
                got = run(f"nearbyint.{name} {word} S1, S2", generation, slot="spu", income=0, src_a=code)
                assert got.result == nearby(code, name, meant, 1 if random else None)


STEPS = {
    ("goya", "spu"): {("i32", "i16")},
    ("gaudi", "spu"): {("i32", "i16"), ("i32", "u8")},
    ("gaudib", "spu"): {("i32", "i16"), ("i32", "u8")},
    ("greco", "vpu"): {("i32", "i8")},
}
"""Steps of the compiler's casts that the lists above lack (docs/reference/tpc.md 2.7): scalar f32 -> u16 and u8 by
TPCInstrInfo.td, vector i32 -> i8 by trunc-32-8.ll, which prints no target type."""


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(("unit", "slot"), [("V", "vpu"), ("S", "spu")])
def test_pairs_outside_the_table_are_refused(generation: str, unit: str, slot: str) -> None:
    have = {(row["src"], row["dst"]) for row in ROWS if row["gen"] == generation and row["unit"] == slot}
    own = {"gaudib": ("gaudi", "gaudib")}.get(generation, (generation,))  # GaudiB takes Gaudi's forms over
    shown = {(row["src"], row["dst"]) for row in COMPILER_ROWS if row["gen"] in own and row["unit"] == slot}
    shown -= {("i32", "bf16")} if generation == "goya" else set()  # Goya has no bf16: that text is assembled only
    shown |= STEPS.get((generation, slot), set())
    froms = {f"from {src}" for src, _ in have}
    for src in SPELLED:
        for dst in SPELLED:
            if (src, dst) in have | shown:
                continue
            line = f"convert.{src} target_type={SPELLED[dst]} rhne {unit}2, {unit}4"
            with pytest.raises(IllegalError, match=f"no {'vector' if slot == 'vpu' else 'scalar'} conversion") as found:
                prepare(instruction(line, generation, slot), target(generation))
            assert found.value.span is not None
            others = {to for of, to in have if of == src} or froms
            assert set(found.value.legal) == others


@pytest.mark.parametrize("row", VECTOR_ROWS, ids=name_of)
def test_lanes_and_switches_outside_the_row_are_refused(row: dict[str, str]) -> None:
    head, tail = f"convert.{row['src']}", f"target_type={SPELLED[row['dst']]}"

    def refused(switches: str, operands: str, match: str) -> None:
        try:
            found = instruction(f"{head} {switches} {tail} {operands}", row["gen"])
        except IllegalError:
            return  # the generation lacks the switch altogether
        with pytest.raises(IllegalError, match=match) as refusal:
            prepare(found, target(row["gen"]))
        assert refusal.value.legal

    options = row["num_lanes_options"].split(";") if row["num_lanes_options"] else []
    key = row["gen"], row["src"], row["dst"]
    down = fmt(row["src"]).bits > fmt(row["dst"]).bits
    pair = ("V2", "D4") if down else ("D2", "V4")
    if "single_lane" in options:
        first = int(row["lane_sel_max"]) + 1
        if first != 2 and key != ("gaudi", "f32", "bf16"):  # 2:1 pairs take every lane number, as the compiler passes
            for lane in range(first, 4):
                refused(f"lane_sel={lane}", "V2, V4", "has no lane_sel")
        refused("single_lane", ", ".join(pair), "has 2 registers")
    elif not options:
        refused("lane_sel=1", "V2, V4", "has no lane_sel")
    else:
        refused("single_lane", "V2, V4", "has no single_lane")
    if "all_lanes" in options:
        ratio = max(fmt(row["src"]).bits, fmt(row["dst"]).bits) // min(fmt(row["src"]).bits, fmt(row["dst"]).bits)
        wrong = ("V2", "A4") if down else ("A4", "V2")
        refused("all_lanes", ", ".join(wrong if ratio == 2 else pair), "needs")
        refused("all_lanes", "V3, V5", "must be the first of a group")
        refused("all_lanes lane_sel=1", ", ".join(pair if ratio == 2 else wrong), "has no lane_sel")
    elif not options:  # equal widths: the switch has no effect, the operands still agree
        refused("all_lanes", "A4, D8", "needs")
        refused("all_lanes lane_sel=1", "V2, V4", "has no all_lanes")
    elif key != ("gaudib", "f32", "f16"):
        refused("all_lanes", ", ".join(pair), "has no all_lanes")
    for switch in {"x2", "x4", "clip_fp"} - set(row["switches"].split(";")):
        refused(switch, "V4, V8", f"no switch {switch}")
    if "x2" in row["switches"]:
        refused("x2 x4", "A4, A8", "cannot be combined")
        refused("x2", "A4, A8", "has 4 registers")


def test_nan_and_overflow_of_integers_follow_the_options() -> None:
    nan_and_large = vector([0x7FC00000, 0x5F000000, 0xC7C35000, 0xFF800000], 32)

    def results(generation: str, dst: str, **options: str) -> list[int]:
        line = f"convert.f32 target_type={SPELLED[dst]} rz V1, V2"
        chip = with_options(target(generation), options)
        got = run(line, generation, chip=chip, income=vector(0, 32), src_a=nan_and_large)
        return got.result.view(np.uint16)[:8:2].tolist()

    assert results("goya", "i16") == [0, 0x7FFF, 0x8000, 0x8000]
    assert results("goya", "i16", nan_to_integer="maximum") == [0x7FFF, 0x7FFF, 0x8000, 0x8000]
    # 2**63 and -100000 modulo 2**16
    assert results("goya", "i16", float_to_integer_overflow="wrap")[:3] == [0, 0, -100000 % 65536]
    chip = with_options(target("goya"), {"integer_to_integer_overflow": "wrap"})
    got = run("convert.i16 target_type=int8 rhne V1, V2", "goya", chip=chip, income=vector(0, 8), src_a=vector(300, 16))
    assert got.result[0] == 300 - 256


def test_random_words_follow_the_options() -> None:
    line = "convert.f32 all_lanes target_type=bf16 sr V2, D4"
    read = tuple(registers("f32", 2, 0))
    strict = with_options(target("greco"), {"random_lane_word": "refuse"})
    with pytest.raises(IllegalError, match="random words"):
        run(line, "greco", chip=strict, income=INCOME[0], src_a=read)
    single = "convert.f32 lane_sel=0 target_type=bf16 sr V2, V4"
    assert run(single, "greco", chip=strict, income=INCOME[0], src_a=read[0]).vector_lfsr is not None
    # With option `used` the words of lanes that the predicate leaves out stay.
    chip = with_options(target("greco"), {"random_step": "used"})
    machine = state(words=WORDS)
    lanes_on = np.arange(256) // 4 % 3 == 0
    for chosen, steps in ((chip, [lane % 3 == 0 for lane in range(64)]), (target("greco"), [True] * 64)):
        got = run(single, "greco", chip=chosen, income=INCOME[0], src_a=read[0], machine=machine, predicate=lanes_on)
        after = zip(WORDS, stepped(WORDS, POLYNOMIAL), steps, strict=True)
        assert got.vector_lfsr.tolist() == [new if step else old for old, new, step in after]


@pytest.mark.parametrize(
    ("rule", "expected"), [("zero_extend", 0xFF), ("sign_extend", 0xFFFFFFFF), ("keep", 0x123456FF)]
)
def test_narrow_results_in_scalars_follow_the_option(rule: str, expected: int) -> None:
    chip = with_options(target("goya"), {"narrow_scalar_result": rule})
    line = "convert.f32 target_type=int8 rhne S1, S2"
    got = run(line, "goya", slot="spu", chip=chip, income=0x12345678, src_a=0xBF800000)
    assert got.result == expected


BOTH = ("greco", "gaudi2")
WIDE = (("f32", "i32", np.float32), ("bf16", "i16", ml_dtypes.bfloat16), ("f16", "i16", np.float16))
NARROW = (("f8_143", "i8"), ("f8_152", "i8"))


@pytest.mark.parametrize(("name", "integer"), [*NARROW, *((name, integer) for name, integer, _ in WIDE)])
def test_every_mode_against_the_oracle(name: str, integer: str) -> None:
    """A pair of registers: the rounded value, and that as a saturated integer (docs/reference/tpc.md section 5.2).

    Random rounding makes both results from one draw.
    """
    chip, bits = target("gaudi2"), int(integer[1:])
    lanes = 2048 // bits
    for word, mode in chip.convert_rounding.modes.items():
        meant = "RHNE" if mode.rounding is None else word.upper()
        random = meant in ("SR", "SR_RNE")
        taken = range(256) if bits == 8 else np.resize(samples(name), lanes).tolist()
        found = run(f"nearbyint.{name} cnvrt target_type=int{bits} {word} D4, V2", income=(INCOME[0], INCOME[1]),
                    src_a=vector(list(taken), bits), machine=state(words=WORDS), predicate=MASK)  # fmt: skip
        draws = [WORDS[lane % 64] if random else None for lane in range(lanes)]
        floats = [nearby(code, name, meant, draw) for code, draw in zip(taken, draws, strict=True)]
        numbers = [convert(code, name, integer, meant, draw) for code, draw in zip(taken, draws, strict=True)]
        kept = np.repeat(MASK[:: bits // 8], bits // 8)
        for got, codes, income in zip(found.result, (floats, numbers), INCOME, strict=False):
            assert np.array_equal(got, np.where(kept, vector(codes, bits), income)), (name, word)
        if random:
            assert found.vector_lfsr.tolist() == stepped(WORDS, POLYNOMIAL)


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("predicate", ["", ", VP3", ", !SP2"])
def test_text_and_encoding(generation: str, predicate: str) -> None:
    """Bit 4 of the switches is `cnvrt`; the low bits of src_b hold the target's code with it and without it."""
    for line, switches, code in (
        ("nearbyint.f32 cnvrt target_type=int32 ru D4, V5", 0b10010, 2),
        ("nearbyint.bf16 cnvrt target_type=int16 rz D4, V5", 0b10001, 7),
        ("nearbyint.f32 target_type=int32 rhne V4, V5", 0, 2),  # as the compiler prints the plain form
        ("nearbyint.f32 rd V4, V5", 0b00011, 0),
    ):
        coded = encoding(generation)
        program = parse(f"nop; nop; {line}{predicate}; nop", coded.dialect)
        assert print_program(program).strip() == f"nop; nop; {line}{predicate}; nop"
        (bundle,) = program.bundles
        data = encode_bundle(bundle, coded)
        number = int.from_bytes(data, "little")
        # tpc_encoding_fields.csv, gen34_256: switches[2:0] from bit 85, [6:3] from 88, src_b from 59.
        assert (number >> 85 & 0b111 | (number >> 88 & 0b1111) << 3, number >> 59 & 0xFF) == (switches, code), line
        assert decode_bundle(data, coded).bundle == bundle


def test_unaligned_groups_are_refused_or_rounded_down() -> None:
    line = "convert.i16 all_lanes target_type=int32 rhne V5, V2"
    with pytest.raises(IllegalError, match="V5 must be the first") as refusal:
        prepare(instruction(line, "greco"), target("greco"))
    assert refusal.value.legal == ("V4", "V6")
    lenient = with_options(target("greco"), {"unaligned_group": "round_down"})
    found = prepare(instruction(line, "greco"), lenient).registers
    named = {role: [str(one) for one in group] for role, group in found.items()}
    assert named == {"dest": ["V4", "V5"], "src_a": ["V2"]}


MODES = ("rhne", "rz", "ru", "rd", "rhaz")


def rounded(values: np.ndarray, mode: str) -> np.ndarray:
    """Round float64, which holds all sources exactly; zeros keep the sign of what they come from."""
    with np.errstate(invalid="ignore"):
        match mode:
            case "rhne":
                return np.rint(values)
            case "rhaz":  # a half is added where it cannot round: nothing from 2^52 on has a fraction
                away = np.where(np.abs(values) < 2.0**51, np.floor(np.abs(values) + 0.5), np.abs(values))
                return np.copysign(away, values)
            case _:
                directed = {"rz": np.trunc, "ru": np.ceil, "rd": np.floor}[mode](values)
                return np.copysign(directed, values)


def codes_for(name: str, bits: int) -> np.ndarray:
    """All codes of 16 bits; of 32 bits random ones, halves, neighbours of integers and of the ends of the range."""
    if bits == 16:
        return np.arange(1 << 16, dtype=np.uint16)
    source = np.random.default_rng(5)
    halves = np.arange(-3000, 3000) / 2
    ends = np.array([2.0**k + d for k in (22, 23, 24, 30, 31, 32, 63) for d in (-1, -0.5, 0, 0.5, 1)])
    exact = np.concatenate([halves, ends, -ends]).astype(np.float32)
    near = np.concatenate([exact, np.nextafter(exact, np.float32(9e9)), np.nextafter(exact, np.float32(-9e9))])
    special = np.array(
        [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 1, 0x80000001], np.uint32
    )
    anything = source.integers(0, 1 << 32, 20000, dtype=np.uint32)
    small = source.uniform(-70000, 70000, 20000).astype(np.float32).view(np.uint32)
    codes = np.concatenate([special, anything, small, near.view(np.uint32)])
    return np.resize(codes, -(-codes.size // 64) * 64)


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "integer", "kind"), WIDE)
def test_both_results_against_exact_arithmetic(generation: str, mode: str, name: str, integer: str, kind: type) -> None:
    bits = int(integer[1:])
    codes = codes_for(name, bits)
    with np.errstate(invalid="ignore"):
        meant = rounded(codes.view(kind).astype(np.float64), mode)
        nan = np.isnan(meant)
        floats = meant.astype(kind).view(codes.dtype)
        limits = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
        numbers = np.where(nan, 0, np.clip(meant, *limits)).astype(np.int64).astype(f"i{bits // 8}")
    floats = np.where(nan, codes.dtype.type((1 << (bits - 1)) - 1), floats)
    line = f"nearbyint.{name} cnvrt target_type=int{bits} {mode} D4, V2"
    lanes = 2048 // bits
    for start in range(0, codes.size, lanes):
        part = slice(start, start + lanes)
        read = vector(codes[part].tolist(), bits)
        first, second = run(line, generation, income=(INCOME[0], INCOME[1]), src_a=read).result
        assert np.array_equal(first.view(codes.dtype), floats[part]), (line, start)
        assert np.array_equal(second.view(numbers.dtype), numbers[part]), (line, start)


@pytest.mark.parametrize(("option", "expected"), [("zero", 0), ("maximum", 0x7FFFFFFF)])
def test_what_becomes_of_a_nan_is_an_option(option: str, expected: int) -> None:
    """docs/reference/tpc.md section 5 leaves NaN to integer open: a switch."""
    chip = with_options(target("gaudi2"), {"nan_to_integer": option})
    compute = prepare(instruction("nearbyint.f32 cnvrt target_type=int32 rz D4, V2"), chip)
    operands = OperandValues({"src_a": vector([0x7FC00000] * 64, 32)}, (INCOME[0], INCOME[1]))
    first, second = compute(operands, state()).result
    assert set(first.view(np.uint32).tolist()) == {0x7FFFFFFF}
    assert set(second.view(np.uint32).tolist()) == {expected}


def test_a_bias_beyond_four_bits_is_refused() -> None:
    line = "convert.f32 target_type=f8_143 rhne V1, V2"
    with pytest.raises(ReadError, match="0 to 15") as refusal:
        run(line, income=vector(0, 8), src_a=vector(0, 8), machine=state({"f8_143_bias": 16}))
    assert refusal.value.span is not None


def test_nearbyint_refusals() -> None:
    with pytest.raises(IllegalError, match="no nearbyint of f16") as refusal:
        prepared("nearbyint.f16 rz V1, V2", "gaudi")
    assert refusal.value.legal == ("f32", "bf16")
    with pytest.raises(IllegalError, match="no nearbyint of i32"):
        prepared("nearbyint.i32 rz V1, V2")
    with pytest.raises(IllegalError, match="cnvrt makes i8 of f8_143") as refusal:
        prepared("nearbyint.f8_143 cnvrt target_type=int16 rz D2, V2")
    assert refusal.value.legal == ("target_type=int8",)
    with pytest.raises(IllegalError, match="cnvrt makes i32 of f32"):
        prepared("nearbyint.f32 cnvrt rz D2, V2")
    with pytest.raises(IllegalError, match="cnvrt"):
        prepared("nearbyint.f32 cnvrt target_type=int32 rz D2, V2", "gaudi")
    with pytest.raises(IllegalError, match="must be the first of a group"):
        prepared("nearbyint.f32 cnvrt target_type=int32 rz V3, V2")
    with pytest.raises(IllegalError, match="has 2 registers"):
        prepared("nearbyint.f32 rz D2, V2")


def test_wide_lane_select_is_remarked_or_refused() -> None:
    line = "convert.i16 lane_sel=1 target_type=int32 rhne V1, V2"
    assert run(line, "greco", income=vector(0, 32), src_a=vector(1, 16)).remarks
    assert not run(line.replace("=1", "=0"), "greco", income=vector(0, 32), src_a=vector(1, 16)).remarks
    strict = with_options(target("greco"), {"wide_lane_select": "refuse"})
    with pytest.raises(IllegalError, match="lane_sel above 0"):
        prepare(instruction(line, "greco"), strict)

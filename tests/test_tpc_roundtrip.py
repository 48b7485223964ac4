"""Printing then reading is the identity, over every row of the instruction table; garbage is refused in order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tpc_text import GENERATIONS, dialect

from castsim.isa.errors import CastsimError
from castsim.isa.tpc import (
    FORMS,
    Bundle,
    Comparison,
    Dialect,
    DimensionMask,
    File,
    Form,
    Immediate,
    LabelDefinition,
    LabelUse,
    Operand,
    OperandSpec,
    Predicate,
    Predication,
    Register,
    Slot,
    Special,
    Switch,
    TpcInstruction,
    TpcProgram,
    Value,
    available,
    canonical_text,
    mnemonics,
    parse,
    print_program,
)

STEPS = {"D": ("V", 2), "A": ("V", 4), "Z": ("S", 2)}


def some_register(file: str, language: Dialect, source: random.Random) -> Register:
    whole, step = STEPS.get(file, (file, 1))
    return Register(File(file), source.randrange(0, language.registers[whole] - step + 1, step))


def some_operand(spec: OperandSpec, language: Dialect, source: random.Random) -> Operand:
    choice = source.choice(spec.accepts)
    if choice == "imm":
        return Immediate(source.getrandbits(32) if spec.limit is None else source.randint(0, spec.limit))
    if choice == "mask":
        return DimensionMask(source.getrandbits(5))
    if choice == "label":
        return LabelUse("end")
    if choice == "compare":
        return Comparison(source.choice((">", ">=", "<", "<=", "==", "!=")))
    if choice.startswith("@"):
        choice = language.tensor_registers[choice[1:]]
        if choice[1:].isdecimal():
            return Register(File(choice[0]), int(choice[1:]))
    return some_register(choice, language, source) if choice in File.__members__ else Special(choice)


def some_value(switch: Switch, form: Form, language: Dialect, source: random.Random) -> Value:
    implied = dict(form.implied)
    if switch.name in implied:
        return implied[switch.name]
    words: tuple[Value, ...] = tuple(value for value, _ in switch.words)
    if switch.rounding is not None:
        words = language.roundings[switch.rounding]
    return source.choice(words or switch.numbers)


def some_instruction(form: Form, language: Dialect, source: random.Random) -> TpcInstruction:
    """A random instance of a row, with every switch that applies."""
    switches: dict[str, Value] = {}
    for switch in form.switches:
        if switch.needs is None or switch.needs in language.features:
            switches[switch.name] = some_value(switch, form, language, source)
    for switch in form.switches:
        if switch.only_if is not None and switches.get(switch.only_if[0]) != switch.only_if[1]:
            switches.pop(switch.name, None)
    predicate = None
    if form.predication is not Predication.NONE and source.random() < 0.5:
        vectors = form.predication is Predication.VECTOR or form.vector_predicate in language.features
        file = source.choice(("SP", "VP") if vectors else ("SP",))
        register = some_register(file, language, source)
        predicate = Predicate(register, inverted=register.index == 0 or source.random() < 0.5)
    return TpcInstruction(
        form,
        source.choice(form.types) if form.types else None,
        tuple(switches.items()),
        tuple(some_operand(spec, language, source) for spec in form.operands),
        predicate,
    )


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_row_of_the_table_in_every_slot(generation: str) -> None:
    language, source = dialect(generation), random.Random(20)
    rows = [form for form in FORMS if available(form, language)]
    for form in rows:
        for slot in map(Slot, form.slots):
            for _ in range(6):
                bundle = Bundle(**{slot.name.lower(): some_instruction(form, language, source)})
                before = TpcProgram((), (bundle, LabelDefinition("end")))
                text = print_program(before)
                assert parse(text, language) == before, text
                assert canonical_text(text, language) == text


@pytest.mark.parametrize("generation", GENERATIONS)
def test_full_bundles(generation: str) -> None:
    language, source = dialect(generation), random.Random(21)
    rows = [form for form in FORMS if available(form, language)]
    choices = {slot: [form for form in rows if slot in form.slots] for slot in Slot}
    for _ in range(300):
        slots = {
            slot.name.lower(): some_instruction(source.choice(choices[slot]), language, source)
            for slot in Slot
            if source.random() < 0.8
        }
        before = TpcProgram((), (Bundle(**slots), LabelDefinition("end")))
        assert parse(print_program(before), language) == before


def test_every_pattern_is_used_by_some_generation() -> None:
    languages = [dialect(generation) for generation in GENERATIONS]
    used = {form.pattern() for form in FORMS if any(available(form, language) for language in languages)}
    assert used == {form.pattern() for form in FORMS}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_mnemonics_of_the_published_opcode_table(generation: str) -> None:
    """The instructions of docs/reference/tpc.md section 7.1 that not every generation has."""
    language = dialect(generation)
    found = {form.mnemonic for form in FORMS if available(form, language)}
    missing = set(mnemonics()) - found
    classes = {"fclass", "calc_fp_special"}
    typed, parts = {"lookup_1c", "lookup_2c"}, {"lookup_c0", "lookup_c1c2"}
    from_gaudi2 = {"event", "st_tnsr_sqz", "st_tnsr_s", "udiv"}
    bytes_only = {"convert_int8", "convert_uint8"}
    expected = {
        "goya": {"mov_dg.all", "mov_dg.pack", "mov_dg.unpack", "madd", "prefetch", "udiv_4step"}
        | bytes_only | classes | typed | from_gaudi2,
        "gaudi": {"mov_dg.pack", "mov_dg.unpack", "madd", "msac", "udiv_step"} | bytes_only | parts | from_gaudi2,
        "gaudib": {"mov_dg.pack", "madd", "msac", "udiv_step"} | bytes_only | parts | from_gaudi2,
        "greco": {"mov_dg.unpack", "udiv_step"} | parts | from_gaudi2,
        "gaudi2": {"udiv_step", "udiv_4step"} | parts,
    }  # fmt: skip
    assert missing == expected[generation]


PIECES = (
    *("convert.f32", "mov_dg", "all", "add.i32", "mov", "mov.i32", "ld_tnsr", "jmpr", "loop", "halt", "nop", "end"),
    *("V0", "D2", "%S3", "I1", "SP0", "!VP3", "S30", "LFSR", ",", ";", "||", "|", "{", "}", ":", "=", "!", "<=", "%"),
    *("0x7b", "-1", "1.5", "i16_5", "99999999999", "b00010", "lane_sel=3", "rhne", "target_type=int8", "partial"),
    *("//", "/*", "*/", "castsim:", "tensor", "[64]", ".", ".text", "..", "\n", "\t", "\x00", "ünï"),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(GENERATIONS))
def test_garbage_is_refused_or_read(pieces: list[str], generation: str) -> None:
    text = " ".join(pieces)
    try:
        found = parse(text, dialect(generation))
    except CastsimError as error:
        assert error.span is not None
        assert error.render()
    else:
        assert parse(print_program(found), dialect(generation)) == found


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_or_read(text: str) -> None:
    try:
        parse(text, dialect("gaudi2"))
    except CastsimError as error:
        assert error.span is not None


def test_long_texts_take_linear_time() -> None:
    line = "ld_l_v V1, 0x100; nop; convert.f32 target_type=int32 V4, V5; nop  // castsim is quick /* */\n"
    assert len(parse(line * 3000, dialect("gaudi2")).bundles) == 3000
    assert parse("/* */ " * 20000 + " " * 20000, dialect("gaudi2")).items == ()
